"""Distributions that stay on disk and are read again for each computation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.base import REPEATED, Predictive
from calcheck.distributions.row_random import Random, RowRandom, Words
from calcheck.distributions.samples import Samples

if TYPE_CHECKING:
    from calcheck.typing import Indices, Values


@dataclass(frozen=True, eq=False)
class LazyPredictive(Predictive):
    """Distributions that are too large for memory, such as a million rows of 100 draws.

    Each method makes one pass over all rows, batch by batch, and keeps only the results in memory.
    """

    family: ClassVar[str] = "deferred"
    read: Callable[[], Iterator[Predictive]]  # Returns an iterator over batches of distributions from the first row
    first: Predictive  # The first distributions, which define the family
    count: int  # Number of distributions, n

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
        for start, batch in self._batches_with_start():
            yield slice(start, start + len(batch)), batch

    def load(self) -> Predictive:
        return self.take(slice(None))

    def take(self, rows: Indices | slice) -> Predictive:  # type: ignore[override]
        """Return the distributions of the selected rows in memory, in the given order."""
        wanted = np.arange(self.count)[rows]
        order = np.argsort(wanted, kind="stable")
        parts: list[Predictive] = []
        for start, batch in self._batches_with_start():
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

    def _swapped(self, y: Values, chosen: Indices) -> tuple[Values, Predictive]:
        """Return the results of :meth:`Samples.exchange`, with draws that are exchanged on each read."""

        def read() -> Iterator[tuple[Values, Predictive]]:
            for start, batch in self._batches_with_start():
                rows = slice(start, start + len(batch))
                if isinstance(batch, Samples):
                    yield batch.exchange(y[rows], chosen[rows])

        targets = np.concatenate([targets for targets, _ in read()])
        return targets, replace(self, read=lambda: (batch for _, batch in read()))

    def mixed_moments(self, exponents: Indices) -> Values:
        return self._each(lambda batch, _: batch.mixed_moments(exponents))

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        return self._each(lambda batch, _: batch.kernel_mean(points, gamma))

    def kernel_norm(self, gamma: Values) -> Values:
        return self._each(lambda batch, _: batch.kernel_norm(gamma))

    def describe(self) -> list[str]:
        return [text for batch in self.read() for text in batch.describe()]

    def _batches_with_start(self) -> Iterator[tuple[int, Predictive]]:
        """Yield batches with the index of their first row."""
        start = 0
        for batch in self.read():
            yield start, batch
            start += len(batch)

    def _each(self, of: Callable[[Predictive, slice], Values]) -> Values:
        """Return a function of the batches and their rows, concatenated over all batches."""
        parts = (of(batch, slice(start, start + len(batch))) for start, batch in self._batches_with_start())
        return np.concatenate([_without_base(part) for part in parts])

    def _pair(self, of: Callable[[Predictive, slice], tuple[Values, Values]]) -> tuple[Values, Values]:
        """Return two arrays concatenated over all batches; the same array twice if they are identical in each batch."""
        firsts, seconds, same = [], [], True
        for start, batch in self._batches_with_start():
            first, second = of(batch, slice(start, start + len(batch)))
            same = same and first is second
            firsts.append(_without_base(first))
            seconds.append(firsts[-1] if first is second else _without_base(second))
        first = np.concatenate(firsts)
        return first, first if same else np.concatenate(seconds)


def _without_base(values: Values) -> Values:
    """Return values that do not reference a larger array."""
    return values if values.base is None else values.copy()
