"""Intervals of single rows: a sample of rows for pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.core.lazy_inputs import load
from calcheck.errors import DataError
from calcheck.statistics.bins import NUMBERS, sort_keys
from calcheck.statistics.moments import central_interval, medians

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions
    from calcheck.typing import Values

MAX_ROWS = 150  # More intervals side by side cannot be told apart
FEW_ROWS = 40  # Of a picture among others


@dataclass(frozen=True, eq=False)
class RowIntervals:
    """Central intervals of k of n rows, in the order of their centers."""

    center: Values  # (k,), medians, or middles of intervals if these are all that is predicted, unit of y
    # low, high: (k,), limits of the intervals, unit of y
    low: Values
    high: Values
    level: float  # Probability of the intervals, in (0, 1)
    total: int  # Number of all rows, n
    y: Values | None = None  # (k,), targets
    along: Values | None = None  # (k,), values of a column
    along_name: str = ""  # Name of this column

    @property
    def half_width(self) -> Values:
        """Halves of the widths, (k,), unit of y."""
        return (self.high - self.low) / 2


def row_intervals(
    rows: Predictions, level: float, by: str = "", inputs: Sequence[str] = (), size: int = MAX_ROWS
) -> RowIntervals:
    """Return intervals of some rows, which are evenly spaced in the order of their centers."""
    predictive = rows.distributions()
    if predictive.targets > 1:
        msg = f"intervals need one target per row, and these distributions have {predictive.targets}"
        raise DataError(msg)
    name, along = (by, _column(rows, by)) if by else _single_input(rows, inputs)
    order = np.argsort(_centers(predictive, level), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(size, len(order))).round().astype(np.intp))]
    part = rows.take(chosen)
    low, high = central_interval(part.distributions(), level)
    return RowIntervals(
        _centers(part.distributions(), level),
        low,
        high,
        level,
        len(rows),
        None if part.y is None else part.y.reshape(len(chosen)).astype(np.float64),
        None if along is None else along[chosen],
        name,
    )


def _centers(predictive: Predictive, level: float) -> Values:
    if predictive.interval_levels is None:
        return medians(predictive)
    low, high = central_interval(predictive, level)
    return (low + high) / 2


def _single_input(rows: Predictions, names: Sequence[str]) -> tuple[str, Values | None]:
    """Return the name and the values of the input, if there is one per row."""
    if rows.x is None or rows.width > 1:
        return "", None
    return names[0] if names else "input", load(rows.lazy_inputs()).reshape(len(rows)).astype(np.float64)


def _column(rows: Predictions, name: str) -> Values:
    keys = sort_keys(rows, name)
    if keys.dtype.kind not in NUMBERS:
        msg = f"column {name!r} must hold numbers to show predictions along it"
        raise DataError(msg)
    return keys.astype(np.float64)
