"""How far a value can be trusted whose rows are not at hand: sums and their covariance are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from calcheck.execution.context import RandomStream
from calcheck.inference.intervals import percentile, zeta, zeta_error
from calcheck.inference.verdicts import (
    BIASED,
    FEWEST_EFFECTIVE,
    HANGS,
    NO_BOOTSTRAP,
    RESAMPLES,
    check_replicates,
    too_few_effective_rows,
)
from calcheck.results import Inference, NullDistribution

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.inference.metric_protocol import InferableMetric
    from calcheck.inference.verdict_basis import Basis
    from calcheck.report import Verdict
    from calcheck.streaming.accumulators import MomentSums

STEP = 1e-4  # of a mean, by which gradients are taken
UNKNOWN_TAILS = "how few rows its interval rests on is not known"
NOT_REPLICATED = "its replicates would take all rows that are kept, so many times"


def normal_interval(metric: InferableMetric, sums: MomentSums, run: Run, basis: Basis) -> Inference:
    """Give the interval of a function of means of rows that are not at hand.

    Means of many rows are normal, with the covariance that their sums tell: drawn from it, where the bootstrap draws
    rows. The interval is of percentiles.

    Parameters
    ----------
    metric : Metric
        The function.
    sums : MomentSums
        The sums of n rows.
    run : Run
        Seed, confidence, how many draws.
    basis : Basis
        What the verdict follows from.
    """
    own = float(metric.value({**sums.means(), **sums.fixed}, sums.n))
    if reason := _why_none(metric, sums, own, run):
        return Inference(warnings=(f"no interval: {reason}",))
    drawn, told, reason = check_replicates(_drawn(metric, sums, run), own)
    found = Inference(details={"normal": told["bootstrap"]})
    if reason:
        return replace(found, warnings=(reason.replace("resamples", "draws"),))
    low, high = percentile(drawn, run.confidence)
    found = replace(found, low=low, high=high, interval="normal")
    if metric.interval == "percentile":
        return found if low <= own <= high else replace(found, warnings=(BIASED,))
    effective = _effective_rows(metric, sums)
    if np.isfinite(effective):
        found.details["normal"]["effective_rows"] = effective
    why = _why_no_verdict(effective, sums.n)
    few = (why,) if why and np.isfinite(effective) and basis.kind != "interval" else ()
    if sums.metadata.reference is None:
        return replace(found, warnings=few)
    judged = _judged(found, drawn, own, sums.metadata.reference, run)
    if basis.kind == "interval" and not why:
        return judged
    return replace(judged, verdict="none", warnings=few, no_verdict=why if basis.kind == "interval" else "")


def _why_none(metric: InferableMetric, sums: MomentSums, own: float, run: Run) -> str:
    """Say why there is no interval; nothing if there is one."""
    if metric.interval == "none":
        return metric.no_interval
    reasons = {
        NO_BOOTSTRAP.removeprefix("no interval: "): run.resamples == 0,
        "a single row has no spread": sums.n == 1,
        "it is a function of more means than sums keep the covariance of": sums.products is None,
        "there is no finite value": not np.isfinite(own)
        or (sums.products is not None and not np.isfinite(sums.products).all()),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _judged(found: Inference, drawn: NDArray[np.float64], own: float, reference: float, run: Run) -> Inference:
    """Compare with a known reference, by the interval."""
    distance = zeta(own, reference, found.low or 0.0, found.high or 0.0)
    error = zeta_error(drawn, own, reference, 0.0, run.confidence)
    if not np.isfinite(distance):
        return replace(found, no_verdict="the interval does not hold its own value, so there is no zeta")
    hangs = abs(abs(distance) - 1) < HANGS * error
    verdict: Verdict = "undecided" if hangs else ("pass" if abs(distance) <= 1 else "fail")
    told = f"undecided: zeta is {distance:.3f} ± {error:.3f} by chance of drawing, and the verdict turns at 1"
    known = error if np.isfinite(error) else None
    return replace(found, zeta=distance, zeta_mc_error=known, verdict=verdict, warnings=(told,) if hangs else ())


def _why_no_verdict(effective: float, n: int) -> str:
    """Say why the interval gives no verdict; nothing if it does."""
    if not np.isfinite(effective):
        return UNKNOWN_TAILS
    return too_few_effective_rows(effective, n) if effective < FEWEST_EFFECTIVE else ""


def _effective_rows(metric: InferableMetric, sums: MomentSums) -> float:
    """Return how many rows the spread of a value rests on, as of leave-one-out values; NaN where that is not known."""
    if sums.fourth is None:
        return float("nan")
    line = sums.mean_vector()
    steps = np.diag(STEP * np.maximum(np.abs(line), STEP))
    up, down = (
        np.asarray(metric.value({**_means(sums, line + side * steps), **sums.fixed}, sums.n)) for side in (1, -1)
    )
    gradient = (up - down) / (2 * np.diag(steps))
    influence = np.concatenate([[-gradient @ line], gradient])  # of 1 and the columns
    pairs = np.outer(influence, influence).ravel()
    return float((pairs @ sums.fourth[:, 0]) ** 2 / (pairs @ sums.fourth @ pairs))


def _means(sums: MomentSums, lines: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return means by name from lines of them, (b, K)."""
    means, start = {}, 0
    for name, each in sums.sums.items():
        part = lines[:, start : start + each.size]
        means[name] = part if each.ndim else part[:, 0]
        start += each.size
    return means


def _drawn(metric: InferableMetric, sums: MomentSums, run: Run) -> NDArray[np.float64]:
    """Return the metric at means drawn about those of the rows, (draws,)."""
    n, line = sums.n, sums.mean_vector()
    products = np.zeros((len(line), len(line))) if sums.products is None else sums.products
    values, vectors = np.linalg.eigh(products / ((n - 1) * n))
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T  # the symmetric one: rounding moves it but little
    normal = run.rng(RandomStream.RESAMPLES).standard_normal((run.resamples or RESAMPLES, len(line)))
    means = _means(sums, line + normal @ root)
    with np.errstate(all="ignore"):  # draws where the metric is not defined are counted
        return np.asarray(metric.value({**means, **sums.fixed}, n), dtype=np.float64)


def null_distribution(metric: InferableMetric, sums: MomentSums) -> NullDistribution | None:
    """Return the metric of the replicates that were summed; None where there are none."""
    if not sums.replicates:
        return None
    with np.errstate(all="ignore"):
        values = np.asarray(metric.value({**sums.replicate_means(), **sums.fixed}, sums.n), dtype=np.float64)
    return NullDistribution(values)
