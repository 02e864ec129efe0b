"""Nyström preconditioner for conjugate gradients, and the rule that decides when to use it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from calcheck.execution.backend import namespace
from calcheck.linalg.gram import tile_shape
from calcheck.linalg.nystroem import Nystroem, RowBlocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.execution.backend import Array, Backend
    from calcheck.linalg.gram import Gram

MAX_LANDMARKS = 1024  # Maximum landmarks: factorizing them is cheap compared with a product with K
ROWS_PER_LANDMARK = 8  # Minimum rows per landmark
TRIAL_ITERATIONS = 4  # Iterations without a preconditioner before the remaining number is estimated
SAVED = 0.15  # Assumed share of iterations saved (flat spectrum); more than half for a fast decay
NEGLIGIBLE = 0.01  # Eigenvalues of K below this multiple of n_lambda are dropped


class Preconditioner:
    """Apply n_lambda P^-1 = I - Z (Z^T Z + n_lambda I)^-1 Z^T (Woodbury) for P = Z Z^T + n_lambda I.

    K ~ Z Z^T is the Nyström approximation with M landmarks: Z = K_nM V E^-1/2 with K_MM = V E V^T. Eigenvalues that are
    negligible compared with n_lambda are dropped because they add only rounding errors. P is positive definite for
    every Z, whatever its rounding errors.

    Parameters
    ----------
    gram : Gram
        K.
    n_lambda : float
        n * lambda > 0.
    landmarks : (M,)
        Row numbers of the landmarks.
    array : Backend
        Array library.
    memory : int
        Maximum bytes of Z; a larger Z is recomputed at every use.
    """

    def __init__(
        self, gram: Gram, n_lambda: float, landmarks: NDArray[np.intp], array: Backend, *, memory: int
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
    """Return whether a preconditioner is estimated to save multiplications.

    The number of remaining iterations is extrapolated from the rate so far; a share of them is assumed to be saved.

    Parameters
    ----------
    shape : (int, int)
        Number of rows n and of input columns d.
    columns : int
        Number of right-hand sides.
    cached, cached_features : bool
        Whether the Gram matrix, and the Nyström features, are cached, so that their values are free.
    residual : float
        Relative residual after :data:`TRIAL_ITERATIONS` iterations.
    tolerance : float
        Relative residual at which conjugate gradients stop.
    """
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
