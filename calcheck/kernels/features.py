"""Low-rank features of the kernel on targets: k_Y(u, v) = psi(u) . psi(v) with few numbers a point.

For an RBF kernel on scalar targets some 20 to 60 features leave out less than 1e-12 of every squared norm. With
them each conditional mean embedding is a handful of numbers, and the metrics never form a Gram matrix of targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.predictive.samples import Samples, rbf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from calcheck.predictive import Predictive

TOLERANCE = 1e-13  # of a point's squared norm, which is 1: far above rounding, far below what moves CCE
ROUNDING = 1e-12  # a bound below it would promise more than float64 can keep
TAIL = 1e-9  # mass of a distribution outside the pool, on each side
SPACING = 0.2  # of the pool's grid, in length scales; at 0.4 a grid already spans the kernel to 1e-13
MARGIN = 1.0  # how far the pool reaches beyond what it must cover, in length scales
POOL_POINTS = 6000  # 1,200 length scales of grid, or so many vectors
MOST_FEATURES = 2000  # targets that are thousands of length scales apart have no low rank
BLOCK_VALUES = 1 << 21  # numbers in one block of kernel values, 16 MiB


@dataclass(frozen=True, eq=False)
class Blobs:
    """Elements of the feature space: mean embeddings of narrow normal distributions; points where the width is 0.

    Parameters
    ----------
    centre : (p, t)
        Means.
    width : (p, t)
        Standard deviations, >= 0.
    gamma : (t,)
        Of the kernel k_Y(u, v) = exp(-sum_c gamma_c (u_c - v_c)^2), in 1 / unit^2.
    """

    centre: NDArray[np.float64]
    width: NDArray[np.float64]
    gamma: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.centre)

    def take(self, rows: NDArray[np.intp]) -> Blobs:
        """Select elements, in the order given."""
        return Blobs(self.centre[rows], self.width[rows], self.gamma)

    @property
    def kernels(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Say how a point sees each: <phi(u), blob_j> = factor_j exp(-sum_c gamma_jc (u_c - centre_jc)^2).

        Returns
        -------
        gamma : (p, t)
        factor : (p,)
        """
        flattened = 1 / (1 + 2 * self.gamma * self.width**2)
        return self.gamma * flattened, np.sqrt(np.prod(flattened, axis=1))

    def products(self, one: int) -> NDArray[np.float64]:
        """Return the inner products of one element with all, (p,)."""
        both = Blobs(self.centre, np.sqrt(self.width**2 + self.width[one] ** 2), self.gamma)
        gamma, factor = both.kernels
        return np.asarray(rbf(self.centre[one, None], self.centre, gamma)[0] * factor)

    def norms(self) -> NDArray[np.float64]:
        """Return the squared norms, (p,)."""
        return np.asarray(np.prod(1 + 4 * self.gamma * self.width**2, axis=1) ** -0.5)


@dataclass(frozen=True, eq=False)
class OutputFeatures:
    """The map psi from targets, or distributions of targets, to r numbers.

    psi(u) = L^-1 <phi(u), pivots> with L L^T the pivots' Gram matrix: the projection onto the pivots' span.

    Parameters
    ----------
    pivots : Blobs
        r elements of the feature space.
    factor : (r, r)
        L, lower triangular.
    """

    pivots: Blobs
    factor: NDArray[np.float64]

    @property
    def rank(self) -> int:
        """Number of features r."""
        return len(self.pivots)

    def of_points(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return psi of (p, t) points, (p, r)."""
        gamma, factor = self.pivots.kernels
        features = np.empty((len(points), self.rank))
        for rows in self._blocks(len(points)):
            features[rows] = self._project(rbf(points[rows], self.pivots.centre, gamma) * factor)
        return features

    def of_distributions(self, predictive: Predictive) -> NDArray[np.float64]:
        """Return E psi(Y_i), (n, r)."""
        gamma, factor = self.pivots.kernels
        features = np.empty((len(predictive), self.rank))
        for rows in self._blocks(len(predictive)):
            features[rows] = self._project(predictive.take(rows).kernel_mean(self.pivots.centre, gamma) * factor)
        return features

    def left_out_of_points(self, points: NDArray[np.float64]) -> float:
        """Return max 1 - |psi(u)|^2 over (p, t) points: the most that the features leave out of one."""
        kept = [np.min(np.sum(self.of_points(points[rows]) ** 2, axis=1)) for rows in self._blocks(len(points))]
        return max(ROUNDING, 1 - float(min(kept)))

    def left_out_of_distributions(self, predictive: Predictive, features: NDArray[np.float64]) -> float:
        """Return max E k(Y_i, Y_i') - |E psi(Y_i)|^2, given the features (n, r) of the distributions."""
        left_out = predictive.kernel_norm(self.pivots.gamma) - np.sum(features**2, axis=1)
        return max(ROUNDING, float(np.max(left_out)))

    def _blocks(self, n: int) -> Iterator[slice]:
        rows = max(1, BLOCK_VALUES // self.rank)
        return (slice(start, start + rows) for start in range(0, n, rows))

    def _project(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.linalg import solve_triangular

        projected = solve_triangular(self.factor, values.T, lower=True, check_finite=False)
        return np.asarray(projected.T)


def output_features(
    y: NDArray[np.float64],
    predictives: list[Predictive],
    gamma: NDArray[np.float64],
    rng: Generator,
) -> OutputFeatures:
    """Choose features that represent the targets and every predictive distribution.

    Pivoted Cholesky on a pool of elements. For scalar targets the pool is a grid over the targets, the draws, and each
    distribution to a tail mass of 1e-9, one length scale beyond; for vectors it is the points themselves, with draws
    from parametric families.

    Parameters
    ----------
    y : (n, t)
        Targets.
    predictives : list of Predictive
        Distributions of targets that the features must represent; parametric, or samples.
    gamma : (t,)
        Of the kernel on targets.
    rng : Generator
        Draws the pool of vectors.

    Returns
    -------
    OutputFeatures
        How much they leave out is for the caller to measure
        (:meth:`OutputFeatures.left_out_of_points`, :meth:`OutputFeatures.left_out_of_distributions`).
    """
    if len(gamma) == 1:
        pool = _pool_on_the_line(y, predictives, gamma)
    else:
        vectors = _pool_of_vectors(y, predictives, rng)
        pool = Blobs(vectors, np.zeros_like(vectors), gamma)
    return _pivoted_cholesky(pool)


def _pivoted_cholesky(pool: Blobs) -> OutputFeatures:
    """Factorise the pool's Gram matrix, the worst represented element first, until all are represented."""
    most = min(len(pool), MOST_FEATURES)
    factor = np.zeros((min(64, most), len(pool)))  # (r, p): rows grow at the end
    left_out = pool.norms()
    pivots: list[int] = []
    while len(pivots) < most:
        pivot = int(np.argmax(left_out))
        if left_out[pivot] <= TOLERANCE:
            break
        r = len(pivots)
        if r == len(factor):
            factor = np.concatenate([factor, np.zeros((min(r, most - r), len(pool)))])
        row = pool.products(pivot) - factor[:r, pivot] @ factor[:r]
        factor[r] = row / np.sqrt(left_out[pivot])
        left_out -= factor[r] ** 2
        left_out[pivot] = 0.0
        pivots.append(pivot)
    chosen = np.asarray(pivots)
    return OutputFeatures(pool.take(chosen), factor[: len(chosen), chosen].T)


def _pool_on_the_line(y: NDArray[np.float64], predictives: list[Predictive], gamma: NDArray[np.float64]) -> Blobs:
    """Return a grid over all that must be covered.

    Stretches without points are left out, so that outliers cost little. Where distributions are so wide that the grid
    would grow beyond bounds, the wide ones get coarser grids of blobs half as wide as they are, an octave at a time.
    Where even the targets are too far apart, a share of them is all.
    """
    length = float(1 / np.sqrt(2 * gamma[0]))
    draws = [p.draws.ravel() for p in predictives if isinstance(p, Samples)]
    points = np.unique(np.concatenate([y.ravel(), *draws]))
    covered = _as_intervals(points, length)
    parametric = [p for p in predictives if not isinstance(p, Samples)]
    bodies = np.concatenate([np.empty((0, 2)), *(_bodies(p) for p in parametric)])  # (i, 2)
    octave = np.floor(np.log2(np.concatenate([np.empty(0), *(p.std() for p in parametric)]) / length))
    fine = _grid(np.concatenate([covered, bodies]), length)
    if fine is not None:
        return _blobs(fine, 0.0, gamma)
    near = _grid(np.concatenate([covered, bodies[octave < 1]]), length)
    parts = [_blobs(points[:: -(-len(points) // POOL_POINTS)] if near is None else near, 0.0, gamma)]
    for size in np.unique(octave[octave >= 1]):
        width = length * 2 ** (size - 1)
        far = _grid(bodies[octave == size], np.hypot(length, np.sqrt(2) * width))
        if far is not None:
            parts.append(_blobs(far, width, gamma))
    return Blobs(np.concatenate([part.centre for part in parts]), np.concatenate([part.width for part in parts]), gamma)


def _blobs(centre: NDArray[np.float64], width: float, gamma: NDArray[np.float64]) -> Blobs:
    """Return elements of one width on the line."""
    return Blobs(centre[:, None], np.full((len(centre), 1), width), gamma)


def _bodies(predictive: Predictive) -> NDArray[np.float64]:
    """Return the intervals that hold all but a tail of each distribution, (n, 2)."""
    return np.stack([predictive.quantile(TAIL), predictive.quantile(1 - TAIL)], axis=1)


def _grid(intervals: NDArray[np.float64], length: float) -> NDArray[np.float64] | None:
    """Return a grid over the union of intervals (i, 2) and a margin, (p,); None if it has too many points."""
    stretches = _merged(intervals + MARGIN * length * np.array([-1, 1]))
    steps = np.ceil((stretches[:, 1] - stretches[:, 0]) / (SPACING * length))
    if steps.sum() + len(steps) > POOL_POINTS:
        return None
    pieces = [np.linspace(low, high, int(count) + 1) for (low, high), count in zip(stretches, steps, strict=True)]
    return np.concatenate(pieces)


def _as_intervals(points: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Group sorted points that are closer than the gap into intervals, (i, 2)."""
    breaks = np.flatnonzero(np.diff(points) > gap)
    starts = points[np.concatenate([[0], breaks + 1])]
    ends = points[np.concatenate([breaks, [len(points) - 1]])]
    return np.stack([starts, ends], axis=1)


def _merged(intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Merge intervals (i, 2) that overlap."""
    intervals = intervals[np.argsort(intervals[:, 0])]
    reach = np.maximum.accumulate(intervals[:, 1])
    first = np.concatenate([[True], intervals[1:, 0] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.stack([intervals[first, 0], reach[last]], axis=1)


def _pool_of_vectors(y: NDArray[np.float64], predictives: list[Predictive], rng: Generator) -> NDArray[np.float64]:
    """Return targets and draws, (p, t), chosen at random where they are many."""
    parts = [y]
    for predictive in predictives:
        draws = predictive.draws if isinstance(predictive, Samples) else predictive.sample(rng, 2)
        parts.append(draws.reshape(-1, y.shape[1]))
    share = POOL_POINTS // len(parts)
    chosen = [part if len(part) <= share else part[rng.choice(len(part), share, replace=False)] for part in parts]
    return np.concatenate(chosen)
