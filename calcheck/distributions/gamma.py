"""Gamma predictive distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.quadrature import Positive
from calcheck.distributions.special import deviance_term, gamma_below, log_half_step, stirling_error
from calcheck.validation import require_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random

FAR = 5.0  # Distance from the mean in log y beyond which the direct formula of the density is accurate


@dataclass(frozen=True, eq=False)
class Gamma(Positive):
    """Gamma distributions on y > 0.

    Parameters
    ----------
    shape : (n,)
        Shapes, > 0.
    scale : (n,)
        Scales, > 0, in the unit of the targets; the mean is shape * scale.

    Raises
    ------
    ValuesError
        A value is not a positive number.
    """

    family: ClassVar[str] = "gamma"
    shape: NDArray[np.float64]
    scale: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_positive("shape", self.shape)
        require_positive("scale", self.scale)

    def mean(self) -> NDArray[np.float64]:
        return self.shape * self.scale

    def std(self) -> NDArray[np.float64]:
        return np.sqrt(self.shape) * self.scale

    def raw_moments(self, order: int) -> NDArray[np.float64]:
        """Return scale^k shape (shape + 1) … (shape + k - 1), (n, order + 1)."""
        factors = self.scale[:, None] * (self.shape[:, None] + np.arange(order))
        with np.errstate(over="ignore"):
            return np.cumprod(np.concatenate([np.ones((len(self), 1)), factors], axis=1), axis=1)

    def cdf(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return gamma_below(self.shape, np.maximum(y, 0) / self.scale)

    def log_prob(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log densities, (n,); at y = 0, inf for shape < 1, -log(scale) for shape 1, and -inf for shape > 1."""
        at_zero = np.select([self.shape < 1, self.shape == 1], [np.inf, -np.log(self.scale)], -np.inf)
        return np.where(y == 0, at_zero, super().log_prob(y))

    def log_density(self, y: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        shape, scale = self.shape[rows, None], self.scale[rows, None]
        constant = np.log(shape / (2 * np.pi)) / 2 - stirling_error(shape)
        # written as a Poisson probability with shape and rate exchanged, which is accurate for large shapes
        log_ratio = np.log(y) - np.log(scale) - np.log(shape)
        with np.errstate(over="ignore"):  # overflow to inf gives a density of 0
            near = deviance_term(shape, np.clip(y / scale, shape * np.exp(-FAR), shape * np.exp(FAR)))
            away = np.where(np.abs(log_ratio) < FAR, near, shape * (np.expm1(log_ratio) - log_ratio))
        return np.asarray(constant - away - np.log(y))

    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the closed form of M. Moller and M. Scheuerer (2015), rearranged to avoid cancellation of large terms.

        With z = y / scale and the standard density f, the CRPS in units of the scale is
        (z - shape) (2 F(z) - 1) + 2 z f(z) - Gamma(shape + 1/2) / (Gamma(shape) sqrt(pi)).
        """
        z = np.maximum(y, 0) / self.scale
        below = gamma_below(self.shape, z)
        away = deviance_term(self.shape, np.where(z > 0, z, 1))
        density = np.where(z > 0, np.sqrt(self.shape / (2 * np.pi)) * np.exp(-stirling_error(self.shape) - away), 0)
        pairs = np.sqrt(self.shape / np.pi) * np.exp(log_half_step(self.shape))
        return np.asarray((y - self.mean()) * (2 * below - 1) + self.scale * (2 * density - pairs))

    def quantile(self, p: float) -> NDArray[np.float64]:
        from scipy.special import gammaincinv

        return np.asarray(self.scale * gammaincinv(self.shape, p))

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        return rng.gamma(self.shape[:, None], self.scale[:, None], (len(self), size))

    def parameters(self) -> tuple[str, dict[str, NDArray[np.float64]]]:
        return "gamma:scipy", {"a": self.shape, "scale": self.scale}

    def describe(self) -> list[str]:
        return describe_parameters("Gamma(shape {}, scale {})", self.shape, self.scale)


def from_scipy(a: NDArray[np.float64], scale: NDArray[np.float64]) -> Gamma:
    """Return the distributions as scipy.stats.gamma(a, scale=scale)."""
    require_positive("a", a)
    return Gamma(shape=a, scale=scale)


def from_torch(concentration: NDArray[np.float64], rate: NDArray[np.float64]) -> Gamma:
    """Return the distributions as torch.distributions.Gamma."""
    require_positive("concentration", concentration)
    require_positive("rate", rate)
    return Gamma(shape=concentration, scale=1 / rate)
