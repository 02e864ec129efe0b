"""How metrics are summed: what each batch of rows adds, and what the sums say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from calcheck.inference.binned_validity import share_of_valid_bins
from calcheck.metrics._validity import ValidBinsMetric
from calcheck.metrics.base import BinnedMetric, OrderedMetric, RowMetric
from calcheck.results import NullDistribution, RowResults
from calcheck.statistics.bins import Bins, by_date, cautions, ordered_bins, ordering, reliability, spread_by_bin
from calcheck.statistics.groups import Term
from calcheck.statistics.moments import uncertainties
from calcheck.streaming.accumulators import KeptColumns, MeanSums, Sums, Told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions
    from calcheck.streaming.batched_source import Stream

    Arrays = Mapping[str, NDArray[Any]]

SettingsT = TypeVar("SettingsT")
SumsT = TypeVar("SumsT", bound=Sums)
LEAST_LABELS = (np.uint8, np.uint16, np.uint32)  # types for the class of a row, the narrowest first


class Summing(ABC, Generic[SettingsT, SumsT]):
    """How one metric is summed over rows that are never together: batches, files, machines, days.

    What depends on the data is chosen once (settings); later rows are summed under the same choices.
    """

    @abstractmethod
    def prepared(self, stream: Stream) -> SettingsT:
        """Make the choices that depend on the data."""

    @abstractmethod
    def stored(self, settings: SettingsT) -> dict[str, NDArray[Any]]:
        """Return the choices as named arrays."""

    @abstractmethod
    def taken(self, arrays: Arrays) -> SettingsT:
        """Read what :meth:`stored` returned."""

    @abstractmethod
    def of(self, settings: SettingsT, batch: Predictions) -> SumsT:
        """Sum a batch of rows."""

    @abstractmethod
    def restored(self, arrays: Arrays) -> SumsT:
        """Read sums from their arrays."""

    @abstractmethod
    def rows(self, settings: SettingsT, sums: SumsT, run: Run) -> RowResults:
        """Say what the sums tell of the rows, which are not at hand."""

    def of_all(self, settings: SettingsT, batch: Predictions, replicates: int, run: Run) -> SumsT:  # noqa: ARG002
        """Sum a batch of rows, and replicates of its targets where these are summed with it."""
        return self.of(settings, batch)

    def told(self, settings: SettingsT, sums: SumsT, run: Run) -> tuple[RowResults, NullDistribution | None]:
        """Say what the sums tell of the rows, and of replicates where these were summed with them."""
        return self.rows(settings, sums, run), None

    def fits(self, settings: SettingsT, sums: SumsT) -> bool:  # noqa: ARG002 - for those whose shapes hang on settings
        """Tell whether sums are what rows add up to under these settings."""
        return sums.fits()


class Unsettled(Summing[None, SumsT]):
    """A summing for which nothing is chosen."""

    def prepared(self, stream: Stream) -> None:
        pass

    def stored(self, settings: None) -> dict[str, NDArray[Any]]:  # noqa: ARG002 - there is nothing
        return {}

    def taken(self, arrays: Arrays) -> None:
        pass


@dataclass(frozen=True)
class RowSumming(Unsettled[MeanSums]):
    """Sums what a metric says of each row."""

    metric: RowMetric

    def of(self, settings: None, batch: Predictions) -> MeanSums:  # noqa: ARG002
        return summed_rows(self.metric.compute(batch))

    def restored(self, arrays: Arrays) -> MeanSums:
        return MeanSums.restored(arrays)

    def rows(self, settings: None, sums: MeanSums, run: Run) -> RowResults:  # noqa: ARG002
        return rows_of_means(sums, self.metric.details({**sums.means(), **sums.fixed}))


@dataclass(frozen=True)
class CentredSumming(Summing[float, MeanSums]):
    """Sums squares about a centre near the uncertainties, which keeps their digits: that of the first rows.

    Parameters
    ----------
    about : callable
        Says something of each row, given the centre.
    """

    about: Callable[[float, Predictions], RowResults]

    def prepared(self, stream: Stream) -> float:
        return float(uncertainties(stream.first).mean())

    def stored(self, settings: float) -> dict[str, NDArray[Any]]:
        return {"centre": np.array(settings)}

    def taken(self, arrays: Arrays) -> float:
        return float(arrays["centre"])

    def of(self, settings: float, batch: Predictions) -> MeanSums:
        return summed_rows(self.about(settings, batch))

    def restored(self, arrays: Arrays) -> MeanSums:
        return MeanSums.restored(arrays)

    def rows(self, settings: float, sums: MeanSums, run: Run) -> RowResults:  # noqa: ARG002
        return rows_of_means(sums, {})


@dataclass(frozen=True)
class OrderedSumming(Unsettled[KeptColumns]):
    """Keeps the few numbers a row that a metric puts in order."""

    metric: OrderedMetric

    def of(self, settings: None, batch: Predictions) -> KeptColumns:  # noqa: ARG002
        return KeptColumns.of(self.metric.sort_keys(batch), Told(len(batch)))

    def restored(self, arrays: Arrays) -> KeptColumns:
        return KeptColumns.restored(arrays)

    def rows(self, settings: None, sums: KeptColumns, run: Run) -> RowResults:  # noqa: ARG002
        return self.metric.from_sort_keys(sums.columns())


class InBins(Summing[Bins, SumsT]):
    """A summing in bins whose edges are chosen once."""

    metric: BinnedMetric

    def prepared(self, stream: Stream) -> Bins:
        by = self.metric.by
        values = stream.column(by or "uncertainties", partial(ordering, by=by))
        found = ordered_bins(values, self.metric.bins, dates=by_date(stream.first, by))
        return replace(found, label=None)

    def stored(self, settings: Bins) -> dict[str, NDArray[Any]]:
        shares = np.eye(settings.classes) if settings.shares is None else settings.shares
        return {"cuts": settings.cuts, "shares": shares, "low": settings.low, "high": settings.high}

    def taken(self, arrays: Arrays) -> Bins:
        shares, cuts = arrays["shares"], arrays["cuts"]
        if shares.ndim != 2 or shares.shape[1] != self.metric.bins or cuts.shape != (len(shares) - 1,):  # noqa: PLR2004
            msg = "its bins do not fit their edges"
            raise ValueError(msg)
        return Bins(None, len(shares), shares, low=arrays["low"], high=arrays["high"], cuts=cuts)

    def divided(self, settings: Bins, batch: Predictions) -> Bins:
        """Divide a batch of rows."""
        return settings.like(ordering(batch, self.metric.by))


@dataclass(frozen=True)
class BinSumming(InBins[MeanSums]):
    """Sums predicted and observed spread, bin by bin."""

    metric: BinnedMetric

    def of(self, settings: Bins, batch: Predictions) -> MeanSums:
        return MeanSums.of(spread_by_bin(batch, self.divided(settings, batch)), Told(len(batch)))

    def restored(self, arrays: Arrays) -> MeanSums:
        return MeanSums.restored(arrays)

    def rows(self, settings: Bins, sums: MeanSums, run: Run) -> RowResults:  # noqa: ARG002
        rows = rows_of_means(sums, reliability(sums.sums, settings))
        return replace(rows, warnings=(*rows.warnings, *cautions(settings, sums.sums["rows"])))


@dataclass(frozen=True)
class ValidBinSumming(InBins[KeptColumns]):
    """Keeps what is resampled in each bin, and the class of each row."""

    metric: ValidBinsMetric

    def of(self, settings: Bins, batch: Predictions) -> KeptColumns:
        columns, reference = self.metric.bin_means(batch)
        label = self.divided(settings, batch).label
        narrow = next(kind for kind in LEAST_LABELS if settings.classes <= np.iinfo(kind).max)
        return KeptColumns.of({**columns, "class": np.asarray(label, narrow)}, Told(len(batch), reference))

    def restored(self, arrays: Arrays) -> KeptColumns:
        return KeptColumns.restored(arrays)

    def rows(self, settings: Bins, sums: KeptColumns, run: Run) -> RowResults:
        columns = sums.columns()
        bins = replace(settings, label=columns.pop("class").astype(np.intp))
        reference = 0.0 if sums.told.reference is None else sums.told.reference
        return share_of_valid_bins(bins, columns, self.metric.bin_statistic, reference, run, stage=self.metric.name)


def summed_rows(rows: RowResults) -> MeanSums:
    """Sum what is said of the rows of a batch."""
    terms = rows.terms or {name: Term(column) for name, column in rows.columns.items()}
    return MeanSums.of(terms, Told(rows.n, rows.reference, rows.warnings), fixed=rows.fixed)


def rows_of_means(sums: MeanSums, details: dict[str, Any]) -> RowResults:
    """Say what means tell of rows that are not at hand."""
    told, fixed = sums.told, {**sums.means(), **sums.fixed}
    return RowResults({}, fixed=fixed, details=details, warnings=told.warnings, reference=told.reference, count=told.n)
