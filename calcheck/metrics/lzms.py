"""Mean squared z-score in bins."""

# Numerics are imported where they are used: `calcheck --help` reads this file and must start at once.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metrics._validity import ValidBinsMetric
from calcheck.metrics.base import Need

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions
    from calcheck.results import Means


@dataclass(frozen=True)
class Lzms(ValidBinsMetric):
    r"""Share of bins whose mean squared z-score agrees with 1: calibration along the uncertainty.

    .. math:: f_v = \frac1N \sum_{j=1}^N 1\{1 \in I(\mathrm{ZMS}_j)\}

    where ZMS is over the rows of bin j and its interval the BCa interval, by resampling them or in closed form.

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
    Dimensionless, in [0, 1], larger is better; a calibrated model scores the confidence of the intervals.
    ``details`` hold the value and the interval of each bin.

    Raises
    ------
    DataError
        There are fewer rows than bins, the column is absent, or resampling is switched off.

    Notes
    -----
    With few rows a bin or heavy tails intervals hold the truth less often than they say. So the verdict is by shares
    of replicates, whose intervals follow without resampling (ABC). Where none are drawn it is the exact
    binomial test of f_v against the confidence, if intervals rest on enough rows. Sees misfit that ZMS averages away.
    O(n) a resample.

    References
    ----------
    Pernot (2024), arXiv 2402.10043, Section IV; f_v as in Pernot's ErrViewLib.
    """

    name: ClassVar[str] = "lzms"
    unit: ClassVar[str] = "1"
    needs: ClassVar[tuple[Need, ...]] = ("y", "predictive")
    source: ClassVar[str] = "Pernot, Sec. IV (arXiv 2402.10043)"

    def bin_means(self, rows: Predictions) -> tuple[dict[str, NDArray[np.float64]], float]:
        from calcheck.errors import DataError
        from calcheck.statistics.moments import why_no_reference_zms, z_scores

        if unknown := why_no_reference_zms(rows):
            raise DataError(unknown)
        return {"z2": z_scores(rows) ** 2}, 1.0

    @staticmethod
    def bin_statistic(means: Means) -> NDArray[np.float64]:
        return means["z2"]
