"""Double Poisson predictive distributions, normalised."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.predictive.base import Convention
from calcheck.predictive.counts import Counts
from calcheck.predictive.special import divergence, stirling_error
from calcheck.predictive.words import each

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)  # over a tail, or all of a distribution
REACH, PLACES = 10, 8  # of a table of places: spreads from the centre, and places a spread


@dataclass(frozen=True, eq=False)
class DoublePoisson(Counts):
    """Double Poisson distributions, with masses that sum to 1.

    The masses are proportional to e^-k k^k / k! (e mu / k)^(phi k). Their usual factor phi^(1/2) e^(-phi mu) normalises
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

    def centre(self) -> NDArray[np.float64]:
        return self.mu

    def rate(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.phi * divergence(k, self.mu)

    def spread(self) -> NDArray[np.float64]:
        return np.sqrt(self.mu / self.phi)

    def wide(self) -> NDArray[np.bool_]:
        return self.smooth()

    def wide_below(self, last: NDArray[np.float64]) -> NDArray[np.float64]:
        lower, upper = self._tails(last, np.ones_like)
        return np.where(last < self.mu, lower, 1 - upper)

    def wide_shortfall(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = self._mean[:, None]
        lower, upper = self._tails(y, lambda k: mean - k)
        return np.where(y < self.mu, lower, -upper)

    def wide_pairs(self) -> NDArray[np.float64]:
        """Sum F (1 - F), which is smooth on the scale of the spread."""
        _, lower, upper, _ = self._table
        return self.spread() / PLACES * np.sum(lower * upper, axis=1)

    def wide_quantiles(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Interpolate values cubically by their normal scores, in which they are nearly linear."""
        from scipy.special import ndtri

        k, lower, upper, density = self._table
        scores = np.where(lower < upper, ndtri(lower), -ndtri(upper))
        found = np.empty(p.shape)
        for row, (places, at, mass, levels) in enumerate(zip(k, scores, density, ndtri(p), strict=True)):
            known = np.isfinite(at) & (mass > 0)
            slopes = np.exp(-(at[known] ** 2) / 2) / np.sqrt(2 * np.pi) / mass[known]
            found[row] = _cubic(levels, at[known], places[known], slopes)
        return np.maximum(np.ceil(found), 0)

    @cached_property
    def _mean(self) -> NDArray[np.float64]:
        return self.mean()

    @cached_property
    def _table(self) -> tuple[NDArray[np.float64], ...]:
        """Values at equal distances, (n, w), what lies below each and above, and masses there."""
        k = self.mu[:, None] + self.spread()[:, None] * np.arange(-REACH * PLACES, REACH * PLACES + 1) / PLACES
        k = np.maximum(k, 1)
        sides = [np.stack(self._tails(column, np.ones_like), axis=1) for column in k.T]
        lower, upper = np.stack(sides, axis=2).transpose(1, 0, 2)
        density = np.exp(self.log_weight(k, np.arange(len(self))) - self._log_totals[:, None])
        return k, lower, upper, density

    def _tails(
        self, y: NDArray[np.float64], of: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sum a function of k (n, w), times the masses, over k <= y and over k > y; of any y, (n,) each."""
        rows = np.arange(len(self))

        def weighed(k: NDArray[np.float64]) -> NDArray[np.float64]:
            return of(k) * np.exp(self.log_weight(k, rows) - self._log_totals[:, None])

        low, high = self._ends
        edge = np.clip(y + 0.5, low, high)
        around = weighed(np.stack([y, y + 1], axis=1))
        slope = (around[:, 1] - around[:, 0]) / 24
        sums = []
        for start, stop in ((low, edge), (edge, high)):
            half = (stop - start)[:, None] / 2
            sums.append(half[:, 0] * (weighed(start[:, None] + half * (1 + NODES)) @ WEIGHTS))
        return sums[0] - slope, sums[1] + slope

    @cached_property
    def _ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.support(self._stride())

    def log_weight(self, k: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        positive = np.maximum(k, 1)
        stirling = stirling_error(positive) + 0.5 * np.log(2 * np.pi * positive)  # e^-k k^k / k! is e^-stirling
        return -self.phi[rows, None] * divergence(k, self.mu[rows, None]) - np.where(k > 0, stirling, 0.0)

    def in_words(self) -> list[str]:
        return each("DoublePoisson(mu {}, phi {})", self.mu, self.phi)


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
