"""Base class of metrics that compute an interval in each bin and report the share of valid bins."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calcheck.details import ValidBinsDetails
from calcheck.metric_info import MetricInfo
from calcheck.metrics.base import BinnedMetric

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.inference.metric_protocol import CurveData
    from calcheck.predictions import Predictions, Source
    from calcheck.report import Curve
    from calcheck.results import RowResults
    from calcheck.statistics.bins import Bins
    from calcheck.statistics.groups import Means


def valid_bins_info(name: str, source: str) -> MetricInfo:
    """Return the properties of a metric that is a share of valid bins."""
    return MetricInfo(
        name=name,
        unit="1",
        needs=("y", "predictive"),
        alternative="less",
        below="wrong-in-bins",
        orientation="larger",
        source=source,
        interpretation=(
            "Expected: the confidence level of the intervals; a smaller share means that some bins are miscalibrated."
        ),
        interval="own",
        conditional_on="bin edges",
        distribution_free=True,
        details=ValidBinsDetails,
    )


@dataclass(frozen=True)
class ValidBinsMetric(BinnedMetric):
    """Share of bins in which the interval of a statistic contains its reference value."""

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
    def bin_statistic(means: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the statistic of a bin from its column means."""

    def evaluate(self, fit: Bins, source: Source, run: Run) -> RowResults:
        from calcheck.inference.binned_validity import share_of_valid_bins

        columns, reference = self.bin_means(source.predictions())
        return share_of_valid_bins(fit, columns, self.bin_statistic, reference, run, stage="resamples")

    def quick_statistic(self, fit: Bins, source: Source, run: Run) -> float:
        """Return the share of valid bins by ABC intervals, which need no resamples."""
        from calcheck.inference.binned_validity import share_by_abc

        columns, reference = self.bin_means(source.predictions())
        return share_by_abc(fit, columns, self.bin_statistic, reference, run.confidence)

    def curves(self, shown: CurveData[Bins]) -> tuple[Curve, ...]:
        """Return the statistic of each bin."""
        import numpy as np

        from calcheck.report import SPREAD
        from calcheck.statistics.curves import curve_by_bin

        data = shown.source.predictions()
        columns, reference = self.bin_means(data)
        counts = shown.fit.sums(None)
        means = {name: shown.fit.sums(column) / counts for name, column in columns.items()}
        values, expected = self.bin_statistic(means), np.full(len(counts), reference)
        return (curve_by_bin(shown.fit, self.sort_key(data), values, self.by or SPREAD, expected),)

    def value(self, means: Means) -> NDArray[np.float64]:
        import numpy as np

        return np.asarray(means["valid"].mean(axis=-1))  # bins have equal weights
