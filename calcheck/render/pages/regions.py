"""Blocks about regions and groups of rows: what they show, and what a right model would show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from calcheck.charts.picture import PERFECT, Axis, Intervals, Mark, Panel, Picture, Points
from calcheck.region_maps.sums import coverage_limits, histogram_limits, mean_square_limits
from calcheck.render.cells import ABSENT, number
from calcheck.render.document import Cell, Column, Table, row_of
from calcheck.render.pages.blocks import LinkedMap
from calcheck.render.pictures.regions import deviations, histogram_picture, map_picture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from calcheck.region_maps import grid
    from calcheck.region_maps.grid import ColumnGroups, RegionMap
    from calcheck.region_maps.sums import GroupSums, SquareSums

    Values = NDArray[np.float64]

INSIDE = Cell("inside", "pass")
UNKNOWN = Cell(ABSENT, "none")
WORST_CELLS = 5  # Number of cells to choose by their deviation
ROUNDING = 1e-6  # of counts, relative to the number of rows
DIGITS = 7  # Significant digits of sums in the data of a map


@dataclass(frozen=True, eq=False)
class Quantity:
    """A quantity of g groups, with its limits for right models.

    Parameters
    ----------
    key : str
        Its name in the data of a map.
    name : str
        Its name.
    values : (g,)
        Values.
    limits : tuple of (g,), optional
        Lower and upper limits; None if they are not known.
    below, above : str
        How a model is wrong if the value is below, or above its limits.
    """

    key: str
    name: str
    values: Values
    limits: tuple[Values, Values] | None
    below: str
    above: str

    def cells(self, group: int) -> tuple[Cell, Cell, Cell]:
        """Return the value of a group, its limits, and the judgement."""
        return Cell(number(self.values[group])), Cell(self._range(group)), self._judgement(group)

    def _range(self, group: int) -> str:
        limits = self._limits(group)
        return " to ".join(map(number, limits)) or ABSENT

    def _limits(self, group: int) -> tuple[float, ...]:
        """Return the limits of a group; none if they are not known."""
        found = tuple(float(side[group]) for side in self.limits or ())
        return found if np.isfinite(found).all() else ()

    def _judgement(self, group: int) -> Cell:
        """Return whether the value of a group is inside its limits, and how the model is wrong if it is not."""
        if not (limits := self._limits(group)):
            return UNKNOWN
        if self.values[group] < limits[0]:
            return Cell(self.below, "fail")
        return Cell(self.above, "fail") if self.values[group] > limits[1] else INSIDE


def quantities(sums: GroupSums, confidence: float) -> list[Quantity]:
    """Return coverage and mean squared z-score of groups, as far as the predictions state them."""
    found, n = [], sums.n
    if (coverage := sums.coverage) is not None:
        limits = None if coverage.expected is None else coverage_limits(n, coverage.expected, confidence)
        name = f"coverage of {100 * sums.level:.4g} % intervals"
        found.append(Quantity("coverage", name, coverage.covered / n, limits, "too narrow", "too wide"))
    if (squares := sums.squares) is not None:
        limits = _square_limits(squares, n, confidence)
        name = "mean squared z-score"
        found.append(Quantity("squares", name, squares.total / n, limits, "too wide", "too narrow"))
    return found


def _square_limits(squares: SquareSums, n: NDArray[np.intp], confidence: float) -> tuple[Values, Values] | None:
    if squares.expected is None or squares.variance is None:
        return None
    return mean_square_limits(n, squares.expected, squares.variance, confidence)


def bins_outside(sums: GroupSums, confidence: float) -> NDArray[np.intp] | None:
    """Return the number of bins of the PIT histogram beyond their limits, (g,); None without limits."""
    if sums.pit is None or sums.pit.variance is None:
        return None
    low, high = histogram_limits(sums.n, sums.pit.variance, confidence)
    room = ROUNDING * sums.n[:, None]
    outside = (sums.pit.counts < low - room) | (sums.pit.counts > high + room)
    return np.asarray(outside.sum(axis=1))


def linked_map(found: RegionMap) -> LinkedMap:
    """Return the block of a map, of which regions can be selected in a browser."""
    total = found.limited.total()
    return LinkedMap(
        map_picture(found),
        histogram_picture(total, found.confidence),
        _region_table(total, found.confidence),
        _data(found),
    )


def group_table(groups: ColumnGroups) -> Table:
    """Return the table about groups: their coverage and mean squared z-score, with the limits of right models."""
    found = quantities(groups.sums, groups.confidence)
    limits = f"{100 * groups.confidence:.4g} % of {PERFECT}"
    heads = [(Column(each.name, "right"), Column(limits, "right"), Column("")) for each in found]
    columns = (Column(groups.column), Column("rows", "right"), *(column for head in heads for column in head))
    rows = tuple(
        (*row_of(name, f"{groups.sums.n[place]:,}"), *(cell for each in found for cell in each.cells(place)))
        for place, name in enumerate(groups.names)
    )
    return Table(columns, rows, sortable=True)


def group_picture(groups: ColumnGroups) -> Picture:
    """Return the picture of a table about groups: their values, with the limits of right models."""
    panels = tuple(_group_panel(each, groups) for each in quantities(groups.sums, groups.confidence))
    title = f"Groups by {groups.column}"
    if any(isinstance(mark, Intervals) for panel in panels for mark in panel.marks):
        return Picture(panels, title, "A right model: the points are inside the bars.", f"{title}, with their limits.")
    return Picture(panels, title, "There are no limits of right models.", f"{title}, without limits.")


def _group_panel(quantity: Quantity, groups: ColumnGroups) -> Panel:
    place = [float(number) for number in range(len(groups.names))]
    name = f"{100 * groups.confidence:.4g} % of {PERFECT}"
    marks: list[Mark] = []
    if quantity.limits is not None:
        low, high = quantity.limits
        marks.append(Intervals(place, low.tolist(), high.tolist(), name))
    marks.append(Points(place, quantity.values.tolist(), "observed"))
    return Panel(tuple(marks), Axis(groups.column, names=groups.names), Axis(quantity.name))


def _region_table(total: GroupSums, confidence: float) -> Table:
    """Return the table about one region, here about all rows."""
    columns = (
        Column(""),
        Column("region", "right"),
        Column(f"{100 * confidence:.4g} % of {PERFECT}", "right"),
        Column(""),
    )
    rows = [(*row_of("rows", f"{total.n[0]:,}", ABSENT), UNKNOWN)]
    rows += [(Cell(each.name), *each.cells(0)) for each in quantities(total, confidence)]
    outside = bins_outside(total, confidence)
    if outside is not None:
        count = int(outside[0])
        verdict = Cell("wrong shape", "fail") if count else INSIDE
        rows.append((*row_of("PIT bins beyond their limits", f"{count}", "0"), verdict))
    return Table(columns, tuple(rows))


def _data(found: RegionMap) -> dict[str, Any]:
    """Return what the script of the page needs to describe any region: the sums over the rows of each cell."""
    sums, confidence = found.limited, found.confidence
    cells: dict[str, Any] = {"x": found.x_bin.tolist(), "y": found.y_bin.tolist(), "n": sums.n.tolist()}
    if sums.coverage is not None:
        cells |= _rounded({"covered": sums.coverage.covered, "covered_expected": sums.coverage.expected})
    if sums.squares is not None:
        squares = sums.squares
        cells |= _rounded(
            {
                "squares": squares.total,
                "squares_expected": squares.expected,
                "squares_variance": squares.variance,
            }
        )
    if sums.pit is not None:
        cells |= _rounded({"pit": sums.pit.counts, "pit_variance": _equal_columns_once(sums.pit.variance)})
    return {
        "x": _axis(found.x),
        "y": _axis(found.y),
        "cells": cells | _rounded({"deviation": deviations(found.sums)[0]}),
        "quantities": [
            {"key": each.key, "below": each.below, "above": each.above} for each in quantities(sums, confidence)
        ],
        "confidence": confidence,
        "normal_quantile": float(ndtri((1 + confidence) / 2)),
        "regions": [list(region) for region in _regions(found)],
    }


def _equal_columns_once(values: Values | None) -> Values | None:
    """Return one column of (g, k) values if all columns are equal, as the variances of continuous distributions are."""
    return values[:, :1] if values is not None and (values == values[:, :1]).all() else values


def _axis(axis: grid.Axis) -> dict[str, Any]:
    return {"name": axis.name, "edges": axis.edges.tolist(), "log": axis.is_log}


def _rounded(columns: dict[str, Values | None]) -> dict[str, Any]:
    """Return columns as lists of numbers with few digits; those that are not finite are None."""
    return {name: _numbers(values) for name, values in columns.items() if values is not None}


def _numbers(values: Values) -> list[Any]:
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    shown = (float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values.tolist())
    return [int(value) if value is not None and value.is_integer() else value for value in shown]


def _regions(found: RegionMap) -> Iterator[tuple[int, int, int, int]]:
    """Yield regions to choose from, by their first and last bins along x and y: all, halves, and deviating cells."""
    x_last, y_last = found.x.bins - 1, found.y.bins - 1
    x_half, y_half = found.x.bins // 2, found.y.bins // 2
    yield 0, x_last, 0, y_last
    if x_half:
        yield from ((0, x_half - 1, 0, y_last), (x_half, x_last, 0, y_last))
    if y_half:
        yield from ((0, x_last, 0, y_half - 1), (0, x_last, y_half, y_last))
    for cell in _most_deviating(deviations(found.sums)[0]):
        x, y = int(found.x_bin[cell]), int(found.y_bin[cell])
        yield x, x, y, y


def _most_deviating(deviation: Values) -> Sequence[int]:
    """Return the cells with the largest deviations, the largest first."""
    size = np.nan_to_num(np.abs(deviation))
    order = np.argsort(-size, kind="stable")[:WORST_CELLS]
    return [int(cell) for cell in order if size[cell] > 0]
