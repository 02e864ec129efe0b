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


def acceleration(leave_one_out: Values) -> float:
    r"""Return a, how the spread of the estimate changes with its value.

    .. math:: a = \frac{\sum_i (\bar\theta - \theta_i)^3}{6 (\sum_i (\bar\theta - \theta_i)^2)^{3/2}}

    Parameters
    ----------
    leave_one_out : (n,)
        The estimate without each row in turn.
    """
    away = leave_one_out.mean() - leave_one_out
    largest = np.abs(away).max()
    if not largest > 0:
        return 0.0 if largest == 0 else float("nan")
    away = away / largest  # its cube neither overflows nor vanishes
    return float(np.sum(away**3) / (6 * np.sum(away**2) ** 1.5))


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
    from scipy.special import ndtr, ndtri

    below = np.mean(replicates < estimate) + np.mean(replicates == estimate) / 2
    correction = float(ndtri(below))
    if not np.isfinite(correction):
        return Bca(np.nan, np.nan, correction, acceleration)
    z = float(ndtri((1 + confidence) / 2))
    shifted = correction + np.array([-z, z])
    shrunk = 1 - acceleration * shifted
    if not np.all(shrunk > 0):
        return Bca(np.nan, np.nan, correction, acceleration)
    low, high = np.quantile(replicates, ndtr(correction + shifted / shrunk))
    return Bca(float(low), float(high), correction, acceleration)


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
