"""Nyström preconditioner for conjugate gradients, and the rule that decides when to use it."""

from __future__ import annotations

import math
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Costs:
    """Cost of solving for c right-hand sides, in multiplications.

    Parameters
    ----------
    n, d, columns : int
        Number of rows, of input columns, and of right-hand sides.
    cached : bool
        Whether the Gram matrix is cached, so that its values are free.
    cached_features : bool
        Whether the Nyström features are cached.
    """

    n: int
    d: int
    columns: int
    cached: bool
    cached_features: bool

    @classmethod
    def from_solve(cls, x: Array, columns: int, *, cached: bool, available: int) -> Costs:
        """Return the costs for (n, d) inputs, given the bytes available for Nyström features."""
        n, d = x.shape
        return cls(n, d, columns, cached, n * _n_landmarks(n) * x.itemsize <= available)

    @property
    def landmarks(self) -> int:
        """Number of landmarks of a preconditioner."""
        return _n_landmarks(self.n)

    @property
    def product(self) -> float:
        """Cost of a product with K, of which only the upper triangle is computed."""
        return self.n**2 * (self.columns + (0 if self.cached else self.d / 2))

    @property
    def features(self) -> float:
        """Cost of computing Z."""
        return self.n * self.landmarks * (self.d + self.landmarks)

    @property
    def setup(self) -> float:
        """Cost of building the preconditioner: Z, Z^T Z, an eigendecomposition and an inverse."""
        return self.features + self.n * self.landmarks**2 + 10 * self.landmarks**3

    @property
    def application(self) -> float:
        """Cost of applying the preconditioner once."""
        return 2 * self.n * self.landmarks * self.columns + (0 if self.cached_features else 2 * self.features)

    def pays_off(self, residual: float, tolerance: float) -> bool:
        """Return whether a preconditioner is worth its cost, given the relative residual after the first iterations.

        The number of remaining iterations is extrapolated from the rate so far; a share of them is assumed to be saved.
        """
        remaining = TRIAL_ITERATIONS * (math.log(tolerance) / math.log(residual) - 1) if residual < 1 else math.inf
        return remaining * (SAVED * self.product - (1 - SAVED) * self.application) > self.setup


def _n_landmarks(n: int) -> int:
    return max(1, min(MAX_LANDMARKS, n // ROWS_PER_LANDMARK))
