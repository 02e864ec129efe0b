"""Partitions of rows by columns or by clusters of an embedding, and what is wrong in their parts in words."""

from __future__ import annotations

import math
import shlex
import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from calcheck.core.filter_conditions import DIFFERENT, EQUAL, Condition
from calcheck.core.lazy_inputs import Inputs, blocks
from calcheck.core.text import count_of, shortest_number
from calcheck.distributions import Predictive
from calcheck.distributions.row_random import hash_rows
from calcheck.errors import DataError, OptionError
from calcheck.kernels.bandwidths import sample_inputs
from calcheck.predictions import Predictions, Source
from calcheck.reports import Result
from calcheck.statistics.groups import Groups, cells
from calcheck.typing import AnyArray, Floats, Indices, Mask, Values

Conditions = tuple[Condition, ...]
Cuts = tuple[tuple[Condition, Condition], ...]

PERIODS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D", "hour": "h"}
"""Periods by name, with their names in pandas."""
EMBEDDING = "embedding"  # Name of the embedding among the columns of a search
SAMPLE_ROWS = 1 << 14  # Rows to which the clusters are fitted
ITERATIONS = 20  # Of k-means
BLOCK_ROWS = 1 << 13  # Rows that are assigned together
MOST_BINS = 1_000
FEW_NUMBERS = 10  # Up to this many different numbers are not cut by default
DEFAULT_BINS = 5
MOST_TEXTS = 200  # Maximum number of different texts that are groups
UNITS = ("D", "h", "m", "s", "ms", "us")
MOST_GROUPS = 1_000
MEAN, STD = "mean", "std"
PREDICTED = (MEAN, STD)  # Columns of predicted means and standard deviations, which every file of distributions has
COMPUTED = "predicted"  # Prefix of columns that the file does not have
REACH, TURNS = 10, 10  # Limits of a region move by up to a tenth of the rows, each so many times
MOST_FREQUENT = 20  # Maximum number of texts that have a bin of their own in a search


@dataclass(frozen=True)
class Cut:
    """How a column is cut into groups."""

    column: str  # Name of the column; "mean" and "std" for the predicted ones
    bins: int | None = None  # Number of quantile bins
    edges: tuple[str, ...] = ()  # Edges of bins, which belong to the bins below them
    period: str = ""  # Name of a period in pandas, such as "M"; empty if there is none
    text: str = field(default="", compare=False)  # The text that states the cut

    @classmethod
    def parse(cls, text: str) -> Cut:
        """Return the column and the cut that a text states after the last colon; a column with a colon is ``a:b:``."""
        column, colon, how = text.rpartition(":")
        column, how = (column, how.strip()) if colon else (text, "")
        if not column.strip():
            msg = f"--by must be COLUMN, or COLUMN:HOW such as age:5, age:30/50/70 or date:month, got {text!r}"
            raise OptionError(msg)
        if how.isdecimal():
            return cls(column, bins=int(how), text=text)
        if "/" in how:
            return cls(column, edges=tuple(edge.strip() for edge in how.split("/") if edge.strip()), text=text)
        return cls(column, period=PERIODS.get(how, how), text=text)

    def resolve(self, columns: Container[str]) -> Cut:
        """Return the cut of a column of a table: the whole text, if it is the name of a column."""
        if self.text in columns:
            return Cut(self.text, text=self.text)
        if self.bins is not None and not 1 < self.bins <= MOST_BINS:
            raise OptionError(
                f"--by {self.text}: the number of bins must be between 2 and {MOST_BINS:,}."
                f" A single edge is {self.bins}/"
            )
        return self


@dataclass(frozen=True, eq=False)
class Partition(Groups):
    """Bins of the rows by the values of one column, or of several; every row is in one bin, which conditions state.

    Cuts are texts, as users write them, and values may be missing. The bins of metrics are cut at numbers, and may
    share rows: see :class:`~calcheck.statistics.binning.Binning`.
    """

    label: Indices
    bins: tuple[Conditions, ...] = ()  # Conditions of each bin, k of them; none for all rows
    column: str = ""  # Name of the column; empty for several
    # Conditions of the values below and above each cut between the bins that are in order, which are the first
    cuts: Cuts = ()
    values: AnyArray | None = None  # (n,), of quantile bins, unless some are missing

    @classmethod
    def make(cls, label: Indices, bins: Sequence[Conditions], column: str = "", cuts: Cuts = ()) -> Partition:
        """Return the partition with the part of each row, (n,), 0 to k - 1."""
        return cls(label, len(bins), bins=tuple(bins), column=column, cuts=cuts)

    @staticmethod
    def quantiles(column: str, values: AnyArray, missing: Mask, bins: int, few: int = 0) -> Partition:
        """Return bins with about equal counts of numbers or times; up to ``few`` different values have one bin each."""
        distinct, counts = np.unique(values[~missing], return_counts=True)
        if len(distinct) <= max(bins, few):
            last = np.arange(len(distinct) - 1)
        else:
            targets = np.arange(1, bins) / bins * counts.sum()
            last = np.unique(np.searchsorted(np.cumsum(counts), targets))
            last = last[last < len(distinct) - 1]
        edges = [_edge(distinct[place], distinct[place + 1]) for place in last]
        found = Partition.edges(column, values, missing, edges)
        return found if missing.any() else replace(found, values=values)

    @staticmethod
    def edges(column: str, values: AnyArray, missing: Mask, edges: Sequence[str]) -> Partition:
        """Return the bins between edges: numbers at an edge belong to the bin below, times to the bin above."""
        times = values.dtype.kind == "M"
        below, above = ("<", ">=") if times else ("<=", ">")
        limits = np.array(edges, dtype=values.dtype)
        codes = np.searchsorted(limits, values[~missing], side="right" if times else "left")
        cuts = tuple((Condition(column, below, edge), Condition(column, above, edge)) for edge in edges)
        bins: list[Conditions] = []
        for place in range(len(edges) + 1):
            inside = values[~missing][codes == place]
            limits_of_bin = (*(cuts[place - 1][1:] if place else ()), *(cuts[place][:1] if place < len(edges) else ()))
            bins.append(_exact(column, inside) or limits_of_bin or (Condition(column, DIFFERENT, ""),))
        return _with_missing(column, codes, bins, missing, cuts)

    @staticmethod
    def categories(column: str, values: AnyArray, missing: Mask, most: int, fewest: int = 1) -> Partition:
        """Return a bin for each different text, and one for missing values. Shapes: values, missing (n,)."""
        found, codes, counts = np.unique(values[~missing], return_inverse=True, return_counts=True)
        if fewest == 1 and len(found) > most:
            raise DataError(f"column {column!r} has {len(found):,} different texts, and at most {most} can be groups")
        frequent = np.sort(np.argsort(-counts, kind="stable")[:most])
        frequent = frequent[counts[frequent] >= fewest]
        place = np.full(len(found), len(frequent))
        place[frequent] = np.arange(len(frequent))
        bins: list[Conditions] = [(Condition(column, EQUAL, str(found[each])),) for each in frequent]
        if len(frequent) < len(found):
            bins.append(tuple(Condition(column, DIFFERENT, str(value)) for value in (*found[frequent], "")))
        return _with_missing(column, place[codes], bins, missing)

    @staticmethod
    def periods(column: str, values: AnyArray, missing: Mask, period: str) -> Partition:
        """Return a bin for each period that has rows."""
        import pandas as pd

        known = ", ".join(PERIODS)
        try:
            times = pd.DatetimeIndex(values[~missing] if values.dtype.kind != "f" else [None])
            periods = times.to_period(period)
        except (ValueError, TypeError, AttributeError):
            names = f"{known}, or names of pandas, of a date column"
            raise DataError(f"column {column!r} cannot be cut by {period!r}: periods are {names}") from None
        if values.dtype.kind == "f":
            msg = f"column {column!r} holds numbers, not dates: it has no period {period!r} (periods: {known})"
            raise DataError(msg)
        found, codes = np.unique(periods.asi8, return_inverse=True)
        spans = pd.PeriodIndex.from_ordinals(found, freq=periods.freq)
        ends = zip(spans.start_time, (spans + 1).start_time, strict=True)
        bins: list[Conditions] = [
            (Condition(column, ">=", _moment(start)), Condition(column, "<", _moment(stop))) for start, stop in ends
        ]
        return _with_missing(column, codes, bins, missing)

    @staticmethod
    def whole(n: int) -> Partition:
        """Return n rows as one bin."""
        return Partition.make(np.zeros(n, dtype=np.intp), ((),))

    @property
    def names(self) -> list[str]:
        """The bins in words."""
        return [label_of(each) or "all rows" for each in self.bins]

    @property
    def ordered(self) -> int:
        """Number of bins that are in order; 0 for texts."""
        return len(self.cuts) + 1 if self.cuts else 0

    def runs(self) -> list[tuple[int, int]]:
        """Return the runs of consecutive bins in order, as first and last bin, then all other bins, without all."""
        ordered, k = self.ordered, len(self.bins)
        found = [(first, last) for first in range(ordered) for last in range(first, ordered)]
        found += [(bin_, bin_) for bin_ in range(ordered, k)]
        return [run for run in found if run != (0, k - 1)]

    def divided(self, run: tuple[int, int], scores: Values, searched: Indices | slice, least: int) -> Partition | None:
        """Return the rows in two or three bins, cut where scores (m,) of the searched rows change most.

        The cuts are those of a run, each moved within the two bins at it, or by up to a tenth of the rows, in turns,
        but not beyond the other, and scores keep their side. None without any. At least so many searched rows are in
        the run, and outside of it.
        """
        (first, last), n = run, len(scores)
        if self.values is None or (first, last) == (0, len(self.cuts)):
            return None
        values = self.values[searched]
        order = np.argsort(values, kind="stable")
        ordered, sums = values[order], np.append(0.0, np.cumsum(scores[order] - scores.mean()))
        below = np.append(0, np.cumsum(np.bincount(self.label[searched], minlength=len(self.bins))))  # Rows, of bins
        ends, moved = [int(below[first]), int(below[last + 1])], {}
        sign = np.sign(sums[ends[1]] - sums[ends[0]])
        between = np.flatnonzero(ordered[:-1] < ordered[1:]) + 1
        for end, bin_ in enumerate((first, last + 1)):
            if 0 < bin_ < len(self.bins):
                start, reach = below[bin_], n // REACH
                low, high = min(below[bin_ - 1], start - reach), max(below[bin_ + 1], start + reach)
                low, high = (low, min(high, ends[1])) if end == 0 else (max(low, ends[0]), high)
                moved[end] = between[(between > low) & (between < high)]
        for _ in range(TURNS):
            for end, places in moved.items():
                rows = (2 * end - 1) * (places - ends[1 - end])
                enough = np.minimum(rows, n - rows) >= least
                if not enough.any():
                    return None
                found = (2 * end - 1) * sign * (sums[places] - sums[ends[1 - end]])[enough]
                ends[end] = int(places[enough][np.argmax(found * np.abs(found) / (rows * (n - rows))[enough])])
        edges = [_edge(ordered[ends[end] - 1], ordered[ends[end]]) for end in moved]
        return Partition.edges(self.column, self.values, np.zeros(len(self.values), dtype=np.bool_), edges)

    def conditions(self, first: int, last: int) -> Conditions:
        """Return the conditions of the rows from one bin to another."""
        if first == last:
            return self.bins[first]
        above = (self.cuts[first - 1][1],) if first else ()
        below = (self.cuts[last][0],) if last < len(self.cuts) else ()
        return (*above, *below) or (Condition(self.column, DIFFERENT, ""),)

    def others(self, first: int, last: int) -> list[tuple[Conditions, Mask]]:
        """Return parts of the rows that are not in the bins from one to another: conditions, and the rows, (n,)."""
        label, ordered, bins = self.label, self.ordered, self.bins
        if last < ordered:
            below = [((self.cuts[first - 1][0],), label < first)] if first else []
            above = [((cut[1],), (label > last) & (label < ordered)) for cut in self.cuts[last : last + 1]]
            return [*below, *above, *((bins[each], label == each) for each in range(ordered, len(bins)))]
        if len(bins[first]) == 1:
            return [((bins[first][0].opposite(),), label != first)]
        return [(conditions, label == each) for each, conditions in enumerate(bins) if each != first]


def label_of(conditions: Iterable[Condition]) -> str:
    """Return conditions in words: ``age>60 and sex=f``."""
    return " and ".join(words_of(each) for each in conditions)


def words_of(condition: Condition) -> str:
    """Return a condition in words: ``age>60``, ``age is missing``."""
    if condition.value or condition.operator not in (EQUAL, DIFFERENT):
        return str(condition)
    return f"{condition.column} is {'' if condition.operator == EQUAL else 'not '}missing"


def bin_column(column: str, raw: AnyArray, cut: Cut) -> Partition:
    """Return the bins of a column as the user cuts it. Shapes: raw (n,)."""
    values, missing = column_values(raw)
    if cut.period:
        return Partition.periods(column, values, missing, cut.period)
    if values.dtype.kind == "U":
        if cut.bins or cut.edges:
            raise DataError(f"column {column!r} holds text, which is not cut into bins: pass --by {column}")
        return Partition.categories(column, values, missing, MOST_TEXTS)
    if cut.edges:
        return Partition.edges(column, values, missing, _edges_of(column, values, cut.edges))
    return Partition.quantiles(column, values, missing, cut.bins or DEFAULT_BINS, few=0 if cut.bins else FEW_NUMBERS)


def column_values(raw: AnyArray) -> tuple[AnyArray, Mask]:
    """Return values as numbers (float64), times (datetime64) or texts, and which are missing, (n,) each."""
    raw = np.asarray(raw)
    if raw.dtype.kind in "iuf":
        values = raw.astype(np.float64)
        return values, np.isnan(values)
    if raw.dtype.kind == "M":
        return raw.astype("datetime64[us]"), np.isnat(raw)
    if raw.dtype.kind == "O":
        missing = np.array([each is None or each != each or each == "" for each in raw], dtype=np.bool_)  # noqa: PLR0124 - NaN
        if all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in raw[~missing]):
            return np.where(missing, np.nan, raw).astype(np.float64), missing
        return np.array(["" if gap else _text(each) for each, gap in zip(raw, missing, strict=True)]), missing
    values = np.array([_text(each) for each in raw.tolist()], dtype=np.str_)
    return values, values == ""


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _exact(column: str, inside: AnyArray) -> Conditions:
    """Return the condition of a bin that has a single whole number; none for other bins."""
    if inside.dtype.kind != "f" or not len(inside) or np.ptp(inside) > 0 or not float(inside[0]).is_integer():
        return ()
    return (Condition(column, EQUAL, str(int(inside[0]))),)


def _with_missing(column: str, codes: Indices, bins: list[Conditions], missing: Mask, cuts: Cuts = ()) -> Partition:
    """Return a partition with a last part for missing values, if there are any."""
    found = np.full(len(missing), len(bins), dtype=np.intp)
    found[~missing] = codes
    further: list[Conditions] = [(Condition(column, EQUAL, ""),)] if missing.any() else []
    return Partition.make(found, (*bins, *further), column, cuts)


def _edge(low: Any, high: Any) -> str:
    """Return the shortest text of an edge between two values: a number in [low, high), or a time in (low, high]."""
    if isinstance(low, np.datetime64):
        floors = (high.astype(f"datetime64[{unit}]") for unit in UNITS)
        return str(next(floor for floor in floors if low < floor <= high))
    return shortest_number(float(low), float(high))


def _edges_of(column: str, values: AnyArray, edges: Sequence[str]) -> list[str]:
    """Return edges given as text, checked."""
    kind = "times" if values.dtype.kind == "M" else "numbers"
    try:
        limits = np.array(edges, dtype=values.dtype)
    except ValueError:
        raise DataError(f"column {column!r} holds {kind}, and the edges {'/'.join(edges)} are none") from None
    if (limits[1:] <= limits[:-1]).any() or np.isnan(limits).any():
        raise DataError(f"the edges of column {column!r} must increase, got {'/'.join(edges)}")
    return list(edges)


def _moment(time: Any) -> str:
    """Return a time as text, without a midnight."""
    text: str = time.isoformat()
    return text.removesuffix("T00:00:00")


def cut_columns(source: Source, cuts: Sequence[Cut]) -> list[Partition]:
    """Return the bins of columns of a source."""
    return [bin_column(name_of(source, cut.column), values_of(source, cut.column), cut) for cut in cuts]


def name_of(source: Source, column: str) -> str:
    """Return the name of a column in conditions: for predicted means and deviations, that of their column."""
    if column not in PREDICTED or column in source.predictions().columns:
        return column
    return source.input_info().columns.get(column, f"{COMPUTED} {column}")


def search_columns(source: Source, columns: Sequence[str], bins: int, fewest: int) -> list[Partition]:
    """Return the bins of columns in which regions are searched: quantiles, or the 20 most frequent texts and others."""
    found = []
    for column in columns:
        name, (values, missing) = name_of(source, column), column_values(values_of(source, column))
        if values.dtype.kind == "U":
            found.append(Partition.categories(name, values, missing, MOST_FREQUENT, max(2, fewest)))
        else:
            found.append(Partition.quantiles(name, values, missing, bins))
    return found


def predicted_columns(predictive: Predictive) -> tuple[str, ...]:
    """Return the predicted columns that form groups: none of draws, and none that quantiles do not state."""
    if predictive.n_draws is not None:
        return ()
    try:
        predictive.mean()
        predictive.spread()
    except DataError:
        return ()
    return PREDICTED


def values_of(source: Source, column: str) -> AnyArray:
    """Return the values of a column, or the predicted means or standard deviations, (n,)."""
    rows = source.predictions()
    if column in rows.columns:
        return np.asarray(rows.columns[column])
    if column not in PREDICTED:
        raise DataError(f"there is no column {column!r} with one value per row")
    if rows.distributions().n_draws is not None:
        raise DataError(
            f"the {column} of draws does not form groups: it varies with the draws, with which targets are exchanged."
            " Name columns of inputs"
        )
    return rows.distributions().mean() if column == MEAN else rows.distributions().spread()


def partitions(columns: Sequence[Partition], *, cross: bool) -> list[Partition]:
    """Return all rows as one group, then the groups of each column, then, if ``cross``, those of all combinations."""
    found = [Partition.whole(len(columns[0].label)), *(_crossed([each]) for each in columns)]
    if cross and len(columns) > 1:
        found.append(_crossed(columns))
    count = sum(each.classes for each in found)
    if count > MOST_GROUPS:
        msg = f"there are {count:,} groups, at most {MOST_GROUPS:,} can be compared. Name fewer columns, or fewer bins"
        raise DataError(msg)
    return found


def _crossed(columns: Sequence[Partition]) -> Partition:
    """Return the combinations of bins that have rows."""
    label, places = cells(*columns)
    bins = [
        tuple(condition for each, bin_ in zip(columns, line, strict=True) for condition in each.bins[bin_])
        for line in np.stack(places, axis=1)
    ]
    return Partition.make(label, bins)


CLEAR = 2.0  # Standard errors of a difference that is no chance


def deviation(values: Values, rows: Indices) -> float:
    """Return the difference of the mean of some rows, (m,), from that of the others, in standard errors."""
    others = np.delete(values, rows)
    if not len(others) or not (spread := float(values.std())):
        return 0.0
    error = spread * math.sqrt(1 / len(rows) + 1 / len(others))
    return float(abs(values[rows].mean() - others.mean())) / error


def is_explained(values: Values, rows: Indices, label: Indices) -> bool:
    """Return whether some rows differ from the others, but not from others in the same groups of another column.

    The difference within the groups is less than a quarter of that of all rows, or less than half of it and less than
    two standard errors.

    Shapes: values (n,), rows (m,), label (n,), 0 to k - 1.
    """
    others = np.delete(np.arange(len(values)), rows)
    counts = np.bincount(label[others], minlength=label.max() + 1)
    known = rows[counts[label[rows]] > 0]
    if not len(others) or len(known) < len(rows) / 2:
        return False
    means = np.bincount(label[others], values[others], len(counts)) / np.maximum(counts, 1)
    rest = values[known] - means[label[known]]
    shares = np.bincount(label[known], minlength=len(counts)) / len(known)
    of_means = np.sum(shares**2 / np.maximum(counts, 1)) * np.var(values[others] - means[label[others]])
    error = math.sqrt(np.var(rest) / len(known) + of_means)
    whole = abs(values[rows].mean() - values[others].mean())
    return bool(abs(rest.mean()) < max(whole / 4, min(whole / 2, CLEAR * error)))


DIRECTIONS = {"too-narrow": "overconfident", "too-wide": "underconfident"}


def describe_faults(results: Mapping[str, Result]) -> str:
    """Return what is wrong in a group, given its results by metric; empty if no verdict is a failure."""
    failed = {name: result for name, result in results.items() if result.verdict == "fail"}
    if not failed:
        return ""
    directions = [DIRECTIONS[str(each.direction)] for each in failed.values() if each.direction in DIRECTIONS]
    words = [f"{directions[0]}{_factor(results, directions[0])}"] if len(set(directions)) == 1 else []
    if "coverage" in failed:
        coverage = failed["coverage"]
        words.append(f"{_intervals(coverage)} hold {100 * (coverage.value or 0):.3g} %")
    words += [text for name, each in failed.items() if (text := _location(name, each))]
    if "cce" in failed:
        words.append("predicted distributions differ from those of the targets at the same inputs")
    if words:
        return "; ".join(words)
    return f"{', '.join(failed)} {'fails' if len(failed) == 1 else 'fail'}"


def _factor(results: Mapping[str, Result], direction: str) -> str:
    """Return by how much intervals should be wider, if that agrees with the direction."""
    found = results.get("width-factor")
    if found is None or not found.value or (found.value > 1) != (direction == "overconfident"):
        return ""
    limits = "" if found.low is None or found.high is None else f" ({found.low:.3g} to {found.high:.3g})"
    return f": {_intervals(found)} should be {found.value:.3g}{limits} times as wide"


def _intervals(result: Result) -> str:
    level = result.options.get("level")
    return "intervals" if level is None else f"{100 * level:g} % intervals"


def _location(name: str, result: Result) -> str:
    """Return a bias in words; empty for other metrics."""
    if result.direction not in ("predictions-too-low", "predictions-too-high"):
        return ""
    side = "above" if result.direction == "predictions-too-low" else "below"
    unit = {"bias": "", "standardized-bias": " predicted standard deviations"}.get(name)
    size = "" if unit is None or result.value is None else f" by {abs(result.value):.3g}{unit} on average"
    return f"biased: targets are {side} the predictions{size}"


def sentence(label: str, rows: int, faults: str) -> str:
    """Return a finding about some rows.

    >>> sentence("all rows", 400, "fails"), sentence("site=b", 1, "fails")
    ('all 400 rows: fails', 'site=b (1 row): fails')
    """
    count = count_of(rows, "row")
    return f"{f'all {count}' if label == 'all rows' else f'{label} ({count})'}: {faults}"


def filter_options(conditions: Sequence[Condition]) -> str:
    """Return conditions as options that select the same rows, to be pasted into a shell; empty if no option can."""
    if any(each.column.startswith(f"{COMPUTED} ") or not each.is_option for each in conditions):
        return ""
    return " ".join(f"--filter {shlex.quote(str(each))}" for each in conditions)


@dataclass(frozen=True)
class InCluster(Condition):
    """Condition that a row is in a cluster, which no option can state."""

    is_option = False

    def __str__(self) -> str:
        """Return the condition in words."""
        return f"{'' if self.operator == EQUAL else 'not in '}cluster {self.value} of {self.column}"


@dataclass(frozen=True, eq=False)
class EmbeddingClusters:
    """Clusters of the rows."""

    partition: Partition  # The clusters as bins, which are in no order
    central: Indices  # (k,), the row nearest to the center of each cluster

    def details(self, rows: Predictions) -> dict[str, Any]:
        """Return the number of clusters, their sizes, and the numbers of the rows nearest to their centers."""
        sizes = self.partition.counts
        central = rows.row_numbers()[self.central]
        return {"count": len(sizes), "rows": sizes.tolist(), "central_rows": central.tolist()}


def cluster_embedding(
    x: Inputs, count: int, rng: Generator, *, sample_rows: int = SAMPLE_ROWS, block_rows: int = BLOCK_ROWS
) -> EmbeddingClusters:
    """Return clusters of an embedding (n, d) by k-means, fitted to a sample of the rows, the largest one first.

    Source: Arthur, Vassilvitskii (2007), "k-means++: the advantages of careful seeding", SODA.
    """
    centers = _fit(sample_inputs(x, sample_rows), count, rng)
    codes, distances = np.empty(len(x), dtype=np.intp), np.empty(len(x))
    for rows, block in blocks(x):
        codes[rows], distances[rows] = _assign(block, centers, block_rows)
    found, codes = np.unique(codes, return_inverse=True)
    order = np.argsort(-np.bincount(codes), kind="stable")
    codes = np.argsort(order)[codes]
    nearest = np.lexsort((distances, codes))
    central = nearest[np.searchsorted(codes[nearest], np.arange(len(found)))]
    bins = tuple((InCluster(EMBEDDING, EQUAL, str(number + 1)),) for number in range(len(found)))
    return EmbeddingClusters(Partition.make(codes, bins, EMBEDDING), central)


def _fit(sample: Floats, count: int, rng: Generator) -> Values:
    """Return the centers of clusters of a sample, (k, d)."""
    from scipy.cluster.vq import kmeans2

    sample = sample[np.argsort(hash_rows([sample], 1), kind="stable")].astype(np.float64)
    distinct = np.unique(sample, axis=0)
    if len(distinct) <= count:
        return np.asarray(distinct)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty cluster keeps its center
        centers, _ = kmeans2(sample, count, iter=ITERATIONS, minit="++", seed=rng)
    return np.asarray(centers)


def _assign(x: Floats, centers: Values, size: int) -> tuple[Indices, Values]:
    """Return the nearest center of each row, and the distance from it, (b,) each."""
    from scipy.cluster.vq import vq

    parts = [vq(x[start : start + size].astype(np.float64), centers) for start in range(0, len(x), size)]
    codes, distances = zip(*parts, strict=True)
    return np.concatenate(codes).astype(np.intp), np.concatenate(distances)
