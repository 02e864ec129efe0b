"""Bins of equal counts, and what is predicted and observed in them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, named_some
from calcheck.statistics.cache import cached
from calcheck.statistics.digitize import digitize
from calcheck.statistics.groups import Groups, MeanTerm
from calcheck.statistics.moments import errors, spreads, uncertainties
from calcheck.validation import require_finite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

FEW_ROWS = 30  # a bin, below which its root mean square is mostly noise


@dataclass(frozen=True, eq=False)
class Bins(Groups):
    """Groups of rows that follow each other in some order.

    Parameters
    ----------
    low, high : (k,)
        The smallest and the largest value in each bin of what orders the rows.
    cuts : (c - 1,)
        At or below each class but the first, above the one before: other rows are divided in the same way by them.
    """

    low: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    high: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    cuts: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def assign(self, values: NDArray[np.float64]) -> Bins:
        """Divide other rows by the same cuts, and share classes as they were shared."""
        return replace(self, label=digitize(values, self.cuts, equal=True))

    def has_shared_rows(self) -> bool:
        """Tell whether rows that tie, and belong to several bins by shares, fill more than half of some bin."""
        if self.shares is None or self.label is None or not len(self.label):
            return False
        if not (partly := (self.shares > 0) & (self.shares < 1)).any():
            return False
        split = np.where(partly, self.shares, 0.0)
        return bool(((self.counts @ split) > (self.counts @ self.shares) / 2).any())

    def number(self) -> NDArray[np.integer[Any]]:
        """Return the bin that holds the largest share of each row, (n,), counted from 0."""
        classes = np.zeros(self.classes, np.intp) if self.shares is None else self.shares.argmax(axis=1)
        if self.label is not None and np.array_equal(classes, np.arange(self.classes)):
            return self.label
        return np.asarray(classes[self.label])


def bins_of(rows: Predictions, bins: int, by: str | None) -> Bins:
    """Divide rows into bins of equal counts, by their uncertainties or by a column.

    Raises
    ------
    DataError
        There are fewer rows than bins, or the column is absent or not of numbers.
    """
    if by is None:
        return _bins_by_spread(rows.distributions(), bins)
    return ordered_bins(ordering(rows, by), bins, dates=by_date(rows, by))


def ordering(rows: Predictions, by: str | None) -> NDArray[np.float64]:
    """Return what orders rows into bins, (n,): their uncertainties, or a column; dates as microseconds.

    Raises
    ------
    DataError
        The column is absent or not of numbers.
    """
    if by is None:
        return spreads(rows.distributions())
    if by not in rows.columns:
        msg = f"there is no column {by!r} to order rows by (--by; columns: {named_some(rows.columns)})"
        raise DataError(msg)
    values = rows.columns[by]
    if values.dtype.kind not in "iufbM":
        msg = f"column {by!r} must hold numbers or dates to order rows by (--by), got {values.dtype}"
        raise DataError(msg)
    if values.dtype.kind != "M":
        values = values.astype(np.float64)
        require_finite(by, values)
        return values
    require_finite(by, np.where(np.isnat(values), np.nan, 0.0))
    return values.astype("datetime64[us]").astype(np.float64)


def by_date(rows: Predictions, by: str | None) -> bool:
    """Tell whether rows are ordered by dates."""
    return by is not None and rows.columns[by].dtype.kind == "M"


def ordered_bins(values: NDArray[np.float64], bins: int, *, dates: bool) -> Bins:
    """Divide rows into bins of equal counts, by what :func:`ordering` returns.

    Raises
    ------
    DataError
        There are fewer rows than bins.
    """
    found = equal_count_bins(values, bins)
    if not dates:
        return found
    low, high = (np.datetime_as_string(ends.astype("datetime64[us]"), unit="s") for ends in (found.low, found.high))
    return replace(found, low=low, high=high)


def spread_by_bin(rows: Predictions, bins: Bins) -> dict[str, MeanTerm]:
    """Return what is averaged to compare predicted and observed spread: rows, variances, squared errors, (k,) each."""
    return {
        "rows": MeanTerm(groups=bins),
        "variance": MeanTerm(uncertainties(rows) ** 2, bins),
        "squared_error": MeanTerm(errors(rows) ** 2, bins),
    }


def reliability(sums: Mapping[str, NDArray[np.float64]], bins: Bins) -> dict[str, Any]:
    """Describe each bin: its range, how many rows, root mean predicted variance and root mean squared error."""
    rmv, rmse = (np.sqrt(sums[name] / sums["rows"]) for name in ("variance", "squared_error"))
    columns = {"from": bins.low, "to": bins.high, "rows": sums["rows"], "rmv": rmv, "rmse": rmse}
    lines = zip(*(values.tolist() for values in columns.values()), strict=True)
    return {"bins": [dict(zip(columns, line, strict=True)) for line in lines]}


def bin_warnings(bins: Bins, rows: NDArray[np.float64]) -> tuple[str, ...]:
    """Warn if bins hold few rows, or the same ones."""
    least = float(rows.min())
    few = (f"{least:.4g} rows a bin are few, {FEW_ROWS} or more are better: take fewer --bins",)
    tied = ("rows that tie are shared by several bins, which repeat each other: take fewer --bins",)
    return (few if least < FEW_ROWS else ()) + (tied if bins.has_shared_rows() else ())


@cached
def _bins_by_spread(predictive: Predictive, bins: int) -> Bins:
    return equal_count_bins(spreads(predictive), bins)


def equal_count_bins(values: NDArray[np.float64], bins: int) -> Bins:
    """Divide rows into bins of equal counts, in the order of some value.

    Edges are at round-half-even(linspace(0, n, bins + 1)) of the sorted rows. Rows tied across an edge are split
    between the bins, each with the same shares, so the order of the rows never matters.

    Parameters
    ----------
    values : (n,)
        What the rows are ordered by.
    bins : int
        How many bins.

    Raises
    ------
    DataError
        There are fewer rows than bins.
    """
    n = len(values)
    if bins > n:
        msg = f"{bins} bins need as many rows, and there are {n:,}: take fewer --bins"
        raise DataError(msg)
    edges = np.round(np.linspace(0, n, bins + 1)).astype(np.intp)
    ordered = np.sort(values)
    after = ordered[edges[1:-1]]
    tied = after[ordered[edges[1:-1] - 1] == after]
    cuts = np.concatenate([after, np.nextafter(tied, np.inf)])  # values tied across an edge are a class of their own
    starts = np.unique(np.append(np.searchsorted(ordered, cuts), [0, n]))[:-1]
    cuts = _between(ordered[starts[1:] - 1], ordered[starts[1:]])  # rounding moves no row to another class
    stops = np.append(starts[1:], n)
    overlap = np.minimum(stops[:, None], edges[1:]) - np.maximum(starts[:, None], edges[:-1])
    shares = np.maximum(overlap, 0) / (stops - starts)[:, None]
    label = digitize(values, cuts, equal=True)
    return Bins(label, len(starts), shares, low=ordered[edges[:-1]], high=ordered[edges[1:] - 1], cuts=cuts)


def _between(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers above some and not above others, halfway where there is room."""
    middle = before / 2 + after / 2
    return np.where((middle > before) & (middle <= after), middle, after)
