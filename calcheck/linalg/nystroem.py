"""Nyström approximation K ~ Z Z^T of a kernel on inputs, by features of landmarks, and the choice of their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from calcheck.errors import NumericalError
from calcheck.execution.backend import backend
from calcheck.execution.context import RandomStream
from calcheck.kernels.functions import OVERFLOW_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from calcheck.execution.backend import Array, Backend
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel

Candidate = TypeVar("Candidate")

VALIDATION_ROWS = 10_000  # Maximum rows on which the approximation is compared with the full kernel matrix
JITTER = 1e-12  # Relative diagonal term for the Cholesky factor of the landmarks' kernel matrix


class Nystroem:
    """Nyström features z(x) = W^T k(c, x) with M landmarks c and W W^T ~ K_cc^-1: z(x) . z(x') approximates k(x, x').

    Parameters
    ----------
    kernel : Kernel
        k.
    landmarks : (M, d)
        Landmark inputs.
    whitening : (M, q)
        W.
    """

    def __init__(self, kernel: Kernel, landmarks: Array, whitening: Array) -> None:
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

        Raises
        ------
        NumericalError
            The kernel overflows.
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
    """Blocks of rows of a tall matrix, cached in memory or computed at every use.

    Parameters
    ----------
    n, height : int
        Number of rows, and of rows per block.
    compute : callable
        Returns a block for a slice of rows, (b, q).
    cached : bool
        Whether to cache the blocks.
    """

    def __init__(self, n: int, height: int, compute: Callable[[slice], Array], *, cached: bool) -> None:
        self._slices = [slice(start, min(start + height, n)) for start in range(0, n, height)]
        self._compute = compute
        self._cached = list(map(compute, self._slices)) if cached else None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Yield each slice of rows and its block."""
        blocks = map(self._compute, self._slices) if self._cached is None else self._cached
        return zip(self._slices, blocks, strict=True)


class LandmarkSamples:
    """Nested samples of landmarks, and validation rows to choose their number.

    Parameters
    ----------
    kernel : Kernel
        k.
    x : (n, d)
        Normalized inputs.
    run : Run
        Device, seed, progress.

    Attributes
    ----------
    checked : (s,)
        Validation rows; disjoint from the landmarks unless there are few rows.
    """

    def __init__(self, kernel: Kernel, x: NDArray[np.float64], run: Run) -> None:
        self._kernel, self._x, self._run = kernel, x, run
        self._order = run.rng(RandomStream.LANDMARKS).permutation(len(x))
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
