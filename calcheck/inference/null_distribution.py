"""What a perfect model would score on the same rows: for independent rows, and for rows of clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from calcheck.core.cache import cached
from calcheck.core.metric_info import FUNCTIONS_OF_MEANS
from calcheck.dependence.clusters import FEWEST, Clusters, degrees_of_freedom, t_scales
from calcheck.distributions import Predictive
from calcheck.distributions.base import Repeated
from calcheck.distributions.row_random import RowRandom, hash_order
from calcheck.distributions.samples import LazyPredictive
from calcheck.errors import DataError, NumericalError
from calcheck.execution.run import RandomStream, Run, replicate_seed
from calcheck.inference.bootstrap import EQUAL, Statistic, null_statistic_of, sums_of
from calcheck.inference.metric_protocol import (
    Computed,
    CurveData,
    FittedMetric,
    HasCurves,
    HasFixedLevels,
    HasMoments,
    HasQuickStatistic,
    HasStackedStatistics,
    InferableMetric,
    NullDistribution,
    RefitsReplicates,
    RowResults,
    implements,
)
from calcheck.inference.p_values_and_verdicts import has_p_value, is_at_atom, is_open, p_value, p_value_error
from calcheck.predictions import InMemory, Predictions, Source, batch_row_keys, row_keys, row_sample
from calcheck.statistics.binning import Binning
from calcheck.statistics.groups import Means, MeanTerm
from calcheck.statistics.pit import stated_pit
from calcheck.typing import Floats, Indices, Values

REPLICATES = 199  # Default number of replicates
FEW_REPLICATES = 39  # Default for streaming and for distributions on disk; sufficient for a two-sided test at 5 %
REPLICATES_OF_MANY = 59  # Default for very many rows
MAX_REPLICATES = 9_999  # Maximum while a verdict is open; the standard error of p = 0.05 is then 0.002
BLOCK_ROWS = 1 << 15  # Rows or draws of replicates whose metrics are computed together: they fit in the processor cache
MAX_DRAWS = 50_000_000  # Maximum number of targets drawn for all replicates together
COSTLY_TIMES = 4  # Maximum ratio of final to initial replicates, if each needs matrix products
MULTIPLIERS = 9_999  # Number of draws; the standard error of p = 0.05 is 0.002
TINY = 1e-300  # Rows of an empty group
NOT_MEANS = "rows depend on each other, and the metric has a null distribution for independent rows only"


class NullSimulator:
    """R replicates of a data set under the null hypothesis: the same rows, with targets drawn from the predictions."""

    def __init__(
        self,
        # Rows with targets and distributions. For distributions given by draws, the target is exchanged with a draw.
        rows: Predictions,
        run: Run,  # The number of replicates, and the seed
        *,
        numbers: range | None = None,  # The numbers of the replicates; by default 0 to R - 1
        # (n,), keys of the rows, which seed their random numbers; by default those of `row_keys`
        keys: NDArray[np.uint64] | None = None,
    ) -> None:
        self.rows, self.run, self._own_keys = rows, run, keys
        default = REPLICATES_OF_MANY if len(rows) >= run.limits.many_rows else REPLICATES
        if isinstance(rows.predictive, LazyPredictive):
            default = FEW_REPLICATES
        self._first = range(default if run.replicates is None else run.replicates)
        self.numbers = self._first if numbers is None else numbers

    def __len__(self) -> int:
        """Return the number of replicates, R."""
        return len(self.numbers)

    def rng(self) -> Generator:
        """Return the random generator for draws that concern all rows together."""
        number = 0 if self.rows.y is None else _digest(self.rows)
        return self.run.rng(RandomStream.REPLICATES, self.numbers.start, number)

    def with_predictive(self, predictive: Predictive) -> NullSimulator:
        """Return the same replicates with another representation of the distributions, such as one in memory."""
        rows = self.rows if predictive is self.rows.predictive else self.rows.with_targets(self.rows.y, predictive)
        return NullSimulator(rows, self.run, numbers=self.numbers, keys=self._own_keys)

    def take(self, chosen: Indices) -> NullSimulator:
        """Return the same replicates of some of the rows only, given by their numbers."""
        return NullSimulator(self.rows.take(chosen), self.run, numbers=self.numbers, keys=self._keys[chosen])

    @property
    def _keys(self) -> NDArray[np.uint64]:
        """The keys of the rows, (n,)."""
        return _cached_row_keys(self.rows, replicate_seed(self.run)) if self._own_keys is None else self._own_keys

    def max_replicates(self, *, costly: bool) -> int:
        """Return the maximum number of replicates while a verdict is open; a number given by the user is fixed."""
        count = len(self._first)
        if self.run.replicates is not None or isinstance(self.rows.predictive, LazyPredictive):
            return count
        most = max(count, REPLICATES, min(MAX_REPLICATES, MAX_DRAWS // len(self.rows)))
        return min(most, COSTLY_TIMES * count) if costly else most

    def more(self, most: int) -> NullSimulator | None:
        """Return the next replicates, which double the total number, up to ``most``; None if that is reached."""
        stop = self.numbers.stop
        numbers = range(stop, min(2 * stop, most))
        return NullSimulator(self.rows, self.run, numbers=numbers, keys=self._own_keys) if numbers else None

    def start(self) -> NullSimulator:
        """Return the first replicates of many rows, unless their number is given; more follow for open verdicts."""
        few = self.run.replicates is None and len(self.rows) >= self.run.limits.several_rows
        numbers = self.numbers[:REPLICATES_OF_MANY] if few else self.numbers
        return NullSimulator(self.rows, self.run, numbers=numbers, keys=self._own_keys)

    def beyond(self, count: int) -> NullSimulator:
        """Return replicates that are in no null distribution."""
        numbers = range(MAX_REPLICATES, MAX_REPLICATES + count)
        return NullSimulator(self.rows, self.run, numbers=numbers, keys=self._own_keys)

    @property
    def block_size(self) -> int:
        """Number of replicates that are drawn at a time."""
        return max(1, self.run.limits.block_targets // len(self.rows))

    def __iter__(self) -> Iterator[Predictions]:
        """Yield the replicates; each iteration yields the same ones."""
        rows, size = self.rows, self.block_size
        if rows.y is None or rows.predictive is None:
            return
        rng = RowRandom(self._keys)
        for start in range(0, len(self), size):
            for y, predictive in rows.predictive.replicates(rows.y, rng, self.numbers[start : start + size]):
                yield rows.with_targets(y, predictive)


def batch_replicates(batch: Predictions, count: int, run: Run) -> Iterator[Predictions]:
    """Yield ``count`` replicates of a batch; the targets of a row do not depend on its batch."""
    yield from NullSimulator(batch, run, numbers=range(count), keys=batch_row_keys(batch, replicate_seed(run)))


@cached
def _cached_row_keys(rows: Predictions, seed: int) -> NDArray[np.uint64]:
    """Return the keys of rows, cached per seed."""
    return row_keys(rows, seed)


@cached
def _digest(rows: Predictions) -> int:
    """Return a hash of the order of the targets, cached."""
    return hash_order(rows.targets())


@cached
def replicate_pits(simulation: NullSimulator, most: int) -> tuple[Floats, Floats]:
    """Return the limits of the PIT of each replicate in single precision, (R, n) each, of at most ``most`` rows."""
    if len(simulation.rows) > most:
        simulation = simulation.take(row_sample(simulation.rows, most, replicate_seed(simulation.run)))
    left, right = np.empty((2, len(simulation), len(simulation.rows)), np.float32)
    same = True
    for number, rows in enumerate(simulation):
        left[number], right[number] = limits = stated_pit(rows)
        same = same and limits[0] is limits[1]
    return (right, right) if same else (left, right)


@runtime_checkable
class SimulatesNull(Protocol):
    """A metric that computes all replicates of its null distribution together."""

    def null_distribution(self, fit: Any, simulation: NullSimulator, run: Run) -> NullDistribution | None:
        """Return the metric of all replicates; None if that is not cheaper than one by one."""


def replicate_value(computed: Computed, replicate: Source, run: Run) -> Any:
    """Return the metric of a replicate, its quick statistic, or its moments; NaN or None where it is undefined."""
    metric, bands = computed.metric, computed.bands
    try:
        fit = _refit(computed, replicate, run)
        if implements(metric, HasMoments):
            rows, value = None, metric.moments(fit, replicate, run)
        elif implements(metric, HasQuickStatistic):
            rows, value = None, metric.quick_statistic(fit, replicate, run)
        else:
            rows = metric.evaluate(fit, replicate, run)
            value = null_statistic_of(metric, rows).estimate()
    except (DataError, NumericalError):
        return None if implements(metric, HasMoments) else np.nan
    if bands is not None and not bands.is_complete and implements(metric, HasCurves):
        with suppress(DataError, NumericalError):
            bands.add(metric.curves(CurveData(fit, replicate, run, rows)))
    return value


def _refit(computed: Computed, replicate: Source, run: Run) -> Any:
    """Return the fit of a metric to a replicate."""
    metric = computed.metric
    if implements(metric, RefitsReplicates):
        return metric.refit(computed.fit, replicate, run)
    return metric.fit(replicate, run)


def needs_replicates(computed: Computed, run: Run) -> bool:
    """Return whether more replicates may change the verdict; not if the threshold is at an atom."""
    null, own, alternative = computed.null, computed.compared_value, computed.metric.alternative
    if null is None or null.no_verdict or computed.basis.kind != "p" or not has_p_value(computed.value):
        return False
    if is_at_atom(null.values, own, alternative):
        return False
    p = p_value(null.values, own, alternative)
    return is_open(p, p_value_error(p, len(null.values), alternative), run.confidence)


def simulate_null(computed: Sequence[Computed], simulation: NullSimulator, run: Run) -> None:
    """Simulate the null distributions of metrics that need one, replicate by replicate, until verdicts are clear."""

    def values_of(waiting: Sequence[Computed], data_sets: NullSimulator) -> list[NullDistribution]:
        stage = f"{waiting[0].metric.info.name if len(waiting) == 1 else f'{len(waiting)} metrics'}: replicates"
        return replicate_values(waiting, data_sets, run, stage)

    waiting = [each for each in computed if each.null is None and each.metric.alternative != "none"]
    if not waiting or not len(simulation):
        return
    first = simulation.start()
    for each, found in zip(waiting, values_of(waiting, first), strict=True):
        each.null = found
    add_replicates(waiting, first, run, values_of, costly=False)


def replicate_values(
    computed: Sequence[Computed], simulation: NullSimulator, run: Run, stage: str
) -> list[NullDistribution]:
    """Return the null distributions of metrics from replicates, which are drawn and evaluated in blocks."""
    quiet, data, blocks, done = run.quiet(), InMemory(simulation.rows), list[list[Values]](), 0
    size = len(simulation.rows) * (simulation.rows.distributions().n_draws or 1)  # a replicate may have its own draws
    with np.errstate(all="ignore"):
        replicates = iter(simulation)
        while block := list(islice(replicates, max(1, BLOCK_ROWS // size))):
            sources, stacked = [InMemory(rows) for rows in block], _stacked(block, simulation.rows)
            blocks.append([_block_values(each, sources, stacked, quiet) for each in computed])
            done += len(block)
            run.progress(stage, done / len(simulation))
        own = [_quick_value(each, data, quiet) for each in computed]
    return [NullDistribution(np.concatenate(v), o) for v, o in zip(zip(*blocks, strict=True), own, strict=True)]


def _stacked(block: Sequence[Predictions], data: Predictions) -> Predictions | None:
    """Return the rows of several replicates as one data set; None if there are not several, or distributions vary."""
    predictive = data.distributions()
    is_usual = data.observation is None and data.targets().ndim == 1 and not isinstance(predictive, LazyPredictive)
    stated = predictive.n_draws, predictive.quantile_levels, predictive.interval_levels
    if len(block) == 1 or not is_usual or any(each is not None for each in stated):
        return None
    if predictive.normal() is None and next(iter(predictive.batches()))[0].stop < len(predictive):
        return None  # functions of batches are shared by replicates
    every = _repeated(predictive, len(block))
    return Predictions(predictive=every).with_targets(np.concatenate([each.targets() for each in block]), every)


@cached
def _repeated(predictive: Predictive, count: int) -> Predictive:
    """Return the distributions ``count`` times."""
    if predictive.normal() is None:
        return Repeated(predictive, count)
    return predictive.take(np.tile(np.arange(len(predictive)), count))


def _block_values(computed: Computed, replicates: Sequence[Source], stacked: Predictions | None, run: Run) -> Values:
    """Return the metric of each replicate; NaN where it is undefined."""
    metric = computed.metric
    if stacked is not None and computed.bands is None and implements(metric, HasStackedStatistics):
        with suppress(DataError, NumericalError):  # then it is undefined for some of them
            return metric.stacked_statistics(computed.fit, stacked, len(replicates))
    line = [replicate_value(computed, each, run) for each in replicates]
    return metric.quick_statistics(line, run) if implements(metric, HasMoments) else np.array(line)


def _quick_value(computed: Computed, data: Source, run: Run) -> float | None:
    """Return the quick statistic of the data; None if its value is compared with replicates."""
    metric = computed.metric
    if implements(metric, HasStackedStatistics) or not implements(metric, HasQuickStatistic):
        return None
    return metric.quick_statistic(computed.fit, data, run)


def add_replicates(
    computed: Sequence[Computed],
    simulation: NullSimulator,
    run: Run,
    values_of: Callable[[Sequence[FittedMetric[Any]], NullSimulator], Sequence[NullDistribution]],
    *,
    costly: bool,
) -> None:
    """Add replicates while verdicts are open, doubling their number (Besag and Clifford 1991, Gandy 2009)."""
    most = simulation.max_replicates(costly=costly)
    for each in computed:
        each.sequential = most > len(simulation)
    while (further := simulation.more(most)) is not None:
        waiting = [each for each in computed if needs_replicates(each, run)]
        if not waiting:
            break
        for each, found in zip(waiting, values_of(waiting, further), strict=True):
            known = np.empty(0) if each.null is None else each.null.values
            each.null = replace(each.null or found, values=np.concatenate([known, found.values]))
        simulation = further


def dependence_reason(metric: InferableMetric) -> str:
    """Return why a metric has no p-value if rows depend on each other; "" if it has one."""
    return metric.info.independent_rows or ("" if metric.info.interval in FUNCTIONS_OF_MEANS else NOT_MEANS)


def simulate_dependent_null(
    computed: Sequence[Computed], simulation: NullSimulator, clusters: Clusters, run: Run
) -> None:
    r"""Set the null distributions of metrics, with the dependence of the rows of each cluster.

    A metric is a function of means over rows. With :math:`e_i` the difference between the terms of row i and their
    means over replicates, :math:`\mu_0`, and G clusters, the means of a perfect model are

    .. math:: \mu_0 + \frac1n \sqrt{\frac{v\,\nu}{\chi^2_\nu}} \sum_g \eta_g \sum_{i \in g} (e_i - \bar e),
              \qquad \eta_g \sim N(0, 1),

    so that a mean is compared with Student's t of :math:`\nu` degrees of freedom; v corrects the variance between few
    clusters. The mean of a bin has the :math:`\bar e`, v and :math:`\nu` of the clusters with rows in it. The variance
    of each term is that of the replicates: only its increase by dependence is from the data, since the variance of few
    clusters and the value depend on each other. Metrics share the multipliers.

    Source: Cameron, Gelbach, Miller (2008), Review of Economics and Statistics 90, 414-427. Inoue (2001), Econometric
    Theory 17, 156-187.
    """
    waiting = [each for each in computed if each.null is None and each.metric.alternative != "none"]
    if not waiting or not len(simulation):
        return
    terms = {id(each): _Terms(each, clusters) for each in waiting if not dependence_reason(each.metric)}
    judged = [each for each in terms.values() if not each.no_verdict]
    for number, rows in enumerate(simulation):
        with np.errstate(all="ignore"):
            for moments in judged:
                moments.add(InMemory(rows), run.quiet())
        run.progress("replicates", (number + 1) / len(simulation))
    with np.errstate(invalid="ignore"):  # the noise of an infinite value is undefined
        noise = iter(multiplier_noise([(each.residuals(), each.members()) for each in judged], clusters.inflation, run))
    for each in waiting:
        found = terms.get(id(each))
        reason = dependence_reason(each.metric) if found is None else found.no_verdict
        absent = NullDistribution(np.empty(0), no_verdict=reason)
        each.null = absent if found is None or reason else found.null(next(noise))


def multiplier_noise(residuals: Sequence[tuple[Values, Values]], inflation: float, run: Run) -> list[Values]:
    """Return draws of the sums of residuals (G, k) times multipliers, (R, k) each, with the same multipliers.

    Multipliers are normal, so that the sums follow from the triangular factor of the residuals. Each column has the
    degrees of freedom of the clusters behind it.
    """
    if not residuals:
        return []
    rng = run.rng(RandomStream.MULTIPLIERS)
    columns = np.concatenate([each for each, _ in residuals], axis=1)
    known = np.isfinite(columns).all(axis=0)
    factor = np.linalg.qr(np.where(known, columns, 0.0), mode="r")
    noise = np.where(known, rng.standard_normal((MULTIPLIERS, len(factor))) @ factor, np.nan)
    parts = np.split(noise, np.cumsum([each.shape[1] for each, _ in residuals])[:-1], axis=1)
    return [part * _scales(members, inflation, rng) for part, (_, members) in zip(parts, residuals, strict=True)]


def _scales(members: Values, inflation: float, rng: Generator) -> Values:
    """Return the factors of normal noise by column, (R, k); columns of the same clusters have the same factors."""
    different, place = np.unique(members, axis=1, return_inverse=True)
    count = np.maximum(np.count_nonzero(different, axis=0), 2)
    levels = rng.uniform(size=(MULTIPLIERS, different.shape[1]))
    scales = t_scales(levels, degrees_of_freedom(different)) * np.sqrt(inflation * count / (count - 1))
    return np.asarray(scales[:, place.reshape(-1)])


@dataclass(eq=False)
class _Moments:
    """A term of the data, and its moments over replicates."""

    term: MeanTerm  # The term of the data
    clusters: Clusters  # The clusters of the rows
    data: Values = field(init=False)
    count: int = 0
    sums: Values | float = 0.0
    squares: Values | float = 0.0
    rows: Values | float = 0.0

    def __post_init__(self) -> None:
        self.data = sums_of(self.term, self.clusters)

    @cached_property
    def members(self) -> Values:
        """The number of rows of each cluster behind each mean, (G, k): in a bin, or all if groups are by targets."""
        if self.term.values is None:
            return np.broadcast_to(self.clusters.sizes[:, None], self.data.reshape(len(self.clusters), -1).shape)
        return sums_of(MeanTerm(None, self.term.groups), self.clusters).reshape(len(self.clusters), -1)

    @property
    def no_verdict(self) -> str:
        """Why the variance of a mean is unknown: a bin has rows of too few clusters; else ""."""
        counts = np.count_nonzero(self.members, axis=0)
        least, groups = counts[counts > 0].min(), self.term.groups
        if least >= FEWEST or not isinstance(groups, Binning):
            return ""
        return f"a bin has rows of {least} clusters, and at least {FEWEST} are needed to judge it: {groups.remedy}"

    def add(self, term: MeanTerm) -> None:
        """Add the term of a replicate."""
        sums = sums_of(term, self.clusters)
        self.count += 1
        self.sums = self.sums + sums
        self.squares = self.squares + sums**2
        if term.values is not None:
            self.rows = self.rows + term.values

    @property
    def mean(self) -> Values:
        """The mean of the sums by cluster over replicates."""
        return np.asarray(self.sums / self.count)

    def residuals(self) -> Values:
        """Return the centered differences between data and replicates by cluster, (G, k), with their variance."""
        values = self.term.values
        found, own = self._of_groups() if values is None else self._of_rows(values)
        expected = np.sum(self.squares / self.count - self.mean**2, axis=0) * self.count / max(self.count - 1, 1)
        known = np.minimum(own, expected) > EQUAL * (np.sum(self.data**2, axis=0) + 1)
        scale = np.sqrt(np.divide(expected, own, out=np.ones_like(own), where=known))
        return np.asarray((found * scale).reshape(len(self.clusters), -1))

    def _of_rows(self, values: Values) -> tuple[Values, Values]:
        """Return the sums by cluster, and the variance for independent rows, of a term with values by row."""
        away = np.asarray(values - self.rows / self.count)
        sums = sums_of(MeanTerm(away, self.term.groups), self.clusters)
        members = self.members.reshape(sums.shape)
        mean = sums.sum(axis=0) / np.maximum(members.sum(axis=0), TINY)
        return sums - members * mean, self._variance(away, mean)

    def _variance(self, away: Values, mean: Values) -> Values:
        """Return the sum of squares around means of groups, in which a row counts by its share: s^2 (e - mean)^2."""
        if (groups := self.term.groups) is None:
            return np.asarray(np.sum((away - mean) ** 2))
        weights = groups if groups.shares is None else replace(groups, shares=groups.shares**2)
        total, first, second = (weights.sums(each) for each in (None, away, away**2))
        return np.maximum(second - 2 * mean * first + mean**2 * total, 0)

    def _of_groups(self) -> tuple[Values, Values]:
        """Return the same for shares of rows in groups, which have equal expectations for all rows."""
        groups, sizes = self.term.groups, self.clusters.sizes
        away = self.data - self.mean
        total, n = self.data.sum(axis=0), sizes.sum()
        mean = away.sum(axis=0) / n
        squares = total if groups is None or groups.shares is None else groups.by_class(None) @ groups.shares**2
        return away - np.multiply.outer(sizes, mean), np.maximum(squares - total**2 / n, 0)


@dataclass(eq=False)
class _Terms:
    """The terms of a metric: of the data, and their moments over replicates."""

    computed: Computed
    clusters: Clusters
    moments: dict[str, _Moments] = field(init=False)
    statistic: Statistic = field(init=False)

    def __post_init__(self) -> None:
        self.statistic = self._statistic(self.computed.rows)
        terms = self.statistic.terms
        self.moments = {name: _Moments(term, self.clusters) for name, term in terms.items()}

    def _statistic(self, rows: RowResults) -> Statistic:
        """Return the statistic whose groups do not depend on the targets."""
        metric = self.computed.metric
        return null_statistic_of(metric, metric.at_fixed_levels(rows) if implements(metric, HasFixedLevels) else rows)

    def add(self, replicate: Source, run: Run) -> None:
        """Add a replicate, unless the metric is undefined for it."""
        metric: InferableMetric = self.computed.metric
        try:
            found = self._statistic(metric.evaluate(_refit(self.computed, replicate, run), replicate, run))
        except (DataError, NumericalError):
            return
        for name, term in found.terms.items():
            self.moments[name].add(term)

    @property
    def no_verdict(self) -> str:
        """Why the null distribution is unknown, or ""."""
        return next((reason for each in self.moments.values() if (reason := each.no_verdict)), "")

    def residuals(self) -> Values:
        """Return the centered differences between data and replicates by cluster, (G, k), over n rows."""
        n = self.clusters.sizes.sum()
        return np.concatenate([each.residuals() / n for each in self.moments.values()], axis=1)

    def members(self) -> Values:
        """Return the number of rows of each cluster behind each of them, (G, k)."""
        return np.concatenate([each.members for each in self.moments.values()], axis=1)

    def null(self, noise: Values) -> NullDistribution:
        """Return the null distribution, given draws of the noise of the means, (R, k)."""
        if np.isposinf(self.statistic.estimate()):
            noise = np.zeros_like(noise)  # that of the data is unknown, but any replicate is smaller
        n, means, start = int(self.clusters.sizes.sum()), {}, 0
        for name, each in self.moments.items():
            expected = each.mean.sum(axis=0) / n
            stop = start + expected.size
            means[name] = expected + noise[:, start:stop].reshape(-1, *expected.shape)
            start = stop
        values = np.broadcast_to(self.statistic.of_means(Means(means, n)), len(noise))
        freedom = float(degrees_of_freedom(self.members()).min())
        details = {"clusters": len(self.clusters), "degrees_of_freedom": freedom}
        return NullDistribution(np.array(values), self.statistic.estimate(), details=details)
