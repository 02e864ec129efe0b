"""Kernels on targets, and the data sets whose features they provide."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np

from calcheck.distributions import Predictive, Samples
from calcheck.errors import DataError, Message, OptionError
from calcheck.execution.run import RandomStream, Run
from calcheck.kernels import KernelName
from calcheck.kernels.bandwidths import Scaling
from calcheck.kernels.kernel_functions import Kernel
from calcheck.typing import Values

ResultT = TypeVar("ResultT")
Draws = int | Literal["exact", "all"] | None
DRAW_COPIES = 4  # Number of arrays of draws in memory during sampling
MAX_RESIDUAL = 1e-8  # Maximum feature residual (of a squared norm) without a warning; changes a CCE of 0.01 by < 1e-6


class TargetFeatures(Protocol):
    """Features psi with k(u, v) = psi(u) . psi(v), for some targets and distributions."""

    @property
    def gamma(self) -> Values:
        """Parameter of the kernel for each target column, (t,)."""

    @property
    def rank(self) -> int:
        """Number of features r that are known without the data."""

    def embed(self, points: Values, models: Iterable[Predictive]) -> "tuple[Values, Iterator[Values], FeatureBounds]":
        """Return the features of targets (p, t), those of the distributions of each trial (n, r), and their error."""


class SharedOutputs(Protocol):
    """Features of the targets and distributions of many data sets."""

    def rescaled(self, each: "DataSet") -> tuple[Values, list[Values], Values | None, Values | None]:
        """Return features, and matrices that convert them to the kernels of a data set and of the data, or None."""


class TargetKernel(ABC):
    """A kernel on targets whose scale depends on the data."""

    replicates_share_scale: ClassVar[bool] = False  # Whether replicates of the targets have the scale of the data
    divisor: ClassVar[int] = 1  # By which the default gamma of a single standardized target is smaller than 1

    @property
    @abstractmethod
    def details(self) -> dict[str, Any]:
        """Name and shape of the kernel, for the report."""

    def default_gamma(self, y: Values, predictive: Predictive) -> Values:
        """Return the default gamma for targets (n, r, t), (t,)."""
        return np.asarray(self.unit_gamma(y, predictive) / (self.divisor * y.shape[-1]))

    @abstractmethod
    def unit_gamma(self, y: Values, predictive: Predictive) -> Values:
        """Return the gamma of targets (n, r, t) that is 1 for standardized targets, (t,)."""

    @abstractmethod
    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:
        """Return features for targets (p, t) and distributions."""

    @abstractmethod
    def shared(self, data: "DataSet", covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:
        """Return features of many data sets."""

    def mean_norms(self, points: Values, gamma: Values) -> Values | float:  # noqa: ARG002 - for the polynomial kernel
        """Return the mean of k(u, u) over the points (n, m, t) of each row, (n,) or a number for all rows."""
        return 1.0


def target_kernel(name: KernelName, degree: int = 3, coef0: float = 1.0) -> TargetKernel:
    """Return the kernel on targets with a name, which determines its module and its class."""
    kernel = getattr(import_module(f"calcheck.embeddings.{name}"), f"{name.capitalize()}Targets")
    found: TargetKernel = kernel(degree, coef0) if name == "polynomial" else kernel()
    return found


@dataclass(frozen=True, eq=False)
class SwappedDraw:
    """Draws in which one draw of each row is swapped with the target."""

    draws: Predictive  # The original draws; the same object for all data sets


@dataclass(frozen=True, eq=False)
class DataSet:
    """Targets and the distributions that they are compared with."""

    y: Values  # (n, t) or (n, r, t), targets; r per row if they are repeated, and then their features are averaged
    gamma: Values | None  # (t,), gamma of the kernel on targets; None if it is undefined for these targets
    # Distributions or draws in each trial; the same objects for all data sets unless they differ
    model: Sequence[Predictive | SwappedDraw]

    @property
    def repeats(self) -> int:
        """Number of targets per row, r."""
        return int(self.y.size // (len(self.y) * self.y.shape[-1]))


class OfDistributions(Generic[ResultT]):
    """A function of distributions, cached for those of the data, which replicates share unless they have their own."""

    def __init__(self, data: DataSet, function: Callable[[Predictive], ResultT]) -> None:
        self._shared, self._function = [draws_of(one) for one in data.model], function
        self._known: dict[int, ResultT] = {}

    def clear(self) -> None:
        """Drop the results, which are computed when needed."""
        self._known.clear()

    def __call__(self, predictive: Predictive) -> ResultT:
        if id(predictive) in self._known:
            return self._known[id(predictive)]
        found = self._function(predictive)
        if any(predictive is each for each in self._shared):
            self._known[id(predictive)] = found
        return found


def draws_of(one: Predictive | SwappedDraw) -> Predictive:
    """Return the distributions, or the original draws if some are swapped."""
    return one.draws if isinstance(one, SwappedDraw) else one


def mean_after_swap(
    one: Predictive | SwappedDraw, mean: Values, before: Values, observed: Values, repeats: int
) -> Values:
    """Return the mean features of the draws of each row, (n, r); a swap changes it by r/m of their difference."""
    return mean + (before - observed) * repeats / (one.draws.n_draws or 1) if isinstance(one, SwappedDraw) else mean


def by_row(features: Values, y: Values) -> Values:
    """Return features averaged over the repeated targets of each row, (n, q)."""
    if len(features) == len(y):
        return features
    return np.asarray(features.reshape(len(y), -1, features.shape[1]).mean(axis=1))


@dataclass(eq=False)
class FeatureBounds:
    """Largest residuals of features, in squared norms: 0 for exact features, or the tolerance of a factorization."""

    rank: int  # Number of features
    points: float = 0.0  # Largest residual of a target or a draw
    rows: float = 0.0  # Largest residual of a predictive distribution
    quadrature: float = 0.0  # Maximum quadrature error of the mean embeddings

    def include(self, *others: "FeatureBounds") -> None:
        """Raise the residuals to those of other features."""
        self.points = max(self.points, *(each.points for each in others))
        self.rows = max(self.rows, *(each.rows for each in others))
        self.quadrature = max(self.quadrature, *(each.quadrature for each in others))


def representation(predictive: Predictive, chosen: Draws) -> int | str:
    """Return the representation of the model, with a default if it is None."""
    sampled = predictive.n_draws is not None
    if chosen == "exact" and sampled:
        raise OptionError("--draws exact needs parameters, but the file has samples. Pass --draws all, or a number")
    if chosen == "all" and not sampled:
        msg = "--draws all needs saved samples, but the file has parameters. Pass --draws exact, or a number"
        raise OptionError(msg)
    return chosen or ("all" if sampled else "exact")


def trials_of(predictive: Predictive, chosen: Draws, trials: int, run: Run) -> Iterator[Predictive]:
    """Yield the representation of the model in each trial: the distributions, or draws from them."""
    size = representation(predictive, chosen)
    if not isinstance(size, int):
        yield predictive
        return
    requested = f"--draws {size:,}" + (f" --trials {trials:,}" if trials > 1 else "")
    needed = DRAW_COPIES * 8 * trials * size * len(predictive) * predictive.targets
    run.require_room(needed, f"{requested} of {len(predictive):,} rows")
    for trial in range(trials):
        try:
            draws = predictive.sample(run.rng(RandomStream.DRAWS, trial), size)
        except (ValueError, OverflowError, MemoryError) as error:
            msg = f"sampling {size:,} draws per row from {predictive.family} distributions failed ({error})"
            raise DataError(msg) from error
        yield Samples(draws)


@dataclass(frozen=True, eq=False)
class KernelSettings:
    """Settings that depend on the data."""

    scaling: Scaling  # Normalization of the inputs
    kernel: Kernel  # k_X on normalized inputs
    features: TargetFeatures  # psi with k_Y(u, v) = psi(u) . psi(v)
    predictive: Predictive  # Distributions that the features represent
    details: dict[str, Any]  # The same settings as reported in JSON


def feature_details(bounds: FeatureBounds) -> dict[str, Any]:
    """Return rank and residuals of the output features."""
    features = {"rank": bounds.rank, "residual_targets": bounds.points, "residual_predictive": bounds.rows}
    return {"features": {**features, "quadrature_error": bounds.quadrature}}


def feature_warnings(rank: int, residual: float) -> list[Message]:
    """Return a warning if the largest residual of the output features is large."""
    text = f"{rank:,} output features have a residual of up to {residual:.1e} of a squared norm"
    return [] if residual <= MAX_RESIDUAL else [Message("feature-residual", text)]


def residual_warnings(bounds: FeatureBounds) -> list[Message]:
    """Return a warning if the residual of the output features of targets or distributions is large."""
    return feature_warnings(bounds.rank, max(bounds.points, bounds.rows))
