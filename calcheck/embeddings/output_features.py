"""Low-rank features of the kernel on targets: k_Y(u, v) = psi(u) . psi(v) with few numbers a point.

For an RBF kernel on scalar targets some 20 to 60 features leave out less than 1e-12 of every squared norm. With
them each conditional mean embedding is a handful of numbers, and the metrics never form a Gram matrix of targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.kernel_means import rbf
from calcheck.distributions.samples import Samples
from calcheck.embeddings.dictionary import Fineness, GaussianAtoms, grid_over_all, near_distributions, near_targets
from calcheck.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive

FIRST_TOLERANCE = 1e-6  # for the targets alone; with a smaller one the factor's order would cost digits
ROUNDING = 1e-12  # a bound below it would promise more than float64 can keep
TOO_MUCH = 1e-3  # of a squared norm: what leaves out more does not represent
FINE = Fineness()
MOST_FEATURES = 1500  # targets that are thousands of length scales apart have no low rank
BLOCK_VALUES = 1 << 21  # numbers in one block of kernel values, 16 MiB


@dataclass(frozen=True, eq=False)
class OutputFeatures:
    """The map psi from targets, or distributions of targets, to r numbers.

    psi(u) = L^-1 <phi(u), pivots> with L L^T the pivots' Gram matrix: the projection onto the pivots' span.

    Parameters
    ----------
    pivots : GaussianAtoms
        r elements of the feature space.
    factor : (r, r)
        L, lower triangular.
    """

    pivots: GaussianAtoms
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
            features[rows] = self._project(rbf(points[rows], self.pivots.mean, gamma) * factor)
        return features

    def of_distributions(self, predictive: Predictive) -> NDArray[np.float64]:
        """Return E psi(Y_i), (n, r)."""
        gamma, factor = self.pivots.kernels
        features = np.empty((len(predictive), self.rank))
        for rows in self._blocks(len(predictive)):
            features[rows] = self._project(predictive.take(rows).kernel_mean(self.pivots.mean, gamma) * factor)
        return features

    def extend(self, points: NDArray[np.float64], tolerance: float) -> OutputFeatures:
        """Add some of (p, t) points as pivots, until no point leaves out more of its squared norm."""
        gamma = self.pivots.gamma
        known = self.of_points(points)
        products = rbf(points, points, gamma) - known @ known.T
        residuals = 1 - np.einsum("ij,ij->i", known, known)
        rows: list[NDArray[np.float64]] = []
        chosen: list[int] = []
        while residuals.max() > tolerance and self.rank + len(chosen) < MOST_FEATURES:
            pivot = int(residuals.argmax())
            row = products[pivot] - sum((each[pivot] * each for each in rows), np.zeros(len(points)))
            rows.append(row / np.sqrt(residuals[pivot]))
            residuals = residuals - rows[-1] ** 2
            residuals[pivot] = 0.0
            chosen.append(pivot)
        added = points[chosen]
        factor = np.zeros((self.rank + len(chosen),) * 2)
        factor[: self.rank, : self.rank] = self.factor
        factor[self.rank :, : self.rank] = known[chosen]
        factor[self.rank :, self.rank :] = np.tril(np.stack(rows, axis=1)[chosen])
        return OutputFeatures(self.pivots.join(GaussianAtoms(added, np.zeros_like(added), gamma)), factor)

    def complete(
        self,
        features: NDArray[np.float64],
        kernel_mean: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
    ) -> NDArray[np.float64]:
        """Complete the features (n, s) by the first s pivots of what has the mean embeddings, (n, r)."""
        from scipy.linalg import solve_triangular

        known = features.shape[1]
        added = self.pivots.take(np.arange(known, self.rank))
        gamma, factor = added.kernels
        values = kernel_mean(added.mean, gamma) * factor - features @ self.factor[known:, :known].T
        rest = solve_triangular(self.factor[known:, known:], values.T, lower=True, check_finite=False).T
        return np.concatenate([features, rest], axis=1)

    def gram_of_represented(
        self, products: NDArray[np.float64], along: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return M, (r, r), with psi(u)^T M psi(v) the product of what stands for u and v, from that of the pivots.

        Parameters
        ----------
        products : (r, r)
            Of the pivots.
        along : (r, q), optional
            Directions D: D^T M D is returned, (q, q).
        """
        from scipy.linalg import solve_triangular

        if along is None:
            half = self._project(products)
            return np.asarray(self._project(half.T))
        turned = solve_triangular(self.factor, along, lower=True, trans="T", check_finite=False)
        return np.asarray(turned.T @ products @ turned)

    def residual_of_draws(self, draws: NDArray[np.float64]) -> tuple[float, float]:
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
            points = draws[rows].reshape(-1, self.pivots.mean.shape[1])
            residuals = (1 - np.sum(self.of_points(points) ** 2, axis=1)).reshape(-1, draws.shape[1])
            worst, worst_row = (
                max(worst, float(residuals.max())),
                max(worst_row, float(residuals.mean(axis=1).max())),
            )
        return worst, worst_row

    def residual_of_distributions(self, predictive: Predictive, features: NDArray[np.float64]) -> float:
        """Return max E k(Y_i, Y_i') - |E psi(Y_i)|^2, given the features (n, r) of the distributions."""
        residuals = predictive.kernel_norm(self.pivots.gamma) - np.sum(features**2, axis=1)
        return max(ROUNDING, float(np.max(residuals)))

    def _blocks(self, n: int, each: int = 1) -> Iterator[slice]:
        rows = max(1, BLOCK_VALUES // (self.rank * each))
        return (slice(start, start + rows) for start in range(0, n, rows))

    def _project(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.linalg import solve_triangular

        projected = solve_triangular(self.factor, values.T, lower=True, check_finite=False)
        return np.asarray(projected.T)


def residual_of_points(features: NDArray[np.float64]) -> float:
    """Return max 1 - |psi(u)|^2 over the features (p, r) of points: the most that is left out of one."""
    return max(ROUNDING, 1 - float(np.min(np.einsum("ij,ij->i", features, features))))


def output_features(
    y: NDArray[np.float64],
    predictive: Predictive,
    gamma: NDArray[np.float64],
    rng: Generator,
    fineness: Fineness = FINE,
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
    fineness : Fineness
        How well.

    Returns
    -------
    OutputFeatures
        How much they leave out is for the caller to measure
        (:func:`feature_warnings`, :meth:`OutputFeatures.residual_of_distributions`).
    """
    tolerance, most = fineness.tolerance, fineness.points
    whole = grid_over_all(y, predictive, gamma, fineness) if len(gamma) == 1 else None
    if whole is not None and (features := _pivoted_cholesky(whole, len(whole), tolerance)).rank < MOST_FEATURES:
        return features
    targets = near_targets(y, predictive, gamma, rng, most)
    return _pivoted_cholesky(targets.join(near_distributions(predictive, gamma, rng, most)), len(targets), tolerance)


def _pivoted_cholesky(pool: GaussianAtoms, first: int, tolerance: float) -> OutputFeatures:
    """Factorize the pool's Gram matrix, the worst represented element first, until all are represented.

    The first so many elements are represented well before any other, in case there are too many.
    """
    most = min(len(pool), MOST_FEATURES)
    factor = np.zeros((min(64, most), len(pool)))  # (r, p): rows grow at the end
    residuals = pool.norms()
    pivots: list[int] = []
    candidates = first
    while len(pivots) < most:
        pivot = int(np.argmax(residuals[:candidates]))
        if candidates < len(pool) and residuals[pivot] <= max(FIRST_TOLERANCE, tolerance):
            candidates = len(pool)
            continue
        if residuals[pivot] <= tolerance:
            break
        r = len(pivots)
        if r == len(factor):
            factor = np.concatenate([factor, np.zeros((min(r, most - r), len(pool)))])
        row = pool.products(pivot) - factor[:r, pivot] @ factor[:r]
        factor[r] = row / np.sqrt(residuals[pivot])
        residuals -= factor[r] ** 2
        residuals[pivot] = 0.0
        pivots.append(pivot)
    chosen = np.asarray(pivots)
    return OutputFeatures(pool.take(chosen), factor[: len(chosen), chosen].T)


class FeatureError:
    """The most that the features leave out, measured on the way.

    Attributes
    ----------
    points : float
        Of the squared norm of a target or a draw, which is 1.
    rows : float
        Of the squared norm of a predictive distribution.
    quadrature : float
        How far the mean embeddings themselves may be off.
    """

    def __init__(self, features: OutputFeatures, observed: NDArray[np.float64]) -> None:
        """Measure what the features (n, r) of the targets leave out.

        Raises
        ------
        DataError
            They cannot represent the targets.
        """
        self.features = features
        self.quadrature = 0.0
        self.points = residual_of_points(observed)
        if self.points > TOO_MUCH:
            msg = (
                f"--gamma-y {features.pivots.gamma.max():.3g} is too narrow for these targets: {features.rank:,}"
                f" features leave out {self.points:.1%} of a target's squared norm. Pass a smaller --gamma-y"
            )
            raise DataError(msg)
        self.rows = 0.0

    def embed(self, predictive: Predictive) -> NDArray[np.float64]:
        """Return E psi(Y_i), (n, r).

        Raises
        ------
        DataError
            The features cannot represent the predictions.
        """
        embedded = self.features.of_distributions(predictive)
        self.quadrature = max(self.quadrature, predictive.kernel_error)
        if isinstance(predictive, Samples):
            points, rows = self.features.residual_of_draws(predictive.draws)
            self.points = max(self.points, points)
        else:
            rows = self.features.residual_of_distributions(predictive, embedded)
        self.rows = max(self.rows, rows)
        if rows > TOO_MUCH:
            msg = (
                f"the predictions spread too far for the kernel on targets: {self.features.rank:,} features leave out"
                f" up to {rows:.1%} of one. Are they in the unit of the targets? Otherwise pass a smaller --gamma-y"
            )
            raise DataError(msg)
        return embedded
