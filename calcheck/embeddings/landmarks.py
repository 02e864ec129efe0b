"""Conditional mean embeddings by Nyström ridge regression: number, sampling and cost of landmarks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calcheck.core import la
from calcheck.distributions.row_random import bottom_k, mix, occurrences
from calcheck.embeddings import nystroem
from calcheck.embeddings.distance import few_dof, kish
from calcheck.embeddings.rbf import FeatureError
from calcheck.embeddings.target_kernels import KernelSettings
from calcheck.errors import Message, NumericalError
from calcheck.execution.run import Limits, RandomStream, Run, hash_key, reduce_batches
from calcheck.kernels import SolverOptions
from calcheck.kernels.bandwidths import OVERFLOW_MESSAGE
from calcheck.kernels.kernel_functions import Kernel
from calcheck.linalg.gram import first_sufficient, spanning_points
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.typing import Floats, Indices, Values

REPLICATES = 199  # Default replicates of the targets, if all rows are evaluated
REPLICATES_OF_MANY = 39  # Default replicates for more rows: enough for a test at 5 %
SQUARE_ARRAYS = 8  # Number of (M, M) arrays in memory for the system of M landmarks
BLOCK_ROWS = 4096  # Inputs per block
ROUNDING = 1e-10  # Minimum lambda relative to the kernel values, so that the matrix is positive definite
LANDMARK_REFERENCE_ROWS = 256  # Inputs used to approximate leverage scores for landmarks
VALIDATION_REFERENCE_ROWS = 1024  # Landmarks used to approximate leverage scores for validation inputs


@dataclass(frozen=True, eq=False)
class NystroemEmbedding:
    """Nyström ridge regressions on the rows of a source."""

    settings: KernelSettings  # Kernels, normalization, features of targets
    source: Source  # The rows
    options: SolverOptions  # Number and sampling of landmarks
    run: Run  # Device, precision, seed, progress, and number of replicates
    reason: str  # Why the Nyström approximation is used
    factorized: dict[float, NystroemFit] = field(default_factory=dict)

    def fitted(self, lambda_: float) -> NystroemFit:
        """Return the fit of the data and of the replicates, cached for each lambda."""
        if lambda_ in self.factorized:
            return self.factorized[lambda_]
        rows = self.source.predictions()
        places = sample_rows(rows, self.run.limits.evaluated_rows, self.run)
        sample = rows.take(places)
        pilot = sample.take(slice(self.run.limits.pilot_rows))
        outputs, x = self._outputs(pilot), self._scaled(sample)

        def measured_on(inputs: Floats, n_validated: int) -> tuple[nystroem.Landmarks, nystroem.NystroemNorms]:
            landmarks = self._landmarks(x, inputs, n_validated, lambda_, len(rows))
            return landmarks, self._measured(self.rows(), landmarks, outputs, lambda_)

        def fit(count: int) -> tuple[nystroem.Landmarks, nystroem.NystroemNorms]:
            n_validated = self.run.limits.n_validation(len(rows), count)
            return measured_on(self._landmark_inputs(x, count, lambda_), n_validated)

        if (spanning := self._spanning(rows)) is not None:  # nothing is left to validate
            landmarks, measured = measured_on(spanning, len(spanning))
        else:
            counts, tolerance = self._counts(pilot, outputs, lambda_, len(rows)), self.options.landmark_error
            landmarks, measured = first_sufficient(map(fit, counts), lambda found: found[1].is_accurate(tolerance))
        found = NystroemFit(self, measured, landmarks, places, outputs.groups, self._bounds(pilot))
        self.factorized[lambda_] = found
        return found

    def _scaled(self, rows: Predictions) -> Floats:
        return self.settings.scaling.rounded(rows.inputs(), precision=self.run.precision)

    def _outputs(self, pilot: Predictions) -> nystroem.RegressionTargets:
        """Return the outputs along the principal directions of some rows."""
        features = nystroem.rbf_features(self.settings)
        directions = nystroem.principal_directions(features, pilot.targets(), pilot.distributions().load())
        return nystroem.RegressionTargets(features, *directions, self.replicates, self.run.quiet())

    def _bounds(self, pilot: Predictions) -> FeatureError:
        """Return the residual of the output features on some rows."""
        features = nystroem.rbf_features(self.settings)
        bounds = FeatureError(features, features.of_points(pilot.targets().reshape(len(pilot), -1)))
        bounds.embed(pilot.distributions().load())
        return bounds

    @property
    def replicates(self) -> int:
        """Number of replicates R of the targets."""
        if self.run.replicates is not None:
            return self.run.replicates
        return REPLICATES if len(self.source.predictions()) <= self.run.limits.evaluated_rows else REPLICATES_OF_MANY

    def rows(self) -> Source:
        """Return the rows with their inputs, in memory if they are loaded."""
        rows = self.source.predictions()
        return InMemory(rows) if isinstance(rows.x, np.ndarray) else self.source

    def selected(self, lambda_: float, n: int) -> tuple[Values, Floats, Floats]:
        """Return output directions, landmarks and validation inputs, by a source that is a sample of n rows."""
        rows, count = self.source.predictions(), self.options.landmarks
        pilot = rows.take(slice(self.run.limits.pilot_rows))
        self._bounds(pilot)
        outputs, x = self._outputs(pilot), self._scaled(rows)
        if count is None:
            count = self._pilot_count(pilot, outputs, lambda_, min(len(x), self._affordable(x.shape[1], n)))
        n_validated = self.run.limits.n_validation(n, count)
        validated = np.sort(self.run.rng(RandomStream.RESIDUAL).permutation(len(x))[:n_validated])
        return outputs.directions[:, : outputs.few], self._landmark_inputs(x, count, lambda_), x[validated]

    def _landmarks(self, x: Floats, landmarks: Floats, n_validated: int, lambda_: float, n: int) -> nystroem.Landmarks:
        """Return landmarks and validation inputs sampled from the evaluated inputs (E, d), a sample of n rows."""
        chosen, weights = weighted_leverage_sample(self.settings.kernel, x, landmarks, n_validated, lambda_, self.run)
        return nystroem.Landmarks(landmarks, x, x[chosen], weights * (n / len(x)), n)

    def _spanning(self, rows: Predictions) -> Floats | None:
        """Return landmarks that represent all inputs exactly, for an RBF kernel of one input; None if they are many."""
        if self.options.landmarks is not None or rows.width != 1 or not isinstance(rows.x, np.ndarray):
            return None
        x = self._scaled(rows)
        found = spanning_points(self.settings.kernel, x)
        return None if found is None else found.astype(x.dtype)

    def _landmark_inputs(self, x: Floats, count: int, lambda_: float) -> Floats:
        """Return the first inputs, or those with the smallest exponential keys by leverage (Efraimidis 2006)."""
        if self.options.landmark_sampling == "uniform":
            return x[:count]
        leverages = _residuals(self.settings.kernel, x, x[:LANDMARK_REFERENCE_ROWS], (lambda_,))[0]
        keys = self.run.rng(RandomStream.LANDMARKS, 1).exponential(size=len(x))
        return x[np.argsort(keys / np.maximum(leverages, np.finfo(float).tiny), kind="stable")[:count]]

    def _measured(
        self, source: Source, landmarks: nystroem.Landmarks, outputs: nystroem.RegressionTargets, lambda_: float
    ) -> nystroem.NystroemNorms:
        settings, count = self.settings, len(landmarks.landmarks)
        inputs = landmarks.landmarks, landmarks.validation
        work = nystroem.RowProducts(settings.kernel, settings.scaling, *inputs, outputs, self.run.quiet())
        sums = reduce_batches(source, work, self.run, stage=f"{count:,} landmarks", rows=landmarks.rows)
        return nystroem.NystroemRidge(sums, settings.kernel, landmarks, self.run).norms(lambda_, outputs.groups)

    def _counts(self, pilot: Predictions, outputs: nystroem.RegressionTargets, lambda_: float, n: int) -> Iterator[int]:
        """Yield increasing numbers of landmarks to try on all rows."""
        largest = min(n, self.run.limits.evaluated_rows)
        if self.options.landmarks is not None:
            yield min(self.options.landmarks, largest)
            return
        affordable = self._affordable(pilot.inputs().shape[1], n)
        count = min(self.run.limits.min_landmarks, largest)
        if n > 2 * self.run.limits.pilot_rows:
            count = self._pilot_count(pilot, outputs, lambda_, min(largest, affordable))
        yield count
        while count < largest and 2 * count <= affordable:
            count = min(largest, 2 * count)
            yield count

    def _pilot_count(
        self, pilot: Predictions, outputs: nystroem.RegressionTargets, lambda_: float, largest: int
    ) -> int:
        """Return the number of landmarks that meets the tolerance on a sample of the rows."""
        outputs, x = replace(outputs, replicates=0), self._scaled(pilot)
        limit = min(largest, len(x))

        def is_accurate(count: int) -> bool:
            validated = max(self.run.limits.validation_rows, count)
            landmarks = self._landmarks(x, self._landmark_inputs(x, count, lambda_), validated, lambda_, len(x))
            measured = self._measured(InMemory(pilot), landmarks, outputs, lambda_)
            return measured.is_accurate(self.options.landmark_error)

        doublings = (self.run.limits.min_landmarks << power for power in itertools.count())
        return min(largest, first_sufficient(doublings, lambda count: 2 * count > limit or is_accurate(count)))

    def _affordable(self, d: int, n: int) -> int:
        """Return the number of landmarks that --max-flops and the memory allow."""
        columns, limit = self.settings.features.rank * (1 + self.replicates), self.options.max_flops
        count = self.run.limits.min_landmarks
        while flops(n, d, 2 * count, columns, self.run.limits) <= limit:
            if SQUARE_ARRAYS * 8 * (2 * count) ** 2 > self.run.memory:
                break
            count *= 2
        return count


@dataclass(frozen=True, eq=False)
class NystroemFit:
    """Fit of the data and of the replicates."""

    by: NystroemEmbedding  # The embedding that was fitted
    measured: nystroem.NystroemNorms  # Mean norms with errors, the data first
    landmarks: nystroem.Landmarks  # Landmarks, evaluated inputs and validation inputs
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
        """Return the effective number of neighbors of each row (Kish), (n,), with Z^T 1 from the evaluated rows."""
        root, rows = self.measured.root, self.landmarks.rows
        sums = self._norms(root @ (root.T @ self._kernel_sums())[:, None])
        return kish(sums, self._norms(root * np.sqrt(self.measured.shares)) ** 2, rows)

    def _kernel_sums(self) -> Values:
        """Return the sum of kernel values of each landmark over all rows, (M,), estimated from the evaluated rows."""
        x, landmarks = self.landmarks.evaluated, self.landmarks.landmarks
        starts = range(0, len(x), nystroem.EVALUATED_TOGETHER)
        kernel = self.by.settings.kernel
        parts = [kernel.gram(x[start : start + nystroem.EVALUATED_TOGETHER], landmarks).sum(axis=0) for start in starts]
        return np.asarray(np.sum(parts, axis=0, dtype=np.float64) * (self.landmarks.rows / len(x)))

    def _norms(self, coefficients: Values) -> Values:
        """Return the norm of k(x, landmarks) @ coefficients at every row, (n,)."""
        settings, run = self.by.settings, self.by.run
        work = nystroem.RowNorms(settings.kernel, settings.scaling, self.landmarks.landmarks, coefficients, run.quiet())
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


def weighted_leverage_sample(
    kernel: Kernel, x: Floats, landmarks: Floats, size: int, lambda_: float, run: Run
) -> tuple[Indices, Values]:
    """Return a sample of (n, d) inputs with unequal probabilities, and its weights, by Pareto order (Rosen 1997).

    The inclusion probability of an input is proportional to the sum of its approximate leverage score, its Nyström
    residual (both scaled to mean 1), and 1, so that inputs far from all others are always included.
    """
    if size >= len(x):
        return np.arange(len(x)), np.ones(len(x))
    residuals = _residuals(kernel, x, landmarks[:VALIDATION_REFERENCE_ROWS], (lambda_, 0.0))
    probabilities = _inclusion_probabilities(1 + sum(each / (each.mean() or 1.0) for each in residuals), size)
    odds = run.rng(RandomStream.RESIDUAL).random(len(x))
    odds /= 1 - odds
    chosen = np.sort(np.argsort(odds * (1 - probabilities) / probabilities, kind="stable")[:size])
    weights, certain = 1 / probabilities[chosen], probabilities[chosen] == 1
    weights[~certain] *= (len(x) - certain.sum()) / weights[~certain].sum()
    return chosen, weights


def _residuals(kernel: Kernel, x: Floats, some: Floats, lambdas: tuple[float, ...]) -> Values:
    """Return the residuals k(x, x) - k(x, s) (K_ss + M lambda I)^-1 k(s, x) of (n, d) inputs, (l, n)."""
    some = some.astype(np.float64)
    gram = kernel.gram(some, some)
    if not np.isfinite(gram).all():
        raise NumericalError(OVERFLOW_MESSAGE)
    least = ROUNDING * float(np.diag(gram).max())
    n_lambdas = [len(some) * max(lambda_, least) for lambda_ in lambdas]
    factors = [la.cholesky(gram + n_lambda * np.eye(len(some)), lower=True) for n_lambda in n_lambdas]
    found = np.empty((len(factors), len(x)))
    for start in range(0, len(x), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        block = x[rows].astype(np.float64)
        near, whole = kernel.gram(some, block), kernel.diagonal(block)  # (M, b)
        for each, factor in zip(found, factors, strict=True):
            seen = la.solve_triangular(factor, near, lower=True, check_finite=False)
            each[rows] = whole - np.einsum("ij,ij->j", seen, seen)
    if not np.isfinite(found).all():
        raise NumericalError(OVERFLOW_MESSAGE)
    return np.maximum(found, 0)


def _inclusion_probabilities(sizes: Values, count: int) -> Values:
    """Return inclusion probabilities (n,) proportional to positive sizes and at most 1, with a sum of count < n."""
    certain = np.zeros(len(sizes), dtype=bool)
    while True:
        left = count - certain.sum()
        probabilities = np.where(certain, 1.0, left * sizes / sizes[~certain].sum())
        if (probabilities <= 1).all():
            return probabilities
        certain |= probabilities >= 1


def nystroem_details(
    measured: nystroem.NystroemNorms, landmarks: nystroem.Landmarks, options: SolverOptions, run: Run, reason: str
) -> dict[str, Any]:
    """Return dof and solver of a Nyström approximation."""
    n, d = landmarks.rows, landmarks.landmarks.shape[1]
    count, columns = measured.coefficients.shape
    return {
        "dof": measured.dof,
        "dof_error": measured.dof_error,
        "solver": {
            "name": "nystroem",
            "reason": reason,
            "landmarks": count,
            "landmark_sampling": options.landmark_sampling,
            "error": float(measured.errors[0]),
            "landmark_error": options.landmark_error,
            "bias_correction": float(measured.corrections[0]),
            "mean_rows": len(landmarks.evaluated),
            "validation_rows": len(landmarks.validation),
            "flops": flops(n, d, count, columns, run.limits),
            "precision": run.precision,
            "device": run.device or "numpy",
        },
    }


def nystroem_warnings(
    measured: nystroem.NystroemNorms, landmarks: nystroem.Landmarks, options: SolverOptions, features: Sequence[Message]
) -> tuple[Message, ...]:
    """Return the warnings for a value computed with the Nyström approximation, after those about its features."""
    value, error, correction = (float(each[0]) for each in (measured.means, measured.errors, measured.corrections))
    share = f" ({100 * error / value:.2g} % of the value)" if value else ""
    message = f"approximation with {len(landmarks.landmarks):,} landmarks: the error may be {error:.2g}{share}"
    if not measured.is_accurate(options.landmark_error):
        message += (
            f", which is above --landmark-error {options.landmark_error:g}. Pass more --landmarks, or a larger"
            " --max-flops or --memory. The verdict is still valid"
        )
    if correction > options.landmark_error * value:
        message += f". A bias correction of {correction:.2g} is added to the mean, but not to rows or quantiles"
    return (*few_dof(measured.dof), *features, Message("approximation", message))


def sample_rows(rows: Predictions, size: int, run: Run) -> Indices:
    """Return a uniform sample of rows: those with the smallest hashes of ranks of targets and means, apart if tied."""
    hashed = np.full(len(rows), hash_key(run), dtype=np.uint64)
    for column in targets_and_means(rows):
        hashed = mix(hashed ^ np.unique(column, return_inverse=True)[1].astype(np.uint64))
    hashed ^= mix(occurrences(hashed))
    return bottom_k(hashed, size)


def targets_and_means(rows: Predictions) -> Values:
    """Return the columns of targets and predicted means, (k, n)."""
    return np.concatenate([each.reshape(len(rows), -1).T for each in (rows.targets(), rows.distributions().mean())])
