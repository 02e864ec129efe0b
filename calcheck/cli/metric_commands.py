"""One command a metric, made from its options."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcheck.cli.output import deliver, require_deliverable, write_pointwise
from calcheck.cli.parameters import build, parameters, with_signature
from calcheck.cli.progress import progress_bar
from calcheck.cli.settings import EngineOptions, InputOptions, OutputOptions, RowOptions, SeedOptions
from calcheck.errors import FileError
from calcheck.io.column_options import ColumnOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.execution.run import Run
    from calcheck.io.source import FileSource
    from calcheck.metric import Metric, Rows
    from calcheck.predictions import Predictions

FILE = inspect.Parameter(
    "file",
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    annotation=Annotated[
        str, typer.Argument(metavar="FILE", help="Saved predictions; - reads standard input.", show_default=False)
    ],
)


def metric_command(metric: type[Metric[Any, Any]]) -> Callable[..., None]:
    """Make the command of a metric."""
    engine = parameters(EngineOptions, "Computation") if metric.engine else []
    declared = [
        FILE,
        *parameters(ColumnOptions, "Columns"),
        *parameters(InputOptions, "Columns"),
        *parameters(metric, "Metric"),
        *parameters(RowOptions, "Rows"),
        *parameters(OutputOptions, "Output"),
        *parameters(SeedOptions, "Computation"),
        *engine,
    ]

    def command(file: str, **given: Any) -> None:
        run_metric(build(metric, given), file, given)

    command.__doc__ = metric.summary()
    return with_signature(command, declared)


def run_metric(metric: Metric[Any, Any], file: str, given: dict[str, Any]) -> None:
    """Compute one metric of a file and deliver what was asked for."""
    from calcheck.evaluation import evaluate
    from calcheck.io.source import inputs_elsewhere

    output, where = build(OutputOptions, given), build(RowOptions, given)
    narrow = bool(output.pointwise or output.worst or output.best)
    source = _source(file, given, narrow=narrow and where.at is None)
    at = inputs_elsewhere(where.at, source, narrow=narrow) if where.at else None
    require_deliverable(output, [name for read in (source, at) if read for name in read.reads()])
    handed: list[tuple[Predictions, Rows]] = []
    with progress_bar() as progress, source.named():
        report = evaluate(
            source,
            [metric],
            at=at,
            subsample=where.subsample,
            run=replace(_run(metric, given), progress=progress),
            worst=output.worst,
            best=output.best,
            sink=lambda _, shown, rows: handed.append((shown, rows)),
        )
    for skipped in report.skipped:
        msg = f"{source.name}: {skipped.metric} {skipped.reason}"
        raise FileError(msg)
    for shown, rows in handed if output.pointwise else ():
        write_pointwise(output.pointwise, shown, rows)
    deliver(report, output)


def _source(file: str, given: dict[str, Any], *, narrow: bool) -> FileSource:
    from calcheck.io.files import File
    from calcheck.io.source import FileSource

    options = build(InputOptions, given)
    return FileSource(File(file, options.input_format), build(ColumnOptions, given), narrow=narrow)


def _run(metric: Metric[Any, Any], given: dict[str, Any]) -> Run:
    from calcheck.execution.run import Run, parse_memory

    run = Run(seed=build(SeedOptions, given).seed)
    if not metric.engine:
        return run
    engine = build(EngineOptions, given)
    memory = parse_memory(engine.memory) if engine.memory else run.memory
    return replace(run, device=engine.device, precision=engine.precision, memory=memory)
