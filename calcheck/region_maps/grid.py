"""Maps of two variables cut into cells, and groups of categories, with the sums over the rows of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError, OptionError, listed_columns
from calcheck.lazy_inputs import load
from calcheck.linalg.gram import principal_components
from calcheck.region_maps.sums import group_sums
from calcheck.statistics.bins import edge_bins, middle_range
from calcheck.statistics.groups import Groups, cells
from calcheck.validation import LARGEST, finite_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions
    from calcheck.region_maps.sums import GroupSums

    Values = NDArray[np.float64]

ROWS_PER_CELL = 10  # Mean number of rows per cell below which cells become larger
MIN_BINS, MAX_BINS = 4, 24  # Number of bins per axis
TAIL = 0.005  # Share of rows beyond the outermost edges on each side, which belong to the outer bins
LONG_RANGE = 100.0  # Ratio of the edges from which a positive variable may have a logarithmic axis
HALF = 0.5  # Level of intervals of distributions without moments
MAX_GROUPS = 20  # Number of categories of a column with groups
MAX_NUMBERS = 8  # Number of distinct whole numbers that are categories
CATEGORIES, WHOLE_NUMBERS = "bOU", "iu"  # Kinds of NumPy types


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable of a map.

    Parameters
    ----------
    name : str
        Its name.
    values : (n,)
        Its values, finite.
    """

    name: str
    values: Values


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of a map, cut into bins.

    Parameters
    ----------
    name : str
        Name of the variable.
    edges : (k + 1,)
        Edges of the bins, increasing. A value equal to an edge belongs to the bin above; values beyond the outermost
        edges belong to the outer bins.
    is_log : bool
        Whether the axis is logarithmic.
    """

    name: str
    edges: Values
    is_log: bool

    @property
    def bins(self) -> int:
        """Number of bins, k."""
        return len(self.edges) - 1


@dataclass(frozen=True, eq=False)
class RegionMap:
    """A map of two variables: the sums over the rows of each cell that has rows.

    Parameters
    ----------
    x, y : Axis
        The axes.
    x_bin, y_bin : (g,)
        Bins of each cell.
    sums : GroupSums
        Sums over the rows of each cell.
    confidence : float
        Confidence of the limits.
    independent : bool
        Whether rows are independent; if not, there are no limits.
    """

    x: Axis
    y: Axis
    x_bin: NDArray[np.intp]
    y_bin: NDArray[np.intp]
    sums: GroupSums
    confidence: float
    independent: bool = True

    @property
    def limited(self) -> GroupSums:
        """The sums, with what limits need only if rows are independent."""
        return self.sums if self.independent else self.sums.without_limits()


def named_variables(rows: Predictions, names: Sequence[str]) -> tuple[Variable, Variable]:
    """Return two columns of numbers.

    Raises
    ------
    OptionError
        There are not two names.
    DataError
        A column is absent, or does not hold finite numbers.
    """
    if len(names) != 2 or len(set(names)) < 2:  # noqa: PLR2004 - of a map
        msg = f"--plot-by needs two different columns, got {','.join(names)!r}"
        raise OptionError(msg)
    x, y = (Variable(name, _numbers(rows, name)) for name in names)
    return x, y


def _numbers(rows: Predictions, name: str) -> NDArray[np.float64]:
    if name not in rows.columns:
        msg = f"there is no column {name!r} for the map (--plot-by) {listed_columns(rows.columns, name)}"
        raise DataError(msg)
    values = rows.columns[name]
    if values.dtype.kind not in "iufb" or not np.isfinite(values).all():
        msg = f"column {name!r} must hold finite numbers for the map (--plot-by)"
        raise DataError(msg)
    return values.astype(np.float64)


def default_variables(rows: Predictions, names: Sequence[str]) -> tuple[Variable, Variable]:
    """Return the first two inputs, the first two principal components of an embedding, or what is predicted.

    Parameters
    ----------
    rows : Predictions
        n rows.
    names : sequence of str
        Names of the inputs, one per feature, if they are columns of numbers; else ignored.
    """
    if rows.x is None:
        return _stated(rows)
    x = rows.lazy_inputs()
    if rows.has_embedding and rows.width > 2:  # noqa: PLR2004 - of a map
        scores, shares = principal_components(x, 2)
        first, second = (f"principal component {number}, {share:.0%}" for number, share in enumerate(shares, 1))
        return Variable(first, scores[:, 0]), Variable(second, scores[:, 1])
    called = names if len(names) == rows.width else [f"input {place + 1}" for place in range(rows.width)]
    inputs = load(x).astype(np.float64, copy=False)
    if rows.width == 1:
        return Variable(called[0], inputs[:, 0]), _stated(rows)[1]
    return Variable(called[0], inputs[:, 0]), Variable(called[1], inputs[:, 1])


def _stated(rows: Predictions) -> tuple[Variable, Variable]:
    """Return the predicted mean and standard deviation, or middles and widths of intervals if there are no moments."""
    predictive = rows.distributions()
    if predictive.interval_levels is not None:
        return _interval(predictive, float(predictive.interval_levels[0]))
    try:
        mean, std = predictive.mean(), predictive.std()
    except DataError:  # Of Cauchy distributions
        return _interval(predictive, HALF)
    if not np.isfinite(mean + std).all():
        return _interval(predictive, HALF)
    return Variable("predicted mean", mean), Variable("predicted std", std)


def _interval(predictive: Predictive, level: float) -> tuple[Variable, Variable]:
    low, high = predictive.central_interval(level)
    called = f"of the {100 * level:.4g} % interval"
    return Variable(f"middle {called}", (low + high) / 2), Variable(f"width {called}", high - low)


def make_map(
    rows: Predictions, x: Variable, y: Variable, run: Run, *, level: float | None = None, independent: bool = True
) -> RegionMap:
    """Return the map of two variables of n rows, with at most 24 bins per axis.

    Parameters
    ----------
    rows : Predictions
        n rows with one target and one distribution each.
    x, y : Variable
        The variables.
    run : Run
        Seed, confidence, and whether there are replicates.
    level : float, optional
        Level of the intervals; by default, that of the metric coverage.
    independent : bool
        Whether rows are independent.
    """
    bins = int(np.clip(np.sqrt(len(rows) / ROWS_PER_CELL), MIN_BINS, MAX_BINS))
    axes = make_axis(x, bins), make_axis(y, bins)
    label, (x_bin, y_bin) = cells(*(edge_bins(v.values, axis.edges) for v, axis in zip((x, y), axes, strict=True)))
    sums = group_sums(rows, Groups(label, len(x_bin)), run, level=level)
    return RegionMap(*axes, x_bin, y_bin, sums, run.confidence, independent=independent)


def make_axis(variable: Variable, bins: int) -> Axis:
    """Return the axis of a variable: one bin per value if there are few, else bins of equal width.

    Examples
    --------
    >>> make_axis(Variable("age", np.array([1.0, 2, 2, 4])), 4).edges.tolist()
    [0.5, 1.5, 3.0, 5.0]
    """
    values = np.clip(variable.values, -LARGEST, LARGEST)
    distinct = np.unique(values)
    if len(distinct) <= bins:
        return Axis(variable.name, _edges_between(distinct), is_log=False)
    low, high = middle_range(values, TAIL)
    is_log = _is_log(float(low), float(np.quantile(values, 0.5)), float(high))
    edges = np.geomspace(low, high, bins + 1) if is_log else np.linspace(low, high, bins + 1)
    return Axis(variable.name, edges, is_log)


def _is_log(low: float, middle: float, high: float) -> bool:
    """Return whether values with these limits and this median are spread more evenly by their logarithms."""
    if low <= 0 or high / low <= LONG_RANGE:
        return False
    place = (middle - low) / (high - low)
    log_place = np.log(middle / low) / np.log(high / low)
    return bool(abs(log_place - 0.5) < abs(place - 0.5))


def _edges_between(distinct: Values) -> Values:
    """Return edges half way between increasing values, and as far beyond the outer ones."""
    if len(distinct) == 1:
        return np.array([distinct[0] - 0.5, distinct[0] + 0.5])
    middle = (distinct[1:] + distinct[:-1]) / 2
    return np.concatenate([[2 * distinct[0] - middle[0]], middle, [2 * distinct[-1] - middle[-1]]])


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """The groups of rows by a column.

    Parameters
    ----------
    column : str
        Name of the column.
    names : tuple of str
        Category of each group, (g,).
    sums : GroupSums
        Sums over the rows of each group.
    confidence : float
        Confidence of the limits.
    """

    column: str
    names: tuple[str, ...]
    sums: GroupSums
    confidence: float


def column_groups(
    rows: Predictions,
    run: Run,
    *,
    without: Collection[str] = (),
    level: float | None = None,
    independent: bool = True,
) -> tuple[ColumnGroups, ...]:
    """Return the groups by each column of categories: text or truths with 2 to 20 values, or few whole numbers.

    Parameters
    ----------
    rows : Predictions
        n rows with one target and one distribution each.
    run : Run
        Seed, confidence, and whether there are replicates.
    without : collection of str
        Names of columns that are no categories: targets, predictions and keys.
    level : float, optional
        Level of the intervals; by default, that of the metric coverage.
    independent : bool
        Whether rows are independent; if not, there are no limits.
    """
    found = []
    for column, names, groups in _categories(rows, without):
        sums = group_sums(rows, groups, run, level=level)
        found.append(ColumnGroups(column, names, sums if independent else sums.without_limits(), run.confidence))
    return tuple(found)


def _categories(rows: Predictions, without: Collection[str]) -> Iterator[tuple[str, tuple[str, ...], Groups]]:
    """Yield the columns of categories with their groups."""
    for column, values in rows.columns.items():
        if column in without or values.dtype.kind not in CATEGORIES + WHOLE_NUMBERS:
            continue
        most = MAX_NUMBERS if values.dtype.kind in WHOLE_NUMBERS else MAX_GROUPS
        names, label = np.unique(_texts(values), return_inverse=True)
        if 2 <= len(names) <= most:  # noqa: PLR2004 - one group is all rows
            yield column, tuple(names.tolist()), Groups(label, len(names))


def _texts(values: NDArray[np.generic]) -> NDArray[np.str_]:
    """Return categories as text; absent ones are a category, too."""
    if values.dtype.kind != "O":
        return values.astype(str)
    return np.where(finite_rows(values), values.astype(str), "(absent)")
