"""Negative binomial predictive distributions and their parametrizations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.counts import WIDE_FROM, Counts
from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.special import log_ratio_excess, stirling_error
from calcheck.validation import require, require_moderate, require_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random

NORMAL_FROM = 1e5  # mean / std above which the first-order Edgeworth expansion is accurate
STEP = 0.1  # Step of the trapezoidal rule in t; the error is below e^(-pi^2 / 0.2) = e^-49
LOWER_CUT, UPPER_CUT = 32.0, 12.0  # Limits of integration in t; less than e^-32 and e^-36 is neglected
BLOCK_VALUES = 1 << 18  # Numbers per block, 2 MiB


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Counts):
    """Negative binomial distributions, as Poisson distributions with a gamma-distributed rate.

    Parameters
    ----------
    mu : (n,)
        Means, > 0, at most 2^53.
    size : (n,)
        Shape of the gamma distribution, from 1e-75 to 1e75: the variance is mu + mu^2 / size. (n in scipy,
        total_count in torch.)

    Raises
    ------
    ValuesError
        A parameter is not positive, or out of range.
    """

    family: ClassVar[str] = "nbinom"
    normalized: ClassVar[bool] = True
    mu: NDArray[np.float64]
    size: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        self.require_countable("mean", self.mu)
        require_positive("size", self.size)

    def mean(self) -> NDArray[np.float64]:
        return self.mu

    def std(self) -> NDArray[np.float64]:
        return self.spread()

    def mode(self) -> NDArray[np.float64]:
        return self.mu

    def spread(self) -> NDArray[np.float64]:
        return np.hypot(np.sqrt(self.mu), self.mu / np.sqrt(self.size))

    def is_wide(self) -> NDArray[np.bool_]:
        return self.spread() >= WIDE_FROM

    def wide_below(self, last: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a regularized incomplete beta function, evaluated at the smaller of both probabilities for accuracy.

        If mean / std is so large that this function is inaccurate or fails, return the first-order
        Edgeworth expansion, whose error is then below 1e-11.
        """
        from scipy.special import betainc, betaincc, ndtr

        total, std = self.mu + self.size, self.std()
        few, many = betainc(self.size, last + 1, self.size / total), betaincc(last + 1, self.size, self.mu / total)
        score = (last + 0.5 - self.mu) / std
        skewness = (1 + 2 * self.mu / self.size) / std
        bend = skewness / 6 * (score**2 - 1) * np.exp(-(score**2) / 2) / np.sqrt(2 * np.pi)
        exact = np.where(self.size < self.mu, few, many)
        return np.where(self.mu > NORMAL_FROM * std, ndtr(score) - bend, exact)

    def wide_shortfall(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.mu * (1 + y / self.size) * np.exp(self.log_prob(y))

    def wide_pairs(self) -> NDArray[np.float64]:
        """Return an integral of the characteristic function, by the trapezoidal rule.

        An integer D with characteristic function psi has E|D| = 1 / pi * integral from 0 to pi of
        (1 - psi(a)) / (1 - cos a) da. The difference D = Y - Y' has psi(a) = (1 + c sin^2(a / 2))^-size with
        c = 4 mu / size (1 + mu / size). Integration by parts and v = tan(a / 2) give 4 std^2 / pi times the integral
        over v > 0 of (1 + c w)^-size / ((1 + v^2) (1 + (1 + c) v^2)), where w = v^2 / (1 + v^2). The rule is applied in
        t = log v; the integrand is bounded in the strip |Im t| < pi / 4.
        """
        pairs = np.empty(len(self))
        ratio = self.mu / self.size
        c, std = 4 * ratio * (1 + ratio), self.std()
        low = -LOWER_CUT - np.log(np.maximum(2 * std, np.sqrt(1 + c)))
        nodes = int(np.ceil((UPPER_CUT - low.min()) / STEP))
        for start in range(0, len(self), max(1, BLOCK_VALUES // nodes)):
            rows = slice(start, start + max(1, BLOCK_VALUES // nodes))
            t = low[rows, None] + STEP * np.arange(nodes)
            square, spread = np.exp(2 * t), c[rows, None]
            log = t - np.log1p(square) - np.log1p((1 + spread) * square)
            log -= self.size[rows, None] * np.log1p(spread * square / (1 + square))
            pairs[rows] = STEP * np.exp(log).sum(axis=1)
        return 4 / np.pi * std**2 * pairs

    def log_weight(self, k: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        mu, size = self.mu[rows, None], self.size[rows, None]
        positive = np.maximum(k, 1)
        total = positive + size
        # the probability of k is size / total times the binomial probability of size successes in total trials
        stirling = stirling_error(total) - stirling_error(size) - stirling_error(positive)
        weight = stirling + 0.5 * np.log(size / (2 * np.pi * positive * total)) - self._rate(positive, mu, size)
        return np.where(k > 0, weight, -size * np.log1p(mu / size))

    def rate(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._rate(k, self.mu, self.size)

    @staticmethod
    def _rate(k: NDArray[np.float64], mu: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return k log(k / mu) - (k + size) log((k + size) / (mu + size)), without cancellation."""
        share = (k + size) / (mu + size)
        successes = size * share * log_ratio_excess((mu - k) / (k + size))
        failures = mu * share * log_ratio_excess(size * (k - mu) / ((k + size) * mu))
        return np.asarray(successes + failures)

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        rate = rng.gamma(self.size[:, None], 1.0, (len(self), size)) / self.size[:, None] * self.mu[:, None]
        return np.asarray(rng.poisson(rate, (len(self), size)), dtype=np.float64)

    def parameters(self) -> tuple[str, dict[str, NDArray[np.float64]]]:
        return "nbinom:pymc", {"mu": self.mu, "alpha": self.size}

    def describe(self) -> list[str]:
        return describe_parameters("NB(mean {}, std {})", self.mu, self.std())


def _from_probability(
    size: NDArray[np.float64], success: NDArray[np.float64], names: tuple[str, str]
) -> NegativeBinomial:
    """Return the distributions of scipy's (n, p): failures before the n-th success with success probability p."""
    require_positive(names[0], size)
    require_moderate(names[1], success)
    require(names[1], (success > 0) & (success < 1), "must be strictly between 0 and 1")
    with np.errstate(over="ignore"):  # infinite means are rejected by the family
        return NegativeBinomial(mu=size * (1 - success) / success, size=size)


def from_torch(total_count: NDArray[np.float64], probs: NDArray[np.float64]) -> NegativeBinomial:
    """Return the distributions as torch.distributions.NegativeBinomial with probs."""
    return _from_probability(total_count, 1 - probs, ("total_count", "probs"))


def from_logits(total_count: NDArray[np.float64], logits: NDArray[np.float64]) -> NegativeBinomial:
    """Return the distributions as torch.distributions.NegativeBinomial with logits."""
    require_positive("total_count", total_count)
    require_moderate("logits", logits)
    with np.errstate(over="ignore"):
        mu = total_count * np.exp(logits)
    require("logits", np.isfinite(mu) & (mu > 0), "must be log odds of a probability strictly between 0 and 1")
    return NegativeBinomial(mu=mu, size=total_count)


def from_scipy(n: NDArray[np.float64], p: NDArray[np.float64]) -> NegativeBinomial:
    """Return the distributions as scipy.stats.nbinom(n, p)."""
    return _from_probability(n, p, ("n", "p"))


def from_mu_alpha(mu: NDArray[np.float64], alpha: NDArray[np.float64]) -> NegativeBinomial:
    """Return the distributions with variance mu + alpha mu^2."""
    require_positive("mu", mu)
    require_positive("alpha", alpha)
    return NegativeBinomial(mu=mu, size=1 / alpha)


def from_pymc(mu: NDArray[np.float64], alpha: NDArray[np.float64]) -> NegativeBinomial:
    """Return the distributions with variance mu + mu^2 / alpha."""
    require_positive("mu", mu)
    require_positive("alpha", alpha)
    return NegativeBinomial(mu=mu, size=alpha)
