"""A distance between two samples, in two files or in memory."""

from dataclasses import replace
from typing import Any

from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics.base import Metric
from calcheck.metrics.mcmd import Mcmd
from calcheck.metrics.mmd import Mmd
from calcheck.models.two_samples import two_samples
from calcheck.predictions import InMemory, Predictions
from calcheck.reports import Report
from calcheck.studies import Request
from calcheck.studies.two_samples.options import GridOptions, PermutationOptions


def run_mcmd(request: Request) -> Report:
    """Return the report of mcmd, with the options that were asked for."""
    return run(request, request.options(Mcmd))


def run_mmd(request: Request) -> Report:
    """Return the report of mmd, with the options that were asked for."""
    return run(request, request.options(Mmd))


def run(request: Request, metric: Metric[Any]) -> Report:
    """Return the report of a metric of two samples."""
    narrow = request.data("pointwise") is not None
    first, second = request.open_samples(request.data("a"), request.data("b"), narrow=narrow)
    at = request.data("at")
    points = None if at is None else request.open_inputs(at, first, second, narrow=narrow)

    def keep(_: Any, shown: Predictions, rows: RowResults) -> None:
        request.keep(metric.info.name, shown, rows.columns, InMemory(shown))

    permutations, grid = request.options(PermutationOptions).permutations, request.options(GridOptions).grid
    with request.run() as run:
        run = replace(run, curves=request.draws)
        run = run if permutations is None else replace(run, replicates=permutations)
        sink = keep if request.keeps_rows else None
        report = two_samples(first, second, metric, grid=grid, at=points, run=run, sink=sink)
    return request.require_results(report, first, second, every=True)
