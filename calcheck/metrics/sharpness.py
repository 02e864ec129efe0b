"""Root mean predicted variance."""

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
class Sharpness(RowMetric):
    r"""Root mean predicted variance: the average predicted uncertainty.

    .. math:: \mathrm{sharpness} = \sqrt{\frac1n \sum_i \sigma_i^2}

    Needs
    -----
    predictive : n distributions

    Value
    -----
    Unit of y, > 0; smaller is sharper, which is better only among calibrated models.

    Raises
    ------
    DataError
        Targets or predictions are missing, or there are several target columns.

    Notes
    -----
    Called RMV by Levi et al. Time O(n).

    References
    ----------
    Levi et al. (2022), Eq. 6, doi:10.3390/s22155540.
    """

    name: ClassVar[str] = "sharpness"
    unit: ClassVar[str] = "y"
    needs: ClassVar[tuple[Need, ...]] = ("predictive",)
    alternative: ClassVar[Alternative] = "none"
    orientation: ClassVar[Orientation] = "none"
    source: ClassVar[str] = "Levi et al., Eq. 6"
    interpretation: ClassVar[str] = "Smaller is sharper, which is better only if the model is calibrated."
    exempt_laws: ClassVar[dict[str, str]] = {"spread": "measures the width of predictions, not their calibration"}

    def compute(self, rows: Predictions) -> RowResults:
        from calcheck.statistics.moments import uncertainties

        return RowResults({"variance": uncertainties(rows) ** 2})

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - root of a mean
        import numpy as np

        return np.sqrt(means["variance"])
