"""Pages of reports: the conclusion, the metrics, how and where a model is wrong, its worst rows, and the settings."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from calcheck.metrics import METRICS
from calcheck.render.builders.parts import note_blocks, source
from calcheck.render.builders.report import answer, legend_lines, listed, overview
from calcheck.render.cells import notes, number, reasons
from calcheck.render.document import Block, Cell, Column, Details, Legend, Paragraph, Table, row_of
from calcheck.render.json import fields_of
from calcheck.render.pages.blocks import Data, Figure, Folded, Page, Row, Section
from calcheck.render.pages.figures import figure
from calcheck.render.pages.regions import group_picture, group_table, linked_map
from calcheck.render.pictures.metrics import metric_picture
from calcheck.render.pictures.predictions import predictions_picture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from calcheck.region_maps.grid import ColumnGroups, RegionMap
    from calcheck.render.pages.blocks import PageBlock
    from calcheck.report import Report, Result
    from calcheck.statistics.row_intervals import RowIntervals

    Part = Callable[["ModelReport"], Iterator[PageBlock]]

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
    """What a page shows of a model.

    Parameters
    ----------
    name : str
        Name of the model.
    report : Report
        Its report.
    map : RegionMap, optional
        Map of two variables.
    no_map : str
        Why there is no map, and no groups.
    groups : tuple of ColumnGroups
        Groups by columns of categories.
    predictions : RowIntervals, optional
        Intervals of some rows.
    worst : list of dict
        Rows with the largest errors for their uncertainties.
    recalibration : tuple of blocks
        A correction that was fitted to other rows, with its report.
    """

    name: str
    report: Report
    map: RegionMap | None = None
    no_map: str = ""
    groups: tuple[ColumnGroups, ...] = ()
    predictions: RowIntervals | None = None
    worst: Sequence[dict[str, Any]] = ()
    recalibration: tuple[PageBlock, ...] = ()


def page_of(models: Sequence[ModelReport], *, command: str = "") -> Page:
    """Return the page of one or several models.

    Parameters
    ----------
    models : sequence of ModelReport
        The models, at least one.
    command : str
        The command line; "" if there is none.
    """
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
    yield Folded("Columns, settings and versions", (Details((*roles, *_texts(settings), *_texts(versions))),))


def _texts(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
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
