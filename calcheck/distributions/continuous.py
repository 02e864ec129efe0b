"""Closed forms of continuous predictive distributions, and the normal, Laplace and Cauchy families."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NoReturn, Self

import numpy as np

from calcheck.core.validation import require_moderate, require_positive
from calcheck.distributions.base import Predictive
from calcheck.distributions.formatting import describe_parameters
from calcheck.distributions.special import (
    STEEPEST,
    exponential_kernel_mean,
    exponential_moments,
    in_lengths,
    normal_kernel_mean,
    normal_moments,
    shifted_moments,
)
from calcheck.errors import DataError
from calcheck.typing import Values

if TYPE_CHECKING:
    from calcheck.distributions.row_random import Random

PART = 1 << 16  # Rows per batch: 0.5 MB per column


@dataclass(frozen=True, eq=False)
class Continuous(Predictive):
    """Distributions without atoms."""

    def cdf_left(self, y: Values) -> Values:
        return self.cdf(y)

    def cdf_limits(self, y: Values) -> tuple[Values, Values]:
        below = self.cdf(y)
        return below, below


@dataclass(frozen=True, eq=False)
class LocationScale(Continuous):
    """Distributions of loc + scale Z, where the family defines the standard form Z."""

    names: ClassVar[tuple[str, str]] = ("loc", "scale")
    """Names of the location and the scale in messages."""
    loc: Values  # (n,), locations, in the unit of the targets
    scale: Values  # (n,), scales, > 0, in the unit of the targets

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_moderate(self.names[0], self.loc)
        require_positive(self.names[1], self.scale)

    @abstractmethod
    def standard_cdf(self, z: Values) -> Values:
        """Return P(Z_i <= z_i), (n,)."""

    @abstractmethod
    def standard_log_density(self, z: Values) -> Values:
        """Return the log density of Z_i at z_i, (n,)."""

    @abstractmethod
    def standard_quantile(self, p: Values | float) -> Values:
        """Return the quantiles of Z_i at levels p, (n,), or in the shape of p if they are equal for all rows."""

    def standard_partial_mean(self, z: Values) -> Values:  # noqa: ARG002 - for overrides
        """Return the integral of x f_i(x) from -inf to z_i for the density f_i of Z_i, (n,), <= 0."""
        msg = f"distributions of the family {self.family} have no partial means"
        raise DataError(msg)

    @abstractmethod
    def standard_draws(self, rng: Random, size: int) -> Values:
        """Return ``size`` draws of each Z_i, (n, size)."""

    def standard_moments(self, order: int) -> Values:
        """Return E Z_i^k for k = 0, …, order, (order + 1,) if they are equal for all rows, else (n, order + 1)."""
        return super().raw_moments(order)

    def raw_moments(self, order: int) -> Values:
        return shifted_moments(self.loc, self.scale, self.standard_moments(order))

    def standardize(self, y: Values) -> Values:
        """Return (y_i - loc_i) / scale_i, (n,)."""
        return (y - self.loc) / self.scale

    @property
    def has_standard_form(self) -> bool:
        """Whether Z_i has the same distribution in all rows, symmetric and with a mean."""
        return False

    def rescale(self, shift: Values, factor: Values) -> Self:
        return replace(self, loc=self.loc + shift, scale=self.scale * factor)

    def spread(self) -> Values:
        return self.scale

    def mean(self) -> Values:
        return self.loc

    def median(self) -> Values:
        return self.loc

    def batches(self) -> Iterator[tuple[slice, Self]]:
        return iter(self._batches)

    @cached_property
    def _batches(self) -> list[tuple[slice, Self]]:
        """The batches, as views; statistics of them are cached as long as these distributions exist."""
        starts = range(0, len(self), PART)
        return [(rows, self._view(rows)) for rows in (slice(start, min(start + PART, len(self))) for start in starts)]

    def _view(self, rows: slice) -> Self:
        part = copy(self)  # skips validation, which was done for self
        for field in fields(self):
            object.__setattr__(part, field.name, getattr(self, field.name)[rows])
        return part

    def map_batches(self, of: Callable[[Self, slice], Values]) -> Values:
        if len(self) <= PART:
            return of(self, slice(None))
        values = np.empty(len(self))
        for rows, part in self.batches():
            values[rows] = of(part, rows)
        return values

    def cdf(self, y: Values) -> Values:
        return self.map_batches(lambda part, rows: part.standard_cdf(part.standardize(y[rows])))

    def central_mass(self, level: float) -> Values:
        low, high = (self.standard_cdf(np.asarray(self.standard_quantile((1 + sign * level) / 2))) for sign in (-1, 1))
        return np.broadcast_to(high - low, len(self))

    def log_prob(self, y: Values) -> Values:
        return self.map_batches(lambda part, rows: part._log_prob(y[rows]))  # noqa: SLF001 - same class

    def _log_prob(self, y: Values) -> Values:
        return self.standard_log_density(self.standardize(y)) - np.log(self.scale)

    def quantile(self, p: float) -> Values:
        with np.errstate(over="ignore"):  # for scales near the largest float
            return np.asarray(self.loc + self.scale * self.standard_quantile(p))

    def sample(self, rng: Random, size: int) -> Values:
        drawn = self.standard_draws(rng, size)
        with np.errstate(over="ignore"):  # for scales near the largest float
            drawn *= self.scale[:, None]
            drawn += self.loc[:, None]
        return drawn


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

    def std(self) -> Values:
        return self.scale

    @property
    def has_standard_form(self) -> bool:
        return True

    def standard_cdf(self, z: Values) -> Values:
        from scipy.special import ndtr

        return np.asarray(ndtr(z))

    def standard_log_density(self, z: Values) -> Values:
        return np.asarray(-0.5 * z**2 - 0.5 * np.log(2 * np.pi))

    def standard_quantile(self, p: Values | float) -> Values:
        from scipy.special import ndtri

        return np.asarray(ndtri(p))

    def standard_moments(self, order: int) -> Values:
        return normal_moments(order)

    def standard_partial_mean(self, z: Values) -> Values:
        return np.asarray(-np.exp(self.standard_log_density(z)))

    def standard_draws(self, rng: Random, size: int) -> Values:
        return rng.standard_normal((len(self), size))

    def crps(self, y: Values) -> Values:
        from scoringrules import crps_normal

        return self.map_batches(
            lambda part, rows: np.asarray(crps_normal(y[rows], part.loc, part.scale, backend="numpy"))
        )

    def normal(self) -> tuple[Values, Values]:
        return self.loc[:, None], self.scale[:, None]

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        return normal_kernel_mean(points[:, 0] - self.loc[:, None], self.scale[:, None], gamma[..., 0])

    def kernel_norm(self, gamma: Values) -> Values:
        return np.asarray((1 + 4 * in_lengths(self.scale, gamma[0]) ** 2) ** -0.5)

    def describe(self) -> list[str]:
        return describe_parameters("N({}, {}²)", self.loc, self.scale)


@dataclass(frozen=True, eq=False)
class AssumedGaussian(Gaussian):
    """Normal distributions assumed for a file that gives means and standard deviations but no distribution family."""

    @property
    def shape_is_known(self) -> bool:
        return False


FARTHEST = 750.0  # Distance beyond which densities are 0
SERIES_FROM = 50.0  # A from which the series is used: 5 terms are accurate to 1e-15, the closed form still to 1e-12


@dataclass(frozen=True, eq=False)
class Laplace(LocationScale):
    """Laplace distributions with density exp(-|y - loc| / scale) / (2 scale).

    ``loc``: means and medians, in the unit of the targets. ``scale``: mean absolute deviations b, > 0; the standard
    deviations are sqrt(2) b.
    """

    family: ClassVar[str] = "laplace"

    def std(self) -> Values:
        return np.asarray(np.sqrt(2) * self.scale)

    @property
    def has_standard_form(self) -> bool:
        return True

    def standard_cdf(self, z: Values) -> Values:
        tail = np.exp(-np.abs(z)) / 2
        return np.asarray(np.where(z < 0, tail, 1 - tail))

    def standard_log_density(self, z: Values) -> Values:
        return np.asarray(-np.abs(z) - np.log(2))

    def standard_quantile(self, p: Values | float) -> Values:
        p = np.asarray(p, dtype=np.float64)
        with np.errstate(divide="ignore"):  # one of both sides, which is not used
            return np.asarray(np.where(p < 1 / 2, np.log(2 * p), -np.log(2 * (1 - p))))

    def standard_moments(self, order: int) -> Values:
        """Return k! for even k and 0 for odd k, (order + 1,)."""
        return np.where(np.arange(order + 1) % 2 == 0, exponential_moments(order), 0.0)

    def standard_partial_mean(self, z: Values) -> Values:
        away = np.minimum(np.abs(z), FARTHEST)
        return np.asarray(-(1 + away) * np.exp(-away) / 2)

    def standard_draws(self, rng: Random, size: int) -> Values:
        return rng.laplace(size=(len(self), size))

    def describe(self) -> list[str]:
        return describe_parameters("Laplace({}, {})", self.loc, self.scale)

    def crps(self, y: Values) -> Values:
        from scoringrules import crps_laplace

        return np.asarray(crps_laplace(y, self.loc, self.scale, backend="numpy"))

    def kinks(self) -> Values:
        return self.loc[:, None]

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        away, scale, gamma = points[:, 0] - self.loc[:, None], self.scale[:, None], gamma[..., 0]
        sides = [exponential_kernel_mean(sign * away, scale, gamma) for sign in (1, -1)]
        return (sides[0] + sides[1]) / 2

    def kernel_norm(self, gamma: Values) -> Values:
        """Return E exp(-gamma u^2) for u = Y - Y', which has the density (1 + |u| / b) exp(-|u| / b) / (4 b)."""
        one_sided = exponential_kernel_mean(np.zeros(1), self.scale, gamma[0])  # E
        steep = 1 / (2 * np.maximum(in_lengths(self.scale, gamma[0]), 1 / STEEPEST))  # A
        x = 1 / (2 * np.maximum(steep, SERIES_FROM) ** 2)
        series = 1 - x * (3 - x * (15 - x * (105 - x * 945)))
        closed = 2 * np.minimum(steep, SERIES_FROM) ** 2 * (1 - one_sided)
        return np.asarray(one_sided + np.where(steep >= SERIES_FROM, series, closed)) / 2


@dataclass(frozen=True, eq=False)
class Cauchy(LocationScale):
    """Cauchy distributions; their means and standard deviations do not exist.

    ``loc``: medians, in the unit of the targets. ``scale``: half widths at half maximum, > 0, in the unit of the
    targets.
    """

    family: ClassVar[str] = "cauchy"

    def mean(self) -> Values:
        self._raise_undefined("mean")

    def std(self) -> Values:
        self._raise_undefined("standard deviation")

    def crps(self, y: Values) -> Values:
        """Return scale (z (2 F(z) - 1) - log((1 + z^2) / 4) / pi), which is finite although there is no mean."""
        z = self.standardize(y)
        centered = 2 * np.arctan(z) / np.pi
        return np.asarray(self.scale * (z * centered - 2 * np.log(np.hypot(1, z) / 2) / np.pi))

    def _raise_undefined(self, what: str) -> NoReturn:
        msg = f"a cauchy distribution has no {what}"
        raise DataError(msg)

    def standard_cdf(self, z: Values) -> Values:
        return np.asarray(np.arctan2(1, -z) / np.pi)  # accurate for small probabilities

    def standard_log_density(self, z: Values) -> Values:
        return np.asarray(-2 * np.log(np.hypot(1, z)) - np.log(np.pi))

    def standard_quantile(self, p: Values | float) -> Values:
        p = np.asarray(p, dtype=np.float64)
        return np.asarray(np.where(p < 1 / 2, -1 / np.tan(np.pi * p), 1 / np.tan(np.pi * (1 - p))))

    def standard_draws(self, rng: Random, size: int) -> Values:
        return rng.standard_cauchy((len(self), size))

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        """Return Re w((d + i scale) sqrt(gamma)) with d = p - loc and the Faddeeva function w: a Voigt profile."""
        from scipy.special import wofz

        away = in_lengths(points[:, 0] - self.loc[:, None], gamma[..., 0])
        return np.asarray(wofz(away + 1j * in_lengths(self.scale[:, None], gamma[..., 0])).real)

    def kernel_norm(self, gamma: Values) -> Values:
        from scipy.special import erfcx

        return np.asarray(erfcx(2 * in_lengths(self.scale, gamma[0])))  # Y - Y' is Cauchy with twice the scale

    def describe(self) -> list[str]:
        return describe_parameters("Cauchy({}, {})", self.loc, self.scale)
