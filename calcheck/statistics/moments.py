"""Moments and columns of rows: errors, spreads, z-scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calcheck.core.memory import cached
from calcheck.core.validation import LARGEST, LEAST, UNIT, require, require_moderate
from calcheck.distributions import Predictive
from calcheck.distributions.row_random import RowRandom
from calcheck.distributions.samples import Samples
from calcheck.errors import DataError, ExtremeValuesError, Message
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
        msg = "one draw per row does not show how the targets depend on each other: give at least 2"
        raise DataError(msg)
    return rows.targets(), draws


def energy_scores(rows: Predictions, *, fair: bool) -> Values:
    """Return the energy scores of several targets, (n,), by draws.

    Source: Gneiting, Raftery (2007), Eq. 22; fair version of Ferro (2014).
    """
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
    """Return the variogram scores of several targets with weights 1, (n,), by draws; see :func:`energy_scores`.

    Source: Scheuerer, Hamill (2015), "Variogram-based proper scoring rules for probabilistic forecasts of multivariate
    quantities".
    """
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
}
"""Functions of the pooled vectors of rows (k, M, t) that return a number for each vector, (k, M)."""


MEAN_FROM = 3  # Squared z-scores from at most this many draws have no mean
FARTHEST = 1e50  # Maximum z-score in size: sixth powers, of which intervals need sums, do not overflow


def targets(rows: Predictions) -> Values:
    """Return the targets, (n,), unit of y."""
    y = rows.targets()
    if y.size != len(rows):
        raise DataError(_several(y.size // len(rows)))
    return y.reshape(len(rows))


def _several(count: int) -> str:
    return f"one target per row is needed, and there are {count}"


@cached
def means(predictive: Predictive) -> Values:
    """Return the predicted means, (n,), unit of y."""
    return predictive.mean()


@cached
def medians(predictive: Predictive) -> Values:
    """Return the predicted medians, (n,), unit of y."""
    return predictive.median()


@cached
def errors(rows: Predictions) -> Values:
    """Return y - mean, (n,), unit of y."""
    error = targets(rows) - means(rows.distributions())
    require_moderate("y - mean", error)
    return error


@cached
def uncertainties(rows: Predictions) -> Values:
    """Return the standard deviations that errors are compared with, (n,), unit of y: those predicted.

    Where all m draws of a row are equal, it is that of the draws and the target together: an error of sqrt(m + 1)
    standard deviations, or 0 if the target is equal, too. The mean squared z-score of such rows is 1 + 1 / (m + 1) if
    target and draws are exchangeable.
    """
    predictive = rows.distributions()
    std = spreads(predictive)
    if std.all() or predictive.n_draws is None:
        return std
    return np.where(std > 0, std, np.abs(errors(rows)) / np.sqrt(predictive.n_draws + 1))


@cached
def spreads(predictive: Predictive) -> Values:
    """Return the predicted standard deviations, (n,), unit of y; 0 only where all draws of a row are equal."""
    if predictive.targets > 1:
        raise DataError(_several(predictive.targets))
    std = predictive.std()
    equal = std == 0 if predictive.n_draws is not None else False
    require("std", (std > 0) | equal, "must be positive", "A z-score needs a positive standard deviation.")
    square = ((std >= LEAST) & (std <= LARGEST)) | equal
    require("std", square, f"must lie between {LEAST:.0e} and {LARGEST:.0e} to be squared", UNIT, ExtremeValuesError)
    return std


def equal_draws_warning(rows: Predictions) -> tuple[Message, ...]:
    """Return the warning about rows whose draws are all equal."""
    predictive = rows.distributions()
    if not isinstance(predictive, Samples) or predictive.targets > 1 or not (equal := predictive.are_equal()).any():
        return ()
    differ, z = np.count_nonzero(errors(rows)[equal]), np.sqrt(predictive.n_draws + 1)
    text = (
        f"all draws are equal in {equal.sum():,} of {len(rows):,} rows. In {differ:,} of these, the target differs: its"
        f" standard deviation is that of draws and target together, and its z-score ±{z:.3g}; in the others, z is 0"
    )
    return (Message("equal-draws", text),)


@cached
def z_scores(rows: Predictions) -> Values:
    """Return (y - mean) / std, (n,), dimensionless; 0 where neither the draws nor the target differ."""
    error, std = errors(rows), uncertainties(rows)
    z: Values = np.divide(error, std, out=np.zeros_like(error), where=std > 0)
    rule = f"must be at most {FARTHEST:.0e} in size to be averaged"
    require("(y - mean) / std", np.abs(z) <= FARTHEST, rule, UNIT, ExtremeValuesError)
    return z


def standardized_errors(rows: Predictions) -> Values:
    """Return errors whose mean is 0 for a right model, in predicted standard deviations, (n,).

    The standard deviation of draws is that of the draws and the target together: their m + 1 errors sum to 0.
    """
    m = rows.distributions().n_draws
    if m is None:
        return z_scores(rows)
    error = errors(rows)
    squares = spreads(rows.distributions()) ** 2 * (m - 1) + error**2 * m / (m + 1)
    return np.asarray(np.divide(error, np.sqrt(squares / m), out=np.zeros_like(error), where=squares > 0))


def reference_rce(rows: Predictions) -> float:
    """Return the relative calibration error of a perfect model: 0, or 1 - sqrt(1 + 1/m) with m draws per row.

    The error y - mean of m draws has (1 + 1/m) times the variance of the distribution. The sample variance of the
    draws (divisor m - 1) is an unbiased estimate of the variance of the distribution.
    """
    draws = rows.distributions().n_draws
    return 0.0 if draws is None else 1 - float(np.sqrt(1 + 1 / draws))


def missing_moments_reason(rows: Predictions) -> str:
    """Return why means and standard deviations are not exactly those of the model, or ""."""
    caution = rows.distributions().caveat
    return "means and standard deviations are interpolated, not the model's" if caution else ""


def missing_reference_reason(rows: Predictions) -> str:
    """Return why the mean squared z-score of a perfect model is not known to be 1, or ""."""
    if moments := missing_moments_reason(rows):
        return moments
    draws = rows.distributions().n_draws
    if draws is None:
        return ""
    score = f"{(1 + 1 / draws) * (draws - 1) / (draws - 3):.3g} on average" if draws > MEAN_FROM else "without a mean"
    return f"z-scores from {draws} draws per row are too large: ZMS is {score} for a perfect normal ensemble"


def skewness(values: Values) -> float:
    r"""Return the robust skewness of Groeneveld and Meeden (1984), in [-1, 1]; 0 if all values are equal.

    .. math:: \beta_{GM} = \frac{\bar x - \tilde x}{\mathrm{mean} |x - \tilde x|}

    with the mean :math:`\bar x` and the median :math:`\tilde x`.
    """
    away = values - median(values)
    mean = float(away.mean())
    width = float(np.abs(away, out=away).mean())
    return mean / width if width > 0 else 0.0


def median(values: Values) -> float:
    """Return the median of finite values; three times faster than :func:`numpy.median`, which selects four elements."""
    half = len(values) // 2
    parted = np.partition(values, half)
    return float(parted[half] if len(values) % 2 else (parted[:half].max() + parted[half]) / 2)


@cached
def central_interval(predictive: Predictive, level: float) -> tuple[Values, Values]:
    """Return the limits of the central interval of each distribution at a level, (n,) each, unit of y."""
    return predictive.central_interval(level)


@cached
def interval_widths(predictive: Predictive, level: float) -> Values:
    """Return the widths of the intervals at a level, (n,), unit of y."""

    def width(part: Predictive, _: slice) -> Values:
        return part.interval_width(level)

    return predictive.map_batches(width)


@cached
def covered(rows: Predictions, level: float, *, strictly: bool = False) -> Values:
    """Return whether each target is inside its interval at a level, (n,), 0 or 1; strictly, limits do not count."""
    y, below = targets(rows), np.less if strictly else np.less_equal

    def inside(part: Predictive, rows: slice) -> Values:
        low, high = central_interval(part, level)
        return np.asarray(below(low, y[rows]) & below(y[rows], high), dtype=np.float64)

    return rows.distributions().map_batches(inside)


def interval_mass(rows: Predictions, level: float) -> Values:
    """Return the predicted probability of the central interval of each row, (n,)."""
    return _interval_mass(rows.distributions(), level)


@cached
def _interval_mass(predictive: Predictive, level: float) -> Values:
    return predictive.central_mass(level)


def heavy_tails(columns: dict[str, tuple[Values, float]]) -> tuple[dict[str, float], tuple[Message, ...]]:
    """Return the skewness of columns, with warnings about heavy tails."""
    found = {name: skewness(values) for name, (values, _) in columns.items()}
    warnings = tuple(
        Message(
            "heavy-tail",
            f"heavy tail: the skewness of {name} is above {threshold}, so few rows dominate the value,"
            " and its interval may be too narrow",
        )
        for name, (_, threshold) in columns.items()
        if found[name] > threshold
    )
    return found, warnings
