"""How metrics are summed: what each batch of rows adds, and what the sums say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from calcheck.inference.binned_validity import share_of_valid_bins
from calcheck.results import NullDistribution, RowResults
from calcheck.statistics.bins import Bins, bin_warnings, by_date, ordered_bins, ordering, reliability, spread_by_bin
from calcheck.statistics.groups import MeanTerm
from calcheck.statistics.moments import uncertainties
from calcheck.streaming.accumulators import ColumnStore, Metadata, MomentSums, Sums

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.metrics._validity import ValidBinsMetric
    from calcheck.metrics.base import BinnedMetric, OrderedMetric, RowMetric
    from calcheck.predictions import Predictions
    from calcheck.streaming.batched_source import BatchedSource

    Arrays = Mapping[str, NDArray[Any]]

SettingsT = TypeVar("SettingsT")
SumsT = TypeVar("SumsT", bound=Sums)
LEAST_LABELS = (np.uint8, np.uint16, np.uint32)  # types for the class of a row, the narrowest first


class MetricAccumulator(ABC, Generic[SettingsT, SumsT]):
    """How one metric is summed over rows that are never together: batches, files, machines, days.

    What depends on the data is chosen once (settings); later rows are summed under the same choices.
    """

    @abstractmethod
    def fit(self, stream: BatchedSource) -> SettingsT:
        """Make the choices that depend on the data."""

    @abstractmethod
    def to_arrays(self, settings: SettingsT) -> dict[str, NDArray[Any]]:
        """Return the choices as named arrays."""

    @abstractmethod
    def from_arrays(self, arrays: Arrays) -> SettingsT:
        """Read what :meth:`settings_arrays` returned."""

    @abstractmethod
    def update(self, settings: SettingsT, batch: Predictions) -> SumsT:
        """Sum a batch of rows."""

    @abstractmethod
    def load(self, arrays: Arrays) -> SumsT:
        """Read sums from their arrays."""

    @abstractmethod
    def rows(self, settings: SettingsT, sums: SumsT, run: Run) -> RowResults:
        """Say what the sums tell of the rows, which are not at hand."""

    def update_with_replicates(self, settings: SettingsT, batch: Predictions, replicates: int, run: Run) -> SumsT:  # noqa: ARG002
        """Sum a batch of rows, and replicates of its targets where these are summed with it."""
        return self.update(settings, batch)

    def result(self, settings: SettingsT, sums: SumsT, run: Run) -> tuple[RowResults, NullDistribution | None]:
        """Say what the sums tell of the rows, and of replicates where these were summed with them."""
        return self.rows(settings, sums, run), None

    def is_consistent(self, settings: SettingsT, sums: SumsT) -> bool:  # noqa: ARG002 - for those whose shapes hang on settings
        """Tell whether sums are what rows add up to under these settings."""
        return sums.is_consistent()


class Stateless(MetricAccumulator[None, SumsT]):
    """A summing for which nothing is chosen."""

    def fit(self, stream: BatchedSource) -> None:
        pass

    def to_arrays(self, settings: None) -> dict[str, NDArray[Any]]:  # noqa: ARG002 - there is nothing
        return {}

    def from_arrays(self, arrays: Arrays) -> None:
        pass


@dataclass(frozen=True)
class MeanAccumulator(Stateless[MomentSums]):
    """Sums what a metric says of each row."""

    metric: RowMetric

    def update(self, settings: None, batch: Predictions) -> MomentSums:  # noqa: ARG002
        return sum_rows(self.metric.compute(batch))

    def load(self, arrays: Arrays) -> MomentSums:
        return MomentSums.load(arrays)

    def rows(self, settings: None, sums: MomentSums, run: Run) -> RowResults:  # noqa: ARG002
        return rows_of_means(sums, self.metric.details({**sums.means(), **sums.fixed}))


@dataclass(frozen=True)
class ShiftedMeanAccumulator(MetricAccumulator[float, MomentSums]):
    """Sums squares about a centre near the uncertainties, which keeps their digits: that of the first rows.

    Parameters
    ----------
    about : callable
        Says something of each row, given the centre.
    """

    about: Callable[[float, Predictions], RowResults]

    def fit(self, stream: BatchedSource) -> float:
        return float(uncertainties(stream.first).mean())

    def to_arrays(self, settings: float) -> dict[str, NDArray[Any]]:
        return {"centre": np.array(settings)}

    def from_arrays(self, arrays: Arrays) -> float:
        return float(arrays["centre"])

    def update(self, settings: float, batch: Predictions) -> MomentSums:
        return sum_rows(self.about(settings, batch))

    def load(self, arrays: Arrays) -> MomentSums:
        return MomentSums.load(arrays)

    def rows(self, settings: float, sums: MomentSums, run: Run) -> RowResults:  # noqa: ARG002
        return rows_of_means(sums, {})


@dataclass(frozen=True)
class ColumnAccumulator(Stateless[ColumnStore]):
    """Keeps the few numbers a row that a metric puts in order."""

    metric: OrderedMetric

    def update(self, settings: None, batch: Predictions) -> ColumnStore:  # noqa: ARG002
        return ColumnStore.from_columns(self.metric.sort_keys(batch), Metadata(len(batch)))

    def load(self, arrays: Arrays) -> ColumnStore:
        return ColumnStore.load(arrays)

    def rows(self, settings: None, sums: ColumnStore, run: Run) -> RowResults:  # noqa: ARG002
        return self.metric.from_sort_keys(sums.columns())


class Binned(MetricAccumulator[Bins, SumsT]):
    """A summing in bins whose edges are chosen once."""

    metric: BinnedMetric

    def fit(self, stream: BatchedSource) -> Bins:
        by = self.metric.by
        values = stream.column(by or "uncertainties", partial(ordering, by=by))
        found = ordered_bins(values, self.metric.bins, dates=by_date(stream.first, by))
        return replace(found, label=None)

    def to_arrays(self, settings: Bins) -> dict[str, NDArray[Any]]:
        shares = np.eye(settings.classes) if settings.shares is None else settings.shares
        return {"cuts": settings.cuts, "shares": shares, "low": settings.low, "high": settings.high}

    def from_arrays(self, arrays: Arrays) -> Bins:
        shares, cuts = arrays["shares"], arrays["cuts"]
        if shares.ndim != 2 or shares.shape[1] != self.metric.bins or cuts.shape != (len(shares) - 1,):  # noqa: PLR2004
            msg = "its bins do not fit their edges"
            raise ValueError(msg)
        return Bins(None, len(shares), shares, low=arrays["low"], high=arrays["high"], cuts=cuts)

    def assign(self, settings: Bins, batch: Predictions) -> Bins:
        """Divide a batch of rows."""
        return settings.assign(ordering(batch, self.metric.by))


@dataclass(frozen=True)
class BinnedAccumulator(Binned[MomentSums]):
    """Sums predicted and observed spread, bin by bin."""

    metric: BinnedMetric

    def update(self, settings: Bins, batch: Predictions) -> MomentSums:
        return MomentSums.from_terms(spread_by_bin(batch, self.assign(settings, batch)), Metadata(len(batch)))

    def load(self, arrays: Arrays) -> MomentSums:
        return MomentSums.load(arrays)

    def rows(self, settings: Bins, sums: MomentSums, run: Run) -> RowResults:  # noqa: ARG002
        rows = rows_of_means(sums, reliability(sums.sums, settings))
        return replace(rows, warnings=(*rows.warnings, *bin_warnings(settings, sums.sums["rows"])))


@dataclass(frozen=True)
class ValidBinsAccumulator(Binned[ColumnStore]):
    """Keeps what is resampled in each bin, and the class of each row."""

    metric: ValidBinsMetric

    def update(self, settings: Bins, batch: Predictions) -> ColumnStore:
        columns, reference = self.metric.bin_means(batch)
        label = self.assign(settings, batch).label
        narrow = next(kind for kind in LEAST_LABELS if settings.classes <= np.iinfo(kind).max)
        return ColumnStore.from_columns(
            {**columns, "class": np.asarray(label, narrow)}, Metadata(len(batch), reference)
        )

    def load(self, arrays: Arrays) -> ColumnStore:
        return ColumnStore.load(arrays)

    def rows(self, settings: Bins, sums: ColumnStore, run: Run) -> RowResults:
        columns = sums.columns()
        bins = replace(settings, label=columns.pop("class").astype(np.intp))
        reference = 0.0 if sums.metadata.reference is None else sums.metadata.reference
        return share_of_valid_bins(bins, columns, self.metric.bin_statistic, reference, run, stage=self.metric.name)


def sum_rows(rows: RowResults) -> MomentSums:
    """Sum what is said of the rows of a batch."""
    terms = rows.terms or {name: MeanTerm(column) for name, column in rows.columns.items()}
    return MomentSums.from_terms(terms, Metadata(rows.n, rows.reference, rows.warnings), fixed=rows.fixed)


def rows_of_means(sums: MomentSums, details: dict[str, Any]) -> RowResults:
    """Say what means tell of rows that are not at hand."""
    told, fixed = sums.metadata, {**sums.means(), **sums.fixed}
    return RowResults({}, fixed=fixed, details=details, warnings=told.warnings, reference=told.reference, count=told.n)
