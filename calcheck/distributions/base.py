"""What every family of predictive distributions offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from calcheck.distributions.row_random import hash_rows
from calcheck.errors import DataError
from calcheck.validation import concat_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from calcheck.distributions.row_random import Random, RowRandom, Words

REPEATED = 3  # axes of targets that are repeated: rows, repeats, columns


@dataclass(frozen=True, eq=False)
class Predictive(ABC):
    """A batch of n predictive distributions of one family.

    The fields of a family are its parameters: arrays whose first axis counts the n rows.
    Units are those of the targets unless a parameter says otherwise.
    """

    family: ClassVar[str]
    is_discrete: ClassVar[bool] = False
    """Whether targets are whole numbers."""

    def hold_in_double(self) -> None:
        """Make every parameter an array of 64-bit floats, whatever precision it was stored in."""
        for field in fields(self):
            object.__setattr__(self, field.name, np.asarray(getattr(self, field.name), dtype=np.float64))

    def require_equal_lengths(self) -> None:
        """Hold the parameters in double precision, and raise unless every one has one value a row.

        Raises
        ------
        DataError
            Lengths differ.
        """
        self.hold_in_double()
        shapes = {field.name: np.shape(getattr(self, field.name)) for field in fields(self)}
        if len(set(shapes.values())) > 1:
            told = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            msg = f"the parameters of {self.family} differ in shape: {told}"
            raise DataError(msg)

    def validate_targets(self, y: NDArray[np.float64]) -> None:  # noqa: B027 - most families allow any target
        """Raise unless the family can give targets such as y, (n,) or (n, t).

        Raises
        ------
        ValuesError
            It cannot: counts, for instance, are whole numbers.
        """

    def __len__(self) -> int:
        """Count the distributions, n."""
        return len(getattr(self, fields(self)[0].name))

    @property
    def targets(self) -> int:
        """How many target columns one distribution is about."""
        return 1

    @property
    def n_draws(self) -> int | None:
        """How many draws stand for each distribution; None if parameters do."""
        return None

    @property
    def quantile_levels(self) -> NDArray[np.float64] | None:
        """The levels, (q,), at which quantiles are known, where nothing else is; None if all of a distribution is."""
        return None

    @property
    def shape_is_known(self) -> bool:
        """Whether the shape of the distributions is stated, and not supposed."""
        return True

    @property
    def caveat(self) -> str:
        """What a reader should know of distributions that are not known as a whole; empty if they are."""
        return ""

    @property
    def kernel_error(self) -> float:
        """How far :meth:`kernel_mean` and :meth:`kernel_norm` may be off; 0 where they are exact to rounding."""
        return 0.0

    @property
    def display_name(self) -> str:
        """What reports call the family."""
        return self.family

    def parameters(self) -> tuple[str, dict[str, NDArray[np.float64]]]:
        """Return how ``--dist`` spells what describes them exactly, and the parameters, (n, ...) each."""
        return self.family, {field.name: getattr(self, field.name) for field in fields(self)}

    @abstractmethod
    def describe(self) -> list[str]:
        """Describe each distribution by its parameters, to three digits, n texts."""

    @property
    def nbytes(self) -> int:
        """How much memory the parameters take."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    def batches(self) -> Iterator[tuple[slice, Predictive]]:
        """Yield the rows and their distributions in parts that fit in memory."""
        yield slice(0, len(self)), self.load()

    def map_batches(self, of: Callable[[Self, slice], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Compute something of each row, (n,): of a part of the rows at a time, where that is no more work."""
        return of(self, slice(None))

    def load(self) -> Predictive:
        """Return the same distributions with all parameters in memory."""
        return self

    def take(self, rows: NDArray[np.intp] | slice) -> Self:
        """Select rows, in the order given."""
        taken = {field.name: getattr(self, field.name)[rows] for field in fields(self)}
        return replace(self, **taken)

    def join(self, others: list[Self]) -> Self:
        """Append the rows of others of the same family."""
        parts = [self, *others]
        joined = {
            field.name: concat_columns([getattr(part, field.name) for part in parts], field.name)
            for field in fields(self)
        }
        return replace(self, **joined)

    def equals(self, other: Self) -> NDArray[np.bool_]:
        """Tell which distributions have the same parameters as another's, (n,)."""
        pairs = [(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)]
        same = [(mine == theirs).reshape(len(self), -1).all(axis=1) for mine, theirs in pairs]
        return np.asarray(np.logical_and.reduce(same))

    @abstractmethod
    def mean(self) -> NDArray[np.float64]:
        """Return the means, (n,)."""

    @abstractmethod
    def std(self) -> NDArray[np.float64]:
        """Return the standard deviations, (n,)."""

    @abstractmethod
    def cdf(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(Y_i <= y_i), (n,), in [0, 1]."""

    @abstractmethod
    def cdf_left(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(Y_i < y_i), (n,), in [0, 1]; less than :meth:`cdf` where Y_i has a mass at y_i."""

    def cdf_limits(self, y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return :meth:`cdf_left` and :meth:`cdf`, (n,) each; the same array twice where the family has no jumps."""
        return self.cdf_left(y), self.cdf(y)

    def interval_mass(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(low_i <= Y_i <= high_i) between two quantiles, (n,), in [0, 1]."""
        return self.cdf(high) - self.cdf_left(low)

    def interval_mass_error(
        self,
        y: NDArray[np.float64],  # noqa: ARG002 - nor do limits matter, where distributions are known
        low: NDArray[np.float64],  # noqa: ARG002
        high: NDArray[np.float64],  # noqa: ARG002
    ) -> NDArray[np.float64]:
        """Return how much larger :meth:`interval_mass` may be, (n,): 0 unless draws that tie leave it open."""
        return np.zeros(len(self))

    def median(self) -> NDArray[np.float64]:
        """Return the medians, (n,)."""
        return self.quantile(0.5)

    def central_interval(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the quantiles between which the middle ``level`` of each distribution lies, (n,) each."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def central_mass(self, level: float) -> NDArray[np.float64]:
        """Return how likely a target is to lie in its :meth:`central_interval`, (n,)."""
        return self.interval_mass(*self.central_interval(level))

    def support_interval(self, tail: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return between what values, (n,) each, all but a ``tail`` on either side lies."""
        return self.quantile(tail), self.quantile(1 - tail)

    def log_prob(self, y: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ARG002 - those who have one look at y
        """Return log densities, or log masses for counts, (n,); -inf where y_i is impossible.

        Raises
        ------
        DataError
            The family has neither.
        """
        msg = f"{self.family} have no density at a target"
        raise DataError(msg)

    @abstractmethod
    def crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the continuous ranked probability scores, integral (F_i(u) - 1{u >= y_i})^2 du, (n,), >= 0."""

    def fair_crps(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scores whose mean is that of the distributions, (n,): :meth:`crps`, unless only draws are known."""
        return self.crps(y)

    @abstractmethod
    def quantile(self, p: float) -> NDArray[np.float64]:
        """Return the smallest y with P(Y_i <= y) >= p, (n,), for 0 < p < 1."""

    @abstractmethod
    def sample(self, rng: Random, size: int) -> NDArray[np.float64]:
        """Draw ``size`` values from each distribution, (n, size)."""

    def replicates(
        self, y: NDArray[np.float64], rng: RowRandom, numbers: range
    ) -> Iterator[tuple[NDArray[np.float64], Predictive]]:  # the targets matter to those who are known by draws
        """Yield targets as they would be if the distributions were right, and the distributions that go with them.

        Parameters
        ----------
        y : (n,), (n, t) or, r for each distribution, (n, r, t)
            The targets that there are.
        rng : RowRandom
            The random numbers of the rows.
        numbers : range
            Which sets of targets: each number stands for the same set whatever the others are.
        """
        each = y.shape[1] if y.ndim == REPEATED else 1
        drawn = self.sample(rng.for_replicate(numbers.start * each), len(numbers) * each)
        for start in range(0, drawn.shape[1], each):
            yield np.ascontiguousarray(drawn[:, start : start + each]).reshape(y.shape), self

    def hashes(self, key: int) -> Words:
        """Return a hash of each distribution, (n,): the same for the same parameters."""
        return hash_rows([getattr(self, field.name) for field in fields(self)], key)

    def normal(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return means and standard deviations, (n, t) each, if the distributions are normal; else None."""
        return None

    @abstractmethod
    def kernel_mean(self, points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean embeddings at some points, E k(p_j, Y_i), (n, r), in [0, 1].

        Parameters
        ----------
        points : (r, t)
            Points in target space, t = :attr:`targets`.
        gamma : (t,) or (r, t)
            Of the kernel k(p, v) = exp(-sum_c gamma_c (p_c - v_c)^2), in 1 / unit^2; one for all points or one each.
        """

    @abstractmethod
    def kernel_norm(self, gamma: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the squared norms of the mean embeddings, E k(Y_i, Y_i') for independent copies, (n,), in (0, 1].

        Parameters
        ----------
        gamma : (t,)
            Of the kernel, as in :meth:`kernel_mean`.
        """


@dataclass(frozen=True)
class Convention:
    """One way in which the field writes the parameters of a family.

    Parameters
    ----------
    family : str
        The family's name in ``--dist``.
    name : str
        The convention's name, behind the colon in ``--dist family:name``; empty if there is one only.
    parameters : dict
        For each parameter the column names that it is known by, its own first.
    build : callable
        Makes the distributions from arrays, one keyword per parameter.
    meaning : str
        The convention in words, for help and messages.
    location : str, optional
        The parameter that shifts the distributions along, in files that hold errors y - location.
    grouped : bool
        Whether every parameter is a group of columns: arrays (n, k).
    optional : tuple of str
        Parameters that need not be there.
    """

    family: str
    name: str
    parameters: dict[str, tuple[str, ...]]
    build: Callable[..., Predictive]
    meaning: str
    location: str | None = None
    grouped: bool = False
    optional: tuple[str, ...] = ()

    @property
    def spelling(self) -> str:
        """Spell the convention as ``--dist`` takes it."""
        return f"{self.family}:{self.name}" if self.name else self.family

    def __call__(self, **parameters: Any) -> Predictive:
        """Build the distributions, computing in double precision whatever the parameters are stored in."""
        return self.build(**{name: np.asarray(values, dtype=np.float64) for name, values in parameters.items()})
