"""Leave-one-out predictions of kernel ridge regressions, for many outputs and several regularizers at once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calcheck.execution.backend import backend
from calcheck.kernels.bandwidths import Scaling, sample_inputs
from calcheck.kernels.kernel_functions import Kernel, Polynomial
from calcheck.linalg.gram import Nystroem
from calcheck.typing import AnyArray, Floats, Indices, Values

LAMBDAS = (0.001, 0.01, 0.03, 0.1, 0.3)  # Regularizers that are tried: K + n lambda I
NEGLIGIBLE = 1e-6 * LAMBDAS[0]  # Eigenvalues of K / n up to this do not change predictions
LANDMARKS = 1_000  # Most landmarks
CACHED_VALUES = 1 << 18  # Values of outputs whose predictions are computed together
BLOCK = 10_000  # Rows per block of predictions at other inputs

COSINES = 16  # Of the k-th cosine of ranks, the eigenvalue is about k^-4


@dataclass(frozen=True, eq=False)
class Covariances:
    """How leave-one-out predictions g vary with outputs w, (l, c) each: for l regularizers and c outputs."""

    covariance: Values  # Mean of g w
    variance: Values  # Variance of g
    errors: Values  # Mean of (w - g)^2
    excess_errors: Values  # Standard errors of the differences of these means from the smallest

    @property
    def sharpest(self) -> Indices:
        """The place of the regularizer with the smallest error for each output, (c,)."""
        return np.asarray(self.errors.argmin(axis=0))

    @property
    def best(self) -> Indices:
        """The place of the largest regularizer whose error is at most one standard error above the smallest, (c,).

        Source: Breiman, Friedman, Olshen, Stone (1984), "Classification and regression trees", section 3.4.3; here the
        standard error is that of the difference.
        """
        near = self.errors <= self.errors.min(axis=0) + self.excess_errors
        return np.asarray(len(LAMBDAS) - 1 - near[::-1].argmax(axis=0))

    @property
    def bounds(self) -> Values:
        """The lower bound of the standard deviation of E[w|x] for each output, (c,); see :class:`LeaveOneOut`."""
        columns = np.arange(self.errors.shape[1])
        return np.asarray(self.covariance[self.best, columns] / np.sqrt(self.variance[self.best, columns]))


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    r"""Kernel ridge regression of centered outputs on n inputs, with a free constant.

    With the smoother :math:`A = K (K + n \lambda I)^{-1}` of the centered kernel matrix, the errors of a fold F of rows
    that are predicted without it are

    .. math:: e_F = \left(I - \tfrac1n 1 1^T - A_{FF}\right)^{-1} (w - A w)_F, \qquad
              g_F = w_F - e_F + \tfrac1n 1^T e_F,

    where g is without the constant, which would be smaller for larger outputs in F. Independent rows are folds.

    As predictions do not depend on the outputs of their rows, Cauchy-Schwarz bounds the variation of the expected
    output from below: :math:`\mathrm{sd}(E[w|x]) \ge \mathrm{Cov}(g, w) / \mathrm{sd}(g)`.
    """

    basis: Values  # (n, q), orthonormal eigenvectors of the centered kernel matrix
    eigenvalues: Values  # (q,), of the centered kernel matrix, over n
    extension: Callable[[AnyArray], Values] | None = None  # Returns the basis at other inputs, (m, q)
    folds: tuple[Indices, ...] = ()  # The rows of each fold; none if rows are independent

    @classmethod
    def from_features(cls, features: Callable[[AnyArray], Values], x: AnyArray) -> "LeaveOneOut":
        """Return the regression on features (n, p) of inputs, which are centered here; K is their product."""
        found = features(x)
        center = found.mean(axis=0)
        values, vectors = np.linalg.eigh((found - center).T @ (found - center) / len(found))
        kept = values > NEGLIGIBLE
        axes = vectors[:, kept] / np.sqrt(len(found) * values[kept])
        return cls((found - center) @ axes, values[kept], lambda others: (features(others) - center) @ axes)

    @classmethod
    def from_kernel(cls, kernel: Kernel, x: Floats, scaling: Scaling) -> "LeaveOneOut":
        """Return the regression on inputs (n, d), on landmarks of them, or on the monomials of a polynomial kernel."""
        if isinstance(kernel, Polynomial) and kernel.monomials(x[:1], min(LANDMARKS, len(x) // 2)) is not None:
            return cls.from_features(lambda inputs: np.asarray(kernel.monomials(scaling(inputs), LANDMARKS)), x)
        landmarks = np.asarray(sample_inputs(scaled := scaling(x), LANDMARKS))
        if len(landmarks) == len(x):
            return cls._from_gram(kernel.gram(scaled, scaled))
        nystroem = Nystroem.from_eigenvectors(kernel, landmarks, backend(None, "float64"), smallest_share=1e-12)
        return cls.from_features(lambda inputs: np.asarray(nystroem(scaling(inputs))), x)

    @classmethod
    def from_ranks(cls, values: Values) -> "LeaveOneOut":
        """Return the regression on numbers (n,): a smoothing spline of their ranks, by its first cosines."""
        ordered, order = np.sort(values), np.arange(1, COSINES + 1)

        def cosines(numbers: Values) -> Values:
            ranks = (np.searchsorted(ordered, numbers) + np.searchsorted(ordered, numbers, "right")) / 2
            return np.asarray(np.sqrt(2) * np.cos(np.pi * np.outer(ranks / len(ordered), order)) / order**2)

        return cls.from_features(cosines, values)

    @classmethod
    def _from_gram(cls, gram: Values) -> "LeaveOneOut":
        """Return the regression with a kernel matrix (n, n)."""
        means = gram.mean(axis=0)
        values, vectors = np.linalg.eigh((gram - means - means[:, None] + means.mean()) / len(gram))
        kept = values > NEGLIGIBLE
        return cls(vectors[:, kept], values[kept])

    @cached_property
    def shrinkage(self) -> Values:
        """The eigenvalues of the smoother for each regularizer, (l, q)."""
        return np.asarray(self.eigenvalues / (self.eigenvalues + np.array(LAMBDAS)[:, None]))

    @cached_property
    def leverages(self) -> Values:
        """The diagonal of the smoother for each regularizer, (l, n)."""
        return np.asarray(self.shrinkage @ (self.basis**2).T)

    def predict(self, outputs: Values, place: int) -> Values:
        """Return the leave-one-out predictions of centered outputs (n, c) with the regularizer at a place, (n, c)."""
        return np.asarray(outputs - self._errors(outputs, self.basis.T @ outputs, place))

    def _errors(self, outputs: Values, along: Values, place: int) -> Values:
        """Return the leave-one-out errors of outputs (n, c), given these along the basis, (q, c)."""
        fitted = np.asarray(self.basis @ (self.shrinkage[place][:, None] * along))
        errors: Values = np.subtract(outputs, fitted, out=fitted)
        if self.folds:
            return self._without_folds(errors, place)
        share = 1 - 1 / len(outputs)
        errors *= (share / (share - self.leverages[place]))[:, None]
        return errors

    def predict_others(self, x: AnyArray, outputs: Values, place: int) -> Values:
        """Return the predictions at other inputs, (m, ...), from centered outputs (n,) of all rows, (m,)."""
        if self.extension is None:
            raise ValueError("the regression is on all rows")
        weights = self.shrinkage[place] * (self.basis.T @ outputs)
        blocks = (x[start : start + BLOCK] for start in range(0, len(x), BLOCK))
        return np.concatenate([self.extension(block) @ weights for block in blocks])

    def _without_folds(self, errors: Values, place: int) -> Values:
        """Return the errors of each fold without its rows, given those with them, (n, c)."""
        n, shrinkage = len(errors), np.append(1.0, self.shrinkage[place])
        for rows in self.folds:
            basis = np.column_stack([np.full(len(rows), n**-0.5), self.basis[rows]])
            own = errors[rows]
            own += basis @ np.linalg.solve(np.diag(1 / shrinkage) - basis.T @ basis, basis.T @ own)
            errors[rows] = own - own.sum(axis=0) / n
        return errors

    def covariances(self, outputs: Values) -> Covariances:
        """Return how predictions vary with centered outputs (n, c), in blocks that fit the processor cache."""
        size = max(1, CACHED_VALUES // len(outputs))
        blocks = [outputs[:, start : start + size] for start in range(0, outputs.shape[1], size)]
        return Covariances(*np.concatenate([self._covariances(np.ascontiguousarray(each)) for each in blocks], axis=2))

    def _covariances(self, outputs: Values) -> Values:
        """Return the fields of :class:`Covariances`, (4, l, c)."""
        n, along, squares = len(outputs), self.basis.T @ outputs, list[Values]()
        found = np.empty((4, len(LAMBDAS), outputs.shape[1]))
        for place in range(len(LAMBDAS)):
            errors = self._errors(outputs, along, place)
            predicted = outputs - errors
            common, own = (np.einsum("ic,ic->c", predicted, each) / n for each in (outputs, predicted))
            squares.append(np.square(errors, out=errors))
            found[:3, place] = common, own - predicted.mean(axis=0) ** 2, errors.mean(axis=0)
        sharpest, least = found[2].argmin(axis=0), np.empty(outputs.shape)
        for place in np.unique(sharpest):
            np.copyto(least, squares[place], where=sharpest == place)
        for place, each in enumerate(squares):
            away = np.subtract(each, least, out=each)
            variance = np.einsum("ic,ic->c", away, away) / n - (found[2, place] - found[2].min(axis=0)) ** 2
            found[3, place] = np.sqrt(np.maximum(variance, 0) / n)
        return found
