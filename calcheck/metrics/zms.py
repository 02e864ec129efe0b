"""Mean squared z-score."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metrics.base import Need, RowMetric
from calcheck.results import Alternative, Orientation, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions
    from calcheck.results import Means


@dataclass(frozen=True)
class Zms(RowMetric):
    r"""Mean squared z-score: whether the uncertainties have the right size on average.

    .. math:: \mathrm{ZMS} = \frac1n \sum_i z_i^2, \qquad z_i = \frac{y_i - \mu_i}{\sigma_i}

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, >= 0; 1 is right whatever the shape of the distributions, above 1 the uncertainties are too small.

    Raises
    ------
    ValuesError
        A standard deviation is 0.

    Notes
    -----
    A mean over rows: unbiased, O(n). Weighs every row alike, while RCE follows the rows with large uncertainties.
    Rests on few rows where z^2 has a heavy tail: then it warns.

    References
    ----------
    Pernot (2024), Eq. 11, arXiv 2402.10043.
    """

    name: ClassVar[str] = "zms"
    unit: ClassVar[str] = "1"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "both"
    orientation: ClassVar[Orientation] = "reference"
    source: ClassVar[str] = "Pernot, Eq. 11 (arXiv 2402.10043)"
    interpretation: ClassVar[str] = "1 is right; above 1 the uncertainties are too small."
    distribution_free: ClassVar[bool] = True

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import heavy_tails, why_no_reference_zms, z_scores

        squared = z_scores(rows) ** 2
        tails = heavy_tails({"z2": (squared, 0.8)})
        if unknown := why_no_reference_zms(rows):
            tails["warnings"] += (f"no exact reference: {unknown}",)
        return RowResults({"z2": squared}, reference=None if unknown else 1.0, **tails)

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a plain mean
        return means["z2"]
