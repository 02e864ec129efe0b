"""Coefficient of variation of the predicted standard deviations."""

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
class Cv(RowMetric):
    r"""Coefficient of variation of the predicted standard deviations.

    .. math:: C_v = \frac1{\bar\sigma} \sqrt{\frac{1}{n-1} \sum_i (\sigma_i - \bar\sigma)^2}

    Needs
    -----
    predictive : n distributions

    Value
    -----
    Dimensionless, >= 0; 0 if all rows have the same uncertainty.

    Raises
    ------
    DataError
        There is only one row.

    Notes
    -----
    Time O(n). Standard deviations are centered before squaring, so nearly equal values lose no precision.

    References
    ----------
    Levi et al. (2022), Eq. 10, doi:10.3390/s22155540.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="cv",
        unit="1",
        needs=("predictive",),
        alternative="none",
        orientation="none",
        source="Levi et al., Eq. 10",
        interpretation="0 means that all rows have the same uncertainty; bins by uncertainty are then not informative.",
        exempt_laws={"spread": "measures the variation of uncertainties, not their calibration"},
    )

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the histogram of predicted standard deviations."""
        from calcheck.statistics.curves import spread_histogram
        from calcheck.statistics.moments import uncertainties

        return (spread_histogram(uncertainties(shown.source.predictions())),)

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.errors import DataError
        from calcheck.statistics.moments import uncertainties

        std = uncertainties(rows)
        if len(std) == 1:
            msg = "cv needs at least 2 rows, got 1"
            raise DataError(msg)
        return self.rows_around(float(std.mean()), rows)

    @staticmethod
    def rows_around(center: float, rows: Predictions) -> RowResults:
        """Return the columns of each row, with standard deviations relative to a center that only affects rounding."""
        from calcheck.statistics.moments import uncertainties

        std = uncertainties(rows)
        away = std - center
        return RowResults({"std": std, "std_away": away, "std_away_squared": away**2})

    def value(self, means: Means) -> NDArray[np.float64]:
        import numpy as np

        variance = np.maximum(means["std_away_squared"] - means["std_away"] ** 2, 0)
        return np.asarray(np.sqrt(variance * means.n / (means.n - 1)) / means["std"])
