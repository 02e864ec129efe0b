"""Negative binomial predictive distributions and their parametrisations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.checks import require, require_finite, require_positive
from calcheck.predictive.base import Convention
from calcheck.predictive.counts import Counts
from calcheck.predictive.special import excess, stirling_error
from calcheck.predictive.words import each

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.predictive.row_random import Random


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Counts):
    """Negative binomial distributions, as Poisson distributions with a gamma-distributed rate.

    Parameters
    ----------
    mu : (n,)
        Means, > 0.
    size : (n,)
        Shape of the gamma distribution, > 0: the variance is mu + mu^2 / size. (n in scipy, total_count in torch.)

    Raises
    ------
    ValuesError
        A parameter is not a positive number.
    """

    family: ClassVar[str] = "nbinom"
    normalised: ClassVar[bool] = True
    mu: NDArray[np.float64]
    size: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_positive("mean", self.mu)
        require_positive("size", self.size)

    def mean(self) -> NDArray[np.float64]:
        return self.mu

    def std(self) -> NDArray[np.float64]:
        return np.sqrt(self.mu + self.mu**2 / self.size)

    def centre(self) -> NDArray[np.float64]:
        return self.mu

    def log_weight(self, k: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        mu, size = self.mu[rows, None], self.size[rows, None]
        positive = np.maximum(k, 1)
        total = positive + size
        # the mass at k is size / total times that of a binomial: size successes in total trials
        stirling = stirling_error(total) - stirling_error(size) - stirling_error(positive)
        weight = stirling + 0.5 * np.log(size / (2 * np.pi * positive * total)) - self._rate(positive, mu, size)
        return np.where(k > 0, weight, -size * np.log1p(mu / size))

    def rate(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._rate(k, self.mu, self.size)

    @staticmethod
    def _rate(k: NDArray[np.float64], mu: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return k log(k / mu) - (k + size) log((k + size) / (mu + size)), without cancellation."""
        share = (k + size) / (mu + size)
        successes = size * share * excess((mu - k) / (k + size))
        failures = mu * share * excess(size * (k - mu) / ((k + size) * mu))
        return np.asarray(successes + failures)

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        rate = rng.gamma(self.size[:, None], 1.0, (len(self), size)) / self.size[:, None] * self.mu[:, None]
        return np.asarray(rng.poisson(rate, (len(self), size)), dtype=np.float64)

    def in_convention(self) -> tuple[str, dict[str, NDArray[np.float64]]]:
        return "nbinom:pymc", {"mu": self.mu, "alpha": self.size}

    def in_words(self) -> list[str]:
        return each("NB(mean {}, std {})", self.mu, self.std())


def _from_probability(
    size: NDArray[np.float64], success: NDArray[np.float64], names: tuple[str, str]
) -> NegativeBinomial:
    """Build from scipy's (n, p): failures before the n-th success, each with probability p."""
    require_positive(names[0], size)
    require_finite(names[1], success)
    require(names[1], (success > 0) & (success < 1), "must lie strictly between 0 and 1")
    return NegativeBinomial(mu=size * (1 - success) / success, size=size)


def _torch(total_count: NDArray[np.float64], probs: NDArray[np.float64]) -> NegativeBinomial:
    return _from_probability(total_count, 1 - probs, ("total_count", "probs"))


def _logits(total_count: NDArray[np.float64], logits: NDArray[np.float64]) -> NegativeBinomial:
    require_positive("total_count", total_count)
    require_finite("logits", logits)
    with np.errstate(over="ignore"):
        mu = total_count * np.exp(logits)
    require("logits", np.isfinite(mu) & (mu > 0), "must be log odds of a probability strictly between 0 and 1")
    return NegativeBinomial(mu=mu, size=total_count)


def _scipy(n: NDArray[np.float64], p: NDArray[np.float64]) -> NegativeBinomial:
    return _from_probability(n, p, ("n", "p"))


def _mu_alpha(mu: NDArray[np.float64], alpha: NDArray[np.float64]) -> NegativeBinomial:
    require_positive("mu", mu)
    require_positive("alpha", alpha)
    return NegativeBinomial(mu=mu, size=1 / alpha)


def _pymc(mu: NDArray[np.float64], alpha: NDArray[np.float64]) -> NegativeBinomial:
    require_positive("mu", mu)
    require_positive("alpha", alpha)
    return NegativeBinomial(mu=mu, size=alpha)


CONVENTIONS = (
    Convention(
        "nbinom",
        "torch",
        {"total_count": ("total_count", "r"), "probs": ("probs", "p")},
        _torch,
        "mean total_count probs / (1 - probs), as torch.distributions",
    ),
    Convention(
        "nbinom",
        "logits",
        {"total_count": ("total_count", "r"), "logits": ("logits",)},
        _logits,
        "mean total_count exp(logits), as torch.distributions with the log odds of probs",
    ),
    Convention("nbinom", "scipy", {"n": ("n",), "p": ("p",)}, _scipy, "mean n (1 - p) / p, as scipy.stats"),
    Convention(
        "nbinom",
        "mu-alpha",
        {"mu": ("mu",), "alpha": ("alpha",)},
        _mu_alpha,
        "variance mu + alpha mu^2, as statsmodels' NB2",
    ),
    Convention("nbinom", "pymc", {"mu": ("mu",), "alpha": ("alpha",)}, _pymc, "variance mu + mu^2 / alpha, as PyMC"),
)
