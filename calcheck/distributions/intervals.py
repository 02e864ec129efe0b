"""Prediction intervals."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from calcheck.core.metric_info import Part
from calcheck.core.validation import concat_columns, require, require_moderate
from calcheck.distributions.base import Predictive
from calcheck.distributions.row_random import RowRandom, Words, hash_rows
from calcheck.distributions.special import fill
from calcheck.errors import DataError
from calcheck.options import LEVEL_TOLERANCE
from calcheck.typing import AnyArray, Indices, Mask, Values

NOT_STATED = "prediction intervals state nothing about the distribution but how often targets are inside"


def _not_stated(*_: Any, **__: Any) -> NoReturn:
    raise DataError(NOT_STATED)


@dataclass(frozen=True, eq=False)
class Intervals(Predictive):
    """Prediction intervals at some levels: the target is inside an interval with the probability of its level.

    Nothing else is stated: not how often targets are below and above, and not where they are inside. Each level is
    judged alone, so intervals of different levels need not be nested. Replicates state which targets are inside: all
    intervals with a level of at least u, for one uniform u per row.

    Parameters
    ----------
    levels : (k,)
        Levels, different, in (0, 1), equal for all rows.
    lower, upper : (n, k)
        Limits, in the unit of the targets, lower <= upper; they belong to the intervals, and may be infinite.
    point : (n,), optional
        Point predictions, in the unit of the targets.

    Raises
    ------
    DataError
        The levels are invalid, or do not match the limits.
    ValuesError
        A limit is missing, a lower limit is above its upper limit, or a point prediction is not finite.
    """

    family: ClassVar[str] = "intervals"
    levels: Values
    lower: Values
    upper: Values
    point: Values | None = None

    def __post_init__(self) -> None:
        for name, values in self._arrays().items():
            object.__setattr__(self, name, np.asarray(values, dtype=np.float64))
        object.__setattr__(self, "levels", np.asarray(self.levels, dtype=np.float64))
        self._require_levels()
        for name, values in {"lower": self.lower, "upper": self.upper}.items():
            if values.shape[1:] != self.levels.shape:
                raise DataError(f"{name} limits must be rows by {len(self.levels)} levels, got shape {values.shape}")
            require(name, ~np.isnan(values), "must be numbers", "Pass --nan-policy omit to drop these rows.")
            require_moderate(name, np.where(np.isinf(values), 0.0, values))
        require("lower", self.lower <= self.upper, "must not be above the upper limit", "Are the columns exchanged?")
        self._require_order()
        if self.point is not None:
            require_moderate("point", self.point)

    def _require_levels(self) -> None:
        """Raise unless the levels are different and in (0, 1)."""
        inside = (self.levels > 0) & (self.levels < 1)
        if not len(self.levels) or not inside.all() or len(np.unique(self.levels)) < len(self.levels):
            msg = f"levels of intervals must be different and lie strictly between 0 and 1, got {self._listed()}"
            raise DataError(msg)

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

    def _arrays(self) -> dict[str, Values]:
        """Return the arrays with one entry per row, by name."""
        arrays = {"lower": self.lower, "upper": self.upper}
        return arrays if self.point is None else {**arrays, "point": self.point}

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def display_name(self) -> str:
        return f"intervals at {self._listed()}"

    @property
    def nbytes(self) -> int:
        return sum(values.nbytes for values in self._arrays().values())

    @property
    def interval_levels(self) -> Values:
        return self.levels

    def states(self, part: Part) -> bool:
        return part in ("interval", "coverage") or (part == "point" and self.point is not None)

    def take(self, rows: Indices | slice) -> Self:
        return replace(self, **{name: values[rows] for name, values in self._arrays().items()})

    def join(self, others: list[Self]) -> Self:
        """Return the intervals followed by those of others."""
        for other in others:
            if not np.array_equal(other.levels, self.levels):
                raise DataError(f"{self.display_name} and {other.display_name} cannot be joined: their levels differ")
        parts = (self, *others)
        joined = {name: concat_columns([getattr(part, name) for part in parts], name) for name in self._arrays()}
        return replace(self, **joined)

    def equals(self, other: Self) -> Mask:
        if not np.array_equal(other.levels, self.levels):
            return np.zeros(len(self), np.bool_)
        return np.asarray(((self.lower == other.lower) & (self.upper == other.upper)).all(axis=1))

    def hashes(self, key: int) -> Words:
        return hash_rows(list(self._arrays().values()), key)

    def place(self, level: float) -> int:
        """Return the place of a level among the levels."""
        place = int(np.argmin(np.abs(self.levels - level)))
        if abs(self.levels[place] - level) > LEVEL_TOLERANCE:
            raise DataError(f"there is no interval at the level {level:g} (levels: {self._listed()})")
        return place

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
        for uniform in drawn.T:
            inside = uniform[:, None] <= self.levels
            yield y, Replicate(self.levels, self.lower, self.upper, self.point, inside=inside)

    def describe(self) -> list[str]:
        template = "; ".join(f"[{{}}, {{}}] at {level:g}" for level in self.levels)
        return [fill(template, limits.ravel()) for limits in np.stack([self.lower, self.upper], axis=2)]

    std = cdf = cdf_left = quantile = crps = sample = kernel_mean = kernel_norm = _not_stated


@dataclass(frozen=True, eq=False)
class Replicate(Intervals):
    """Intervals of a replicate: its targets are inside, or outside, as drawn."""

    inside: Mask = field(kw_only=True)  # (n, k), whether the target is inside each interval

    def __post_init__(self) -> None:
        """Check nothing: the intervals are those of valid rows."""

    def _arrays(self) -> dict[str, AnyArray]:
        return {**super()._arrays(), "inside": self.inside}

    def central_interval(self, level: float) -> tuple[Values, Values]:
        """Return an interval that contains every number where the target is inside, and none elsewhere, (n,) each."""
        inside = self.inside[:, self.place(level)]
        return np.where(inside, -np.inf, np.inf), np.where(inside, np.inf, -np.inf)
