"""How a regression on centres is summed: its sums, a sample of the rows, and its choices as arrays."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from calcheck.embeddings.dictionary import Blobs
from calcheck.embeddings.nystroem_streaming import SummedCentres
from calcheck.embeddings.nystroem_sums import RowSums
from calcheck.embeddings.output_features import OutputFeatures
from calcheck.embeddings.row_sample import SAMPLE_ROWS, RowSample, SampleRows
from calcheck.execution.backend import Precision
from calcheck.execution.bottom_k import key_of
from calcheck.execution.context import Run
from calcheck.execution.reduce import over
from calcheck.kernels.functions import KERNELS
from calcheck.kernels.scaling import Scaling
from calcheck.predictions import InMemory
from calcheck.results import NullDistribution, RowResults
from calcheck.streaming.accumulators import Sums, under
from calcheck.streaming.batched_source import placed
from calcheck.streaming.metric_accumulators import Summing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from calcheck.embeddings.fitted_settings import KernelSettings
    from calcheck.embeddings.landmark_selection import CentresOptions
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Predictions
    from calcheck.streaming.batched_source import Stream

    Arrays = Mapping[str, NDArray[Any]]

LEFT_OUT = 4  # numbers a sampled row besides its input


@dataclass(eq=False)
class CentresSums(Sums):
    """What rows add to regressions on centres.

    Parameters
    ----------
    sums : RowSums
        Of products with centres and checked inputs, for the targets and for replicates.
    sample : RowSample
        The inputs that means are taken over.
    quadrature : float
        How far mean embeddings may be off, at most.
    """

    sums: RowSums
    sample: RowSample
    quadrature: float

    @property
    def n(self) -> int:  # type: ignore[override]
        """How many rows there are."""
        return self.sums.n

    def add(self, other: CentresSums) -> None:
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

    def fits(self) -> bool:
        (centres, *_), (checked, *_) = self.sums.centres.shape, self.sums.checked.shape
        size = len(self.sample.hashes)
        shapes = {
            (centres, centres): self.sums.centres.shape,
            (checked, centres): self.sums.checked.shape,
            (centres + checked,): self.sums.outputs.shape[:1],
            (size,): self.sample.columns["x"].shape[:1],
            (size, LEFT_OUT): self.sample.columns["left_out"].shape,
        }
        numbers = (self.sums.centres, self.sums.checked, self.sums.outputs, *self.sample.columns.values())
        return (
            size == min(self.n, SAMPLE_ROWS)
            and all(expected == found for expected, found in shapes.items())
            and all(each.dtype.kind == "f" and np.isfinite(each).all() for each in numbers)
        )


@dataclass(frozen=True)
class SummingOnCentres(Summing[SummedCentres, CentresSums]):
    """Sums a metric that is the mean norm of a regression.

    Parameters
    ----------
    metric : Metric
        Prepares kernels, normalisation and features of targets.
    options : CentresOptions
        How many centres, and which.
    lambda_ : float
        The regulariser.
    """

    metric: Metric[KernelSettings, Any]
    options: CentresOptions
    lambda_: float

    def prepared(self, stream: Stream) -> SummedCentres:
        key = key_of(stream.run)
        sample = over(stream.source, SampleRows(key), stream.run, stage="sampling rows")
        with placed(sample.rows):
            settings = self.metric.prepare(InMemory(sample.rows), stream.run.sent())
            chosen = SummedCentres.of(settings, sample, key, self.options, self.lambda_, stream.run)
        return self.taken(self.stored(chosen))  # to the last digit what a state that is read has

    def stored(self, settings: SummedCentres) -> dict[str, NDArray[Any]]:
        kernel = next(name for name, kind in KERNELS.items() if isinstance(settings.kernel, kind))  # type: ignore[arg-type]
        told = {
            "kernel": kernel,
            "parameters": asdict(settings.kernel),
            "unit_norm": settings.scaling.unit_norm,
            "key": settings.key,
            "precision": settings.precision,
            "described": settings.described,
        }
        pivots = settings.features.pivots
        arrays = {
            "shift": settings.scaling.shift,
            "divisor": settings.scaling.divisor,
            "centres": settings.centres,
            "checked inputs": settings.checked,
            "features.centre": pivots.centre,
            "features.width": pivots.width,
            "features.gamma": pivots.gamma,
            "features.factor": settings.features.factor,
            "directions": settings.directions,
        }
        return {"kernels": np.array(json.dumps(told))} | {name: np.ascontiguousarray(arrays[name]) for name in arrays}

    def taken(self, arrays: Arrays) -> SummedCentres:
        told = json.loads(str(arrays["kernels"]))
        features = under("features", arrays)
        pivots = Blobs(features["centre"], features["width"], features["gamma"])
        centres, checked, directions = arrays["centres"], arrays["checked inputs"], arrays["directions"]
        (rank, targets), (_, d), (_, columns) = pivots.centre.shape, centres.shape, directions.shape
        shapes = {
            "shift": (d,),
            "divisor": (d,),
            "checked inputs": (len(checked), d),
            "features.width": (rank, targets),
            "features.gamma": (targets,),
            "features.factor": (rank, rank),
            "directions": (rank, columns),
        }
        if told["precision"] not in get_args(Precision) or any(
            arrays[name].shape != shape for name, shape in shapes.items()
        ):
            msg = "its settings do not fit each other"
            raise ValueError(msg)
        return SummedCentres(
            scaling=Scaling(arrays["shift"], arrays["divisor"], unit_norm=bool(told["unit_norm"])),
            kernel=KERNELS[told["kernel"]](**told["parameters"]),
            features=OutputFeatures(pivots, features["factor"]),
            directions=directions,
            centres=centres,
            checked=checked,
            key=int(told["key"]),
            precision=told["precision"],
            described=dict(told["described"]),
        )

    def of(self, settings: SummedCentres, batch: Predictions) -> CentresSums:
        return self.of_all(settings, batch, 0, Run())

    def of_all(self, settings: SummedCentres, batch: Predictions, replicates: int, run: Run) -> CentresSums:
        sums, sample = settings.summed(batch, replicates, run)
        return CentresSums(sums, sample, batch.distributions().kernel_error)

    def restored(self, arrays: Arrays) -> CentresSums:
        products = {name: np.array(arrays[name]) for name in ("centres", "checked", "outputs")}
        sample = RowSample(arrays["hashes"], under("sample", arrays))
        return CentresSums(RowSums(int(arrays["n"]), **products), sample, float(arrays["quadrature"]))

    def fits(self, settings: SummedCentres, sums: CentresSums) -> bool:
        count, columns = sums.sums.outputs.shape[0], sums.sums.outputs.shape[1]
        q, d = settings.directions.shape[1], settings.centres.shape[1]
        return bool(
            sums.fits()
            and len(sums.sums.centres) == len(settings.centres)
            and count == len(settings.centres) + len(settings.checked)
            and columns >= q
            and columns % q == 0
            and sums.sample.columns["x"].shape[1:] == (d,)
        )

    def rows(self, settings: SummedCentres, sums: CentresSums, run: Run) -> RowResults:
        return self.told(settings, sums, run)[0]

    def told(self, settings: SummedCentres, sums: CentresSums, run: Run) -> tuple[RowResults, NullDistribution | None]:
        found = settings.measured(sums.sums, sums.sample, self.lambda_, run)
        value, *replicated = found.measured.means
        details = found.details(self.options, sums.quadrature)
        rows = RowResults(
            {},
            fixed={self.metric.name: np.asarray(value)},
            details=details,
            warnings=found.cautions(details, self.options),
            count=sums.n,
        )
        if not replicated:
            return rows, None
        told = {"columns": settings.directions.shape[1], "centers": len(settings.centres)}
        return rows, NullDistribution(np.array(replicated), details=told)
