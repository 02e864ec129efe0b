"""From what metrics say of rows to intervals, distances from references, and verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.inference.bootstrap import Replicates, Statistic
from calcheck.inference.intervals import acceleration, bca, percentile, zeta, zeta_error
from calcheck.metric import Inference
from calcheck.statistics.groups import Averages, Term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.execution.run import Run
    from calcheck.metric import Metric, Rows
    from calcheck.report import Verdict

    Found = tuple[Metric[Any, Any], Rows]

RESAMPLES, MOST_RESAMPLES = 10_000, 100_000
RESAMPLES_OF_MANY_COLUMNS = 1_000  # their intervals decide no verdict
EQUAL = 1e-12  # of their size, within which replicates differ by rounding only
FEWEST_ROWS = 10  # that allow a verdict: with fewer, one calibrated set in four fails
FEW_ROWS, FEW_IN_A_TAIL = 30, 5  # rows, and resamples beyond a limit, from which on intervals are what they say
HANGS = 3.0  # standard errors of zeta within which its verdict may be chance
NO_BOOTSTRAP = "no interval: resampling was switched off (--no-bootstrap)"
BIASED = "resampling adds noise, so the interval lies beside the value: it shows spread, and decides nothing"


def statistic_of(metric: Metric[Any, Any], rows: Rows) -> Statistic:
    """Return a metric's value as a function of means of its rows."""
    terms = rows.terms or {name: Term(column) for name, column in rows.columns.items()}
    return Statistic(Averages(terms, rows.n), metric.value, rows.fixed)


def infer(found: Sequence[Found], run: Run) -> list[Inference]:
    """Say of each metric how far its value can be trusted.

    Metrics that are functions of means of columns share their resamples.

    Parameters
    ----------
    found : sequence of (Metric, Rows)
        What the metrics say of the same n rows.
    run : Run
        Seed, confidence, number of resamples, progress.
    """
    inferred: list[Inference | None] = [_without_bootstrap(metric, rows, run) for metric, rows in found]
    statistics = {place: statistic_of(*found[place]) for place, known in enumerate(inferred) if known is None}
    shared = [place for place, statistic in statistics.items() if found[place][0].interval == "bca"]
    replicates = Replicates([statistics[place] for place in shared], run) if shared else None
    if replicates is not None:
        replicates.grow(run.resamples or RESAMPLES)
    for place, statistic in statistics.items():
        if replicates is not None and place in shared:
            inferred[place] = _by_bca(found[place][1], statistic, replicates.values[shared.index(place)], run)
        else:
            inferred[place] = _by_percentiles(found[place][0], statistic, run)
    return [_completed(each, rows, run) for each, (_, rows) in zip(inferred, found, strict=True) if each is not None]


def _completed(inferred: Inference, rows: Rows, run: Run) -> Inference:
    """Tell the exact reference, if there is one, and warn where intervals hold the truth less often than they say."""
    if rows.reference is not None:
        inferred = replace(inferred, reference=rows.reference, reference_kind="exact")
    if inferred.interval not in ("bca", "percentile"):
        return inferred
    warnings = inferred.warnings
    n, resamples = rows.n, inferred.details["bootstrap"]["resamples"]
    if n < FEW_ROWS:
        warnings += (f"{n} rows are few: intervals by resampling are too narrow, and verdicts by them too hard",)
    if resamples * (1 - run.confidence) / 2 < FEW_IN_A_TAIL:
        warnings += (f"{resamples:,} resamples are too few for limits at a confidence of {run.confidence:g}",)
    if n < FEWEST_ROWS and inferred.verdict != "none":
        inferred = replace(inferred, verdict="none", no_verdict=f"it takes {FEWEST_ROWS} rows")
    return replace(inferred, warnings=warnings)


def _without_bootstrap(metric: Metric[Any, Any], rows: Rows, run: Run) -> Inference | None:
    """Say what needs no bootstrap of means; None where one is to be made."""
    n = rows.n
    if rows.inference is not None:
        return rows.inference
    if metric.interval == "none":
        return Inference(warnings=(f"no interval: {metric.no_interval}",))
    if run.resamples == 0:
        return Inference(warnings=(NO_BOOTSTRAP,))
    if n == 1:
        return Inference(warnings=("no interval: a single row cannot be resampled",))
    if not np.isfinite(statistic_of(metric, rows).estimate()):
        return Inference(warnings=("no interval: there is no finite value",), no_verdict="there is no finite value")
    return None


def _by_percentiles(metric: Metric[Any, Any], statistic: Statistic, run: Run) -> Inference:
    replicates = Replicates([statistic], run, stage=metric.name)
    replicates.grow(run.resamples or RESAMPLES_OF_MANY_COLUMNS)
    values, details, reason = usable(replicates.values[0], statistic.estimate())
    if metric.held_fixed:
        details["bootstrap"]["held_fixed"] = metric.held_fixed
    if reason:
        return Inference(details=details, warnings=(reason,))
    low, high = percentile(values, run.confidence)
    warnings = () if low <= statistic.estimate() <= high else (BIASED,)
    return Inference(low=low, high=high, interval="percentile", details=details, warnings=warnings)


def _by_bca(rows: Rows, statistic: Statistic, replicates: NDArray[np.float64], run: Run) -> Inference:
    estimate = statistic.estimate()
    values, details, reason = usable(replicates, estimate)
    if reason:
        return Inference(details=details, warnings=(reason,))
    bent = acceleration(statistic.leave_one_out())
    limits = bca(values, estimate, bent, run.confidence)
    if not np.isfinite([limits.low, limits.high]).all():
        told = f"z0 {limits.correction:.3g}, acceleration {bent:.3g}"
        reason = f"no interval: the BCa interval is not defined ({told}); rows are too few or too skewed"
        return Inference(details=details, warnings=(reason,))
    details["bootstrap"] |= {"z0": limits.correction, "acceleration": bent}
    if rows.reference is None:
        return Inference(low=limits.low, high=limits.high, interval="bca", details=details)
    return _judged(statistic, values, rows.reference, bent, details, run)


def _judged(
    statistic: Statistic,
    replicates: NDArray[np.float64],
    reference: float,
    bent: float,
    details: dict[str, Any],
    run: Run,
) -> Inference:
    """Compare with a known reference; resample further while the verdict may be chance."""
    estimate, more, resampled = statistic.estimate(), None, len(replicates)
    while True:
        limits = bca(replicates, estimate, bent, run.confidence)
        distance = zeta(estimate, reference, limits.low, limits.high)
        error = zeta_error(replicates, estimate, reference, bent, run.confidence)
        hangs = abs(abs(distance) - 1) < HANGS * error
        if not hangs or resampled >= MOST_RESAMPLES:
            break
        more = more or Replicates([statistic], run, number=1, stage="resampling more")
        resampled = min(MOST_RESAMPLES, 2 * resampled)
        more.grow(resampled)
        replicates, details, _ = usable(more.values[0], estimate)
    details["bootstrap"] |= {"z0": limits.correction, "acceleration": bent}
    if not np.isfinite(distance):
        told = "the interval does not hold its own value, so there is no zeta; rows are too few or too skewed"
        return Inference(low=limits.low, high=limits.high, interval="bca", details=details, no_verdict=told)
    verdict: Verdict = "undecided" if hangs else ("pass" if abs(distance) <= 1 else "fail")
    told = f"undecided: zeta is {distance:.3f} ± {error:.3f} by chance of resampling, and the verdict turns at 1"
    return Inference(
        low=limits.low,
        high=limits.high,
        interval="bca",
        zeta=distance,
        zeta_mc_error=error if np.isfinite(error) else None,
        verdict=verdict,
        details=details,
        warnings=(told,) if hangs else (),
    )


def usable(replicates: NDArray[np.float64], estimate: float) -> tuple[NDArray[np.float64], dict[str, Any], str]:
    """Return the finite replicates, what to tell of them, and why they give no interval, if they do not."""
    finite = replicates[np.isfinite(replicates)]
    told: dict[str, Any] = {"resamples": len(replicates), "bias": None}
    if undefined := len(replicates) - len(finite):
        told["undefined"] = undefined
    if undefined > len(replicates) / 2:
        return finite, {"bootstrap": told}, "no interval: most resamples have no finite value; rows are too few"
    told["bias"] = float(finite.mean() - estimate)
    if np.ptp(finite) <= EQUAL * max(np.abs(finite).max(), abs(estimate)):
        return finite, {"bootstrap": told}, "no interval: all resamples have the same value"
    return finite, {"bootstrap": told}, ""
