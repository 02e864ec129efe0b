"""Continuous ranked probability score."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.metrics.base import Need, RowMetric
from calcheck.options import option
from calcheck.results import Alternative, Orientation, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions
    from calcheck.results import Means


@dataclass(frozen=True)
class Crps(RowMetric):
    r"""Continuous ranked probability score: calibration and sharpness in the unit of the target.

    .. math:: \mathrm{CRPS} = \frac1n \sum_i \int (F_i(u) - 1\{u \ge y_i\})^2 \, du

    Parameters
    ----------
    estimator
        For samples: fair, or of the draws themselves.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Unit of y, >= 0 (the fair estimate of a good ensemble may fall below), smaller is better.

    Raises
    ------
    DataError
        Targets or predictions are absent, or there are several target columns.

    Notes
    -----
    A mean over rows: unbiased. For m draws ``fair`` has the mean that the distributions behind the draws have, and
    ``biased`` scores the m draws as they are, which favors narrow ensembles. Closed forms by scoringrules; counts by
    sums over their support. O(n), O(n m log m) for draws.

    References
    ----------
    Gneiting, Raftery (2007), doi:10.1198/016214506000001437. Ferro (2014).
    """

    name: ClassVar[str] = "crps"
    unit: ClassVar[str] = "y"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "both"
    orientation: ClassVar[Orientation] = "smaller"
    source: ClassVar[str] = "Gneiting, Raftery 2007; Ferro 2014"
    interpretation: ClassVar[str] = "Smaller is better; for a point forecast it is the absolute error."

    ensemble: Literal["fair", "biased"] = option(
        "fair", "For samples: fair to the distribution behind the draws, or of the draws themselves."
    )

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import targets

        predictive, y = rows.distributions(), targets(rows)
        if predictive.n_draws is None:
            return RowResults({"crps": predictive.crps(y)})
        if self.ensemble == "biased":
            return RowResults({"crps": predictive.crps(y)}, details={"estimator": "biased"})
        if predictive.n_draws == 1:
            told = "one sample a row has no fair CRPS: this is the biased one, the mean absolute error"
            return RowResults({"crps": predictive.crps(y)}, details={"estimator": "biased"}, warnings=(told,))
        return RowResults({"crps": predictive.fair_crps(y)}, details={"estimator": "fair"})

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a plain mean
        return means["crps"]
