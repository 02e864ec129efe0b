"""What commands that compute share: from a file and options to a report, delivered."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcheck.cli.options import (
    BootstrapOptions,
    EngineOptions,
    InputOptions,
    NullOptions,
    ReportOptions,
    SeedOptions,
    SignificanceOptions,
)
from calcheck.cli.output import Pointwise, require_deliverable
from calcheck.cli.progress import progress_bar
from calcheck.cli.typer_bridge import build, parameters
from calcheck.errors import FileError, OptionError
from calcheck.io.columns.options import ColumnOptions
from calcheck.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.cli.settings import Settings
    from calcheck.execution.context import Run
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.report import Report

FILE = inspect.Parameter(
    "file",
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    annotation=Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Saved predictions: a file, a folder, or a pattern in quotes; - reads standard input.",
            show_default=False,
        ),
    ],
)
INPUTS = ("embedding", "inputs")
OF_FILES = [*parameters(ColumnOptions, "Columns"), *parameters(InputOptions, "Columns")]
COLUMNS = [FILE, *OF_FILES]
REPORT = [*parameters(ReportOptions, "Output")]
BOOTSTRAP = [*parameters(BootstrapOptions, "Inference")]
REFERENCE = [*parameters(NullOptions, "Inference")]
CONFIDENCE = [parameter for parameter in REFERENCE if parameter.name == "confidence"]
SIGNIFICANCE = [*parameters(SignificanceOptions, "Inference")]
INFERENCE = [*BOOTSTRAP, *REFERENCE, *SIGNIFICANCE]
SEED = [*parameters(SeedOptions, "Computation")]
ENGINE = [*parameters(EngineOptions, "Computation")]


def files_and_columns(metavar: str, text: str) -> list[inspect.Parameter]:
    """Declare the parameters of a command that reads several files: as ``COLUMNS`` are those of one."""
    argument = typer.Argument(metavar=metavar, help=text, show_default=False)
    declared = Annotated[list[str], argument]
    return [inspect.Parameter("files", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=declared), *OF_FILES]


def select_metrics(names: str | None, settings: Settings) -> list[Metric[Any, Any]]:
    """Make metrics, with the options that are set for them, from a list of names; all of them for None.

    Raises
    ------
    OptionError
        There is no such metric.
    """
    named = list(METRICS) if names is None else [name.strip() for name in names.split(",") if name.strip()]
    for name in named:
        if name not in METRICS:
            msg = f"--metrics takes names among {', '.join(METRICS)}, got {name!r}"
            raise OptionError(msg)
    return [settings.metric(name) for name in dict.fromkeys(named)]


def open_source(
    file: str,
    given: dict[str, Any],
    metrics: Sequence[Metric[Any, Any]],
    *,
    narrow: bool,
    also: Sequence[str] = (),
) -> FileSource:
    """Open the predictions that some metrics need, and other columns."""
    from calcheck.io.paths import resolve
    from calcheck.io.source import FileSource

    options = build(InputOptions, given)
    return FileSource(
        resolve(file, options.input_format),
        build(ColumnOptions, given),
        wanted="all" if any("y" in metric.needs for metric in metrics) else "any",
        narrow=narrow,
        inputs=any("x" in metric.needs for metric in metrics),
        repeated=all(metric.repeated_targets for metric in metrics),
        also=tuple(dict.fromkeys([*(name for metric in metrics for name in metric.columns()), *also])),
    )


@contextmanager
def run_context(given: dict[str, Any], source: FileSource) -> Iterator[Run]:
    """Make the run's settings; draw its progress, and tell problems with the name of the file."""
    run = make_run(given)
    with progress_bar() as progress, source.error_names():
        yield replace(run, progress=progress)


def make_run(given: dict[str, Any]) -> Run:
    """Make the run's settings from what a command was given."""
    from calcheck.execution.context import Run, default_memory, parse_memory

    engine = build(EngineOptions, given)
    bootstrap, compared = build(BootstrapOptions, given), build(NullOptions, given)
    if bootstrap.no_bootstrap and bootstrap.resamples is not None:
        msg = "--resamples and --no-bootstrap contradict each other: give one"
        raise OptionError(msg)
    if compared.no_null and compared.replicates is not None:
        msg = "--replicates and --no-null contradict each other: give one"
        raise OptionError(msg)
    return Run(
        seed=build(SeedOptions, given).seed,
        device=engine.device,
        precision=engine.precision,
        memory=parse_memory(engine.memory) if engine.memory else default_memory(),
        confidence=compared.confidence,
        resamples=0 if bootstrap.no_bootstrap else bootstrap.resamples,
        replicates=0 if compared.no_null else compared.replicates,
        fdr=build(SignificanceOptions, given).fdr,
    )


def require_outputs(given: dict[str, Any], sources: Sequence[FileSource]) -> tuple[ReportOptions, Pointwise]:
    """Return where results go; raise, before the work starts, if they could not be written there."""
    report, pointwise = build(ReportOptions, given), Pointwise(given.get("pointwise"))
    require_deliverable(report, pointwise, [name for source in sources for name in source.reads()])
    return report, pointwise


def require_nothing_skipped(report: Report, source: FileSource) -> None:
    """Raise if a metric that was asked for by name does not apply.

    Raises
    ------
    FileError
        It does not; the message says why.
    """
    for skipped in report.skipped:
        reason = f"{skipped.metric} {skipped.reason}" if skipped.reason.startswith("needs ") else skipped.reason
        msg = f"{source.name}: {reason}"
        raise FileError(msg)
