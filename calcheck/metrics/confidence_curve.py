"""Area between the confidence curve and its oracle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.core.metric_info import MetricInfo
from calcheck.inference.metric_protocol import CurveData, RowResults
from calcheck.metrics._lazy import binning, bootstrap, curves, groups, np, zscores
from calcheck.metrics.base import OrderedMetric
from calcheck.options import option
from calcheck.result_details import ConfidenceCurveDetails, RemovalPoint

if TYPE_CHECKING:
    from calcheck.metrics._lazy import AnyArray, Curve, Means, MeanTerm, Predictions, Run, Source, Values
    from calcheck.statistics.groups import Groups

LEVELS = 100  # points of the curve, in percent
REPORTED_LEVELS = range(0, LEVELS, 10)


@dataclass(frozen=True)
class ConfidenceCurve(OrderedMetric):
    r"""Area between the confidence curve and its oracle: how well uncertainties rank the errors.

    .. math:: \int_0^{0.99} (c(s) - o(s)) \, ds

    where c(s) is the error of the remaining rows after removing the share s with the largest standard deviations, and
    o(s) is the error after removing the share s with the largest errors. The integral uses the trapezoidal rule at
    0, 1, ..., 99 %.

    Value
    -----
    Unit of y, >= 0, smaller is better. It is 0 only if uncertainties and errors have the same order, which no
    probabilistic model achieves.

    Notes
    -----
    Depends on the order of the uncertainties, not on their size. Rows with equal uncertainties are removed in equal
    parts, so the row order of the file does not matter. The interval is a percentile interval. Time O(n log n).

    References
    ----------
    Pernot (2022), "Confidence curves for UQ validation: probabilistic reference vs. oracle", arXiv 2206.15272.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="confidence-curve",
        unit="y",
        source="Pernot 2022 (arXiv 2206.15272)",
        interpretation="Smaller is better; a perfect model is above 0, because errors are partly random.",
        interval="percentile",
        independent_rows="rows depend on each other, and it orders all of them by their errors",
        details=ConfidenceCurveDetails,
        exempt_laws={"spread": "depends on the order of the uncertainties only"},
    )

    score: Literal["mae", "rmse"] = option(
        "Error of the remaining rows: mean absolute error or root mean squared error.", "mae"
    )

    def sort_keys(self, rows: Predictions) -> dict[str, Values]:
        return {"absolute_error": np.abs(zscores.errors(rows)), "std": zscores.spreads(rows.distributions())}

    def compute(self, rows: Predictions) -> RowResults:
        by_std = binning.cut_spreads(rows.distributions(), tuple(self._remaining_shares()))  # replicates share it
        return self._curve(self.sort_keys(rows), by_std)

    def from_sort_keys(self, columns: dict[str, Values]) -> RowResults:
        return self._curve(columns, groups.CutTieGroups(columns["std"], self._remaining_shares()))

    def _curve(self, columns: dict[str, Values], by_std: Groups) -> RowResults:
        """Return the columns of each row, given its group of equal standard deviations."""
        error, std = columns["absolute_error"], columns["std"]
        terms = self._terms(error, by_std)
        curve, oracle = self._curves(groups.Averages(terms, len(std)).means())
        lines: list[RemovalPoint] = [
            {"removed": percent / LEVELS, "error": float(curve[percent]), "oracle": float(oracle[percent])}
            for percent in REPORTED_LEVELS
        ]
        details: ConfidenceCurveDetails = {"curve": lines}
        return RowResults({"absolute_error": error, "std": std}, terms, details=details)

    def _terms(self, error: Values, by_std: Groups) -> dict[str, MeanTerm]:
        """Return the terms whose means determine both curves, given absolute errors (n,)."""
        loss = error if self.score == "mae" else error**2
        by_error = groups.CutTieGroups(loss, self._remaining_shares())
        return {
            "rows_by_std": groups.MeanTerm(groups=by_std),
            "error_by_std": groups.MeanTerm(loss, by_std),
            "rows_by_error": groups.MeanTerm(groups=by_error),
            "error_by_error": groups.MeanTerm(loss, by_error),
        }

    def quick_statistic(self, fit: None, source: Source, run: Run) -> float:  # noqa: ARG002 - nothing is fitted
        """Return the value of a data set without the curves that are reported."""
        rows = source.predictions()
        error, n = np.abs(zscores.errors(rows)), len(rows)
        shares = tuple(self._remaining_shares())
        if self.score == "mae" and n <= groups.PART:  # a sum of weighted errors
            oracle = binning.order_weights(n, shares) @ np.sort(error)
            return float(binning.spread_weights(rows.distributions(), shares) @ error - oracle)
        by_std = binning.cut_spreads(rows.distributions(), shares)
        return float(self.value(groups.Averages(self._terms(error, by_std), n).means()))

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the error of the remaining rows by the share of removed rows, and that of the oracle."""
        found = shown.rows or self.evaluate(shown.fit, shown.source, shown.run)
        curve, oracle = self._curves(bootstrap.statistic_of(self, found).means())
        removed = 1 - self._remaining_shares()
        return curves.curve_of("confidence", removed, curve), curves.curve_of("oracle", removed, oracle)

    def value(self, means: Means) -> Values:
        curve, oracle = self._curves(means)
        return np.asarray(np.trapezoid(curve - oracle, dx=1 / LEVELS, axis=-1))

    def _curves(self, means: Means) -> tuple[AnyArray, AnyArray]:
        """Return the errors after removing 0, 1, ..., 99 % of the rows, by uncertainty and by error, (..., 100)."""
        shares = self._remaining_shares()
        curves = (
            groups.cumulative_at(shares, means[f"rows_by_{order}"], means[f"error_by_{order}"]) / shares
            for order in ("std", "error")
        )
        curve, oracle = (each if self.score == "mae" else np.sqrt(each) for each in curves)
        return curve, oracle

    @staticmethod
    def _remaining_shares() -> Values:
        """Return the shares of remaining rows."""
        return 1 - np.arange(LEVELS) / LEVELS
