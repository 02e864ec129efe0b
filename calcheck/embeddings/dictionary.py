"""The pool that output features are chosen from: points in target space, and embeddings of normal distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.kernel_means import rbf
from calcheck.distributions.samples import Samples

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive

TOLERANCE = 1e-13  # of an element's squared norm: far above rounding, far below what moves CCE
TAILS = (1e-9, 1e-6, 1e-3, 0.05, 0.3)  # mass of a distribution outside the pool, on each side: the first affordable
SPACING = 0.2  # of the pool's grid, in length scales; at 0.4 a grid already spans the kernel to 1e-13
MARGIN = 1.0  # how far the pool reaches beyond what it must cover, in length scales
FAR_START = 5.0  # length scales: normal elements beyond a grid's end begin as if that far out,
FAR_RATIO = 1.2  # and each is farther out than the one before by this factor
FAR_MOST = 1e15  # times the start: there is no use in going on
POOL_POINTS = 4000  # 800 length scales of grid, or so many points


@dataclass(frozen=True)
class Fineness:
    """How well features represent targets and distributions.

    Parameters
    ----------
    tolerance : float
        What they may leave out of the squared norm of an element, which is at most 1.
    tail : float
        The mass of a distribution, on either side, that they need not represent.
    points : int
        The most points in the pool that they are chosen from.
    """

    tolerance: float = TOLERANCE
    tail: float = TAILS[0]
    points: int = POOL_POINTS


@dataclass(frozen=True, eq=False)
class GaussianAtoms:
    """Elements of the feature space: mean embeddings of narrow normal distributions; points where the width is 0.

    Parameters
    ----------
    mean : (p, t)
        Means.
    std : (p, t)
        Standard deviations, >= 0.
    gamma : (t,)
        Of the kernel k_Y(u, v) = exp(-sum_c gamma_c (u_c - v_c)^2), in 1 / unit^2.
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    gamma: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.mean)

    def take(self, rows: NDArray[np.intp]) -> GaussianAtoms:
        """Select elements, in the order given."""
        return GaussianAtoms(self.mean[rows], self.std[rows], self.gamma)

    def join(self, others: GaussianAtoms) -> GaussianAtoms:
        """Append elements."""
        centre, width = np.concatenate([self.mean, others.mean]), np.concatenate([self.std, others.std])
        return GaussianAtoms(centre, width, self.gamma)

    @property
    def kernels(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Say how a point sees each: <phi(u), blob_j> = factor_j exp(-sum_c gamma_jc (u_c - centre_jc)^2).

        Returns
        -------
        gamma : (p, t)
        factor : (p,)
        """
        flattened = 1 / (1 + 2 * self.gamma * self.std**2)
        return self.gamma * flattened, np.sqrt(np.prod(flattened, axis=1))

    def products(self, one: int) -> NDArray[np.float64]:
        """Return the inner products of one element with all, (p,)."""
        both = GaussianAtoms(self.mean, np.sqrt(self.std**2 + self.std[one] ** 2), self.gamma)
        gamma, factor = both.kernels
        return np.asarray(rbf(self.mean[one, None], self.mean, gamma)[0] * factor)

    def all_products(self) -> NDArray[np.float64]:
        """Return the inner products of all elements with each other, (p, p)."""
        spread = 1 + 2 * self.gamma * (self.std[:, None] ** 2 + self.std**2)  # (p, p, t)
        apart = (self.mean[:, None] - self.mean) ** 2
        return np.asarray(np.exp(-np.sum(self.gamma * apart / spread, axis=2)) / np.sqrt(np.prod(spread, axis=2)))

    def norms(self) -> NDArray[np.float64]:
        """Return the squared norms, (p,)."""
        return np.asarray(np.prod(1 + 4 * self.gamma * self.std**2, axis=1) ** -0.5)


def grid_over_all(
    y: NDArray[np.float64], predictive: Predictive, gamma: NDArray[np.float64], fineness: Fineness
) -> GaussianAtoms | None:
    """Return a grid on the line over targets, draws and distributions to a tail; None if it would be too large."""
    if isinstance(predictive, Samples):
        others = _spans(predictive.draws.ravel(), gamma)
    else:
        others = np.stack(predictive.support_interval(fineness.tail), axis=1)
    spans = np.concatenate([_spans(y.ravel(), gamma), others])
    return _grid(spans, gamma, fineness.points, lattice=predictive.is_discrete)


def near_targets(
    y: NDArray[np.float64], predictive: Predictive, gamma: NDArray[np.float64], rng: Generator, most: int = POOL_POINTS
) -> GaussianAtoms:
    """Return the targets, or a grid over them where they are more than so many."""
    grid = None
    if len(y) > most and len(gamma) == 1:
        grid = _grid(_spans(y.ravel(), gamma), gamma, most, lattice=predictive.is_discrete)
    return _points(y, gamma, rng, most) if grid is None else grid


def near_distributions(
    predictive: Predictive, gamma: NDArray[np.float64], rng: Generator, most: int = POOL_POINTS
) -> GaussianAtoms:
    """Return elements near the distributions: draws, their embeddings, or a grid of at most so many points."""
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


def _far_tails(grid: GaussianAtoms, low: NDArray[np.float64], high: NDArray[np.float64]) -> GaussianAtoms:
    """Return normal distributions beyond a grid's ends, the wider the farther: heavy tails vary that slowly there."""
    length = float(1 / np.sqrt(2 * grid.gamma[0]))
    centres, widths = [], []
    for end, reach, sign in ((grid.mean.min(), low.min(), -1), (grid.mean.max(), high.max(), 1)):
        most = np.clip(sign * (reach - end) / (FAR_START * length), 0, FAR_MOST)
        distance = FAR_START * length * FAR_RATIO ** np.arange(np.ceil(np.log1p(most) / np.log(FAR_RATIO)))
        centres.append(end + sign * (distance - FAR_START * length))
        octave = 2 ** np.ceil(np.log2(distance))  # few different widths: kernel means are made for each
        widths.append((FAR_RATIO - 1) * octave)
    return GaussianAtoms(np.concatenate(centres)[:, None], np.concatenate(widths)[:, None], grid.gamma)


def _points(points: NDArray[np.float64], gamma: NDArray[np.float64], rng: Generator, most: int) -> GaussianAtoms:
    """Return different points (p, t) as elements, some of them chosen at random where they are too many."""
    points = np.unique(points, axis=0)
    if len(points) > most:
        points = points[rng.choice(len(points), most, replace=False)]
    return GaussianAtoms(points, np.zeros_like(points), gamma)


def _grid(
    intervals: NDArray[np.float64], gamma: NDArray[np.float64], most: int, *, lattice: bool
) -> GaussianAtoms | None:
    """Return a grid over the union of intervals (i, 2) and a margin; None if it has too many points.

    On a lattice the grid is of whole numbers: of all of them where the kernel tells neighbors apart.
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
    centre = np.concatenate(pieces)[:, None]
    return GaussianAtoms(centre, np.zeros_like(centre), gamma)


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
