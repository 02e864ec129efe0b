"""Relative calibration error by bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metric_info import MetricInfo
from calcheck.metrics._validity import ValidBinsMetric, valid_bins_info

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions


@dataclass(frozen=True)
class Lrce(ValidBinsMetric):
    r"""Share of bins whose relative calibration error is consistent with 0 (local calibration).

    .. math:: f_v = \frac1N \sum_{j=1}^N 1\{0 \in I(\mathrm{RCE}_j)\}

    where RCE_j is computed from the rows of bin j, and I is its BCa interval, by resampling or in closed form.

    Parameters
    ----------
    bins
        Number of bins N. A column of categories, or of no more different numbers than bins, has one bin for each.
    by
        Sort key of the bins: the predicted spread (consistency) or a column (adaptivity) of numbers or dates; or a
        column of categories, which are the bins.

    Needs
    -----
    y : (n,), unit of y
    predictive : n distributions

    Value
    -----
    Dimensionless, in [0, 1], larger is better. For a calibrated model the expected value is the confidence level of the
    intervals. ``details`` contain the value and the interval of each bin.

    Raises
    ------
    DataError
        There are fewer rows than bins, the column is missing, or resampling is disabled.

    Notes
    -----
    With few rows per bin or heavy tails, the intervals have less than nominal coverage. The verdict therefore compares
    the value with that of replicates, whose intervals need no resampling (ABC). Without replicates it is the exact
    binomial test of f_v against the confidence level, if each bin has enough rows. Detects miscalibration that
    RCE averages out. Time O(n) per resample.

    References
    ----------
    Pernot (2024), arXiv 2402.10043, Section IV; f_v as in Pernot's ErrViewLib.
    """

    info: ClassVar[MetricInfo] = valid_bins_info("lrce", "Pernot, Sec. IV (arXiv 2402.10043)")

    def bin_means(self, rows: Predictions) -> tuple[dict[str, NDArray[np.float64]], float]:
        from calcheck.errors import DataError
        from calcheck.statistics.moments import errors, missing_moments_reason, reference_rce, uncertainties

        if self.by is None and rows.distributions().n_draws is not None:
            msg = "bins by the spread of draws also sort its noise, so a perfect ensemble would fail. Pass --by COLUMN"
            raise DataError(msg)
        if unknown := missing_moments_reason(rows):
            raise DataError(unknown)
        return {"variance": uncertainties(rows) ** 2, "squared_error": errors(rows) ** 2}, reference_rce(rows)

    @staticmethod
    def bin_statistic(means: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        import numpy as np

        return np.asarray(1 - np.sqrt(means["squared_error"] / means["variance"]))
