"""Base class of predictive distributions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, partialmethod
from itertools import combinations_with_replacement
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np

from calcheck.core import sc
from calcheck.core.metric_info import Part
from calcheck.core.validation import concat_columns
from calcheck.distributions.row_random import Random, RowRandom, Words, hash_rows
from calcheck.distributions.special import SCORES, describe_parameters
from calcheck.errors import DataError
from calcheck.typing import Indices, Mask, Values

Block = tuple[Indices, Values, Values]
Weighted = tuple[Values, Values]
Parts = tuple[Indices, list[Weighted]]
METHOD: Any = partialmethod

BLOCK_VALUES = 1 << 20  # Numbers per block, 8 MiB
MAX_CACHED_VALUES = 1 << 23  # Maximum numbers in cached blocks, 64 MiB
KERNELS = 1 << 15  # Kernels in memory at a time, which fit in the cache
TOGETHER = 1 << 8  # Neighboring rows whose kernels at common values are computed together
COMMON = 1 / 16  # Least share of these rows that have a common value
NEGLIGIBLE = 40.0  # Exponent from which on exponentials are negligible beside 1
REPEATED = 3  # Number of axes of repeated targets: rows, repeats, columns


@dataclass(frozen=True, eq=False)
class Predictive(ABC):
    """A batch of n predictive distributions of one family; fields are parameters, one entry per row, in units of y."""

    family: ClassVar[str]
    template: ClassVar[str]  # Text of a distribution, with a place for each parameter
    is_discrete: ClassVar[bool] = False
    """Whether the distributions are on whole numbers."""
    shared: ClassVar[tuple[str, ...]] = ()
    """Names of fields that are equal for all rows."""

    @property
    def has_atoms(self) -> bool:
        """Whether single values may have a probability."""
        return self.is_discrete

    @property
    def has_masses(self) -> bool:
        """Whether all values have a probability, and none a density."""
        return self.is_discrete

    def record(self, y: Values) -> Values:
        """Return targets y, (n,), as they are recorded: counts as whole numbers."""
        return np.rint(y) if self.is_discrete else y

    def hold_in_double(self) -> None:
        """Convert every parameter that is given to an array of 64-bit floats."""
        for name in (each.name for each in fields(self) if getattr(self, each.name) is not None):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))

    def require_equal_lengths(self) -> None:
        """Convert the parameters to double precision, and raise an error unless they have equal shapes."""
        self.hold_in_double()
        shapes = {field.name: np.shape(getattr(self, field.name)) for field in fields(self)}
        if len(set(shapes.values())) > 1:
            listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise DataError(f"the parameters of {self.family} differ in shape: {listed}")

    def validate_targets(self, y: Values) -> None:  # noqa: B027 - most families allow any target
        """Raise an error unless the targets y, (n,) or (n, t), are possible values of the family."""

    def __len__(self) -> int:
        """Return the number of distributions, n."""
        return len(self._parts()[0])

    def _of_rows(self) -> dict[str, Any]:
        """Return the fields with one entry per row, by name: arrays, distributions, or tuples of these."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in self.shared}
        return {name: value for name, value in values.items() if value is not None}

    def _parts(self) -> list[Any]:
        """Return the arrays and distributions with one entry per row."""
        return [part for each in self._of_rows().values() for part in (each if isinstance(each, tuple) else (each,))]

    @property
    def targets(self) -> int:
        """Number of target columns, t."""
        return 1

    def of_target(self, place: int) -> "Predictive":  # noqa: ARG002 - for overrides
        """Return the distributions of one of several targets."""
        raise DataError(f"{self.display_name} are no distributions of single targets")

    @property
    def n_draws(self) -> int | None:
        """Number of draws per row, for distributions given by draws; None otherwise."""
        return None

    @property
    def quantile_levels(self) -> Values | None:
        """Levels, (q,), for distributions given by quantiles; None otherwise."""
        return None

    @property
    def interval_levels(self) -> Values | None:
        """Levels, (k,), for prediction intervals, which state nothing but their coverage; None for distributions."""
        return None

    def states(self, part: Part) -> bool:  # noqa: ARG002 - used by prediction intervals
        """Return whether a part of the distributions is stated; all parts of distributions are."""
        return True

    @property
    def shape_is_known(self) -> bool:
        """Whether the shape of the distributions is given by the data, and not assumed."""
        return True

    @property
    def caveat(self) -> str:
        """Warning for distributions that are only partly known; empty if they are fully known."""
        return ""

    @property
    def kernel_error(self) -> float:
        """Error bound of :meth:`kernel_mean` and :meth:`kernel_norm`; 0 if they are exact to rounding."""
        return 0.0

    @property
    def display_name(self) -> str:
        """Name of the family in reports."""
        return self.family

    def parameters(self) -> tuple[str, dict[str, Values]]:
        """Return the ``--dist`` name of an exact parameterization, and its parameters, (n, ...) each."""
        return self.family, {field.name: getattr(self, field.name) for field in fields(self)}

    def describe(self) -> list[str]:
        """Return a text for each distribution with its parameters to three digits, n texts."""
        return describe_parameters(self.template, *(getattr(self, field.name) for field in fields(self)))

    @property
    def nbytes(self) -> int:
        """Memory that the parameters take, in bytes."""
        return sum(int(part.nbytes) for part in self._parts())

    def batches(self) -> "Iterator[tuple[slice, Predictive]]":
        """Yield slices of rows and their distributions, in batches that fit in memory."""
        yield slice(0, len(self)), self.load()

    def map_batches(self, of: Callable[[Self, slice], Values]) -> Values:
        """Return a function of the distributions and their rows, (n,); families may compute it in batches."""
        return of(self, slice(None))

    def load(self) -> "Predictive":
        """Return equal distributions with all parameters in memory."""
        return self

    def take(self, rows: Indices | slice) -> Self:
        """Return the distributions of the selected rows, in the given order."""
        return replace(self, **{name: _selected(each, rows) for name, each in self._of_rows().items()})

    def join(self, others: list[Self]) -> Self:
        """Return the distributions followed by those of others of the same family."""
        for other in others:
            if not self._shares_fields(other):
                raise DataError(f"{self.display_name} and {other.display_name} cannot be joined: their levels differ")
        fields_of = [each._of_rows() for each in (self, *others)]  # noqa: SLF001 - same class
        return replace(self, **{name: _joined([each[name] for each in fields_of], name) for name in fields_of[0]})

    def _shares_fields(self, other: Self) -> bool:
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self.shared)

    def equals(self, other: Self) -> Mask:
        """Return which rows have equal parameters in both batches, (n,)."""
        if not self._shares_fields(other):
            return np.zeros(len(self), np.bool_)
        pairs = zip(self._parts(), other._parts(), strict=True)
        same = [
            mine.equals(theirs) if isinstance(mine, Predictive) else (mine == theirs).reshape(len(self), -1).all(axis=1)
            for mine, theirs in pairs
        ]
        return np.asarray(np.logical_and.reduce(same))

    def rescale(self, shift: Values, factor: Values) -> "Predictive":  # noqa: ARG002 - for overrides
        """Return distributions moved by a shift, (n,), and stretched about their centers by a factor, (n,), > 0."""
        raise DataError(f"{self.display_name} cannot be scaled: the result would be of another family")

    def spread(self) -> Values:
        """Return the unit of :meth:`rescale`, (n,), > 0: scales of location-scale families, else deviations."""
        return self.std()

    @abstractmethod
    def mean(self) -> Values:
        """Return the means, (n,)."""

    @abstractmethod
    def std(self) -> Values:
        """Return the standard deviations, (n,)."""

    @abstractmethod
    def cdf(self, y: Values) -> Values:
        """Return P(Y_i <= y_i), (n,), in [0, 1]."""

    @abstractmethod
    def cdf_left(self, y: Values) -> Values:
        """Return P(Y_i < y_i), (n,), in [0, 1]; less than :meth:`cdf` if Y_i has an atom at y_i."""

    def cdf_limits(self, y: Values) -> tuple[Values, Values]:
        """Return :meth:`cdf_left` and :meth:`cdf`, (n,) each; the same array twice for continuous families."""
        return self.cdf_left(y), self.cdf(y)

    def above(self, y: Values) -> Values:
        """Return P(Y_i >= y_i), (n,), in [0, 1], accurate where it is small."""
        return 1 - self.cdf_left(y)

    def interval_mass(self, low: Values, high: Values) -> Values:
        """Return P(low_i <= Y_i <= high_i) between two quantiles, (n,), in [0, 1]."""
        return self.cdf(high) - self.cdf_left(low)

    def interval_mass_error(
        self,
        y: Values,  # noqa: ARG002 - used by families given by draws or quantiles
        low: Values,  # noqa: ARG002
        high: Values,  # noqa: ARG002
    ) -> Values:
        """Return by how much :meth:`interval_mass` may be too small, (n,): 0 for fully known distributions."""
        return np.zeros(len(self))

    def median(self) -> Values:
        """Return the medians, (n,)."""
        return self.quantile(0.5)

    def central_interval(self, level: float) -> tuple[Values, Values]:
        """Return the limits of the central interval with probability ``level``, (n,) each."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def interval_width(self, level: float) -> Values:
        """Return the widths of the central intervals, (n,), >= 0."""
        low, high = self.central_interval(level)
        return high - low

    def central_mass(self, level: float) -> Values:
        """Return the probability of the :meth:`central_interval`, (n,)."""
        return self.interval_mass(*self.central_interval(level))

    def unclipped(self, level: float) -> Mask | None:  # noqa: ARG002 - for overrides
        """Return in which rows no limit of the central interval is clipped, (n,); None if targets have no limits."""
        return None

    def support_interval(self, tail: float) -> tuple[Values, Values]:
        """Return the quantiles at levels ``tail`` and 1 - ``tail``, (n,) each."""
        return self.quantile(tail), self.quantile(1 - tail)

    def edges(self) -> Values:
        """Return increasing values (n, e), about quantiles, between which the distribution functions are smooth."""
        return np.stack([self.quantile(float(level)) for level in sc.ndtr(SCORES)], axis=1)

    def log_prob(self, y: Values) -> Values:  # noqa: ARG002 - used by families with a density
        """Return log densities, or log probabilities for counts, (n,); -inf where y_i is impossible."""
        raise DataError(f"distributions given by {self.family} have no density")

    def joint_log_prob(self, y: Values) -> Values:
        """Return log densities or probabilities of vectors y (n, t), (n,), independent unless a family differs."""
        return np.asarray(self.log_prob(y).sum(axis=1))

    @abstractmethod
    def crps(self, y: Values) -> Values:
        """Return the continuous ranked probability scores, integral (F_i(u) - 1{u >= y_i})^2 du, (n,), >= 0."""

    def fair_crps(self, y: Values) -> Values:
        """Return unbiased estimates of the CRPS, (n,): :meth:`crps`, except for distributions given by draws."""
        return self.crps(y)

    @abstractmethod
    def quantile(self, p: float) -> Values:
        """Return the smallest y with P(Y_i <= y) >= p, (n,), for 0 < p < 1."""

    @abstractmethod
    def sample(self, rng: Random, size: int) -> Values:
        """Return ``size`` draws from each distribution, (n, size)."""

    def at_scores(self, z: Values) -> Values:  # noqa: ARG002 - for overrides
        """Return the quantiles at levels whose normal quantiles are z, (n, k)."""
        raise DataError(
            f"margins that are {self.display_name} have no joint distribution with correlations: pass --only TARGET"
        )

    def replicates(self, y: Values, rng: RowRandom, numbers: range) -> "Iterator[tuple[Values, Predictive]]":
        """Yield targets that follow the distributions, or y exchanged with draws, (n, [r,] [t]), and distributions."""
        repeats = y.shape[1] if y.ndim == REPEATED else 1
        drawn = self.sample(rng.for_replicate(numbers.start * repeats), len(numbers) * repeats)
        for start in range(0, drawn.shape[1], repeats):
            yield np.ascontiguousarray(drawn[:, start : start + repeats]).reshape(y.shape), self

    def hashes(self, key: int) -> Words:
        """Return a hash of each distribution, (n,); equal parameters have equal hashes."""
        return hash_rows([each.hashes(key) if isinstance(each, Predictive) else each for each in self._parts()], key)

    def normal(self) -> tuple[Values, Values] | None:
        """Return means and standard deviations, (n, t) each, if the distributions are normal, and None otherwise."""
        return None

    def raw_moments(self, order: int) -> Values:
        """Return E Y_i^k for k = 0, …, order, (n, order + 1), in powers of the unit; not finite if they overflow."""
        raise DataError(
            f"{self.display_name} distributions have no moments of order {order}, which a polynomial kernel on targets"
            " needs. Pass --kernel-y rbf"
        )

    def mixed_moments(self, exponents: Indices) -> Values:
        """Return E prod_c Y_ic^e_jc, (n, q), for exponents e, (q, t)."""
        return self.raw_moments(int(exponents.max()))[:, exponents[:, 0]]

    def kinks(self) -> Values:
        """Return the points other than 0 at which a continuous distribution function is not smooth, (n, k)."""
        return np.empty((len(self), 0))

    @abstractmethod
    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        """Return the kernel mean embeddings at points (r, t), E k(p_j, Y_i), (n, r), in [0, 1].

        The kernel is k(p, v) = exp(-sum_c gamma_c (p_c - v_c)^2), with gamma (t,) or, per point, (r, t), in 1 / unit^2.
        It may be 0 for some of several columns, on which the kernel then does not depend.
        """

    @abstractmethod
    def kernel_norm(self, gamma: Values) -> Values:
        """Return the squared norms of the mean embeddings, E k(Y_i, Y_i') for independent copies, (n,), in (0, 1]."""


def _selected(part: Any, rows: Indices | slice) -> Any:
    """Return the selected rows of an array, of distributions, or of each of several."""
    if isinstance(part, tuple):
        return tuple(_selected(each, rows) for each in part)
    return part.take(rows) if isinstance(part, Predictive) else part[rows]


def _joined(parts: list[Any], name: str) -> Any:
    """Return arrays or distributions one after the other, or each of several."""
    if isinstance(parts[0], tuple):
        return tuple(_joined(list(each), name) for each in zip(*parts, strict=True))
    return parts[0].join(parts[1:]) if isinstance(parts[0], Predictive) else concat_columns(parts, name)


def _forward(owner: Any, part: str, name: str, *given: Any) -> Any:
    return getattr(getattr(owner, part), name)(*given)


def forwarded(part: str, *names: str) -> tuple[Any, ...]:
    """Return methods that call those of the same names of an attribute."""
    return tuple(METHOD(_forward, part, name) for name in names)


def attributes(part: str, *names: str) -> tuple[Any, ...]:
    """Return properties that are those of the same names of an attribute."""
    return tuple(property(attrgetter(f"{part}.{name}")) for name in names)


def _refused(owner: Any, *_: Any) -> Any:
    raise DataError(
        f"repeated {owner.display_name} distributions are not drawn from, selected or hashed, and have no kernels"
    )


def _repeated(owner: Any, name: str, *given: Any) -> Any:
    """Return what a method returns of each repetition: of its part of arguments with rows, else of all the same."""
    method, is_split = getattr(owner.base, name), any(isinstance(each, np.ndarray) for each in given)
    if is_split:
        parts = [method(*each) for each in zip(*(np.split(y, owner.count) for y in given), strict=True)]
    else:
        parts = [method(*given)] * owner.count
    if not isinstance(parts[0], tuple):
        return np.concatenate(parts)
    whole = [np.concatenate(each) for each in zip(*parts, strict=True)]
    return (whole[0],) * len(whole) if all(first is each for first, *rest in parts for each in rest) else (*whole,)


def _elementwise(owner: Any, name: str, *given: Values) -> Any:
    return _repeated(owner, name, *given) if owner.tiled is None else getattr(owner.tiled, name)(*given)


@dataclass(frozen=True, eq=False)
class Repeated(Predictive):
    """The same n distributions several times, with what is known of them; for targets of several replicates."""

    family: ClassVar[str] = "repeated"
    shared: ClassVar[tuple[str, ...]] = ("count",)
    base: Any
    count: int

    def __len__(self) -> int:
        return len(self.base) * self.count

    @cached_property
    def tiled(self) -> Predictive | None:
        """The same as one family, if its functions are formulas of a row, those of normal distributions; else None."""
        inner = self.base
        while isinstance(inner, Derived):
            inner = inner.base
        is_formula = inner.normal() is not None
        return self.base.take(np.tile(np.arange(len(self.base)), self.count)) if is_formula else None

    has_atoms, has_masses, shape_is_known, caveat, display_name, is_discrete = attributes(
        "base", "has_atoms", "has_masses", "shape_is_known", "caveat", "display_name", "is_discrete"
    )
    mean, std, spread, median, quantile, central_interval = (
        METHOD(_repeated, name) for name in ("mean", "std", "spread", "median", "quantile", "central_interval")
    )
    interval_width, central_mass, support_interval, edges, kinks, raw_moments = (
        METHOD(_repeated, name)
        for name in ("interval_width", "central_mass", "support_interval", "edges", "kinks", "raw_moments")
    )
    cdf, cdf_left, cdf_limits, above = (
        METHOD(_elementwise, name) for name in ("cdf", "cdf_left", "cdf_limits", "above")
    )
    interval_mass, interval_mass_error, log_prob, crps, record = (
        METHOD(_repeated, name) for name in ("interval_mass", "interval_mass_error", "log_prob", "crps", "record")
    )
    sample = at_scores = take = hashes = kernel_mean = kernel_norm = METHOD(_refused)

    def unclipped(self, level: float) -> Mask | None:
        found: Mask | None = self.base.unclipped(level)
        return None if found is None else np.tile(found, self.count)


@dataclass(frozen=True, eq=False)
class Derived(Predictive):
    """Distributions of functions of targets, by sums over values with probabilities."""

    base: Any  # The n distributions before

    @property
    def shape_is_known(self) -> bool:
        return bool(self.base.shape_is_known)

    @property
    def caveat(self) -> str:
        return str(self.base.caveat)

    @property
    def kernel_error(self) -> float:
        return float(max(self.base.kernel_error, 1e-9))

    @property
    def display_name(self) -> str:
        return f"{self.base.display_name}, {self.family}"

    def describe(self) -> list[str]:
        return [f"{text}, {self.family}" for text in self.base.describe()]

    def parameters(self) -> tuple[str, dict[str, Values]]:
        raise DataError("distributions of observed targets cannot be written: omit --target-std, --clip and --rounded")

    def _blocks(self) -> Iterator[Parts]:
        """Yield blocks of rows with values, (b, k) or common ones (1, k), and their probabilities (b, k), in parts."""
        return iter(self._cached) if self._cached is not None else self._made_parts()

    @cached_property
    def _cached(self) -> list[Parts] | None:
        """All blocks if they are small; None otherwise."""
        found, size = [], 0
        for rows, parts in self._made_parts():
            found.append((rows, parts))
            size += sum(mass.size for _, mass in parts)
            if size > MAX_CACHED_VALUES:
                return None
        return found

    def _made_parts(self) -> Iterator[Parts]:
        """Yield the blocks."""
        for rows, values, mass in self._made_blocks():
            if not self.has_masses:
                yield rows, [(values, mass)]
                continue
            for some in (slice(start, start + TOGETHER) for start in range(0, len(rows), TOGETHER)):
                yield rows[some], _split(values[some], mass[some])

    @abstractmethod
    def _made_blocks(self) -> Iterator[Block]:
        """Yield blocks of rows with values (b, k), or (1, k) of counts with noise, and their probabilities (b, k)."""

    def _each(self, of: Callable[[Indices, Values, Values], Values]) -> Values:
        """Return the sums of a function of the parts of each block, (n,) or (n, r)."""
        blocks = ((rows, np.asarray(sum(of(rows, *part) for part in parts))) for rows, parts in self._blocks())
        return assemble(len(self), blocks)

    @cached_property
    def _moments(self) -> tuple[Values, Values]:
        mean = self._each(lambda _, values, mass: np.asarray((values * mass).sum(axis=1)))
        variance = self._each(lambda rows, values, mass: np.sum((values - mean[rows, None]) ** 2 * mass, axis=1))
        return mean, np.sqrt(variance)

    def mean(self) -> Values:
        return self._moments[0]

    def std(self) -> Values:
        return self._moments[1]

    def raw_moments(self, order: int) -> Values:
        powers = np.arange(order + 1)
        return self._each(lambda _, values, mass: np.sum(values[..., None] ** powers * mass[..., None], axis=1))

    def _kernel(self, rows: Indices, away: Values, gamma: Values, copies: int) -> Values:  # noqa: ARG002 - for noise
        """Return the kernel of distances (b, s, r) between values, of which one or both (``copies``) are of targets."""
        return np.exp(-gamma * away**2)

    def _reach(self, gamma: float) -> float:
        """Return a distance from which on kernels of two values are negligible."""
        return float(np.sqrt(NEGLIGIBLE / gamma)) if gamma > 0 else np.inf

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        gammas = np.broadcast_to(gamma[..., 0], len(points))
        return self._each(lambda rows, *part: self._kernel_sums(rows, part, points[:, 0][None], gammas, 1))

    def kernel_norm(self, gamma: Values) -> Values:
        norm = np.zeros(len(self))
        for rows, parts in self._blocks():
            for part, (others, mass) in combinations_with_replacement(parts, 2):
                gammas = np.broadcast_to(gamma, others.shape[1])
                sums = np.sum(self._kernel_sums(rows, part, others, gammas, 2) * mass, axis=1)
                norm[rows] += sums if others is part[0] else 2 * sums
        return norm

    def _kernel_sums(self, rows: Indices, part: Weighted, points: Values, gammas: Values, copies: int) -> Values:
        """Return sums over a part of kernels at points, (b, r) or (1, r), of gammas (r,), (b, r)."""
        (values, mass), total = part, np.zeros((len(rows), points.shape[1]))
        reach, is_shared = self._reach(float(gammas.min())), self.has_masses and len(values) == len(points) == 1
        height = len(mass) if is_shared else max(1, KERNELS // (values.shape[1] * points.shape[1]))
        width = max(1, KERNELS // (points.shape[1] * (1 if is_shared else height)))
        for top in range(0, len(mass), height):
            some = slice(top, top + height)
            own, at = (each[some] if len(each) > 1 else each for each in (values, points))
            low, high, used = at.min(axis=0), at.max(axis=0), np.flatnonzero(mass[some].any(axis=0))
            for few in (used[start : start + width] for start in range(0, len(used), width)):
                near = (high >= own[:, few].min() - reach) & (low <= own[:, few].max() + reach)
                kernels = self._kernel(rows[some], at[:, None, near] - own[:, few, None], gammas[near], copies)
                weights = mass[some, few]
                total[some, near] += weights @ kernels[0] if is_shared else (weights[:, None] @ kernels)[:, 0]
        return total


def _split(values: Values, mass: Values) -> list[Weighted]:
    """Return values (b, k), and others (1, k) that many rows have in common, with their probabilities (b, k)."""
    used = mass != 0
    shared, place, counts = np.unique(values[used], return_inverse=True, return_counts=True)
    is_common = counts >= COMMON * len(mass)
    some, number, size = is_common[place], np.cumsum(is_common) - 1, int(is_common.sum())
    number = (np.nonzero(used)[0] * size + number[place])[some]
    common = np.asarray(np.bincount(number, mass[used][some], len(mass) * size), np.float64).reshape(len(mass), size)
    used[used] = ~some
    own = used.any(axis=0)
    parts = (values[:, own], np.where(used, mass, 0.0)[:, own]), (shared[None, is_common], common)
    return [part for part in parts if part[1].size] or [(values, mass)]


def assemble(size: int, parts: Iterable[tuple[Any, Values]]) -> Values:
    """Return the values of blocks of rows as one array of a number of rows."""
    values = np.empty(size)
    for number, (rows, part) in enumerate(parts):
        if not number and part.ndim > 1:
            values = np.empty((size, *part.shape[1:]))
        values[rows] = part
    return values


def blocks_of(predictive: Any, values: int, order: Indices | None = None) -> Iterator[tuple[Indices, Any]]:
    """Yield blocks of rows of distributions, in an order, for arrays with a number of values in each row."""
    size = max(1, BLOCK_VALUES // values)
    every = np.arange(len(predictive)) if order is None else order
    for rows in (every[start : start + size] for start in range(0, len(every), size)):
        yield rows, predictive if order is None and len(rows) == len(every) else predictive.take(rows)
