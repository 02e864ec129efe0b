"""Features of targets shared by many data sets that have different kernels on targets.

The bandwidth of the kernel depends on the targets, which differ between replicates. Features of a slightly narrower
kernel are shared by all data sets: they represent each target as a linear combination of the same elements, and the
inner products of these elements in the kernel of a data set give its norm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from calcheck.embeddings.dictionary import POOL_POINTS, Fineness
from calcheck.embeddings.output_features import OutputFeatures, output_features
from calcheck.errors import DataError
from calcheck.linalg.gram import psd_root

if TYPE_CHECKING:
    from numpy.random import Generator

    from calcheck.distributions import Predictive
    from calcheck.typing import Values


ResultT = TypeVar("ResultT")

TOLERANCE = 1e-8  # Maximum residual of the squared norm of a point: far below random variation
MIN_POINTS, POINTS_PER_ROW = 400, 4  # Pool size: minimum (a grid of 80 length scales), and points per row
TAIL = 1e-6  # Tail mass of a distribution, on each side, that need not be represented
MAX_RESIDUAL = 1e-6  # Residual of a target's squared norm above which it is added as an element
MAX_OCTAVES = 40  # Maximum log2 ratio of gammas: the spread of the targets then differs by a factor of a million


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
    """A function of distributions, cached for those that all data sets share."""

    def __init__(
        self,
        data: DataSet,  # The data, whose distributions the replicates share unless they have their own
        function: Callable[[Predictive], ResultT],
    ) -> None:
        self._shared, self._function = [draws_of(one) for one in data.model], function
        self._known: dict[int, ResultT] = {}

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
    """Return the mean of features over the draws of each row, (n, r), after draws and targets are swapped, if any are.

    If a draw and the target are swapped, the mean of m draws changes by 1/m of their difference. With r repeated
    targets, and features averaged over them, it changes by r/m of the difference of the averages.

    Shapes: mean (n, r); before, observed (n, r).
    """
    return mean + (before - observed) * repeats / (one.draws.n_draws or 1) if isinstance(one, SwappedDraw) else mean


@dataclass(frozen=True, eq=False)
class _BandwidthBin:
    """Features for kernels with gammas within a factor of two, and results shared by data sets."""

    features: OutputFeatures
    before: Values
    fixed: Values
    means: OfDistributions[Values]


class SharedFeatures:
    """Features of the targets and distributions of many data sets."""

    def __init__(
        self,
        data: DataSet,  # The data, as opposed to the replicates
        covered: Predictive,  # Distributions that the features must represent in every trial
        rng: Callable[[], Generator],  # Returns the random generator that selects elements if the pool is too large
    ) -> None:
        self._data, self._covered, self._rng = data, covered, rng
        self._octaves: dict[int, _BandwidthBin] = {}
        on_a_line = data.y.shape[-1] == 1
        points = min(POOL_POINTS, max(MIN_POINTS, POINTS_PER_ROW * len(data.y))) if on_a_line else POOL_POINTS
        self._fineness = Fineness(TOLERANCE, TAIL, points)

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], Values, Values]:
        """Return features, and the matrices that convert them to the kernels of the data set and of the data."""
        octave = self._octave(each)
        features = octave.features
        points = each.y.reshape(-1, each.y.shape[-1])
        observed = features.of_points(points)
        far = np.flatnonzero(1 - np.einsum("ij,ij->i", observed, observed) > MAX_RESIDUAL)
        if len(far):
            features = features.extend(points[far], MAX_RESIDUAL)
            observed = features.of_points(points)
        observed = by_row(observed, each.y)
        model = [self._mean(octave, one, observed, features) for one in each.model]
        parts, along = _in_few_directions([observed, *model])
        if features is not octave.features:
            fixed = _norm(features, self._data.gamma, along)
        else:
            fixed = octave.fixed if along is None else along.T @ octave.fixed
        return parts[0], parts[1:], _norm(features, each.gamma, along), fixed

    def _octave(self, each: DataSet) -> _BandwidthBin:
        """Return the features shared by kernels of similar bandwidth."""
        own, used = np.asarray(self._data.gamma), np.asarray(self._data.gamma) > 0
        ratio = np.max(np.asarray(each.gamma)[used] / own[used])
        number = int(np.rint(np.log2(ratio)))
        if abs(number) > MAX_OCTAVES:
            msg = (
                f"targets drawn from the predictions spread {ratio**-0.5:.1g} times as far as the observed targets."
                " Check that the predictions are in the unit of the targets, or pass --no-null"
            )
            raise DataError(msg)
        if number not in self._octaves:
            gamma = np.asarray(self._data.gamma) * 2.0 ** (number + 0.5)
            y = self._data.y
            points = y.reshape(-1, y.shape[-1])
            features = output_features(points, self._covered, gamma, self._rng(), self._fineness)
            before, fixed = by_row(features.of_points(points), y), _norm(features, self._data.gamma)
            self._octaves[number] = _BandwidthBin(
                features, before, fixed, OfDistributions(self._data, features.of_distributions)
            )
        return self._octaves[number]

    def _mean(
        self, octave: _BandwidthBin, one: Predictive | SwappedDraw, observed: Values, features: OutputFeatures
    ) -> Values:
        """Return E f(Y'), (n, r)."""
        predictive = draws_of(one)
        mean, before = octave.means(predictive), octave.before
        if features is not octave.features:
            mean = features.complete(mean, predictive.kernel_mean)
            y = self._data.y
            before = by_row(features.of_points(y.reshape(-1, y.shape[-1])), y)
        return mean_after_swap(one, mean, before, observed, self._data.repeats)


def by_row(features: Values, y: Values) -> Values:
    """Return features averaged over the repeated targets of each row, (n, q)."""
    return np.asarray(features.reshape(len(y), -1, features.shape[1]).mean(axis=1))


def _in_few_directions(parts: list[Values]) -> tuple[list[Values], Values | None]:
    """Return features projected on the span of all rows, and its basis (r, q); unchanged if there are many rows."""
    rows = np.concatenate(parts)
    if len(rows) >= rows.shape[1]:
        return parts, None
    along, few = np.linalg.qr(rows.T)
    return np.split(few.T, len(parts)), along


def _norm(features: OutputFeatures, gamma: Values | None, along: Values | None = None) -> Values:
    """Return C such that psi = f C are features of the kernel with this gamma; optionally in a given basis."""
    products = replace(features.pivots, gamma=np.asarray(gamma)).all_products()
    return psd_root(features.gram_of_represented(products, along))
