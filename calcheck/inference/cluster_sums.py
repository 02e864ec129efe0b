"""Functions of means over rows as functions of means over clusters of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import NumericalError
from calcheck.inference.bootstrap import Statistic
from calcheck.statistics.groups import Averages, Means, MeanTerm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from calcheck.dependence.clusters import Clusters
    from calcheck.statistics.groups import Groups

    Values = NDArray[np.float64]

SIZE = "size of the cluster"
BLOCK = 1 << 22  # Sums by cluster and class in memory at a time
MOST_SUMS = 1 << 31  # Maximum number of sums by cluster and class


def clustered(statistic: Statistic, clusters: Clusters) -> Statistic:
    """Return a statistic of n rows as a statistic of G clusters: its terms are the sums of each cluster.

    Whatever resamples, omits or weights the rows of a statistic does so with whole clusters. The means of clusters of
    different sizes are ratios: the sum of the terms over that of the sizes.

    Parameters
    ----------
    statistic : Statistic
        A function of means over rows.
    clusters : Clusters
        The clusters of the same rows.

    Raises
    ------
    NumericalError
        The groups and the clusters are too many.
    """
    sums = {name: sums_of(term, clusters) for name, term in statistic.averages.terms.items()}
    columns = {SIZE: MeanTerm(clusters.sizes.astype(np.float64))}
    for name, values in sums.items():
        columns |= {f"{name} {place}": MeanTerm(column) for place, column in enumerate(np.atleast_2d(values.T))}
    shapes = {name: values.shape[1:] for name, values in sums.items()}
    return Statistic(
        Averages(columns, len(clusters)), _of_ratios(statistic.function, shapes, len(clusters.label)), statistic.fixed
    )


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
    """Return the sums of a term by cluster: (G,), or (G, k) for a term with k groups.

    Raises
    ------
    NumericalError
        The groups and the clusters are too many.
    """
    if term.groups is None:
        return clusters.sums(np.ones(len(clusters.label)) if term.values is None else term.values)
    classes, count = term.groups.classes, len(clusters)
    if classes * count > MOST_SUMS:
        msg = f"{count:,} clusters are too many for {classes:,} groups of rows"
        raise NumericalError(msg)
    size = max(1, BLOCK // classes)
    order = np.argsort(clusters.label, kind="stable")
    ends = np.append(0, np.cumsum(clusters.sizes))
    parts = []
    for start in range(0, count, size):
        stop = min(start + size, count)
        rows = order[ends[start] : ends[stop]]
        parts.append(_block_sums(term.groups, term.values, rows, clusters.label[rows] - start, stop - start))
    return np.concatenate(parts)


def _block_sums(
    groups: Groups, values: Values | None, rows: NDArray[np.intp], label: NDArray[np.intp], count: int
) -> Values:
    """Return the sums by group of the rows of some clusters, (count, k)."""
    classes = rows if groups.label is None else groups.label[rows].astype(np.intp)
    cells = label * groups.classes + classes
    weights = None if values is None else values[rows]
    sums = np.bincount(cells, weights, count * groups.classes).reshape(count, groups.classes)
    return groups.of_classes(sums.astype(np.float64))
