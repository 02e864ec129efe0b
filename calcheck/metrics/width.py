"""Width of central intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import MeanMetric
from calcheck.options import option, require_share_option
from calcheck.results import RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class Width(MeanMetric):
    r"""Mean width of the central prediction intervals.

    .. math:: \mathrm{width} = \frac1n \sum_i (u_i - l_i), \qquad
              l_i = F_i^{-1}(\tfrac{1-p}2), \; u_i = F_i^{-1}(\tfrac{1+p}2)

    Parameters
    ----------
    level
        Nominal coverage p of the central intervals.

    Needs
    -----
    predictive : n distributions

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
        exempt_laws={"spread": "measures the width of predictions, not their calibration"},
    )
    column: ClassVar[str] = "width"

    level: float = option(0.9, "Nominal coverage of the central intervals.")

    def __post_init__(self) -> None:
        require_share_option("level", self.level)

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import central_interval

        def width(part: Predictive, rows: slice) -> NDArray[np.float64]:  # noqa: ARG001 - does not depend on targets
            low, high = central_interval(part, self.level)
            return high - low

        return RowResults({"width": rows.distributions().map_batches(width)})
