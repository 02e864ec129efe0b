"""Null distributions of metrics by groups of rows that depend on each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.dependence.clusters import FEWEST, Clusters
from calcheck.inference.multiplier_null import multiplier_noise
from calcheck.inference.verdicts import EQUAL
from calcheck.predictions import InMemory
from calcheck.statistics.groups import Means

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.inference.null_distribution import NullSimulator
    from calcheck.metrics.base import Metric

    Values = NDArray[np.float64]
    Statistic = Callable[[Metric[Any], Means], Values]


def clusters_within(clusters: Clusters, rows: NDArray[np.intp]) -> Clusters | None:
    """Return the clusters of some of the rows; None if they are fewer than five."""
    label = np.unique(clusters.label[rows], return_inverse=True)[1]
    return Clusters(label, clusters.inflation) if label.max() + 1 >= FEWEST else None


class DependentGroups:
    """Columns of a metric in the data, and their moments over replicates, by group.

    Parameters
    ----------
    metric : Metric
        A function of means of columns.
    columns : dict
        The columns of the data, (n,) each.
    groups : sequence of (m,)
        The rows of each group.
    clusters : Clusters
        The clusters of all rows.
    """

    def __init__(
        self,
        metric: Metric[Any],
        columns: dict[str, Values],
        groups: Sequence[NDArray[np.intp]],
        clusters: Clusters,
    ) -> None:
        self.metric, self.groups, self.clusters = metric, groups, clusters
        self.names = tuple(columns)
        self._data = self._matrix(columns)
        self._count, self._sums, self._squares = 0, np.zeros_like(self._data), np.zeros_like(self._data)

    def _matrix(self, columns: dict[str, Values]) -> Values:
        return np.stack([np.asarray(columns[name], dtype=np.float64) for name in self.names], axis=1)

    def add(self, columns: dict[str, Values]) -> None:
        """Add the columns of a replicate."""
        values = self._matrix(columns)
        self._count += 1
        self._sums += values
        self._squares += values**2

    def residuals(self, number: int) -> Values:
        """Return the centered differences of a group from its replicates, by cluster, (G, c), over its rows.

        Their variance is that of the replicates; only its increase by dependence is from the data.
        """
        rows = self.groups[number]
        expected = self._sums[rows] / self._count
        away = self._data[rows] - expected
        away -= away.mean(axis=0)
        own = np.sum(away**2, axis=0)
        variance = np.sum(self._squares[rows] / self._count - expected**2, axis=0)
        variance *= self._count / max(self._count - 1, 1)
        known = np.minimum(own, variance) > EQUAL * np.sum(self._data[rows] ** 2, axis=0)
        scale = np.sqrt(np.divide(variance, own, out=np.ones_like(own), where=known))
        sums = np.zeros((len(self.clusters), len(self.names)))
        np.add.at(sums, self.clusters.label[rows], away * scale)
        return sums / len(rows)

    def members(self, number: int) -> Values:
        """Return the number of rows of each cluster in a group, (G, c)."""
        sizes = np.bincount(self.clusters.label[self.groups[number]], minlength=len(self.clusters)).astype(np.float64)
        return np.repeat(sizes[:, None], len(self.names), axis=1)

    def values(self, number: int, noise: Values, statistic: Statistic) -> Values:
        """Return the statistic of a group of a perfect model, given draws of the noise of its means, (r, c)."""
        rows = self.groups[number]
        means = self._sums[rows].mean(axis=0) / self._count + noise
        with np.errstate(all="ignore"):
            return statistic(self.metric, Means(dict(zip(self.names, means.T, strict=True)), len(rows)))


def dependent_group_values(
    metrics: Sequence[Metric[Any]],
    groups: Sequence[NDArray[np.intp]],
    clusters: Clusters,
    simulation: NullSimulator,
    statistic: Statistic,
    run: Run,
) -> list[list[Values | None]]:
    """Return the values of perfect models by metric and group, (r,) each, with the same multipliers of clusters.

    Parameters
    ----------
    metrics : sequence of Metric
        Functions of means of columns.
    groups : sequence of (m,)
        The rows of each group.
    clusters : Clusters
        The clusters of all rows.
    simulation : NullSimulator
        Replicates of all rows.
    statistic : callable
        Returns what is compared with replicates, given a metric and means.
    run : Run
        The seed.

    Returns
    -------
    list of list
        None for a group with fewer than five clusters.
    """
    quiet = run.quiet()
    source = InMemory(simulation.rows)
    found = [DependentGroups(each, each.evaluate(None, source, quiet).columns, groups, clusters) for each in metrics]
    for number, rows in enumerate(simulation):
        replicate = InMemory(rows)
        with np.errstate(all="ignore"):
            for each in found:
                each.add(each.metric.evaluate(None, replicate, quiet).columns)
        run.progress("groups: replicates", (number + 1) / len(simulation))
    within = [clusters_within(clusters, rows) for rows in groups]
    judged = [(each, place) for each in found for place, own in enumerate(within) if own is not None]
    residuals = [(each.residuals(place), each.members(place)) for each, place in judged]
    noise = iter(multiplier_noise(residuals, clusters.inflation, run))
    return [
        [None if own is None else each.values(place, next(noise), statistic) for place, own in enumerate(within)]
        for each in found
    ]
