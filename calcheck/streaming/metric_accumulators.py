"""Sums over batches: which metrics have them, and what each adds up."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import NoneType
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from calcheck.embeddings.nystroem import RowSums
from calcheck.embeddings.nystroem_streaming import SAMPLE_ROWS, RowSample, StreamedLandmarks, sample_batch
from calcheck.errors import Message
from calcheck.execution.run import RandomStream, Run, hash_key, reduce_batches
from calcheck.inference import intervals
from calcheck.inference.binned_validity import share_of_valid_bins
from calcheck.inference.bootstrap import RESAMPLES, check_replicates
from calcheck.inference.metric_protocol import (
    Basis,
    HasNullStatistic,
    InferableMetric,
    IntervalInference,
    NullDistribution,
    RowResults,
)
from calcheck.inference.p_values_and_verdicts import with_zeta_verdict, zeta
from calcheck.kernels import EXACT
from calcheck.metrics.accuracy import Cv
from calcheck.metrics.base import BinnedMetric, BinningMetric, Metric, OrderedMetric, RowMetric
from calcheck.metrics.cce import Cce
from calcheck.metrics.spread import ValidBinsMetric
from calcheck.predictions import Predictions
from calcheck.statistics.binning import Binning, bin_warnings, distinct_categories, make_bins
from calcheck.statistics.groups import Means, MeanTerm
from calcheck.statistics.zscores import spreads
from calcheck.storage.archives import from_arrays, to_arrays
from calcheck.streaming.accumulators import BatchedSource, ColumnStore, Metadata, MomentSums, Sums, with_row_numbers
from calcheck.typing import AnyArray, Values

STEP = 1e-4  # Step of numerical gradients, relative to the mean
UNKNOWN_TAILS = "the effective number of rows of the interval is unknown"
NOT_REPLICATED = "each replicate would require all stored rows"
SettingsT = TypeVar("SettingsT")
SumsT = TypeVar("SumsT", bound=Sums)
LABEL_TYPES = (np.uint8, np.uint16, np.uint32)  # Types for the class of a row, the narrowest first
SQUARED_NORMS = 4  # Squared norms stored for each sampled row, besides its input


def normal_interval(metric: InferableMetric, sums: MomentSums, run: Run, basis: Basis) -> IntervalInference:
    """Return a percentile interval over draws from the normal distribution of means of many rows, from their sums."""
    estimate = float(metric.value(sums.means().with_values(sums.fixed)))
    if reason := _no_interval_reason(metric, sums, estimate, run):
        return IntervalInference(warnings=(intervals.no_interval(reason),))
    draws, described, reason = check_replicates(_normal_draws(metric, sums, run), estimate, kind="draws")
    found = IntervalInference(details={"normal": described})
    if reason:
        return replace(found, warnings=(intervals.no_interval(reason),))
    low, high = intervals.percentile(draws, run.confidence)
    found = replace(found, low=low, high=high, interval="normal")
    if metric.info.interval == "percentile":
        return found if low <= estimate <= high else replace(found, warnings=(intervals.BIASED,))
    effective = _effective_rows(metric, sums)
    if np.isfinite(effective):
        described["effective_rows"] = effective
    few_rows = intervals.too_few_effective_rows(effective, sums.n) if effective < intervals.MIN_EFFECTIVE_ROWS else ""
    why = few_rows if np.isfinite(effective) else UNKNOWN_TAILS
    few = (Message("few-effective-rows", why),) if why and np.isfinite(effective) and basis.kind != "interval" else ()
    if sums.metadata.reference is None:
        return replace(found, warnings=few)
    distance = zeta(estimate, sums.metadata.reference, low, high)
    error = intervals.zeta_error(draws, estimate, sums.metadata.reference, 0.0, run.confidence)
    undefined = replace(found, no_verdict="the interval does not contain the value, so zeta is undefined")
    inferred = with_zeta_verdict(found, distance, error) if np.isfinite(distance) else undefined
    if basis.kind == "interval" and not why:
        return inferred
    return replace(inferred, verdict="none", warnings=few, no_verdict=why if basis.kind == "interval" else "")


def _no_interval_reason(metric: InferableMetric, sums: MomentSums, estimate: float, run: Run) -> str:
    """Return why there is no interval, or ""."""
    if metric.info.interval == "none":
        return metric.info.no_interval
    reasons = {
        "the bootstrap was turned off (--no-bootstrap)": run.resamples == 0,
        "a single row has no spread": sums.n == 1,
        "the metric is a function of too many means for a stored covariance": sums.products is None,
        "the value is not finite": not np.isfinite(estimate)
        or (sums.products is not None and not np.isfinite(sums.products).all()),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _effective_rows(metric: InferableMetric, sums: MomentSums) -> float:
    """Return the effective number of rows, from linearized influences; NaN without fourth moments."""
    if sums.fourth is None:
        return float("nan")
    line = sums.mean_vector()
    steps = np.diag(STEP * np.maximum(np.abs(line), STEP))
    up, down = (np.asarray(metric.value(_means(sums, line + side * steps).with_values(sums.fixed))) for side in (1, -1))
    gradient = (up - down) / (2 * np.diag(steps))
    influence = np.concatenate([[-gradient @ line], gradient])  # Coefficients of 1 and the columns
    pairs = np.outer(influence, influence).ravel()
    return float((pairs @ sums.fourth[:, 0]) ** 2 / (pairs @ sums.fourth @ pairs))


def _means(sums: MomentSums, lines: Values) -> Means:
    """Return means by name from vectors of all means, (b, K)."""
    means, start = Means({}, sums.n), 0
    for name, each in sums.sums.items():
        part = lines[:, start : start + each.size]
        means[name] = part if each.ndim else part[:, 0]
        start += each.size
    return means


def _normal_draws(metric: InferableMetric, sums: MomentSums, run: Run) -> Values:
    """Return the metric at draws from the normal distribution of the means, (draws,)."""
    n, line = sums.n, sums.mean_vector()
    products = np.zeros((len(line), len(line))) if sums.products is None else sums.products
    values, vectors = np.linalg.eigh(products / ((n - 1) * n))
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T  # The symmetric root is insensitive to rounding
    normal = run.rng(RandomStream.RESAMPLES).standard_normal((run.resamples or RESAMPLES, len(line)))
    means = _means(sums, line + normal @ root)
    with np.errstate(all="ignore"):  # Undefined draws are counted later
        return np.asarray(metric.value(means.with_values(sums.fixed)), dtype=np.float64)


def null_distribution(metric: InferableMetric, sums: MomentSums) -> NullDistribution | None:
    """Return the null distribution from the sums of replicates; None without replicates."""
    if not sums.replicates:
        return None
    statistic = metric.null_statistic if isinstance(metric, HasNullStatistic) else metric.value
    with np.errstate(all="ignore"):
        values = np.asarray(statistic(sums.replicate_means().with_values(sums.fixed)), dtype=np.float64)
        data_value = float(statistic(sums.means().with_values(sums.fixed)))
    return NullDistribution(values, data_value)


class MetricAccumulator(ABC, Generic[SettingsT, SumsT]):
    """Computes one metric from batches of rows, with settings that are fitted to data once."""

    # settings_type, sums_type: the types of the settings and of the sums, as which they are read from files
    settings_type: ClassVar[type]
    sums_type: ClassVar[type[Sums]]

    @abstractmethod
    def fit(self, stream: BatchedSource) -> SettingsT:
        """Return the settings that depend on the data."""

    @abstractmethod
    def sum_batch(self, settings: SettingsT, batch: Predictions) -> SumsT:
        """Return the sums of a batch."""

    @abstractmethod
    def rows(self, settings: SettingsT, sums: SumsT, run: Run) -> RowResults:
        """Return the results of the metric from the sums."""

    def sum_batch_with_replicates(self, settings: SettingsT, batch: Predictions, replicates: int, run: Run) -> SumsT:  # noqa: ARG002
        """Return the sums of a batch, with replicates of its targets if the accumulator simulates them itself."""
        return self.sum_batch(settings, batch)

    def result(self, settings: SettingsT, sums: SumsT, run: Run) -> tuple[RowResults, NullDistribution | None]:
        """Return the results of the metric, and its null distribution if the sums contain replicates."""
        return self.rows(settings, sums, run), None

    def is_consistent(self, settings: SettingsT, sums: SumsT) -> bool:  # noqa: ARG002 - subclasses use the settings
        """Return whether the shapes and types of the settings and of the sums are consistent."""
        return sums.is_consistent()


class Stateless(MetricAccumulator[None, SumsT]):
    """An accumulator without settings."""

    settings_type: ClassVar[type] = NoneType

    def fit(self, stream: BatchedSource) -> None:
        pass


@dataclass(frozen=True)
class MeanAccumulator(Stateless[MomentSums]):
    """Sums the columns of a metric over rows."""

    sums_type: ClassVar[type[Sums]] = MomentSums
    metric: RowMetric

    def sum_batch(self, settings: None, batch: Predictions) -> MomentSums:  # noqa: ARG002
        return sum_rows(self.metric.compute(batch))

    def rows(self, settings: None, sums: MomentSums, run: Run) -> RowResults:  # noqa: ARG002
        return rows_of_means(sums, self.metric.details(sums.means().with_values(sums.fixed)))


@dataclass(frozen=True)
class Center:
    """The number that is subtracted from standard deviations before they are squared."""

    center: float


@dataclass(frozen=True)
class ShiftedMeanAccumulator(MetricAccumulator[Center, MomentSums]):
    """Sums squares shifted by the mean standard deviation of the first batch, which avoids cancellation."""

    settings_type: ClassVar[type] = Center
    sums_type: ClassVar[type[Sums]] = MomentSums
    row_results: Callable[[float, Predictions], RowResults]  # Returns the results of rows for a given shift

    def fit(self, stream: BatchedSource) -> Center:
        return Center(float(spreads(stream.first.distributions()).mean()))

    def sum_batch(self, settings: Center, batch: Predictions) -> MomentSums:
        return sum_rows(self.row_results(settings.center, batch))

    def rows(self, settings: Center, sums: MomentSums, run: Run) -> RowResults:  # noqa: ARG002
        return rows_of_means(sums, {})


@dataclass(frozen=True)
class ColumnAccumulator(Stateless[ColumnStore]):
    """Stores the columns that a metric sorts."""

    sums_type: ClassVar[type[Sums]] = ColumnStore
    metric: OrderedMetric

    def sum_batch(self, settings: None, batch: Predictions) -> ColumnStore:  # noqa: ARG002
        return ColumnStore.from_columns(self.metric.sort_keys(batch), Metadata(len(batch)))

    def rows(self, settings: None, sums: ColumnStore, run: Run) -> RowResults:  # noqa: ARG002
        return self.metric.from_sort_keys(sums.arrays())


def _distinct_keys(metric: BinningMetric, batch: Predictions) -> AnyArray:
    return distinct_categories(metric.sort_key(batch))


class Binned(MetricAccumulator[Binning, SumsT]):
    """An accumulator in bins with fixed edges."""

    settings_type: ClassVar[type] = Binning
    metric: BinningMetric

    def fit(self, stream: BatchedSource) -> Binning:
        keys = stream.column(self.metric.sort_key_name, partial(_distinct_keys, self.metric))
        return replace(make_bins(keys, self.metric.bins, self.metric.by), label=None)

    def assign(self, settings: Binning, batch: Predictions) -> Binning:
        """Return the bins of a batch."""
        return settings.assign(self.metric.sort_key(batch))

    def is_consistent(self, settings: Binning, sums: SumsT) -> bool:
        return settings.is_consistent(self.metric.bins) and sums.is_consistent()


@dataclass(frozen=True)
class BinnedAccumulator(Binned[MomentSums]):
    """Sums the terms of a metric by bin."""

    sums_type: ClassVar[type[Sums]] = MomentSums
    metric: BinnedMetric

    def sum_batch(self, settings: Binning, batch: Predictions) -> MomentSums:
        return MomentSums.from_terms(self.metric.bin_terms(batch, self.assign(settings, batch)), Metadata(len(batch)))

    def rows(self, settings: Binning, sums: MomentSums, run: Run) -> RowResults:  # noqa: ARG002
        rows = rows_of_means(sums, self.metric.bin_details(sums.sums, settings))
        return replace(rows, warnings=(*rows.warnings, *bin_warnings(settings, sums.sums)))


@dataclass(frozen=True)
class ValidBinsAccumulator(Binned[ColumnStore]):
    """Stores the columns that are resampled in each bin, and the class of each row."""

    sums_type: ClassVar[type[Sums]] = ColumnStore
    metric: ValidBinsMetric

    def sum_batch(self, settings: Binning, batch: Predictions) -> ColumnStore:
        columns, reference = self.metric.bin_means(batch)
        label = self.assign(settings, batch).label
        narrow = next(kind for kind in LABEL_TYPES if settings.classes <= np.iinfo(kind).max)
        return ColumnStore.from_columns(
            {**columns, "class": np.asarray(label, narrow)}, Metadata(len(batch), reference)
        )

    def rows(self, settings: Binning, sums: ColumnStore, run: Run) -> RowResults:
        columns = sums.arrays()
        bins = replace(settings, label=columns.pop("class").astype(np.intp))
        reference = 0.0 if sums.metadata.reference is None else sums.metadata.reference
        return share_of_valid_bins(
            bins, columns, self.metric.bin_statistic, reference, run, stage=f"{self.metric.info.name}: resamples"
        )


def sum_rows(rows: RowResults) -> MomentSums:
    """Return the sums of the results of a batch."""
    terms = rows.terms or {name: MeanTerm(column) for name, column in rows.columns.items()}
    return MomentSums.from_terms(terms, Metadata(rows.n, rows.reference, rows.warnings), fixed=rows.fixed)


def rows_of_means(sums: MomentSums, details: Mapping[str, Any]) -> RowResults:
    """Return the results of a metric from means over rows."""
    metadata, fixed = sums.metadata, {**sums.means(), **sums.fixed}
    return RowResults(
        {}, fixed=fixed, details=details, warnings=metadata.warnings, reference=metadata.reference, count=metadata.n
    )


@dataclass(eq=False)
class NystroemSums(Sums):
    """Sums over rows for Nyström regressions."""

    sums: RowSums  # Sums of products with landmarks and validation inputs, for the targets and for replicates
    sample: RowSample  # The sampled inputs over which means are taken
    quadrature: float  # The maximum error of mean embeddings

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return self.sums.n

    def add(self, other: "NystroemSums") -> None:
        self.sums.add(other.sums)
        self.sample.add(other.sample)
        self.quadrature = max(self.quadrature, other.quadrature)

    def is_consistent(self) -> bool:
        (landmarks, *_), (validation, *_) = self.sums.landmarks.shape, self.sums.validation.shape
        size = len(self.sample.hashes)
        shapes = {
            (landmarks, landmarks): self.sums.landmarks.shape,
            (validation, landmarks): self.sums.validation.shape,
            (landmarks + validation,): self.sums.outputs.shape[:1],
            (size,): self.sample.columns["x"].shape[:1],
            (size, SQUARED_NORMS): self.sample.columns["squared_norms"].shape,
        }
        numbers = (self.sums.landmarks, self.sums.validation, self.sums.outputs, *self.sample.columns.values())
        return (
            size == min(self.n, SAMPLE_ROWS)
            and all(expected == found for expected, found in shapes.items())
            and all(each.dtype.kind == "f" and np.isfinite(each).all() for each in numbers)
        )


@dataclass(frozen=True)
class NystroemAccumulator(MetricAccumulator[StreamedLandmarks, NystroemSums]):
    """Accumulates a metric that is the mean norm of a kernel regression."""

    settings_type: ClassVar[type] = StreamedLandmarks
    sums_type: ClassVar[type[Sums]] = NystroemSums
    metric: Cce  # Chooses kernels, scaling and output features

    def fit(self, stream: BatchedSource) -> StreamedLandmarks:
        key = hash_key(stream.run)
        sample = reduce_batches(stream.source, partial(sample_batch, key=key), stream.run, stage="sampling rows")
        with with_row_numbers(sample.rows):
            settings = self.metric.settings(sample.rows, stream.run.for_worker())
            chosen = StreamedLandmarks.select(settings, sample, key, self.metric, self.metric.lambda_, stream.run)
        stored = to_arrays("settings", chosen, StreamedLandmarks)
        return cast("StreamedLandmarks", from_arrays("settings", StreamedLandmarks, stored))  # As from a stored state

    def sum_batch(self, settings: StreamedLandmarks, batch: Predictions) -> NystroemSums:
        return self.sum_batch_with_replicates(settings, batch, 0, Run())

    def sum_batch_with_replicates(
        self, settings: StreamedLandmarks, batch: Predictions, replicates: int, run: Run
    ) -> NystroemSums:
        sums, sample = settings.fit(batch, replicates, run)
        return NystroemSums(sums, sample, batch.distributions().kernel_error)

    def is_consistent(self, settings: StreamedLandmarks, sums: NystroemSums) -> bool:
        count, columns = sums.sums.outputs.shape[0], sums.sums.outputs.shape[1]
        q, d = settings.directions.shape[1], settings.landmarks.shape[1]
        return bool(
            _is_consistent(settings)
            and sums.is_consistent()
            and len(sums.sums.landmarks) == len(settings.landmarks)
            and count == len(settings.landmarks) + len(settings.validation)
            and columns >= q
            and columns % q == 0
            and sums.sample.columns["x"].shape[1:] == (d,)
        )

    def rows(self, settings: StreamedLandmarks, sums: NystroemSums, run: Run) -> RowResults:
        return self.result(settings, sums, run)[0]

    def result(
        self, settings: StreamedLandmarks, sums: NystroemSums, run: Run
    ) -> tuple[RowResults, NullDistribution | None]:
        found = settings.measured(sums.sums, sums.sample, self.metric.lambda_, run)
        value, *replicated = found.measured.means
        details = found.details(self.metric, sums.quadrature)
        rows = RowResults(
            {},
            fixed={self.metric.info.name: np.asarray(value)},
            details=details,
            warnings=found.warnings(self.metric),
            count=sums.n,
        )
        if not replicated:
            return rows, None
        details = {"columns": settings.directions.shape[1], "landmarks": len(settings.landmarks)}
        return rows, NullDistribution(np.array(replicated), details=details)


def _is_consistent(settings: StreamedLandmarks) -> bool:
    """Return whether the shapes of the settings are consistent."""
    scaling, features, pivots = settings.scaling, settings.features, settings.features.pivots
    (rank, targets), (_, d), (_, columns) = pivots.mean.shape, settings.landmarks.shape, settings.directions.shape
    expected = (
        (scaling.shift, (d,)),
        (scaling.divisor, (d,)),
        (settings.validation, (len(settings.validation), d)),
        (pivots.std, (rank, targets)),
        (pivots.gamma, (targets,)),
        (features.factor, (rank, rank)),
        (settings.directions, (rank, columns)),
    )
    return all(each.shape == shape for each, shape in expected)


def _cce_accumulator(metric: Cce) -> NystroemAccumulator | None:
    if metric.exact_only or metric.solver in EXACT:
        return None
    return NystroemAccumulator(metric)


def not_streamable_reason(metric: Metric[Any]) -> str:
    """Return why a metric cannot be computed in batches."""
    if isinstance(metric, Cce):
        if exact := metric.exact_only:
            return f"needs all rows at once with {exact}. Remove {exact} to compute cce in batches"
        solver = f"--solver {metric.solver}"
        return f"needs all rows at once with {solver}. Use --solver nystroem instead to compute cce in batches"
    return "needs all rows at once and cannot be computed in batches"


ACCUMULATORS: tuple[tuple[type[Metric[Any]], Callable[[Any], MetricAccumulator[Any, Any] | None]], ...] = (
    (Cce, _cce_accumulator),
    (Cv, lambda metric: ShiftedMeanAccumulator(metric.rows_around)),
    (ValidBinsMetric, ValidBinsAccumulator),
    (BinnedMetric, BinnedAccumulator),
    (OrderedMetric, ColumnAccumulator),
    (RowMetric, MeanAccumulator),
)  # Accumulators by class of metrics, with subclasses before their base classes


def accumulator_of(metric: Metric[Any]) -> MetricAccumulator[Any, Any] | None:
    """Return the accumulator of a metric; None if the metric cannot be computed in batches."""
    factory = next((make for kind, make in ACCUMULATORS if isinstance(metric, kind)), None)
    return None if factory is None else factory(metric)
