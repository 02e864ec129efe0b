"""Properties of the predictions alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import DataError
from calcheck.inference.metric_protocol import CurveData, RowResults
from calcheck.metrics._lazy import curves, np, zscores
from calcheck.metrics.base import LevelOption, MeanMetric, RowMetric

if TYPE_CHECKING:
    from calcheck.metrics._lazy import Curve, Means, Predictions, Values


@dataclass(frozen=True)
class Sharpness(RowMetric):
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
        exempt_laws={"spread": "measures the width of predictions, not their calibration"},
    )

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the histogram of predicted standard deviations."""
        return (curves.spread_histogram(zscores.spreads(shown.source.predictions().distributions())),)

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
        exempt_laws={"spread": "measures the width of predictions, not their calibration"},
    )
    column: ClassVar[str] = "width"

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults({"width": zscores.interval_widths(rows.distributions(), self.level_of(rows.predictive))})


@dataclass(frozen=True)
class Cv(RowMetric):
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
        exempt_laws={"spread": "measures the variation of uncertainties, not their calibration"},
    )

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the histogram of predicted standard deviations."""
        return (curves.spread_histogram(zscores.spreads(shown.source.predictions().distributions())),)

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
