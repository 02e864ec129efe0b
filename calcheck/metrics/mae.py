"""Mean absolute error of the predicted median."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import MeanMetric
from calcheck.results import RowResults

if TYPE_CHECKING:
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class Mae(MeanMetric):
    r"""Mean absolute error of the predicted median.

    .. math:: \mathrm{MAE} = \frac1n \sum_i |y_i - \tilde y_i|, \qquad \tilde y_i = \min \{u : F_i(u) \ge 1/2\}

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
    A mean over rows; unbiased. Time O(n). The median, not the mean, minimizes the expected absolute error.

    References
    ----------
    Gneiting (2011), "Making and evaluating point forecasts".
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="mae",
        unit="y",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="smaller",
        above="worse-than-promised",
        below="better-than-promised",
        source="Gneiting 2011",
        interpretation="Smaller is better.",
        uses="point",
        exempt_laws={"spread": "depends on the median only"},
    )
    column: ClassVar[str] = "absolute_error"

    def compute(self, rows: Predictions) -> RowResults:
        import numpy as np

        from calcheck.statistics.moments import medians, targets

        return RowResults({"absolute_error": np.abs(targets(rows) - medians(rows.distributions()))})
