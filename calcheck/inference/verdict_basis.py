"""The basis of a metric's verdict: its p-value, its interval, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.inference.metric_protocol import InferableMetric
    from calcheck.results import RowResults

NO_REPLICATES = "the null distribution was not simulated (--replicates R simulates it, --no-null turns it off)"
NO_PERMUTATIONS = "there was no permutation test (--permutations R runs it, --no-null turns it off)"
NO_SHAPE = "the file does not state the error distribution, which a perfect model's score depends on (--error-dist)"
INTERPOLATED = (
    "the file states quantiles only, and a perfect model's score depends on interpolation between and beyond them"
)
INTERVALS_ONLY = "the file states intervals only, and a perfect model's score depends on more than their coverage"
NO_EVIDENCE = "the metric depends on the predictions only"


@dataclass(frozen=True)
class StatedShape:
    """How completely a file specifies its predictive distributions.

    Parameters
    ----------
    shape : bool
        Whether the shape is stated.
    levels : tuple of float, optional
        The levels of the stated quantiles; absent where the distributions are specified completely.
    coverage_only : bool
        Whether only the coverage of intervals is stated.
    """

    shape: bool = True
    levels: tuple[float, ...] | None = None
    coverage_only: bool = False

    @classmethod
    def from_predictive(cls, predictive: Predictive | None) -> StatedShape:
        """Return how completely the given distributions are specified."""
        if predictive is None:
            return cls()
        levels = predictive.quantile_levels
        known = None if levels is None else tuple(levels.tolist())
        return cls(predictive.shape_is_known, known, predictive.interval_levels is not None)


@dataclass(frozen=True)
class Basis:
    """The basis of a metric's verdict.

    Parameters
    ----------
    kind : str
        The p-value, the interval (zeta), or none.
    reason : str
        Why the basis is not the p-value.
    can_simulate : bool
        Whether the file states what a perfect model's score depends on, so that it can be simulated.
    """

    kind: Literal["p", "interval", "none"]
    reason: str = ""
    can_simulate: bool = True


def basis_of(
    metric: InferableMetric,
    stated: StatedShape,
    rows: RowResults,
    *,
    replicates: bool,
    otherwise: str = NO_REPLICATES,
) -> Basis:
    """Return the basis of a metric's verdict.

    Parameters
    ----------
    metric : Metric
        The metric.
    stated : StatedShape
        How completely the distributions are specified.
    rows : RowResults
        The results of the metric, with its own exact test if it has one.
    replicates : bool
        Whether the null distribution is simulated.
    otherwise : str
        Why it is not.
    """
    if metric.alternative == "none":
        return Basis("none", NO_EVIDENCE)
    if unfit := _unfit_reason(metric, stated, rows):
        return Basis("none", unfit, can_simulate=False)
    if stated.shape and replicates:
        return Basis("p")
    if not stated.shape:
        return Basis("interval" if metric.info.distribution_free else "none", NO_SHAPE)
    exact = rows.inference is not None and rows.inference.verdict != "none"
    reason = NO_PERMUTATIONS if metric.info.permutes_samples else otherwise
    return Basis("interval" if metric.info.distribution_free or exact else "none", reason)


def _unfit_reason(metric: InferableMetric, stated: StatedShape, rows: RowResults) -> str:
    """Return why no test of the metric gives a verdict, or ""."""
    if stated.levels is not None and metric.interpolates(np.array(stated.levels)):
        return INTERPOLATED
    if stated.coverage_only and metric.info.uses != "coverage":
        return INTERVALS_ONLY
    return rows.no_verdict
