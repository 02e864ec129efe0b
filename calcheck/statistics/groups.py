"""Means over groups of rows, such as bins, histogram cells and ranks; several groups may share a row."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from calcheck.execution.run import map_ahead
from calcheck.typing import AnyArray, Indices, Mask, Values

PART = 1 << 16  # Values per block, which fit in the processor cache
DRAWS_AHEAD = 1 << 17  # Row draws per block; the next block is drawn while this one is counted
CROWDED = 16  # Minimum rows per class for which multinomial class counts are faster than row draws
MANY = 1000  # Minimum rows per class for which its products are added without being stored
CELLS = 1 << 12
POISSON_ROWS = 50_000  # Minimum rows for which resamples are Poisson counts, faster and alike but for their number
CHUNK = 128  # Consecutive groups that are summed together unless a share of the rows ends among them


def effective_count(weights: Values) -> float:
    """Return the number of rows with equal weights whose mean is as accurate: (sum w)^2 / sum w^2."""
    return float(weights.sum() ** 2 / (weights**2).sum())


class Means(dict[str, "NDArray[np.float64]"]):
    """Means over n rows, by name: (...) for a column, (..., k) for a term with k groups."""

    def __init__(self, means: Mapping[str, Values], n: int) -> None:
        super().__init__(means)
        self.n = n

    def with_values(self, others: Mapping[str, Values]) -> "Means":
        """Return these means and other arrays that a function of them needs."""
        return Means({**self, **others}, self.n)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of n rows."""

    # (n,) of integers, the class of each row, 0 to c - 1; absent if each row is a separate class
    label: NDArray[np.integer[Any]] | None
    classes: int  # The number of classes, c
    # (c, k), the share of a row of each class in each of k groups; absent if the groups are the classes
    shares: Values | None = None
    # Whether group j contains the rows of classes 0 to j, for j < c - 1. This replaces `shares`.
    cumulative: bool = False

    def sums(self, values: Values | None) -> Values:
        """Return the sums of values (n,), or the counts of rows, by group, (k,)."""
        return self.of_classes(self.by_class(values))

    def means(self, values: Values) -> Values:
        """Return the means of values (n,) by group, (k,)."""
        return self.of_classes(self.by_class(values, block=len(values))) / self.sums(None)

    def by_class(self, values: Values | None, *, block: int = PART) -> Values:
        """Return the sums of values (n,), or the counts of rows, by class, (c,), computed in blocks of rows."""
        if self.label is None:
            return np.ones(self.classes) if values is None else values
        if values is None:
            return self._sizes
        sums, block = np.zeros(self.classes), max(block, self.classes)
        for start in range(0, len(self.label), block):  # numpy copies labels of narrow types
            rows = slice(start, start + block)
            sums += np.bincount(self.label[rows], values[rows], self.classes)
        return sums

    def sums_of_parts(self, values: Values | None, count: int) -> Values:
        """Return the sums of stacked values (count n,), or counts of rows, by group of each data set, (count, k)."""
        if values is None:
            return np.tile(self.sums(None), (count, 1))
        if self.label is not None:
            label = np.arange(count)[:, None] * self.classes + self.label
            values = np.bincount(label.ravel(), values, count * self.classes).astype(np.float64, copy=False)
        return self.of_classes(values.reshape(count, self.classes))

    @cached_property
    def _sizes(self) -> Values:
        """The number of rows of each class, (c,), which cannot be written to."""
        found = self.counts.astype(np.float64)
        found.flags.writeable = False
        return found

    def membership(self) -> Values:
        """Return the share of a row of each class in each group, (c, k)."""
        return self.of_classes(np.eye(self.classes)) if self.shares is None else self.shares

    def of_classes(self, sums: Values) -> Values:
        """Return the sums by group (..., k) from sums by class (..., c)."""
        if self.cumulative:
            return np.cumsum(sums, axis=-1)[..., :-1]
        return sums if self.shares is None else sums @ self.shares

    def weighted_sums(self, weights: Values, values: Values | None = None) -> Values:
        """Return the sums by group (b, k) of values (n,) by weights (b, n), both in the order of :attr:`order`."""
        if values is not None and self.label is not None and weights.shape[1] >= max(POISSON_ROWS, MANY * self.classes):
            starts, present = self._runs
            sums = np.zeros((len(weights), self.classes))
            for number, start, stop in zip(present, starts, [*starts[1:], len(values)], strict=True):
                sums[:, number] = weights[:, start:stop] @ values[start:stop]
            return self.of_classes(sums)
        weighted = weights if values is None else weights * values
        if self.label is not None:
            starts, present = self._runs
            if len(present) < weights.shape[1]:  # Otherwise each row is a separate class
                weighted = np.add.reduceat(weighted, starts, axis=1)
            if len(present) < self.classes:
                sums = np.zeros((len(weighted), self.classes))
                sums[:, present] = weighted
                weighted = sums
        return self.of_classes(weighted)

    @cached_property
    def order(self) -> Indices | slice:
        """The row numbers, sorted by class."""
        return slice(None) if self.label is None else np.argsort(self.label, kind="stable")

    def sort(self, values: AnyArray) -> AnyArray:
        """Return values (..., n) in the order of :attr:`order`."""
        return values if isinstance(self.order, slice) else values.take(self.order, axis=-1)

    @property
    def counts(self) -> Indices:
        """The number of rows of each class, (c,)."""
        return np.bincount(self.label if self.label is not None else [], minlength=self.classes)

    @cached_property
    def _runs(self) -> tuple[Indices, Indices]:
        """The offset in :attr:`order` of each non-empty class, and the number of that class."""
        counts = self.counts
        present = np.flatnonzero(counts)
        return (np.cumsum(counts) - counts)[present], present


def cells(*groups: Groups) -> tuple[Indices, tuple[Indices, ...]]:
    """Return the group of each row by what several groupings have in common, (n,), and its places in these, (g,)."""
    sizes = [each.classes for each in groups]
    places = np.ravel_multi_index([np.asarray(each.label) for each in groups], sizes)
    found, label = np.unique(places, return_inverse=True)
    return label, np.unravel_index(found, sizes)


class TieGroups(Groups):
    """Groups of equal values, in ascending order."""

    def __init__(self, values: Values) -> None:
        vars(self).update(values=values)
        _ = self.classes  # sorts the values

    values: Values  # (n,)

    @cached_property
    def ordered(self) -> Values:
        """The sorted values, (n,)."""
        return np.sort(self.values)

    @cached_property
    def steps(self) -> Mask:
        """Whether each sorted value differs from the one before, (n - 1,)."""
        return np.asarray(self.ordered[1:] != self.ordered[:-1])

    @cached_property
    def classes(self) -> int:
        return 1 + int(np.count_nonzero(self.steps))

    @property
    def distinct(self) -> Values:
        """The distinct values, (c,)."""
        return self.ordered if self.classes == len(self.ordered) else self.ordered[self._starts]

    @property
    def counts(self) -> Indices:
        return np.diff(self._starts, append=len(self.ordered))

    def sums(self, values: Values | None) -> Values:
        if self.classes == len(self.ordered):
            return np.broadcast_to(1.0, self.classes) if values is None else values[self.order]
        return self.counts.astype(np.float64) if values is None else np.add.reduceat(values[self.order], self._starts)

    @property
    def _starts(self) -> Indices:
        """The offset of each class in the sorted values, (c,)."""
        return np.append(0, np.flatnonzero(self.steps) + 1)

    @cached_property
    def label(self) -> Indices:
        label = np.empty(len(self.ordered), np.intp)
        label[self.order] = np.append(0, np.cumsum(self.steps))
        return label

    @cached_property
    def order(self) -> Indices:
        return np.argsort(self.values)

    @cached_property
    def _runs(self) -> tuple[Indices, Indices]:
        return self._starts, np.arange(self.classes)


def _histogram_cells(values: Values) -> NDArray[np.unsignedinteger[Any]]:
    """Return a cell of each value (n,) that increases with it, narrow for most values; one cell for few rows."""
    sample = np.sort(values[:: max(1, len(values) // CELLS)])
    low, width = sample[0], sample[int(0.99 * len(sample))] - sample[0]
    if len(values) <= PART or not 0 < width < np.inf:
        return np.zeros(len(values), np.uint16)
    return np.asarray(np.clip((values - low) * (CELLS / width), 0, CELLS - 1), np.uint16)


class CutTieGroups(TieGroups):
    """Groups of equal values, in ascending order, for cumulative sums up to given shares (s,) of all rows.

    With equal weights, the groups between two boundaries are summed together. With other weights, the boundaries may be
    in any group. Of many rows, only those in the cells of a histogram that contain a boundary are sorted.
    """

    def __init__(self, values: Values, shares: Values) -> None:
        n, cell = len(values), _histogram_cells(values)
        rows, sums = np.bincount(cell), np.bincount(cell, values)
        places = np.minimum((shares * n).astype(np.intp), n - 1)
        at, near = np.searchsorted(np.cumsum(rows), places, "right"), np.zeros(len(rows), np.bool_)
        near[at] = True
        ordered = np.sort(values[near[cell]])
        rows_before, sum_before = np.cumsum(np.where(near, 0, rows))[at], np.cumsum(np.where(near, 0.0, sums))[at]
        cut = ordered[places - rows_before]
        local = np.array([np.searchsorted(ordered, cut, side) for side in ("left", "right")])
        cuts, below = np.array([cut, np.nextafter(cut, np.inf)]), np.append(0.0, np.cumsum(ordered))[local] + sum_before
        starts, first = np.unique(np.append(0, local + rows_before), return_index=True)
        starts, first = starts[starts < n], first[starts < n]
        below = np.append(0.0, below)[first]
        vars(self).update(
            values=values,
            starts=starts,
            cuts=np.append(-np.inf, cuts)[first[1:]],
            group_sums=np.diff(below, append=sums.sum()),
        )

    starts: Indices  # The offsets of groups that are summed together in the sorted values, (k,)
    cuts: Values  # A lower limit of the values of each of these except the first, (k - 1,)
    group_sums: Values  # The sums of the values by group, (k,)

    def sums(self, values: Values | None) -> Values:
        if values is None:
            return np.diff(self.starts, append=len(self.values)).astype(np.float64)
        return self.group_sums if values is self.values else self._together.sums(values)

    @cached_property
    def _together(self) -> Groups:
        return Groups(digitize(self.values, self.cuts, equal=True), len(self.starts))


@dataclass(frozen=True, eq=False)
class MeanTerm:
    """A term that is averaged over rows."""

    values: Values | None = None  # (n,), one value per row; absent for 1
    # Groups with separate means: the sum over the rows of a group, divided by the number of all rows
    groups: Groups | None = None


@dataclass(frozen=True, eq=False)
class Averages:
    """Averages of terms over n rows, with equal or other weights."""

    terms: Mapping[str, MeanTerm]
    n: int  # The number of rows

    @property
    def plain(self) -> bool:
        """Whether every term is the mean of a column over all rows."""
        return all(term.groups is None for term in self.terms.values())

    @cached_property
    def columns(self) -> Values:
        """The columns of the terms without groups, (n, c)."""
        return np.stack([self._values(term) for term in self.terms.values() if term.groups is None], axis=1)

    def _values(self, term: MeanTerm) -> Values:
        return np.ones(self.n) if term.values is None else term.values

    def means(self) -> Means:
        """Return the means with equal weights: () for each term, or (k,) for a term with k groups."""
        means = {
            name: np.asarray(self._values(term).mean())
            if term.groups is None
            else term.groups.sums(term.values) / self.n
            for name, term in self.terms.items()
        }
        return Means(means, self.n)

    def means_of_parts(self, count: int) -> Means:
        """Return the means over each of ``count`` equal parts of the rows, (count,), for terms without groups."""
        parts = {name: self._values(term).reshape(count, -1).mean(axis=1) for name, term in self.terms.items()}
        return Means(parts, self.n // count)

    def weighted(self, weights: AnyArray, *, sums: Values | None = None) -> Means:
        """Return weighted means; weights with known sums are counts of rows. Shapes: weights (b, n), sums (b,)."""
        total = weights.sum(axis=1) if sums is None else sums
        plain = [name for name, term in self.terms.items() if term.groups is None]
        means = zip(plain, (weights @ self.columns).T / total, strict=True) if plain else ()
        found = Means(dict(means), self.n)
        for groups, columns in self._sorted.items():
            ordered = groups.sort(weights).astype(np.float64, copy=False)
            for name, values in columns.items():
                found[name] = groups.weighted_sums(ordered, values) / total[:, None]
        return found

    @cached_property
    def _sorted(self) -> dict[Groups, dict[str, Values | None]]:
        """The values of the terms with each grouping, in its order."""
        found: dict[Groups, dict[str, Values | None]] = {}
        for name, term in self.terms.items():
            if term.groups is not None:
                values = None if term.values is None else term.groups.sort(term.values)
                found.setdefault(term.groups, {})[name] = values
        return found

    def leave_one_out_means(self) -> Means:
        """Return the leave-one-out means, (n,) for each term; for terms without groups only."""
        means = self.columns.mean(axis=0)
        left = (self.n * means - self.columns) / (self.n - 1)
        return Means(dict(zip(self.terms, left.T, strict=True)), self.n - 1)

    def resampled(self, resamples: int, rng: Generator) -> Means:
        """Return the means of bootstrap resamples: (b,) for each term, or (b, k) for a term with k groups."""
        if (groups := self.counted_groups) is not None:
            drawn = rng.multinomial(self.n, groups.counts / self.n, resamples) / self.n
            return Means(dict.fromkeys(self.terms, groups.of_classes(drawn)), self.n)
        weights = resampled_weights(self.n, resamples, rng)
        return self.weighted(weights, sums=weights.sum(axis=1, dtype=np.float64))

    @property
    def counted_groups(self) -> Groups | None:
        """The groups of all terms if these are the same, few, and without values: resamples are multinomial counts."""
        kinds = {(term.groups, term.values is None) for term in self.terms.values()}
        groups, counted = next(iter(kinds))
        if len(kinds) > 1 or not counted or groups is None or CROWDED * groups.classes > self.n:
            return None
        return groups


def resampled_weights(n: int, resamples: int, rng: Generator) -> NDArray[np.unsignedinteger[Any]]:
    """Return how often each of n rows is selected, (resamples, n): by n draws with replacement, of many rows by some n.

    Source of Poisson counts: Hanley, MacGibbon (2006), "Creating non-parametric bootstrap samples using Poisson
    frequencies".
    """
    if n >= POISSON_ROWS:
        drawn = np.frombuffer(rng.bytes(2 * resamples * n), "<u2")
        return _poisson_counts().take(drawn).reshape(resamples, n)
    weights = np.empty((resamples, n), np.uint16)
    step = max(1, DRAWS_AHEAD // n)
    blocks = [weights[start : start + step] for start in range(0, resamples, step)]
    for block, drawn in zip(blocks, map_ahead(lambda each: rng.integers(0, n, each.shape), blocks), strict=True):
        drawn += np.arange(0, block.size, n)[:, None]
        block[:] = np.bincount(drawn.ravel(), minlength=block.size).reshape(block.shape)
    return weights


@cache
def _poisson_counts() -> NDArray[np.uint8]:
    """Return the quantiles of the Poisson distribution with mean 1 in the middles of 2^16 cells, (2^16,)."""
    masses = np.exp(-1) / np.cumprod(np.maximum(np.arange(CROWDED), 1))
    return np.searchsorted(np.cumsum(masses), (np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.uint8)


def cumulative_at(shares: Values, rows: Values, values: Values) -> Values:
    """Return the sums (..., s) of values (..., k) over the first shares (s,) of rows; a group is cut in proportion."""
    found = np.empty((*rows.shape[:-1], len(shares)))
    for line in np.ndindex(rows.shape[:-1]):
        own = _near(shares, rows[line], values[line]) if rows.shape[-1] > PART else (rows[line], values[line])
        counted, summed = (np.cumsum(each) for each in own)
        at = np.minimum(np.searchsorted(counted, shares), len(counted) - 1)
        beyond, size = counted[at] - shares, own[0][at]
        cut = np.divide(beyond, size, out=np.ones(len(at)), where=size > 0).clip(0)
        found[line] = summed[at] - own[1][at] * cut
    return found


def _near(shares: Values, rows: Values, values: Values) -> tuple[Values, Values]:
    """Return rows and values (k,) with the groups summed in chunks, but for the chunks in which a share is reached."""
    starts = np.arange(0, len(rows), CHUNK)
    chunk = np.searchsorted(np.cumsum(np.add.reduceat(rows, starts)), shares).clip(0, len(starts) - 1)
    single = (starts[np.unique(chunk)][:, None] + np.arange(1, CHUNK)).ravel()
    starts = np.sort(np.concatenate([starts, single[single < len(rows)]]))
    return np.add.reduceat(rows, starts), np.add.reduceat(values, starts)


def digitize(
    values: Values, cuts: Values, *, equal: bool = False, block: int = PART
) -> NDArray[np.unsignedinteger[Any]]:
    """Return the number of cuts (k,) below each value, (n,); twice as fast as :func:`numpy.searchsorted`."""
    size = 1 << len(cuts).bit_length()  # The power of two above the number of cuts
    padded = np.append(cuts, np.full(size - len(cuts), np.inf))
    steps = [size >> power for power in range(1, size.bit_length())]
    above = np.greater_equal if equal else np.greater
    found = np.empty(len(values), np.min_scalar_type(len(cuts)))
    for start in range(0, len(values), block):
        part = values[start : start + block]
        count = np.zeros(len(part), np.intp)
        for step in steps:
            count += above(part, padded[count + (step - 1)]) * step
        found[start : start + block] = np.minimum(count, len(cuts))  # An infinite value counts the padding too
    return found
