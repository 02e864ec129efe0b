"""Double Poisson predictive distributions, normalised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.checks import require_positive
from calcheck.predictive.base import Convention
from calcheck.predictive.counts import Counts
from calcheck.predictive.special import divergence, stirling_error
from calcheck.predictive.words import each

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class DoublePoisson(Counts):
    """Double Poisson distributions, with masses that sum to 1.

    The masses are proportional to e^-k k^k / k! (e mu / k)^(phi k). Their usual factor phi^(1/2) e^(-phi mu) normalises
    them approximately only (0.754 instead of 1 at mu = 0.5, phi = 3); here they are summed.

    Parameters
    ----------
    mu : (n,)
        Locations, > 0; the mean is about mu.
    phi : (n,)
        Inverse dispersions, > 0; the variance is about mu / phi. 1 is the Poisson distribution.

    Raises
    ------
    ValuesError
        A parameter is not a positive number.
    """

    family: ClassVar[str] = "double-poisson"
    mu: NDArray[np.float64]
    phi: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_positive("mu", self.mu)
        require_positive("phi", self.phi)

    def centre(self) -> NDArray[np.float64]:
        return self.mu

    def rate(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.phi * divergence(k, self.mu)

    def log_weight(self, k: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        positive = np.maximum(k, 1)
        stirling = stirling_error(positive) + 0.5 * np.log(2 * np.pi * positive)  # e^-k k^k / k! is e^-stirling
        return -self.phi[rows, None] * divergence(k, self.mu[rows, None]) - np.where(k > 0, stirling, 0.0)

    def in_words(self) -> list[str]:
        return each("DoublePoisson(mu {}, phi {})", self.mu, self.phi)


CONVENTIONS = (
    Convention(
        family="double-poisson",
        name="",
        parameters={"mu": ("mu",), "phi": ("phi",)},
        build=DoublePoisson,
        meaning="location mu, inverse dispersion phi: variance about mu / phi",
    ),
)
