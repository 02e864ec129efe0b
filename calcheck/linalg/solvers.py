"""Solving (K + s I) B = R: a Cholesky factor, or block conjugate gradients that need products with K only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from calcheck.errors import NumericalError
from calcheck.execution.backend import namespace

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.execution.backend import Array
    from calcheck.execution.context import Progress
    from calcheck.linalg.gram import Gram
    from calcheck.linalg.preconditioner import Preconditioner

    Suggest = Callable[[int, float], Preconditioner | None]

INVERSE_COLUMNS = 256  # of the inverse factor at a time
MOST_ITERATIONS = 1000
QR_ROWS = 4096  # that are made orthonormal at a time
PATIENCE = 40  # iterations without a better residual: it may rise for a while, but then rounding has taken over


@dataclass(frozen=True, eq=False)
class Solution:
    """B with (K + s I) B = R.

    Parameters
    ----------
    coefficients : (n, c)
        B.
    iterations : int
        Products with K that it took; 0 for a factorization.
    preconditioner : int
        Features of the preconditioner; 0 if there was none.
    """

    coefficients: Array
    iterations: int
    preconditioner: int = 0


class Cholesky:
    """A factor of K + s I; exact to rounding, for any number of right-hand sides.

    Parameters
    ----------
    gram : Gram
        K; its full matrix becomes the factor, so there is one n x n matrix at a time.
    shift : float
        s > 0.
    progress : callable
        Is told when the factorization begins and ends.

    Raises
    ------
    NumericalError
        K + s I is not positive definite in this precision.
    """

    def __init__(self, gram: Gram, shift: float, progress: Progress) -> None:
        matrix = gram.dense()
        progress("factorize", 0.0)
        diagonal = namespace(matrix).arange(gram.n)
        matrix[diagonal, diagonal] += shift
        try:
            self.factor = _factorize(matrix)
        except (np.linalg.LinAlgError, RuntimeError) as error:
            msg = (
                f"the kernel matrix plus {shift:.3g} on its diagonal is not positive definite in {matrix.dtype}."
                " Pass a larger --lambda, --normalize l2, or --precision float64"
            )
            raise NumericalError(msg) from error
        progress("factorize", 1.0)
        self._trace: float | None = None

    def solve(self, rhs: Array) -> Solution:
        """Solve for (n, c) right-hand sides."""
        half = _solve_triangular(self.factor, rhs, transposed=False)
        return Solution(_solve_triangular(self.factor, half, transposed=True), 0)

    def trace_of_inverse(self) -> float:
        """Return tr (K + s I)^-1 = |L^-1|_F^2, a block of columns of L^-1 at a time.

        By forward substitution in blocks: only views of L are used, for a copy of its corner would be a second matrix.
        """
        if self._trace is None:
            self._trace = self._summed()
        return self._trace

    def _summed(self) -> float:
        """Sum the squares of L^-1."""
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
        return total


def _factorize(matrix: Array) -> Array:
    """Overwrite a symmetric matrix by its lower Cholesky factor."""
    if isinstance(matrix, np.ndarray):
        from scipy.linalg import cholesky

        # the transpose is the same matrix in the order that LAPACK overwrites
        return cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    import torch

    return torch.linalg.cholesky(matrix.mT, out=matrix.mT)


def _solve_triangular(factor: Array, rhs: Array, *, transposed: bool) -> Array:
    """Solve L b = r, or L^T b = r."""
    if isinstance(factor, np.ndarray):
        from scipy.linalg import solve_triangular

        trans: Literal[0, 1] = 1 if transposed else 0
        return solve_triangular(factor, rhs, lower=True, trans=trans, check_finite=False)
    import torch

    return torch.linalg.solve_triangular(factor.mT if transposed else factor, rhs, upper=transposed)


def conjugate_gradients(
    gram: Gram, shift: float, rhs: Array, *, tolerance: float, progress: Progress, suggest: Suggest | None = None
) -> Solution:
    """Solve by block conjugate gradients, all right-hand sides in one Krylov space.

    The residual is kept as Q S with orthonormal Q, which stays stable when right-hand sides are (nearly) dependent, as
    features of targets are. Cost: one product with K an iteration; 5 to 10 iterations at the paper's lambda.

    Parameters
    ----------
    gram : Gram
        K.
    shift : float
        s > 0.
    rhs : (n, c)
        R.
    tolerance : float
        Stop when the residual's Frobenius norm is below this share of that of R.
    progress : callable
        Is told how far the residual has come, on a log scale.
    suggest : callable
        Is told iterations and the residual's share after each, and returns a preconditioner once it has one: from then
        on directions are conjugate anew.

    Returns
    -------
    Solution
        The best that was found; it may miss the tolerance where precision ended first.

    Notes
    -----
    BCGrQ: A. A. Dubrulle, Retooling the method of block conjugate gradients, ETNA 12 (2001), 216-233. Preconditioned by
    P, directions start as P^-1 Q; Q stays orthonormal, so that S has the norm of the residual itself.
    """
    xp = namespace(rhs)
    coefficients = xp.zeros_like(rhs)
    basis, scale = _orthonormal(rhs)  # R = Q S
    start = float(xp.linalg.matrix_norm(scale))
    if start == 0:
        return Solution(coefficients, 0)
    search, since = Search(basis), None  # since: what was added after the best, where the residual has risen
    best_residual, best_iteration, iterations = 1.0, 0, 0
    while best_residual > tolerance and iterations < min(MOST_ITERATIONS, best_iteration + PATIENCE):
        step, missed = _stepped(gram, shift, search.directions, basis)
        if since is None:
            since = xp.zeros_like(rhs)
        since += search.directions @ (step @ scale)
        basis, turn = _orthonormal(missed)
        scale = turn @ scale
        iterations += 1
        residual = float(xp.linalg.matrix_norm(scale)) / start
        if not math.isfinite(residual):
            break
        if residual < best_residual:
            coefficients += since
            since, best_residual, best_iteration = None, residual, iterations
        progress("solve", min(1.0, math.log(max(best_residual, tolerance)) / math.log(tolerance)))
        if best_residual > tolerance:
            search.turn(basis, turn, search.preconditioner or (suggest and suggest(iterations, residual)))
    return Solution(coefficients, iterations, search.preconditioner.rank if search.preconditioner else 0)


class Search:
    """Directions of search, conjugate to those before.

    Parameters
    ----------
    basis : (n, c)
        Q, of the first residual.

    Attributes
    ----------
    directions : (n, c)
        D.
    preconditioner : Preconditioner or None
        P^-1, up to a factor.
    """

    def __init__(self, basis: Array) -> None:
        self.directions = basis
        self.preconditioner: Preconditioner | None = None
        self._inner: Array = None  # Q^T P^-1 Q

    def turn(self, basis: Array, turn: Array, preconditioner: Preconditioner | None) -> None:
        """Go on with the residual's next basis Q (n, c): what the last step left is Q T, T (c, c)."""
        if preconditioner is None:
            self.directions = basis + self.directions @ turn.T
            return
        before, applied = self._inner, preconditioner(basis)
        self._inner = basis.T @ applied
        if self.preconditioner is not None:
            applied += self.directions @ namespace(basis).linalg.solve(before, turn.T @ self._inner)
        self.directions, self.preconditioner = applied, preconditioner


def _stepped(gram: Gram, shift: float, directions: Array, basis: Array) -> tuple[Array, Array]:
    """Return the step along directions D that makes the residual's basis orthogonal to them, and what is left of it."""
    product = gram @ directions
    product += shift * directions
    step = namespace(product).linalg.solve(directions.T @ product, directions.T @ basis)
    return step, basis - product @ step


def _orthonormal(block: Array) -> tuple[Array, Array]:
    """Return Q, S with block = Q S, Q (n, c) orthonormal and S (c, c) upper triangular.

    By the Cholesky factor of block^T block, twice, where the columns are independent enough for that to be as good as
    Householder's reflections, and several times faster.
    """
    first = _cholesky_qr(block)
    second = first and _cholesky_qr(first[0])
    if first is None or second is None:
        return _householder(block)
    return second[0], second[1] @ first[1]


def _householder(block: Array) -> tuple[Array, Array]:
    """Return Q, S by reflections: of some rows at a time, and then of what these leave, for little memory."""
    xp = namespace(block)
    height = max(QR_ROWS, 4 * block.shape[1])
    parts = [xp.linalg.qr(block[start : start + height]) for start in range(0, len(block), height)]
    inner, scale = xp.linalg.qr(xp.concat([part for _, part in parts]))
    ends = np.cumsum([len(part) for _, part in parts])
    turned = [basis @ inner[end - len(part) : end] for (basis, part), end in zip(parts, ends.tolist(), strict=True)]
    return xp.concat(turned), scale


def _cholesky_qr(block: Array) -> tuple[Array, Array] | None:
    """Return Q, S by one Cholesky factor; None if the columns are nearly dependent."""
    xp = namespace(block)
    try:
        factor = xp.linalg.cholesky(block.T @ block)
    except (np.linalg.LinAlgError, RuntimeError):
        return None
    diagonal = xp.linalg.diagonal(factor)
    if not float(xp.min(diagonal)) > xp.finfo(block.dtype).eps ** 0.4 * float(xp.max(diagonal)):
        return None
    return block @ xp.linalg.inv(factor).T, factor.T
