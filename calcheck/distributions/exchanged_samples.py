"""Draws of which one has changed places with the target, in each row: many such sets from one sorting."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calcheck.distributions.base import Predictive
from calcheck.distributions.samples import Samples, outside_central
from calcheck.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random

    Values = NDArray[np.float64]
    Places = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Pool:
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

    def swapped(self, y: Values, chosen: Places) -> tuple[Values, Swapped]:  # noqa: ARG002 - as Samples.swapped
        """Make one of the m + 1 values of each row its target, as :meth:`Samples.swapped` does."""
        swapped = Swapped(self, chosen)
        return swapped.targets_then, swapped

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
    def centred(self) -> tuple[Values, Values, Values]:
        """The mean of each row's values, (n,), ranked values less it, (n, m + 1), and sums of their squares, (n,)."""
        values, _ = self.ranked
        centre = values.mean(axis=1)
        away = values - centre[:, None]
        return centre, away, np.sum(away**2, axis=1)

    @cached_property
    def distances(self) -> tuple[Values, Values]:
        """The sum of each ranked value's distances to the others, (n, m + 1), and the sum over pairs, (n,)."""
        _, away, _ = self.centred
        count = away.shape[1]
        before = np.cumsum(away, axis=1)
        found = away * (2 * np.arange(1, count + 1) - count) + before[:, -1:] - 2 * before
        return found, found.sum(axis=1) / 2


@dataclass(frozen=True, eq=False)
class Swapped(Predictive):
    """The m draws of each row that are left where one of its m + 1 values is its target.

    As :class:`Samples`, at a cost of a row and not of its draws.

    Parameters
    ----------
    pool : Pool
        The values.
    chosen : (n,)
        Which is the target: 0 for the one that was it, j for draw j - 1.
    """

    family: ClassVar[str] = "samples"
    pool: Pool
    chosen: Places

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def draws_a_row(self) -> int:
        return self.pool.samples.draws_a_row

    @property
    def nbytes(self) -> int:
        return self.pool.samples.nbytes

    @cached_property
    def _rank(self) -> Places:
        """The rank of each target among its row's values, (n, 1)."""
        return np.take_along_axis(self.pool.ranked[1], self.chosen[:, None], axis=1)

    def _at(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return what a table of ranked values says of the targets, (n,)."""
        return np.take_along_axis(table, self._rank, axis=1)[:, 0]

    @cached_property
    def targets_then(self) -> Values:
        """The targets, (n,)."""
        return self._at(self.pool.ranked[0])

    def _ranked(self, place: int) -> Values:
        """Return the draw of each row that is so many places above the smallest, (n,)."""
        return np.take_along_axis(self.pool.ranked[0], place + (place >= self._rank), axis=1)[:, 0]

    @property
    def _moved(self) -> Values:
        """How far the mean of the draws lies below that of all values, (n,)."""
        return self._at(self.pool.centred[1]) / self.draws_a_row

    def held(self) -> Samples:
        """Return the draws themselves."""
        return self.pool.samples.swapped(self.pool.y, self.chosen)[1]

    def take(self, rows: NDArray[np.intp] | slice) -> Samples:  # type: ignore[override]
        return self.held().take(rows)

    def in_words(self) -> list[str]:
        return self.held().in_words()

    def mean(self) -> Values:
        return self.pool.centred[0] - self._moved

    def std(self) -> Values:
        """Return the standard deviations (m - 1) of the draws.

        Raises
        ------
        DataError
            There is one draw a row.
        """
        m = self.draws_a_row
        if m == 1:
            msg = "one sample a row has no standard deviation"
            raise DataError(msg)
        _, away, squares = self.pool.centred
        left = squares - self._at(away) ** 2 - m * self._moved**2
        equal = self._ranked(0) == self._ranked(m - 1)
        return np.where(equal, 0.0, np.sqrt(np.maximum(left, 0) / (m - 1)))

    def median(self) -> Values:
        half, odd = divmod(self.draws_a_row, 2)
        upper = self._ranked(half)
        return upper if odd else (self._ranked(half - 1) + upper) / 2

    def central_interval(self, level: float) -> tuple[Values, Values]:
        outside = outside_central(level, self.draws_a_row)
        return self._ranked(outside - 1), self._ranked(self.draws_a_row - outside)

    def interval_mass(self, low: Values, high: Values) -> Values:
        values, own = self.pool.ranked[0], self.targets_then
        within = np.sum((values >= low[:, None]) & (values <= high[:, None]), axis=1)
        return np.asarray((within - ((own >= low) & (own <= high)) - 1) / (self.draws_a_row + 1))

    def interval_mass_error(self, y: Values, low: Values, high: Values) -> Values:
        return self.held().interval_mass_error(y, low, high)

    def cdf(self, y: Values) -> Values:
        return self.jump(y)[1]

    def cdf_left(self, y: Values) -> Values:
        return self.jump(y)[0]

    def jump(self, y: Values) -> tuple[Values, Values]:
        if not np.array_equal(y, self.targets_then):
            return self.held().jump(y)
        below, up_to = (self._at(table) / (self.draws_a_row + 1) for table in self.pool.ties)
        return below, up_to

    def crps(self, y: Values) -> Values:
        if not np.array_equal(y, self.targets_then):
            return self.held().crps(y)
        far, pairs = self._spread
        return np.asarray(far / self.draws_a_row - pairs / self.draws_a_row**2)

    def fair_crps(self, y: Values) -> Values:
        if self.draws_a_row == 1 or not np.array_equal(y, self.targets_then):
            return self.held().fair_crps(y)
        far, pairs = self._spread
        return np.asarray(far / self.draws_a_row - pairs / (self.draws_a_row * (self.draws_a_row - 1)))

    @property
    def _spread(self) -> tuple[Values, Values]:
        """The sum of the draws' distances to the target, and that over pairs of draws, (n,) each."""
        distances, pairs = self.pool.distances
        far = self._at(distances)
        return far, pairs - far

    def quantile(self, p: float) -> Values:
        return self.held().quantile(p)

    def sample(self, rng: Random, size: int) -> Values:
        return self.held().sample(rng, size)

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        return self.held().kernel_mean(points, gamma)

    def kernel_norm(self, gamma: Values) -> Values:
        return self.held().kernel_norm(gamma)
