"""Map of the two columns of a region: how far the scores of each cell deviate, and the outline of the region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from calcheck.regions.binning import Binning, column_values
from calcheck.report import Curve

if TYPE_CHECKING:
    from calcheck.regions.scan import Deviations, Region


def region_map(found: Deviations, region: Region, columns: Sequence[NDArray[np.generic]]) -> tuple[Curve, ...]:
    """Return the map of the cells of the columns of a region, and its outline; nothing unless both hold numbers.

    Shapes: columns (n,) each.
    """
    binnings = found.scan.columns[region.first], found.scan.columns[region.second]
    edges = [cell_edges(binning, values) for binning, values in zip(binnings, columns, strict=True)]
    if any(len(each) == 0 for each in edges):
        return ()
    shape = len(edges[0]) - 1, len(edges[1]) - 1
    rows, deviations = found.in_cells((region.first, region.second), region.score)
    places = [(first, second) for first, second in np.ndindex(shape) if rows[first, second]]
    runs = [run or (0, length - 1) for run, length in zip((region.first_run, region.second_run), shape, strict=True)]
    if any(last >= length for (_, last), length in zip(runs, shape, strict=True)):  # Missing values
        return ()
    lines = zip(*places, strict=True)  # Bins of all cells in the first column, then in the second
    cells = [[(each[place], each[place + 1]) for place in line] for each, line in zip(edges, lines, strict=True)]
    outline = [[(each[first], each[last + 1])] for each, (first, last) in zip(edges, runs, strict=True)]
    names = binnings[0].column, binnings[1].column
    return (
        _curve("map", names, cells, [float(deviations[place]) for place in places], [int(rows[p]) for p in places]),
        _curve("region", names, outline, [region.deviation]),
    )


def cell_edges(binning: Binning, raw: NDArray[np.generic]) -> list[float]:
    """Return the edges of the bins of a column of numbers, from the smallest to the largest value; else none.

    If the first bin has a single value, which is its edge, it gets the width of the next one.
    """
    values, missing = column_values(raw)
    if values.dtype.kind != "f" or not binning.cuts:
        return []
    known = values[~missing & np.isfinite(values)]
    cuts = [float(below.value) for below, _ in binning.cuts]
    edges = [*cuts, max(float(known.max()), cuts[-1])]
    low = float(known.min())
    return [low if low < cuts[0] else cuts[0] - (edges[1] - cuts[0]), *edges]


def _curve(
    name: Literal["map", "region"],
    columns: tuple[str, str],
    cells: Sequence[Sequence[tuple[float, float]]],
    values: Sequence[float],
    rows: Sequence[int] = (),
) -> Curve:
    (start, stop), (start2, stop2) = (tuple(zip(*line, strict=True)) for line in cells)
    return Curve(
        name=name,
        x_name=columns[0],
        x=start,
        stop=stop,
        x2_name=columns[1],
        x2=start2,
        stop2=stop2,
        y=tuple(values),
        rows=tuple(rows),
    )
