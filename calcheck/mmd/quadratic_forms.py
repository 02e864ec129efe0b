"""Quadratic forms of kernel matrices: sums over pairs of rows, and norms of kernel ridge regressions."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from calcheck.core.cache import cached
from calcheck.embeddings.laplace import InputDirections, PairForm
from calcheck.embeddings.ridge import KernelRidge
from calcheck.errors import Message
from calcheck.execution.backend import backend, namespace
from calcheck.execution.run import RandomStream, Run
from calcheck.kernels import KernelOptions, Solver
from calcheck.kernels.bandwidths import Conditioning, all_inputs, conditioning, neighbors
from calcheck.kernels.kernel_functions import Kernel, Rbf
from calcheck.linalg.gram import Gram, LandmarkSamples, Nystroem, RowBlocks, first_sufficient, gram_factor
from calcheck.predictions import Predictions
from calcheck.result_details import CmmdDetails
from calcheck.result_details import Pairs as PairsDetails
from calcheck.result_details import Solver as SolverDetails
from calcheck.typing import Array, Indices, Values

BLOCK_PAIRS = 1 << 18  # kernel values per block, 2 MiB of float64; larger blocks are not faster
VALUE_TOLERANCE = 0.01  # maximum error relative to the value
NULL_TOLERANCE = 0.1  # maximum error relative to the standard deviation under the null
MANY_ROWS = 6000  # maximum rows at which exact sums cost less than the search for a low-rank kernel
FEW_ROWS = 512  # maximum rows at which a whole factor of the kernel matrix is as good as one of low rank
RANKS = (64, 128, 256, 512)  # numbers of landmarks for replicates, tried in order
# Maximum standard deviation of what they miss, relative to that under the null; data and replicates miss the same, so
# that p is exact
MISSED = 1e-3
OMITTED = 1e-12  # Directions of less than this share of the norm of the kernel matrix are within rounding
CHECKED_ROWS = 1_024  # rows on which it is measured
SIGNS = 16  # random sign vectors that estimate the null standard deviation, to within a third
BLOCK_BYTES = 1 << 26  # kernel values per block
ROUNDING = 1e-10  # rounding error of the landmark factorization, relative to the value
RESIDUAL = 1e-13  # largest residual of the diagonal of K in its factor
CACHE_DIVISOR = 8  # kernel values are cached if they take at most 1 / 8 of the memory budget
SHARED_BYTES = 1 << 27  # Largest kernel matrix that metrics share
Weights = Callable[[Values], Values]


def row_products(a: Array, b: Array, gamma: float) -> Array:
    """Return the mean of exp(-gamma |u - v|^2) over the pairs of each row (n, r, t) and (n, l, t): a_i . b_i, (n,)."""
    xp = namespace(b)
    found = []
    for rows in _blocks(len(a), a.shape[1] * b.shape[1]):
        apart = [a[rows, :, None, column] - b[rows, None, :, column] for column in range(a.shape[2])]
        found.append(xp.mean(xp.exp(-gamma * sum(each * each for each in apart)), axis=(1, 2)))
    return xp.concat(found)


def of_different(products: Array, size: int, norms: Array | float = 1) -> Array:
    """Return means over pairs of distinct points, (n,), given those of all pairs of ``size`` points and of norms."""
    return (size * products - norms) / (size - 1)


def pair_sum(
    weights: Callable[[slice], Array],
    y: Array,  # (n, r, t)
    draws: Array,  # (n, l, t)
    gamma: float,
    shares: tuple[float, float, float] = (1, -2, 1),  # (s_0, s_1, s_2)
) -> Array:
    """Return sum_ij W_ij (s_0 a_i . a_j + s_1 a_i . b_j + s_2 b_i . b_j), by default sum_ij W_ij delta_i . delta_j."""
    xp = namespace(draws)
    n, wide = len(y), max(y.shape[1], draws.shape[1])
    kinds = [each for each in zip(shares, (y, y, draws), (y, draws, draws), strict=True) if each[0]]
    total = 0.0
    for rows in _blocks(n, n * wide**2):
        block = weights(rows)
        for share, a, b in kinds:
            total = total + share * xp.sum(block * _products(a[rows], b, gamma))
    return total


def _products(a: Array, b: Array, gamma: float) -> Array:
    """Return a_i . b_j for (p, r, t) and (q, l, t) points, (p, q)."""
    columns = a.shape[2]
    values = Rbf(gamma).gram(a.reshape(-1, columns), b.reshape(-1, columns))
    return namespace(values).mean(values.reshape(len(a), a.shape[1], len(b), b.shape[1]), axis=(1, 3))


def _blocks(n: int, pairs: int) -> Iterator[slice]:
    """Yield slices of n rows with ``pairs`` pairs each, at most BLOCK_PAIRS pairs per block."""
    rows = max(1, BLOCK_PAIRS // pairs)
    for start in range(0, n, rows):
        yield slice(start, start + rows)


@dataclass(frozen=True, eq=False)
class QuadraticForm:
    """A quadratic form sum_ij K_ij w_i . u_j - sum_i c_i K_ii."""

    u: Values  # (n, q), right-hand vectors
    c: Values  # (n,), coefficients of the diagonal terms to subtract
    scale: float = 1.0  # w = scale u if `w` is None; else the derivative of w with respect to u
    w: Values | None = None  # (n, q), left-hand vectors, if they are not a multiple of u

    def from_rows(self, rows: Indices) -> "QuadraticForm":
        """Return the form on a subset of rows, scaled to estimate the full sum."""
        up = (len(self.u) / len(rows)) ** 2
        w = None if self.w is None else up * self.w[rows]
        return QuadraticForm(self.u[rows], up * self.c[rows], up * self.scale, w)

    def diagonal_total(self, diagonal: Values) -> float:
        """Return the contribution of the pairs of a row with itself, given the diagonal of K."""
        return float((self._times(self.u) - self.c) @ diagonal)

    def with_signs(self, signs: Values) -> "QuadraticForm":
        """Return the form with the rows multiplied by signs (n,), as under the null hypothesis."""
        w = None if self.w is None else signs[:, None] * self.w
        return QuadraticForm(signs[:, None] * self.u, self.c, self.scale, w)

    def terms(self, products: Values, diagonal: Values) -> Values:
        """Return the contribution of each row, (n,), given K u and the diagonal of K."""
        return self._times(products) - self.c * diagonal

    def _times(self, others: Values) -> Values:
        """Return w_i . v_i for vectors v (n, q), (n,)."""
        left, scale = (self.u, self.scale) if self.w is None else (self.w, 1.0)
        return np.asarray(scale * np.einsum("ij,ij->i", left, others))

    @property
    def left_vectors(self) -> Values:
        """Left-hand vectors w, (n, q)."""
        return self.scale * self.u if self.w is None else self.w


class Pairs(ABC):
    """The Gram matrix K of n inputs, or an approximation of it."""

    n: int
    diagonal: Values  # K_ii, (n,)
    details: PairsDetails  # Method, its settings and its error

    @property
    def warnings(self) -> list[Message]:
        """Warnings if the sums are inaccurate."""
        if self.details.get("accurate", True):
            return []
        warning = (
            f"the low-rank kernel ({self.details['rank']:,} features of inputs) causes an error of about"
            f" {self.details['error']:.1e}. Pass a larger --max-exact-rows to sum all pairs, or a smaller --gamma-x"
        )
        return [Message("low-rank-error", warning)]

    @abstractmethod
    def products(self, columns: Values) -> Values:
        """Return K R, (n, c), for columns R (n, c)."""

    @abstractmethod
    def totals(self, forms: list[QuadraticForm]) -> Values:
        """Return the values of the forms, (f,)."""


class ExactGram(Pairs):
    """The exact Gram matrix K."""

    def __init__(self, kernel: Kernel, x: Values, run: Run, gram: Gram | None = None) -> None:
        self._array, self.n = run.backend(), len(x)
        self._gram = gram or Gram(kernel, self._array.asarray(x), memory=run.memory, progress=run.progress)
        self.diagonal = self._array.to_numpy(kernel.diagonal(self._gram.x))
        self.details = {"method": "exact"}

    def products(self, columns: Values) -> Values:
        return self._array.to_numpy(self._gram @ self._array.asarray(columns))

    def totals(self, forms: list[QuadraticForm]) -> Values:
        """Return the values of the forms, (f,); if w is a multiple of u, only half of the pairs are computed."""
        ends = np.cumsum([form.u.shape[1] for form in forms])[:-1]
        if any(form.w is not None for form in forms):
            parts = np.split(self.products(np.concatenate([form.u for form in forms], axis=1)), ends, axis=1)
            return np.array([form.terms(part, self.diagonal).sum() for form, part in zip(forms, parts, strict=True)])
        u = self._array.asarray(np.concatenate([form.u for form in forms], axis=1))
        sums: Array = 0.0
        for rows, others, tile in self._gram.tiles():
            own = max(0, rows.stop - others.start)  # the diagonal block; other entries count twice
            weighted = tile[:, :own] @ u[others][:own] + 2 * (tile[:, own:] @ u[others][own:])
            sums = sums + self._array.xp.sum(u[rows] * weighted, axis=0)
        columns = np.split(self._array.to_numpy(sums), ends)
        pairs = zip(forms, columns, strict=True)
        return np.array([form.scale * part.sum() - form.c @ self.diagonal for form, part in pairs])


class LowRankGram(Pairs):
    """K ~ Z Z^T by Nyström features on M landmarks with the exact diagonal of K, in time linear in n."""

    def __init__(self, features: Nystroem, x: Values, run: Run) -> None:
        self._features, self.n = features, len(x)
        self._array = backend(run.device, "float64")
        self._blocks = _row_blocks(features.values, features.rank, x, run)  # kernel values with the landmarks, (b, M)
        squares = [self._array.xp.sum((block @ features.whitening) ** 2, axis=1) for _, block in self._blocks]
        self.diagonal = self._array.to_numpy(features.kernel.diagonal(self._array.asarray(x)))
        self.residual = self.diagonal - np.concatenate([self._array.to_numpy(each) for each in squares])
        self.rank = features.rank
        self.details = {"method": "low rank", "rank": features.rank}

    def products(self, columns: Values) -> Values:
        return self.outer(self.inner(columns), columns)

    def gram(self) -> Values:
        """Return Z^T Z, (M, M)."""
        inner: Array = 0.0
        for _, block in self._blocks:
            features = block @ self._features.whitening
            inner = inner + features.T @ features
        return self._array.to_numpy(inner)

    def inner(self, columns: Values) -> Values:
        """Return Z^T R, (M, c), for columns R (n, c)."""
        inner: Array = 0.0
        for rows, block in self._blocks:
            inner = inner + block.T @ self._array.asarray(columns[rows])
        return self._array.to_numpy((inner.T @ self._features.whitening).T)

    def outer(self, weights: Values, own: Values | None = None) -> Values:
        """Return Z W, (n, c), for weights W (M, c), plus the residual of each row times its values, (n, c)."""
        found = np.empty((self.n, weights.shape[1]))
        for rows, block in self.outer_blocks(weights):
            found[rows] = block if own is None else block + self.residual[rows, None] * own[rows]
        return found

    def outer_blocks(self, weights: Values) -> Iterator[tuple[slice, Values]]:
        """Yield slices of rows with Z W, (b, c)."""
        columns = self._features.whitening @ self._array.asarray(weights)
        return ((rows, self._array.to_numpy(block @ columns)) for rows, block in self._blocks)

    def totals(self, forms: list[QuadraticForm]) -> Values:
        """Return the values of the forms, (f,), in one pass: sums over pairs are products of sums over rows."""
        sides = [side for form in forms for side in ([form.u] if form.w is None else [form.u, form.w])]
        ends = np.cumsum([side.shape[1] for side in sides])[:-1]
        inner = iter(np.split(self.inner(np.concatenate(sides, axis=1)), ends, axis=1))
        found = []
        for form in forms:
            u = next(inner)
            total = float(np.sum(u * (form.scale * u if form.w is None else next(inner))))
            found.append(total + form.diagonal_total(self.residual) - float(form.c @ (self.diagonal - self.residual)))
        return np.array(found)


def _row_blocks(function: Callable[[Array], Array], rank: int, x: Values, run: Run) -> RowBlocks:
    """Return the blocks (b, M) of a function of inputs (n, d), cached if they are small."""
    array = backend(run.device, "float64")
    bytes_per_row, n = rank * array.itemsize, len(x)
    height, cached = max(1, BLOCK_BYTES // bytes_per_row), n * bytes_per_row <= run.memory // CACHE_DIVISOR
    return RowBlocks(n, height, lambda rows: function(array.asarray(x[rows])), cached=cached)


class LowRank:
    """A kernel matrix by Nyström features, in its principal directions: data and replicates miss the same."""

    def __init__(self, features: Nystroem, x: Values, checked: Values, run: Run) -> None:
        self._array = array = backend(run.device, "float64")
        some = array.asarray(checked)
        self.rank, self._memory = features.rank, run.memory // CACHE_DIVISOR
        z, self._blocks = array.to_numpy(features(some)), _row_blocks(features, features.rank, x, run)
        inner, squares = np.zeros((features.rank, features.rank)), list[Values]()
        for _, block in self._blocks:
            part = array.to_numpy(block)
            inner += part.T @ part
            squares.append(np.einsum("ij,ij->i", part, part))
        self._diagonal = array.to_numpy(features.kernel.diagonal(array.asarray(x)))
        self._residual = np.maximum(self._diagonal - np.concatenate(squares), 0)
        others = array.to_numpy(features.kernel.gram(some, some)) - z @ z.T
        np.fill_diagonal(others, 0.0)
        self._missed = float(np.linalg.norm(others)) * len(x) / len(some), float(np.linalg.norm(self._residual))
        sizes, self._axes = np.linalg.eigh(inner)
        self._sizes = np.maximum(sizes, 0)
        self._omitted = int(np.count_nonzero(np.cumsum(sizes**2) <= (OMITTED * np.linalg.norm(sizes)) ** 2))

    @property
    def details(self) -> PairsDetails:
        """Method and rank."""
        return {"method": "low rank", "rank": self.rank}

    def missed(self, weigh: Weights, weight: float, *, diagonal: bool) -> float:
        """Return the standard deviation of what a form misses off the diagonal, relative to that under the null."""
        off_diagonal, on_diagonal = self._missed
        size = math.hypot(float(np.linalg.norm(weigh(self._sizes) * self._sizes)), weight * on_diagonal * diagonal)
        return weight * off_diagonal / size if size else 0.0

    def clear(self) -> None:
        """Drop the features, which are computed when needed."""
        self._blocks.clear()

    def form(self, weigh: Weights, weight: float, *, own: float) -> PairForm:
        """Return a form, given the weights of what is missed, whose diagonal is added, and of K_ii to subtract."""
        return PairForm(self._directions, np.append(weigh(self._sizes[self._omitted :]), [-own, weight]))

    @cached_property
    def _directions(self) -> InputDirections:
        """The principal directions, in single precision, with both diagonals."""
        minor, major = np.split(self._axes.T, [self._omitted])
        added = [np.sum((minor @ self._array.to_numpy(block).T) ** 2, axis=0) for _, block in self._blocks]
        residual = self._residual + np.concatenate(added)
        fits = 4 * len(major) * len(residual) <= self._memory
        parts = self._blocks.map(lambda block: (major @ self._array.to_numpy(block).T).astype(np.float32), cached=fits)
        self.clear()
        unit = float(self._diagonal.max())
        both = (float(each[0]) if np.ptp(each) <= ROUNDING * unit else each for each in (self._diagonal, residual))
        return InputDirections(parts, tuple(both))


@dataclass(eq=False)
class InputKernel:
    """The kernel matrix of the inputs of some rows, which metrics share."""

    conditioning: Conditioning  # Normalization and kernel of the inputs
    x: Values  # (n, d), normalized inputs
    run: Run  # Device, precision, memory and seed
    _gram: Gram | None = None
    _known: list[LowRank] = field(default_factory=list)

    @property
    def kernel(self) -> Kernel:
        """Kernel on normalized inputs."""
        return self.conditioning.kernel

    @cached_property
    def neighbors(self) -> float:
        """Effective neighbors per row."""
        return neighbors(self.kernel, self.x)

    def gram(self, run: Run) -> Gram:
        """Return the exact matrix, which metrics share if it is small."""
        found = self._gram or Gram(self.kernel, run.backend().asarray(self.x), memory=run.memory, progress=run.progress)
        self._gram = found if found.nbytes <= SHARED_BYTES else None
        return found

    def low_rank(self, weigh: Weights, weight: float, *, diagonal: bool = False) -> tuple[LowRank | None, bool]:
        """Return the first low-rank matrix of which a form misses little, or the largest, and whether it misses little.

        ``weigh`` returns the weights of the form along directions, given their sizes, and ``weight`` is that of the
        rest, of which the diagonal is in the form or not.
        """
        found: tuple[LowRank | None, bool] = None, False
        for each in self._low_ranks():
            found = each, each.missed(weigh, weight, diagonal=diagonal) <= MISSED
            if found[1]:
                break
        return found

    def _low_ranks(self) -> Iterator[LowRank]:
        """Yield matrices of increasing rank, which are computed once."""
        yield from self._known
        checked = self._landmarks.checked
        for features in self._further:
            for each in self._known:
                each.clear()
            self._known.append(
                LowRank(features, self.x, self.x[checked[:: -(-len(checked) // CHECKED_ROWS)]], self.run)
            )
            yield self._known[-1]

    @cached_property
    def _landmarks(self) -> LandmarkSamples:
        return LandmarkSamples(self.kernel, self.x, self.run)

    @cached_property
    def _further(self) -> Iterator[Nystroem]:
        """Features of increasing rank."""
        return self._landmarks.features(tuple(rank for rank in RANKS if 2 * rank <= len(self.x)))


@cached
def input_kernel(rows: Predictions, options: KernelOptions, run: Run) -> InputKernel:
    """Return the kernel matrix of the inputs of rows."""
    inputs = conditioning(rows, options)
    return InputKernel(inputs, inputs.scaling(all_inputs(rows, run)), run)


@dataclass(eq=False)
class GramSums:
    """Pair sums over n inputs, exact or low-rank depending on the number of rows."""

    inputs: InputKernel  # Kernel matrix of the inputs
    run: Run  # Device, precision, memory, seed, progress
    exact_rows: int  # Maximum rows for exact sums over all pairs
    replicate_details: PairsDetails = field(default_factory=PairsDetails)
    _approximate: LowRankGram | None = None
    _form: PairForm | None = None

    def __post_init__(self) -> None:
        self.kernel, self.x = self.inputs.kernel, self.inputs.x

    def pairs(self, form: QuadraticForm) -> Pairs:
        """Return the Gram matrix for the form of the data: exact up to ``exact_rows`` rows, else low-rank."""
        return self._exact_gram if len(self.x) <= self.exact_rows else self._low_rank(form)

    def pairs_of_many(self, form: QuadraticForm) -> Pairs:
        """Return the Gram matrix for hundreds of forms like that of the data: low-rank if it is accurate."""
        found: Pairs = self._exact_gram if len(self.x) <= MANY_ROWS else self._low_rank(form)
        if len(self.x) <= self.exact_rows and not found.details.get("accurate", True):
            found = self._exact_gram
        self.replicate_details = found.details
        return found

    def pair_form(self, *, unbiased: bool, needed: bool) -> PairForm | None:
        """Return the squared MMD as a form of differences of embeddings; None if sums over pairs are cheaper."""
        self._form = self._form or self._pair_form(unbiased=unbiased, needed=needed)
        return self._form

    def _pair_form(self, *, unbiased: bool, needed: bool) -> PairForm | None:
        n = len(self.x)
        scale = 1 / (n * (n - 1)) if unbiased else 1 / n**2

        def weigh(sizes: Values) -> Values:
            return np.full_like(sizes, scale)

        low, accurate = self.inputs.low_rank(weigh, scale)
        if low and (accurate or n > self.exact_rows or (needed and n > MANY_ROWS)):
            self.replicate_details = low.details
            return low.form(weigh, scale, own=scale * unbiased)
        if not needed and n > FEW_ROWS:
            return None
        self.replicate_details = self._exact_gram.details
        root = gram_factor(self._exact_gram.products(np.eye(n)), RESIDUAL).T
        return PairForm.from_root(np.sqrt(scale) * root, scale * unbiased * self._exact_gram.diagonal)

    @cached_property
    def _exact_gram(self) -> ExactGram:
        return ExactGram(self.kernel, self.x, self.run, self.inputs.gram(self.run))

    def _low_rank(self, form: QuadraticForm) -> LowRankGram:
        """Return the smallest low-rank Gram matrix whose error is within tolerance on the validation rows."""
        if self._approximate is not None:
            return self._approximate
        landmarks, quiet = LandmarkSamples(self.kernel, self.x, self.run), self.run.quiet()
        validation = landmarks.checked
        own = form.from_rows(validation)
        signs = self.run.rng(RandomStream.SIGNS).choice([-1.0, 1.0], (SIGNS, len(validation)))
        forms = [own, *map(own.with_signs, signs)]
        every = ExactGram(self.kernel, self.x[validation], replace(quiet, memory=0))  # tiles are used once
        exact = every.totals(forms)
        null_std = _rms(exact[1:] - own.diagonal_total(every.diagonal))  # signs do not change diagonal terms
        allowed = max(VALUE_TOLERANCE * abs(exact[0]), NULL_TOLERANCE * null_std)

        def measured(features: Nystroem) -> tuple[Nystroem, float, float]:
            bias, *random_errors = LowRankGram(features, self.x[validation], quiet).totals(forms) - exact
            return features, abs(bias), _rms(random_errors)

        candidates = map(measured, landmarks.features())
        features, bias, noise = first_sufficient(candidates, lambda found: max(found[1:]) <= allowed)
        found = LowRankGram(features, self.x, self.run)
        share = len(validation) / len(self.x)  # random error falls with the number of rows, bias does not
        error = math.hypot(bias, noise * share, ROUNDING * exact[0])
        found.details |= {
            "error": error,
            "null_std": null_std * share,
            "validation_rows": len(validation),
            "accurate": bool(max(bias, noise) <= allowed),
        }
        self._approximate = found
        return found


def _rms(values: Values | list[np.float64]) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


@dataclass(frozen=True, eq=False)
class Norm:
    """The squared norm of a regression."""

    terms: Values  # (n,), contribution of each row
    details: CmmdDetails  # Solver, its settings and the effective degrees of freedom
    warnings: tuple[Message, ...] = ()  # Warnings about its accuracy


@dataclass(eq=False)
class RidgeNorms:
    """Kernel ridge regressions on n inputs, F = sum_i k(., x_i) B_i, B = (K + n lambda I)^-1 R; |F|^2 = tr B^T K B."""

    inputs: InputKernel  # Kernel matrix of the inputs
    run: Run  # Device, precision, memory, seed, progress
    ridge: float  # Regularizer lambda
    solver: Solver  # As in `KernelRidge`
    exact_rows: int  # Maximum rows for an exact solution; beyond, K is approximated by Nyström features
    replicate_details: Mapping[str, Any] = field(default_factory=dict)
    _linear: "NystroemNorm | None" = None

    def __post_init__(self) -> None:
        self.kernel, self.x = self.inputs.kernel, self.inputs.x
        few = len(self.x) <= self.exact_rows
        self._exact = KernelRidge(self.kernel, self.x, self.run, solver=self.solver) if few else None
        if self._exact and self._exact.solver == "cg":
            self._exact.gram = self.inputs.gram(self.run)

    def norm(self, outputs: Values) -> Norm:
        """Return the norm of the regression of outputs (n, q)."""
        if self._exact is None:
            return self._in_linear_time(outputs).norm(outputs)
        found = self._exact.solve(outputs, self.ridge)
        fitted = self._exact.fitted(outputs, found.coefficients, self.ridge)
        terms = np.einsum("ij,ij->i", fitted, self._exact.backend.to_numpy(found.coefficients))
        details: CmmdDetails = {
            "dof": found.dof.value,
            "dof_error": found.dof.error,
            "solver": {"name": self._exact.solver, "cached": self._exact.is_cached, "iterations": found.iterations},
        }
        return Norm(terms, details)

    @cached_property
    def pair_form(self) -> PairForm:
        """|F|^2 as a form of the outputs R: tr R^T Q R, as for :meth:`apply`.

        What a low rank misses of Q is about the same part of K over n^2 lambda^2, of which the diagonal is added.
        """
        exact, shift = self._exact, len(self.x) * self.ridge

        def weigh(sizes: Values) -> Values:
            return np.asarray((sizes + shift) ** -2)

        low, accurate = self.inputs.low_rank(weigh, shift**-2, diagonal=True)
        if low and (accurate or exact is None or exact.solver != "cholesky"):
            self.replicate_details = low.details
            return low.form(weigh, shift**-2, own=0.0)
        exact = exact or KernelRidge(self.kernel, self.x, self.run, solver="cholesky")
        self.replicate_details = {"method": "cholesky"}
        root = gram_factor(exact.backend.to_numpy(exact.gram @ exact.backend.asarray(np.eye(exact.n))), RESIDUAL)
        found = exact.solve(root, self.ridge, measure_dof=False).coefficients
        return PairForm.from_root(exact.backend.to_numpy(found).T, 0.0)

    def apply(self, outputs: Values) -> Values:
        """Return Q R for outputs R (n, q), with |F|^2 = tr R^T Q R: Q = (K + n lambda I)^-1 K (K + n lambda I)^-1."""
        if self._exact is None:
            return self._in_linear_time(outputs).apply(outputs)
        ridge, exact = self.ridge, self._exact
        fitted = exact.smoothed(outputs, ridge)
        return exact.backend.to_numpy(exact.solve(fitted, ridge, measure_dof=False).coefficients)

    def _in_linear_time(self, outputs: Values) -> "NystroemNorm":
        """Return the smallest Nyström approximation whose norm is within tolerance on the validation rows."""
        if self._linear is not None:
            return self._linear
        landmarks, quiet = LandmarkSamples(self.kernel, self.x, self.run), self.run.quiet()
        validation = landmarks.checked
        subset = KernelRidge(self.kernel, self.x[validation], quiet, solver=self.solver)
        found = subset.solve(outputs[validation], self.ridge, measure_dof=False)
        fitted = subset.fitted(outputs[validation], found.coefficients, self.ridge)
        value = float(np.sum(fitted * subset.backend.to_numpy(found.coefficients)))

        def measured(features: Nystroem) -> tuple[Nystroem, float]:
            candidate = NystroemNorm(LowRankGram(features, self.x[validation], quiet), self.ridge)
            total = float(candidate.squares(outputs[validation]).sum())
            return features, abs(total / value - 1) if value else 0.0

        candidates = map(measured, landmarks.features())
        features, error = first_sufficient(candidates, lambda found: found[1] <= VALUE_TOLERANCE)
        self._linear = NystroemNorm(LowRankGram(features, self.x, self.run), self.ridge)
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
        fitted = self._pairs.outer_blocks(self._inverse @ self._pairs.inner(outputs))
        terms = [np.einsum("ij,ij->i", block, outputs[rows] - block) / self._shift for rows, block in fitted]
        text = (
            f"the low-rank kernel ({self.details['rank']:,} features of inputs) has a relative error of"
            f" {self.details['relative_error']:.1%} on {self.details['validation_rows']:,} validation rows."
            " Pass a larger --max-exact-rows or a larger --lambda"
        )
        warnings = (Message("low-rank-error", text),) if self.details["relative_error"] > VALUE_TOLERANCE else ()
        details: CmmdDetails = {"dof": self.dof, "solver": {"name": "nystroem", **self.details}}
        return Norm(np.concatenate(terms), details, warnings)
