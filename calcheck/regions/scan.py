"""Regions of bins in which row scores deviate from those of a perfect model."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from calcheck.core import sc
from calcheck.core.filter_conditions import ORDER, Condition
from calcheck.predictions import Predictions
from calcheck.regions.partition import Partition
from calcheck.reports.conclusion import Direction
from calcheck.statistics.pit import mean_component, stated_pit
from calcheck.typing import Indices, Mask, Values

BIAS, DISPERSION = 0, 1
SCORES = ("bias", "dispersion")
DIRECTIONS: tuple[tuple[Direction, Direction], ...] = (
    ("predictions-too-high", "predictions-too-low"),
    ("too-wide", "too-narrow"),
)  # What a negative and a positive sum of each score mean
LIMIT = 0.995  # PIT values beyond this level, and below 1 minus it, have the score of the level
MEAN, DEVIATION = -0.01026466524, 1.14976952245  # Of the logistic score of a uniform PIT, with this limit
NARROW = 1e-6  # Narrower jumps are treated as points: their differences would be rounding errors
WIDEST = 1e6  # Largest factor of deviations
TIED = 1e-12  # Relative tolerance for ties: smaller differences are rounding errors
BLOCK = 1 << 22  # Scores per block of replicates, 32 MiB
NEW_SHARE = 0.5  # Minimum share of the rows of a region that are in no region found before


def row_scores(rows: Predictions) -> Values:
    """Return the scores of bias and dispersion of each row, (n, 2), with mean 0 for a perfect model, and variance 1.

    The first is positive if targets are above the predictions, the second if distributions are too narrow. Where a
    distribution jumps, or between stated quantiles, they are means.
    """
    return scores_of(*stated_pit(rows))


def scores_of(low: Values, high: Values) -> Values:
    """Return the scores of the limits of the PIT of each row, (n, 2)."""
    return np.stack([mean_component(low, high, 1), dispersion(low, high)], axis=1)


def dispersion(low: Values, high: Values) -> Values:
    r"""Return the dispersion score of each row, (n,): that of the scale of a logistic distribution, bounded.

    .. math:: (2 u - 1) \log \frac u {1 - u} - 1

    for PIT values u between 0.005 and 0.995, standardized: nearly optimal for normal distributions and heavy tails.

    Source: Hájek, Šidák, Sen (1999), "Theory of rank tests", chapter 2.
    """
    middle, jump = (low + high) / 2, high - low
    wide = jump > NARROW
    means = np.divide(_integral(high) - _integral(low), jump, out=np.zeros_like(jump), where=wide)
    return np.asarray((np.where(wide, means, _logistic(middle)) - MEAN) / DEVIATION)


def _logistic(u: Values) -> Values:
    inside = np.clip(u, 1 - LIMIT, LIMIT)
    return np.asarray((2 * inside - 1) * _logit(inside) - 1)


def _integral(u: Values) -> Values:
    """Return the integral of the logistic score from 1/2 to u, (n,)."""
    inside = np.clip(u, 1 - LIMIT, LIMIT)
    return np.asarray(inside * (inside - 1) * _logit(inside) + (u - inside) * _logistic(u))


def _logit(u: Values) -> Values:
    return np.asarray(np.log(u) - np.log1p(-u))


def normal_dispersion(factor: float) -> float:
    """Return the mean dispersion score of normal distributions whose deviations are too small by a factor."""
    z = sc.ndtri((np.arange(1, 2000) - 0.5) / 1999)
    u = sc.ndtr(factor * z)
    return float(dispersion(u, u).mean())


def factor_of_dispersion(score: float) -> float | None:
    """Return the factor by which the deviations of normal distributions are too small; None above all factors."""
    from scipy.optimize import brentq

    if not normal_dispersion(1 / WIDEST) < score < normal_dispersion(WIDEST):
        return None
    return float(np.exp(brentq(lambda log: normal_dispersion(np.exp(log)) - score, -np.log(WIDEST), np.log(WIDEST))))


class Region(NamedTuple):
    """A region: runs of bins of two columns."""

    # first, second: numbers of the columns
    first: int
    second: int
    # first_run, second_run: first and last bin; None for all bins
    first_run: tuple[int, int] | None
    second_run: tuple[int, int] | None
    score: int  # The score that deviates most
    deviation: float  # Sum of this score in units of its standard deviation, with its sign
    p_value: float  # Probability that a perfect model deviates as much in any region


@dataclass(frozen=True, eq=False)
class Scan:
    """Regions of n rows that depend on inputs only: runs of bins of a column, and rectangles of two columns."""

    partitions: tuple[Partition, ...]  # Bins of the columns
    min_rows: int  # Minimum number of rows of a region
    one_sided: bool = False  # Whether runs end at the first or the last bin

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of columns; a single column is paired with a column of one bin."""
        return list(combinations(range(len(self.columns)), 2))

    @cached_property
    def columns(self) -> tuple[Partition, ...]:
        """The columns, and one with a single bin if there is only one column."""
        if len(self.partitions) > 1:
            return self.partitions
        return (*self.partitions, Partition.whole(len(self.partitions[0].label)))

    @cached_property
    def selectors(self) -> list[Values]:
        """For each column, which bins are in all rows and in each of its runs, (1 + r, k)."""
        found = []
        for partition in self.columns:
            bins = np.arange(len(partition.bins))
            runs = [(bins >= first) & (bins <= last) for first, last in self.runs(partition)]
            found.append(np.stack([bins >= 0, *runs]).astype(np.float64))
        return found

    def run(self, column: int, place: int) -> tuple[int, int] | None:
        """Return a run of bins of a column by its place in the selector; None for all rows."""
        return self.runs(self.columns[column])[place - 1] if place else None

    def runs(self, partition: Partition) -> list[tuple[int, int]]:
        """Return the runs of bins of a column that are searched."""
        last = len(partition.bins) - 1
        return [run for run in partition.runs() if not self.one_sided or run[0] == 0 or run[1] == last]

    def sums(self, values: Values) -> list[Values]:
        """Return the sums of values (n, c) by cell of each pair of columns, (k, l, c) each."""
        n = len(values)
        found = []
        for first, second in self.pairs:
            shape = len(self.columns[first].bins), len(self.columns[second].bins)
            cell = self.columns[first].label * shape[1] + self.columns[second].label
            members = csr_array((np.ones(n), cell, np.arange(n + 1)), (n, shape[0] * shape[1]))
            found.append(np.asarray(members.T @ values).reshape(*shape, values.shape[1]))
        return found

    def in_regions(self, sums: Values, pair: tuple[int, int]) -> Values:
        """Return sums by cell, (k, l, c), as sums by region of a pair of columns, (1 + r, 1 + s, c)."""
        first, second = (self.selectors[column] for column in pair)
        rows = np.tensordot(first, sums, 1)
        return np.asarray(np.moveaxis(np.tensordot(second, rows, ((1,), (1,))), 0, 1))

    def by_region(self, values: Values) -> list[Values]:
        """Return the sums of values (n, c) by region of each pair of columns, (1 + r, 1 + s, c) each."""
        return [self.in_regions(sums, pair) for sums, pair in zip(self.sums(values), self.pairs, strict=True)]

    def excess(self, deviations: Values | float, rows: Values | float) -> Values:
        """Return how far deviations exceed what is usual for regions of their size; -inf for regions with few rows.

        Source: Walther (2010), "Optimal and fast detection of spatial clusters with scan statistics", Annals of
        Statistics 38.
        """
        found = excess_of(deviations, rows, len(self.columns[0].label))
        return np.where(np.asarray(rows) >= self.min_rows, found, -np.inf)

    def deviations(self, scores: Iterable[Values]) -> "Deviations":
        """Return the deviations of all regions, from scores (n, 2) each, in time O(n c) per pair of columns.

        A sum is divided by the root of the sum of the mean squares of each row over the data and all replicates: all
        data sets are treated alike, so the maxima stay exchangeable.
        """
        n = len(self.columns[0].label)
        squares, data, parts = np.zeros((n, 2)), np.empty((n, 0)), []
        for block in _blocks(scores, max(1, BLOCK // (2 * n))):
            data = data if data.size else block[:, 0]
            squares += (block**2).sum(axis=1)
            parts.append(self.sums(block.reshape(n, -1)))
        count = sum(part[0].shape[2] for part in parts) // 2
        rows, variances = self.by_region(np.ones((n, 1))), self.by_region(squares / count)
        largest = np.full(count, -np.inf)
        for place, pair in enumerate(self.pairs):
            enough = rows[place].ravel() >= self.min_rows
            if not enough.any():
                continue
            sums = self.in_regions(np.concatenate([part[place] for part in parts], axis=2), pair)
            own = sums.reshape(-1, count, 2)[enough]
            deviations = standardize(own, variances[place].reshape(-1, 1, 2)[enough])
            excess = excess_of(deviations, rows[place].reshape(-1, 1, 1)[enough], n)
            largest = np.maximum(largest, excess.max(axis=0).max(axis=1))
        return Deviations(self, data, squares / count, tuple(each[..., 0] for each in rows), largest)

    def sides(
        self, region: Region, scores: Values, searched: Indices | slice = slice(None), least: int | None = None
    ) -> list["Side"]:
        """Return the runs of bins of a region; none for all rows.

        The limit of one column is where the scores (m,) of the searched rows change most, near that of the bins.
        """
        found = self._bins(region)
        if len(found) == 1:
            (bins, first, last), least = found[0], self.min_rows if least is None else least
            if divided := bins.divided((first, last), scores, searched, least):
                return [Side(divided, int(first > 0), int(first > 0))]
        return found

    def _bins(self, region: Region) -> list["Side"]:
        runs = ((region.first, region.first_run), (region.second, region.second_run))
        return [Side(self.columns[column], *run) for column, run in runs if run is not None]

    def mask(self, region: Region) -> Mask:
        """Return which rows are in the bins of a region, (n,)."""
        return self.intersect(self._bins(region))[1]

    def place(
        self, region: Region, scores: Values, searched: Indices | slice = slice(None), least: int | None = None
    ) -> tuple[tuple[Condition, ...], Mask]:
        """Return the conditions of a region, and which rows are in it, (n,); see :meth:`sides`."""
        return self.intersect(self.sides(region, scores, searched, least))

    def intersect(self, sides: Iterable["Side"]) -> tuple[tuple[Condition, ...], Mask]:
        """Return the conditions of the rows that are inside of all sides, and which these are, (n,)."""
        inside, conditions = np.ones(len(self.columns[0].label), dtype=np.bool_), list[Condition]()
        for side in sides:
            inside &= side.inside
            conditions += side.bins.conditions(side.first, side.last)
        return tuple(conditions), inside


class Side(NamedTuple):
    """A run of the bins of a column, which is a region or a side of one."""

    bins: Partition
    first: int
    last: int

    @property
    def inside(self) -> Mask:
        """Which rows are in the run, (n,)."""
        return np.asarray((self.bins.label >= self.first) & (self.bins.label <= self.last))


def outside_of(
    before: Iterable[Sequence[Side]], conditions: tuple[Condition, ...], inside: Mask
) -> tuple[tuple[Condition, ...], Mask]:
    """Return the conditions and the rows, (n,), of the largest part of a region that is outside of those before."""
    for sides in before:
        if (inside & np.all([each.inside for each in sides], axis=0)).any():
            parts = chain.from_iterable(each.bins.others(each.first, each.last) for each in sides)
            further, part = max(parts, key=lambda each: np.sum(inside & each[1]))
            limits = {each.column + each.operator for each in further if each.operator in ORDER}  # Those nearer
            conditions = (*(each for each in conditions if each.column + each.operator not in limits), *further)
            inside = inside & part
    return conditions, inside


@dataclass(frozen=True, eq=False)
class Deviations:
    """Deviations of the scores of all regions from those of a perfect model."""

    scan: Scan  # The regions
    # scores, variances: (n, 2), scores of the data, and their variances for a perfect model
    scores: Values
    variances: Values
    rows: tuple[Values, ...]  # (1 + r, 1 + s) each, number of rows of each region of each pair of columns
    largest: Values  # (N,), the largest excess of any region: of the data, then of each replicate

    @cached_property
    def regions(self) -> int:
        """Number of different regions with enough rows."""
        least = self.scan.min_rows
        proper = sum(int((rows[1:, 1:] >= least).sum()) for rows in self.rows)
        single = {pair[0]: rows[1:, 0] for pair, rows in zip(self.scan.pairs, self.rows, strict=True)}
        single |= {pair[1]: rows[0, 1:] for pair, rows in zip(self.scan.pairs, self.rows, strict=True)}
        everything = int(self.rows[0][0, 0] >= least)
        return proper + sum(int((rows >= least).sum()) for rows in single.values()) + everything

    def p_values(self, excess: Values) -> Values:
        """Return the probability that a perfect model has as large an excess in any region, for each excess."""
        return p_values_of(excess, self.largest)

    @cached_property
    def _whole(self) -> list[Values]:
        """The excess of all rows of each region."""
        new = np.ones(len(self.scores))
        return self._excess(self._deviations(new), new)

    def judge(self, inside: Mask, score: int) -> tuple[float, float]:
        """Return the deviation of a score of some rows, (n,), and its p-value."""
        deviation = standardize(self.scores[inside, score].sum(), self.variances[inside, score].sum())
        return float(deviation), float(self.p_values(self.scan.excess(deviation, inside.sum())))

    def in_cells(self, pair: tuple[int, int], score: int) -> tuple[Indices, Values]:
        """Return the number of rows, and the deviation of a score, by cell of a pair of columns, (k, l) each."""
        columns = np.column_stack([np.ones(len(self.scores)), self.scores[:, score], self.variances[:, score]])
        rows, total, variance = np.moveaxis(self.scan.sums(columns)[self.scan.pairs.index(pair)], 2, 0)
        return rows.astype(np.intp), standardize(total, variance)

    def _excess(self, deviations: list[Values], weights: Values) -> list[Values]:
        """Return the excess of deviations of the rows of each region with weight 1."""
        counts = self.scan.by_region(weights[:, None])
        return [self.scan.excess(each, rows) for each, rows in zip(deviations, counts, strict=True)]

    def _deviations(self, weights: Values) -> list[Values]:
        """Return the deviations of the rows of each region with weight 1, (1 + r, 1 + s, 2) for each pair."""
        sums = self.scan.by_region(weights[:, None] * self.scores)
        variances = self.scan.by_region(weights[:, None] * self.variances)
        return [standardize(total, variance) for total, variance in zip(sums, variances, strict=True)]

    def most_deviating(self, new: Mask | None = None, level: float = 1.0) -> Region:
        """Return the region that deviates most, with the larger p-value of its new rows and all of its rows.

        At least half of its rows are new, all by default, and all of its rows deviate at the level.
        """
        weights, whole = np.ones(len(self.scores)) if new is None else new.astype(np.float64), self._whole
        deviations, outside = self._deviations(weights), self.scan.by_region(weights[:, None])
        rest = self._excess(deviations, weights)
        values = []
        for part, all_rows, rows, total in zip(rest, whole, outside, self.rows, strict=True):
            eligible = (rows[..., 0] >= NEW_SHARE * total) & (self.p_values(all_rows.max(axis=2)) <= level)
            values.append(np.where(eligible, part.max(axis=2), -np.inf))
        pair = int(np.argmax([each.max() for each in values]))
        line, column = map(int, np.unravel_index(np.argmax(values[pair]), values[pair].shape))
        score = int(np.argmax(rest[pair][line, column]))
        both = np.array([values[pair][line, column], whole[pair][line, column].max()])
        first, second = self.scan.pairs[pair]
        return Region(
            first,
            second,
            self.scan.run(first, line),
            self.scan.run(second, column),
            score,
            float(deviations[pair][line, column, score]),
            float(self.p_values(both).max()),
        )


def excess_of(deviations: Values | float, rows: Values | float, n: int) -> Values:
    """Return deviations less the penalty for regions of ``rows`` of ``n`` rows: see :meth:`Scan.excess`."""
    return np.asarray(np.abs(deviations) - np.sqrt(2 * np.log(np.e * n / np.maximum(rows, 1))))


def p_values_of(excess: Values, largest: Values) -> Values:
    """Return the share of data sets whose largest excess, (N,), is at least as large, for each excess."""
    ordered = np.sort(largest)
    smaller = np.searchsorted(ordered, excess - TIED * np.abs(np.nan_to_num(excess)))
    return np.asarray((len(ordered) - smaller) / len(ordered))


def standardize(sums: Values, variances: Values) -> Values:
    """Return sums in units of their standard deviations; 0 where there is no variance."""
    return np.divide(sums, np.sqrt(variances), out=np.zeros_like(sums), where=variances > 0)


def _blocks(scores: Iterable[Values], size: int) -> Iterator[Values]:
    """Yield the scores of several data sets together, (n, c, 2)."""
    waiting: list[Values] = []
    for each in scores:
        waiting.append(each)
        if len(waiting) == size:
            yield np.stack(waiting, axis=1)
            waiting = []
    if waiting:
        yield np.stack(waiting, axis=1)
