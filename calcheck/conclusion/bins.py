"""Errors and coverage in bins of the rows."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from calcheck.conclusion.levels import UNIT
from calcheck.conclusion.thresholds import CLEAR_ERRORS, CLEAR_P

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.details import SpreadBin


class ErrorBins(NamedTuple):
    """Errors by predicted uncertainty.

    Parameters
    ----------
    spread : float
        Relative spread of the uncertainties.
    exponent : float
        Exponent of the errors as a power of the uncertainties: 1 if they are proportional, 0 if they are unrelated.
    error : float
        Standard error of the exponent.
    """

    spread: float
    exponent: float
    error: float

    @classmethod
    def from_bins(cls, bins: Sequence[SpreadBin]) -> ErrorBins:
        """Return the regression of log RMSE on log RMV over the bins of ence."""
        pairs = [(each["rmv"] or 0.0, each["rmse"] or 0.0) for each in bins]
        logs = [(math.log(rmv), math.log(rmse)) for rmv, rmse in pairs if rmv > 0 and rmse > 0]
        if len(logs) < 3:  # noqa: PLR2004 - two parameters and a residual
            return cls(0.0, 1.0, math.inf)
        x, y = [each for each, _ in logs], [each for _, each in logs]
        away = [each - fmean(x) for each in x]
        squares = sum(each**2 for each in away)
        if squares == 0:
            return cls(0.0, 1.0, math.inf)
        exponent = sum(a * b for a, b in zip(away, y, strict=True)) / squares
        residuals = [b - fmean(y) - exponent * a for a, b in zip(away, y, strict=True)]
        variance = sum(each**2 for each in residuals) / (len(logs) - 2)
        return cls(math.sqrt(squares / len(logs)), exponent, math.sqrt(variance / squares))

    @property
    def differ(self) -> bool:
        """Whether the errors are not proportional to the uncertainties."""
        return abs(self.exponent - 1) > CLEAR_ERRORS * self.error


def are_uneven(shares: Sequence[tuple[float, float]]) -> bool:
    """Return whether shares of (share, rows) differ more than by chance, by a chi-square test at CLEAR_P."""
    rows = sum(count for _, count in shares)
    mean = sum(share * count for share, count in shares) / rows
    degrees = len(shares) - 1
    if not 0 < mean < 1 or not degrees:
        return False
    statistic = sum(count * (share - mean) ** 2 for share, count in shares) / (mean * (1 - mean))
    spread = 2 / (9 * degrees)  # Wilson and Hilferty (1931): the cube root is nearly normal
    limit = 1 - spread - math.sqrt(spread) * UNIT.inv_cdf(CLEAR_P)
    return math.cbrt(statistic / degrees) > limit
