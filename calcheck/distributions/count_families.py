"""Families of counts: Poisson, Bernoulli, negative binomial and double Poisson."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from calcheck.core import sc
from calcheck.core.validation import require, require_moderate, require_positive
from calcheck.distributions import special
from calcheck.distributions.base import Predictive
from calcheck.distributions.count_base import WIDE_FROM, Counts
from calcheck.distributions.row_random import Random
from calcheck.typing import Indices, Mask, Values

NORMAL_FROM = 1e5  # mean / std above which the first-order Edgeworth expansion is accurate
STEP = 0.1  # Step of the trapezoidal rule in t; the error is below e^(-pi^2 / 0.2) = e^-49
LOWER_CUT, UPPER_CUT = 32.0, 12.0  # Limits of integration in t; less than e^-32 and e^-36 is neglected
BLOCK_VALUES = 1 << 18  # Numbers per block, 2 MiB
REACH, CUTS = 10, 8  # Range of integrals on each side of mu, and pieces, per spread
NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)  # Quadrature rule of a piece


@dataclass(frozen=True, eq=False)
class Poisson(Counts):
    """Poisson distributions."""

    family: ClassVar[str] = "poisson"
    template: ClassVar[str] = "Poisson({})"
    normalized: ClassVar[bool] = True
    rate: Values  # (n,), means, > 0, at most 2^53

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        self.require_countable("rate", self.rate)

    def mean(self) -> Values:
        return self.rate

    def std(self) -> Values:
        return np.sqrt(self.rate)

    mode, spread = mean, std

    def is_wide(self) -> Mask:
        return self.spread() >= WIDE_FROM

    def wide_below(self, last: Values) -> Values:
        return np.where(last < self.rate, sc.pdtr(last, self.rate), 1 - special.gamma_below(last + 1, self.rate))

    def wide_shortfall(self, y: Values) -> Values:
        return self.rate * np.exp(self.log_prob(y))

    def wide_pairs(self) -> Values:
        """Return rate e^(-2 rate) (I_0(2 rate) + I_1(2 rate)) (T. Ramasubban, 1958, The mean difference)."""
        return np.asarray(self.rate * (sc.i0e(2 * self.rate) + sc.i1e(2 * self.rate)))

    def log_weight(self, k: Values, rows: Indices) -> Values:
        return special.log_poisson(k, self.rate[rows, None])

    def deviance(self, k: Values) -> Values:
        return special.deviance_term(k, self.rate)

    def sample(self, rng: Random, size: int) -> Values:
        return np.asarray(rng.poisson(self.rate[:, None], (len(self), size)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Bernoulli(Predictive):
    """Distributions on 0 and 1."""

    family: ClassVar[str] = "bernoulli"
    template: ClassVar[str] = "Bernoulli({})"
    is_discrete: ClassVar[bool] = True
    probability: Values  # (n,), probabilities of 1, in (0, 1)

    def __post_init__(self) -> None:
        self.hold_in_double()
        require("probability", (self.probability > 0) & (self.probability < 1), "must lie strictly between 0 and 1")

    def validate_targets(self, y: Values) -> None:
        require("y", (y == 0) | (y == 1), "must be 0 or 1")

    def mean(self) -> Values:
        return self.probability

    def std(self) -> Values:
        return np.sqrt(self.probability * (1 - self.probability))

    def raw_moments(self, order: int) -> Values:
        return np.where(np.arange(order + 1) == 0, 1.0, self.probability[:, None])

    def cdf(self, y: Values) -> Values:
        return np.where(y < 0, 0.0, np.where(y < 1, 1 - self.probability, 1.0))

    def cdf_left(self, y: Values) -> Values:
        return np.where(y <= 0, 0.0, np.where(y <= 1, 1 - self.probability, 1.0))

    def log_prob(self, y: Values) -> Values:
        return np.where(y == 1, np.log(self.probability), np.where(y == 0, np.log1p(-self.probability), -np.inf))

    def crps(self, y: Values) -> Values:
        """Return E|Y - y| - E|Y - Y'| / 2, (n,)."""
        p = self.probability
        return p * np.abs(1 - y) + (1 - p) * np.abs(y) - p * (1 - p)

    def quantile(self, p: float) -> Values:
        return np.where(p > 1 - self.probability, 1.0, 0.0)

    def sample(self, rng: Random, size: int) -> Values:
        return (rng.random((len(self), size)) < self.probability[:, None]).astype(np.float64)

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        at_zero, at_one = (np.exp(-gamma[..., 0] * (points[:, 0] - value) ** 2) for value in (0, 1))
        return np.asarray(at_zero + self.probability[:, None] * (at_one - at_zero))

    def kernel_norm(self, gamma: Values) -> Values:
        p = self.probability
        return np.asarray(1 - 2 * p * (1 - p) * (1 - np.exp(-gamma[0])))


class OpenBernoulli(Bernoulli):
    """Distributions on 0 and 1 of which some targets are not known: they count as 1 here."""


@dataclass(frozen=True, eq=False)
class NegativeBinomial(Counts):
    """Negative binomial distributions, as Poisson distributions with a gamma-distributed rate."""

    family: ClassVar[str] = "nbinom"
    normalized: ClassVar[bool] = True
    mu: Values  # (n,), means, > 0, at most 2^53
    # (n,), shape of the gamma distribution, from 1e-75 to 1e75: the variance is mu + mu^2 / size. (n in scipy,
    # total_count in torch.)
    size: Values

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        self.require_countable("mean", self.mu)
        require_positive("size", self.size)

    def mean(self) -> Values:
        return self.mu

    def std(self) -> Values:
        return np.hypot(np.sqrt(self.mu), self.mu / np.sqrt(self.size))

    mode, spread = mean, std

    def is_wide(self) -> Mask:
        return self.spread() >= WIDE_FROM

    def wide_below(self, last: Values) -> Values:
        """Return an incomplete beta function or, for a large mean / std, an Edgeworth expansion within 1e-11."""
        total, std = self.mu + self.size, self.std()
        few = sc.betainc(self.size, last + 1, self.size / total)
        many = sc.betaincc(last + 1, self.size, self.mu / total)
        score = (last + 0.5 - self.mu) / std
        skewness = (1 + 2 * self.mu / self.size) / std
        bend = skewness / 6 * (score**2 - 1) * np.exp(-(score**2) / 2) / np.sqrt(2 * np.pi)
        exact = np.where(self.size < self.mu, few, many)
        return np.where(self.mu > NORMAL_FROM * std, sc.ndtr(score) - bend, exact)

    def wide_shortfall(self, y: Values) -> Values:
        return self.mu * (1 + y / self.size) * np.exp(self.log_prob(y))

    def wide_pairs(self) -> Values:
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

    def log_weight(self, k: Values, rows: Indices) -> Values:
        mu, size = self.mu[rows, None], self.size[rows, None]
        positive = np.maximum(k, 1)
        total = positive + size
        # the probability of k is size / total times the binomial probability of size successes in total trials
        stirling = special.stirling_error(total) - special.stirling_error(size) - special.stirling_error(positive)
        weight = stirling + 0.5 * np.log(size / (2 * np.pi * positive * total)) - self._deviance(positive, mu, size)
        return np.where(k > 0, weight, -size * np.log1p(mu / size))

    def deviance(self, k: Values) -> Values:
        return self._deviance(k, self.mu, self.size)

    @staticmethod
    def _deviance(k: Values, mu: Values, size: Values) -> Values:
        """Return k log(k / mu) - (k + size) log((k + size) / (mu + size)), without cancellation."""
        share = (k + size) / (mu + size)
        successes = size * share * special.log_ratio_excess((mu - k) / (k + size))
        failures = mu * share * special.log_ratio_excess(size * (k - mu) / ((k + size) * mu))
        return np.asarray(successes + failures)

    def sample(self, rng: Random, size: int) -> Values:
        rate = rng.gamma(self.size[:, None], 1.0, (len(self), size)) / self.size[:, None] * self.mu[:, None]
        return np.asarray(rng.poisson(rate, (len(self), size)), dtype=np.float64)

    def parameters(self) -> tuple[str, dict[str, Values]]:
        return "nbinom:pymc", {"mu": self.mu, "alpha": self.size}

    def describe(self) -> list[str]:
        return special.describe_parameters("NB(mean {}, std {})", self.mu, self.std())


def _from_probability(size: Values, success: Values, names: tuple[str, str]) -> NegativeBinomial:
    """Return the distributions of scipy's (n, p): failures before the n-th success with success probability p."""
    require_positive(names[0], size)
    require_moderate(names[1], success)
    require(names[1], (success > 0) & (success < 1), "must be strictly between 0 and 1")
    with np.errstate(over="ignore"):  # infinite means are rejected by the family
        return NegativeBinomial(mu=size * (1 - success) / success, size=size)


def nbinom_from_torch(total_count: Values, probs: Values) -> NegativeBinomial:
    """Return the distributions as torch.distributions.NegativeBinomial with probs."""
    return _from_probability(total_count, 1 - probs, ("total_count", "probs"))


def nbinom_from_logits(total_count: Values, logits: Values) -> NegativeBinomial:
    """Return the distributions as torch.distributions.NegativeBinomial with logits."""
    require_positive("total_count", total_count)
    require_moderate("logits", logits)
    with np.errstate(over="ignore"):
        mu = total_count * np.exp(logits)
    require("logits", np.isfinite(mu) & (mu > 0), "must be log odds of a probability strictly between 0 and 1")
    return NegativeBinomial(mu=mu, size=total_count)


def nbinom_from_scipy(n: Values, p: Values) -> NegativeBinomial:
    """Return the distributions as scipy.stats.nbinom(n, p)."""
    return _from_probability(n, p, ("n", "p"))


def nbinom_from_mu_alpha(mu: Values, alpha: Values) -> NegativeBinomial:
    """Return the distributions with variance mu + alpha mu^2."""
    require_positive("mu", mu)
    require_positive("alpha", alpha)
    return NegativeBinomial(mu=mu, size=1 / alpha)


def nbinom_from_pymc(mu: Values, alpha: Values) -> NegativeBinomial:
    """Return the distributions with variance mu + mu^2 / alpha."""
    require_positive("mu", mu)
    require_positive("alpha", alpha)
    return NegativeBinomial(mu=mu, size=alpha)


@dataclass(frozen=True, eq=False)
class DoublePoisson(Counts):
    """Double Poisson distributions with exactly normalized probabilities.

    The probabilities are proportional to e^-k k^k / k! (e mu / k)^(phi k). The usual factor phi^(1/2) e^(-phi mu) is
    only approximate (the sum is 0.754 at mu = 0.5, phi = 3); here the normalization is computed by summation.

    If the mass function is smooth at the scale of the spread, a sum over k <= y is the integral up to y + 1/2 minus
    1/24 of the integrand's slope there. For spreads >= 100, the error of the distribution function is below 2e-11.
    """

    family: ClassVar[str] = "double-poisson"
    template: ClassVar[str] = "DoublePoisson(mu {}, phi {})"
    mu: Values  # (n,), locations, > 0, at most 2^53; the mean is about mu
    # (n,), inverse dispersions, from 1e-75 to 1e75; the variance is about mu / phi. 1 is the Poisson distribution
    phi: Values

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        self.require_countable("mu", self.mu)
        require_positive("phi", self.phi)

    def mode(self) -> Values:
        return self.mu

    def deviance(self, k: Values) -> Values:
        return self.phi * special.deviance_term(k, self.mu)

    def spread(self) -> Values:
        return np.sqrt(self.mu / self.phi)

    def is_wide(self) -> Mask:
        return self.smooth()

    def wide_below(self, last: Values) -> Values:
        lower, upper = self._tails(last)[0]
        return np.asarray(np.where(last < self.mu, lower, 1 - upper))

    def wide_shortfall(self, y: Values) -> Values:
        lower, upper = self._tails(y)[1]
        return np.asarray(np.where(y < self.mu, lower, -upper))

    def wide_pairs(self) -> Values:
        """Return the sum of F (1 - F) as an integral; the slope terms are f^2 / 12 after integration by parts."""
        (lower, upper), _ = self._sums
        k = self._limits
        return np.asarray((k[:, 1] - k[:, 0]) * np.sum(lower * upper - self._weighted_masses(k)[0] ** 2 / 12, axis=1))

    def wide_quantiles(self, p: Values) -> Values:
        """Return quantiles by cubic interpolation in the normal scores; the relation is nearly linear."""
        (lower, upper), _ = self._sums
        scores = np.where(lower < upper, sc.ndtri(lower), -sc.ndtri(upper))
        quantiles = np.empty(p.shape)
        for row, (k, at, mass, levels) in enumerate(
            zip(self._limits, scores, self._weighted_masses(self._limits)[0], sc.ndtri(p), strict=True)
        ):
            known = np.isfinite(at) & (mass > 0)
            slopes = np.exp(-(at[known] ** 2) / 2) / np.sqrt(2 * np.pi) / mass[known]
            quantiles[row] = _cubic(levels, at[known], k[known] - 0.5, slopes)
        return np.maximum(np.ceil(quantiles), 0)

    @cached_property
    def _mean(self) -> Values:
        return self.mean()

    @cached_property
    def _limits(self) -> Values:
        """Equidistant limits of the pieces of the integrals, (n, w)."""
        return np.asarray(self.mu[:, None] + self.spread()[:, None] * np.linspace(-REACH, REACH, 2 * REACH * CUTS + 1))

    @cached_property
    def _sums(self) -> Values:
        """Integrals of f and (mean - k) f below and above each limit of the pieces, (2, 2, n, w)."""
        k = self._limits
        half = np.diff(k, axis=1)[:, :, None] / 2
        nodes = (k[:, :-1, None] + half * (1 + NODES)).reshape(len(k), -1)
        pieces = (self._weighted_masses(nodes).reshape(2, *half.shape[:2], -1) * half) @ WEIGHTS
        below = np.cumsum(pieces, axis=2)
        above = np.cumsum(pieces[:, :, ::-1], axis=2)[:, :, ::-1]
        return np.stack([np.pad(below, ((0, 0), (0, 0), (1, 0))), np.pad(above, ((0, 0), (0, 0), (0, 1)))], axis=1)

    def _weighted_masses(self, k: Values) -> Values:
        """Return f and (mean - k) f at k (n, w), where f extends the mass function to real numbers, (2, n, w)."""
        mass = np.exp(self.log_weight(k, np.arange(len(self))) - self._log_totals[:, None])
        return np.stack([mass, (self._mean[:, None] - k) * mass])

    def _tails(self, y: Values) -> Values:
        """Return the sums of f and (mean - k) f over k <= y and over k > y, (2, 2, n)."""
        rows, k = np.arange(len(self)), self._limits
        edge = np.clip(y + 0.5, k[:, 0], k[:, -1])
        place = np.clip(np.floor((edge - k[:, 0]) / (k[:, 1] - k[:, 0])), 0, k.shape[1] - 2).astype(np.intp)
        half = (edge - k[rows, place])[:, None] / 2
        beyond = (self._weighted_masses(k[rows, place, None] + half * (1 + NODES)) * half) @ WEIGHTS
        around = self._weighted_masses(np.stack([y, y + 1], axis=1))
        beyond -= (around[..., 1] - around[..., 0]) / 24
        return self._sums[:, :, rows, place] + np.stack([beyond, -beyond], axis=1)

    def log_weight(self, k: Values, rows: Indices) -> Values:
        positive = np.maximum(k, 1)
        stirling = special.stirling_error(positive) + 0.5 * np.log(2 * np.pi * positive)  # e^-k k^k / k! = e^-stirling
        return -self.phi[rows, None] * special.deviance_term(k, self.mu[rows, None]) - np.where(k > 0, stirling, 0.0)


def _cubic(x: Values, places: Values, values: Values, slopes: Values) -> Values:
    """Return cubic Hermite interpolation of values and slopes at x, (s,), constant outside the range of the nodes."""
    left = np.clip(np.searchsorted(places, x) - 1, 0, len(places) - 2)
    width = places[left + 1] - places[left]
    share = np.clip((x - places[left]) / width, 0, 1)
    rest = 1 - share
    bends = rest * slopes[left] - share * slopes[left + 1]
    inner = values[left] * (1 + 2 * share) * rest**2 + values[left + 1] * (3 - 2 * share) * share**2
    return np.asarray(inner + width * share * rest * bends)
