"""Functions and parameters that several commands share."""

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
            help="Saved predictions: a file, a folder, or a quoted pattern; - reads standard input.",
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
    """Return the parameters of a command that reads several files; ``COLUMNS`` are those for one file."""
    argument = typer.Argument(metavar=metavar, help=text, show_default=False)
    declared = Annotated[list[str], argument]
    return [inspect.Parameter("files", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=declared), *OF_FILES]


def select_metrics(names: Sequence[str] | None, settings: Settings) -> list[Metric[Any]]:
    """Return the named metrics with their configured options; all metrics for None.

    Raises
    ------
    OptionError
        A name is not a metric.
    """
    named = list(METRICS) if names is None else names
    for name in named:
        if name not in METRICS:
            msg = f"--metrics: unknown metric {name!r}. Available metrics: {', '.join(METRICS)}"
            raise OptionError(msg)
    return [settings.metric(name) for name in dict.fromkeys(named)]


def open_source(
    file: str,
    given: dict[str, Any],
    metrics: Sequence[Metric[Any]],
    *,
    narrow: bool,
    also: Sequence[str] = (),
) -> FileSource:
    """Return the source of a file, with the columns that the metrics need and additional columns."""
    from calcheck.evaluation import with_needed_columns
    from calcheck.io.files import resolve
    from calcheck.io.source import FileSource

    source = FileSource(resolve(file, build(InputOptions, given).input_format), build(ColumnOptions, given))
    return with_needed_columns(source, metrics, narrow=narrow, also=also)


@contextmanager
def run_context(given: dict[str, Any], source: FileSource) -> Iterator[Run]:
    """Yield the run settings; show progress, and add the file name to errors."""
    run = make_run(given)
    with progress_bar() as progress, source.error_names():
        yield replace(run, progress=progress)


def make_run(given: dict[str, Any]) -> Run:
    """Return the run settings for the options of a command."""
    from calcheck.execution.context import Run, default_memory, parse_memory

    engine = build(EngineOptions, given)
    bootstrap, compared = build(BootstrapOptions, given), build(NullOptions, given)
    if bootstrap.no_bootstrap and bootstrap.resamples is not None:
        msg = "--resamples and --no-bootstrap contradict each other: pass only one of them"
        raise OptionError(msg)
    if compared.no_null and compared.replicates is not None:
        msg = "--replicates and --no-null contradict each other: pass only one of them"
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
    """Return the output options; raise, before computing, if the outputs cannot be written."""
    report, pointwise = build(ReportOptions, given), Pointwise(given.get("pointwise"))
    require_deliverable(report, pointwise, [name for source in sources for name in source.reads()])
    return report, pointwise


def require_nothing_skipped(report: Report, *sources: FileSource) -> None:
    """Raise if a requested metric was skipped.

    Raises
    ------
    FileError
        A metric was skipped; the message states the reason.
    """
    for skipped in report.skipped:
        reason = f"{skipped.metric} {skipped.reason}" if skipped.code == "inapplicable" else skipped.reason
        msg = f"{' and '.join(source.name for source in sources)}: {reason}"
        raise FileError(msg)
