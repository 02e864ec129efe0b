"""Two samples in two files, for the commands that compare them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from calcheck.cli.common import (
    deliver,
    draw_metrics,
    file_source,
    require_nothing_skipped,
    require_outputs,
    run_context,
)
from calcheck.cli.typer_bridge import build
from calcheck.errors import OptionError
from calcheck.studies.options import GridOptions, PlotOptions

if TYPE_CHECKING:
    from calcheck.io.source import FileSource
    from calcheck.metrics.base import Metric

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


def compare_samples(metric: Metric[Any], files: tuple[str, str], given: dict[str, Any]) -> None:
    """Compute a metric of two samples in files, and write the requested outputs."""
    from calcheck.models.two_samples import two_samples

    places, plot = build(GridOptions, given), build(PlotOptions, given).plot
    narrow = given.get("pointwise") is not None
    first, second = open_samples(files, given, narrow=narrow)
    at = _at(places.at, first, second, narrow=narrow) if places.at else None
    report_to, pointwise = require_outputs(given, first, second, at)
    sink = pointwise.take if pointwise.path else None
    with run_context(given) as run:
        run = replace(run, curves=bool(plot))
        report = two_samples(first, second, metric, grid=places.grid, at=at, run=run, sink=sink)
    require_nothing_skipped(report, first, second)
    pointwise.write()
    if plot:
        draw_metrics(report, plot)
    deliver(report, report_to)


def _at(name: str, first: FileSource, second: FileSource, *, narrow: bool) -> FileSource:
    """Return the source of the evaluation points; if they are those of A or B, its open source."""
    from calcheck.io.source import read_inputs

    for source in (first, second):
        if os.path.realpath(name) == os.path.realpath(source.file.name):
            return source
    return read_inputs(name, first, narrow=narrow)


def open_samples(files: tuple[str, str], given: dict[str, Any], *, narrow: bool) -> list[FileSource]:
    """Return the sources of both files."""
    if files == (STDIN, STDIN):
        msg = "only one file can be read from standard input: pass the other by its file name"
        raise OptionError(msg)
    return [file_source(file, given, contents="sample", narrow=narrow) for file in files]
