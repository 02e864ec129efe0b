"""Root mean squared error of the predicted mean."""

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
class Rmse(RowMetric):
    r"""Root mean squared error of the predicted mean.

    .. math:: \mathrm{RMSE} = \sqrt{\frac1n \sum_i (y_i - \mu_i)^2}

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Unit of y, >= 0, smaller is better.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    Biased downwards by O(1/n) because of the square root. Time O(n).

    References
    ----------
    Pernot (2024), Eq. 7, arXiv 2402.10043.
    """

    name: ClassVar[str] = "rmse"
    unit: ClassVar[str] = "y"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "two-sided"
    orientation: ClassVar[Orientation] = "smaller"
    source: ClassVar[str] = "Pernot, Eq. 7 (arXiv 2402.10043)"
    interpretation: ClassVar[str] = "Smaller is better."
    exempt_laws: ClassVar[dict[str, str]] = {"spread": "depends on the mean only"}

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import errors

        return RowResults({"squared_error": errors(rows) ** 2})

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - root of a mean
        import numpy as np

        return np.sqrt(means["squared_error"])
