"""Smoother matrix A = K(points, x) (K + n_lambda I)^-1, applied to the thousands of columns of replicates.

Conjugate gradients are efficient for few columns, but would be repeated for each block of columns. A Cholesky factor is
computed once. A low-rank approximation of K is cheaper still; it is used where its estimated error is small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calcheck.errors import NumericalError
from calcheck.execution.backend import Backend, backend
from calcheck.execution.run import RandomStream
from calcheck.linalg.gram import Gram, Nystroem, first_sufficient
from calcheck.linalg.solvers import Cholesky

if TYPE_CHECKING:
    from calcheck.embeddings.ridge import KernelRidge
    from calcheck.typing import Array, Values


MAX_CONDITION = 1e3  # Maximum condition number of K + n_lambda I for single precision, which then keeps 4 digits
MIN_ROWS_PER_LANDMARK = 6  # Minimum rows per landmark of a low-rank approximation; below, a factor is cheaper
MAX_ERROR = 1e-3  # Maximum error of the low-rank approximation, relative to the squared smoothed outputs


class Smoother(ABC):
    """Smoother matrix A of n inputs at m points: the fitted inputs, or others."""

    method: str

    def __init__(self, ridge: KernelRidge, n_lambda: float, points: Values | None, array: Backend) -> None:
        self.ridge, self.n_lambda, self.points, self.array = ridge, n_lambda, points, array

    @property
    def details(self) -> dict[str, Any]:
        """Return the method and its settings."""
        return {"method": self.method}

    @abstractmethod
    def smooth(self, outputs: Values) -> Values:
        """Return A R, (m, c), for outputs R, (n, c)."""

    @abstractmethod
    def _blocks(self) -> Iterator[Array]:
        """Yield A in blocks of rows, (b, n)."""

    def smooth_squared(self, outputs: Values) -> Values:
        """Return (A * A) R, (m, c), for outputs R, (n, c), with the elementwise square of A."""
        columns = self.array.asarray(outputs)
        parts = [self.array.to_numpy((block * block) @ columns) for block in self._blocks()]
        return np.concatenate(parts)

    def _rows(self, count: int) -> Iterator[slice]:
        size = max(1, self.ridge.run.limits.smoother_bytes // (self.ridge.n * self.array.itemsize))
        return (slice(start, min(start + size, count)) for start in range(0, count, size))


class CholeskySmoother(Smoother):
    """Smoother with a Cholesky factor of K + n_lambda I: exact to rounding."""

    method = "cholesky"

    def __init__(self, ridge: KernelRidge, lambda_: float, points: Values | None) -> None:
        n_lambda = ridge.n * lambda_
        if ridge.solver == "cholesky":
            super().__init__(ridge, n_lambda, points, ridge.backend)
            self._factor = ridge.factor(n_lambda)
        else:
            super().__init__(ridge, n_lambda, points, backend(ridge.run.device, "float32"))
            try:
                self._factor = self._factorize(self.array)
            except NumericalError:
                self.array = ridge.backend
                self._factor = self._factorize(self.array)
        self._x = self.array.asarray(ridge.backend.to_numpy(ridge.x))
        self._points: Array = None if points is None else self.array.asarray(points)

    def _factorize(self, array: Backend) -> Cholesky:
        """Return the Cholesky factor in the precision of the array library."""
        ridge = self.ridge
        ridge.gram.clear()  # the factor is the only n x n matrix in memory
        gram = Gram(ridge.kernel, array.asarray(ridge.backend.to_numpy(ridge.x)), memory=0, progress=ridge.run.progress)
        if array.itemsize < ridge.backend.itemsize and 1 + ridge.trace / self.n_lambda > MAX_CONDITION:
            msg = "K + n lambda I is too ill-conditioned for single precision"
            raise NumericalError(msg)
        return Cholesky(gram, self.n_lambda, ridge.run.progress)

    def smooth(self, outputs: Values) -> Values:
        rhs = self.array.asarray(outputs)
        coefficients = self._factor.solve(rhs).coefficients
        if self._points is None:
            return self.array.to_numpy(rhs - self.n_lambda * coefficients)
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
                yield (unit - self.n_lambda * self._factor.solve(unit).coefficients).T
        else:
            for rows in self._rows(len(self._points)):
                yield self._factor.solve(self._kernel(rows).T).coefficients.T


class NystroemSmoother(Smoother):
    """Smoother with K ~ Z Z^T for Nyström features Z with M landmarks: A = Z (Z^T Z + n_lambda I)^-1 Z^T."""

    method = "low rank"

    def __init__(self, ridge: KernelRidge, lambda_: float, points: Values | None, rank: int) -> None:
        super().__init__(ridge, ridge.n * lambda_, points, backend(ridge.run.device, "float64"))
        chosen = np.sort(ridge.run.rng(RandomStream.LANDMARKS).choice(ridge.n, rank, replace=False))
        self.rank = rank
        x = self.array.asarray(ridge.backend.to_numpy(ridge.x))
        landmarks, xp = x[self.array.indices(chosen)], self.array.xp
        self.nystroem = Nystroem.from_cholesky(ridge.kernel, landmarks, self.array)
        self._rows_of_z = self._features(x)
        inner = self._rows_of_z.T @ self._rows_of_z
        diagonal = xp.arange(rank, device=self.array.device)
        inner[diagonal, diagonal] += self.n_lambda
        self._inverse = xp.linalg.inv(inner)
        self._at = self._rows_of_z if points is None else self._features(self.array.asarray(points))
        self.missed = 0.0

    @property
    def details(self) -> dict[str, Any]:
        return {"method": self.method, "rank": self.rank, "relative_error": self.missed}

    def _features(self, x: Array) -> Array:
        return self.array.xp.concat([self.nystroem(x[rows]) for rows in self._rows(len(x))])

    def smooth(self, outputs: Values) -> Values:
        return self.array.to_numpy(self._at @ self._weights(outputs))

    def smooth_fitted(self, outputs: Values) -> Values:
        """Return the smoothed outputs at the fitted inputs, (n, c)."""
        return self.array.to_numpy(self._rows_of_z @ self._weights(outputs))

    def _weights(self, outputs: Values) -> Array:
        """Return the weights of the features, (M, c)."""
        return self._inverse @ (self._rows_of_z.T @ self.array.asarray(outputs))

    def squared_weights(self) -> Values:
        """Return the sum of squares of each row of A, (m,)."""
        weighted = self._at @ self._inverse
        squares = (weighted * self._at).sum(axis=1) - self.n_lambda * (weighted * weighted).sum(axis=1)
        return self.array.to_numpy(squares)

    def _blocks(self) -> Iterator[Array]:
        for rows in self._rows(len(self._at)):
            yield (self._at[rows] @ self._inverse) @ self._rows_of_z.T


@dataclass(frozen=True, eq=False)
class SmootherMatrix:
    """A smoother matrix A (m, n) of low rank, or the whole matrix."""

    along: Values  # (k, n), directions V, or A itself
    turn: Values | None = None  # (m, k), U with A = U V; None if V is A

    def plus(self, weight: float, other: SmootherMatrix) -> SmootherMatrix:
        """Return A + w A', where both are whole or have the same directions."""
        if self.turn is None or other.turn is None:
            return SmootherMatrix(self.along + weight * other.along)
        return SmootherMatrix(self.along, self.turn + weight * other.turn)

    def squares(self, smoothed: HasProducts) -> Values:
        """Return the squared norms of the rows of A F, (m,), given the products of the rows of V F."""
        if self.turn is None:
            return smoothed.norms()
        return row_forms(self.turn, smoothed.products(), self.turn)


class HasProducts(Protocol):
    """Vectors whose products are known."""

    def products(self) -> Values:
        """Return the products of all pairs, (k, k)."""
        ...

    def norms(self) -> Values:
        """Return the squared norms, (k,)."""
        ...


def row_forms(left: Values, form: Values, right: Values) -> Values:
    """Return the diagonal of L Q R^T, (m,)."""
    return np.asarray(np.einsum("ij,ij->i", left @ form, right))


def smoother(ridge: KernelRidge, lambda_: float, points: Values | None, typical: Callable[[], Values]) -> Smoother:
    """Return the smoother by the cheapest sufficiently accurate method.

    In order of preference: a Cholesky factor, if there is one or it takes about a second; the smallest sufficiently
    accurate low-rank approximation; a factor, if it fits in memory; the largest low-rank approximation.

    Shapes: points (m, d).
    """
    limits = ridge.run.limits
    if ridge.solver == "cholesky" or ridge.n <= limits.factor_rows:
        return CholeskySmoother(ridge, lambda_, points)
    outputs = typical()
    exact = ridge.smoothed(outputs, lambda_)
    size = float(np.sum(exact**2))

    def approximated(rank: int) -> NystroemSmoother:
        found = NystroemSmoother(ridge, lambda_, points, rank)
        found.missed = abs(1 - float(np.sum(found.smooth_fitted(outputs) ** 2)) / size) if size else 0.0
        return found

    ranks = [rank for rank in limits.nystroem_ranks if MIN_ROWS_PER_LANDMARK * rank <= ridge.n]
    low_rank = first_sufficient(map(approximated, ranks), lambda found: found.missed <= MAX_ERROR) if ranks else None
    if low_rank and low_rank.missed <= MAX_ERROR:
        return low_rank
    fits = ridge.n**2 * backend(ridge.run.device, "float32").itemsize <= ridge.run.memory
    return CholeskySmoother(ridge, lambda_, points) if fits or low_rank is None else low_rank
