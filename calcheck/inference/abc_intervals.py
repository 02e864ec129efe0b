"""Approximate bootstrap confidence (ABC) intervals: analytic approximations of BCa intervals."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from calcheck.inference.intervals import Bca
from calcheck.statistics.groups import Means

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from calcheck.inference.bootstrap import Statistic

    Values = NDArray[np.float64]
    Function = Callable[[Mapping[str, Values]], Values]

STEP = 1e-3  # Step of the numerical derivatives, in standard deviations of a row


@dataclass(frozen=True, eq=False)
class Moments:
    """The first three moments of c columns, in each of b data sets.

    Parameters
    ----------
    n : (b,)
        The number of rows.
    mean : (c, b)
        The means.
    covariance : (c, c, b)
        The second central moments.
    third : (c, c, c, b)
        The third central moments.
    """

    n: Values
    mean: Values
    covariance: Values
    third: Values

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

    Parameters
    ----------
    moments : Moments
        The moments of the columns that the function averages.
    names : sequence of str
        The names of these c columns.
    function : callable
        Takes a mapping from names to means, (..., b) each.
    confidence : float
        The nominal coverage of the interval.

    Returns
    -------
    low, high, correction, acceleration : (b,)
        NaN where all rows are equal.

    References
    ----------
    DiCiccio and Efron (1992), Biometrika 79, 231-245; Efron and Tibshirani (1993), Section 22.6.
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
