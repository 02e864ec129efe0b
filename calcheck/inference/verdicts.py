"""Verdicts: what decides them, zeta scores, comparisons with the null distribution, and the verdict of all metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calcheck.errors import Message
from calcheck.inference import metric_protocol, p_values
from calcheck.inference.p_values import p_value
from calcheck.report import Alternative, Inference, Overall, Verdict, rejects

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.execution.run import Run
    from calcheck.typing import Values

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
    """How completely a file specifies its predictive distributions."""

    shape: bool = True  # Whether the shape is stated
    # The levels of the stated quantiles; absent where the distributions are specified completely
    levels: tuple[float, ...] | None = None
    coverage_only: bool = False  # Whether only the coverage of intervals is stated

    @classmethod
    def from_predictive(cls, predictive: Predictive | None) -> StatedShape:
        """Return how completely the given distributions are specified."""
        if predictive is None:
            return cls()
        levels = predictive.quantile_levels
        known = None if levels is None else tuple(levels.tolist())
        return cls(predictive.shape_is_known, known, predictive.interval_levels is not None)


def basis_of(
    metric: metric_protocol.InferableMetric,
    stated: StatedShape,
    rows: metric_protocol.RowResults,
    *,
    replicates: bool,
    otherwise: str = NO_REPLICATES,
) -> metric_protocol.Basis:
    """Return the basis of a metric's verdict."""
    if metric.alternative == "none":
        return metric_protocol.Basis("none", NO_EVIDENCE)
    if unfit := _unfit_reason(metric, stated, rows):
        return metric_protocol.Basis("none", unfit, can_simulate=False)
    if stated.shape and replicates:
        return metric_protocol.Basis("p")
    if not stated.shape:
        return metric_protocol.Basis("interval" if metric.info.distribution_free else "none", NO_SHAPE)
    exact = rows.inference is not None and rows.inference.verdict != "none"
    reason = NO_PERMUTATIONS if metric.info.permutes_samples else otherwise
    return metric_protocol.Basis("interval" if metric.info.distribution_free or exact else "none", reason)


def _unfit_reason(
    metric: metric_protocol.InferableMetric, stated: StatedShape, rows: metric_protocol.RowResults
) -> str:
    """Return why no test of the metric gives a verdict, or ""."""
    if stated.levels is not None and metric.interpolates(np.array(stated.levels)):
        return INTERPOLATED
    if stated.coverage_only and metric.info.uses != "coverage":
        return INTERVALS_ONLY
    return rows.no_verdict


UNDECIDED_ERRORS = 3.0  # A verdict is undecided if zeta is within this many standard errors of the threshold


def with_zeta(
    inference: metric_protocol.IntervalInference, distance: float, error: float
) -> metric_protocol.IntervalInference:
    """Return the inference with zeta and its Monte Carlo error."""
    return replace(inference, zeta=distance, zeta_mc_error=error if np.isfinite(error) else None)


def with_zeta_verdict(
    inference: metric_protocol.IntervalInference, distance: float, error: float
) -> metric_protocol.IntervalInference:
    """Return the inference with zeta, its Monte Carlo error, and the verdict by zeta."""
    inference = with_zeta(inference, distance, error)
    if is_undecided(distance, error):
        message = f"undecided: zeta is {distance:.3f} ± {error:.3f} (Monte Carlo error), and the threshold is 1"
        return replace(inference, verdict="undecided", warnings=(Message("undecided", message),))
    return replace(inference, verdict="pass" if abs(distance) <= 1 else "fail")


def is_undecided(distance: float, error: float) -> bool:
    """Return whether zeta is too close to the threshold for a verdict, given its Monte Carlo error."""
    return abs(abs(distance) - 1) < UNDECIDED_ERRORS * error


def with_adjusted(inference: Inference, p_value: float | None) -> Inference:
    """Return the inference with a p-value adjusted for the number of results, which is at least its own.

    Adjusted p-values rank results by their distances relative to limits, and may use fewer replicates.
    """
    known = [each for each in (p_value, inference.p_value) if each is not None]
    return replace(inference, p_value_adjusted=None if p_value is None else max(known))


def adjusted_by_family(
    computed: Sequence[metric_protocol.FittedMetric[metric_protocol.InferableMetric]],
) -> list[float | None]:
    """Return the p-values of results adjusted for their number; None for those without a null distribution.

    Metrics of other outcomes than the targets have other replicates. They are adjusted alone, and all p-values are
    multiplied by the number of such families (Bonferroni).
    """
    families: dict[str, list[int]] = {}
    for place, each in enumerate(computed):
        if each.null is not None and p_values.has_p_value(each.value) and np.isfinite(each.null.values).any():
            families.setdefault("" if each.shares_replicates else each.metric.info.name, []).append(place)
    found: list[float | None] = [None] * len(computed)
    for places in families.values():
        for place, p in zip(places, _step_down([computed[place] for place in places]), strict=True):
            found[place] = min(1.0, len(families) * float(p))
    return found


def _step_down(computed: Sequence[metric_protocol.FittedMetric[metric_protocol.InferableMetric]]) -> Values:
    """Return adjusted p-values, by the replicates that all metrics have: the first ones."""
    tested = [
        (np.append(each.compared_value, each.null.values), each.metric.alternative)
        for each in computed
        if each.null is not None
    ]
    fewest = min(len(values) for values, _ in tested)
    statistics = np.stack([values[:fewest] for values, _ in tested])
    relative = p_values.relative_to_limits(statistics, [alternative for _, alternative in tested])
    return p_values.step_down_p_values(np.where(np.isnan(relative), np.inf, relative))  # undefined: the most extreme


class CommonStatistics(NamedTuple):
    """Statistics of K metrics on the same data sets."""

    places: tuple[int, ...]  # The places of the metrics among all that were computed, K of them
    metrics: tuple[str, ...]
    alternatives: tuple[Alternative, ...]  # Their alternative hypotheses
    values: Values  # (K, 1 + R), statistics of the data, then of R replicates


def common_statistics(
    computed: Sequence[metric_protocol.FittedMetric[metric_protocol.InferableMetric]],
) -> CommonStatistics | None:
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


def _is_judged(
    computed: metric_protocol.FittedMetric[metric_protocol.InferableMetric], null: metric_protocol.NullDistribution
) -> bool:
    """Return whether the verdict is based on replicates that other metrics have too."""
    known = p_values.has_p_value(computed.compared_value) and not null.no_verdict
    return known and computed.basis.kind == "p" and computed.shares_replicates


def overall_verdict(
    computed: Sequence[metric_protocol.FittedMetric[metric_protocol.InferableMetric]],
    confidence: float,
    *,
    judged: bool = True,
) -> Overall | None:
    """Return one verdict for the metrics together; None if fewer than two have p-values from the same replicates.

    Its statistic is the largest of the :func:`extremes`, so its p-value is the smallest adjusted one.
    """
    found = common_statistics(computed)
    if found is None:
        return None
    statistics = extremes(found)
    p, replicates = float(p_values.step_down_p_values(statistics).min()), statistics.shape[1] - 1
    decided: Verdict = "fail" if rejects(p, confidence) else "pass"
    return Overall(
        verdict="none" if not judged or p_values.cannot_reject(replicates, "greater", confidence) else decided,
        p_value=p,
        method="maximum relative to limits",
        replicates=replicates,
        metrics=found.metrics,
        leading=found.metrics[int(np.argmax(statistics[:, 0]))],
    )


def adjusted_p_values(
    computed: Sequence[metric_protocol.FittedMetric[metric_protocol.InferableMetric]],
) -> list[float | None]:
    """Return the p-value of each metric adjusted for their number; None for those without common replicates.

    If the model is right, some adjusted p-value is at most p with probability at most p.

    Source: Westfall, Young (1993), "Resampling-Based Multiple Testing": step-down with the maximum of statistics.
    """
    adjusted: list[float | None] = [None] * len(computed)
    found = common_statistics(computed)
    if found is not None:
        for place, p in zip(found.places, p_values.step_down_p_values(extremes(found)), strict=True):
            adjusted[place] = float(p)
    return adjusted


def extremes(found: CommonStatistics) -> Values:
    """Return the distances :func:`.relative_to_limits`, (K, 1 + R); undefined statistics are no evidence."""
    relative = p_values.relative_to_limits(found.values, found.alternatives)
    return np.where(np.isnan(relative), 0.0, relative)


def zeta(estimate: float, reference: float, low: float, high: float) -> float:
    """Return the zeta score: (estimate - reference) over the half-width of the interval on that side [ZMS Eq. 14].

    It lies in [-1, 1] if the interval contains the reference. It is NaN if the interval does not contain the estimate.
    """
    reach = high - estimate if estimate <= reference else estimate - low
    return (estimate - reference) / reach if reach > 0 else float("nan")


BY_ZETA, BY_TEST = "the verdict is based on zeta: {}", "the verdict is based on an exact test: {}"
IMPOSSIBLE = Message("verdict-basis", "the verdict is based on targets with probability 0, which no right model has")


def compare_with_null(
    computed: metric_protocol.FittedMetric[metric_protocol.InferableMetric],
    inferred: metric_protocol.IntervalInference,
    run: Run,
) -> metric_protocol.IntervalInference:
    """Return the inference of a metric with its reference, p-value and verdict."""
    found = _compared(computed, inferred, run)
    if found.verdict == "fail" or not is_impossible(computed):
        return found
    notes = tuple(each for each in found.warnings if each.code != "no-verdict")
    return replace(found, verdict="fail", warnings=(*notes, IMPOSSIBLE))


def is_impossible(computed: metric_protocol.FittedMetric[metric_protocol.InferableMetric]) -> bool:
    """Return whether a value is infinite since targets have probability 0, and that of no replicate is."""
    if computed.value != np.inf or not computed.metric.info.infinite_if_impossible:
        return False
    return computed.null is None or bool(np.isfinite(computed.null.values).all())


def _compared(
    computed: metric_protocol.FittedMetric[metric_protocol.InferableMetric],
    inferred: metric_protocol.IntervalInference,
    run: Run,
) -> metric_protocol.IntervalInference:
    """Return the inference with a verdict by the p-value or by the interval."""
    basis = computed.basis
    found = _with_p_value(computed, inferred, run)
    if basis.kind == "none":
        return without_verdict(found, basis.reason)
    if basis.kind == "p":
        return _with_verdict(computed, found, run)
    if found.verdict == "none":
        return without_verdict(found, "; ".join(filter(None, (found.no_verdict, basis.reason))))
    text = (BY_TEST if found.zeta is None else BY_ZETA).format(basis.reason)
    notes = (Message("verdict-basis", text),) if basis.reason else ()
    return replace(found, warnings=(*found.warnings, *notes))


def _with_p_value(
    computed: metric_protocol.FittedMetric[metric_protocol.InferableMetric],
    inferred: metric_protocol.IntervalInference,
    run: Run,
) -> metric_protocol.IntervalInference:
    """Add the p-value and the reference with its limits, if a null distribution was simulated."""
    metric, simulated = computed.metric, computed.null
    if metric.alternative == "none" or simulated is None or not p_values.has_p_value(computed.value):
        return inferred
    if simulated.no_verdict:
        return replace(inferred, details={**inferred.details, "null": simulated.details})
    values = simulated.values
    known = values[np.isfinite(values)]
    p = p_value(values, computed.compared_value, metric.alternative)
    details = {"replicates": len(values), **simulated.details}
    if len(known) < len(values):
        details["undefined"] = len(values) - len(known)
    found = replace(
        inferred,
        p_value=p,
        p_value_mc_error=p_values.p_value_error(p, len(values), metric.alternative),
        details={**inferred.details, "null": details},
        warnings=(*inferred.warnings, *simulated.warnings),
    )
    if not len(known):
        return found
    mean, low, high = _null_limits(known, metric.alternative, run.confidence)
    if found.reference is not None and metric.info.interval != "own":
        return replace(found, details={**found.details, "null": {**details, "mean": mean, "low": low, "high": high}})
    stated = (
        metric.null_reference(computed.rows)
        if metric_protocol.implements(metric, metric_protocol.HasNullStatistic)
        else None
    )
    return _with_null_reference(found, computed.tested_value, mean if stated is None else stated, low, high)


def _null_limits(
    known: Values, alternative: Alternative, confidence: float
) -> tuple[float, float | None, float | None]:
    """Return the mean of the null distribution, and its limits on the sides that are evidence against a model."""
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    low = None if alternative == "greater" else float(np.quantile(known, tail))
    high = None if alternative == "less" else float(np.quantile(known, 1 - tail))
    return float(known.mean()), low, high


def _with_null_reference(
    found: metric_protocol.IntervalInference, estimate: float, mean: float, low: float | None, high: float | None
) -> metric_protocol.IntervalInference:
    """Add the value of a right model and the limits of the null distribution as reference, with zeta."""
    limit = high if low is None or (high is not None and estimate > mean) else low
    reach = abs((mean if limit is None else limit) - mean)
    zeta = (estimate - mean) / reach if reach > 0 and np.isfinite(estimate) else None
    if zeta is not None and (low is None or high is None):  # no distance to the side without a limit is evidence
        zeta = max(zeta, -1.0) if low is None else min(zeta, 1.0)
    return replace(found, reference=mean, reference_low=low, reference_high=high, reference_kind="simulated", zeta=zeta)


def _with_verdict(
    computed: metric_protocol.FittedMetric[metric_protocol.InferableMetric],
    found: metric_protocol.IntervalInference,
    run: Run,
) -> metric_protocol.IntervalInference:
    """Add the verdict from the p-value; undecided if its Monte Carlo error is too large at the maximum replicates."""
    simulated, p, error = computed.null, found.p_value, found.p_value_mc_error
    if simulated is None or p is None or error is None:
        return without_verdict(found, found.no_verdict or (simulated.no_verdict if simulated else ""))
    count = len(simulated.values)
    if p_values.cannot_reject(count, computed.metric.alternative, run.confidence):
        message = f"{count} replicates cannot reject at a confidence of {run.confidence:g}: pass a larger --replicates"
        return without_verdict(found, message)
    if computed.sequential and p_values.is_open(p, error, run.confidence):
        level = 1 - run.confidence
        message = f"undecided: p is {p:.3f} ± {error:.3f} (Monte Carlo error), and the threshold is {level:.3g}"
        return replace(found, verdict="undecided", warnings=(*found.warnings, Message("undecided", message)))
    return replace(found, verdict="fail" if rejects(p, run.confidence) else "pass")


def without_verdict(found: metric_protocol.IntervalInference, reason: str) -> metric_protocol.IntervalInference:
    """Return the inference without a verdict, and why."""
    notes = (Message.of_absence("no-verdict", reason),) if reason else ()
    return replace(found, verdict="none", warnings=(*found.warnings, *notes))
