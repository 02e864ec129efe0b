"""Increasing maps of probabilities, which recalibrate distribution functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from calcheck.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Values = NDArray[np.float64]

BELOW_ONE = 1 - 2.0**-53  # The largest number below 1, at which no quantile is infinite
MIN_KNOTS = 2  # The ends, 0 and 1


@dataclass(frozen=True, eq=False)
class Recalibrator:
    """An increasing, piecewise linear map R of [0, 1] onto itself: the distribution function F becomes R(F(y)).

    Parameters
    ----------
    probability : (k,)
        Strictly increasing knots, from 0 to 1.
    level : (k,)
        Values of R at the knots, strictly increasing from 0 to 1.

    Raises
    ------
    DataError
        The knots or their values do not increase from 0 to 1.
    """

    probability: Values
    level: Values

    def __post_init__(self) -> None:
        for name in ("probability", "level"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, values)
            if len(values) < MIN_KNOTS or values[0] != 0 or values[-1] != 1 or not (np.diff(values) > 0).all():
                msg = f"the {name} of a recalibration map must increase from 0 to 1"
                raise DataError(msg)
        if len(self.probability) != len(self.level):
            msg = f"a recalibration map has {len(self.probability)} knots, but {len(self.level)} values"
            raise DataError(msg)

    @classmethod
    def from_knots(cls, probability: Values, level: Values, *, most: int | None = None) -> Self:
        """Return the map through the given points and the ends, thinned to at most ``most`` inner knots.

        Of points with equal probabilities, the one with the largest level is kept.

        Parameters
        ----------
        probability, level : (k,)
            Points in ascending order, in (0, 1).
        most : int, optional
            Maximum number of inner knots.
        """
        last = np.append(np.diff(probability) > 0, True)
        probability, level = probability[last], level[last]
        if most is not None and len(probability) > most:
            chosen = np.unique(np.linspace(0, len(probability) - 1, most).round().astype(np.intp))
            probability, level = probability[chosen], level[chosen]
        return cls(np.concatenate([[0.0], probability, [1.0]]), np.concatenate([[0.0], level, [1.0]]))

    def __call__(self, probability: Values | float) -> Values:
        """Return R of probabilities, in [0, 1]."""
        return np.asarray(np.interp(probability, self.probability, self.level))

    def inverse(self, level: Values | float) -> Values:
        """Return the probabilities at which R has the given levels; below 1 for levels below 1."""
        found = np.interp(level, self.level, self.probability)
        return np.where(np.less(level, 1), np.minimum(found, BELOW_ONE), found)

    @cached_property
    def slopes(self) -> Values:
        """The slopes between the knots, (k - 1,), > 0."""
        return np.asarray(np.diff(self.level) / np.diff(self.probability))

    def slope(self, probability: Values | float) -> Values:
        """Return the slope of R at probabilities: that of the piece to the left of a knot."""
        piece = np.searchsorted(self.probability, probability) - 1
        return np.asarray(self.slopes[np.clip(piece, 0, len(self.slopes) - 1)])


def join_maps(
    parts: Sequence[tuple[tuple[Recalibrator, ...], NDArray[np.intp]]],
) -> tuple[tuple[Recalibrator, ...], NDArray[np.intp]]:
    """Return the maps of several batches of rows as one tuple, and the index of the map of each row.

    Parameters
    ----------
    parts : sequence of (maps, (n,))
        Maps of each batch, and the index of each row's map among them.
    """
    maps = tuple({id(each): each for found, _ in parts for each in found}.values())
    places = {id(each): place for place, each in enumerate(maps)}
    return maps, np.concatenate([np.array([places[id(each)] for each in found])[which] for found, which in parts])
