"""Bootstrap confidence intervals (BCa with its acceleration, percentile), and zeta scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

BATCHES = 20  # Batches of replicates for the Monte Carlo error of zeta


@dataclass(frozen=True)
class Bca:
    """A bias-corrected and accelerated (BCa) interval (Efron 1987); the limits are NaN where it is undefined.

    Parameters
    ----------
    low, high : float
        The limits.
    correction : float
        The bias correction z0: the normal quantile of the share of replicates below the estimate.
    acceleration : float
        The acceleration a, from the leave-one-out values.
    """

    low: float
    high: float
    correction: float
    acceleration: float


def accelerations(leave_one_out: Values) -> Values:
    r"""Return the acceleration a: the rate at which the standard error changes with the estimate.

    .. math:: a = \frac{\sum_i (\bar\theta - \theta_i)^3}{6 (\sum_i (\bar\theta - \theta_i)^2)^{3/2}}

    Parameters
    ----------
    leave_one_out : (n, ...)
        Leave-one-out estimates.

    Returns
    -------
    (...)
        0 where all leave-one-out estimates are equal.
    """
    away = leave_one_out.mean(axis=0) - leave_one_out
    largest = np.abs(away).max(axis=0)
    away = away / np.where(largest == 0, 1, largest)  # The cube neither overflows nor underflows
    cubes, squares = np.sum(away**3, axis=0), np.sum(away**2, axis=0)
    return np.asarray(cubes / (6 * np.where(largest == 0, 1, squares) ** 1.5))


def effective_rows(leave_one_out: Values) -> float:
    r"""Return the effective number of rows that determine the variance of an estimate.

    .. math:: \frac{(\sum_i d_i^2)^2}{\sum_i d_i^4}, \qquad d_i = \bar\theta - \theta_i

    This is Kish's effective sample size with squared influences as weights.

    Parameters
    ----------
    leave_one_out : (n,)
        Leave-one-out estimates.

    Returns
    -------
    float
        Between 1 and n; n where all leave-one-out estimates are equal.
    """
    squared = (leave_one_out.mean() - leave_one_out) ** 2
    largest = squared.max()
    if not largest > 0:
        return float(len(squared))
    squared = squared / largest
    return float(squared.sum() ** 2 / np.sum(squared**2))


def acceleration(leave_one_out: Values) -> float:
    """Return the acceleration of one estimate from its leave-one-out values, (n,); see :func:`accelerations`."""
    return float(accelerations(leave_one_out))


def clopper_pearson(successes: int, count: int, confidence: float) -> tuple[float, float]:
    """Return the Clopper-Pearson limits of a probability: exact, and found to all digits.

    Examples
    --------
    >>> clopper_pearson(0, 1, 0.9)
    (0.0, 0.95)
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2  # scipy's binomtest finds the limits to 1e-9 only
    low = float(betaincinv(successes, count - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, count - successes, 1 - tail)) if successes < count else 1.0
    return low, high


def bca(replicates: Values, estimate: float, acceleration: float, confidence: float) -> Bca:
    """Return the BCa interval: quantiles of the replicates at Phi(z0 + (z0 ± z) / (1 - a (z0 ± z))).

    Parameters
    ----------
    replicates : (b,)
        The statistic of each resample.
    estimate : float
        The statistic of the original rows.
    acceleration : float
        The acceleration, from :func:`acceleration`.
    confidence : float
        The nominal coverage of the interval.
    """
    low, high, correction = bca_limits(replicates[:, None], np.array([estimate]), np.array([acceleration]), confidence)
    return Bca(float(low[0]), float(high[0]), float(correction[0]), acceleration)


def bca_limits(
    replicates: Values, estimates: Values, accelerations: Values, confidence: float
) -> tuple[Values, Values, Values]:
    """Return the BCa limits and bias corrections z0 of k statistics, (k,) each; see :func:`bca`.

    Parameters
    ----------
    replicates : (b, k)
        The replicates of each statistic.
    estimates, accelerations : (k,)
        The statistics of the original rows, and their accelerations.
    confidence : float
        The nominal coverage of the intervals.
    """
    from scipy.special import ndtr, ndtri

    below = np.mean(replicates < estimates, axis=0) + np.mean(replicates == estimates, axis=0) / 2
    corrections = ndtri(below)
    z = float(ndtri((1 + confidence) / 2))
    with np.errstate(invalid="ignore"):
        shifted = corrections + np.array([[-z], [z]])
        shrunk = 1 - accelerations * shifted
        levels = ndtr(corrections + shifted / shrunk)
    levels[:, ~(np.isfinite(corrections) & (shrunk > 0).all(axis=0))] = np.nan
    low, high = _quantiles(np.sort(replicates, axis=0), levels)
    return low, high, corrections


def _quantiles(ordered: Values, levels: Values) -> Values:
    """Return the quantiles of sorted columns (b, k) at levels (l, k) of each column; NaN where a level is NaN."""
    place = np.nan_to_num(levels) * (len(ordered) - 1)
    before = np.clip(np.floor(place).astype(np.intp), 0, len(ordered) - 1)
    after = np.minimum(before + 1, len(ordered) - 1)
    first, second = (np.take_along_axis(ordered, where, axis=0) for where in (before, after))
    return np.where(np.isnan(levels), np.nan, first + (place - before) * (second - first))


def percentile(replicates: Values, confidence: float) -> tuple[float, float]:
    """Return the percentile interval: the central quantiles of the replicates at a confidence."""
    low, high = np.quantile(replicates, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def zeta(estimate: float, reference: float, low: float, high: float) -> float:
    """Return the zeta score: (estimate - reference) over the half-width of the interval on that side [ZMS Eq. 14].

    It lies in [-1, 1] if the interval contains the reference. It is NaN if the interval does not contain the estimate.
    """
    reach = high - estimate if estimate <= reference else estimate - low
    return (estimate - reference) / reach if reach > 0 else float("nan")


def zeta_error(replicates: Values, estimate: float, reference: float, acceleration: float, confidence: float) -> float:
    """Return the Monte Carlo standard error of :func:`zeta` with BCa intervals, by the method of batch means.

    Each batch of replicates has its own bias correction z0 and its own limits.
    """
    size = len(replicates) // BATCHES
    found = []
    for batch in replicates[: size * BATCHES].reshape(BATCHES, size):
        limits = bca(batch, estimate, acceleration, confidence)
        found.append(zeta(estimate, reference, limits.low, limits.high))
    known = np.array(found)[np.isfinite(found)]  # All replicates of a small batch may lie on one side of the estimate
    return float(np.std(known, ddof=1) / np.sqrt(BATCHES)) if len(known) > BATCHES / 2 else float("nan")
