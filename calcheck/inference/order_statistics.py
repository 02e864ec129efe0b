"""Limits of quantiles by order statistics, and of means by Student's t, for rows of equal or other weights."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, ndtri, stdtr, stdtrit

from calcheck.dependence.clusters import Clusters
from calcheck.statistics.groups import TieGroups
from calcheck.typing import Values

ROUNDING = 1e-9  # Tolerance of shares of rows, relative, and of ranks
LAST_DIGITS = 1e-15  # Relative tolerance of bisection
TAIL = 0.95  # Level at which Student's t is compared with the normal distribution


def _most(n: float, level: float, tail: float) -> float:
    """Return the largest k > -1 with P(B <= k) <= tail for a binomial B of n draws; n and k need not be whole."""
    return _crossing(lambda k: float(betainc(n - k, k + 1, 1 - level)) <= tail, -1.0, n)


def _least(n: float, level: float, tail: float) -> float:
    """Return the smallest k < n + 1 with P(B >= k) <= tail; see :func:`_most`."""
    return _crossing(lambda k: float(betainc(k, n - k + 1, level)) > tail, 0.0, n + 1)


def _crossing(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a condition ceases to hold, by bisection to the last digits."""
    while high - low > ROUNDING + LAST_DIGITS * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def binomial_shares(n: float, level: float, tail: float) -> tuple[float, float]:
    """Return the shares of n rows between which that up to the quantile at a level is; above 1 if there is no limit."""
    return max(_most(n, level, tail), 0.0) / n, _least(n, level, tail) / n


class Limits(NamedTuple):
    """Limits of a quantile, and their ranks among the values: 0 if there is no lower limit, n + 1 for no upper one."""

    low: float
    high: float
    ranks: tuple[int, int]


@dataclass(frozen=True, eq=False)
class WeightedOrder:
    """Different values in ascending order, and the share of all rows, or of their weights, up to each."""

    distinct: Values  # (k,)
    share: Values  # (k,), increasing to 1
    rows: float  # Number of independent rows with equal weights whose shares vary as much

    @classmethod
    def from_ties(cls, ties: TieGroups, weights: Values | None, rows: float) -> "WeightedOrder":
        """Return the order of values in groups of equal ones."""
        cumulative = np.cumsum(ties.sums(weights))
        return cls(ties.distinct, cumulative / cumulative[-1], rows)

    def limits(self, level: float, tail: float) -> Limits:
        """Return the limits of the quantile at a level, each of which is wrong with a probability of at most ``tail``.

        Source: Thompson (1936), Annals of Mathematical Statistics 7, 122-128. Hoeffding (1956): rows may differ.
        Woodruff (1952): weights, and rows that depend on each other.
        """
        low, high = _most(self.rows, level, tail), _least(self.rows, level, tail)
        first, last = int(np.floor(low + ROUNDING)) + 1, int(np.ceil(high - ROUNDING))
        is_whole = float(self.rows).is_integer()
        return Limits(
            self.value((first if is_whole else low) / self.rows) if first else 0.0,
            self.value((last if is_whole else high) / self.rows) if last <= self.rows else np.inf,
            (first, last),
        )

    def value(self, share: float) -> float:
        """Return the smallest value up to which there is a share of the rows."""
        place = int(np.searchsorted(self.share, share * (1 - ROUNDING)))
        return float(self.distinct[min(place, len(self.distinct) - 1)])

    def p_value(self, level: float, reference: float) -> float:
        """Return the two-sided p-value of a quantile of ``reference``; equal rows count on the side that favors it."""
        n = self.rows
        below, up_to = (int(np.searchsorted(self.distinct, reference, side)) for side in ("left", "right"))
        fewest, most = (n * float(self.share[at - 1]) if at else 0.0 for at in (below, up_to))
        tails = (
            float(betainc(n - most, most + 1, 1 - level)) if most < n else 1.0,
            float(betainc(fewest, n - fewest + 1, level)) if fewest > 0 else 1.0,
        )
        return min(1.0, max(2 * min(tails), sys.float_info.min))


def effective_rows(apart: Values, weights: Values | None, level: float, clusters: Clusters | None) -> float:
    """Return the number of independent rows whose share below a quantile varies as much as that of these rows.

    Source: Korn, Graubard (1998), Survey Methodology 24, 193-201.
    """
    mean = weighted_mean(apart, weights, clusters)
    independent = weighted_mean(apart, weights, None)
    variance = max(mean.error, independent.error) ** 2
    ratio = float(ndtri(TAIL) / stdtrit(mean.freedom, TAIL))
    return min(level * (1 - level) / variance * ratio**2, float(len(apart))) if variance > 0 else float(len(apart))


class WeightedMean(NamedTuple):
    """A mean over rows, with its standard error and the degrees of freedom of that."""

    value: float
    error: float
    freedom: float

    def limits(self, tail: float) -> tuple[float, float]:
        """Return the limits, each of which is wrong with a probability of ``tail``."""
        reach = float(stdtrit(self.freedom, 1 - tail)) * self.error
        return self.value - reach, self.value + reach

    def p_value(self, reference: float) -> float:
        """Return the two-sided p-value of the hypothesis that the expected value is ``reference``."""
        distance = abs(self.value - reference)
        return float(2 * stdtr(self.freedom, -distance / self.error)) if self.error > 0 else float(distance == 0)


def weighted_mean(
    values: Values, weights: Values | None, clusters: Clusters | None, added: float = 0.0
) -> WeightedMean:
    """Return the mean of values (n,) with its standard error: that of a ratio of sums over clusters, or over rows.

    The sum of squared deviations has ``added`` more, for values that might have been far away.
    """
    w = np.ones(len(values)) if weights is None else weights
    total, n = float(w.sum()), len(values)
    mean = float(values @ w) / total
    away = w * (values - mean)
    if clusters is None:
        squares, freedom = float(away @ away) * n / max(n - 1, 1), total**2 / float(w @ w) - 1
    else:
        squares = clusters.variance_factor * float((clusters.sums(away) ** 2).sum())
        freedom = clusters.degrees_of_freedom
    return WeightedMean(mean, (squares + added * float(w @ w) / n) ** 0.5 / total, max(freedom, 1.0))
