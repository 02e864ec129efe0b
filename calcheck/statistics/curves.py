"""Curves over levels, ranks and bins, and intervals of a sample of rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from calcheck.core.cache import cached
from calcheck.core.lazy_inputs import load
from calcheck.core.metric_info import BINS
from calcheck.distributions import Predictive
from calcheck.errors import DataError
from calcheck.predictions import Predictions
from calcheck.reports import SPREAD, WIDTH, Curve, CurveName
from calcheck.statistics.binning import DATES, NUMBERS, Binning, make_bins, middle_range, sort_keys
from calcheck.statistics.groups import Groups, Means, cells
from calcheck.statistics.zscores import centers, central_interval, interval_widths, spreads
from calcheck.typing import AnyArray, Values

LEAST_BINS, MAX_BINS = 4, 20  # Bins of a curve along a column
LEAST_CELLS, MAX_CELLS = 2, 24  # Bins of each of the two columns of a map
EXTREME = 0.002  # Share of values on each side that are in the outer cells of a map, which are wider
ROWS_PER_BIN = 30
HISTOGRAM_BINS = 30
MAX_POINTS = 101  # Of a curve at quantiles
LEVEL = 0.9  # Of the intervals of distributions that have no standard deviation
MAX_ROWS = 150  # More intervals side by side cannot be told apart
FEW_ROWS = 40  # Of a picture among others
NO_MAP = "a map needs two columns of numbers, and {} has none. Pass one column to --plot-by, or two others"
NOT_ALONG = "column {} must hold numbers to show predictions along it"


@dataclass(frozen=True, eq=False)
class CurveBins:
    """Bins of rows along one or two columns."""

    groups: Groups  # Bins of n rows, k of them
    rows: Values  # (k,), number of rows of each bin
    position: Curve  # Curve with the positions of the bins, without values

    def means(self, values: AnyArray) -> Values:
        """Return the means of values (n,) in the bins, (k,)."""
        return self.groups.sums(values.astype(np.float64, copy=False)) / self.rows

    def curve(self, y: ArrayLike, expected: ArrayLike = ()) -> Curve:
        """Return the curve of values in the bins, (k,), without a band."""
        return replace(self.position, y=plain(y), expected=plain(expected))


def curve_of(
    name: CurveName,
    x: AnyArray,
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
    pairs = zip(numbers.tolist(), np.isfinite(numbers), strict=True)
    return tuple(number if known else None for number, known in pairs)


def curve_by_bin(bins: Binning, keys: AnyArray, y: ArrayLike, x_name: str, expected: ArrayLike = ()) -> Curve:
    """Return the curve of values in bins, (k,), at the mean sort key of each bin, or at the name of its first key."""
    return replace(_along(bins, keys, x_name).curve(y, expected), name="bins")


def curve_along(
    value: Callable[[Means], Values],
    rows: Predictions,
    columns: Mapping[str, AnyArray],
    by: Sequence[str],
    reference: float | None,
) -> Curve:
    """Return a function of column means in bins of rows."""
    bins = bins_along(rows, by)
    means = {name: bins.means(values) for name, values in columns.items()}
    expected = () if reference is None else np.full(len(bins.rows), reference)
    return bins.curve(value(Means(means, len(rows))), expected)


def bins_along(rows: Predictions, by: Sequence[str]) -> CurveBins:
    """Return bins of rows along one or two columns, or along their predicted standard deviations."""
    if len(by) > 1:
        first, second = (_numbers(rows, name, NO_MAP) for name in by)
        return cells_along(first, second, tuple(by), ROWS_PER_BIN)
    return bins_along_values(sort_keys(rows, by[0]), by[0]) if by else _bins_by_uncertainty(rows.distributions())


def bins_along_values(keys: AnyArray, x_name: str, rows_per_bin: int = ROWS_PER_BIN) -> CurveBins:
    """Return bins of about equal counts along sort keys, (n,), or one for each category."""
    n = len(keys)
    count = min(n, MAX_BINS * ROWS_PER_BIN // rows_per_bin, max(LEAST_BINS, n // rows_per_bin))
    count = count if keys.dtype.kind in NUMBERS + DATES else BINS
    return _along(make_bins(keys, count, x_name), keys, x_name)


def cells_along(first: Values, second: Values, names: Sequence[str], rows_per_cell: int) -> CurveBins:
    """Return the cells of a map, which are bins of two quantities, (n,) each; cells without rows are absent."""
    count = int(np.clip(np.sqrt(len(first) / rows_per_cell), LEAST_CELLS, MAX_CELLS))
    bins = [Binning.edges(values, _edges(values, count)) for values in (first, second)]
    label, (across, up) = cells(*bins)
    groups = Groups(label, len(across))
    counts = groups.sums(None)
    position = Curve(
        name="map",
        x_name=names[0],
        x=tuple(bins[0].low[across].tolist()),
        stop=tuple(bins[0].high[across].tolist()),
        x2_name=names[1],
        x2=tuple(bins[1].low[up].tolist()),
        stop2=tuple(bins[1].high[up].tolist()),
        y=(),
        rows=tuple(counts.tolist()),
    )
    return CurveBins(groups, counts, position)


def _along(bins: Binning, keys: AnyArray, x_name: str) -> CurveBins:
    counts = bins.sums(None)
    x = bins.sums(keys.astype(np.float64, copy=False)) / counts if keys.dtype.kind in NUMBERS else bins.low
    return CurveBins(bins, counts, curve_of("along", x, (), x_name=x_name, rows=counts))


def _edges(values: Values, count: int) -> Values:
    """Return edges of bins of equal width, of which the outer ones also contain extreme values."""
    low, high = middle_range(values, EXTREME)
    edges = np.linspace(low, high, count + 1) if low < high else low + np.array([-0.5, 0.5])
    edges[[0, -1]] = min(edges[0], values.min()), max(edges[-1], values.max())
    return edges


def _numbers(rows: Predictions, name: str, refusal: str) -> Values:
    """Return the values of a column, (n,); raise unless they are numbers."""
    keys = sort_keys(rows, name)
    if keys.dtype.kind not in NUMBERS:
        raise DataError(refusal.format(repr(name)))
    return keys.astype(np.float64, copy=False)


def curve_at_quantiles(name: CurveName, x: Values, y: Values) -> Curve:
    """Return a function y of predictions x, (n,) each, at up to 101 of them, evenly in their order; expected: x."""
    order = np.argsort(x, kind="stable")
    places = order[np.unique(np.linspace(0, len(x) - 1, MAX_POINTS).round().astype(np.intp))]
    return curve_of(name, x[places], y[places], expected=x[places])


def spread_histogram(values: Values) -> Curve:
    """Return the counts of positive standard deviations, (n,), in bins whose edges have equal ratios."""
    positive = values[values > 0]
    return histogram("spread-histogram", positive if len(positive) else values, SPREAD, ratios=bool(len(positive)))


def histogram(name: CurveName, values: Values, x_name: str, *, ratios: bool = False) -> Curve:
    """Return the counts of values, (n,), in bins of equal widths, or of positive values in bins of equal ratios."""
    low, high = values.min(), values.max()
    if low < high:
        edges = np.unique((np.geomspace if ratios else np.linspace)(low, high, HISTOGRAM_BINS + 1))
        edges[[0, -1]] = min(edges[0], low), max(edges[-1], high)
    else:
        edges = low * np.array([0.9, 1.1]) if ratios else low + np.array([-0.5, 0.5])
    counts, _ = np.histogram(values, edges)
    return curve_of(name, edges[:-1], counts, x_name=x_name, stop=edges[1:])


@cached
def _bins_by_uncertainty(predictive: Predictive) -> CurveBins:
    """Return bins along the predicted standard deviations, or along the widths of intervals if there are none."""
    if predictive.targets > 1:
        raise DataError(
            f"rows of {predictive.targets} targets have no single uncertainty to be drawn along: pass --plot-by COLUMN"
        )
    if (levels := predictive.interval_levels) is not None:
        return bins_along_values(interval_widths(predictive, float(levels[0])), WIDTH)
    try:
        return bins_along_values(spreads(predictive), SPREAD)
    except DataError:  # such as those of Cauchy distributions
        return bins_along_values(interval_widths(predictive, LEVEL), WIDTH)


@dataclass(frozen=True, eq=False)
class RowIntervals:
    """Central intervals of k of n rows, in the order of their centers."""

    center: Values  # (k,), medians, or middles of intervals if these are all that is predicted, unit of y
    low: Values  # (k,), lower limits of the intervals, unit of y
    high: Values  # (k,), upper limits, unit of y
    level: float  # Probability of the intervals, in (0, 1)
    total: int  # Number of all rows, n
    y: Values | None = None  # (k,), targets
    along: Values | None = None  # (k,), values of a column
    along_name: str = ""  # Name of this column

    @property
    def half_width(self) -> Values:
        """Halves of the widths, (k,), unit of y."""
        return (self.high - self.low) / 2

    @property
    def errors(self) -> Values:
        """Targets minus centers, (k,), unit of y; none without targets."""
        return np.empty(0) if self.y is None else self.y - self.center

    @property
    def ranks(self) -> Values:
        """Ranks of the targets, (k,), from 1; none without targets."""
        order = np.argsort(np.empty(0) if self.y is None else self.y, kind="stable")
        return np.argsort(order).astype(np.float64) + 1


def row_intervals(
    rows: Predictions, level: float, by: str = "", inputs: Sequence[str] = (), size: int = MAX_ROWS
) -> RowIntervals:
    """Return intervals of some rows, which are evenly spaced in the order of their centers."""
    predictive = rows.distributions()
    if predictive.targets > 1:
        raise DataError(f"intervals need one target per row, and these distributions have {predictive.targets}")
    name, along = (by, _numbers(rows, by, NOT_ALONG)) if by else _single_input(rows, inputs)
    order = np.argsort(centers(predictive, level), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(size, len(order))).round().astype(np.intp))]
    part = rows.take(chosen)
    low, high = central_interval(part.distributions(), level)
    return RowIntervals(
        centers(part.distributions(), level),
        low,
        high,
        level,
        len(rows),
        None if part.y is None else part.y.reshape(len(chosen)).astype(np.float64),
        None if along is None else along[chosen],
        name,
    )


def _single_input(rows: Predictions, names: Sequence[str]) -> tuple[str, Values | None]:
    """Return the name and the values of the input, if there is one per row."""
    if rows.x is None or rows.width > 1:
        return "", None
    return names[0] if names else "input", load(rows.lazy_inputs()).reshape(len(rows)).astype(np.float64)
