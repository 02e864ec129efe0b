"""Mean error of the predicted mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import MeanMetric
from calcheck.results import RowResults

if TYPE_CHECKING:
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class Bias(MeanMetric):
    r"""Mean error: the average of target minus predicted mean.

    .. math:: \mathrm{bias} = \frac1n \sum_i (y_i - \mu_i)

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions, or n intervals with point predictions

    Value
    -----
    Unit of y, any sign; 0 is ideal, positive if targets are above the predictions on average.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    A mean over rows; unbiased. Time O(n).

    References
    ----------
    Pernot (2024), arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="bias",
        unit="y",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="zero",
        above="predictions-too-low",
        below="predictions-too-high",
        source="Pernot (arXiv 2402.10043)",
        interpretation="0 is ideal; positive values mean that targets are above the predictions.",
        uses="point",
        exempt_laws={"spread": "depends on the mean only"},
    )
    column: ClassVar[str] = "error"

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import errors

        return RowResults({"error": errors(rows)})
