"""Pinball loss of predicted quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.details import LevelScore, PinballDetails
from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import LevelsOption, MeanMetric
from calcheck.options import option
from calcheck.results import RowResults

if TYPE_CHECKING:
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class Pinball(LevelsOption, MeanMetric):
    r"""Pinball loss (quantile score) of predicted quantiles, averaged over quantile levels.

    .. math:: \frac1{nk} \sum_{i=1}^n \sum_{j=1}^k (1\{y_i < q_{ij}\} - p_j) (q_{ij} - y_i), \qquad
              q_{ij} = F_i^{-1}(p_j)

    Parameters
    ----------
    levels
        Quantile levels p_1, ..., p_k.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Unit of y, >= 0, smaller is better; the expectation is minimal for the true quantiles. ``details`` contain the mean
    score at each level.

    Raises
    ------
    OptionError
        A level is not strictly between 0 and 1, or is given twice, or there are more than 1,000.
    DataError
        The predictions are quantiles, and a level is beyond the outermost one.

    Notes
    -----
    A mean over rows; unbiased. At level 1/2 alone, it is half the mean absolute error of medians; the integral over all
    levels is half the CRPS. Files of quantiles use their own levels; other levels are interpolated. There is no verdict
    for such a file, as the score of a perfect model depends on the distribution between and beyond the quantiles.
    scoringrules computes the score. Time O(n k), memory O(n).

    References
    ----------
    Koenker, Bassett (1978), Econometrica 46, 33-50. Gneiting, Raftery (2007), Sec. 6, doi:10.1198/016214506000001437.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pinball",
        unit="y",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="smaller",
        above="worse-than-promised",
        below="better-than-promised",
        source="Koenker, Bassett 1978; Gneiting, Raftery 2007, Sec. 6",
        interpretation="Smaller is better.",
        details=PinballDetails,
    )
    column: ClassVar[str] = "pinball"
    default_levels: ClassVar[tuple[float, ...]] = (0.1, 0.25, 0.5, 0.75, 0.9)

    levels: tuple[float, ...] | None = option(
        None, "Quantile levels of the scores. Default: those of a quantile file, else 0.1, 0.25, 0.5, 0.75 and 0.9."
    )

    def compute(self, rows: Predictions) -> RowResults:
        import numpy as np
        from scoringrules import quantile_score

        from calcheck.statistics.moments import targets
        from calcheck.statistics.quantile_scores import quantiles

        predictive, y = rows.distributions(), targets(rows)
        levels = self.levels_of(predictive)
        total = np.zeros(len(y))
        by_level: list[LevelScore] = []
        for level, predicted in zip(levels, quantiles(predictive, levels), strict=True):
            scores = np.asarray(quantile_score(y, predicted, level, backend="numpy"))
            total += scores
            by_level.append({"level": level, "score": float(scores.mean())})
        details: PinballDetails = {"by_level": by_level}
        return RowResults({"pinball": total / len(levels)}, details=details)
