"""`calcheck mcmd` and `calcheck mmd`: compare two samples in two files."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    COLUMNS,
    ENGINE,
    REPORT,
    SEED,
    SIGNIFICANCE,
    deliver,
    draw_metrics,
    require_nothing_skipped,
    require_outputs,
    run_context,
)
from calcheck.cli.options import GridOptions, PermutationOptions, PlotOptions, PointwiseOptions
from calcheck.cli.samples import SAMPLE_OPTIONS, compare_samples, open_samples
from calcheck.cli.typer_bridge import argument, build, make_command, parameters
from calcheck.metrics.mcmd import Mcmd
from calcheck.metrics.mmd import Mmd

if TYPE_CHECKING:
    from calcheck.io.source import FileSource


def _mcmd(a: str, b: str, **given: Any) -> None:
    """Compare the conditional distributions of two samples of inputs and targets, at each input."""
    from calcheck.models.two_samples import two_samples

    metric, places = build(Mcmd, given), build(GridOptions, given)
    plot = build(PlotOptions, given).plot
    narrow = given["pointwise"] is not None
    first, second = open_samples((a, b), given, narrow=narrow)
    at = _at(places.at, first, second, narrow=narrow) if places.at else None
    report_to, pointwise = require_outputs(given, first, second, at)
    with run_context(_as_replicates(given)) as run:
        sink = pointwise.take if pointwise.path else None
        run = replace(run, curves=bool(plot))
        report = two_samples(first, second, metric, grid=places.grid, at=at, run=run, sink=sink)
    require_nothing_skipped(report, first, second)
    pointwise.write()
    if plot:
        draw_metrics(report, plot)
    deliver(report, report_to)


def _mmd(a: str, b: str, **given: Any) -> None:
    """Compare the distributions of two samples: of their targets, or of their inputs and targets (--joint)."""
    compare_samples(build(Mmd, given), (a, b), _as_replicates(given))


def _as_replicates(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a command, with the number of permutations as that of replicates."""
    return {**given, "replicates": build(PermutationOptions, given).permutations, "no_null": False}


def _at(name: str, first: FileSource, second: FileSource, *, narrow: bool) -> FileSource:
    """Return the source of the evaluation points; if they are those of A or B, its open source."""
    from calcheck.io.evaluation_points import read_inputs

    for source in (first, second):
        if os.path.realpath(name) == os.path.realpath(source.file.name):
            return source
    return read_inputs(name, first, narrow=narrow)


FILES = [
    argument("a", "A", "File of the first sample, with inputs and targets; - reads standard input."),
    argument("b", "B", "File of the second sample; its inputs may differ from those of A."),
]
SAMPLE_COLUMNS = [parameter for parameter in COLUMNS if parameter.name in SAMPLE_OPTIONS]

mcmd_command = make_command(
    "mcmd",
    _mcmd,
    [
        *FILES,
        *parameters(Mcmd, "Metric"),
        *SAMPLE_COLUMNS,
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

mmd_command = make_command(
    "mmd",
    _mmd,
    [
        *FILES,
        *parameters(Mmd, "Metric"),
        *SAMPLE_COLUMNS,
        *parameters(PermutationOptions, "Inference"),
        *REPORT,
        *SEED,
        *ENGINE,
    ],
    example="calcheck mmd a.parquet b.parquet --joint --inputs x",
)
