"""Expected normalized calibration error."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metrics.base import BinnedMetric, Need
from calcheck.results import Alternative, IntervalMethod, Orientation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.results import Means


@dataclass(frozen=True)
class Ence(BinnedMetric):
    r"""Mean relative gap between predicted and observed spread, over bins of the predicted spread.

    .. math:: \mathrm{ENCE} = \frac1N \sum_{j=1}^{N} \frac{|\mathrm{RMV}_j - \mathrm{RMSE}_j|}{\mathrm{RMV}_j}

    where, over the rows of bin j, RMV is the root mean predicted variance and RMSE the root mean squared error.

    Parameters
    ----------
    bins
        Number of bins N.
    by
        What orders the rows into bins: the predicted spread (consistency), or a column (adaptivity).

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, >= 0, smaller is better; 0 in expectation only as rows per bin grow. ``details`` hold the reliability
    diagram: range, rows, RMV and RMSE of each bin.

    Raises
    ------
    DataError
        There are fewer rows than bins, or the column is absent.

    Notes
    -----
    Biased upwards by the noise of each bin, more so under resampling: its interval is of percentiles and decides
    nothing. Rows tied across an edge are split between the bins, so the order of the file never matters. O(n log n).
    Differs from the authors' and other code in that.

    References
    ----------
    Levi, Gispan, Giladi, Fetaya (2022), Eq. 6-8, doi:10.3390/s22155540. Pernot (2024), Eq. 8, arXiv 2402.10043.
    """

    name: ClassVar[str] = "ence"
    unit: ClassVar[str] = "1"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "upper"
    orientation: ClassVar[Orientation] = "smaller"
    source: ClassVar[str] = "Levi et al., Eq. 6-8 (doi:10.3390/s22155540)"
    interpretation: ClassVar[str] = "Smaller is better; the noise of each bin keeps a perfect model above 0."
    interval: ClassVar[IntervalMethod] = "percentile"

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - bins hold their own counts
        import numpy as np

        rmv, rmse = (np.sqrt(means[name] / means["rows"]) for name in ("variance", "squared_error"))
        return np.asarray(np.mean(np.abs(rmv - rmse) / rmv, axis=-1))
