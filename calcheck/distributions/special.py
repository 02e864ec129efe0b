"""Special functions that are accurate for large or nearly equal parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

STIRLING_FROM = 16.0  # Argument from which five terms of the Stirling series are exact to rounding
SERIES_BELOW = 0.1  # |d| below which the series up to v^14 is exact to rounding
TERMS = 7  # Number of terms of that series
DIRECT_BELOW = 1.0  # Argument below which the direct formula of log_half_step is accurate
TEMME_FROM = 1e5  # Shape from which the first two terms of Temme's expansion are exact to nine digits
FAR_BELOW = 4.0  # Distance below the mean, in standard deviations, from which scipy's gammainc is inaccurate there


def deviance_term(k: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return k log(k / mean) - k + mean, the large-deviation rate of a Poisson distribution, without cancellation."""
    return mean * log_ratio_excess((k - mean) / mean)


def log_ratio_excess(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (1 + d) log(1 + d) - d for d >= -1.

    For small d, it is computed as d (v + (1 + v) (v^2 / 3 + v^4 / 5 + ...)) with v = d / (2 + d), without cancellation.
    """
    from scipy.special import xlog1py

    v = np.clip(d, -SERIES_BELOW, SERIES_BELOW) / (2 + np.clip(d, -SERIES_BELOW, SERIES_BELOW))
    square, series = v**2, np.zeros_like(v)
    for term in range(TERMS, 0, -1):
        series = square * (1 / (2 * term + 1) + series)
    return np.where(np.abs(d) < SERIES_BELOW, d * (v + (1 + v) * series), xlog1py(1 + d, d) - d)


def stirling_error(k: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log Gamma(k + 1) - (k + 1/2) log k + k - log(2 pi) / 2 for k > 0, the error of Stirling's formula.

    Probabilities computed from it are accurate for large counts (C. Loader, Fast and Accurate Computation of Binomial
    Probabilities, 2000).
    """
    from scipy.special import gammaln

    large = np.maximum(k, STIRLING_FROM)
    square = large**-2
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / large
    small = np.minimum(k, STIRLING_FROM)
    direct = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * np.log(2 * np.pi)
    return np.where(k >= STIRLING_FROM, series, direct)


def gamma_below(shape: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the regularized lower incomplete gamma function, also far below the mean of a large shape.

    There, scipy's series of 2,000 terms ends too early: from a shape of 1e6 on, and by a factor of 1.5 for 1e8.

    References
    ----------
    Temme (1979), "The asymptotic expansion of the incomplete gamma functions".
    """
    from scipy.special import gammainc

    known = np.asarray(gammainc(shape, x))
    far = (shape >= TEMME_FROM) & (x > 0) & (x < shape - FAR_BELOW * np.sqrt(shape))
    if far.any():
        known[far] = _temme(np.broadcast_to(shape, known.shape)[far], np.broadcast_to(x, known.shape)[far])
    return known


def _temme(shape: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower incomplete gamma function for x < shape, where the shape is large."""
    from scipy.special import erfc

    rate = deviance_term(shape, x)
    eta = -np.sqrt(2 * rate / shape)
    first = -1 / 3 + eta * (1 / 12 + eta * (-2 / 135 + eta * (1 / 864 + eta / 2835)))
    second = -1 / 540 - eta / 288
    tail = np.exp(-rate) / np.sqrt(2 * np.pi * shape) * (first + second / shape)
    return np.asarray(0.5 * erfc(np.sqrt(rate)) - tail)


def log_half_step(k: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(Gamma(k + 1/2) / (Gamma(k) sqrt(k))) for k > 0, about -1 / (8 k) for large k, without cancellation.

    It gives 1 / B(1/2, k) = sqrt(k / pi) exp(log_half_step(k)).
    """
    from scipy.special import betaln

    large, small = np.maximum(k, DIRECT_BELOW), np.minimum(k, DIRECT_BELOW)
    steps = stirling_error(large - 0.5) - stirling_error(large)
    far = steps + large * np.log1p(-0.5 / large) + 0.5
    return np.where(k > DIRECT_BELOW, far, -betaln(0.5, small) - np.log(small / np.pi) / 2)
