"""The command of each metric, generated from the metric's options."""

from __future__ import annotations

from dataclasses import replace
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    BOOTSTRAP,
    COLUMNS,
    DEPENDENCE,
    ENGINE,
    FILE,
    INPUTS,
    LEVEL,
    REFERENCE,
    REPORT,
    SEED,
    SIGNIFICANCE,
    WEIGHTS,
    deliver,
    draw_metrics,
    open_source,
    require_nothing_skipped,
    require_only,
    require_outputs,
    require_shown,
    run_context,
    weigh,
)
from calcheck.cli.samples import SAMPLE_OPTIONS, compare_samples
from calcheck.cli.streaming import STATES, stream_metric, streaming_reason, streaming_requested
from calcheck.cli.typer_bridge import Command, argument, build, make_command, parameters
from calcheck.errors import OptionError
from calcheck.inference.metric_protocol import HasCurves
from calcheck.options import options_of
from calcheck.studies.options import (
    EvaluationPointsOptions,
    PlotByOptions,
    PlotOptions,
    PointwiseOptions,
    RowOptions,
    WorstBestOptions,
)

if TYPE_CHECKING:
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Source

POLYNOMIAL = ("degree", "coef0")
"""Options of polynomial kernels."""
SECOND = argument(
    "second",
    "MODEL",
    "Second file, with targets drawn from a model at inputs that may differ: two samples are compared, without"
    " predictions.",
    str | None,
    None,
)


def metric_command(metric: type[Metric[Any]]) -> Command:
    """Return the command of a metric."""
    columns = [parameter for parameter in COLUMNS if "x" in metric.info.needs or parameter.name not in INPUTS]
    of_samples = hasattr(metric, "of_samples")
    declared = [
        FILE,
        *([SECOND] if of_samples else []),
        *(parameter for parameter in parameters(metric, "Metric") if parameter.name != LEVEL),
        *columns,
        *parameters(RowOptions, "Rows"),
        *WEIGHTS,
        *(parameters(EvaluationPointsOptions, "Rows") if metric.info.conditional else []),
        *(BOOTSTRAP if metric.info.interval != "none" else []),
        *REFERENCE,
        *DEPENDENCE,
        *(SIGNIFICANCE if metric.info.conditional else []),
        *REPORT,
        *(
            parameters(PointwiseOptions, "Output") + parameters(WorstBestOptions, "Output")
            if metric.info.pointwise
            else []
        ),
        *(parameters(PlotOptions, "Output") if metric.info.conditional or issubclass(metric, HasCurves) else []),
        *(parameters(PlotByOptions, "Output") if metric.curves_along_columns else []),
        *STATES,
        *SEED,
        *(ENGINE if metric.info.uses_kernels else []),
    ]

    def command(file: str, second: str | None = None, **given: Any) -> None:
        if second is None:
            run_metric(build(metric, given), file, given)
        else:
            _require_sample_options(declared, metric, given)
            compare_samples(build(metric, given).of_samples(), (file, second), given)

    command.__doc__ = metric.summary()
    conditional = " --embedding embedding" if metric.info.conditional else ""
    example = f"calcheck {metric.info.name} preds.parquet{conditional} --worst 5"
    return make_command(metric.info.name, command, declared, example=example)


def _require_sample_options(declared: list[Parameter], metric: type[Metric[Any]], given: dict[str, Any]) -> None:
    """Raise an error if an option was given that does not apply to two samples."""
    groups = (parameters(metric, "Metric"), REFERENCE, REPORT, SEED, ENGINE)
    allowed = {*SAMPLE_OPTIONS, "settings", *(parameter.name for group in groups for parameter in group)}
    require_only(declared, allowed, given, "two files", "remove it, or pass one file with predictions")


def run_metric(metric: Metric[Any], file: str, given: dict[str, Any]) -> None:
    """Compute one metric of a file, and write the requested outputs."""
    (metric,) = weigh([metric], given)
    if streaming_requested(given):
        stream_metric(metric, file, given)
        return
    from calcheck.evaluation import evaluate
    from calcheck.io.source import read_inputs, require_grid

    extremes, places = build(WorstBestOptions, given), build(EvaluationPointsOptions, given)
    elsewhere = places.at is not None or places.grid is not None
    require_shown(given)
    narrow = bool(given.get("pointwise") or extremes.worst or extremes.best)
    plot, plot_by = _picture_options(given)
    also = () if elsewhere else plot_by
    source = open_source(file, given, [metric], narrow=narrow and not elsewhere, also=also)
    _require_polynomial(metric, source)
    if reason := streaming_reason(source, [metric], given):
        stream_metric(metric, file, given, reason)
        return
    require_grid(places.grid, at=places.at is not None)
    at = read_inputs(places.at, source, narrow=narrow or bool(plot_by)) if places.at else None
    report_to, pointwise = require_outputs(given, source, at)
    grid = _grid(places.grid, source)
    with run_context(given, source) as run:
        report = evaluate(
            source,
            [metric],
            at=at or grid,
            subsample=build(RowOptions, given).subsample,
            run=replace(run, curves=bool(plot), curves_by=plot_by),
            worst=extremes.worst,
            best=extremes.best,
            sink=pointwise.take if pointwise.path else None,
        )
    require_nothing_skipped(report, source)
    if places.grid is not None:
        report = replace(report, settings={**report.settings, "grid": places.grid})
    pointwise.write()
    if plot:
        draw_metrics(report, plot)
    deliver(report, report_to)


def _require_polynomial(metric: Metric[Any], source: FileSource) -> None:
    """Raise if an option of polynomial kernels is set, and neither kernel is polynomial."""
    given = [option for option in options_of(type(metric)) if option.field in POLYNOMIAL]
    changed = [option.flag for option in given if getattr(metric, option.field) != option.default]
    if not changed or "polynomial" in (kernel := _kernel_x(metric, source), getattr(metric, "kernel_y", "rbf")):
        return
    msg = (
        f"{changed[0]} is for polynomial kernels, and the kernel on inputs is {kernel}: pass --kernel-x polynomial, or"
        f" remove {changed[0]}"
    )
    raise OptionError(msg)


def _kernel_x(metric: Metric[Any], source: FileSource) -> str:
    """Return the kernel on inputs: by default rbf for a single column of inputs, and polynomial for others."""
    with source.error_names():
        roles = source.roles
    default = "rbf" if len(roles.x) == 1 and not roles.has_embedding else "polynomial"
    return getattr(metric, "kernel_x", None) or default


def _grid(size: int | None, source: FileSource) -> Source | None:
    """Return equally spaced evaluation points, labeled with the name of the input; None without a size."""
    from calcheck.io.source import grid_of

    if size is None:
        return None
    with source.error_names():
        return grid_of(source, size, source.input_info().columns.get("x", "x"))


def _picture_options(given: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """Return the file of the picture, and the columns along which it shows the metric."""
    plot, by = build(PlotOptions, given).plot, build(PlotByOptions, given).plot_by or ()
    if by and not plot:
        msg = "--plot-by sets what the picture shows: also pass --plot FILE"
        raise OptionError(msg)
    return plot, by
