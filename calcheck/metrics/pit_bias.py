"""First component of the probability integral transform: bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics._pit_component import PitComponent


@dataclass(frozen=True)
class PitBias(PitComponent):
    r"""Bias of the probability integral transform (PIT): its mean, standardized.

    .. math:: \frac1n \sum_i \phi_1(F_i(y_i)), \qquad \phi_1(u) = \sqrt3 (2u - 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, in [-1.73, 1.73]; 0 is ideal. Positive values mean that targets are above the
    predictions.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    A mean over rows; unbiased. For a perfect continuous model the variance is 1/n, and the four components of the PIT
    are uncorrelated. The influence of a row is bounded, so the metric suits heavy tails and distributions without a
    mean. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-bias",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="zero",
        above="predictions-too-low",
        below="predictions-too-high",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that targets are above the predictions.",
        exempt_laws={"spread": "about 0 for any spread of symmetric distributions, so noise decides"},
    )
    degree: ClassVar[int] = 1
