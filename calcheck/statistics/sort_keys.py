"""Sort keys: the values by which rows are sorted into bins, and the bins that they make."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, listed_columns
from calcheck.metric_info import BINS
from calcheck.statistics.bins import Bins, category_bins, equal_count_bins, value_bins
from calcheck.statistics.cache import cached
from calcheck.statistics.groups import CutTieGroups
from calcheck.statistics.moments import spreads
from calcheck.validation import finite_rows, require, require_finite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

MISSING = "Fill these values, or pass --nan-policy omit to drop these rows."
NUMBERS, DATES, CATEGORIES = "iuf", "M", "bOU"  # Kinds of NumPy types


def bins_of(rows: Predictions, bins: int, by: str | None) -> Bins:
    """Return bins by predicted standard deviation, or by a column.

    Raises
    ------
    DataError
        There are fewer rows than bins, the column is absent or has missing values, or a column of categories has too
        many, or a number of bins other than the default.
    """
    if by is None:
        return _bins_by_spread(rows.distributions(), bins)
    return make_bins(sort_keys(rows, by), bins, by)


@cached
def _bins_by_spread(predictive: Predictive, bins: int) -> Bins:
    return equal_count_bins(spreads(predictive), bins)


@cached
def cut_spreads(predictive: Predictive, shares: tuple[float, ...]) -> CutTieGroups:
    """Return groups of equal standard deviations, for cumulative sums up to given shares of all rows."""
    return CutTieGroups(spreads(predictive), np.array(shares))


def sort_keys(rows: Predictions, by: str | None) -> NDArray[Any]:
    """Return the values by which rows are binned, (n,): standard deviations, or the values of a column.

    Raises
    ------
    DataError
        The column is absent, has missing values, or holds neither numbers, dates nor categories.
    """
    if by is None:
        return spreads(rows.distributions())
    if by not in rows.columns:
        msg = f"there is no column {by!r} to bin rows by (--by) {listed_columns(rows.columns, by)}"
        raise DataError(msg)
    values = rows.columns[by]
    kind = values.dtype.kind
    if kind not in NUMBERS + DATES + CATEGORIES:
        msg = f"column {by!r} must contain numbers, dates or categories to bin rows by (--by), got {values.dtype}"
        raise DataError(msg)
    if kind in CATEGORIES:
        require(by, finite_rows(values), "must be present", MISSING)
        return np.where(values, "true", "false") if kind == "b" else values
    require_finite(by, values)
    return values.astype("datetime64[us]") if kind in DATES else values.astype(np.float64)


def distinct_categories(keys: NDArray[Any]) -> NDArray[Any]:
    """Return the sort keys that determine the bins: the distinct categories, else all."""
    return np.array(sorted(set(keys.tolist())), dtype=str) if keys.dtype.kind in CATEGORIES else keys


def make_bins(keys: NDArray[Any], bins: int, by: str | None) -> Bins:
    """Return the bins of rows, given their sort keys: of equal counts, or one per category or value.

    A column of categories has one bin per category. A column of numbers or dates has one bin per value if there are at
    most as many as bins, as bins of equal counts would then share the rows of a value.

    Parameters
    ----------
    keys : (n,)
        Sort keys.
    bins : int
        The number of bins of equal counts. For categories it must be the default.
    by : str, optional
        The column, for messages.

    Raises
    ------
    DataError
        There are fewer rows than bins or too many categories, or the number of bins is not the default for categories.
    """
    if keys.dtype.kind in CATEGORIES:
        return _bins_by_category(keys, bins, by)
    found = _bins_by_number(keys.astype(np.float64, copy=False), bins, by)
    if keys.dtype.kind not in DATES:
        return found
    ends = np.stack([found.low, found.high]).astype("datetime64[us]")
    whole_days = (ends == ends.astype("datetime64[D]")).all()
    low, high = np.datetime_as_string(ends, unit="D" if whole_days else "s")
    return replace(found, low=low, high=high)


def _bins_by_number(values: NDArray[np.float64], bins: int, by: str | None) -> Bins:
    distinct = values if by is None else np.unique(values)
    return value_bins(values, distinct) if len(distinct) <= bins < len(values) else equal_count_bins(values, bins)


def _bins_by_category(keys: NDArray[Any], bins: int, by: str | None) -> Bins:
    if bins != BINS:
        msg = f"column {by!r} holds categories, each of which is a bin: omit --bins {bins}, or use numbers or dates"
        raise DataError(msg)
    return category_bins(keys, f"column {by!r}")
