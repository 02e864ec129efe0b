"""Paired comparison of two models on the same rows: intervals by the bootstrap, p-values also by swapping models."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Generic

import numpy as np

from calcheck.core.lazy_inputs import same_inputs
from calcheck.core.metric_info import SHARED_FIT
from calcheck.dependence.clusters import Clusters
from calcheck.distributions.samples import LazyPredictive
from calcheck.errors import DataError, Message
from calcheck.execution.run import RandomStream, Run
from calcheck.inference import bootstrap as resampling
from calcheck.inference import intervals
from calcheck.inference.metric_protocol import HasInfluences, InferableMetric, MetricT_co, RowResults
from calcheck.inference.null_distribution import dependence_reason
from calcheck.predictions import Predictions
from calcheck.reports import Inference
from calcheck.statistics.groups import Means, MeanTerm
from calcheck.typing import Mask, Values

SWAPS = 9_999  # Default number of swaps for the permutation test
SPREAD_ONLY = Message(
    "interval-shows-spread",
    "resampling adds noise to both values, so the interval of the difference shows its spread only and is not used for"
    " a decision",
)
STEP = 0.1  # Step of a slope, relative to the noise of a resample
MOST_ROWS = resampling.BLOCK_DRAWS_IN_GROUPS // 3  # For slopes, whose noise is from two other resamples of a block
NO_PERMUTATIONS = "the permutation test was turned off (--permutations 0)"
NOT_RESAMPLED = "the bootstrap was turned off (--no-bootstrap)"
EXCHANGEABLE = Message(
    "exchangeability-assumed",
    "p is from swapping models only, without the bootstrap: it assumes that the models are exchangeable",
)
PREDICTIONS_ONLY = "the metric depends on the predictions only"
BY_BIN = Message("no-interval", "no interval and no p-value of the difference: the metric tests each bin separately")
NOT_FINITE = Message("no-interval", "no interval and no p-value of the difference: a value is not finite")
NO_TEST = "no test of the difference is known that is valid for models that are equally good but not exchangeable"


@dataclass(frozen=True, eq=False)
class ModelPair(Generic[MetricT_co]):
    """A metric of two models' predictions for the same n rows."""

    metric: MetricT_co
    # The predictions of both models; the difference is the second value minus the first
    models: tuple[Predictions, Predictions]
    rows: tuple[RowResults, RowResults]  # The results of the metric for each model
    # Ideal value of each model; the distances from them are compared instead of the values
    targets: tuple[float, float] | None = None
    clusters: Clusters | None = None  # Clusters of rows that depend on each other

    @property
    def plain(self) -> bool:
        """Whether the values are functions of column means, where each row depends on that row only."""
        grouped = any(term.groups is not None for each in self.rows for term in each.terms.values())
        return self.metric.info.interval == "bca" or (self.metric.info.interval == "one-sided" and not grouped)

    @property
    def swappable(self) -> bool:
        """Whether rows can be swapped between the models: both values are functions of the same means."""
        return self.plain and len({tuple(side.terms) for side in self.sides()}) == 1

    @property
    def units(self) -> int:
        """Number of rows, or of clusters, that are resampled and swapped."""
        return len(self.models[0]) if self.clusters is None else len(self.clusters)

    @property
    def ties(self) -> bool:
        """Whether both values are equal, up to rounding."""
        first, second = self.values()
        return abs(second - first) <= self.rounding

    @cached_property
    def rounding(self) -> float:
        """The size of rounding errors of the difference."""
        numbers: list[float] = [each.estimate() for each in self._values()] + list(self.targets or ())
        return resampling.EQUAL * max(map(abs, numbers))

    def values(self) -> tuple[float, float]:
        """Return the values of both models, or their distances from their targets."""
        first, second = (side.estimate() for side in self.sides())
        return first, second

    def sides(self) -> list[resampling.Statistic]:
        """Return the value of each model, or its distance from its target, as a function of means of its rows."""
        return [_mapped(each, np.abs) for each in self._deviations()] if self.targets else self._values()

    def statistic(self) -> resampling.Statistic:
        """Return the difference as a function of means of both models' rows."""
        return _joined(self.sides(), np.subtract)

    def contrasts(self) -> list[resampling.Statistic]:
        """Return functions of the means of both models; at least one is 0 if their distances from targets are equal."""
        if self.targets is None:
            return [self.statistic()]
        return [_joined(self._deviations(), combined) for combined in (np.subtract, np.add)]

    def _values(self) -> list[resampling.Statistic]:
        return [resampling.resampled_statistic(self.metric, rows, self.clusters) for rows in self.rows]

    def _deviations(self) -> list[resampling.Statistic]:
        """Return the value of each model minus its target."""
        pairs = zip(self._values(), self.targets or (), strict=True)
        return [_mapped(each, partial(np.add, -target)) for each, target in pairs]


def _mapped(value: resampling.Statistic, function: Callable[[Values], Values]) -> resampling.Statistic:
    """Return a function of a value."""
    return replace(value, function=lambda means: function(value.function(means)))


def _joined(
    sides: Sequence[resampling.Statistic], combined: Callable[[Values, Values], Values]
) -> resampling.Statistic:
    """Return a function of the values of the second and the first model, in this order."""
    n = sides[0].n
    named = [(f"{side}.", each) for side, each in enumerate(sides)]
    terms = {mark + name: term for mark, each in named for name, term in each.terms.items()}
    fixed = {mark + name: values for mark, each in named for name, values in each.fixed.items()}

    def of_both(means: Means) -> Values:
        first, second = (each.function(_side_means(means, mark)) for mark, each in named)
        return np.asarray(combined(second, first))

    return resampling.Statistic(terms, n, of_both, fixed)


def _side_means(means: Means, mark: str) -> Means:
    side = {name.removeprefix(mark): values for name, values in means.items() if name.startswith(mark)}
    return Means(side, means.n)


def compare_pairs(
    pairs: Sequence[ModelPair[InferableMetric]], run: Run, *, swaps: int | None = None
) -> list[Inference]:
    r"""Return the interval and the p-value of the difference of each pair, by the bootstrap with the same resamples.

    * Functions of means over rows: the larger p-value of two tests. Randomly swapping the models' predictions of each
      row is exact if models are exchangeable, :math:`p = (1 + \#\{|D^*| \ge |D|\}) / (R + 1)`. The studentized
      bootstrap of D is asymptotically valid for models that are equally good only. Distances from targets are equal
      if the deviations a and b are equal or opposite: both b - a and b + a are tested, and the larger p-value counts.
    * Functions of means that are biased by noise: the bootstrap of D, centered at its mean; in bins, its slopes at the
      resamples times the noise of others.
    * Quadratic forms of embeddings: the studentized bootstrap of D, from the influence of each row.
    """
    known = [_undefined(pair) or _by_influences(pair, run, swaps) for pair in pairs]
    fit = [pair for pair, found in zip(pairs, known, strict=True) if found is None]
    tested = [pair for pair in fit if pair.swappable and pair.metric.alternative != "none"]
    resampled = dict(zip(map(id, fit), _resampled(fit, run), strict=True))
    swap_p = dict(zip(map(id, tested), _swap_p_values(tested, run, SWAPS if swaps is None else swaps), strict=True))
    return [
        found or _combine(pair, resampled[id(pair)], swap_p.get(id(pair)), swaps)
        for pair, found in zip(pairs, known, strict=True)
    ]


def _combine(
    pair: ModelPair[InferableMetric], resampled: Inference, swapped: float | None, swaps: int | None
) -> Inference:
    """Combine the interval and the p-values of a difference."""
    p = resampled.p_value
    if pair.metric.alternative == "none":
        return _without_p(resampled, PREDICTIONS_ONLY)
    if swaps == 0:
        return _without_p(resampled, NO_PERMUTATIONS)
    if swapped is None:
        return resampled if p is not None else _without_p(resampled, NOT_RESAMPLED)
    if p is None:
        return replace(resampled, p_value=swapped, warnings=(*resampled.warnings, EXCHANGEABLE))
    return replace(resampled, p_value=max(p, swapped))


def _without_p(inferred: Inference, reason: str) -> Inference:
    message = Message("no-p-value", f"no p-value: {reason}")
    return replace(inferred, p_value=None, warnings=(*inferred.warnings, message))


def _undefined(pair: ModelPair[InferableMetric]) -> Inference | None:
    """Return an inference that states why there is no interval and no p-value; None if there may be one."""
    if pair.metric.info.interval == "own":
        return Inference(warnings=(BY_BIN,))
    if pair.metric.info.interval == "lower":
        return Inference(warnings=(intervals.no_interval(f"{SHARED_FIT}, and there is no p-value of the difference"),))
    if not np.isfinite(pair.values()).all():
        return Inference(warnings=(NOT_FINITE,))
    dependence = "" if pair.clusters is None else dependence_reason(pair.metric)
    return _without_p(Inference(warnings=(intervals.no_interval(dependence),)), dependence) if dependence else None


def _by_influences(pair: ModelPair[InferableMetric], run: Run, swaps: int | None) -> Inference | None:
    """Return the inference of a metric whose rows share one fit, from influences of rows; None for other metrics."""
    metric = pair.metric
    if metric.info.interval != "none":
        return None
    absent = Message("no-interval", f"no interval of the difference: {metric.info.no_interval}")
    inferred = Inference(warnings=(absent,))
    if swaps == 0:
        return _without_p(inferred, NO_PERMUTATIONS)
    if not isinstance(metric, HasInfluences):
        return _without_p(inferred, NO_TEST)
    first, second = pair.models
    if not same_inputs(first.x, second.x):
        return _without_p(inferred, "the models are conditioned on different inputs")
    try:
        terms = metric.influences(_stacked(pair), run.quiet())
    except DataError as error:
        return _without_p(inferred, str(error))
    centered = terms - terms.mean()
    replicates = resampling.Replicates([_studentized(centered)], run, stage=f"{metric.info.name}: resamples")
    replicates.draw(run.resamples or resampling.RESAMPLES)
    return replace(inferred, p_value=_p_of_ratio(replicates.values[0], float(terms.sum()) / 2, centered))


def _studentized(influences: Values) -> resampling.Statistic:
    """Return the studentized sum of centered influences as a function of means."""

    def ratio(means: Means) -> Values:
        mean, square = means["influence"], means["square"]
        return np.asarray(np.sqrt(means.n) * mean / np.sqrt(np.maximum(square - mean**2, 0)))

    return resampling.Statistic(
        {"influence": MeanTerm(influences), "square": MeanTerm(influences**2)}, len(influences), ratio
    )


def _p_of_ratio(ratios: Values, difference: float, influences: Values) -> float:
    """Return the two-sided p-value of a studentized difference; undefined resamples count as more extreme."""
    error = np.sqrt(np.sum(influences**2))
    if error == 0:
        return 1.0 if difference == 0 else 2 / (len(ratios) + 1)
    ratio = difference / error
    farther = min(np.sum(~(ratios < ratio)), np.sum(~(ratios > ratio)))
    return float(min(1.0, 2 * (1 + farther) / (len(ratios) + 1)))


def _resampled(pairs: Sequence[ModelPair[InferableMetric]], run: Run) -> list[Inference]:
    """Return the bootstrap interval and p-value of each difference; plain ones share their resamples."""
    n = pairs[0].units if pairs else 0
    if run.resamples == 0 or n == 1:
        why = intervals.SINGLE_ROW if n == 1 else intervals.NO_BOOTSTRAP
        return [Inference(warnings=(why,)) for _ in pairs]
    plain = {id(pair): [_Contrast(each, pair) for each in pair.contrasts()] for pair in pairs if pair.plain}
    if plain:
        contrasts = [each for found in plain.values() for each in found]
        together = resampling.Replicates([statistic for each in contrasts for statistic in each.statistics], run)
        together.draw(run.resamples or resampling.RESAMPLES)
        for each, values in zip(contrasts, np.split(together.values, len(contrasts)), strict=True):
            each.replicates = values
    inferred = [
        _of_contrasts(plain[id(pair)], run) if id(pair) in plain else _biased_inference(pair, run) for pair in pairs
    ]
    return [
        replace(found, warnings=(*found.warnings, intervals.few_rows(n)))
        if n < intervals.FEW_ROWS and found.interval and pairs[0].clusters is None
        else found
        for found in inferred
    ]


class _Contrast:
    """A function of means over rows of both models that may be 0, and its studentized version."""

    def __init__(self, statistic: resampling.Statistic, pair: ModelPair[InferableMetric]) -> None:
        self.statistic, self.clusters, self.rounding = statistic, pair.clusters, pair.rounding
        self.estimate = statistic.estimate()
        self.left = statistic.leave_one_out()
        n = len(self.left)
        self.influences = np.sqrt((n - 1) / n) * (self.left.mean() - self.left)
        self.statistics = [statistic, _studentized(self.influences)]
        self.replicates: Values = np.empty((2, 0))

    def limits(self, inferred: Inference) -> tuple[float, float] | None:
        """Return the interval, which is a point if the contrast is the same in all resamples; None if it is unknown."""
        if inferred.low is not None and inferred.high is not None:
            return inferred.low, inferred.high
        return (self.estimate, self.estimate) if np.ptp(self.left) <= self.rounding else None

    def inference(self, run: Run) -> Inference:
        """Return the BCa interval and the p-value of the studentized contrast."""
        values, bootstrap, reason = resampling.check_replicates(
            self.replicates[0], self.estimate, rounding=self.rounding
        )
        inflation = 1.0 if self.clusters is None else self.clusters.inflation
        difference = 0.0 if abs(self.estimate) <= self.rounding else self.estimate / inflation**0.5
        p = _p_of_ratio(self.replicates[1], difference, self.influences)
        if reason:
            return Inference(p_value=p, details={"bootstrap": bootstrap}, warnings=(intervals.no_interval(reason),))
        accel = intervals.acceleration(self.left)
        limits = intervals.bca(values, self.estimate, accel, intervals.confidence_run(run, self.clusters).confidence)
        if not np.isfinite([limits.low, limits.high]).all():
            message = intervals.no_interval("the BCa interval is undefined; there are too few rows")
            return Inference(p_value=p, details={"bootstrap": bootstrap}, warnings=(message,))
        details = {"bootstrap": {**bootstrap, "z0": limits.correction, "acceleration": accel}}
        return Inference(low=limits.low, high=limits.high, interval="bca", p_value=p, details=details)


def _of_contrasts(contrasts: Sequence[_Contrast], run: Run) -> Inference:
    """Return the inference of a difference that is 0 if one of its contrasts is: an intersection-union test.

    The difference |b| - |a| is one of b - a and b + a, up to its sign, and monotone in each, so its interval ends at
    corners of the box of their intervals. The coverage is at least theirs.

    Source: Berger (1982), Multiparameter hypothesis testing and acceptance sampling, Technometrics 24, 295-300.
    """
    inferred = [each.inference(run) for each in contrasts]
    if len(contrasts) == 1:
        return inferred[0]
    nearest = inferred[int(np.argmin([abs(each.estimate) for each in contrasts]))]
    found = replace(nearest, p_value=max(each.p_value for each in inferred if each.p_value is not None))
    limits = [each.limits(own) for each, own in zip(contrasts, inferred, strict=True)]
    unknown = next((own for own, each in zip(inferred, limits, strict=True) if each is None), None)
    if unknown is not None or all(own.interval is None for own in inferred):
        return replace(found, low=None, high=None, interval=None, warnings=(unknown or nearest).warnings)
    ends = [(abs(total + minus) - abs(total - minus)) / 2 for minus, total in product(*filter(None, limits))]
    return replace(found, low=min(ends), high=max(ends), interval="bca", warnings=())


def _biased_inference(pair: ModelPair[InferableMetric], run: Run) -> Inference:
    """Return the percentile interval of the difference of a noise-biased metric, and its bootstrap p-value."""
    statistic = pair.statistic()
    in_bins = bool(pair.metric.info.conditional_on) and statistic.n <= MOST_ROWS
    both = [statistic, _slope(statistic)] if in_bins else [statistic]
    replicates = resampling.Replicates(both, run, stage=f"{pair.metric.info.name}: resamples")
    replicates.draw(run.resamples or intervals.PERCENTILE_RESAMPLES)
    estimate = statistic.estimate()
    values, bootstrap, reason = resampling.check_replicates(replicates.values[0], estimate, rounding=pair.rounding)
    details = {"bootstrap": bootstrap}
    if pair.ties or reason:
        p = 1.0 if pair.ties else None
        return Inference(p_value=p, details=details, warnings=(intervals.no_interval(reason),) if reason else ())
    low, high = intervals.percentile(values, intervals.confidence_run(run, pair.clusters).confidence)
    away = np.abs(replicates.values[1] if in_bins else replicates.values[0] - values.mean())
    factor = 1.0 if pair.clusters is None else pair.clusters.variance_factor
    p = float((1 + np.sum(~(away < abs(estimate) / factor**0.5))) / (len(away) + 1))
    warnings = (SPREAD_ONLY,)
    return Inference(low=low, high=high, interval="percentile", p_value=p, details=details, warnings=warnings)


def _slope(statistic: resampling.Statistic) -> resampling.Statistic:
    r"""Return the slope of a statistic at a resample, times noise from two others.

    .. math:: (D(\theta^* + h e) - D(\theta^*)) / h, \qquad e = (\theta^{**} - \theta^{***}) / \sqrt 2

    A gap in a bin is an absolute value, with a kink at 0, which resamples hide: at the data, the difference seems
    least variable where it is largest. The mean square of slopes at resamples, times that of the noise, is at least
    the variance.

    Source: Chernoff (1981), A note on an inequality involving the normal distribution, Annals of Probability 9.
    """

    def change(means: Means) -> Values:
        moved = {
            name: means[name] + STEP * (np.roll(means[name], 1, axis=0) - np.roll(means[name], 2, axis=0)) / 2**0.5
            for name in statistic.terms
        }
        there = statistic.function(means.with_values(moved))
        return np.asarray((there - statistic.function(means)) / STEP)

    return replace(statistic, function=change)


def _swap_masks(n: int, swaps: int, run: Run, stage: str) -> Iterator[Mask]:
    """Yield random masks of swapped rows, (b, n) each; they depend on the seed and the number of rows only."""
    size = max(1, run.limits.block_swaps // n)
    for block, start in enumerate(range(0, swaps, size)):
        rng = run.rng(RandomStream.PERMUTATIONS, block)
        bits = rng.integers(0, 256, (min(size, swaps - start), -(-n // 8)), dtype=np.uint8)
        yield np.unpackbits(bits, axis=1, count=n).astype(np.bool_)
        run.progress(stage, min(1.0, (start + size) / swaps))


def _swap_p_values(pairs: Sequence[ModelPair[InferableMetric]], run: Run, swaps: int) -> list[float]:
    """Return the permutation p-values of functions of column means; a swap moves sums from one model to the other."""
    if not pairs or not swaps:
        return [1.0] * len(pairs)
    sides = [pair.sides() for pair in pairs]
    gaps = [second.columns - first.columns for first, second in sides]  # (n, c) each
    n, columns = len(gaps[0]), np.concatenate(gaps, axis=1)
    moved = np.concatenate([rows.astype(np.float64) @ columns for rows in _swap_masks(n, swaps, run, "swapping")]) / n
    found, at = [], 0
    for pair, (first, second), gap in zip(pairs, sides, gaps, strict=True):
        shifts = dict(zip(first.terms, moved[:, at : at + gap.shape[1]].T, strict=True))
        at += gap.shape[1]
        own, others = first.means(), second.means()
        before = first.of_means(Means({name: own[name] + shift for name, shift in shifts.items()}, n))
        after = second.of_means(Means({name: others[name] - shift for name, shift in shifts.items()}, n))
        values = pair.values()
        reached = abs(values[1] - values[0]) - pair.rounding  # ties and undefined values are as extreme
        found.append(float((1 + np.sum(~(np.abs(after - before) < reached))) / (swaps + 1)))
    return found


def _stacked(pair: ModelPair[InferableMetric]) -> Predictions:
    """Concatenate the rows of both models."""
    first, second = pair.models
    a, b = first.predictive, second.predictive
    if a is None or b is None or type(a) is not type(b):
        families = " and ".join(each.display_name for each in (a, b) if each is not None)
        raise DataError(f"distributions of different families ({families}) cannot be swapped row by row")
    if isinstance(a, LazyPredictive):
        raise DataError("distributions that do not fit in memory cannot be swapped row by row")
    y = None if first.y is None or second.y is None else np.concatenate([first.y, second.y])
    columns = {name: np.concatenate([each.columns[name] for each in pair.models]) for name in pair.metric.columns()}
    x = None if first.x is None or second.x is None else np.concatenate([first.inputs(), second.inputs()])
    return Predictions(
        y=y,
        predictive=a.join([b]),
        x=x,
        has_embedding=first.has_embedding,
        columns=columns,
        categories=first.categories,
    )
