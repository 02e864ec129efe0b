"""One verdict for several metrics from the same replicates, and p-values adjusted for the number of metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calcheck.inference.p_values import cannot_reject, has_p_value, rejects
from calcheck.inference.step_down import relative_to_limits, step_down_p_values
from calcheck.report import Overall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.inference.metric_protocol import InferableMetric
    from calcheck.inference.null_distribution import FittedMetric
    from calcheck.report import Alternative, Verdict
    from calcheck.results import NullDistribution

    Values = NDArray[np.float64]


class CommonStatistics(NamedTuple):
    """Statistics of K metrics on the same data sets.

    Parameters
    ----------
    places : tuple of int
        The places of the metrics among all that were computed, K of them.
    metrics : tuple of str
        Their names.
    alternatives : tuple of str
        Their alternative hypotheses.
    values : (K, 1 + R)
        Statistics of the data, then of R replicates.
    """

    places: tuple[int, ...]
    metrics: tuple[str, ...]
    alternatives: tuple[Alternative, ...]
    values: Values


def common_statistics(computed: Sequence[FittedMetric[InferableMetric]]) -> CommonStatistics | None:
    """Return the statistics of the metrics whose verdicts are based on p-values; None if these are fewer than two.

    A replicate has a number, and has the same targets for each metric. If metrics have different numbers of replicates,
    the first ones are used, which all of them have.
    """
    judged = [
        (place, each, each.null.values)
        for place, each in enumerate(computed)
        if each.null is not None and _is_judged(each, each.null)
    ]
    if len(judged) < 2:  # noqa: PLR2004 - a pair
        return None
    count = min(len(values) for *_, values in judged)
    return CommonStatistics(
        tuple(place for place, *_ in judged),
        tuple(each.metric.info.name for _, each, _ in judged),
        tuple(each.metric.alternative for _, each, _ in judged),
        np.array([np.append(each.compared_value, values[:count]) for _, each, values in judged]),
    )


def _is_judged(computed: FittedMetric[InferableMetric], null: NullDistribution) -> bool:
    """Return whether the verdict is based on replicates that other metrics have too."""
    known = has_p_value(computed.compared_value) and not null.no_verdict
    return known and computed.basis.kind == "p" and computed.shares_replicates


def overall_verdict(
    computed: Sequence[FittedMetric[InferableMetric]], confidence: float, *, judged: bool = True
) -> Overall | None:
    """Return one verdict for the metrics together; None if fewer than two have p-values from the same replicates.

    Its statistic is the largest of the :func:`extremes`, so its p-value is the smallest adjusted one.

    Parameters
    ----------
    computed : sequence of FittedMetric
        Metrics on the same rows, with their null distributions.
    confidence : float
        The verdict is ``"fail"`` if the p-value is at most 1 - confidence.
    judged : bool
        Whether there is a verdict: there is none if rows depend on each other in an unknown way.
    """
    found = common_statistics(computed)
    if found is None:
        return None
    statistics = extremes(found)
    p, replicates = float(step_down_p_values(statistics).min()), statistics.shape[1] - 1
    decided: Verdict = "fail" if rejects(p, confidence) else "pass"
    return Overall(
        verdict="none" if not judged or cannot_reject(replicates, "greater", confidence) else decided,
        p_value=p,
        method="maximum relative to limits",
        replicates=replicates,
        metrics=found.metrics,
        leading=found.metrics[int(np.argmax(statistics[:, 0]))],
    )


def adjusted_p_values(computed: Sequence[FittedMetric[InferableMetric]]) -> list[float | None]:
    """Return the p-value of each metric adjusted for their number; None for those without common replicates.

    If the model is right, some adjusted p-value is at most p with probability at most p.

    References
    ----------
    Westfall, Young (1993), "Resampling-Based Multiple Testing": step-down with the maximum of statistics.
    """
    adjusted: list[float | None] = [None] * len(computed)
    found = common_statistics(computed)
    if found is not None:
        for place, p in zip(found.places, step_down_p_values(extremes(found)), strict=True):
            adjusted[place] = float(p)
    return adjusted


def extremes(found: CommonStatistics) -> Values:
    """Return the distances :func:`.relative_to_limits`, (K, 1 + R); undefined statistics are no evidence."""
    relative = relative_to_limits(found.values, found.alternatives)
    return np.where(np.isnan(relative), 0.0, relative)
