"""A low-rank form of a kernel on inputs: K ~ Z Z^T with as many columns as there are centres (Nystroem)."""

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

RANKS = (256, 512, 1024, 2048)  # centres, tried in turn
CHECKED_ROWS = 10_000  # on which they are compared with every pair
JITTER = 1e-12  # of the centres' kernel values, so that their factor exists


class Nystroem:
    """Features of inputs, z(x) = L^-1 k(c, x) with L L^T = K_cc at M centres c: z(x) . z(x') is nearly k(x, x').

    Parameters
    ----------
    kernel : Kernel
        k.
    centres : (M, d)
        Inputs, on the backend's device.
    array : Backend
        The library that computes.
    """

    def __init__(self, kernel: Kernel, centres: Array, array: Backend) -> None:
        xp = array.xp
        own = kernel.gram(centres, centres)
        diagonal = xp.arange(len(centres), device=array.device)
        own[diagonal, diagonal] += JITTER * float(xp.max(own))
        self.kernel, self.centres = kernel, centres
        self._factor = xp.linalg.inv(xp.linalg.cholesky(own)).T  # L^-T

    def values(self, x: Array) -> Array:
        """Return k(x, c) of (p, d) inputs, (p, M)."""
        return self.kernel.gram(x, self.centres)

    def of_values(self, values: Array) -> Array:
        """Return V L^-T, (p, M), for values V, (p, M): features of the inputs that the values are of."""
        return values @ self._factor

    def to_values(self, features: Array) -> Array:
        """Return L^-T W, (M, c), for weights W of features: V (L^-T W) is what they weigh."""
        return self._factor @ features

    @property
    def rank(self) -> int:
        """Number of features M."""
        return len(self.centres)

    def __call__(self, x: Array) -> Array:
        """Return z of (p, d) inputs, (p, M)."""
        return self.of_values(self.values(x))


class Centres:
    """More and more of the inputs as centres, and some inputs on which to see how many it takes.

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
        The rows on which to see: no centres, unless there are few rows.
    """

    def __init__(self, kernel: Kernel, x: NDArray[np.float64], run: Run) -> None:
        self._kernel, self._x, self._run = kernel, x, run
        self._order = run.rng(RandomStream.LANDMARKS).permutation(len(x))
        self.checked = np.sort(self._order[:CHECKED_ROWS])

    def features(self) -> Iterator[Nystroem]:
        """Yield features by more and more centres."""
        array = backend(self._run.device, "float64")
        for rank in RANKS:
            self._run.progress("landmarks", rank / RANKS[-1])
            chosen = np.sort(self._order[::-1][:rank])
            yield Nystroem(self._kernel, array.asarray(self._x[chosen]), array)
