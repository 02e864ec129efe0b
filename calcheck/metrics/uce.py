"""Uncertainty calibration error."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.metrics.base import BinnedMetric, Need
from calcheck.options import option
from calcheck.results import Alternative, IntervalMethod, Orientation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.results import Means


@dataclass(frozen=True)
class Uce(BinnedMetric):
    r"""Mean gap between predicted variance and squared error, over bins of the predicted spread.

    .. math:: \mathrm{UCE} = \sum_{j=1}^{N} w_j |\mathrm{MV}_j - \mathrm{MSE}_j|

    where, over the rows of bin j, MV is the mean predicted variance and MSE the mean squared error.

    Parameters
    ----------
    bins
        Number of bins N.
    by
        What orders the rows into bins: the predicted spread (consistency), or a column (adaptivity).
    weights
        w_j: 1/N, or the bin's share of the rows.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Squared unit of y, >= 0, smaller is better; 0 in expectation only as rows per bin grow.

    Raises
    ------
    DataError
        There are fewer rows than bins, or the column is absent.

    Notes
    -----
    Ruled by the bins of large uncertainty; ENCE is relative. Biased upwards by the noise of each bin, more so under
    resampling: its interval is of percentiles and decides nothing. Bins as for ENCE. O(n log n).

    References
    ----------
    Levi, Gispan, Giladi, Fetaya (2022), doi:10.3390/s22155540; weights by count as in netcal.
    """

    name: ClassVar[str] = "uce"
    unit: ClassVar[str] = "y^2"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    alternative: ClassVar[Alternative] = "upper"
    orientation: ClassVar[Orientation] = "smaller"
    source: ClassVar[str] = "Levi et al. (doi:10.3390/s22155540)"
    interpretation: ClassVar[str] = "Smaller is better; the noise of each bin keeps a perfect model above 0."
    interval: ClassVar[IntervalMethod] = "percentile"

    bin_weights: Literal["uniform", "count"] = option("uniform", "Bins count alike, or by their rows.")

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - bins hold their own counts
        import numpy as np

        gaps = np.abs(means["variance"] - means["squared_error"])  # times the bin's share of the rows
        if self.bin_weights == "count":
            return np.asarray(gaps.sum(axis=-1))
        return np.asarray(np.mean(gaps / means["rows"], axis=-1))
