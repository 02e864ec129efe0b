"""Laplace predictive distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.continuous import LocationScale
from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.kernel_means import STEEPEST, exponential_kernel_mean, in_lengths
from calcheck.distributions.moments import exponential_moments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random

FARTHEST = 750.0  # Distance beyond which densities are 0
SERIES_FROM = 50.0  # A from which the series is used: 5 terms are accurate to 1e-15, the closed form still to 1e-12


@dataclass(frozen=True, eq=False)
class Laplace(LocationScale):
    """Laplace distributions with density exp(-|y - loc| / scale) / (2 scale).

    Parameters
    ----------
    loc : (n,)
        Means and medians, in the unit of the targets.
    scale : (n,)
        Mean absolute deviations b, > 0; the standard deviations are sqrt(2) b.
    """

    family: ClassVar[str] = "laplace"

    def std(self) -> NDArray[np.float64]:
        return np.asarray(np.sqrt(2) * self.scale)

    @property
    def has_standard_form(self) -> bool:
        return True

    def standard_cdf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        tail = np.exp(-np.abs(z)) / 2
        return np.asarray(np.where(z < 0, tail, 1 - tail))

    def standard_log_density(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(-np.abs(z) - np.log(2))

    def standard_quantile(self, p: NDArray[np.float64] | float) -> NDArray[np.float64]:
        p = np.asarray(p, dtype=np.float64)
        with np.errstate(divide="ignore"):  # one of both sides, which is not used
            return np.asarray(np.where(p < 1 / 2, np.log(2 * p), -np.log(2 * (1 - p))))

    def standard_moments(self, order: int) -> NDArray[np.float64]:
        """Return k! for even k and 0 for odd k, (order + 1,)."""
        return np.where(np.arange(order + 1) % 2 == 0, exponential_moments(order), 0.0)

    def standard_partial_mean(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        away = np.minimum(np.abs(z), FARTHEST)
        return np.asarray(-(1 + away) * np.exp(-away) / 2)

    def standard_draws(self, rng: Random, size: int) -> NDArray[np.float64]:
        return rng.laplace(size=(len(self), size))

    def describe(self) -> list[str]:
        return describe_parameters("Laplace({}, {})", self.loc, self.scale)

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        from scoringrules import crps_laplace

        return np.asarray(crps_laplace(y, self.loc, self.scale, backend="numpy"))

    def kinks(self) -> NDArray[np.float64]:
        return self.loc[:, None]

    def kernel_mean(self, points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        away, scale, gamma = points[:, 0] - self.loc[:, None], self.scale[:, None], gamma[..., 0]
        sides = [exponential_kernel_mean(sign * away, scale, gamma) for sign in (1, -1)]
        return (sides[0] + sides[1]) / 2

    def kernel_norm(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return E exp(-gamma u^2) for u = Y - Y', which has the density (1 + |u| / b) exp(-|u| / b) / (4 b)."""
        one_sided = exponential_kernel_mean(np.zeros(1), self.scale, gamma[0])  # E
        steep = 1 / (2 * np.maximum(in_lengths(self.scale, gamma[0]), 1 / STEEPEST))  # A
        x = 1 / (2 * np.maximum(steep, SERIES_FROM) ** 2)
        series = 1 - x * (3 - x * (15 - x * (105 - x * 945)))
        closed = 2 * np.minimum(steep, SERIES_FROM) ** 2 * (1 - one_sided)
        return np.asarray(one_sided + np.where(steep >= SERIES_FROM, series, closed)) / 2
