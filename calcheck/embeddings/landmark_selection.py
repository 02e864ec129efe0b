"""Conditional mean embeddings by Nyström ridge regression: number, sampling and cost of landmarks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.embeddings.distance import kish
from calcheck.embeddings.nystroem_ridge import EVALUATED_TOGETHER, Landmarks, NystroemNorms, NystroemRidge
from calcheck.embeddings.nystroem_sums import (
    RegressionTargets,
    RowNorms,
    RowProducts,
    principal_directions,
    rbf_features,
)
from calcheck.embeddings.output_features import FeatureError
from calcheck.embeddings.row_sample import leverage_sample, weighted_leverage_sample
from calcheck.execution.bottom_k import sample_rows
from calcheck.execution.reduce import reduce_batches
from calcheck.execution.run import GIB, Limits, RandomStream, Run
from calcheck.linalg.gram import first_sufficient
from calcheck.predictions import InMemory, Predictions, Source

if TYPE_CHECKING:
    from calcheck.embeddings.fitted_settings import KernelSettings
    from calcheck.kernels import LandmarkSampling
    from calcheck.typing import Floats, Indices, Values

REPLICATES = 199  # Default replicates of the targets, if all rows are evaluated
REPLICATES_OF_MANY = 39  # Default replicates for more rows: enough for a test at 5 %
EXACT_PASSES = 12  # Typical number of products with the kernel matrix for conjugate gradients
FLOPS_PER_KERNEL_VALUE = 100  # Multiply-adds per kernel value in addition to the product of the inputs
EXACT_COLUMNS = 6  # Number of (n, outputs) arrays in memory for conjugate gradients
SQUARE_ARRAYS = 8  # Number of (M, M) arrays in memory for the system of M landmarks
NARROW = 0.1  # Error, relative to the width of the null distribution, that cannot change the verdict


@dataclass(frozen=True)
class LandmarkOptions:
    """Number of landmarks, sampling and limits."""

    count: int | None  # Number of landmarks M; None to increase it until the tolerance is met
    by: LandmarkSampling  # "uniform" or "leverage"
    tolerance: float  # Target relative error of the mean
    max_flops: float  # Maximum multiply-adds of one pass over the rows

    @classmethod
    def from_metric(cls, chosen: Any) -> LandmarkOptions:
        """Return the options from the fields of a metric."""
        return cls(chosen.landmarks, chosen.landmark_sampling, chosen.tolerance, chosen.max_flops)

    def is_accurate(self, measured: NystroemNorms) -> bool:
        """Return whether the error of the mean is below the tolerance, or too small to change the verdict."""
        error, value = measured.errors[0], measured.means[0]
        null = measured.means[1:]
        width = np.quantile(null, 0.95) - null.mean() if len(null) else 0.0
        return bool(error <= self.tolerance * abs(value) or error <= NARROW * width)


@dataclass(frozen=True, eq=False)
class NystroemEmbedding:
    """Nyström ridge regressions on the rows of a source."""

    settings: KernelSettings  # Kernels, normalization, features of targets
    source: Source  # The rows
    options: LandmarkOptions  # Number and sampling of landmarks
    run: Run  # Device, precision, seed, progress, and number of replicates
    reason: str  # Why the Nyström approximation is used
    factorized: dict[float, NystroemFit] = field(default_factory=dict)

    def from_fit(self, settings: KernelSettings, source: Source) -> NystroemEmbedding:
        """Return an embedding for other targets, or another model, at the same inputs."""
        return self if settings is self.settings else replace(self, settings=settings, source=source, factorized={})

    def fitted(self, lambda_: float) -> NystroemFit:
        """Return the fit of the data and of the replicates, cached for each lambda."""
        if lambda_ not in self.factorized:
            self.factorized[lambda_] = self._embedded(lambda_)
        return self.factorized[lambda_]

    def _embedded(self, lambda_: float) -> NystroemFit:
        rows = self.source.predictions()
        places = sample_rows(rows, self._limits.evaluated_rows, self.run)
        sample = rows.take(places)
        features = rbf_features(self.settings)
        pilot = sample.take(slice(self._limits.pilot_rows))
        directions = principal_directions(features, pilot.targets(), pilot.distributions().load())
        outputs = RegressionTargets(features, *directions, self.replicates, self.run.quiet())
        x = self._scaled(sample)

        def fit(count: int) -> tuple[Landmarks, NystroemNorms]:
            landmarks = self._landmarks(x, count, self._limits.n_validation(len(rows), count), lambda_, len(rows))
            return landmarks, self._measured(self.rows(), landmarks, outputs, lambda_)

        counts = self._counts(pilot, replace(outputs, replicates=0), lambda_, len(rows))
        landmarks, measured = first_sufficient(map(fit, counts), lambda found: self.options.is_accurate(found[1]))
        return NystroemFit(self, measured, landmarks, places, outputs.groups, self._bounds(pilot))

    def _scaled(self, rows: Predictions) -> Floats:
        return self.settings.scaling.rounded(rows.inputs(), precision=self.run.precision)

    def _bounds(self, pilot: Predictions) -> FeatureError:
        """Return the residual of the output features on some rows."""
        features = rbf_features(self.settings)
        bounds = FeatureError(features, features.of_points(pilot.targets().reshape(len(pilot), -1)))
        bounds.embed(pilot.distributions().load())
        return bounds

    @property
    def _limits(self) -> Limits:
        return self.run.limits

    @property
    def replicates(self) -> int:
        """Number of replicates R of the targets."""
        if self.run.replicates is not None:
            return self.run.replicates
        return REPLICATES if len(self.source.predictions()) <= self._limits.evaluated_rows else REPLICATES_OF_MANY

    def rows(self) -> Source:
        """Return the rows with their inputs, in memory if they are loaded."""
        rows = self.source.predictions()
        return InMemory(rows) if isinstance(rows.x, np.ndarray) else self.source

    def selected(self, lambda_: float, n: int) -> tuple[tuple[Values, int], Floats, Floats]:
        """Return output directions, landmarks and validation inputs; the source is a sample of n rows.

        The number of landmarks is determined on the sample.
        """
        rows = self.source.predictions()
        pilot = rows.take(slice(self._limits.pilot_rows))
        self._bounds(pilot)
        features, x = rbf_features(self.settings), self._scaled(rows)
        directions = principal_directions(features, pilot.targets(), pilot.distributions().load())
        count = self.options.count
        if count is None:
            outputs = RegressionTargets(features, *directions, 0, self.run.quiet())
            count = self._pilot_count(pilot, outputs, lambda_, min(len(x), self._affordable(x.shape[1], n)))
        return (
            directions,
            self._landmark_inputs(x, count, lambda_),
            self._validation_inputs(x, self._limits.n_validation(n, count)),
        )

    def _landmarks(self, x: Floats, count: int, n_validated: int, lambda_: float, n: int) -> Landmarks:
        """Return landmarks and validation inputs sampled from the evaluated inputs (E, d), a sample of n rows."""
        landmarks = self._landmark_inputs(x, count, lambda_)
        chosen, weights = weighted_leverage_sample(self.settings.kernel, x, landmarks, n_validated, lambda_, self.run)
        return Landmarks(landmarks, x, x[chosen], weights * (n / len(x)), n)

    def _validation_inputs(self, x: Floats, size: int) -> Floats:
        """Return a uniform sample of the evaluated inputs."""
        return x[np.sort(self.run.rng(RandomStream.RESIDUAL).permutation(len(x))[:size])]

    def _landmark_inputs(self, x: Floats, count: int, lambda_: float) -> Floats:
        if self.options.by == "leverage":
            return leverage_sample(self.settings.kernel, x, count, lambda_, self.run)
        return x[:count]

    def _measured(
        self, source: Source, landmarks: Landmarks, outputs: RegressionTargets, lambda_: float
    ) -> NystroemNorms:
        settings, count = self.settings, len(landmarks.landmarks)
        work = RowProducts(
            settings.kernel, settings.scaling, landmarks.landmarks, landmarks.validation, outputs, self.run.quiet()
        )
        sums = reduce_batches(source, work, self.run, stage=f"{count:,} landmarks", rows=landmarks.rows)
        return NystroemRidge(sums, settings.kernel, landmarks, self.run).norms(lambda_, outputs.groups)

    def _counts(self, pilot: Predictions, outputs: RegressionTargets, lambda_: float, n: int) -> Iterator[int]:
        """Yield increasing numbers of landmarks to try on all rows."""
        largest = min(n, self._limits.evaluated_rows)
        if self.options.count is not None:
            yield min(self.options.count, largest)
            return
        affordable = self._affordable(pilot.inputs().shape[1], n)
        count = min(self._limits.min_landmarks, largest)
        if n > 2 * self._limits.pilot_rows:
            count = self._pilot_count(pilot, outputs, lambda_, min(largest, affordable))
        yield count
        while count < largest and 2 * count <= affordable:
            count = min(largest, 2 * count)
            yield count

    def _pilot_count(self, pilot: Predictions, outputs: RegressionTargets, lambda_: float, largest: int) -> int:
        """Return the number of landmarks that meets the tolerance on a sample of the rows."""
        x = self._scaled(pilot)
        limit = min(largest, len(x))

        def is_accurate(count: int) -> bool:
            landmarks = self._landmarks(x, count, max(self._limits.validation_rows, count), lambda_, len(x))
            return self.options.is_accurate(self._measured(InMemory(pilot), landmarks, outputs, lambda_))

        doublings = (self._limits.min_landmarks << power for power in itertools.count())
        return min(largest, first_sufficient(doublings, lambda count: 2 * count > limit or is_accurate(count)))

    def _affordable(self, d: int, n: int) -> int:
        """Return the number of landmarks that --max-flops and the memory allow."""
        columns, limit = self.settings.features.rank * (1 + self.replicates), self.options.max_flops
        count = self._limits.min_landmarks
        while (
            flops(n, d, 2 * count, columns, self._limits) <= limit
            and SQUARE_ARRAYS * 8 * (2 * count) ** 2 <= self.run.memory
        ):
            count *= 2
        return count


@dataclass(frozen=True, eq=False)
class NystroemFit:
    """Fit of the data and of the replicates."""

    by: NystroemEmbedding  # The embedding that was fitted
    measured: NystroemNorms  # Mean norms with errors, the data first
    landmarks: Landmarks  # Landmarks, evaluated inputs and validation inputs
    places: Indices  # (E,), row numbers of the evaluated rows
    groups: tuple[int, int]  # Number of outputs of the data, and of each replicate
    bounds: FeatureError  # Residuals of the output features

    @property
    def values(self) -> Values:
        """The norms at the evaluated rows, (E, 1 + R); in row order if all rows are evaluated."""
        found = self.measured.values
        return found[np.argsort(self.places)] if self._all_evaluated else found

    @property
    def _all_evaluated(self) -> bool:
        return len(self.places) == self.landmarks.rows

    def at_all_rows(self) -> Values:
        """Return the norm at every row, (n,)."""
        if self._all_evaluated:
            return self.values[:, 0]
        return self._norms(self.measured.coefficients[:, : self.groups[0]])

    def effective_neighbors(self) -> Values:
        """Return the effective number of neighbors of each row, (n,), as defined by Kish.

        It is (sum_i a_i(x))^2 / sum_i a_i(x)^2 for the weights a(x) = Z H H^T k(landmarks, x) of the regression, with
        Z^T 1 estimated from the evaluated rows.
        """
        root, rows = self.measured.root, self.landmarks.rows
        sums = self._norms(root @ (root.T @ self._kernel_sums())[:, None])
        return kish(sums, self._norms(root * np.sqrt(self.measured.shares)) ** 2, rows)

    def _kernel_sums(self) -> Values:
        """Return the sum of kernel values of each landmark over all rows, (M,), estimated from the evaluated rows."""
        x, landmarks = self.landmarks.evaluated, self.landmarks.landmarks
        starts = range(0, len(x), EVALUATED_TOGETHER)
        kernel = self.by.settings.kernel
        parts = [kernel.gram(x[start : start + EVALUATED_TOGETHER], landmarks).sum(axis=0) for start in starts]
        return np.asarray(np.sum(parts, axis=0, dtype=np.float64) * (self.landmarks.rows / len(x)))

    def _norms(self, coefficients: Values) -> Values:
        """Return the norm of k(x, landmarks) @ coefficients at every row, (n,)."""
        settings, run = self.by.settings, self.by.run
        work = RowNorms(settings.kernel, settings.scaling, self.landmarks.landmarks, coefficients, run.quiet())
        return reduce_batches(self.by.rows(), work, run, stage="all rows", rows=self.landmarks.rows).norms

    def at_inputs(self) -> Values | None:
        """Return the norms of data and replicates at every row, (1 + R, n); None if not all rows are evaluated."""
        return self.values.T if self._all_evaluated and self.by.replicates >= REPLICATES else None


def flops(n: int, d: int, n_landmarks: int, columns: int, limits: Limits) -> float:
    """Return the multiply-adds of one pass over n rows with ``columns`` outputs."""
    return float(n) * ((n_landmarks + limits.n_validation(n, n_landmarks)) * (d + n_landmarks + columns))


def as_precise(rows: Predictions, run: Run) -> Run:
    """Return a run with the precision of the inputs: float32 if they are float32."""
    return replace(run, precision="float32") if getattr(rows.x, "dtype", None) == np.float32 else run


def approximation_reason(n: int, d: int, outputs: int, run: Run) -> str:
    """Return why an exact solver is too expensive, or "".

    The result depends only on sizes and options, so that every machine uses the same solver for a file.
    """
    products = EXACT_PASSES * float(n) ** 2 * (d + FLOPS_PER_KERNEL_VALUE)
    most = run.limits.max_exact_flops
    needed = n * (d + EXACT_COLUMNS * outputs) * (4 if run.precision == "float32" else 8)
    if products > most:
        return f"exact conjugate gradients would need {products:.1e} multiply-adds; the maximum is {most:g}"
    if needed > run.memory:
        return (
            f"exact conjugate gradients would need {needed / GIB:.1f} GiB, and --memory allows {run.memory / GIB:.1f}"
        )
    return ""
