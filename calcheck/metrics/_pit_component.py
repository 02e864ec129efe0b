"""Base class of the components of the probability integral transform (PIT)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metrics.base import MeanMetric
from calcheck.results import RowResults

if TYPE_CHECKING:
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class PitComponent(MeanMetric):
    """Mean of an orthonormal polynomial of the PIT: 0 for a perfect model, with variance at most 1/n."""

    column: ClassVar[str] = "component"
    degree: ClassVar[int]
    """The degree of the polynomial, from 1."""

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.pit import mean_component, pit

        predictive = rows.distributions()
        is_exact = predictive.shape_is_known and predictive.quantile_levels is None
        values = mean_component(*pit(rows), self.degree)
        return RowResults({"component": values}, reference=0.0 if is_exact else None)
