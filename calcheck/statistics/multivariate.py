"""Scores and ranks of several targets: energy score, variogram score, PIT of pre-ranks."""

from collections.abc import Callable

import numpy as np

from calcheck.core import sc
from calcheck.core.cache import cached
from calcheck.distributions import Predictive
from calcheck.distributions.joint import DEPENDENT, JointGaussian
from calcheck.distributions.row_random import RowRandom, mix, occurrences
from calcheck.distributions.samples import Samples
from calcheck.errors import DataError
from calcheck.predictions import Predictions
from calcheck.typing import Values

OWN_DRAWS = 50  # Draws per row of distributions that are not given by draws
SEED = 0x5EC7  # Of these draws, which depend on the distributions only, so that replicates have the same ones
BLOCK_VALUES = 1 << 22  # Numbers per block of rows
DECIMALS = 10  # Of distances of standardized coordinates: equal vectors have equal ones
MOST = 0.99  # Largest predicted correlation of draws


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


def rank_scores(rows: Predictions) -> Values:
    """Return the normal scores of the ranks of the PIT of each target, (n, t), with mean square 1.

    They have the right margins whatever is predicted, so that only the dependence between the targets is left.
    """
    return _rank_scores(rows.distributions().load(), rows.targets())


def _rank_scores(known: Predictive, y: Values) -> Values:
    normal = (known.independent if isinstance(known, JointGaussian) else known).normal()
    if normal is None:
        left, right = known.cdf_limits(y)
        values = (left + right) / 2
    else:
        values = (y - normal[0]) / normal[1]
    return np.stack([_normal_scores(each) for each in values.T], axis=1)


def _normal_scores(values: Values) -> Values:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    scores = sc.ndtri((np.cumsum(counts) - counts / 2)[place] / len(values))
    return np.asarray(scores / max(float(np.sqrt(np.mean(scores**2))), np.finfo(float).tiny))


def predicted_correlations(rows: Predictions) -> Values:
    """Return the predicted correlations of the pairs j < k of targets, (n, pairs) or (1, pairs) for all rows.

    Those of draws are rank correlations of the draws and the target together, which are the same if these are
    exchanged, shrunk towards their mean by the variance that so few values have (James-Stein). Those of normal copulas
    with atoms are the means of all rows, by draws: scores at an atom vary less, and others more.
    """
    known = rows.distributions().load()
    first, second = np.triu_indices(known.targets, 1)
    if isinstance(known, DEPENDENT) and known.has_atoms:
        keys = known.hashes(SEED)
        drawn = known.sample(RowRandom(keys ^ mix(occurrences(keys))), OWN_DRAWS)  # equal rows have draws of their own
        scores = np.concatenate([_rank_scores(known, y) for y in np.moveaxis(drawn, 1, 0)])
        return np.asarray(np.mean(scores[:, first] * scores[:, second], axis=0, keepdims=True))
    if isinstance(known, DEPENDENT):
        unit = known.cholesky / np.linalg.norm(known.cholesky, axis=2, keepdims=True)
        return np.asarray(np.sum(unit[:, first] * unit[:, second], axis=2))
    if not isinstance(known, Samples):
        return np.zeros((1, len(first)))
    n, m, t = known.draws.shape
    found, size = np.empty((n, len(first))), max(1, BLOCK_VALUES // ((m + 1) * t))
    for start in range(0, n, size):
        part = slice(start, start + size)
        scores = _scores_in_rows(np.concatenate([rows.targets()[part, None], known.draws[part]], axis=1))
        for pair, (one, other) in enumerate(zip(first, second, strict=True)):
            found[part, pair] = np.mean(scores[:, :, one] * scores[:, :, other], axis=1)
    mean = np.clip(found.mean(axis=0), -MOST, MOST)
    noise = (1 - mean**2) ** 2 / m
    kept = np.maximum(1 - noise / np.maximum(found.var(axis=0), noise), 0)
    return np.asarray(np.clip(mean + kept * (found - mean), -MOST, MOST))


def _scores_in_rows(pooled: Values) -> Values:
    """Return normal scores of ranks among the M values of each row and target, (k, M, t), with mean square 1."""
    from scipy.stats import rankdata

    scores = sc.ndtri((rankdata(pooled, axis=1) - 0.5) / pooled.shape[1])
    square = np.mean(scores**2, axis=1, keepdims=True)
    return np.asarray(scores / np.sqrt(np.where(square > 0, square, 1.0)))
