"""The accumulator of each metric that can be computed from batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calcheck.embeddings.landmark_selection import LandmarkOptions
from calcheck.kernels.kernel_options import EXACT
from calcheck.metrics.base import BinnedMetric, Metric, OrderedMetric, RowMetric
from calcheck.metrics.cce import Cce
from calcheck.metrics.local_spread import ValidBinsMetric
from calcheck.metrics.sharpness import Cv
from calcheck.streaming.metric_accumulators import (
    BinnedAccumulator,
    ColumnAccumulator,
    MeanAccumulator,
    MetricAccumulator,
    ShiftedMeanAccumulator,
    ValidBinsAccumulator,
)
from calcheck.streaming.nystroem_accumulator import NystroemAccumulator


def _cce_accumulator(metric: Cce) -> NystroemAccumulator | None:
    if metric.exact_only or metric.solver in EXACT:
        return None
    return NystroemAccumulator(metric, LandmarkOptions.from_metric(metric), metric.lambda_)


def not_streamable_reason(metric: Metric[Any]) -> str:
    """Return why a metric cannot be computed in batches."""
    if isinstance(metric, Cce):
        if exact := metric.exact_only:
            return f"needs all rows at once with {exact}. Remove {exact} to compute cce in batches"
        solver = f"--solver {metric.solver}"
        return f"needs all rows at once with {solver}. Use --solver nystroem instead to compute cce in batches"
    return "needs all rows at once and cannot be computed in batches"


def _cv_accumulator(metric: Cv) -> ShiftedMeanAccumulator:
    return ShiftedMeanAccumulator(metric.rows_around)


ACCUMULATORS: tuple[tuple[type[Metric[Any]], Callable[[Any], MetricAccumulator[Any, Any] | None]], ...] = (
    (Cce, _cce_accumulator),
    (Cv, _cv_accumulator),
    (ValidBinsMetric, ValidBinsAccumulator),
    (BinnedMetric, BinnedAccumulator),
    (OrderedMetric, ColumnAccumulator),
    (RowMetric, MeanAccumulator),
)
"""Accumulators by class of metrics, with subclasses before their base classes."""


def accumulator_of(metric: Metric[Any]) -> MetricAccumulator[Any, Any] | None:
    """Return the accumulator of a metric; None if the metric cannot be computed in batches."""
    factory = next((make for kind, make in ACCUMULATORS if isinstance(metric, kind)), None)
    return None if factory is None else factory(metric)
