"""Norms of kernel ridge regressions as functions: sum_c B_c^T K B_c, exact or in linear time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.embeddings.ridge import KernelRidge
from calcheck.embeddings.smoother import smoother
from calcheck.linalg.nystroem import Centres
from calcheck.mmd.quadratic_forms import OF_VALUE, LowRankGram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.embeddings.smoother import Smoother
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.kernel_options import Solver

    Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Norm:
    """The squared norm of a regression.

    Parameters
    ----------
    terms : (n,)
        What each row adds.
    details : dict
        How it was had.
    warnings : tuple of str
        What makes it doubtful.
    """

    terms: Values
    details: dict[str, Any]
    warnings: tuple[str, ...] = ()


class RidgeNorms:
    """Regressions on n inputs, and their norms: F = sum_i k(., x_i) B_i with B = (K + n lambda I)^-1 R.

    |F|^2 = tr B^T K B = tr F(x)^T B, with F(x) = R - n lambda B at the inputs.

    Parameters
    ----------
    kernel : Kernel
        k.
    x : (n, d)
        Normalized inputs.
    run : Run
        Device, precision, memory, seed, progress.
    ridge : float
        lambda.
    solver : str
        As :class:`calcheck.embeddings.ridge.KernelRidge` takes it.
    exact_rows : int
        Up to so many rows the system is solved exactly; beyond, with Nystroem features for K.
    """

    def __init__(self, kernel: Kernel, x: Values, run: Run, ridge: float, *, solver: Solver, exact_rows: int) -> None:
        self._kernel, self._x, self._run, self._ridge = kernel, x, run, ridge
        self._solver: Solver = solver
        self._exact = KernelRidge(kernel, x, run, solver=solver) if len(x) <= exact_rows else None
        self._smoother: Smoother | None = None
        self._linear: NystroemNorm | None = None
        self.told_of_many: dict[str, Any] = {}

    def norm(self, outputs: Values) -> Norm:
        """Return the norm of the regression of outputs (n, q)."""
        if self._exact is None:
            return self._in_linear_time(outputs).norm(outputs)
        found = self._exact.solve(outputs, self._ridge)
        fitted = self._exact.fitted(outputs, found.coefficients, self._ridge)
        terms = np.einsum("ij,ij->i", fitted, self._exact.backend.to_numpy(found.coefficients))
        told = {
            "dof": found.dof.value,
            "dof_error": found.dof.error,
            "solver": {"name": self._exact.solver, "cached": self._exact.is_cached, "iterations": found.iterations},
        }
        return Norm(terms, told)

    def norms(self, outputs: Sequence[Values]) -> list[float]:
        """Return the norms of many regressions, of outputs (n, q) each that are like the first."""
        if not outputs:
            return []
        columns, ends = np.concatenate(outputs, axis=1), np.cumsum([each.shape[1] for each in outputs])[:-1]
        if self._exact is None:
            linear = self._in_linear_time(outputs[0])
            self.told_of_many = linear.told
            squares = linear.squares(columns)
        else:
            if self._smoother is None:
                self._smoother = smoother(self._exact, self._ridge, None, outputs[0])
                self.told_of_many = self._smoother.details
            fitted = self._smoother.smooth(columns)
            squares = np.sum(fitted * (columns - fitted), axis=0) / (len(columns) * self._ridge)
        return [float(part.sum()) for part in np.split(squares, ends)]

    def apply(self, outputs: Values) -> Values:
        """Return Q R for outputs R (n, q), with |F|^2 = tr R^T Q R: Q = (K + n lambda I)^-1 K (K + n lambda I)^-1."""
        if self._exact is None:
            return self._in_linear_time(outputs).apply(outputs)
        ridge, exact = self._ridge, self._exact
        fitted = exact.smoothed(outputs, ridge)
        return exact.backend.to_numpy(exact.solve(fitted, ridge, measure_dof=False).coefficients)

    def _in_linear_time(self, outputs: Values) -> NystroemNorm:
        """Find the fewest centres that give the norm on some of the rows nearly as it is."""
        if self._linear is not None:
            return self._linear
        centres, quiet = Centres(self._kernel, self._x, self._run), self._run.quiet()
        checked = centres.checked
        some = KernelRidge(self._kernel, self._x[checked], quiet, solver=self._solver)
        found = some.solve(outputs[checked], self._ridge, measure_dof=False)
        fitted = some.fitted(outputs[checked], found.coefficients, self._ridge)
        value = float(np.sum(fitted * some.backend.to_numpy(found.coefficients)))
        for features in centres.features():
            tried = NystroemNorm(LowRankGram(features, self._x[checked], quiet), self._ridge)
            missed = abs(float(tried.squares(outputs[checked]).sum()) / value - 1) if value else 0.0
            if missed <= OF_VALUE:
                break
        self._linear = NystroemNorm(LowRankGram(features, self._x, self._run), self._ridge)
        self._linear.told |= {"relative_error": missed, "validation_rows": len(checked)}
        return self._linear


class NystroemNorm:
    """Regressions with K ~ Z Z^T: F = Z w with w = (Z^T Z + n lambda I)^-1 Z^T R, and |F|^2 = |w|^2."""

    def __init__(self, pairs: LowRankGram, ridge: float) -> None:
        self._pairs = pairs
        inner, shift = pairs.gram(), pairs.n * ridge
        self._inverse = np.linalg.inv(inner + shift * np.eye(len(inner)))
        self.dof = float(len(inner) - shift * np.trace(self._inverse))
        self._shift = shift
        self.told: dict[str, Any] = dict(pairs.details)

    def squares(self, outputs: Values) -> Values:
        """Return the squared norm of the regression of each column of outputs (n, c), (c,)."""
        return np.asarray(np.sum((self._inverse @ self._pairs.inner(outputs)) ** 2, axis=0))

    def apply(self, outputs: Values) -> Values:
        """Return Q R for outputs (n, q), with |F|^2 = tr R^T Q R: Q = Z (Z^T Z + n lambda I)^-2 Z^T."""
        return self._pairs.outer(self._inverse @ (self._inverse @ self._pairs.inner(outputs)))

    def norm(self, outputs: Values) -> Norm:
        """Return the norm of the regression of outputs (n, q), row by row."""
        fitted = self._pairs.outer(self._inverse @ self._pairs.inner(outputs))
        terms = np.einsum("ij,ij->i", fitted, outputs - fitted) / self._shift
        warnings = [] if self.told["relative_error"] <= OF_VALUE else [self._missing()]
        return Norm(terms, {"dof": self.dof, "solver": {"name": "nystroem", **self.told}}, tuple(warnings))

    def _missing(self) -> str:
        return (
            f"{self.told['rank']:,} features of inputs miss {self.told['relative_error']:.1%} of the value on"
            f" {self.told['validation_rows']:,} of the rows. Pass a larger --max-exact-rows, or a larger --lambda"
        )
