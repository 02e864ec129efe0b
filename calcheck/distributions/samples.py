"""Predictive distributions known by draws: ensembles, posterior samples, generators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calcheck.distributions.base import REPEATED, Predictive
from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.kernel_means import rbf
from calcheck.errors import DataError, OptionError
from calcheck.validation import require_finite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random, RowRandom

    Values = NDArray[np.float64]
    Places = NDArray[np.integer[Any]]

ROUNDING = 1e-9  # of a number of draws
PLAIN_AXES = 2  # rows and draws; a third counts target columns


@dataclass(frozen=True, eq=False)
class Samples(Predictive):
    """Distributions given by m draws a row.

    Parameters
    ----------
    draws : (n, m) or (n, m, t)
        The draws, in the unit of the targets; the last axis counts target columns if there are several.

    Raises
    ------
    ValuesError
        A draw is not a finite number.
    """

    family: ClassVar[str] = "samples"
    draws: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.hold_in_double()
        if self.draws.ndim not in (PLAIN_AXES, PLAIN_AXES + 1) or not self.draws.shape[1]:
            msg = f"samples must be rows by draws, at least one draw a row, got shape {self.draws.shape}"
            raise DataError(msg)
        require_finite("samples", self.draws)

    @property
    def targets(self) -> int:
        return 1 if self.draws.ndim == PLAIN_AXES else self.draws.shape[2]

    @property
    def n_draws(self) -> int:
        return int(self.draws.shape[1])

    def mean(self) -> NDArray[np.float64]:
        return np.asarray(self.draws.mean(axis=1))

    def std(self) -> NDArray[np.float64]:
        """Return the standard deviations (m - 1) of the draws.

        Raises
        ------
        DataError
            There is one draw a row.
        """
        if self.draws.shape[1] == 1:
            msg = "one sample a row has no standard deviation"
            raise DataError(msg)
        away = self.draws - self.draws[:, :1]  # equal draws have a spread of 0, not of rounding
        return np.asarray(away.std(axis=1, ddof=1))

    def median(self) -> NDArray[np.float64]:
        return np.asarray(np.median(self.draws, axis=1))

    def central_interval(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the closest pair of draws of opposite ranks between which one more falls with a chance of ``level``.

        Those are the smallest and the largest draw where even these are not that far apart.
        """
        draws = self.draws.shape[1]
        outside = outside_central(level, draws)
        ordered = np.sort(self.draws, axis=1)
        return ordered[:, outside - 1], ordered[:, draws - outside]

    def cdf(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (r + 1) / (m + 1), r the draws at or below y_i: rank-uniform for a perfect ensemble."""
        return np.asarray((np.sum(self.draws <= y[:, None], axis=1) + 1) / (self.draws.shape[1] + 1))

    def cdf_left(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return r / (m + 1), r the draws below y_i."""
        return np.asarray(np.sum(self.draws < y[:, None], axis=1) / (self.draws.shape[1] + 1))

    def interval_mass(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the chance that one more draw falls between two of the draws, (n,).

        Of the m + 1 gaps that m draws leave, those between the two count. (:meth:`cdf` and :meth:`cdf_left`, which
        bound where a target tied with a draw may rank, would count a gap too much at either end.)
        """
        within = np.sum((self.draws >= low[:, None]) & (self.draws <= high[:, None]), axis=1)
        return np.asarray((within - 1) / (self.draws.shape[1] + 1))

    def interval_mass_error(
        self, y: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return a gap for each end that several draws share or, with y among the draws, that y may share."""
        tied = (self.draws == y[:, None]).any(axis=1)
        shared = [tied | (np.sum(self.draws == end[:, None], axis=1) > 1) for end in (low, high)]
        return np.asarray(np.sum(shared, axis=0) / (self.draws.shape[1] + 1))

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of the distributions with mass 1/m at each draw."""
        return self._crps(y, "qd")

    def fair_crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores whose mean is that of the distributions that the draws are from, (n,); may be negative.

        Raises
        ------
        DataError
            There is one draw a row.
        """
        if self.draws.shape[1] == 1:
            msg = "one sample a row has no fair CRPS"
            raise DataError(msg)
        return self._crps(y, "pwm")

    def _crps(self, y: NDArray[np.float64], estimator: str) -> NDArray[np.float64]:
        from scoringrules import crps_ensemble

        return np.asarray(
            crps_ensemble(np.zeros(len(y)), self.draws - y[:, None], estimator=estimator, backend="numpy")
        )

    def quantile(self, p: float) -> NDArray[np.float64]:
        return np.asarray(np.quantile(self.draws, p, axis=1, method="inverted_cdf"))

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        """Choose ``size`` of the draws of each row, without replacement.

        Raises
        ------
        OptionError
            A row has fewer draws.
        """
        saved = self.draws.shape[1]
        if size > saved:
            msg = f"--draws cannot be more than the {saved} saved samples a row, got {size}"
            raise OptionError(msg)
        chosen = np.argsort(rng.random(self.draws.shape[:2]), axis=1)[:, :size]
        if self.draws.ndim != PLAIN_AXES:
            chosen = chosen[:, :, None]
        return np.asarray(np.take_along_axis(self.draws, chosen, axis=1))

    def replicates(
        self, y: NDArray[np.float64], rng: RowRandom, numbers: range
    ) -> Iterator[tuple[NDArray[np.float64], Predictive]]:
        """Swap each target with one of the row's m + 1 values, the target and its draws, which are exchangeable.

        Targets drawn from the saved draws would be too close to them: a perfect model would be rejected. Of repeated
        targets, r a row, any r of the row's m + r values are.
        """
        if y.ndim == REPEATED:
            for number in numbers:
                yield self._shuffled(y, rng, number)
            return
        swapped = self.exchange if self.draws.ndim > PLAIN_AXES else PooledDraws(y, self).exchange
        for number in numbers:
            yield swapped(y, rng.for_replicate(number).integers(0, self.n_draws + 1, len(self)))

    def _shuffled(self, y: NDArray[np.float64], rng: RowRandom, number: int) -> tuple[NDArray[np.float64], Samples]:
        """Deal each row's r targets (n, r, t) and m draws again."""
        repeats = y.shape[1]
        values = np.concatenate([y, self.draws.reshape(len(y), -1, y.shape[2])], axis=1)
        order = np.argsort(rng.for_replicate(number * values.shape[1]).random(values.shape[:2]), axis=1)[:, :, None]
        dealt = np.take_along_axis(values, order, axis=1)
        return dealt[:, :repeats], Samples(dealt[:, repeats:].reshape(self.draws.shape))

    def exchange(self, y: NDArray[np.float64], chosen: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float64], Samples]:
        """Return draw ``chosen - 1`` of each row as its target, and the draws with the target in its place.

        Parameters
        ----------
        y : (n,) or (n, t)
            Targets.
        chosen : (n,)
            0 keeps the target.
        """
        targets, draws = y.copy(), self.draws.copy()
        rows = np.flatnonzero(chosen)
        places = chosen[rows] - 1
        targets[rows] = draws[rows, places].reshape(targets[rows].shape)
        draws[rows, places] = y[rows].reshape(draws[rows, places].shape)
        return targets, Samples(draws)

    def kernel_mean(self, points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros((len(self), len(points)))
        for draw in self._vectors():  # never (n, m, r)
            total += rbf(draw, points, gamma)
        return np.asarray(total / self.draws.shape[1])

    def kernel_norm(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        draws = [draw * np.sqrt(gamma) for draw in self._vectors()]
        total = np.zeros(len(self))
        for first in draws:
            for second in draws:
                total += np.exp(-np.sum((first - second) ** 2, axis=1))
        return total / len(draws) ** 2

    def describe(self) -> list[str]:
        columns = self.draws.reshape(*self.draws.shape[:2], -1)
        low, high = columns.min(axis=1), columns.max(axis=1)  # (n, t)
        ranges = ["; ".join(describe_parameters("from {} to {}", *ends)) for ends in zip(low, high, strict=True)]
        return [f"{columns.shape[1]} draws {told}" for told in ranges]

    def _vectors(self) -> Iterator[NDArray[np.float64]]:
        """Yield the m draws as vectors, (n, t) each."""
        for draw in range(self.draws.shape[1]):
            yield self.draws[:, draw].reshape(len(self), self.targets)


def outside_central(level: float, draws: int) -> int:
    """Return how many draws lie outside a central interval on either side, its limits counted."""
    return max(1, int((1 - level) / 2 * (draws + 1) + ROUNDING))


@dataclass(frozen=True, eq=False)
class PooledDraws:
    """The m + 1 values of each row, its target and its draws, sorted once for all swaps.

    Parameters
    ----------
    y : (n,)
        Targets.
    samples : Samples
        m draws a row.
    """

    y: Values
    samples: Samples

    def exchange(self, y: Values, chosen: Places) -> tuple[Values, ExchangedSamples]:  # noqa: ARG002 - as Samples.swapped
        """Make one of the m + 1 values of each row its target, as :meth:`Samples.exchange` does."""
        swapped = ExchangedSamples(self, chosen)
        return swapped.new_targets, swapped

    @cached_property
    def ranked(self) -> tuple[Values, Places]:
        """The values of each row, ascending, and the rank of each: of the target, then of the draws; (n, m + 1)."""
        values = np.concatenate([self.y[:, None], self.samples.draws], axis=1)
        order = np.argsort(values, axis=1, kind="stable")
        ranks = np.empty(order.shape, np.int32)
        np.put_along_axis(ranks, order, np.arange(order.shape[1], dtype=np.int32)[None], axis=1)
        return np.take_along_axis(values, order, axis=1), ranks

    @cached_property
    def ties(self) -> tuple[Places, Places]:
        """How many values of its row are below each ranked value, and how many are not above it, (n, m + 1) each."""
        values, _ = self.ranked
        n, count = values.shape
        place, ends = np.arange(count, dtype=np.int32), np.ones((n, 1), bool)
        steps = values[:, 1:] > values[:, :-1]
        below = np.where(np.concatenate([ends, steps], axis=1), place, 0)
        up_to = np.where(np.concatenate([steps, ends], axis=1), place + 1, count)
        return (
            np.maximum.accumulate(below, axis=1),
            np.minimum.accumulate(up_to[:, ::-1], axis=1)[:, ::-1],
        )

    @cached_property
    def centered(self) -> tuple[Values, Values, Values]:
        """The mean of each row's values, (n,), ranked values less it, (n, m + 1), and sums of their squares, (n,)."""
        values, _ = self.ranked
        centre = values.mean(axis=1)
        away = values - centre[:, None]
        return centre, away, np.sum(away**2, axis=1)

    @cached_property
    def distances(self) -> tuple[Values, Values]:
        """The sum of each ranked value's distances to the others, (n, m + 1), and the sum over pairs, (n,)."""
        _, away, _ = self.centered
        count = away.shape[1]
        before = np.cumsum(away, axis=1)
        found = away * (2 * np.arange(1, count + 1) - count) + before[:, -1:] - 2 * before
        return found, found.sum(axis=1) / 2


@dataclass(frozen=True, eq=False)
class ExchangedSamples(Predictive):
    """The m draws of each row that are left where one of its m + 1 values is its target.

    As :class:`Samples`, at a cost of a row and not of its draws.

    Parameters
    ----------
    pooled : PooledDraws
        The values.
    swapped_draws : (n,)
        Which is the target: 0 for the one that was it, j for draw j - 1.
    """

    family: ClassVar[str] = "samples"
    pooled: PooledDraws
    swapped_draws: Places

    def __len__(self) -> int:
        return len(self.swapped_draws)

    @property
    def n_draws(self) -> int:
        return self.pooled.samples.n_draws

    @property
    def nbytes(self) -> int:
        return self.pooled.samples.nbytes

    @cached_property
    def _rank(self) -> Places:
        """The rank of each target among its row's values, (n, 1)."""
        return np.take_along_axis(self.pooled.ranked[1], self.swapped_draws[:, None], axis=1)

    def _at(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return what a table of ranked values says of the targets, (n,)."""
        return np.take_along_axis(table, self._rank, axis=1)[:, 0]

    @cached_property
    def new_targets(self) -> Values:
        """The targets, (n,)."""
        return self._at(self.pooled.ranked[0])

    def _ranked(self, place: int) -> Values:
        """Return the draw of each row that is so many places above the smallest, (n,)."""
        return np.take_along_axis(self.pooled.ranked[0], place + (place >= self._rank), axis=1)[:, 0]

    @property
    def _moved(self) -> Values:
        """How far the mean of the draws lies below that of all values, (n,)."""
        return self._at(self.pooled.centered[1]) / self.n_draws

    def load(self) -> Samples:
        """Return the draws themselves."""
        return self.pooled.samples.exchange(self.pooled.y, self.swapped_draws)[1]

    def take(self, rows: NDArray[np.intp] | slice) -> Samples:  # type: ignore[override]
        return self.load().take(rows)

    def describe(self) -> list[str]:
        return self.load().describe()

    def mean(self) -> Values:
        return self.pooled.centered[0] - self._moved

    def std(self) -> Values:
        """Return the standard deviations (m - 1) of the draws.

        Raises
        ------
        DataError
            There is one draw a row.
        """
        m = self.n_draws
        if m == 1:
            msg = "one sample a row has no standard deviation"
            raise DataError(msg)
        _, away, squares = self.pooled.centered
        left = squares - self._at(away) ** 2 - m * self._moved**2
        equal = self._ranked(0) == self._ranked(m - 1)
        return np.where(equal, 0.0, np.sqrt(np.maximum(left, 0) / (m - 1)))

    def median(self) -> Values:
        half, odd = divmod(self.n_draws, 2)
        upper = self._ranked(half)
        return upper if odd else (self._ranked(half - 1) + upper) / 2

    def central_interval(self, level: float) -> tuple[Values, Values]:
        outside = outside_central(level, self.n_draws)
        return self._ranked(outside - 1), self._ranked(self.n_draws - outside)

    def interval_mass(self, low: Values, high: Values) -> Values:
        values, own = self.pooled.ranked[0], self.new_targets
        within = np.sum((values >= low[:, None]) & (values <= high[:, None]), axis=1)
        return np.asarray((within - ((own >= low) & (own <= high)) - 1) / (self.n_draws + 1))

    def interval_mass_error(self, y: Values, low: Values, high: Values) -> Values:
        return self.load().interval_mass_error(y, low, high)

    def cdf(self, y: Values) -> Values:
        return self.cdf_limits(y)[1]

    def cdf_left(self, y: Values) -> Values:
        return self.cdf_limits(y)[0]

    def cdf_limits(self, y: Values) -> tuple[Values, Values]:
        if not np.array_equal(y, self.new_targets):
            return self.load().cdf_limits(y)
        below, up_to = (self._at(table) / (self.n_draws + 1) for table in self.pooled.ties)
        return below, up_to

    def crps(self, y: Values) -> Values:
        if not np.array_equal(y, self.new_targets):
            return self.load().crps(y)
        far, pairs = self._spread
        return np.asarray(far / self.n_draws - pairs / self.n_draws**2)

    def fair_crps(self, y: Values) -> Values:
        if self.n_draws == 1 or not np.array_equal(y, self.new_targets):
            return self.load().fair_crps(y)
        far, pairs = self._spread
        return np.asarray(far / self.n_draws - pairs / (self.n_draws * (self.n_draws - 1)))

    @property
    def _spread(self) -> tuple[Values, Values]:
        """The sum of the draws' distances to the target, and that over pairs of draws, (n,) each."""
        distances, pairs = self.pooled.distances
        far = self._at(distances)
        return far, pairs - far

    def quantile(self, p: float) -> Values:
        return self.load().quantile(p)

    def sample(self, rng: Random, size: int) -> Values:
        return self.load().sample(rng, size)

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        return self.load().kernel_mean(points, gamma)

    def kernel_norm(self, gamma: Values) -> Values:
        return self.load().kernel_norm(gamma)
