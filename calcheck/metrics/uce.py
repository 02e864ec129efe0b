"""Uncertainty calibration error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calcheck.details import BinnedDetails
from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import BinnedMetric
from calcheck.options import option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.statistics.groups import Means


@dataclass(frozen=True)
class Uce(BinnedMetric):
    r"""Mean absolute difference between predicted variance and squared error over bins of rows.

    .. math:: \mathrm{UCE} = \sum_{j=1}^{N} w_j |\mathrm{MV}_j - \mathrm{MSE}_j|

    where, over the rows of bin j, MV is the mean predicted variance and MSE the mean squared error.

    Parameters
    ----------
    bins
        Number of bins N. A column of categories has one bin per category.
    by
        Sort key of the bins: the predicted spread (consistency) or a column (adaptivity) of numbers or dates; or a
        column of categories, which are the bins.
    bin_weights
        Weights w_j: the share of the rows in the bin (count), or 1/N (uniform). They differ where bins do not have
        equal counts.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Squared unit of y, >= 0, smaller is better. For a perfect model it tends to 0 as the rows per bin increase.

    Raises
    ------
    DataError
        There are fewer rows than bins, or the column is missing.

    Notes
    -----
    Dominated by bins of large uncertainty; ENCE uses relative differences instead. Biased upwards by noise in each bin,
    and more so under resampling; the percentile interval is not used for the verdict. Bins as for ENCE. Time
    O(n log n).

    References
    ----------
    Laves, Ihler, Fast, Kahrs, Ortmaier, Well-Calibrated Regression Uncertainty in Medical Imaging with Deep Learning,
    MIDL 2020 (PMLR 121), weighted by counts, in bins of equal width. Uniform weights: Pernot's ErrViewLib.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="uce",
        unit="y^2",
        needs=("y", "predictive"),
        alternative="greater",
        orientation="smaller",
        above="wrong-in-bins",
        source="Laves et al., MIDL 2020 (PMLR 121)",
        interpretation="Smaller is better; because of noise in each bin, a perfect model is above 0.",
        interval="percentile",
        conditional_on="bin edges",
        details=BinnedDetails,
    )

    bin_weights: Literal["uniform", "count"] = option(
        "count", "Weights of the bins: by number of rows (count), or uniform."
    )

    def value(self, means: Means) -> NDArray[np.float64]:
        import numpy as np

        gaps = np.abs(means["variance"] - means["squared_error"])  # multiplied by the bin's share of the rows
        if self.bin_weights == "count":
            return np.asarray(gaps.sum(axis=-1))
        return np.asarray(np.mean(gaps / means["rows"], axis=-1))
