"""Base class of count distributions, computed by sums over the effective support."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from calcheck.core import sc
from calcheck.core.validation import require, require_counts, require_finite, require_positive
from calcheck.distributions.base import Predictive, assemble
from calcheck.distributions.row_random import Random
from calcheck.errors import DataError
from calcheck.typing import Indices, Mask, Values

Block = tuple[Indices, Values, Values, Values]

TAIL_RATE = 45.0  # Neglected tails have a probability below e^-45 = 3e-20
CHUNK_VALUES = 1 << 12  # Values of the support per kernel block
BLOCK_VALUES = 1 << 20  # Maximum numbers per block of probabilities, 8 MiB
OVERLAP = 4  # Maximum width of a block's common support, relative to that of its first row
MAX_CACHED_VALUES = 1 << 22  # Maximum numbers in cached blocks, 32 MiB
LARGEST_SUPPORT = 1 << 19  # Maximum width of a support; larger sums take minutes
LARGEST_MEAN = 2.0**53  # Floats represent all whole numbers up to here
WIDE_FROM = 100.0  # Standard deviation above which closed forms or integrals replace sums
SMOOTH_FROM = 100.0  # (mean / std)^2 above which the mass function is smooth at the scale of std, and negligible at 0
FINER = 4.0  # Values summed per standard deviation or kernel length scale: the error is below e^-40
NEWTON_STEPS, MAX_STEPS = 4, 64  # Iterations for quantiles: Newton; bracketing and bisection


@dataclass(frozen=True, eq=False)
class Counts(Predictive):
    """Distributions on 0, 1, 2, …, defined by unnormalized probabilities and a large-deviation rate.

    This rate, :meth:`deviance`, gives the effective support, which has all but e^-45 of the probability and over which
    methods sum. Wide distributions (:meth:`is_wide`) may have closed forms instead. Sums of functions that are smooth
    at the scale of the standard deviation, such as kernels, use an equidistant subset of the support (Poisson summation
    formula).
    """

    is_discrete: ClassVar[bool] = True
    normalized: ClassVar[bool] = False  # Whether :meth:`log_weight` is the normalized log probability

    def validate_targets(self, y: Values) -> None:
        require_counts("y", y, self.family)

    @staticmethod
    def require_countable(name: str, mean: Values) -> None:
        """Raise an error unless means are positive and at most 2^53, up to which floats represent all whole numbers."""
        require_finite(name, mean)
        remedy = "Describe such counts by --mean and --std instead."
        require(
            name, mean <= LARGEST_MEAN, "must be at most 2^53: floats cannot represent all larger whole numbers", remedy
        )
        require_positive(name, mean)

    @abstractmethod
    def log_weight(self, k: Values, rows: Indices) -> Values:
        """Return log P(Y_i = k_j) up to a constant per row, (b, w), for k (w,) or (b, w) and b rows."""

    @abstractmethod
    def deviance(self, k: Values) -> Values:
        """Return I_i(k_i) >= 0, (n,): convex, 0 at the mode, and log P(Y_i beyond k_i) <= -I_i + O(log k)."""

    @abstractmethod
    def mode(self) -> Values:
        """Return the values at which :meth:`deviance` is 0, (n,)."""

    @abstractmethod
    def spread(self) -> Values:
        """Return exact or approximate standard deviations, (n,)."""

    def is_wide(self) -> Mask:
        """Return which rows have closed forms in place of sums, (n,)."""
        return np.zeros(len(self), np.bool_)

    def wide_below(self, last: Values) -> Values:
        """Return P(Y_i <= last_i) for whole numbers >= 0, (n,), within 1e-8; all rows are wide."""
        return self._summed_below(last)

    def wide_shortfall(self, y: Values) -> Values:
        """Return the sum over k <= y_i of (mean_i - k) P(Y_i = k), (n,), for whole y; all rows are wide."""
        mean = self.mean()
        return self._each_block(
            lambda rows, k, mass: np.sum(mass * (mean[rows, None] - k), axis=1, where=k <= y[rows, None])
        )

    def wide_pairs(self) -> Values:
        """Return E|Y_i - Y_i'| / 2 for independent Y_i and Y_i', (n,); all rows are wide."""
        return self._each_block(lambda _, __, mass: half_distance(mass))

    def smooth(self) -> Mask:
        """Return which rows have a mass function that is smooth at the scale of its spread, (n,)."""
        return np.asarray((self.spread() >= WIDE_FROM) & (self.mode() >= np.sqrt(SMOOTH_FROM) * self.spread()))

    @cached_property
    def _widths(self) -> tuple[Indices, Indices, Self, Self]:
        """Indices of the narrow rows (summed) and of the wide rows, and the distributions of both."""
        wide = self.is_wide()
        summed, closed = np.flatnonzero(~wide), np.flatnonzero(wide)
        return summed, closed, self if len(summed) == len(self) else self.take(summed), self.take(closed)

    def _each(self, summed: Callable[[Self, Indices], Values], closed: Callable[[Self, Indices], Values]) -> Values:
        """Return the results of ``summed`` for narrow rows and of ``closed`` for wide rows, (n,)."""
        narrow, wide, few, many = self._widths
        if not len(wide):
            return summed(self, narrow)
        values = np.empty(len(self))
        values[wide] = closed(many, wide)
        if len(narrow):
            values[narrow] = summed(few, narrow)
        return values

    def support(self, stride: Values | None = None) -> tuple[Values, Values]:
        """Return the limits of the effective support, (n,) each, as multiples of a stride (n,)."""
        mode = self.mode()
        stride = np.ones_like(mode) if stride is None else stride
        step = stride.copy()
        while (short := self.deviance(mode + step) < TAIL_RATE).any():
            step[short] *= 2
            if (step > LARGEST_SUPPORT * stride).any():
                raise DataError(
                    f"a {self.family} distribution with mean {mode[np.argmax(step / stride)]:.4g} spreads over more"
                    f" than {LARGEST_SUPPORT:,} values. Describe it as a Gaussian (--mean, --std) instead"
                )
        high = self._tail_limit(mode, mode + step, stride)
        low = self._tail_limit(mode, np.zeros_like(mode), stride)
        return np.floor(low / stride) * stride, np.ceil(high / stride) * stride

    def _tail_limit(self, inner: Values, outer: Values, tolerance: Values) -> Values:
        """Return the values at which the rate is :data:`TAIL_RATE`, within a tolerance, by bisection."""
        for _ in range(MAX_STEPS):
            if (np.abs(outer - inner) <= tolerance).all():
                break
            middle = (inner + outer) / 2
            inside = self.deviance(middle) < TAIL_RATE
            inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        return outer

    def masses(self) -> Iterator[tuple[Indices, Values, Values]]:
        """Yield blocks of rows with the values of their common support and their probabilities, (b,)."""
        for rows, k, mass, _ in self._blocks():
            yield rows, k, mass

    def _each_block(self, of: Callable[[Indices, Values, Values], Values]) -> Values:
        """Return a function of each item of :meth:`masses`, (n,)."""
        return assemble(len(self), ((rows, of(rows, k, mass)) for rows, k, mass in self.masses()))

    def _blocks(self) -> Iterator[Block]:
        """Yield the items of :meth:`masses`, extended by the log of each row's sum of weights, (b,)."""
        return iter(self._cached_blocks) if self._cached_blocks is not None else map(self._block, *self._plan())

    @cached_property
    def _cached_blocks(self) -> list[Block] | None:
        """All blocks if they are small, for reuse by replicates and metrics; None otherwise."""
        rows, supports = self._plan()
        values = sum(len(block) * len(k) for block, k in zip(rows, supports, strict=True))
        return list(map(self._block, rows, supports)) if values <= MAX_CACHED_VALUES else None

    def _smooth_blocks(self, length: float = np.inf) -> Iterator[Block]:
        """Yield blocks with as few values as suffice for sums of functions that are smooth at the scale of a length."""
        stride = self._stride(length)
        return map(self._block, *self._plan(stride)) if (stride > 1).any() else self._blocks()

    def _stride(self, length: float = np.inf) -> Values:
        """Return the distances between the values of such sums, (n,): powers of two."""
        step = np.minimum(self.spread(), length) / FINER
        return 2 ** np.floor(np.log2(np.where(self.smooth(), np.maximum(step, 1), 1)))

    def _plan(self, stride: Values | None = None) -> tuple[list[Indices], list[Values]]:
        """Return the rows of each block, and the values of their common support: multiples of the stride (n,)."""
        stride = np.ones(len(self)) if stride is None else stride
        low, high = self.support(stride)
        blocks, supports = [], []
        for step in np.unique(stride):
            same = np.flatnonzero(stride == step)
            order, start = same[np.lexsort((high[same], low[same]))], 0
            while start < len(order):
                widths = (np.maximum.accumulate(high[order[start:]]) - low[order[start]]) / step + 1
                fits = widths * np.arange(1, len(widths) + 1) <= BLOCK_VALUES
                fits &= widths <= max(OVERLAP * widths[0], CHUNK_VALUES)
                stop = start + max(1, int(np.argmin(fits)) if not fits.all() else len(fits))
                rows = order[start:stop]
                blocks.append(rows)
                supports.append(low[rows].min() + step * np.arange((high[rows].max() - low[rows].min()) / step + 1))
                start = stop
        return blocks, supports

    def _block(self, rows: Indices, k: Values) -> Block:
        mass = self.log_weight(k, rows)
        largest = mass.max(axis=1, keepdims=True)
        mass -= largest
        np.exp(mass, out=mass)
        total = mass.sum(axis=1, keepdims=True)
        mass /= total
        return rows, k, mass, (largest + np.log(total))[:, 0]

    def mean(self) -> Values:
        return assemble(len(self), ((rows, mass @ k) for rows, k, mass, _ in self._smooth_blocks()))

    def std(self) -> Values:
        mean, blocks = self.mean(), self._smooth_blocks()
        squares = ((rows, np.sum(mass * (k - mean[rows, None]) ** 2, axis=1)) for rows, k, mass, _ in blocks)
        return np.sqrt(assemble(len(self), squares))

    def raw_moments(self, order: int) -> Values:
        powers = np.arange(order + 1)
        return assemble(len(self), ((rows, mass @ k[:, None] ** powers) for rows, k, mass, _ in self._smooth_blocks()))

    def cdf(self, y: Values) -> Values:
        return self._below(np.floor(y))

    def cdf_left(self, y: Values) -> Values:
        return self._below(np.ceil(y) - 1)

    def above(self, y: Values) -> Values:
        least = np.exp(self.log_prob(np.maximum(np.ceil(y), 0)))  # 1 - F is rounded where it is small
        return np.where(y <= 0, 1.0, np.maximum(1 - self.cdf_left(y), least))

    def _below(self, last: Values) -> Values:
        """Return P(Y_i <= last_i), (n,), for positive or negative whole numbers."""
        return self._each(
            lambda few, rows: few._summed_below(last[rows]),  # noqa: SLF001 - same class, here and below
            lambda many, rows: np.where(last[rows] < 0, 0, np.clip(many.wide_below(np.maximum(last[rows], 0)), 0, 1)),
        )

    def _summed_below(self, last: Values) -> Values:
        below = np.empty(len(self))
        for rows, first, cumulated in self._cumulated() if self._cached_blocks is None else self._cached_cumulated:
            count = np.clip(np.floor(last[rows] - first) + 1, 0, cumulated.shape[1] - 1).astype(np.intp)
            below[rows] = cumulated[np.arange(len(rows)), count]
        return np.minimum(below, 1.0)

    def _cumulated(self) -> Iterator[tuple[Indices, float, Values]]:
        """Yield the items of :meth:`masses` as the first value, and the probabilities below each value, (b, k + 1)."""
        for rows, k, mass in self.masses():
            yield rows, float(k[0]), np.pad(np.cumsum(mass, axis=1), ((0, 0), (1, 0)))

    @cached_property
    def _cached_cumulated(self) -> list[tuple[Indices, float, Values]]:
        return list(self._cumulated())

    def cdf_limits(self, y: Values) -> tuple[Values, Values]:
        right = self.cdf(y)
        left = self._each(
            lambda few, rows: few._summed_below(np.ceil(y[rows]) - 1),  # noqa: SLF001
            lambda many, rows: np.maximum(right[rows] - np.exp(many.log_prob(y[rows])), 0),
        )
        return left, right

    def log_prob(self, y: Values) -> Values:
        log_mass = self.log_weight(y[:, None], np.arange(len(self)))[:, 0]
        return log_mass if self.normalized else log_mass - self._log_totals

    @cached_property
    def _log_totals(self) -> Values:
        """The log of each row's sum of weights, (n,)."""
        totals = np.log(self._stride())
        for rows, _, _, log_total in self._smooth_blocks():
            totals[rows] += log_total
        return totals

    def crps(self, y: Values) -> Values:
        """Return E|Y - y| - E|Y - Y'| / 2, as sums over the support or, for wide rows, in closed form."""
        return self._each(
            lambda few, rows: few._summed_crps(y[rows]),  # noqa: SLF001
            lambda many, rows: many._closed_crps(y[rows]),  # noqa: SLF001
        )

    def _summed_crps(self, y: Values) -> Values:
        return self._each_block(
            lambda rows, k, mass: np.sum(mass * np.abs(k - y[rows, None]), axis=1) - half_distance(mass)
        )

    def _closed_crps(self, y: Values) -> Values:
        """Return (y - mean) (2 F(y) - 1) + 2 sum over k <= y of (mean - k) P(Y = k) - E|Y - Y'| / 2."""
        mean, pairs = self._wide_moments
        return np.asarray((y - mean) * (2 * self.cdf(y) - 1) + 2 * self.wide_shortfall(y) - pairs)

    @cached_property
    def _wide_moments(self) -> tuple[Values, Values]:
        """Means and E|Y - Y'| / 2, (n,) each, cached because they do not depend on the targets."""
        return self.mean(), self.wide_pairs()

    def quantile(self, p: float) -> Values:
        return self._each(
            lambda few, _: few._summed_quantile(p),  # noqa: SLF001
            lambda many, _: many._closed_quantile(p),  # noqa: SLF001
        )

    def _summed_quantile(self, p: float) -> Values:
        return self._each_block(lambda rows, k, mass: k[self._first_reaching(mass, np.full((len(rows), 1), p))[:, 0]])

    def _closed_quantile(self, p: float | Values) -> Values:
        """Return the quantiles, searched from those of the gamma distribution with the same two moments."""
        mean, spread = self.mode(), self.spread()
        guess = np.floor(sc.gammaincinv((mean / spread) ** 2, p) * (spread**2 / mean))
        for _ in range(NEWTON_STEPS):
            slope = np.exp(self.log_prob(guess))
            missing = np.divide(p - self.cdf(guess), slope, out=np.zeros_like(guess), where=slope > 0)
            guess = np.maximum(guess + np.floor(np.clip(missing, -spread, spread)), 0)
        low, high = guess - 1, guess
        step = np.ones_like(guess)
        for _ in range(MAX_STEPS):  # F(low) < p <= F(high)
            early, late = (low >= 0) & (self.cdf(low) >= p), self.cdf(high) < p
            if not (early | late).any():
                break
            low, high = np.where(early, np.maximum(low - step, -1), low), np.where(late, high + step, high)
            step = 2 * step
        for _ in range(MAX_STEPS):
            if (high - low <= 1).all():
                break
            middle = np.floor((low + high) / 2)
            reached = self.cdf(middle) >= p
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high

    def sample(self, rng: Random, size: int) -> Values:
        uniform = rng.random((len(self), size))
        narrow, wide, few, many = self._widths
        drawn = np.empty((len(self), size))
        if len(wide):
            drawn[wide] = many.wide_quantiles(uniform[wide])
        for part, k, mass in few.masses() if len(narrow) else ():
            rows = narrow[part]
            drawn[rows] = k[self._first_reaching(mass, uniform[rows])]
        return drawn

    def wide_quantiles(self, p: Values) -> Values:
        """Return the quantiles at levels p, (n, s), with its shape; all rows are wide."""
        return np.stack([self._closed_quantile(level) for level in p.T], axis=1)

    @staticmethod
    def _first_reaching(mass: Values, p: Values) -> Indices:
        """Return for each row the first indices at which the cumulative probability reaches p, (b, s)."""
        cumulated = np.cumsum(mass, axis=1)
        cumulated /= cumulated[:, -1:]  # ends at exactly 1, above every p
        return np.stack([np.searchsorted(row, levels) for row, levels in zip(cumulated, p, strict=True)])

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        mean = np.zeros((len(self), len(points)))
        at, precision = points[:, 0], np.broadcast_to(gamma[..., 0], len(points))
        reach = np.sqrt(TAIL_RATE / precision)  # the kernel is negligible beyond
        for rows, k, mass, _ in self._smooth_blocks(float(np.sqrt(0.5 / precision.max()))):
            for start in range(0, len(k), CHUNK_VALUES):
                part = k[start : start + CHUNK_VALUES]
                near = np.flatnonzero((at > part[0] - reach) & (at < part[-1] + reach))
                kernel = np.exp(-precision[near] * (part[:, None] - at[near]) ** 2)
                mean[rows[:, None], near] += mass[:, start : start + CHUNK_VALUES] @ kernel
        return mean

    def kernel_norm(self, gamma: Values) -> Values:
        norm = np.empty(len(self))
        for rows, k, mass, _ in self._smooth_blocks(float(np.sqrt(0.5 / gamma[0]))):
            lags = k - k[0]
            weights = np.exp(-gamma[0] * lags**2.0) * np.where(lags == 0, 1, 2)
            norm[rows] = autocorrelation(mass) @ weights
        return norm


def half_distance(mass: Values) -> Values:
    """Return E|Y - Y'| / 2 for independent Y and Y' with probabilities (b, w) of consecutive whole numbers, (b,)."""
    below = np.cumsum(mass, axis=1)
    return np.asarray(np.sum(below * (1 - below), axis=1))


def autocorrelation(mass: Values) -> Values:
    """Return the sums of products of probabilities (b, w) that are 0, 1, … places apart, (b, w)."""
    spectrum = np.fft.rfft(mass, n=2 * mass.shape[1], axis=1)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, n=2 * mass.shape[1], axis=1)[:, : mass.shape[1]])
