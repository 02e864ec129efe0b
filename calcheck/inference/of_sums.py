"""How far a value can be trusted whose rows are not at hand: sums and their covariance are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.execution.run import Stream
from calcheck.inference.intervals import percentile, zeta, zeta_error
from calcheck.inference.verdicts import BIASED, HANGS, NO_BOOTSTRAP, RESAMPLES, usable
from calcheck.metric import Inference, Simulated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.execution.run import Run
    from calcheck.metric import Metric
    from calcheck.report import Verdict
    from calcheck.statistics.sums import MeanSums

NO_REPLICATES = "no reference: its replicates would take all rows that are kept, so many times"


def inferred(metric: Metric[Any, Any], sums: MeanSums, run: Run) -> Inference:
    """Give the interval of a function of means of rows that are not at hand.

    Means of many rows are normal, with the covariance that their sums tell: drawn from it, where the bootstrap draws
    rows. The interval is of percentiles.

    Parameters
    ----------
    metric : Metric
        The function.
    sums : MeanSums
        The sums of n rows.
    run : Run
        Seed, confidence, how many draws.
    """
    own = float(metric.value({**sums.means(), **sums.fixed}, sums.n))
    if reason := _why_none(metric, sums, own, run):
        return Inference(warnings=(f"no interval: {reason}",))
    drawn, told, reason = usable(_drawn(metric, sums, run), own)
    found = Inference(details={"normal": told["bootstrap"]})
    if reason:
        return replace(found, warnings=(reason.replace("resamples", "draws"),))
    low, high = percentile(drawn, run.confidence)
    found = replace(found, low=low, high=high, interval="normal")
    if metric.interval == "percentile":
        return found if low <= own <= high else replace(found, warnings=(BIASED,))
    return found if sums.told.reference is None else _judged(found, drawn, own, sums.told.reference, run)


def _why_none(metric: Metric[Any, Any], sums: MeanSums, own: float, run: Run) -> str:
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


def _drawn(metric: Metric[Any, Any], sums: MeanSums, run: Run) -> NDArray[np.float64]:
    """Return the metric at means drawn about those of the rows, (draws,)."""
    n, line = sums.n, sums.line()
    products = np.zeros((len(line), len(line))) if sums.products is None else sums.products
    values, vectors = np.linalg.eigh(products / ((n - 1) * n))
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T  # the symmetric one: rounding moves it but little
    normal = run.rng(Stream.RESAMPLES).standard_normal((run.resamples or RESAMPLES, len(line)))
    drawn, start, means = line + normal @ root, 0, {}
    for name, each in sums.sums.items():
        part = drawn[:, start : start + each.size]
        means[name] = part if each.ndim else part[:, 0]
        start += each.size
    with np.errstate(all="ignore"):  # draws where the metric is not defined are counted
        return np.asarray(metric.value({**means, **sums.fixed}, n), dtype=np.float64)


def simulated(metric: Metric[Any, Any], sums: MeanSums) -> Simulated | None:
    """Return the metric of the replicates that were summed; None where there are none."""
    if not sums.replicates:
        return None
    with np.errstate(all="ignore"):
        values = np.asarray(metric.value({**sums.replicated(), **sums.fixed}, sums.n), dtype=np.float64)
    return Simulated(values)
