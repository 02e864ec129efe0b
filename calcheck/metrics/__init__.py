"""The metrics, one a file; an entry here gives a metric its command, help, schema and common tests."""

from typing import Any

from calcheck.metric import Metric
from calcheck.metrics.cce import Cce

__all__ = ["METRICS"]

METRICS: dict[str, type[Metric[Any, Any]]] = {metric.name: metric for metric in (Cce,)}
"""Every metric by its name."""
