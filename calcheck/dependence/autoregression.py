"""Autoregressive models of series: their long-run variance, and how long they remember."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calcheck.typing import Values

MOST_LAGS = 5_000  # Autocorrelations of a fitted model that are summed


@dataclass(frozen=True)
class Autoregression:
    """The sums of the autocorrelations of a stationary series."""

    # Long-run variance relative to the variance: the sum of the autocorrelations at all lags, 1 for independence
    variance_ratio: float
    # Mean absolute lag, weighted by autocorrelations, >= 0. The variance of the mean of a block of b times is too small
    # by the factor 1 - memory / b, to first order in 1 / b.
    memory: float
    # Upper limit of the probability that a series of independent numbers fits as well, by its likelihood ratio,
    # multiplied by the number of orders that are tried
    chance: float = 1.0

    @classmethod
    def fit(cls, series: Values) -> Autoregression:
        """Return the sums of the autocorrelations of the autoregression that fits a series (t,) best.

        Coefficients solve the Yule-Walker equations, and the order, up to 10 log10(t), minimizes the corrected Akaike
        criterion: a daily cycle of hourly rows is found, too.

        Source: Hurvich, Tsai (1989), Biometrika 76, 297-307. Den Haan, Levin (1997), Handbook of Statistics 15,
        299-342.
        """
        coefficients, chance = _coefficients(series)
        if not len(coefficients):
            return cls(1.0, 0.0)
        correlations = _correlations(coefficients, min(MOST_LAGS, 5 * len(series)))
        ratio = 1 + 2 * float(correlations.sum())
        lags = np.arange(1, len(correlations) + 1)
        return cls(ratio, max(0.0, 2 * float(lags @ correlations) / ratio), chance)


def autocovariances(series: Values) -> Values:
    """Return the autocovariances of a series (t,) at the lags 0 to t - 1, with the divisor t."""
    away = series - series.mean()
    spectrum = np.abs(np.fft.rfft(away, 2 * len(away))) ** 2
    return np.asarray(np.fft.irfft(spectrum)[: len(away)] / len(away))


def _coefficients(series: Values) -> tuple[Values, float]:
    """Return the coefficients of the autoregression with the smallest criterion, (p,), and the chance of its fit.

    Orders are fitted by Levinson's recursion.
    """
    from scipy.special import chdtrc

    n = len(series)
    covariances = autocovariances(series)
    best = coefficients = np.zeros(0)
    variance, chance = covariances[0], 1.0
    if not variance > 0:
        return best, chance
    smallest, orders = n * np.log(variance), min(int(10 * np.log10(n)), n - 3)
    for order in range(1, orders + 1):
        expected = coefficients @ covariances[order - 1 : 0 : -1]
        partial = (covariances[order] - expected) / variance
        coefficients = np.append(coefficients - partial * coefficients[::-1], partial)
        variance *= 1 - partial**2
        if not variance > 0:
            break
        criterion = n * np.log(variance) + 2 * order * n / (n - order - 2)
        if criterion < smallest:
            smallest, best = criterion, coefficients
            chance = min(1.0, orders * float(chdtrc(order, n * np.log(covariances[0] / variance))))
    return best, chance


def _correlations(coefficients: Values, lags: int) -> Values:
    """Return the autocorrelations of an autoregression at the lags 1 to ``lags``."""
    from scipy.signal import lfilter

    impulse = np.zeros(lags + 1)
    impulse[0] = 1
    response = lfilter([1.0], np.append(1.0, -coefficients), impulse)
    spectrum = np.abs(np.fft.rfft(response, 2 * len(response))) ** 2
    covariances = np.fft.irfft(spectrum)[: len(response)]
    return np.asarray(covariances[1:] / covariances[0])
