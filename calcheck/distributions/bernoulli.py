"""Bernoulli distributions of whether something happens, such as a target inside its prediction interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.base import Predictive
from calcheck.distributions.formatting import describe_parameters
from calcheck.validation import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random


@dataclass(frozen=True, eq=False)
class Bernoulli(Predictive):
    """Distributions on 0 and 1.

    Parameters
    ----------
    probability : (n,)
        Probabilities of 1, in (0, 1).

    Raises
    ------
    ValuesError
        A probability is not in (0, 1).
    """

    family: ClassVar[str] = "bernoulli"
    is_discrete: ClassVar[bool] = True
    probability: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.hold_in_double()
        require("probability", (self.probability > 0) & (self.probability < 1), "must lie strictly between 0 and 1")

    def validate_targets(self, y: NDArray[np.float64]) -> None:
        require("y", (y == 0) | (y == 1), "must be 0 or 1")

    def mean(self) -> NDArray[np.float64]:
        return self.probability

    def std(self) -> NDArray[np.float64]:
        return np.sqrt(self.probability * (1 - self.probability))

    def raw_moments(self, order: int) -> NDArray[np.float64]:
        return np.where(np.arange(order + 1) == 0, 1.0, self.probability[:, None])

    def cdf(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(y < 0, 0.0, np.where(y < 1, 1 - self.probability, 1.0))

    def cdf_left(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(y <= 0, 0.0, np.where(y <= 1, 1 - self.probability, 1.0))

    def log_prob(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(y == 1, np.log(self.probability), np.where(y == 0, np.log1p(-self.probability), -np.inf))

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return E|Y - y| - E|Y - Y'| / 2, (n,)."""
        p = self.probability
        return p * np.abs(1 - y) + (1 - p) * np.abs(y) - p * (1 - p)

    def quantile(self, p: float) -> NDArray[np.float64]:
        return np.where(p > 1 - self.probability, 1.0, 0.0)

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        return (rng.random((len(self), size)) < self.probability[:, None]).astype(np.float64)

    def kernel_mean(self, points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        at_zero, at_one = (np.exp(-gamma[..., 0] * (points[:, 0] - value) ** 2) for value in (0, 1))
        return np.asarray(at_zero + self.probability[:, None] * (at_one - at_zero))

    def kernel_norm(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        p = self.probability
        return np.asarray(1 - 2 * p * (1 - p) * (1 - np.exp(-gamma[0])))

    def describe(self) -> list[str]:
        return describe_parameters("Bernoulli({})", self.probability)


class OpenBernoulli(Bernoulli):
    """Distributions on 0 and 1 of which some targets are not known: they count as 1 here."""
