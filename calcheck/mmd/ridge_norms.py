"""RKHS norms of kernel ridge regressions, sum_c B_c^T K B_c, exact or by Nyström features in linear time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calcheck.details import CmmdDetails
from calcheck.details import Solver as SolverDetails
from calcheck.embeddings.laplace import PairForm
from calcheck.embeddings.ridge import KernelRidge, Smoother, smoother
from calcheck.errors import Message
from calcheck.execution.run import Run
from calcheck.kernels import Solver
from calcheck.kernels.functions import Kernel
from calcheck.linalg.gram import LandmarkSamples, Nystroem, first_sufficient, gram_factor
from calcheck.mmd.quadratic_forms import RESIDUAL, VALUE_TOLERANCE, LowRankGram
from calcheck.typing import Values


@dataclass(frozen=True, eq=False)
class Norm:
    """The squared norm of a regression."""

    terms: Values  # (n,), contribution of each row
    details: CmmdDetails  # Solver, its settings and the effective degrees of freedom
    warnings: tuple[Message, ...] = ()  # Warnings about its accuracy


class RidgeNorms:
    """Kernel ridge regressions on n inputs and their norms: F = sum_i k(., x_i) B_i, B = (K + n lambda I)^-1 R.

    |F|^2 = tr B^T K B = tr F(x)^T B, with F(x) = R - n lambda B at the inputs.
    """

    def __init__(
        self,
        kernel: Kernel,  # Kernel on inputs
        x: Values,  # (n, d), normalized inputs
        run: Run,  # Device, precision, memory, seed, progress
        ridge: float,  # Regularizer lambda
        *,
        solver: Solver,  # As in `KernelRidge`
        exact_rows: int,  # Maximum rows for an exact solution; beyond, K is approximated by Nyström features
    ) -> None:
        self._kernel, self._x, self._run, self._ridge = kernel, x, run, ridge
        self._solver: Solver = solver
        self._exact = KernelRidge(kernel, x, run, solver=solver) if len(x) <= exact_rows else None
        self._smoother: Smoother | None = None
        self._linear: NystroemNorm | None = None
        self.replicate_details: Mapping[str, Any] = {}

    def norm(self, outputs: Values) -> Norm:
        """Return the norm of the regression of outputs (n, q)."""
        if self._exact is None:
            return self._in_linear_time(outputs).norm(outputs)
        found = self._exact.solve(outputs, self._ridge)
        fitted = self._exact.fitted(outputs, found.coefficients, self._ridge)
        terms = np.einsum("ij,ij->i", fitted, self._exact.backend.to_numpy(found.coefficients))
        details: CmmdDetails = {
            "dof": found.dof.value,
            "dof_error": found.dof.error,
            "solver": {"name": self._exact.solver, "cached": self._exact.is_cached, "iterations": found.iterations},
        }
        return Norm(terms, details)

    def norms(self, outputs: Sequence[Values]) -> list[float]:
        """Return the norms of several regressions; all outputs (n, q) must resemble the first."""
        if not outputs:
            return []
        columns, ends = np.concatenate(outputs, axis=1), np.cumsum([each.shape[1] for each in outputs])[:-1]
        if self._exact is None:
            linear = self._in_linear_time(outputs[0])
            self.replicate_details = linear.details
            squares = linear.squares(columns)
        else:
            if self._smoother is None:
                self._smoother = smoother(self._exact, self._ridge, None, lambda: outputs[0])
                self.replicate_details = self._smoother.details
            fitted = self._smoother.smooth(columns)
            squares = np.sum(fitted * (columns - fitted), axis=0) / (len(columns) * self._ridge)
        return [float(part.sum()) for part in np.split(squares, ends)]

    @cached_property
    def pair_form(self) -> PairForm | None:
        """|F|^2 as a form of the outputs R: tr R^T Q R, as for :meth:`apply`; None without a Cholesky factor."""
        exact = self._exact
        if exact is None or exact.solver != "cholesky":
            return None
        self.replicate_details = {"method": "cholesky"}
        root = gram_factor(exact.backend.to_numpy(exact.gram @ exact.backend.asarray(np.eye(exact.n))), RESIDUAL)
        found = exact.solve(root, self._ridge, measure_dof=False).coefficients
        return PairForm(np.ascontiguousarray(exact.backend.to_numpy(found).T), np.zeros(exact.n))

    def apply(self, outputs: Values) -> Values:
        """Return Q R for outputs R (n, q), with |F|^2 = tr R^T Q R: Q = (K + n lambda I)^-1 K (K + n lambda I)^-1."""
        if self._exact is None:
            return self._in_linear_time(outputs).apply(outputs)
        ridge, exact = self._ridge, self._exact
        fitted = exact.smoothed(outputs, ridge)
        return exact.backend.to_numpy(exact.solve(fitted, ridge, measure_dof=False).coefficients)

    def _in_linear_time(self, outputs: Values) -> NystroemNorm:
        """Return the smallest Nyström approximation whose norm is within tolerance on the validation rows."""
        if self._linear is not None:
            return self._linear
        landmarks, quiet = LandmarkSamples(self._kernel, self._x, self._run), self._run.quiet()
        validation = landmarks.checked
        subset = KernelRidge(self._kernel, self._x[validation], quiet, solver=self._solver)
        found = subset.solve(outputs[validation], self._ridge, measure_dof=False)
        fitted = subset.fitted(outputs[validation], found.coefficients, self._ridge)
        value = float(np.sum(fitted * subset.backend.to_numpy(found.coefficients)))

        def measured(features: Nystroem) -> tuple[Nystroem, float]:
            candidate = NystroemNorm(LowRankGram(features, self._x[validation], quiet), self._ridge)
            total = float(candidate.squares(outputs[validation]).sum())
            return features, abs(total / value - 1) if value else 0.0

        features, error = first_sufficient(
            map(measured, landmarks.features()), lambda found: found[1] <= VALUE_TOLERANCE
        )
        self._linear = NystroemNorm(LowRankGram(features, self._x, self._run), self._ridge)
        self._linear.details |= {"relative_error": error, "validation_rows": len(validation)}
        return self._linear


class NystroemNorm:
    """Regressions with K ~ Z Z^T: F = Z w, w = (Z^T Z + n lambda I)^-1 Z^T R, and |F|^2 = |w|^2."""

    def __init__(self, pairs: LowRankGram, ridge: float) -> None:
        self._pairs = pairs
        inner, shift = pairs.gram(), pairs.n * ridge
        self._inverse = np.linalg.inv(inner + shift * np.eye(len(inner)))
        self.dof = float(len(inner) - shift * np.trace(self._inverse))
        self._shift = shift
        self.details: SolverDetails = {"method": "low rank", "rank": pairs.rank}

    def squares(self, outputs: Values) -> Values:
        """Return the squared norm, (c,), of the regression of each column of outputs (n, c)."""
        return np.asarray(np.sum((self._inverse @ self._pairs.inner(outputs)) ** 2, axis=0))

    def apply(self, outputs: Values) -> Values:
        """Return Q R for outputs (n, q), with |F|^2 = tr R^T Q R: Q = Z (Z^T Z + n lambda I)^-2 Z^T."""
        return self._pairs.outer(self._inverse @ (self._inverse @ self._pairs.inner(outputs)))

    def norm(self, outputs: Values) -> Norm:
        """Return the norm of the regression of outputs (n, q), with the contribution of each row."""
        fitted = self._pairs.outer(self._inverse @ self._pairs.inner(outputs))
        terms = np.einsum("ij,ij->i", fitted, outputs - fitted) / self._shift
        warnings = [] if self.details["relative_error"] <= VALUE_TOLERANCE else [self._missing()]
        return Norm(terms, {"dof": self.dof, "solver": {"name": "nystroem", **self.details}}, tuple(warnings))

    def _missing(self) -> Message:
        text = (
            f"the low-rank kernel ({self.details['rank']:,} features of inputs) has a relative error of"
            f" {self.details['relative_error']:.1%} on {self.details['validation_rows']:,} validation rows."
            " Pass a larger --max-exact-rows or a larger --lambda"
        )
        return Message("low-rank-error", text)
