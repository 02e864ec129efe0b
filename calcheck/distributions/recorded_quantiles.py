"""Quantiles and prediction intervals of targets that are clipped and rounded."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from calcheck.core import sc
from calcheck.distributions.base import Predictive
from calcheck.distributions.quantiles import Intervals, Quantiles
from calcheck.distributions.row_random import Random, RowRandom
from calcheck.distributions.special import ratio, round_to
from calcheck.options import LEVEL_TOLERANCE
from calcheck.typing import Indices, Mask, Values

STEEPEST, STEEPEST_OF_INTERVALS = 3.0, 4.0  # Largest change of the logarithm of a density within a normal score
HAZARDS = 0.5, 30.0  # Least and largest decrease of the logarithm of a tail probability within a normal score
LEVEL = 0.9  # Of the intervals that are taken for those of normal distributions
ON_GRID = 1e-2  # Maximum distance of a number from the grid, in steps; of single precision
LEAST, MOST = 1e-9, 30.0  # Limits of changes of the logarithm of a density within a part of the distribution
Shares = tuple[Values, Values]


def record(values: Values, low: Values, high: Values, step: Values) -> Values:
    """Return targets or quantiles (n, k) as they are recorded: clipped, and rounded unless the step is 0."""
    clipped, is_rounded = np.clip(values, low[:, None], high[:, None]), step > 0
    if not is_rounded.any():
        return clipped
    return np.where(is_rounded[:, None], round_to(clipped, np.where(is_rounded, step, 1.0)[:, None]), clipped)


def is_on_grid(values: Values, step: Values | float) -> Mask:
    """Return which values are multiples of a step, up to single precision; infinite ones are."""
    with np.errstate(invalid="ignore"):
        away = np.abs(values / step - np.rint(values / step))
    return np.asarray(np.isinf(values) | (away <= ON_GRID))


def _recorded_limits(known: "RecordedQuantiles | RecordedIntervals") -> Shares:
    """Return the recorded lower and upper limits of targets, (n,) each."""
    return tuple(record(np.stack([known.low, known.high], axis=1), known.low, known.high, known.step).T)


def _within_step(known: "RecordedQuantiles | RecordedIntervals", y: Values, before: Values) -> Values:
    """Return targets before, within the step of the recorded ones; these, where they are not rounded or at a limit."""
    (low, high), half = _recorded_limits(known), known.step / 2
    return np.where((y <= low) | (y >= high), y, np.clip(before, y - half, y + half))


def _tilted(part: Values, change: Values) -> Values:
    """Return the share of an interval's probability in its first part if the log density rises by a change in it."""
    rise = np.clip(change, LEAST, MOST)
    return np.asarray(np.expm1(rise * part) / np.expm1(rise))


def _shares_between(part: Values, change: Values) -> Shares:
    """Return between which numbers the share is in the first part of an interval, given the largest change in it."""
    return _tilted(part, change), 1 - _tilted(1 - part, change)


def _with_ties(y: Values, values: Values, ties: Shares) -> Shares:
    """Return between which numbers the share of targets (n,) below values (n,) is, given those of equal ones."""
    least = (y < values).astype(np.float64)
    most, equal = least.copy(), np.flatnonzero(y == values)
    least[equal], most[equal] = (each[equal] for each in ties)
    return least, most


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedQuantiles(Quantiles):
    """Quantiles of targets that are clipped and rounded, with those of the targets before."""

    shared: ClassVar[tuple[str, ...]] = ("levels", "has_limits", "is_replicate")
    before: Values  # (n, q), nondecreasing along each row
    low: Values  # (n,), limits of targets; may be infinite
    high: Values  # (n,)
    step: Values  # (n,), distances of the grid; 0 if targets are not rounded
    has_limits: bool  # Whether targets are clipped, if not in all rows
    is_replicate: bool = False  # Whether targets follow the interpolated distributions before

    def __post_init__(self) -> None:
        """Check nothing: the quantiles before are valid."""

    @cached_property
    def at_low(self) -> Mask:
        """Which quantiles are the lower limit in place of lower numbers, (n, q)."""
        return np.less_equal(self.before.T, self.low).T

    @cached_property
    def at_high(self) -> Mask:
        """Which quantiles are the upper limit in place of higher numbers, (n, q)."""
        return np.greater_equal(self.before.T, self.high).T

    @cached_property
    def _columns(self) -> Values:
        """The quantiles by level, (q, n)."""
        return np.ascontiguousarray(self.values.T)

    def record(self, y: Values) -> Values:
        return record(y[:, None], self.low, self.high, self.step)[:, 0]

    def sample(self, rng: Random, size: int) -> Values:
        return record(self.unrecorded.sample(rng, size), self.low, self.high, self.step)

    @cached_property
    def unrecorded(self) -> Quantiles:
        """The quantiles before."""
        return Quantiles(self.levels, self.before)

    def targets_before(self, y: Values, uniform: Values) -> Values:
        """Return targets within the step that they stand for, (n,), at the level of random numbers in [0, 1)."""
        low, high = (self.unrecorded.cdf(y + side * self.step / 2) for side in (-1, 1))
        level = np.clip(low + uniform * (high - low), LEAST, 1 - LEAST)
        return _within_step(self, y, self.unrecorded.at_levels(level[:, None])[:, 0])

    def losses(self, y: Values) -> Values:
        """Return the negative log probabilities of the steps of rounded targets, (n,); else the CRPS."""
        if not self.step.any():
            return super().losses(y)
        low, high = _recorded_limits(self)
        start, stop = (self.unrecorded.cdf(y + side * self.step / 2) for side in (-1, 1))
        mass = np.where(y >= high, 1.0, stop) - np.where(y <= low, 0.0, start)
        return np.asarray(-np.log(np.maximum(mass, np.finfo(np.float64).tiny)))

    def replicates(self, y: Values, rng: RowRandom, numbers: range) -> Iterator[tuple[Values, Predictive]]:
        """Yield targets, and distributions that are known between the quantiles.

        What is unknown of data can only bring shares below quantiles nearer to the levels than it is in replicates.
        """
        return ((own, self._interpolated) for own, _ in super().replicates(y, rng, numbers))

    @cached_property
    def _interpolated(self) -> Self:
        """The same, known between the quantiles."""
        return replace(self, is_replicate=True)

    def shares_below(self, y: Values, levels: Values) -> list[Values]:
        """Return between which numbers the probability is that a target was below its quantiles, (n,) by level.

        Quantiles that are limits have their level. If targets are clipped, the differences from the level follow for
        targets below an upper limit, which is at most the level of such quantiles, and for those at a lower limit,
        which is at least it.
        """
        places, ends = self._places(levels).tolist(), []
        pairs = [self._shares_below(y, place) for place in places]
        for place, pair in zip(places, pairs, strict=True) if self.has_limits else ():
            level, values, at_low, at_high = self.levels[place], self._columns[place], *self._at_limits(place)
            for each in pair:
                each[at_low | at_high] = level
            ends.append((at_high * ((y < values) - level), at_low * ((y <= values) - level)))
        return [each for of_pairs in (pairs, ends) if of_pairs for side in zip(*of_pairs, strict=True) for each in side]

    def shares_inside(self, y: Values, level: float) -> tuple[Values, Values, Values] | None:
        """Return the least and largest share inside central intervals, and by how much clips raise it, (n,) each.

        None if the limits of the intervals are not stated.
        """
        ends = np.array([(1 - level) / 2, (1 + level) / 2])
        places = self._places(ends)
        if np.abs(self.levels[places] - ends).max() > LEVEL_TOLERANCE:
            return None
        (below, up_to), excess = (self._shares_below(y, place) for place in places.tolist()), np.zeros(len(y))
        if self.has_limits:
            for pair, place, end in zip((below, up_to), places.tolist(), (0.0, 1.0), strict=True):
                at_low, at_high = self._at_limits(place)
                beyond, other = (at_high, at_low) if end else (at_low, at_high)
                for each in pair:
                    each[other], each[beyond] = self.levels[place], end
                excess += beyond * abs(end - self.levels[place])
        return np.maximum(up_to[0] - below[1], 0.0), np.maximum(up_to[1] - below[0], 0.0), excess

    def unclipped(self, level: float) -> Mask | None:
        if not self.has_limits:
            return None
        lower, upper = self.unrecorded.central_interval(level)
        return np.asarray((lower > self.low) & (upper < self.high))

    def _places(self, levels: Values) -> Indices:
        """Return the places of the nearest levels."""
        return np.asarray(np.abs(self.levels[:, None] - levels).argmin(axis=0))

    def _shares_below(self, y: Values, place: int) -> Shares:
        """Return between which numbers the probability is that a target was below its quantile at a level, (n,)."""
        return _with_ties(y, self._columns[place], tuple(each[place] for each in self._ties))

    def _at_limits(self, place: int) -> tuple[Mask, Mask]:
        """Return in which rows the quantile at a level is the lower and the upper limit, (n,)."""
        return self.at_low.T[place], self.at_high.T[place]

    @cached_property
    def _ties(self) -> Shares:
        """Between which numbers the share is, below a quantile, of targets with the same number, (q, n) each.

        If targets are rounded, these were between two numbers, and the model states the probability of that.
        """
        found = np.zeros(self._columns.shape), np.ones(self._columns.shape)
        if not self.step.any():
            return found
        limits = _recorded_limits(self)
        for place, (level, values) in enumerate(zip(self.levels, self._columns, strict=True)):
            start, stop = (self._levels_at(values + side * self.step / 2) for side in (-1, 1))
            first = [np.where(values <= limits[0], 0.0, each) for each in start]
            last = [np.where(values >= limits[1], 1.0, each) for each in stop]
            for share, low, high, none in zip(found, first[::-1], last[::-1], (0.0, 1.0), strict=True):
                of_cell = np.clip(ratio(level - low, high - low, none), 0, 1)
                share[place] = np.where(self.step > 0, of_cell, none)
        return found

    def _levels_at(self, at: Values) -> Shares:
        """Return between which numbers the distribution functions before are at some values, (n,) each."""
        if self.is_replicate:
            return (self.unrecorded.cdf(at),) * 2
        last, rows, scores = len(self.levels) - 1, np.arange(len(at)), np.diff(sc.ndtri(self.levels))
        passed = np.sum(self.before <= at[:, None], axis=1)
        piece = np.clip(passed - 1, 0, last - 1)
        low, high = self.before[rows, piece], self.before[rows, piece + 1]
        part = np.clip(ratio(at - low, high - low, 1.0), 0, 1)
        away = np.where(passed == 0, low - at, at - high).clip(0) * scores[piece]
        tail = np.where(passed == 0, self.levels[0], 1 - self.levels[-1]) * np.array(
            [np.exp(-rate * ratio(away, high - low, np.inf)) for rate in HAZARDS]
        )
        inside = self.levels[piece] + np.diff(self.levels)[piece] * np.array(
            _shares_between(part, STEEPEST * scores[piece])
        )
        is_between = (passed > 0) & (passed <= last)
        found = np.where(is_between, inside, np.where(passed == 0, tail[::-1], 1 - tail))
        return found[0], found[1]


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedIntervals(Intervals):
    """Intervals of targets that are clipped and rounded, with those of the targets before."""

    records: ClassVar[bool] = True
    shared: ClassVar[tuple[str, ...]] = ("levels", "has_limits")
    before: tuple[Values, Values]  # (n, k) each, lower and upper limits
    low: Values  # (n,), limits of targets; may be infinite
    high: Values  # (n,)
    step: Values  # (n,), distances of the grid; 0 if targets are not rounded
    has_limits: bool  # Whether targets are clipped, if not in all rows

    def __post_init__(self) -> None:
        """Check nothing: the intervals before are valid."""

    @cached_property
    def unrecorded(self) -> Intervals:
        """The intervals before."""
        return Intervals(self.levels, *self.before, self.point)

    def losses(self, y: Values) -> Values:
        """Return the mean interval scores of the levels, (n,), with limits that are clipped and not rounded."""
        lower, upper = (np.clip(each.T, self.low, self.high).T for each in self.before)
        return Intervals(self.levels, lower, upper).losses(y)

    def targets_before(self, y: Values, uniform: Values) -> Values:
        """Return targets within the step that they stand for, (n,), at random numbers in [0, 1), by normal laws."""
        place = int(np.abs(self.levels - LEVEL).argmin())
        lower, upper = (each[:, place] for each in self.before)
        with np.errstate(invalid="ignore"):
            middle, std = (lower + upper) / 2, (upper - lower) / 2 / sc.ndtri((1 + self.levels[place]) / 2)
            side = np.where(y > middle, -1.0, 1.0)  # to the lower tail, where probabilities are exact
            score, half = side * (y - middle) / std, self.step / (2 * std)
            low, high = sc.ndtr(score - half), sc.ndtr(score + half)
            before = middle + side * std * sc.ndtri(low + uniform * (high - low))
        return _within_step(self, y, np.where(np.isfinite(before), before, y))

    @property
    def is_clipped(self) -> Mask | None:
        if not self.has_limits:
            return None
        at_low, at_high = self._at_limits
        return at_low | at_high

    @property
    def _at_limits(self) -> tuple[Mask, Mask]:
        """Which finite lower and upper limits no target can be beyond, (n, k) each."""
        lower, upper = self.before
        return np.isfinite(lower) & (lower <= self.low[:, None]), np.isfinite(upper) & (upper >= self.high[:, None])

    def shares_inside(self, y: Values, level: float) -> tuple[Values, Values, Values]:
        """Return the least and largest share inside intervals, and by how much clips may raise it, (n,) each."""
        place = self.place(level)
        below, up_to = (self._shares_below(y, place, side) for side in (0, 1))
        at_low, at_high = (each[:, place] for each in self._at_limits)
        strict = np.where(at_high, 1.0, up_to[0]) - np.where(at_low, 0.0, below[1])
        closed = np.where(at_high, 1.0, up_to[1]) - np.where(at_low, 0.0, below[0])
        is_clipped = at_low | at_high
        return np.where(is_clipped, closed, np.maximum(strict, 0)), closed, np.where(is_clipped, closed - level, 0.0)

    def _shares_below(self, y: Values, place: int, side: int) -> Shares:
        """Return between which numbers the probability is that a target was below lower or upper limits, (n,) each."""
        limit, recorded = self.before[side][:, place], (self.lower, self.upper)[side][:, place]
        (least_y, most_y), scale = _recorded_limits(self), self._scale(place, side)
        is_open = (self.step == 0) | (y <= least_y) | (y >= most_y) | ~np.isfinite(scale)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.clip(0.5 + (limit - recorded) / self.step, 0, 1)
            least, most = _shares_between(part, STEEPEST_OF_INTERVALS * self.step / scale)
        return _with_ties(y, recorded, (np.where(is_open, 0.0, least), np.where(is_open, 1.0, most)))

    def _scale(self, place: int, side: int) -> Values:
        """Return the standard deviation of normal distributions that have lower or upper limits as stated, (n,).

        Skewed distributions are narrower beside limits near 0, as log-normal ones are, and near the point prediction.
        """
        (lower, upper), score = (each[:, place] for each in self.before), sc.ndtri((1 + self.levels[place]) / 2)
        near, far = np.abs([lower, upper])[:: 1 - 2 * side]
        found = (upper - lower) / 2
        with np.errstate(over="ignore", invalid="ignore"):
            beside_zero = near * np.log(np.maximum(ratio(far, near, 1.0), 1)) / 2
        is_beside = (np.sign(lower) * np.sign(upper) >= 0) & (near < far)
        found = np.where(is_beside, np.minimum(found, beside_zero), found)
        if self.point is not None:
            away = np.abs(self.point - (lower, upper)[side])
            found = np.where((lower <= self.point) & (self.point <= upper), np.minimum(found, away), found)
        return np.asarray(found / score)


def has_both_limits(intervals: Intervals) -> bool:
    """Return whether all intervals are stated with two limits."""
    stated = intervals.unrecorded if isinstance(intervals, RecordedIntervals) else intervals
    return bool(np.isfinite([stated.lower, stated.upper]).all())


def record_limits(
    predictive: Quantiles | Intervals, low: Values, high: Values, step: Values, *, has_limits: bool, finds_grid: bool
) -> Quantiles | Intervals:
    """Return quantiles or intervals of targets that are clipped at limits, and then rounded to a step unless it is 0.

    In rows where all of them are on the grid, they are of rounded targets, and state nothing between its points.
    """
    if isinstance(predictive, Quantiles):
        stated: tuple[Values, ...] = (predictive.values,)
    else:
        stated = predictive.lower, predictive.upper
        point = None if predictive.point is None else record(predictive.point[:, None], low, high, step)[:, 0]
    if step.any() and finds_grid:
        known = np.logical_and.reduce([is_on_grid(each, step[:, None]).all(axis=1) for each in stated])
        low, high = (np.where(known, round_to(limit, step), limit) for limit in (low, high))
        stated = tuple(np.where(known[:, None], round_to(each, step[:, None]), each) for each in stated)
        step = np.where(known, 0.0, step)
    first, *others = (record(each, low, high, step) for each in stated)
    how: dict[str, Any] = {"low": low, "high": high, "step": step, "has_limits": has_limits}
    if isinstance(predictive, Quantiles):
        return RecordedQuantiles(predictive.levels, first, before=stated[0], **how)
    return RecordedIntervals(predictive.levels, first, others[0], point, before=(stated[0], stated[1]), **how)
