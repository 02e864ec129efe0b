"""The verdict of all metrics together, and adjusted p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calcheck.inference.p_values import TIED, cannot_reject, has_p_value, rejects
from calcheck.report import Alternative, Inference, Overall, Verdict

if TYPE_CHECKING:
    from calcheck.inference.metric_protocol import InferableMetric
    from calcheck.inference.null_distribution import FittedMetric
    from calcheck.inference.results import NullDistribution
    from calcheck.typing import Values

LEVEL = 0.05  # Probability beyond the limits of a statistic


def relative_to_limits(statistics: Values, alternatives: Sequence[Alternative]) -> Values:
    """Return the distances from the medians, relative to those of the limits of the null distributions, (k, N).

    A value of 1 is at the limit at which the statistic alone is significant at 5 %; values of 0 and below are no
    evidence, as are constant statistics. Medians and limits are those of all columns, so these remain exchangeable. The
    limits of a two-sided test differ, which allows for skewed statistics. A statistic of inf stays inf if large values
    are evidence. Undefined statistics are NaN.

    Shapes: statistics (k, N).

    Source: Myllymäki, Mrkvička, Grabarnik, Seijo, Hahn (2017), "Global envelope tests for spatial processes": the
    directional quantile test.
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

    Shapes: extremes (k, N).

    Source: Westfall, Young (1993), "Resampling-based multiple testing", algorithm 2.8.
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


class CommonStatistics(NamedTuple):
    """Statistics of K metrics on the same data sets."""

    places: tuple[int, ...]  # The places of the metrics among all that were computed, K of them
    metrics: tuple[str, ...]
    alternatives: tuple[Alternative, ...]  # Their alternative hypotheses
    values: Values  # (K, 1 + R), statistics of the data, then of R replicates


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

    Source: Westfall, Young (1993), "Resampling-Based Multiple Testing": step-down with the maximum of statistics.
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
