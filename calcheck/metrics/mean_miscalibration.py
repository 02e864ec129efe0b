"""Miscalibration of predicted means: what isotonic regression of the targets removes from the mean squared error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.details import MeanMiscalibrationDetails
from calcheck.metric_info import SHARED_FIT, MetricInfo
from calcheck.metrics._miscalibration import MiscalibrationMetric, Scores

if TYPE_CHECKING:
    from calcheck.inference.metric_protocol import CurveData
    from calcheck.predictions import Predictions
    from calcheck.report import Curve

MEAN = "predicted mean"


@dataclass(frozen=True)
class MeanMiscalibration(MiscalibrationMetric):
    r"""Part of the mean squared error that an increasing correction of the predicted means removes.

    .. math:: \mathrm{MCB} = \frac1n \sum_i (y_i - \mu_i)^2 - (y_i - \hat g(\mu_i))^2

    where g is the isotonic regression of the targets on the predicted means. The mean squared error is MCB - DSC + UNC:
    the discrimination DSC is the improvement of g over the mean target, and the uncertainty UNC is the variance of the
    targets. ``details`` contain all parts.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions, or n intervals with point predictions

    Value
    -----
    Unit of y squared, >= 0, smaller is better.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    Biased upwards, as the regression follows noise; the replicates of a perfect model show by how much. Predictions
    that are equal have one corrected value. Time O(n log n).

    References
    ----------
    Gneiting, Resin (2023), "Regression diagnostics meets forecast evaluation". Dimitriadis, Gneiting, Jordan (2021).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="mean-miscalibration",
        unit="y^2",
        needs=("y", "predictive"),
        alternative="greater",
        orientation="smaller",
        above="conditional-bias",
        source="Gneiting, Resin 2023",
        interpretation="Smaller is better; because of noise, a perfect model is above 0.",
        interval="none",
        no_interval=SHARED_FIT,
        uses="point",
        details=MeanMiscalibrationDetails,
        exempt_laws={"spread": "depends on the mean only"},
    )

    def scores(self, rows: Predictions) -> Scores:
        from calcheck.statistics.isotonic import isotonic_means
        from calcheck.statistics.moments import errors, means, targets

        y = targets(rows)
        fitted = isotonic_means(means(rows.distributions()), y)
        return Scores(errors(rows) ** 2, (y - fitted) ** 2, (y - y.mean()) ** 2)

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the corrected means against the predicted ones, and the histogram of predicted means."""
        from calcheck.statistics.curves import curve_at_quantiles, histogram
        from calcheck.statistics.isotonic import isotonic_means
        from calcheck.statistics.moments import means, targets

        data = shown.source.predictions()
        predicted = means(data.distributions())
        corrected = isotonic_means(predicted, targets(data))
        return curve_at_quantiles("correction", predicted, corrected), histogram("mean-histogram", predicted, MEAN)
