"""`calcheck trend`: metrics over a series of files at growing strength of a disturbance."""

from __future__ import annotations

from typing import Any

from calcheck.cli.common import (
    COLUMNS,
    DEPENDENCE,
    ENGINE,
    INFERENCE,
    LEVEL,
    REPORT,
    SEED,
    files_argument,
    require_outputs,
    run_context,
    select_metrics,
)
from calcheck.cli.compare import discretised, open_models
from calcheck.cli.options import PlotOptions, TrendOptions
from calcheck.cli.output import deliver, draw
from calcheck.cli.trials import TRIALS, with_trials
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import FileError
from calcheck.render.cells import skip_reasons


def _trend(files: list[str], **given: Any) -> None:
    """Show how metrics change over a series of files, such as predictions for inputs with more and more noise."""
    from calcheck.render.pictures.trend import trend_picture
    from calcheck.studies.trend import trend

    options, plot = build(TrendOptions, given), build(PlotOptions, given).plot
    metrics = with_trials(select_metrics(options.metrics, given["settings"], given[LEVEL]), given["settings"], given)
    metrics = discretised(metrics) if options.discretise else metrics
    sources = open_models(files, given, metrics)
    report_to, _ = require_outputs(given, *sources)
    with run_context(given) as run:
        report = trend(sources, metrics, at=options.at, run=run)
    if not report.results:
        msg = f"no metric applies. {skip_reasons(report)}"
        raise FileError(msg)
    if plot:
        draw(trend_picture(report), plot)
    deliver(report, report_to)


trend_command = make_command(
    "trend",
    _trend,
    [
        files_argument(
            "BASE F1 [F2 …]",
            "Files of saved predictions, the undisturbed one first. Column options of one file follow its name:"
            " a.csv@dist=poisson.",
        ),
        *parameters(TrendOptions, "Series"),
        *TRIALS,
        *COLUMNS,
        *INFERENCE,
        *DEPENDENCE,
        *REPORT,
        *parameters(PlotOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck trend clean.parquet noise1.parquet noise2.parquet --at 0,0.5,1 --metrics cce,ece,crps",
)
