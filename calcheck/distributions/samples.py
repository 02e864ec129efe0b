"""Distributions given by draws, and distributions that stay on disk and are read again for each computation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calcheck.core.text import count_of
from calcheck.core.validation import require_moderate
from calcheck.distributions.base import METHOD, REPEATED, Predictive, attributes, forwarded
from calcheck.distributions.row_random import Random, RowRandom, Words
from calcheck.distributions.special import describe_parameters, monomials, rbf
from calcheck.errors import DataError, OptionError
from calcheck.typing import AnyArray, Indices, Mask, Values

Places = NDArray[np.integer[Any]]

ROUNDING = 1e-9  # Tolerance for rounding of a number of draws
PLAIN_AXES = 2  # Number of axes for one target column: rows and draws


@dataclass(frozen=True, eq=False)
class Samples(Predictive):
    """Distributions given by m draws per row."""

    family: ClassVar[str] = "samples"
    draws: Values  # (n, m), or (n, m, t) for t target columns, draws, in the unit of the targets

    def __post_init__(self) -> None:
        self.hold_in_double()
        if self.draws.ndim not in (PLAIN_AXES, PLAIN_AXES + 1) or not self.draws.shape[1]:
            msg = f"samples must be rows by draws, with at least one draw per row, got shape {self.draws.shape}"
            raise DataError(msg)
        require_moderate("samples", self.draws)

    @property
    def targets(self) -> int:
        return 1 if self.draws.ndim == PLAIN_AXES else self.draws.shape[2]

    def of_target(self, place: int) -> "Samples":
        return Samples(np.ascontiguousarray(self.draws[:, :, place]))

    @property
    def n_draws(self) -> int:
        return int(self.draws.shape[1])

    def are_equal(self) -> Mask:
        """Return whether all draws of each row are equal, (n,)."""
        equal = self.draws[:, 0] == self.draws[:, -1]
        equal[equal] = (self.draws[equal] == self.draws[equal, :1]).all(axis=1)
        return np.asarray(equal)

    def mean(self) -> Values:
        mean = np.asarray(self.draws.mean(axis=1))
        if self.targets == 1 and (equal := self.are_equal()).any():
            mean[equal] = self.draws[equal, 0].reshape(mean[equal].shape)  # without rounding
        return mean

    def std(self) -> Values:
        """Return the standard deviations of the draws, with denominator m - 1."""
        if self.draws.shape[1] == 1:
            raise DataError("one sample per row has no standard deviation")
        away = self.draws - self.draws[:, :1]  # exactly 0 for equal draws
        return np.asarray(away.std(axis=1, ddof=1))

    def rescale(self, shift: Values, factor: Values) -> "Samples":
        """Return the draws moved and stretched about their means, member by member; ranks do not change."""
        if self.targets > 1:
            return super().rescale(shift, factor)  # type: ignore[return-value]
        center = self.mean()[:, None]
        return replace(self, draws=center + shift[:, None] + factor[:, None] * (self.draws - center))

    def median(self) -> Values:
        return np.asarray(np.median(self.draws, axis=1))

    def central_interval(self, level: float) -> tuple[Values, Values]:
        """Return the closest draws of opposite ranks with probability >= ``level`` in between, or the outermost."""
        draws = self.draws.shape[1]
        outside = outside_central(level, draws)
        ordered = np.sort(self.draws, axis=1)
        return ordered[:, outside - 1], ordered[:, draws - outside]

    def cdf(self, y: Values) -> Values:
        """Return (r + 1) / (m + 1) with r draws <= y_i, (n,): uniform over ranks for a perfect ensemble."""
        return np.asarray((np.sum(self.draws <= y[:, None], axis=1) + 1) / (self.draws.shape[1] + 1))

    def cdf_left(self, y: Values) -> Values:
        """Return r / (m + 1) with r draws < y_i, (n,)."""
        return np.asarray(np.sum(self.draws < y[:, None], axis=1) / (self.draws.shape[1] + 1))

    def interval_mass(self, low: Values, high: Values) -> Values:
        """Return the probability that another draw falls between two draws, (n,): gaps in between, of m + 1."""
        within = np.sum((self.draws >= low[:, None]) & (self.draws <= high[:, None]), axis=1)
        return np.asarray((within - 1) / (self.draws.shape[1] + 1))

    def interval_mass_error(self, y: Values, low: Values, high: Values) -> Values:
        """Return the probability of one gap per end that is tied with other draws, or may be tied with y."""
        tied = (self.draws == y[:, None]).any(axis=1)
        shared = [tied | (np.sum(self.draws == end[:, None], axis=1) > 1) for end in (low, high)]
        return np.asarray(np.sum(shared, axis=0) / (self.draws.shape[1] + 1))

    def crps(self, y: Values) -> Values:
        """Return the CRPS of the empirical distributions of the draws, (n,)."""
        return self._crps(y, "qd")

    def fair_crps(self, y: Values) -> Values:
        """Return unbiased estimates of the CRPS of the distributions that were sampled, (n,); may be negative."""
        if self.draws.shape[1] == 1:
            raise DataError("one sample per row has no fair CRPS")
        return self._crps(y, "pwm")

    def _crps(self, y: Values, estimator: str) -> Values:
        from scoringrules import crps_ensemble

        away = self.draws - y[:, None]
        return np.asarray(crps_ensemble(np.zeros(len(y)), away, estimator=estimator, backend="numpy"))

    def quantile(self, p: float) -> Values:
        return np.asarray(np.quantile(self.draws, p, axis=1, method="inverted_cdf"))

    def sample(self, rng: Random, size: int) -> Values:
        """Return ``size`` of the draws of each row, chosen without replacement."""
        saved = self.draws.shape[1]
        if size > saved:
            raise OptionError(f"--draws cannot exceed the {saved} saved samples per row, got {size}")
        chosen = np.argsort(rng.random(self.draws.shape[:2]), axis=1)[:, :size]
        if self.draws.ndim != PLAIN_AXES:
            chosen = chosen[:, :, None]
        return np.asarray(np.take_along_axis(self.draws, chosen, axis=1))

    def replicates(self, y: Values, rng: RowRandom, numbers: range) -> Iterator[tuple[Values, Predictive]]:
        """Yield replicates in which the target of each row is exchanged with one of its m + 1 values.

        New targets drawn from the saved draws would be too close to them, and a perfect model would be rejected.
        """
        if y.ndim == REPEATED:
            for number in numbers:
                yield self._shuffled(y, rng, number)
            return
        exchange = partial(self.exchange, y) if self.draws.ndim > PLAIN_AXES else PooledDraws(y, self).exchange
        for number in numbers:
            yield exchange(rng.for_replicate(number).integers(0, self.n_draws + 1, len(self)))

    def _shuffled(self, y: Values, rng: RowRandom, number: int) -> "tuple[Values, Samples]":
        """Return a random permutation of the r targets (n, r, t) and m draws of each row."""
        repeats = y.shape[1]
        values = np.concatenate([y, self.draws.reshape(len(y), -1, y.shape[2])], axis=1)
        order = np.argsort(rng.for_replicate(number * values.shape[1]).random(values.shape[:2]), axis=1)[:, :, None]
        permuted = np.take_along_axis(values, order, axis=1)
        return permuted[:, :repeats], Samples(permuted[:, repeats:].reshape(self.draws.shape))

    def exchange(self, y: Values, chosen: NDArray[np.integer[Any]]) -> "tuple[Values, Samples]":
        """Return draw ``chosen - 1`` of each row as new target, 0 for the old one, and the draws with the old one."""
        targets, draws = y.copy(), self.draws.copy()
        rows = np.flatnonzero(chosen)
        places = chosen[rows] - 1
        targets[rows] = draws[rows, places].reshape(targets[rows].shape)
        draws[rows, places] = y[rows].reshape(draws[rows, places].shape)
        return targets, Samples(draws)

    def mixed_moments(self, exponents: Indices) -> Values:
        return np.asarray(sum(monomials(draw, exponents) for draw in self._vectors()) / self.draws.shape[1])

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        total = np.zeros((len(self), len(points)))
        for draw in self._vectors():  # avoids an array (n, m, r)
            total += rbf(draw, points, gamma)
        return np.asarray(total / self.draws.shape[1])

    def kernel_norm(self, gamma: Values) -> Values:
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
        return [f"{count_of(columns.shape[1], 'draw')} {limits}" for limits in ranges]

    def _vectors(self) -> Iterator[Values]:
        """Yield the m draws as vectors, (n, t) each."""
        for draw in range(self.draws.shape[1]):
            yield self.draws[:, draw].reshape(len(self), self.targets)


def outside_central(level: float, draws: int) -> int:
    """Return the number of draws on each side that are outside a central interval or equal to its limit."""
    return max(1, int((1 - level) / 2 * (draws + 1) + ROUNDING))


@dataclass(frozen=True, eq=False)
class PooledDraws:
    """The m + 1 values of each row (target and draws), sorted once for all exchanges."""

    y: Values  # (n,), targets
    samples: Samples  # Samples with m draws per row

    def exchange(self, chosen: Places) -> "tuple[Values, ExchangedSamples]":
        """Return one of the m + 1 values of each row as its target, and the other m, as :meth:`Samples.exchange`."""
        swapped = ExchangedSamples(self, chosen)
        return swapped.new_targets, swapped

    @cached_property
    def ranked(self) -> tuple[Values, Places]:
        """The sorted values of each row, and the ranks of the target and of the draws, (n, m + 1) each."""
        values = np.concatenate([self.y[:, None], self.samples.draws], axis=1)
        order = np.argsort(values, axis=1, kind="stable")
        ranks = np.empty(order.shape, np.int32)
        np.put_along_axis(ranks, order, np.arange(order.shape[1], dtype=np.int32)[None], axis=1)
        return np.take_along_axis(values, order, axis=1), ranks

    @cached_property
    def ties(self) -> tuple[Places, Places]:
        """The numbers of values of the row < and <= each sorted value, (n, m + 1) each."""
        values, _ = self.ranked
        n, count = values.shape
        place, ends = np.arange(count, dtype=np.int32), np.ones((n, 1), bool)
        steps = values[:, 1:] > values[:, :-1]
        below = np.where(np.concatenate([ends, steps], axis=1), place, 0)
        up_to = np.where(np.concatenate([steps, ends], axis=1), place + 1, count)
        return (np.maximum.accumulate(below, axis=1), np.minimum.accumulate(up_to[:, ::-1], axis=1)[:, ::-1])

    @cached_property
    def centered(self) -> tuple[Values, Values, Values]:
        """The mean of the values (n,), the centered sorted values (n, m + 1) and the sum of their squares (n,)."""
        values, _ = self.ranked
        mean = values.mean(axis=1)
        away = values - mean[:, None]
        return mean, away, np.sum(away**2, axis=1)

    @cached_property
    def distances(self) -> tuple[Values, Values]:
        """The sum of the distances of each sorted value to the others (n, m + 1), and the sum over pairs (n,)."""
        _, away, _ = self.centered
        count = away.shape[1]
        before = np.cumsum(away, axis=1)
        sums = away * (2 * np.arange(1, count + 1) - count) + before[:, -1:] - 2 * before
        return sums, sums.sum(axis=1) / 2


@dataclass(frozen=True, eq=False)
class ExchangedSamples(Predictive):
    """The remaining m draws of each row after an exchange of its target, at a cost that mostly does not depend on m."""

    family: ClassVar[str] = "samples"
    pooled: PooledDraws  # The m + 1 values of each row
    swapped_draws: Places  # (n,), index of the new target: 0 for the original target, j for draw j - 1

    hashes, describe, interval_mass_error, quantile = forwarded(
        "loaded", "hashes", "describe", "interval_mass_error", "quantile"
    )
    sample, mixed_moments, kernel_mean, kernel_norm = forwarded(
        "loaded", "sample", "mixed_moments", "kernel_mean", "kernel_norm"
    )

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
        """The rank of each new target among the values of its row, (n, 1)."""
        return np.take_along_axis(self.pooled.ranked[1], self.swapped_draws[:, None], axis=1)

    def _at(self, table: AnyArray) -> AnyArray:
        """Return the entries of a table (n, m + 1) at the ranks of the new targets, (n,)."""
        return np.take_along_axis(table, self._rank, axis=1)[:, 0]

    @cached_property
    def new_targets(self) -> Values:
        """The new targets, (n,)."""
        return self._at(self.pooled.ranked[0])

    def _ranked(self, place: int) -> Values:
        """Return the draw of each row with a given rank, counted from 0, (n,)."""
        return np.take_along_axis(self.pooled.ranked[0], place + (place >= self._rank), axis=1)[:, 0]

    @property
    def _moved(self) -> Values:
        """Mean of all values minus the mean of the draws, (n,)."""
        return self._at(self.pooled.centered[1]) / self.n_draws

    @property
    def loaded(self) -> Samples:
        """The same distributions as :class:`Samples`."""
        return self.pooled.samples.exchange(self.pooled.y, self.swapped_draws)[1]

    def load(self) -> Samples:
        return self.loaded

    def take(self, rows: Indices | slice) -> Samples:  # type: ignore[override]
        return self.load().take(rows)

    def mean(self) -> Values:
        first = self._ranked(0)
        return np.where(first == self._ranked(self.n_draws - 1), first, self.pooled.centered[0] - self._moved)

    def std(self) -> Values:
        m = self.n_draws
        if m == 1:
            return self.load().std()
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
        values, targets = self.pooled.ranked[0], self.new_targets
        within = np.sum((values >= low[:, None]) & (values <= high[:, None]), axis=1)
        return np.asarray((within - ((targets >= low) & (targets <= high)) - 1) / (self.n_draws + 1))

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
        """The sum of the distances of the draws to the target, and the sum over pairs of draws, (n,) each."""
        distances, pairs = self.pooled.distances
        far = self._at(distances)
        return far, pairs - far


def _join_arrays(lazy: "LazyPredictive", name: str, *given: Any) -> Any:
    """Return the arrays of a method for all batches, one after the other."""
    return lazy.join_batches(lambda batch, _: getattr(batch, name)(*given))


def _join_rows(lazy: "LazyPredictive", name: str, *given: Any) -> Any:
    """Return the same for a method whose arguments are arrays (n,), of which each batch gets its rows."""
    return lazy.join_batches(lambda batch, rows: getattr(batch, name)(*(each[rows] for each in given)))


def _join_pairs(lazy: "LazyPredictive", name: str, *given: Any) -> Any:
    """Return the same for a method that returns two arrays."""
    return lazy.join_pairs(lambda batch, _: getattr(batch, name)(*given))


@dataclass(frozen=True, eq=False)
class LazyPredictive(Predictive):
    """Distributions that are too large for memory; each method makes one pass over all rows, batch by batch."""

    family: ClassVar[str] = "deferred"
    read: Callable[[], Iterator[Predictive]]  # Returns an iterator over batches of distributions from the first row
    first: Predictive  # The first distributions, which define the family
    count: int  # Number of distributions, n

    def __len__(self) -> int:
        return self.count

    targets, n_draws, quantile_levels, shape_is_known, caveat, kernel_error, display_name = attributes(
        "first", "targets", "n_draws", "quantile_levels", "shape_is_known", "caveat", "kernel_error", "display_name"
    )
    mean, std, median, quantile, central_mass, mixed_moments, kernel_mean, kernel_norm = map(
        partial(METHOD, _join_arrays),
        ("mean", "std", "median", "quantile", "central_mass", "mixed_moments", "kernel_mean", "kernel_norm"),
    )
    central_interval, support_interval = map(partial(METHOD, _join_pairs), ("central_interval", "support_interval"))
    cdf, cdf_left, log_prob, crps, fair_crps, interval_mass, interval_mass_error = map(
        partial(METHOD, _join_rows),
        ("cdf", "cdf_left", "log_prob", "crps", "fair_crps", "interval_mass", "interval_mass_error"),
    )

    @property
    def nbytes(self) -> int:
        return 0

    def batches(self) -> Iterator[tuple[slice, Predictive]]:
        start = 0
        for batch in self.read():
            yield slice(start, start + len(batch)), batch
            start += len(batch)

    def load(self) -> Predictive:
        return self.take(slice(None))

    def take(self, rows: Indices | slice) -> Predictive:  # type: ignore[override]
        """Return the distributions of the selected rows in memory, in the given order."""
        wanted = np.arange(self.count)[rows]
        order = np.argsort(wanted, kind="stable")
        parts: list[Predictive] = []
        for rows_of_batch, batch in self.batches():
            low, high = np.searchsorted(wanted[order], [rows_of_batch.start, rows_of_batch.stop])
            if low < high:
                parts.append(batch.take(wanted[order[low:high]] - rows_of_batch.start))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return parts[0].join(parts[1:]).take(back)

    def cdf_limits(self, y: Values) -> tuple[Values, Values]:
        return self.join_pairs(lambda batch, rows: batch.cdf_limits(y[rows]))

    def hashes(self, key: int) -> Words:
        return np.concatenate([batch.hashes(key) for batch in self.read()])

    def sample(self, rng: Random, size: int) -> Values:
        if isinstance(rng, RowRandom):
            return self.join_batches(lambda batch, rows: batch.sample(rng.take(rows), size))
        return self.join_batches(lambda batch, _: batch.sample(rng, size))

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
            for rows, batch in self.batches():
                if isinstance(batch, Samples):
                    yield batch.exchange(y[rows], chosen[rows])

        targets = np.concatenate([targets for targets, _ in read()])
        return targets, replace(self, read=lambda: (batch for _, batch in read()))

    def describe(self) -> list[str]:
        return [text for batch in self.read() for text in batch.describe()]

    def join_batches(self, of: Callable[[Predictive, slice], Values]) -> Values:
        """Return a function of the batches and their rows, concatenated over all batches."""
        return np.concatenate([_without_base(of(batch, rows)) for rows, batch in self.batches()])

    def join_pairs(self, of: Callable[[Predictive, slice], tuple[Values, Values]]) -> tuple[Values, Values]:
        """Return two arrays concatenated over all batches; the same array twice if they are identical in each batch."""
        firsts, seconds, same = [], [], True
        for rows, batch in self.batches():
            first, second = of(batch, rows)
            same = same and first is second
            firsts.append(_without_base(first))
            seconds.append(firsts[-1] if first is second else _without_base(second))
        first = np.concatenate(firsts)
        return first, first if same else np.concatenate(seconds)


def _without_base(values: Values) -> Values:
    """Return values that do not reference a larger array."""
    return values if values.base is None else values.copy()
