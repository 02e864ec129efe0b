"""Base classes of continuous and of location-scale families."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from calcheck.distributions.base import Predictive
from calcheck.distributions.moments import shifted_moments
from calcheck.errors import DataError
from calcheck.validation import require_moderate, require_positive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random


PART = 1 << 16  # Rows per batch: 0.5 MB per column


@dataclass(frozen=True, eq=False)
class Continuous(Predictive):
    """Distributions without atoms."""

    def cdf_left(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.cdf(y)

    def cdf_limits(self, y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        below = self.cdf(y)
        return below, below


@dataclass(frozen=True, eq=False)
class LocationScale(Continuous):
    """Distributions of loc + scale Z, where the family defines the standard form Z.

    Parameters
    ----------
    loc : (n,)
        Locations, in the unit of the targets.
    scale : (n,)
        Scales, > 0, in the unit of the targets.

    Raises
    ------
    ValuesError
        A value is not finite, or a scale is not positive.
    """

    names: ClassVar[tuple[str, str]] = ("loc", "scale")
    """Names of the location and the scale in messages."""
    loc: NDArray[np.float64]
    scale: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.require_equal_lengths()
        require_moderate(self.names[0], self.loc)
        require_positive(self.names[1], self.scale)

    @abstractmethod
    def standard_cdf(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(Z_i <= z_i), (n,)."""

    @abstractmethod
    def standard_log_density(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log density of Z_i at z_i, (n,)."""

    @abstractmethod
    def standard_quantile(self, p: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return the quantiles of Z_i at levels p, (n,), or in the shape of p if they are equal for all rows."""

    def standard_partial_mean(self, z: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ARG002 - for overrides
        """Return the integral of x f_i(x) from -inf to z_i for the density f_i of Z_i, (n,), <= 0.

        Raises
        ------
        DataError
            The family has no means.
        """
        msg = f"distributions of the family {self.family} have no partial means"
        raise DataError(msg)

    @abstractmethod
    def standard_draws(self, rng: Random, size: int) -> NDArray[np.float64]:
        """Return ``size`` draws of each Z_i, (n, size)."""

    def standard_moments(self, order: int) -> NDArray[np.float64]:
        """Return E Z_i^k for k = 0, …, order, (order + 1,) if they are equal for all rows, else (n, order + 1).

        Raises
        ------
        DataError
            The moments do not exist.
        """
        return super().raw_moments(order)

    def raw_moments(self, order: int) -> NDArray[np.float64]:
        return shifted_moments(self.loc, self.scale, self.standard_moments(order))

    def standardize(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (y_i - loc_i) / scale_i, (n,)."""
        return (y - self.loc) / self.scale

    @property
    def has_standard_form(self) -> bool:
        """Whether Z_i has the same distribution in all rows, symmetric and with a mean."""
        return False

    def rescale(self, shift: NDArray[np.float64], factor: NDArray[np.float64]) -> Self:
        return replace(self, loc=self.loc + shift, scale=self.scale * factor)

    def spread(self) -> NDArray[np.float64]:
        return self.scale

    def mean(self) -> NDArray[np.float64]:
        return self.loc

    def median(self) -> NDArray[np.float64]:
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

    def map_batches(self, of: Callable[[Self, slice], NDArray[np.float64]]) -> NDArray[np.float64]:
        if len(self) <= PART:
            return of(self, slice(None))
        values = np.empty(len(self))
        for rows, part in self.batches():
            values[rows] = of(part, rows)
        return values

    def cdf(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.map_batches(lambda part, rows: part.standard_cdf(part.standardize(y[rows])))

    def central_mass(self, level: float) -> NDArray[np.float64]:
        low, high = (self.standard_cdf(np.asarray(self.standard_quantile((1 + sign * level) / 2))) for sign in (-1, 1))
        return np.broadcast_to(high - low, len(self))

    def log_prob(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.map_batches(lambda part, rows: part._log_prob(y[rows]))  # noqa: SLF001 - same class

    def _log_prob(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.standard_log_density(self.standardize(y)) - np.log(self.scale)

    def quantile(self, p: float) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):  # for scales near the largest float
            return np.asarray(self.loc + self.scale * self.standard_quantile(p))

    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        drawn = self.standard_draws(rng, size)
        with np.errstate(over="ignore"):  # for scales near the largest float
            drawn *= self.scale[:, None]
            drawn += self.loc[:, None]
        return drawn
