"""Comparison of a metric with its null distribution: reference, p-value and verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from calcheck.inference.metric_protocol import HasNullStatistic, implements
from calcheck.inference.p_values import cannot_reject, has_p_value, is_open, p_value, p_value_error, rejects
from calcheck.messages import Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.inference.metric_protocol import InferableMetric
    from calcheck.inference.null_distribution import FittedMetric
    from calcheck.report import Alternative
    from calcheck.results import IntervalInference

BY_ZETA, BY_TEST = "the verdict is based on zeta: {}", "the verdict is based on an exact test: {}"

IMPOSSIBLE = Message("verdict-basis", "the verdict is based on targets with probability 0, which no right model has")


def compare_with_null(
    computed: FittedMetric[InferableMetric], inferred: IntervalInference, run: Run
) -> IntervalInference:
    """Return the inference of a metric with its reference, p-value and verdict.

    Parameters
    ----------
    computed : FittedMetric
        The metric of the data, with its null distribution.
    inferred : IntervalInference
        Its interval and, if it has an exact reference, its zeta score.
    run : Run
        The confidence.
    """
    found = _compared(computed, inferred, run)
    if computed.value < np.inf or not computed.metric.info.infinite_if_impossible or found.verdict == "fail":
        return found
    if computed.null is not None and not np.isfinite(computed.null.values).all():
        return found
    notes = tuple(each for each in found.warnings if each.code != "no-verdict")
    return replace(found, verdict="fail", warnings=(*notes, IMPOSSIBLE))


def _compared(computed: FittedMetric[InferableMetric], inferred: IntervalInference, run: Run) -> IntervalInference:
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


def _with_p_value(computed: FittedMetric[InferableMetric], inferred: IntervalInference, run: Run) -> IntervalInference:
    """Add the p-value and the reference with its limits, if a null distribution was simulated."""
    metric, simulated = computed.metric, computed.null
    if metric.alternative == "none" or simulated is None or not has_p_value(computed.value):
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
        p_value_mc_error=p_value_error(p, len(values), metric.alternative),
        details={**inferred.details, "null": details},
        warnings=(*inferred.warnings, *simulated.warnings),
    )
    if not len(known):
        return found
    mean, low, high = _null_limits(known, metric.alternative, run.confidence)
    if found.reference is not None and metric.info.interval != "own":
        return replace(found, details={**found.details, "null": {**details, "mean": mean, "low": low, "high": high}})
    stated = metric.null_reference(computed.rows) if implements(metric, HasNullStatistic) else None
    return _with_null_reference(found, computed.tested_value, mean if stated is None else stated, low, high)


def _null_limits(
    known: NDArray[np.float64], alternative: Alternative, confidence: float
) -> tuple[float, float | None, float | None]:
    """Return the mean of the null distribution, and its limits on the sides that are evidence against a model."""
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    low = None if alternative == "greater" else float(np.quantile(known, tail))
    high = None if alternative == "less" else float(np.quantile(known, 1 - tail))
    return float(known.mean()), low, high


def _with_null_reference(
    found: IntervalInference, estimate: float, mean: float, low: float | None, high: float | None
) -> IntervalInference:
    """Add the value of a right model and the limits of the null distribution as reference, with zeta."""
    limit = high if low is None or (high is not None and estimate > mean) else low
    reach = abs((mean if limit is None else limit) - mean)
    zeta = (estimate - mean) / reach if reach > 0 and np.isfinite(estimate) else None
    if zeta is not None and (low is None or high is None):  # no distance to the side without a limit is evidence
        zeta = max(zeta, -1.0) if low is None else min(zeta, 1.0)
    return replace(found, reference=mean, reference_low=low, reference_high=high, reference_kind="simulated", zeta=zeta)


def _with_verdict(computed: FittedMetric[InferableMetric], found: IntervalInference, run: Run) -> IntervalInference:
    """Add the verdict from the p-value; undecided if its Monte Carlo error is too large at the maximum replicates."""
    simulated, p, error = computed.null, found.p_value, found.p_value_mc_error
    if simulated is None or p is None or error is None:
        return without_verdict(found, found.no_verdict or (simulated.no_verdict if simulated else ""))
    count = len(simulated.values)
    if cannot_reject(count, computed.metric.alternative, run.confidence):
        message = f"{count} replicates cannot reject at a confidence of {run.confidence:g}: pass a larger --replicates"
        return without_verdict(found, message)
    if computed.sequential and is_open(p, error, run.confidence):
        level = 1 - run.confidence
        message = f"undecided: p is {p:.3f} ± {error:.3f} (Monte Carlo error), and the threshold is {level:.3g}"
        return replace(found, verdict="undecided", warnings=(*found.warnings, Message("undecided", message)))
    return replace(found, verdict="fail" if rejects(p, run.confidence) else "pass")


def without_verdict(found: IntervalInference, reason: str) -> IntervalInference:
    """Return the inference without a verdict, and why."""
    notes = (Message.of_absence("no-verdict", reason),) if reason else ()
    return replace(found, verdict="none", warnings=(*found.warnings, *notes))
