"""Log-normal predictive distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.quadrature import Positive
from calcheck.errors import ExtremeValuesError
from calcheck.validation import LARGEST, LEAST, UNIT, require, require_moderate, require_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random

ROUNDING = 1e-9  # Tolerance of logarithms
CLOSE = 0.5  # sigma below which the terms of the closed form of the CRPS nearly cancel
NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2  # rule on [0, 1]


@dataclass(frozen=True, eq=False)
class LogNormal(Positive):
    """Distributions of exp(Z), Z ~ N(mu, sigma^2), on y > 0.

    Parameters
    ----------
    mu : (n,)
        Means of log Y, for Y in the unit of the targets.
    sigma : (n,)
        Standard deviations of log Y, > 0. Moments, quantiles and draws that overflow are infinite.

    Raises
    ------
    ValuesError
        A value is not finite, or a sigma is not positive.
    """

    family: ClassVar[str] = "lognormal"
    mu: NDArray[np.float64]
    sigma: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_moderate("mu", self.mu)
        require_positive("sigma", self.sigma)
        rule = f"must be logarithms of numbers from {LEAST:.0e} to {LARGEST:.0e}"
        require("mu", np.abs(self.mu) <= np.log(LARGEST) + ROUNDING, rule, UNIT, ExtremeValuesError)

    def mean(self) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu + self.sigma**2 / 2))

    def std(self) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu + self.sigma**2) * np.sqrt(-np.expm1(-(self.sigma**2))))

    def raw_moments(self, order: int) -> NDArray[np.float64]:
        """Return exp(k mu + k^2 sigma^2 / 2), (n, order + 1)."""
        k = np.arange(order + 1)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(k * self.mu[:, None] + (k * self.sigma[:, None]) ** 2 / 2))

    def median(self) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu))

    def _score(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standardized logs of targets, (n,); -inf for y <= 0."""
        log_y = np.log(y, out=np.full(len(y), -np.inf), where=y > 0)
        return (log_y - self.mu) / self.sigma

    def cdf(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import ndtr

        return np.asarray(ndtr(self._score(y)))

    def log_density(self, y: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        sigma, log_y = self.sigma[rows, None], np.log(y)
        score = (log_y - self.mu[rows, None]) / sigma
        return np.asarray(-0.5 * score**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi) - log_y)

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
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

    def quantile(self, p: float) -> NDArray[np.float64]:
        from scipy.special import ndtri

        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mu + self.sigma * float(ndtri(p))))

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        return rng.lognormal(self.mu[:, None], self.sigma[:, None], (len(self), size))

    def parameters(self) -> tuple[str, dict[str, NDArray[np.float64]]]:
        return "lognormal:torch", {"loc": self.mu, "scale": self.sigma}

    def describe(self) -> list[str]:
        return describe_parameters("LogNormal(mu {}, sigma {})", self.mu, self.sigma)


def from_scipy(s: NDArray[np.float64], scale: NDArray[np.float64]) -> LogNormal:
    """Return the distributions as scipy.stats.lognorm(s, scale=scale)."""
    require_positive("s", s)
    require_positive("scale", scale)
    return LogNormal(mu=np.log(scale), sigma=s)


def from_torch(loc: NDArray[np.float64], scale: NDArray[np.float64]) -> LogNormal:
    """Return the distributions as torch.distributions.LogNormal."""
    require_moderate("loc", loc)
    require_positive("scale", scale)
    return LogNormal(mu=loc, sigma=scale)
