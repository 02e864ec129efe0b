"""Whether targets are inside prediction intervals, as an outcome with a stated probability."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.bernoulli import Bernoulli
from calcheck.predictions import MappedSource
from calcheck.statistics.digitize import digitize
from calcheck.statistics.moments import covered, interval_mass
from calcheck.statistics.pit import pit, share_below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.predictions import Predictions, Source

LEVELS = np.arange(1, 50) / 50  # Levels of coverage curves


def coverage_outcomes(source: Source, level: float) -> Source:
    """Return rows whose target is 1 if it is inside its prediction interval, else 0, with the probability of that.

    Parameters
    ----------
    source : Source
        Rows with prediction intervals; other rows are returned as they are.
    level : float
        Level of the intervals.
    """
    rows = source.predictions()
    if rows.y is None or rows.predictive is None or rows.predictive.interval_levels is None:
        return source
    return MappedSource(source, partial(_outcomes, level=level))


def _outcomes(rows: Predictions, level: float) -> Predictions:
    """Return a batch with the outcomes as targets."""
    return rows.with_targets(covered(rows, level), Bernoulli(np.array(interval_mass(rows, level))))


def coverage_by_level(rows: Predictions, stated: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return levels of central intervals, and the share of targets inside at each, (k,) each.

    Parameters
    ----------
    rows : Predictions
        The rows.
    stated : sequence of float
        Levels of the intervals that the distributions state; empty if they state intervals at any level.

    Notes
    -----
    Counts at the limits of an interval are inside. Targets between draws are inside in proportion to the part of their
    gap that the interval contains. If a target is equal to a stated quantile, the share is the number nearest to the
    level between those without and with the limits.
    """
    if not len(stated):
        return LEVELS, _coverage_by_pit(rows, LEVELS)
    levels = np.unique(stated)
    shares = [covered(rows, level).mean() for level in levels.tolist()]
    if rows.distributions().quantile_levels is None:
        return levels, np.array(shares)
    strict = [covered(rows, level, strictly=True).mean() for level in levels.tolist()]
    return levels, np.clip(levels, strict, shares)


def _coverage_by_pit(rows: Predictions, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of targets inside central intervals, (k,), from the limits of the PIT."""
    left, right = pit(rows)
    ends = np.concatenate([(1 - levels[::-1]) / 2, (1 + levels) / 2])
    if rows.distributions().n_draws is not None:
        below, up_to = np.split(share_below(left, right, ends).sums(None), 2)
        return (up_to - below[::-1]) / len(left)
    counts = _counts_below(right, ends)
    below, _ = np.split(counts, 2)  # F(y) < p: the target is below its quantile at p
    _, not_above = np.split(counts if left is right else _counts_below(left, ends), 2)  # F(y-) < p: it is not above it
    return (not_above - below[::-1]) / len(left)


def _counts_below(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the number of values strictly below each cut, (k,)."""
    cells = digitize(values, cuts, equal=True)
    return np.bincount(cells, minlength=len(cuts) + 1)[:-1].cumsum().astype(np.float64)
