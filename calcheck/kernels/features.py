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
FIRST_TOLERANCE = 1e-6  # for the targets alone; with a smaller one the factor's order would cost digits
ROUNDING = 1e-12  # a bound below it would promise more than float64 can keep
TAILS = (1e-9, 1e-6, 1e-3, 0.05, 0.3)  # mass of a distribution outside the pool, on each side: the first affordable
SPACING = 0.2  # of the pool's grid, in length scales; at 0.4 a grid already spans the kernel to 1e-13
MARGIN = 1.0  # how far the pool reaches beyond what it must cover, in length scales
POOL_POINTS = 4000  # 800 length scales of grid, or so many points
MOST_FEATURES = 1500  # targets that are thousands of length scales apart have no low rank
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

    def join(self, others: Blobs) -> Blobs:
        """Append elements."""
        centre, width = np.concatenate([self.centre, others.centre]), np.concatenate([self.width, others.width])
        return Blobs(centre, width, self.gamma)

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

    def left_out_of_draws(self, draws: NDArray[np.float64]) -> tuple[float, float]:
        """Say what the features leave out of draws (n, m) or (n, m, t).

        Returns
        -------
        float
            The most that they leave out of one draw.
        float
            The most that they leave out of a row's distribution: at most the mean over its draws.
        """
        worst = worst_row = ROUNDING
        for rows in self._blocks(len(draws), each=draws.shape[1]):
            points = draws[rows].reshape(-1, self.pivots.centre.shape[1])
            left_out = (1 - np.sum(self.of_points(points) ** 2, axis=1)).reshape(-1, draws.shape[1])
            worst, worst_row = max(worst, float(left_out.max())), max(worst_row, float(left_out.mean(axis=1).max()))
        return worst, worst_row

    def left_out_of_distributions(self, predictive: Predictive, features: NDArray[np.float64]) -> float:
        """Return max E k(Y_i, Y_i') - |E psi(Y_i)|^2, given the features (n, r) of the distributions."""
        left_out = predictive.kernel_norm(self.pivots.gamma) - np.sum(features**2, axis=1)
        return max(ROUNDING, float(np.max(left_out)))

    def _blocks(self, n: int, each: int = 1) -> Iterator[slice]:
        rows = max(1, BLOCK_VALUES // (self.rank * each))
        return (slice(start, start + rows) for start in range(0, n, rows))

    def _project(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.linalg import solve_triangular

        projected = solve_triangular(self.factor, values.T, lower=True, check_finite=False)
        return np.asarray(projected.T)


def left_out(features: NDArray[np.float64]) -> float:
    """Return max 1 - |psi(u)|^2 over the features (p, r) of points: the most that is left out of one."""
    return max(ROUNDING, 1 - float(np.min(np.einsum("ij,ij->i", features, features))))


def output_features(
    y: NDArray[np.float64],
    predictive: Predictive,
    gamma: NDArray[np.float64],
    rng: Generator,
) -> OutputFeatures:
    """Choose features that represent the targets and every predictive distribution.

    Pivoted Cholesky on a pool of elements, the targets first. For scalar targets the pool is a grid over the targets,
    the draws, and each distribution to a tail mass of 1e-9, one length scale beyond. Where that would be too large, and
    for vectors, it is the points themselves and, of normal distributions, their own embeddings.

    Parameters
    ----------
    y : (n, t)
        Targets.
    predictive : Predictive
        Distributions of targets that the features must represent; parametric, or samples.
    gamma : (t,)
        Of the kernel on targets.
    rng : Generator
        Chooses among elements that are too many.

    Returns
    -------
    OutputFeatures
        How much they leave out is for the caller to measure
        (:func:`left_out`, :meth:`OutputFeatures.left_out_of_distributions`).
    """
    whole = _grid_over_all(y, predictive, gamma) if len(gamma) == 1 else None
    if whole is not None and (features := _pivoted_cholesky(whole, first=len(whole))).rank < MOST_FEATURES:
        return features
    targets = _near(y, predictive, gamma, rng)
    return _pivoted_cholesky(targets.join(_far(predictive, gamma, rng)), first=len(targets))


def _pivoted_cholesky(pool: Blobs, *, first: int) -> OutputFeatures:
    """Factorise the pool's Gram matrix, the worst represented element first, until all are represented.

    The first so many elements are represented well before any other, in case there are too many.
    """
    most = min(len(pool), MOST_FEATURES)
    factor = np.zeros((min(64, most), len(pool)))  # (r, p): rows grow at the end
    left_out = pool.norms()
    pivots: list[int] = []
    candidates = first
    while len(pivots) < most:
        pivot = int(np.argmax(left_out[:candidates]))
        if candidates < len(pool) and left_out[pivot] <= FIRST_TOLERANCE:
            candidates = len(pool)
            continue
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


def _grid_over_all(y: NDArray[np.float64], predictive: Predictive, gamma: NDArray[np.float64]) -> Blobs | None:
    """Return a grid on the line over targets, draws and distributions; None if it would be too large."""
    if isinstance(predictive, Samples):
        others = _spans(predictive.draws.ravel(), gamma)
    else:
        others = np.stack([predictive.quantile(TAILS[0]), predictive.quantile(1 - TAILS[0])], axis=1)
    return _grid(np.concatenate([_spans(y.ravel(), gamma), others]), gamma, lattice=predictive.lattice)


def _near(y: NDArray[np.float64], predictive: Predictive, gamma: NDArray[np.float64], rng: Generator) -> Blobs:
    """Return the targets, or a grid over them where they are too many."""
    grid = None
    if len(y) > POOL_POINTS and len(gamma) == 1:
        grid = _grid(_spans(y.ravel(), gamma), gamma, lattice=predictive.lattice)
    return _points(y, gamma, rng) if grid is None else grid


def _far(predictive: Predictive, gamma: NDArray[np.float64], rng: Generator) -> Blobs:
    """Return elements near the distributions: draws, their embeddings, or a grid on as much as is affordable."""
    if isinstance(predictive, Samples):
        return _points(predictive.draws.reshape(-1, len(gamma)), gamma, rng)
    normal = predictive.normal()
    if normal is not None:
        rows = rng.permutation(len(predictive))[:POOL_POINTS]
        return Blobs(normal[0][rows], normal[1][rows], gamma)
    for tail in TAILS if len(gamma) == 1 else ():
        spans = np.stack([predictive.quantile(tail), predictive.quantile(1 - tail)], axis=1)
        grid = _grid(spans, gamma, lattice=predictive.lattice)
        if grid is not None:
            return grid
    draws = predictive.sample(rng, max(1, POOL_POINTS // len(predictive)))
    return _points(draws.reshape(-1, len(gamma)), gamma, rng)


def _points(points: NDArray[np.float64], gamma: NDArray[np.float64], rng: Generator) -> Blobs:
    """Return different points (p, t) as elements, some of them chosen at random where they are too many."""
    points = np.unique(points, axis=0)
    if len(points) > POOL_POINTS:
        points = points[rng.choice(len(points), POOL_POINTS, replace=False)]
    return Blobs(points, np.zeros_like(points), gamma)


def _grid(intervals: NDArray[np.float64], gamma: NDArray[np.float64], *, lattice: bool) -> Blobs | None:
    """Return a grid over the union of intervals (i, 2) and a margin; None if it has too many points.

    On a lattice the grid is of whole numbers: of all of them where the kernel tells neighbours apart.
    """
    length = float(1 / np.sqrt(2 * gamma[0]))
    spacing = SPACING * length
    margin = MARGIN * length
    if lattice:
        spacing = max(1.0, np.floor(spacing))
        margin = spacing * np.floor(margin / spacing)
        intervals = spacing * np.stack(
            [np.floor(intervals[:, 0] / spacing), np.ceil(intervals[:, 1] / spacing)], axis=1
        )
    stretches = _merged(intervals + margin * np.array([-1, 1]))
    steps = np.ceil((stretches[:, 1] - stretches[:, 0]) / spacing)
    if not steps.sum() + len(steps) <= POOL_POINTS:
        return None
    pieces = [np.linspace(low, high, int(count) + 1) for (low, high), count in zip(stretches, steps, strict=True)]
    centre = np.concatenate(pieces)[:, None]
    return Blobs(centre, np.zeros_like(centre), gamma)


def _spans(points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Group points (p,) less than a length scale apart into intervals, (i, 2): outliers then cost little."""
    return _as_intervals(np.unique(points), float(1 / np.sqrt(2 * gamma[0])))


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
