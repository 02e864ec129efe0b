"""Distributions of targets as they were observed: with noise, clipped, and rounded."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from calcheck.core import sc
from calcheck.core.validation import require, require_finite, require_positive
from calcheck.distributions import special
from calcheck.distributions.base import Block, Derived, Predictive, blocks_of
from calcheck.distributions.continuous import Continuous, Gaussian
from calcheck.distributions.count_base import Counts
from calcheck.distributions.joint import DEPENDENT, JointGaussian, from_covariance, with_marginals
from calcheck.distributions.mixture import Mixture, Noisy
from calcheck.distributions.quantiles import Intervals, Quantiles
from calcheck.distributions.recorded_quantiles import RecordedIntervals, is_on_grid, record_limits
from calcheck.distributions.row_random import Random, RowRandom, Words
from calcheck.distributions.samples import LazyPredictive, Samples
from calcheck.distributions.special import NODES, SCORES, columns, panels, round_to
from calcheck.errors import DataError
from calcheck.typing import AnyArray, Indices, Mask, Values

SEED = 0x0B5E  # Of the noise that is added to draws
SINGLE = 1e-7  # Relative distance within a limit of numbers that are at the limit in single precision
AT_LIMIT = 1e-6  # Maximum relative distance of a target beyond a limit; of single precision
MOST_POINTS = 1 << 10  # Most points of the grid of rounded targets on each side of the median
MAX_CACHED_VALUES = 1 << 23  # Maximum numbers in a cached grid, 64 MiB
MAX_CACHED_SUMS = 1 << 25  # Maximum numbers in cached sums, 256 MiB
TINY = 1e-290  # Probability below which logarithms are those of densities
LEAST_STD = 1e-30  # Least standard deviation where nearly all targets are equal, relative to that before
STEEP = 1e-3  # Step of the slope of log densities, in standard deviations
MIDDLE = 0.5
FEWEST_ROWS, FEWEST_VALUES = 30, 3  # Fewest targets, and different ones, that show how they were observed
FEWEST_TIES = 5  # Fewest targets at a limit; also standard errors above what is expected
TIES = 1.5  # Least ratio of targets at a limit to what is expected with rounding
TAIL = 0.1  # Tail probability of the quantiles that show the size of uncertainties
COARSE = 0.25  # Least step that is reported, in standard deviations


@dataclass(frozen=True, eq=False)
class Observation:
    """How the targets of n rows were observed: first noise is added, then they are clipped, then rounded."""

    noise: Values | None = None  # (n,), standard deviations of measurement errors, >= 0
    low: Values | None = None  # (n,), limits below which targets are recorded as the limit; may be infinite
    high: Values | None = None  # (n,), limits above which they are
    step: Values | None = None  # (n,), distances of the grid to which targets are rounded, > 0
    keys: Words | None = None  # (n,), seeds of the noise of draws; by default, hashes of these

    def __post_init__(self) -> None:
        if self.noise is not None:
            require_finite("target-std", self.noise)
            require("target-std", self.noise >= 0, "must be nonnegative")
        for limit in (self.low, self.high):
            require("clip", np.ones(1, np.bool_) if limit is None else ~np.isnan(limit), "must be numbers")
        if self.low is not None and self.high is not None:
            require("clip", self.low < self.high, "must be a lower limit and a larger upper limit")
        if self.step is not None:
            require_positive("rounded", self.step)

    def with_keys(self, predictive: Predictive) -> Self:
        """Return the same with noise of draws that remains if these are moved or scaled."""
        return self if predictive.n_draws is None else replace(self, keys=predictive.hashes(SEED))

    def arrays(self) -> dict[str, AnyArray]:
        """Return what is known, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: each for name, each in values.items() if each is not None}

    def __len__(self) -> int:
        """Return the number of rows, n."""
        return len(next(iter(self.arrays().values()), ()))

    def take(self, rows: Indices | slice) -> Self:
        """Return those of the selected rows."""
        return replace(self, **{name: values[rows] for name, values in self.arrays().items()})

    def join(self, others: list[Self]) -> Self:
        """Return those of these rows followed by others."""
        parts = [self, *others]
        joined = {name: np.concatenate([getattr(each, name) for each in parts]) for name in self.arrays()}
        return replace(self, **joined)

    def of_target(self, place: int) -> Self:  # noqa: ARG002 - there is one
        """Return the same."""
        return self

    def _limits(self, count: int) -> tuple[Values, Values]:
        """Return the limits, (n,) each; infinite where there are none."""
        return (
            np.full(count, -np.inf) if self.low is None else self.low,
            np.full(count, np.inf) if self.high is None else self.high,
        )

    def targets(self, y: Values) -> Values:
        """Return targets (n,) at exactly the limits and points of the grid that they are at up to single precision."""
        low, high = self._limits(len(y))
        if self.step is not None:
            require("y", is_on_grid(y, self.step), "must be multiples of --rounded")
            y, low, high = (round_to(each, self.step) for each in (y, low, high))
        near = np.clip(y, low, high)
        for limit in (low, high):
            with np.errstate(invalid="ignore"):
                near = np.where(np.abs(near - limit) < SINGLE * np.abs(limit), limit, near)
        outside = np.abs(y - near) > AT_LIMIT * np.maximum(np.abs(near), 1e-75)
        require("y", ~outside, "must lie within the limits of --clip")
        return near

    def distributions(self, predictive: Predictive, *, once: bool = False) -> Predictive:
        """Return the distributions of observed targets, given those of the targets; with no tables if used once."""
        if self.noise is not None:
            predictive = add_noise(predictive, self.noise, self.keys)
        if isinstance(predictive, Noisy) and (once or self.step is not None):  # the points of the grid are far out, too
            predictive = replace(predictive, tabulated="no" if once else "all")
        is_clipped, limits = self.low is not None or self.high is not None, self._limits(len(predictive))
        if isinstance(predictive, Quantiles | Intervals) and (is_clipped or self.step is not None):
            step = np.zeros(len(predictive)) if self.step is None else self.step
            return record_limits(predictive, *limits, step, has_limits=is_clipped, finds_grid=not once)
        predictive = clip(predictive, *limits) if is_clipped else predictive
        return predictive if self.step is None else round_distributions(predictive, self.step)


@dataclass(frozen=True, eq=False)
class Observations:
    """How several targets of n rows were observed, each by itself."""

    parts: tuple[Observation, ...]

    def __len__(self) -> int:
        return max(map(len, self.parts))

    def of_target(self, place: int) -> Observation:
        """Return how one of the targets was observed."""
        return self.parts[place]

    def with_keys(self, predictive: Predictive) -> Self:
        """Return the same with noise of draws that remains if these are moved or scaled."""
        own = (each.with_keys(predictive.of_target(place)) for place, each in enumerate(self.parts))
        return replace(self, parts=tuple(own))

    def take(self, rows: Indices | slice) -> Self:
        """Return those of the selected rows."""
        return replace(self, parts=tuple(own.take(rows) for own in self.parts))

    def join(self, others: list[Self]) -> Self:
        """Return those of these rows followed by others."""
        found = zip(self.parts, *(other.parts for other in others), strict=True)
        return replace(self, parts=tuple(first.join(list(rest)) for first, *rest in found))

    def targets(self, y: Values) -> Values:
        """Return targets (n, t), at exactly the limits and points of the grid."""
        return np.stack([own.targets(column) for own, column in zip(self.parts, y.T, strict=True)], axis=1)

    def distributions(self, predictive: Predictive) -> Predictive:
        """Return the distributions of observed targets; noise makes normal ones less dependent."""
        marginals = [own.distributions(predictive.of_target(place)) for place, own in enumerate(self.parts)]
        noise = [own.noise for own in self.parts]
        if not isinstance(predictive, DEPENDENT) or all(each is None for each in noise):
            return with_marginals(predictive, marginals)
        if not isinstance(predictive, JointGaussian):
            raise DataError(
                "correlated targets with noise have a formula for normal distributions only: pass --only TARGET"
            )
        zero = np.zeros(len(predictive))
        square = np.stack([zero if each is None else each for each in noise], axis=1) ** 2
        matrices = predictive.cholesky @ np.swapaxes(predictive.cholesky, 1, 2)
        noisy = from_covariance(predictive.loc, matrices + square[:, :, None] * np.eye(predictive.targets))
        return with_marginals(noisy, marginals)


def observation_hint(y: Values | None, predictive: Predictive, errors: Sequence[str]) -> str:
    """Return how targets may have been observed without an option that says so, in words; empty if nothing shows it."""
    unused = "the column {0!r} is not used: pass --target-std {0} if it is the measurement error of the targets"
    hints = [unused.format(name) for name in errors[:1]]
    if y is not None and y.ndim == 1 and len(y) >= FEWEST_ROWS and not isinstance(predictive, LazyPredictive):
        hints += [*_limit_hints(y, predictive), *_step_hints(y, predictive)]
    return "; ".join(hints)


def _limit_hints(y: Values, predictive: Predictive) -> Iterator[str]:
    """Yield how many targets are at the smallest and at the largest number, if more than chance and rounding allow."""
    if isinstance(predictive, RecordedIntervals) and predictive.has_limits:
        return
    values, counts = np.unique(y, return_counts=True)
    for end, side, option in ((0, "smallest", "{},"), (-1, "largest", ",{}")):
        near = slice(1, 3) if end == 0 else slice(-3, -1)
        if counts[end] < FEWEST_TIES or len(values) < FEWEST_VALUES:
            continue
        gap = float(np.abs(values[near] - values[end]).min())
        expected = _expected_ties(predictive, values[end], gap, float(counts[near].max()))
        if counts[end] > max(TIES * expected, expected + FEWEST_TIES * np.sqrt(max(expected, 1))):
            number = option.format(_shortest(values[end]))
            share = f"{counts[end]:,} of {len(y):,} targets are exactly the {side}"
            yield f"{share}, {values[end]:.6g}: if they are clipped there, pass --clip {number}"


def _expected_ties(predictive: Predictive, value: float, gap: float, beside: float) -> float:
    """Return how many targets are expected to be rounded to a value; those at the next, if intervals are stated."""
    if predictive.interval_levels is not None:
        return beside
    low, high = (np.full(len(predictive), value + side * gap / 2) for side in (-1, 1))
    left, right = predictive.cdf_left(low), predictive.cdf(high)
    between = 0.0 if predictive.n_draws is None else 1 / (predictive.n_draws + 1)
    return float(np.sum(np.maximum(right - left - between, 0)))


def _step_hints(y: Values, predictive: Predictive) -> Iterator[str]:
    """Yield the step whose multiples all targets are, if it is not small beside the uncertainties."""
    values = np.unique(y)
    if predictive.has_atoms or len(values) < FEWEST_VALUES:
        return
    step = float(np.diff(values).min())
    stated = predictive.interval_levels
    level = 1 - 2 * TAIL if stated is None else float(np.max(stated))
    low, high = predictive.central_interval(level) if stated is not None else predictive.support_interval(TAIL)
    with np.errstate(invalid="ignore"):
        spread = float(np.median(high - low) / (2 * sc.ndtri((1 + level) / 2)))
    if not is_on_grid(values, step).all() or step < COARSE * spread:
        return
    match predictive:
        case Samples(draws=stated) | Quantiles(values=stated) | Intervals(lower=stated) if is_on_grid(
            stated, step
        ).all():
            return
    yield f"all targets are multiples of {step:.6g}: if they are rounded, pass --rounded {_shortest(step)}"


def _shortest(number: float) -> str:
    """Return the text of a number, for an option, with the fewest digits, at least six, that are exact enough."""
    texts = (f"{number:.{digits}g}" for digits in range(6, 18))
    return next(text for text in texts if abs(float(text) - number) <= SINGLE / 2 * abs(number))


def add_noise(predictive: Predictive, noise: Values, keys: Words | None = None) -> Predictive:
    """Return the distributions of targets with normal noise, (n,): exact for normal ones; each draw gets its own."""
    match predictive:
        case Gaussian():
            return replace(predictive, scale=np.hypot(predictive.scale, noise))
        case Mixture():
            return replace(predictive, scale=np.hypot(predictive.scale, noise[:, None]))
        case Samples():
            random = RowRandom(predictive.hashes(SEED) if keys is None else keys)
            return Samples(predictive.draws + noise[:, None] * random.standard_normal(predictive.draws.shape))
        case Quantiles():
            middle = predictive.quantile(0.5)[:, None]
            away = predictive.values - middle
            reach = np.hypot(away, sc.ndtri(predictive.levels) * noise[:, None])
            return replace(predictive, values=middle + np.copysign(reach, predictive.levels - 0.5))
        case Intervals():
            return _noisy_intervals(predictive, noise)
    return Noisy(predictive, noise)


def _noisy_intervals(intervals: Intervals, noise: Values) -> Intervals:
    """Return intervals whose limits are farther from the point prediction, or from the middle if that is outside."""
    middle = (intervals.lower + intervals.upper) / 2
    if not np.isfinite(middle).all():
        raise DataError("intervals without a limit on one side have no middle, so --target-std cannot make them wider")
    if intervals.point is not None:
        point = intervals.point[:, None]
        middle = np.where((intervals.lower <= point) & (point <= intervals.upper), point, middle)
    reach = sc.ndtri((1 + intervals.levels) / 2) * noise[:, None]
    lower, upper = (np.hypot(limit - middle, reach) for limit in (intervals.lower, intervals.upper))
    return replace(intervals, lower=middle - lower, upper=middle + upper)


def clip(predictive: Predictive, low: Values, high: Values) -> Predictive:
    """Return the distributions of targets clipped at limits, (n,) each, which may be infinite."""
    if isinstance(predictive, Samples):
        return Samples(np.clip(predictive.draws, low[:, None], high[:, None]))
    return (ClippedNormal if isinstance(predictive, Gaussian) else Clipped)(predictive, low, high)


def round_distributions(predictive: Predictive, step: Values) -> Predictive:
    """Return the distributions of targets rounded to multiples of a step, (n,)."""
    if isinstance(predictive, Samples):
        return Samples(round_to(predictive.draws, step[:, None]))
    return Rounded(predictive, step)


def _densities(predictive: Predictive, values: Values) -> Values:
    """Return the densities at values (n, k)."""
    return np.exp(columns(predictive.log_prob, values))


def _log_mass(mass: Values, base: Predictive, at: Values, side: int) -> Values:
    """Return the log probability beyond a value; of tiny ones, by the density and its slope there."""
    far = mass < TINY
    with np.errstate(divide="ignore"):
        found = np.log(mass)
    if isinstance(base, Gaussian):
        return np.where(far, sc.log_ndtr(-side * base.standardize(at)), found)
    if far.any() and isinstance(base, Continuous):
        part, y = base.take(np.flatnonzero(far)), at[far]
        step = STEEP * part.spread()
        density = part.log_prob(y)
        with np.errstate(invalid="ignore", divide="ignore"):
            found[far] = density - np.log((density - part.log_prob(y + side * step)) / step)
    return found


@dataclass(frozen=True, eq=False)
class _Mapped(Derived):
    """Distributions of targets that were changed by a nondecreasing function, which also gives their quantiles."""

    has_atoms = True

    @abstractmethod
    def _map(self, values: Values) -> Values:
        """Return recorded values, (n, k)."""

    def take(self, rows: Indices | slice) -> Self:
        """Return the distributions of the selected rows; the same, with what is known of them, if these are all."""
        every = range(len(self))
        return self if isinstance(rows, slice) and every[rows] == every else super().take(rows)

    def _each_mapped(self, *values: Values) -> tuple[Values, ...]:
        return tuple(self._map(each[:, None])[:, 0] for each in values)

    def record(self, y: Values) -> Values:
        return self._each_mapped(self.base.record(y))[0]

    def median(self) -> Values:
        return self._each_mapped(self.base.median())[0]

    def quantile(self, p: float) -> Values:
        return self._each_mapped(self.base.quantile(p))[0]

    def central_interval(self, level: float) -> tuple[Values, Values]:
        low, high = self._each_mapped(*self.base.central_interval(level))
        return low, high

    def support_interval(self, tail: float) -> tuple[Values, Values]:
        low, high = self._each_mapped(*self.base.support_interval(tail))
        return low, high

    def sample(self, rng: Random, size: int) -> Values:
        return self._map(self.base.sample(rng, size))

    def at_scores(self, z: Values) -> Values:
        return self._map(self.base.at_scores(z))

    def std(self) -> Values:
        """Return the standard deviations; tiny ones where nearly all targets are recorded as the same number."""
        return np.asarray(np.maximum(super().std(), LEAST_STD * self.base.spread()))


@dataclass(frozen=True, eq=False)
class Clipped(_Mapped):
    """Distributions with the probability beyond limits at the limits."""

    family: ClassVar[str] = "clipped"
    low: Values  # (n,), lower limits; may be infinite
    high: Values  # (n,), upper limits

    def _map(self, values: Values) -> Values:
        return np.clip(values, self.low[:, None], self.high[:, None])

    @property
    def has_masses(self) -> bool:
        return bool(self.base.has_masses)

    def unclipped(self, level: float) -> Mask:
        lower, upper = self.base.central_interval(level)
        return np.asarray((lower > self.low) & (upper < self.high))

    def validate_targets(self, y: Values) -> None:
        require("y", (y >= self.low) & (y <= self.high), "must lie within the limits of --clip")
        self.base.validate_targets(np.where((y > self.low) & (y < self.high), y, 0.0))

    def cdf(self, y: Values) -> Values:
        return self._up_to(y, self.base.cdf(y))

    def cdf_left(self, y: Values) -> Values:
        return self._below(y, self.base.cdf_left(y))

    def cdf_limits(self, y: Values) -> tuple[Values, Values]:
        left, right = self.base.cdf_limits(y)
        return self._below(y, left), self._up_to(y, right)

    def _below(self, y: Values, left: Values) -> Values:
        return np.where(y <= self.low, 0.0, np.where(y > self.high, 1.0, left))

    def _up_to(self, y: Values, right: Values) -> Values:
        return np.where(y < self.low, 0.0, np.where(y >= self.high, 1.0, right))

    def above(self, y: Values) -> Values:
        return np.where(y <= self.low, 1.0, np.where(y > self.high, 0.0, self.base.above(y)))

    def log_prob(self, y: Values) -> Values:
        """Return log densities, and log probabilities at the limits."""
        inside = np.where((y >= self.low) & (y <= self.high), self.base.log_prob(y), -np.inf)
        low, high = self._log_masses
        return np.where(y == self.low, low, np.where(y == self.high, high, inside))

    @cached_property
    def _log_masses(self) -> tuple[Values, Values]:
        low, high = (np.where(np.isfinite(limit), limit, 0.0) for limit in (self.low, self.high))
        masses = self.base.cdf(low), self.base.above(high)
        return _log_mass(masses[0], self.base, low, -1), _log_mass(masses[1], self.base, high, 1)

    def _made_blocks(self) -> Iterator[Block]:
        if isinstance(self.base, Counts):
            for rows, k, mass in self.base.masses():
                yield rows, np.clip(k, self.low[rows, None], self.high[rows, None]), mass
            return
        for rows, part in blocks_of(self, len(SCORES) * len(NODES)):
            edges = part.edges()
            values, weights = panels(edges)
            mass = weights * _densities(part.base, values)
            below = np.where(np.isfinite(part.low), part.base.cdf(edges[:, 0]), 0.0)
            above = np.where(np.isfinite(part.high), part.base.above(edges[:, -1]), 0.0)
            yield rows, np.column_stack([edges[:, [0, -1]], values]), np.column_stack([below, above, mass])

    def edges(self) -> Values:
        return self._map(self.base.edges())

    def crps(self, y: Values) -> Values:
        """Return the CRPS before, less what it has beyond the limits, where targets are not."""
        return np.asarray(self.base.crps(y) - self.beyond)

    @cached_property
    def beyond(self) -> Values:
        """The integrals of F^2 below the lower limit and of (1 - F)^2 above the upper one, (n,)."""
        found = np.empty(len(self))
        if isinstance(self.base, Counts):
            for rows, k, mass in self.base.masses():
                below, low, high = np.cumsum(mass, axis=1), self.low[rows, None], self.high[rows, None]
                steps = below**2 * np.clip(low - k, 0, 1) + (1 - below) ** 2 * np.clip(k + 1 - high, 0, 1)
                outside = np.maximum(low - k[-1] - 1, 0) + np.maximum(k[0] - high, 0)
                found[rows] = steps.sum(axis=1) + outside[:, 0]
            return found
        for rows, part in blocks_of(self, len(SCORES) * len(NODES)):
            edges = part.base.edges()
            low, high = (
                np.where(np.isfinite(limit), limit, edge)[:, None]
                for limit, edge in ((part.low, edges[:, 0]), (part.high, edges[:, -1]))
            )
            below = np.column_stack([np.minimum(edges, low), low])
            above = np.column_stack([high, np.maximum(edges, high)])
            sides = (panels(np.sort(below, axis=1)), part.base.cdf), (panels(np.sort(above, axis=1)), part.base.above)
            found[rows] = sum(np.sum(weights * columns(of, values) ** 2, axis=1) for (values, weights), of in sides)
        return found


@dataclass(frozen=True, eq=False)
class ClippedNormal(Clipped):
    """Clipped normal distributions: closed forms instead of sums over nodes."""

    @cached_property
    def beyond(self) -> Values:
        loc, scale = self.base.loc, self.base.scale
        return np.asarray(scale * sum(map(_squares_below, ((self.low - loc) / scale, (loc - self.high) / scale))))

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        gammas = np.broadcast_to(gamma[..., 0], len(points))
        return self._kernel_inside(points[:, 0], gammas) + sum(
            mass[:, None] * np.exp(-(special.in_lengths(points[:, 0] - limit[:, None], gammas) ** 2))
            for limit, mass in self._atoms
        )

    def kernel_norm(self, gamma: Values) -> Values:
        (low, below), (high, above) = self._atoms
        apart = below * above * np.exp(-(special.in_lengths(high - low, gamma[0]) ** 2))
        beside = sum(mass * self._kernel_inside(at[:, None], gamma[:1])[:, 0] for at, mass in self._atoms)
        ends = self.low - self.base.loc, self.high - self.base.loc
        inside = special.truncated_normal_kernel_norm(self.base.scale, gamma[0], ends)
        return np.asarray(below**2 + above**2 + 2 * (apart + beside) + inside)

    def _kernel_inside(self, points: Values, gamma: Values) -> Values:
        """Return E k(p, Y_i) 1{low < Y_i < high} at points (r,) or (n, r), (n, r)."""
        loc, scale = self.base.loc[:, None], self.base.scale[:, None]
        ends = self.low[:, None] - loc, self.high[:, None] - loc
        return special.truncated_normal_kernel_mean(points - loc, scale, gamma, ends)

    @cached_property
    def _atoms(self) -> tuple[tuple[Values, Values], tuple[Values, Values]]:
        """The limits, 0 for infinite ones, and the probabilities there."""
        low, high = (np.where(np.isfinite(limit), limit, 0.0) for limit in (self.low, self.high))
        return (low, self.base.cdf(self.low)), (high, self.base.above(self.high))


def _squares_below(z: Values) -> Values:
    """Return the integral of the square of the standard normal distribution function up to z; 0 for -inf."""
    at = np.maximum(z, -special.FARTHEST_SCORE)
    below, density = sc.ndtr(at), np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(at * below**2 + 2 * density * below - sc.ndtr(np.sqrt(2) * at) / np.sqrt(np.pi))


@dataclass(frozen=True, eq=False)
class Rounded(_Mapped):
    """Distributions on multiples of a step: sums over the grid and, far out, over nodes of the distribution before."""

    family: ClassVar[str] = "rounded"
    has_masses = True
    step: Values  # (n,), distances of the points of the grid

    def _map(self, values: Values) -> Values:
        return round_to(values, self.step[:, None])

    def unclipped(self, level: float) -> Mask | None:
        found: Mask | None = self.base.unclipped(level)
        return found

    def validate_targets(self, y: Values) -> None:
        require("y", y == round_to(y, self.step), "must be multiples of --rounded")

    def std(self) -> Values:
        """Return the same, by those before where they may matter: targets are rounded by half a step at most."""
        found = np.array(Derived.std(self))
        tiny = np.flatnonzero(found < LEAST_STD * self.step)
        if len(tiny):
            found[tiny] = np.maximum(found[tiny], LEAST_STD * self.base.take(tiny).spread())
        return found

    def cdf(self, y: Values) -> Values:
        return np.asarray(self.base.cdf_left((np.floor(y / self.step + AT_LIMIT) + 0.5) * self.step))

    def _start(self, y: Values) -> Values:
        """Return the lower end of what is rounded to the first point of the grid from y on, (n,)."""
        return np.asarray((np.ceil(y / self.step - AT_LIMIT) - 0.5) * self.step)

    def cdf_left(self, y: Values) -> Values:
        return np.asarray(self.base.cdf_left(self._start(y)))

    def above(self, y: Values) -> Values:
        return np.asarray(self.base.above(self._start(y)))

    def log_prob(self, y: Values) -> Values:
        """Return log probabilities; of tiny ones, the density before times the step."""
        return self.log_mass(y, *self.cdf_limits(y))

    def log_mass(self, y: Values, left: Values, right: Values) -> Values:
        """Return the same, given the limits of F at targets."""
        low, high = y - self.step / 2, y + self.step / 2
        mass = np.where(left > MIDDLE, self.base.above(low) - self.base.above(high), right - left)
        on_grid = y == round_to(y, self.step)
        with np.errstate(divide="ignore"):
            found = np.where(on_grid, np.log(np.maximum(mass, 0)), -np.inf)
        far = on_grid & (mass < TINY)
        return np.where(far, self.base.log_prob(y) + np.log(self.step), found) if far.any() else found

    @cached_property
    def _ends(self) -> tuple[Values, Values, Values]:
        """The first and the last point of the grid, in steps, and edges of the distributions before."""
        edges, middle = self.base.edges(), np.floor(self.base.median() / self.step + 0.5)
        first, last = (np.floor(edge / self.step + 0.5) for edge in (edges[:, 0], edges[:, -1]))
        return np.maximum(first, middle - MOST_POINTS), np.minimum(last, middle + MOST_POINTS), edges

    def _grid(self) -> Iterator[tuple[Indices, Any, Values, Values]]:
        """Yield blocks of rows with the points of the grid and F at these, (b, k) each."""
        return iter(self._cached_grid) if self._cached_grid is not None else self._made_grid()

    @cached_property
    def _cached_grid(self) -> list[tuple[Indices, Any, Values, Values]] | None:
        first, last, _ = self._ends
        return list(self._made_grid()) if np.sum(last - first + 1) <= MAX_CACHED_VALUES else None

    def _made_grid(self) -> Iterator[tuple[Indices, Any, Values, Values]]:
        first, last, _ = self._ends
        for rows, part in blocks_of(self, int((last - first).max()) + 1, np.argsort(first + last)):
            k = first[rows, None] + np.arange((last - first)[rows].max() + 1)
            yield rows, part, k * part.step[:, None], columns(part.base.cdf_left, (k + 0.5) * part.step[:, None])

    def _made_blocks(self) -> Iterator[Block]:
        edges = self._ends[2]
        for rows, part, values, below in self._grid():
            low, high = values[:, 0] - part.step / 2, values[:, -1] + part.step / 2
            parts = [(values, np.diff(below, axis=1, prepend=part.base.cdf_left(low)[:, None]))]
            if isinstance(part.base, Continuous):
                tails = np.minimum(edges[rows], low[:, None]), np.maximum(edges[rows], high[:, None])
                for tail, weights in map(panels, tails):
                    mass = weights * _densities(part.base, tail)
                    parts += [(tail, mass)] if weights.any() else []
            yield rows, np.hstack([each for each, _ in parts]), np.hstack([each for _, each in parts])

    def crps(self, y: Values) -> Values:
        """Return the sum over the grid of (F - 1{u >= y})^2, times the step."""
        first, last, _ = self._ends
        k = np.clip(np.rint(y / self.step), first, last)
        score = np.abs(y - k * self.step) + self._tails
        for rows, sums in self._sums if self._sums is not None else self._made_sums():
            score[rows] += sums[np.arange(len(sums)), (k[rows] - first[rows]).astype(np.intp)]
        return score

    @cached_property
    def _sums(self) -> list[tuple[Indices, Values]] | None:
        first, last, _ = self._ends
        return list(self._made_sums()) if np.sum(last - first + 1) <= MAX_CACHED_SUMS else None

    def _made_sums(self) -> Iterator[tuple[Indices, Values]]:
        """Yield blocks of rows with the sums of F^2 before, and of (1 - F)^2 from, each point of the grid, (b, k)."""
        for rows, part, _, below in self._grid():
            squares, others = below**2 * part.step[:, None], (1 - below) ** 2 * part.step[:, None]
            yield rows, np.cumsum(squares, axis=1) - squares + np.cumsum(others[:, ::-1], axis=1)[:, ::-1]

    @cached_property
    def _tails(self) -> Values:
        """The integrals of F^2 before the grid and of (1 - F)^2 beyond it, (n,)."""
        if not isinstance(self.base, Continuous):
            return np.zeros(len(self))
        first, last, _ = self._ends
        clipped = clip(self.base, (first - 0.5) * self.step, (last + 0.5) * self.step)
        return clipped.beyond if isinstance(clipped, Clipped) else np.zeros(len(self))
