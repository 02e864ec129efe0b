"""Miscalibration: what isotonic regression of the targets removes from a proper score."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from calcheck.core.metric_info import SHARED_FIT, MetricInfo
from calcheck.errors import DataError
from calcheck.inference.metric_protocol import CurveData, RowResults
from calcheck.metrics._lazy import curves, np, scores, zscores
from calcheck.metrics.base import LevelsOption, UnfittedMetric
from calcheck.options import option
from calcheck.result_details import MiscalibrationDetails, QuantileMiscalibrationDetails, ScoreParts

if TYPE_CHECKING:
    from calcheck.metrics._lazy import Curve, Means, Predictions, Predictive, Values

MEAN = "predicted mean"
LEVELS = 50
MOST_DRAWS = 100  # Up to this many draws each is a level, and the score is exact


class Scores(NamedTuple):
    """Scores by row, (n,) or (q, n) each: of the predictions, of their isotonic regression, and of a constant.

    All three have the same unit; smaller is better.
    """

    predicted: Values
    recalibrated: Values
    constant: Values

    def mean(self) -> Scores:
        """Return the mean scores of rows, averaged over levels."""
        return Scores(*(each.reshape(-1, each.shape[-1]).mean(axis=0) for each in self))

    def parts(self) -> dict[str, Values]:
        """Return the parts by row; the score is miscalibration - discrimination + uncertainty."""
        return {
            "miscalibration": self.predicted - self.recalibrated,
            "discrimination": self.constant - self.recalibrated,
            "uncertainty": self.constant,
        }

    def details(self) -> ScoreParts:
        """Return the mean score and its parts."""
        means = {name: float(values.mean()) for name, values in self.parts().items()}
        return {
            "score": float(self.predicted.mean()),
            "miscalibration": means["miscalibration"],
            "discrimination": means["discrimination"],
            "uncertainty": means["uncertainty"],
        }


def scores_at_levels(rows: Predictions, levels: tuple[float, ...]) -> Scores:
    """Return the pinball losses at each level, (q, n) each: of predicted, recalibrated and constant quantiles."""
    y, at = zscores.targets(rows), np.array(levels)
    predicted = np.array(list(scores.quantiles(rows.distributions(), levels)))
    constant = np.quantile(y, levels, method="inverted_cdf")[:, None]
    return Scores(
        *(
            scores.pinball_losses(each, y, at)
            for each in (predicted, scores.isotonic_quantiles(predicted, y, at), constant)
        )
    )


MISCALIBRATION = MetricInfo(
    name="",
    unit="y",
    alternative="greater",
    above="wrong-quantiles",
    source="Gneiting, Resin 2023",
    interpretation="Smaller is better; because of noise, a perfect model is above 0.",
    no_interval=SHARED_FIT,
)  # What the metrics have in common


@dataclass(frozen=True)
class MiscalibrationMetric(UnfittedMetric):
    """Base class of metrics that say by how much isotonic regression of the targets improves a mean score."""

    def compute(self, rows: Predictions) -> RowResults:
        scores = self.scores(rows)
        mean = scores.mean()
        return RowResults(mean.parts(), details={**mean.details(), **self.further_details(scores)})

    @abstractmethod
    def scores(self, rows: Predictions) -> Scores:
        """Return the scores of each row."""

    def further_details(self, scores: Scores) -> QuantileMiscalibrationDetails:  # noqa: ARG002 - used by subclasses
        """Return details that only one score has."""
        return {}

    def value(self, means: Means) -> Values:
        return means["miscalibration"]


@dataclass(frozen=True)
class MeanMiscalibration(MiscalibrationMetric):
    r"""Part of the mean squared error that an increasing correction of the predicted means removes.

    .. math:: \mathrm{MCB} = \frac1n \sum_i (y_i - \mu_i)^2 - (y_i - \hat g(\mu_i))^2

    where g is the isotonic regression of the targets on the predicted means. The mean squared error is MCB - DSC + UNC:
    the discrimination DSC is the improvement of g over the mean target, and the uncertainty UNC is the variance of the
    targets. ``details`` contain all parts.

    Value
    -----
    Unit of y squared, >= 0, smaller is better.

    Notes
    -----
    Biased upwards, as the regression follows noise; the replicates of a perfect model show by how much. Predictions
    that are equal have one corrected value. Time O(n log n).

    References
    ----------
    Gneiting, Resin (2023), "Regression diagnostics meets forecast evaluation". Dimitriadis, Gneiting, Jordan (2021).
    """

    info: ClassVar[MetricInfo] = replace(
        MISCALIBRATION,
        name="mean-miscalibration",
        unit="y^2",
        above="conditional-bias",
        uses="point",
        details=MiscalibrationDetails,
    )

    def scores(self, rows: Predictions) -> Scores:
        y = zscores.targets(rows)
        fitted = scores.isotonic_means(zscores.means(rows.distributions()), y)
        return Scores(zscores.errors(rows) ** 2, (y - fitted) ** 2, (y - y.mean()) ** 2)

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the corrected means against the predicted ones, and the histogram of predicted means."""
        data = shown.source.predictions()
        predicted = zscores.means(data.distributions())
        corrected = scores.isotonic_means(predicted, zscores.targets(data))
        return curves.curve_at_quantiles("correction", predicted, corrected), curves.histogram(
            "mean-histogram", predicted, MEAN
        )


@dataclass(frozen=True)
class QuantileMiscalibration(LevelsOption, MiscalibrationMetric):
    r"""Part of the pinball loss that an increasing correction of the predicted quantiles removes.

    .. math:: \mathrm{MCB} = \frac1{nk} \sum_{i=1}^n \sum_{j=1}^k \rho_j(q_{ij}, y_i) - \rho_j(\hat g_j(q_{ij}), y_i)

    where :math:`\rho_j` is the pinball loss at the level p_j, and g_j the isotonic regression of the p_j-quantile of
    the targets on the predicted quantiles. The mean loss is MCB - DSC + UNC: the discrimination DSC is the improvement
    of g_j over the same quantile of all targets, and the uncertainty UNC is the loss of the latter.

    Value
    -----
    Unit of y, >= 0, smaller is better. ``details`` contain all parts, on average and at each level.

    Notes
    -----
    Each level is corrected by itself; crps-miscalibration has the levels that make up the CRPS. Biased upwards, as
    regressions follow noise; the replicates of a perfect model show by how much. Files of quantiles use their own
    levels, without a verdict. Time O(k n log n), memory O(n k).

    References
    ----------
    Gneiting, Resin (2023), "Regression diagnostics meets forecast evaluation". Dimitriadis, Gneiting, Jordan (2021).
    """

    info: ClassVar[MetricInfo] = replace(
        MISCALIBRATION, name="quantile-miscalibration", details=QuantileMiscalibrationDetails
    )
    default_levels: ClassVar[tuple[float, ...]] = tuple(step / 20 for step in range(1, 20))

    levels: tuple[float, ...] | None = option(
        "Quantile levels of the scores. Default: those of a quantile file, else 0.05, 0.1, ..., 0.95."
    )

    def with_defaults(self, rows: Predictions) -> QuantileMiscalibration:
        """Return the metric with its levels."""
        return replace(self, levels=self.levels_of(rows.predictive))

    def scores(self, rows: Predictions) -> Scores:
        return scores_at_levels(rows, self.levels_of(rows.predictive))

    def further_details(self, scores: Scores) -> QuantileMiscalibrationDetails:
        """Return the parts at each level."""
        parts = (Scores(*each).details() for each in zip(*scores, strict=True))
        levels = self.levels or self.default_levels
        return {"by_level": [{"level": level, **each} for level, each in zip(levels, parts, strict=True)]}


@dataclass(frozen=True)
class CrpsMiscalibration(MiscalibrationMetric):
    r"""Part of the CRPS that an increasing correction of the predicted quantiles removes, level by level.

    .. math:: \mathrm{MCB} = \frac2{nk} \sum_{i=1}^n \sum_{j=1}^k \rho_j(q_{ij}, y_i) - \rho_j(\hat g_j(q_{ij}), y_i)

    where :math:`\rho_j` is the pinball loss at the level (j - 1/2)/k, and g_j the isotonic regression of this quantile
    of the targets on the predicted one. Twice the mean loss over all levels is the CRPS, which is MCB - DSC + UNC: the
    discrimination DSC is the improvement of the g_j over the distribution of all targets, and the uncertainty UNC is
    the CRPS of the latter. ``details`` contain all parts.

    Value
    -----
    Unit of y, >= 0, smaller is better.

    Notes
    -----
    For m <= 100 draws, k is m, and the score is the CRPS of the draws (``crps --ensemble biased``) exactly; otherwise k
    is 50, and the score is the CRPS up to the rule of midpoints. Each level is corrected by itself; an order of whole
    distributions would leave nearly no two of them comparable. Biased upwards, as regressions follow noise; the
    replicates of a perfect model show by how much. Time O(k n log n), memory O(n k).

    References
    ----------
    Gneiting, Resin (2023), "Regression diagnostics meets forecast evaluation". Bröcker (2012), "Evaluating raw
    ensembles with the continuous ranked probability score".
    """

    info: ClassVar[MetricInfo] = replace(MISCALIBRATION, name="crps-miscalibration", details=MiscalibrationDetails)

    def scores(self, rows: Predictions) -> Scores:
        return Scores(*(2 * each for each in scores_at_levels(rows, midpoints(rows.distributions()))))


def midpoints(predictive: Predictive) -> tuple[float, ...]:
    """Return the levels (j - 1/2)/k whose mean pinball loss is half the CRPS."""
    if predictive.quantile_levels is not None:
        raise DataError("needs all quantiles, and the file states some: quantile-miscalibration uses these")
    draws = predictive.n_draws
    count = LEVELS if draws is None or draws > MOST_DRAWS else draws
    return tuple((step + 0.5) / count for step in range(count))
