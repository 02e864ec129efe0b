"""Coefficient of variation of the predicted standard deviations."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

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
class Cv(RowMetric):
    r"""Coefficient of variation of the predicted uncertainties: whether they differ at all.

    .. math:: C_v = \frac1{\bar\sigma} \sqrt{\frac{1}{n-1} \sum_i (\sigma_i - \bar\sigma)^2}

    Needs
    -----
    predictive : n distributions

    Value
    -----
    Dimensionless, >= 0; 0 where all rows have the same uncertainty.

    Raises
    ------
    DataError
        There is a single row.

    Notes
    -----
    O(n). Standard deviations are centered before they are squared, so that nearly equal ones lose no digits.

    References
    ----------
    Levi et al. (2022), Eq. 10, doi:10.3390/s22155540.
    """

    name: ClassVar[str] = "cv"
    unit: ClassVar[str] = "1"
    needs: ClassVar[tuple[Need, ...]] = ("predictive",)
    alternative: ClassVar[Alternative] = "none"
    orientation: ClassVar[Orientation] = "none"
    source: ClassVar[str] = "Levi et al., Eq. 10"
    interpretation: ClassVar[str] = "0: every row has the same uncertainty, and bins by it say nothing."
    exempt_laws: ClassVar[dict[str, str]] = {"spread": "says how uncertainties differ, not whether they are right"}

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.errors import DataError
        from calcheck.statistics.moments import uncertainties

        std = uncertainties(rows)
        if len(std) == 1:
            msg = "a single row has no variation"
            raise DataError(msg)
        return self.about(float(std.mean()), rows)

    @staticmethod
    def about(centre: float, rows: Predictions) -> RowResults:
        """Say of each row how far its standard deviation is from some centre, which is not to matter but for digits."""
        from calcheck.statistics.moments import uncertainties

        std = uncertainties(rows)
        away = std - centre
        return RowResults({"std": std, "std_away": away, "std_away_squared": away**2})

    def value(self, means: Means, n: int) -> NDArray[np.float64]:
        import numpy as np

        variance = np.maximum(means["std_away_squared"] - means["std_away"] ** 2, 0)
        return np.asarray(np.sqrt(variance * n / (n - 1)) / means["std"])
