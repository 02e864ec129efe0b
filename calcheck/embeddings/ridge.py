"""Kernel ridge regression of output features on inputs, the estimator of conditional mean embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import NumericalError, OptionError
from calcheck.execution.run import GIB, RandomStream, Run
from calcheck.linalg.gram import Gram, evaluate
from calcheck.linalg.solvers import (
    TRIAL_ITERATIONS,
    Cholesky,
    Preconditioner,
    Solution,
    conjugate_gradients,
    n_landmarks,
    pays_off,
)

if TYPE_CHECKING:
    from calcheck.kernels import Solver
    from calcheck.kernels.functions import Kernel
    from calcheck.typing import Array, Floats, Values

RESIDUAL_ROWS = 256  # Maximum rows on which the residual is computed
MAX_RESIDUAL = 1e-2  # Maximum relative residual; larger residuals are an error
TOLERANCES = {"float64": 1e-11, "float32": 1e-6}  # Relative residual at which conjugate gradients stop
MIN_SOLVES_PER_FACTOR = 3  # Minimum regressions per lambda for this
PROBE_SHARE = 0.01  # Norm of the dof probes relative to the outputs in the same system
PROBES = 12  # Pairs of random directions for dof; its standard error is at most a few percent


@dataclass(frozen=True)
class Dof:
    """Effective degrees of freedom tr K (K + n_lambda I)^-1, and the standard error of the estimate."""

    value: float
    error: float


NO_DOF = Dof(0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Regression:
    """Solution of one regression, with its residual and degrees of freedom."""

    coefficients: Array  # (n, c), coefficients B
    iterations: int  # Number of products with K; 0 for a factorization
    residual: float  # Relative residual |R - (K + n_lambda I) B| / |R|
    dof: Dof  # tr K (K + n_lambda I)^-1; 0 if not requested
    preconditioner: int = 0  # Rank of the preconditioner; 0 if none was used


class KernelRidge:
    """Kernel ridge regressions on the same n inputs: min sum_i |r_i - F(x_i)|^2 + n_lambda |F|^2.

    F(x) = k(x)^T B with B = (K + n_lambda I)^-1 R. At the fitted inputs, F = R - n_lambda B needs no product with K.
    """

    def __init__(
        self,
        kernel: Kernel,  # Kernel k on inputs
        x: Floats,  # (n, d), normalized inputs
        run: Run,  # Device, precision, memory, progress, and the seed of the random directions for dof
        *,
        # "cholesky", "cg" or "auto": Cholesky for at most 2,048 rows in float64 if it fits in memory
        solver: Solver = "auto",
        tile: tuple[int, int] | None = None,  # Rows and columns of a tile of the Gram matrix
    ) -> None:
        self.kernel = kernel
        self.run = run
        self.backend = run.backend()
        self.x = self.backend.asarray(x)
        self.n = len(x)
        needed = self.n**2 * self.backend.itemsize
        if solver == "cholesky" and needed > run.memory:
            msg = (
                f"--solver cholesky needs {needed / GIB:.1f} GiB for {self.n:,} rows, but --memory allows"
                f" {run.memory / GIB:.1f} GiB. Pass --solver cg, or a larger --memory"
            )
            raise OptionError(msg)
        self._factor_fits = solver == "auto" and needed <= run.memory and run.precision == "float64"
        self.reason = "as requested"
        if solver == "auto":
            most = run.limits.cholesky_rows
            few = self.n <= most
            solver = "cholesky" if self._factor_fits and few else "cg"
            self.reason = f"{'at most' if few else 'more than'} {most:,} rows"
            if few and not self._factor_fits:
                self.reason = f"a Cholesky factor requires float64 and {needed / GIB:.1f} GiB"
        self.solver = solver
        self._factors: dict[float, Cholesky] = {}
        self._max_factors = 1
        self.gram = Gram(
            kernel,
            self.x,
            memory=run.memory if solver == "cg" else 0,  # the factor is the only n x n matrix in memory
            progress=run.progress,
            tile=tile,
        )

    @property
    def is_cached(self) -> bool:
        """Whether the Gram matrix is cached in memory; otherwise it is recomputed at every use."""
        return self.gram.kept or self.solver == "cholesky"

    def solve(self, outputs: Values, lambda_: float, *, measure_dof: bool = True) -> Regression:
        """Return the regression of outputs on the inputs. Shapes: outputs (n, c).

        Conjugate gradients use a Nyström preconditioner with up to 1,024 landmarks if it is estimated to save
        multiplications, based on the residual after the first four iterations
        (:func:`calcheck.linalg.solvers.pays_off`). This is the case for small lambda and for many rows or
        columns.
        """
        rhs = self.backend.asarray(outputs)
        dof = NO_DOF
        if self.solver == "cholesky":
            factor = self.factor(self.n * lambda_)
            solution = factor.solve(rhs)
            if measure_dof:
                dof = Dof(self.n - self.n * lambda_ * factor.trace_of_inverse(), 0.0)
        elif measure_dof:
            solution, dof = self._solve_with_probes(rhs, lambda_)
        else:
            solution = self._iterate(rhs, lambda_)
        residual = self._residual(solution.coefficients, rhs, lambda_)
        if not (residual < MAX_RESIDUAL and math.isfinite(dof.value)):
            msg = (
                f"solving with K + n lambda I for lambda {lambda_:g} has a relative residual of {residual:.1e}"
                f" in {self.run.precision}: the kernel matrix is ill-conditioned. Pass a larger --lambda,"
                " --normalize l2 or standardize, or --precision float64"
            )
            raise NumericalError(msg)
        return Regression(solution.coefficients, solution.iterations, residual, dof, solution.preconditioner)

    def plan(self, lambdas: int, solves: int) -> None:
        """Choose the solver for a number of distinct lambdas and of solves: Cholesky if each factor is used often."""
        room = self.run.memory // (self.n**2 * self.backend.itemsize)  # n x n matrices that fit in memory
        if self._factor_fits and self.n <= self.run.limits.factor_rows and solves >= MIN_SOLVES_PER_FACTOR * lambdas:
            self.solver, self.reason = "cholesky", f"one factor is used for {solves:,} regressions"
        self._max_factors = max(1, min(lambdas, room))

    def factor(self, n_lambda: float) -> Cholesky:
        """Return the cached or a new Cholesky factor of K + n_lambda I."""
        if n_lambda not in self._factors:
            while len(self._factors) >= self._max_factors:  # free memory before the next factorization
                del self._factors[next(iter(self._factors))]
            self._factors[n_lambda] = Cholesky(self.gram, n_lambda, self.run.progress)
        return self._factors[n_lambda]

    def smoothed(self, outputs: Values, lambda_: float) -> Values:
        """Return the regression of outputs (n, c) at the fitted inputs, (n, c)."""
        return self.fitted(outputs, self.solve(outputs, lambda_, measure_dof=False).coefficients, lambda_)

    @property
    def trace(self) -> float:
        """Trace of K, an upper bound of its largest eigenvalue."""
        return float(self.backend.to_numpy(self.kernel.diagonal(self.x)).sum())

    def _iterate(self, rhs: Array, lambda_: float) -> Solution:
        tolerance, n_lambda = TOLERANCES[self.run.precision], self.n * lambda_
        available = self.run.memory - (self.gram.nbytes if self.gram.kept else 0)
        count = n_landmarks(self.n)
        pays = partial(
            pays_off,
            self.x.shape,
            rhs.shape[1],
            cached=self.gram.kept,
            cached_features=self.n * count * self.x.itemsize <= available,
            tolerance=tolerance,
        )

        def suggest(iterations: int, residual: float) -> Preconditioner | None:
            if iterations != TRIAL_ITERATIONS or not pays(residual=residual):
                return None
            self.run.progress("preconditioner", 0.0)
            landmarks = np.sort(self.run.rng(RandomStream.LANDMARKS).choice(self.n, count, replace=False))
            return Preconditioner(self.gram, n_lambda, landmarks, self.backend, memory=available)

        progress = self.run.progress
        return conjugate_gradients(self.gram, n_lambda, rhs, tolerance=tolerance, progress=progress, suggest=suggest)

    def _residual(self, coefficients: Array, rhs: Array, lambda_: float) -> float:
        """Return |R - (K + n_lambda I) B| / |R|, estimated on a random sample of rows if there are many."""
        chosen = np.arange(self.n)
        if self.n > RESIDUAL_ROWS:
            chosen = np.sort(self.run.rng(RandomStream.RESIDUAL).choice(self.n, RESIDUAL_ROWS, replace=False))
        rows = self.backend.indices(chosen)
        found = self.backend.xp.concat(list(evaluate(self.kernel, self.x[rows], self.x, coefficients)))
        missed = self.backend.to_numpy(rhs[rows] - found - self.n * lambda_ * coefficients[rows])
        size = float(self.backend.xp.linalg.matrix_norm(rhs)) * math.sqrt(len(chosen) / self.n)
        return float(np.linalg.norm(missed)) / size if size else 0.0

    def _solve_with_probes(self, rhs: Array, lambda_: float) -> tuple[Solution, Dof]:
        """Solve for the outputs and for the probe directions of dof in the same system.

        The trace on the approximate leading eigenspace of K is exact; the rest is Hutchinson's estimate on its
        orthogonal complement (Hutch++: Meyer, Musco, Musco, Woodruff 2021).
        """
        xp = self.backend.xp
        # small compared with the outputs, so that the tolerance applies to the outputs
        weight = PROBE_SHARE * (float(xp.linalg.matrix_norm(rhs)) or 1.0) / math.sqrt(self.n)
        columns = rhs.shape[1]
        rhs = xp.concat([rhs, weight * self._directions()], axis=1)
        solution = self._iterate(rhs, lambda_)
        probes, solved = (self.backend.to_numpy(each[:, columns:]) for each in (rhs, solution.coefficients))
        forms = np.einsum("ij,ij->j", probes, probes - self.n * lambda_ * solved) / weight**2  # in float64
        exact, estimates = np.split(forms, 2)
        error = float(estimates.std(ddof=1) / np.sqrt(len(estimates))) if len(estimates) > 1 else 0.0
        dof = Dof(float(exact.sum() + estimates.mean()), error)
        return replace(solution, coefficients=solution.coefficients[:, :columns]), dof

    def _directions(self) -> Array:
        """Return an orthonormal basis of the leading eigenspace of K, and random orthogonal directions, (n, 2 p)."""
        xp, rng = self.backend.xp, self.run.rng(RandomStream.DOF)
        signs = rng.choice([-1.0, 1.0], (self.n, 2 * min(PROBES, self.n)))
        sketch, probes = (self.backend.asarray(half) for half in np.split(signs, 2, axis=1))
        main, _ = xp.linalg.qr(self.gram @ sketch)  # (n, p)
        return xp.concat([main, probes - main @ (main.T @ probes)], axis=1)

    def fitted(self, outputs: Values, coefficients: Array, lambda_: float) -> Values:
        """Return F at the fitted inputs, (n, c): R - n_lambda B."""
        return outputs - self.n * lambda_ * self.backend.to_numpy(coefficients)

    def predict(self, x: Floats, coefficients: Array) -> Iterator[Values]:
        """Yield blocks (b, c) of F at other normalized inputs, in order."""
        points = self.backend.asarray(x)
        done = 0
        for block in evaluate(self.kernel, points, self.x, coefficients):
            self.run.progress("evaluation", done / len(points))
            done += len(block)
            yield self.backend.to_numpy(block)
