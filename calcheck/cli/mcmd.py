"""`calcheck mcmd`: compare two samples in two files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    COLUMNS,
    ENGINE,
    REPORT,
    SEED,
    SIGNIFICANCE,
    file_source,
    require_nothing_skipped,
    require_outputs,
    run_context,
)
from calcheck.cli.options import (
    GridOptions,
    PermutationOptions,
    PlotOptions,
    PointwiseOptions,
)
from calcheck.cli.output import deliver, draw
from calcheck.cli.typer_bridge import argument, build, make_command, parameters
from calcheck.errors import OptionError
from calcheck.metrics.mcmd import Mcmd

if TYPE_CHECKING:
    from calcheck.charts.picture import Picture
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions
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


def _mcmd(a: str, b: str, **given: Any) -> None:
    """Compare the conditional distributions of two samples of inputs and targets, at each input."""
    from calcheck.studies.two_samples import two_samples

    metric, places = build(Mcmd, given), build(GridOptions, given)
    plot = build(PlotOptions, given).plot
    narrow = given["pointwise"] is not None
    first, second = _samples((a, b), given, narrow=narrow)
    at = _at(places.at, first, second, narrow=narrow) if places.at else None
    report_to, pointwise = require_outputs(given, first, second, at)
    if plot:
        _require_curve(first)
    kept: list[tuple[Predictions, RowResults]] = []

    def keep(metric: Metric[Any], shown: Predictions, rows: RowResults) -> None:
        pointwise.take(metric, shown, rows)
        kept.append((shown, rows))

    with run_context({**given, "replicates": build(PermutationOptions, given).permutations}) as run:
        sink = keep if pointwise.path or plot else None
        report = two_samples(first, second, metric, grid=places.grid, at=at, run=run, sink=sink)
    require_nothing_skipped(report, first, second)
    pointwise.write()
    if plot:
        draw(_curve(*kept[0], first.roles.described_columns().get("x", "x")), plot)
    deliver(report, report_to)


def _samples(files: tuple[str, str], given: dict[str, Any], *, narrow: bool) -> list[FileSource]:
    """Return the sources of both files."""
    if files == (STDIN, STDIN):
        msg = "only one file can be read from standard input: pass the other by its file name"
        raise OptionError(msg)
    return [file_source(file, given, contents="sample", narrow=narrow) for file in files]


def _at(name: str, first: FileSource, second: FileSource, *, narrow: bool) -> FileSource:
    """Return the source of the evaluation points; if they are those of A or B, its open source."""
    from calcheck.io.evaluation_points import read_inputs

    for source in (first, second):
        if os.path.realpath(name) == os.path.realpath(source.file.name):
            return source
    return read_inputs(name, first, narrow=narrow)


def _require_curve(source: FileSource) -> None:
    """Raise, before computing, if no curve over the inputs can be drawn."""
    x = source.predictions().x
    if x is not None and x.shape[1] > 1:
        msg = f"--plot needs one-dimensional inputs, and these have {x.shape[1]} dimensions: omit --plot"
        raise OptionError(msg)


def _curve(shown: Predictions, rows: RowResults, called: str) -> Picture:
    from calcheck.render.pictures.two_samples import discrepancy_picture

    return discrepancy_picture(shown.inputs()[:, 0], rows.columns, called)


mcmd_command = make_command(
    "mcmd",
    _mcmd,
    [
        argument("a", "A", "File of the first sample, with inputs and targets; - reads standard input."),
        argument("b", "B", "File of the second sample; its inputs may differ from those of A."),
        *parameters(Mcmd, "Metric"),
        *(parameter for parameter in COLUMNS if parameter.name in SAMPLE_OPTIONS),
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
