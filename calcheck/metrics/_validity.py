"""Base class of metrics that compute an interval in each bin and report the share of valid bins."""

# NumPy and modules that import it are imported inside functions, so that `calcheck --help` is fast.

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.metrics.base import BinnedMetric
from calcheck.results import Alternative, IntervalMethod, Orientation, RowResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions, Source
    from calcheck.results import Means
    from calcheck.statistics.bins import Bins


@dataclass(frozen=True)
class ValidBinsMetric(BinnedMetric):
    """Share of bins in which the interval of a statistic contains its reference value."""

    alternative: ClassVar[Alternative] = "less"
    orientation: ClassVar[Orientation] = "larger"
    interpretation: ClassVar[str] = (
        "Expected: the confidence level of the intervals; a smaller share means that some bins are miscalibrated."
    )
    interval: ClassVar[IntervalMethod] = "own"
    distribution_free: ClassVar[bool] = True

    @abstractmethod
    def bin_means(self, rows: Predictions) -> tuple[dict[str, NDArray[np.float64]], float]:
        """Return the columns that the statistic averages in each bin, (n,) each, and its reference.

        Raises
        ------
        DataError
            The reference is unknown for these rows.
        """

    @staticmethod
    @abstractmethod
    def bin_statistic(means: Means) -> NDArray[np.float64]:
        """Return the statistic of a bin from its column means."""

    def rows(self, settings: Bins, state: None, source: Source, at: Source | None, run: Run) -> RowResults:  # noqa: ARG002
        from calcheck.inference.binned_validity import share_of_valid_bins

        columns, reference = self.bin_means(source.predictions())
        return share_of_valid_bins(settings, columns, self.bin_statistic, reference, run, stage=self.name)

    def quick_value(self, settings: Bins, source: Source, run: Run) -> float:
        """Return the share of valid bins by ABC intervals, which need no resamples."""
        from calcheck.inference.binned_validity import share_by_abc

        columns, reference = self.bin_means(source.predictions())
        return share_by_abc(settings, columns, self.bin_statistic, reference, run.confidence)

    def value(self, means: Means, n: int) -> NDArray[np.float64]:  # noqa: ARG002 - bins have equal weights
        import numpy as np

        return np.asarray(means["valid"].mean(axis=-1))
