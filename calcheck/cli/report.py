"""`calcheck report`: everything about one or several models in one HTML file."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    COLUMNS,
    DEPENDENCE,
    ENGINE,
    INFERENCE,
    LEVEL,
    SEED,
    STDOUT,
    WEIGHTS,
    Pointwise,
    deliver_text,
    files_argument,
    make_run,
    open_source,
    run_context,
    select_metrics,
    weigh_applicable,
)
from calcheck.cli.evaluate import evaluate_file, stream_reason
from calcheck.cli.streaming import STATES
from calcheck.cli.study_commands import model_names, open_models
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import OptionError
from calcheck.studies.options import MetricSelectionOptions, PageOptions, RowOptions, WeightOptions

if TYPE_CHECKING:
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions
    from calcheck.report import Skipped
    from calcheck.studies.page.document import ModelReport


def _report(files: list[str], **given: Any) -> None:
    """Write one HTML page about a file: the conclusion, every metric, pictures, a map to explore, and the worst rows.

    The page needs no network. With several files, their models are shown
    side by side. "calcheck diff" and "calcheck check --against" read the
    report that is inside the page.
    """
    from calcheck.charts.drawing import NO_ENGINE, engine_starts
    from calcheck.render.page import render
    from calcheck.storage.atomic_write import require_writable
    from calcheck.studies.page.document import page_of

    options = build(PageOptions, given)
    names = model_names(files, options.names)
    if options.validation is not None and len(files) > 1:
        msg = "--validation has the validation rows of one model: pass one FILE"
        raise OptionError(msg)
    named = build(MetricSelectionOptions, given).metrics
    metrics, without = weigh_applicable(select_metrics(named, given["settings"], given[LEVEL]), given, named)
    sources = [replace(source, inputs=True) for source in open_models(files, given, metrics, narrow=True)]
    reads = [name for source in sources for name in source.reads()]
    require_writable([options.output] if options.output not in STDOUT else [], reads)
    models = [
        _model(name, file, source, metrics, given, without)
        for name, file, source in zip(names, files, sources, strict=True)
    ]
    if options.validation is not None:
        models = [_recalibrated(models[0], options.validation, sources[0], given)]
    page = page_of(models, command=shlex.join(["calcheck", *sys.argv[1:]]))
    deliver_text(render(page), options)
    if not engine_starts():
        sys.stderr.write(f"calcheck: {NO_ENGINE}; the page is without them\n")
    if options.output not in STDOUT:
        sys.stderr.write(f"wrote {options.output}\n")


def _model(
    name: str,
    file: str,
    source: FileSource,
    metrics: Sequence[Metric[Any]],
    given: dict[str, Any],
    without: Sequence[Skipped],
) -> ModelReport:
    """Return what the page shows of a model; ``without`` are metrics that have no weighted form."""
    from calcheck.studies.page.document import DRAWN, ModelReport
    from calcheck.studies.page.models import model_report

    curves = frozenset[str]() if build(WeightOptions, given).weights else DRAWN
    report = evaluate_file(file, source, metrics, given, sink=Pointwise(None).take, curves=curves)
    report = replace(report, skipped=(*report.skipped, *without))
    if stream_reason(source, metrics, given) is not None:
        return ModelReport(name, report, no_map="the rows are processed in batches")
    rows, by = _rows(source, metrics, given), build(PageOptions, given).plot_by or ()
    with source.error_names():
        return model_report(
            name, report, rows, make_run(given), inputs=source.roles.x, plot_by=by, used=source.used_columns()
        )


def _recalibrated(model: ModelReport, validation: str, source: FileSource, given: dict[str, Any]) -> ModelReport:
    """Return what the page shows of a model, with a correction that is fitted to validation rows."""
    from calcheck.render.page import Row, figure
    from calcheck.studies.recalibrate.document import recalibration_tables
    from calcheck.studies.recalibrate.options import RecalibrationOptions
    from calcheck.studies.recalibrate.picture import recalibration_picture
    from calcheck.studies.recalibrate.study import judges, recalibrate, with_inputs

    options = with_inputs(build(RecalibrationOptions, given), given.get("inputs"), given.get("by"))
    fitted = open_source(validation, given, judges(), narrow=False, also=options.columns)
    other = replace(source, also=options.columns)
    with run_context(given, fitted) as run:
        report, found = recalibrate(fitted, options=options, other=other, run=run)
        picture = Row((figure(recalibration_picture(report, found)),))
        return replace(model, recalibration=(*recalibration_tables(report), picture))


def _rows(source: FileSource, metrics: Sequence[Metric[Any]], given: dict[str, Any]) -> Predictions:
    """Return the rows that the metrics used."""
    from calcheck.evaluation import subsample_rows
    from calcheck.predictions import group_by_input

    rows = group_by_input(source, map(type, metrics)).predictions()
    size = build(RowOptions, given).subsample
    return rows if size is None else subsample_rows(rows, size, make_run(given))


report_command = make_command(
    "report",
    _report,
    [
        files_argument("FILE…", "Files of saved predictions, one per model; - reads standard input."),
        *parameters(PageOptions, "Page"),
        *parameters(MetricSelectionOptions, "Metrics"),
        *COLUMNS,
        *parameters(RowOptions, "Rows"),
        *WEIGHTS,
        *INFERENCE,
        *DEPENDENCE,
        *STATES,
        *SEED,
        *ENGINE,
    ],
    example="calcheck report preds.parquet -o report.html",
)
