"""How far a value can be trusted whose rows are not at hand: sums and their covariance are."""

from __future__ import annotations

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

NO_PRODUCTS = "no interval: it is a function of more means than sums keep the covariance of"
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
    n, reference = sums.n, sums.told.reference
    if metric.interval == "none":
        return Inference(warnings=(f"no interval: {metric.no_interval}",))
    if run.resamples == 0:
        return Inference(warnings=(NO_BOOTSTRAP,))
    if n == 1:
        return Inference(warnings=("no interval: a single row has no spread",))
    if sums.products is None:
        return Inference(warnings=(NO_PRODUCTS,))
    own = float(metric.value({**sums.means(), **sums.fixed}, n))
    if not np.isfinite(own) or not np.isfinite(sums.products).all():
        return Inference(warnings=("no interval: there is no finite value",), no_verdict="there is no finite value")
    drawn, told, reason = usable(_drawn(metric, sums, run), own)
    details = {"normal": told["bootstrap"]}
    if reason:
        return Inference(details=details, warnings=(reason.replace("resamples", "draws"),))
    low, high = percentile(drawn, run.confidence)
    if metric.interval == "percentile":
        warnings = () if low <= own <= high else (BIASED,)
        return Inference(low=low, high=high, interval="normal", details=details, warnings=warnings)
    if reference is None:
        return Inference(low=low, high=high, interval="normal", details=details)
    distance = zeta(own, reference, low, high)
    error = zeta_error(drawn, own, reference, 0.0, run.confidence)
    if not np.isfinite(distance):
        told_ = "the interval does not hold its own value, so there is no zeta"
        return Inference(low=low, high=high, interval="normal", details=details, no_verdict=told_)
    hangs = abs(abs(distance) - 1) < HANGS * error
    verdict: Verdict = "undecided" if hangs else ("pass" if abs(distance) <= 1 else "fail")
    warning = f"undecided: zeta is {distance:.3f} ± {error:.3f} by chance of drawing, and the verdict turns at 1"
    return Inference(
        low=low,
        high=high,
        interval="normal",
        zeta=distance,
        zeta_mc_error=error if np.isfinite(error) else None,
        verdict=verdict,
        details=details,
        warnings=(warning,) if hangs else (),
    )


def _drawn(metric: Metric[Any, Any], sums: MeanSums, run: Run) -> NDArray[np.float64]:
    """Return the metric at means drawn about those of the rows, (draws,)."""
    n, line = sums.n, sums.line()
    values, vectors = np.linalg.eigh(sums.products / ((n - 1) * n))
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
