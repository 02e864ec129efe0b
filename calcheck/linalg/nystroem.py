"""Low-rank approximations of kernel matrices, and preconditioners made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from calcheck.errors import NumericalError
from calcheck.execution.backend import Backend, backend, namespace
from calcheck.execution.run import RandomStream, Run
from calcheck.kernels.functions import OVERFLOW_MESSAGE, Kernel
from calcheck.linalg.gram import Gram, tile_shape

if TYPE_CHECKING:
    from calcheck.typing import Array, Indices, Values

Candidate = TypeVar("Candidate")

VALIDATION_ROWS = 10_000  # Maximum rows on which the approximation is compared with the full kernel matrix
JITTER = 1e-12  # Relative diagonal term for the Cholesky factor of the landmarks' kernel matrix


class Nystroem:
    """Nyström features z(x) = W^T k(c, x), M landmarks c, W W^T ~ K_cc^-1: z(x) . z(x') approximates k(x, x')."""

    def __init__(
        self,
        kernel: Kernel,  # k
        landmarks: Array,  # (M, d), landmark inputs
        whitening: Array,  # (M, q), W
    ) -> None:
        self.kernel, self.landmarks, self.whitening = kernel, landmarks, whitening

    @classmethod
    def from_cholesky(cls, kernel: Kernel, landmarks: Array, array: Backend) -> Nystroem:
        """Return one feature per landmark: W = L^-T with L L^T = K_cc."""
        xp = array.xp
        gram = kernel.gram(landmarks, landmarks)
        diagonal = xp.arange(len(landmarks), device=array.device)
        gram[diagonal, diagonal] += JITTER * float(xp.max(gram))
        return cls(kernel, landmarks, xp.linalg.inv(xp.linalg.cholesky(gram)).T)

    @classmethod
    def from_eigenvectors(
        cls, kernel: Kernel, landmarks: Array, array: Backend, *, smallest: float = 0.0, smallest_share: float
    ) -> Nystroem:
        """Return one feature per eigenvalue of K_cc = V E V^T that is not negligible: W = V E^-1/2.

        Eigenvalues up to ``smallest``, or up to a share of the largest, are negligible.
        """
        gram = array.to_numpy(kernel.gram(landmarks, landmarks))
        if not np.isfinite(gram).all():
            raise NumericalError(OVERFLOW_MESSAGE)
        values, vectors = np.linalg.eigh(gram)
        kept = values > max(smallest, smallest_share * values[-1])
        return cls(kernel, landmarks, array.asarray(vectors[:, kept] / np.sqrt(values[kept])))

    @property
    def rank(self) -> int:
        """Number of features q."""
        return int(self.whitening.shape[1])

    def values(self, x: Array) -> Array:
        """Return k(x, c) for (p, d) inputs, (p, M)."""
        return self.kernel.gram(x, self.landmarks)

    def of_values(self, values: Array) -> Array:
        """Return the features V W, (p, q), for kernel values V = k(x, c), (p, M)."""
        return values @ self.whitening

    def to_values(self, weights: Array) -> Array:
        """Return W B, (M, c), for feature weights B, (q, c): V (W B) = Z B for kernel values V."""
        return self.whitening @ weights

    def __call__(self, x: Array) -> Array:
        """Return z(x) for (p, d) inputs, (p, q)."""
        return self.of_values(self.values(x))


class RowBlocks:
    """Blocks of rows of a tall matrix, cached in memory or computed at every use."""

    def __init__(
        self,
        # n, height: number of rows, and of rows per block
        n: int,
        height: int,
        compute: Callable[[slice], Array],  # Returns a block for a slice of rows, (b, q)
        *,
        cached: bool,  # Whether to cache the blocks
    ) -> None:
        self._slices = [slice(start, min(start + height, n)) for start in range(0, n, height)]
        self._compute = compute
        self._cached = list(map(compute, self._slices)) if cached else None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Yield each slice of rows and its block."""
        blocks = map(self._compute, self._slices) if self._cached is None else self._cached
        return zip(self._slices, blocks, strict=True)


class LandmarkSamples:
    """Nested samples of landmarks, and validation rows to choose their number."""

    def __init__(
        self,
        kernel: Kernel,  # k
        x: Values,  # (n, d), normalized inputs
        run: Run,  # Device, seed, progress
    ) -> None:
        self._kernel, self._x, self._run = kernel, x, run
        self._order = run.rng(RandomStream.LANDMARKS).permutation(len(x))
        # (s,), validation rows; disjoint from the landmarks unless there are few rows
        self.checked = np.sort(self._order[:VALIDATION_ROWS])

    def features(self) -> Iterator[Nystroem]:
        """Yield features with an increasing number of landmarks."""
        array = backend(self._run.device, "float64")
        ranks = self._run.limits.nystroem_ranks
        for rank in ranks:
            self._run.progress("landmarks", rank / ranks[-1])
            chosen = np.sort(self._order[::-1][:rank])
            yield Nystroem.from_cholesky(self._kernel, array.asarray(self._x[chosen]), array)


def first_sufficient(candidates: Iterable[Candidate], is_sufficient: Callable[[Candidate], bool]) -> Candidate:
    """Return the first of increasingly accurate candidates that is sufficient; the last if none is."""
    for candidate in candidates:
        if is_sufficient(candidate):
            break
    return candidate


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
    """Return whether a preconditioner is estimated to save multiplications.

    The number of remaining iterations is extrapolated from the rate so far; a share of them is assumed to be saved.
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
