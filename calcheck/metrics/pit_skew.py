"""Third component of the probability integral transform: skewness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics._pit_component import PitComponent


@dataclass(frozen=True)
class PitSkew(PitComponent):
    r"""Skewness of the probability integral transform (PIT): its third Legendre moment, standardized.

    .. math:: \frac1n \sum_i \phi_3(F_i(y_i)), \qquad \phi_3(u) = \sqrt7 (20u^3 - 30u^2 + 12u - 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, in [-2.65, 2.65]; 0 is ideal. Positive values mean that targets are more
    skewed to the right than predicted.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    A mean over rows; unbiased. Compare ``pit-bias`` and ``pit-dispersion`` first: a large bias or a wrong width also
    contributes to this component. The influence of a row is bounded. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-skew",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="zero",
        above="skewed-right",
        below="skewed-left",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that targets are more skewed to the right than predicted.",
        exempt_laws={"spread": "about 0 for any spread of symmetric distributions, so noise decides"},
    )
    degree: ClassVar[int] = 3
