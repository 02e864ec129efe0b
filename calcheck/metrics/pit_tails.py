"""Fourth component of the probability integral transform: tails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics._pit_component import PitComponent


@dataclass(frozen=True)
class PitTails(PitComponent):
    r"""Tails of the probability integral transform (PIT): its fourth Legendre moment, standardized.

    .. math:: \frac1n \sum_i \phi_4(F_i(y_i)), \qquad \phi_4(u) = 3 (70u^4 - 140u^3 + 90u^2 - 20u + 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, in [-1.29, 3]; 0 is ideal. Positive values mean that targets have
    heavier tails, and more values near the center, than predicted.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    A mean over rows; unbiased. If ``pit-dispersion`` is near 0, the width is right and the shape is wrong. A wrong
    width also contributes to this component. The influence of a row is bounded. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-tails",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="zero",
        above="heavy-tails",
        below="light-tails",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that targets have heavier tails than predicted.",
    )
    degree: ClassVar[int] = 4
