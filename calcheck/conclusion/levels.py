"""Coverage of central intervals at several levels, and what it implies for the size of the uncertainties."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from calcheck.conclusion.thresholds import SUSPECT_ERRORS

if TYPE_CHECKING:
    from calcheck.report import Direction

FEWEST_TARGETS = 5  # Minimum number of targets inside and outside intervals, for a scale
SAME_SHARE = 0.005  # Maximum difference of an expected share from its level that is not mentioned
UNIT = NormalDist()
NORMAL_LIMIT = UNIT.inv_cdf(0.975)  # Limit of a 95 % interval in standard errors


class Scale(NamedTuple):
    """Logarithm of the factor by which uncertainties should be larger, with its standard error."""

    log: float
    error: float


class Level(NamedTuple):
    """Share of targets inside the central intervals of one level.

    Parameters
    ----------
    level, coverage, expected : float
        Level, observed share and expected share.
    scale : Scale
        How much wider normal intervals would have to be to hold the expected share.
    is_informative : bool
        Whether enough targets are inside and outside. Otherwise the scale is only a limit.
    """

    level: float
    coverage: float
    expected: float
    scale: Scale
    is_informative: bool

    @classmethod
    def from_coverage(cls, level: float, coverage: float, expected: float, n: int) -> Level:
        """Return a level with the scale that its share implies."""
        smoothed = (coverage * n + 0.5) / (n + 1)  # away from 0 and 1, where the scale is infinite
        likely = min(max(expected, 0.5 / n), 1 - 0.5 / n)
        wanted, found = (UNIT.inv_cdf((1 + share) / 2) for share in (likely, smoothed))
        error = math.sqrt(smoothed * (1 - smoothed) / n) / (2 * UNIT.pdf(found) * found)
        fewest = min(coverage, 1 - coverage) * n
        return cls(level, coverage, expected, Scale(math.log(wanted / found), error), fewest >= FEWEST_TARGETS)

    @property
    def differs(self) -> bool:
        """Whether the share differs from the expected one."""
        return abs(self.scale.log) > SUSPECT_ERRORS * self.scale.error

    @property
    def direction(self) -> Direction:
        """How the intervals are wrong if the share differs."""
        return "too-narrow" if self.scale.log > 0 else "too-wide"

    @property
    def share(self) -> str:
        """The share in words, with the expected one where that is not the level, as for counts."""
        shown = percent(self.coverage, 1)
        same = abs(self.expected - self.level) <= SAME_SHARE
        return shown if same else f"{shown} instead of {percent(self.expected, 1)}"

    @property
    def text(self) -> str:
        """The level and its share in words."""
        return f"{percent(self.level)} intervals hold {self.share}"


def exceeds(scale: Scale | None, other: Scale) -> bool:
    """Return whether a scale is larger than another clearly."""
    return scale is not None and scale.log - other.log > SUSPECT_ERRORS * math.hypot(scale.error, other.error)


def percent(share: float, digits: int = 0) -> str:
    """Return a share in percent, without trailing zeros.

    Examples
    --------
    >>> percent(0.9), percent(0.8925, 1), percent(0.995)
    ('90 %', '89.2 %', '99.5 %')
    """
    shown = round(100 * share, digits) if digits else 100 * share
    return f"{shown:.4g} %"
