"""The matrix that smooths: A = K(points, x) (K + n lambda I)^-1, for the thousands of columns that replicates have.

Conjugate gradients, which suit a few columns, would be solved again for each block of them. A factor is made once;
a low-rank form of K is cheaper still where it is accurate, which is measured.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import NumericalError
from calcheck.execution.backend import Backend, backend
from calcheck.execution.context import RandomStream
from calcheck.linalg.gram import Gram
from calcheck.linalg.nystroem import Nystroem
from calcheck.linalg.solvers import Cholesky

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.embeddings.ridge import KernelRidge
    from calcheck.execution.backend import Array

    Values = NDArray[np.float64]

BLOCK_BYTES = 1 << 26  # of a block of A
CONDITION = 1e3  # of K + n lambda I, up to which single precision keeps 4 digits
FACTOR_ROWS = 6000  # up to which a factor is had in about a second
RANKS = (256, 512, 1024, 2048)  # centres of a low-rank form, tried in turn
WORTH = 6  # rows a centre from which on a low-rank form is cheaper than a factor
ACCURATE = 1e-3  # of what is smoothed, squared, that a low-rank form may miss where a factor could be had


class Smoother(ABC):
    """A of n inputs at m points: the inputs themselves, or others."""

    method: str

    def __init__(self, ridge: KernelRidge, shift: float, points: Values | None, array: Backend) -> None:
        self.ridge, self.shift, self.points, self.array = ridge, shift, points, array

    @property
    def details(self) -> dict[str, Any]:
        """Say how A is had."""
        return {"method": self.method}

    @abstractmethod
    def smooth(self, outputs: Values) -> Values:
        """Return A R for outputs (n, c), (m, c)."""

    @abstractmethod
    def _blocks(self) -> Iterator[Array]:
        """Yield A block by block of its rows, (b, n)."""

    def smooth_squared(self, outputs: Values) -> Values:
        """Return (A * A) R, the elements of A squared, for outputs (n, c), (m, c)."""
        columns = self.array.asarray(outputs)
        parts = [self.array.to_numpy((block * block) @ columns) for block in self._blocks()]
        return np.concatenate(parts)

    def _rows(self, count: int) -> Iterator[slice]:
        size = max(1, BLOCK_BYTES // (self.ridge.n * self.array.itemsize))
        return (slice(start, min(start + size, count)) for start in range(0, count, size))


class CholeskySmoother(Smoother):
    """A by a Cholesky factor of K + n lambda I: exact to rounding."""

    method = "cholesky"

    def __init__(self, ridge: KernelRidge, penalty: float, points: Values | None) -> None:
        shift = ridge.n * penalty
        if ridge.solver == "cholesky":
            super().__init__(ridge, shift, points, ridge.backend)
            self._factor = ridge.factor(shift)
        else:
            super().__init__(ridge, shift, points, backend(ridge.run.device, "float32"))
            try:
                self._factor = self._made(self.array)
            except NumericalError:
                self.array = ridge.backend
                self._factor = self._made(self.array)
        self._x = self.array.asarray(ridge.backend.to_numpy(ridge.x))
        self._points: Array = None if points is None else self.array.asarray(points)

    def _made(self, array: Backend) -> Cholesky:
        """Factorize in a precision.

        Raises
        ------
        NumericalError
            It is too low.
        """
        ridge = self.ridge
        ridge.gram.clear()  # the factor is the one n x n matrix
        gram = Gram(ridge.kernel, array.asarray(ridge.backend.to_numpy(ridge.x)), memory=0, progress=ridge.run.progress)
        if array.itemsize < ridge.backend.itemsize and 1 + ridge.trace / self.shift > CONDITION:
            msg = "K + n lambda I is too ill-conditioned for single precision"
            raise NumericalError(msg)
        return Cholesky(gram, self.shift, ridge.run.progress)

    def smooth(self, outputs: Values) -> Values:
        rhs = self.array.asarray(outputs)
        coefficients = self._factor.solve(rhs).coefficients
        if self._points is None:
            return self.array.to_numpy(rhs - self.shift * coefficients)
        parts = [self._kernel(rows) @ coefficients for rows in self._rows(len(self._points))]
        return np.concatenate([self.array.to_numpy(part) for part in parts])

    def _kernel(self, rows: slice) -> Array:
        return self.ridge.kernel.gram(self._points[rows], self._x)

    def _blocks(self) -> Iterator[Array]:
        xp, n = self.array.xp, self.ridge.n
        if self._points is None:
            for rows in self._rows(n):
                unit = xp.zeros((n, rows.stop - rows.start), dtype=self.array.dtype, device=self.array.device)
                unit[rows] = xp.eye(rows.stop - rows.start, dtype=self.array.dtype, device=self.array.device)
                yield (unit - self.shift * self._factor.solve(unit).coefficients).T
        else:
            for rows in self._rows(len(self._points)):
                yield self._factor.solve(self._kernel(rows).T).coefficients.T


class NystroemSmoother(Smoother):
    """A by K ~ Z Z^T, Z the Nystroem features at M of the inputs: A = Z (Z^T Z + n lambda I)^-1 Z^T."""

    method = "low rank"

    def __init__(self, ridge: KernelRidge, penalty: float, points: Values | None, rank: int) -> None:
        super().__init__(ridge, ridge.n * penalty, points, backend(ridge.run.device, "float64"))
        chosen = np.sort(ridge.run.rng(RandomStream.LANDMARKS).choice(ridge.n, rank, replace=False))
        self.rank = rank
        x = self.array.asarray(ridge.backend.to_numpy(ridge.x))
        self.nystroem, xp = Nystroem(ridge.kernel, x[self.array.indices(chosen)], self.array), self.array.xp
        self._rows_of_z = self._features(x)
        inner = self._rows_of_z.T @ self._rows_of_z
        diagonal = xp.arange(rank, device=self.array.device)
        inner[diagonal, diagonal] += self.shift
        self._inverse = xp.linalg.inv(inner)
        self._at = self._rows_of_z if points is None else self._features(self.array.asarray(points))
        self.missed = 0.0

    @property
    def details(self) -> dict[str, Any]:
        return {"method": self.method, "rank": self.rank, "relative_error": self.missed}

    def _features(self, x: Array) -> Array:
        return self.array.xp.concat([self.nystroem(x[rows]) for rows in self._rows(len(x))])

    def smooth(self, outputs: Values) -> Values:
        inner = self._inverse @ (self._rows_of_z.T @ self.array.asarray(outputs))
        return self.array.to_numpy(self._at @ inner)

    def squared_weights(self) -> Values:
        """Return the sum of the squares of each row of A, (m,)."""
        weighted = self._at @ self._inverse
        squares = (weighted * self._at).sum(axis=1) - self.shift * (weighted * weighted).sum(axis=1)
        return self.array.to_numpy(squares)

    def _blocks(self) -> Iterator[Array]:
        for rows in self._rows(len(self._at)):
            yield (self._at[rows] @ self._inverse) @ self._rows_of_z.T


def smoother(ridge: KernelRidge, penalty: float, points: Values | None, typical: Values) -> Smoother:
    """Choose how A is had.

    A factor where one is there already or is had in about a second; else the low-rank form with the fewest centres that
    misses little enough of what is smoothed; else a factor, if it fits the memory; else the largest low-rank form.

    Parameters
    ----------
    ridge : KernelRidge
        The regression on n inputs.
    penalty : float
        lambda.
    points : (m, d), optional
        Normalized inputs at which A is wanted; the regression's own if absent.
    typical : (n, c)
        Outputs such as will be smoothed, on which low-rank forms are tried.
    """
    if ridge.solver == "cholesky" or ridge.n <= FACTOR_ROWS:
        return CholeskySmoother(ridge, penalty, points)
    exact = ridge.smoothed(typical, penalty)
    size = float(np.sum(exact**2))
    tried: NystroemSmoother | None = None
    for rank in RANKS:
        if WORTH * rank > ridge.n:
            break
        tried = NystroemSmoother(ridge, penalty, points, rank)
        inside = tried if points is None else NystroemSmoother(ridge, penalty, None, rank)
        tried.missed = abs(1 - float(np.sum(inside.smooth(typical) ** 2)) / size) if size else 0.0
        if tried.missed <= ACCURATE:
            return tried
    fits = ridge.n**2 * backend(ridge.run.device, "float32").itemsize <= ridge.run.memory
    return CholeskySmoother(ridge, penalty, points) if fits or tried is None else tried
