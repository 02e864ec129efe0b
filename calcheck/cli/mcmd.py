"""`calcheck mcmd`: compare two samples in two files."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calcheck.cli.common import COLUMNS, ENGINE, REPORT, SEED, SIGNIFICANCE, make_run, require_nothing_skipped
from calcheck.cli.options import (
    GridOptions,
    InputOptions,
    PermutationOptions,
    PlotOptions,
    PointwiseOptions,
    ReportOptions,
)
from calcheck.cli.output import Pointwise, deliver, draw, require_deliverable
from calcheck.cli.progress import progress_bar
from calcheck.cli.typer_bridge import build, make_command, parameters
from calcheck.errors import OptionError
from calcheck.io.columns.options import ColumnOptions
from calcheck.metrics.mcmd import Mcmd

if TYPE_CHECKING:
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions
    from calcheck.render.plot import Plot
    from calcheck.results import RowResults

STDIN = "-"
SAMPLE_OPTIONS = (
    "target",
    "embedding",
    "inputs",
    "id",
    "model",
    "filter",
    "nan_policy",
    "input_format",
)  # options that also apply to samples, which have no predictions


def _file(name: str, text: str) -> inspect.Parameter:
    declared = typer.Argument(metavar=name.upper(), help=text, show_default=False)
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Annotated[str, declared])


def _mcmd(a: str, b: str, **given: Any) -> None:
    """Compare the conditional distributions of two samples of inputs and targets, at each input."""
    from calcheck.studies.two_samples import two_samples

    metric, places = build(Mcmd, given), build(GridOptions, given)
    report_to, pointwise = build(ReportOptions, given), Pointwise(build(PointwiseOptions, given).pointwise)
    plot = build(PlotOptions, given).plot
    narrow = pointwise.path is not None
    first, second = _samples((a, b), given, narrow=narrow)
    at = _at(places.at, first, second, narrow=narrow) if places.at else None
    reads = [name for source in (first, second, at) if source for name in source.reads()]
    require_deliverable(report_to, pointwise, reads, plot=plot)
    if plot:
        _require_curve(first)
    kept: list[tuple[Predictions, RowResults]] = []

    def keep(metric: Metric[Any], shown: Predictions, rows: RowResults) -> None:
        pointwise.take(metric, shown, rows)
        kept.append((shown, rows))

    with progress_bar() as progress:
        run = replace(
            make_run({**given, "replicates": build(PermutationOptions, given).permutations}), progress=progress
        )
        sink = keep if pointwise.path or plot else None
        report = two_samples(first, second, metric, grid=places.grid, at=at, run=run, sink=sink)
    require_nothing_skipped(report, first, second)
    pointwise.write()
    if plot:
        draw(_curve(*kept[0], first.roles.described_columns().get("x", "x")), plot)
    deliver(report, report_to)


def _samples(files: tuple[str, str], given: dict[str, Any], *, narrow: bool) -> list[FileSource]:
    """Return the sources of both files.

    Raises
    ------
    OptionError
        Both files are standard input.
    """
    from calcheck.io.files import resolve
    from calcheck.io.source import FileSource

    if files == (STDIN, STDIN):
        msg = "only one file can be read from standard input: pass the other by its file name"
        raise OptionError(msg)
    said, input_format = build(ColumnOptions, given), build(InputOptions, given).input_format
    return [FileSource(resolve(file, input_format), said, contents="sample", narrow=narrow) for file in files]


def _at(name: str, first: FileSource, second: FileSource, *, narrow: bool) -> FileSource:
    """Return the source of the evaluation points; if they are those of A or B, its open source."""
    from calcheck.io.evaluation_points import read_inputs

    for source in (first, second):
        if os.path.realpath(name) == os.path.realpath(source.file.name):
            return source
    return read_inputs(name, first, narrow=narrow)


def _require_curve(source: FileSource) -> None:
    """Raise, before computing, if no curve over the inputs can be drawn.

    Raises
    ------
    OptionError
        The inputs have several dimensions.
    """
    x = source.predictions().x
    if x is not None and x.shape[1] > 1:
        msg = f"--plot needs one-dimensional inputs, and these have {x.shape[1]} dimensions: omit --plot"
        raise OptionError(msg)


def _curve(shown: Predictions, rows: RowResults, called: str) -> Plot:
    from calcheck.render.mcmd_plot import discrepancy_plot

    return discrepancy_plot(shown.inputs()[:, 0], rows.columns, called)


mcmd_command = make_command(
    "mcmd",
    _mcmd,
    [
        _file("a", "File of the first sample, with inputs and targets; - reads standard input."),
        _file("b", "File of the second sample; its inputs may differ from those of A."),
        *(parameter for parameter in COLUMNS if parameter.name in SAMPLE_OPTIONS),
        *parameters(Mcmd, "Metric"),
        *parameters(GridOptions, "Rows"),
        *parameters(PermutationOptions, "Inference"),
        *SIGNIFICANCE,
        *REPORT,
        *parameters(PointwiseOptions, "Output"),
        *parameters(PlotOptions, "Output"),
        *SEED,
        *ENGINE,
    ],
    example="calcheck mcmd a.parquet b.parquet --inputs x",
)
