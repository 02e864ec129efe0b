"""Coverage, squared z-scores and PIT histograms of groups of rows: their sums, and limits that a right model keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtr, bdtrik, ndtri

from calcheck.errors import DataError
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics.base import inapplicable_reason
from calcheck.metrics.coverage import Coverage
from calcheck.metrics.pit import Pit
from calcheck.metrics.spread import Zms
from calcheck.statistics.moments import missing_reference_reason, z_scores
from calcheck.statistics.pit import levels_of, pit, share_of_row_below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions
    from calcheck.statistics.groups import Groups

    Values = NDArray[np.float64]
    Counts = NDArray[np.intp]
    Limits = tuple[Values, Values]

BINS = 20  # Number of bins of a PIT histogram
DRAWS = 400_000  # Number of targets to draw for all replicates together
MIN_REPLICATES, MAX_REPLICATES = 2, 39
NEGLIGIBLE = 1e-12  # Variance of a sum, relative to its squared mean, that is rounding
NORMAL_VARIANCE = 2.0  # Variance of a squared standard normal number


@dataclass(frozen=True, eq=False)
class CoverageSums:
    """Number of targets inside their intervals, by group.

    Parameters
    ----------
    covered : (g,)
        Number of targets inside.
    expected : (g,), optional
        Their expected number if the distributions are right; None if it is not known exactly.
    """

    covered: Values
    expected: Values | None


@dataclass(frozen=True, eq=False)
class SquareSums:
    """Sums of squared z-scores, by group.

    Parameters
    ----------
    total : (g,)
        Sum of squared z-scores.
    expected, variance : (g,), optional
        Mean and variance of this sum if the distributions are right; None without replicates. The variance is NaN where
        no replicate differs from the others.
    """

    total: Values
    expected: Values | None
    variance: Values | None


@dataclass(frozen=True, eq=False)
class PitSums:
    """PIT histograms with 20 bins, by group.

    Parameters
    ----------
    counts : (g, 20)
        Number of rows in each bin; a row whose PIT spans several bins is divided among them.
    variance : (g, 20), optional
        Variance of the counts if the distributions are right, whose mean is n / 20; None without replicates.
    """

    counts: Values
    variance: Values | None


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the rows of g groups; what the predictions do not state is None.

    Parameters
    ----------
    n : (g,)
        Number of rows.
    level : float
        Level of the intervals.
    coverage, squares, pit
        The sums.
    """

    n: NDArray[np.intp]
    level: float
    coverage: CoverageSums | None
    squares: SquareSums | None
    pit: PitSums | None

    def without_limits(self) -> GroupSums:
        """Return the sums without what limits of right models need."""
        return replace(
            self,
            coverage=self.coverage and replace(self.coverage, expected=None),
            squares=self.squares and replace(self.squares, expected=None, variance=None),
            pit=self.pit and replace(self.pit, variance=None),
        )

    def total(self) -> GroupSums:
        """Return the sums over the rows of all groups together, as one group."""
        return GroupSums(
            n=np.array([self.n.sum()]),
            level=self.level,
            coverage=self.coverage and CoverageSums(*_totals(self.coverage.covered, self.coverage.expected)),
            squares=self.squares
            and SquareSums(*_totals(self.squares.total, self.squares.expected, self.squares.variance)),
            pit=self.pit and PitSums(*_totals(self.pit.counts, self.pit.variance)),
        )


def _totals(*sums: Values | None) -> Iterator[Any]:
    """Yield the sums over all groups, (1, …), None for None."""
    yield from (None if each is None else each.sum(axis=0, keepdims=True) for each in sums)


def group_sums(rows: Predictions, groups: Groups, run: Run, *, level: float | None = None) -> GroupSums:
    """Return the sums over the rows of each group.

    Parameters
    ----------
    rows : Predictions
        n rows with one target and one distribution each.
    groups : Groups
        The group of each row.
    run : Run
        The seed; with 0 replicates, what needs replicates is None.
    level : float, optional
        Level of the intervals; by default, that of the metric coverage.
    """
    metric = Coverage(level).with_defaults(rows)
    replicates = _replicates(rows, run)
    return GroupSums(
        n=groups.counts,
        level=metric.level_of(rows.predictive),
        coverage=None if inapplicable_reason(Coverage, rows) else _coverage_sums(rows, groups, metric),
        squares=None if inapplicable_reason(Zms, rows) else _square_sums(rows, groups, replicates),
        pit=None if inapplicable_reason(Pit, rows) else _pit_sums(rows, groups, replicates),
    )


def _replicates(rows: Predictions, run: Run) -> NullSimulator:
    """Return few replicates, or none without a null distribution: the rows of a group share theirs."""
    few = min(MAX_REPLICATES, max(MIN_REPLICATES, DRAWS // len(rows)))
    return NullSimulator(rows, run, numbers=range(0 if run.replicates == 0 else few))


def _coverage_sums(rows: Predictions, groups: Groups, metric: Coverage) -> CoverageSums:
    found = metric.compute(rows)
    expected = None if found.reference is None else groups.sums(found.columns["expected"])
    return CoverageSums(groups.sums(found.columns["covered"]), expected)


def _square_sums(rows: Predictions, groups: Groups, replicates: NullSimulator) -> SquareSums | None:
    try:
        total = groups.sums(z_scores(rows) ** 2)
        return SquareSums(total, *_expected_squares(rows, groups, replicates))
    except DataError:  # Some distributions have no spread: the report states it for zms
        return None


def _expected_squares(
    rows: Predictions, groups: Groups, replicates: NullSimulator
) -> tuple[Values, Values] | tuple[None, None]:
    """Return the mean and the variance of the sums of squared z-scores if the distributions are right, (g,) each.

    The variance contains that of a mean that is estimated from the replicates; it is NaN if these do not vary.
    """
    n = groups.counts.astype(np.float64)
    if rows.distributions().normal() is not None:
        return n, NORMAL_VARIANCE * n
    if not len(replicates):
        return None, None
    total, squares, count = np.zeros(len(rows)), np.zeros(len(rows)), len(replicates)
    for replicate in replicates:
        drawn = z_scores(replicate) ** 2
        total += drawn
        squares += drawn**2
    variance = groups.sums((squares - total**2 / count) / (count - 1))
    expected = n if not missing_reference_reason(rows) else groups.sums(total) / count
    estimated = 1.0 if expected is n else 1 + 1 / count
    return expected, np.where(variance > NEGLIGIBLE * expected**2, variance * estimated, np.nan)


def _pit_sums(rows: Predictions, groups: Groups, replicates: NullSimulator) -> PitSums:
    counts = np.stack([groups.sums(share) for share in _shares_in_bins(*pit(rows))], axis=1)
    return PitSums(counts, _pit_variance(rows, groups, replicates))


def _pit_variance(rows: Predictions, groups: Groups, replicates: NullSimulator) -> Values | None:
    """Return the variance of the counts if the distributions are right, (g, 20)."""
    left, right = pit(rows)
    if left is right:
        return np.repeat(groups.counts[:, None] * (1 - 1 / BINS) / BINS, BINS, axis=1)
    if not len(replicates):
        return None
    found = np.zeros((groups.classes, BINS))
    for replicate in replicates:
        for place, share in enumerate(_shares_in_bins(*pit(replicate))):
            found[:, place] += groups.sums((share - 1 / BINS) ** 2)
    return found / len(replicates)


def _shares_in_bins(left: Values, right: Values) -> Iterator[Values]:
    """Yield the share of each row in each bin of its histogram, (n,)."""
    ends = (share_of_row_below(left, right, level) for level in levels_of(BINS - 1))
    for below, up_to in pairwise(chain([np.zeros(len(right))], ends, [np.ones(len(right))])):
        yield up_to - below


def coverage_limits(n: Counts, expected: Values, confidence: float) -> Limits:
    """Return the limits of the coverage of a right model, (g,) each, in [0, 1]: binomial quantiles.

    Parameters
    ----------
    n : (g,)
        Number of rows, at least 1.
    expected : (g,)
        Expected number of targets inside their intervals.
    confidence : float
        Probability between the limits, at least.
    """
    low, high = _binomial_limits(n, np.minimum(expected / n, 1.0), 1 - confidence)
    return low / n, high / n


def mean_square_limits(n: Counts, expected: Values, variance: Values, confidence: float) -> Limits:
    """Return the limits of the mean squared z-score of a right model, (g,) each: gamma quantiles with its moments.

    They are NaN if the variance is not known, or the expected sum is 0.

    Parameters
    ----------
    n : (g,)
        Number of rows, at least 1.
    expected, variance : (g,)
        Mean and variance of the sum of squared z-scores.
    confidence : float
        Probability between the limits, for normal distributions.

    References
    ----------
    Wilson, Hilferty (1931), "The distribution of chi-square".
    """
    mean, known = expected / n, np.where(expected > 0, expected, np.nan)
    spread = variance / (9 * known**2)  # 2 / (9 dof) of a chi-square distribution with these moments
    step = ndtri((1 + confidence) / 2) * np.sqrt(spread)
    low, high = (mean * np.maximum(1 - spread + sign * step, 0) ** 3 for sign in (-1, 1))
    return low, high


def histogram_limits(n: Counts, variance: Values, confidence: float) -> Limits:
    """Return simultaneous limits of the counts of the PIT histogram of a right model, (g, 20) each.

    They are quantiles of multiples of binomial numbers with the mean and the variance of the counts, at a level divided
    by the number of bins. For continuous distributions these are the counts themselves; of draws, which divide a row
    among bins, they are the shares of the ranks.

    Parameters
    ----------
    n : (g,)
        Number of rows, at least 1.
    variance : (g, 20)
        Variance of the counts, whose mean is n / 20.
    confidence : float
        Probability that all counts are between their limits, about.
    """
    size = BINS * variance / n[:, None] + 1 / BINS  # Share of a row that is in a bin, if any of it is
    low, high = _binomial_limits(n[:, None], 1 / (BINS * size), (1 - confidence) / BINS)
    return low * size, high * size


def _binomial_limits(n: Counts, share: Values, excess: float) -> Limits:
    """Return the quantiles that leave half of an excess probability on each side."""
    low, high = (binomial_quantiles(level, n, share) for level in (excess / 2, 1 - excess / 2))
    return low, high


def binomial_quantiles(level: float, n: Counts, share: Values) -> Values:
    """Return the smallest numbers that binomial numbers exceed with a probability of at most 1 - level.

    The import of :mod:`scipy.stats`, which has these quantiles, takes longer than a page.
    """
    above = np.where(share > 0, np.ceil(bdtrik(level, n, share)), 0.0)
    below = np.maximum(above - 1, 0)
    return np.asarray(np.where(bdtr(below, n, share) >= level, below, above))
