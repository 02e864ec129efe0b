"""Nyström approximation of a kernel on inputs: K ~ Z Z^T with one column per landmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.execution.backend import backend
from calcheck.execution.context import RandomStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.execution.backend import Array, Backend
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel

RANKS = (256, 512, 1024, 2048)  # Numbers of landmarks, tried in order
VALIDATION_ROWS = 10_000  # Maximum rows on which the approximation is compared with the full kernel matrix
JITTER = 1e-12  # Relative diagonal term for the Cholesky factor of the landmarks' kernel matrix


class Nystroem:
    """Nyström features z(x) = L^-1 k(c, x), L L^T = K_cc, with M landmarks c: z(x) . z(x') approximates k(x, x').

    Parameters
    ----------
    kernel : Kernel
        k.
    landmarks : (M, d)
        Landmark inputs, on the device of the backend.
    array : Backend
        Array library.
    """

    def __init__(self, kernel: Kernel, landmarks: Array, array: Backend) -> None:
        xp = array.xp
        gram = kernel.gram(landmarks, landmarks)
        diagonal = xp.arange(len(landmarks), device=array.device)
        gram[diagonal, diagonal] += JITTER * float(xp.max(gram))
        self.kernel, self.landmarks = kernel, landmarks
        self._factor = xp.linalg.inv(xp.linalg.cholesky(gram)).T  # L^-T

    def values(self, x: Array) -> Array:
        """Return k(x, c) for (p, d) inputs, (p, M)."""
        return self.kernel.gram(x, self.landmarks)

    def of_values(self, values: Array) -> Array:
        """Return the features V L^-T, (p, M), for kernel values V = k(x, c), (p, M)."""
        return values @ self._factor

    def to_values(self, features: Array) -> Array:
        """Return L^-T W, (M, c), for feature weights W, so that V (L^-T W) = Z W for kernel values V."""
        return self._factor @ features

    @property
    def rank(self) -> int:
        """Number of features M."""
        return len(self.landmarks)

    def __call__(self, x: Array) -> Array:
        """Return z(x) for (p, d) inputs, (p, M)."""
        return self.of_values(self.values(x))


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
        for rank in RANKS:
            self._run.progress("landmarks", rank / RANKS[-1])
            chosen = np.sort(self._order[::-1][:rank])
            yield Nystroem(self._kernel, array.asarray(self._x[chosen]), array)
