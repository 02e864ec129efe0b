"""Eigenvectors of positive semidefinite matrices: truncated eigenbases and square roots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import NumericalError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

RESIDUAL_TOLERANCE = 1e-7  # Maximum share of the trace outside a truncated eigenbasis


def eigenvectors(matrix: Values) -> tuple[Values, Values]:
    """Return the eigenvalues (r,), in ascending order, and eigenvectors (r, r) of a symmetric matrix.

    Raises
    ------
    NumericalError
        The eigendecomposition fails.
    """
    try:
        eigenvalues, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError as error:
        msg = (
            "the kernel matrix of the targets has no eigendecomposition. Check the unit of the predictions and targets"
        )
        raise NumericalError(msg) from error
    return eigenvalues, vectors


def leading(eigenvalues: Values, tolerance: float = RESIDUAL_TOLERANCE) -> NDArray[np.bool_]:
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
