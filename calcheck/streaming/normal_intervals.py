"""Confidence intervals from sums and their covariance, by the asymptotic normal distribution of means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from calcheck.execution.context import RandomStream
from calcheck.inference.intervals import percentile, zeta, zeta_error
from calcheck.inference.metric_protocol import HasNullStatistic
from calcheck.inference.verdicts import (
    BIASED,
    MIN_EFFECTIVE_ROWS,
    RESAMPLES,
    check_replicates,
    no_interval,
    too_few_effective_rows,
    with_zeta_verdict,
)
from calcheck.messages import Message
from calcheck.results import IntervalInference, NullDistribution
from calcheck.statistics.groups import Means

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.inference.metric_protocol import InferableMetric
    from calcheck.inference.verdict_basis import Basis
    from calcheck.streaming.accumulators import MomentSums

STEP = 1e-4  # Step of numerical gradients, relative to the mean
UNKNOWN_TAILS = "the effective number of rows of the interval is unknown"
NOT_REPLICATED = "each replicate would require all stored rows"


def normal_interval(metric: InferableMetric, sums: MomentSums, run: Run, basis: Basis) -> IntervalInference:
    """Return the inference of a function of means from sums over rows.

    Means of many rows are approximately normal, with a covariance estimated from the sums. Draws from this distribution
    replace bootstrap resamples, and the interval is the percentile interval.

    Parameters
    ----------
    metric : Metric
        The function.
    sums : MomentSums
        The sums of n rows.
    run : Run
        Seed, confidence, number of draws.
    basis : Basis
        The basis of the verdict.
    """
    estimate = float(metric.value(sums.means().with_values(sums.fixed)))
    if reason := _no_interval_reason(metric, sums, estimate, run):
        return IntervalInference(warnings=(no_interval(reason),))
    draws, described, reason = check_replicates(_normal_draws(metric, sums, run), estimate, kind="draws")
    found = IntervalInference(details={"normal": described})
    if reason:
        return replace(found, warnings=(no_interval(reason),))
    low, high = percentile(draws, run.confidence)
    found = replace(found, low=low, high=high, interval="normal")
    if metric.info.interval == "percentile":
        return found if low <= estimate <= high else replace(found, warnings=(BIASED,))
    effective = _effective_rows(metric, sums)
    if np.isfinite(effective):
        described["effective_rows"] = effective
    why = _no_verdict_reason(effective, sums.n)
    few = (Message("few-effective-rows", why),) if why and np.isfinite(effective) and basis.kind != "interval" else ()
    if sums.metadata.reference is None:
        return replace(found, warnings=few)
    inferred = _with_verdict(found, draws, estimate, sums.metadata.reference, run)
    if basis.kind == "interval" and not why:
        return inferred
    return replace(inferred, verdict="none", warnings=few, no_verdict=why if basis.kind == "interval" else "")


def _no_interval_reason(metric: InferableMetric, sums: MomentSums, estimate: float, run: Run) -> str:
    """Return why there is no interval, or ""."""
    if metric.info.interval == "none":
        return metric.info.no_interval
    reasons = {
        "the bootstrap was turned off (--no-bootstrap)": run.resamples == 0,
        "a single row has no spread": sums.n == 1,
        "the metric is a function of too many means for a stored covariance": sums.products is None,
        "the value is not finite": not np.isfinite(estimate)
        or (sums.products is not None and not np.isfinite(sums.products).all()),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _with_verdict(
    found: IntervalInference, draws: NDArray[np.float64], estimate: float, reference: float, run: Run
) -> IntervalInference:
    """Add zeta against an exact reference, and the verdict by zeta."""
    distance = zeta(estimate, reference, found.low or 0.0, found.high or 0.0)
    error = zeta_error(draws, estimate, reference, 0.0, run.confidence)
    if not np.isfinite(distance):
        return replace(found, no_verdict="the interval does not contain the value, so zeta is undefined")
    return with_zeta_verdict(found, distance, error)


def _no_verdict_reason(effective: float, n: int) -> str:
    """Return why the interval gives no verdict, or ""."""
    if not np.isfinite(effective):
        return UNKNOWN_TAILS
    return too_few_effective_rows(effective, n) if effective < MIN_EFFECTIVE_ROWS else ""


def _effective_rows(metric: InferableMetric, sums: MomentSums) -> float:
    """Return the effective number of rows, from linearized influences; NaN without fourth moments."""
    if sums.fourth is None:
        return float("nan")
    line = sums.mean_vector()
    steps = np.diag(STEP * np.maximum(np.abs(line), STEP))
    up, down = (np.asarray(metric.value(_means(sums, line + side * steps).with_values(sums.fixed))) for side in (1, -1))
    gradient = (up - down) / (2 * np.diag(steps))
    influence = np.concatenate([[-gradient @ line], gradient])  # Coefficients of 1 and the columns
    pairs = np.outer(influence, influence).ravel()
    return float((pairs @ sums.fourth[:, 0]) ** 2 / (pairs @ sums.fourth @ pairs))


def _means(sums: MomentSums, lines: NDArray[np.float64]) -> Means:
    """Return means by name from vectors of all means, (b, K)."""
    means, start = Means({}, sums.n), 0
    for name, each in sums.sums.items():
        part = lines[:, start : start + each.size]
        means[name] = part if each.ndim else part[:, 0]
        start += each.size
    return means


def _normal_draws(metric: InferableMetric, sums: MomentSums, run: Run) -> NDArray[np.float64]:
    """Return the metric at draws from the normal distribution of the means, (draws,)."""
    n, line = sums.n, sums.mean_vector()
    products = np.zeros((len(line), len(line))) if sums.products is None else sums.products
    values, vectors = np.linalg.eigh(products / ((n - 1) * n))
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T  # The symmetric root is insensitive to rounding
    normal = run.rng(RandomStream.RESAMPLES).standard_normal((run.resamples or RESAMPLES, len(line)))
    means = _means(sums, line + normal @ root)
    with np.errstate(all="ignore"):  # Undefined draws are counted later
        return np.asarray(metric.value(means.with_values(sums.fixed)), dtype=np.float64)


def null_distribution(metric: InferableMetric, sums: MomentSums) -> NullDistribution | None:
    """Return the null distribution from the sums of replicates; None without replicates."""
    if not sums.replicates:
        return None
    statistic = metric.null_statistic if isinstance(metric, HasNullStatistic) else metric.value
    with np.errstate(all="ignore"):
        values = np.asarray(statistic(sums.replicate_means().with_values(sums.fixed)), dtype=np.float64)
        data_value = float(statistic(sums.means().with_values(sums.fixed)))
    return NullDistribution(values, data_value)
