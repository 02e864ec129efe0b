"""Null distributions of metrics for rows that depend on each other, by multipliers of clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError, NumericalError
from calcheck.execution.context import RandomStream
from calcheck.inference.cluster_sums import sums_of
from calcheck.inference.metric_protocol import HasFixedLevels, RefitsReplicates
from calcheck.inference.verdicts import EQUAL, null_statistic_of
from calcheck.predictions import InMemory
from calcheck.results import NullDistribution
from calcheck.statistics.groups import Means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.dependence.clusters import Clusters
    from calcheck.execution.context import Run
    from calcheck.inference.bootstrap import Statistic
    from calcheck.inference.metric_protocol import InferableMetric
    from calcheck.inference.null_distribution import FittedMetric, NullSimulator
    from calcheck.predictions import Source
    from calcheck.results import RowResults
    from calcheck.statistics.groups import MeanTerm

    Values = NDArray[np.float64]

MULTIPLIERS = 9_999  # Number of draws; the standard error of p = 0.05 is 0.002
NOT_MEANS = "rows depend on each other, and the metric has a null distribution for independent rows only"


def dependence_reason(metric: InferableMetric) -> str:
    """Return why a metric has no p-value if rows depend on each other; "" if it has one."""
    is_function = metric.info.interval in ("bca", "percentile")
    return metric.info.independent_rows or ("" if is_function else NOT_MEANS)


def simulate_dependent_null(
    computed: Sequence[FittedMetric[InferableMetric]], simulation: NullSimulator, clusters: Clusters, run: Run
) -> None:
    r"""Set the null distributions of metrics, with the dependence of the rows of each cluster.

    A metric is a function of means over rows. With :math:`e_i` the difference between the terms of row i and their
    means over replicates, :math:`\mu_0`, and G clusters, the means of a perfect model are

    .. math:: \mu_0 + \frac1n \sqrt{\frac{v\,\nu}{\chi^2_\nu}} \sum_g \eta_g \sum_{i \in g} (e_i - \bar e),
              \qquad \eta_g \sim N(0, 1),

    so that a mean is compared with Student's t of :math:`\nu` degrees of freedom; v corrects the variance between few
    clusters. The variance of each plain term is that of the replicates: only its increase by dependence is from the
    data, since the variance of few clusters and the value depend on each other. Metrics share the multipliers.

    References
    ----------
    Cameron, Gelbach, Miller (2008), Review of Economics and Statistics 90, 414-427. Inoue (2001), Econometric Theory
    17, 156-187.
    """
    waiting = [each for each in computed if each.null is None and each.metric.alternative != "none"]
    if not waiting or not len(simulation):
        return
    terms = {id(each): _Terms(each, clusters) for each in waiting if not dependence_reason(each.metric)}
    _add_replicates(list(terms.values()), simulation, run)
    noise = iter(multiplier_noise([(each.residuals(), clusters) for each in terms.values()], run))
    for each in waiting:
        found = terms.get(id(each))
        each.null = _absent(dependence_reason(each.metric)) if found is None else found.null(next(noise))


def _absent(reason: str) -> NullDistribution:
    return NullDistribution(np.empty(0), no_verdict=reason)


def _add_replicates(terms: Sequence[_Terms], simulation: NullSimulator, run: Run) -> None:
    """Add the replicates to the terms of each metric."""
    quiet = run.quiet()
    for number, rows in enumerate(simulation):
        replicate = InMemory(rows)
        with np.errstate(all="ignore"):
            for each in terms:
                each.add(replicate, quiet)
        run.progress("replicates", (number + 1) / len(simulation))


def multiplier_noise(residuals: Sequence[tuple[Values, Clusters]], run: Run) -> list[Values]:
    """Return draws of the sums of residuals (G, k) times multipliers, (R, k) each, with the same multipliers.

    Multipliers are normal, so that the sums follow from the triangular factor of the residuals. They have the degrees
    of freedom of the clusters of each group of columns.

    Parameters
    ----------
    residuals : sequence of ((G, k), Clusters)
        Centered sums by cluster, all with the same clusters; and the clusters that the rows behind them belong to.
    run : Run
        The seed.
    """
    if not residuals:
        return []
    rng = run.rng(RandomStream.MULTIPLIERS)
    columns = np.concatenate([each for each, _ in residuals], axis=1)
    known = np.isfinite(columns).all(axis=0)
    factor = np.linalg.qr(np.where(known, columns, 0.0), mode="r")
    levels, draws = rng.uniform(size=MULTIPLIERS), rng.standard_normal((MULTIPLIERS, len(factor)))
    noise = np.where(known, draws @ factor, np.nan)
    parts = np.split(noise, np.cumsum([each.shape[1] for each, _ in residuals])[:-1], axis=1)
    return [
        part * (clusters.t_scales(levels) * np.sqrt(clusters.variance_factor))[:, None]
        for part, (_, clusters) in zip(parts, residuals, strict=True)
    ]


@dataclass(eq=False)
class _Moments:
    """A term of the data, and its moments over replicates.

    Parameters
    ----------
    data : (G,) or (G, k)
        Sums of the data by cluster.
    values : (n,), optional
        The term of each row of the data, if it has no groups.
    """

    data: Values
    values: Values | None
    count: int = 0
    sums: Values | float = 0.0
    squares: Values | float = 0.0
    rows: Values | float = 0.0

    @classmethod
    def of(cls, term: MeanTerm, clusters: Clusters) -> _Moments:
        """Return the term of the data."""
        return cls(sums_of(term, clusters), None if term.groups is not None else term.values)

    def add(self, sums: Values, values: Values | None) -> None:
        """Add the sums by cluster of a replicate, and its values by row."""
        self.count += 1
        self.sums = self.sums + sums
        self.squares = self.squares + sums**2
        if values is not None:
            self.rows = self.rows + values

    @property
    def mean(self) -> Values:
        """The mean of the sums by cluster over replicates."""
        return np.asarray(self.sums / self.count)

    def scale(self) -> float:
        """Return the standard deviation of the mean over independent rows of replicates, relative to the data."""
        if self.values is None:
            return 1.0
        away = self.values - self.rows / self.count
        own = float(np.sum((away - away.mean()) ** 2))
        expected = float(np.sum(self.squares / self.count - self.mean**2)) * self.count / max(self.count - 1, 1)
        rounding = EQUAL * float(np.sum(self.values**2))
        return float(np.sqrt(expected / own)) if min(own, expected) > rounding else 1.0


@dataclass(eq=False)
class _Terms:
    """The terms of a metric: of the data, and their moments over replicates."""

    computed: FittedMetric[InferableMetric]
    clusters: Clusters
    moments: dict[str, _Moments] = field(init=False)
    statistic: Statistic = field(init=False)

    def __post_init__(self) -> None:
        self.statistic = self._statistic(self.computed.rows)
        self.moments = {name: _Moments.of(term, self.clusters) for name, term in self._terms(self.statistic)}

    def _statistic(self, rows: RowResults) -> Statistic:
        """Return the statistic whose groups do not depend on the targets."""
        metric = self.computed.metric
        return null_statistic_of(metric, metric.at_fixed_levels(rows) if isinstance(metric, HasFixedLevels) else rows)

    @staticmethod
    def _terms(statistic: Statistic) -> list[tuple[str, MeanTerm]]:
        return list(statistic.averages.terms.items())

    def add(self, replicate: Source, run: Run) -> None:
        """Add a replicate, unless the metric is undefined for it."""
        metric, fit = self.computed.metric, self.computed.fit
        try:
            fit = (
                metric.refit(fit, replicate, run)
                if isinstance(metric, RefitsReplicates)
                else metric.fit(replicate, run)
            )
            found = self._statistic(metric.evaluate(fit, replicate, run))
        except (DataError, NumericalError):
            return
        for name, term in self._terms(found):
            self.moments[name].add(sums_of(term, self.clusters), None if term.groups is not None else term.values)

    def residuals(self) -> Values:
        """Return the centered differences between data and replicates, summed by cluster, (G, k), over n rows."""
        sizes = self.clusters.sizes
        columns = []
        for each in self.moments.values():
            away = (each.data - each.mean).reshape(len(sizes), -1)
            centered = away - np.outer(sizes / sizes.sum(), away.sum(axis=0))
            columns.append(centered * each.scale() / sizes.sum())
        return np.concatenate(columns, axis=1)

    def null(self, noise: Values) -> NullDistribution:
        """Return the null distribution, given draws of the noise of the means, (R, k)."""
        n, means, start = int(self.clusters.sizes.sum()), {}, 0
        for name, each in self.moments.items():
            expected = each.mean.sum(axis=0) / n
            stop = start + expected.size
            means[name] = expected + noise[:, start:stop].reshape(-1, *expected.shape)
            start = stop
        values = np.broadcast_to(self.statistic.of_means(Means(means, n)), len(noise))
        details = {"clusters": len(self.clusters), "degrees_of_freedom": self.clusters.degrees_of_freedom}
        return NullDistribution(np.array(values), self.statistic.estimate(), details=details)
