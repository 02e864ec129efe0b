"""Root mean predicted variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import RowMetric
from calcheck.results import RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.inference.metric_protocol import CurveData
    from calcheck.predictions import Predictions
    from calcheck.report import Curve
    from calcheck.statistics.groups import Means


@dataclass(frozen=True)
class Sharpness(RowMetric):
    r"""Root mean predicted variance: the average predicted uncertainty.

    .. math:: \mathrm{sharpness} = \sqrt{\frac1n \sum_i \sigma_i^2}

    Needs
    -----
    predictive : n distributions

    Value
    -----
    Unit of y, > 0; smaller is sharper, which is better only among calibrated models.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

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
        from calcheck.statistics.curves import spread_histogram
        from calcheck.statistics.moments import uncertainties

        return (spread_histogram(uncertainties(shown.source.predictions())),)

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import uncertainties

        return RowResults({"variance": uncertainties(rows) ** 2})

    def value(self, means: Means) -> NDArray[np.float64]:
        import numpy as np

        return np.sqrt(means["variance"])
