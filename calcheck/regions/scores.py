"""Scores of rows that show bias and dispersion, from the PIT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.statistics.pit import mean_component, pit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]

BIAS, DISPERSION = 0, 1
SCORES = ("bias", "dispersion")
LIMIT = 0.995  # PIT values beyond this level, and below 1 minus it, have the score of the level
MEAN, DEVIATION = -0.01026466524, 1.14976952245  # Of the logistic score of a uniform PIT, with this limit
NARROW = 1e-6  # Narrower jumps are treated as points: their differences would be rounding errors
WIDEST = 1e6  # Largest factor of deviations


def row_scores(rows: Predictions) -> Values:
    """Return the scores of bias and dispersion of each row, (n, 2).

    The first is positive if targets are above the predictions, the second if distributions are too narrow. For a
    perfect model both have mean 0, and variance 1 for continuous distributions. Where a distribution jumps, they are
    means over the jump, which keep the mean of 0.
    """
    low, high = pit(rows)
    return np.stack([mean_component(low, high, 1), dispersion(low, high)], axis=1)


def dispersion(low: Values, high: Values) -> Values:
    r"""Return the dispersion score of each row, (n,): that of the scale of a logistic distribution, bounded.

    .. math:: (2 u - 1) \log \frac u {1 - u} - 1

    for PIT values u between 0.005 and 0.995, standardized. It is nearly optimal for normal distributions that are too
    narrow and for those that are too wide, and for heavy tails, while single outliers do not matter.

    Parameters
    ----------
    low, high : (n,)
        Limits of the PIT: the score is the mean between them.

    References
    ----------
    Hájek, Šidák, Sen (1999), "Theory of rank tests", chapter 2.
    """
    middle, jump = (low + high) / 2, high - low
    wide = jump > NARROW
    means = np.divide(_integral(high) - _integral(low), jump, out=np.zeros_like(jump), where=wide)
    return np.asarray((np.where(wide, means, _logistic(middle)) - MEAN) / DEVIATION)


def _logistic(u: Values) -> Values:
    inside = np.clip(u, 1 - LIMIT, LIMIT)
    return np.asarray((2 * inside - 1) * _logit(inside) - 1)


def _integral(u: Values) -> Values:
    """Return the integral of the logistic score from 1/2 to u, (n,)."""
    inside = np.clip(u, 1 - LIMIT, LIMIT)
    return np.asarray(inside * (inside - 1) * _logit(inside) + (u - inside) * _logistic(u))


def _logit(u: Values) -> Values:
    return np.asarray(np.log(u) - np.log1p(-u))


def normal_dispersion(factor: float) -> float:
    """Return the mean dispersion score of normal distributions whose deviations are too small by a factor."""
    from scipy.special import ndtr, ndtri

    z = ndtri((np.arange(1, 2000) - 0.5) / 1999)
    u = ndtr(factor * z)
    return float(dispersion(u, u).mean())


def factor_of_dispersion(score: float) -> float | None:
    """Return the factor by which the deviations of normal distributions are too small; None above all factors."""
    from scipy.optimize import brentq

    if not normal_dispersion(1 / WIDEST) < score < normal_dispersion(WIDEST):
        return None
    return float(np.exp(brentq(lambda log: normal_dispersion(np.exp(log)) - score, -np.log(WIDEST), np.log(WIDEST))))
