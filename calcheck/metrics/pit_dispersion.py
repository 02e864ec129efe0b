"""Second component of the probability integral transform: dispersion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics._pit_component import PitComponent


@dataclass(frozen=True)
class PitDispersion(PitComponent):
    r"""Dispersion of the probability integral transform (PIT): its mean square around 1/2, standardized.

    .. math:: \frac1n \sum_i \phi_2(F_i(y_i)), \qquad \phi_2(u) = \sqrt5 (6u^2 - 6u + 1)

    If a CDF jumps at its target from F- to F, the polynomial is averaged over [F-, F].

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, in [-1.12, 2.24]; 0 is ideal. Positive values mean that distributions
    are too narrow: the histogram of the PIT has the shape of a U.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    A mean over rows; unbiased. A bias alone also makes it positive: compare ``pit-bias`` first. The influence of a row
    is bounded, so the metric suits heavy tails, where few rows determine ``zms``. Time O(n).

    References
    ----------
    Neyman (1937), "Smooth test for goodness of fit". Czado, Gneiting, Held (2009).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="pit-dispersion",
        unit="1",
        needs=("y", "predictive"),
        alternative="two-sided",
        orientation="zero",
        above="too-narrow",
        below="too-wide",
        source="Neyman 1937",
        interpretation="0 is ideal; positive values mean that distributions are too narrow.",
    )
    degree: ClassVar[int] = 2
