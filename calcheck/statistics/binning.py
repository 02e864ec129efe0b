"""Binnings of rows: equal counts, edges, values or categories, with the spread or the coverage in each bin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calcheck.core.cache import cached
from calcheck.core.metric_info import BINS
from calcheck.core.validation import finite_rows, require, require_finite
from calcheck.distributions import Predictive
from calcheck.errors import AT_QUANTILES, DataError, Message, listed_columns, named_some
from calcheck.predictions import Predictions
from calcheck.result_details import BinnedDetails, CoverageBin, StratifiedCoverageDetails
from calcheck.statistics.coverage import nearest_share
from calcheck.statistics.groups import CutTieGroups, Groups, MeanTerm, digitize
from calcheck.statistics.zscores import spreads
from calcheck.typing import AnyArray, Values

FEW_ROWS = 30  # Minimum rows per bin without a warning; with fewer, a root mean square is mostly noise
MAX_CATEGORIES = 1000  # Maximum bins by category; more are keys of rows rather than categories
MISSING = "Fill these values, or pass --nan-policy omit to drop these rows."
NUMBERS, DATES, CATEGORIES = "iuf", "M", "bOU"  # Kinds of NumPy types


@dataclass(frozen=True, eq=False)
class Binning(Groups):
    """Groups of rows by their values, of which several may share a row; each constructor is one rule for ties."""

    remedy: ClassVar[str] = "use fewer --bins"  # What a user can do about bins with few rows

    low: AnyArray = field(default_factory=lambda: np.empty(0))  # (k,), the smallest value in each bin
    high: AnyArray = field(default_factory=lambda: np.empty(0))  # (k,), the largest value in each bin
    # (c - 1,), the boundaries between classes, which assign other rows to the same classes. A value equal to a cut
    # belongs to the upper class.
    cuts: Values = field(default_factory=lambda: np.empty(0))

    @staticmethod
    def equal_counts(values: Values, bins: int) -> Binning:
        """Return bins of equal counts, in order of the values; edges are round-half-even(linspace(0, n, bins + 1)).

        Rows that are tied across an edge are divided between the bins in equal shares, whatever the order of the rows.
        """
        n = len(values)
        if bins > n:
            raise DataError(f"{bins} bins need at least {bins} rows, and there are {n:,}: use fewer --bins")
        edges = np.round(np.linspace(0, n, bins + 1)).astype(np.intp)
        ordered = np.sort(values)
        after = ordered[edges[1:-1]]
        tied = after[ordered[edges[1:-1] - 1] == after]
        cuts = np.concatenate([after, np.nextafter(tied, np.inf)])  # Values tied across an edge form a separate class
        starts = np.unique(np.append(np.searchsorted(ordered, cuts), [0, n]))[:-1]
        cuts = _between(ordered[starts[1:] - 1], ordered[starts[1:]])  # Rounding does not change classes
        stops = np.append(starts[1:], n)
        overlap = np.minimum(stops[:, None], edges[1:]) - np.maximum(starts[:, None], edges[:-1])
        shares = np.maximum(overlap, 0) / (stops - starts)[:, None]
        label = digitize(values, cuts, equal=True)
        return Binning(label, len(starts), shares, low=ordered[edges[:-1]], high=ordered[edges[1:] - 1], cuts=cuts)

    @staticmethod
    def edges(values: Values, edges: Values) -> Binning:
        """Return bins between edges (k + 1,): an edge belongs to the bin above, values beyond to the outer bins."""
        cuts = edges[1:-1]
        return Binning(digitize(values, cuts, equal=True), len(edges) - 1, low=edges[:-1], high=edges[1:], cuts=cuts)

    @staticmethod
    def values(values: Values, distinct: Values) -> ValueBins:
        """Return one bin per distinct value, given these in ascending order, (k,)."""
        cuts = _between(distinct[:-1], distinct[1:])
        return ValueBins(digitize(values, cuts, equal=True), len(distinct), low=distinct, high=distinct, cuts=cuts)

    @staticmethod
    def categories(values: AnyArray, name: str) -> CategoryBins:
        """Return one bin per category, in the order of their names. Shapes: values (n,) of texts."""
        names = sorted(set(values.tolist()))
        if len(names) > MAX_CATEGORIES:
            raise DataError(
                f"{name} has {len(names):,} categories (the first is {names[0]!r}), and at most {MAX_CATEGORIES:,} make"
                " bins. Group them, or use a column of numbers or dates"
            )
        low = np.array(names, dtype=str)
        return CategoryBins(None, len(names), low=low, high=low).assign(values)

    def assign(self, values: AnyArray) -> Binning:
        """Return the bins of other rows, with the same cuts and shares."""
        return replace(self, label=digitize(values.astype(np.float64, copy=False), self.cuts, equal=True))

    def is_consistent(self, bins: int) -> bool:
        """Return whether these are bins of equal counts, so many, with shapes that fit together."""
        shape = (self.classes, bins)
        shares = shape == (bins, bins) if self.shares is None else self.shares.shape == shape
        return shares and self.low.shape == self.high.shape == (bins,) and self.cuts.shape == (self.classes - 1,)

    def has_shared_rows(self) -> bool:
        """Return whether tied rows, which several bins share, make up more than half of any bin."""
        if self.shares is None or self.label is None or not len(self.label):
            return False
        if not (partly := (self.shares > 0) & (self.shares < 1)).any():
            return False
        split = np.where(partly, self.shares, 0.0)
        return bool(((self.counts @ split) > (self.counts @ self.shares) / 2).any())

    def number(self) -> NDArray[np.integer[Any]]:
        """Return the bin with the largest share of each row, (n,), numbered from 0."""
        classes = np.zeros(self.classes, np.intp) if self.shares is None else self.shares.argmax(axis=1)
        if self.label is not None and np.array_equal(classes, np.arange(self.classes)):
            return self.label
        return np.asarray(classes[self.label])


@dataclass(frozen=True, eq=False)
class CategoryBins(Binning):
    """Groups of the rows with the same category, whose names are ``low`` and ``high``."""

    remedy: ClassVar[str] = "join small categories"

    def assign(self, values: AnyArray) -> CategoryBins:
        """Return the bins of other rows."""
        number = {name: place for place, name in enumerate(self.low.tolist())}
        found = values.tolist()
        if unknown := sorted(set(found) - set(number)):
            raise DataError(
                f"category {unknown[0]!r} has no bin, because the bins were made of other rows (categories:"
                f" {named_some(number)}). Use rows of these categories, or omit --settings-from"
            )
        label = np.fromiter((number[name] for name in found), np.min_scalar_type(len(number)), len(found))
        return replace(self, label=label)

    def is_consistent(self, bins: int) -> bool:  # noqa: ARG002 - there are as many bins as categories
        return {self.low.shape, self.high.shape} == {(self.classes,)} and self.shares is None


@dataclass(frozen=True, eq=False)
class ValueBins(Binning):
    """Groups of the rows with the same number or date, which are ``low`` and ``high``."""

    remedy: ClassVar[str] = "join values with few rows"

    def is_consistent(self, bins: int) -> bool:
        return self.shares is None and self.classes <= bins and super().is_consistent(self.classes)


def sums_by_bin(terms: Mapping[str, MeanTerm], bins: Binning) -> dict[str, Values]:
    """Return the sums of terms by bin, (k,) each."""
    return {name: bins.sums(term.values) for name, term in terms.items()}


def root_means(sums: Mapping[str, Values]) -> tuple[Values, Values]:
    """Return the root mean predicted variance and the root mean squared error of each bin, (k,) each."""
    return np.sqrt(sums["variance"] / sums["rows"]), np.sqrt(sums["squared_error"] / sums["rows"])


def reliability(sums: Mapping[str, Values], bins: Binning) -> BinnedDetails:
    """Return the range, the rows, and both root means of each bin."""
    lines = _lines(bins.low, bins.high, sums["rows"], *root_means(sums))
    return {
        "bins": [
            {"from": low, "to": high, "rows": rows, "rmv": rmv, "rmse": rmse} for low, high, rows, rmv, rmse in lines
        ]
    }


def coverage_shares(sums: Mapping[str, Values]) -> tuple[Values, Values]:
    """Return the coverage nearest to the expected one, and the expected coverage, of each bin, (..., k) each."""
    return nearest_share(sums, sums["expected"]) / sums["rows"], sums["expected"] / sums["rows"]


def coverage_table(sums: Mapping[str, Values], bins: Binning) -> StratifiedCoverageDetails:
    """Return the range, the rows, the coverage and the expected coverage of each bin."""
    names = ["covered", "expected", *(["strictly_inside"] if _at_limits(sums) else [])]
    shares = [sums[name] / sums["rows"] for name in names]
    found: list[CoverageBin] = []
    for low, high, rows, coverage, expected, *strictly in _lines(bins.low, bins.high, sums["rows"], *shares):
        found.append({"from": low, "to": high, "rows": rows, "coverage": coverage, "expected": expected})
        if strictly:
            found[-1]["strictly_inside"] = strictly[0]
    return {"bins": found}


def _at_limits(sums: Mapping[str, Values]) -> bool:
    """Return whether targets are equal to stated limits of their intervals."""
    return "strictly_inside" in sums and bool((sums["strictly_inside"] < sums["covered"]).any())


def _lines(*columns: AnyArray) -> Iterator[tuple[Any, ...]]:
    """Return the rows of columns, (k,) each."""
    return zip(*(column.tolist() for column in columns), strict=True)


def bin_warnings(bins: Binning, sums: Mapping[str, Values]) -> tuple[Message, ...]:
    """Return warnings about bins with few rows, or with shared rows, and about targets at limits of intervals."""
    least = float(sums["rows"].min())
    shown = math.floor(10 * least) / 10
    few = f"{shown:g} {'row per bin is' if shown == 1 else 'rows per bin are'} few, {FEW_ROWS} or more are better"
    tied = f"bins share tied rows and therefore repeat each other: {bins.remedy}"
    found = {
        Message("few-rows-per-bin", f"{few}: {bins.remedy}"): least < FEW_ROWS,
        Message("tied-bins", tied): bins.has_shared_rows(),
        AT_QUANTILES: _at_limits(sums),
    }
    return tuple(message for message, holds in found.items() if holds)


def middle_range(values: Values, tail: float) -> tuple[float, float]:
    """Return the range of values (n,) without a share of them on each side, or with all if it is a single value."""
    low, high = np.quantile(values, [tail, 1 - tail])
    return (low, high) if low < high else (values.min(), values.max())


def _between(before: Values, after: Values) -> Values:
    """Return cuts c with before < c <= after: the midpoints, or ``after`` where rounding leaves no midpoint."""
    middle = before / 2 + after / 2
    return np.where((middle > before) & (middle <= after), middle, after)


def bins_of(rows: Predictions, bins: int, by: str | None) -> Binning:
    """Return bins by predicted standard deviation, or by a column."""
    return _bins_by_spread(rows.distributions(), bins) if by is None else make_bins(sort_keys(rows, by), bins, by)


@cached
def _bins_by_spread(predictive: Predictive, bins: int) -> Binning:
    return Binning.equal_counts(spreads(predictive), bins)


@cached
def cut_spreads(predictive: Predictive, shares: tuple[float, ...]) -> CutTieGroups:
    """Return groups of equal standard deviations, for cumulative sums up to given shares of all rows."""
    return CutTieGroups(spreads(predictive), np.array(shares))


@cached
def spread_weights(predictive: Predictive, shares: tuple[float, ...]) -> Values:
    """Return the weights of rows in the integral of their mean over falling shares with small deviations, (n,)."""
    found = cut_spreads(predictive, shares)
    return np.asarray(_weights(found.sums(None), shares)[digitize(found.values, found.cuts, equal=True)])


@lru_cache(maxsize=4)
def order_weights(n: int, shares: tuple[float, ...]) -> Values:
    """Return the weights of n ascending values in the integral of their mean over falling shares, (n,)."""
    return _weights(np.ones(n), shares)


def _weights(sizes: Values, shares: tuple[float, ...]) -> Values:
    """Return the weights of the rows of groups of some sizes (k,) in an integral by the trapezoidal rule, (k,)."""
    ends, found = np.cumsum(sizes), np.zeros(len(sizes))
    steps = -np.diff(shares)
    widths = (np.append(steps, 0) + np.append(0, steps)) / 2
    for share, width in zip(shares, widths, strict=True):
        found += width / share * np.clip((share * ends[-1] - (ends - sizes)) / sizes, 0, 1)
    return np.asarray(found / ends[-1])


def sort_keys(rows: Predictions, by: str | None, purpose: str = "to bin rows by (--by)") -> AnyArray:
    """Return the values by which rows are binned, (n,): standard deviations, or the values of a column."""
    if by is None:
        return spreads(rows.distributions())
    if by not in rows.columns:
        raise DataError(f"there is no column {by!r} {purpose} {listed_columns(rows.columns, by)}")
    values = rows.columns[by]
    kind = values.dtype.kind
    if kind not in NUMBERS + DATES + CATEGORIES:
        raise DataError(f"column {by!r} must contain numbers, dates or categories {purpose}, got {values.dtype}")
    if kind in CATEGORIES:
        require(by, finite_rows(values), "must be present", MISSING)
        return np.where(values, "true", "false") if kind == "b" else values
    require_finite(by, values)
    return values.astype("datetime64[us]") if kind in DATES else values.astype(np.float64)


def distinct_categories(keys: AnyArray) -> AnyArray:
    """Return the sort keys that determine the bins: the distinct categories, else all."""
    return np.array(sorted(set(keys.tolist())), dtype=str) if keys.dtype.kind in CATEGORIES else keys


def make_bins(keys: AnyArray, bins: int, by: str | None) -> Binning:
    """Return the bins of rows (n,) by sort keys: one per category, or value if these are few, else equal counts."""
    if keys.dtype.kind in CATEGORIES:
        if bins != BINS:
            msg = f"column {by!r} holds categories, each of which is a bin: omit --bins {bins}, or use numbers or dates"
            raise DataError(msg)
        return Binning.categories(keys, f"column {by!r}")
    values = keys.astype(np.float64, copy=False)
    distinct = values if by is None else np.unique(values)
    few = len(distinct) <= bins < len(values)
    found = Binning.values(values, distinct) if few else Binning.equal_counts(values, bins)
    if keys.dtype.kind not in DATES:
        return found
    ends = np.stack([found.low, found.high]).astype("datetime64[us]")
    whole_days = (ends == ends.astype("datetime64[D]")).all()
    low, high = np.datetime_as_string(ends, unit="D" if whole_days else "s")
    return replace(found, low=low, high=high)
