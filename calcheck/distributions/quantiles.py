"""Distributions given by quantiles, and prediction intervals."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from calcheck.core import sc
from calcheck.core.metric_info import Part
from calcheck.core.validation import require, require_moderate
from calcheck.distributions.base import Predictive
from calcheck.distributions.row_random import Random, RowRandom
from calcheck.distributions.special import exponential_kernel_mean, exponential_moments, fill, ratio, shifted_moments
from calcheck.errors import DataError
from calcheck.options import LEVEL_TOLERANCE
from calcheck.typing import Indices, Mask, Values

MIN_LEVELS = 2  # Minimum number of levels: location and width
OUTERMOST = 0.05  # Maximum tail probability for which means and standard deviations are defined
SHOWN = 5  # Maximum number of quantiles in a description
NARROW = 3e-3  # Width of a piece, in 1 / sqrt(gamma), below which a series replaces a difference of erfc
FLAT = 10.0  # Distance from the ends of a piece, in length scales, beyond which kernel means are constant
PANEL_LENGTH = 2.0  # Length of a quadrature panel, in length scales
NEAR, SMALL = 4.0, 1e-14  # Distance of near quantiles from their middle, over 1 / sqrt(gamma), and terms left out
APART = 1e-5  # Minimum relative difference of two tail scales; smaller differences are replaced by it
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
BLOCK_VALUES = 1 << 18  # Kernel values per block, 2 MiB
SIDES = 2.0**32  # Times a uniform number, which has a fraction that hardly depends on its size
NOT_STATED = "prediction intervals state nothing about the distribution but how often targets are inside"


@dataclass(frozen=True, eq=False)
class Quantiles(Predictive):
    """Distributions whose quantile function is linear between the given levels; equal adjacent quantiles are an atom.

    Beyond the outermost quantiles, the tails are exponential, and start with the density of the outermost interval. If
    that interval has width 0, the tail is a point mass.
    """

    family: ClassVar[str] = "quantiles"
    shared: ClassVar[tuple[str, ...]] = ("levels",)
    kernel_error = 1e-10
    levels: Values  # (q,), increasing, in (0, 1), equal for all rows; at least two
    values: Values  # (n, q), quantiles, nondecreasing along each row, in the unit of the targets

    def __post_init__(self) -> None:
        self.hold_in_double()
        listed = ", ".join(f"{level:g}" for level in self.levels)
        if len(self.levels) < MIN_LEVELS:
            raise DataError(f"quantiles need at least two levels, got {listed or 'none'}")
        inside = (self.levels > 0) & (self.levels < 1)
        if not inside.all() or not (np.diff(self.levels) > 0).all():
            raise DataError(f"levels of quantiles must increase and lie strictly between 0 and 1, got {listed}")
        if self.values.shape[1:] != self.levels.shape:
            raise DataError(f"quantiles must be rows by {len(self.levels)} levels, got shape {self.values.shape}")
        require_moderate("quantiles", self.values)
        require("quantiles", self.values[:, 1:] >= self.values[:, :-1], "must be nondecreasing (no crossing)")

    @property
    def quantile_levels(self) -> Values:
        return self.levels

    @property
    def caveat(self) -> str:
        return (
            f"distributions are given by {len(self.levels)} quantiles, from {self.levels[0]:g} to {self.levels[-1]:g}:"
            " they are interpolated linearly and extended by exponential tails"
        )

    def join(self, others: list[Self]) -> Self:
        for other in others:
            if not self._shares_fields(other):
                listed = [", ".join(f"{level:g}" for level in part.levels) for part in (self, other)]
                raise DataError(f"quantiles at different levels cannot be joined: {listed[0]}, and {listed[1]}")
        return super().join(others)

    @property
    def _tails(self) -> tuple[float, Values, float, Values]:
        """Probability and scale (n,) of the left tail, and of the right tail."""
        below, above = float(self.levels[0]), float(1 - self.levels[-1])
        gaps = np.diff(self.levels)
        left = below * (self.values[:, 1] - self.values[:, 0]) / gaps[0]
        right = above * (self.values[:, -1] - self.values[:, -2]) / gaps[-1]
        return below, left, above, right

    def _require_tails(self, what: str) -> None:
        """Raise an error unless the tail probabilities are small."""
        if self.levels[0] > OUTERMOST + LEVEL_TOLERANCE or self.levels[-1] < 1 - OUTERMOST - LEVEL_TOLERANCE:
            raise DataError(
                f"the {what} depends on the tails, and nothing is known beyond the quantiles"
                f" {self.levels[0]:g} … {self.levels[-1]:g}: give quantiles at levels of {OUTERMOST:g} or less and of"
                f" {1 - OUTERMOST:g} or more"
            )

    def mean(self) -> Values:
        self._require_tails("mean")
        below, left, above, right = self._tails
        middles = (self.values[:, :-1] + self.values[:, 1:]) / 2
        tails = below * (self.values[:, 0] - left) + above * (self.values[:, -1] + right)
        return np.asarray(middles @ np.diff(self.levels) + tails)

    def std(self) -> Values:
        self._require_tails("standard deviation")
        below, left, above, right = self._tails
        away = np.where(np.ptp(self.values, axis=1, keepdims=True) > 0, self.values - self.mean()[:, None], 0.0)
        squares = ((away[:, :-1] + away[:, 1:]) / 2) ** 2 + np.diff(away, axis=1) ** 2 / 12
        tails = below * ((away[:, 0] - left) ** 2 + left**2) + above * ((away[:, -1] + right) ** 2 + right**2)
        return np.asarray(np.sqrt(squares @ np.diff(self.levels) + tails))

    def rescale(self, shift: Values, factor: Values) -> Self:
        """Return the quantiles moved, and stretched about the middle of those at the innermost levels."""
        inner = np.abs(self.levels - 1 / 2)
        middle = self.values[:, inner <= inner.min() + LEVEL_TOLERANCE].mean(axis=1, keepdims=True)
        return replace(self, values=middle + shift[:, None] + factor[:, None] * (self.values - middle))

    def raw_moments(self, order: int) -> Values:
        """Return the moments: sums over uniform pieces and exponential tails, (n, order + 1)."""
        self._require_tails(f"moment of order {order}")
        below, left, above, right = self._tails
        low, high = self.values[:, :-1], self.values[:, 1:]
        moments = below * shifted_moments(self.values[:, 0], -left, exponential_moments(order))
        moments += above * shifted_moments(self.values[:, -1], right, exponential_moments(order))
        for k in range(order + 1):
            of_pieces = sum(low**j * high ** (k - j) for j in range(k + 1)) / (k + 1)
            moments[:, k] += of_pieces @ np.diff(self.levels)
        return moments

    def cdf(self, y: Values) -> Values:
        return self._below(y, np.sum(self.values <= y[:, None], axis=1))

    def cdf_left(self, y: Values) -> Values:
        return self._below(y, np.sum(self.values < y[:, None], axis=1))

    def _below(self, y: Values, passed: Indices) -> Values:
        """Return the probability below y_i, (n,), given the number of quantiles below it."""
        below, left, above, right = self._tails
        last = len(self.levels) - 1
        piece = np.clip(passed - 1, 0, last - 1)
        low, high = (self.values[np.arange(len(y)), piece + side] for side in (0, 1))
        share = ratio(y - low, high - low, 0.0)
        inside = np.minimum(self.levels[piece] + share * np.diff(self.levels)[piece], self.levels[piece + 1])
        before = below * np.exp(-ratio(self.values[:, 0] - y, left, np.inf).clip(0))
        beyond = 1 - above * np.exp(-ratio(y - self.values[:, -1], right, np.inf).clip(0))
        return np.where(passed == 0, before, np.where(passed > last, beyond, inside))

    def crps(self, y: Values) -> Values:
        below, left, above, right = self._tails
        low, high = self.values[:, :-1], self.values[:, 1:]
        at = np.clip(y[:, None], low, high)
        before, beyond = self.levels[:-1], self.levels[1:]
        middle = before + ratio(at - low, high - low, 0.0) * (beyond - before)
        score = np.sum(_squares(at - low, before, middle) + _squares(high - at, 1 - middle, 1 - beyond), axis=1)
        return np.asarray(
            score + _tail_crps(self.values[:, 0] - y, below, left) + _tail_crps(y - self.values[:, -1], above, right)
        )

    def losses(self, y: Values) -> Values:
        """Return the scores that fits minimize, (n,): the CRPS."""
        return self.crps(y)

    def quantile(self, p: float) -> Values:
        """Return the quantiles; at the given levels, they are exactly the given values."""
        nearest = int(np.argmin(np.abs(self.levels - p)))
        if abs(self.levels[nearest] - p) <= LEVEL_TOLERANCE:
            return self.values[:, nearest]
        if not self.levels[0] < p < self.levels[-1]:
            raise DataError(
                f"nothing is known beyond the quantiles {self.levels[0]:g} … {self.levels[-1]:g}, but level {p:.4g} is"
                " needed. Save quantiles at this level or farther out"
            )
        return self.at_levels(np.full((len(self), 1), p))[:, 0]

    def central_mass(self, level: float) -> Values:
        """Return the level where the limits are given, even if tied; else the mass between interpolated ones."""
        nearest = np.abs(self.levels[:, None] - [(1 - level) / 2, (1 + level) / 2]).min(axis=0)
        return np.full(len(self), level) if (nearest <= LEVEL_TOLERANCE).all() else super().central_mass(level)

    def interval_mass_error(self, y: Values, low: Values, high: Values) -> Values:
        """Return the probability between the quantiles adjacent to both limits; 1 or 0 where these are given."""
        padded = np.concatenate([[0.0], self.levels, [1.0]])
        error = np.zeros(len(self))
        for end in (low, high):
            known = (self.values == end[:, None]).any(axis=1)
            passed = np.sum(self.values < end[:, None], axis=1)
            error += np.where(known, y == end, padded[passed + 1] - padded[passed])
        return error

    def support_interval(self, tail: float) -> tuple[Values, Values]:
        low, high = self.at_levels(np.tile([tail, 1 - tail], (len(self), 1))).T
        return low, high

    def sample(self, rng: Random, size: int) -> Values:
        """Return draws, of which those in the tails are beyond the outermost quantiles, even where these are tied."""
        p = 1 - rng.random((len(self), size))  # in (0, 1]
        drawn = self.at_levels(p)
        lowest, highest = np.nextafter(self.values[:, [0]], -np.inf), np.nextafter(self.values[:, [-1]], np.inf)
        drawn = np.where(p < self.levels[0], np.minimum(drawn, lowest), drawn)
        return np.where(p > self.levels[-1], np.maximum(drawn, highest), drawn)

    def at_levels(self, p: Values) -> Values:
        """Return the quantiles at levels p, (n, s), including those in the tails."""
        below, left, above, right = self._tails
        piece = np.clip(np.searchsorted(self.levels, p) - 1, 0, len(self.levels) - 2)
        low, high = (np.take_along_axis(self.values, piece + side, axis=1) for side in (0, 1))
        share = (p - self.levels[piece]) / np.diff(self.levels)[piece]
        inside = low + share * (high - low)
        before = self.values[:, :1] + left[:, None] * np.log(np.minimum(p / below, 1))
        tiny = np.finfo(np.float64).tiny
        beyond = self.values[:, -1:] - right[:, None] * np.log(np.clip((1 - p) / above, tiny, 1))
        return np.where(p < self.levels[0], before, np.where(p > self.levels[-1], beyond, inside))

    def kinks(self) -> Values:
        return self.values

    def kernel_mean(self, points: Values, gamma: Values) -> Values:
        mean = np.empty((len(self), len(points)))
        size = max(1, BLOCK_VALUES // len(points))
        for start in range(0, len(self), size):
            part = self.take(slice(start, start + size))
            at = points[None, :, 0]
            mean[start : start + size] = part.pieces_at(at, gamma[..., 0]) + part.tails_at(at, gamma[..., 0])
        return mean

    def pieces_at(self, points: Values, gamma: Values) -> Values:
        """Return the part of E k(p_ij, Y_i) between the outermost quantiles, (n, r), at points (n, r) or (1, r)."""
        mean = np.zeros(np.broadcast_shapes((len(self), 1), points.shape))
        root = np.sqrt(gamma)
        for mass, low, high in zip(np.diff(self.levels), self.values.T[:-1], self.values.T[1:], strict=True):
            distance = np.abs(points - (low + (high - low) / 2)[:, None]) * root
            mean += mass * _interval_mean(distance, (high - low)[:, None] * root)
        return mean

    def tails_at(self, points: Values, gamma: Values) -> Values:
        """Return the part of E k(p_ij, Y_i) beyond the outermost quantiles, (n, r), at points (n, r) or (1, r)."""
        below, left, above, right = self._tails
        before = exponential_kernel_mean(self.values[:, :1] - points, left[:, None], gamma)
        beyond = exponential_kernel_mean(points - self.values[:, -1:], right[:, None], gamma)
        return below * before + above * beyond

    def kernel_norm(self, gamma: Values) -> Values:
        r"""Return the squared norms: terms between tails in closed form, the others by Gauss-Legendre quadrature.

        Where all quantiles are near each other, the kernel between these is a sum of products,
        :math:`e^{-(s - t)^2} = e^{-s^2} e^{-t^2} \sum_k (2 s t)^k / k!`, so that the norm is a sum of squares of means.
        """
        below, left, above, right = self._tails
        gap, root = self.values[:, 0] - self.values[:, -1], np.sqrt(gamma[0])
        center, near = (self.values[:, [0]] + self.values[:, [-1]]) / 2, -gap * root <= 2 * NEAR
        largest = float((gap[near] * root / 2).min(initial=0.0)) ** 2  # of s t
        size, count = float(np.exp(-2 * largest)), 0
        while size > SMALL:
            count += 1
            size *= 2 * largest / count
        products = np.zeros((count, len(self)))
        norm = 2 * below * above * _sum_kernel_mean(gap, left, right, gamma[0])
        for mass, scale in ((below, left), (above, right)):
            norm += mass**2 * exponential_kernel_mean(np.zeros(1), scale, gamma[0])
        for piece, mass in enumerate(np.diff(self.levels)):
            for rows, y, weight in self._nodes(piece, 1 / np.sqrt(2 * gamma[0])):
                part, far = self.take(rows), np.flatnonzero(~near[rows])
                means = 2 * part.tails_at(y, gamma[0])
                means[far] += part.take(far).pieces_at(y[far], gamma[0])
                norm[rows] += mass * np.sum(weight * means, axis=1)
                at = root * (y - center[rows])
                term = mass * weight * np.exp(-(at**2))
                for number in range(count):
                    products[number, rows] += term.sum(axis=1)
                    term *= at * np.sqrt(2 / (number + 1))
        return norm + np.where(near, np.sum(products**2, axis=0), 0.0)

    def _nodes(self, piece: int, length: float) -> Iterator[tuple[Indices, Values, Values]]:
        """Yield blocks of rows with nodes (b, w) in one piece, where kernels are smooth, and weights that sum to 1."""
        low, high = self.values[:, piece], self.values[:, piece + 1]
        ends = np.minimum((high - low) / 2, FLAT * length)
        narrow = high - low <= PANEL_LENGTH * length
        count = int(np.ceil(FLAT / PANEL_LENGTH))
        steps = np.arange(count + 1) / count
        for chosen in (narrow, ~narrow):
            rows = np.flatnonzero(chosen)
            from_low = steps[:1] if chosen is narrow else steps
            size = max(1, BLOCK_VALUES // (2 * len(from_low) * len(NODES)))
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                offsets = ends[some, None] * from_low
                edges = np.concatenate([low[some, None] + offsets, high[some, None] - offsets[:, ::-1]], axis=1)
                widths = np.diff(edges, axis=1)[:, :, None]
                y = (edges[:, :-1, None] + widths * (1 + NODES) / 2).reshape(len(some), -1)
                share = ratio(widths, (high - low)[some, None, None], 1.0)  # 1 for an atom
                yield some, y, (share * WEIGHTS / 2).reshape(len(some), -1)

    def describe(self) -> list[str]:
        shown = np.unique(np.linspace(0, len(self.levels) - 1, SHOWN).astype(np.intp))
        template = "quantiles " + "; ".join(f"{self.levels[place]:g}: {{}}" for place in shown)
        return [fill(template, row) for row in self.values[:, shown]]


def _squares(width: Values, start: Values, end: Values) -> Values:
    """Return the integral of the square of a linear function from start to end over an interval."""
    return width * (start**2 + start * end + end**2) / 3


def _tail_crps(beyond: Values, mass: float, scale: Values) -> Values:
    """Return the contribution of a tail to the CRPS, for targets at a distance beyond the outermost quantile."""
    passed = np.maximum(beyond, 0)
    return mass**2 * scale / 2 + passed + 2 * mass * scale * np.expm1(-ratio(passed, scale, 0.0))


def _interval_mean(center: Values, width: Values) -> Values:
    """Return the mean of exp(-x^2) over intervals with a center >= 0; its value at the center if the width is 0."""
    narrow = np.exp(-(center**2)) * (1 + width**2 * (2 * center**2 - 1) / 12)
    if (width < NARROW).all():  # erfc takes most of the time
        return np.asarray(narrow)
    half = np.maximum(width, NARROW) / 2
    wide = np.sqrt(np.pi) / 4 / half * (sc.erfc(center - half) - sc.erfc(center + half))
    return np.where(width < NARROW, narrow, wide)


def _sum_kernel_mean(distance: Values, first: Values, second: Values, gamma: np.float64) -> Values:
    """Return E exp(-gamma (d - E - E')^2), (n,), for independent exponential E and E' with the given means."""
    middle, half = (first + second) / 2, np.abs(first - second) / 2
    half = np.maximum(half, APART * middle)
    parts = [
        scale * exponential_kernel_mean(distance, scale, np.asarray(gamma)) for scale in (middle + half, middle - half)
    ]
    return np.where(middle > 0, ratio(parts[0] - parts[1], 2 * half, 0.0), np.exp(-gamma * distance**2))


def _not_stated(*_: Any, **__: Any) -> NoReturn:
    raise DataError(NOT_STATED)


@dataclass(frozen=True, eq=False)
class Intervals(Predictive):
    """Prediction intervals at some levels: the target is inside an interval with the probability of its level.

    Nothing else is stated: not how often targets are below and above, and not where they are inside. Each level is
    judged alone, so intervals of different levels need not be nested. Replicates state which targets are inside: all
    intervals with a level of at least u, for one uniform u per row.
    """

    family: ClassVar[str] = "intervals"
    shared: ClassVar[tuple[str, ...]] = ("levels",)
    records: ClassVar[bool] = False  # Whether they are of targets that are clipped or rounded
    levels: Values  # (k,), different, in (0, 1), equal for all rows
    # lower, upper: (n, k), limits, lower <= upper; they belong to the intervals, and may be infinite
    lower: Values
    upper: Values
    point: Values | None = None  # (n,), point predictions, in the unit of the targets

    def __post_init__(self) -> None:
        for name, values in self._of_rows().items():
            object.__setattr__(self, name, np.asarray(values, dtype=np.float64))
        object.__setattr__(self, "levels", np.asarray(self.levels, dtype=np.float64))
        inside = (self.levels > 0) & (self.levels < 1)
        if not len(self.levels) or not inside.all() or len(np.unique(self.levels)) < len(self.levels):
            msg = f"levels of intervals must be different and lie strictly between 0 and 1, got {self._listed()}"
            raise DataError(msg)
        for name, values in {"lower": self.lower, "upper": self.upper}.items():
            if values.shape[1:] != self.levels.shape:
                raise DataError(f"{name} limits must be rows by {len(self.levels)} levels, got shape {values.shape}")
            require(name, ~np.isnan(values), "must be numbers", "Pass --nan-policy omit to drop these rows.")
            require_moderate(name, np.where(np.isinf(values), 0.0, values))
        require("lower", self.lower <= self.upper, "must not be above the upper limit", "Are the columns exchanged?")
        self._require_order()
        if self.point is not None:
            require_moderate("point", self.point)

    def _require_order(self) -> None:
        """Raise if the intervals of a level are narrower than those of a smaller level in all rows."""
        order = np.argsort(self.levels)
        widths = self.upper - self.lower
        for small, large in pairwise(order.tolist()):
            if len(self) and (widths[:, large] < widths[:, small]).all():
                raise DataError(
                    f"all intervals at the level {self.levels[large]:g} are narrower than those at"
                    f" {self.levels[small]:g}. Are the levels in the order of the intervals?"
                )

    def _listed(self) -> str:
        return ", ".join(f"{level:g}" for level in self.levels) or "none"

    @property
    def display_name(self) -> str:
        return f"intervals at {self._listed()}"

    @property
    def interval_levels(self) -> Values:
        return self.levels

    @property
    def is_clipped(self) -> Mask | None:
        """Whether no target can be beyond one of the limits, (n, k); None if targets are not clipped."""
        return None

    def states(self, part: Part) -> bool:
        return part in ("interval", "coverage") or (part == "point" and self.point is not None)

    def equals(self, other: Self) -> Mask:
        """Return which rows have equal intervals, whatever their points, (n,)."""
        if not self._shares_fields(other):
            return np.zeros(len(self), np.bool_)
        return np.asarray(((self.lower == other.lower) & (self.upper == other.upper)).all(axis=1))

    def place(self, level: float) -> int:
        """Return the place of a level among the levels."""
        place = int(np.argmin(np.abs(self.levels - level)))
        if abs(self.levels[place] - level) > LEVEL_TOLERANCE:
            raise DataError(f"there is no interval at the level {level:g} (levels: {self._listed()})")
        return place

    def rescale(self, shift: Values, factor: Values) -> Self:
        """Return the intervals moved, and stretched about their middles."""
        middle, half = (self.lower + self.upper) / 2 + shift[:, None], factor[:, None] * (self.upper - self.lower) / 2
        return replace(self, lower=middle - half, upper=middle + half)

    def unclipped(self, level: float) -> Mask | None:
        clipped = self.is_clipped
        return None if clipped is None else np.asarray(~clipped[:, self.place(level)])

    def losses(self, y: Values) -> Values:
        """Return the mean interval scores of the levels, (n,)."""
        beyond = np.maximum(self.lower - y[:, None], 0) + np.maximum(y[:, None] - self.upper, 0)
        return np.asarray((self.upper - self.lower + 2 / (1 - self.levels) * beyond).mean(axis=1))

    def central_interval(self, level: float) -> tuple[Values, Values]:
        """Return the limits of the interval at a level, (n,) each; it need not be central."""
        place = self.place(level)
        return self.lower[:, place], self.upper[:, place]

    def interval_width(self, level: float) -> Values:
        place = self.place(level)
        return self.upper[:, place] - self.lower[:, place]

    def central_mass(self, level: float) -> Values:
        return np.full(len(self), self.levels[self.place(level)])

    def interval_mass_error(self, y: Values, low: Values, high: Values) -> Values:
        """Return 1 if the target is at a limit, and 0 otherwise: the probability of a limit itself is unknown, (n,)."""
        return np.asarray((y == low) | (y == high), dtype=np.float64)

    def mean(self) -> Values:
        """Return the point predictions, (n,)."""
        if self.point is None:
            raise DataError(NOT_STATED)
        return self.point

    def median(self) -> Values:
        return self.mean()

    def replicates(self, y: Values, rng: RowRandom, numbers: range) -> Iterator[tuple[Values, Predictive]]:
        drawn = rng.for_replicate(numbers.start).random((len(self), len(numbers)))
        how: dict[str, Any] = {"clipped": self.is_clipped, "is_recorded": self.records}
        for uniform in drawn.T:
            inside, is_above = uniform[:, None] <= self.levels, uniform * SIDES % 1 < 1 / 2
            known = self.levels, self.lower, self.upper, self.point
            yield y, Replicate(*known, inside=inside, is_above=is_above, **how)

    def describe(self) -> list[str]:
        template = "; ".join(f"[{{}}, {{}}] at {level:g}" for level in self.levels)
        return [fill(template, limits.ravel()) for limits in np.stack([self.lower, self.upper], axis=2)]

    std = cdf = cdf_left = quantile = crps = sample = kernel_mean = kernel_norm = _not_stated


@dataclass(frozen=True, eq=False)
class Replicate(Intervals):
    """Intervals of a replicate: its targets are inside, or outside, as drawn."""

    inside: Mask = field(kw_only=True)  # (n, k), whether the target is inside each interval
    is_above: Mask = field(kw_only=True)  # (n,), whether the target is above the others, else below
    clipped: Mask | None = field(kw_only=True)  # (n, k), as ``is_clipped``
    is_recorded: bool = field(kw_only=True)  # As ``records``

    def __post_init__(self) -> None:
        """Check nothing: the intervals are those of valid rows."""

    @property
    def is_clipped(self) -> Mask | None:
        return self.clipped

    def central_interval(self, level: float) -> tuple[Values, Values]:
        """Return an interval that contains every number where the target is inside, and none elsewhere, (n,) each."""
        inside, outside = self.inside[:, self.place(level)], np.where(self.is_above, -np.inf, np.inf)
        return np.where(inside, -np.inf, outside), np.where(inside, np.inf, outside)
