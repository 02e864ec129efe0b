"""Kernel ridge regression on inputs, the estimator of conditional mean embeddings, and its smoother matrix."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import NumericalError, OptionError
from calcheck.execution.backend import Backend, backend
from calcheck.execution.run import GIB, RandomStream, Run
from calcheck.kernels import Solver
from calcheck.kernels.kernel_functions import Kernel
from calcheck.linalg import solvers
from calcheck.linalg.gram import Gram, Nystroem, evaluate, first_sufficient, truncated_eigenbasis
from calcheck.typing import Array, Floats, Values

if TYPE_CHECKING:
    from calcheck.embeddings.laplace_embeddings import ScalarEmbeddings

RESIDUAL_ROWS = 256  # Maximum rows on which the residual is computed
MAX_RESIDUAL = 1e-2  # Maximum relative residual; larger residuals are an error
TOLERANCES = {"float64": 1e-11, "float32": 1e-6}  # Relative residual at which conjugate gradients stop
NO_LOSS = 1e-15  # Share of squared outputs that is lost by rounding anyway
MIN_SOLVES_PER_FACTOR = 3  # Minimum regressions per lambda for this
PROBE_SHARE = 0.01  # Norm of the dof probes relative to the outputs in the same system
PROBES = 12  # Pairs of random directions for dof; its standard error is at most a few percent
EXACT_PASSES = 12  # Typical number of products with the kernel matrix for conjugate gradients
FLOPS_PER_KERNEL_VALUE = 100  # Multiply-adds per kernel value in addition to the product of the inputs
EXACT_COLUMNS = 6  # Number of (n, outputs) arrays in memory for conjugate gradients
MAX_CONDITION = 1e3  # Maximum condition number of K + n_lambda I for single precision, which then keeps 4 digits
MIN_ROWS_PER_LANDMARK = 6  # Minimum rows per landmark of a low-rank approximation; below, a factor is cheaper
MAX_ERROR = 1e-3  # Maximum error of the low-rank approximation, relative to the squared smoothed outputs
ROUGH_ERROR, ROUGH_RANKS = 0.15, (64, 256, 512)  # The same, and ranks, if data and replicates are smoothed alike
NEGLIGIBLE = 1e-4  # Bound of the error of a smoother, relative to outputs, below which it is not measured


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
            raise OptionError(
                f"--solver cholesky needs {needed / GIB:.1f} GiB for {self.n:,} rows, but --memory allows"
                f" {run.memory / GIB:.1f} GiB. Pass --solver cg, or a larger --memory"
            )
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
        self._factors: dict[float, solvers.Cholesky] = {}
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

    def solve(
        self, outputs: Values, lambda_: float, *, measure_dof: bool = True, subtracted: bool = False
    ) -> Regression:
        """Return the regression of outputs (n, c); iterations have a preconditioner if it is estimated to pay off.

        If the regression is subtracted from another, what principal directions lose does not cancel: less is lost.
        """
        turns = self._directions_of(outputs, subtracted=subtracted)
        rhs = self.backend.asarray(outputs if turns is None else outputs @ turns)
        dof = NO_DOF
        if self.solver == "cholesky":
            factor = self.factor(self.n * lambda_)
            solution = factor.solve(rhs)
            if measure_dof:
                dof = Dof(self.n - self.n * lambda_ * factor.trace_of_inverse, 0.0)
        elif measure_dof:
            solution, dof = self._solve_with_probes(rhs, lambda_)
        else:
            solution = self._iterate(rhs, lambda_)
        residual = self._residual(solution.coefficients, rhs, lambda_)
        if not (residual < MAX_RESIDUAL and math.isfinite(dof.value)):
            raise NumericalError(
                f"solving with K + n lambda I for lambda {lambda_:g} has a relative residual of {residual:.1e}"
                f" in {self.run.precision}: the kernel matrix is ill-conditioned. Pass a larger --lambda,"
                " --normalize l2 or standardize, or --precision float64"
            )
        found = solution.coefficients if turns is None else solution.coefficients @ self.backend.asarray(turns.T)
        return Regression(found, solution.iterations, residual, dof, solution.preconditioner)

    def _directions_of(self, outputs: Values, *, subtracted: bool) -> Values | None:
        """Return the principal directions of outputs (n, c), (c, q), if iterations cost much less along them."""
        if self.solver == "cholesky" or outputs.dtype != np.float64 or len(outputs) < outputs.shape[1]:
            return None
        turns = truncated_eigenbasis(outputs.T @ outputs, NO_LOSS)[1]
        if subtracted:
            rest = outputs - outputs @ turns @ turns.T
            turns = np.linalg.qr(np.hstack([turns, truncated_eigenbasis(rest.T @ rest)[1]]))[0]
        return turns if 0 < 2 * turns.shape[1] <= outputs.shape[1] else None

    def plan(self, lambdas: int, solves: int) -> None:
        """Choose the solver for a number of distinct lambdas and of solves: Cholesky if each factor is used often."""
        room = self.run.memory // (self.n**2 * self.backend.itemsize)  # n x n matrices that fit in memory
        if self._factor_fits and self.n <= self.run.limits.factor_rows and solves >= MIN_SOLVES_PER_FACTOR * lambdas:
            self.solver, self.reason = "cholesky", f"one factor is used for {solves:,} regressions"
        self._max_factors = max(1, min(lambdas, room))

    def factor(self, n_lambda: float) -> solvers.Cholesky:
        """Return the cached or a new Cholesky factor of K + n_lambda I."""
        if n_lambda not in self._factors:
            while len(self._factors) >= self._max_factors:  # free memory before the next factorization
                del self._factors[next(iter(self._factors))]
            self._factors[n_lambda] = solvers.Cholesky(self.gram, n_lambda, self.run.progress)
        return self._factors[n_lambda]

    def smoothed(self, outputs: Values, lambda_: float, points: Values | None = None) -> Values:
        """Return the regression of outputs (n, c) at points (m, d), or at the fitted inputs, (m, c)."""
        coefficients = self.solve(outputs, lambda_, measure_dof=False).coefficients
        if points is None:
            return self.fitted(outputs, coefficients, lambda_)
        return np.concatenate(list(self.predict(points, coefficients)))

    @property
    def trace(self) -> float:
        """Trace of K, an upper bound of its largest eigenvalue."""
        return float(self.backend.to_numpy(self.kernel.diagonal(self.x)).sum())

    def _iterate(self, rhs: Array, lambda_: float) -> solvers.Solution:
        tolerance, n_lambda = TOLERANCES[self.run.precision], self.n * lambda_
        available = self.run.memory - (self.gram.nbytes if self.gram.kept else 0)
        count = solvers.n_landmarks(self.n)
        fits = self.n * count * self.x.itemsize <= available

        def suggest(iterations: int, residual: float) -> solvers.Preconditioner | None:
            if iterations != solvers.TRIAL_ITERATIONS:
                return None
            sizes, kept = (self.x.shape, rhs.shape[1]), self.gram.kept
            if not solvers.pays_off(*sizes, cached=kept, cached_features=fits, residual=residual, tolerance=tolerance):
                return None
            self.run.progress("preconditioner", 0.0)
            landmarks = np.sort(self.run.rng(RandomStream.LANDMARKS).choice(self.n, count, replace=False))
            return solvers.Preconditioner(self.gram, n_lambda, landmarks, self.backend, memory=available)

        progress = self.run.progress
        return solvers.conjugate_gradients(
            self.gram, n_lambda, rhs, tolerance=tolerance, progress=progress, suggest=suggest
        )

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

    def _solve_with_probes(self, rhs: Array, lambda_: float) -> tuple[solvers.Solution, Dof]:
        """Solve for the outputs and the probes of dof, exact on leading eigenvectors (Hutch++: Meyer et al. 2021)."""
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


def approximation_reason(n: int, d: int, outputs: int, run: Run) -> str:
    """Return why an exact solver is too expensive, or "", by sizes and options only, as on every machine."""
    products = EXACT_PASSES * float(n) ** 2 * (d + FLOPS_PER_KERNEL_VALUE)
    most = run.limits.max_exact_flops
    needed = n * (d + EXACT_COLUMNS * outputs) * (4 if run.precision == "float32" else 8)
    if products > most:
        return f"exact conjugate gradients would need {products:.1e} multiply-adds; the maximum is {most:g}"
    if needed > run.memory:
        return (
            f"exact conjugate gradients would need {needed / GIB:.1f} GiB, and --memory allows {run.memory / GIB:.1f}"
        )
    return ""


class Smoother(ABC):
    """Smoother matrix A of n inputs at m points: the fitted inputs, or others."""

    method: str
    missed_noise: float = 0.0  # Mean square that a low rank misses, relative to that of the outputs before smoothing

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
        if ridge.solver == "cholesky" or ridge.gram.features is not None:
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

    def _factorize(self, array: Backend) -> solvers.Cholesky:
        """Return the Cholesky factor in the precision of the array library."""
        ridge = self.ridge
        ridge.gram.clear()  # the factor is the only n x n matrix in memory
        gram = Gram(ridge.kernel, array.asarray(ridge.backend.to_numpy(ridge.x)), memory=0, progress=ridge.run.progress)
        if array.itemsize < ridge.backend.itemsize and 1 + ridge.trace / self.n_lambda > MAX_CONDITION:
            raise NumericalError("K + n lambda I is too ill-conditioned for single precision")
        return solvers.Cholesky(gram, self.n_lambda, ridge.run.progress)

    def smooth(self, outputs: Values) -> Values:
        rhs = self.array.asarray(outputs)
        if self._points is None:
            return self.array.to_numpy(self._factor.fitted(rhs))
        coefficients = self._factor.solve(rhs).coefficients
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
                yield self._factor.fitted(unit).T
        else:
            for rows in self._rows(len(self._points)):
                yield self._factor.solve(self._kernel(rows).T).coefficients.T


class NystroemSmoother(Smoother):
    """Smoother with K ~ Z Z^T for Nyström features Z with M landmarks: A = Z (Z^T Z + n_lambda I)^-1 Z^T."""

    method = "low rank"

    def __init__(
        self, ridge: KernelRidge, lambda_: float, points: Values | None, rank: int, *, rough: bool = False
    ) -> None:
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
        # Bound of the norm of the difference to A: that of (K - Z Z^T) / n_lambda
        self.bound = abs(ridge.trace - float(xp.sum(self._rows_of_z**2))) / self.n_lambda
        at = self._rows_of_z if points is None else self._features(self.array.asarray(points))
        if rough:
            parts = [self.array.to_numpy(part) for part in (self._rows_of_z, self._inverse, at)]
            self.array = backend(ridge.run.device, "float32")
            self._rows_of_z, self._inverse, at = map(self.array.asarray, parts)
        self._at = at
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

    def plus(self, weight: float, other: "SmootherMatrix") -> "SmootherMatrix":
        """Return A + w A', where both are whole or have the same directions."""
        if self.turn is None or other.turn is None:
            return SmootherMatrix(self.along + weight * other.along)
        return SmootherMatrix(self.along, self.turn + weight * other.turn)

    def squares(self, smoothed: "ScalarEmbeddings") -> Values:
        """Return the squared norms of the rows of A F, (m,), given the products of the rows of V F."""
        if self.turn is None:
            return smoothed.norms()
        return row_forms(self.turn, smoothed.products(), self.turn)


def row_forms(left: Values, form: Values, right: Values) -> Values:
    """Return the diagonal of L Q R^T, (m,)."""
    return np.asarray(np.einsum("ij,ij->i", left @ form, right))


def smoother(
    ridge: KernelRidge, lambda_: float, points: Values | None, typical: Callable[[], Values], *, rough: bool = False
) -> Smoother:
    """Return the smoother by the cheapest sufficiently accurate method.

    In order of preference: a Cholesky factor, if there is one or it takes about a second; the smallest sufficiently
    accurate low-rank approximation; a factor, if it fits in memory; the largest low-rank approximation. A rough
    smoother is enough where the data are compared with replicates that are smoothed alike.
    """
    limits = ridge.run.limits
    cheap = ridge.gram.features is not None or (ridge.n <= limits.factor_rows and not rough)
    if ridge.solver == "cholesky" or cheap:
        return CholeskySmoother(ridge, lambda_, points)
    outputs = cache(typical)
    exact_size = cache(lambda: float(np.sum(ridge.smoothed(outputs(), lambda_) ** 2)))
    ranks, most = (ROUGH_RANKS, ROUGH_ERROR) if rough else (limits.nystroem_ranks, MAX_ERROR)

    def approximated(rank: int) -> NystroemSmoother:
        found = NystroemSmoother(ridge, lambda_, points, rank, rough=rough)
        if rough and found.bound <= NEGLIGIBLE:
            found.missed = found.bound
            return found
        size = exact_size()
        missed = size - float(np.sum(found.smooth_fitted(outputs()) ** 2))
        if size:
            found.missed, found.missed_noise = abs(missed) / size, max(missed, 0.0) / float(np.sum(outputs() ** 2))
        return found

    few = [rank for rank in ranks if MIN_ROWS_PER_LANDMARK * rank <= ridge.n]
    low_rank = first_sufficient(map(approximated, few), lambda found: found.missed <= most) if few else None
    if low_rank and (rough or low_rank.missed <= most):
        return low_rank
    fits = ridge.n**2 * backend(ridge.run.device, "float32").itemsize <= ridge.run.memory
    return CholeskySmoother(ridge, lambda_, points) if fits or low_rank is None else low_rank
