"""Statistics of rows and their bootstrap; limits of quantiles by order statistics, and of means by Student's t."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calcheck.core import sc
from calcheck.dependence.clusters import Clusters, weighted_mean
from calcheck.errors import NumericalError
from calcheck.execution.run import RandomStream, Run, one_blas_thread
from calcheck.inference.metric_protocol import HasFixedLevels, HasNullStatistic, InferableMetric, RowResults, implements
from calcheck.statistics.groups import Averages, Groups, Means, MeanTerm, TieGroups
from calcheck.typing import Values

if TYPE_CHECKING:
    from calcheck.result_details import Bootstrap
    from calcheck.typing import Indices

RESAMPLES, MAX_RESAMPLES = 10_000, 100_000  # Default and maximum number of resamples
BLOCK_DRAWS = 1 << 21  # Row draws per block of resamples: 16 MiB of weights share one pass over the columns
BLOCK_DRAWS_IN_GROUPS = 1 << 18  # The same for grouped terms, which read the weights repeatedly: 2 MiB fit the cache
SIZE = "size of the cluster"
BLOCK_SUMS = 1 << 22  # Sums by cluster and class in memory at a time
MOST_SUMS = 1 << 31  # Maximum number of sums by cluster and class
EQUAL = 1e-12  # Relative tolerance: smaller differences of replicates are rounding errors


@dataclass(frozen=True, eq=False)
class Statistic(Averages):
    """A function of the means of terms over n rows."""

    function: Callable[[Means], Values]  # Takes the means; leading axes index resamples
    # Further arguments of the function that are not means, by name
    fixed: Mapping[str, Values] = field(default_factory=dict)

    def of_means(self, means: Means) -> Values:
        """Return the statistic at the given means."""
        with np.errstate(all="ignore"):  # Empty groups have no mean; callers count non-finite values
            return np.asarray(self.function(means.with_values(self.fixed)))

    def estimate(self) -> float:
        """Return the statistic of the original rows."""
        return float(self.of_means(self.means()))

    def leave_one_out(self) -> Values:
        """Return the leave-one-out values of the statistic, (n,)."""
        return self.of_means(self.leave_one_out_means())


class Replicates:
    """Bootstrap replicates of several statistics of the same rows, under the same resamples; more can be drawn."""

    def __init__(
        self,
        statistics: Sequence[Statistic],  # Statistics of the same n rows
        run: Run,  # Seed and progress
        *,
        number: int = 0,  # The number of the random stream, if a run resamples several times
        stage: str = "resamples",  # The stage name shown by progress
    ) -> None:
        self._statistics, self._run, self._stage = statistics, run, stage
        self._n = statistics[0].n
        self._blocks = number << 32  # Each block has its own generator, so further blocks do not change earlier ones
        joined = {(at, name): term for at, each in enumerate(statistics) for name, term in each.terms.items()}
        self._names = {f"{at}.{name}": (at, name) for at, name in joined}
        self._averages = Averages({f"{at}.{name}": term for (at, name), term in joined.items()}, self._n)
        self.values = np.empty((len(statistics), 0))
        """Replicates, (statistics, resamples)."""

    def draw(self, resamples: int) -> None:
        """Draw resamples until ``values`` has ``resamples`` columns."""
        draws = BLOCK_DRAWS if self._averages.plain else BLOCK_DRAWS_IN_GROUPS
        size = max(1, draws // self._n)
        parts, have, first = [self.values], self.values.shape[1], self.values.shape[1]
        with one_blas_thread():
            while have < resamples:
                parts.append(self._block(min(size, resamples - have)))
                have += parts[-1].shape[1]
                self._run.progress(self._stage, (have - first) / (resamples - first))
        self.values = np.concatenate(parts, axis=1)

    def _block(self, size: int) -> Values:
        rng = self._run.rng(RandomStream.RESAMPLES, self._blocks)
        self._blocks += 1
        found = self._averages.resampled(size, rng)
        means = [Means({}, self._n) for _ in self._statistics]
        for joined, (at, name) in self._names.items():
            means[at][name] = found[joined]
        each = [statistic.of_means(own) for statistic, own in zip(self._statistics, means, strict=True)]
        return np.stack([np.broadcast_to(values, size) for values in each])


def clustered(statistic: Statistic, clusters: Clusters) -> Statistic:
    """Return a statistic of n rows as one of G clusters: its terms are the sums and the sizes of each cluster."""
    sums = {name: sums_of(term, clusters) for name, term in statistic.terms.items()}
    columns = {SIZE: MeanTerm(clusters.sizes.astype(np.float64))}
    for name, values in sums.items():
        columns |= {f"{name} {place}": MeanTerm(column) for place, column in enumerate(np.atleast_2d(values.T))}
    shapes = {name: values.shape[1:] for name, values in sums.items()}
    function = _of_ratios(statistic.function, shapes, len(clusters.label))
    return Statistic(columns, len(clusters), function, statistic.fixed)


def _of_ratios(
    function: Callable[[Means], Values], shapes: Mapping[str, tuple[int, ...]], n: int
) -> Callable[[Means], Values]:
    """Return a function of the means of clusters that computes the means of rows."""
    own = {f"{name} {place}" for name, shape in shapes.items() for place in range(shape[0] if shape else 1)} | {SIZE}

    def value(means: Means) -> Values:
        fixed = {name: each for name, each in means.items() if name not in own}
        found = {
            name: np.stack([means[f"{name} {place}"] / means[SIZE] for place in range(shape[0])], axis=-1)
            if shape
            else means[f"{name} 0"] / means[SIZE]
            for name, shape in shapes.items()
        }
        return function(Means(found | fixed, n))

    return value


def sums_of(term: MeanTerm, clusters: Clusters) -> Values:
    """Return the sums of a term by cluster: (G,), or (G, k) for a term with k groups."""
    if term.groups is None:
        return clusters.sums(np.ones(len(clusters.label)) if term.values is None else term.values)
    classes, count = term.groups.classes, len(clusters)
    if classes * count > MOST_SUMS:
        raise NumericalError(f"{count:,} clusters are too many for {classes:,} groups of rows")
    size = max(1, BLOCK_SUMS // classes)
    order = np.argsort(clusters.label, kind="stable")
    ends = np.append(0, np.cumsum(clusters.sizes))
    parts = []
    for start in range(0, count, size):
        stop = min(start + size, count)
        rows = order[ends[start] : ends[stop]]
        parts.append(_block_sums(term.groups, term.values, rows, clusters.label[rows] - start, stop - start))
    return np.concatenate(parts)


def _block_sums(groups: Groups, values: Values | None, rows: Indices, label: Indices, count: int) -> Values:
    """Return the sums by group of the rows of some clusters, (count, k)."""
    classes = rows if groups.label is None else groups.label[rows].astype(np.intp)
    cells = label * groups.classes + classes
    weights = None if values is None else values[rows]
    sums = np.bincount(cells, weights, count * groups.classes).reshape(count, groups.classes)
    return groups.of_classes(sums.astype(np.float64))


def statistic_of(metric: InferableMetric, rows: RowResults) -> Statistic:
    """Return a metric's value as a function of means of its rows."""
    terms = rows.terms or {name: MeanTerm(column) for name, column in rows.columns.items()}
    return Statistic(terms, rows.n, metric.value, rows.fixed)


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


def check_replicates(
    replicates: Values, estimate: float, *, kind: str = "resamples", rounding: float = 0.0
) -> tuple[Values, Bootstrap, str]:
    """Return the finite replicates, called ``kind``, their description, and why they give no interval, or ""."""
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


ROUNDING = 1e-9  # Tolerance of shares of rows, relative, and of ranks
LAST_DIGITS = 1e-15  # Relative tolerance of bisection
TAIL = 0.95  # Level at which Student's t is compared with the normal distribution


def _most(n: float, level: float, tail: float) -> float:
    """Return the largest k > -1 with P(B <= k) <= tail for a binomial B of n draws; n and k need not be whole."""
    return _crossing(lambda k: float(sc.betainc(n - k, k + 1, 1 - level)) <= tail, -1.0, n)


def _least(n: float, level: float, tail: float) -> float:
    """Return the smallest k < n + 1 with P(B >= k) <= tail; see :func:`_most`."""
    return _crossing(lambda k: float(sc.betainc(k, n - k + 1, level)) > tail, 0.0, n + 1)


def _crossing(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a condition ceases to hold, by bisection to the last digits."""
    while high - low > ROUNDING + LAST_DIGITS * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def binomial_shares(n: float, level: float, tail: float) -> tuple[float, float]:
    """Return the shares of n rows between which that up to the quantile at a level is; above 1 if there is no limit."""
    return max(_most(n, level, tail), 0.0) / n, _least(n, level, tail) / n


class Limits(NamedTuple):
    """Limits of a quantile, and their ranks among the values: 0 if there is no lower limit, n + 1 for no upper one."""

    low: float
    high: float
    ranks: tuple[int, int]


@dataclass(frozen=True, eq=False)
class WeightedOrder:
    """Different values in ascending order, and the share of all rows, or of their weights, up to each."""

    distinct: Values  # (k,)
    share: Values  # (k,), increasing to 1
    rows: float  # Number of independent rows with equal weights whose shares vary as much

    @classmethod
    def from_ties(cls, ties: TieGroups, weights: Values | None, rows: float) -> WeightedOrder:
        """Return the order of values in groups of equal ones."""
        cumulative = np.cumsum(ties.sums(weights))
        return cls(ties.distinct, cumulative / cumulative[-1], rows)

    def limits(self, level: float, tail: float) -> Limits:
        """Return the limits of the quantile at a level, each of which is wrong with a probability of at most ``tail``.

        Source: Thompson (1936), Annals of Mathematical Statistics 7, 122-128. Hoeffding (1956): rows may differ.
        Woodruff (1952): weights, and rows that depend on each other.
        """
        low, high = _most(self.rows, level, tail), _least(self.rows, level, tail)
        first, last = int(np.floor(low + ROUNDING)) + 1, int(np.ceil(high - ROUNDING))
        is_whole = float(self.rows).is_integer()
        return Limits(
            self.value((first if is_whole else low) / self.rows) if first else 0.0,
            self.value((last if is_whole else high) / self.rows) if last <= self.rows else np.inf,
            (first, last),
        )

    def value(self, share: float) -> float:
        """Return the smallest value up to which there is a share of the rows."""
        place = int(np.searchsorted(self.share, share * (1 - ROUNDING)))
        return float(self.distinct[min(place, len(self.distinct) - 1)])

    def p_value(self, level: float, reference: float) -> float:
        """Return the two-sided p-value of a quantile of ``reference``; equal rows count on the side that favors it."""
        n = self.rows
        below, up_to = (int(np.searchsorted(self.distinct, reference, side)) for side in ("left", "right"))
        fewest, most = (n * float(self.share[at - 1]) if at else 0.0 for at in (below, up_to))
        tails = (
            float(sc.betainc(n - most, most + 1, 1 - level)) if most < n else 1.0,
            float(sc.betainc(fewest, n - fewest + 1, level)) if fewest > 0 else 1.0,
        )
        return min(1.0, max(2 * min(tails), sys.float_info.min))


def effective_rows(apart: Values, weights: Values | None, level: float, clusters: Clusters | None) -> float:
    """Return the number of independent rows whose share below a quantile varies as much as that of these rows.

    Source: Korn, Graubard (1998), Survey Methodology 24, 193-201.
    """
    mean = weighted_mean(apart, weights, clusters)
    independent = weighted_mean(apart, weights, None)
    variance = max(mean.error, independent.error) ** 2
    ratio = float(sc.ndtri(TAIL) / sc.stdtrit(mean.freedom, TAIL))
    return min(level * (1 - level) / variance * ratio**2, float(len(apart))) if variance > 0 else float(len(apart))
