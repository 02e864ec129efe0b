"""Quantiles of the predictions, cached for data sets that share these, and the parts of the weighted interval score."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from calcheck.statistics.cache import cached
from calcheck.statistics.groups import PART

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive

    Values = NDArray[np.float64]
    Pairs = tuple[tuple[float, float], ...]

MAX_CACHED = 1 << 24  # Maximum number of cached quantiles: 128 MiB


def quantiles(predictive: Predictive, levels: Sequence[float]) -> Iterator[Values]:
    """Yield the quantiles of n distributions at each level, (n,) each, unit of y; cached unless they are many."""
    if len(levels) * len(predictive) > MAX_CACHED:
        return map(predictive.quantile, levels)
    return iter(_cached_quantiles(predictive, tuple(levels)))


def _quantiles_by_batch(predictive: Predictive, levels: tuple[float, ...]) -> Iterator[tuple[slice, Iterator[Values]]]:
    """Yield slices of rows, each with the quantiles of these rows at each level; cached unless they are many."""
    if len(levels) * len(predictive) > MAX_CACHED:
        for rows, part in predictive.batches():
            yield rows, map(part.quantile, levels)
        return
    found = _cached_quantiles(predictive, levels)
    for start in range(0, len(predictive), PART):
        rows = slice(start, start + PART)
        yield rows, iter(found[:, rows])


@cached
def _cached_quantiles(predictive: Predictive, levels: tuple[float, ...]) -> Values:
    """Return the quantiles at each level, (q, n)."""
    found = np.empty((len(levels), len(predictive)))
    for rows, part in predictive.batches():
        for line, level in zip(found, levels, strict=True):
            line[rows] = part.quantile(level)
    return found


def interval_score_parts(predictive: Predictive, y: Values, levels: Sequence[float]) -> tuple[Values, Values, Values]:
    """Return the parts of the weighted interval score of each row, (n,) each, unit of y.

    Parameters
    ----------
    predictive : Predictive
        n distributions.
    y : (n,)
        Targets.
    levels : sequence of float
        Quantile levels: pairs p and 1 - p, with or without 1/2. The median is an interval of width 0 with weight 1/2.

    Returns
    -------
    overprediction, underprediction, dispersion : (n,)
        Distances from the intervals to targets below and above them, and the widths, each divided by the number of
        intervals: half the number of levels.
    """
    ordered = sorted(levels)
    pairs = tuple((ordered[place], ordered[-1 - place]) for place in range((len(ordered) + 1) // 2))
    below, above = _distances(predictive, y, pairs)
    count = len(ordered) / 2
    return below / count, above / count, _widths(predictive, pairs) / count


def _distances(predictive: Predictive, y: Values, pairs: Pairs) -> Values:
    """Return the sums over intervals of the distances to targets below and above them, (2, n)."""
    found = np.zeros((2, len(y)))
    for rows, limits in _quantiles_by_batch(predictive, tuple(chain(*pairs))):
        for low, high in pairs:
            for total, distance in zip(found, (next(limits) - y[rows], y[rows] - next(limits)), strict=True):
                np.maximum(distance, 0, out=distance)
                total[rows] += distance / 2 if low == high else distance
    return found


@cached
def _widths(predictive: Predictive, pairs: Pairs) -> Values:
    """Return the sums over intervals of their widths, weighted by their lower levels, (n,)."""
    total = np.zeros(len(predictive))
    for rows, limits in _quantiles_by_batch(predictive, tuple(chain(*pairs))):
        for low, _ in pairs:
            lower, upper = next(limits), next(limits)
            total[rows] += low * (upper - lower)
    return total
