"""Isotonic regression of targets on predictions: of their means, and of their quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


def isotonic_means(x: Values, y: Values) -> Values:
    """Return the increasing function of x with the smallest mean squared error, (n,); equal x have equal values.

    Parameters
    ----------
    x, y : (n,)
        Predictions and targets.
    """
    from scipy.optimize import isotonic_regression

    distinct, label, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(label, y, len(distinct)) / counts
    return np.asarray(isotonic_regression(means, weights=counts).x[label])


def isotonic_quantiles(x: Values, y: Values, levels: Values) -> Values:
    """Return the increasing functions of x with the smallest mean pinball losses, (q, n); equal x have equal values.

    Rows are divided at the median of the possible values, which is a problem with two values, and each part is divided
    further, for all levels together. Time O(q n log n).

    Parameters
    ----------
    x : (q, n)
        Predicted quantiles at each level.
    y : (n,)
        Targets.
    levels : (q,)
        Levels of the quantiles, strictly between 0 and 1.

    References
    ----------
    Jordan, Mühlemann, Ziegel (2022), "Characterizing the optimal solutions to the isotonic regression problem for
    identifiable functionals".
    """
    order = np.array([np.lexsort((-y, each)) for each in x])  # Equal x: by decreasing y, so that they are pooled
    distinct, rank = np.unique(y, return_inverse=True)
    fitted = _divide(rank[order].ravel(), np.repeat(levels, len(y)), len(y), len(distinct))
    found = np.empty(x.shape)
    np.put_along_axis(found, order, distinct[fitted].reshape(x.shape), axis=1)
    return found


def pinball_losses(quantiles: Values, y: Values, levels: Values) -> Values:
    """Return the pinball loss of quantiles at each level, (q, n), unit of y.

    Parameters
    ----------
    quantiles : (q, n) or (q, 1)
        Quantiles at each level.
    y : (n,)
        Targets.
    levels : (q,)
        Levels of the quantiles.
    """
    return np.asarray(((y < quantiles) - levels[:, None]) * (quantiles - y))


def _divide(rank: NDArray[np.intp], level: Values, n: int, count: int) -> NDArray[np.intp]:
    """Return the rank of the fitted value of each row, for consecutive problems of n rows each.

    Parameters
    ----------
    rank : (q n,)
        Ranks of the targets among their ``count`` distinct values, in the order of predictions.
    level : (q n,)
        Levels of the quantiles.
    """
    places = np.arange(len(rank))
    low, high = np.zeros(len(rank), np.intp), np.full(len(rank), count - 1, np.intp)
    starts = places[::n]
    while (low < high).any():
        middle = (low + high) // 2
        gain = np.concatenate([[0.0], np.cumsum(np.where(low < high, (rank <= middle) - level, 0.0))])
        stops = np.append(starts[1:], len(rank))
        part = np.repeat(np.arange(len(starts)), stops - starts)
        best = np.maximum(np.maximum.reduceat(gain[:-1], starts), gain[stops])
        first = np.minimum.reduceat(np.where(gain[:-1] == best[part], places, len(rank)), starts)
        cut = np.minimum(first, stops)
        above = (places >= cut[part]) & (low < high)
        below = ~above & (low < high)
        low[above], high[below] = middle[above] + 1, middle[below]
        starts = np.unique(np.concatenate([starts, cut[cut < stops]]))
    return low
