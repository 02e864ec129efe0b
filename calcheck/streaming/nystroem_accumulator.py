"""Accumulator of a Nyström regression: its sums, a sample of the rows, and its settings as arrays."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from calcheck.embeddings.dictionary import GaussianAtoms
from calcheck.embeddings.nystroem_streaming import StreamedLandmarks
from calcheck.embeddings.nystroem_sums import RowSums
from calcheck.embeddings.output_features import OutputFeatures
from calcheck.embeddings.row_sample import SAMPLE_ROWS, RowSample, SampleRows
from calcheck.execution.backend import Precision
from calcheck.execution.bottom_k import hash_key
from calcheck.execution.context import Run
from calcheck.execution.reduce import reduce_batches
from calcheck.kernels.functions import KERNELS
from calcheck.kernels.scaling import Scaling
from calcheck.results import NullDistribution, RowResults
from calcheck.streaming.accumulators import Sums, strip_prefix
from calcheck.streaming.batched_source import with_row_numbers
from calcheck.streaming.metric_accumulators import MetricAccumulator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from calcheck.embeddings.landmark_selection import LandmarkOptions
    from calcheck.metrics.cce import Cce
    from calcheck.predictions import Predictions
    from calcheck.streaming.batched_source import BatchedSource

    Arrays = Mapping[str, NDArray[Any]]

SQUARED_NORMS = 4  # Squared norms stored for each sampled row, besides its input


@dataclass(eq=False)
class NystroemSums(Sums):
    """Sums over rows for Nyström regressions.

    Parameters
    ----------
    sums : RowSums
        Sums of products with landmarks and validation inputs, for the targets and for replicates.
    sample : RowSample
        The sampled inputs over which means are taken.
    quadrature : float
        The maximum error of mean embeddings.
    """

    sums: RowSums
    sample: RowSample
    quadrature: float

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return self.sums.n

    def add(self, other: NystroemSums) -> None:
        self.sums.add(other.sums)
        self.sample.add(other.sample)
        self.quadrature = max(self.quadrature, other.quadrature)

    def arrays(self) -> dict[str, NDArray[Any]]:
        sums, sample = self.sums, self.sample
        return {
            **{name: np.asarray(each) for name, each in vars(sums).items()},
            "hashes": sample.hashes,
            **{f"sample.{name}": each for name, each in sample.columns.items()},
            "quadrature": np.array(self.quadrature),
        }

    def is_consistent(self) -> bool:
        (landmarks, *_), (validation, *_) = self.sums.landmarks.shape, self.sums.validation.shape
        size = len(self.sample.hashes)
        shapes = {
            (landmarks, landmarks): self.sums.landmarks.shape,
            (validation, landmarks): self.sums.validation.shape,
            (landmarks + validation,): self.sums.outputs.shape[:1],
            (size,): self.sample.columns["x"].shape[:1],
            (size, SQUARED_NORMS): self.sample.columns["left_out"].shape,
        }
        numbers = (self.sums.landmarks, self.sums.validation, self.sums.outputs, *self.sample.columns.values())
        return (
            size == min(self.n, SAMPLE_ROWS)
            and all(expected == found for expected, found in shapes.items())
            and all(each.dtype.kind == "f" and np.isfinite(each).all() for each in numbers)
        )


@dataclass(frozen=True)
class NystroemAccumulator(MetricAccumulator[StreamedLandmarks, NystroemSums]):
    """Accumulates a metric that is the mean norm of a kernel regression.

    Parameters
    ----------
    metric : Metric
        Chooses kernels, scaling and output features.
    options : LandmarkOptions
        The number of landmarks, and how they are sampled.
    lambda_ : float
        The regularizer.
    """

    metric: Cce
    options: LandmarkOptions
    lambda_: float

    def fit(self, stream: BatchedSource) -> StreamedLandmarks:
        key = hash_key(stream.run)
        sample = reduce_batches(stream.source, SampleRows(key), stream.run, stage="sampling rows")
        with with_row_numbers(sample.rows):
            settings = self.metric.settings(sample.rows, stream.run.for_worker())
            chosen = StreamedLandmarks.select(settings, sample, key, self.options, self.lambda_, stream.run)
        return self.from_arrays(self.to_arrays(chosen))  # Identical to the settings of a stored state

    def to_arrays(self, settings: StreamedLandmarks) -> dict[str, NDArray[Any]]:
        kernel = next(name for name, kind in KERNELS.items() if isinstance(settings.kernel, kind))  # type: ignore[arg-type]
        header = {
            "kernel": kernel,
            "parameters": asdict(settings.kernel),
            "unit_norm": settings.scaling.unit_norm,
            "key": settings.key,
            "precision": settings.precision,
            "details": settings.details,
        }
        pivots = settings.features.pivots
        arrays = {
            "shift": settings.scaling.shift,
            "divisor": settings.scaling.divisor,
            "landmarks": settings.landmarks,
            "validation inputs": settings.validation,
            "features.mean": pivots.mean,
            "features.std": pivots.std,
            "features.gamma": pivots.gamma,
            "features.factor": settings.features.factor,
            "directions": settings.directions,
        }
        return {"kernels": np.array(json.dumps(header))} | {name: np.ascontiguousarray(arrays[name]) for name in arrays}

    def from_arrays(self, arrays: Arrays) -> StreamedLandmarks:
        header = json.loads(str(arrays["kernels"]))
        features = strip_prefix("features", arrays)
        pivots = GaussianAtoms(features["mean"], features["std"], features["gamma"])
        landmarks, validation, directions = arrays["landmarks"], arrays["validation inputs"], arrays["directions"]
        (rank, targets), (_, d), (_, columns) = pivots.mean.shape, landmarks.shape, directions.shape
        shapes = {
            "shift": (d,),
            "divisor": (d,),
            "validation inputs": (len(validation), d),
            "features.std": (rank, targets),
            "features.gamma": (targets,),
            "features.factor": (rank, rank),
            "directions": (rank, columns),
        }
        if header["precision"] not in get_args(Precision) or any(
            arrays[name].shape != shape for name, shape in shapes.items()
        ):
            msg = "the shapes of its settings do not match"
            raise ValueError(msg)
        return StreamedLandmarks(
            scaling=Scaling(arrays["shift"], arrays["divisor"], unit_norm=bool(header["unit_norm"])),
            kernel=KERNELS[header["kernel"]](**header["parameters"]),
            features=OutputFeatures(pivots, features["factor"]),
            directions=directions,
            landmarks=landmarks,
            validation=validation,
            key=int(header["key"]),
            precision=header["precision"],
            details=dict(header["details"]),
        )

    def sum_batch(self, settings: StreamedLandmarks, batch: Predictions) -> NystroemSums:
        return self.sum_batch_with_replicates(settings, batch, 0, Run())

    def sum_batch_with_replicates(
        self, settings: StreamedLandmarks, batch: Predictions, replicates: int, run: Run
    ) -> NystroemSums:
        sums, sample = settings.fit(batch, replicates, run)
        return NystroemSums(sums, sample, batch.distributions().kernel_error)

    def load(self, arrays: Arrays) -> NystroemSums:
        products = {name: np.array(arrays[name]) for name in ("landmarks", "validation", "outputs")}
        sample = RowSample(arrays["hashes"], strip_prefix("sample", arrays))
        return NystroemSums(RowSums(int(arrays["n"]), **products), sample, float(arrays["quadrature"]))

    def is_consistent(self, settings: StreamedLandmarks, sums: NystroemSums) -> bool:
        count, columns = sums.sums.outputs.shape[0], sums.sums.outputs.shape[1]
        q, d = settings.directions.shape[1], settings.landmarks.shape[1]
        return bool(
            sums.is_consistent()
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
            warnings=found.warnings(details, self.options),
            count=sums.n,
        )
        if not replicated:
            return rows, None
        told = {"columns": settings.directions.shape[1], "landmarks": len(settings.landmarks)}
        return rows, NullDistribution(np.array(replicated), details=told)
