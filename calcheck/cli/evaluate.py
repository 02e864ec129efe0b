"""`calcheck evaluate`: compute several metrics of one file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from calcheck.cli.app import list_hint
from calcheck.cli.check import exit_code, metrics_of_rules, parse_rules, with_gates
from calcheck.cli.common import (
    COLUMNS,
    DEPENDENCE,
    ENGINE,
    FILE_TEXT,
    INFERENCE,
    LEVEL,
    REPORT,
    SEED,
    WEIGHTS,
    deliver,
    draw,
    files_argument,
    open_source,
    require_groups,
    require_nothing_skipped,
    require_outputs,
    require_shown,
    run_context,
    select_metrics,
    weigh_applicable,
)
from calcheck.cli.next_commands import next_commands
from calcheck.cli.streaming import (
    STATES,
    are_states,
    merge_states,
    stream_metrics,
    streaming_reason,
    streaming_requested,
)
from calcheck.cli.study_commands import run_study
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import FileError, OptionError
from calcheck.options import flag_of
from calcheck.render.cells import skip_reasons
from calcheck.render.report_document import report_document
from calcheck.studies import STUDIES
from calcheck.studies.options import (
    BriefOptions,
    GroupOptions,
    MetricSelectionOptions,
    PlotOptions,
    PointwiseOptions,
    RefitOptions,
    RowOptions,
    RuleOptions,
    WorstBestOptions,
)

if TYPE_CHECKING:
    from calcheck.evaluation import Sink
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.report import Report

NOT_BY_GROUP = (
    "subsample",
    "pointwise",
    "brief",
    "worst",
    "best",
    "fail_on",
    "warn_on",
    *(each.name for each in STATES),
)  # Options that do not apply to groups


def _evaluate(files: list[str], **given: Any) -> None:
    """Answer whether the uncertainties in a file can be trusted, with every metric that applies.

    The first lines are the conclusion; the table has the metrics.

    The verdict is "fail" if a perfect model would get a value at least this
    extreme in at most 5 % of data sets. This assumes that the model was not
    fitted on these rows, and that rows are independent given the predictions.
    Verdicts on training rows are meaningless, and calcheck cannot detect
    training rows.
    """
    if are_states(files):
        merge_states(files, given, DECLARED)
        return
    if len(files) > 1:
        msg = f"Got unexpected extra argument(s) ({' '.join(files[1:])}). {list_hint(len(files) - 1, sys.argv[1:])}"
        raise OptionError(msg)
    (file,) = files
    named, by = build(MetricSelectionOptions, given).metrics, build(GroupOptions, given).by
    if by:
        _require_groups_only(given)
        run_study(STUDIES["slices"], file=file, **given)
        return
    require_groups(given, by)
    require_shown(given)
    from calcheck.render.pictures import report_picture
    from calcheck.studies.page.document import DRAWN

    conditions, plot = build(RuleOptions, given), build(PlotOptions, given).plot
    rules = parse_rules(conditions.fail_on, conditions.warn_on)
    metrics = metrics_of_rules(rules, select_metrics(named, given["settings"], given[LEVEL]), given["settings"])
    metrics, without = weigh_applicable(metrics, given, named)
    source = open_source(file, given, metrics, narrow=any(given[name] for name in ("pointwise", "worst", "best")))
    report_to, pointwise = require_outputs(given, source)
    drawn = frozenset(metric.info.name for metric in metrics) if named else DRAWN
    curves = drawn if plot else frozenset[str]()
    report = evaluate_file(file, source, metrics, given, sink=pointwise.take if pointwise.path else None, curves=curves)
    pointwise.write()
    report = with_gates(replace(report, skipped=(*report.skipped, *without)), rules)
    if plot:
        draw(report_picture(report), plot)
    deliver(report, report_to, partial(report_document, brief=build(BriefOptions, given).brief))
    if (code := exit_code([report])) and not conditions.exit_zero:
        raise typer.Exit(code)


def _require_groups_only(given: dict[str, Any]) -> None:
    """Raise if an option is given that groups do not have."""
    for name in NOT_BY_GROUP:
        if given.get(name):
            msg = f"{flag_of(name)} does not apply to groups (--by): pass only one of them"
            raise OptionError(msg)


def evaluate_file(
    file: str,
    source: FileSource,
    metrics: Sequence[Metric[Any]],
    given: dict[str, Any],
    *,
    sink: Sink | None = None,
    curves: frozenset[str] = frozenset(),
) -> Report:
    """Return the report of a file with its conclusion, and with the commands to run next."""
    from calcheck.conclusion import conclude

    reason = stream_reason(source, metrics, given)
    report = (
        _evaluate_in_memory(source, metrics, given, sink, curves=curves)
        if reason is None
        else stream_metrics(metrics, file, given, reason)
    )
    report = conclude(report)
    if report.conclusion is None:
        return report
    commands = next_commands(report, file, source, given)
    return replace(report, conclusion=replace(report.conclusion, next=commands))


def stream_reason(source: FileSource, metrics: Sequence[Metric[Any]], given: dict[str, Any]) -> str | None:
    """Return why a file is streamed, "" if the user wants it; None if it is not."""
    return "" if streaming_requested(given) else streaming_reason(source, metrics, given) or None


def _evaluate_in_memory(
    source: FileSource,
    metrics: Sequence[Metric[Any]],
    given: dict[str, Any],
    sink: Sink | None,
    *,
    curves: frozenset[str],
) -> Report:
    from calcheck.evaluation import evaluate

    extremes = build(WorstBestOptions, given)
    with run_context(given, source) as run:
        report = evaluate(
            source,
            metrics,
            subsample=build(RowOptions, given).subsample,
            run=replace(run, curves=bool(curves), curves_of=curves),
            worst=extremes.worst,
            best=extremes.best,
            sink=sink,
        )
    if build(MetricSelectionOptions, given).metrics:
        require_nothing_skipped(report, source)
    if not report.results:
        msg = f"{source.name}: no metric applies. {skip_reasons(report)}"
        raise FileError(msg)
    return report


DECLARED = [
    files_argument("FILE", f"{FILE_TEXT} Or states that --save-state wrote, which are merged."),
    *parameters(MetricSelectionOptions, "Metrics"),
    *parameters(GroupOptions, "Metrics"),
    *parameters(RefitOptions, "Metrics"),
    *parameters(RuleOptions, "Rules"),
    *COLUMNS,
    *parameters(RowOptions, "Rows"),
    *WEIGHTS,
    *INFERENCE,
    *DEPENDENCE,
    *REPORT,
    *parameters(BriefOptions, "Output"),
    *parameters(PointwiseOptions, "Output"),
    *parameters(WorstBestOptions, "Output"),
    *parameters(PlotOptions, "Output"),
    *STATES,
    *SEED,
    *ENGINE,
]
evaluate_command = make_command("evaluate", _evaluate, DECLARED, example="calcheck evaluate preds.parquet")
