"""Accumulator of a Nyström regression: its sums, and a sample of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np

from calcheck.embeddings.nystroem_streaming import StreamedLandmarks
from calcheck.embeddings.row_sample import SAMPLE_ROWS, RowSample, SampleRows
from calcheck.execution.bottom_k import hash_key
from calcheck.execution.reduce import reduce_batches
from calcheck.execution.run import Run
from calcheck.inference.results import NullDistribution, RowResults
from calcheck.streaming.accumulators import Sums, from_arrays, to_arrays
from calcheck.streaming.batched_source import BatchedSource, with_row_numbers
from calcheck.streaming.metric_accumulators import MetricAccumulator

if TYPE_CHECKING:
    from calcheck.embeddings.landmark_selection import LandmarkOptions
    from calcheck.embeddings.nystroem_sums import RowSums
    from calcheck.metrics.cce import Cce
    from calcheck.predictions import Predictions

SQUARED_NORMS = 4  # Squared norms stored for each sampled row, besides its input


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

    def add(self, other: NystroemSums) -> None:
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
    options: LandmarkOptions  # The number of landmarks, and how they are sampled
    lambda_: float  # The regularizer

    def fit(self, stream: BatchedSource) -> StreamedLandmarks:
        key = hash_key(stream.run)
        sample = reduce_batches(stream.source, SampleRows(key), stream.run, stage="sampling rows")
        with with_row_numbers(sample.rows):
            settings = self.metric.settings(sample.rows, stream.run.for_worker())
            chosen = StreamedLandmarks.select(settings, sample, key, self.options, self.lambda_, stream.run)
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
        found = settings.measured(sums.sums, sums.sample, self.lambda_, run)
        value, *replicated = found.measured.means
        details = found.details(self.options, sums.quadrature)
        rows = RowResults(
            {},
            fixed={self.metric.info.name: np.asarray(value)},
            details=details,
            warnings=found.warnings(self.options),
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
