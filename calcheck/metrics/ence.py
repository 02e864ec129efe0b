"""Expected normalized calibration error."""

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

LARGEST = "Largest relative difference between predicted and observed spread over bins of rows."


@dataclass(frozen=True)
class Ence(BinnedMetric):
    r"""Mean relative difference between predicted and observed spread over bins of rows.

    .. math:: \mathrm{ENCE} = \frac1N \sum_{j=1}^{N} \frac{|\mathrm{RMV}_j - \mathrm{RMSE}_j|}{\mathrm{RMV}_j}

    where, over the rows of bin j, RMV is the root mean predicted variance and RMSE the root mean squared error.
    ``--norm max`` takes the largest term instead of the mean.

    Parameters
    ----------
    bins
        Number of bins N. A column of categories has one bin per category.
    by
        Sort key of the bins: the predicted spread (consistency) or a column (adaptivity) of numbers or dates; or a
        column of categories, which are the bins.
    norm
        The mean over the bins, or the maximum.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, >= 0, smaller is better. For a perfect model it tends to 0 as the rows per bin increase. ``details``
    contain the reliability diagram: range, rows, RMV and RMSE of each bin.

    Raises
    ------
    DataError
        There are fewer rows than bins, or the column is missing.

    Notes
    -----
    Biased upwards by noise in each bin, and more so under resampling; the percentile interval is not used for the
    verdict. Unlike in other implementations, rows tied at a bin edge are split between the bins, so the row order of
    the file does not matter. Bin j ends at row round(j n / N) of the sorted rows; others give the rows that remain to
    the first bins, and the values differ if rows are few (at 30 rows by up to half). Time O(n log n).

    References
    ----------
    Levi, Gispan, Giladi, Fetaya (2022), Eq. 6-8, doi:10.3390/s22155540. Pernot (2024), Eq. 8, arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="ence",
        unit="1",
        needs=("y", "predictive"),
        alternative="greater",
        orientation="smaller",
        above="wrong-in-bins",
        source="Levi et al., Eq. 6-8 (doi:10.3390/s22155540)",
        interpretation="Smaller is better; because of noise in each bin, a perfect model is above 0.",
        interval="percentile",
        conditional_on="bin edges",
        details=BinnedDetails,
    )

    norm: Literal["mean", "max"] = option("mean", "Mean of the differences in the bins, or their maximum.")

    def description(self) -> str:
        return f"{LARGEST} {self.info.interpretation}" if self.norm == "max" else super().description()

    def value(self, means: Means) -> NDArray[np.float64]:
        import numpy as np

        # With dependent rows, draws of the null distribution can have means of squares below 0
        rmv, rmse = (np.sqrt(np.maximum(means[name], 0) / means["rows"]) for name in ("variance", "squared_error"))
        gaps = np.abs(rmv - rmse) / rmv
        return np.asarray(gaps.max(axis=-1) if self.norm == "max" else gaps.mean(axis=-1))
