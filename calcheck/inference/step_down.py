"""P-values of several statistics, adjusted for their number on the same replicates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from calcheck.inference.p_values import TIED, has_p_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.inference.metric_protocol import InferableMetric
    from calcheck.inference.null_distribution import FittedMetric
    from calcheck.report import Alternative, Inference

    Values = NDArray[np.float64]

LEVEL = 0.05  # Probability beyond the limits of a statistic


def relative_to_limits(statistics: Values, alternatives: Sequence[Alternative]) -> Values:
    """Return the distances from the medians, relative to those of the limits of the null distributions, (k, N).

    A value of 1 is at the limit at which the statistic alone is significant at 5 %; values of 0 and below are no
    evidence, as are constant statistics. Medians and limits are those of all columns, so these remain exchangeable. The
    limits of a two-sided test differ, which allows for skewed statistics. A statistic of inf stays inf if large values
    are evidence. Undefined statistics are NaN.

    Parameters
    ----------
    statistics : (k, N)
        Statistics of N data sets as columns.
    alternatives : sequence of str
        Extreme values of each statistic, k of them.

    References
    ----------
    Myllymäki, Mrkvička, Grabarnik, Seijo, Hahn (2017), "Global envelope tests for spatial processes": the directional
    quantile test.
    """
    values = np.where(np.isfinite(statistics), statistics, np.nan)
    away = values - np.nanmedian(values, axis=1, keepdims=True)
    relative = np.array([_beyond(line, side) for line, side in zip(away, alternatives, strict=True)])
    largest = np.isposinf(statistics) & (np.array(alternatives) != "less")[:, None]
    return np.where(largest, np.inf, relative)


def _beyond(line: Values, alternative: Alternative) -> Values:
    """Return distances from 0, (N,), in units of the limit on their side; negative on the side that is no evidence."""
    tail = LEVEL / (2 if alternative == "two-sided" else 1)
    above, below = (side / _limit(side, tail) for side in (line, -line))
    sides = {"greater": above, "less": below, "two-sided": np.maximum(above, below)}
    return np.asarray(sides[alternative])


def _limit(line: Values, tail: float) -> float:
    """Return the quantile that leaves a tail above; the maximum if that is 0, and infinity if no value is above 0."""
    limits = (float(np.nanquantile(line, 1 - tail)), float(np.nanmax(line)))
    return next((limit for limit in limits if limit > 0), np.inf)


def step_down_p_values(extremes: Values) -> Values:
    """Return the adjusted p-value of each statistic of the first column, (k,).

    Under any combination of right and wrong statistics, the probability that a right one has an adjusted p-value of at
    most alpha is at most alpha: each is compared with the maximum over the statistics that are no more extreme.

    Parameters
    ----------
    extremes : (k, N)
        How extreme each statistic is: of the data in the first column, then of replicates.

    References
    ----------
    Westfall, Young (1993), "Resampling-based multiple testing", algorithm 2.8.
    """
    order = np.argsort(extremes[:, 0], kind="stable")
    largest = np.maximum.accumulate(extremes[order], axis=0)
    own = extremes[order, 0]
    reached = np.sum(largest >= own[:, None] * (1 - TIED * np.sign(own[:, None])), axis=1) / extremes.shape[1]
    p_values = np.empty(len(order))
    p_values[order] = np.maximum.accumulate(reached[::-1])[::-1]
    return p_values


def with_adjusted(inference: Inference, p_value: float | None) -> Inference:
    """Return the inference with a p-value adjusted for the number of results, which is at least its own.

    Adjusted p-values rank results by their distances relative to limits, and may use fewer replicates.
    """
    known = [each for each in (p_value, inference.p_value) if each is not None]
    return replace(inference, p_value_adjusted=None if p_value is None else max(known))


def adjusted_by_family(computed: Sequence[FittedMetric[InferableMetric]]) -> list[float | None]:
    """Return the p-values of results adjusted for their number; None for those without a null distribution.

    Metrics of other outcomes than the targets have other replicates. They are adjusted alone, and all p-values are
    multiplied by the number of such families (Bonferroni).
    """
    families: dict[str, list[int]] = {}
    for place, each in enumerate(computed):
        if each.null is not None and has_p_value(each.value) and np.isfinite(each.null.values).any():
            families.setdefault("" if each.shares_replicates else each.metric.info.name, []).append(place)
    found: list[float | None] = [None] * len(computed)
    for places in families.values():
        for place, p_value in zip(places, _step_down([computed[place] for place in places]), strict=True):
            found[place] = min(1.0, len(families) * float(p_value))
    return found


def _step_down(computed: Sequence[FittedMetric[InferableMetric]]) -> Values:
    """Return adjusted p-values, by the replicates that all metrics have: the first ones."""
    tested = [
        (np.append(each.compared_value, each.null.values), each.metric.alternative)
        for each in computed
        if each.null is not None
    ]
    fewest = min(len(values) for values, _ in tested)
    statistics = np.stack([values[:fewest] for values, _ in tested])
    relative = relative_to_limits(statistics, [alternative for _, alternative in tested])
    return step_down_p_values(np.where(np.isnan(relative), np.inf, relative))  # undefined: the most extreme
