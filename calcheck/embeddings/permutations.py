"""Permutation nulls of two samples, within strata of the inputs, and features of their targets."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from calcheck.core import la
from calcheck.distributions import Samples
from calcheck.embeddings.rbf import SharedFeatures
from calcheck.embeddings.target_kernels import DataSet, FeatureBounds
from calcheck.errors import Message
from calcheck.execution.run import RandomStream, Run, one_blas_thread
from calcheck.kernels.kernel_functions import Kernel
from calcheck.linalg.gram import PivotedCholesky
from calcheck.typing import Indices, Mask, Values

GROUP = 6  # Rows per group: larger groups reject too often for strongly shifted inputs, smaller groups lose power
MIN_EXCHANGEABLE = 0.5  # share of exchangeable rows below which there is a warning
NO_OVERLAP = "the inputs of the two samples do not overlap, so the samples cannot be compared at any input"
NOT_EXACT = {
    "input": "the samples have different inputs: permutations among neighboring rows are exact if the inputs"
    " have the same distribution, and approximate otherwise",
    "propensity": "the samples have different inputs: permutations are among rows with similar propensities, so p"
    " is approximate, and too small if the two input distributions differ strongly",
}
MAX_STEPS, STEP_TOLERANCE = 50, 1e-8  # Newton's method: maximum iterations, and step size at which it stops
RESIDUAL_TOLERANCE = 1e-12  # Maximum residual of the low-rank approximation, relative to the kernel's diagonal
MIN_ROWS_PER_LANDMARK = 4  # Minimum rows per landmark of the low-rank approximation; below, the full kernel is cheaper
MAX_FULL_ROWS = 4096  # Maximum rows of both samples for the full kernel
MAX_LANDMARKS = 1024  # Maximum landmarks of the low-rank approximation
MAX_FACTORS = 2  # Number of cached factors: one per sample
Embedded = tuple[Values, Values | None, Values | None]
TARGET_TOLERANCE = 1e-13  # Maximum residual of a squared norm, relative to it
MAX_FEATURES = 4096  # Maximum rank; a Laplace kernel needs one feature for each different target


@dataclass(frozen=True, eq=False)
class Strata:
    """Groups of rows within which labels are permuted."""

    group: Indices  # (n,), group number of each row
    labels: Mask  # (n,), whether a row is from the first sample
    # How groups are formed: equal inputs, consecutive inputs, or similar propensity scores; or all rows
    by: Literal["equal inputs", "input", "propensity", "all rows"]

    @property
    def description(self) -> str:
        """Return how labels are permuted, for reports."""
        return "permuted over all rows" if self.by == "all rows" else f"permuted by {self.by}"

    @property
    def exchangeable(self) -> int:
        """Return the number of rows in groups that contain rows of both samples."""
        both = np.bincount(self.group, self.labels) * np.bincount(self.group, ~self.labels)
        return int((both[self.group] > 0).sum())

    def permuted(self, rng: Generator, count: int) -> Iterator[Mask]:
        """Yield permuted labels, (n,); the number of rows of each sample in each group is unchanged."""
        ordered = np.argsort(self.group, kind="stable")
        for _ in range(count):
            labels = np.empty_like(self.labels)
            labels[ordered] = self.labels[np.lexsort((rng.random(len(labels)), self.group))]
            yield labels


def strata(x: Values, labels: Mask, features: Callable[[], Values]) -> Strata:
    """Return groups of rows within which labels are permuted: exact if every input occurs in both samples."""
    same, first, second = _equal_inputs(x, labels)
    if (first > 0).all() and (second > 0).all():
        return Strata(same, labels, "equal inputs")
    if x.shape[1] == 1:
        return Strata(_neighbors(x[:, 0]), labels, "input")
    return Strata(_neighbors(propensity(features(), labels)), labels, "propensity")


def joint_strata(x: Values, labels: Mask) -> Strata:
    """Return groups of rows of two samples, to compare inputs and targets together: all rows, or equal inputs.

    If each input is equally frequent in both samples, as for draws of a model at the inputs of the data, exchanging
    other rows would make the inputs differ, which those of the samples do not.
    """
    same, first, second = _equal_inputs(x, labels)
    if (first * second.sum() == second * first.sum()).all():
        return Strata(same, labels, "equal inputs")
    return one_stratum(labels)


def one_stratum(labels: Mask) -> Strata:
    """Return a single group of all rows."""
    return Strata(np.zeros(len(labels), dtype=np.intp), labels, "all rows")


def _equal_inputs(x: Values, labels: Mask) -> tuple[Indices, Values, Values]:
    """Return the number of the distinct input of each row, (n,), and the rows of each sample per distinct input."""
    _, same = np.unique(x, axis=0, return_inverse=True)
    same = np.asarray(same.ravel(), dtype=np.intp)
    first, second = (np.asarray(np.bincount(same, chosen), dtype=np.float64) for chosen in (labels, ~labels))
    return same, first, second


def _neighbors(score: Values) -> Indices:
    """Return the group numbers of rows grouped by consecutive scores; ties are never split."""
    _, place, counts = np.unique(score, return_inverse=True, return_counts=True)
    start = np.cumsum(counts) - counts
    _, group = np.unique(start // GROUP, return_inverse=True)
    return np.asarray(group[place])


def propensity(features: Values, labels: Mask) -> Values:
    """Return the log odds of the first sample at each row, (n,), by logistic regression with the prior w ~ N(0, I).

    The influence of the prior decreases with the number of rows, because an input shift that the classifier misses
    would be mistaken for a difference between the conditional distributions.
    """
    n, q = features.shape
    size = float(np.einsum("ij,ij->", features, features)) / n or 1.0
    design = np.concatenate([np.ones((n, 1)), features / np.sqrt(size)], axis=1)
    penalty = np.r_[0.0, np.full(q, 1 / n)]
    weights = np.zeros(q + 1)
    for _ in range(MAX_STEPS):
        probability = 1 / (1 + np.exp(-design @ weights))
        gradient = design.T @ (probability - labels) / n + penalty * weights
        hessian = (design.T * (probability * (1 - probability))) @ design / n + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        weights = weights - step
        if np.abs(step).max() < STEP_TOLERANCE:
            break
    return np.asarray(design @ weights)


def permutation_warnings(groups: Strata) -> tuple[Message, ...]:
    """Return warnings about why p is not exact."""
    warnings = [Message("permutations-approximate", NOT_EXACT[groups.by])] if groups.by in NOT_EXACT else []
    if groups.exchangeable < MIN_EXCHANGEABLE * len(groups.labels):
        share = f"{groups.exchangeable:,} of {len(groups.labels):,} rows"
        text = f"only {share} have neighbors in both files: p is for these rows, the value is for all rows"
        warnings.append(Message("permutations-partial", text))
    return tuple(warnings)


@dataclass(eq=False)
class InputKernel(ABC):
    """The kernel on the inputs of both samples, and between them and the evaluation points."""

    same: Indices  # (n,), number of the distinct input of each row
    _factors: dict[tuple[float, bytes], Any] = field(default_factory=dict, init=False)

    def regressed(self, rows: Indices, outputs: Values, lambda_: float) -> Values:
        """Return the regression of outputs (n, c) on the inputs of n rows, evaluated at the points, (m, c)."""
        key = lambda_, self.same[rows].tobytes()
        if key not in self._factors:
            if len(self._factors) == MAX_FACTORS:
                self._factors.clear()
            system = self._system(rows)
            system[np.diag_indices(len(system))] += len(rows) * lambda_
            self._factors[key] = la.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return self._solved(self._factors[key], rows, outputs)

    @abstractmethod
    def _system(self, rows: Indices) -> Values:
        """Return the matrix of the linear system without n_lambda on its diagonal."""

    @abstractmethod
    def _solved(self, factor: Any, rows: Indices, outputs: Values) -> Values:
        """Return the regression at the points, given the Cholesky factor of the system."""

    @property
    def details(self) -> dict[str, Any]:
        """Return the method and its settings."""
        return {"method": "full"}


@dataclass(eq=False)
class FullKernel(InputKernel):
    """Exact regression: k(points, x) (K + n_lambda I)^-1 R."""

    gram: Values  # (n, n), K of all rows
    at: Values  # (m, n), k(points, x)

    def _system(self, rows: Indices) -> Values:
        return self.gram[rows].take(rows, axis=1)  # several times faster than indexing both axes at once

    def _solved(self, factor: Any, rows: Indices, outputs: Values) -> Values:
        coefficients = np.zeros((len(self.gram), outputs.shape[1]))
        coefficients[rows] = la.cho_solve(factor, outputs, check_finite=False)
        return self.at @ coefficients


@dataclass(eq=False)
class LowRankKernel(InputKernel):
    """Low-rank regression: Z(points) (Z^T Z + n_lambda I)^-1 Z^T R, with K ~ Z Z^T."""

    rows: Values  # (n, q), Z
    at: Values  # (m, q), Z(points)
    missed: float  # Largest residual of Z Z^T, relative to the kernel's diagonal

    def _system(self, rows: Indices) -> Values:
        return np.asarray(self.rows[rows].T @ self.rows[rows])

    def _solved(self, factor: Any, rows: Indices, outputs: Values) -> Values:
        return np.asarray(self.at @ la.cho_solve(factor, self.rows[rows].T @ outputs, check_finite=False))

    @property
    def details(self) -> dict[str, Any]:
        return {"method": "low rank", "rank": self.rows.shape[1], "relative_error": self.missed}


def low_rank_kernel(kernel: Kernel, x: Values, points: Values, max_rank: int) -> LowRankKernel:
    """Return the low-rank kernel Z Z^T by pivoted Cholesky of inputs x (n, d); the pivots are landmarks."""
    n, inputs_and_points = len(x), np.concatenate([x, points])
    diagonal = np.asarray(kernel.diagonal(inputs_and_points), dtype=np.float64)

    def products(pivot: int) -> Values:
        return np.asarray(kernel.gram(inputs_and_points, x[pivot : pivot + 1])[:, 0])

    found = PivotedCholesky(diagonal, products, max_rank)
    found.represent(n, RESIDUAL_TOLERANCE * diagonal[:n])
    missed = float((found.residuals[:n] / diagonal[:n]).max())
    _, same = np.unique(x, axis=0, return_inverse=True)
    return LowRankKernel(same.ravel(), found.factor[:, :n].T.copy(), found.factor[:, n:].T.copy(), missed)


def input_kernel_of(kernel: Kernel, x: Values, points: Values, run: Run) -> tuple[InputKernel, LowRankKernel]:
    """Return the kernel on inputs, full or low-rank, and its low-rank approximation of any accuracy."""
    affordable = max(1, run.memory // (4 * 8 * (len(x) + len(points))))
    low = low_rank_kernel(kernel, x, points, min(MAX_LANDMARKS, max(1, len(x) // MIN_ROWS_PER_LANDMARK), affordable))
    fits = len(x) <= MAX_FULL_ROWS and 8 * len(x) * (len(x) + len(points)) <= run.memory
    if low.missed > RESIDUAL_TOLERANCE and fits:
        return FullKernel(low.same, kernel.gram(x, x), kernel.gram(points, x)), low
    return low, low


@dataclass(frozen=True, eq=False)
class PermutationNull:
    """Distances of the samples and of the permutations, the samples first."""

    # (1 + R,), mean over points of |U_A(x) - U_B(x)|, or of its square, with the kernel on targets of each permutation;
    # NaN if it has none
    values: Values
    at_points: Values  # (1 + R, m), the same at each of m points, with the kernel on targets of the samples


def permutation_null(
    kernel: InputKernel,
    outputs: "PooledOutputs | RescaledOutputs",
    groups: Strata,
    count: int,
    *,
    lambdas: tuple[float, float],
    power: int = 1,
    rng: Generator,
    run: Run,
) -> PermutationNull:
    """Return the distances between the embeddings of two samples, and after each of R permutations of the labels."""
    # ordered by group, so that permuting labels among equal inputs leaves the inputs of each sample unchanged
    order = np.argsort(groups.group, kind="stable")
    values, at_points = np.full(1 + count, np.nan), []
    for number, labels in enumerate(chain([groups.labels], groups.permuted(rng, count))):
        samples = [order[labels[order]], order[~labels[order]]]
        with one_blas_thread():  # many small products
            embedded = outputs.of_division(samples[0])
            if embedded is not None:
                observed, rescaled, fixed = embedded
                pairs = zip(samples, lambdas, strict=True)
                first, second = (kernel.regressed(rows, observed[rows], lambda_) for rows, lambda_ in pairs)
                values[number] = (_norms(first - second, rescaled) ** power).mean()
                points = _norms(first - second, fixed) ** power
                run.require_room((1 + count) * points.nbytes, f"--replicates {count:,} at {len(points):,} inputs")
                at_points.append(points)
        run.progress("permutations", (number + 1) / (1 + count))
    return PermutationNull(values, np.stack(at_points))


def _norms(features: Values, matrix: Values | None) -> Values:
    """Return the norms of features (m, r) in the kernel that a matrix converts them to, (m,)."""
    return np.asarray(np.linalg.norm(features if matrix is None else features @ matrix, axis=1))


@dataclass(frozen=True, eq=False)
class PooledOutputs:
    """Features of all targets in one kernel."""

    values: Values  # (n, r), psi of each row
    bounds: FeatureBounds  # Largest residual of a squared norm, relative to it

    @classmethod
    def from_kernel(cls, kernel: Kernel, targets: Values) -> "PooledOutputs":
        """Return features of targets (n, t) by pivoted Cholesky of their Gram matrix."""
        points, label = np.unique(targets, axis=0, return_inverse=True)
        diagonal = np.asarray(kernel.diagonal(points), dtype=np.float64)
        found = PivotedCholesky(
            diagonal, lambda pivot: kernel.gram(points, points[pivot : pivot + 1])[:, 0], min(len(points), MAX_FEATURES)
        )
        found.represent(len(points), TARGET_TOLERANCE * diagonal)
        residual = float((found.residuals / np.maximum(diagonal, np.finfo(float).tiny)).max())
        values = found.factor.T[label.ravel()]
        return cls(values, FeatureBounds(values.shape[1], max(residual, TARGET_TOLERANCE)))

    def of_division(self, first: Indices) -> Embedded:  # noqa: ARG002 - one kernel for all divisions
        return self.values, None, None


class RescaledOutputs:
    """Features in an RBF kernel whose scale is that of the first sample."""

    def __init__(
        self,
        y: Values,  # (n, t), targets of both samples
        labels: Mask,  # (n,), whether a row is from the first sample of the data
        # Returns gamma, (t,), for the targets of the first sample, or None
        bandwidths: Callable[[Values], Values | None],
        run: Run,  # Seed
    ) -> None:
        self._y, self._bandwidths = y, bandwidths
        data = DataSet(y, bandwidths(y[labels]), [])
        self._shared = SharedFeatures(data, Samples(y[:, None]), lambda: run.rng(RandomStream.FEATURES))

    def of_division(self, first: Indices) -> Embedded | None:
        each = DataSet(self._y, self._bandwidths(self._y[first]), [])
        if each.gamma is None:
            return None
        observed, _, rescaled, fixed = self._shared.rescaled(each)
        return observed, rescaled, fixed
