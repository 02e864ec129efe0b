"""Families of positive targets: gamma, Weibull and lognormal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.core.validation import LARGEST, LEAST, UNIT, require, require_moderate, require_positive
from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.quadrature import Positive
from calcheck.distributions.special import deviance_term, gamma_below, log_half_step, stirling_error
from calcheck.errors import ExtremeValuesError

if TYPE_CHECKING:
    from calcheck.distributions.row_random import Random
    from calcheck.typing import Indices, Values

FAR = 5.0  # Distance from the mean in log y beyond which the direct formula of the density is accurate


@dataclass(frozen=True, eq=False)
class Gamma(Positive):
    """Gamma distributions on y > 0."""

    family: ClassVar[str] = "gamma"
    shape: Values  # (n,), shapes, > 0
    scale: Values  # (n,), scales, > 0, in the unit of the targets; the mean is shape * scale

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_positive("shape", self.shape)
        require_positive("scale", self.scale)

    def mean(self) -> Values:
        return self.shape * self.scale

    def std(self) -> Values:
        return np.sqrt(self.shape) * self.scale

    def raw_moments(self, order: int) -> Values:
        """Return scale^k shape (shape + 1) … (shape + k - 1), (n, order + 1)."""
        factors = self.scale[:, None] * (self.shape[:, None] + np.arange(order))
        with np.errstate(over="ignore"):
            return np.cumprod(np.concatenate([np.ones((len(self), 1)), factors], axis=1), axis=1)

    def cdf(self, y: Values) -> Values:
        return gamma_below(self.shape, np.maximum(y, 0) / self.scale)

    def log_prob(self, y: Values) -> Values:
        """Return log densities, (n,); at y = 0, inf for shape < 1, -log(scale) for shape 1, and -inf for shape > 1."""
        at_zero = np.select([self.shape < 1, self.shape == 1], [np.inf, -np.log(self.scale)], -np.inf)
        return np.where(y == 0, at_zero, super().log_prob(y))

    def log_density(self, y: Values, rows: Indices) -> Values:
        shape, scale = self.shape[rows, None], self.scale[rows, None]
        constant = np.log(shape / (2 * np.pi)) / 2 - stirling_error(shape)
        # written as a Poisson probability with shape and rate exchanged, which is accurate for large shapes
        log_ratio = np.log(y) - np.log(scale) - np.log(shape)
        with np.errstate(over="ignore"):  # overflow to inf gives a density of 0
            near = deviance_term(shape, np.clip(y / scale, shape * np.exp(-FAR), shape * np.exp(FAR)))
            away = np.where(np.abs(log_ratio) < FAR, near, shape * (np.expm1(log_ratio) - log_ratio))
        return np.asarray(constant - away - np.log(y))

    def crps(self, y: Values) -> Values:
        """Return the closed form of M. Moller and M. Scheuerer (2015), rearranged to avoid cancellation of large terms.

        With z = y / scale and the standard density f, the CRPS in units of the scale is
        (z - shape) (2 F(z) - 1) + 2 z f(z) - Gamma(shape + 1/2) / (Gamma(shape) sqrt(pi)).
        """
        z = np.maximum(y, 0) / self.scale
        below = gamma_below(self.shape, z)
        away = deviance_term(self.shape, np.where(z > 0, z, 1))
        density = np.where(z > 0, np.sqrt(self.shape / (2 * np.pi)) * np.exp(-stirling_error(self.shape) - away), 0)
        pairs = np.sqrt(self.shape / np.pi) * np.exp(log_half_step(self.shape))
        return np.asarray((y - self.mean()) * (2 * below - 1) + self.scale * (2 * density - pairs))

    def quantile(self, p: float) -> Values:
        from scipy.special import gammaincinv

        return np.asarray(self.scale * gammaincinv(self.shape, p))

    def sample(self, rng: Random, size: int) -> Values:
        return rng.gamma(self.shape[:, None], self.scale[:, None], (len(self), size))

    def parameters(self) -> tuple[str, dict[str, Values]]:
        return "gamma:scipy", {"a": self.shape, "scale": self.scale}

    def describe(self) -> list[str]:
        return describe_parameters("Gamma(shape {}, scale {})", self.shape, self.scale)


def gamma_from_scipy(a: Values, scale: Values) -> Gamma:
    """Return the distributions as scipy.stats.gamma(a, scale=scale)."""
    require_positive("a", a)
    return Gamma(shape=a, scale=scale)


def gamma_from_torch(concentration: Values, rate: Values) -> Gamma:
    """Return the distributions as torch.distributions.Gamma."""
    require_positive("concentration", concentration)
    require_positive("rate", rate)
    return Gamma(shape=concentration, scale=1 / rate)


TINY = np.finfo(np.float64).tiny
SERIES_BELOW = 0.1  # x below which the series of log_moment_ratio is exact to rounding
TERMS = 24  # Number of terms of that series


@dataclass(frozen=True, eq=False)
class Weibull(Positive):
    """Weibull distributions on y > 0: (y / scale)^c has a standard exponential distribution."""

    family: ClassVar[str] = "weibull"
    c: Values  # (n,), shapes, > 0
    # (n,), scales, > 0, in the unit of the targets. Moments, quantiles and draws that overflow are infinite.
    scale: Values

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_positive("c", self.c)
        require_positive("scale", self.scale)

    def mean(self) -> Values:
        from scipy.special import gamma

        return np.asarray(self.scale * gamma(1 + 1 / self.c))

    def std(self) -> Values:
        """Return the standard deviations, from E Y^2 = scale^2 Gamma(1 + 2 / c), without cancellation for large c."""
        from scipy.special import gammaln

        with np.errstate(over="ignore"):
            root = self.scale * np.exp(gammaln(1 + 2 / self.c) / 2)
        return np.asarray(root * np.sqrt(-np.expm1(-log_moment_ratio(1 / self.c))))

    def raw_moments(self, order: int) -> Values:
        """Return scale^k Gamma(1 + k / c), (n, order + 1)."""
        from scipy.special import gamma

        k = np.arange(order + 1)
        with np.errstate(over="ignore"):
            return np.asarray(self.scale[:, None] ** k * gamma(1 + k / self.c[:, None]))

    def _exponential(self, y: Values) -> Values:
        """Return (y / scale)^c, (n,); 0 for y <= 0."""
        with np.errstate(over="ignore"):
            return np.asarray((np.maximum(y, 0) / self.scale) ** self.c)

    def cdf(self, y: Values) -> Values:
        return np.asarray(-np.expm1(-self._exponential(y)))

    def log_prob(self, y: Values) -> Values:
        """Return log densities, (n,); at y = 0, inf for c < 1, -log(scale) for c = 1, and -inf for c > 1."""
        at_zero = np.select([self.c < 1, self.c == 1], [np.inf, -np.log(self.scale)], -np.inf)
        return np.where(y == 0, at_zero, super().log_prob(y))

    def log_density(self, y: Values, rows: Indices) -> Values:
        c, scale = self.c[rows, None], self.scale[rows, None]
        with np.errstate(over="ignore"):  # overflow to inf gives a density of 0
            log_ratio = np.log(np.maximum(y / scale, TINY))
            away = np.exp(c * log_ratio)
        return np.asarray(np.log(c) - np.log(scale) + (c - 1) * log_ratio - away)

    def crps(self, y: Values) -> Values:
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

    def quantile(self, p: float) -> Values:
        with np.errstate(over="ignore"):
            return np.asarray(self.scale * (-np.log1p(-p)) ** (1 / self.c))

    def sample(self, rng: Random, size: int) -> Values:
        exponential = -np.log1p(-rng.random((len(self), size)))
        with np.errstate(over="ignore"):
            return np.asarray(self.scale[:, None] * exponential ** (1 / self.c[:, None]))

    def parameters(self) -> tuple[str, dict[str, Values]]:
        return "weibull:scipy", {"c": self.c, "scale": self.scale}

    def describe(self) -> list[str]:
        return describe_parameters("Weibull(c {}, scale {})", self.c, self.scale)


def log_moment_ratio(x: Values) -> Values:
    """Return log(E Y^2 / (E Y)^2) = log(Gamma(1 + 2 x) / Gamma(1 + x)^2) for x = 1 / c > 0, without cancellation.

    For small x, about pi^2 x^2 / 6, it is the sum of zeta(k) (2^k - 2) (-x)^k / k over k >= 2.
    """
    from scipy.special import gammaln, zeta

    small, k = np.minimum(x, SERIES_BELOW), np.arange(2, TERMS + 2)
    series = np.polynomial.polynomial.polyval(-small, [0, 0, *(zeta(k) * (2.0**k - 2) / k)])
    return np.where(x < SERIES_BELOW, series, gammaln(1 + 2 * x) - 2 * gammaln(1 + x))


ROUNDING = 1e-9  # Tolerance of logarithms
CLOSE = 0.5  # sigma below which the terms of the closed form of the CRPS nearly cancel
NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2  # rule on [0, 1]


@dataclass(frozen=True, eq=False)
class LogNormal(Positive):
    """Distributions of exp(Z), Z ~ N(mu, sigma^2), on y > 0."""

    family: ClassVar[str] = "lognormal"
    mu: Values  # (n,), means of log Y, for Y in the unit of the targets
    # (n,), standard deviations of log Y, > 0. Moments, quantiles and draws that overflow are infinite.
    sigma: Values

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_moderate("mu", self.mu)
        require_positive("sigma", self.sigma)
        rule = f"must be logarithms of numbers from {LEAST:.0e} to {LARGEST:.0e}"
        require("mu", np.abs(self.mu) <= np.log(LARGEST) + ROUNDING, rule, UNIT, ExtremeValuesError)

    def mean(self) -> Values:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu + self.sigma**2 / 2))

    def std(self) -> Values:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu + self.sigma**2) * np.sqrt(-np.expm1(-(self.sigma**2))))

    def raw_moments(self, order: int) -> Values:
        """Return exp(k mu + k^2 sigma^2 / 2), (n, order + 1)."""
        k = np.arange(order + 1)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(k * self.mu[:, None] + (k * self.sigma[:, None]) ** 2 / 2))

    def median(self) -> Values:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu))

    def _score(self, y: Values) -> Values:
        """Return the standardized logs of targets, (n,); -inf for y <= 0."""
        log_y = np.log(y, out=np.full(len(y), -np.inf), where=y > 0)
        return (log_y - self.mu) / self.sigma

    def cdf(self, y: Values) -> Values:
        from scipy.special import ndtr

        return np.asarray(ndtr(self._score(y)))

    def log_density(self, y: Values, rows: Indices) -> Values:
        sigma, log_y = self.sigma[rows, None], np.log(y)
        score = (log_y - self.mu[rows, None]) / sigma
        return np.asarray(-0.5 * score**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi) - log_y)

    def crps(self, y: Values) -> Values:
        """Return the closed form of S. Baran and S. Lerch (2015), in one of two forms.

        For small sigma, the terms of the closed form cancel. With the standardized log w and E(w) = 2 Phi(w) - 1, it is
        rearranged to the mean times (y / mean - 1) E(w) + E(w) - E(w - sigma) - erf(sigma / 2). For large sigma,
        factors are combined so that none overflows unless their product does.
        """
        from scipy.special import erf, erfcx, log_ndtr

        score, sigma = self._score(y), self.sigma
        with np.errstate(over="ignore"):
            beyond = np.exp(self.mu + sigma**2 / 2 + log_ndtr(score - sigma))
            pairs = np.exp(self.mu + sigma**2 / 4) * erfcx(sigma / 2)
        wide = y * erf(score / np.sqrt(2)) - 2 * beyond + pairs
        close = (sigma < CLOSE) & (y > 0)
        small, at = np.where(close, sigma, 0.0), np.where(close, score, 0.0)
        between = at[:, None] - small[:, None] * NODES
        step = small * (np.exp(-(between**2) / 2) @ WEIGHTS) * np.sqrt(2 / np.pi)  # E(w) - E(w - sigma)
        terms = np.expm1(small * (at - small / 2)) * erf(at / np.sqrt(2)) + step - erf(small / 2)
        return np.asarray(np.where(close, np.exp(np.where(close, self.mu + small**2 / 2, 0)) * terms, wide))

    def quantile(self, p: float) -> Values:
        from scipy.special import ndtri

        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu + self.sigma * float(ndtri(p))))

    def sample(self, rng: Random, size: int) -> Values:
        return rng.lognormal(self.mu[:, None], self.sigma[:, None], (len(self), size))

    def parameters(self) -> tuple[str, dict[str, Values]]:
        return "lognormal:torch", {"loc": self.mu, "scale": self.sigma}

    def describe(self) -> list[str]:
        return describe_parameters("LogNormal(mu {}, sigma {})", self.mu, self.sigma)


def lognormal_from_scipy(s: Values, scale: Values) -> LogNormal:
    """Return the distributions as scipy.stats.lognorm(s, scale=scale)."""
    require_positive("s", s)
    require_positive("scale", scale)
    return LogNormal(mu=np.log(scale), sigma=s)


def lognormal_from_torch(loc: Values, scale: Values) -> LogNormal:
    """Return the distributions as torch.distributions.LogNormal."""
    require_moderate("loc", loc)
    require_positive("scale", scale)
    return LogNormal(mu=loc, sigma=scale)
