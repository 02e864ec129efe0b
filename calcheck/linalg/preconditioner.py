"""A Nystroem preconditioner of conjugate gradients, and the rule by which it is used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.execution.backend import namespace
from calcheck.linalg.gram import tile_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.execution.backend import Array, Backend
    from calcheck.linalg.gram import Gram

MOST_CENTRES = 1024  # their factor costs little beside a product with K where rows are many
ROWS_A_CENTRE = 8
TRIED = 4  # iterations without, after which the rest is estimated
SAVED = 0.15  # of the iterations, where the spectrum is flat; where it falls quickly, more than half
NEGLIGIBLE = 0.01  # share of s below which an eigenvalue of K is no hindrance


class Preconditioner:
    """s P^-1 with P = Z Z^T + s I and K ~ Z Z^T by M centres: I - Z (Z^T Z + s I)^-1 Z^T (Woodbury).

    Z = K_nM V E^-1/2 with K_MM = V E V^T, but for eigenvalues that are negligible beside s: these would only lend their
    rounding. Any Z, however rounded, gives a P that is positive definite; that it resembles K makes it useful.

    Parameters
    ----------
    gram : Gram
        K.
    shift : float
        s > 0.
    centres : (M,)
        Rows whose inputs are the centres.
    array : Backend
        The library that computes.
    memory : int
        Bytes that Z may take; if it does not fit it is made again at every use.
    """

    def __init__(self, gram: Gram, shift: float, centres: NDArray[np.intp], array: Backend, *, memory: int) -> None:
        self._gram, self._array = gram, array
        self._centres = gram.x[array.indices(centres)]
        values, vectors = np.linalg.eigh(array.to_numpy(gram.kernel.gram(self._centres, self._centres)))
        share = len(centres) / gram.n  # of an eigenvalue of K, in one of K_MM
        matters = values > max(NEGLIGIBLE * shift * share, array.xp.finfo(array.dtype).eps * values[-1])
        self._whitening = array.asarray(vectors[:, matters] / np.sqrt(values[matters]))
        self.rank = int(matters.sum())
        self._kept: list[tuple[slice, Array]] | None = None
        if gram.n * self.rank * array.itemsize <= memory:
            self._kept = list(self._made())
        inner = shift * np.eye(self.rank)
        for _, block in self._blocks():
            inner += array.to_numpy(block.T @ block)
        self._inverse = array.asarray(np.linalg.inv(inner))

    def __call__(self, columns: Array) -> Array:
        """Return s P^-1 R for (n, c) columns, (n, c)."""
        inner = self._inverse @ sum(block.T @ columns[rows] for rows, block in self._blocks())
        return namespace(columns).concat([columns[rows] - block @ inner for rows, block in self._blocks()])

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield rows and their part of Z, (b, rank)."""
        return iter(self._kept) if self._kept is not None else self._made()

    def _made(self) -> Iterator[tuple[slice, Array]]:
        gram = self._gram
        height, _ = tile_shape(gram.x)
        for start in range(0, gram.n, height):
            rows = slice(start, start + height)
            yield rows, gram.kernel.gram(gram.x[rows], self._centres) @ self._whitening


@dataclass(frozen=True)
class Costs:
    """What it takes to solve for c right-hand sides, in multiplications.

    Parameters
    ----------
    n, d, columns : int
        Rows, columns of inputs, right-hand sides.
    cached : bool
        Whether the Gram matrix is in memory, so that its values cost nothing.
    cached_features : bool
        The same for those of the centres.
    """

    n: int
    d: int
    columns: int
    cached: bool
    cached_features: bool

    @classmethod
    def from_solve(cls, x: Array, columns: int, *, kept: bool, room: int) -> Costs:
        """Say it for (n, d) inputs, and the bytes that are left for features of centres."""
        n, d = x.shape
        return cls(n, d, columns, kept, n * _centres(n) * x.itemsize <= room)

    @property
    def centres(self) -> int:
        """How many centres a preconditioner has."""
        return _centres(self.n)

    @property
    def product(self) -> float:
        """Of a product with K, of which half is made."""
        return self.n**2 * (self.columns + (0 if self.cached else self.d / 2))

    @property
    def features(self) -> float:
        """Of Z."""
        return self.n * self.centres * (self.d + self.centres)

    @property
    def making(self) -> float:
        """Of a preconditioner: Z, Z^T Z, an eigendecomposition and an inverse."""
        return self.features + self.n * self.centres**2 + 10 * self.centres**3

    @property
    def applying(self) -> float:
        """Of its use."""
        return 2 * self.n * self.centres * self.columns + (0 if self.cached_features else 2 * self.features)

    def pays_off(self, residual: float, tolerance: float) -> bool:
        """Say whether a preconditioner pays, by the residual's share that the first iterations have left.

        The iterations to come are as many as these at the same rate, and a share of them is saved.
        """
        to_come = TRIED * (math.log(tolerance) / math.log(residual) - 1) if residual < 1 else math.inf
        return to_come * (SAVED * self.product - (1 - SAVED) * self.applying) > self.making


def _centres(n: int) -> int:
    return max(1, min(MOST_CENTRES, n // ROWS_A_CENTRE))
