"""RBF kernel on targets: low-rank features, and those that data sets of other bandwidths share.

For scalar targets, 20 to 60 features have a residual below 1e-12 of every squared norm. A conditional mean embedding is
then a short vector, and no Gram matrix of targets is needed. Features are chosen from a dictionary of points and of
embeddings of normal distributions.

The bandwidth of the kernel depends on the targets, which differ between replicates. Features of a slightly narrower
kernel are shared by all data sets: they represent each target as a linear combination of the same elements, and the
inner products of these elements in the kernel of a data set give its norm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from calcheck.core import la
from calcheck.distributions import Predictive, Samples
from calcheck.distributions.special import rbf
from calcheck.embeddings import target_kernels
from calcheck.embeddings.target_kernels import DataSet, SharedOutputs, TargetFeatures, TargetKernel
from calcheck.errors import DataError
from calcheck.execution.run import RandomStream, Run
from calcheck.kernels.bandwidths import target_precisions
from calcheck.linalg.gram import PivotedCholesky, psd_root, truncated_eigenbasis
from calcheck.typing import AnyArray, Indices, Mask, Values

TOLERANCE = 1e-13  # Residual of an element's squared norm: far above rounding, far below what changes CCE
TAILS = (1e-9, 1e-6, 1e-3, 0.05, 0.3)  # Tail mass outside the pool on each side; the first that fits is used
SPACING = 0.2  # Grid spacing in length scales; at 0.4 a grid already represents the kernel to 1e-13
MARGIN = 1.0  # Margin around the intervals that the pool must cover, in length scales
FAR_START = 5.0  # Initial distance of the normal elements beyond the end of a grid, in length scales
FAR_RATIO = 1.2  # Ratio of the distances of successive normal elements
FAR_MAX = 1e15  # Maximum distance of normal elements, relative to FAR_START
POOL_POINTS = 4000  # Maximum points in the pool; a grid then spans 800 length scales
SHARED_TOLERANCE = 1e-8  # Maximum residual of the squared norm of a point: far below random variation
MIN_POINTS, POINTS_PER_ROW = 400, 4  # Pool size: minimum (a grid of 80 length scales), and points per row
SHARED_TAIL = 1e-6  # Tail mass of a distribution, on each side, that need not be represented
MAX_SHARED_RESIDUAL = 1e-6  # Residual of a target's squared norm above which it is added as an element
MAX_OCTAVES = 40  # Maximum log2 ratio of gammas: the spread of the targets then differs by a factor of a million
NODES = 1024  # Nodes of a table per length scale: linear interpolation is accurate to that of single precision
CACHED_ROWS = 1 << 12  # Rows of points whose features are interpolated together
MOST_NODES = 1 << 17  # Maximum number of nodes
NEXT = 0.3  # Distance of elements, in length scales, up to which they represent the points between them
LOST = 1e-10  # Maximum share of the squared differences of targets and distributions outside of the directions
TRIALS, TRIAL_ROWS = 4, 2_000  # Data sets that show along which directions targets may differ, and their rows
FEWEST_ROWS = 200  # Minimum rows for this


@dataclass(frozen=True)
class Fineness:
    """Accuracy with which features represent targets and distributions."""

    tolerance: float = TOLERANCE  # Maximum residual of the squared norm of an element, which is at most 1
    tail: float = TAILS[0]  # Tail mass of a distribution, on each side, that need not be represented
    points: int = POOL_POINTS  # Maximum number of points in the pool


@dataclass(frozen=True, eq=False)
class GaussianAtoms:
    """Elements of the feature space: mean embeddings of normal distributions, or points where the std is 0."""

    mean: Values  # (p, t)
    std: Values  # (p, t), standard deviations, >= 0
    # (t,), parameters of the kernel k_Y(u, v) = exp(-sum_c gamma_c (u_c - v_c)^2), in 1 / unit^2
    gamma: Values

    def __len__(self) -> int:
        return len(self.mean)

    def take(self, rows: Indices) -> GaussianAtoms:
        """Return the selected elements, in the given order."""
        return GaussianAtoms(self.mean[rows], self.std[rows], self.gamma)

    def join(self, others: GaussianAtoms) -> GaussianAtoms:
        """Return these elements followed by others."""
        mean, std = np.concatenate([self.mean, others.mean]), np.concatenate([self.std, others.std])
        return GaussianAtoms(mean, std, self.gamma)

    @property
    def kernels(self) -> tuple[Values, Values]:
        """Return the kernel of each element with points: factor_j exp(-sum_c gamma_jc (u_c - mean_jc)^2), (p, t)."""
        flattened = 1 / (1 + 2 * self.gamma * self.std**2)
        return self.gamma * flattened, np.sqrt(np.prod(flattened, axis=1))

    def products(self, one: int) -> Values:
        """Return the inner products of one element with all, (p,)."""
        both = GaussianAtoms(self.mean, np.sqrt(self.std**2 + self.std[one] ** 2), self.gamma)
        gamma, factor = both.kernels
        return np.asarray(rbf(self.mean[one, None], self.mean, gamma)[0] * factor)

    def all_products(self) -> Values:
        """Return the inner products of all elements with each other, (p, p)."""
        spread = 1 + 2 * self.gamma * (self.std[:, None] ** 2 + self.std**2)  # (p, p, t)
        apart = (self.mean[:, None] - self.mean) ** 2
        return np.asarray(np.exp(-np.sum(self.gamma * apart / spread, axis=2)) / np.sqrt(np.prod(spread, axis=2)))

    def norms(self) -> Values:
        """Return the squared norms, (p,)."""
        return np.asarray(np.prod(1 + 4 * self.gamma * self.std**2, axis=1) ** -0.5)


def grid_over_all(y: Values, predictive: Predictive, gamma: Values, fineness: Fineness) -> GaussianAtoms | None:
    """Return a grid over scalar targets, draws and distributions up to a tail mass; None if it is too large."""
    if isinstance(predictive, Samples):
        others = _spans(predictive.draws.ravel(), gamma)
    else:
        others = np.stack(predictive.support_interval(fineness.tail), axis=1)
    spans = np.concatenate([_spans(y.ravel(), gamma), others])
    return _grid(spans, gamma, fineness.points, lattice=predictive.is_discrete)


def near_distributions(predictive: Predictive, gamma: Values, rng: Generator, most: int = POOL_POINTS) -> GaussianAtoms:
    """Return at most ``most`` elements near the distributions: draws, their embeddings, or a grid."""
    if isinstance(predictive, Samples):
        return _points(predictive.draws.reshape(-1, len(gamma)), gamma, rng, most)
    normal = predictive.normal()
    if normal is not None:
        rows = rng.permutation(len(predictive))[:most]
        return GaussianAtoms(normal[0][rows], normal[1][rows], gamma)
    for tail in TAILS if len(gamma) == 1 else ():
        spans = np.stack(predictive.support_interval(tail), axis=1)
        grid = _grid(spans, gamma, most, lattice=predictive.is_discrete)
        if grid is not None:
            return grid.join(_far_tails(grid, *predictive.support_interval(TAILS[0])))
    draws = predictive.sample(rng, max(1, most // len(predictive)))
    return _points(draws.reshape(-1, len(gamma)), gamma, rng, most)


def _far_tails(grid: GaussianAtoms, low: Values, high: Values) -> GaussianAtoms:
    """Return normal elements beyond the ends of a grid, for heavy tails; their std grows with the distance."""
    length = float(1 / np.sqrt(2 * grid.gamma[0]))
    means, widths = [], []
    for end, reach, sign in ((grid.mean.min(), low.min(), -1), (grid.mean.max(), high.max(), 1)):
        most = np.clip(sign * (reach - end) / (FAR_START * length), 0, FAR_MAX)
        distance = FAR_START * length * FAR_RATIO ** np.arange(np.ceil(np.log1p(most) / np.log(FAR_RATIO)))
        means.append(end + sign * (distance - FAR_START * length))
        octave = 2 ** np.ceil(np.log2(distance))  # few distinct widths: kernel means are computed for each width
        widths.append((FAR_RATIO - 1) * octave)
    return GaussianAtoms(np.concatenate(means)[:, None], np.concatenate(widths)[:, None], grid.gamma)


def _points(points: Values, gamma: Values, rng: Generator, most: int) -> GaussianAtoms:
    """Return the distinct points (p, t) as elements, or a random subset of ``most`` of them."""
    points = np.unique(points, axis=0)
    if len(points) > most:
        points = points[rng.choice(len(points), most, replace=False)]
    return GaussianAtoms(points, np.zeros_like(points), gamma)


def _grid(intervals: Values, gamma: Values, most: int, *, lattice: bool) -> GaussianAtoms | None:
    """Return a grid, of integers on a lattice, over intervals (i, 2) with a margin; None beyond ``most`` points."""
    length = float(1 / np.sqrt(2 * gamma[0]))
    spacing = SPACING * length
    margin = MARGIN * length
    if lattice:
        spacing = max(1.0, np.floor(spacing))
        margin = spacing * np.floor(margin / spacing)
        ends = [np.floor(intervals[:, 0] / spacing), np.ceil(intervals[:, 1] / spacing)]
        intervals = spacing * np.stack(ends, axis=1)
    stretches = _merged(intervals + margin * np.array([-1, 1]))
    steps = np.ceil((stretches[:, 1] - stretches[:, 0]) / spacing)
    if not steps.sum() + len(steps) <= most:
        return None
    pieces = [np.linspace(low, high, int(count) + 1) for (low, high), count in zip(stretches, steps, strict=True)]
    points = np.concatenate(pieces)[:, None]
    return GaussianAtoms(points, np.zeros_like(points), gamma)


def _spans(points: Values, gamma: Values) -> Values:
    """Return intervals (i, 2) that cover points (p,), split at gaps above a length scale so outliers are cheap."""
    points = np.unique(points)
    breaks = np.flatnonzero(np.diff(points) > float(1 / np.sqrt(2 * gamma[0])))
    starts = points[np.concatenate([[0], breaks + 1])]
    ends = points[np.concatenate([breaks, [len(points) - 1]])]
    return np.stack([starts, ends], axis=1)


def _merged(intervals: Values) -> Values:
    """Return the union of intervals (i, 2) as disjoint intervals."""
    intervals = intervals[np.argsort(intervals[:, 0])]
    reach = np.maximum.accumulate(intervals[:, 1])
    first = np.concatenate([[True], intervals[1:, 0] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.stack([intervals[first, 0], reach[last]], axis=1)


FIRST_TOLERANCE = 1e-6  # Tolerance of the first pass, over targets only; smaller values make the factor inaccurate
ROUNDING = 1e-12  # Minimum reported residual, because of rounding in float64
MAX_MISSED = 1e-3  # Maximum residual of a squared norm; larger residuals are an error
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
    pool: Values | None = None  # (p,), sorted points of which the pivots were chosen, if they are scalars

    @property
    def rank(self) -> int:
        """Number of features r."""
        return len(self.pivots)

    def of_points(self, points: Values) -> Values:
        """Return psi(u) for (p, t) points, (p, r)."""
        gamma, factor = self.pivots.kernels
        features = np.empty((len(points), self.rank))
        for rows in self.blocks(len(points)):
            features[rows] = self._project(rbf(points[rows], self.pivots.mean, gamma) * factor)
        return features

    def of_distributions(self, predictive: Predictive) -> Values:
        """Return E psi(Y_i), (n, r)."""
        gamma, factor = self.pivots.kernels
        features = np.empty((len(predictive), self.rank))
        for rows in self.blocks(len(predictive)):
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

    def complete(self, features: Values, kernel_mean: Callable[[Values, Values], Values]) -> Values:
        """Return features for all pivots, (n, r), given those for the first s pivots, (n, s), and the kernel mean."""
        known = features.shape[1]
        added = self.pivots.take(np.arange(known, self.rank))
        gamma, factor = added.kernels
        values = kernel_mean(added.mean, gamma) * factor - features @ self.factor[known:, :known].T
        rest = la.solve_triangular(self.factor[known:, known:], values.T, lower=True, check_finite=False).T
        return np.concatenate([features, rest], axis=1)

    def gram_of_represented(self, products: Values, along: Values | None = None) -> Values:
        """Return M, (r, r), with psi(u)^T M psi(v) the inner product of projections of u and v in another kernel."""
        if along is None:
            half = self._project(products)
            return np.asarray(self._project(half.T))
        turned = la.solve_triangular(self.factor, along, lower=True, trans="T", check_finite=False)
        return np.asarray(turned.T @ products @ turned)

    def residual_of_draws(self, draws: Values) -> tuple[float, float]:
        """Return the largest residuals of draws (n, m) or (n, m, t) and of rows."""
        worst = worst_row = ROUNDING
        for rows in self.blocks(len(draws), each=draws.shape[1]):
            points = draws[rows].reshape(-1, self.pivots.mean.shape[1])
            residuals = (1 - np.sum(self.of_points(points) ** 2, axis=1)).reshape(-1, draws.shape[1])
            worst, worst_row = (max(worst, float(residuals.max())), max(worst_row, float(residuals.mean(axis=1).max())))
        return worst, worst_row

    def residual_of_distributions(self, predictive: Predictive, features: Values) -> float:
        """Return max_i E k(Y_i, Y_i') - |E psi(Y_i)|^2, given the features (n, r) of the distributions."""
        residuals = predictive.kernel_norm(self.pivots.gamma) - np.einsum("ij,ij->i", features, features)
        return max(ROUNDING, float(np.max(residuals)))

    def blocks(self, n: int, each: int = 1) -> Iterator[slice]:
        """Yield slices of n rows whose features take little memory, with ``each`` points per row."""
        rows = max(1, BLOCK_VALUES // (self.rank * each))
        return (slice(start, start + rows) for start in range(0, n, rows))

    def _project(self, values: Values) -> Values:
        projected = la.solve_triangular(self.factor, values.T, lower=True, check_finite=False)
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
    """Return features that represent the targets and every predictive distribution, by pivoted Cholesky on a pool.

    For scalar targets, the pool is a grid over the targets, the draws, and each distribution up to a tail mass. If that
    is too large, and for vector targets, it consists of the points and the embeddings of normal distributions.
    """
    tolerance, most = fineness.tolerance, fineness.points
    whole = grid_over_all(y, predictive, gamma, fineness) if len(gamma) == 1 else None
    if whole is not None and (features := _chosen_features(whole, len(whole), tolerance)).rank < MAX_FEATURES:
        return features
    targets = None
    if len(y) > most and len(gamma) == 1:
        targets = _grid(_spans(y.ravel(), gamma), gamma, most, lattice=predictive.is_discrete)
    targets = _points(y, gamma, rng, most) if targets is None else targets
    return _chosen_features(targets.join(near_distributions(predictive, gamma, rng, most)), len(targets), tolerance)


def _chosen_features(pool: GaussianAtoms, first: int, tolerance: float) -> OutputFeatures:
    """Return features by pivoted Cholesky of the Gram matrix of the pool, whose ``first`` elements come first."""
    found = PivotedCholesky(pool.norms(), pool.products, min(len(pool), MAX_FEATURES))
    if first < len(pool):
        found.represent(first, max(FIRST_TOLERANCE, tolerance))
    found.represent(len(pool), tolerance)
    chosen = np.asarray(found.pivots)
    points = np.sort(pool.mean[:, 0]) if pool.mean.shape[1] == 1 and not pool.std.any() else None
    return OutputFeatures(pool.take(chosen), found.factor[:, chosen].T, points)


class FeatureError(target_kernels.FeatureBounds):
    """Largest residuals of the features; each call of :meth:`embed` updates them."""

    def __init__(self, features: OutputFeatures, observed: Values) -> None:
        """Compute the residuals of the targets from their features (n, r)."""
        super().__init__(features.rank, residual_of_points(observed))
        self.features = features
        if self.points > MAX_MISSED:
            raise DataError(
                f"--gamma-y {features.pivots.gamma.max():.3g} is too narrow for these targets: {features.rank:,}"
                f" features miss {self.points:.1%} of the squared norm of a target. Pass a smaller --gamma-y"
            )

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
        if rows > MAX_MISSED:
            raise DataError(
                f"the predictions spread too far for the kernel on targets: {self.features.rank:,} features miss up to"
                f" {rows:.1%} of the squared norm of a prediction. Check that the predictions are in the unit of the"
                " targets, or pass a smaller --gamma-y"
            )
        return embedded


class FewDirections:
    """Scalar features along the few directions in which targets differ from their distributions."""

    def __init__(self, features: OutputFeatures, pool: Values, basis: Values) -> None:
        """Tabulate features along directions (r, q) in single precision; the pool (p,) is that of the features."""
        self.basis, self._features, self._pool = basis, features, pool
        self._turned = la.solve_triangular(features.factor, self.basis, lower=True, trans="T", check_finite=False)
        self._step = float(1 / np.sqrt(2 * features.gamma[0])) / NODES
        nodes = int((pool[-1] - pool[0]) / self._step) + 2
        self._table: AnyArray | None = None
        if nodes < MOST_NODES:
            places = pool[0] + self._step * np.arange(-1, nodes)
            values, ends = self._at(places), places[:, None] + self._step / 2 * np.array([-1, 1])
            self._table, self._slopes = values.astype(np.float32), np.gradient(values, axis=0).astype(np.float32)
            # Whether all points nearest to a node are represented
            self._inside = np.asarray(self._represents(ends).all(axis=1))

    def of_points(self, points: Values) -> Values | None:
        """Return the features of points (p, 1), (p, q), interpolated; None if some are not represented."""
        u = points[:, 0]
        if (table := self._table) is None:
            return self._at(u) if self._represents(u).all() else None
        place = (u - self._pool[0]) / self._step
        nearest = np.rint(place).clip(-1, len(table) - 2)
        away, node = (place - nearest).astype(table.dtype)[:, None], nearest.astype(np.intp) + 1
        if not self._represents(u[~self._inside[node]]).all():
            return None
        found = np.empty((len(u), table.shape[1]), table.dtype)
        for start in range(0, len(u), CACHED_ROWS):
            rows = slice(start, start + CACHED_ROWS)
            part = np.take(self._slopes, node[rows], axis=0, out=found[rows], mode="clip")
            part *= away[rows]
            part += np.take(table, node[rows], axis=0)
        return found

    def _represents(self, u: Values) -> Mask:
        """Return which points are elements of the pool, or between two that are near each other."""
        above = np.searchsorted(self._pool, u).clip(1, len(self._pool) - 1)
        low, high = self._pool[above - 1], self._pool[above]
        between = (low <= u) & (u <= high) & (high - low <= NEXT * NODES * self._step)
        return np.asarray(between | (u == low) | (u == high))

    def of_features(self, features: Values) -> Values:
        """Return features (n, r) along the directions, (n, q), in the precision of the table."""
        return np.asarray(features @ self.basis, None if self._table is None else self._table.dtype)

    def _at(self, u: Values) -> Values:
        gamma, factor = self._features.pivots.kernels
        return np.asarray((rbf(u[:, None], self._features.pivots.mean, gamma) * factor) @ self._turned)

    def norm(self, gamma: Values | None) -> Values:
        """Return C such that f C are features of the kernel with this gamma."""
        products = replace(self._features.pivots, gamma=np.asarray(gamma)).all_products()
        return psd_root(self._turned.T @ products @ self._turned)


@dataclass(frozen=True, eq=False)
class _BandwidthBin:
    """Features for kernels with gammas within a factor of two, and results shared by data sets."""

    features: OutputFeatures
    of_targets: Callable[[], Values]  # Returns features of the targets of the data, (n, r)
    to_data: Callable[[], Values]  # Returns C such that f C are features of the kernel of the data
    means: target_kernels.OfDistributions[Values]
    # Distributions as combinations of the pivots, (n, r), and the sum of the squares of these, (r, r)
    combined: target_kernels.OfDistributions[tuple[Values, Values]]
    few: tuple[FewDirections, _BandwidthBin] | None = None  # The directions, and the results along them

    @cached_property
    def before(self) -> Values:
        """Features of the targets of the data, (n, r)."""
        return self.of_targets()

    @cached_property
    def fixed(self) -> Values:
        """C such that f C are features of the kernel of the data."""
        return self.to_data()


class SharedFeatures:
    """Features of the targets and distributions of many data sets."""

    def __init__(
        self,
        data: DataSet,  # The data, as opposed to the replicates
        covered: Predictive,  # Distributions that the features must represent in every trial
        rng: Callable[[], Generator],  # Returns the random generator that selects elements if the pool is too large
        *,
        differences: bool = False,  # Whether only differences of the features of targets and of distributions are used
    ) -> None:
        self._data, self._covered, self._rng, self._differences = data, covered, rng, differences
        self._octaves: dict[int, _BandwidthBin] = {}
        on_a_line = data.y.shape[-1] == 1
        points = min(POOL_POINTS, max(MIN_POINTS, POINTS_PER_ROW * len(data.y))) if on_a_line else POOL_POINTS
        self._fineness = Fineness(SHARED_TOLERANCE, SHARED_TAIL, points)

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], Values, Values]:
        """Return features, and the matrices that convert them to the kernels of the data set and of the data."""
        octave = self._octave(each)
        points = each.y.reshape(-1, each.y.shape[-1])
        if octave.few is not None and (found := octave.few[0].of_points(points)) is not None:
            (few, octave), observed = octave.few, target_kernels.by_row(found, each.y)
            model = [self._mean(octave, one, observed, octave.features) for one in each.model]
            return observed, model, few.norm(each.gamma), octave.fixed
        features = octave.features
        observed = features.of_points(points)
        far = np.flatnonzero(1 - np.einsum("ij,ij->i", observed, observed) > MAX_SHARED_RESIDUAL)
        if len(far):
            features = features.extend(points[far], MAX_SHARED_RESIDUAL)
            observed = features.of_points(points)
        observed = target_kernels.by_row(observed, each.y)
        model = [self._mean(octave, one, observed, features) for one in each.model]
        parts, along = _in_few_directions([observed, *model])
        if features is not octave.features:
            fixed = _norm(features, self._data.gamma, along)
        else:
            fixed = octave.fixed if along is None else along.T @ octave.fixed
        return parts[0], parts[1:], _norm(features, each.gamma, along), fixed

    def mean_score(self, each: DataSet) -> float:
        """Return the mean of |b_i|^2 - 2 a_i . b_i over rows, for distributions that all data sets share.

        A distribution is a combination of the pivots, so that the kernel between targets and pivots is enough.
        """
        octave = self._octave(each)
        combined, squares = octave.combined(target_kernels.draws_of(each.model[0]))
        pivots = replace(octave.features.pivots, gamma=np.asarray(each.gamma))
        gamma, factor = pivots.kernels
        total = float(np.vdot(pivots.all_products(), squares))
        for start in range(0, len(each.y), CACHED_ROWS):
            rows = slice(start, start + CACHED_ROWS)
            targets = each.y[rows].reshape(-1, each.y.shape[-1])
            kernel = target_kernels.by_row(rbf(targets, pivots.mean, gamma), each.y[rows])
            total -= 2 * float(np.einsum("ij,ij->j", kernel, combined[rows]) @ factor)
        return total / len(each.y)

    def _octave(self, each: DataSet) -> _BandwidthBin:
        """Return the features shared by kernels of similar bandwidth."""
        own, used = np.asarray(self._data.gamma), np.asarray(self._data.gamma) > 0
        ratio = np.max(np.asarray(each.gamma)[used] / own[used])
        number = int(np.rint(np.log2(ratio)))
        if abs(number) > MAX_OCTAVES:
            raise DataError(
                f"targets drawn from the predictions spread {ratio**-0.5:.1g} times as far as the observed targets."
                " Check that the predictions are in the unit of the targets, or pass --no-null"
            )
        if number not in self._octaves:
            gamma = np.asarray(self._data.gamma) * 2.0 ** (number + 0.5)
            y = self._data.y
            points = y.reshape(-1, y.shape[-1])
            features = output_features(points, self._covered, gamma, self._rng(), self._fineness)
            means = target_kernels.OfDistributions(self._data, features.of_distributions)
            combined = target_kernels.OfDistributions(self._data, lambda one: _combined(features, means(one)))
            found = _BandwidthBin(
                features,
                lambda: target_kernels.by_row(features.of_points(points), y),
                *(lambda: _norm(features, self._data.gamma), means, combined),
            )
            few = self._along_few(found)
            if few:
                means.clear()  # like the copy without features of targets: they are rarely needed
            self._octaves[number] = replace(found, few=few)
        return self._octaves[number]

    def _along_few(self, octave: _BandwidthBin) -> tuple[FewDirections, _BandwidthBin] | None:
        """Return the directions in which the data and a few replicates differ from the model; None if rows are few."""
        features, pool, n = octave.features, octave.features.pool, len(self._data.y)
        few = n < max(FEWEST_ROWS, 2 * features.rank) or self._covered.is_discrete  # then rare targets may be new
        if not self._differences or pool is None or few:
            return None
        model = [octave.means(target_kernels.draws_of(one)) for one in self._data.model]
        rows = np.arange(0, n, -(-n // TRIAL_ROWS))
        trials = min(TRIALS, self._covered.n_draws or TRIALS)
        drawn = self._covered.load().take(rows).sample(self._rng(), trials).T.reshape(-1, 1)
        others = features.of_points(drawn) - np.tile(model[0][rows], (trials, 1))
        squares, full = others.T @ others, octave.means
        for mean in model:
            for some in features.blocks(n):
                apart = octave.before[some] - mean[some]
                squares += apart.T @ apart
        along = FewDirections(features, pool, truncated_eigenbasis(squares, LOST)[1])
        means = target_kernels.OfDistributions(self._data, lambda one: along.of_features(full(one)))
        for one in self._data.model:
            means(target_kernels.draws_of(one))
        before, to_data = along.of_features(octave.before), lambda: along.norm(self._data.gamma)
        return along, _BandwidthBin(features, lambda: before, to_data, means, octave.combined)

    def _mean(
        self,
        octave: _BandwidthBin,
        one: Predictive | target_kernels.SwappedDraw,
        observed: Values,
        features: OutputFeatures,
    ) -> Values:
        """Return E f(Y'), (n, r)."""
        predictive = target_kernels.draws_of(one)
        mean, y = octave.means(predictive), self._data.y
        if features is not octave.features:
            mean = features.complete(mean, predictive.kernel_mean)
        if one is predictive:
            return mean
        if features is octave.features:
            before = octave.before
        else:
            before = target_kernels.by_row(features.of_points(y.reshape(-1, y.shape[-1])), y)
        return target_kernels.mean_after_swap(one, mean, before, observed, self._data.repeats)


def _in_few_directions(parts: list[Values]) -> tuple[list[Values], Values | None]:
    """Return features projected on the span of all rows, and its basis (r, q); unchanged if there are many rows."""
    rows = np.concatenate(parts)
    if len(rows) >= rows.shape[1]:
        return parts, None
    along, few = np.linalg.qr(rows.T)
    return np.split(few.T, len(parts)), along


def _combined(features: OutputFeatures, means: Values) -> tuple[Values, Values]:
    """Return W with sum_j W_ij phi_j the projection of row i on the pivots phi, (n, r), and W^T W."""
    combined = la.solve_triangular(features.factor, means.T, lower=True, trans="T", check_finite=False).T
    return combined, np.asarray(combined.T @ combined)


def _norm(features: OutputFeatures, gamma: Values | None, along: Values | None = None) -> Values:
    """Return C such that psi = f C are features of the kernel with this gamma; optionally in a given basis."""
    products = replace(features.pivots, gamma=np.asarray(gamma)).all_products()
    return psd_root(features.gram_of_represented(products, along))


class RbfTargets(TargetKernel):
    """RBF kernel exp(-sum_c gamma_c (u_c - v_c)^2)."""

    divisor: ClassVar[int] = 2

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "rbf"}

    def unit_gamma(self, y: Values, predictive: Predictive) -> Values:  # noqa: ARG002 - the targets' own scale
        return target_precisions(y.reshape(-1, y.shape[-1]))

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:
        return output_features(y, predictive, gamma, run.rng(RandomStream.FEATURES))

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:
        return SharedFeatures(data, covered, lambda: run.rng(RandomStream.FEATURES), differences=differences)
