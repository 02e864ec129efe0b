"""Miscalibration of predictive distributions: what isotonic regression of all quantiles removes from the CRPS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.details import CrpsMiscalibrationDetails
from calcheck.errors import DataError
from calcheck.metric_info import SHARED_FIT, MetricInfo
from calcheck.metrics._miscalibration import MiscalibrationMetric, Scores, scores_at_levels

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

LEVELS = 50
MOST_DRAWS = 100  # Up to this many draws each is a level, and the score is exact


@dataclass(frozen=True)
class CrpsMiscalibration(MiscalibrationMetric):
    r"""Part of the CRPS that an increasing correction of the predicted quantiles removes, level by level.

    .. math:: \mathrm{MCB} = \frac2{nk} \sum_{i=1}^n \sum_{j=1}^k \rho_j(q_{ij}, y_i) - \rho_j(\hat g_j(q_{ij}), y_i)

    where :math:`\rho_j` is the pinball loss at the level (j - 1/2)/k, and g_j the isotonic regression of this quantile
    of the targets on the predicted one. Twice the mean loss over all levels is the CRPS, which is MCB - DSC + UNC: the
    discrimination DSC is the improvement of the g_j over the distribution of all targets, and the uncertainty UNC is
    the CRPS of the latter. ``details`` contain all parts.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Unit of y, >= 0, smaller is better.

    Raises
    ------
    DataError
        The predictions are quantiles: quantile-miscalibration uses their levels.

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

    info: ClassVar[MetricInfo] = MetricInfo(
        name="crps-miscalibration",
        unit="y",
        needs=("y", "predictive"),
        alternative="greater",
        orientation="smaller",
        above="wrong-quantiles",
        source="Gneiting, Resin 2023",
        interpretation="Smaller is better; because of noise, a perfect model is above 0.",
        interval="none",
        no_interval=SHARED_FIT,
        details=CrpsMiscalibrationDetails,
    )

    def scores(self, rows: Predictions) -> Scores:
        return Scores(*(2 * each for each in scores_at_levels(rows, midpoints(rows.distributions()))))


def midpoints(predictive: Predictive) -> tuple[float, ...]:
    """Return the levels (j - 1/2)/k whose mean pinball loss is half the CRPS.

    Raises
    ------
    DataError
        Only some quantiles are known.
    """
    if predictive.quantile_levels is not None:
        msg = "needs all quantiles, and the file states some: quantile-miscalibration uses these"
        raise DataError(msg)
    draws = predictive.n_draws
    count = LEVELS if draws is None or draws > MOST_DRAWS else draws
    return tuple((step + 0.5) / count for step in range(count))
