"""Scores and ranks of several targets: energy score, variogram score, PIT of pre-ranks."""

from collections.abc import Callable

import numpy as np

from calcheck.core.cache import cached
from calcheck.distributions import Predictive
from calcheck.distributions.row_random import RowRandom
from calcheck.distributions.samples import Samples
from calcheck.errors import DataError
from calcheck.predictions import Predictions
from calcheck.typing import Values

OWN_DRAWS = 50  # Draws per row of distributions that are not given by draws
SEED = 0x5EC7  # Of these draws, which depend on the distributions only, so that replicates have the same ones
BLOCK_VALUES = 1 << 22  # Numbers per block of rows
DECIMALS = 10  # Of distances of standardized coordinates: equal vectors have equal ones


@cached
def own_draws(predictive: Predictive) -> Values:
    """Return draws of the target vectors, (n, m, t): those that are given, or 50 of each distribution."""
    known = predictive.load()
    return known.draws if isinstance(known, Samples) else known.sample(RowRandom(known.hashes(SEED)), OWN_DRAWS)


def target_vectors(rows: Predictions) -> tuple[Values, Values]:
    """Return the target vectors, (n, t), and their draws, (n, m, t)."""
    draws = own_draws(rows.distributions())
    if draws.shape[1] == 1:
        raise DataError("one draw per row does not show how the targets depend on each other: give at least 2")
    return rows.targets(), draws


def energy_scores(rows: Predictions, *, fair: bool) -> Values:
    """Return the energy scores, (n,), by draws (Gneiting, Raftery 2007, Eq. 22; fair version of Ferro 2014)."""
    y, draws = target_vectors(rows)
    m = draws.shape[1]
    to_target = np.linalg.norm(draws - y[:, None], axis=2).mean(axis=1)
    return np.asarray(to_target - _pair_distances(rows.distributions()) / (m * (m - 1) if fair else m**2))


@cached
def _pair_distances(predictive: Predictive) -> Values:
    """Return the sums of the distances between the draws of each row, each pair once, (n,)."""
    from scipy.spatial.distance import pdist

    return np.array([pdist(vectors).sum() for vectors in own_draws(predictive)])


def variogram_scores(rows: Predictions, *, fair: bool, order: float = 0.5) -> Values:
    """Return the variogram scores of several targets with weights 1, (n,), by draws (Scheuerer, Hamill 2015)."""
    y, draws = target_vectors(rows)
    m, t = draws.shape[1:]
    total = np.zeros(len(y))
    for first in range(t):
        for second in range(first + 1, t):
            target = np.abs(y[:, first] - y[:, second]) ** order
            predicted = np.abs(draws[:, :, first] - draws[:, :, second]) ** order
            noise = predicted.var(axis=1, ddof=1) / m if fair else 0.0
            total += 2 * ((target - predicted.mean(axis=1)) ** 2 - noise)
    return total


@cached
def rank_pit(rows: Predictions, pre_rank: str) -> tuple[Values, Values]:
    """Return the limits of the PIT of each target vector among its draws, by a pre-rank, (n,) each.

    The target and the m draws of a row are treated alike, so that the rank of the target is uniform for a right model.

    Source: Gneiting, Stanberry, Grimit, Held, Johnson (2008); Thorarinsdottir, Scheuerer, Heinz (2016); Allen, Ziegel,
    Ginsbourger (2024), "Assessing the calibration of multivariate probabilistic forecasts".
    """
    y, draws = target_vectors(rows)
    n, m, t = draws.shape
    size = max(1, BLOCK_VALUES // ((m + 1) ** 2 * t))
    low, high = np.empty(n), np.empty(n)
    for start in range(0, n, size):
        part = slice(start, start + size)
        values = PRE_RANKS[pre_rank](np.concatenate([y[part, None], draws[part]], axis=1))
        low[part] = np.sum(values[:, 1:] < values[:, :1], axis=1)
        high[part] = np.sum(values[:, 1:] <= values[:, :1], axis=1) + 1
    return low / (m + 1), high / (m + 1)


def average_rank(pooled: Values) -> Values:
    """Return the mean of the ranks of the coordinates, (k, M): low and high values are extreme."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(pooled, axis=1).mean(axis=2))


def band_depth(pooled: Values) -> Values:
    """Return the mean depth of the coordinates, (k, M): 0 at the lowest and highest values, large in the middle."""
    from scipy.stats import rankdata

    ranks = rankdata(pooled, axis=1)
    return np.asarray(((pooled.shape[1] - ranks) * (ranks - 1)).mean(axis=2))


def multivariate_rank(pooled: Values) -> Values:
    """Return the number of vectors that are nowhere larger, (k, M)."""
    return np.asarray(np.sum((pooled[:, None] <= pooled[:, :, None]).all(axis=3), axis=2))


def variogram(pooled: Values) -> Values:
    """Return the mean distance between pairs of standardized coordinates, (k, M): small if they vary together."""
    spread = pooled.std(axis=1, keepdims=True)
    z = (pooled - pooled.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    first, second = np.triu_indices(pooled.shape[2], 1)
    distances = np.abs(z[..., first] - z[..., second]).mean(axis=2)
    return np.asarray(distances.round(DECIMALS))


PRE_RANKS: dict[str, Callable[[Values], Values]] = {
    "average": average_rank,
    "band-depth": band_depth,
    "variogram": variogram,
    "multivariate": multivariate_rank,
}  # Functions of the pooled vectors of rows (k, M, t) that return a number for each vector, (k, M)
