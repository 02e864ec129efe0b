"""Eigendecomposition of K: it solves (K + n_lambda I) B = R for every n_lambda."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.errors import NumericalError
from calcheck.execution.backend import namespace
from calcheck.linalg.solvers import Solution

if TYPE_CHECKING:
    from calcheck.execution.backend import Array
    from calcheck.execution.context import Progress
    from calcheck.linalg.gram import Gram


class EigenSolver:
    """Eigendecomposition K = V diag(w) V^T: exact to rounding, at the cost of a few Cholesky factorizations.

    Parameters
    ----------
    gram : Gram
        K.
    progress : callable
        Called when the decomposition begins and ends.
    """

    def __init__(self, gram: Gram, progress: Progress) -> None:
        matrix = gram.dense()
        progress("decompose", 0.0)
        self.values, self.vectors = namespace(matrix).linalg.eigh(matrix)
        progress("decompose", 1.0)

    def shifted(self, n_lambda: float) -> ShiftedSolver:
        """Return a solver for K + n_lambda I with n_lambda > 0.

        Raises
        ------
        NumericalError
            K + n_lambda I is not positive definite in this precision.
        """
        values = self.values + n_lambda
        if not float(namespace(values).min(values)) > 0:
            msg = (
                f"the kernel matrix plus n * lambda = {n_lambda:.3g} on its diagonal is not positive definite in"
                f" {values.dtype}."
                " Pass a larger --lambda, --normalize l2, or --precision float64"
            )
            raise NumericalError(msg)
        return ShiftedSolver(values, self.vectors)


class ShiftedSolver:
    """Solver for K + n_lambda I by eigenvectors; has the interface of :class:`calcheck.linalg.solvers.Cholesky`."""

    def __init__(self, values: Array, vectors: Array) -> None:
        self.values, self.vectors = values, vectors

    def solve(self, rhs: Array) -> Solution:
        """Return the solution for (n, c) right-hand sides."""
        return Solution(self.vectors @ ((self.vectors.T @ rhs) / self.values[:, None]), 0)

    def trace_of_inverse(self) -> float:
        """Return tr (K + n_lambda I)^-1."""
        return float(namespace(self.values).sum(1 / self.values))
