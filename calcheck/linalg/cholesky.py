"""Pivoted Cholesky decomposition, and bases of eigenvectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import NumericalError

if TYPE_CHECKING:
    from calcheck.typing import Mask, Values


class PivotedCholesky:
    """Low-rank factorization G ~ F^T F of a Gram matrix G; the element with the largest residual is the next pivot."""

    def __init__(
        self,
        diagonal: Values,  # (p,), squared norms of the elements
        products: Callable[[int], Values],  # Returns the inner products of one element with all, (p,)
        max_rank: int,  # Maximum number of pivots
        *,
        first_rows: int = 64,  # Rows of the factor that are allocated first; they are doubled as needed
    ) -> None:
        self.pivots = list[int]()  # Pivots, in order
        # (p,), part of each squared norm that the pivots do not represent
        self.residuals = np.array(diagonal, dtype=np.float64)
        self._products, self._max_rank = products, max_rank
        self._rows = np.zeros((min(first_rows, max_rank), len(diagonal)))

    @property
    def factor(self) -> Values:
        """F, (r, p)."""
        return self._rows[: len(self.pivots)]

    def represent(self, first: int, tolerance: float | Values) -> None:
        """Add pivots among the first elements until none of their residuals is above the tolerance."""
        residuals = self.residuals[:first]
        while len(self.pivots) < self._max_rank and (residuals > tolerance).any():
            self._add(int(np.argmax(residuals)))

    def _add(self, pivot: int) -> None:
        rank, factor = len(self.pivots), self.factor
        if rank == len(self._rows):
            more = np.zeros((min(rank, self._max_rank - rank), factor.shape[1]))
            self._rows = np.concatenate([self._rows, more])
        row = self._products(pivot) - factor[:, pivot] @ factor
        self._rows[rank] = row / np.sqrt(self.residuals[pivot])
        self.residuals -= self._rows[rank] ** 2
        self.residuals[pivot] = 0.0
        self.pivots.append(pivot)


def gram_factor(gram: Values, tolerance: float) -> Values:
    """Return F (p, r) with F F^T equal to a positive semidefinite matrix, up to residuals of the diagonal."""
    from scipy.linalg.lapack import dpstrf

    factor, order, rank, _ = dpstrf(gram, tol=tolerance, lower=1)
    features = np.zeros((len(gram), rank))
    features[order - 1] = np.tril(factor)[:, :rank]
    return features


RESIDUAL_TOLERANCE = 1e-7  # Maximum share of the trace outside a truncated eigenbasis


def eigenvectors(matrix: Values) -> tuple[Values, Values]:
    """Return the eigenvalues (r,), in ascending order, and eigenvectors (r, r) of a symmetric matrix."""
    try:
        eigenvalues, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError as error:
        msg = (
            "the kernel matrix of the targets has no eigendecomposition. Check the unit of the predictions and targets"
        )
        raise NumericalError(msg) from error
    return eigenvalues, vectors


def leading(eigenvalues: Values, tolerance: float = RESIDUAL_TOLERANCE) -> Mask:
    """Return which ascending eigenvalues (r,) are needed so that the others sum to at most a share of the trace."""
    cumulative = np.cumsum(np.maximum(eigenvalues, 0))
    return np.asarray(cumulative > tolerance * cumulative[-1])


def truncated_eigenbasis(matrix: Values, tolerance: float = RESIDUAL_TOLERANCE) -> tuple[Values, Values]:
    """Return the :func:`leading` eigenvalues (q,), in ascending order, and their eigenvectors (r, q)."""
    eigenvalues, vectors = eigenvectors(matrix)
    kept = leading(eigenvalues, tolerance)
    return eigenvalues[kept], vectors[:, kept]


def psd_root(matrix: Values) -> Values:
    """Return C with C C^T equal to a positive semidefinite matrix; negative eigenvalues from rounding are set to 0."""
    eigenvalues, vectors = eigenvectors(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0)))
