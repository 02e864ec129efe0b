"""Scores of quantiles, masses and densities."""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from calcheck.core import sc
from calcheck.core.cache import cached
from calcheck.core.text import count_of
from calcheck.distributions import Predictive
from calcheck.distributions.base import Repeated
from calcheck.distributions.continuous import LocationScale
from calcheck.distributions.noise_clip_rounding import Rounded
from calcheck.errors import DataError
from calcheck.predictions import Predictions
from calcheck.statistics.groups import PART
from calcheck.statistics.pit import pit
from calcheck.statistics.zscores import targets
from calcheck.typing import Indices, Mask, Values

Pairs = tuple[tuple[float, float], ...]
MAX_CACHED = 1 << 24  # Maximum number of cached quantiles: 128 MiB
NODES = 64  # Of the quadrature for masses in the tails
SMALL = 1e-6  # Mass below which the difference of distribution functions loses digits


def isotonic_means(x: Values, y: Values) -> Values:
    """Return the increasing function of x with the smallest mean squared error, (n,); equal x have equal values."""
    from scipy.optimize import isotonic_regression

    distinct, label, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(label, y, len(distinct)) / counts
    return np.asarray(isotonic_regression(means, weights=counts).x[label])


def isotonic_quantiles(x: Values, y: Values, levels: Values) -> Values:
    """Return the increasing functions of x (q, n) with the smallest mean pinball losses of y (n,), (q, n).

    Rows are divided at the median of the possible values, a problem with two values, and each part is divided further.

    Source: Jordan, Mühlemann, Ziegel (2022), "Characterizing the optimal solutions to the isotonic regression problem
    for identifiable functionals".
    """
    order = np.array([np.lexsort((-y, each)) for each in x])  # Equal x: by decreasing y, so that they are pooled
    distinct, rank = np.unique(y, return_inverse=True)
    fitted = _divide(rank[order].ravel(), np.repeat(levels, len(y)), len(y), len(distinct))
    found = np.empty(x.shape)
    np.put_along_axis(found, order, distinct[fitted].reshape(x.shape), axis=1)
    return found


def pinball_losses(quantiles: Values, y: Values, levels: Values) -> Values:
    """Return the pinball loss of quantiles (q, n) or (q, 1) of y (n,) at levels (q,), (q, n), unit of y."""
    return np.asarray(((y < quantiles) - levels[:, None]) * (quantiles - y))


def _divide(rank: Indices, level: Values, n: int, count: int) -> Indices:
    """Return the rank of the fitted value of each row, (q n,), for consecutive problems of n rows each."""
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
    if isinstance(predictive, Repeated):
        return np.tile(_cached_quantiles(predictive.base, levels), predictive.count)
    found = np.empty((len(levels), len(predictive)))
    for rows, part in predictive.batches():
        for line, level in zip(found, levels, strict=True):
            line[rows] = part.quantile(level)
    return found


def interval_score_parts(predictive: Predictive, y: Values, levels: Sequence[float]) -> tuple[Values, Values, Values]:
    """Return the parts of the weighted interval score of each row, (n,) each, unit of y. Shapes: y (n,)."""
    ordered = sorted(levels)
    pairs = tuple((ordered[place], ordered[-1 - place]) for place in range((len(ordered) + 1) // 2))
    below, above = _distances(predictive, y, pairs)
    count = len(ordered) / 2
    return below / count, above / count, _widths(predictive, pairs) / count


def _distances(predictive: Predictive, y: Values, pairs: Pairs) -> Values:
    """Return the sums over intervals of the distances to targets below and above them, (2, n)."""
    found = np.zeros((2, len(y)))
    if isinstance(predictive, LocationScale) and predictive.has_standard_form:
        for rows, part in predictive.batches():
            found[:, rows] = _symmetric_distances(part, y[rows], pairs)
        return found
    for rows, limits in _quantiles_by_batch(predictive, tuple(chain(*pairs))):
        for low, high in pairs:
            for total, distance in zip(found, (next(limits) - y[rows], y[rows] - next(limits)), strict=True):
                np.maximum(distance, 0, out=distance)
                total[rows] += distance / 2 if low == high else distance
    return found


def _symmetric_distances(predictive: LocationScale, y: Values, pairs: Pairs) -> tuple[Values, Values]:
    """Return the sums of the distances to targets below and above intervals, (n,) each, from their z-scores."""
    with np.errstate(over="ignore"):  # for absurd targets and scales
        z = predictive.standardize(y)
        away, total, distance = np.abs(z), np.zeros(len(z)), np.empty(len(z))
        for low, high in pairs:
            np.subtract(away, predictive.standard_quantile(high), out=distance)
            np.maximum(distance, 0, out=distance)
            total += distance / 2 if low == high else distance
        total *= predictive.scale
    return np.where(z < 0, total, 0), np.where(z > 0, total, 0)


@cached
def _widths(predictive: Predictive, pairs: Pairs) -> Values:
    """Return the sums over intervals of their widths, weighted by their lower levels, (n,)."""
    total = np.zeros(len(predictive))
    for rows, limits in _quantiles_by_batch(predictive, tuple(chain(*pairs))):
        for low, _ in pairs:
            lower, upper = next(limits), next(limits)
            total[rows] += low * (upper - lower)
    return total


def log_masses(predictive: Predictive, y: Values) -> Values:
    """Return log(F(k + 1/2) - F(k - 1/2)) for the nearest integers, (n,), by quadrature of the density in the tails."""
    k = np.rint(y)
    mass = predictive.cdf(k + 0.5) - predictive.cdf(k - 0.5)
    small = np.flatnonzero(mass < SMALL)
    with np.errstate(divide="ignore"):
        found = np.log(np.maximum(mass, 0))
        found[small] = _integrated(predictive.take(small), k[small])
    return found


def _integrated(predictive: Predictive, k: Values) -> Values:
    """Return the logarithm of the integral of the density over [k - 1/2, k + 1/2], (n,)."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    logs = np.stack([predictive.log_prob(k + node / 2) for node in nodes])
    return np.asarray(sc.logsumexp(logs, axis=0, b=weights[:, None] / 2))


def log_likelihoods(rows: Predictions, *, discretised: bool = False) -> Values:
    """Return the log density or log mass of each row, (n,)."""
    predictive = rows.distributions()
    if predictive.targets == 1:
        if isinstance(predictive, Rounded) and not discretised:
            return predictive.log_mass(targets(rows), *pit(rows))
        return log_masses(predictive, targets(rows)) if discretised else predictive.log_prob(targets(rows))
    if discretised:
        msg = f"masses of whole numbers are for one target, and there are {predictive.targets}: omit --discretise"
        raise DataError(msg)
    return predictive.joint_log_prob(rows.targets())


def are_impossible(rows: Predictions) -> Mask:
    """Return whether each target has probability 0, (n,); of distributions without a density none is known to be."""
    try:
        with np.errstate(all="ignore"):
            return np.isneginf(log_likelihoods(rows))
    except DataError:
        return np.zeros(len(rows), dtype=np.bool_)


def describe_impossible(count: int) -> str:
    """Return how many targets are impossible, as a clause.

    >>> describe_impossible(1), describe_impossible(1200)
    ('1 target has probability 0 under the predictions', '1,200 targets have probability 0 under the predictions')
    """
    return f"{count_of(count, 'target has', 'targets have')} probability 0 under the predictions"
