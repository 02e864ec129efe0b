"""Double Poisson predictive distributions, normalized."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.base import Convention
from calcheck.distributions.counts import Counts
from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.special import deviance_term, stirling_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

REACH, CUTS = 10, 8  # of integrals: spreads from the centre, and pieces a spread
NODES, WEIGHTS = np.polynomial.legendre.leggauss(6)  # of a piece


@dataclass(frozen=True, eq=False)
class DoublePoisson(Counts):
    """Double Poisson distributions, with masses that sum to 1.

    The masses are proportional to e^-k k^k / k! (e mu / k)^(phi k). Their usual factor phi^(1/2) e^(-phi mu) normalizes
    them approximately only (0.754 instead of 1 at mu = 0.5, phi = 3); here they are summed.

    Parameters
    ----------
    mu : (n,)
        Locations, > 0, at most 2^53; the mean is about mu.
    phi : (n,)
        Inverse dispersions, from 1e-100 to 1e100; the variance is about mu / phi. 1 is the Poisson distribution.

    Raises
    ------
    ValuesError
        A parameter is not a positive number, or a location so large that floats do not hold the counts.

    Notes
    -----
    Where masses are smooth on the scale of the spread, a sum over k <= y is the integral up to y + 1/2 less a 24th of
    the integrand's slope there: within 2e-11 of the distribution function from a spread of 100 on.
    """

    family: ClassVar[str] = "double-poisson"
    mu: NDArray[np.float64]
    phi: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        self.require_countable("mu", self.mu)
        self.require_moderate("phi", self.phi)

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
        """Sum F (1 - F), which is smooth on the scale of the spread; slopes take f^2 / 12 from it, after parts."""
        (lower, upper), _ = self._sums
        k = self._places
        return np.asarray((k[:, 1] - k[:, 0]) * np.sum(lower * upper - self._weighed(k)[0] ** 2 / 12, axis=1))

    def wide_quantiles(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Interpolate values cubically by their normal scores, in which they are nearly linear."""
        from scipy.special import ndtri

        (lower, upper), _ = self._sums
        scores = np.where(lower < upper, ndtri(lower), -ndtri(upper))
        found = np.empty(p.shape)
        for row, (k, at, mass, levels) in enumerate(
            zip(self._places, scores, self._weighed(self._places)[0], ndtri(p), strict=True)
        ):
            known = np.isfinite(at) & (mass > 0)
            slopes = np.exp(-(at[known] ** 2) / 2) / np.sqrt(2 * np.pi) / mass[known]
            found[row] = _cubic(levels, at[known], k[known] - 0.5, slopes)
        return np.maximum(np.ceil(found), 0)

    @cached_property
    def _mean(self) -> NDArray[np.float64]:
        return self.mean()

    @cached_property
    def _places(self) -> NDArray[np.float64]:
        """Places between which integrals are cut, at equal distances over all that matters, (n, w)."""
        return np.asarray(self.mu[:, None] + self.spread()[:, None] * np.linspace(-REACH, REACH, 2 * REACH * CUTS + 1))

    @cached_property
    def _sums(self) -> NDArray[np.float64]:
        """Integrals below each place and above, of masses and of (mean - k) times them, (2, 2, n, w)."""
        k = self._places
        half = np.diff(k, axis=1)[:, :, None] / 2
        nodes = (k[:, :-1, None] + half * (1 + NODES)).reshape(len(k), -1)
        pieces = (self._weighed(nodes).reshape(2, *half.shape[:2], -1) * half) @ WEIGHTS
        below = np.cumsum(pieces, axis=2)
        above = np.cumsum(pieces[:, :, ::-1], axis=2)[:, :, ::-1]
        return np.stack([np.pad(below, ((0, 0), (0, 0), (1, 0))), np.pad(above, ((0, 0), (0, 0), (0, 1)))], axis=1)

    def _weighed(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return masses at k (n, w), continued between whole numbers, and (mean - k) times them, (2, n, w)."""
        mass = np.exp(self.log_weight(k, np.arange(len(self))) - self._log_totals[:, None])
        return np.stack([mass, (self._mean[:, None] - k) * mass])

    def _tails(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum masses, and (mean - k) times them, over k <= y and over k > y; (2, 2, n)."""
        rows, k = np.arange(len(self)), self._places
        edge = np.clip(y + 0.5, k[:, 0], k[:, -1])
        place = np.clip(np.floor((edge - k[:, 0]) / (k[:, 1] - k[:, 0])), 0, k.shape[1] - 2).astype(np.intp)
        half = (edge - k[rows, place])[:, None] / 2
        beyond = (self._weighed(k[rows, place, None] + half * (1 + NODES)) * half) @ WEIGHTS
        around = self._weighed(np.stack([y, y + 1], axis=1))
        beyond -= (around[..., 1] - around[..., 0]) / 24
        return self._sums[:, :, rows, place] + np.stack([beyond, -beyond], axis=1)

    def log_weight(self, k: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        positive = np.maximum(k, 1)
        stirling = stirling_error(positive) + 0.5 * np.log(2 * np.pi * positive)  # e^-k k^k / k! is e^-stirling
        return -self.phi[rows, None] * deviance_term(k, self.mu[rows, None]) - np.where(k > 0, stirling, 0.0)

    def describe(self) -> list[str]:
        return describe_parameters("DoublePoisson(mu {}, phi {})", self.mu, self.phi)


def _cubic(
    x: NDArray[np.float64], places: NDArray[np.float64], values: NDArray[np.float64], slopes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Interpolate by cubic polynomials with the values and slopes that are known, held beyond; (s,)."""
    left = np.clip(np.searchsorted(places, x) - 1, 0, len(places) - 2)
    width = places[left + 1] - places[left]
    share = np.clip((x - places[left]) / width, 0, 1)
    rest = 1 - share
    bends = rest * slopes[left] - share * slopes[left + 1]
    inner = values[left] * (1 + 2 * share) * rest**2 + values[left + 1] * (3 - 2 * share) * share**2
    return np.asarray(inner + width * share * rest * bends)


CONVENTIONS = (
    Convention(
        family="double-poisson",
        name="",
        parameters={"mu": ("mu",), "phi": ("phi",)},
        build=DoublePoisson,
        meaning="location mu, inverse dispersion phi: variance about mu / phi",
    ),
)
