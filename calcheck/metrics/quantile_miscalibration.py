"""Miscalibration of predicted quantiles: what isotonic regression of the targets removes from the pinball loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from calcheck.details import QuantileMiscalibrationDetails
from calcheck.metric_info import SHARED_FIT, MetricInfo
from calcheck.metrics._miscalibration import MiscalibrationMetric, Scores, scores_at_levels
from calcheck.metrics.base import LevelsOption
from calcheck.options import option

if TYPE_CHECKING:
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class QuantileMiscalibration(LevelsOption, MiscalibrationMetric):
    r"""Part of the pinball loss that an increasing correction of the predicted quantiles removes.

    .. math:: \mathrm{MCB} = \frac1{nk} \sum_{i=1}^n \sum_{j=1}^k \rho_j(q_{ij}, y_i) - \rho_j(\hat g_j(q_{ij}), y_i)

    where :math:`\rho_j` is the pinball loss at the level p_j, and g_j the isotonic regression of the p_j-quantile of
    the targets on the predicted quantiles. The mean loss is MCB - DSC + UNC: the discrimination DSC is the improvement
    of g_j over the same quantile of all targets, and the uncertainty UNC is the loss of the latter.

    Parameters
    ----------
    levels
        Quantile levels p_1, ..., p_k.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Unit of y, >= 0, smaller is better. ``details`` contain all parts, on average and at each level.

    Raises
    ------
    OptionError
        A level is not strictly between 0 and 1, or is given twice, or there are more than 1,000.
    DataError
        The predictions are quantiles, and a level is beyond the outermost one.

    Notes
    -----
    Each level is corrected by itself; crps-miscalibration has the levels that make up the CRPS. Biased upwards, as
    regressions follow noise; the replicates of a perfect model show by how much. Files of quantiles use their own
    levels, without a verdict. Time O(k n log n), memory O(n k).

    References
    ----------
    Gneiting, Resin (2023), "Regression diagnostics meets forecast evaluation". Dimitriadis, Gneiting, Jordan (2021).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="quantile-miscalibration",
        unit="y",
        needs=("y", "predictive"),
        alternative="greater",
        orientation="smaller",
        above="wrong-quantiles",
        source="Gneiting, Resin 2023",
        interpretation="Smaller is better; because of noise, a perfect model is above 0.",
        interval="none",
        no_interval=SHARED_FIT,
        details=QuantileMiscalibrationDetails,
    )
    default_levels: ClassVar[tuple[float, ...]] = tuple(step / 20 for step in range(1, 20))

    levels: tuple[float, ...] | None = option(
        None, "Quantile levels of the scores. Default: those of a quantile file, else 0.05, 0.1, ..., 0.95."
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
