"""The command of each metric, generated from the metric's options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli import inputs_and_outputs
from calcheck.cli.typer_options import Command, build, command_of, parameters_of
from calcheck.errors import OptionError
from calcheck.inference.metric_protocol import HasCurves
from calcheck.io.column_names import INPUTS
from calcheck.options import Argument, Group, group, options_of
from calcheck.render import PAGE
from calcheck.studies import Answer, Study, options

if TYPE_CHECKING:
    from calcheck.io.file_source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Source

POLYNOMIAL = ("degree", "coef0")  # Options of polynomial kernels
SECOND = Argument(
    "second",
    "MODEL",
    "Second file, with targets drawn from a model at inputs that may differ: two samples are compared, without"
    " predictions.",
    optional=True,
)


def metric_command(metric: type[Metric[Any]]) -> Command:
    """Return the command of a metric."""
    info, own = metric.info, Group("Metric", (metric,)).omit(inputs_and_outputs.LEVEL)
    parts = {
        own: True,
        options.COLUMNS if info.takes_inputs else options.COLUMNS.omit(*INPUTS): True,
        options.ROWS.keep("subsample"): True,
        options.WEIGHTS: True,
        options.ROWS.keep("at", "grid"): info.conditional,
        options.BOOTSTRAP: info.interval != "none",
        options.REFERENCE: True,
        options.DEPENDENCE: True,
        options.SIGNIFICANCE: info.conditional,
        options.REPORT: True,
        options.SHOWN.keep("pointwise", "worst", "best"): info.pointwise,
        options.PLOT: info.conditional or issubclass(metric, HasCurves),
        group("Output", options.PlotByOptions): metric.curves_along_columns,
        group("Streaming", options.StateOptions): True,
        options.SEED: True,
        options.ENGINE: info.uses_kernels,
    }
    conditional = " --embedding embedding" if info.conditional else ""
    study = Study(
        info.name,
        metric.summary(),
        "",
        arguments=(options.FILE, SECOND) if hasattr(metric, "of_samples") else (options.FILE,),
        groups=tuple(part for part, applies in parts.items() if applies),
        example=f"calcheck {info.name} preds.parquet{conditional} --worst 5",
    )

    def run(file: str, second: str | None = None, **given: Any) -> None:
        if second is None:
            run_metric(build(metric, given), file, given)
            return
        shared = parameters_of([own, options.REFERENCE, options.REPORT, options.SEED, options.ENGINE])
        allowed = {*options.SAMPLES.only, *(each.name for each in shared)}
        further = (each.name for each in parameters_of(study.groups) if each.name not in allowed)
        remedy = "remove it, or pass one file with predictions"
        inputs_and_outputs.refuse(further, given, "two files", remedy)
        from calcheck.cli.study_commands import CommandRequest
        from calcheck.studies.two_samples.study import run

        request = CommandRequest(study, {**given, "a": file, "b": second})
        request.finish(Answer(run(request, build(metric, given).of_samples())))

    return command_of(study, run)


def _stream(metric: Metric[Any], file: str, given: dict[str, Any], reason: str = "") -> None:
    """Stream one metric over a file, and write the report; the reason for streaming becomes a warning."""
    from calcheck.cli.states import stream_metrics

    report = stream_metrics([metric], file, given, reason, command=True)
    inputs_and_outputs.deliver(report, build(options.ReportOptions, given))


def run_metric(metric: Metric[Any], file: str, given: dict[str, Any]) -> None:
    """Compute one metric of a file, and write the requested outputs."""
    (metric,), _ = inputs_and_outputs.weigh([metric], given)
    if inputs_and_outputs.streaming_requested(given):
        _stream(metric, file, given)
        return
    from calcheck.evaluation import evaluate
    from calcheck.io.evaluation_points import grid_of, read_inputs, require_grid

    shown, places = build(options.ShownOptions, given), build(options.RowOptions, given)
    elsewhere = places.at is not None or places.grid is not None
    inputs_and_outputs.require_shown(given)
    narrow = bool(shown.pointwise or shown.worst or shown.best)
    plot, plot_by = shown.plot, build(options.PlotByOptions, given).plot_by or ()
    if plot_by and not plot:
        raise OptionError("--plot-by sets what the picture shows: also pass --plot FILE")
    also = () if elsewhere else plot_by
    source = inputs_and_outputs.open_source(file, given, [metric], narrow=narrow and not elsewhere, also=also)
    _require_polynomial(metric, source)
    if reason := inputs_and_outputs.streaming_reason(source, [metric], given):
        _stream(metric, file, given, reason)
        return
    if places.grid is not None:
        require_grid(places.grid, at=places.at is not None)
    at = read_inputs(places.at, source, narrow=narrow or bool(plot_by)) if places.at else None
    report_to, pointwise = inputs_and_outputs.require_outputs(given, source, at)
    points: Source | None = at
    if places.grid is not None:
        with source.error_names():
            points = grid_of(source, places.grid, source.input_info().columns.get("x", "x"))
    with inputs_and_outputs.run_context(given, source) as run:
        report = evaluate(
            source,
            [metric],
            at=points,
            subsample=places.subsample,
            run=replace(run, curves=bool(plot) or given["format"] == PAGE, curves_by=plot_by),
            worst=shown.worst,
            best=shown.best,
            sink=pointwise.take if pointwise.path else None,
        )
    inputs_and_outputs.require_nothing_skipped(report, source)
    if places.grid is not None:
        report = replace(report, settings={**report.settings, "grid": places.grid})
    pointwise.write()
    for picture in inputs_and_outputs.pictures_of(report) if plot else ():
        inputs_and_outputs.draw(picture, str(plot))
    inputs_and_outputs.deliver(report, report_to, pictures=lambda: inputs_and_outputs.pictures_of(report))


def _require_polynomial(metric: Metric[Any], source: FileSource) -> None:
    """Raise if an option of polynomial kernels is set, and neither kernel is polynomial."""
    given = [option for option in options_of(type(metric)) if option.field in POLYNOMIAL]
    changed = [option.flag for option in given if getattr(metric, option.field) != option.default]
    if not changed:
        return
    with source.error_names():
        roles = source.roles
    default = "rbf" if len(roles.input_names) == 1 and not roles.has_embedding else "polynomial"
    kernel = getattr(metric, "kernel_x", None) or default
    if "polynomial" in (kernel, getattr(metric, "kernel_y", "rbf")):
        return
    raise OptionError(
        f"{changed[0]} is for polynomial kernels, and the kernel on inputs is {kernel}: pass --kernel-x polynomial, or"
        f" remove {changed[0]}"
    )
