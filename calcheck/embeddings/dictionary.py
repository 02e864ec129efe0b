"""Dictionary of elements that output features are chosen from: points, and embeddings of normal distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.samples import Samples
from calcheck.distributions.special import rbf

if TYPE_CHECKING:
    from numpy.random import Generator

    from calcheck.distributions import Predictive
    from calcheck.typing import Indices, Values

TOLERANCE = 1e-13  # Residual of an element's squared norm: far above rounding, far below what changes CCE
TAILS = (1e-9, 1e-6, 1e-3, 0.05, 0.3)  # Tail mass outside the pool on each side; the first that fits is used
SPACING = 0.2  # Grid spacing in length scales; at 0.4 a grid already represents the kernel to 1e-13
MARGIN = 1.0  # Margin around the intervals that the pool must cover, in length scales
FAR_START = 5.0  # Initial distance of the normal elements beyond the end of a grid, in length scales
FAR_RATIO = 1.2  # Ratio of the distances of successive normal elements
FAR_MAX = 1e15  # Maximum distance of normal elements, relative to FAR_START
POOL_POINTS = 4000  # Maximum points in the pool; a grid then spans 800 length scales


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


def near_targets(
    y: Values, predictive: Predictive, gamma: Values, rng: Generator, most: int = POOL_POINTS
) -> GaussianAtoms:
    """Return the targets as elements, or a grid over them if there are more than ``most``."""
    grid = None
    if len(y) > most and len(gamma) == 1:
        grid = _grid(_spans(y.ravel(), gamma), gamma, most, lattice=predictive.is_discrete)
    return _points(y, gamma, rng, most) if grid is None else grid


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
    """Return a grid over the union of intervals (i, 2) with a margin; None if it has more than ``most`` points.

    On a lattice, the grid consists of integers: all of them if the length scale is small.
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
    if not steps.sum() + len(steps) <= most:
        return None
    pieces = [np.linspace(low, high, int(count) + 1) for (low, high), count in zip(stretches, steps, strict=True)]
    points = np.concatenate(pieces)[:, None]
    return GaussianAtoms(points, np.zeros_like(points), gamma)


def _spans(points: Values, gamma: Values) -> Values:
    """Return intervals (i, 2) that cover points (p,), split at gaps above a length scale so outliers are cheap."""
    return _as_intervals(np.unique(points), float(1 / np.sqrt(2 * gamma[0])))


def _as_intervals(points: Values, gap: float) -> Values:
    """Return intervals (i, 2) that cover sorted points, split where consecutive points differ by more than the gap."""
    breaks = np.flatnonzero(np.diff(points) > gap)
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
