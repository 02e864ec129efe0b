"""From what metrics say of rows to intervals, distances from exact references, and verdicts by these."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.inference.abc_intervals import abc
from calcheck.inference.bootstrap import Replicates, Statistic
from calcheck.inference.intervals import Bca, acceleration, bca, effective_rows, percentile, zeta, zeta_error
from calcheck.results import Inference
from calcheck.statistics.groups import Averages, MeanTerm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.inference.metric_protocol import InferableMetric
    from calcheck.inference.verdict_basis import Basis
    from calcheck.report import Verdict
    from calcheck.results import RowResults

    SweepCell = tuple[InferableMetric, RowResults, Basis]

RESAMPLES, MOST_RESAMPLES = 10_000, 100_000
MANY_ROWS, SMALL_ACCELERATION = 20_000, 0.02  # from which, and up to which, ABC limits are within 0.4 % of the width
PERCENTILE_RESAMPLES, FEWEST_RESAMPLES, PERCENTILE_DRAWS = 1_000, 200, 20_000_000  # they decide no verdict
EQUAL = 1e-12  # of their size, within which replicates differ by rounding only
FEW_ROWS, FEW_IN_A_TAIL = 30, 5  # rows, and resamples beyond a limit, from which on intervals are what they say
FEWEST_EFFECTIVE = 15  # effective rows from which a right model fails by zeta in at most 6 % of sets, whatever its tail
HANGS = 3.0  # standard errors of zeta within which its verdict may be chance
NO_BOOTSTRAP = "no interval: resampling was switched off (--no-bootstrap)"
BIASED = "resampling adds noise, so the interval lies beside the value: it shows spread, and decides nothing"


def statistic_of(metric: InferableMetric, rows: RowResults) -> Statistic:
    """Return a metric's value as a function of means of its rows."""
    terms = rows.terms or {name: MeanTerm(column) for name, column in rows.columns.items()}
    return Statistic(Averages(terms, rows.n), metric.value, rows.fixed)


def infer(found: Sequence[SweepCell], run: Run) -> list[Inference]:
    """Say of each metric how far its value can be trusted.

    Metrics that are functions of means of columns share their resamples. Where rows are many and none weighs much, the
    limits follow without any.

    Parameters
    ----------
    found : sequence of (Metric, Rows, Basis)
        What the metrics say of the same n rows, and what their verdicts follow from.
    run : Run
        Seed, confidence, number of resamples, progress.
    """
    inferred: list[Inference | None] = [_without_bootstrap(metric, rows, run) for metric, rows, _ in found]
    plain = {
        place: MeanInterval(rows, statistic_of(metric, rows), run)
        for place, (metric, rows, _) in enumerate(found)
        if inferred[place] is None and metric.interval == "bca"
    }
    shared = [each for each in plain.values() if not each.is_smooth]
    if shared:
        replicates = Replicates([each.statistic for each in shared], run)
        replicates.draw(run.resamples or RESAMPLES)
        for each, values in zip(shared, replicates.values, strict=True):
            each.replicates = values
    for place, (metric, rows, basis) in enumerate(found):
        if place in plain:
            inferred[place] = plain[place].inference(decides=basis.kind == "interval")
        elif inferred[place] is None:
            inferred[place] = _by_percentiles(metric, statistic_of(metric, rows), run)
    return [_completed(each, rows, run) for each, (_, rows, _) in zip(inferred, found, strict=True) if each is not None]


def _completed(inferred: Inference, rows: RowResults, run: Run) -> Inference:
    """Tell the exact reference, if there is one, and warn where intervals hold the truth less often than they say."""
    if rows.reference is not None:
        inferred = replace(inferred, reference=rows.reference, reference_kind="exact")
    if inferred.interval not in ("bca", "percentile"):
        return inferred
    warnings = inferred.warnings
    n, resamples = rows.n, inferred.details["bootstrap"]["resamples"]
    if n < FEW_ROWS:
        warnings += (f"{n} rows are few: intervals by resampling are too narrow",)
    if resamples * (1 - run.confidence) / 2 < FEW_IN_A_TAIL:
        warnings += (f"{resamples:,} resamples are too few for limits at a confidence of {run.confidence:g}",)
    return replace(inferred, warnings=warnings)


def _without_bootstrap(metric: InferableMetric, rows: RowResults, run: Run) -> Inference | None:
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


def percentile_resamples(n: int) -> int:
    """Return how many resamples percentiles take that decide nothing: fewer where n rows are many."""
    return max(FEWEST_RESAMPLES, min(PERCENTILE_RESAMPLES, PERCENTILE_DRAWS // n))


def _by_percentiles(metric: InferableMetric, statistic: Statistic, run: Run) -> Inference:
    replicates = Replicates([statistic], run, stage=metric.name)
    replicates.draw(run.resamples or percentile_resamples(statistic.averages.n))
    values, details, reason = check_replicates(replicates.values[0], statistic.estimate())
    if metric.conditional_on:
        details["bootstrap"]["held_fixed"] = metric.conditional_on
    if reason:
        return Inference(details=details, warnings=(reason,))
    low, high = percentile(values, run.confidence)
    warnings = () if low <= statistic.estimate() <= high else (BIASED,)
    return Inference(low=low, high=high, interval="percentile", details=details, warnings=warnings)


class MeanInterval:
    """The interval of a function of means of columns, and how far the value lies from an exact reference.

    Parameters
    ----------
    rows : RowResults
        What the metric says.
    statistic : Statistic
        The function.
    run : Run
        Seed, confidence, number of resamples.

    Attributes
    ----------
    replicates : (b,)
        The statistic of each resample, where these are needed.
    """

    def __init__(self, rows: RowResults, statistic: Statistic, run: Run) -> None:
        self.rows, self.statistic, self.run = rows, statistic, run
        self.estimate = statistic.estimate()
        self.replicates: NDArray[np.float64] = np.empty(0)
        left = statistic.leave_one_out()
        self.acceleration, self.effective_rows = acceleration(left), effective_rows(left)

    @property
    def is_smooth(self) -> bool:
        """Whether rows are so many, and so alike, that ABC limits are those of endless resampling."""
        many = self.run.resamples is None and self.rows.n >= MANY_ROWS
        return many and abs(self.acceleration) <= SMALL_ACCELERATION

    def inference(self, *, decides: bool) -> Inference:
        """Return the interval and, where there is an exact reference, zeta; with a verdict by it where that decides."""
        if self.is_smooth:
            limits = abc(self.statistic, self.run.confidence)
            details = {"abc": {"z0": limits.correction, "acceleration": limits.acceleration}}
            return self._compared(limits, "abc", details, 0.0, decides=decides)
        values, details, reason = check_replicates(self.replicates, self.estimate)
        if reason:
            return Inference(details=details, warnings=(reason,))
        limits, error, told = self._settled(values, decides=decides and not self._few)
        details["bootstrap"] |= told
        return self._compared(limits, "bca", details, error, decides=decides)

    @property
    def _few(self) -> str:
        """Why the interval decides nothing, if it rests on few rows."""
        few = self.effective_rows < FEWEST_EFFECTIVE
        return too_few_effective_rows(self.effective_rows, self.rows.n) if few else ""

    def _zeta(self, limits: Bca) -> float:
        reference = self.rows.reference
        return float("nan") if reference is None else zeta(self.estimate, reference, limits.low, limits.high)

    def _settled(self, values: NDArray[np.float64], *, decides: bool) -> tuple[Bca, float, dict[str, Any]]:
        """Return the limits and the Monte Carlo error of zeta; resample further while a verdict by it may be chance."""
        more, resampled, told = None, len(values), dict[str, Any]()
        while True:
            limits = bca(values, self.estimate, self.acceleration, self.run.confidence)
            if self.rows.reference is None:
                return limits, float("nan"), _of_limits(limits)
            error = zeta_error(values, self.estimate, self.rows.reference, self.acceleration, self.run.confidence)
            if not decides or not _hangs(self._zeta(limits), error) or resampled >= MOST_RESAMPLES:
                return limits, error, told | _of_limits(limits)
            more = more or Replicates([self.statistic], self.run, number=1, stage="resampling more")
            resampled = min(MOST_RESAMPLES, 2 * resampled)
            more.draw(resampled)
            values, details, _ = check_replicates(more.values[0], self.estimate)
            told = details["bootstrap"]

    def _compared(self, limits: Bca, kind: str, details: dict[str, Any], error: float, *, decides: bool) -> Inference:
        """Compare with the exact reference, if there is one."""
        if not np.isfinite([limits.low, limits.high]).all():
            told = f"z0 {limits.correction:.3g}, acceleration {limits.acceleration:.3g}"
            reason = f"no interval: the BCa interval is not defined ({told}); rows are too few or too skewed"
            return Inference(details=details, warnings=(reason,))
        found = Inference(low=limits.low, high=limits.high, interval=kind, details=details)
        if self.rows.reference is None:
            return found
        next(iter(details.values()))["effective_rows"] = self.effective_rows
        distance = self._zeta(limits)
        if not np.isfinite(distance):
            told = "the interval does not hold its own value, so there is no zeta; rows are too few or too skewed"
            return replace(found, no_verdict=told)
        found = replace(found, zeta=distance, zeta_mc_error=error if np.isfinite(error) else None)
        if not decides or self._few:
            return replace(found, no_verdict=self._few)
        if _hangs(distance, error):
            told = (
                f"undecided: zeta is {distance:.3f} ± {error:.3f} by chance of resampling, and the verdict turns at 1"
            )
            return replace(found, verdict="undecided", warnings=(told,))
        verdict: Verdict = "pass" if abs(distance) <= 1 else "fail"
        return replace(found, verdict=verdict)


def _of_limits(limits: Bca) -> dict[str, Any]:
    return {"z0": limits.correction, "acceleration": limits.acceleration}


def _hangs(distance: float, error: float) -> bool:
    """Tell whether the verdict by zeta may be chance."""
    return abs(abs(distance) - 1) < HANGS * error


def too_few_effective_rows(effective: float, n: int) -> str:
    """Say why an interval that rests on few rows gives no verdict, and how many rows would allow one."""
    enough = n * FEWEST_EFFECTIVE / effective
    return (
        f"the interval rests on {effective:.2g} effective rows, and with fewer than {FEWEST_EFFECTIVE} holds the truth"
        f" too rarely: about {enough:,.0f} rows with such tails would do"
    )


def check_replicates(
    replicates: NDArray[np.float64], estimate: float
) -> tuple[NDArray[np.float64], dict[str, Any], str]:
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
