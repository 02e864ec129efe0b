"""Mean squared z-score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.details import ZmsDetails
from calcheck.messages import Message
from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import MeanMetric
from calcheck.results import RowResults

if TYPE_CHECKING:
    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class Zms(MeanMetric):
    r"""Mean squared z-score: squared errors relative to the predicted variances, averaged over rows.

    .. math:: \mathrm{ZMS} = \frac1n \sum_i z_i^2, \qquad z_i = \frac{y_i - \mu_i}{\sigma_i}

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, >= 0. The ideal is 1 for any shape of the distributions; values above 1 mean that the uncertainties
    are too small.

    Raises
    ------
    ValuesError
        A standard deviation is 0.

    Notes
    -----
    A mean over rows; unbiased. Time O(n). All rows have equal weight, whereas RCE is dominated by rows with large
    uncertainties. If z^2 has a heavy tail, few rows determine the value, and there is a warning. ``details`` have the
    mean and the variance of z: ZMS = mean(z)^2 + (n - 1) / n Var(z), so a bias is told from a wrong spread.

    References
    ----------
    Pernot (2024), Eq. 11, arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="zms",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="reference",
        above="too-narrow",
        below="too-wide",
        source="Pernot, Eq. 11 (arXiv 2402.10043)",
        interpretation="1 is ideal; values above 1 mean that the uncertainties are too small.",
        distribution_free=True,
        details=ZmsDetails,
    )
    column: ClassVar[str] = "z2"

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import heavy_tails, missing_reference_reason, z_scores

        z = z_scores(rows)
        squared = z**2
        skewness, warnings = heavy_tails({"z2": (squared, 0.8)})
        details: ZmsDetails = {"skewness": {"z2": skewness["z2"]}, "mean_z": float(z.mean())}
        if len(z) > 1:
            details["variance_z"] = float(z.var(ddof=1))
        if unknown := missing_reference_reason(rows):
            warnings += (Message("no-reference", f"no exact reference: {unknown}"),)
        return RowResults({"z2": squared}, reference=None if unknown else 1.0, details=details, warnings=warnings)
