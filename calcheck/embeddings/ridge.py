"""Kernel ridge regression of output features on inputs: every conditional mean embedding is one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import NumericalError, OptionError
from calcheck.execution.context import GIB, RandomStream
from calcheck.linalg.eigen import EigenSolver, ShiftedSolver
from calcheck.linalg.gram import Gram, evaluate
from calcheck.linalg.preconditioner import TRIED, Costs, Preconditioner
from calcheck.linalg.solvers import Cholesky, Solution, conjugate_gradients

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.execution.backend import Array
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.kernel_options import Solver

CHECKED_ROWS = 256  # rows on which the residual is measured
USELESS = 1e-2  # residual above which there is no solution to speak of
CHOLESKY_ROWS = 2048  # up to which a factorization takes under half a second, and dof is exact
TOLERANCES = {"float64": 1e-11, "float32": 1e-6}
FACTOR_ROWS = 6000  # up to which it is cheaper than conjugate gradients for several regressions with one lambda
WORTH_A_FACTOR = 3  # of them
WORTH_A_SPECTRUM = 7  # regularizers, from which on one decomposition is cheaper than their factors and traces
MATRICES = 4  # n x n, of a decomposition and its workspace
PROBE_SHARE = 0.01  # size of dof's directions beside the outputs, in the same system
PROBES = 12  # pairs of random directions for dof: its standard error is a few per cent at most


@dataclass(frozen=True)
class Dof:
    """Effective degrees of freedom tr K (K + n lambda I)^-1, and the standard error of their estimate."""

    value: float
    error: float


NO_DOF = Dof(0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Regression:
    """One regression: what solves it, how well, and how much it smooths.

    Parameters
    ----------
    coefficients : (n, c)
        B.
    iterations : int
        Products with K that it took; 0 for a factorization.
    residual : float
        |R - (K + n lambda I) B| / |R|, measured.
    dof : Dof
        tr K (K + n lambda I)^-1; 0 if it was not wanted.
    preconditioner : int
        Features of the preconditioner; 0 if there was none.
    """

    coefficients: Array
    iterations: int
    residual: float
    dof: Dof
    preconditioner: int = 0


class KernelRidge:
    """Regressions on the same n inputs: min sum_i |r_i - F(x_i)|^2 + n lambda |F|^2.

    F(x) = k(x)^T B with B = (K + n lambda I)^-1 R. At the inputs themselves F = R - n lambda B, without a product.

    Parameters
    ----------
    kernel : Kernel
        k.
    x : (n, d)
        Normalized inputs.
    run : Run
        Device, precision, memory, progress, and the seed of dof's random directions.
    solver : str
        ``"cholesky"``, ``"cg"`` or ``"auto"``: Cholesky for at most 2,048 rows in float64, where it fits the memory.
    tile : (int, int), optional
        Rows and columns of the Gram matrix made at a time.

    Raises
    ------
    OptionError
        A factorization is asked for that does not fit the memory.
    """

    def __init__(
        self,
        kernel: Kernel,
        x: NDArray[np.floating[Any]],
        run: Run,
        *,
        solver: Solver = "auto",
        tile: tuple[int, int] | None = None,
    ) -> None:
        self.kernel = kernel
        self.run = run
        self.backend = run.backend()
        self.x = self.backend.asarray(x)
        self.n = len(x)
        needed = self.n**2 * self.backend.itemsize
        if solver == "cholesky" and needed > run.memory:
            msg = (
                f"--solver cholesky needs {needed / GIB:.1f} GiB for {self.n:,} rows, and --memory allows"
                f" {run.memory / GIB:.1f} GiB. Pass --solver cg, or more memory"
            )
            raise OptionError(msg)
        self._factor_fits = solver == "auto" and needed <= run.memory and run.precision == "float64"
        self.reason = "as asked"
        if solver == "auto":
            few = self.n <= CHOLESKY_ROWS
            solver = "cholesky" if self._factor_fits and few else "cg"
            self.reason = f"{'at most' if few else 'more than'} {CHOLESKY_ROWS:,} rows"
            if few and not self._factor_fits:
                self.reason = f"a factor takes float64 and {needed / GIB:.1f} GiB"
        self.solver = solver
        self._factors: dict[float, Cholesky] = {}
        self._kept = 1
        self._spectrum: EigenSolver | None = None
        self._by_spectrum = False
        self.gram = Gram(
            kernel,
            self.x,
            memory=run.memory if solver == "cg" else 0,  # the factor is the one n x n matrix
            progress=run.progress,
            tile=tile,
        )

    @property
    def is_cached(self) -> bool:
        """Whether the Gram matrix stays in memory; otherwise it is computed again at every use."""
        return self.gram.kept or self.solver == "cholesky"

    def solve(self, outputs: NDArray[np.float64], ridge: float, *, measure_dof: bool = True) -> Regression:
        """Regress outputs on the inputs.

        Parameters
        ----------
        outputs : (n, c)
            R.
        ridge : float
            lambda > 0.
        measure_dof : bool
            Whether tr K (K + n lambda I)^-1 is wanted too: exact from a factorization, estimated from random
            directions otherwise.

        Returns
        -------
        Regression
            B, on the backend's device, and the residual as measured.

        Raises
        ------
        NumericalError
            The system is too ill-conditioned for the precision.

        Notes
        -----
        Conjugate gradients are preconditioned by Nystroem features of up to 1,024 inputs from the iteration on after
        which that takes fewer multiplications, by what the first four have left of the residual
        (:meth:`calcheck.linalg.preconditioner.Costs.pays_off`): for small lambda, and wide or many inputs.
        """
        rhs = self.backend.asarray(outputs)
        dof = NO_DOF
        if self.solver == "cholesky":
            factor = self.factor(self.n * ridge)
            solution = factor.solve(rhs)
            if measure_dof:
                dof = Dof(self.n - self.n * ridge * factor.trace_of_inverse(), 0.0)
        elif measure_dof:
            solution, dof = self._solve_with_probes(rhs, ridge)
        else:
            solution = self._iterate(rhs, ridge)
        residual = self._residual(solution.coefficients, rhs, ridge)
        if not (residual < USELESS and math.isfinite(dof.value)):
            msg = (
                f"solving K + n lambda I for lambda {ridge:g} leaves a residual of {residual:.1e}"
                f" in {self.run.precision}: the kernel's values are too large or too alike. Pass a larger --lambda,"
                " --normalize l2 or standardize, or --precision float64"
            )
            raise NumericalError(msg)
        return Regression(solution.coefficients, solution.iterations, residual, dof, solution.preconditioner)

    def plan(self, ridges: int, solves: int) -> None:
        """Be told how many lambda will be asked for, and how often in all: what is made for one of them is kept.

        Many lambda are solved by one spectrum, many regressions with each by a factor, where these are cheaper.
        """
        room = self.run.memory // (self.n**2 * self.backend.itemsize)
        if self._factor_fits and self.n <= FACTOR_ROWS and solves >= WORTH_A_FACTOR * ridges:
            self.solver, self.reason = "cholesky", f"one factor serves {solves:,} regressions"
        self._by_spectrum = self.n <= CHOLESKY_ROWS and ridges >= WORTH_A_SPECTRUM and room >= MATRICES
        self._kept = max(1, min(ridges, room))
        self.gram.kept |= room > self._kept

    def factor(self, shift: float) -> Cholesky | ShiftedSolver:
        """Factorize K + s I, or take the factor from before, or the spectrum."""
        if self._by_spectrum:
            self._spectrum = self._spectrum or EigenSolver(self.gram, self.run.progress)
            return self._spectrum.shifted(shift)
        if shift not in self._factors:
            while len(self._factors) >= self._kept:  # before the next one is made: one n x n matrix at a time
                del self._factors[next(iter(self._factors))]
            self._factors[shift] = Cholesky(self.gram, shift, self.run.progress)
        return self._factors[shift]

    def smoothed(self, outputs: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
        """Return the regression of outputs (n, c) at the inputs themselves, (n, c)."""
        return self.fitted(outputs, self.solve(outputs, ridge, measure_dof=False).coefficients, ridge)

    @property
    def trace(self) -> float:
        """The trace of K, which bounds its largest eigenvalue."""
        return float(self.backend.to_numpy(self.kernel.diagonal(self.x)).sum())

    def _iterate(self, rhs: Array, ridge: float) -> Solution:
        tolerance, shift = TOLERANCES[self.run.precision], self.n * ridge
        room = self.run.memory - (self.gram.nbytes if self.gram.kept else 0)
        costs = Costs.from_solve(self.x, rhs.shape[1], kept=self.gram.kept, room=room)

        def suggest(iterations: int, residual: float) -> Preconditioner | None:
            if iterations != TRIED or not costs.pays_off(residual, tolerance):
                return None
            self.run.progress("precondition", 0.0)
            centres = np.sort(self.run.rng(RandomStream.LANDMARKS).choice(self.n, costs.centres, replace=False))
            return Preconditioner(self.gram, shift, centres, self.backend, memory=room)

        progress = self.run.progress
        return conjugate_gradients(self.gram, shift, rhs, tolerance=tolerance, progress=progress, suggest=suggest)

    def _residual(self, coefficients: Array, rhs: Array, ridge: float) -> float:
        """Measure |R - (K + n lambda I) B| / |R| on some rows chosen at random: all of them where they are few."""
        chosen = np.arange(self.n)
        if self.n > CHECKED_ROWS:
            chosen = np.sort(self.run.rng(RandomStream.RESIDUAL).choice(self.n, CHECKED_ROWS, replace=False))
        rows = self.backend.indices(chosen)
        found = self.backend.xp.concat(list(evaluate(self.kernel, self.x[rows], self.x, coefficients)))
        missed = self.backend.to_numpy(rhs[rows] - found - self.n * ridge * coefficients[rows])
        size = float(self.backend.xp.linalg.matrix_norm(rhs)) * math.sqrt(len(chosen) / self.n)
        return float(np.linalg.norm(missed)) / size if size else 0.0

    def _solve_with_probes(self, rhs: Array, ridge: float) -> tuple[Solution, Dof]:
        """Solve for the outputs and, in the same products, for the directions that estimate dof.

        The trace over the directions that K stretches most is taken exactly, the rest is Hutchinson's estimate on
        their complement (Hutch++: Meyer, Musco, Musco, Woodruff 2021).
        """
        xp = self.backend.xp
        # small beside the outputs, so that the tolerance is theirs
        weight = PROBE_SHARE * (float(xp.linalg.matrix_norm(rhs)) or 1.0) / math.sqrt(self.n)
        columns = rhs.shape[1]
        rhs = xp.concat([rhs, weight * self._directions()], axis=1)
        solution = self._iterate(rhs, ridge)
        sent, found = (self.backend.to_numpy(each[:, columns:]) for each in (rhs, solution.coefficients))
        forms = np.einsum("ij,ij->j", sent, sent - self.n * ridge * found) / weight**2  # in float64
        exact, estimates = np.split(forms, 2)
        error = float(estimates.std(ddof=1) / np.sqrt(len(estimates))) if len(estimates) > 1 else 0.0
        dof = Dof(float(exact.sum() + estimates.mean()), error)
        return replace(solution, coefficients=solution.coefficients[:, :columns]), dof

    def _directions(self) -> Array:
        """Return orthonormal directions that K stretches most, and random ones orthogonal to them, (n, 2 p)."""
        xp, rng = self.backend.xp, self.run.rng(RandomStream.DOF)
        signs = rng.choice([-1.0, 1.0], (self.n, 2 * min(PROBES, self.n)))
        sketch, probes = (self.backend.asarray(half) for half in np.split(signs, 2, axis=1))
        main, _ = xp.linalg.qr(self.gram @ sketch)  # (n, p)
        return xp.concat([main, probes - main @ (main.T @ probes)], axis=1)

    def fitted(self, outputs: NDArray[np.float64], coefficients: Array, ridge: float) -> NDArray[np.float64]:
        """Return F at the inputs, (n, c): R - n lambda B."""
        return outputs - self.n * ridge * self.backend.to_numpy(coefficients)

    def predict(self, x: NDArray[np.floating[Any]], coefficients: Array) -> Iterator[NDArray[np.float64]]:
        """Yield F at other normalized inputs, (b, c), block by block in order."""
        points = self.backend.asarray(x)
        done = 0
        for block in evaluate(self.kernel, points, self.x, coefficients):
            self.run.progress("evaluate", done / len(points))
            done += len(block)
            yield self.backend.to_numpy(block)
