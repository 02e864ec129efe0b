"""Root mean squared error of the predicted mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import LocalMetric
from calcheck.results import RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions
    from calcheck.statistics.groups import Means


@dataclass(frozen=True)
class Rmse(LocalMetric):
    r"""Root mean squared error of the predicted mean.

    .. math:: \mathrm{RMSE} = \sqrt{\frac1n \sum_i (y_i - \mu_i)^2}

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions, or n intervals with point predictions

    Value
    -----
    Unit of y, >= 0, smaller is better.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    Biased downwards by O(1/n) because of the square root. Time O(n).

    References
    ----------
    Pernot (2024), Eq. 7, arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="rmse",
        unit="y",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="smaller",
        above="worse-than-promised",
        below="better-than-promised",
        source="Pernot, Eq. 7 (arXiv 2402.10043)",
        interpretation="Smaller is better.",
        uses="point",
        exempt_laws={"spread": "depends on the mean only"},
    )

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import errors

        return RowResults({"squared_error": errors(rows) ** 2})

    def value(self, means: Means) -> NDArray[np.float64]:
        import numpy as np

        return np.sqrt(means["squared_error"])
