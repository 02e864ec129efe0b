"""Intervals and verdicts of single metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from calcheck.errors import Message
from calcheck.inference.bootstrap import Replicates, Statistic, clustered
from calcheck.inference.intervals import Bca, abc, acceleration, bca, effective_rows, percentile, zeta, zeta_error
from calcheck.inference.metric_protocol import HasFixedLevels, HasNullStatistic, InferableMetric, implements
from calcheck.inference.results import IntervalInference, RowResults
from calcheck.statistics.groups import Averages, MeanTerm

if TYPE_CHECKING:
    from calcheck.dependence.clusters import Clusters
    from calcheck.details import Bootstrap
    from calcheck.distributions import Predictive
    from calcheck.execution.run import Run
    from calcheck.typing import Values

MetricRows = tuple[InferableMetric, RowResults, "Basis"]


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


@dataclass(frozen=True)
class Basis:
    """The basis of a metric's verdict."""

    kind: Literal["p", "interval", "none"]  # The p-value, the interval (zeta), or none
    reason: str = ""  # Why the basis is not the p-value
    # Whether the file states what a perfect model's score depends on, so that it can be simulated
    can_simulate: bool = True


def basis_of(
    metric: InferableMetric,
    stated: StatedShape,
    rows: RowResults,
    *,
    replicates: bool,
    otherwise: str = NO_REPLICATES,
) -> Basis:
    """Return the basis of a metric's verdict."""
    if metric.alternative == "none":
        return Basis("none", NO_EVIDENCE)
    if unfit := _unfit_reason(metric, stated, rows):
        return Basis("none", unfit, can_simulate=False)
    if stated.shape and replicates:
        return Basis("p")
    if not stated.shape:
        return Basis("interval" if metric.info.distribution_free else "none", NO_SHAPE)
    exact = rows.inference is not None and rows.inference.verdict != "none"
    reason = NO_PERMUTATIONS if metric.info.permutes_samples else otherwise
    return Basis("interval" if metric.info.distribution_free or exact else "none", reason)


def _unfit_reason(metric: InferableMetric, stated: StatedShape, rows: RowResults) -> str:
    """Return why no test of the metric gives a verdict, or ""."""
    if stated.levels is not None and metric.interpolates(np.array(stated.levels)):
        return INTERPOLATED
    if stated.coverage_only and metric.info.uses != "coverage":
        return INTERVALS_ONLY
    return rows.no_verdict


RESAMPLES, MAX_RESAMPLES = 10_000, 100_000  # Default and maximum number of resamples
SMALL_ACCELERATION = 0.02  # Maximum |a| for ABC limits
MODERATE_SHIFT = 0.5  # Maximum |a w| for ABC limits of clusters, at the normal quantile w
PERCENTILE_RESAMPLES, MIN_RESAMPLES, PERCENTILE_DRAWS = 1_000, 200, 20_000_000  # For percentile intervals: no verdicts
EQUAL = 1e-12  # Relative tolerance: smaller differences of replicates are rounding errors
FEW_ROWS, MIN_TAIL_RESAMPLES = 30, 5  # Minimum rows, and resamples beyond a limit, for nominal coverage
MIN_EFFECTIVE_ROWS = 15  # At this minimum, calibrated models fail by zeta in at most 6 % of data sets, for any tail
UNDECIDED_ERRORS = 3.0  # A verdict is undecided if zeta is within this many standard errors of the threshold
NO_BOOTSTRAP = Message.of_absence("no-interval", "the bootstrap was turned off (--no-bootstrap)")
INDEPENDENT = "it is exact for independent rows only"
SINGLE_ROW = Message.of_absence("no-interval", "a single row cannot be resampled")
BIASED = Message(
    "interval-shows-spread",
    "resampling adds noise, so the interval does not contain the value: it shows the spread only and is not used for"
    " a decision",
)


def statistic_of(metric: InferableMetric, rows: RowResults) -> Statistic:
    """Return a metric's value as a function of means of its rows."""
    terms = rows.terms or {name: MeanTerm(column) for name, column in rows.columns.items()}
    return Statistic(Averages(terms, rows.n), metric.value, rows.fixed)


def null_statistic_of(metric: InferableMetric, rows: RowResults) -> Statistic:
    """Return what is compared with replicates as a function of means of a metric's rows."""
    statistic = statistic_of(metric, rows)
    return replace(statistic, function=metric.null_statistic) if implements(metric, HasNullStatistic) else statistic


def resampled_statistic(metric: InferableMetric, rows: RowResults, clusters: Clusters | None) -> Statistic:
    """Return a metric's value as a function of means of rows, or of means of clusters if there are any."""
    if clusters is None:
        return statistic_of(metric, rows)
    fixed = metric.at_fixed_levels(rows) if implements(metric, HasFixedLevels) else rows
    return clustered(statistic_of(metric, fixed), clusters)


def confidence_run(run: Run, clusters: Clusters | None, effective: float | None = None) -> Run:
    """Return the run with the nominal confidence of intervals: larger than the coverage if clusters are few."""
    return run if clusters is None else replace(run, confidence=clusters.expanded(run.confidence, effective))


def infer(found: Sequence[MetricRows], run: Run, clusters: Clusters | None = None) -> list[IntervalInference]:
    """Return the inference of each metric: interval, exact reference and zeta.

    Metrics that are functions of column means share their resamples. With many rows and no influential ones, ABC limits
    replace the bootstrap.
    """
    inferred = {place: _without_bootstrap(metric, rows, run, clusters) for place, (metric, rows, _) in enumerate(found)}
    resampled = {place: found[place] for place, each in inferred.items() if each is None}
    of_means = {place: each for place, each in resampled.items() if each[0].info.interval == "bca"}
    others = {place: each for place, each in resampled.items() if place not in of_means}
    inferred |= _mean_intervals(of_means, run, clusters) | _percentile_intervals(others, run, clusters)
    return [
        _with_reference(each, rows, run, few_rows_possible=clusters is None)
        for each, (_, rows, _) in zip(inferred.values(), found, strict=True)
        if each is not None
    ]


def _with_reference(
    inferred: IntervalInference, rows: RowResults, run: Run, *, few_rows_possible: bool
) -> IntervalInference:
    """Add the exact reference, if there is one, and warnings about intervals that may undercover."""
    if rows.reference is not None:
        inferred = replace(inferred, reference=rows.reference, reference_kind="exact")
    if not inferred.resamples or inferred.interval is None:
        return inferred
    warnings, resamples = inferred.warnings, inferred.resamples
    if few_rows_possible and rows.n < FEW_ROWS:
        warnings += (few_rows(rows.n),)
    if resamples * (1 - run.confidence) / 2 < MIN_TAIL_RESAMPLES:
        text = f"{resamples:,} resamples are too few for limits at a confidence of {run.confidence:g}"
        warnings += (Message("few-resamples", text),)
    return replace(inferred, warnings=warnings)


def _without_bootstrap(
    metric: InferableMetric, rows: RowResults, run: Run, clusters: Clusters | None
) -> IntervalInference | None:
    """Return the inference of a metric without a bootstrap of means; None if it needs one."""
    n = rows.n
    if rows.inference is not None:
        return rows.inference if clusters is None else IntervalInference(warnings=(no_interval(INDEPENDENT),))
    if reason := metric.info.no_interval or ("" if clusters is None else metric.info.independent_rows):
        return IntervalInference(warnings=(no_interval(reason),))
    if run.resamples == 0:
        return IntervalInference(warnings=(NO_BOOTSTRAP,))
    if n == 1:
        return IntervalInference(warnings=(SINGLE_ROW,))
    if not np.isfinite(statistic_of(metric, rows).estimate()):
        reason = "the value is not finite"
        return IntervalInference(warnings=(no_interval(reason),), no_verdict=reason)
    return None


def percentile_resamples(n: int) -> int:
    """Return the number of resamples for percentile intervals of n rows: fewer for many rows."""
    return max(MIN_RESAMPLES, min(PERCENTILE_RESAMPLES, PERCENTILE_DRAWS // n))


def _mean_intervals(
    found: Mapping[int, MetricRows], run: Run, clusters: Clusters | None
) -> dict[int, IntervalInference]:
    """Return the inference of metrics that are functions of column means, which share their resamples."""
    intervals = {
        place: MeanInterval(rows, resampled_statistic(metric, rows, clusters), run, clusters)
        for place, (metric, rows, _) in found.items()
    }
    shared = [each for each in intervals.values() if not each.is_smooth]
    if shared:
        replicates = Replicates([each.statistic for each in shared], run)
        replicates.draw(run.resamples or RESAMPLES)
        for each, values in zip(shared, replicates.values, strict=True):
            each.replicates = values
    return {place: each.inference(decides=found[place][2].kind == "interval") for place, each in intervals.items()}


def _percentile_intervals(
    found: Mapping[int, MetricRows], run: Run, clusters: Clusters | None
) -> dict[int, IntervalInference]:
    """Return the percentile intervals of metrics.

    Metrics share their resamples, except those whose resamples are multinomial counts of classes, which is faster.
    """
    run = confidence_run(run, clusters)
    statistics = {place: resampled_statistic(metric, rows, clusters) for place, (metric, rows, _) in found.items()}
    alone = [[place] for place, each in statistics.items() if each.averages.counts_classes]
    shared = [place for place in statistics if [place] not in alone]
    inferred = {}
    for places in [*alone, *([shared] if shared else [])]:
        replicates = Replicates([statistics[place] for place in places], run)
        replicates.draw(run.resamples or percentile_resamples(statistics[places[0]].averages.n))
        for place, values in zip(places, replicates.values, strict=True):
            inferred[place] = _percentile_interval(found[place][0], statistics[place], values, run)
    return inferred


def _percentile_interval(
    metric: InferableMetric, statistic: Statistic, resampled: Values, run: Run
) -> IntervalInference:
    values, bootstrap, reason = check_replicates(resampled, statistic.estimate())
    if metric.info.conditional_on:
        bootstrap["held_fixed"] = metric.info.conditional_on
    if reason:
        return IntervalInference(details={"bootstrap": bootstrap}, warnings=(no_interval(reason),))
    low, high = percentile(values, run.confidence)
    warnings = () if low <= statistic.estimate() <= high else (BIASED,)
    return IntervalInference(
        low=low,
        high=high,
        interval="percentile",
        details={"bootstrap": bootstrap},
        warnings=warnings,
        resamples=len(resampled),
    )


class MeanInterval:
    """The interval of a function of column means, and its zeta score against an exact reference."""

    def __init__(
        self,
        rows: RowResults,  # The results of the metric
        statistic: Statistic,  # The function
        run: Run,  # Seed, confidence, number of resamples
        # The clusters that the statistic averages over. They have ABC limits, unless these are extreme: the limits of
        # few skewed clusters are beyond what resamples can show.
        clusters: Clusters | None = None,
    ) -> None:
        self.rows, self.statistic, self.clusters = rows, statistic, clusters
        self.estimate = statistic.estimate()
        # (b,), the statistic of each resample, if the bootstrap is needed
        self.replicates: Values = np.empty(0)
        left = statistic.leave_one_out()
        self.acceleration, self.effective_rows = acceleration(left), effective_rows(left)
        self.run = confidence_run(run, clusters, self.effective_rows)

    @cached_property
    def _abc(self) -> Bca:
        return abc(self.statistic, self.run.confidence)

    @cached_property
    def is_smooth(self) -> bool:
        """Whether ABC limits replace the bootstrap: of clusters, and of many rows with a small acceleration."""
        if self.clusters is not None:
            from scipy.special import ndtri

            limits, critical = self._abc, float(ndtri((1 + self.run.confidence) / 2))
            moderate = abs(self.acceleration) * (critical + abs(limits.correction)) <= MODERATE_SHIFT
            return bool(moderate and np.isfinite([limits.low, limits.high]).all())
        many = self.run.resamples is None and self.statistic.averages.n >= self.run.limits.abc_rows
        return many and abs(self.acceleration) <= SMALL_ACCELERATION

    def inference(self, *, decides: bool) -> IntervalInference:
        """Return the interval and, if there is an exact reference, zeta; with a verdict by zeta if ``decides``."""
        if self.is_smooth:
            limits = self._abc
            return self._compared(limits, "abc", _bca_details(limits), 0.0, decides=decides)
        values, bootstrap, reason = check_replicates(self.replicates, self.estimate)
        if reason:
            return IntervalInference(details={"bootstrap": bootstrap}, warnings=(no_interval(reason),))
        limits, error, extra = self._settled(values, decides=decides and not self._few)
        found = self._compared(limits, "bca", bootstrap | extra, error, decides=decides)
        return replace(found, resamples=len(self.replicates))

    @property
    def _few(self) -> str:
        """Why the interval gives no verdict, if its effective rows are too few; else ""."""
        few = self.effective_rows < MIN_EFFECTIVE_ROWS
        return too_few_effective_rows(self.effective_rows, self.statistic.averages.n) if few else ""

    def _zeta(self, limits: Bca) -> float:
        reference = self.rows.reference
        return float("nan") if reference is None else zeta(self.estimate, reference, limits.low, limits.high)

    def _settled(self, values: Values, *, decides: bool) -> tuple[Bca, float, Bootstrap]:
        """Return the limits and the Monte Carlo error of zeta; draw more resamples while a verdict is undecided."""
        more, resampled = None, len(values)
        bootstrap: Bootstrap = {}
        while True:
            limits = bca(values, self.estimate, self.acceleration, self.run.confidence)
            if self.rows.reference is None:
                return limits, float("nan"), _bca_details(limits)
            error = zeta_error(values, self.estimate, self.rows.reference, self.acceleration, self.run.confidence)
            if not decides or not _is_undecided(self._zeta(limits), error) or resampled >= MAX_RESAMPLES:
                return limits, error, bootstrap | _bca_details(limits)
            more = more or Replicates([self.statistic], self.run, number=1, stage="more resamples")
            resampled = min(MAX_RESAMPLES, 2 * resampled)
            more.draw(resampled)
            self.replicates = more.values[0]
            values, bootstrap, _ = check_replicates(self.replicates, self.estimate)

    def _compared(
        self, limits: Bca, kind: Literal["abc", "bca"], described: Bootstrap, error: float, *, decides: bool
    ) -> IntervalInference:
        """Return the interval, compared with the exact reference if there is one."""
        details = {"abc" if kind == "abc" else "bootstrap": described}
        if not np.isfinite([limits.low, limits.high]).all():
            message = f"z0 {limits.correction:.3g}, acceleration {limits.acceleration:.3g}"
            reason = f"the BCa interval is undefined ({message}); the rows are too few or too skewed"
            return IntervalInference(details=details, warnings=(no_interval(reason),))
        found = IntervalInference(low=limits.low, high=limits.high, interval=kind, details=details)
        if self.rows.reference is None:
            return found
        described["effective_rows"] = self.effective_rows
        distance = self._zeta(limits)
        if not np.isfinite(distance):
            message = (
                "the interval does not contain the value, so zeta is undefined; the rows are too few or too skewed"
            )
            return replace(found, no_verdict=message)
        if not decides or self._few:
            return replace(with_zeta(found, distance, error), no_verdict=self._few)
        return with_zeta_verdict(found, distance, error)


def with_zeta(inference: IntervalInference, distance: float, error: float) -> IntervalInference:
    """Return the inference with zeta and its Monte Carlo error."""
    return replace(inference, zeta=distance, zeta_mc_error=error if np.isfinite(error) else None)


def with_zeta_verdict(inference: IntervalInference, distance: float, error: float) -> IntervalInference:
    """Return the inference with zeta, its Monte Carlo error, and the verdict by zeta."""
    inference = with_zeta(inference, distance, error)
    if _is_undecided(distance, error):
        message = f"undecided: zeta is {distance:.3f} ± {error:.3f} (Monte Carlo error), and the threshold is 1"
        return replace(inference, verdict="undecided", warnings=(Message("undecided", message),))
    return replace(inference, verdict="pass" if abs(distance) <= 1 else "fail")


def _bca_details(limits: Bca) -> Bootstrap:
    return {"z0": limits.correction, "acceleration": limits.acceleration}


def _is_undecided(distance: float, error: float) -> bool:
    """Return whether zeta is too close to the threshold for a verdict, given its Monte Carlo error."""
    return abs(abs(distance) - 1) < UNDECIDED_ERRORS * error


def no_interval(reason: str) -> Message:
    """Return the message that there is no interval."""
    return Message.of_absence("no-interval", reason)


def few_rows(n: int) -> Message:
    """Return the message that there are too few rows for the nominal coverage of the bootstrap."""
    return Message("few-rows", f"{n} rows are few: bootstrap intervals are too narrow")


def too_few_effective_rows(effective: float, n: float) -> str:
    """Return why an interval with few effective rows gives no verdict, and how many rows would suffice."""
    enough = n * MIN_EFFECTIVE_ROWS / effective
    return (
        f"the interval has {effective:.2g} effective rows, and with fewer than {MIN_EFFECTIVE_ROWS} its coverage is too"
        f" low: about {enough:,.0f} rows with such tails would suffice"
    )


def check_replicates(
    replicates: Values, estimate: float, *, kind: str = "resamples", rounding: float = 0.0
) -> tuple[Values, Bootstrap, str]:
    """Return the finite replicates, their description, and why they give no interval, or "".

    ``kind`` names the replicates, and ``rounding`` is the size of rounding errors if they are not relative to them.
    """
    finite = replicates[np.isfinite(replicates)]
    bootstrap: Bootstrap = {"resamples": len(replicates), "bias": None}
    if undefined := len(replicates) - len(finite):
        bootstrap["undefined"] = undefined
    if undefined > len(replicates) / 2:
        return finite, bootstrap, f"most {kind} have no finite value; there are too few rows"
    bootstrap["bias"] = float(finite.mean() - estimate)
    if np.ptp(finite) <= max(EQUAL * max(np.abs(finite).max(), abs(estimate)), rounding):
        return finite, bootstrap, f"all {kind} have the same value"
    return finite, bootstrap, ""
