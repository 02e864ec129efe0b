"""The accumulator of each metric that can be computed from batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calcheck.embeddings.landmark_selection import CentresOptions
from calcheck.kernels.kernel_options import EXACT
from calcheck.metrics._validity import ValidBinsMetric
from calcheck.metrics.base import BinnedMetric, Metric, OrderedMetric, RowMetric
from calcheck.metrics.cce import Cce
from calcheck.metrics.cv import Cv
from calcheck.streaming.metric_accumulators import (
    BinSumming,
    CentredSumming,
    OrderedSumming,
    RowSumming,
    Summing,
    ValidBinSumming,
)
from calcheck.streaming.nystroem_accumulator import SummingOnCentres

if TYPE_CHECKING:
    from collections.abc import Callable


def _of_cce(metric: Cce) -> SummingOnCentres | None:
    if metric.exact_only or metric.solver in EXACT:
        return None
    return SummingOnCentres(metric, CentresOptions.of(metric), metric.lambda_)


def _of_cv(metric: Cv) -> CentredSumming:
    return CentredSumming(metric.about)


ACCUMULATORS: tuple[tuple[type[Metric[Any, Any]], Callable[[Any], Summing[Any, Any] | None]], ...] = (
    (Cce, _of_cce),
    (Cv, _of_cv),
    (ValidBinsMetric, ValidBinSumming),
    (BinnedMetric, BinSumming),
    (OrderedMetric, OrderedSumming),
    (RowMetric, RowSumming),
)
"""Kinds of metrics, the special ones first."""


def summing_of(metric: Metric[Any, Any]) -> Summing[Any, Any] | None:
    """Return how a metric is summed; None where it needs all rows together."""
    made = next((make for kind, make in ACCUMULATORS if isinstance(metric, kind)), None)
    return None if made is None else made(metric)
