"""Double Poisson predictive distributions with the exact normalization."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.counts import Counts
from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.special import deviance_term, stirling_error
from calcheck.validation import require_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

REACH, CUTS = 10, 8  # Range of integrals on each side of mu, and pieces, per spread
NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)  # Quadrature rule of a piece


@dataclass(frozen=True, eq=False)
class DoublePoisson(Counts):
    """Double Poisson distributions with exactly normalized probabilities.

    The probabilities are proportional to e^-k k^k / k! (e mu / k)^(phi k). The usual factor phi^(1/2) e^(-phi mu) is
    only approximate (the sum is 0.754 at mu = 0.5, phi = 3); here the normalization is computed by summation.

    Parameters
    ----------
    mu : (n,)
        Locations, > 0, at most 2^53; the mean is about mu.
    phi : (n,)
        Inverse dispersions, from 1e-75 to 1e75; the variance is about mu / phi. 1 is the Poisson distribution.

    Raises
    ------
    ValuesError
        A parameter is not positive, or out of range.

    Notes
    -----
    If the mass function is smooth at the scale of the spread, a sum over k <= y is the integral up to y + 1/2 minus
    1/24 of the integrand's slope there. For spreads >= 100, the error of the distribution function is below 2e-11.
    """

    family: ClassVar[str] = "double-poisson"
    mu: NDArray[np.float64]
    phi: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        self.require_countable("mu", self.mu)
        require_positive("phi", self.phi)

    def mode(self) -> NDArray[np.float64]:
        return self.mu

    def rate(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.phi * deviance_term(k, self.mu)

    def spread(self) -> NDArray[np.float64]:
        return np.sqrt(self.mu / self.phi)

    def is_wide(self) -> NDArray[np.bool_]:
        return self.smooth()

    def wide_below(self, last: NDArray[np.float64]) -> NDArray[np.float64]:
        lower, upper = self._tails(last)[0]
        return np.asarray(np.where(last < self.mu, lower, 1 - upper))

    def wide_shortfall(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        lower, upper = self._tails(y)[1]
        return np.asarray(np.where(y < self.mu, lower, -upper))

    def wide_pairs(self) -> NDArray[np.float64]:
        """Return the sum of F (1 - F) as an integral; the slope terms are f^2 / 12 after integration by parts."""
        (lower, upper), _ = self._sums
        k = self._limits
        return np.asarray((k[:, 1] - k[:, 0]) * np.sum(lower * upper - self._weighted_masses(k)[0] ** 2 / 12, axis=1))

    def wide_quantiles(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return quantiles by cubic interpolation in the normal scores; the relation is nearly linear."""
        from scipy.special import ndtri

        (lower, upper), _ = self._sums
        scores = np.where(lower < upper, ndtri(lower), -ndtri(upper))
        quantiles = np.empty(p.shape)
        for row, (k, at, mass, levels) in enumerate(
            zip(self._limits, scores, self._weighted_masses(self._limits)[0], ndtri(p), strict=True)
        ):
            known = np.isfinite(at) & (mass > 0)
            slopes = np.exp(-(at[known] ** 2) / 2) / np.sqrt(2 * np.pi) / mass[known]
            quantiles[row] = _cubic(levels, at[known], k[known] - 0.5, slopes)
        return np.maximum(np.ceil(quantiles), 0)

    @cached_property
    def _mean(self) -> NDArray[np.float64]:
        return self.mean()

    @cached_property
    def _limits(self) -> NDArray[np.float64]:
        """Equidistant limits of the pieces of the integrals, (n, w)."""
        return np.asarray(self.mu[:, None] + self.spread()[:, None] * np.linspace(-REACH, REACH, 2 * REACH * CUTS + 1))

    @cached_property
    def _sums(self) -> NDArray[np.float64]:
        """Integrals of f and (mean - k) f below and above each limit of the pieces, (2, 2, n, w)."""
        k = self._limits
        half = np.diff(k, axis=1)[:, :, None] / 2
        nodes = (k[:, :-1, None] + half * (1 + NODES)).reshape(len(k), -1)
        pieces = (self._weighted_masses(nodes).reshape(2, *half.shape[:2], -1) * half) @ WEIGHTS
        below = np.cumsum(pieces, axis=2)
        above = np.cumsum(pieces[:, :, ::-1], axis=2)[:, :, ::-1]
        return np.stack([np.pad(below, ((0, 0), (0, 0), (1, 0))), np.pad(above, ((0, 0), (0, 0), (0, 1)))], axis=1)

    def _weighted_masses(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return f and (mean - k) f at k (n, w), where f extends the mass function to real numbers, (2, n, w)."""
        mass = np.exp(self.log_weight(k, np.arange(len(self))) - self._log_totals[:, None])
        return np.stack([mass, (self._mean[:, None] - k) * mass])

    def _tails(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of f and (mean - k) f over k <= y and over k > y, (2, 2, n)."""
        rows, k = np.arange(len(self)), self._limits
        edge = np.clip(y + 0.5, k[:, 0], k[:, -1])
        place = np.clip(np.floor((edge - k[:, 0]) / (k[:, 1] - k[:, 0])), 0, k.shape[1] - 2).astype(np.intp)
        half = (edge - k[rows, place])[:, None] / 2
        beyond = (self._weighted_masses(k[rows, place, None] + half * (1 + NODES)) * half) @ WEIGHTS
        around = self._weighted_masses(np.stack([y, y + 1], axis=1))
        beyond -= (around[..., 1] - around[..., 0]) / 24
        return self._sums[:, :, rows, place] + np.stack([beyond, -beyond], axis=1)

    def log_weight(self, k: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        positive = np.maximum(k, 1)
        stirling = stirling_error(positive) + 0.5 * np.log(2 * np.pi * positive)  # e^-k k^k / k! = e^-stirling
        return -self.phi[rows, None] * deviance_term(k, self.mu[rows, None]) - np.where(k > 0, stirling, 0.0)

    def describe(self) -> list[str]:
        return describe_parameters("DoublePoisson(mu {}, phi {})", self.mu, self.phi)


def _cubic(
    x: NDArray[np.float64], places: NDArray[np.float64], values: NDArray[np.float64], slopes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return cubic Hermite interpolation of values and slopes at x, (s,), constant outside the range of the nodes."""
    left = np.clip(np.searchsorted(places, x) - 1, 0, len(places) - 2)
    width = places[left + 1] - places[left]
    share = np.clip((x - places[left]) / width, 0, 1)
    rest = 1 - share
    bends = rest * slopes[left] - share * slopes[left + 1]
    inner = values[left] * (1 + 2 * share) * rest**2 + values[left + 1] * (3 - 2 * share) * share**2
    return np.asarray(inner + width * share * rest * bends)
