"""Comparison of the conditional distributions of two samples of inputs and targets."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from calcheck.errors import DataError, Message, OptionError, ValuesError
from calcheck.evaluation import Sink, evaluate
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import REPLICATES
from calcheck.io.evaluation_points import grid_of, require_grid
from calcheck.metrics import METRICS, TWO_SAMPLE_METRICS
from calcheck.metrics._joint_mmd import SAMPLE
from calcheck.metrics.base import Metric
from calcheck.models.alignment import comparison_input
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.reports import Input, Report
from calcheck.typing import AnyArray

GRID = 200  # default number of evaluation points


@dataclass(frozen=True, eq=False)
class PooledSamples(Source):
    """The rows of two sources, with a column that labels the source of each row."""

    first: Source
    second: Source

    def batches(self) -> Iterator[Predictions]:
        yield self.predictions()

    def predictions(self) -> Predictions:
        return self._rows

    @cached_property
    def _rows(self) -> Predictions:
        both = [source.predictions() for source in (self.first, self.second)]
        if both[0].categories != both[1].categories:
            raise DataError("the two samples have different categories in columns of text among the inputs")
        labels = np.repeat([0, 1], [len(rows) for rows in both])
        return Predictions(
            y=_appended("targets", [rows.y for rows in both]),
            x=_appended("inputs", [None if rows.x is None else rows.inputs() for rows in both]),
            has_embedding=both[0].has_embedding,
            categories=both[0].categories,
            columns={SAMPLE: labels},
        )

    @contextmanager
    def error_context(self) -> Iterator[None]:
        try:
            yield
        except ValuesError as error:
            n = len(self.first.predictions())
            source, start = (self.first, 0) if error.rows[0] < n else (self.second, n)
            size = len(source.predictions())
            rows = [row - start for row in error.rows if start <= row < start + size]
            with source.error_names():
                raise type(error)(error.name, error.rule, rows, size, error.remedy) from error

    def input_info(self) -> Input:
        first, second = self.first.input_info(), self.second.input_info()
        both = comparison_input(("A", "B"), (first, second))
        return replace(both, n=first.n + second.n, predictive=first.predictive, layout=first.layout)

    def warnings(self) -> tuple[Message, ...]:
        return tuple(dict.fromkeys((*self.first.warnings(), *self.second.warnings())))


def _appended(what: str, parts: list[AnyArray | None]) -> AnyArray | None:
    """Return the concatenated rows of both samples; None if one of them has none."""
    first, second = parts
    if first is None or second is None:
        return None
    widths = [part[0].size for part in (first, second)]
    if widths[0] != widths[1]:
        msg = f"the {what} of the two samples have {widths[0]} and {widths[1]} columns: both must have the same columns"
        raise DataError(msg)
    return np.concatenate([part.reshape(len(part), -1) for part in (first, second)])


def metric_of_samples(metric: Metric[Any]) -> Metric[Any]:
    """Return a metric of two samples, for a metric that compares targets with predictions in the same way."""
    if metric.info.name in TWO_SAMPLE_METRICS:
        return metric
    if not hasattr(metric, "of_samples"):
        known = (*TWO_SAMPLE_METRICS, *(name for name, each in METRICS.items() if hasattr(each, "of_samples")))
        raise OptionError(f"{metric.info.name} does not compare two samples. Metrics that do: {', '.join(known)}")
    found: Metric[Any] = metric.of_samples()
    return found


def two_samples(
    first: Source,
    second: Source,
    metric: Metric[Any],
    *,
    grid: int | None = None,
    at: Source | None = None,
    run: Run | None = None,
    sink: Sink | None = None,
) -> Report:
    """Return a report that compares two samples."""
    if grid is not None:
        require_grid(grid, at=at is not None)
    source = PooledSamples(first, second)
    x = source.predictions().x
    if x is not None and at is None and metric.info.conditional:
        grid = grid or (GRID if x.shape[1] == 1 else None)
        name = first.input_info().columns.get("x", "x")
        at = InMemory(first.predictions()) if grid is None else grid_of(source, grid, name)
    elif at is not None and (at is first or at is second):
        at = InMemory(at.predictions())  # its file is already listed
    run = run or Run()
    if run.replicates is None:  # each permutation costs two regressions, so the number is not increased adaptively
        run = replace(run, replicates=REPLICATES)
    report = evaluate(source, [metric], at=at, run=run, sink=sink)
    return replace(report, settings={**report.settings, "grid": grid})
