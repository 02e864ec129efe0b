"""Nyström ridge regression on streamed rows: samples of rows, settings fitted once, and results of sums."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calcheck.distributions.row_random import bottom_k, mix
from calcheck.embeddings import landmarks as landmark_rows
from calcheck.embeddings import nystroem
from calcheck.embeddings.distance import quantiles
from calcheck.embeddings.rbf import ROUNDING, OutputFeatures
from calcheck.embeddings.target_kernels import KernelSettings, feature_warnings
from calcheck.errors import Message
from calcheck.execution.run import Run
from calcheck.kernels import SolverOptions
from calcheck.kernels.bandwidths import Scaling
from calcheck.kernels.kernel_functions import Kernel
from calcheck.predictions import InMemory, Predictions, concat
from calcheck.typing import AnyArray, Floats, Precision, Values

SAMPLE_ROWS = 1 << 14  # Maximum rows: means are accurate to half a percent; 512 float32 columns take 32 MiB
REASON = "rows are processed in batches, which requires a Nyström approximation"
LEVERAGE_SHARE = 0.5  # Share of the unexplained leverage added to the error if no data row is a validation row
RESIDUAL_FACTOR = 10.0  # Relative error of the value, in multiples of the unrepresented share of the outputs
MAX_RESIDUAL_SHARE = 1e-4  # Maximum unrepresented share of the squared outputs without a warning
MOVED_RATIO = 1.25  # Ratio of Nyström residuals (data to validation inputs) above which the inputs have moved
MOVED_STANDARD_ERRORS = 4.0  # Minimum difference of these residuals, in standard errors
NEGLIGIBLE = 1e-6  # Nyström residuals below this share of k(x, x) are negligible
BLOCK_ROWS = 4096  # Rows whose inputs are hashed at a time


@dataclass(eq=False)
class RowSample:
    """Columns of a uniform sample of rows; all rows if they are few."""

    hashes: NDArray[np.uint64]  # (k,), hashes of the rows, in ascending order
    columns: dict[str, AnyArray]  # Arrays (k, …) by name

    def add(self, other: "RowSample") -> None:
        """Merge a sample of other rows into this sample, in place."""
        hashes = np.concatenate([self.hashes, other.hashes])
        kept = bottom_k(hashes, SAMPLE_ROWS)
        self.hashes = hashes[kept]
        self.columns = {name: np.concatenate([each, other.columns[name]])[kept] for name, each in self.columns.items()}


@dataclass(eq=False)
class RowSampleSums:
    """A uniform sample of complete rows."""

    n: int  # Number of rows that were sampled from
    hashes: NDArray[np.uint64]  # (k,), hashes of the rows, in ascending order
    rows: Predictions  # The k sampled rows

    def add(self, other: "RowSampleSums") -> None:
        """Merge a sample of other rows into this sample, in place."""
        hashes = np.concatenate([self.hashes, other.hashes])
        kept = bottom_k(hashes, SAMPLE_ROWS)
        self.n += other.n
        self.hashes, self.rows = hashes[kept], concat([self.rows, other.rows]).take(kept)


def sample_batch(batch: Predictions, key: int) -> RowSampleSums:
    """Return a sample of the rows of a batch by hashes, given the seed of these."""
    hashes = hash_rows_and_inputs(batch, key)
    kept = bottom_k(hashes, SAMPLE_ROWS)
    return RowSampleSums(len(batch), hashes[kept], batch.take(kept))


@dataclass(frozen=True, eq=False)
class StreamedLandmarks:
    """Settings fitted once to the first rows and shared by all later batches."""

    scaling: Scaling  # Normalization of the inputs
    kernel: Kernel  # k_X on normalized inputs
    features: OutputFeatures  # psi with k_Y(u, v) = psi(u) . psi(v)
    directions: Values  # (r, q), orthonormal principal directions of the regression outputs
    landmarks: Floats  # (M, d), normalized inputs
    validation: Floats  # (S, d), normalized inputs
    key: int  # Seed of the hashes that rows are sampled by
    precision: Precision  # Precision of kernel values
    details: dict[str, Any]  # The same settings as reported in JSON

    @classmethod
    def select(
        cls, settings: KernelSettings, sample: RowSampleSums, key: int, options: SolverOptions, lambda_: float, run: Run
    ) -> "StreamedLandmarks":
        """Return the directions, landmarks and validation inputs for a sample of the rows."""
        run = landmark_rows.as_precise(sample.rows, run.for_worker())
        by = landmark_rows.NystroemEmbedding(settings, InMemory(sample.rows), options, run, REASON)
        selected = by.selected(lambda_, sample.n)
        scaling, kernel, features = settings.scaling, settings.kernel, nystroem.rbf_features(settings)
        return cls(scaling, kernel, features, *selected, key, run.precision, settings.details)

    def fit(self, batch: Predictions, replicates: int, run: Run) -> tuple[nystroem.RowSums, RowSample]:
        """Return the sums over a batch of rows and its replicates, and a sample of the batch."""
        run = replace(run, precision=self.precision)
        outputs = nystroem.RegressionTargets(self.features, self.directions, self.directions.shape[1], replicates, run)
        work = nystroem.RowProducts(self.kernel, self.scaling, self.landmarks, self.validation, outputs, run)
        hashes = hash_rows_and_inputs(batch, self.key)
        kept = bottom_k(hashes, SAMPLE_ROWS)
        rows = batch.take(kept)
        x = self.scaling.rounded(rows.inputs(), precision=self.precision)
        return work(batch), RowSample(hashes[kept], {"x": x, "squared_norms": self._squared_norms(rows)})

    def _squared_norms(self, rows: Predictions) -> Values:
        """Return squared norms, (p, 4): residuals of target, distribution and difference, and the difference itself."""
        y, predictive = rows.targets().reshape(len(rows), -1), rows.distributions().load()
        observed, expected = self.features.of_points(y), self.features.of_distributions(predictive)
        difference = observed - expected
        norm = predictive.kernel_norm(self.features.pivots.gamma)
        size, seen = _squares(difference), _squares(difference @ self.directions)
        return np.stack([1 - _squares(observed), norm - _squares(expected), size - seen, size], axis=1)

    def measured(self, sums: nystroem.RowSums, sample: RowSample, lambda_: float, run: Run) -> "StreamedFit":
        """Return the fit for the accumulated sums."""
        run = replace(run, precision=self.precision)
        x = sample.columns["x"]
        first = np.array_equal(x, self.validation)  # the data are the rows that the settings were fitted to
        weights = np.full(len(self.validation), sums.n / len(self.validation))
        landmarks = nystroem.Landmarks(self.landmarks, x, self.validation, weights, sums.n, validation_from_rows=first)
        ridge = nystroem.NystroemRidge(sums, self.kernel, landmarks, run)
        found = ridge.norms(lambda_, (self.directions.shape[1],) * 2)
        squared_norms = sample.columns["squared_norms"]
        some = x[: run.limits.validation_rows]
        validation_residual, residual = (ridge.residual(each) for each in (self.validation, some))
        leverage_error = 0.0
        if {each.tobytes() for each in self.validation}.isdisjoint(each.tobytes() for each in x):
            leverage_error = LEVERAGE_SHARE * residual.mean() / (sums.n * lambda_) * np.sqrt(squared_norms[:, 3].mean())
        errors = np.hypot(found.errors, leverage_error) + RESIDUAL_FACTOR * _share(squared_norms) * found.means
        found = replace(found, errors=errors)
        return StreamedFit(self, found, landmarks, squared_norms, validation_residual, residual, run)


@dataclass(frozen=True, eq=False)
class StreamedFit:
    """Fit of the data and of the replicates from accumulated sums."""

    by: StreamedLandmarks  # The fitted settings
    measured: nystroem.NystroemNorms  # Mean norms with errors, the data first
    landmarks: nystroem.Landmarks  # Landmarks, evaluated inputs and validation inputs
    squared_norms: Values  # (k, 4), squared norms of sampled rows (`fit`)
    validation_residual: Values  # (S,), Nyström residuals of the validation inputs
    residual: Values  # (p,), Nyström residuals of a sample of all rows
    run: Run  # Device and precision

    def details(self, options: SolverOptions, quadrature: float) -> dict[str, Any]:
        """Return the report details of the fit."""
        points, distributions = self.squared_norms[:, :2].max(axis=0)
        solver_details = landmark_rows.nystroem_details(self.measured, self.landmarks, options, self.run, REASON)
        solver_details["solver"] |= {
            "validation_residual": float(self.validation_residual.mean()),
            "nystroem_residual": float(self.residual.mean()),
        }
        return {
            "rows": self.landmarks.rows,
            "quantiles": quantiles(self.measured.values[:, 0]),
            **self.by.details,
            "features": {
                "rank": self.by.features.rank,
                "residual_targets": max(float(points), ROUNDING),
                "residual_predictive": max(float(distributions), ROUNDING),
                "residual_rows": _share(self.squared_norms),
                "quadrature_error": quadrature,
            },
            **solver_details,
        }

    def warnings(self, options: SolverOptions) -> tuple[Message, ...]:
        """Return the warnings for the value."""
        features = feature_warnings(self.by.features.rank, float(self.squared_norms[:, :2].max()))
        warnings = [*landmark_rows.nystroem_warnings(self.measured, self.landmarks, options, features)]
        if (share := _share(self.squared_norms)) > MAX_RESIDUAL_SHARE:
            text = (
                "targets or predictions have moved outside the range of the rows that the settings were fitted to:"
                f" a share of {share:.2g} of their squared norm is not represented. Create a new state without"
                " --settings-from"
            )
            warnings.append(Message("targets-moved", text))
        if self._moved():
            text = (
                "the inputs have moved away from those that the landmarks were sampled from: the Nyström residual of"
                f" k(x, x) is {self.residual.mean():.2g}, but {self.validation_residual.mean():.2g} at the validation"
                " inputs, where the error is estimated. The error may be larger than reported. Create a new state"
                " without --settings-from"
            )
            warnings.append(Message("inputs-moved", text))
        return tuple(warnings)

    def _moved(self) -> bool:
        """Return whether the inputs have moved away from the validation inputs, which were sampled first."""
        new, old = self.residual, self.validation_residual
        error = np.sqrt(new.var() / len(new) + old.var() / len(old))
        is_larger = new.mean() > max(NEGLIGIBLE, MOVED_RATIO * old.mean())
        return bool(is_larger and new.mean() - old.mean() > MOVED_STANDARD_ERRORS * error)


def _share(squared_norms: Values) -> float:
    """Return the unrepresented share of the squared outputs, given the squared norms (k, 4) of rows."""
    total = np.maximum(squared_norms, 0).sum(axis=0)
    whole = total[0] + total[1] + total[3]
    return float(total[:3].sum() / whole) if whole > 0 else 0.0


def _squares(values: Values) -> Values:
    return np.asarray(np.einsum("ij,ij->i", values, values))


def hash_rows_and_inputs(rows: Predictions, key: int) -> NDArray[np.uint64]:
    """Return hashes of targets, means and inputs, (n,), and of row numbers of equal rows: samples are uniform."""
    hashed = mix(_hashes(rows, key) ^ _hashes_of_inputs(rows.inputs(), key))
    _, which, count = np.unique(hashed, return_inverse=True, return_counts=True)
    again = count[which] > 1
    hashed[again] = mix(hashed[again] ^ rows.row_numbers()[again].astype(np.uint64))
    return hashed


def _hashes(rows: Predictions, key: int) -> NDArray[np.uint64]:
    """Return hashes of targets and predicted means, (n,)."""
    hashed = np.full(len(rows), key, dtype=np.uint64)
    for column in landmark_rows.targets_and_means(rows):
        hashed = mix(hashed ^ np.ascontiguousarray(column, dtype=np.float64).view(np.uint64))
    return hashed


def _hashes_of_inputs(x: Floats, key: int) -> NDArray[np.uint64]:
    """Return hashes of (n, d) inputs, (n,): integer dot products, which are free of rounding."""
    factors = np.random.default_rng(key).integers(1 << 63, size=x.shape[1], dtype=np.uint64) * np.uint64(2)
    factors += np.uint64(1)
    hashed = np.empty(len(x), dtype=np.uint64)
    for start in range(0, len(x), BLOCK_ROWS):
        block = np.ascontiguousarray(x[start : start + BLOCK_ROWS])
        words = block.view(f"u{block.itemsize}").astype(np.uint64)
        words ^= words >> np.uint64(32)  # Numbers with few digits differ in their leading bits only
        hashed[start : start + BLOCK_ROWS] = words @ factors
    return hashed
