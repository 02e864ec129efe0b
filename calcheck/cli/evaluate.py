"""`calcheck evaluate` and `calcheck prune`: several metrics of one file."""

from __future__ import annotations

from typing import Any

from calcheck.cli.common import (
    COLUMNS,
    ENGINE,
    INFERENCE,
    REPORT,
    SEED,
    chosen,
    opened,
    require_nothing_skipped,
    require_outputs,
    running,
)
from calcheck.cli.options import ChosenOptions, PointwiseOptions, PruneOptions, ReportOptions, RowOptions
from calcheck.cli.output import deliver
from calcheck.cli.streaming import STATES, summed_metrics, takes_sums, wants_sums
from calcheck.cli.typer_bridge import build, parameters, with_signature
from calcheck.errors import FileError
from calcheck.render.cells import reasons


def _evaluate(file: str, **given: Any) -> None:
    """Compute every metric that applies to a file, in one table.

    The verdict is fail where a perfect model would score as far out in at
    most 5 % of data sets. That supposes that the predictions were not fitted
    on these rows, and that rows are independent given the predictions. On a
    model's training rows verdicts mean nothing, and no report can know it.
    """
    from calcheck.evaluation import evaluate

    metrics = chosen(build(ChosenOptions, given).metrics, given["settings"])
    if wants_sums(given):
        deliver(summed_metrics(metrics, file, given), build(ReportOptions, given))
        return
    source = opened(file, given, metrics, narrow=bool(given["pointwise"]))
    if reason := takes_sums(source, metrics, given):
        deliver(summed_metrics(metrics, file, given, reason), build(ReportOptions, given))
        return
    report_to, pointwise = require_outputs(given, [source])
    with running(given, source) as run:
        subsample = build(RowOptions, given).subsample
        report = evaluate(source, metrics, subsample=subsample, run=run, sink=pointwise.take)
    if not report.results:
        told = "; ".join(f"{metrics}: {reason}" for metrics, reason in reasons(report.skipped))
        msg = f"{source.name}: no metric applies. {told}"
        raise FileError(msg)
    pointwise.write()
    deliver(report, report_to)


def _prune(file: str, **given: Any) -> None:
    """Show how metrics move as the rows with the largest uncertainties are removed."""
    from calcheck.studies.prune import prune

    options = build(PruneOptions, given)
    metrics = chosen(options.metrics, given["settings"])
    source = opened(file, given, metrics, narrow=False)
    report_to, _ = require_outputs(given, [source])
    with running(given, source) as run:
        report = prune(source, metrics, up_to=options.up_to, step=options.step, run=run)
    require_nothing_skipped(report, source)
    deliver(report, report_to)


evaluate_command = with_signature(
    _evaluate,
    [
        *COLUMNS,
        *parameters(ChosenOptions, "Metrics"),
        *parameters(RowOptions, "Rows"),
        *INFERENCE,
        *REPORT,
        *parameters(PointwiseOptions, "Output"),
        *STATES,
        *SEED,
        *ENGINE,
    ],
)
prune_command = with_signature(
    _prune, [*COLUMNS, *parameters(PruneOptions, "What is removed"), *INFERENCE, *REPORT, *SEED, *ENGINE]
)
