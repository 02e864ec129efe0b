"""Accuracy of point predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.core.metric_info import MetricInfo
from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics.base import LocalMetric, MeanMetric

if TYPE_CHECKING:
    from calcheck.predictions import Predictions
    from calcheck.statistics.groups import Means
    from calcheck.typing import Values


@dataclass(frozen=True)
class Mae(MeanMetric):
    r"""Mean absolute error of the predicted median.

    .. math:: \mathrm{MAE} = \frac1n \sum_i |y_i - \tilde y_i|, \qquad \tilde y_i = \min \{u : F_i(u) \ge 1/2\}

    Value
    -----
    Unit of y, >= 0, smaller is better.

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


@dataclass(frozen=True)
class Rmse(LocalMetric):
    r"""Root mean squared error of the predicted mean.

    .. math:: \mathrm{RMSE} = \sqrt{\frac1n \sum_i (y_i - \mu_i)^2}

    Value
    -----
    Unit of y, >= 0, smaller is better.

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

    def value(self, means: Means) -> Values:
        import numpy as np

        return np.sqrt(means["squared_error"])


@dataclass(frozen=True)
class Bias(MeanMetric):
    r"""Mean error: the average of target minus predicted mean.

    .. math:: \mathrm{bias} = \frac1n \sum_i (y_i - \mu_i)

    Value
    -----
    Unit of y, any sign; 0 is ideal, positive if targets are above the predictions on average.

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
