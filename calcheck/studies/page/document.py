"""The page of a report: its blocks, from the answer to the maps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from calcheck.charts.picture import PERFECT, Axis, Intervals, Mark, Panel, Picture, Points
from calcheck.metrics import METRICS
from calcheck.regions.maps import (
    ColumnGroups,
    GroupSums,
    RegionMap,
    SquareSums,
    coverage_limits,
    histogram_limits,
    mean_square_limits,
)
from calcheck.render.cells import ABSENT, notes, number, reasons
from calcheck.render.data import fields_of
from calcheck.render.document import Block, Cell, Column, Details, Legend, Paragraph, Table, note_blocks, row_of, source
from calcheck.render.page import Data, Figure, Folded, LinkedMap, Page, PageBlock, Row, Section, figure
from calcheck.render.pictures import deviations, histogram_picture, map_picture, metric_picture, predictions_picture
from calcheck.render.report_document import answer, legend_lines, listed, overview

if TYPE_CHECKING:
    from calcheck.regions import maps
    from calcheck.report import Report, Result
    from calcheck.statistics.curves import RowIntervals
    from calcheck.typing import Indices, Values

Part = Callable[["ModelReport"], Iterator[PageBlock]]


INSIDE = Cell("inside", "pass")
UNKNOWN = Cell(ABSENT, "none")
WORST_CELLS = 5  # Number of cells to choose by their deviation
ROUNDING = 1e-6  # of counts, relative to the number of rows
DIGITS = 7  # Significant digits of sums in the data of a map


@dataclass(frozen=True, eq=False)
class Quantity:
    """A quantity of g groups, with its limits for right models."""

    key: str  # Its name in the data of a map
    name: str
    values: Values  # (g,)
    limits: tuple[Values, Values] | None  # (g,) each, lower and upper limits; None if they are not known
    # below, above: how a model is wrong if the value is below, or above its limits
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


def _square_limits(squares: SquareSums, n: Indices, confidence: float) -> tuple[Values, Values] | None:
    if squares.expected is None or squares.variance is None:
        return None
    return mean_square_limits(n, squares.expected, squares.variance, confidence)


def bins_outside(sums: GroupSums, confidence: float) -> Indices | None:
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
        "x": _map_axis(found.x),
        "y": _map_axis(found.y),
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


def _map_axis(axis: maps.Axis) -> dict[str, Any]:
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


HOW = ("pit", "ece", "coverage", "ence", "zms", "stratified-coverage", "confidence-curve")
"""Metrics whose pictures show how a model is wrong."""
DRAWN = frozenset({*HOW, "cce"})
"""Metrics whose pictures a page shows."""
ORDER = ("fail", "undecided", "pass", "none")
REGION_NOTE = (
    "The limits hold for a region that is chosen without looking at the targets. Of many regions of a right model, 1 in"
    " 20 is beyond them."
)
DEPENDENT_NOTE = (
    "There are no limits of right models for regions and groups, as rows depend on each other. calcheck slices --by"
    " tests groups of dependent rows."
)


@dataclass(frozen=True, eq=False)
class ModelReport:
    """What a page shows of a model."""

    name: str  # Name of the model
    report: Report
    map: RegionMap | None = None  # Map of two variables
    no_map: str = ""  # Why there is no map, and no groups
    groups: tuple[ColumnGroups, ...] = ()  # Groups by columns of categories
    predictions: RowIntervals | None = None  # Intervals of some rows
    worst: Sequence[dict[str, Any]] = ()  # Rows with the largest errors for their uncertainties
    recalibration: tuple[PageBlock, ...] = ()  # A correction that was fitted to other rows, with its report


def page_of(models: Sequence[ModelReport], *, command: str = "") -> Page:
    """Return the page of one or several models."""
    sections = (
        _of_each("Conclusion", models, _conclusion, beside=True),
        Section("Side by side", (_side_by_side(models),) if len(models) > 1 else ()),
        _of_each("Metrics", models, _metrics),
        Section("How", tuple(_how(models))),
        _of_each("Where", models, _where, beside=True),
        _of_each("Groups", models, _groups),
        _of_each("Recalibration", models, _recalibration),
        _of_each("Predictions", models, _predictions),
        _of_each("Worst rows", models, _worst),
        _of_each("Settings", models, _settings),
        Section("Definitions", (_definitions(models),)),
        Section("Command", (Paragraph(command),) if command else ()),
    )
    blocks: list[PageBlock] = [section for section in sections if section.blocks]
    blocks += [Data("report", _json(each.report)) for each in models]
    title = f"calcheck: {', '.join(each.name for each in models)}"
    return Page(title, tuple(blocks), models[0].report.calcheck)


def _of_each(title: str, models: Sequence[ModelReport], part: Part, *, beside: bool = False) -> Section:
    """Return a part of the page: of one model, or of each under its name, one above or beside the other."""
    if len(models) == 1:
        return Section(title, tuple(part(models[0])))
    found = ((each.name, tuple(part(each))) for each in models)
    named = tuple(Section(name, blocks) for name, blocks in found if blocks)
    return Section(title, (Row(named),) if beside and named else named)


def _conclusion(model: ModelReport) -> Iterator[Block]:
    yield source(model.report.input)
    if model.report.conclusion is not None:
        yield answer(model.report.conclusion, model.report.input.n)


def _metrics(model: ModelReport) -> Iterator[Block]:
    """Yield the metrics that fail, those that pass, and those that were not computed with the reasons."""
    report = model.report
    results = sorted(report.results, key=lambda result: ORDER.index(result.verdict))
    yield replace(overview(results), sortable=True)
    if lines := legend_lines(report, details=False):
        yield Legend(tuple(lines))
    if report.skipped:
        rows = tuple(row_of(names, reason) for names, reason in reasons(report.skipped))
        yield Table((Column("not computed"), Column("reason")), rows)
    yield from note_blocks(notes(replace(report, skipped=())))


def _how(models: Sequence[ModelReport]) -> Iterator[Row]:
    """Yield the pictures of the metrics, those of the same metric of several models beside each other."""
    if len(models) == 1:
        found = (each for metric in HOW for each in _figures(models[0].report, metric))
        yield from [Row(figures)] if (figures := tuple(found)) else []
        return
    for metric in HOW:
        sections = (Section(each.name, tuple(_figures(each.report, metric))) for each in models)
        if shown := tuple(section for section in sections if section.blocks):
            yield Row(shown)


def _figures(report: Report, metric: str) -> Iterator[Figure]:
    """Yield the picture of a metric, if the report has its curves."""
    pictures = (metric_picture(report, result) for result in report.results if result.metric == metric)
    yield from (figure(picture) for picture in pictures if picture is not None)


def _where(model: ModelReport) -> Iterator[PageBlock]:
    if model.map is None:
        if model.no_map:
            yield Paragraph(f"No map: {model.no_map}.")
        return
    yield Paragraph(DEPENDENT_NOTE if _is_dependent(model) else REGION_NOTE)
    yield linked_map(model.map)
    yield from _figures(model.report, "cce")


def _groups(model: ModelReport) -> Iterator[PageBlock]:
    if model.groups and _is_dependent(model):
        yield Paragraph(DEPENDENT_NOTE)
    for groups in model.groups:
        yield group_table(groups)
        yield Figure(group_picture(groups), ())


def _is_dependent(model: ModelReport) -> bool:
    """Return whether rows depend on each other."""
    return model.report.has_dependent_rows


def _recalibration(model: ModelReport) -> Iterator[PageBlock]:
    yield from model.recalibration


def _predictions(model: ModelReport) -> Iterator[PageBlock]:
    if model.predictions is not None:
        yield Row((figure(predictions_picture(model.predictions)),))


def _worst(model: ModelReport) -> Iterator[Block]:
    if model.worst:
        yield replace(listed("", model.worst), sortable=True)


def _settings(model: ModelReport) -> Iterator[PageBlock]:
    """Yield the settings and versions, and the files with their hashes."""
    report = model.report
    settings = {name: value for name, value in report.settings.items() if name != "versions"}
    versions = {"calcheck": report.calcheck, **report.settings.get("versions", {})}
    columns = (Column("file"), Column("role"), Column("rows", "right"), Column("SHA-256"))
    files = tuple(row_of(each.path, each.role, f"{each.rows:,}", each.sha256) for each in report.input.files)
    yield Table(columns, files)
    roles = tuple(report.input.columns.items())
    yield Folded("Columns, settings and versions", (Details((*roles, *_names(settings), *_names(versions))),))


def _names(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, "–" if value is None else str(value)) for name, value in values.items())


def _side_by_side(models: Sequence[ModelReport]) -> Table:
    """Return the values of all models, one line per metric, with their verdicts."""
    values = [{result.metric: result for result in each.report.results} for each in models]
    names = dict.fromkeys(name for known in values for name in known)
    columns = (Column("metric"), *(Column(each.name, "right") for each in models))
    rows = tuple((Cell(name), *(_value(known.get(name)) for known in values)) for name in names)
    return Table(columns, rows, sortable=True)


def _value(result: Result | None) -> Cell:
    return Cell("–") if result is None else Cell(number(result.number), result.verdict)


def _definitions(models: Sequence[ModelReport]) -> Folded:
    """Return what each metric is, its options, and where it is defined."""
    results = {result.metric: result for each in models for result in each.report.results}
    columns = (Column("metric"), Column("definition"), Column("options"), Column("source"))
    rows = tuple(
        row_of(name, result.summary, _options(result), METRICS[name].info.source) for name, result in results.items()
    )
    return Folded(f"{len(rows)} metrics", (Table(columns, rows),))


def _options(result: Result) -> str:
    return ", ".join(f"{name} {value}" for name, value in result.options.items() if value is not None)


def _json(report: Report) -> str:
    """Return the report as JSON, without the curves that its pictures show."""
    plain = replace(report, results=tuple(replace(result, curves=()) for result in report.results))
    return json.dumps(fields_of(plain), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
