"""Gaussian predictive distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.checks import require_finite, require_positive
from calcheck.predictive.base import Convention, Predictive

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Gaussian(Predictive):
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
    loc: NDArray[np.float64]
    scale: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_finite("mean", self.loc)
        require_positive("std", self.scale)

    def mean(self) -> NDArray[np.float64]:
        return self.loc

    def std(self) -> NDArray[np.float64]:
        return self.scale

    def cdf(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import ndtr

        return np.asarray(ndtr((y - self.loc) / self.scale))

    cdf_left = cdf

    def jump(self, y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        below = self.cdf(y)
        return below, below

    def log_prob(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(-0.5 * ((y - self.loc) / self.scale) ** 2 - np.log(self.scale) - 0.5 * np.log(2 * np.pi))

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        from scoringrules import crps_normal

        return np.asarray(crps_normal(y, self.loc, self.scale, backend="numpy"))

    def quantile(self, p: float) -> NDArray[np.float64]:
        from scipy.special import ndtri

        return np.asarray(self.loc + self.scale * float(ndtri(p)))

    def sample(self, rng: Generator, size: int) -> NDArray[np.float64]:
        return rng.normal(self.loc[:, None], self.scale[:, None], (len(self), size))

    def normal(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.loc[:, None], self.scale[:, None]

    def kernel_mean(self, points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        gamma = gamma[..., 0]  # () or (r,)
        spread = 1 + 2 * gamma * self.scale[:, None] ** 2  # (n, 1) or (n, r)
        away = points[:, 0] - self.loc[:, None]  # (n, r)
        return np.asarray(np.exp(-gamma * away**2 / spread) / np.sqrt(spread))

    def kernel_norm(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((1 + 4 * gamma[0] * self.scale**2) ** -0.5)


CONVENTIONS = (
    Convention(
        family="gaussian",
        name="",
        parameters={"loc": ("loc", "mean"), "scale": ("scale", "std")},
        build=Gaussian,
        meaning="mean loc, standard deviation scale",
    ),
)
