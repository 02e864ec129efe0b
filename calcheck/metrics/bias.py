"""Mean error of the predicted mean."""

# NumPy and modules that import it are imported inside functions, so that `calcheck --help` is fast.

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
    r"""Mean error: the average of target minus predicted mean.

    .. math:: \mathrm{bias} = \frac1n \sum_i (y_i - \mu_i)

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Unit of y, any sign; 0 is ideal, positive if targets are above the predictions on average.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    A mean over rows; unbiased. Time O(n).

    References
    ----------
    Pernot (2024), arXiv 2402.10043.
    """

    name: ClassVar[str] = "bias"
    unit: ClassVar[str] = "y"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "two-sided"
    orientation: ClassVar[Orientation] = "zero"
    source: ClassVar[str] = "Pernot (arXiv 2402.10043)"
    interpretation: ClassVar[str] = "0 is ideal; positive values mean that targets are above the predictions."
    exempt_laws: ClassVar[dict[str, str]] = {"spread": "depends on the mean only"}

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import errors

        return RowResults({"error": errors(rows)})

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - mean
        return means["error"]
