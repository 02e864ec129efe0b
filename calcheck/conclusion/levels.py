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
    strictly : float
        Observed share without targets equal to stated limits, as for counts. A right model has a share of at most the
        level without them, and at least the level with them, so it is judged by the nearest share between the two.
    scale : Scale
        How much wider normal intervals would have to be to hold the expected share.
    is_informative : bool
        Whether enough targets are inside and outside. Otherwise the scale is only a limit.
    """

    level: float
    coverage: float
    expected: float
    strictly: float
    scale: Scale
    is_informative: bool

    @classmethod
    def from_coverage(
        cls, level: float, coverage: float, expected: float, n: int, strictly: float | None = None
    ) -> Level:
        """Return a level with the scale that its share implies."""
        strictly = coverage if strictly is None else strictly
        nearest = nearest_share(coverage, strictly, expected)
        smoothed = (nearest * n + 0.5) / (n + 1)  # away from 0 and 1, where the scale is infinite
        likely = min(max(expected, 0.5 / n), 1 - 0.5 / n)
        wanted, found = (UNIT.inv_cdf((1 + share) / 2) for share in (likely, smoothed))
        error = math.sqrt(smoothed * (1 - smoothed) / n) / (2 * UNIT.pdf(found) * found)
        fewest = min(nearest, 1 - nearest) * n
        scale = Scale(math.log(wanted / found), error)
        return cls(level, coverage, expected, strictly, scale, fewest >= FEWEST_TARGETS)

    def p_value(self, n: float) -> float:
        """Return the two-sided binomial p-value of the share for n independent rows."""
        from scipy.special import betainc

        share = min(max(self.expected, 0.0), 1.0)
        inside = nearest_share(self.coverage, self.strictly, share) * n
        at_least = betainc(inside, n - inside + 1, share) if inside > 0 else 1.0
        at_most = 1 - betainc(inside + 1, n - inside, share) if inside < n else 1.0
        return float(min(1.0, 2 * min(at_least, at_most)))

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
        if self.at_limits:
            return f"{percent(self.strictly, 1)} to {shown}"
        same = abs(self.expected - self.level) <= SAME_SHARE
        return shown if same else f"{shown} instead of {percent(self.expected, 1)}"

    @property
    def at_limits(self) -> str:
        """What the two ends of the share are, in words; "" if they are equal."""
        differ = percent(self.strictly, 1) != percent(self.coverage, 1)
        return ", without and with targets at their limits" if differ else ""

    @property
    def text(self) -> str:
        """The level and its share in words."""
        return f"{percent(self.level)} intervals hold {self.share}{self.at_limits}"


def nearest_share(closed: float, strictly: float, expected: float) -> float:
    """Return the number nearest to an expected share between those strictly inside and inside."""
    return min(max(expected, strictly), closed)


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
