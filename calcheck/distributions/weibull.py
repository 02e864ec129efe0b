"""Weibull predictive distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.quadrature import Positive
from calcheck.validation import require_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random

TINY = np.finfo(np.float64).tiny
SERIES_BELOW = 0.1  # x below which the series of log_moment_ratio is exact to rounding
TERMS = 24  # Number of terms of that series


@dataclass(frozen=True, eq=False)
class Weibull(Positive):
    """Weibull distributions on y > 0: (y / scale)^c has a standard exponential distribution.

    Parameters
    ----------
    c : (n,)
        Shapes, > 0.
    scale : (n,)
        Scales, > 0, in the unit of the targets. Moments, quantiles and draws that overflow are infinite.

    Raises
    ------
    ValuesError
        A value is not a positive number.
    """

    family: ClassVar[str] = "weibull"
    c: NDArray[np.float64]
    scale: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_positive("c", self.c)
        require_positive("scale", self.scale)

    def mean(self) -> NDArray[np.float64]:
        from scipy.special import gamma

        return np.asarray(self.scale * gamma(1 + 1 / self.c))

    def std(self) -> NDArray[np.float64]:
        """Return the standard deviations, from E Y^2 = scale^2 Gamma(1 + 2 / c), without cancellation for large c."""
        from scipy.special import gammaln

        with np.errstate(over="ignore"):
            root = self.scale * np.exp(gammaln(1 + 2 / self.c) / 2)
        return np.asarray(root * np.sqrt(-np.expm1(-log_moment_ratio(1 / self.c))))

    def raw_moments(self, order: int) -> NDArray[np.float64]:
        """Return scale^k Gamma(1 + k / c), (n, order + 1)."""
        from scipy.special import gamma

        k = np.arange(order + 1)
        with np.errstate(over="ignore"):
            return np.asarray(self.scale[:, None] ** k * gamma(1 + k / self.c[:, None]))

    def _exponential(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (y / scale)^c, (n,); 0 for y <= 0."""
        with np.errstate(over="ignore"):
            return np.asarray((np.maximum(y, 0) / self.scale) ** self.c)

    def cdf(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(-np.expm1(-self._exponential(y)))

    def log_prob(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log densities, (n,); at y = 0, inf for c < 1, -log(scale) for c = 1, and -inf for c > 1."""
        at_zero = np.select([self.c < 1, self.c == 1], [np.inf, -np.log(self.scale)], -np.inf)
        return np.where(y == 0, at_zero, super().log_prob(y))

    def log_density(self, y: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        c, scale = self.c[rows, None], self.scale[rows, None]
        with np.errstate(over="ignore"):  # overflow to inf gives a density of 0
            log_ratio = np.log(np.maximum(y / scale, TINY))
            away = np.exp(c * log_ratio)
        return np.asarray(np.log(c) - np.log(scale) + (c - 1) * log_ratio - away)

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return E|Y - y| - E|Y - Y'| / 2 in closed form.

        With t = (y / scale)^c and the regularized incomplete gamma function P, E(Y; Y <= y) = E(Y) P(1 + 1 / c, t).
        The smaller of Y and Y' is a Weibull distribution with the scale 2^(-1 / c) scale, so the CRPS is
        y (2 F(y) - 1) - 2 E(Y) P(1 + 1 / c, t) + E(Y) 2^(-1 / c).
        """
        from scipy.special import gammainc, gammaln

        t, power = self._exponential(y), 1 / self.c
        with np.errstate(over="ignore", divide="ignore"):  # products may be finite where the mean is not
            below = np.exp(gammaln(1 + power) + np.log(gammainc(1 + power, t)))
            least = np.exp(gammaln(1 + power) - power * np.log(2))
        return np.asarray(y * (1 - 2 * np.exp(-t)) + self.scale * (least - 2 * below))

    def quantile(self, p: float) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.asarray(self.scale * (-np.log1p(-p)) ** (1 / self.c))

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        exponential = -np.log1p(-rng.random((len(self), size)))
        with np.errstate(over="ignore"):
            return np.asarray(self.scale[:, None] * exponential ** (1 / self.c[:, None]))

    def parameters(self) -> tuple[str, dict[str, NDArray[np.float64]]]:
        return "weibull:scipy", {"c": self.c, "scale": self.scale}

    def describe(self) -> list[str]:
        return describe_parameters("Weibull(c {}, scale {})", self.c, self.scale)


def log_moment_ratio(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(E Y^2 / (E Y)^2) = log(Gamma(1 + 2 x) / Gamma(1 + x)^2) for x = 1 / c > 0, without cancellation.

    For small x, about pi^2 x^2 / 6, it is the sum of zeta(k) (2^k - 2) (-x)^k / k over k >= 2.
    """
    from scipy.special import gammaln, zeta

    small, k = np.minimum(x, SERIES_BELOW), np.arange(2, TERMS + 2)
    series = np.polynomial.polynomial.polyval(-small, [0, 0, *(zeta(k) * (2.0**k - 2) / k)])
    return np.where(x < SERIES_BELOW, series, gammaln(1 + 2 * x) - 2 * gammaln(1 + x))
