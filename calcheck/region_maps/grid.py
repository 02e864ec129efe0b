"""Maps of two variables cut into cells, with the sums over the rows of each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.region_maps.sums import Membership, group_sums
from calcheck.statistics.groups import digitize
from calcheck.validation import LARGEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions
    from calcheck.region_maps.sums import GroupSums

    Values = NDArray[np.float64]

ROWS_PER_CELL = 10  # Mean number of rows per cell below which cells become larger
MIN_BINS, MAX_BINS = 4, 24  # Number of bins per axis
TAIL = 0.005  # Share of rows beyond the outermost edges on each side, which belong to the outer bins
LONG_RANGE = 100.0  # Ratio of the edges from which a positive variable may have a logarithmic axis


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

    def assign(self, values: Values) -> NDArray[np.intp]:
        """Return the bin of each value, (n,), 0 to k - 1."""
        return digitize(values, self.edges[1:-1], equal=True).astype(np.intp)


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
    cell = axes[0].assign(x.values) * axes[1].bins + axes[1].assign(y.values)
    known, labels = np.unique(cell, return_inverse=True)
    x_bin, y_bin = np.divmod(known, axes[1].bins)
    sums = group_sums(rows, Membership(labels, len(known)), run, level=level)
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
    low, middle, high = np.quantile(values, [TAIL, 0.5, 1 - TAIL])
    if not low < high:
        low, high = distinct[0], distinct[-1]
    is_log = _is_log(float(low), float(middle), float(high))
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
