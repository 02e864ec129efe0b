"""Poisson predictive distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.counts import WIDE_FROM, Counts
from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.special import deviance_term, gamma_below, stirling_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random


@dataclass(frozen=True, eq=False)
class Poisson(Counts):
    """Poisson distributions.

    Parameters
    ----------
    rate_ : (n,)
        Means, > 0, at most 2^53.

    Raises
    ------
    ValuesError
        A rate is not positive, or out of range.
    """

    family: ClassVar[str] = "poisson"
    normalized: ClassVar[bool] = True
    rate_: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        self.require_countable("rate", self.rate_)

    def mean(self) -> NDArray[np.float64]:
        return self.rate_

    def std(self) -> NDArray[np.float64]:
        return self.spread()

    def mode(self) -> NDArray[np.float64]:
        return self.rate_

    def spread(self) -> NDArray[np.float64]:
        return np.sqrt(self.rate_)

    def is_wide(self) -> NDArray[np.bool_]:
        return self.spread() >= WIDE_FROM

    def wide_below(self, last: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import pdtr

        return np.where(last < self.rate_, pdtr(last, self.rate_), 1 - gamma_below(last + 1, self.rate_))

    def wide_shortfall(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.rate_ * np.exp(self.log_prob(y))

    def wide_pairs(self) -> NDArray[np.float64]:
        """Return rate e^(-2 rate) (I_0(2 rate) + I_1(2 rate)) (T. Ramasubban, 1958, The mean difference)."""
        from scipy.special import i0e, i1e

        return np.asarray(self.rate_ * (i0e(2 * self.rate_) + i1e(2 * self.rate_)))

    def log_weight(self, k: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        positive = np.maximum(k, 1)
        stirling = stirling_error(positive) + 0.5 * np.log(2 * np.pi * positive)
        return -deviance_term(k, self.rate_[rows, None]) - np.where(k > 0, stirling, 0.0)

    def rate(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        return deviance_term(k, self.rate_)

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        return np.asarray(rng.poisson(self.rate_[:, None], (len(self), size)), dtype=np.float64)

    def parameters(self) -> tuple[str, dict[str, NDArray[np.float64]]]:
        return "poisson", {"rate": self.rate_}

    def describe(self) -> list[str]:
        return describe_parameters("Poisson({})", self.rate_)


def from_rate(rate: NDArray[np.float64]) -> Poisson:
    """Return the distributions with the given means."""
    return Poisson(rate)
