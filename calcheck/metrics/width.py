"""Width of central intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import LevelOption, MeanMetric
from calcheck.results import RowResults

if TYPE_CHECKING:
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class Width(LevelOption, MeanMetric):
    r"""Mean width of the central prediction intervals.

    .. math:: \mathrm{width} = \frac1n \sum_i (u_i - l_i), \qquad
              l_i = F_i^{-1}(\tfrac{1-p}2), \; u_i = F_i^{-1}(\tfrac{1+p}2)

    Parameters
    ----------
    level
        Nominal coverage p of the central intervals.

    Needs
    -----
    predictive : n distributions, or n intervals at this level

    Value
    -----
    Unit of y, >= 0; smaller is sharper, which is better only among calibrated models.

    Raises
    ------
    OptionError
        The level is not strictly between 0 and 1.

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
        from calcheck.statistics.moments import interval_widths

        return RowResults({"width": interval_widths(rows.distributions(), self.level_of(rows.predictive))})
