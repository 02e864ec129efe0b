"""Gaussian predictive distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.continuous import LocationScale
from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.kernel_means import in_lengths, normal_kernel_mean
from calcheck.distributions.moments import normal_moments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random


@dataclass(frozen=True, eq=False)
class Gaussian(LocationScale):
    """Normal distributions.

    Parameters
    ----------
    loc : (n,)
        Means, in the unit of the targets.
    scale : (n,)
        Standard deviations, > 0, in the unit of the targets.

    Raises
    ------
    ValuesError
        A value is not finite, or a standard deviation is not positive.
    """

    family: ClassVar[str] = "gaussian"
    names: ClassVar[tuple[str, str]] = ("mean", "std")

    def std(self) -> NDArray[np.float64]:
        return self.scale

    @property
    def has_standard_form(self) -> bool:
        return True

    def standard_cdf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import ndtr

        return np.asarray(ndtr(z))

    def standard_log_density(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(-0.5 * z**2 - 0.5 * np.log(2 * np.pi))

    def standard_quantile(self, p: NDArray[np.float64] | float) -> NDArray[np.float64]:
        from scipy.special import ndtri

        return np.asarray(ndtri(p))

    def standard_moments(self, order: int) -> NDArray[np.float64]:
        return normal_moments(order)

    def standard_partial_mean(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(-np.exp(self.standard_log_density(z)))

    def standard_draws(self, rng: Random, size: int) -> NDArray[np.float64]:
        return rng.standard_normal((len(self), size))

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        from scoringrules import crps_normal

        return self.map_batches(
            lambda part, rows: np.asarray(crps_normal(y[rows], part.loc, part.scale, backend="numpy"))
        )

    def normal(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.loc[:, None], self.scale[:, None]

    def kernel_mean(self, points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        return normal_kernel_mean(points[:, 0] - self.loc[:, None], self.scale[:, None], gamma[..., 0])

    def kernel_norm(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((1 + 4 * in_lengths(self.scale, gamma[0]) ** 2) ** -0.5)

    def describe(self) -> list[str]:
        return describe_parameters("N({}, {}²)", self.loc, self.scale)


@dataclass(frozen=True, eq=False)
class AssumedGaussian(Gaussian):
    """Normal distributions assumed for a file that gives means and standard deviations but no distribution family."""

    @property
    def shape_is_known(self) -> bool:
        return False
