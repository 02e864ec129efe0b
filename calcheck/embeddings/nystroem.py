"""Nyström ridge regression with an estimated and corrected bias.

With M landmarks and Z = K_nM, the regression is F_M = Q (Q + n_lambda I)^-1 R, Q = Z K_MM^-1 Z^T: ridge regression in
the span of the landmarks. Its difference from the exact regression F has a closed form. With A = (R - F_M) / n_lambda
and g = K A - F_M,

    F - F_M = n_lambda (K + n_lambda I)^-1 g,

which is the residual of the ridge regression of g. It is estimated on S randomly sampled validation rows, where g is a
sum over all rows: g is regressed on the S rows with the same lambda and with weights w. The weight of a row is the
inverse of its inclusion probability. Rows that the landmarks represent badly have larger probabilities, and rows far
from all others are always included.

Let h be the leverage of a validation row in this weighted regression. The residual of a row is too small, because the
row takes part with a weight of w. The leave-one-out residual, which is larger by a factor of 1 / (1 - h), is too large.
A factor of 1 / sqrt(1 - h) is close to the truth: for d = 16, 512 and lambda = 0.1, 0.01 it is off by at most a tenth
of the distance between the two. With w = 1, a row represents only itself: the residual is exact, and the factor is 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calcheck.core import la
from calcheck.distributions import Predictive
from calcheck.distributions.row_random import RowRandom
from calcheck.embeddings.rbf import FewDirections, OutputFeatures
from calcheck.embeddings.target_kernels import KernelSettings
from calcheck.errors import NumericalError
from calcheck.execution.backend import Backend, backend
from calcheck.execution.run import Run, one_blas_thread, replicate_seed
from calcheck.kernels.bandwidths import OVERFLOW_MESSAGE, Scaling
from calcheck.kernels.kernel_functions import Kernel
from calcheck.linalg.gram import RESIDUAL_TOLERANCE, Nystroem, eigenvectors, leading
from calcheck.predictions import Predictions, batch_row_keys
from calcheck.typing import Array, Floats, Values

Groups = tuple[int, int]
MIN_EIGENVALUE = {"float64": 1e-13, "float32": 1e-9}  # Eigenvalues of K_MM below this share of the largest are dropped
ROUNDING_FACTOR = 1.0  # Relative rounding error of a value, in units of machine epsilon times the condition number
STANDARD_ERRORS = 2.0  # Reported error: number of standard errors of means over evaluated inputs
VALIDATION_STANDARD_ERRORS = 2.0  # Reported error: number of standard errors of means over validation inputs
EVALUATED_TOGETHER = 1 << 12  # Evaluated inputs per block
CORRECTION_ERROR = 0.02  # Reported error: share of the mean absolute correction, if not all rows are validation rows
NARROW = 0.1  # Error, relative to the width of the null distribution, that cannot change the verdict
RANGE_SHARE = 0.3  # Reported error: share of the range between the lower and upper correction


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Landmarks, evaluated inputs and validation inputs, all normalized."""

    # (M, d), landmarks c: regression functions are linear combinations of the k(c, .)
    landmarks: Floats
    # (E, d), inputs of a uniform sample of the rows that means are computed over; all rows if they are few
    evaluated: Floats
    # (S, d), validation inputs, on which the error is estimated; may be a subset of the evaluated inputs
    validation: Floats
    weights: Values  # (S,), number of rows that each validation input represents; the sum is n
    rows: int  # Number of rows n
    validation_from_rows: bool = True  # Whether the validation inputs are from these rows

    @property
    def inclusion_probabilities(self) -> Values:
        """Inclusion probability of each validation input, (S,); 0 if the validation inputs are not from these rows."""
        return np.minimum(1 / self.weights, 1) if self.validation_from_rows else np.zeros(len(self.weights))


@dataclass(frozen=True, eq=False)
class NystroemNorms:
    """Norms of several regressions with corrections and errors of their means."""

    values: Values  # (E, g), |F_M(x)| of each of g regressions at the evaluated inputs
    corrections: Values  # (g,), estimated mean difference between the exact norms and these values
    errors: Values  # (g,), estimated error of the corrected mean norm
    dof: float  # Effective degrees of freedom tr K (K + n_lambda I)^-1
    dof_error: float  # Maximum error of dof
    coefficients: Values  # (M, c), coefficients of the regression functions k(x, landmarks) @ coefficients
    root: Values  # (M, k), H with coefficients = H H^T Z^T R
    shares: Values  # (k,), eigenvalues of H^T Z^T Z H, between 0 and 1

    @property
    def means(self) -> Values:
        """Corrected mean norm of each regression, (g,)."""
        return np.asarray(self.values.mean(axis=0) + self.corrections)

    def is_accurate(self, tolerance: float) -> bool:
        """Return whether the relative error of the mean is below a tolerance, or too small to change the verdict."""
        error, (value, *null) = self.errors[0], self.means
        width = np.quantile(null, 0.95) - np.mean(null) if null else 0.0
        return bool(error <= tolerance * abs(value) or error <= NARROW * width)


class NystroemRidge:
    """Nyström ridge regressions of groups of outputs (o columns, then groups of q columns), and their norms."""

    def __init__(self, sums: "RowSums", kernel: Kernel, landmarks: Landmarks, run: Run) -> None:
        self._sums, self._kernel, self._landmarks, self._run = sums, kernel, landmarks, run
        if not (np.isfinite(sums.landmarks).all() and np.isfinite(sums.validation).all()):
            raise NumericalError(OVERFLOW_MESSAGE)
        self._nystroem = Nystroem.from_eigenvectors(
            kernel,
            landmarks.landmarks.astype(np.float64),  # float64 for accurate small eigenvalues
            backend(None, "float64"),
            smallest_share=MIN_EIGENVALUE[run.precision],
        )
        whitening = self._nystroem.whitening
        self._sizes, self._turned = np.linalg.eigh(whitening.T @ sums.landmarks @ whitening)

    def norms(self, lambda_: float, groups: Groups) -> NystroemNorms:
        """Return the norms of the regressions of all output groups, with their estimated bias and error."""
        sums, landmarks = self._sums, self._landmarks
        count, n_lambda = len(landmarks.landmarks), sums.n * lambda_
        sizes = np.maximum(self._sizes, 0)
        to_landmarks = self._nystroem.whitening @ self._turned
        coefficients = to_landmarks @ ((to_landmarks.T @ sums.outputs[:count]) / (sizes + n_lambda)[:, None])
        norms = np.concatenate([_norms(part, groups) for part in self._at(landmarks.evaluated, coefficients)])
        known = np.concatenate(list(self._at(landmarks.validation, coefficients)))  # (S, c)
        g = (sums.outputs[count:] - sums.validation @ coefficients) / n_lambda - known
        x = landmarks.validation.astype(np.float64)
        gram = self._kernel.gram(x, x)
        weights, inclusion_probabilities = landmarks.weights, landmarks.inclusion_probabilities
        residuals, leverage = _ridge_residual(gram, g, n_lambda / weights)
        before = _norms(known, groups)
        power = 1 - inclusion_probabilities**2
        powers = (residuals / ((1 - leverage) ** each)[:, None] for each in (0, power / 2, power))
        low, likely, high = (_norms(known + rest, groups) - before for rest in powers)
        correction = weights @ likely / sums.n
        rounding = ROUNDING_FACTOR * np.finfo(self._run.precision).eps * (1 + np.diag(gram).max() / lambda_)
        parts = (
            STANDARD_ERRORS * _error_of_mean(norms, np.full(len(norms), len(norms) / landmarks.rows)),
            VALIDATION_STANDARD_ERRORS * _error_of_mean(likely, inclusion_probabilities, weights),
            RANGE_SHARE * (weights @ (high - low)) / sums.n,
            CORRECTION_ERROR * (1 - weights @ inclusion_probabilities / sums.n) * (weights @ np.abs(likely)) / sums.n,
        )
        errors = np.linalg.norm(parts, axis=0) + rounding * norms.mean(axis=0)
        dof, dof_error = self._dof(float(np.sum(sizes / (sizes + n_lambda))), leverage, lambda_)
        root, shares = to_landmarks / np.sqrt(sizes + n_lambda), sizes / (sizes + n_lambda)
        return NystroemNorms(norms, correction, errors, dof, dof_error, coefficients, root, shares)

    def _dof(self, landmark_dof: float, leverage: Values, lambda_: float) -> tuple[float, float]:
        """Return dof and its error from bounds: the dof of landmarks and of validation rows are lower bounds."""
        rows, validation = self._landmarks.rows, self._landmarks.validation
        if len(validation) == rows:
            return float(leverage.sum()), 0.0
        mean_residual = float(self._landmarks.weights @ self.residual(validation)) / rows
        upper = min(landmark_dof + mean_residual / lambda_, float(rows))
        lower = min(max(landmark_dof, float(leverage.sum())), upper)
        return (lower + upper) / 2, (upper - lower) / 2

    def residual(self, x: Floats) -> Values:
        """Return the Nyström residual k(x, x) - z(x) . z(x) of inputs (p, d), (p,)."""
        x = x.astype(np.float64)
        features = self._nystroem(x)
        return np.asarray(np.maximum(self._kernel.diagonal(x) - np.einsum("ij,ij->i", features, features), 0))

    def _at(self, x: Floats, coefficients: Values) -> Iterator[Values]:
        """Yield the regressions at inputs (p, d) in blocks (b, c), because all replicates together take gigabytes."""
        array = self._run.backend()
        landmarks, weights = array.asarray(self._landmarks.landmarks), array.asarray(coefficients)
        for start in range(0, len(x), EVALUATED_TOGETHER):
            values = self._kernel.gram(array.asarray(x[start : start + EVALUATED_TOGETHER]), landmarks)
            yield array.to_numpy(values @ weights)


def _ridge_residual(gram: Values, values: Values, n_lambda: Values) -> tuple[Values, Values]:
    """Return the residuals of ridge regression of values (S, c) with n_lambda (S,) each, and the leverages, (S,)."""
    try:
        factor = la.cho_factor(gram + np.diag(n_lambda), lower=True)
    except np.linalg.LinAlgError as error:
        raise NumericalError(
            f"the kernel matrix plus n * lambda / weight = {n_lambda.min():.3g} on its diagonal is not positive"
            " definite. Pass a larger --lambda"
        ) from error
    leverage = 1 - n_lambda * np.diag(la.cho_solve(factor, np.eye(len(gram))))
    return n_lambda[:, None] * la.cho_solve(factor, values), leverage


def _norms(fitted: Values, groups: Groups) -> Values:
    """Return the norms of groups of columns, (p, g): the sizes are that of the first group and of all others."""
    first, each = groups
    data, others = fitted[:, :first], fitted[:, first:].reshape(len(fitted), -1, each)
    squares = np.einsum("ic,ic->i", data, data), np.einsum("igc,igc->ig", others, others)
    return np.asarray(np.sqrt(np.column_stack(squares)))


def _error_of_mean(values: Values, inclusion_probabilities: Values, weights: Values | None = None) -> Values:
    """Return the standard error of means (g,) of values (S, g) of unequal inclusion, by Hajek's approximation."""
    size = len(values)
    if size == 1:
        return np.zeros(values.shape[1])
    weights = np.ones(size) if weights is None else weights
    parts = weights[:, None] * values
    uncertain = 1 - inclusion_probabilities
    if not uncertain.any():
        return np.zeros(values.shape[1])
    spread = parts - np.average(parts, axis=0, weights=uncertain)
    return np.asarray(np.sqrt(size / (size - 1) * (uncertain @ spread**2)) / weights.sum())


@dataclass(eq=False)
class RowSums:
    """Sums over n rows, with M landmarks, S validation inputs and c outputs."""

    n: int  # Number of rows
    landmarks: Values  # (M, M), Z^T Z with Z = K_nM
    validation: Values  # (S, M), K_Sn Z
    outputs: Values  # (M + S, c), K_Mn R stacked on K_Sn R, where R are the regression outputs

    def add(self, other: "RowSums") -> None:
        """Add the sums over other rows in place."""
        self.n += other.n
        self.landmarks += other.landmarks
        self.validation += other.validation
        self.outputs += other.outputs


def rbf_features(settings: KernelSettings) -> OutputFeatures:
    """Return the features of an RBF kernel on targets, the only one that landmarks support."""
    if not isinstance(settings.features, OutputFeatures):
        raise TypeError(f"landmarks need an RBF kernel on targets, got {type(settings.features).__name__}")
    return settings.features


@dataclass(frozen=True, eq=False)
class RegressionTargets:
    """Regression outputs psi(y) - E psi(Y') of the targets and of replicates, projected on a few directions."""

    features: OutputFeatures  # psi
    directions: Values  # (r, o), orthonormal principal directions of the outputs, largest variation first
    few: int  # Number of directions q for replicates, which need less accuracy
    replicates: int  # Number of replicates R of the targets, drawn from the predictions
    run: Run  # Provides the seed of the replicates

    @property
    def groups(self) -> Groups:
        """Sizes of the output groups: o for the targets, then q for each replicate."""
        return self.directions.shape[1], self.few

    def __call__(self, rows: Predictions) -> Values:
        """Return the outputs of some rows, (b, o + R q)."""
        predictive = rows.distributions()
        y = rows.targets()
        mean = self.features.of_distributions(predictive.load()) @ self.directions
        observed = self._of(y)
        found = [observed - mean]
        if self.replicates:
            rng = RowRandom(batch_row_keys(rows, replicate_seed(self.run)))
            for drawn, _ in predictive.replicates(y, rng, range(self.replicates)):
                replicate = self._of_replicate(drawn)
                apart = replicate - mean[:, : self.few]
                if predictive.n_draws is not None:  # the mean of m draws changes by 1/m of the draw that is swapped
                    apart -= (observed[:, : self.few] - replicate) / predictive.n_draws
                found.append(apart)
        return np.concatenate(found, axis=1)

    @cached_property
    def _along_few(self) -> FewDirections | None:
        """The features of replicates; None unless targets are scalars."""
        pool, basis = self.features.pool, self.directions[:, : self.few]
        return None if pool is None else FewDirections(self.features, pool, basis)

    def _of_replicate(self, y: Values) -> Values:
        """Return the features of the targets of a replicate, (b, q)."""
        found = None if self._along_few is None else self._along_few.of_points(y.reshape(len(y), -1))
        return self._of(y)[:, : self.few] if found is None else found

    def _of(self, y: Values) -> Values:
        return self.features.of_points(y.reshape(len(y), -1)) @ self.directions


def principal_directions(features: OutputFeatures, y: Values, predictive: Predictive) -> tuple[Values, int]:
    """Return the principal directions of psi(y) - E psi(Y') over some rows, (r, r), and how many to retain."""
    difference = features.of_points(y.reshape(len(y), -1)) - features.of_distributions(predictive)
    sizes, turns = eigenvectors(difference.T @ difference)
    return turns[:, ::-1], max(1, int(leading(sizes, RESIDUAL_TOLERANCE).sum()))  # at least one, even if nothing varies


@dataclass(frozen=True, eq=False)
class RowProducts:
    """Function that computes the sums over a batch of rows."""

    kernel: Kernel  # k_X on normalized inputs
    scaling: Scaling  # Normalization of the inputs
    landmarks: Floats  # (M, d), normalized inputs
    validation: Floats  # (S, d), normalized inputs
    outputs: RegressionTargets
    run: Run  # Device and precision

    def __call__(self, batch: Predictions) -> RowSums:
        array = self.run.backend()
        landmarks = array.asarray(np.concatenate([self.landmarks, self.validation]))
        blocks = blocks_of(batch, self.run.limits.block_rows)
        sums = self._of_block(next(blocks), landmarks, array)
        for block in blocks:
            sums.add(self._of_block(block, landmarks, array))
        return sums

    def _of_block(self, block: Predictions, landmarks: Array, array: Backend) -> RowSums:
        count = len(self.landmarks)
        x = array.asarray(self.scaling.rounded(block.inputs(), precision=self.run.precision))
        values = self.kernel.gram(x, landmarks)  # (b, M + S)
        with one_blas_thread():  # many small products
            outputs = self.outputs(block)
        near = values[:, :count]
        exact = array.xp.astype(near, array.xp.float64)  # float64, because columns are nearly dependent
        return RowSums(
            n=len(block),
            landmarks=array.to_numpy(exact.T @ exact),
            validation=array.to_numpy(values[:, count:].T @ near),
            outputs=array.to_numpy(values.T @ array.asarray(outputs)),
        )


@dataclass(eq=False)
class Norms:
    """Norms at rows, in row order."""

    parts: list[Values]  # (b,) each, norms of each batch

    def add(self, other: "Norms") -> None:
        """Append the norms at other rows."""
        self.parts += other.parts

    @property
    def norms(self) -> Values:
        """The norms, (n,)."""
        return np.concatenate(self.parts)


@dataclass(frozen=True, eq=False)
class RowNorms:
    """Function that computes the norm of a regression at every row of a batch."""

    kernel: Kernel  # As in `RowProducts`, like the other fields without a comment
    scaling: Scaling
    landmarks: Floats
    coefficients: Values  # (M, q), coefficients of the regression
    run: Run

    def __call__(self, batch: Predictions) -> Norms:
        array = self.run.backend()
        landmarks, weights = array.asarray(self.landmarks), array.asarray(self.coefficients)
        parts = []
        for block in blocks_of(batch, self.run.limits.block_rows):
            x = array.asarray(self.scaling.rounded(block.inputs(), precision=self.run.precision))
            parts.append(np.linalg.norm(array.to_numpy(self.kernel.gram(x, landmarks) @ weights), axis=1))
        return Norms(parts)


def blocks_of(batch: Predictions, size: int) -> Iterator[Predictions]:
    """Yield the rows in blocks of at most ``size`` rows."""
    for start in range(0, len(batch), size):
        yield batch.take(slice(start, start + size))
