"""Squared errors, compared with predicted variances: on average, by bins, and tested bin by bin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import DataError, Message
from calcheck.inference.metric_protocol import CurveData, RowResults
from calcheck.metrics._lazy import binned_validity, curves, np, zscores
from calcheck.metrics.base import BinnedMetric, BinningMetric, LocalMetric, MeanMetric
from calcheck.options import option
from calcheck.reports import SPREAD, Curve
from calcheck.result_details import BinnedDetails, RceDetails, ValidBinsDetails, ZmsDetails

if TYPE_CHECKING:
    from calcheck.inference.binned_validity import BinMoments
    from calcheck.metrics._lazy import Binning, Means, Predictions, Run, Source, Values

LARGEST = "Largest relative difference between predicted and observed spread over bins of rows."


@dataclass(frozen=True)
class Zms(MeanMetric):
    r"""Mean squared z-score: squared errors relative to the predicted variances, averaged over rows.

    .. math:: \mathrm{ZMS} = \frac1n \sum_i z_i^2, \qquad z_i = \frac{y_i - \mu_i}{\sigma_i}

    Value
    -----
    Dimensionless, >= 0. The ideal is 1 for any shape of the distributions; values above 1 mean that the uncertainties
    are too small.

    Notes
    -----
    A mean over rows; unbiased. Time O(n). All rows have equal weight, whereas RCE is dominated by rows with large
    uncertainties. If z^2 has a heavy tail, few rows determine the value, and there is a warning. ``details`` have the
    mean and the variance of z: ZMS = mean(z)^2 + (n - 1) / n Var(z), so a bias is told from a wrong spread. If all m
    draws of a row are equal, z is 0 for a target that is equal, too, and ±sqrt(m + 1) for another: the standard
    deviation is then that of the draws and the target together, also in ``rce``, ``ence`` and ``uce``.

    References
    ----------
    Pernot (2024), Eq. 11, arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="zms",
        orientation="reference",
        above="too-narrow",
        below="too-wide",
        source="Pernot, Eq. 11 (arXiv 2402.10043)",
        interpretation="1 is ideal; values above 1 mean that the uncertainties are too small.",
        distribution_free=True,
        details=ZmsDetails,
    )
    column: ClassVar[str] = "z2"

    def compute(self, rows: Predictions) -> RowResults:
        z = zscores.z_scores(rows)
        squared = z**2
        skewness, warnings = zscores.heavy_tails({"z2": (squared, 0.8)})
        details: ZmsDetails = {"skewness": {"z2": skewness["z2"]}, "mean_z": float(z.mean())}
        if len(z) > 1:
            details["variance_z"] = float(z.var(ddof=1))
        if unknown := zscores.missing_reference_reason(rows):
            warnings += (Message("no-reference", f"no exact reference: {unknown}"),)
        warnings += zscores.equal_draws_warning(rows)
        return RowResults({"z2": squared}, reference=None if unknown else 1.0, details=details, warnings=warnings)

    def replicate_rows(self, rows: Predictions) -> RowResults:
        return RowResults({"z2": zscores.z_scores(rows) ** 2})


@dataclass(frozen=True)
class Rce(LocalMetric):
    r"""Relative difference between the average predicted uncertainty (RMV) and the observed error (RMSE).

    .. math:: \mathrm{RCE} = \frac{\mathrm{RMV} - \mathrm{RMSE}}{\mathrm{RMV}}, \qquad
              \mathrm{RMV} = \sqrt{\frac1n \sum_i \sigma_i^2}, \quad
              \mathrm{RMSE} = \sqrt{\frac1n \sum_i (y_i - \mu_i)^2}

    Value
    -----
    Dimensionless, at most 1. The ideal is 0 for any shape of the distributions; negative values mean that the
    uncertainties are too small.

    Notes
    -----
    Biased by O(1/n). If the uncertainties have a heavy tail, the bias is large, few rows determine the value, the
    interval has less than nominal coverage (Pernot, Fig. 3), and there is a warning. ZMS does not have this problem.
    Time O(n).

    References
    ----------
    Pernot (2024), Eq. 7, arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="rce",
        orientation="reference",
        above="too-wide",
        below="too-narrow",
        source="Pernot, Eq. 7 (arXiv 2402.10043)",
        interpretation="0 is ideal; negative values mean that the uncertainties are too small.",
        distribution_free=True,
        details=RceDetails,
    )

    def compute(self, rows: Predictions) -> RowResults:
        error = zscores.errors(rows)
        variance, squared = zscores.uncertainties(rows) ** 2, error**2
        columns = {"variance": variance, "squared_error": squared}
        skewness, warnings = zscores.heavy_tails({"variance": (variance, 0.6), "squared_error": (squared, 0.8)})
        details: RceDetails = {
            "skewness": {"variance": skewness["variance"], "squared_error": skewness["squared_error"]},
            "rmv": float(variance.mean() ** 0.5),
            "rmse": float(squared.mean() ** 0.5),
            "mean_error": float(error.mean()),
        }
        if unknown := zscores.missing_moments_reason(rows):
            warnings += (Message("no-reference", f"no exact reference: {unknown}"),)
        warnings += zscores.equal_draws_warning(rows)
        reference = None if unknown else zscores.reference_rce(rows)
        return RowResults(columns, reference=reference, details=details, warnings=warnings)

    def replicate_rows(self, rows: Predictions) -> RowResults:
        return RowResults({"variance": zscores.uncertainties(rows) ** 2, "squared_error": zscores.errors(rows) ** 2})

    def value(self, means: Means) -> Values:
        return np.asarray(1 - np.sqrt(means["squared_error"] / means["variance"]))


@dataclass(frozen=True)
class Ence(BinnedMetric):
    r"""Mean relative difference between predicted and observed spread over bins of rows.

    .. math:: \mathrm{ENCE} = \frac1N \sum_{j=1}^{N} \frac{|\mathrm{RMV}_j - \mathrm{RMSE}_j|}{\mathrm{RMV}_j}

    where, over the rows of bin j, RMV is the root mean predicted variance and RMSE the root mean squared error.
    ``--norm max`` takes the largest term instead of the mean.

    Value
    -----
    Dimensionless, >= 0, smaller is better. For a perfect model it tends to 0 as the rows per bin increase. ``details``
    contain the reliability diagram: range, rows, RMV and RMSE of each bin.

    Notes
    -----
    Biased upwards by noise in each bin, and more so under resampling; the percentile interval is not used for the
    verdict. Unlike in other implementations, rows tied at a bin edge are split between the bins, so the row order of
    the file does not matter. Bin j ends at row round(j n / N) of the sorted rows; others give the rows that remain to
    the first bins, and the values differ if rows are few (at 30 rows by up to half). Time O(n log n).

    References
    ----------
    Levi, Gispan, Giladi, Fetaya (2022), Eq. 6-8, doi:10.3390/s22155540. Pernot (2024), Eq. 8, arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="ence",
        alternative="greater",
        above="wrong-in-bins",
        source="Levi et al., Eq. 6-8 (doi:10.3390/s22155540)",
        interpretation="Smaller is better; because of noise in each bin, a perfect model is above 0.",
        interval="percentile",
        conditional_on="bin edges",
        details=BinnedDetails,
    )

    norm: Literal["mean", "max"] = option("Mean of the differences in the bins, or their maximum.", "mean")

    def description(self) -> str:
        return f"{LARGEST} {self.info.interpretation}" if self.norm == "max" else super().description()

    def value(self, means: Means) -> Values:
        # With dependent rows, draws of the null distribution can have means of squares below 0
        rmv, rmse = (np.sqrt(np.maximum(means[name], 0) / means["rows"]) for name in ("variance", "squared_error"))
        gaps = np.divide(np.abs(rmv - rmse), rmv, out=np.zeros_like(rmv), where=(rmv != 0) | (rmse != 0))
        return np.asarray(gaps.max(axis=-1) if self.norm == "max" else gaps.mean(axis=-1))


@dataclass(frozen=True)
class Uce(BinnedMetric):
    r"""Mean absolute difference between predicted variance and squared error over bins of rows.

    .. math:: \mathrm{UCE} = \sum_{j=1}^{N} w_j |\mathrm{MV}_j - \mathrm{MSE}_j|

    where, over the rows of bin j, MV is the mean predicted variance and MSE the mean squared error.

    Value
    -----
    Squared unit of y, >= 0, smaller is better. For a perfect model it tends to 0 as the rows per bin increase.

    Notes
    -----
    Dominated by bins of large uncertainty; ENCE uses relative differences instead. Biased upwards by noise in each bin,
    and more so under resampling; the percentile interval is not used for the verdict. Bins as for ENCE. Time
    O(n log n).

    References
    ----------
    Laves, Ihler, Fast, Kahrs, Ortmaier, Well-Calibrated Regression Uncertainty in Medical Imaging with Deep Learning,
    MIDL 2020 (PMLR 121), weighted by counts, in bins of equal width. Uniform weights: Pernot's ErrViewLib.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="uce",
        unit="y^2",
        alternative="greater",
        above="wrong-in-bins",
        source="Laves et al., MIDL 2020 (PMLR 121)",
        interpretation="Smaller is better; because of noise in each bin, a perfect model is above 0.",
        interval="percentile",
        conditional_on="bin edges",
        details=BinnedDetails,
    )

    bin_weights: Literal["uniform", "count"] = option(
        "Weights of the bins: by number of rows (count), or uniform.", "count"
    )

    def value(self, means: Means) -> Values:
        gaps = np.abs(means["variance"] - means["squared_error"])  # multiplied by the bin's share of the rows
        if self.bin_weights == "count":
            return np.asarray(gaps.sum(axis=-1))
        return np.asarray(np.mean(gaps / means["rows"], axis=-1))


def valid_bins_info(name: str, source: str) -> MetricInfo:
    """Return the properties of a metric that is a share of valid bins."""
    return MetricInfo(
        name=name,
        alternative="less",
        below="wrong-in-bins",
        orientation="larger",
        source=source,
        interpretation=(
            "Expected: the confidence level of the intervals; a smaller share means that some bins are miscalibrated."
        ),
        interval="own",
        conditional_on="bin edges",
        distribution_free=True,
        details=ValidBinsDetails,
    )


@dataclass(frozen=True)
class ValidBinsMetric(BinningMetric):
    """Share of bins in which the interval of a statistic contains its reference value."""

    @abstractmethod
    def bin_means(self, rows: Predictions) -> tuple[dict[str, Values], float]:
        """Return the columns that the statistic averages in each bin, (n,) each, and its reference."""

    @staticmethod
    @abstractmethod
    def bin_statistic(means: Mapping[str, Values]) -> Values:
        """Return the statistic of a bin from its column means."""

    def evaluate(self, fit: Binning, source: Source, run: Run) -> RowResults:
        rows = source.predictions()
        columns, reference = self.bin_means(rows)
        variances = _variances(fit, zscores.z_scores(rows)) if "z2" in columns else None
        return binned_validity.share_of_valid_bins(
            fit, columns, self.bin_statistic, reference, run, stage="resamples", variances=variances
        )

    def quick_statistic(self, fit: Binning, source: Source, run: Run) -> float:
        """Return the share of valid bins by ABC intervals, which need no resamples."""
        return float(self.quick_statistics([self.moments(fit, source, run)], run)[0])

    def moments(self, fit: Binning, source: Source, run: Run) -> BinMoments:  # noqa: ARG002 - not random
        """Return the moments of each bin."""
        return binned_validity.BinMoments.from_rows(fit, *self.bin_means(source.predictions()))

    def quick_statistics(self, moments: Sequence[BinMoments | None], run: Run) -> Values:
        """Return the share of valid bins of each data set."""
        return binned_validity.shares_by_abc(moments, self.bin_statistic, run.confidence)

    def curves(self, shown: CurveData[Binning]) -> tuple[Curve, ...]:
        """Return the statistic of each bin."""
        data = shown.source.predictions()
        columns, reference = self.bin_means(data)
        counts = shown.fit.sums(None)
        means = {name: shown.fit.sums(column) / counts for name, column in columns.items()}
        values, expected = self.bin_statistic(means), np.full(len(counts), reference)
        return (curves.curve_by_bin(shown.fit, self.sort_key(data), values, self.by or SPREAD, expected),)

    def value(self, means: Means) -> Values:
        return np.asarray(means["valid"].mean(axis=-1))  # bins have equal weights


@dataclass(frozen=True)
class Lzms(ValidBinsMetric):
    r"""Share of bins whose mean squared z-score is consistent with 1 (local calibration).

    .. math:: f_v = \frac1N \sum_{j=1}^N 1\{1 \in I(\mathrm{ZMS}_j)\}

    where ZMS_j is computed from the rows of bin j, and I is its BCa interval, by resampling or in closed form.

    Value
    -----
    Dimensionless, in [0, 1], larger is better. For a calibrated model the expected value is the confidence level of the
    intervals. ``details`` contain the value and the interval of each bin.

    Notes
    -----
    With few rows per bin or heavy tails, the intervals have less than nominal coverage. The verdict therefore compares
    the value with that of replicates, whose intervals need no resampling (ABC). Without replicates it is the exact
    binomial test of f_v against the confidence level, if each bin has enough rows. Detects miscalibration that
    ZMS averages out. Time O(n) per resample.

    References
    ----------
    Pernot (2024), arXiv 2402.10043, Section IV; f_v as in Pernot's ErrViewLib.
    """

    info: ClassVar[MetricInfo] = valid_bins_info("lzms", "Pernot, Sec. IV (arXiv 2402.10043)")

    def bin_means(self, rows: Predictions) -> tuple[dict[str, Values], float]:
        if unknown := zscores.missing_reference_reason(rows):
            raise DataError(unknown)
        return {"z2": zscores.z_scores(rows) ** 2}, 1.0

    @staticmethod
    def bin_statistic(means: Mapping[str, Values]) -> Values:
        return means["z2"]


def _variances(bins: Binning, z: Values) -> list[float | None]:
    """Return the variance of z in each bin; None for an empty bin."""
    counts = bins.sums(None)
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = bins.sums(z**2) / counts - (bins.sums(z) / counts) ** 2
    return [float(variance) if count else None for variance, count in zip(variances, counts, strict=True)]


@dataclass(frozen=True)
class Lrce(ValidBinsMetric):
    r"""Share of bins whose relative calibration error is consistent with 0 (local calibration).

    .. math:: f_v = \frac1N \sum_{j=1}^N 1\{0 \in I(\mathrm{RCE}_j)\}

    where RCE_j is computed from the rows of bin j, and I is its BCa interval, by resampling or in closed form.

    Value
    -----
    Dimensionless, in [0, 1], larger is better. For a calibrated model the expected value is the confidence level of the
    intervals. ``details`` contain the value and the interval of each bin.

    Notes
    -----
    With few rows per bin or heavy tails, the intervals have less than nominal coverage. The verdict therefore compares
    the value with that of replicates, whose intervals need no resampling (ABC). Without replicates it is the exact
    binomial test of f_v against the confidence level, if each bin has enough rows. Detects miscalibration that
    RCE averages out. Time O(n) per resample.

    References
    ----------
    Pernot (2024), arXiv 2402.10043, Section IV; f_v as in Pernot's ErrViewLib.
    """

    info: ClassVar[MetricInfo] = valid_bins_info("lrce", "Pernot, Sec. IV (arXiv 2402.10043)")

    def bin_means(self, rows: Predictions) -> tuple[dict[str, Values], float]:
        if self.by is None and rows.distributions().n_draws is not None:
            msg = "bins by the spread of draws also sort its noise, so a perfect ensemble would fail. Pass --by COLUMN"
            raise DataError(msg)
        if unknown := zscores.missing_moments_reason(rows):
            raise DataError(unknown)
        return {
            "variance": zscores.uncertainties(rows) ** 2,
            "squared_error": zscores.errors(rows) ** 2,
        }, zscores.reference_rce(rows)

    @staticmethod
    def bin_statistic(means: Mapping[str, Values]) -> Values:
        return np.asarray(1 - np.sqrt(means["squared_error"] / means["variance"]))
