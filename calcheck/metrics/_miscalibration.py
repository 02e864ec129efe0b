"""Base class of decompositions of a mean score by isotonic regression."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from calcheck.metrics.base import UnfittedMetric
from calcheck.results import RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.details import QuantileMiscalibrationDetails, ScoreParts
    from calcheck.predictions import Predictions
    from calcheck.statistics.groups import Means


class Scores(NamedTuple):
    """Scores by row, (n,) or (q, n) each: of the predictions, of their isotonic regression, and of a constant.

    All three have the same unit; smaller is better.
    """

    predicted: NDArray[np.float64]
    recalibrated: NDArray[np.float64]
    constant: NDArray[np.float64]

    def mean(self) -> Scores:
        """Return the mean scores of rows, averaged over levels."""
        return Scores(*(each.reshape(-1, each.shape[-1]).mean(axis=0) for each in self))

    def parts(self) -> dict[str, NDArray[np.float64]]:
        """Return the parts by row; the score is miscalibration - discrimination + uncertainty."""
        return {
            "miscalibration": self.predicted - self.recalibrated,
            "discrimination": self.constant - self.recalibrated,
            "uncertainty": self.constant,
        }

    def details(self) -> ScoreParts:
        """Return the mean score and its parts."""
        means = {name: float(values.mean()) for name, values in self.parts().items()}
        return {
            "score": float(self.predicted.mean()),
            "miscalibration": means["miscalibration"],
            "discrimination": means["discrimination"],
            "uncertainty": means["uncertainty"],
        }


def scores_at_levels(rows: Predictions, levels: tuple[float, ...]) -> Scores:
    """Return the pinball losses at each level, (q, n) each: of predicted, recalibrated and constant quantiles."""
    import numpy as np

    from calcheck.statistics.isotonic import isotonic_quantiles, pinball_losses
    from calcheck.statistics.moments import targets
    from calcheck.statistics.quantile_scores import quantiles

    y, at = targets(rows), np.array(levels)
    predicted = np.array(list(quantiles(rows.distributions(), levels)))
    constant = np.quantile(y, levels, method="inverted_cdf")[:, None]
    return Scores(
        *(pinball_losses(each, y, at) for each in (predicted, isotonic_quantiles(predicted, y, at), constant))
    )


@dataclass(frozen=True)
class MiscalibrationMetric(UnfittedMetric):
    """Base class of metrics that say by how much isotonic regression of the targets improves a mean score."""

    def compute(self, rows: Predictions) -> RowResults:
        scores = self.scores(rows)
        mean = scores.mean()
        return RowResults(mean.parts(), details={**mean.details(), **self.further_details(scores)})

    @abstractmethod
    def scores(self, rows: Predictions) -> Scores:
        """Return the scores of each row."""

    def further_details(self, scores: Scores) -> QuantileMiscalibrationDetails:  # noqa: ARG002 - used by subclasses
        """Return details that only one score has."""
        return {}

    def value(self, means: Means) -> NDArray[np.float64]:
        return means["miscalibration"]
