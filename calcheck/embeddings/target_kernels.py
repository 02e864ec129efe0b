"""Kernels on targets: features of polynomial and weighted kernels, and their choice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from calcheck.distributions import Predictive, Samples
from calcheck.distributions.special import monomials
from calcheck.embeddings.exact_features import FeatureBounds
from calcheck.embeddings.laplace_features import LaplaceFeatures, SharedLaplace
from calcheck.embeddings.output_features import output_features
from calcheck.embeddings.rescaled_features import (
    DataSet,
    OfDistributions,
    SharedFeatures,
    by_row,
    draws_of,
    mean_after_swap,
)
from calcheck.errors import DataError, OptionError
from calcheck.execution.run import RandomStream, Run
from calcheck.kernels.input_kernel import target_bandwidths, target_precisions
from calcheck.typing import Values

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.kernels import KernelName
    from calcheck.typing import Indices


MAX_FEATURES = 1500  # Maximum number of monomials


@dataclass(frozen=True, eq=False)
class MonomialFeatures:
    """Features psi with psi(u) . psi(v) = (sum_c gamma_c u_c v_c + coef0)^degree: weighted monomials."""

    gamma: Values  # (t,), scale of each target column
    degree: int  # Degree of the kernel
    coef0: float  # Constant of the kernel

    def __post_init__(self) -> None:
        if self.rank > MAX_FEATURES:
            msg = (
                f"--kernel-y polynomial of degree {self.degree} has {self.rank:,} monomials of {len(self.gamma)} target"
                f" columns, at most {MAX_FEATURES:,} are allowed. Pass a smaller --degree, or --kernel-y rbf"
            )
            raise OptionError(msg)

    @property
    def rank(self) -> int:
        """Number of features: monomials up to the degree."""
        return comb(len(self.gamma) + self.degree, self.degree)

    @property
    def exponents(self) -> Indices:
        """Exponents of the monomials, (r, t)."""
        columns = range(len(self.gamma))
        chosen = (each for total in range(self.degree + 1) for each in combinations_with_replacement(columns, total))
        return np.array([[each.count(column) for column in columns] for each in chosen])

    @property
    def weights(self) -> Values:
        """Weights of the monomials, (r,): roots of the multinomial coefficients times powers of gamma and coef0."""
        exponents = self.exponents
        rest = self.degree - exponents.sum(axis=1)
        ways = [
            factorial(self.degree) // (factorial(left) * prod(map(factorial, powers)))
            for left, powers in zip(rest.tolist(), exponents.tolist(), strict=True)
        ]
        return np.asarray(np.sqrt(np.array(ways) * self.coef0**rest * np.prod(self.gamma**exponents, axis=1)))

    def of_points(self, points: Values) -> Values:
        """Return psi(u) for (p, t) points, (p, r)."""
        return monomials(points, self.exponents) * self.weights

    def of_distributions(self, predictive: Predictive) -> Values:
        """Return E psi(Y_i), (n, r)."""
        moments = predictive.mixed_moments(self.exponents)
        good = np.asarray(np.isfinite(moments).all(axis=1))
        if not good.all():
            msg = (
                f"{int((~good).sum()):,} of {len(good):,} {predictive.display_name} distributions have moments of order"
                f" {self.degree} that overflow. Pass --kernel-y rbf, or a smaller --degree"
            )
            raise DataError(msg)
        return moments * self.weights

    def embed(self, points: Values, models: Iterable[Predictive]) -> tuple[Values, Iterator[Values], FeatureBounds]:
        """Return the features of targets (p, t), and of the distributions of each trial."""
        return self.of_points(points), map(self.of_distributions, models), FeatureBounds(self.rank)

    def mean_norms(self, points: Values) -> Values:
        """Return the mean of |psi(u)|^2 over the points (n, r, t) of each row, (n,)."""
        return np.asarray(((points**2 @ self.gamma + self.coef0) ** self.degree).mean(axis=1))


class SharedMonomials:
    """Monomials of the targets and distributions of many data sets, whose kernels differ in gamma only."""

    def __init__(
        self,
        data: DataSet,  # The data, as opposed to the replicates
        features: MonomialFeatures,  # The features in the kernel of the data
    ) -> None:
        self._data, self._features = data, features
        self._means = OfDistributions(data, features.of_distributions)
        self._before = by_row(features.of_points(data.y.reshape(-1, data.y.shape[-1])), data.y)

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], Values, Values]:
        """Return features, and matrices that convert them to the kernels of a data set and of the data."""
        observed = by_row(self._features.of_points(each.y.reshape(-1, each.y.shape[-1])), each.y)
        ratios = np.asarray(each.gamma) / self._features.gamma
        own = np.diag(np.prod(ratios ** (self._features.exponents / 2), axis=1))
        repeats = self._data.repeats
        model = [
            mean_after_swap(one, self._means(draws_of(one)), self._before, observed, repeats) for one in each.model
        ]
        return observed, model, own, np.eye(self._features.rank)


Rescale = Callable[[Values], Values]


@dataclass(frozen=True, eq=False)
class WeightedFeatures:
    """Features psi with psi(u) . psi(v) = sum_p w_p k_p(u, v): those of each kernel, times the root of its weight."""

    gamma: Values  # (t,), gamma of the first kernel
    parts: Sequence[tuple[float, TargetFeatures]]  # The weight and the features of each kernel; the weights sum to 1

    @property
    def rank(self) -> int:
        """Number of features r."""
        return sum(features.rank for _, features in self.parts)

    def embed(self, points: Values, models: Iterable[Predictive]) -> tuple[Values, Iterator[Values], FeatureBounds]:
        """Return the features of targets (p, t), those of the distributions of each trial (n, r), and their error."""
        trials = list(models)
        roots = [np.sqrt(weight) for weight, _ in self.parts]
        found = [features.embed(points, trials) for _, features in self.parts]
        observed = np.concatenate([root * each[0] for root, each in zip(roots, found, strict=True)], axis=1)
        bounds = FeatureBounds(self.rank)

        def predicted() -> Iterator[Values]:
            for each in zip(*(part[1] for part in found), strict=True):
                bounds.include(*(part[2] for part in found))
                yield np.concatenate([root * one for root, one in zip(roots, each, strict=True)], axis=1)

        return observed, predicted(), bounds

    def mean_norms(self, points: Values) -> float:  # noqa: ARG002 - equal for all points
        """Return the mean of k(u, u) over points: 1."""
        return 1.0


class SharedWeighted:
    """Weighted features of the targets and distributions of many data sets."""

    def __init__(
        self,
        data: DataSet,  # The data, as opposed to the replicates
        # The weight of each kernel, and the function that returns its gamma for that of a data set
        parts: Sequence[tuple[float, Rescale]],
        shared: Callable[[DataSet], SharedOutputs],  # Returns the shared features of the data in one kernel
    ) -> None:
        self._parts = [(np.sqrt(weight), of, shared(_with_gamma(data, of))) for weight, of in parts]

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], Values, Values]:
        """Return features, and matrices that convert them to the kernels of a data set and of the data."""
        found = [shared.rescaled(_with_gamma(each, of)) for _, of, shared in self._parts]
        observed = np.concatenate([part[0] for part in found], axis=1)
        model = [np.concatenate(parts, axis=1) for parts in zip(*(part[1] for part in found), strict=True)]
        return observed, model, self._blocks([part[2] for part in found]), self._blocks([part[3] for part in found])

    def _blocks(self, matrices: list[Values]) -> Values:
        """Return a block diagonal matrix of the matrices of the parts, times the roots of their weights."""
        from scipy.linalg import block_diag

        roots = [root for root, _, _ in self._parts]
        return np.asarray(block_diag(*(root * matrix for root, matrix in zip(roots, matrices, strict=True))))


def _with_gamma(data: DataSet, of: Rescale) -> DataSet:
    """Return the data set with another gamma of the kernel on targets."""
    return DataSet(data.y, of(np.asarray(data.gamma)), data.model)


class TargetFeatures(Protocol):
    """Features psi with k(u, v) = psi(u) . psi(v), for some targets and distributions."""

    @property
    def gamma(self) -> Values:
        """Parameter of the kernel for each target column, (t,)."""
        ...

    @property
    def rank(self) -> int:
        """Number of features r that are known without the data."""
        ...

    def embed(self, points: Values, models: Iterable[Predictive]) -> tuple[Values, Iterator[Values], FeatureBounds]:
        """Return the features of targets (p, t), those of the distributions of each trial (n, r), and their error."""
        ...

    def mean_norms(self, points: Values) -> Values | float:
        """Return the mean of k(u, u) over the points (n, m, t) of each row, (n,) or a number for all rows."""
        ...


class SharedOutputs(Protocol):
    """Features of the targets and distributions of many data sets."""

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], Values | None, Values | None]:
        """Return features, and matrices that convert them to the kernels of a data set and of the data, or None."""
        ...


class TargetKernel(ABC):
    """A kernel on targets whose scale depends on the data."""

    replicates_share_scale: ClassVar[bool] = False  # Whether replicates of the targets have the scale of the data

    @property
    @abstractmethod
    def details(self) -> dict[str, Any]:
        """Name and shape of the kernel, for the report."""

    @abstractmethod
    def default_gamma(self, y: Values, predictive: Predictive) -> Values:
        """Return the default gamma for targets (n, r, t), (t,)."""

    @abstractmethod
    def unit_gamma(self, y: Values, predictive: Predictive) -> Values:
        """Return the gamma of targets (n, r, t) that is 1 for standardized targets, (t,)."""

    @abstractmethod
    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:
        """Return features for targets (p, t) and distributions."""

    @abstractmethod
    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:
        """Return features of many data sets."""

    def mean_norms(self, points: Values, gamma: Values) -> Values | float:  # noqa: ARG002 - for the polynomial kernel
        """Return the mean of k(u, u) over the points (n, m, t) of each row, (n,) or a number for all rows."""
        return 1.0


class RbfTargets(TargetKernel):
    """RBF kernel exp(-sum_c gamma_c (u_c - v_c)^2)."""

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "rbf"}

    def default_gamma(self, y: Values, predictive: Predictive) -> Values:  # noqa: ARG002 - the targets' own scale
        return target_bandwidths(y.reshape(-1, y.shape[-1]), None)

    def unit_gamma(self, y: Values, predictive: Predictive) -> Values:  # noqa: ARG002 - the targets' own scale
        return target_precisions(y.reshape(-1, y.shape[-1]))

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:
        return output_features(y, predictive, gamma, run.rng(RandomStream.FEATURES))

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:  # noqa: ARG002
        return SharedFeatures(data, covered, lambda: run.rng(RandomStream.FEATURES))


@dataclass(frozen=True)
class PolynomialTargets(RbfTargets):
    """Polynomial kernel (sum_c gamma_c u_c v_c + coef0)^degree, with the scale of the RBF kernel."""

    degree: int
    coef0: float

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "polynomial", "degree": self.degree, "coef0": self.coef0}

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:  # noqa: ARG002
        return MonomialFeatures(gamma, self.degree, self.coef0)

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:  # noqa: ARG002
        return SharedMonomials(data, MonomialFeatures(np.asarray(data.gamma), self.degree, self.coef0))

    def mean_norms(self, points: Values, gamma: Values) -> Values:
        return MonomialFeatures(gamma, self.degree, self.coef0).mean_norms(points)


class LaplaceTargets(TargetKernel):
    """Laplace kernel exp(-sum_c gamma_c |u_c - v_c|).

    Its scale is the deviation of the predictions, so that it does not change if targets are drawn from them. For
    samples, it is the deviation of targets and draws together, which does not change if they are exchanged.
    """

    replicates_share_scale: ClassVar[bool] = True

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "laplace"}

    def default_gamma(self, y: Values, predictive: Predictive) -> Values:
        return np.asarray(self.unit_gamma(y, predictive) / y.shape[-1])

    def unit_gamma(self, y: Values, predictive: Predictive) -> Values:
        try:
            deviation = np.sqrt(_variances(y, predictive.load()))
        except DataError as error:
            msg = f"--kernel-y laplace is scaled by the deviation of the predictions, but {error}. Pass --kernel-y rbf"
            raise DataError(msg) from error
        if not (np.isfinite(deviation) & (deviation > 0)).all():
            msg = "the predictions have no finite positive deviation, which is the scale of --kernel-y laplace"
            raise DataError(msg)
        return np.asarray(1 / deviation)

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:  # noqa: ARG002
        return LaplaceFeatures(gamma, run)

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:  # noqa: ARG002
        return SharedLaplace(data, LaplaceFeatures(np.asarray(data.gamma), run), differences=differences)


@dataclass(frozen=True)
class FeatureAwareTargets(RbfTargets):
    """Kernel ((1 - epsilon) k_1(f, f') + epsilon) k_2(y, y'), where the last targets are features f of the others, y.

    k_1 and k_2 are RBF kernels, so it is the sum of two RBF kernels: (1 - epsilon) times the one of all columns, and
    epsilon times the one of y, whose gamma is 0 for the columns of f.
    """

    count: int
    epsilon: float

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "rbf", "feature_targets": self.count, "epsilon": self.epsilon}

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:
        parts = [
            (weight, super(FeatureAwareTargets, self).features(y, predictive, of(gamma), run))
            for weight, of in self._parts
        ]
        return WeightedFeatures(gamma, parts)

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:
        one = super().shared
        return SharedWeighted(data, self._parts, lambda part: one(part, covered, run, differences=differences))

    @property
    def _parts(self) -> list[tuple[float, Callable[[Values], Values]]]:
        """Weight of each RBF kernel, and the function that returns its gamma for that of all columns."""
        parts: list[tuple[float, Callable[[Values], Values]]] = [
            (1 - self.epsilon, lambda gamma: gamma),
            (self.epsilon, lambda gamma: np.where(np.arange(len(gamma)) < len(gamma) - self.count, gamma, 0.0)),
        ]
        return [part for part in parts if part[0]]


def target_kernel(name: KernelName, degree: int = 3, coef0: float = 1.0) -> TargetKernel:
    """Return the kernel on targets with a name, which determines its module and its class."""
    kernel = getattr(import_module(f"calcheck.embeddings.{name}"), f"{name.capitalize()}Targets")
    found: TargetKernel = kernel(degree, coef0) if name == "polynomial" else kernel()
    return found


def _variances(y: Values, predictive: Predictive) -> Values:
    """Return the variance of the predictions of all rows together, (t,); for samples, with the targets."""
    columns = y.shape[-1]
    if isinstance(predictive, Samples):
        pooled = np.concatenate([y.reshape(-1, columns), predictive.draws.reshape(-1, columns)])
        return np.asarray(pooled.var(axis=0, ddof=1))
    mean, std = (each.reshape(-1, columns) for each in (predictive.mean(), predictive.std()))
    return np.asarray(mean.var(axis=0) + (std**2).mean(axis=0))
