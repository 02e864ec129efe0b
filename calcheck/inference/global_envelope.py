"""Simultaneous tests and bands from replicates, by the extreme rank length of vectors of statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calcheck.inference.p_values import TIED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.report import Alternative

    Values = NDArray[np.float64]


class Envelope(NamedTuple):
    """A global envelope.

    Parameters
    ----------
    low, high : (k,)
        Limits of each statistic; NaN where no column has a value.
    p_value : float
        Share of columns that are at least as extreme as the first.
    """

    low: Values
    high: Values
    p_value: float


def extreme_rank_p_values(statistics: Values, alternatives: Sequence[Alternative] = ()) -> Values:
    r"""Return the share of vectors that are at least as extreme as each of N vectors, (N,), itself included.

    Under exchangeability, the first value is at most p with probability at most p: it is a p-value of the first vector.

    Parameters
    ----------
    statistics : (k, N)
        N vectors of k statistics as columns. Values that are not a number count as the median of their statistic.
    alternatives : sequence of str
        Extreme values of each statistic, k of them: ``"greater"``, ``"less"`` or ``"two-sided"``, the default.

    Notes
    -----
    For each statistic the columns get mid-ranks from the extreme end, 1 for the most extreme; for two sides, twice the
    smaller of both. Columns are compared by their smallest rank; if equal, by the second smallest, and so on. Time
    O(k N log N).

    References
    ----------
    Myllymäki, Mrkvička, Grabarnik, Seijo, Hahn (2017), "Global envelope tests for spatial processes".
    """
    k, count = statistics.shape
    ranks = np.empty((k, count))
    for place, line in enumerate(statistics):
        alternative = alternatives[place] if alternatives else "two-sided"
        ranks[place] = _extreme_ranks(line, alternative)
    ranks.sort(axis=0)
    order = np.lexsort(ranks[::-1])
    ordered = ranks[:, order]
    last = np.append((ordered[:, 1:] != ordered[:, :-1]).any(axis=0), True)  # last of the columns with equal ranks
    reached = np.flatnonzero(last)[np.cumsum(last) - last] + 1
    p_values = np.empty(count)
    p_values[order] = reached / count
    return p_values


def global_envelope(statistics: Values, confidence: float, alternatives: Sequence[Alternative] = ()) -> Envelope:
    """Return the band that contains whole vectors: the first one with at least the given probability.

    Parameters
    ----------
    statistics : (k, N)
        N vectors of k statistics as columns: that of the data first, then those of replicates.
    confidence : float
        Probability that the vector of a right model is inside everywhere.
    alternatives : sequence of str
        As for :func:`extreme_rank_p_values`.
    """
    p_values = extreme_rank_p_values(statistics, alternatives)
    inside = statistics[:, p_values > (1 - confidence) * (1 + TIED)]
    known = np.isfinite(inside).any(axis=1)
    low, high = (np.where(known, limit, np.nan) for limit in (np.fmin.reduce(inside, 1), np.fmax.reduce(inside, 1)))
    return Envelope(low, high, float(p_values[0]))


def curve_limits(replicates: Values, confidence: float) -> tuple[Values, Values]:
    """Return the limits that contain a further whole curve with a given probability, (s,) each.

    Parameters
    ----------
    replicates : (b, s)
        Curves; values that are not finite, or equal up to rounding at some point, have no influence.
    confidence : float
        Probability that the curve is inside everywhere.

    Notes
    -----
    The limits are the values next to the envelope of the curves, outwards: the envelope itself belongs to curves that
    are among those ranked. Of one point, they are the usual order statistics.
    """
    curves = np.where(np.isfinite(replicates), replicates, np.nan)
    low, high = np.fmin.reduce(curves), np.fmax.reduce(curves)
    rounded = np.where(high - low <= TIED * np.maximum(np.abs(low), np.abs(high)), low, curves)
    level = min((1 - confidence) * (len(curves) + 1), len(curves) - 1) / len(curves)  # At least one curve is inside
    band = global_envelope(rounded.T, 1 - level)
    below, above = (np.where(outside, rounded, np.nan) for outside in (rounded < band.low, rounded > band.high))
    next_low, next_high = np.fmax.reduce(below), np.fmin.reduce(above)  # NaN where no curve is outside
    return np.where(np.isnan(next_low), band.low, next_low), np.where(np.isnan(next_high), band.high, next_high)


def _extreme_ranks(line: Values, alternative: Alternative) -> Values:
    """Return mid-ranks from the extreme end, (N,)."""
    known = ~np.isnan(line)
    line = np.where(known, line, np.median(line[known]) if known.any() else 0.0)
    ordered = np.sort(line)
    before, up_to = (np.searchsorted(ordered, line, side) for side in ("left", "right"))
    from_below = (before + up_to + 1) / 2
    from_above = len(line) + 1 - from_below
    if alternative == "two-sided":
        return np.asarray(2 * np.minimum(from_below, from_above))
    return np.asarray(from_above if alternative == "greater" else from_below)
