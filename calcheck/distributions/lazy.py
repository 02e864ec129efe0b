"""Distributions that are left where they are, and read again whenever something is computed of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.base import REPEATED, Predictive
from calcheck.distributions.row_random import RowRandom
from calcheck.distributions.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random, Words

    Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LazyPredictive(Predictive):
    """Distributions that are too many numbers to be held: a million rows of a hundred draws, say.

    Each method reads all rows once, batch by batch, and keeps what it returns of them.

    Parameters
    ----------
    read : callable
        Reads the distributions from the start, in batches.
    first : Predictive
        The first of them; it tells their family.
    count : int
        How many there are, n.
    """

    family: ClassVar[str] = "deferred"
    read: Callable[[], Iterator[Predictive]]
    first: Predictive
    count: int

    def __len__(self) -> int:
        return self.count

    @property
    def targets(self) -> int:
        return self.first.targets

    @property
    def n_draws(self) -> int | None:
        return self.first.n_draws

    @property
    def quantile_levels(self) -> Values | None:
        return self.first.quantile_levels

    @property
    def shape_is_known(self) -> bool:
        return self.first.shape_is_known

    @property
    def caveat(self) -> str:
        return self.first.caveat

    @property
    def kernel_error(self) -> float:
        return self.first.kernel_error

    @property
    def display_name(self) -> str:
        return self.first.display_name

    @property
    def nbytes(self) -> int:
        return 0

    def batches(self) -> Iterator[tuple[slice, Predictive]]:
        for start, batch in self._placed():
            yield slice(start, start + len(batch)), batch

    def load(self) -> Predictive:
        return self.take(slice(None))

    def take(self, rows: NDArray[np.intp] | slice) -> Predictive:  # type: ignore[override]
        """Read some rows, in the order given, and hold them."""
        wanted = np.arange(self.count)[rows]
        order = np.argsort(wanted, kind="stable")
        parts: list[Predictive] = []
        for start, batch in self._placed():
            low, high = np.searchsorted(wanted[order], [start, start + len(batch)])
            if low < high:
                parts.append(batch.take(wanted[order[low:high]] - start))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return parts[0].join(parts[1:]).take(back)

    def mean(self) -> Values:
        return self._each(lambda batch, _: batch.mean())

    def std(self) -> Values:
        return self._each(lambda batch, _: batch.std())

    def median(self) -> Values:
        return self._each(lambda batch, _: batch.median())

    def cdf(self, y: Values) -> Values:
        return self._each(lambda batch, rows: batch.cdf(y[rows]))

    def cdf_left(self, y: Values) -> Values:
        return self._each(lambda batch, rows: batch.cdf_left(y[rows]))

    def cdf_limits(self, y: Values) -> tuple[Values, Values]:
        return self._pair(lambda batch, rows: batch.cdf_limits(y[rows]))

    def interval_mass(self, low: Values, high: Values) -> Values:
        return self._each(lambda batch, rows: batch.interval_mass(low[rows], high[rows]))

    def interval_mass_error(self, y: Values, low: Values, high: Values) -> Values:
        return self._each(lambda batch, rows: batch.interval_mass_error(y[rows], low[rows], high[rows]))

    def central_interval(self, level: float) -> tuple[Values, Values]:
        return self._pair(lambda batch, _: batch.central_interval(level))

    def central_mass(self, level: float) -> Values:
        return self._each(lambda batch, _: batch.central_mass(level))

    def log_prob(self, y: Values) -> Values:
        return self._each(lambda batch, rows: batch.log_prob(y[rows]))

    def crps(self, y: Values) -> Values:
        return self._each(lambda batch, rows: batch.crps(y[rows]))

    def fair_crps(self, y: Values) -> Values:
        return self._each(lambda batch, rows: batch.fair_crps(y[rows]))

    def quantile(self, p: float) -> Values:
        return self._each(lambda batch, _: batch.quantile(p))

    def support_interval(self, tail: float) -> tuple[Values, Values]:
        return self._pair(lambda batch, _: batch.support_interval(tail))

    def hashes(self, key: int) -> Words:
        return np.concatenate([batch.hashes(key) for batch in self.read()])

    def sample(self, rng: Random, size: int) -> Values:
        if isinstance(rng, RowRandom):
            return self._each(lambda batch, rows: batch.sample(rng.take(rows), size))
        return self._each(lambda batch, _: batch.sample(rng, size))

    def replicates(self, y: Values, rng: RowRandom, numbers: range) -> Iterator[tuple[Values, Predictive]]:
        if self.n_draws is None:
            yield from super().replicates(y, rng, numbers)
            return
        if y.ndim == REPEATED:
            yield from self.load().replicates(y, rng, numbers)
            return
        for number in numbers:
            yield self._swapped(y, rng.for_replicate(number).integers(0, self.n_draws + 1, self.count))

    def _swapped(self, y: Values, chosen: NDArray[np.intp]) -> tuple[Values, Predictive]:
        """Swap targets and draws as :meth:`Samples.exchange`, whenever the draws are read."""

        def read() -> Iterator[tuple[Values, Predictive]]:
            for start, batch in self._placed():
                rows = slice(start, start + len(batch))
                if isinstance(batch, Samples):
                    yield batch.exchange(y[rows], chosen[rows])

        targets = np.concatenate([targets for targets, _ in read()])
        return targets, replace(self, read=lambda: (batch for _, batch in read()))

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        return self._each(lambda batch, _: batch.kernel_mean(points, gamma))

    def kernel_norm(self, gamma: Values) -> Values:
        return self._each(lambda batch, _: batch.kernel_norm(gamma))

    def describe(self) -> list[str]:
        return [told for batch in self.read() for told in batch.describe()]

    def _placed(self) -> Iterator[tuple[int, Predictive]]:
        """Read batches, with the place of each one's first row."""
        start = 0
        for batch in self.read():
            yield start, batch
            start += len(batch)

    def _each(self, of: Callable[[Predictive, slice], Values]) -> Values:
        """Compute something of each batch and its rows, and append the results."""
        parts = (of(batch, slice(start, start + len(batch))) for start, batch in self._placed())
        return np.concatenate([_own(part) for part in parts])

    def _pair(self, of: Callable[[Predictive, slice], tuple[Values, Values]]) -> tuple[Values, Values]:
        """Compute two things of each batch and its rows; one array twice where each batch has one twice."""
        firsts, seconds, same = [], [], True
        for start, batch in self._placed():
            first, second = of(batch, slice(start, start + len(batch)))
            same = same and first is second
            firsts.append(_own(first))
            seconds.append(firsts[-1] if first is second else _own(second))
        first = np.concatenate(firsts)
        return first, first if same else np.concatenate(seconds)


def _own(values: Values) -> Values:
    """Return values that keep no larger array in memory."""
    return values if values.base is None else values.copy()
