"""Continuous ranked probability score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.details import CrpsDetails
from calcheck.messages import Message
from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import MeanMetric
from calcheck.options import option
from calcheck.results import RowResults

if TYPE_CHECKING:
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class Crps(MeanMetric):
    r"""Continuous ranked probability score: calibration and sharpness combined, in the unit of the target.

    .. math:: \mathrm{CRPS} = \frac1n \sum_i \int (F_i(u) - 1\{u \ge y_i\})^2 \, du

    Parameters
    ----------
    ensemble
        Estimator for samples: fair or biased.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Unit of y, >= 0, smaller is better. The fair estimate may be negative for a good ensemble.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    A mean over rows; unbiased. For m draws, ``fair`` is an unbiased estimate for the distribution that the draws come
    from; ``biased`` scores the empirical distribution of the draws, which favors narrow ensembles. scoringrules
    computes the score of normal and Laplace distributions and of draws; other closed forms are arranged to be accurate
    for extreme parameters; for counts the score is a sum over the support. Time O(n), or O(n m log m) for samples.

    References
    ----------
    Gneiting, Raftery (2007), doi:10.1198/016214506000001437. Ferro (2014).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="crps",
        unit="y",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="smaller",
        above="worse-than-promised",
        below="better-than-promised",
        source="Gneiting, Raftery 2007; Ferro 2014",
        interpretation="Smaller is better; for a point forecast it is the absolute error.",
        details=CrpsDetails,
    )
    column: ClassVar[str] = "crps"

    ensemble: Literal["fair", "biased"] = option(
        "fair", "Score of samples: unbiased for the sampled distribution (fair), or of the draws themselves (biased)."
    )

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import targets

        predictive, y = rows.distributions(), targets(rows)
        if predictive.n_draws is None:
            return RowResults({"crps": predictive.crps(y)})
        if self.ensemble == "biased":
            return RowResults({"crps": predictive.crps(y)}, details={"estimator": "biased"})
        if predictive.n_draws == 1:
            warning = "the fair CRPS needs at least 2 draws per row, got 1; this is the biased CRPS (absolute error)"
            return RowResults(
                {"crps": predictive.crps(y)},
                details={"estimator": "biased"},
                warnings=(Message("biased-estimator", warning),),
            )
        return RowResults({"crps": predictive.fair_crps(y)}, details={"estimator": "fair"})
