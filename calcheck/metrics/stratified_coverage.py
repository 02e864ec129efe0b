"""Coverage of prediction intervals by bins of their width or of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from calcheck.details import StratifiedCoverageDetails
from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import BinnedMetric, LevelOption, has_interval
from calcheck.options import option

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.inference.metric_protocol import CurveData
    from calcheck.predictions import Predictions, Source
    from calcheck.report import Curve
    from calcheck.statistics.bins import Bins
    from calcheck.statistics.groups import Means, MeanTerm


@dataclass(frozen=True)
class StratifiedCoverage(LevelOption, BinnedMetric):
    r"""Difference between the coverage of intervals and their level, over bins of their width.

    .. math:: \frac1k \sum_{j=1}^k |c_j - p_j| \quad \text{or} \quad \max_j |c_j - p_j|

    where, over the rows of bin :math:`j`, :math:`c_j` is the share of targets inside their intervals, and :math:`p_j`
    the expected share: the level, or more for families of counts. If targets are equal to limits of stated quantiles
    or intervals, :math:`c_j` is the number nearest to :math:`p_j` between the shares strictly inside and inside. With
    ``at_least``, only bins with :math:`c_j < p_j` count.

    Parameters
    ----------
    bins
        Number of bins k.
    by
        Sort key of the bins: the interval width or a column.
    level
        Level p of the intervals.
    statistic
        Mean or maximum over the bins.
    at_least
        Whether only a coverage below the level is evidence against a model, as conformal prediction promises.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions, or n intervals at this level

    Value
    -----
    Dimensionless, in [0, 1], smaller is better. For a perfect model it tends to 0 as the rows per bin increase.
    ``details`` contain the range, the rows and the coverage of each bin.

    Raises
    ------
    OptionError
        The level is not strictly between 0 and 1.
    DataError
        There are fewer rows than bins, or the column is missing.

    Notes
    -----
    Biased upwards by noise in each bin, and more so under resampling; the percentile interval is not used for the
    verdict. The null distribution draws whether each target is inside, which needs no distribution between the limits.
    Where targets are equal to limits, as for counts, the verdict is conservative.
    Intervals of equal width are tied: all bins then repeat the coverage of all rows. Time O(n log n).
    Differences from the papers, which report the smallest coverage over bins: both directions count by default, and
    bins have equal counts.

    References
    ----------
    Size-stratified coverage: Angelopoulos, Bates, Malik, Jordan (2021), Uncertainty Sets for Image Classifiers using
    Conformal Prediction (arXiv 2009.14193). Feature-stratified coverage: Angelopoulos, Bates (2021), A Gentle
    Introduction to Conformal Prediction (arXiv 2107.07511).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="stratified-coverage",
        unit="1",
        needs=("y", "predictive"),
        alternative="greater",
        orientation="smaller",
        above="wrong-in-bins",
        source="Angelopoulos, Bates (arXiv 2107.07511)",
        interpretation="Smaller is better; because of noise in each bin, a perfect model is above 0.",
        interval="percentile",
        conditional_on="bin edges",
        uses="coverage",
        details=StratifiedCoverageDetails,
    )

    by: str | None = option(
        None, "Column used to sort rows into bins. Default: the width of the intervals.", metavar="COLUMN"
    )
    statistic: Literal["mean", "max"] = option("mean", "Statistic over the bins: the mean or the maximum.")
    at_least: bool = option(
        default=False, text="Count only coverage below the level, as conformal prediction promises at least the level."
    )

    def __post_init__(self) -> None:
        LevelOption.__post_init__(self)
        BinnedMetric.__post_init__(self)

    def interpolates(self, levels: NDArray[np.float64]) -> bool:
        return not has_interval(levels, self.level_of(None))

    @property
    def sort_key_name(self) -> str:
        return self.by or "widths"

    def sort_key(self, rows: Predictions) -> NDArray[Any]:
        from calcheck.statistics.moments import interval_widths

        if self.by is not None:
            return super().sort_key(rows)
        return interval_widths(rows.distributions(), self.level_of(rows.predictive))

    def make_bins(self, rows: Predictions) -> Bins:
        from calcheck.statistics.bins import make_bins

        return make_bins(self.sort_key(rows), self.bins, self.by)

    def refit(self, fit: Bins, source: Source, run: Run) -> Bins:
        """Return the bins of a replicate: the same ones, unless the replicate exchanges draws."""
        return fit if source.predictions().distributions().n_draws is None else self.fit(source, run)

    def bin_terms(self, rows: Predictions, bins: Bins) -> dict[str, MeanTerm]:
        """Return the terms to be averaged by bin: rows, targets (strictly) inside, and the expected share."""
        from calcheck.statistics.coverage import inside
        from calcheck.statistics.groups import MeanTerm
        from calcheck.statistics.moments import interval_mass

        level = self.level_of(rows.predictive)
        return {
            **{name: MeanTerm(values, bins) for name, values in inside(rows, level).items()},
            "expected": MeanTerm(interval_mass(rows, level), bins),
            "rows": MeanTerm(groups=bins),
        }

    def curves(self, shown: CurveData[Bins]) -> tuple[Curve, ...]:
        """Return the coverage of each bin."""
        from calcheck.report import WIDTH
        from calcheck.statistics.bins import coverage_shares, sums_by_bin
        from calcheck.statistics.curves import curve_by_bin

        found = shown.rows or self.evaluate(shown.fit, shown.source, shown.run)
        coverage, expected = coverage_shares(sums_by_bin(found.terms, shown.fit))
        keys = self.sort_key(shown.source.predictions())
        return (curve_by_bin(shown.fit, keys, coverage, self.by or WIDTH, expected),)

    @staticmethod
    def bin_details(sums: Mapping[str, NDArray[np.float64]], bins: Bins) -> StratifiedCoverageDetails:
        """Return the range, the rows, the coverage and the expected coverage of each bin."""
        from calcheck.statistics.bins import coverage_table

        return coverage_table(sums, bins)

    def value(self, means: Means) -> NDArray[np.float64]:
        import numpy as np

        from calcheck.statistics.bins import coverage_shares

        coverage, expected = coverage_shares(means)
        below = expected - coverage
        gaps = np.maximum(below, 0) if self.at_least else np.abs(below)
        return np.asarray(gaps.mean(axis=-1) if self.statistic == "mean" else gaps.max(axis=-1))
