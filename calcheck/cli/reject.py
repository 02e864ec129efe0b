"""`calcheck reject`: show the error of the retained predictions as others are rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    BOOTSTRAP,
    COLUMNS,
    CONFIDENCE,
    DEPENDENCE,
    ENGINE,
    FILE,
    INFERENCE,
    LEVEL,
    REPORT,
    SEED,
    deliver,
    draw,
    open_source,
    require_nothing_skipped,
    require_only,
    require_outputs,
    run_context,
    select_metrics,
)
from calcheck.cli.study_options import PruneOptions, RejectOptions
from calcheck.cli.typer_bridge import build, make_command, metric_parameters, parameters, parse_given
from calcheck.metrics import METRICS
from calcheck.studies.options import OtherInputsOptions, PlotOptions

if TYPE_CHECKING:
    from calcheck.cli.settings import Settings


def _reject(file: str, settings: Settings, **given: Any) -> None:
    """Show the error of the retained predictions as those with the largest cce or std are rejected."""
    if build(RejectOptions, given).refit:
        require_only([*CRITERION, *OTHER_INPUTS], (), given, "metrics of the remaining rows (--refit)")
        _prune(file, settings=settings, **given)
        return
    named = {each.name for each in (*BOOTSTRAP, *CONFIDENCE)}
    require_only([*INFERENCE, *DEPENDENCE], named, given, "means over the remaining rows", "remove it, or pass --refit")
    from calcheck.io.source import read_evaluation_points
    from calcheck.studies.reject.document import rejection_document
    from calcheck.studies.reject.picture import rejection_picture
    from calcheck.studies.reject.study import CCE, ERROR_METRICS, RejectionGrid, columns_of, reject

    options, elsewhere = build(RejectOptions, given), build(OtherInputsOptions, given).new
    by, plot = options.criteria, build(PlotOptions, given).plot
    own = {name: value for name in ("step", "max_percent") if (value := getattr(options, name)) is not None}
    steps = RejectionGrid(**own, coverage=options.coverage)
    metrics = select_metrics(options.metrics or ERROR_METRICS, settings, given[LEVEL])
    cce = settings.metric(CCE, parse_given(METRICS[CCE], given))
    needed = [*metrics, *([cce] if by is None or CCE in by else [])]
    source = open_source(file, given, needed, narrow=False, also=() if elsewhere else columns_of(by))
    at = read_evaluation_points(elsewhere, source, also=columns_of(by)) if elsewhere else None
    report_to, _ = require_outputs(given, source, at)
    with run_context(given, source) as run:
        report = reject(source, metrics, by=by, cce=cce, at=at, steps=steps, run=run)
    if options.metrics or not report.results:
        require_nothing_skipped(report, at or source)
    if plot:
        draw(rejection_picture(report), plot)
    deliver(report, report_to, rejection_document)


def _prune(file: str, *, settings: Settings, **given: Any) -> None:
    """Show how metrics change as the rows with the largest uncertainties are removed."""
    from calcheck.studies.reject.picture import prune_picture
    from calcheck.studies.reject.study import METRICS_OF_ALL, prune

    options = build(PruneOptions, given)
    metrics = select_metrics(options.metrics or METRICS_OF_ALL, settings, given[LEVEL])
    source = open_source(file, given, metrics, narrow=False)
    report_to, _ = require_outputs(given, source)
    plot = build(PlotOptions, given).plot
    own = {name: value for name in ("step", "max_percent") if (value := getattr(options, name)) is not None}
    with run_context(given, source) as run:
        report = prune(source, metrics, run=run, **own)
    require_nothing_skipped(report, source)
    if plot:
        draw(prune_picture(report), plot)
    deliver(report, report_to)


CRITERION = metric_parameters([METRICS["cce"]], "Criterion cce")
OTHER_INPUTS = parameters(OtherInputsOptions, "Rejection")

reject_command = make_command(
    "reject",
    _reject,
    [
        FILE,
        *parameters(RejectOptions, "Rejection"),
        *OTHER_INPUTS,
        *CRITERION,
        *COLUMNS,
        *INFERENCE,
        *DEPENDENCE,
        *REPORT,
        *parameters(PlotOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck reject val.parquet --new test.parquet --coverage 0.9",
)
prune_command = make_command(
    "prune",
    _prune,
    [
        FILE,
        *parameters(PruneOptions, "Removal"),
        *COLUMNS,
        *INFERENCE,
        *DEPENDENCE,
        *REPORT,
        *parameters(PlotOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck reject preds.parquet --refit --metrics zms,rce",
)
