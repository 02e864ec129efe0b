"""Targets in units of their prediction intervals."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from calcheck.core.memory import cached
from calcheck.distributions import Predictive
from calcheck.distributions.row_random import RowRandom
from calcheck.distributions.samples import Samples
from calcheck.errors import DataError
from calcheck.predictions import Predictions, row_keys
from calcheck.statistics.moments import central_interval, medians, targets, z_scores
from calcheck.statistics.pit import NEAREST, randomized_pit
from calcheck.typing import Values

SEED = 0x31D7  # Of the random numbers between the limits of the PIT of counts
ROUNDING = 1e-9  # Relative tolerance of shares of rows
TINY = 1e-18  # Share of the squared distances from a mean below which all other values are equal
ROLES = 10  # Most draws of a row that play the target


def normal_score(level: float) -> float:
    """Return the half width of the central interval of the standard normal distribution."""
    return float(ndtri((1 + level) / 2))


def uniforms(rows: Predictions) -> Values | None:
    """Return a random number for each row, (n,), that its own values seed; None where no distribution has atoms."""
    return RowRandom(row_keys(rows, SEED)).random(len(rows)) if rows.distributions().is_discrete else None


def width_ratios(rows: Predictions, level: float, uniform: Values | None) -> Values:
    """Return the factor by which the interval of each row would have to be wider to end at its target, (n,), >= 0.

    Intervals are stretched about the predicted median, or the middle of a stated interval. For counts, and with draws,
    it is the size of the normal score of the randomized PIT, or of the z-score, relative to that of the level.
    """
    predictive = rows.distributions()
    if uniform is not None:
        u = np.clip(randomized_pit(rows, uniform), NEAREST, 1 - NEAREST)
        return np.asarray(np.abs(ndtri(u)) / normal_score(level))
    if predictive.n_draws is not None:
        return np.asarray(np.abs(z_scores(rows)) / normal_score(level))
    y = targets(rows)

    def ratios(part: Predictive, where: slice) -> Values:
        return _ratios(y[where], _middles(part, level), *central_interval(part, level))

    return predictive.map_batches(ratios)


@cached
def _middles(predictive: Predictive, level: float) -> Values:
    if predictive.interval_levels is None:
        return medians(predictive)
    low, high = central_interval(predictive, level)
    with np.errstate(invalid="ignore"):
        return (low + high) / 2


def _ratios(y: Values, middle: Values, low: Values, high: Values) -> Values:
    """Return the distance from the middle, relative to that of the limit on the side of the target.

    It is 1 for a target at a limit, also of an interval without width or with an infinite other limit.
    """
    above = y > middle
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(above, y - middle, middle - y) / np.where(above, high - middle, middle - low)
    at_limit = (y == low) | (y == high)
    open_ = np.isnan(found) | np.isinf(middle)
    if open_.any():
        inside = (low <= y) & (y <= high)
        found[open_] = np.where(inside, 0.0, np.inf)[open_]
    found[at_limit] = 1.0
    return np.asarray(found)


def role_ratios(rows: Predictions, level: float) -> list[Values]:
    """Return the ratios of :func:`width_ratios` if a draw plays the target, and the target a draw, (n,) for each draw.

    Of many draws, the first ones play this role.
    """
    y, m = targets(rows), rows.distributions().n_draws or 0
    found = [np.empty(len(y)) for _ in range(min(m, ROLES))]
    for where, part in rows.distributions().batches():
        if not isinstance(part, Samples):
            msg = "only draws can play the target"
            raise DataError(msg)
        center = (part.draws.sum(axis=1) + y[where]) / (m + 1)
        squares = ((part.draws - center[:, None]) ** 2).sum(axis=1) + (y[where] - center) ** 2
        for role, each in enumerate(found):
            each[where] = _role_ratio(part.draws[:, role] - center, squares, m) / normal_score(level)
    return found


def _role_ratio(away: Values, squares: Values, m: int) -> Values:
    """Return the z-score of one of m + 1 values among the others, given its distance from their common mean."""
    own = away**2 * (1 + 1 / m)
    rest = squares - own
    equal = rest <= TINY * squares
    size = np.sqrt(np.divide((m - 1) * (1 + 1 / m) * own, rest, out=np.zeros_like(own), where=~equal))
    return np.where(equal & (squares > 0), np.sqrt(m + 1), size)


def factor_of_draws(ratio: Values, expected: Values | float, draws: Values | float) -> Values:
    """Return the factor by which m draws would have to be spread, given their ratio and that of draws in its role.

    The second is contaminated by targets among the other draws: the mean over all m + 1 roles replaces it. The squared
    error of the mean of m draws is k^2 + 1/m times their variance if targets are spread k times as much.
    """
    relative = np.asarray(ratio / expected)
    with np.errstate(invalid="ignore"):
        relative = np.where(np.isinf(relative), relative, relative * (draws + 1) / (relative + draws))
    return np.asarray(np.sqrt(np.maximum(relative**2 * (1 + 1 / draws) - 1 / draws, 0)))


def smallest_rank(n: int, level: float) -> int:
    """Return the rank of the quantile of n values at a level, 1 to n: the smallest integer of at least n level."""
    return max(1, int(np.ceil(n * level * (1 - ROUNDING))))


def quantile_of(values: Values, level: float) -> float:
    """Return the quantile at a level, (n,), an order statistic, without sorting."""
    rank = smallest_rank(len(values), level) - 1
    return float(np.partition(values, rank)[rank])
