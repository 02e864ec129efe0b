"""The page of a report: its blocks, from the answer to the maps."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.charts.picture import PERFECT, Picture
from calcheck.conclusion.answer import Estimate, is_inside
from calcheck.core import sc
from calcheck.core.text import count_of, percent
from calcheck.errors import DataError
from calcheck.evaluation import PLACE
from calcheck.execution.run import Run
from calcheck.inference.metric_protocol import RowResults, ranked_rows
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS
from calcheck.metrics.base import Metric, inapplicable_reason
from calcheck.metrics.coverage import Coverage
from calcheck.predictions import InMemory, Predictions
from calcheck.regions import maps
from calcheck.render import document as documents
from calcheck.render import page
from calcheck.render.numbers_and_notes import ABSENT, notes, number, reasons
from calcheck.render.pictures import answer_picture, metric_picture
from calcheck.render.screen import screen_answer
from calcheck.reports import Report
from calcheck.statistics.curves import FEW_ROWS, RowIntervals, row_intervals
from calcheck.studies.page import picture as pictures
from calcheck.typing import Mask, Values

if TYPE_CHECKING:
    from calcheck.new_inputs.transfer import Transferred

Part = Callable[["ModelReport"], Iterable[page.PageBlock]]
INSIDE = documents.Cell("inside", "pass")
UNKNOWN = documents.Cell(ABSENT, "none")
DIGITS = 7  # Significant digits of sums in the data of a map
NO_WEIGHTS = "means are weighted by sampling weights, and the map and the groups of a page count rows"
IN_BATCHES = "the rows are processed in batches"
BY_SIZE = ("zms", "interval-score")  # metrics whose results of rows are sizes of errors for their uncertainties
WORST = 20  # number of rows in the list of the worst
NARROW = 290  # Width of a panel of several answers, of which two are side by side, in pixels
METRIC = "metric-"  # Before the identifiers of definitions
PLACES = ("inputs", "time", "groups")  # Topics of effects that are about places


def _cells(quantity: maps.Quantity, group: int) -> tuple[documents.Cell, documents.Cell, documents.Cell]:
    """Return the value of a group, its limits, and the judgement."""
    limits, fault = quantity.limits_of(group), quantity.fault(group)
    judged = UNKNOWN if fault is None else documents.Cell(fault, "fail") if fault else INSIDE
    return (
        documents.Cell(number(quantity.values[group])),
        documents.Cell(" to ".join(map(number, limits)) or ABSENT),
        judged,
    )


def group_table(groups: maps.ColumnGroups) -> documents.Table:
    """Return the table about groups: their coverage and mean squared z-score, with the limits of right models."""
    found = maps.quantities(groups.sums, groups.confidence)
    limits = documents.Column(f"{percent(groups.confidence)} of {PERFECT}", "right", rank=1)
    heads = [(documents.Column(each.name, "right"), limits, documents.Column("")) for each in found]
    shown = (column for head in heads for column in head)
    columns = (documents.Column(groups.column), *documents.number_columns("rows"), *shown)
    rows = tuple(
        (
            *documents.row_of(name, f"{groups.sums.n[place]:,}"),
            *(cell for each in found for cell in _cells(each, place)),
        )
        for place, name in enumerate(groups.names)
    )
    return documents.Table(columns, rows, sortable=True)


def _region_table(total: maps.GroupSums, confidence: float) -> documents.Table:
    """Return the table about one region, here about all rows."""
    columns = (
        documents.Column(""),
        documents.Column("region", "right"),
        documents.Column(f"{percent(confidence)} of {PERFECT}", "right", rank=1),
        documents.Column(""),
    )
    rows = [(*documents.row_of("rows", f"{total.n[0]:,}", ABSENT), UNKNOWN)]
    rows += [(documents.Cell(each.name), *_cells(each, 0)) for each in maps.quantities(total, confidence)]
    outside = maps.bins_outside(total, confidence)
    if outside is not None:
        count = int(outside[0])
        verdict = documents.Cell("wrong shape", "fail") if count else INSIDE
        rows.append((*documents.row_of("PIT bins beyond their limits", f"{count}", "0"), verdict))
    return documents.Table(columns, tuple(rows))


def _data(found: maps.RegionMap) -> dict[str, Any]:
    """Return what the script of the page needs to describe any region: the sums over the rows of each cell."""
    sums, confidence = found.limited, found.confidence
    columns = sums.arrays()
    if sums.pit_variance is not None and (sums.pit_variance == sums.pit_variance[:, :1]).all():
        columns["pit_variance"] = sums.pit_variance[:, :1]  # Of continuous distributions, all columns are equal
    columns["deviation"] = found.sums.deviations()[0]
    cells: dict[str, Any] = {"x": found.x_bin.tolist(), "y": found.y_bin.tolist(), "n": sums.n.tolist()}
    axes = {"x": found.x, "y": found.y}
    return {
        **{key: {"name": axis.name, "edges": axis.edges.tolist(), "log": axis.is_log} for key, axis in axes.items()},
        "cells": cells | {name: _numbers(values) for name, values in columns.items()},
        "quantities": [
            {"key": each.key, "below": each.below, "above": each.above} for each in maps.quantities(sums, confidence)
        ],
        "confidence": confidence,
        "normal_quantile": float(sc.ndtri((1 + confidence) / 2)),
        "regions": [list(region) for region in found.regions()],
    }


def _numbers(values: Values) -> list[Any]:
    """Return values as a list of numbers with few digits; those that are not finite are None."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    shown = (float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values.tolist())
    return [int(value) if value is not None and value.is_integer() else value for value in shown]


HOW = (("pit", "coverage", "ece"), ("zms", "ence", "stratified-coverage"), ("confidence-curve",))
"""Metrics whose pictures show how a model is wrong; those of a group show the same in different ways."""
DRAWN = frozenset({*(name for names in HOW for name in names), "cce"})
"""Metrics whose pictures a page shows."""
ORDER, ANSWERS = ("fail", "undecided", "pass", "none"), ("no", "not-shown", "yes")
REGION_NOTE = (
    "The limits hold for a region that is chosen without looking at the targets. Of many regions of a right model, 1 in"
    " 20 is beyond them."
)
NEIGHBOR_NOTE = (
    "A test at an input is one of its neighborhood: it also finds inputs near a region where the model is wrong, which"
    " are right themselves."
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
    map: maps.RegionMap | None = None  # Map of two variables
    no_map: str = ""  # Why there is no map, and no groups
    groups: tuple[maps.ColumnGroups, ...] = ()  # Groups by columns of categories
    predictions: RowIntervals | None = None  # Intervals of some rows
    cause: Picture | None = None  # Of the most likely cause of a no
    worst: Sequence[dict[str, Any]] = ()  # Rows with the largest errors for their uncertainties
    recalibration: tuple[page.PageBlock, ...] = ()  # A correction that was fitted to other rows, with its report
    new: pictures.NewRowsShown | None = None  # New rows, for which there is an answer, too
    outputs: "tuple[ModelReport, ...]" = ()  # The same about each of several targets


def page_of(models: Sequence[ModelReport], *, command: str = "", legend: bool = True) -> page.Page:
    """Return the page of one or several models, and of each of their targets if there are several."""
    files, models = models, [each for model in models for each in (model, *sorted(model.outputs, key=_urgency))]
    how, where = page.Section("How", tuple(_how(models))), _of_each("Where", models, _where, beside=True)
    sections = (
        _of_each("Answer", models, partial(_answer, width=page.MAP_WIDTH if len(models) == 1 else NARROW), beside=True),
        _of_each(
            "Rules", models, lambda model: [documents.gates_table(model.report.gates)] if model.report.gates else []
        ),
        page.Section("Side by side", (_side_by_side(models),) if len(models) > 1 else ()),
        *((where, how) if any(map(_is_local, models)) else (how, where)),
        _of_each("New inputs", models, _new_inputs),
        _of_each("Metrics", models, _metrics),
        _of_each("Groups", models, _groups),
        _of_each("Recalibration", models, lambda model: model.recalibration),
        _of_each("Predictions", models, _predictions),
        _of_each("Worst rows", models, _worst),
        _of_each("Settings", files, _settings),
        page.Section("Definitions", (_definitions(models),)),
        page.Section("Command", (documents.Paragraph(command),) if command else ()),
    )
    shown = tuple(section for section in sections if section.blocks)
    about = page.about([each.report.input for each in files])
    blocks: list[page.PageBlock] = [page.Contents(about, tuple(section.title for section in shown))]
    blocks += [*(shown if legend else page.without_legends(shown))]
    blocks += [page.Data("report", page.report_data(each.report)) for each in files]
    title = f"calcheck: {', '.join(each.name for each in files)}"
    return page.Page(title, tuple(blocks), models[0].report.calcheck)


def _urgency(model: ModelReport) -> int:
    """Return the place of a target among others: those that are wrong are first, right ones last."""
    found = model.report.conclusion
    return len(ANSWERS) if found is None else ANSWERS.index(found.answer)


def _is_local(model: ModelReport) -> bool:
    """Return whether the model is wrong somewhere rather than everywhere."""
    found, region = model.report.conclusion, model.report.region
    if found is None:
        return False
    if region is not None and region.other_value is not None and found.tolerance is not None:
        other = region.other_value
        if is_inside(Estimate("bias" if region.level is None else "size", other, other, other), found.tolerance):
            return True
    wrong = [each.topic in PLACES for each in found.effects if each.within is False]
    return bool(wrong) and all(wrong)


def _of_each(title: str, models: Sequence[ModelReport], part: Part, *, beside: bool = False) -> page.Section:
    """Return a part of the page: of one model, or of each under its name, one above or beside the other."""
    if len(models) == 1:
        return page.Section(title, tuple(part(models[0])))
    found = ((each.name, tuple(part(each))) for each in models)
    named = tuple(page.Section(name, blocks) for name, blocks in found if blocks)
    return page.Section(title, (page.Row(named),) if beside and named else named)


def _answer(model: ModelReport, width: float) -> Iterator[page.PageBlock]:
    """Yield the answer, its picture beside where the model is wrong and what to do, and the sentence of each topic."""
    report = model.report
    if report.conclusion is None:
        return
    told = documents.with_region(documents.answer(report.conclusion), report)
    screen = screen_answer(report, report.conclusion)
    yield replace(told, answer=screen.answer, effects=(), commands=())
    picture = None if report.outputs else answer_picture(report)
    places = tuple(each for each in told.effects if each[0] == "where")
    rest = replace(told, question="", effects=places, commands=screen.commands, undoes=screen.undoes)
    yield page.Row((*(() if picture is None else (page.Figure(replace(picture, title=""), width=width),)), rest))
    yield documents.Details(tuple((topic, cell.text) for topic, cell in told.effects if topic != "where"))
    if model.cause is not None:
        yield page.Figure(model.cause, width=page.MAP_WIDTH)


def _metrics(model: ModelReport) -> Iterator[documents.Block]:
    """Yield the metrics that fail, those that pass, and those that were not computed with the reasons."""
    report = model.report
    results = sorted(report.results, key=lambda result: ORDER.index(result.verdict))
    if report.overall is not None:
        together = documents.describe_overall(report.overall, report, brief=True)
        yield documents.Paragraph(together.removesuffix(documents.MORE))
    yield _linked(documents.overview(results))
    if lines := documents.legend_lines(report, details=False):
        yield documents.Legend(tuple(lines))
    if report.skipped:
        rows = tuple(documents.row_of(names, reason) for names, reason in reasons(report.skipped))
        yield documents.Table((documents.Column("not computed"), documents.Column("reason")), rows)
    yield from documents.note_blocks(notes(replace(report, skipped=())))


def _how(models: Sequence[ModelReport]) -> Iterator[page.PageBlock]:
    """Yield one picture of each group of metrics, the one that fails first, and the others folded."""
    failing = {each.metric for model in models for each in model.report.results if each.verdict == "fail"}
    drawn = {metric: tuple(_row(models, metric)) for names in HOW for metric in names}
    groups = [sorted(filter(drawn.get, names), key=lambda name: name not in failing) for names in HOW]
    shown = sorted((names[0] for names in groups if names), key=lambda name: name not in failing)
    if len(models) == 1:
        yield from [page.Row(tuple(each for name in shown for each in drawn[name]))] if shown else []
    else:
        yield from (page.Row(drawn[name]) for name in shown)
    if rest := tuple(each for names in groups for name in names[1:] for each in drawn[name]):
        yield page.Folded("More pictures", (page.Row(rest),))


def _row(models: Sequence[ModelReport], metric: str) -> Iterator[page.PageBlock]:
    """Yield the picture of a metric; those of several models under their names."""
    for each in models:
        found = tuple(_figures(each.report, metric))
        yield from found if len(models) == 1 or not found else [page.Section(each.name, found)]


def _linked(table: documents.Table) -> documents.Table:
    """Return a table about metrics, whose names lead to their definitions."""
    rows = tuple((replace(row[0], link=METRIC + row[0].text), *row[1:]) for row in table.rows)
    return replace(table, rows=rows, sortable=True)


def _figures(report: Report, metric: str) -> Iterator[page.Figure]:
    """Yield the picture of a metric, if the report has its curves."""
    drawn = (metric_picture(report, result) for result in report.results if result.metric == metric)
    yield from (page.figure(picture) for picture in drawn if picture is not None)


def _where(model: ModelReport) -> Iterator[page.PageBlock]:
    if model.map is None:
        if model.no_map:
            yield documents.Paragraph(f"No map: {model.no_map}.")
        return
    yield documents.Paragraph(DEPENDENT_NOTE if model.report.has_dependent_rows else REGION_NOTE)
    total, confidence = model.map.limited.total(), model.map.confidence
    yield page.LinkedMap(
        pictures.map_picture(model.map),
        pictures.histogram_picture(total, confidence),
        tuple(pictures.local_pictures(model.map)),
        _region_table(total, confidence),
        _data(model.map),
    )
    if found := tuple(_figures(model.report, "cce")):
        yield page.Folded("Tests at inputs: cce", (documents.Paragraph(NEIGHBOR_NOTE), page.Row(found)))


def _new_inputs(model: ModelReport) -> Iterator[page.PageBlock]:
    """Yield the answer at new inputs, their places on the map, and their distances from the tested ones."""
    yield from documents.answer_on(model.report)
    if model.new is not None:
        yield page.Row(tuple(page.figure(each) for each in pictures.new_inputs_pictures(model.new, model.map)))


def _groups(model: ModelReport) -> Iterator[page.PageBlock]:
    if model.groups and model.report.has_dependent_rows:
        yield documents.Paragraph(DEPENDENT_NOTE)
    for groups in model.groups:
        yield group_table(groups)
        yield page.Figure(pictures.group_picture(groups), ())


def _predictions(model: ModelReport) -> Iterator[page.PageBlock]:
    if model.predictions is not None:
        yield page.Row((page.figure(pictures.predictions_picture(model.predictions)),))


def _worst(model: ModelReport) -> Iterator[documents.Block]:
    if model.worst:
        yield replace(documents.listed("", model.worst), sortable=True)
    yield from (replace(table, sortable=True) for table in documents.extreme_rows(model.report.results))


def _settings(model: ModelReport) -> Iterator[page.PageBlock]:
    """Yield the settings and versions, and the files with their hashes."""
    report = model.report
    settings = {name: value for name, value in report.settings.items() if name != "versions"}
    versions = {"calcheck": report.calcheck, **report.settings.get("versions", {})}
    columns = (*map(documents.Column, ("file", "role")), *documents.number_columns("rows"), documents.Column("SHA-256"))
    files = tuple(documents.row_of(each.path, each.role, f"{each.rows:,}", each.sha256) for each in report.input.files)
    yield documents.Table(columns, files)
    named = [
        (name, "–" if value is None else str(value)) for each in (settings, versions) for name, value in each.items()
    ]
    items = (*report.input.columns.items(), *named)
    yield page.Folded("Columns, settings and versions", (documents.Details(items),))


def _side_by_side(models: Sequence[ModelReport]) -> documents.Table:
    """Return the values of all models, one line per metric, with their verdicts."""
    values = [{result.metric: result for result in each.report.results if not result.slice} for each in models]
    names = dict.fromkeys(name for known in values for name in known)
    columns = (documents.Column("metric"), *documents.number_columns(*(each.name for each in models)))
    rows = []
    for name in names:
        results = [known.get(name) for known in values]
        cells = (documents.Cell(number(each.number), each.verdict) if each else documents.Cell("–") for each in results)
        rows.append((documents.Cell(name), *cells))
    return _linked(documents.Table(columns, tuple(rows)))


def _definitions(models: Sequence[ModelReport]) -> page.Folded:
    """Return what each metric is, its options, and where it is defined."""
    results = {result.metric: result for each in models for result in each.report.results}
    items, known = [], METRICS | TWO_SAMPLE_METRICS
    for name, result in results.items():
        options = ", ".join(f"{option} {value}" for option, value in result.options.items() if value is not None)
        items.append((name, " · ".join(filter(None, (result.summary, options, known[name].info.source)))))
    return page.Folded(count_of(len(items), "metric"), (documents.Details(tuple(items), METRIC),))


def model_report(
    name: str,
    report: Report,
    evaluated: "EvaluatedRows",
    run: Run,
    *,
    inputs: Sequence[str] = (),
    plot_by: Sequence[str] = (),
    used: Collection[str] = (),
) -> ModelReport:
    """Return what a page shows of a model."""
    outputs = tuple(
        model_report(each, own, evaluated.output(each), run, inputs=inputs, plot_by=plot_by, used=used)
        for each, own in report.of_outputs().items()
    )
    if outputs:
        return ModelReport(name, report, outputs=outputs)
    rows = evaluated.shown
    if rows is None:
        return ModelReport(name, report, no_map=IN_BATCHES)
    if reason := inapplicable_reason(Coverage, rows):
        return ModelReport(name, report, no_map=f"coverage {reason}")
    if any(message.code == "weighted" for result in report.results for message in result.warnings):
        return ModelReport(name, report, no_map=NO_WEIGHTS, worst=evaluated.worst(run))
    inside = evaluated.inside
    x, y = maps.named_variables(rows, plot_by) if plot_by else maps.default_variables(rows, inputs, inside)
    independent = not report.has_dependent_rows
    level = next((each.options["level"] for each in report.results if each.metric == "coverage"), None)
    causes = () if report.conclusion is None else report.conclusion.causes[:1]
    local: dict[str, Values] = {}  # Local factors and shifts of rows along their inputs, (n,) each
    for metric in (METRICS["local-scale"](), METRICS["local-bias"]()):
        if rows.x is not None and not inapplicable_reason(type(metric), rows):
            with suppress(DataError):
                own, source = metric.with_defaults(rows), InMemory(rows)
                local |= own.evaluate(own.fit(source, run), source, replace(run, keep_rows=True)).columns
    return ModelReport(
        name,
        report,
        map=maps.make_map(rows, x, y, run, level=level, independent=independent, inside=inside, local=local),
        new=evaluated.new and _shown(*evaluated.new, rows, inputs, x, y),
        groups=maps.column_groups(rows, run, without=used, level=level, independent=independent),
        predictions=row_intervals(rows, Coverage(level).level_of(rows.predictive), inputs=inputs, size=FEW_ROWS),
        cause=next((pictures.cause_picture(each, rows) for each in causes), None),
        worst=evaluated.worst(run),
    )


def _shown(
    new: Predictions, found: "Transferred", rows: Predictions, inputs: Sequence[str], x: maps.Variable, y: maps.Variable
) -> pictures.NewRowsShown:
    """Return what a page shows of new rows."""
    places = maps.positions_of(new, rows, inputs, x, y)
    return pictures.NewRowsShown(found.columns["beyond"], found.columns["distance"], found.tested_distances, places)


class EvaluatedRows:
    """The rows that metrics used, and those with the largest errors, as they are evaluated."""

    def __init__(self) -> None:
        self.shown: Predictions | None = None
        self.inside: Mask | None = None  # (n,), which rows are in the worst region
        self.new: tuple[Predictions, Transferred] | None = None  # New rows, and what is known about them
        self._worst: dict[str, list[dict[str, Any]]] = {}
        self._outputs: dict[str, EvaluatedRows] = {}

    def output(self, name: str) -> "EvaluatedRows":
        """Return the same about one of several targets, by its name; these if there is none."""
        return self._outputs.setdefault(name, EvaluatedRows()) if name else self

    def take(self, metric: Metric[Any], shown: Predictions, rows: RowResults) -> None:
        """Take the results of one metric."""
        self.add(metric.info.name, shown, rows)

    def add(self, name: str, shown: Predictions, rows: RowResults) -> None:
        """Add the results of the metric of a name."""
        self.shown = shown
        if name == PLACE:
            self.inside = rows.columns[name]
        if name in BY_SIZE:
            self._worst[name] = ranked_rows(rows, shown, -WORST)

    def worst(self, run: Run) -> list[dict[str, Any]]:
        """Return the rows with the largest squared z-scores; of intervals, with the largest interval scores."""
        for name in BY_SIZE:
            rows = self.shown
            if name not in self._worst and rows is not None and not inapplicable_reason(METRICS[name], rows):
                with suppress(DataError):  # Some distributions have no moments
                    metric, source = METRICS[name]().with_defaults(rows), InMemory(rows)
                    found = metric.evaluate(metric.fit(source, run), source, run)
                    self._worst[name] = ranked_rows(found, rows, -WORST)
            if self._worst.get(name):
                return self._worst[name]
        return []
