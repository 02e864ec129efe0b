"""Curves of pictures: values by level, and values in bins of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.report import Curve
from calcheck.statistics.moments import interval_widths, spreads
from calcheck.statistics.sort_keys import NUMBERS, make_bins, sort_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from calcheck.predictions import Predictions
    from calcheck.report import CurveName
    from calcheck.statistics.bins import Bins
    from calcheck.statistics.groups import Means

    Values = NDArray[np.float64]

LEAST_BINS, MAX_BINS = 4, 20  # Bins of a curve along a column
ROWS_PER_BIN = 30
HISTOGRAM_BINS = 30


def curve_of(
    name: CurveName,
    x: NDArray[Any],
    y: ArrayLike,
    *,
    x_name: str = "",
    stop: Values | None = None,
    rows: Values | None = None,
    expected: ArrayLike = (),
) -> Curve:
    """Return a curve without a band, from arrays (k,); values that are not finite are undefined."""
    return Curve(
        name=name,
        x_name=x_name,
        x=tuple(x.tolist()),
        y=plain(y),
        stop=() if stop is None else tuple(stop.tolist()),
        rows=() if rows is None else tuple(rows.tolist()),
        expected=plain(expected),
    )


def plain(values: ArrayLike) -> tuple[float | None, ...]:
    """Return numbers; None for those that are not finite."""
    numbers = np.asarray(values, dtype=np.float64)
    return tuple(
        number if known else None for number, known in zip(numbers.tolist(), np.isfinite(numbers), strict=True)
    )


def curve_by_bin(
    name: CurveName, bins: Bins, keys: NDArray[Any], y: ArrayLike, x_name: str, expected: ArrayLike = ()
) -> Curve:
    """Return the curve of values in bins, (k,), at the mean sort key of each bin, or at the name of its first key."""
    rows = bins.sums(None)
    numeric = keys.dtype.kind in NUMBERS
    x = bins.sums(keys.astype(np.float64, copy=False)) / rows if numeric else bins.low
    return curve_of(name, x, y, x_name=x_name, rows=rows, expected=expected)


def curve_along(
    value: Callable[[Means], Values],
    rows: Predictions,
    columns: Mapping[str, NDArray[Any]],
    by: str | None,
    reference: float | None,
) -> Curve:
    """Return the curve of a function of column means in bins of rows.

    Parameters
    ----------
    value : callable
        Takes the means of the columns in each bin.
    rows : Predictions
        The rows.
    columns : mapping
        The columns, (n,) each.
    by : str, optional
        Column by which rows are binned; default: the predicted standard deviation, or the width of intervals.
    reference : float, optional
        Value of a right model in each bin, if it is known.
    """
    from calcheck.statistics.groups import Means

    keys, x_name = (sort_keys(rows, by), by) if by is not None else _uncertainties(rows)
    bins = make_bins(keys, _bin_count(len(rows)) if keys.dtype.kind in "fM" else MAX_BINS, by)
    counts = bins.sums(None)
    means = {name: bins.sums(values.astype(np.float64, copy=False)) / counts for name, values in columns.items()}
    expected = () if reference is None else np.full(len(counts), reference)
    return curve_by_bin("along", bins, keys, value(Means(means, len(rows))), x_name, expected)


def histogram(name: CurveName, values: Values, x_name: str) -> Curve:
    """Return the counts of positive values in bins whose edges have equal ratios."""
    edges = np.geomspace(values.min(), values.max(), HISTOGRAM_BINS + 1)
    edges = np.unique(edges) if values.min() < values.max() else values.min() * np.array([0.9, 1.1])
    edges[[0, -1]] = min(edges[0], values.min()), max(edges[-1], values.max())
    counts, _ = np.histogram(values, edges)
    return curve_of(name, edges[:-1], counts, x_name=x_name, stop=edges[1:])


def _uncertainties(rows: Predictions) -> tuple[Values, str]:
    """Return the predicted standard deviations, or for intervals their widths, (n,), and their name."""
    predictive = rows.distributions()
    levels = predictive.interval_levels
    if levels is None:
        return spreads(predictive), "std"
    return interval_widths(predictive, float(levels[0])), "width"


def _bin_count(n: int) -> int:
    """Return the number of bins of n rows."""
    return min(n, MAX_BINS, max(LEAST_BINS, n // ROWS_PER_BIN))
