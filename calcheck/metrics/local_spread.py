"""Calibration of the spread, tested bin by bin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.core.metric_info import MetricInfo
from calcheck.details import ValidBinsDetails
from calcheck.metrics.base import BinnedMetric

if TYPE_CHECKING:
    from calcheck.execution.run import Run
    from calcheck.inference.metric_protocol import CurveData, RowResults
    from calcheck.predictions import Predictions, Source
    from calcheck.report import Curve
    from calcheck.statistics.bins import Bins
    from calcheck.statistics.groups import Means
    from calcheck.typing import Values


def valid_bins_info(name: str, source: str) -> MetricInfo:
    """Return the properties of a metric that is a share of valid bins."""
    return MetricInfo(
        name=name,
        unit="1",
        needs=("y", "predictive"),
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
class ValidBinsMetric(BinnedMetric):
    """Share of bins in which the interval of a statistic contains its reference value."""

    @abstractmethod
    def bin_means(self, rows: Predictions) -> tuple[dict[str, Values], float]:
        """Return the columns that the statistic averages in each bin, (n,) each, and its reference."""

    @staticmethod
    @abstractmethod
    def bin_statistic(means: Mapping[str, Values]) -> Values:
        """Return the statistic of a bin from its column means."""

    def evaluate(self, fit: Bins, source: Source, run: Run) -> RowResults:
        from calcheck.inference.binned_validity import share_of_valid_bins

        columns, reference = self.bin_means(source.predictions())
        return share_of_valid_bins(fit, columns, self.bin_statistic, reference, run, stage="resamples")

    def quick_statistic(self, fit: Bins, source: Source, run: Run) -> float:
        """Return the share of valid bins by ABC intervals, which need no resamples."""
        from calcheck.inference.binned_validity import share_by_abc

        columns, reference = self.bin_means(source.predictions())
        return share_by_abc(fit, columns, self.bin_statistic, reference, run.confidence)

    def curves(self, shown: CurveData[Bins]) -> tuple[Curve, ...]:
        """Return the statistic of each bin."""
        import numpy as np

        from calcheck.report import SPREAD
        from calcheck.statistics.curves import curve_by_bin

        data = shown.source.predictions()
        columns, reference = self.bin_means(data)
        counts = shown.fit.sums(None)
        means = {name: shown.fit.sums(column) / counts for name, column in columns.items()}
        values, expected = self.bin_statistic(means), np.full(len(counts), reference)
        return (curve_by_bin(shown.fit, self.sort_key(data), values, self.by or SPREAD, expected),)

    def value(self, means: Means) -> Values:
        import numpy as np

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
        from calcheck.errors import DataError
        from calcheck.statistics.moments import missing_reference_reason, z_scores

        if unknown := missing_reference_reason(rows):
            raise DataError(unknown)
        return {"z2": z_scores(rows) ** 2}, 1.0

    def evaluate(self, fit: Bins, source: Source, run: Run) -> RowResults:
        from calcheck.inference.binned_validity import share_of_valid_bins

        rows = source.predictions()
        columns, reference = self.bin_means(rows)
        variances = _variances(fit, rows)
        return share_of_valid_bins(
            fit, columns, self.bin_statistic, reference, run, stage="resamples", variances=variances
        )

    @staticmethod
    def bin_statistic(means: Mapping[str, Values]) -> Values:
        return means["z2"]


def _variances(bins: Bins, rows: Predictions) -> list[float | None]:
    """Return the variance of z in each bin; None for an empty bin."""
    import numpy as np

    from calcheck.statistics.moments import z_scores

    z, counts = z_scores(rows), bins.sums(None)
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
        from calcheck.errors import DataError
        from calcheck.statistics.moments import errors, missing_moments_reason, reference_rce, uncertainties

        if self.by is None and rows.distributions().n_draws is not None:
            msg = "bins by the spread of draws also sort its noise, so a perfect ensemble would fail. Pass --by COLUMN"
            raise DataError(msg)
        if unknown := missing_moments_reason(rows):
            raise DataError(unknown)
        return {"variance": uncertainties(rows) ** 2, "squared_error": errors(rows) ** 2}, reference_rce(rows)

    @staticmethod
    def bin_statistic(means: Mapping[str, Values]) -> Values:
        import numpy as np

        return np.asarray(1 - np.sqrt(means["squared_error"] / means["variance"]))
