"""Gram matrices: in tiles, by factors of low rank, and their eigenvectors."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from calcheck.core.lazy_inputs import Inputs, blocks
from calcheck.errors import NumericalError
from calcheck.execution.backend import Backend, backend, is_cpu, namespace
from calcheck.execution.run import Progress, RandomStream, Run
from calcheck.kernels.bandwidths import OVERFLOW_MESSAGE
from calcheck.kernels.kernel_functions import Kernel, Polynomial, Rbf
from calcheck.typing import Array, Floats, Mask, Values

ROWS_PER_FEATURE = 6  # Minimum rows per feature at which products with features replace those with tiles
TILE = (512, 2048)  # Tile shape on a CPU: large enough for fast products, small enough for the cache
LARGE_TILE = (4096, 16_384)  # Tile shape on a GPU, where launches cost more than cache misses: 256 MiB in float32
Candidate = TypeVar("Candidate")
VALIDATION_ROWS = 10_000  # Maximum rows on which the approximation is compared with the full kernel matrix
JITTER = 1e-12  # Relative diagonal term for the Cholesky factor of the landmarks' kernel matrix
NO_RESIDUAL = 1e-14  # Maximum residual of the diagonal of an RBF kernel matrix that is told by rounding only
FACTOR_COPIES = 4  # Maximum number of factors in memory while one grows
SPANNING, POOL = 128, 2000  # Maximum points that represent all inputs, and cells of inputs in which they are sought
SPACING, AROUND = 0.2, np.arange(-5, 6)  # Width of a cell in length scales, and the cells around one with inputs
REPRESENTED = 1e-13  # Residual of the squared norm of an input that is represented to rounding
RESIDUAL_TOLERANCE = 1e-7  # Maximum share of the trace outside a truncated eigenbasis


def tile_shape(x: Array) -> tuple[int, int]:
    """Return the rows and columns of a tile of kernel values, by the device of the inputs."""
    return TILE if is_cpu(x) else LARGE_TILE


class Gram:
    """Gram matrix K_ij = k(x_i, x_j), stored as tiles of its upper triangle, which halves work and memory."""

    def __init__(
        self,
        kernel: Kernel,  # k
        x: Array,  # (n, d), inputs
        *,
        memory: int,  # Maximum bytes of the tiles; larger matrices are recomputed at every use
        progress: Progress,  # Called with the progress of the first pass over the tiles
        # Rows and columns of a tile, with columns >= rows; changes results only within rounding
        tile: tuple[int, int] | None = None,
    ) -> None:
        self.kernel = kernel
        self.x = x
        self.n = len(x)
        rows, self._columns = tile or tile_shape(x)
        self._rows = min(self.n, rows)
        self.nbytes = self.n * (self.n + self._rows) // 2 * x.itemsize  # Bytes of the cached tiles
        self._memory = memory
        self.kept = self.nbytes <= memory  # Whether the tiles are cached
        self._progress = progress
        self._passed = False
        self._tiles: list[Array] = []

    def tiles(self) -> Iterator[tuple[slice, slice, Array]]:
        """Yield the row slice, the column slice, from the diagonal on, and the values k(x_i, x_j) of each tile."""
        for number, (rows, columns) in enumerate(self._places()):
            if number < len(self._tiles):
                yield rows, columns, self._tiles[number]
                continue
            tile = self.kernel.gram(self.x[rows], self.x[columns])
            if self.kept:
                self._tiles.append(tile)
            if not self._passed and columns.stop == self.n:
                self._progress("kernel", 1 - (1 - rows.stop / self.n) ** 2)
            yield rows, columns, tile
        self._passed = True

    @cached_property
    def features(self) -> Array | None:
        """Z with K = Z Z^T up to rounding, (n, q), if products with it cost much less."""
        most = self.n // ROWS_PER_FEATURE
        if isinstance(self.kernel, Polynomial):
            return self.kernel.monomials(self.x, most)
        if not (isinstance(self.kernel, Rbf) and isinstance(self.x, np.ndarray) and self.x.dtype == np.float64):
            return None
        x, rank = self.x, min(most, math.isqrt(self.n), self._memory // (FACTOR_COPIES * self.x[:, 0].nbytes))
        found = PivotedCholesky(np.ones(self.n), lambda one: self.kernel.gram(x[one : one + 1], x)[0], rank)
        found.represent(self.n, NO_RESIDUAL)
        return found.factor.T if found.residuals.max() <= NO_RESIDUAL else None

    def _places(self) -> Iterator[tuple[slice, slice]]:
        for top in range(0, self.n, self._rows):
            for left in range(top, self.n, self._columns):
                bottom, right = min(top + self._rows, self.n), min(left + self._columns, self.n)
                yield slice(top, bottom), slice(left, right)

    def clear(self) -> None:
        """Drop the cached tiles; they are recomputed when needed."""
        self._tiles.clear()

    def __matmul__(self, b: Array) -> Array:
        """Return K b for (n, c) columns, (n, c)."""
        if (features := self.features) is not None:
            return features @ (features.T @ b)
        product = namespace(b).zeros_like(b)
        for rows, columns, tile in self.tiles():
            product[rows] += tile @ b[columns]
            mirrored = slice(max(rows.stop, columns.start), columns.stop)  # excludes the block on the diagonal
            product[mirrored] += tile[:, mirrored.start - columns.start :].T @ b[rows]
        return product

    def dense(self) -> Array:
        """Return the full matrix K, (n, n)."""
        full = namespace(self.x).empty((self.n, self.n), dtype=self.x.dtype, device=self.x.device)
        for rows, columns, tile in self.tiles():
            full[rows, columns] = tile
            full[columns, rows] = tile.T
        return full


def evaluate(kernel: Kernel, points: Array, x: Array, weights: Array) -> Iterator[Array]:
    """Yield sum_j k(points_i, x_j) w_j for (m, d) points, (n, d) inputs and (n, c) weights, (b, c), in order."""
    height, width = tile_shape(x)
    for top in range(0, len(points), height):
        some = points[top : top + height]
        yield sum(
            kernel.gram(some, x[left : left + width]) @ weights[left : left + width] for left in range(0, len(x), width)
        )


@dataclass(frozen=True, eq=False)
class PrincipalDirections:
    """The directions in which inputs vary most."""

    mean: Values  # (d,), mean of the inputs
    directions: Values  # (d, k), with unit norm, the largest entry positive
    shares: Values  # (k,), shares of the variance

    @classmethod
    def from_inputs(cls, x: Inputs, count: int) -> "PrincipalDirections":
        """Return the first principal directions of x (n, d)."""
        n, d = x.shape
        mean = np.zeros(d)
        for _, block in blocks(x):
            mean += block.sum(axis=0, dtype=np.float64) / n
        covariance = np.zeros((d, d))
        for _, block in blocks(x):
            away = block - mean
            covariance += away.T @ away / n
        variances, directions = np.linalg.eigh(covariance)
        chosen = directions[:, ::-1][:, :count]
        chosen = chosen * np.sign(np.take_along_axis(chosen, np.abs(chosen).argmax(axis=0)[None], axis=0))
        total = variances.sum()
        return cls(mean, chosen, variances[::-1][:count] / total if total > 0 else np.zeros(count))

    def scores(self, x: Inputs) -> Values:
        """Return the components of x (m, d), (m, k)."""
        scores = np.empty((len(x), self.directions.shape[1]))
        for rows, block in blocks(x):
            scores[rows] = (block - self.mean) @ self.directions
        return scores


def principal_components(x: Inputs, count: int) -> tuple[Values, Values]:
    """Return the first principal components of x (n, d), largest entry positive, and their shares of the variance."""
    found = PrincipalDirections.from_inputs(x, count)
    return found.scores(x), found.shares


@dataclass(frozen=True, eq=False)
class Nystroem:
    """Nyström features z(x) = W^T k(c, x), M landmarks c, W W^T ~ K_cc^-1: z(x) . z(x') approximates k(x, x')."""

    kernel: Kernel  # k
    landmarks: Array  # (M, d), landmark inputs
    whitening: Array  # (M, q), W: the features are V W for kernel values V = k(x, c), and Z B is V (W B)

    @classmethod
    def from_cholesky(cls, kernel: Kernel, landmarks: Array, array: Backend) -> "Nystroem":
        """Return one feature per landmark: W = L^-T with L L^T = K_cc."""
        xp = array.xp
        gram = kernel.gram(landmarks, landmarks)
        diagonal = xp.arange(len(landmarks), device=array.device)
        gram[diagonal, diagonal] += JITTER * float(xp.max(gram))
        return cls(kernel, landmarks, xp.linalg.inv(xp.linalg.cholesky(gram)).T)

    @classmethod
    def from_eigenvectors(
        cls, kernel: Kernel, landmarks: Array, array: Backend, *, smallest: float = 0.0, smallest_share: float
    ) -> "Nystroem":
        """Return one feature per eigenvalue of K_cc = V E V^T above ``smallest``: W = V E^-1/2."""
        gram = array.to_numpy(kernel.gram(landmarks, landmarks))
        if not np.isfinite(gram).all():
            raise NumericalError(OVERFLOW_MESSAGE)
        values, vectors = np.linalg.eigh(gram)
        kept = values > max(smallest, smallest_share * values[-1])
        return cls(kernel, landmarks, array.asarray(vectors[:, kept] / np.sqrt(values[kept])))

    @property
    def rank(self) -> int:
        """Number of features q."""
        return int(self.whitening.shape[1])

    def values(self, x: Array) -> Array:
        """Return k(x, c) for (p, d) inputs, (p, M)."""
        return self.kernel.gram(x, self.landmarks)

    def __call__(self, x: Array) -> Array:
        """Return z(x) for (p, d) inputs, (p, q)."""
        return self.values(x) @ self.whitening


class RowBlocks:
    """Blocks of rows of a tall matrix, cached in memory or computed at every use."""

    def __init__(
        self,
        # n, height: number of rows, and of rows per block
        n: int,
        height: int,
        compute: Callable[[slice], Array],  # Returns a block for a slice of rows, (b, q)
        *,
        cached: bool,  # Whether to cache the blocks
    ) -> None:
        self._n, self._height, self._compute = n, height, compute
        self._slices = [slice(start, min(start + height, n)) for start in range(0, n, height)]
        self._cached = list(map(compute, self._slices)) if cached else None

    def map(self, function: Callable[[Array], Array], *, cached: bool = False) -> "RowBlocks":
        """Return the blocks after a function, cached if these are, or if they fit in memory themselves."""
        found = RowBlocks(self._n, self._height, lambda rows: function(self._compute(rows)), cached=False)
        if cached or self._cached is not None:
            found._cached = [function(block) for _, block in self]
        return found

    def clear(self) -> None:
        """Drop the cached blocks, which are computed when needed."""
        self._cached = None

    def __iter__(self) -> Iterator[tuple[slice, Array]]:
        """Yield each slice of rows and its block."""
        blocks = map(self._compute, self._slices) if self._cached is None else self._cached
        return zip(self._slices, blocks, strict=True)


class LandmarkSamples:
    """Nested samples of landmarks of normalized inputs (n, d), and validation rows to choose their number."""

    def __init__(self, kernel: Kernel, x: Values, run: Run) -> None:
        self._kernel, self._x, self._run = kernel, x, run
        self._order = run.rng(RandomStream.LANDMARKS).permutation(len(x))
        # (s,), validation rows; disjoint from the landmarks unless there are few rows
        self.checked = np.sort(self._order[:VALIDATION_ROWS])

    def features(self, ranks: Sequence[int] | None = None) -> Iterator[Nystroem]:
        """Yield features with an increasing number of landmarks."""
        array = backend(self._run.device, "float64")
        if (few := spanning_points(self._kernel, self._x)) is not None:
            yield Nystroem.from_cholesky(self._kernel, array.asarray(few), array)
        ranks = self._run.limits.nystroem_ranks if ranks is None else ranks
        for rank in ranks:
            self._run.progress("landmarks", rank / ranks[-1])
            chosen = np.sort(self._order[::-1][:rank])
            yield Nystroem.from_cholesky(self._kernel, array.asarray(self._x[chosen]), array)


def first_sufficient(candidates: Iterable[Candidate], is_sufficient: Callable[[Candidate], bool]) -> Candidate:
    """Return the first of increasingly accurate candidates that is sufficient; the last if none is."""
    for candidate in candidates:
        if is_sufficient(candidate):
            break
    return candidate


class PivotedCholesky:
    """Low-rank factorization G ~ F^T F of a Gram matrix G; the element with the largest residual is the next pivot."""

    def __init__(
        self,
        diagonal: Values,  # (p,), squared norms of the elements
        products: Callable[[int], Values],  # Returns the inner products of one element with all, (p,)
        max_rank: int,  # Maximum number of pivots
        *,
        first_rows: int = 64,  # Rows of the factor that are allocated first; they are doubled as needed
    ) -> None:
        self.pivots = list[int]()  # Pivots, in order
        # (p,), part of each squared norm that the pivots do not represent
        self.residuals = np.array(diagonal, dtype=np.float64)
        self._products, self._max_rank = products, max_rank
        self._rows = np.zeros((min(first_rows, max_rank), len(diagonal)))

    @property
    def factor(self) -> Values:
        """F, (r, p)."""
        return self._rows[: len(self.pivots)]

    def represent(self, first: int, tolerance: float | Values) -> None:
        """Add pivots among the first elements until none of their residuals is above the tolerance."""
        residuals = self.residuals[:first]
        while len(self.pivots) < self._max_rank and (residuals > tolerance).any():
            self._add(int(np.argmax(residuals)))

    def _add(self, pivot: int) -> None:
        rank, factor = len(self.pivots), self.factor
        if rank == len(self._rows):
            more = np.zeros((min(rank, self._max_rank - rank), factor.shape[1]))
            self._rows = np.concatenate([self._rows, more])
        row = self._products(pivot) - factor[:, pivot] @ factor
        self._rows[rank] = row / np.sqrt(self.residuals[pivot])
        self.residuals -= self._rows[rank] ** 2
        self.residuals[pivot] = 0.0
        self.pivots.append(pivot)


def spanning_points(kernel: Kernel, x: Floats) -> Values | None:
    """Return points (p, 1) whose kernel functions represent those of inputs (n, 1) to rounding; None if many do."""
    if not isinstance(kernel, Rbf) or x.shape[1] != 1:
        return None
    step = SPACING / math.sqrt(2 * kernel.gamma)
    cells = np.unique(np.rint(x[:, 0].astype(np.float64) / step))
    if len(cells) > POOL:
        return None
    pool = step * np.unique(cells[:, None] + AROUND)[:, None]
    found = PivotedCholesky(np.ones(len(pool)), lambda one: kernel.gram(pool[one : one + 1], pool)[0], SPANNING)
    found.represent(len(pool), REPRESENTED)
    return np.asarray(pool[found.pivots], np.float64) if found.residuals.max() <= REPRESENTED else None


def gram_factor(gram: Values, tolerance: float) -> Values:
    """Return F (p, r) with F F^T equal to a positive semidefinite matrix, up to residuals of the diagonal."""
    from scipy.linalg.lapack import dpstrf

    factor, order, rank, _ = dpstrf(gram, tol=tolerance, lower=1)
    features = np.zeros((len(gram), rank))
    features[order - 1] = np.tril(factor)[:, :rank]
    return features


def eigenvectors(matrix: Values) -> tuple[Values, Values]:
    """Return the eigenvalues (r,), in ascending order, and eigenvectors (r, r) of a symmetric matrix."""
    try:
        eigenvalues, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError as error:
        raise NumericalError(
            "the kernel matrix of the targets has no eigendecomposition. Check the unit of the predictions and targets"
        ) from error
    return eigenvalues, vectors


def leading(eigenvalues: Values, tolerance: float = RESIDUAL_TOLERANCE) -> Mask:
    """Return which ascending eigenvalues (r,) are needed so that the others sum to at most a share of the trace."""
    cumulative = np.cumsum(np.maximum(eigenvalues, 0))
    return np.asarray(cumulative > tolerance * cumulative[-1])


def truncated_eigenbasis(matrix: Values, tolerance: float = RESIDUAL_TOLERANCE) -> tuple[Values, Values]:
    """Return the :func:`leading` eigenvalues (q,), in ascending order, and their eigenvectors (r, q)."""
    eigenvalues, vectors = eigenvectors(matrix)
    kept = leading(eigenvalues, tolerance)
    return eigenvalues[kept], vectors[:, kept]


def psd_root(matrix: Values) -> Values:
    """Return C with C C^T equal to a positive semidefinite matrix; negative eigenvalues from rounding are set to 0."""
    eigenvalues, vectors = eigenvectors(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0)))
