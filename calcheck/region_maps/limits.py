"""Limits of what a right model shows in a group of rows, for its number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr, bdtrik, ndtri

from calcheck.region_maps.sums import BINS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Counts = NDArray[np.intp]
    Limits = tuple[Values, Values]


def coverage_limits(n: Counts, expected: Values, confidence: float) -> Limits:
    """Return the limits of the coverage of a right model, (g,) each, in [0, 1]: binomial quantiles.

    Parameters
    ----------
    n : (g,)
        Number of rows, at least 1.
    expected : (g,)
        Expected number of targets inside their intervals.
    confidence : float
        Probability between the limits, at least.
    """
    low, high = _binomial_limits(n, np.minimum(expected / n, 1.0), 1 - confidence)
    return low / n, high / n


def mean_square_limits(n: Counts, expected: Values, variance: Values, confidence: float) -> Limits:
    """Return the limits of the mean squared z-score of a right model, (g,) each: gamma quantiles with its moments.

    They are NaN if the variance is not known, or the expected sum is 0.

    Parameters
    ----------
    n : (g,)
        Number of rows, at least 1.
    expected, variance : (g,)
        Mean and variance of the sum of squared z-scores.
    confidence : float
        Probability between the limits, for normal distributions.

    References
    ----------
    Wilson, Hilferty (1931), "The distribution of chi-square".
    """
    mean, known = expected / n, np.where(expected > 0, expected, np.nan)
    spread = variance / (9 * known**2)  # 2 / (9 dof) of a chi-square distribution with these moments
    step = ndtri((1 + confidence) / 2) * np.sqrt(spread)
    low, high = (mean * np.maximum(1 - spread + sign * step, 0) ** 3 for sign in (-1, 1))
    return low, high


def histogram_limits(n: Counts, variance: Values, confidence: float) -> Limits:
    """Return simultaneous limits of the counts of the PIT histogram of a right model, (g, 20) each.

    They are quantiles of multiples of binomial numbers with the mean and the variance of the counts, at a level divided
    by the number of bins. For continuous distributions these are the counts themselves; of draws, which divide a row
    among bins, they are the shares of the ranks.

    Parameters
    ----------
    n : (g,)
        Number of rows, at least 1.
    variance : (g, 20)
        Variance of the counts, whose mean is n / 20.
    confidence : float
        Probability that all counts are between their limits, about.
    """
    size = BINS * variance / n[:, None] + 1 / BINS  # Share of a row that is in a bin, if any of it is
    low, high = _binomial_limits(n[:, None], 1 / (BINS * size), (1 - confidence) / BINS)
    return low * size, high * size


def _binomial_limits(n: Counts, share: Values, excess: float) -> Limits:
    """Return the quantiles that leave half of an excess probability on each side."""
    low, high = (binomial_quantiles(level, n, share) for level in (excess / 2, 1 - excess / 2))
    return low, high


def binomial_quantiles(level: float, n: Counts, share: Values) -> Values:
    """Return the smallest numbers that binomial numbers exceed with a probability of at most 1 - level.

    The import of :mod:`scipy.stats`, which has these quantiles, takes longer than a page.
    """
    above = np.where(share > 0, np.ceil(bdtrik(level, n, share)), 0.0)
    below = np.maximum(above - 1, 0)
    return np.asarray(np.where(bdtr(below, n, share) >= level, below, above))
