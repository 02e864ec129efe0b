"""Low-rank features of the kernel on targets: k_Y(u, v) = psi(u) . psi(v).

For an RBF kernel on scalar targets, 20 to 60 features have a residual below 1e-12 of every squared norm. A conditional
mean embedding is then a short vector, and no Gram matrix of targets is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.samples import Samples
from calcheck.distributions.special import rbf
from calcheck.embeddings.dictionary import Fineness, GaussianAtoms, grid_over_all, near_distributions, near_targets
from calcheck.embeddings.exact_features import FeatureBounds
from calcheck.errors import DataError
from calcheck.linalg.gram import PivotedCholesky

if TYPE_CHECKING:
    from numpy.random import Generator

    from calcheck.distributions import Predictive
    from calcheck.typing import Values

FIRST_TOLERANCE = 1e-6  # Tolerance of the first pass, over targets only; smaller values make the factor inaccurate
ROUNDING = 1e-12  # Minimum reported residual, because of rounding in float64
MAX_RESIDUAL = 1e-3  # Maximum residual of a squared norm; larger residuals are an error
FINE = Fineness()
MAX_FEATURES = 1500  # Maximum rank; targets that span thousands of length scales have no low-rank kernel
BLOCK_VALUES = 1 << 21  # Kernel values per block: 16 MiB


@dataclass(frozen=True, eq=False)
class OutputFeatures:
    """Feature map psi from targets, or distributions of targets, to r features.

    psi(u) = L^-1 <phi(u), pivots>, where L L^T is the Gram matrix of the pivots: the projection onto their span.
    """

    pivots: GaussianAtoms  # Pivots: r elements of the feature space
    factor: Values  # (r, r), L, lower triangular

    @property
    def rank(self) -> int:
        """Number of features r."""
        return len(self.pivots)

    def of_points(self, points: Values) -> Values:
        """Return psi(u) for (p, t) points, (p, r)."""
        gamma, factor = self.pivots.kernels
        features = np.empty((len(points), self.rank))
        for rows in self._blocks(len(points)):
            features[rows] = self._project(rbf(points[rows], self.pivots.mean, gamma) * factor)
        return features

    def of_distributions(self, predictive: Predictive) -> Values:
        """Return E psi(Y_i), (n, r)."""
        gamma, factor = self.pivots.kernels
        features = np.empty((len(predictive), self.rank))
        for rows in self._blocks(len(predictive)):
            features[rows] = self._project(predictive.take(rows).kernel_mean(self.pivots.mean, gamma) * factor)
        return features

    def embed(self, points: Values, models: Iterable[Predictive]) -> tuple[Values, Iterator[Values], FeatureError]:
        """Return the features of targets (p, t), those of the distributions of each trial (n, r), and their error."""
        observed = self.of_points(points)
        bounds = FeatureError(self, observed)
        return observed, map(bounds.embed, models), bounds

    @property
    def gamma(self) -> Values:
        """Gamma of the kernel on targets, (t,)."""
        return self.pivots.gamma

    def mean_norms(self, points: Values) -> float:  # noqa: ARG002 - equal for all points
        """Return the mean of k(u, u) over points: 1."""
        return 1.0

    def extend(self, points: Values, tolerance: float) -> OutputFeatures:
        """Return features with some of (p, t) points as additional pivots, so that all residuals meet the tolerance."""
        gamma = self.pivots.gamma
        known = self.of_points(points)
        products = rbf(points, points, gamma) - known @ known.T
        residuals = 1 - np.einsum("ij,ij->i", known, known)
        found = PivotedCholesky(residuals, products.__getitem__, MAX_FEATURES - self.rank)
        found.represent(len(points), tolerance)
        chosen = found.pivots
        added = points[chosen]
        factor = np.zeros((self.rank + len(chosen),) * 2)
        factor[: self.rank, : self.rank] = self.factor
        factor[self.rank :, : self.rank] = known[chosen]
        factor[self.rank :, self.rank :] = np.tril(found.factor[:, chosen].T)
        return OutputFeatures(self.pivots.join(GaussianAtoms(added, np.zeros_like(added), gamma)), factor)

    def complete(
        self,
        features: Values,
        kernel_mean: Callable[[Values, Values], Values],
    ) -> Values:
        """Return features for all pivots, (n, r), given those for the first s pivots, (n, s), and the kernel mean."""
        from scipy.linalg import solve_triangular

        known = features.shape[1]
        added = self.pivots.take(np.arange(known, self.rank))
        gamma, factor = added.kernels
        values = kernel_mean(added.mean, gamma) * factor - features @ self.factor[known:, :known].T
        rest = solve_triangular(self.factor[known:, known:], values.T, lower=True, check_finite=False).T
        return np.concatenate([features, rest], axis=1)

    def gram_of_represented(self, products: Values, along: Values | None = None) -> Values:
        """Return M, (r, r), with psi(u)^T M psi(v) the inner product of the projections of u and v in another kernel.

        Shapes: products (r, r), along (r, q).
        """
        from scipy.linalg import solve_triangular

        if along is None:
            half = self._project(products)
            return np.asarray(self._project(half.T))
        turned = solve_triangular(self.factor, along, lower=True, trans="T", check_finite=False)
        return np.asarray(turned.T @ products @ turned)

    def residual_of_draws(self, draws: Values) -> tuple[float, float]:
        """Return the largest residuals of draws (n, m) or (n, m, t) and of rows."""
        worst = worst_row = ROUNDING
        for rows in self._blocks(len(draws), each=draws.shape[1]):
            points = draws[rows].reshape(-1, self.pivots.mean.shape[1])
            residuals = (1 - np.sum(self.of_points(points) ** 2, axis=1)).reshape(-1, draws.shape[1])
            worst, worst_row = (
                max(worst, float(residuals.max())),
                max(worst_row, float(residuals.mean(axis=1).max())),
            )
        return worst, worst_row

    def residual_of_distributions(self, predictive: Predictive, features: Values) -> float:
        """Return max_i E k(Y_i, Y_i') - |E psi(Y_i)|^2, given the features (n, r) of the distributions."""
        residuals = predictive.kernel_norm(self.pivots.gamma) - np.sum(features**2, axis=1)
        return max(ROUNDING, float(np.max(residuals)))

    def _blocks(self, n: int, each: int = 1) -> Iterator[slice]:
        rows = max(1, BLOCK_VALUES // (self.rank * each))
        return (slice(start, start + rows) for start in range(0, n, rows))

    def _project(self, values: Values) -> Values:
        from scipy.linalg import solve_triangular

        projected = solve_triangular(self.factor, values.T, lower=True, check_finite=False)
        return np.asarray(projected.T)


def residual_of_points(features: Values) -> float:
    """Return the largest residual 1 - |psi(u)|^2 over the features (p, r) of points."""
    return max(ROUNDING, 1 - float(np.min(np.einsum("ij,ij->i", features, features))))


def output_features(
    y: Values,  # (n, t)
    predictive: Predictive,
    gamma: Values,  # (t,)
    rng: Generator,
    fineness: Fineness = FINE,
) -> OutputFeatures:
    """Return features that represent the targets and every predictive distribution.

    Uses pivoted Cholesky on a pool of elements, starting with the targets. For scalar targets, the pool is a grid with
    a margin of one length scale over the targets, the draws, and each distribution up to a tail mass of 1e-9. If the
    grid is too large, and for vector targets, the pool consists of the points and the embeddings of normal
    distributions.
    """
    tolerance, most = fineness.tolerance, fineness.points
    whole = grid_over_all(y, predictive, gamma, fineness) if len(gamma) == 1 else None
    if whole is not None and (features := _chosen_features(whole, len(whole), tolerance)).rank < MAX_FEATURES:
        return features
    targets = near_targets(y, predictive, gamma, rng, most)
    return _chosen_features(targets.join(near_distributions(predictive, gamma, rng, most)), len(targets), tolerance)


def _chosen_features(pool: GaussianAtoms, first: int, tolerance: float) -> OutputFeatures:
    """Return features by pivoted Cholesky of the Gram matrix of the pool.

    The first ``first`` elements are represented before all others, in case the maximum rank is reached.
    """
    found = PivotedCholesky(pool.norms(), pool.products, min(len(pool), MAX_FEATURES))
    if first < len(pool):
        found.represent(first, max(FIRST_TOLERANCE, tolerance))
    found.represent(len(pool), tolerance)
    chosen = np.asarray(found.pivots)
    return OutputFeatures(pool.take(chosen), found.factor[:, chosen].T)


class FeatureError(FeatureBounds):
    """Largest residuals of the features; each call of :meth:`embed` updates them."""

    def __init__(self, features: OutputFeatures, observed: Values) -> None:
        """Compute the residuals of the targets from their features (n, r)."""
        super().__init__(features.rank, residual_of_points(observed))
        self.features = features
        if self.points > MAX_RESIDUAL:
            msg = (
                f"--gamma-y {features.pivots.gamma.max():.3g} is too narrow for these targets: {features.rank:,}"
                f" features miss {self.points:.1%} of the squared norm of a target. Pass a smaller --gamma-y"
            )
            raise DataError(msg)

    def embed(self, predictive: Predictive) -> Values:
        """Return E psi(Y_i), (n, r)."""
        embedded = self.features.of_distributions(predictive)
        self.quadrature = max(self.quadrature, predictive.kernel_error)
        if isinstance(predictive, Samples):
            points, rows = self.features.residual_of_draws(predictive.draws)
            self.points = max(self.points, points)
        else:
            rows = self.features.residual_of_distributions(predictive, embedded)
        self.rows = max(self.rows, rows)
        if rows > MAX_RESIDUAL:
            msg = (
                f"the predictions spread too far for the kernel on targets: {self.features.rank:,} features miss up to"
                f" {rows:.1%} of the squared norm of a prediction. Check that the predictions are in the unit of the"
                " targets, or pass a smaller --gamma-y"
            )
            raise DataError(msg)
        return embedded
