"""Interval (Winkler) score of central intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import LevelOption, MeanMetric
from calcheck.results import RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class IntervalScore(LevelOption, MeanMetric):
    r"""Interval (Winkler) score: width of the central intervals plus a penalty for targets outside.

    .. math:: \frac1n \sum_i (u_i - l_i) + \frac2\alpha (l_i - y_i)_+ + \frac2\alpha (y_i - u_i)_+, \qquad
              \alpha = 1 - p

    Parameters
    ----------
    level
        Nominal coverage p of the central intervals.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions, or n intervals at this level

    Value
    -----
    Unit of y, >= 0, smaller is better; the expectation is minimal for the true interval.

    Raises
    ------
    OptionError
        The level is not strictly between 0 and 1.

    Notes
    -----
    A mean over rows; unbiased. Time O(n).

    References
    ----------
    Gneiting, Raftery (2007), doi:10.1198/016214506000001437.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="interval-score",
        unit="y",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="smaller",
        above="worse-than-promised",
        below="better-than-promised",
        source="Gneiting, Raftery 2007",
        interpretation="Smaller is better.",
        uses="interval",
    )
    column: ClassVar[str] = "interval_score"

    def compute(self, rows: Predictions) -> RowResults:
        import numpy as np
        from scoringrules import interval_score

        from calcheck.statistics.moments import central_interval, targets

        y, level = targets(rows), self.level_of(rows.predictive)

        def score(part: Predictive, rows: slice) -> NDArray[np.float64]:
            limits = central_interval(part, level)
            return np.reshape(interval_score(y[rows], *limits, 1 - level, backend="numpy"), -1)

        return RowResults({"interval_score": rows.distributions().map_batches(score)})
