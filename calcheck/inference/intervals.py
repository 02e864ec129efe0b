"""Intervals from replicates, and how far a value lies from its reference in units of its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

BATCHES = 20  # of replicates, from which the Monte Carlo error of zeta is taken


@dataclass(frozen=True)
class Bca:
    """A bias-corrected and accelerated interval (Efron 1987); limits are NaN where there is none.

    Parameters
    ----------
    low, high : float
        Its limits.
    correction : float
        z0, the normal quantile of the share of replicates below the estimate.
    acceleration : float
        a, from the leave-one-out values.
    """

    low: float
    high: float
    correction: float
    acceleration: float


def accelerations(leave_one_out: Values) -> Values:
    r"""Return a, how the spread of the estimate changes with its value.

    .. math:: a = \frac{\sum_i (\bar\theta - \theta_i)^3}{6 (\sum_i (\bar\theta - \theta_i)^2)^{3/2}}

    Parameters
    ----------
    leave_one_out : (n, ...)
        Estimates without each row in turn.

    Returns
    -------
    (...)
        0 where no row matters.
    """
    away = leave_one_out.mean(axis=0) - leave_one_out
    largest = np.abs(away).max(axis=0)
    away = away / np.where(largest == 0, 1, largest)  # its cube neither overflows nor vanishes
    cubes, squares = np.sum(away**3, axis=0), np.sum(away**2, axis=0)
    return np.asarray(cubes / (6 * np.where(largest == 0, 1, squares) ** 1.5))


def effective_rows(leave_one_out: Values) -> float:
    r"""Return how many rows the spread of an estimate rests on: all of them only where all weigh alike.

    .. math:: \frac{(\sum_i d_i^2)^2}{\sum_i d_i^4}, \qquad d_i = \bar\theta - \theta_i

    as Kish's effective sample size, of squared influences.

    Parameters
    ----------
    leave_one_out : (n,)
        Estimates without each row in turn.

    Returns
    -------
    float
        Between 1 and n; n where no row matters.
    """
    squared = (leave_one_out.mean() - leave_one_out) ** 2
    largest = squared.max()
    if not largest > 0:
        return float(len(squared))
    squared = squared / largest
    return float(squared.sum() ** 2 / np.sum(squared**2))


def acceleration(leave_one_out: Values) -> float:
    """Return a as :func:`accelerations` does, of one estimate, (n,)."""
    return float(accelerations(leave_one_out))


def bca(replicates: Values, estimate: float, acceleration: float, confidence: float) -> Bca:
    """Return the BCa interval: quantiles of the replicates at Phi(z0 + (z0 ± z) / (1 - a (z0 ± z))).

    Parameters
    ----------
    replicates : (b,)
        The statistic of each resample.
    estimate : float
        The statistic of the rows.
    acceleration : float
        As :func:`acceleration` returns it.
    confidence : float
        How often the interval should hold the truth.
    """
    low, high, correction = bca_limits(replicates[:, None], np.array([estimate]), np.array([acceleration]), confidence)
    return Bca(float(low[0]), float(high[0]), float(correction[0]), acceleration)


def bca_limits(
    replicates: Values, estimates: Values, accelerations: Values, confidence: float
) -> tuple[Values, Values, Values]:
    """Return low and high limits and corrections z0, (k,) each, as :func:`bca` does, of k statistics.

    Parameters
    ----------
    replicates : (b, k)
        Of each statistic.
    estimates, accelerations : (k,)
        The statistics of the rows, and a of each.
    confidence : float
        How often an interval should hold the truth.
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
    """Return quantiles of sorted columns, (b, k), at levels of their own, (l, k), NaN at NaN."""
    place = np.nan_to_num(levels) * (len(ordered) - 1)
    before = np.clip(np.floor(place).astype(np.intp), 0, len(ordered) - 1)
    after = np.minimum(before + 1, len(ordered) - 1)
    first, second = (np.take_along_axis(ordered, where, axis=0) for where in (before, after))
    return np.where(np.isnan(levels), np.nan, first + (place - before) * (second - first))


def percentile(replicates: Values, confidence: float) -> tuple[float, float]:
    """Return the quantiles of the replicates between which the middle ones lie."""
    low, high = np.quantile(replicates, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def zeta(estimate: float, reference: float, low: float, high: float) -> float:
    """Return how far an estimate lies from its reference, in units of the interval on that side [ZMS Eq. 14].

    Between -1 and 1 where the interval holds the reference; NaN where the interval does not hold its estimate.
    """
    reach = high - estimate if estimate <= reference else estimate - low
    return (estimate - reference) / reach if reach > 0 else float("nan")


def zeta_error(replicates: Values, estimate: float, reference: float, acceleration: float, confidence: float) -> float:
    """Return the Monte Carlo standard error of :func:`zeta` by the BCa interval, from batches of the replicates.

    Each batch has its own correction z0 and its own limits.
    """
    size = len(replicates) // BATCHES
    found = []
    for batch in replicates[: size * BATCHES].reshape(BATCHES, size):
        limits = bca(batch, estimate, acceleration, confidence)
        found.append(zeta(estimate, reference, limits.low, limits.high))
    known = np.array(found)[np.isfinite(found)]  # a small batch may lie on one side of the estimate
    return float(np.std(known, ddof=1) / np.sqrt(BATCHES)) if len(known) > BATCHES / 2 else float("nan")
