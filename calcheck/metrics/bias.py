"""Mean error of the predictive mean."""

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
class Bias(RowMetric):
    r"""Mean error: whether targets lie above or below what is predicted.

    .. math:: \mathrm{bias} = \frac1n \sum_i (y_i - \mu_i)

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Unit of y, any sign; 0 is right, positive where targets lie above the predictions.

    Raises
    ------
    DataError
        Targets or predictions are absent, or there are several target columns.

    Notes
    -----
    A mean over rows: unbiased, O(n).

    References
    ----------
    Pernot (2024), arXiv 2402.10043.
    """

    name: ClassVar[str] = "bias"
    unit: ClassVar[str] = "y"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "both"
    orientation: ClassVar[Orientation] = "zero"
    source: ClassVar[str] = "Pernot (arXiv 2402.10043)"
    interpretation: ClassVar[str] = "0 is right; positive: targets lie above the predictions."
    exempt_laws: ClassVar[dict[str, str]] = {"spread": "looks at the mean only"}

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import errors

        return RowResults({"error": errors(rows)})

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a plain mean
        return means["error"]
