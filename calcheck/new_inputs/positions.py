"""Where inputs are, how far from the tested ones, which of them lie beyond, and in which columns they differ."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from calcheck.core import sc
from calcheck.core.lazy_inputs import Categories, Inputs, blocks, take
from calcheck.execution.run import RandomStream, Run
from calcheck.inference.intervals import clopper_pearson
from calcheck.inference.p_values_and_verdicts import holm
from calcheck.kernels.bandwidths import MAX_PAIR_ROWS, Scaling, fit_scaling, median_distance, sample_inputs
from calcheck.kernels.kernel_functions import Rbf
from calcheck.mmd.two_samples import PooledGram
from calcheck.predictions import Predictions, row_sample
from calcheck.reports.conclusion import ColumnDifference, InputsDiffer, RowsBeyond
from calcheck.typing import Floats, Indices, Mask, Values

NEIGHBORS = 5  # The distance to that many tested rows says how near they are
TREE_COLUMNS = 8  # Most columns for a search tree
MOST_ROWS = 10_000  # Most tested rows whose distances are compared with all others; more are sampled
NORMAL_RANGE = 1.349  # Interquartile range of a normal distribution, in standard deviations
BLOCK = 1 << 22  # Distances that are computed at a time
ROUNDING = 1e-7  # Relative error of distances
RATE = 0.05  # Expected share of named rows that are like the tested ones
FAR = 2.0  # Least ratio to the largest distance of a tested row
SURE = 0.01  # Chance that rows like the tested ones exceed that
SPARSE, FEWEST = 0.01, 5  # Share of the tested rows whose places are so sparse that more new rows there are beyond
CONFIDENCE = 0.9  # Of the interval of the share
COMPARED = 1_000  # Most rows of each sample that are compared by all their inputs
SORTED = 100_000  # Most rows of each sample whose columns are compared
PERMUTATIONS = 199


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


@dataclass(frozen=True, eq=False)
class Beyond:
    """The distances of new rows to tested ones, in comparison with those between tested rows.

    Source of the p-values: Bates, Candès, Lei, Romano, Sesia (2023), "Testing for outliers with conformal p-values".
    """

    tested: Values  # (n,), distances of the tested rows to others, in ascending order
    distance: Values  # (m,), distances of the new rows to tested ones
    nearest: Indices  # (m,), the nearest tested row of each
    untested: Mask | None = None  # (m,), which new rows have a category that no tested row has

    @classmethod
    def from_inputs(cls, near: Neighborhood, x: Inputs, categories: Sequence[Categories] = ()) -> "Beyond":
        """Return the distances of new inputs (m, d) to tested ones, some of which state categories."""
        other = [np.concatenate([each.other(block) for block in parts_of(x)]) for each in categories]
        return cls(near.left_out, *near.distances(x), np.logical_or.reduce(other) if other else None)

    @cached_property
    def _farther(self) -> Indices:
        """How many tested rows are at least as far from others as each new row, (m,)."""
        found = len(self.tested) - np.searchsorted(self.tested, self.distance * (1 - ROUNDING))
        return np.asarray(found if self.untested is None else np.where(self.untested, 0, found), dtype=np.intp)

    @property
    def p(self) -> Values:
        """The conformal p-value of each new row, (m,): exact for rows like the tested ones."""
        return np.asarray((1 + self._farther) / (1 + len(self.tested)))

    @cached_property
    def rows(self) -> Mask:
        """Which new rows lie beyond, (m,): the most of which RATE are expected to be wrong, and those that are far."""
        found = self._named() | (self.distance > self.far * self.tested[-1])
        return np.asarray(found if self.untested is None else found | self.untested)

    def _named(self) -> Mask:
        """Return the most distant rows, as many as leave the expected share of wrong ones at RATE.

        With r tested rows at least as far, (r + 1/2) / n of the new ones like them are expected, which are at most as
        many as are not beyond (Storey, Taylor, Siegmund 2004). That so many are there must be significant too: their
        number above the (r + 1)-th largest of n distances is beta-binomial. Only rows in sparse places are named: where
        most distances of tested rows are equal, on a lattice, all others are larger.
        """
        n, m = len(self.tested), len(self.distance)
        farther, number = np.sort(self._farther), np.arange(1, m + 1)
        like = m * (1 - self._share[1])
        enough = np.flatnonzero(((farther + 1 / 2) * like <= RATE * n * number) & (farther < self._sparse))
        if not len(enough):
            return np.zeros(m, dtype=bool)
        r = int(farther[enough[-1]])
        found = np.asarray(self._farther <= r)
        chance = _beta_binomial_tail(int(found.sum()), m, r + 1, n - r)
        return found if chance <= RATE / 2.0 ** (r + 1) else np.zeros(m, dtype=bool)

    @property
    def far(self) -> float:
        """How many times the largest distance of a tested row is far: more if distances have a heavy tail.

        Source of its exponent: Hill (1975), Annals of Statistics 3, 1163-1174.
        """
        n, top = len(self.tested), self.tested[-max(FEWEST, int(np.sqrt(len(self.tested)))) - 1 :]
        if not top[0] > 0:
            return FAR
        tail = float(np.log(top[1:] / top[0]).mean()) if len(top) > 1 else 0.0
        return max(FAR, float((len(self.distance) / n * (1 / SURE - 1)) ** tail))

    def summary(self) -> RowsBeyond:
        """Return the share of rows that lie beyond, with its interval."""
        share, low, high = self._share
        untested = 0 if self.untested is None else int(self.untested.sum())
        return RowsBeyond(share=share, low=low, high=high, rows=int(self.rows.sum()), untested=untested)

    @cached_property
    def _share(self) -> tuple[float, float, float]:
        """The share of rows that lie beyond, and its limits.

        Source: Storey (2002), with the p-values up to SPARSE only: a shift among the tested inputs makes large ones
        rarer too. The interval combines that of the share of new rows, and that of the share of all rows like the
        tested ones beyond the distance that a rank of these has, which has a beta distribution (Zou, Donner 2008).
        """
        n, m, tail, rank = len(self.tested), len(self.distance), (1 - CONFIDENCE) / 2, self._sparse
        count = int(np.count_nonzero(self._farther < rank))
        least, most = clopper_pearson(count, m, CONFIDENCE)
        fewer, more = (float(sc.betaincinv(rank, n + 1 - rank, each)) for each in (tail, 1 - tail))
        found, like = count / m, rank / n
        low, high = found - np.hypot(found - least, more - like), found + np.hypot(most - found, like - fewer)
        share, low, high = (float(np.clip((each - like) / (1 - like), 0, 1)) for each in (found, low, high))
        return share, low, high

    @property
    def _sparse(self) -> int:
        """How many tested rows are in sparse places."""
        return max(FEWEST, int(SPARSE * len(self.tested)))


def _beta_binomial_tail(count: int, m: int, a: int, b: int) -> float:
    """Return the probability of at least ``count`` of m, for a share that has the beta distribution (a, b)."""
    k = np.arange(count, m + 1)
    logs = sc.betaln(k + a, m - k + b) - sc.betaln(a, b) - sc.betaln(k + 1, m - k + 1) - np.log(m + 1)
    return float(np.exp(sc.logsumexp(logs))) if len(k) else 0.0


def compare_inputs(
    tested: Inputs, new: Inputs, scaling: Scaling, run: Run, *, names: Sequence[str] = ()
) -> InputsDiffer:
    """Return whether inputs (n, d) and (m, d) differ: all together by their MMD, and columns that have names."""
    few, other = (sample_inputs(x, COMPARED) for x in (tested, new))
    samples = [sample_inputs(x, SORTED) for x in (tested, new)] if names else []
    return InputsDiffer(p=_permutation_p(few, other, scaling, run), columns=_columns(samples, names))


def _permutation_p(tested: Floats, new: Floats, scaling: Scaling, run: Run) -> float:
    """Return the p-value of the MMD of two samples of inputs, with a kernel as wide as the median distance."""
    points = scaling(np.concatenate([tested, new]))
    labels = np.arange(len(points)) < len(tested)
    if min(len(tested), len(new)) <= 1 or not points.var(axis=0).any():  # one row has no distance from others like it
        return 1.0
    gram = PooledGram(Rbf(gamma=median_gamma(points)).gram(points, points))
    rng = run.rng(RandomStream.PERMUTATIONS)
    found = np.concatenate(list(gram.permuted(rng.permutation(labels) for _ in range(PERMUTATIONS))))
    own = gram.distances(labels[None])[0]
    return float((1 + np.count_nonzero(found >= own)) / (1 + PERMUTATIONS))


def _columns(samples: Sequence[Floats], names: Sequence[str]) -> tuple[ColumnDifference, ...]:
    """Return by how much each column differs, the one that differs most first."""
    found = [distance_of_samples(*(x[:, place].astype(np.float64) for x in samples)) for place in range(len(names))]
    adjusted = holm([p for _, p in found])
    each = [
        ColumnDifference(name=name, distance=distance, p=p)
        for name, (distance, _), p in zip(names, found, adjusted, strict=True)
    ]
    return tuple(sorted(each, key=lambda column: -column.distance))


def distance_of_samples(first: Values, second: Values) -> tuple[float, float]:
    """Return the largest difference of the shares of two samples up to a value, and its p-value (Kolmogorov 1933).

    >>> import numpy as np
    >>> distance_of_samples(np.array([1.0, 2.0]), np.array([2.0, 3.0]))[0]
    0.5
    """
    values = np.concatenate([first, second])
    shares = [np.searchsorted(np.sort(each), values, side="right") / len(each) for each in (first, second)]
    distance = float(np.abs(shares[0] - shares[1]).max())
    return distance, float(sc.kolmogorov(distance * np.sqrt(len(first) * len(second) / len(values))))
