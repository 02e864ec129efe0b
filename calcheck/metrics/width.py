"""Width of central intervals."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metrics.base import Need, RowMetric
from calcheck.options import option, require_share_option
from calcheck.results import Alternative, Orientation, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions
    from calcheck.results import Means


@dataclass(frozen=True)
class Width(RowMetric):
    r"""Mean width of the central prediction intervals.

    .. math:: \mathrm{width} = \frac1n \sum_i (u_i - l_i), \qquad
              l_i = F_i^{-1}(\tfrac{1-p}2), \; u_i = F_i^{-1}(\tfrac{1+p}2)

    Parameters
    ----------
    level
        What share of targets the central interval is meant to hold.

    Needs
    -----
    predictive : n distributions

    Value
    -----
    Unit of y, >= 0; smaller is sharper, which is good among calibrated models only.

    Raises
    ------
    OptionError
        The level is not strictly between 0 and 1.

    Notes
    -----
    A mean over rows, O(n).

    References
    ----------
    Gneiting, Balabdaoui, Raftery (2007), "Probabilistic forecasts, calibration and sharpness".
    """

    name: ClassVar[str] = "width"
    unit: ClassVar[str] = "y"
    needs: ClassVar[tuple[Need, ...]] = ("predictive",)
    alternative: ClassVar[Alternative] = "none"
    orientation: ClassVar[Orientation] = "none"
    source: ClassVar[str] = "Gneiting et al. 2007"
    interpretation: ClassVar[str] = "Smaller is sharper: good only if coverage is right."
    exempt_laws: ClassVar[dict[str, str]] = {"spread": "says how narrow predictions are, not whether they are right"}

    level: float = option(0.9, "Share of targets that the central interval is meant to hold.")

    def __post_init__(self) -> None:
        require_share_option("level", self.level)

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import central_interval

        def width(part: Predictive, rows: slice) -> NDArray[np.float64]:  # noqa: ARG001 - of the predictions alone
            low, high = central_interval(part, self.level)
            return high - low

        return RowResults({"width": rows.distributions().map_batches(width)})

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - a plain mean
        return means["width"]
