"""Pinball loss of predicted quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.details import PinballDetails
from calcheck.errors import OptionError
from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import MeanMetric
from calcheck.options import option, require_share_option
from calcheck.results import RowResults

if TYPE_CHECKING:
    from calcheck.predictions import Predictions

MAX_LEVELS = 1_000  # maximum number of quantile levels


@dataclass(frozen=True)
class Pinball(MeanMetric):
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
    levels is half the CRPS. For a quantile file, quantiles at its levels are used as they are, and others are
    interpolated. There is no verdict for it, as the score of a perfect model depends on the distribution between and
    beyond the quantiles. scoringrules computes the score. Time O(n k), memory O(n).

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

    levels: tuple[float, ...] = option((0.1, 0.25, 0.5, 0.75, 0.9), "Quantile levels of the scores.")

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))  # a list, of Python, has no hash
        if not 1 <= len(self.levels) <= MAX_LEVELS:
            msg = f"--levels takes 1 to {MAX_LEVELS:,} levels, got {len(self.levels):,}"
            raise OptionError(msg)
        for level in self.levels:
            require_share_option("levels", level)
        if repeated := [level for level in self.levels if self.levels.count(level) > 1]:
            msg = f"--levels must differ, got {repeated[0]:g} twice"
            raise OptionError(msg)

    def compute(self, rows: Predictions) -> RowResults:
        import numpy as np
        from scoringrules import quantile_score

        from calcheck.statistics.moments import targets

        predictive, y = rows.distributions(), targets(rows)
        total, by_level = np.zeros(len(y)), []
        for level in self.levels:
            scores = np.asarray(quantile_score(y, predictive.quantile(level), level, backend="numpy"))
            total += scores
            by_level.append({"level": level, "score": float(scores.mean())})
        return RowResults({"pinball": total / len(self.levels)}, details={"by_level": by_level})
