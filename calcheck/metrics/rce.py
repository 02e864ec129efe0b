"""Relative calibration error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.details import RceDetails
from calcheck.messages import Message
from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import LocalMetric
from calcheck.results import RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions
    from calcheck.statistics.groups import Means


@dataclass(frozen=True)
class Rce(LocalMetric):
    r"""Relative difference between the average predicted uncertainty (RMV) and the observed error (RMSE).

    .. math:: \mathrm{RCE} = \frac{\mathrm{RMV} - \mathrm{RMSE}}{\mathrm{RMV}}, \qquad
              \mathrm{RMV} = \sqrt{\frac1n \sum_i \sigma_i^2}, \quad
              \mathrm{RMSE} = \sqrt{\frac1n \sum_i (y_i - \mu_i)^2}

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, at most 1. The ideal is 0 for any shape of the distributions; negative values mean that the
    uncertainties are too small.

    Raises
    ------
    ValuesError
        A standard deviation is 0.

    Notes
    -----
    Biased by O(1/n). If the uncertainties have a heavy tail, the bias is large, few rows determine the value, the
    interval has less than nominal coverage (Pernot, Fig. 3), and there is a warning. ZMS does not have this problem.
    Time O(n).

    References
    ----------
    Pernot (2024), Eq. 7, arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="rce",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="reference",
        above="too-wide",
        below="too-narrow",
        source="Pernot, Eq. 7 (arXiv 2402.10043)",
        interpretation="0 is ideal; negative values mean that the uncertainties are too small.",
        distribution_free=True,
        details=RceDetails,
    )

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import (
            errors,
            heavy_tails,
            missing_moments_reason,
            reference_rce,
            uncertainties,
        )

        error = errors(rows)
        variance, squared = uncertainties(rows) ** 2, error**2
        columns = {"variance": variance, "squared_error": squared}
        skewness, warnings = heavy_tails({"variance": (variance, 0.6), "squared_error": (squared, 0.8)})
        details: RceDetails = {
            "skewness": {"variance": skewness["variance"], "squared_error": skewness["squared_error"]},
            "rmv": float(variance.mean() ** 0.5),
            "rmse": float(squared.mean() ** 0.5),
            "mean_error": float(error.mean()),
        }
        if unknown := missing_moments_reason(rows):
            warnings += (Message("no-reference", f"no exact reference: {unknown}"),)
        reference = None if unknown else reference_rce(rows)
        return RowResults(columns, reference=reference, details=details, warnings=warnings)

    def value(self, means: Means) -> NDArray[np.float64]:
        import numpy as np

        return np.asarray(1 - np.sqrt(means["squared_error"] / means["variance"]))
