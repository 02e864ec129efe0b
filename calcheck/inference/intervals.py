"""Intervals: BCa, percentile, ABC and Clopper-Pearson limits, and the interval of each metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from calcheck.core import sc
from calcheck.distributions.special import normal_cdf, normal_quantile
from calcheck.errors import Message
from calcheck.inference.bootstrap import (
    MAX_RESAMPLES,
    RESAMPLES,
    Replicates,
    Statistic,
    check_replicates,
    resampled_statistic,
    statistic_of,
)
from calcheck.inference.metric_protocol import Computed, HasLimits, IntervalInference, RowResults, implements
from calcheck.inference.p_values_and_verdicts import is_undecided, with_zeta, with_zeta_verdict, zeta
from calcheck.statistics.groups import Means
from calcheck.typing import Indices, Values

if TYPE_CHECKING:
    from calcheck.dependence.clusters import Clusters
    from calcheck.execution.run import Run
    from calcheck.result_details import Bootstrap


Function = Callable[[Mapping[str, Values]], Values]
CACHED_ROWS = 1 << 14  # Maximum rows of all parts of a data set whose moments are computed together
STEP = 1e-3  # Step of the numerical derivatives, in standard deviations of a row
BATCHES = 20  # Batches of replicates for the Monte Carlo error of zeta


@dataclass(frozen=True, eq=False)
class Moments:
    """The first three moments of c columns, in each of b data sets, in units that are powers of two."""

    n: Values  # (b,), the number of rows
    unit: Values  # (c, b), so that no power overflows; division by it is exact
    mean: Values  # (c, b)
    covariance: Values  # (c, c, b), the second central moments
    third: Values  # (c, c, c, b), the third central moments

    @classmethod
    def from_values(cls, columns: Values) -> Moments:
        """Return the moments of one data set with columns (c, n)."""
        n, unit = columns.shape[1], _powers_of_two(columns)
        columns = columns / unit
        mean = columns.mean(axis=1, keepdims=True)
        away = columns - mean
        covariance, third = [], []
        for each in away:
            products = each * away
            covariance.append(products.mean(axis=1))
            third.append(products @ away.T / n)
        return cls(np.array([n]), unit, mean, np.array(covariance)[..., None], np.array(third)[..., None])

    @classmethod
    def from_parts(cls, columns: Values, ends: Indices) -> Moments:
        """Return the moments of columns (c, n) in b parts of the rows, between b + 1 offsets; no part is empty."""
        if columns.shape[1] > CACHED_ROWS:  # each part fits the processor cache better than all
            return cls.stack([cls.from_values(columns[:, start:end]) for start, end in pairwise(ends.tolist())])
        n, unit = np.diff(ends), _powers_of_two(columns)
        columns = columns / unit
        mean = np.add.reduceat(columns, ends[:-1], axis=1) / n
        away = columns - np.repeat(mean, n, axis=1)
        covariance, third = [], []
        for each in away:
            products = each * away
            covariance.append(np.add.reduceat(products, ends[:-1], axis=1) / n)
            third.append(np.add.reduceat(products[:, None] * away, ends[:-1], axis=2) / n)
        return cls(n, np.repeat(unit, len(n), axis=1), mean, np.array(covariance), np.array(third))

    @classmethod
    def stack(cls, parts: Sequence[Moments]) -> Moments:
        """Concatenate moments along the axis of data sets."""
        return cls(
            *(np.concatenate([getattr(each, field.name) for each in parts], axis=-1) for field in fields(Moments))
        )


def abc_limits(moments: Moments, names: Sequence[str], function: Function, confidence: float) -> tuple[Values, ...]:
    r"""Return the ABC limits of a function of means, and z0 and a, for b data sets of n rows.

    With :math:`T_i` the influence of row i, :math:`\sigma^2 = \sum T_i^2 / n^2`, the acceleration
    :math:`a = \sum T_i^3 / (6 (\sum T_i^2)^{3/2})`, the bias b, and the quadratic coefficient c along the least
    favorable direction :math:`\delta_i = T_i / (n^2 \sigma)`,

    .. math:: z_0 = \Phi^{-1}\{2 \Phi(a) \Phi(c - b / \sigma)\}, \quad w = z_0 + z_\alpha, \quad
              \theta(P_0 + \delta w / (1 - a w)^2).

    The influences are linear in the columns, so their sums follow from the moments of the columns.

    Source: DiCiccio and Efron (1992), Biometrika 79, 231-245; Efron and Tibshirani (1993), Section 22.6.
    """
    n, mean, covariance = moments.n, moments.mean, moments.covariance

    def at(shifts: Values) -> Values:
        return function(dict(zip(names, np.moveaxis(moments.unit * (mean + shifts), -2, 0), strict=True)))

    with np.errstate(all="ignore"):
        steps = STEP * np.sqrt(np.diagonal(covariance).T)[:, None] * np.eye(len(names))[:, :, None]  # (c, c, b)
        sizes = np.einsum("kkb->kb", steps)
        gradient = np.divide(at(steps) - at(-steps), 2 * sizes, out=np.zeros_like(sizes), where=sizes > 0)
        along = np.einsum("jb,jkb->kb", gradient, covariance)  # mean of influence times column
        variance = np.einsum("kb,kb->b", gradient, along)
        sigma = np.sqrt(variance / n)
        cubes = np.einsum("ib,jb,kb,ijkb->b", gradient, gradient, gradient, moments.third)
        acceleration = cubes / (6 * np.sqrt(n) * variance**1.5)
        least_favorable = along / (n * sigma)
        small = STEP * np.sqrt(n) * least_favorable
        bend = (at(small) + at(-small) - 2 * at(0 * small)) / (2 * STEP**2 * n * sigma)
        curvature = sum(at(each) + at(-each) - 2 * at(0 * each) for each in _roots(covariance)) / (2 * n * STEP**2)
        correction = normal_quantile(2 * normal_cdf(acceleration) * normal_cdf(bend - curvature / sigma))
        w = correction + normal_quantile(np.array([[(1 - confidence) / 2], [(1 + confidence) / 2]]))
        reach = np.where(acceleration * w < 1, w / (1 - acceleration * w) ** 2, np.nan)
        low, high = (at(least_favorable * each) for each in reach)
    return low, high, correction, acceleration


def _roots(covariance: Values) -> Values:
    """Return STEP times a root of covariances, (c, c, b): steps along the principal axes."""
    sizes, axes = np.linalg.eigh(np.moveaxis(covariance, -1, 0))
    scaled = axes * np.sqrt(np.maximum(sizes, 0))[:, None]  # (b, c, k)
    return np.asarray(STEP * np.moveaxis(scaled, 0, -1).swapaxes(0, 1))


def _powers_of_two(columns: Values) -> Values:
    """Return the smallest power of two above each of c columns (c, n), (c, 1)."""
    return np.asarray(np.ldexp(1.0, np.frexp(np.abs(columns).max(axis=1, initial=0.0, keepdims=True))[1]))


def abc(statistic: Statistic, confidence: float) -> Bca:
    """Return the ABC interval of a function of column means."""
    names = tuple(statistic.terms)
    found = abc_limits(
        Moments.from_values(statistic.columns.T),
        names,
        lambda means: statistic.of_means(Means(means, statistic.n)),
        confidence,
    )
    return Bca(*(float(each[0]) for each in found))


@dataclass(frozen=True)
class Bca:
    """A bias-corrected and accelerated (BCa) interval (Efron 1987); the limits are NaN where it is undefined."""

    low: float
    high: float
    correction: float  # The bias correction z0: the normal quantile of the share of replicates below the estimate
    acceleration: float  # The acceleration a, from the leave-one-out values


def acceleration(leave_one_out: Values) -> float:
    r"""Return the acceleration a: the rate at which the standard error changes with the estimate.

    .. math:: a = \frac{\sum_i (\bar\theta - \theta_i)^3}{6 (\sum_i (\bar\theta - \theta_i)^2)^{3/2}}
    """
    away = leave_one_out.mean() - leave_one_out
    largest = np.abs(away).max()
    if largest == 0:
        return 0.0
    away = away / largest  # The cube neither overflows nor underflows
    squares = away**2  # a power of 3 takes ten times as long
    return float(np.sum(squares * away) / (6 * np.sum(squares) ** 1.5))


def effective_rows(leave_one_out: Values) -> float:
    r"""Return the effective number of rows behind the variance of an estimate (Kish), from leave-one-out values.

    .. math:: \frac{(\sum_i d_i^2)^2}{\sum_i d_i^4}, \qquad d_i = \bar\theta - \theta_i
    """
    squared = (leave_one_out.mean() - leave_one_out) ** 2
    largest = squared.max()
    if not largest > 0:
        return float(len(squared))
    squared = squared / largest
    return float(squared.sum() ** 2 / np.sum(squared**2))


def clopper_pearson(successes: int, count: int, confidence: float) -> tuple[float, float]:
    """Return the Clopper-Pearson limits of a probability: exact, and found to all digits.

    >>> clopper_pearson(0, 1, 0.9)
    (0.0, 0.95)
    """
    tail = (1 - confidence) / 2  # scipy's binomtest finds the limits to 1e-9 only
    low = float(sc.betaincinv(successes, count - successes + 1, tail)) if successes else 0.0
    high = float(sc.betaincinv(successes + 1, count - successes, 1 - tail)) if successes < count else 1.0
    return low, high


def bca(replicates: Values, estimate: float, acceleration: float, confidence: float) -> Bca:
    """Return the BCa interval: quantiles of the (b,) replicates at Phi(z0 + (z0 ± z) / (1 - a (z0 ± z)))."""
    below = np.mean(replicates < estimate) + np.mean(replicates == estimate) / 2
    correction = float(normal_quantile(below))
    shifted = correction + normal_quantile((1 + confidence) / 2) * np.array([-1, 1])
    shrunk = 1 - acceleration * shifted if np.isfinite(correction) else np.zeros(2)
    if not (shrunk > 0).all():
        return Bca(np.nan, np.nan, correction, acceleration)
    places = normal_cdf(correction + shifted / shrunk) * (len(replicates) - 1)
    low, high = np.interp(places, np.arange(len(replicates)), np.sort(replicates)).tolist()
    return Bca(low, high, correction, acceleration)


def percentile(replicates: Values, confidence: float) -> tuple[float, float]:
    """Return the percentile interval: the central quantiles of the replicates at a confidence."""
    low, high = np.quantile(replicates, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def zeta_error(replicates: Values, estimate: float, reference: float, acceleration: float, confidence: float) -> float:
    """Return the Monte Carlo standard error of :func:`zeta` with BCa intervals: each batch has its z0 and limits."""
    size = len(replicates) // BATCHES
    found = []
    for batch in replicates[: size * BATCHES].reshape(BATCHES, size):
        limits = bca(batch, estimate, acceleration, confidence)
        found.append(zeta(estimate, reference, limits.low, limits.high))
    known = np.array(found)[np.isfinite(found)]  # All replicates of a small batch may lie on one side of the estimate
    return float(np.std(known, ddof=1) / np.sqrt(BATCHES)) if len(known) > BATCHES / 2 else float("nan")


SMALL_ACCELERATION = 0.02  # Maximum |a| for ABC limits
MODERATE_SHIFT = 0.5  # Maximum |a w| for ABC limits of clusters, at the normal quantile w
PERCENTILE_RESAMPLES, MIN_RESAMPLES, PERCENTILE_DRAWS = 1_000, 200, 20_000_000  # For percentile intervals: no verdicts
FEW_ROWS, MIN_TAIL_RESAMPLES = 30, 5  # Minimum rows, and resamples beyond a limit, for nominal coverage
MIN_EFFECTIVE_ROWS = 15  # At this minimum, calibrated models fail by zeta in at most 6 % of data sets, for any tail
NO_BOOTSTRAP = Message("no-interval", "no interval: the bootstrap was turned off (--no-bootstrap)")
INDEPENDENT = "it is exact for independent rows only"
SINGLE_ROW = Message("no-interval", "no interval: a single row cannot be resampled")
BIASED = Message(
    "interval-shows-spread",
    "resampling adds noise, so the interval does not contain the value: it shows the spread only and is not used for"
    " a decision",
)


def confidence_run(run: Run, clusters: Clusters | None, effective: float | None = None) -> Run:
    """Return the run with the nominal confidence of intervals: larger than the coverage if clusters are few."""
    return run if clusters is None else replace(run, confidence=clusters.expanded(run.confidence, effective))


def infer(found: Sequence[Computed], run: Run, clusters: Clusters | None = None) -> list[IntervalInference]:
    """Return the inference of each metric: interval, by shared resamples or ABC limits, exact reference and zeta."""
    inferred = {
        place: each.metric.limits(each.rows, run, clusters)
        if implements(each.metric, HasLimits)
        else _without_bootstrap(each, run, clusters)
        for place, each in enumerate(found)
    }
    resampled = {place: found[place] for place, each in inferred.items() if each is None}
    of_means = {place: each for place, each in resampled.items() if each.metric.info.interval == "bca"}
    others = {place: each for place, each in resampled.items() if place not in of_means}
    inferred |= _mean_intervals(of_means, run, clusters) | _percentile_intervals(others, run, clusters)
    return [
        _with_reference(interval, each.rows, run, few_rows_possible=clusters is None)
        for interval, each in zip(inferred.values(), found, strict=True)
        if interval is not None
    ]


def _with_reference(
    inferred: IntervalInference, rows: RowResults, run: Run, *, few_rows_possible: bool
) -> IntervalInference:
    """Add the exact reference, if there is one, and warnings about intervals that may undercover."""
    if rows.reference is not None:
        inferred = replace(inferred, reference=rows.reference, reference_kind="exact")
    warnings, resamples = inferred.warnings, inferred.details.get("bootstrap", {}).get("resamples")
    if resamples is None or inferred.interval is None:
        return inferred
    if few_rows_possible and rows.n < FEW_ROWS:
        warnings += (few_rows(rows.n),)
    if resamples * (1 - run.confidence) / 2 < MIN_TAIL_RESAMPLES:
        text = f"{resamples:,} resamples are too few for limits at a confidence of {run.confidence:g}"
        warnings += (Message("few-resamples", text),)
    return replace(inferred, warnings=warnings)


def _without_bootstrap(computed: Computed, run: Run, clusters: Clusters | None) -> IntervalInference | None:
    """Return the inference of a metric without a bootstrap of means; None if it needs one."""
    metric, rows = computed.metric, computed.rows
    if rows.inference is not None and (clusters is None or metric.info.allows_dependence):
        return rows.inference
    own = INDEPENDENT if rows.inference is not None else metric.info.no_interval
    if reason := own or ("" if clusters is None else metric.info.independent_rows):
        return IntervalInference(warnings=(no_interval(reason),))
    if run.resamples == 0:
        return IntervalInference(warnings=(NO_BOOTSTRAP,))
    if rows.n == 1:
        return IntervalInference(warnings=(SINGLE_ROW,))
    if not np.isfinite(statistic_of(metric, rows).estimate()):
        reason = "the value is not finite"
        return IntervalInference(warnings=(no_interval(reason),), no_verdict=reason)
    return None


def _mean_intervals(found: Mapping[int, Computed], run: Run, clusters: Clusters | None) -> dict[int, IntervalInference]:
    """Return the inference of metrics that are functions of column means, which share their resamples."""
    intervals = {
        place: MeanInterval(each.rows, resampled_statistic(each.metric, each.rows, clusters), run, clusters)
        for place, each in found.items()
    }
    shared = [each for each in intervals.values() if not each.is_smooth]
    if shared:
        replicates = Replicates([each.statistic for each in shared], run)
        replicates.draw(run.resamples or RESAMPLES)
        for each, values in zip(shared, replicates.values, strict=True):
            each.replicates = values
    return {place: each.inference(decides=found[place].basis.kind == "interval") for place, each in intervals.items()}


def _percentile_intervals(
    found: Mapping[int, Computed], run: Run, clusters: Clusters | None
) -> dict[int, IntervalInference]:
    """Return the percentile intervals of metrics, which share their resamples unless these are multinomial counts."""
    run = confidence_run(run, clusters)
    statistics = {place: resampled_statistic(each.metric, each.rows, clusters) for place, each in found.items()}
    alone = [[place] for place, each in statistics.items() if each.counted_groups is not None]
    shared = [place for place in statistics if [place] not in alone]
    inferred = {}
    for places in [*alone, *([shared] if shared else [])]:
        replicates = Replicates([statistics[place] for place in places], run)
        few = PERCENTILE_DRAWS // statistics[places[0]].n  # fewer for many rows
        replicates.draw(run.resamples or max(MIN_RESAMPLES, min(PERCENTILE_RESAMPLES, few)))
        for place, values in zip(places, replicates.values, strict=True):
            held_fixed = found[place].metric.info.conditional_on
            inferred[place] = _percentile_interval(statistics[place], held_fixed, values, run)
    return inferred


def _percentile_interval(statistic: Statistic, held_fixed: str, resampled: Values, run: Run) -> IntervalInference:
    values, bootstrap, reason = check_replicates(resampled, statistic.estimate())
    if held_fixed:
        bootstrap["held_fixed"] = held_fixed
    if reason:
        return IntervalInference(details={"bootstrap": bootstrap}, warnings=(no_interval(reason),))
    low, high = percentile(values, run.confidence)
    warnings = () if low <= statistic.estimate() <= high else (BIASED,)
    return IntervalInference(
        low=low, high=high, interval="percentile", details={"bootstrap": bootstrap}, warnings=warnings
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
            limits, critical = self._abc, float(normal_quantile((1 + self.run.confidence) / 2))
            moderate = abs(self.acceleration) * (critical + abs(limits.correction)) <= MODERATE_SHIFT
            return bool(moderate and np.isfinite([limits.low, limits.high]).all())
        many = self.run.resamples is None and self.statistic.n >= self.run.limits.abc_rows
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
        return self._compared(limits, "bca", bootstrap | extra, error, decides=decides)

    @property
    def _few(self) -> str:
        """Why the interval gives no verdict, if its effective rows are too few; else ""."""
        few = self.effective_rows < MIN_EFFECTIVE_ROWS
        return too_few_effective_rows(self.effective_rows, self.statistic.n) if few else ""

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
            if not decides or not is_undecided(self._zeta(limits), error) or resampled >= MAX_RESAMPLES:
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


def _bca_details(limits: Bca) -> Bootstrap:
    return {"z0": limits.correction, "acceleration": limits.acceleration}


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
