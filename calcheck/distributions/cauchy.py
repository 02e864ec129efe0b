"""Cauchy predictive distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from calcheck.distributions.continuous import LocationScale
from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.kernel_means import in_lengths
from calcheck.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random


@dataclass(frozen=True, eq=False)
class Cauchy(LocationScale):
    """Cauchy distributions; their means and standard deviations do not exist.

    Parameters
    ----------
    loc : (n,)
        Medians, in the unit of the targets.
    scale : (n,)
        Half widths at half maximum, > 0, in the unit of the targets.
    """

    family: ClassVar[str] = "cauchy"

    def mean(self) -> NDArray[np.float64]:
        self._raise_undefined("mean")

    def std(self) -> NDArray[np.float64]:
        self._raise_undefined("standard deviation")

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scale (z (2 F(z) - 1) - log((1 + z^2) / 4) / pi), which is finite although there is no mean."""
        z = self.standardize(y)
        centered = 2 * np.arctan(z) / np.pi
        return np.asarray(self.scale * (z * centered - 2 * np.log(np.hypot(1, z) / 2) / np.pi))

    def _raise_undefined(self, what: str) -> NoReturn:
        msg = f"a cauchy distribution has no {what}"
        raise DataError(msg)

    def standard_cdf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.arctan2(1, -z) / np.pi)  # accurate for small probabilities

    def standard_log_density(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(-2 * np.log(np.hypot(1, z)) - np.log(np.pi))

    def standard_quantile(self, p: NDArray[np.float64] | float) -> NDArray[np.float64]:
        p = np.asarray(p, dtype=np.float64)
        return np.asarray(np.where(p < 1 / 2, -1 / np.tan(np.pi * p), 1 / np.tan(np.pi * (1 - p))))

    def standard_draws(self, rng: Random, size: int) -> NDArray[np.float64]:
        return rng.standard_cauchy((len(self), size))

    def kernel_mean(self, points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Re w((d + i scale) sqrt(gamma)) with d = p - loc and the Faddeeva function w: a Voigt profile."""
        from scipy.special import wofz

        away = in_lengths(points[:, 0] - self.loc[:, None], gamma[..., 0])
        return np.asarray(wofz(away + 1j * in_lengths(self.scale[:, None], gamma[..., 0])).real)

    def kernel_norm(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import erfcx

        return np.asarray(erfcx(2 * in_lengths(self.scale, gamma[0])))  # Y - Y' is Cauchy with twice the scale

    def describe(self) -> list[str]:
        return describe_parameters("Cauchy({}, {})", self.loc, self.scale)
