"""Permutation null distribution of the distance between the conditional mean embeddings of two samples.

Each permutation of the labels needs its own regressions, on different inputs. A low-rank approximation of the kernel on
the inputs of both samples, which is accurate for smooth kernels, makes these regressions cheap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.execution.prefetch import one_blas_thread
from calcheck.linalg.pivoted_cholesky import PivotedCholesky

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from calcheck.embeddings.pooled_outputs import Outputs
    from calcheck.embeddings.strata import Strata
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel

    Values = NDArray[np.float64]

RESIDUAL_TOLERANCE = 1e-12  # Maximum residual of the low-rank approximation, relative to the kernel's diagonal
MIN_ROWS_PER_LANDMARK = 4  # Minimum rows per landmark of the low-rank approximation; below, the full kernel is cheaper
MAX_FULL_ROWS = 4096  # Maximum rows of both samples for the full kernel
MAX_LANDMARKS = 1024  # Maximum landmarks of the low-rank approximation
MAX_FACTORS = 2  # Number of cached factors: one per sample


class InputKernel(ABC):
    """The kernel on the inputs of both samples, and between them and the evaluation points.

    Parameters
    ----------
    same : (n,)
        Number of the distinct input of each row.
    """

    method: str

    def __init__(self, same: NDArray[np.intp]) -> None:
        self.same = same
        self._factors: dict[tuple[float, bytes], Any] = {}

    def regressed(self, rows: NDArray[np.intp], outputs: Values, lambda_: float) -> Values:
        """Return the regression of outputs (n, c) on the inputs of n rows, evaluated at the points, (m, c)."""
        from scipy.linalg import cho_factor

        key = lambda_, self.same[rows].tobytes()
        if key not in self._factors:
            if len(self._factors) == MAX_FACTORS:
                self._factors.clear()
            system = self._system(rows)
            system[np.diag_indices(len(system))] += len(rows) * lambda_
            self._factors[key] = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return self._solved(self._factors[key], rows, outputs)

    @abstractmethod
    def _system(self, rows: NDArray[np.intp]) -> Values:
        """Return the matrix of the linear system without n_lambda on its diagonal."""

    @abstractmethod
    def _solved(self, factor: Any, rows: NDArray[np.intp], outputs: Values) -> Values:
        """Return the regression at the points, given the Cholesky factor of the system."""

    @property
    def details(self) -> dict[str, Any]:
        """Return the method and its settings."""
        return {"method": self.method}


class FullKernel(InputKernel):
    """Exact regression: k(points, x) (K + n_lambda I)^-1 R.

    Parameters
    ----------
    same : (n,)
        As in :class:`InputKernel`.
    gram : (n, n)
        K of all rows.
    at : (m, n)
        k(points, x).
    """

    method = "full"

    def __init__(self, same: NDArray[np.intp], gram: Values, at: Values) -> None:
        super().__init__(same)
        self.gram, self.at = gram, at

    def _system(self, rows: NDArray[np.intp]) -> Values:
        return self.gram[rows].take(rows, axis=1)  # several times faster than indexing both axes at once

    def _solved(self, factor: Any, rows: NDArray[np.intp], outputs: Values) -> Values:
        from scipy.linalg import cho_solve

        coefficients = np.zeros((len(self.gram), outputs.shape[1]))
        coefficients[rows] = cho_solve(factor, outputs, check_finite=False)
        return self.at @ coefficients


class LowRankKernel(InputKernel):
    """Low-rank regression: Z(points) (Z^T Z + n_lambda I)^-1 Z^T R, with K ~ Z Z^T.

    Parameters
    ----------
    same : (n,)
        As in :class:`InputKernel`.
    rows : (n, q)
        Z.
    at : (m, q)
        Z(points).
    missed : float
        Largest residual of Z Z^T, relative to the kernel's diagonal.
    """

    method = "low rank"

    def __init__(self, same: NDArray[np.intp], rows: Values, at: Values, missed: float) -> None:
        super().__init__(same)
        self.rows, self.at, self.missed = rows, at, missed

    def _system(self, rows: NDArray[np.intp]) -> Values:
        return np.asarray(self.rows[rows].T @ self.rows[rows])

    def _solved(self, factor: Any, rows: NDArray[np.intp], outputs: Values) -> Values:
        from scipy.linalg import cho_solve

        return np.asarray(self.at @ cho_solve(factor, self.rows[rows].T @ outputs, check_finite=False))

    @property
    def details(self) -> dict[str, Any]:
        return {"method": self.method, "rank": self.rows.shape[1], "relative_error": self.missed}


def low_rank_kernel(kernel: Kernel, x: Values, points: Values, max_rank: int) -> LowRankKernel:
    """Return the low-rank kernel Z Z^T by pivoted Cholesky; the pivots are landmarks.

    Parameters
    ----------
    kernel : Kernel
        k_X.
    x : (n, d)
        Normalized inputs of both samples.
    points : (m, d)
        Normalized inputs at which embeddings are compared.
    max_rank : int
        Maximum number of landmarks.
    """
    n, inputs_and_points = len(x), np.concatenate([x, points])
    diagonal = np.asarray(kernel.diagonal(inputs_and_points), dtype=np.float64)
    found = PivotedCholesky(
        diagonal, lambda pivot: kernel.gram(inputs_and_points, x[pivot : pivot + 1])[:, 0], max_rank
    )
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
    """Distances of the samples and of the permutations, the samples first.

    Parameters
    ----------
    values : (1 + R,)
        Mean over points of |U_A(x) - U_B(x)|, or of its square, with the kernel on targets of each permutation; NaN if
        it has none.
    at_points : (1 + R, m)
        The same at each of m points, with the kernel on targets of the samples.
    """

    values: Values
    at_points: Values


def permutation_null(
    kernel: InputKernel,
    outputs: Outputs,
    groups: Strata,
    count: int,
    *,
    lambdas: tuple[float, float],
    power: int = 1,
    rng: Generator,
    run: Run,
) -> PermutationNull:
    """Return the distances between the embeddings of two samples, and after each of R permutations of the labels.

    Parameters
    ----------
    kernel : InputKernel
        The kernel on inputs.
    outputs : Outputs
        Features of the targets of both samples.
    groups : Strata
        Labels of the rows, and the groups within which they are permuted.
    count : int
        Number of permutations R.
    lambdas : (float, float)
        Regularizers of the two embeddings.
    power : int
        Power of the distances: 1 or 2.
    rng : Generator
        Random generator of the permutations.
    run : Run
        Seed and progress.
    """
    # ordered by group, so that permuting labels among equal inputs leaves the inputs of each sample unchanged
    order = np.argsort(groups.group, kind="stable")
    values, at_points = np.full(1 + count, np.nan), []
    for number, labels in enumerate(chain([groups.labels], groups.permuted(rng, count))):
        samples = [order[labels[order]], order[~labels[order]]]
        with one_blas_thread():  # many small products
            embedded = outputs.of_division(samples[0])
            if embedded is not None:
                observed, rescaled, fixed = embedded
                first, second = (
                    kernel.regressed(rows, observed[rows], lambda_)
                    for rows, lambda_ in zip(samples, lambdas, strict=True)
                )
                values[number] = (_norms(first - second, rescaled) ** power).mean()
                points = _norms(first - second, fixed) ** power
                run.require_room((1 + count) * points.nbytes, f"--replicates {count:,} at {len(points):,} inputs")
                at_points.append(points)
        run.progress("permutations", (number + 1) / (1 + count))
    return PermutationNull(values, np.stack(at_points))


def _norms(features: Values, matrix: Values | None) -> Values:
    """Return the norms of features (m, r) in the kernel that a matrix converts them to, (m,)."""
    return np.asarray(np.linalg.norm(features if matrix is None else features @ matrix, axis=1))
