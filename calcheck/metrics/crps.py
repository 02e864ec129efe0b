"""Continuous ranked probability score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from calcheck.core.metric_info import MetricInfo
from calcheck.details import CrpsDetails
from calcheck.errors import DataError, Message
from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics.base import MeanMetric
from calcheck.options import option

if TYPE_CHECKING:
    from calcheck.predictions import Predictions

DESCRIPTIONS = {
    "energy": "Energy score: distances of several targets to the predictions, less half of those between predictions.",
    "variogram": "Variogram score of order 1/2: squared errors of the predicted differences between several targets.",
}

BIASED: CrpsDetails = {"estimator": "biased"}
FAIR: CrpsDetails = {"estimator": "fair"}


@dataclass(frozen=True)
class Crps(MeanMetric):
    r"""Continuous ranked probability score: calibration and sharpness combined, in the unit of the target.

    .. math:: \mathrm{CRPS} = \frac1n \sum_i \int (F_i(u) - 1\{u \ge y_i\})^2 \, du

    For several targets it is the energy score, or the variogram score of order 1/2, which sees how the targets depend
    on each other:

    .. math:: \mathrm{ES} = \frac1n \sum_i \mathrm{E} \lVert X_i - y_i \rVert
              - \tfrac12 \mathrm{E} \lVert X_i - X_i' \rVert, \qquad
              \mathrm{VS} = \frac1n \sum_i \sum_{j, k} (|y_{ij} - y_{ik}|^{1/2} - \mathrm{E} |X_{ij} - X_{ik}|^{1/2})^2

    Value
    -----
    Unit of y, >= 0, smaller is better. The fair estimate may be negative for a good ensemble.

    Notes
    -----
    A mean over rows; unbiased. For m draws, ``fair`` is an unbiased estimate for the distribution that the draws come
    from; ``biased`` scores the empirical distribution of the draws, which favors narrow ensembles. scoringrules
    computes the score of normal and Laplace distributions and of draws; other closed forms are arranged to be accurate
    for extreme parameters; for counts the score is a sum over the support. Time O(n), or O(n m log m) for samples.

    The energy score is ruled by the targets with the largest unit. It takes 50 draws of distributions that are not
    given by draws. Time O(n m^2 t) for t targets.

    References
    ----------
    Gneiting, Raftery (2007), doi:10.1198/016214506000001437. Ferro (2014). Scheuerer, Hamill (2015).
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
        several_targets=True,
    )
    column: ClassVar[str] = "crps"

    ensemble: Literal["fair", "biased"] = option(
        "fair", "Score of samples: unbiased for the sampled distribution (fair), or of the draws themselves (biased)."
    )
    vector_score: Literal["energy", "variogram"] | None = option(
        None, "Score of several targets: of their distances, or of their differences (variogram). Default: energy."
    )

    def with_defaults(self, rows: Predictions) -> Self:
        if self.vector_score is None and rows.predictive is not None and rows.predictive.targets > 1:
            return replace(self, vector_score="energy")
        return self

    def description(self) -> str:
        if self.vector_score is None:
            return super().description()
        return f"{DESCRIPTIONS[self.vector_score]} Smaller is better."

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import targets

        if rows.distributions().targets > 1:
            return self._of_vectors(rows)
        if self.vector_score is not None:
            msg = "--vector-score is for several targets, and there is one: omit it"
            raise DataError(msg)
        predictive, y = rows.distributions(), targets(rows)
        if predictive.n_draws is None:
            return RowResults({"crps": predictive.crps(y)})
        if self.ensemble == "biased":
            return RowResults({"crps": predictive.crps(y)}, details=BIASED)
        if predictive.n_draws == 1:
            warning = "the fair CRPS needs at least 2 draws per row, got 1; this is the biased CRPS (absolute error)"
            return RowResults(
                {"crps": predictive.crps(y)},
                details=BIASED,
                warnings=(Message("biased-estimator", warning),),
            )
        return RowResults({"crps": predictive.fair_crps(y)}, details=FAIR)

    def _of_vectors(self, rows: Predictions) -> RowResults:
        """Return the scores of rows with several targets."""
        from calcheck.statistics.moments import energy_scores, variogram_scores

        score = variogram_scores if self.vector_score == "variogram" else energy_scores
        details: CrpsDetails = {"estimator": self.ensemble}
        return RowResults({"crps": score(rows, fair=self.ensemble == "fair")}, details=details)
