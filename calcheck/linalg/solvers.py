"""Solvers for (K + n_lambda I) B = R: Cholesky, and block conjugate gradients, which need only products with K."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from calcheck.errors import NumericalError
from calcheck.execution.backend import Backend, namespace
from calcheck.execution.run import Progress
from calcheck.linalg.gram import Gram, Nystroem, RowBlocks, tile_shape
from calcheck.typing import Array, Indices

INVERSE_COLUMNS = 256  # Columns of the inverse factor per block
MAX_ITERATIONS = 1000
QR_ROWS = 4096  # Rows per block of the QR decomposition
PATIENCE = 40  # Iterations without a smaller residual before rounding is assumed to dominate
MAX_LANDMARKS = 1024  # Maximum landmarks: factorizing them is cheap compared with a product with K
ROWS_PER_LANDMARK = 8  # Minimum rows per landmark
TRIAL_ITERATIONS = 4  # Iterations without a preconditioner before the remaining number is estimated
SAVED = 0.15  # Assumed share of iterations saved (flat spectrum); more than half for a fast decay
NEGLIGIBLE = 0.01  # Eigenvalues of K below this multiple of n_lambda are dropped


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution B of (K + n_lambda I) B = R."""

    coefficients: Array  # (n, c), B
    iterations: int  # Number of products with K; 0 for a factorization
    preconditioner: int = 0  # Rank of the preconditioner; 0 if none was used


class Cholesky:
    """Cholesky factor of K + n_lambda I: exact to rounding, for any number of right-hand sides.

    If K = Z Z^T with few columns, it is that of Z^T Z + n_lambda I (Woodbury).
    """

    def __init__(
        self,
        gram: Gram,  # K; the full matrix is overwritten by the factor, so only one n x n matrix is in memory
        n_lambda: float,  # n * lambda > 0
        progress: Progress,  # Called when the factorization begins and ends
    ) -> None:
        self._features, self._shift, self._n = gram.features, n_lambda, gram.n
        matrix = gram.dense() if self._features is None else self._features.T @ self._features
        progress("factorization", 0.0)
        diagonal = namespace(matrix).arange(len(matrix))
        matrix[diagonal, diagonal] += n_lambda
        try:
            self.factor = _factorize(matrix)
        except (np.linalg.LinAlgError, RuntimeError) as error:
            raise NumericalError(
                f"the kernel matrix plus n * lambda = {n_lambda:.3g} on its diagonal is not positive definite in"
                f" {matrix.dtype}."
                " Pass a larger --lambda, --normalize l2, or --precision float64"
            ) from error
        progress("factorization", 1.0)

    def solve(self, rhs: Array) -> Solution:
        """Return the solution for (n, c) right-hand sides."""
        if self._features is None:
            return Solution(self._solve(rhs), 0)
        return Solution((rhs - self.fitted(rhs)) / self._shift, 0)

    def fitted(self, rhs: Array) -> Array:
        """Return K (K + n_lambda I)^-1 R for (n, c) right-hand sides R."""
        if self._features is None:
            return rhs - self._shift * self._solve(rhs)
        return self._features @ self._solve(self._features.T @ rhs)

    def _solve(self, rhs: Array) -> Array:
        half = _solve_triangular(self.factor, rhs, transposed=False)
        return _solve_triangular(self.factor, half, transposed=True)

    @cached_property
    def trace_of_inverse(self) -> float:
        """Trace of (K + n_lambda I)^-1, |L^-1|_F^2, by blocks of columns on views of L, which copies would double."""
        xp = namespace(self.factor)
        n, total = len(self.factor), 0.0
        for start in range(0, n, INVERSE_COLUMNS):
            stop = min(start + INVERSE_COLUMNS, n)
            like = {"dtype": self.factor.dtype, "device": self.factor.device}
            columns = xp.zeros((n - start, stop - start), **like)
            for low in range(start, n, INVERSE_COLUMNS):
                rows = slice(low, min(low + INVERSE_COLUMNS, n))
                known = self.factor[rows, start:low] @ columns[: low - start]
                rhs = xp.eye(stop - start, **like) if low == start else -known
                found = _solve_triangular(self.factor[rows, rows], rhs, transposed=False)
                columns[low - start : rows.stop - start] = found
            total += float(xp.sum(columns * columns))
        return total + (self._n - n) / self._shift


def _factorize(matrix: Array) -> Array:
    """Return the lower Cholesky factor of a symmetric matrix, which is overwritten."""
    if isinstance(matrix, np.ndarray):
        from scipy.linalg import cholesky

        # the transpose is the same matrix in Fortran order, which LAPACK can overwrite
        return cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    import torch

    return torch.linalg.cholesky(matrix.mT, out=matrix.mT)


def _solve_triangular(factor: Array, rhs: Array, *, transposed: bool) -> Array:
    """Return the solution b of L b = r, or of L^T b = r."""
    if isinstance(factor, np.ndarray):
        from scipy.linalg import solve_triangular

        trans: Literal[0, 1] = 1 if transposed else 0
        return solve_triangular(factor, rhs, lower=True, trans=trans, check_finite=False)
    import torch

    return torch.linalg.solve_triangular(factor.mT if transposed else factor, rhs, upper=transposed)


class Preconditioner:
    """Apply n_lambda P^-1 = I - Z (Z^T Z + n_lambda I)^-1 Z^T (Woodbury) for P = Z Z^T + n_lambda I.

    K ~ Z Z^T is the Nyström approximation with M landmarks: Z = K_nM V E^-1/2 with K_MM = V E V^T, without eigenvalues
    that are negligible compared with n_lambda.
    """

    def __init__(
        self,
        gram: Gram,  # K
        n_lambda: float,  # n * lambda > 0
        landmarks: Indices,  # (M,), row numbers of the landmarks
        array: Backend,  # Array library
        *,
        memory: int,  # Maximum bytes of Z; a larger Z is recomputed at every use
    ) -> None:
        share = len(landmarks) / gram.n  # an eigenvalue of K corresponds to this share of it in K_MM
        nystroem = Nystroem.from_eigenvectors(
            gram.kernel,
            gram.x[array.indices(landmarks)],
            array,
            smallest=NEGLIGIBLE * n_lambda * share,
            smallest_share=array.xp.finfo(array.dtype).eps,
        )
        self.rank = nystroem.rank
        height, _ = tile_shape(gram.x)
        fits = gram.n * self.rank * array.itemsize <= memory
        self._blocks = RowBlocks(gram.n, height, lambda rows: nystroem(gram.x[rows]), cached=fits)
        inner = n_lambda * np.eye(self.rank)
        for _, block in self._blocks:
            inner += array.to_numpy(block.T @ block)
        self._inverse = array.asarray(np.linalg.inv(inner))

    def __call__(self, columns: Array) -> Array:
        """Return n_lambda P^-1 R for (n, c) columns R, (n, c)."""
        inner = self._inverse @ sum(block.T @ columns[rows] for rows, block in self._blocks)
        return namespace(columns).concat([columns[rows] - block @ inner for rows, block in self._blocks])


def pays_off(
    shape: tuple[int, int], columns: int, *, cached: bool, cached_features: bool, residual: float, tolerance: float
) -> bool:
    """Return whether a preconditioner is estimated to save multiplications, by the rate of convergence so far."""
    (n, d), landmarks = shape, n_landmarks(shape[0])
    product = n**2 * (columns + (0 if cached else d / 2))  # only the upper triangle of K is computed
    features = n * landmarks * (d + landmarks)
    setup = features + n * landmarks**2 + 10 * landmarks**3  # Z, Z^T Z, an eigendecomposition and an inverse
    application = 2 * n * landmarks * columns + (0 if cached_features else 2 * features)
    remaining = TRIAL_ITERATIONS * (math.log(tolerance) / math.log(residual) - 1) if residual < 1 else math.inf
    return remaining * (SAVED * product - (1 - SAVED) * application) > setup


def n_landmarks(n: int) -> int:
    """Return the number of landmarks of a preconditioner for n rows."""
    return max(1, min(MAX_LANDMARKS, n // ROWS_PER_LANDMARK))


Suggest = Callable[[int, float], Preconditioner | None]


def conjugate_gradients(
    gram: Gram, n_lambda: float, rhs: Array, *, tolerance: float, progress: Progress, suggest: Suggest | None = None
) -> Solution:
    """Solve by block conjugate gradients, BCGrQ: all right-hand sides (n, c) share one Krylov space.

    The residual is Q S with orthonormal Q, which is stable for (nearly) dependent right-hand sides. Cost: one product
    with K per iteration; 5 to 10 iterations at the paper's lambda. With a preconditioner P, directions start as P^-1 Q.

    Source: A. A. Dubrulle, Retooling the method of block conjugate gradients, ETNA 12 (2001), 216-233.
    """
    xp = namespace(rhs)
    coefficients = xp.zeros_like(rhs)
    basis, scale = _orthonormal(rhs)  # R = Q S
    start = float(xp.linalg.matrix_norm(scale))
    if start == 0:
        return Solution(coefficients, 0)
    search, since = Search(basis), None  # since: the update after the best iteration
    best_residual, best_iteration, iterations = 1.0, 0, 0
    while best_residual > tolerance and iterations < min(MAX_ITERATIONS, best_iteration + PATIENCE):
        step, residual_block = _stepped(gram, n_lambda, search.directions, basis)
        if since is None:
            since = xp.zeros_like(rhs)
        since += search.directions @ (step @ scale)
        basis, turn = _orthonormal(residual_block)
        scale = turn @ scale
        iterations += 1
        residual = float(xp.linalg.matrix_norm(scale)) / start
        if not math.isfinite(residual):
            break
        if residual < best_residual:
            coefficients += since
            since, best_residual, best_iteration = None, residual, iterations
        progress("solver", min(1.0, math.log(max(best_residual, tolerance)) / math.log(tolerance)))
        if best_residual > tolerance:
            search.turn(basis, turn, search.preconditioner or (suggest and suggest(iterations, residual)))
    return Solution(coefficients, iterations, search.preconditioner.rank if search.preconditioner else 0)


@dataclass(eq=False)
class Search:
    """Search directions, conjugate to the previous ones."""

    directions: Array  # (n, c), search directions D: at first Q of the residual
    preconditioner: Preconditioner | None = None  # P^-1 up to a constant factor
    _inner: Array = None  # Q^T P^-1 Q

    def turn(self, basis: Array, turn: Array, preconditioner: Preconditioner | None) -> None:
        """Update the directions for the next residual basis Q (n, c); the last step left the residual Q T, T (c, c)."""
        if preconditioner is None:
            self.directions = basis + self.directions @ turn.T
            return
        before, applied = self._inner, preconditioner(basis)
        self._inner = basis.T @ applied
        if self.preconditioner is not None:
            applied += self.directions @ namespace(basis).linalg.solve(before, turn.T @ self._inner)
        self.directions, self.preconditioner = applied, preconditioner


def _stepped(gram: Gram, n_lambda: float, directions: Array, basis: Array) -> tuple[Array, Array]:
    """Return the step along directions D that makes the residual orthogonal to them, and the new residual."""
    product = gram @ directions
    product += n_lambda * directions
    step = namespace(product).linalg.solve(directions.T @ product, directions.T @ basis)
    return step, basis - product @ step


def _orthonormal(block: Array) -> tuple[Array, Array]:
    """Return Q (n, c) orthonormal and S (c, c) upper triangular with block = Q S, by Cholesky QR twice if it holds."""
    first = _cholesky_qr(block)
    second = first and _cholesky_qr(first[0])
    if first is None or second is None:
        return _householder(block)
    return second[0], second[1] @ first[1]


def _householder(block: Array) -> tuple[Array, Array]:
    """Return Q, S by Householder QR in blocks of rows and then of their triangular factors, to save memory."""
    xp = namespace(block)
    height = max(QR_ROWS, 4 * block.shape[1])
    parts = [xp.linalg.qr(block[start : start + height]) for start in range(0, len(block), height)]
    inner, scale = xp.linalg.qr(xp.concat([part for _, part in parts]))
    ends = np.cumsum([len(part) for _, part in parts])
    turned = [basis @ inner[end - len(part) : end] for (basis, part), end in zip(parts, ends.tolist(), strict=True)]
    return xp.concat(turned), scale


def _cholesky_qr(block: Array) -> tuple[Array, Array] | None:
    """Return Q, S by Cholesky QR; None if the columns are nearly dependent."""
    xp = namespace(block)
    try:
        factor = xp.linalg.cholesky(block.T @ block)
    except (np.linalg.LinAlgError, RuntimeError):
        return None
    diagonal = xp.linalg.diagonal(factor)
    if not float(xp.min(diagonal)) > xp.finfo(block.dtype).eps ** 0.4 * float(xp.max(diagonal)):
        return None
    return block @ xp.linalg.inv(factor).T, factor.T
