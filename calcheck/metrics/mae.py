"""Mean absolute error of the predicted median."""

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
class Mae(RowMetric):
    r"""Mean absolute error of the predicted median.

    .. math:: \mathrm{MAE} = \frac1n \sum_i |y_i - \tilde y_i|, \qquad \tilde y_i = \min \{u : F_i(u) \ge 1/2\}

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
    A mean over rows; unbiased. Time O(n). The median, not the mean, minimizes the expected absolute error.

    References
    ----------
    Gneiting (2011), "Making and evaluating point forecasts".
    """

    name: ClassVar[str] = "mae"
    unit: ClassVar[str] = "y"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "two-sided"
    orientation: ClassVar[Orientation] = "smaller"
    source: ClassVar[str] = "Gneiting 2011"
    interpretation: ClassVar[str] = "Smaller is better."
    exempt_laws: ClassVar[dict[str, str]] = {"spread": "depends on the median only"}

    def compute(self, rows: Predictions) -> RowResults:
        import numpy as np

        from calcheck.statistics.moments import medians, targets

        return RowResults({"absolute_error": np.abs(targets(rows) - medians(rows.distributions()))})

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - mean
        return means["absolute_error"]
