"""Accuracy of point predictions, its order by predicted uncertainty, and properties of the predictions alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import DataError, Message
from calcheck.inference.metric_protocol import CurveData, IntervalInference, RowResults
from calcheck.metrics._lazy import binning, bootstrap, clusters, coverage, curves, groups, np, pit, zscores
from calcheck.metrics.base import WEIGHT, LevelOption, LocalMetric, MeanMetric, OrderedMetric, RowMetric, with_verdict
from calcheck.options import option
from calcheck.result_details import ConfidenceCurveDetails, RemovalPoint

if TYPE_CHECKING:
    from calcheck.dependence.clusters import WeightedMean
    from calcheck.metrics._lazy import AnyArray, Clusters, Curve, Means, MeanTerm, Predictions, Run, Source, Values
    from calcheck.statistics.groups import Groups


@dataclass(frozen=True)
class Mae(MeanMetric):
    r"""Mean absolute error of the predicted median.

    .. math:: \mathrm{MAE} = \frac1n \sum_i |y_i - \tilde y_i|, \qquad \tilde y_i = \min \{u : F_i(u) \ge 1/2\}

    Value
    -----
    Unit of y, >= 0, smaller is better.

    Notes
    -----
    A mean over rows; unbiased. Time O(n). The median, not the mean, minimizes the expected absolute error.

    References
    ----------
    Gneiting (2011), "Making and evaluating point forecasts".
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="mae",
        unit="y",
        source="Gneiting 2011",
        interpretation="Smaller is better.",
        uses="point",
    )
    column: ClassVar[str] = "absolute_error"

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults({"absolute_error": np.abs(zscores.targets(rows) - zscores.medians(rows.distributions()))})


@dataclass(frozen=True)
class Rmse(LocalMetric):
    r"""Root mean squared error of the predicted mean.

    .. math:: \mathrm{RMSE} = \sqrt{\frac1n \sum_i (y_i - \mu_i)^2}

    Value
    -----
    Unit of y, >= 0, smaller is better.

    Notes
    -----
    Biased downwards by O(1/n) because of the square root. Time O(n).

    References
    ----------
    Pernot (2024), Eq. 7, arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="rmse",
        unit="y",
        source="Pernot, Eq. 7 (arXiv 2402.10043)",
        interpretation="Smaller is better.",
        uses="point",
    )

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults({"squared_error": zscores.errors(rows) ** 2})

    def value(self, means: Means) -> Values:
        return np.sqrt(means["squared_error"])


@dataclass(frozen=True)
class Bias(MeanMetric):
    r"""Mean error: the average of target minus predicted mean.

    .. math:: \mathrm{bias} = \frac1n \sum_i (y_i - \mu_i)

    Value
    -----
    Unit of y, any sign; 0 is ideal, positive if targets are above the predictions on average.

    Notes
    -----
    A mean over rows; unbiased. Time O(n).

    References
    ----------
    Pernot (2024), arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="bias",
        unit="y",
        orientation="zero",
        source="Pernot (arXiv 2402.10043)",
        interpretation="0 is ideal; positive values mean that targets are above the predictions.",
        uses="point",
    )
    column: ClassVar[str] = "error"

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults({"error": zscores.errors(rows)})


ALL_CLIPPED = "targets below and above intervals show a bias, and all intervals have a limit at --clip"


@dataclass(frozen=True)
class StandardizedBias(MeanMetric):
    r"""Mean error in predicted standard deviations: the average of the z-scores.

    .. math:: \frac1n \sum_i z_i, \qquad z_i = \frac{y_i - \mu_i}{\sigma_i}

    For files of quantiles, z is the mean normal score of the levels between which the target is, relative to that of a
    model that is one standard deviation too low. Limits of intervals count as central quantiles: at one level p, z is 0
    inside, and :math:`\pm 1 / (2 \varphi_p)` outside, with the normal density :math:`\varphi_p` at the upper limit. A
    right model of any shape has as many targets below as above; a normal one that is d too low has a share of
    :math:`2 \varphi_p d` more above, so a standard deviation is half a width over the normal quantile. Cauchy
    distributions have no moments: z is the normal score. For m draws per row, :math:`\sigma_i` is the standard
    deviation of the draws and the target together, so that the mean is exactly 0 if these are exchangeable, times a
    constant that makes it right for normal ones that are shifted a little:
    :math:`(1 - 1/m) \, \mathrm{E}[\sqrt m / \chi_m]`.

    Value
    -----
    Dimensionless, any sign; 0 is ideal, positive if targets are above the predictions on average.

    Notes
    -----
    A mean over rows; unbiased. The interval consists of two one-sided limits by Student's t, each of which is wrong
    with a probability of 1 - confidence; with the default, 90 % of intervals contain the expected value. If rows depend
    on each other, its standard error is that between clusters. For quantiles and intervals, it is that with one further
    target beyond each of the outermost limits: none may be there by chance (Agresti and Caffo 2000). Time O(n).

    References
    ----------
    Pernot (2024), arXiv 2402.10043.
    Agresti, Caffo (2000), The American Statistician 54, 280-288.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="standardized-bias",
        orientation="zero",
        source="Pernot (arXiv 2402.10043)",
        interpretation="0 is ideal; at 0.2, targets are on average 0.2 standard deviations above the predictions.",
        interval="one-sided",
        distribution_free=True,
        uses="coverage",
    )
    column: ClassVar[str] = "z"

    def interpolates(self, levels: Values) -> bool:  # noqa: ARG002 - only the stated levels count
        return False

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults(_standardized(rows), reference=0.0)

    def value(self, means: Means) -> Values:
        return means["z"] / means.get("unit", 1.0)

    def limits(self, rows: RowResults, run: Run, clusters: Clusters | None) -> IntervalInference:
        """Return the limits by Student's t, and its test."""
        if rows.n == 1:
            return IntervalInference(warnings=(Message.of_absence("no-interval", "a single row has no spread"),))
        if not np.any(rows.columns.get("unit", rows.fixed.get("unit", 1.0))):
            return IntervalInference(warnings=(Message.of_absence("no-interval", ALL_CLIPPED),))
        weights = rows.terms[WEIGHT].values if WEIGHT in rows.terms else None
        stated = not rows.columns
        mean = _mean_of_sums(rows.fixed, rows.n) if stated else _mean_of_rows(rows.columns, weights, clusters)
        low, high = mean.limits(1 - run.confidence)
        return with_verdict(
            IntervalInference(low=low, high=high, interval="t", p_value=mean.p_value(0.0)), run.confidence
        )

    def limits_of_sums(self, means: Means, rows: float, tail: float) -> tuple[float, float]:
        """Return the limits by means of z and its square, given how many independent rows they stand for."""
        return _mean_of_sums(means, rows).limits(tail)


def _standardized(rows: Predictions) -> dict[str, Values]:
    """Return z-scores whose mean is 0 for a right model, (n,); normal scores of the PIT where there are no moments."""
    predictive = rows.distributions()
    if coverage.states_limits(predictive):
        z, outermost, unit = pit.stated_normal_scores(rows)
        clipped = {} if unit is None else {"unit": unit, "unit2": unit**2, "z_unit": z * unit}
        return {"z": z, "z2": z**2, "outermost": np.full(len(z), outermost), **clipped}
    z = pit.normal_scores(rows) if predictive.family == "cauchy" else zscores.standardized_errors(rows)
    return {"z": z, "z2": z**2}


def _mean_of_rows(columns: dict[str, Values], weights: Values | None, clusters: Clusters | None) -> WeightedMean:
    """Return the mean of z, with a further target beyond each of the outermost limits for its standard error."""
    from calcheck.dependence.clusters import weighted_mean

    added = 2 * float(columns["outermost"][0]) ** 2 if "outermost" in columns else 0.0
    return weighted_mean(columns["z"], weights, clusters, added, columns.get("unit"))


def _mean_of_sums(means: Means | dict[str, Values], n: float) -> WeightedMean:
    """Return a mean from the sums of a state."""
    unit = float(means.get("unit", 1.0))
    mean, square, outermost = float(means["z"]) / unit, float(means["z2"]), float(means.get("outermost", 0.0))
    away = mean * (2 * float(means.get("z_unit", means["z"])) - mean * float(means.get("unit2", 1.0)))
    variance = max(square - away, 0.0) / (n - 1) + 2 * (outermost / n) ** 2
    return clusters.WeightedMean(mean, variance**0.5 / unit, n - 1)


class SpreadMetric(RowMetric):
    """A metric of the predicted standard deviations."""

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the histogram of predicted standard deviations."""
        return (curves.spread_histogram(zscores.spreads(shown.source.predictions().distributions())),)


@dataclass(frozen=True)
class Sharpness(SpreadMetric):
    r"""Root mean predicted variance: the average predicted uncertainty.

    .. math:: \mathrm{sharpness} = \sqrt{\frac1n \sum_i \sigma_i^2}

    Value
    -----
    Unit of y, > 0; smaller is sharper, which is better only among calibrated models.

    Notes
    -----
    Called RMV by Levi et al. Time O(n).

    References
    ----------
    Levi et al. (2022), Eq. 6, doi:10.3390/s22155540.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="sharpness",
        unit="y",
        needs=("predictive",),
        alternative="none",
        orientation="none",
        source="Levi et al., Eq. 6",
        interpretation="Smaller is sharper, which is better only if the model is calibrated.",
    )

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults({"variance": zscores.spreads(rows.distributions()) ** 2})

    def value(self, means: Means) -> Values:
        return np.sqrt(means["variance"])


@dataclass(frozen=True)
class Width(LevelOption, MeanMetric):
    r"""Mean width of the central prediction intervals.

    .. math:: \mathrm{width} = \frac1n \sum_i (u_i - l_i), \qquad
              l_i = F_i^{-1}(\tfrac{1-p}2), \; u_i = F_i^{-1}(\tfrac{1+p}2)

    Value
    -----
    Unit of y, >= 0; smaller is sharper, which is better only among calibrated models.

    Notes
    -----
    A mean over rows. Time O(n).

    References
    ----------
    Gneiting, Balabdaoui, Raftery (2007), "Probabilistic forecasts, calibration and sharpness".
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="width",
        unit="y",
        needs=("predictive",),
        alternative="none",
        orientation="none",
        source="Gneiting et al. 2007",
        interpretation="Smaller is sharper, which is better only if the coverage is correct.",
        uses="interval",
    )
    column: ClassVar[str] = "width"

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults({"width": zscores.interval_widths(rows.distributions(), self.level_of(rows.predictive))})


@dataclass(frozen=True)
class Cv(SpreadMetric):
    r"""Coefficient of variation of the predicted standard deviations.

    .. math:: C_v = \frac1{\bar\sigma} \sqrt{\frac{1}{n-1} \sum_i (\sigma_i - \bar\sigma)^2}

    Value
    -----
    Dimensionless, >= 0; 0 if all rows have the same uncertainty.

    Notes
    -----
    Time O(n). Standard deviations are centered before squaring, so nearly equal values lose no precision.

    References
    ----------
    Levi et al. (2022), Eq. 10, doi:10.3390/s22155540.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="cv",
        needs=("predictive",),
        alternative="none",
        orientation="none",
        source="Levi et al., Eq. 10",
        interpretation="0 means that all rows have the same uncertainty; bins by uncertainty are then not informative.",
    )

    def compute(self, rows: Predictions) -> RowResults:
        std = zscores.spreads(rows.distributions())
        if len(std) == 1:
            raise DataError("cv needs at least 2 rows, got 1")
        return self.rows_around(float(std.mean()), rows)

    @staticmethod
    def rows_around(center: float, rows: Predictions) -> RowResults:
        """Return the columns of each row, with standard deviations relative to a center that only affects rounding."""
        std = zscores.spreads(rows.distributions())
        away = std - center
        return RowResults({"std": std, "std_away": away, "std_away_squared": away**2})

    def value(self, means: Means) -> Values:
        variance = np.maximum(means["std_away_squared"] - means["std_away"] ** 2, 0)
        return np.asarray(np.sqrt(variance * means.n / (means.n - 1)) / means["std"])


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
