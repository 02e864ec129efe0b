"""Where inputs are: scaled like those of the tested rows, and the distances between them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from calcheck.core.lazy_inputs import Inputs, blocks, take
from calcheck.kernels.bandwidths import MAX_PAIR_ROWS, Scaling, fit_scaling, median_distance, sample_inputs
from calcheck.predictions import Predictions, row_sample
from calcheck.typing import Floats, Indices, Values

NEIGHBORS = 5  # The distance to that many tested rows says how near they are
TREE_COLUMNS = 8  # Most columns for a search tree
MOST_ROWS = 10_000  # Most tested rows whose distances are compared with all others; more are sampled
NORMAL_RANGE = 1.349  # Interquartile range of a normal distribution, in standard deviations
BLOCK = 1 << 22  # Distances that are computed at a time
ROUNDING = 1e-7  # Relative error of distances


def scale_inputs(rows: Predictions) -> Scaling:
    """Return the scaling by the tested rows: embeddings keep theirs, and columns of inputs are standardized.

    The spread of a column of numbers is that of its middle half if that is smaller: few absurd values do not hide where
    all others are.
    """
    x = rows.lazy_inputs()
    if rows.has_embedding:
        return fit_scaling(x, "none", "rbf")
    found = fit_scaling(x, "standardize", "rbf", rows.categories)
    low, high = np.quantile(sample_inputs(x, MOST_ROWS).astype(np.float64), (0.25, 0.75), axis=0)
    spread = (high - low) / NORMAL_RANGE
    for each in rows.categories:
        spread[each.places] = 0
    return replace(found, divisor=np.where(spread > 0, np.minimum(found.divisor, spread), found.divisor))


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """Tested inputs, and the distances of other inputs to the nearest of them."""

    points: Values  # (n, d), scaled inputs
    places: Indices  # (n,), their rows
    scaling: Scaling

    @classmethod
    def from_rows(cls, rows: Predictions, scaling: Scaling, seed: int) -> "Neighborhood":
        """Return the neighborhood of rows, or of a sample of them."""
        most = len(rows) if rows.width <= TREE_COLUMNS else MOST_ROWS
        places = np.arange(len(rows)) if len(rows) <= most else row_sample(rows, most, seed)
        return cls(scaling(take(rows.lazy_inputs(), places)), places, scaling)

    @cached_property
    def count(self) -> int:
        """How many neighbors the distance is about."""
        return min(NEIGHBORS, len(self.points) - 1)

    @cached_property
    def _nearest(self) -> Callable[[Values, int], tuple[Values, Indices]]:
        """Return the search for k neighbors of points, which returns distances to the k-th, and the first ones."""
        if self.points.shape[1] > TREE_COLUMNS:
            return self._compare
        from scipy.spatial import cKDTree

        tree: Any = cKDTree(self.points)

        def search(points: Values, k: int) -> tuple[Values, Indices]:
            distances, places = tree.query(points, k=[1, k], workers=-1)
            return distances[:, 1], places[:, 0]

        return search

    def _compare(self, points: Values, k: int) -> tuple[Values, Indices]:
        """Return the distances by comparison with all tested rows, a block of points at a time."""
        squares, found = np.einsum("ij,ij->i", self.points, self.points), list[Values]()
        size = max(1, BLOCK // len(self.points))
        for start in range(0, len(points), size):
            block = points[start : start + size]
            away = squares - 2 * (block @ self.points.T)
            own = np.einsum("ij,ij->i", block, block)
            kth = np.partition(away, k - 1, axis=1)[:, k - 1]
            found.append(np.stack([np.sqrt(np.maximum(kth + own, 0)), away.argmin(axis=1)]))
        distances, places = np.concatenate(found, axis=1)
        return distances, places.astype(np.intp)

    @cached_property
    def left_out(self) -> Values:
        """The distance of each tested row to its k-th neighbor among the others, in ascending order, (n,)."""
        return np.sort(self._nearest(self.points, self.count + 1)[0])

    def distances(self, x: Inputs) -> tuple[Values, Indices]:
        """Return the distances of other inputs (m, d) to their k-th tested neighbors, and the rows of the nearest."""
        found = [self._nearest(self.scaling(block), self.count) for block in parts_of(x)]
        distances, nearest = (np.concatenate(each) for each in zip(*found, strict=True))
        return distances, self.places[nearest]


def parts_of(x: Inputs) -> Iterator[Floats]:
    """Yield inputs in blocks of rows."""
    for _, block in blocks(x):
        size = max(1, BLOCK // block.shape[1])
        yield from (block[start : start + size] for start in range(0, len(block), size))


def median_gamma(points: Floats) -> float:
    """Return one over the median squared distance of points (n, d), or the mean one if most are equal; 1 if all are."""
    some = sample_inputs(points, MAX_PAIR_ROWS)
    if not (some != some[0]).any():
        return 1.0
    return 1 / (median_distance(some, "rbf") or 2 * float(some.var(axis=0, ddof=1).sum()))
