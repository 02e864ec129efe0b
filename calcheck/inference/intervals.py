"""Bootstrap intervals: BCa, percentile and ABC limits, and zeta-scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from calcheck.statistics.groups import Means
from calcheck.typing import Values

if TYPE_CHECKING:
    from calcheck.inference.bootstrap import Statistic

Function = Callable[[Mapping[str, Values]], Values]


STEP = 1e-3  # Step of the numerical derivatives, in standard deviations of a row


@dataclass(frozen=True, eq=False)
class Moments:
    """The first three moments of c columns, in each of b data sets."""

    n: Values  # (b,), the number of rows
    mean: Values  # (c, b)
    covariance: Values  # (c, c, b), the second central moments
    third: Values  # (c, c, c, b), the third central moments

    @classmethod
    def from_values(cls, columns: Values) -> Moments:
        """Return the moments of one data set with columns (c, n)."""
        n = columns.shape[1]
        mean = columns.mean(axis=1)
        away = columns - mean[:, None]
        covariance, third = [], []
        for each in away:
            products = each * away
            covariance.append(products.mean(axis=1))
            third.append(products @ away.T / n)
        return cls(np.array([n]), mean[:, None], np.array(covariance)[..., None], np.array(third)[..., None])

    @classmethod
    def stack(cls, parts: Sequence[Moments]) -> Moments:
        """Concatenate moments along the axis of data sets."""
        return cls(
            *(np.concatenate([getattr(each, field.name) for each in parts], axis=-1) for field in fields(Moments))
        )


def abc_limits(moments: Moments, names: Sequence[str], function: Function, confidence: float) -> tuple[Values, ...]:
    r"""Return the ABC limits of a function of means, and z0 and a, for b data sets of n rows.

    With :math:`T_i` the influence of row i, :math:`\sigma^2 = \sum T_i^2 / n^2`, the acceleration
    :math:`a = \sum T_i^3 / (6 (\sum T_i^2)^{3/2})`, the bias b, and the quadratic coefficient c along the least
    favorable direction :math:`\delta_i = T_i / (n^2 \sigma)`,

    .. math:: z_0 = \Phi^{-1}\{2 \Phi(a) \Phi(c - b / \sigma)\}, \quad w = z_0 + z_\alpha, \quad
              \theta(P_0 + \delta w / (1 - a w)^2).

    The influences are linear in the columns, so their sums follow from the moments of the columns.

    Source: DiCiccio and Efron (1992), Biometrika 79, 231-245; Efron and Tibshirani (1993), Section 22.6.
    """
    from scipy.special import ndtr, ndtri

    n, mean, covariance = moments.n, moments.mean, moments.covariance

    def at(shifts: Values) -> Values:
        return function(dict(zip(names, np.moveaxis(mean + shifts, -2, 0), strict=True)))

    with np.errstate(all="ignore"):
        steps = STEP * np.sqrt(np.diagonal(covariance).T)[:, None] * np.eye(len(names))[:, :, None]  # (c, c, b)
        sizes = np.einsum("kkb->kb", steps)
        gradient = np.divide(at(steps) - at(-steps), 2 * sizes, out=np.zeros_like(sizes), where=sizes > 0)
        along = np.einsum("jb,jkb->kb", gradient, covariance)  # mean of influence times column
        variance = np.einsum("kb,kb->b", gradient, along)
        sigma = np.sqrt(variance / n)
        cubes = np.einsum("ib,jb,kb,ijkb->b", gradient, gradient, gradient, moments.third)
        acceleration = cubes / (6 * np.sqrt(n) * variance**1.5)
        least_favorable = along / (n * sigma)
        small = STEP * np.sqrt(n) * least_favorable
        bend = (at(small) + at(-small) - 2 * at(0 * small)) / (2 * STEP**2 * n * sigma)
        curvature = sum(at(each) + at(-each) - 2 * at(0 * each) for each in _roots(covariance)) / (2 * n * STEP**2)
        correction = ndtri(2 * ndtr(acceleration) * ndtr(bend - curvature / sigma))
        w = correction + ndtri(np.array([[(1 - confidence) / 2], [(1 + confidence) / 2]]))
        reach = np.where(acceleration * w < 1, w / (1 - acceleration * w) ** 2, np.nan)
        low, high = (at(least_favorable * each) for each in reach)
    return low, high, correction, acceleration


def _roots(covariance: Values) -> Values:
    """Return STEP times a root of covariances, (c, c, b): steps along the principal axes."""
    sizes, axes = np.linalg.eigh(np.moveaxis(covariance, -1, 0))
    scaled = axes * np.sqrt(np.maximum(sizes, 0))[:, None]  # (b, c, k)
    return np.asarray(STEP * np.moveaxis(scaled, 0, -1).swapaxes(0, 1))


def rescale(values: Values, names: Sequence[str], function: Function) -> tuple[Values, Function]:
    """Return columns, (c, n), divided by powers of two, and the function of their means: the moments do not overflow.

    Products of floats with powers of two are exact.
    """
    scales = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=1, initial=0.0))[1])
    by_name = dict(zip(names, scales.tolist(), strict=True))
    return values / scales[:, None], lambda means: function({name: by_name[name] * means[name] for name in names})


def abc(statistic: Statistic, confidence: float) -> Bca:
    """Return the ABC interval of a function of column means."""
    averages = statistic.averages
    names = tuple(averages.terms)
    values, function = rescale(averages.columns.T, names, lambda means: statistic.of_means(Means(means, averages.n)))
    found = abc_limits(Moments.from_values(values), names, function, confidence)
    low, high, correction, acceleration = (float(each[0]) for each in found)
    return Bca(low, high, correction, acceleration)


BATCHES = 20  # Batches of replicates for the Monte Carlo error of zeta


@dataclass(frozen=True)
class Bca:
    """A bias-corrected and accelerated (BCa) interval (Efron 1987); the limits are NaN where it is undefined."""

    # low, high: the limits
    low: float
    high: float
    correction: float  # The bias correction z0: the normal quantile of the share of replicates below the estimate
    acceleration: float  # The acceleration a, from the leave-one-out values


def accelerations(leave_one_out: Values) -> Values:
    r"""Return the acceleration a: the rate at which the standard error changes with the estimate.

    .. math:: a = \frac{\sum_i (\bar\theta - \theta_i)^3}{6 (\sum_i (\bar\theta - \theta_i)^2)^{3/2}}

    Shapes: leave_one_out (n, ...).
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

    Shapes: leave_one_out (n,).
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

    Shapes: replicates (b,).
    """
    low, high, correction = bca_limits(replicates[:, None], np.array([estimate]), np.array([acceleration]), confidence)
    return Bca(float(low[0]), float(high[0]), float(correction[0]), acceleration)


def bca_limits(
    replicates: Values, estimates: Values, accelerations: Values, confidence: float
) -> tuple[Values, Values, Values]:
    """Return the BCa limits and bias corrections z0 of k statistics, (k,) each; see :func:`bca`.

    Shapes: replicates (b, k); estimates, accelerations (k,).
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
