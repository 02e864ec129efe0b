"""Coverage of prediction intervals, on average and by bins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import AT_QUANTILES, DataError, Message
from calcheck.inference.metric_protocol import CurveData, IntervalInference, RowResults
from calcheck.metrics._lazy import binning, coverage, curves, groups, np, zscores
from calcheck.metrics.base import BinnedMetric, LevelOption, MeanMetric, has_interval, stated_levels
from calcheck.options import option
from calcheck.reports import WIDTH, Alternative, Curve, Verdict
from calcheck.result_details import CoverageDetails, OtherLevel, StratifiedCoverageDetails

if TYPE_CHECKING:
    from calcheck.metrics._lazy import AnyArray, Binning, Means, MeanTerm, Predictions, Predictive, Run, Source, Values

EQUAL = 1e-9  # Widths that differ by less, relative to the largest, are equal but for rounding

OTHER_LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True)
class Coverage(LevelOption, MeanMetric):
    r"""Share of targets inside their prediction intervals.

    .. math:: \mathrm{coverage} = \frac1n \sum_i 1\{l_i \le y_i \le u_i\}, \qquad
              l_i = F_i^{-1}(\tfrac{1-p}2), \; u_i = F_i^{-1}(\tfrac{1+p}2)

    The intervals are those of the file, or the central intervals of predictive distributions.

    Value
    -----
    Dimensionless, in [0, 1]. The reference is the mean of F_i(u_i) - F_i(l_i-): p for continuous distributions, and for
    stated quantiles and intervals; more for counts, whose quantiles are discrete. For samples, it is the share of gaps
    between draws inside the interval.

    Notes
    -----
    A mean over rows; unbiased. For files of quantiles or intervals, a right model only states that the probability
    strictly inside is at most p, and that inside at least p. Where targets are equal to limits, as for counts, p is
    therefore compared with the nearest share between these two, and the verdict is conservative; ``strictly_inside`` in
    ``details`` is the first of them. A target that is rounded to a limit counts by the part of its step inside, if log
    densities change by at most 3 between quantiles whose normal scores differ by 1, and by 4 beside limits of
    intervals. If targets are clipped, limits beyond do not count. Time O(n), with two quantiles per level.

    References
    ----------
    Gneiting, Balabdaoui, Raftery (2007), "Probabilistic forecasts, calibration and sharpness".
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="coverage",
        orientation="reference",
        above="too-wide",
        below="too-narrow",
        source="Gneiting et al. 2007",
        interpretation="The reference is the expected coverage if the model is correct.",
        uses="coverage",
        details=CoverageDetails,
    )
    column: ClassVar[str] = "covered"
    curves_along_columns: ClassVar[bool] = False

    at_least: bool = option(
        "Fail only if the coverage is below its level, as conformal prediction promises.", default=False
    )

    @property
    def alternative(self) -> Alternative:
        return "less" if self.at_least else super().alternative

    def compute(self, rows: Predictions) -> RowResults:
        level = self.level_of(rows.predictive)
        found = coverage.inside(rows, level)
        expected = zscores.interval_mass(rows.distributions(), level)
        columns = {**found, "expected": expected}
        at_limits = coverage.shares_at_limits(found)
        warnings = [AT_QUANTILES] if at_limits else []
        y, (low, high) = zscores.targets(rows), zscores.central_interval(rows.distributions(), level)
        below, above = float((y < low).mean()), float((y > high).mean())
        others = self._at_other_levels(rows, level)
        shares: CoverageDetails = {"below": below, "above": above, "at_other_levels": others}
        details = {**shares, **at_limits}
        ambiguity = self._ambiguity(rows, level)
        if "excess" in found:  # ties of clipped and rounded targets
            ambiguity = float((found["covered"] - found["strictly_inside"]).mean())
        if ambiguity > coverage.MAX_OPEN:
            text = f"no exact reference: ties or missing quantile levels make it uncertain by {ambiguity:.2g}"
            warnings.append(Message("no-reference", text))
            return RowResults(columns, details=details, warnings=tuple(warnings))
        return RowResults(columns, details=details, warnings=tuple(warnings), reference=float(expected.mean()))

    def null_statistic(self, means: Means) -> Values:
        return coverage.nearest_share(means, np.asarray(self.level_of(None)))

    def null_reference(self, rows: RowResults) -> float | None:
        """Return the level if targets are equal to stated limits of their intervals."""
        return self.level_of(None) if "strictly_inside" in rows.details else None

    def details(self, means: Means) -> Mapping[str, Any]:
        return coverage.shares_at_limits(means)

    def _at_other_levels(self, rows: Predictions, level: float) -> list[OtherLevel]:
        """Return the coverage at the other levels of prediction intervals, else at common ones that the file has."""
        predictive, others = rows.distributions(), list(OTHER_LEVELS)
        if predictive.interval_levels is not None:
            others = predictive.interval_levels.tolist()
        elif (known := predictive.quantile_levels) is not None:
            others = [other for other in others if has_interval(known, other)]
        found = {other: coverage.inside(rows, other) for other in others if other != level}
        return [
            {
                "level": other,
                "coverage": float(each["covered"].mean()),
                "expected": float(zscores.interval_mass(predictive, other).mean()),
                **coverage.shares_at_limits(each),
            }
            for other, each in found.items()
        ]

    def interpolates(self, levels: Values) -> bool:
        return not has_interval(levels, self.level_of(None))

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the coverage by level: at the levels of the file, if it states intervals or quantiles only."""
        rows = shown.source.predictions()
        levels, shares = coverage.coverage_by_level(rows, stated_levels(rows.predictive))
        return (curves.curve_of("coverage", levels, shares),)

    def replicate_rows(self, rows: Predictions) -> RowResults:
        return RowResults(dict(coverage.inside(rows, self.level_of(rows.predictive))))

    def evaluate(self, fit: None, source: Source, run: Run) -> RowResults:
        found = super().evaluate(fit, source, run)
        covered = found.columns["covered"]
        if found.reference is None or covered.min() < covered.max():
            return found
        expected = found.columns["expected"]  # All targets are inside, or all outside: the bootstrap is constant
        expected = expected + covered * found.columns.get("excess", 0.0)
        chance = float(np.prod(expected if covered[0] else 1 - expected))
        one_sided = 1.0 if covered[0] else chance
        p_value = one_sided if self.at_least else min(1.0, 2 * chance)
        verdict: Verdict = "fail" if p_value <= 1 - run.confidence else "pass"
        text = "all rows are equal; the verdict uses the exact probability of that"
        warnings = (Message.of_absence("no-interval", text),)
        return replace(found, inference=IntervalInference(p_value=p_value, verdict=verdict, warnings=warnings))

    @staticmethod
    def _ambiguity(rows: Predictions, level: float) -> float:
        """Return by how much the reference may be too small because of tied draws."""
        y = zscores.targets(rows)

        def error(part: Predictive, rows: slice) -> Values:
            return part.interval_mass_error(y[rows], *zscores.central_interval(part, level))

        return float(rows.distributions().map_batches(error).mean())


@dataclass(frozen=True)
class StratifiedCoverage(LevelOption, BinnedMetric):
    r"""Difference between the coverage of intervals and their level, over bins of widths or of a column.

    .. math:: \frac1k \sum_{j=1}^k |c_j - p_j| \quad \text{or} \quad \max_j |c_j - p_j|

    where, over the rows of bin :math:`j`, :math:`c_j` is the share of targets inside their intervals, and :math:`p_j`
    the expected share: the level, or more for families of counts. If targets are equal to limits of stated quantiles
    or intervals, :math:`c_j` is the number nearest to :math:`p_j` between the shares strictly inside and inside. With
    ``at_least``, only bins with :math:`c_j < p_j` count.

    Value
    -----
    Dimensionless, in [0, 1], smaller is better. For a perfect model it tends to 0 as the rows per bin increase.
    ``details`` contain the range, the rows and the coverage of each bin.

    Notes
    -----
    Biased upwards by noise in each bin, and more so under resampling; the percentile interval is not used for the
    verdict. The null distribution draws whether each target is inside, which needs no distribution between the limits.
    Where targets are equal to limits, as for counts, the verdict is conservative; see coverage for rounded ones.
    Intervals that are all of equal width have no such bins: name a column (``by``). Time O(n log n).
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
        alternative="greater",
        above="wrong-in-bins",
        source="Angelopoulos, Bates (arXiv 2107.07511)",
        interpretation="Smaller is better; because of noise in each bin, a perfect model is above 0.",
        interval="percentile",
        conditional_on="bin edges",
        uses="coverage",
        details=StratifiedCoverageDetails,
    )

    by: str | None = option(
        "Column used to sort rows into bins. Default: the width of the intervals.", metavar="COLUMN"
    )
    statistic: Literal["mean", "max"] = option("Statistic over the bins: the mean or the maximum.", "mean")
    at_least: bool = option(
        "Count only coverage below the level, as conformal prediction promises at least the level.", default=False
    )

    def __post_init__(self) -> None:
        LevelOption.__post_init__(self)
        BinnedMetric.__post_init__(self)

    def interpolates(self, levels: Values) -> bool:
        return not has_interval(levels, self.level_of(None))

    @property
    def sort_key_name(self) -> str:
        return self.by or "widths"

    def sort_key(self, rows: Predictions) -> AnyArray:
        if self.by is not None:
            return super().sort_key(rows)
        return zscores.interval_widths(rows.distributions(), self.level_of(rows.predictive))

    def make_bins(self, rows: Predictions) -> Binning:
        keys = self.sort_key(rows)
        if self.by is None and len(rows) > 1 and keys.max() < np.inf and np.ptp(keys) <= EQUAL * np.abs(keys).max():
            raise DataError("all intervals are of equal width, which forms no bins: name a column with --by")
        return binning.make_bins(keys, self.bins, self.by)

    def refit(self, fit: Binning, source: Source, run: Run) -> Binning:
        """Return the bins of a replicate: the same ones, unless the replicate exchanges draws."""
        return fit if source.predictions().distributions().n_draws is None else self.fit(source, run)

    def bin_terms(self, rows: Predictions, bins: Binning) -> dict[str, MeanTerm]:
        """Return the terms to be averaged by bin: rows, targets (strictly) inside, and the expected share."""
        level = self.level_of(rows.predictive)
        return {
            **{name: groups.MeanTerm(values, bins) for name, values in coverage.inside(rows, level).items()},
            "expected": groups.MeanTerm(zscores.interval_mass(rows.distributions(), level), bins),
            "rows": groups.MeanTerm(groups=bins),
        }

    def curves(self, shown: CurveData[Binning]) -> tuple[Curve, ...]:
        """Return the coverage of each bin."""
        found = shown.rows or self.evaluate(shown.fit, shown.source, shown.run)
        coverage, expected = binning.coverage_shares(binning.sums_by_bin(found.terms, shown.fit))
        keys = self.sort_key(shown.source.predictions())
        return (curves.curve_by_bin(shown.fit, keys, coverage, self.by or WIDTH, expected),)

    @staticmethod
    def bin_details(sums: Mapping[str, Values], bins: Binning) -> StratifiedCoverageDetails:
        """Return the range, the rows, the coverage and the expected coverage of each bin."""
        return binning.coverage_table(sums, bins)

    def value(self, means: Means) -> Values:
        coverage, expected = binning.coverage_shares(means)
        below = expected - coverage
        gaps = np.maximum(below, 0) if self.at_least else np.abs(below)
        return np.asarray(gaps.mean(axis=-1) if self.statistic == "mean" else gaps.max(axis=-1))
