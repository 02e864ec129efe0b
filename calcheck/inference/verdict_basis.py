"""What a metric's verdict follows from: its p-value, its interval, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.inference.metric_protocol import InferableMetric
    from calcheck.results import RowResults

NO_REPLICATES = "what a perfect model scores was not simulated (--replicates R does, --no-null does not)"
NO_SHAPE = "the file does not state the shape of the errors, which a perfect model's score depends on (--error-dist)"
INTERPOLATED = "the file states quantiles, and the value depends on what is interpolated between and beyond them"
NO_EVIDENCE = "it depends on the predictions alone"


@dataclass(frozen=True)
class StatedShape:
    """What a file states of its predictive distributions.

    Parameters
    ----------
    shape : bool
        Whether their shape is stated.
    levels : tuple of float, optional
        The levels of the quantiles by which they are known; absent where they are known as a whole.
    """

    shape: bool = True
    levels: tuple[float, ...] | None = None

    @classmethod
    def from_predictive(cls, predictive: Predictive | None) -> StatedShape:
        """Return what is stated of some distributions."""
        if predictive is None:
            return cls()
        levels = predictive.quantile_levels
        return cls(predictive.shape_is_known, None if levels is None else tuple(levels.tolist()))


@dataclass(frozen=True)
class Basis:
    """What a metric's verdict follows from.

    Parameters
    ----------
    kind : str
        The p-value, the interval (zeta), or nothing.
    reason : str
        Why it is not the p-value.
    """

    kind: Literal["p", "interval", "none"]
    reason: str = ""


def basis_of(metric: InferableMetric, stated: StatedShape, rows: RowResults, *, replicates: bool) -> Basis:
    """Tell what a metric's verdict follows from.

    Parameters
    ----------
    metric : Metric
        The metric.
    stated : StatedShape
        What is known of the distributions.
    rows : RowResults
        What the metric says, with its own exact test where it has one.
    replicates : bool
        Whether replicates of the targets are drawn from them.
    """
    if metric.alternative_in_use == "none":
        return Basis("none", NO_EVIDENCE)
    if stated.levels is not None and metric.interpolates(np.array(stated.levels)):
        return Basis("none", INTERPOLATED)
    if stated.shape and replicates:
        return Basis("p")
    if not stated.shape:
        return Basis("interval" if metric.distribution_free else "none", NO_SHAPE)
    exact = rows.inference is not None and rows.inference.verdict != "none"
    return Basis("interval" if metric.distribution_free or exact else "none", NO_REPLICATES)
