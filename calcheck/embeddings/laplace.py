"""Laplace kernel on targets: features are factors of the Gram matrix of all targets and distributions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from calcheck.distributions import Predictive, Samples
from calcheck.embeddings import target_kernels
from calcheck.embeddings.laplace_embeddings import (
    LaplaceEmbeddings,
    ScalarEmbeddings,
    laplace_embeddings,
    norms_of_points,
    point_embeddings,
)
from calcheck.embeddings.ridge import SmootherMatrix, row_forms
from calcheck.embeddings.target_kernels import DataSet, SharedOutputs, TargetFeatures, TargetKernel
from calcheck.errors import DataError
from calcheck.execution.run import Run
from calcheck.kernels.kernel_functions import Laplace
from calcheck.linalg.gram import RowBlocks, gram_factor
from calcheck.typing import Values

TOLERANCE = 1e-12  # Largest residual of a squared norm
EMBEDDING_ERROR = 1e-11  # Error of the mean embeddings
BLOCKS = 8  # Blocks of rows of a form whose embeddings are in memory at a time
COPIES = 3  # Copies of the Gram matrix in memory


@dataclass(frozen=True, eq=False)
class LaplaceFeatures:
    """Features psi with psi(u) . psi(v) = exp(-sum_c gamma_c |u_c - v_c|); each target and distribution is one."""

    gamma: Values  # (t,), parameter of the kernel for each target column
    run: Run  # Memory limit

    @property
    def rank(self) -> int:
        """Number of features that are known without the data: none."""
        return 0

    def embed(
        self, points: Values, models: Iterable[Predictive]
    ) -> tuple[Values, Iterator[Values], target_kernels.FeatureBounds]:
        """Return the features of targets (p, t), and of the n distributions of each trial."""
        first, *others = models
        every = first.load().join([each.load() for each in others])
        size = len(points) + len(every)
        what = f"--kernel-y laplace, with all pairs of {size:,} targets and predictions,"
        self.run.require_room(COPIES * 8 * size**2, what)
        embeddings = laplace_embeddings(every, tuple(self.gamma))
        between = embeddings.means(points)
        gram = np.block([[self.gram(points), between], [between.T, embeddings.products()]])
        features = gram_factor(gram, TOLERANCE)
        predicted = features[len(points) :].reshape(1 + len(others), len(first), -1)
        error = target_kernels.FeatureBounds(features.shape[1], TOLERANCE, TOLERANCE, EMBEDDING_ERROR)
        return features[: len(points)], iter(predicted), error

    def gram(self, points: Values) -> Values:
        """Return the kernel of all pairs of points (p, t), (p, p)."""
        scaled = points * self.gamma
        return np.asarray(Laplace(1.0).gram(scaled, scaled))


@dataclass(frozen=True, eq=False)
class InputDirections:
    """Directions u_k of n inputs, along which forms of the same inputs sum differences of embeddings."""

    parts: Sequence[tuple[slice, Values]] | RowBlocks  # Slices of rows with U (k, b)
    diagonals: tuple[Values | float, ...]  # (n,) each, two weights of each row, or one number for all
    known: dict[Any, list[Values]] = field(default_factory=dict)  # Sums of data sets

    @cached_property
    def matrix(self) -> Values:
        """U, (k, n)."""
        return np.concatenate([part for _, part in self.parts], axis=1)

    def sums(self, data_sets: Sequence[tuple[Values, Values | None]]) -> Iterator[Values]:
        """Yield |sum_i u_ki delta_i|^2 and the sums of |delta_i|^2 by both weights, (k + 2,), for each data set.

        These are the features (n, q) times a matrix C (q, q), or the features themselves for None.
        """
        differences, norms = zip(*data_sets, strict=True)
        columns = np.concatenate(differences, axis=1)
        parts = (_product(part, columns[rows]) for rows, part in self.parts)
        ends = np.cumsum([each.shape[1] for each in differences])[:-1]
        every = np.split(sum(parts, np.zeros((), np.float64)), ends, axis=1)
        for along, each, norm in zip(every, differences, norms, strict=True):
            squares = np.sum((along if norm is None else along @ norm) ** 2, axis=1)
            products = [_weighted_products(each, weights) for weights in self.diagonals]
            own = [np.trace(one) if norm is None else np.vdot(norm, one @ norm) for one in products]
            yield np.concatenate([squares, own])


@dataclass(frozen=True, eq=False)
class PairForm:
    """A form sum_k w_k |sum_i u_ki delta_i|^2 - sum_i d_i |delta_i|^2."""

    directions: InputDirections
    weights: Values  # (k + 2,), w, and the weights of both diagonals

    @classmethod
    def from_root(cls, root: Values, diagonal: Values | float) -> "PairForm":
        """Return the form with Q = R^T R, given R (k, n)."""
        directions = InputDirections([(slice(None), np.ascontiguousarray(root))], (diagonal, 0.0))
        return cls(directions, np.append(np.ones(len(root)), [-1.0, 0.0]))

    @cached_property
    def root(self) -> Values:
        """R, (k, n), with Q = R^T R."""
        return np.sqrt(self.weights[:-2, None]) * self.directions.matrix

    @cached_property
    def diagonal(self) -> Values:
        """d, (n,)."""
        first, second = self.directions.diagonals
        n = self.directions.matrix.shape[1]
        return np.broadcast_to(-self.weights[-2] * first - self.weights[-1] * second, n)

    def of_sums(self, sums: Values) -> float:
        """Return the form of a data set, given its sums along the directions, (k + 2,)."""
        return float(self.weights @ sums)


def _weighted_products(values: Values, weights: Values | float) -> Values:
    """Return V^T diag(w) V for values (n, q), (q, q)."""
    if isinstance(weights, float):
        return weights * (values.T @ values) if weights else np.zeros((values.shape[1],) * 2)
    return np.asarray(values.T @ (weights.astype(values.dtype, copy=False)[:, None] * values))


def _product(a: Values, b: Values) -> Values:
    """Return the product of two matrices in the lower of their precisions."""
    precision = min(a.dtype, b.dtype, key=lambda each: each.itemsize)
    return np.asarray(a.astype(precision, copy=False) @ b.astype(precision, copy=False))


class _Known:
    """Embeddings of distributions, with their products, and those of a smoother matrix."""

    def __init__(self, embeddings: LaplaceEmbeddings) -> None:
        self.embeddings = embeddings
        self._smoothed: dict[int, tuple[SmootherMatrix, ScalarEmbeddings, Values]] = {}
        self._summed: dict[int, tuple[PairForm, ScalarEmbeddings, float]] = {}

    @cached_property
    def products(self) -> Values:
        """Products of the embeddings, (n, n)."""
        return self.embeddings.products()

    @cached_property
    def norms(self) -> Values:
        """Squared norms of the embeddings, (n,)."""
        return self.embeddings.norms()

    def smoothed(self, matrix: SmootherMatrix) -> tuple[ScalarEmbeddings, Values]:
        """Return the embeddings along the directions of a smoother matrix, and the squared norms of its rows, (m,)."""
        if id(matrix) not in self._smoothed:
            mixed = cast("ScalarEmbeddings", self.embeddings).mixed(matrix.along)
            self._smoothed[id(matrix)] = matrix, mixed, matrix.squares(mixed)
        return self._smoothed[id(matrix)][1:]

    def summed(self, form: PairForm) -> tuple[ScalarEmbeddings, float]:
        """Return the embeddings times the matrix of a form, and the form of the embeddings."""
        if id(form) not in self._summed:
            one = cast("ScalarEmbeddings", self.embeddings)
            blocks = np.array_split(form.root, BLOCKS)
            total = float(sum(one.mixed(block).norms().sum() for block in blocks))
            self._summed[id(form)] = form, one.mixed(form.root.T @ form.root), total
        return self._summed[id(form)][1:]


class SharedLaplace:
    """Features of the targets and distributions of many data sets in the Laplace kernel of the data.

    Features are cheaper if only the differences of those of targets and of distributions are used.
    """

    def __init__(self, data: DataSet, features: LaplaceFeatures, *, differences: bool) -> None:
        self._data, self._features, self._differences = data, features, differences
        self._own = target_kernels.OfDistributions(data, self._embed)
        self._pooled = target_kernels.OfDistributions(data, lambda draws: self._embed(self._with_targets(draws)))

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], None, None]:
        """Return features; the matrices are None, as all data sets have one kernel."""
        if len(each.model) > 1 or not self._differences:
            return self._of_all(each)
        (one,) = each.model
        known = self._known(one)
        own, between = self._observed(each.y, known.embeddings)
        squares = self._stretch(one) ** 2 * (own - between - between.T + known.products)
        features = gram_factor(squares, TOLERANCE)
        return features, [np.zeros_like(features)], None, None

    @property
    def sums_in_linear_time(self) -> bool:
        """Whether :meth:`smoothed_squares` and :meth:`pair_sum` are available: for targets of one column."""
        return isinstance(self._known(self._data.model[0]).embeddings, ScalarEmbeddings)

    def smoothed_squares(self, each: DataSet, observed: SmootherMatrix, model: SmootherMatrix) -> Values:
        """Return |sum_i a_i(x) psi(y_i) - b_i(x) E psi(Y_i)|^2 for rows a, b of smoother matrices, (m, trials)."""
        stretch = self._stretch(each.model[0])
        weights = observed if stretch == 1 else observed.plus(stretch - 1, model)
        own, found = self._own_squares(each.y.ravel(), weights), []
        for one in each.model:
            mixed, squares = self._known(one).smoothed(model)
            between = self._between(each.y.reshape(-1, 1), mixed, weights, model)
            found.append(own - 2 * stretch * between + stretch**2 * squares)
        return np.maximum(np.stack(found, axis=1), 0)

    def _own_squares(self, y: Values, weights: SmootherMatrix) -> Values:
        """Return |sum_i a_i(x) psi(y_i)|^2 for rows a of a smoother matrix, (m,)."""
        gamma = float(self._features.gamma[0])
        if weights.turn is None:
            return norms_of_points(y, gamma, weights.along)
        return weights.squares(point_embeddings(y, gamma, weights.along))

    @staticmethod
    def _between(y: Values, mixed: ScalarEmbeddings, weights: SmootherMatrix, model: SmootherMatrix) -> Values:
        """Return the products of sum_i a_i(x) psi(y_i) and sum_i b_i(x) E psi(Y_i) for rows a, b of matrices, (m,)."""
        if weights.turn is None or model.turn is None:
            return mixed.paired_sums(y[:, 0], weights.along)
        return row_forms(weights.turn, weights.along @ mixed.means(y), model.turn)

    def row_squares(self, each: DataSet) -> Values:
        """Return |psi(y_i) - E psi(Y_i)|^2, (n, trials), with features averaged over the repeated targets of a row."""
        stretch, y = self._stretch(each.model[0]), each.y.reshape(len(each.y), -1, 1)
        own = np.exp(-self._features.gamma[0] * np.abs(y - y.transpose(0, 2, 1))).mean(axis=(1, 2))
        known = [self._known(one) for one in each.model]
        squares = [own - 2 * one.embeddings.means_by_row(y).mean(axis=1) + one.norms for one in known]
        return stretch**2 * np.stack(squares, axis=1)

    def pair_sum(self, each: DataSet, form: PairForm) -> float:
        """Return the form of the differences delta_i = psi(y_i) - E psi(Y_i) of a data set with one trial."""
        stretch, y = self._stretch(each.model[0]), each.y.reshape(len(each.y), -1, 1)
        mixed, squares = self._known(each.model[0]).summed(form)
        repeats = y.shape[1]
        root = form.root if repeats == 1 else np.repeat(form.root, repeats, axis=1) / repeats
        own = float(norms_of_points(y.ravel(), float(self._features.gamma[0]), root).sum())
        between = float(mixed.means_by_row(y).mean(axis=1).sum())
        total = stretch**2 * (own - 2 * between + squares)
        return total - float(form.diagonal @ self.row_squares(each)[:, 0]) if form.diagonal.any() else total

    def _of_all(self, each: DataSet) -> tuple[Values, list[Values], None, None]:
        """Return features of the targets, and of the distributions of all trials."""
        n = len(each.y)
        if len(each.model) == 1:
            known = self._known(each.model[0])
        else:
            first, *others = (one.load() for one in each.model if not isinstance(one, target_kernels.SwappedDraw))
            known = self._embed(first.join(list(others)))
        own, between = self._observed(each.y, known.embeddings)
        features = gram_factor(np.block([[own, between], [between.T, known.products]]), TOLERANCE)
        observed = features[:n]
        pooled = features[n:].reshape(len(each.model), n, -1)
        pairs = zip(each.model, pooled, strict=True)
        model = [observed - self._stretch(one) * (observed - mean) for one, mean in pairs]
        return observed, model, None, None

    def _known(self, one: Predictive | target_kernels.SwappedDraw) -> _Known:
        """Return the embeddings of distributions, or of the targets and draws of each row."""
        return self._pooled(one.draws) if isinstance(one, target_kernels.SwappedDraw) else self._own(one)

    def _embed(self, predictive: Predictive) -> _Known:
        return _Known(laplace_embeddings(predictive, tuple(self._features.gamma)))

    def _with_targets(self, predictive: Predictive) -> Samples:
        """Return the draws together with the targets of the data."""
        samples, y = predictive.load(), self._data.y
        if not isinstance(samples, Samples):
            raise TypeError(f"exchanged draws need samples, got {type(samples).__name__}")
        return Samples(np.concatenate([each.reshape(len(y), -1, y.shape[-1]) for each in (y, samples.draws)], axis=1))

    def _stretch(self, one: Predictive | target_kernels.SwappedDraw) -> float:
        """Return (m + r) / m for r targets among m + r exchanged values, so that a - b = (m + r) / m (a - pooled)."""
        return 1 + self._data.repeats / (one.draws.n_draws or 1) if isinstance(one, target_kernels.SwappedDraw) else 1.0

    def _observed(self, y: Values, embeddings: LaplaceEmbeddings) -> tuple[Values, Values]:
        """Return the products of the targets' features with each other, and with the distributions, (n, n) each."""
        points = y.reshape(-1, y.shape[-1])
        own = target_kernels.by_row(target_kernels.by_row(self._features.gram(points), y).T, y)
        return own, target_kernels.by_row(embeddings.means(points), y)


class LaplaceTargets(TargetKernel):
    """Laplace kernel exp(-sum_c gamma_c |u_c - v_c|), scaled by predictions, or by draws and targets together."""

    replicates_share_scale: ClassVar[bool] = True

    @property
    def details(self) -> dict[str, Any]:
        return {"kernel": "laplace"}

    def unit_gamma(self, y: Values, predictive: Predictive) -> Values:
        try:
            deviation = np.sqrt(_variances(y, predictive.load()))
        except DataError as error:
            msg = f"--kernel-y laplace is scaled by the deviation of the predictions, but {error}. Pass --kernel-y rbf"
            raise DataError(msg) from error
        if not (np.isfinite(deviation) & (deviation > 0)).all():
            msg = "the predictions have no finite positive deviation, which is the scale of --kernel-y laplace"
            raise DataError(msg)
        return np.asarray(1 / deviation)

    def features(self, y: Values, predictive: Predictive, gamma: Values, run: Run) -> TargetFeatures:  # noqa: ARG002
        return LaplaceFeatures(gamma, run)

    def shared(self, data: DataSet, covered: Predictive, run: Run, *, differences: bool) -> SharedOutputs:  # noqa: ARG002
        return SharedLaplace(data, LaplaceFeatures(np.asarray(data.gamma), run), differences=differences)


def _variances(y: Values, predictive: Predictive) -> Values:
    """Return the variance of the predictions of all rows together, (t,); for samples, with the targets."""
    columns = y.shape[-1]
    if isinstance(predictive, Samples):
        pooled = np.concatenate([y.reshape(-1, columns), predictive.draws.reshape(-1, columns)])
        return np.asarray(pooled.var(axis=0, ddof=1))
    mean, std = (each.reshape(-1, columns) for each in (predictive.mean(), predictive.std()))
    return np.asarray(mean.var(axis=0) + (std**2).mean(axis=0))
