"""Mean embeddings in the Laplace kernel on targets, exp(-gamma |u - v|), and their inner products.

With h(s) = E[exp(-gamma (s - Y)); Y <= s], the inner product of the embeddings of Y and Y' is
2 gamma int h(s) h'(s) ds, because exp(-gamma |u - v|) = 2 gamma int_max(u, v) exp(-gamma (2 s - u - v)) ds. Between the
atoms of discrete distributions, h is an exponential function, and the integral is a sum. For continuous distributions,
h follows from the distribution function F, as h(s) = F(s) - gamma int exp(-gamma (s - y)) F(y) dy over y <= s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from calcheck.core.cache import cached
from calcheck.distributions import Independent, Predictive, Samples
from calcheck.errors import DataError
from calcheck.kernels.kernel_functions import Laplace
from calcheck.typing import Indices, Values

if TYPE_CHECKING:
    from scipy.sparse import csr_array


TAIL = 1e-12  # Probability neglected on each side
TOLERANCE = 1e-13  # Maximum error of the distribution function in a panel, times the length of the panel
MAX_LENGTH = 1.0  # Maximum length of a panel, in units of 1 / gamma
MAX_HALVINGS = 60  # Maximum number of halvings of a panel
MANY_KINKS = 500  # Number of kinks above which panels are short, and have few nodes
NODES, FEW_NODES = 12, 8  # Gauss-Legendre nodes of a panel
LARGEST = 1e18  # Larger counts are not converted to integers
MAX_VALUES = 1 << 26  # Maximum values of a function at the nodes of all panels, for all rows: 512 MiB
CALL_VALUES = 1 << 14  # Values per call of a distribution function
BLOCK_VALUES = 1 << 22  # Kernel values per block of pairs, 32 MiB
ROUNDING = 1e-14  # Singular values of tabulated functions, relative to the largest, that are rounding errors
CACHE_VALUES = 1 << 16  # Values of a block of sums, 512 KiB: larger blocks are slower
MAX_DECAY = 300.0  # Maximum logarithm of the ratio of weights in one cumulative sum


class LaplaceEmbeddings(ABC):
    """Mean embeddings of n distributions."""

    @abstractmethod
    def means(self, points: Values) -> Values:
        """Return E k(p_j, Y_i) for points (p, t), (p, n)."""

    @abstractmethod
    def products(self) -> Values:
        """Return E k(Y_i, Y_j') for independent Y_i and Y_j', (n, n)."""

    @abstractmethod
    def norms(self) -> Values:
        """Return E k(Y_i, Y_i') for independent copies, (n,)."""

    @abstractmethod
    def means_by_row(self, points: Values) -> Values:
        """Return E k(p_ij, Y_i) for points (n, r, t) of each row, (n, r)."""


def laplace_embeddings(predictive: Predictive, gamma: tuple[float, ...]) -> LaplaceEmbeddings:
    """Return the mean embeddings of distributions in the kernel exp(-sum_c gamma_c |u_c - v_c|)."""
    samples = predictive.load()
    if isinstance(samples, Samples):  # not cached: their tables are large
        single = samples.targets == 1 and samples.draws.size * len(samples) <= MAX_VALUES
        return _of_draws(samples, gamma[0]) if single else PairEmbeddings(samples, np.array(gamma))
    return _of_parameters(predictive, gamma)


@cached
def _of_parameters(predictive: Predictive, gamma: tuple[float, ...]) -> LaplaceEmbeddings:
    """Return the mean embeddings of parametric distributions."""
    predictive = predictive.load()
    if isinstance(predictive, Independent):
        pairs = zip(predictive.marginals, gamma, strict=True)
        return ProductEmbeddings([laplace_embeddings(marginal, (each,)) for marginal, each in pairs])
    if predictive.targets > 1 or (predictive.has_atoms and not predictive.is_discrete):
        raise DataError(
            f"a laplace kernel on targets has no closed form for {predictive.display_name} distributions. Pass"
            " --kernel-y rbf, or predictions given by samples"
        )
    return (_on_lattice if predictive.is_discrete else _smooth)(predictive, gamma[0])


class ProductEmbeddings(LaplaceEmbeddings):
    """Embeddings of targets that are independent given the inputs: products over the columns."""

    def __init__(self, columns: list[LaplaceEmbeddings]) -> None:
        self._columns = columns

    def means(self, points: Values) -> Values:
        return np.asarray(np.prod([each.means(points[:, [c]]) for c, each in enumerate(self._columns)], axis=0))

    def products(self) -> Values:
        return np.asarray(np.prod([each.products() for each in self._columns], axis=0))

    def norms(self) -> Values:
        return np.asarray(np.prod([each.norms() for each in self._columns], axis=0))

    def means_by_row(self, points: Values) -> Values:
        by_column = [each.means_by_row(points[:, :, [c]]) for c, each in enumerate(self._columns)]
        return np.asarray(np.prod(by_column, axis=0))


class PairEmbeddings(LaplaceEmbeddings):
    """Embeddings of draws, by sums over all pairs."""

    def __init__(self, samples: Samples, gamma: Values) -> None:
        self._gamma = gamma
        self._draws = samples.draws.reshape(len(samples), samples.n_draws, -1) * gamma

    def means(self, points: Values) -> Values:
        return self._with_draws((points * self._gamma)[:, None])

    def products(self) -> Values:
        return self._with_draws(self._draws)

    def _with_draws(self, points: Values) -> Values:
        """Return the means of the kernel over the r points of each row (p, r, t) and the draws, (p, n)."""
        n, draws, columns = self._draws.shape
        means = np.empty((len(points), n))
        size = max(1, BLOCK_VALUES // (n * draws * points.shape[1]))
        for start in range(0, len(points), size):
            part = points[start : start + size]
            gram = Laplace(1.0).gram(part.reshape(-1, columns), self._draws.reshape(-1, columns))
            means[start : start + size] = gram.reshape(len(part), -1, n, draws).mean(axis=(1, 3))
        return means

    def norms(self) -> Values:
        return np.asarray(self._within_rows(self._draws).mean(axis=1))

    def means_by_row(self, points: Values) -> Values:
        return self._within_rows(points * self._gamma)

    def _within_rows(self, points: Values) -> Values:
        """Return the means of the kernel over the draws of the same row, for points (n, r, t), (n, r)."""
        n, draws, columns = self._draws.shape
        means = np.empty((n, points.shape[1]))
        size = max(1, CACHE_VALUES // (draws * points.shape[1]))
        for rows in (slice(start, start + size) for start in range(0, n, size)):
            pairs = ((points[rows, :, None, c], self._draws[rows, None, :, c]) for c in range(columns))
            distances = sum(np.abs(point - draw) for point, draw in pairs)
            means[rows] = np.exp(-np.asarray(distances)).mean(axis=2)
        return means


class ScalarEmbeddings(LaplaceEmbeddings):
    """Embeddings of distributions of one target, which are vectors."""

    def products(self) -> Values:
        features = self._features
        return np.asarray(features @ features.T)

    def norms(self) -> Values:
        return np.asarray(np.sum(self._features**2, axis=1))

    @abstractmethod
    def mixed(self, weights: Values) -> ScalarEmbeddings:
        """Return the embeddings of k sums of the distributions with weights (k, n), which may be negative."""

    def paired_sums(self, points: Values, weights: Values) -> Values:
        """Return sum_j w_ij E k(p_j, Y_i) for points (p,) and weights (n, p), (n,)."""
        return np.asarray(np.einsum("np,pn->n", weights, self.means(points[:, None])))

    @property
    @abstractmethod
    def _features(self) -> Values:
        """Vectors with the inner products of the embeddings, (n, q)."""


@dataclass(frozen=True, eq=False)
class AtomEmbeddings(ScalarEmbeddings):
    """Embeddings of distributions, or of sums of them, with atoms at common points."""

    _atoms: Values  # (w,), points, increasing
    _masses: Values | csr_array  # (n, w), P(Y_i = s_k)
    _gamma: float  # Parameter of the kernel

    def _dense(self, rows: slice = slice(None)) -> Values:
        """Return the masses of some rows."""
        return self._masses[rows] if isinstance(self._masses, np.ndarray) else self._masses[rows].toarray()

    @cached_property
    def _below(self) -> Values:
        """E[e^-gamma (s_k - Y); Y <= s_k], (n, w)."""
        return _decayed_sums(self._gamma * self._atoms, self._dense())

    @cached_property
    def _above(self) -> Values:
        """E[e^-gamma (Y - s_k); Y >= s_k], (n, w)."""
        return _decayed_sums(-self._gamma * self._atoms[::-1], self._dense()[:, ::-1])[:, ::-1]

    def mixed(self, weights: Values) -> AtomEmbeddings:
        masses, size = np.empty((len(weights), len(self._atoms))), max(1, BLOCK_VALUES // len(self._atoms))
        for start in range(0, len(weights), size):
            masses[start : start + size] = (self._masses.T @ weights[start : start + size].T).T
        return AtomEmbeddings(self._atoms, masses, self._gamma)

    def means(self, points: Values) -> Values:
        below, above, left, right = self._near(points[:, 0])
        return np.asarray((self._below[:, below] * left + self._above[:, above] * right).T)

    def means_by_row(self, points: Values) -> Values:
        at = np.arange(len(points))[:, None]
        below, above, left, right = self._near(points[:, :, 0])
        return np.asarray(self._below[at, below] * left + self._above[at, above] * right)

    def _near(self, points: Values) -> tuple[Indices, Indices, Values, Values]:
        """Return the last atom at or below points and the first above, and the kernel at them; 0 if there is none."""
        above = np.searchsorted(self._atoms, points, side="right")
        last = len(self._atoms) - 1
        low, high = np.maximum(above - 1, 0), np.minimum(above, last)
        left = np.where(above > 0, np.exp(-self._gamma * np.abs(points - self._atoms[low])), 0.0)
        right = np.where(above <= last, np.exp(-self._gamma * np.abs(points - self._atoms[high])), 0.0)
        return low, high, left, right

    @property
    def _features(self) -> Values:
        return np.asarray(self._below * np.sqrt(self._rest))

    def norms(self) -> Values:
        return np.concatenate([below**2 @ self._rest for below in self._blocks()])

    def _blocks(self) -> Iterator[Values]:
        """Yield E[e^-gamma (s_k - Y); Y <= s_k] in blocks of rows, which stay in the processor's cache."""
        rows, size = self._masses.shape[0], max(1, CACHE_VALUES // len(self._atoms))
        for start in range(0, rows, size):
            yield _decayed_sums(self._gamma * self._atoms, self._dense(slice(start, start + size)))

    @property
    def _rest(self) -> Values:
        """Squared norm of what an atom adds to those above it, (w,)."""
        return np.append(-np.expm1(-2 * self._gamma * np.diff(self._atoms)), 1.0)


def _decayed_sums(points: Values, values: Values) -> Values:
    """Return the sums over l <= k of e^-(s_k - s_l) v_l at increasing points s (w,), for values (n, w), (n, w)."""
    found = np.empty(values.shape)
    before, last = np.zeros(len(values)), points[0]
    numbers = np.floor((points - points[0]) / MAX_DECAY)
    bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1), len(points)]
    for start, stop in pairwise(bounds):
        part = points[start:stop]
        grown = np.exp(part - part[0])
        sums = np.multiply(values[:, start:stop], grown, out=found[:, start:stop])
        sums[:, 0] += before * np.exp(last - part[0])
        np.cumsum(sums, axis=1, out=sums)
        sums /= grown
        before, last = sums[:, -1], part[-1]
    return found


def norms_of_points(points: Values, gamma: float, weights: Values) -> Values:
    """Return the squared norms of k sums of points (n,) with weights (k, n), (k,)."""
    size = max(1, CACHE_VALUES // len(points))
    blocks = (weights[start : start + size] for start in range(0, len(weights), size))
    return np.concatenate([point_embeddings(points, gamma, block).norms() for block in blocks])


def point_embeddings(points: Values, gamma: float, weights: Values) -> AtomEmbeddings:
    """Return the embeddings of k sums of points (n,) with weights (k, n), which may be negative."""
    order = np.argsort(points)
    return AtomEmbeddings(points[order], np.take(weights, order, axis=1), gamma)


def _of_draws(samples: Samples, gamma: float) -> AtomEmbeddings:
    """Return the embeddings of scalar draws."""
    from scipy.sparse import csr_array

    draws = samples.draws.reshape(len(samples), -1)
    atoms, place = np.unique(draws, return_inverse=True)
    n, m = draws.shape
    masses = csr_array((np.full(n * m, 1 / m), place.ravel(), np.arange(0, n * m + 1, m)), shape=(n, len(atoms)))
    return AtomEmbeddings(atoms, masses, gamma)


def _on_lattice(predictive: Predictive, gamma: float) -> AtomEmbeddings:
    """Return the embeddings of distributions on whole numbers."""
    low, high = predictive.support_interval(TAIL)
    atoms = np.arange(np.floor(low.min()), np.ceil(high.max()) + 1)
    _require_room(predictive, len(atoms))
    masses = np.stack([np.exp(predictive.log_prob(np.full(len(predictive), atom))) for atom in atoms], axis=1)
    return AtomEmbeddings(atoms, masses, gamma)


def _require_room(predictive: Predictive, points: int) -> None:
    """Raise an error unless functions of the targets can be tabulated at this number of points for each row."""
    if len(predictive) * points > MAX_VALUES:
        raise DataError(
            f"a laplace kernel on targets needs {points:,} points for each of {len(predictive):,}"
            f" {predictive.display_name} distributions, at most {MAX_VALUES // len(predictive):,} fit: their tails are"
            " too heavy, or their widths too different. Pass --kernel-y rbf, a smaller --gamma-y, or fewer rows"
        )


class SmoothEmbeddings(ScalarEmbeddings):
    """Embeddings of continuous distributions, from their distribution functions at Gauss-Legendre nodes of panels."""

    def __init__(
        self,
        # (w + 1,), ends of the panels, increasing; all but a negligible probability lies between the first and the last
        edges: Values,
        left: Values,  # (n, w, q), h at the q nodes of each panel
        end: Values,  # (n,), h at the last edge
        means: Values,  # (n, w, q), E exp(-gamma |s - Y_i|) at the nodes
        gamma: float,  # Parameter of the kernel
    ) -> None:
        self._edges, self._gamma, self._rule = edges, gamma, _Rule(left.shape[2])
        self._left, self._end, self._means = left, end, means

    @classmethod
    def from_cdf(cls, edges: Values, below: Values, gamma: float) -> SmoothEmbeddings:
        """Return the embeddings, given P(Y_i <= s) at the nodes, (n, w, q)."""
        left, end = cls._one_sided(below, edges, gamma)
        right, _ = cls._one_sided(1 - below[:, ::-1, ::-1], -edges[::-1], gamma)
        return cls(edges, left, end, left + right[:, ::-1, ::-1], gamma)

    def mixed(self, weights: Values) -> SmoothEmbeddings:
        left, means = (np.tensordot(weights, each, axes=1) for each in (self._left, self._means))
        return SmoothEmbeddings(self._edges, left, weights @ self._end, means, self._gamma)

    @staticmethod
    def _one_sided(below: Values, edges: Values, gamma: float) -> tuple[Values, Values]:
        """Return h at the nodes, (n, w, q), and at the last edge, (n,)."""
        rule, widths = _Rule(below.shape[2]), gamma * np.diff(edges)
        away = widths[:, None] * (1 + rule.nodes) / 2  # (w, q)
        grown = below * np.exp(away) * widths[:, None] / 2
        inside, whole = grown @ rule.integrals.T * np.exp(-away), grown @ rule.weights * np.exp(-widths)
        before = np.zeros(len(below))
        found = below - inside
        for panel, width in enumerate(widths):
            found[:, panel] -= before[:, None] * np.exp(-away[panel])
            before = before * np.exp(-width) + whole[:, panel]
        return found, 1 - before

    def means(self, points: Values) -> Values:
        return np.asarray(self._at(points[:, 0]) @ self._means.reshape(len(self._means), -1).T)

    def paired_sums(self, points: Values, weights: Values) -> Values:
        coefficients, functions = self._few_functions
        return np.asarray(np.einsum("nr,nr->n", weights @ (self._at(points) @ functions), coefficients))

    @cached_property
    def _few_functions(self) -> tuple[Values, Values]:
        """Coefficients (n, r) and functions at the nodes (w q, r), whose combinations are the means up to rounding."""
        left, sizes, right = np.linalg.svd(self._means.reshape(len(self._means), -1), full_matrices=False)
        kept = sizes > ROUNDING * sizes[0]
        return left[:, kept] * sizes[kept], np.ascontiguousarray(right[kept].T)

    def _at(self, points: Values) -> csr_array:
        """Return the matrix (p, w q) that interpolates a function at points (p,) from its values at the nodes."""
        from scipy.sparse import csr_array

        panel, values = self._interpolation(points)
        q = len(self._rule.nodes)
        columns = panel[:, None] * q + np.arange(q)
        shape = len(panel), self._means.shape[1] * q
        return csr_array((values.ravel(), columns.ravel(), np.arange(0, values.size + 1, q)), shape=shape)

    def means_by_row(self, points: Values) -> Values:
        panel, values = self._interpolation(points[:, :, 0])
        return np.asarray(np.sum(self._means[np.arange(len(points))[:, None], panel] * values, axis=-1))

    def _interpolation(self, points: Values) -> tuple[Indices, Values]:
        """Return the panels of points (…), and the weights of their nodes, (…, q); the kernel decays outside."""
        inside = np.clip(points, self._edges[0], self._edges[-1])
        panel = np.clip(np.searchsorted(self._edges, inside, side="right") - 1, 0, len(self._edges) - 2)
        low, high = self._edges[panel], self._edges[panel + 1]
        values = self._rule.at(2 * (inside - low) / (high - low) - 1)
        return panel, values * np.exp(-self._gamma * np.abs(points - inside))[..., None]

    @property
    def _features(self) -> Values:
        weights = np.sqrt(self._gamma * np.diff(self._edges)[:, None] * self._rule.weights)
        inside = (self._left * weights).reshape(len(self._left), weights.size)
        return np.concatenate([inside, self._end[:, None]], axis=1)


class _Rule:
    """Gauss-Legendre quadrature and interpolation at q nodes of [-1, 1]."""

    def __init__(self, q: int) -> None:
        from numpy.polynomial import legendre

        self.nodes, self.weights = legendre.leggauss(q)  # (q,), the quadrature rule
        degrees = np.arange(q)
        # (q, q), matrix of the Legendre coefficients of that polynomial
        self.coefficients = legendre.legvander(self.nodes, q - 1).T * self.weights * (degrees[:, None] + 0.5)
        integrated = legendre.legint(np.eye(q), lbnd=-1, axis=0)
        # (q, q), matrix of the integrals from -1 to each node, of the polynomial with given values at the nodes
        self.integrals = legendre.legvander(self.nodes, q) @ integrated @ self.coefficients

    def at(self, points: Values) -> Values:
        """Return the weights of the nodes in the interpolation at points (…), (…, q)."""
        return np.asarray(np.polynomial.legendre.legvander(points, len(self.nodes) - 1) @ self.coefficients)


def _smooth(predictive: Predictive, gamma: float) -> SmoothEmbeddings:
    """Return the embeddings of continuous distributions; panels are halved until they resolve all of them."""
    low, high = predictive.support_interval(TAIL)
    kinks = np.append(predictive.kinks().ravel(), 0.0)
    ends = np.array([low.min(), high.max()])
    edges = np.unique(np.concatenate([ends, kinks[(kinks > ends[0]) & (kinks < ends[1])]]))
    rule = _Rule(FEW_NODES if len(edges) > MANY_KINKS else NODES)
    pieces = np.ceil(gamma * np.diff(edges) / MAX_LENGTH)
    _require_room(predictive, int(min(pieces.sum(), LARGEST)) * len(rule.nodes))
    spans = zip(edges[:-1], edges[1:], pieces.astype(np.intp), strict=True)
    divided = [np.linspace(low, high, count, endpoint=False) for low, high, count in spans]
    ends = np.append(np.concatenate(divided), edges[-1])
    return _refined(predictive, gamma, rule, ends)


def _refined(predictive: Predictive, gamma: float, rule: _Rule, ends: Values) -> SmoothEmbeddings:
    """Return the embeddings from panels that are halved until the distribution function is a polynomial in each."""
    left, width = ends[:-1], np.diff(ends)
    done: list[tuple[Values, Values]] = []
    for _ in range(MAX_HALVINGS):
        _require_room(predictive, (sum(len(each) for each, _ in done) + len(left)) * len(rule.nodes))
        nodes = left[:, None] + width[:, None] * (1 + rule.nodes) / 2
        below = _at_points(predictive, nodes.ravel(), lambda rows, y: rows.cdf(y)).reshape(-1, *nodes.shape)
        good = _errors(predictive, rule, left, width, below) * np.minimum(gamma * width, 1) <= TOLERANCE
        done.append((left[good], below[:, good]))
        left, width = left[~good], width[~good] / 2
        if not len(left):
            break
        left, width = np.stack([left, left + width], axis=1).ravel(), np.repeat(width, 2)
    edges = np.concatenate([each for each, _ in done])
    order = np.argsort(edges)
    below = np.concatenate([each for _, each in done], axis=1)[:, order]
    return SmoothEmbeddings.from_cdf(np.append(edges[order], ends[-1]), below, gamma)


def _at_points(predictive: Predictive, points: Values, of: Callable[[Predictive, Values], Values]) -> Values:
    """Return a function of distributions and targets for all pairs of rows and points (w,), (n, w)."""
    n = len(predictive)
    found = np.empty((n, len(points)))
    size = max(1, CALL_VALUES // n)
    for start in range(0, len(points), size):
        part = points[start : start + size]
        rows = predictive.take(np.tile(np.arange(n), len(part)))
        found[:, start : start + size] = of(rows, np.repeat(part, n)).reshape(len(part), n).T
    return found


def _errors(predictive: Predictive, rule: _Rule, left: Values, width: Values, below: Values) -> Values:
    """Return the largest error of the polynomials through the values at the nodes, in each panel, (w,)."""
    last = np.abs(below @ rule.coefficients[-2:].T).max(axis=(0, 2))
    starts = _at_points(predictive, left, lambda rows, y: rows.cdf(y))
    ends = _at_points(predictive, left + width, lambda rows, y: rows.cdf_left(y))
    at_ends = below @ rule.at(np.array([-1.0, 1.0])).T  # (n, w, 2)
    apart = np.abs(at_ends - np.stack([starts, ends], axis=2)).max(axis=(0, 2))
    return np.asarray(np.maximum(last, apart))
