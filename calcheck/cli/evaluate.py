"""`calcheck evaluate` and `calcheck prune`: compute several metrics of one file."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    COLUMNS,
    ENGINE,
    FILE,
    INFERENCE,
    LEVEL,
    REPORT,
    SEED,
    open_source,
    require_nothing_skipped,
    require_outputs,
    run_context,
    select_metrics,
)
from calcheck.cli.next_commands import next_commands
from calcheck.cli.options import (
    BriefOptions,
    MetricSelectionOptions,
    PlotOptions,
    PointwiseOptions,
    PruneOptions,
    ReportOptions,
    RowOptions,
)
from calcheck.cli.output import deliver, draw
from calcheck.cli.streaming import STATES, stream_metrics, streaming_reason, streaming_requested
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import FileError
from calcheck.render.cells import skip_reasons

if TYPE_CHECKING:
    from calcheck.io.source import FileSource
    from calcheck.report import Report


def _evaluate(file: str, **given: Any) -> None:
    """Answer whether the uncertainties in a file can be trusted, with every metric that applies.

    The first lines are the conclusion; the table has the metrics.

    The verdict is "fail" if a perfect model would get a value at least this
    extreme in at most 5 % of data sets. This assumes that the model was not
    fitted on these rows, and that rows are independent given the predictions.
    Verdicts on training rows are meaningless, and calcheck cannot detect
    training rows.
    """
    from calcheck.evaluation import evaluate

    named = build(MetricSelectionOptions, given).metrics
    metrics = select_metrics(named, given["settings"], given[LEVEL])
    source = open_source(file, given, metrics, narrow=bool(given["pointwise"]))
    reason = "" if streaming_requested(given) else streaming_reason(source, metrics, given)
    if reason or streaming_requested(given):
        _deliver(stream_metrics(metrics, file, given, reason), file, source, given)
        return
    _, pointwise = require_outputs(given, source)
    with run_context(given, source) as run:
        subsample = build(RowOptions, given).subsample
        report = evaluate(source, metrics, subsample=subsample, run=run, sink=pointwise.take)
    if named:
        require_nothing_skipped(report, source)
    if not report.results:
        msg = f"{source.name}: no metric applies. {skip_reasons(report)}"
        raise FileError(msg)
    pointwise.write()
    _deliver(report, file, source, given)


def _deliver(report: Report, file: str, source: FileSource, given: dict[str, Any]) -> None:
    """Print a report with its conclusion, and with the commands to run next."""
    from calcheck.conclusion import conclude
    from calcheck.render.builders.report import report_document

    report = conclude(report)
    if report.conclusion is not None:
        commands = next_commands(report, file, source, given)
        report = replace(report, conclusion=replace(report.conclusion, next=commands))
    brief = build(BriefOptions, given).brief
    deliver(report, build(ReportOptions, given), partial(report_document, brief=brief))


def _prune(file: str, **given: Any) -> None:
    """Show how metrics change as the rows with the largest uncertainties are removed."""
    from calcheck.render.pictures.prune import prune_picture
    from calcheck.studies.prune import prune

    options = build(PruneOptions, given)
    metrics = select_metrics(options.metrics, given["settings"], given[LEVEL])
    source = open_source(file, given, metrics, narrow=False)
    report_to, _ = require_outputs(given, source)
    plot = build(PlotOptions, given).plot
    with run_context(given, source) as run:
        report = prune(source, metrics, max_percent=options.max_percent, step=options.step, run=run)
    require_nothing_skipped(report, source)
    if plot:
        draw(prune_picture(report), plot)
    deliver(report, report_to)


evaluate_command = make_command(
    "evaluate",
    _evaluate,
    [
        FILE,
        *parameters(MetricSelectionOptions, "Metrics"),
        *COLUMNS,
        *parameters(RowOptions, "Rows"),
        *INFERENCE,
        *REPORT,
        *parameters(BriefOptions, "Output"),
        *parameters(PointwiseOptions, "Output"),
        *STATES,
        *SEED,
        *ENGINE,
    ],
    example="calcheck evaluate preds.parquet",
)
prune_command = make_command(
    "prune",
    _prune,
    [
        FILE,
        *parameters(PruneOptions, "Removal"),
        *COLUMNS,
        *INFERENCE,
        *REPORT,
        *parameters(PlotOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck prune preds.parquet --metrics zms,rce",
)
