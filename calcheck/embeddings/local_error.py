"""Local errors: leave-one-out predictions of kernel ridge regressions, and what they are fitted to and on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calcheck.core import sc
from calcheck.core.cache import cached
from calcheck.dependence.clusters import Clusters, find_clusters, time_labels
from calcheck.distributions import Predictive
from calcheck.distributions.row_random import RowRandom
from calcheck.distributions.samples import Samples
from calcheck.errors import DataError
from calcheck.execution.backend import backend
from calcheck.execution.run import RandomStream, Run, replicate_seed
from calcheck.kernels import KernelOptions
from calcheck.kernels.bandwidths import Scaling, all_inputs, conditioning, sample_inputs
from calcheck.kernels.kernel_functions import Kernel, Polynomial
from calcheck.linalg.gram import Nystroem
from calcheck.predictions import Predictions, row_keys, row_sample
from calcheck.statistics.binning import CATEGORIES, sort_keys
from calcheck.statistics.pit import mean_component
from calcheck.statistics.zscores import spreads, targets
from calcheck.typing import AnyArray, Floats, Indices, Values

LAMBDAS = (0.001, 0.01, 0.03, 0.1, 0.3)  # Regularizers that are tried: K + n lambda I
NEGLIGIBLE = 1e-6 * LAMBDAS[0]  # Eigenvalues of K / n up to this do not change predictions
LANDMARKS = 1_000  # Most landmarks
CACHED_VALUES = 1 << 18  # Values of outputs whose predictions are computed together
BLOCK = 10_000  # Rows per block of predictions at other inputs

COSINES = 16  # Of the k-th cosine of ranks, the eigenvalue is about k^-4


@dataclass(frozen=True, eq=False)
class Covariances:
    """How leave-one-out predictions g vary with outputs w, (l, c) each: for l regularizers and c outputs."""

    covariance: Values  # Mean of g w
    variance: Values  # Variance of g
    errors: Values  # Mean of (w - g)^2
    excess_errors: Values  # Standard errors of the differences of these means from the smallest

    @property
    def sharpest(self) -> Indices:
        """The place of the regularizer with the smallest error for each output, (c,)."""
        return np.asarray(self.errors.argmin(axis=0))

    @property
    def best(self) -> Indices:
        """The place of the largest regularizer whose error is at most one standard error above the smallest, (c,).

        Source: Breiman, Friedman, Olshen, Stone (1984), "Classification and regression trees", section 3.4.3; here the
        standard error is that of the difference.
        """
        near = self.errors <= self.errors.min(axis=0) + self.excess_errors
        return np.asarray(len(LAMBDAS) - 1 - near[::-1].argmax(axis=0))

    @property
    def bounds(self) -> Values:
        """The lower bound of the standard deviation of E[w|x] for each output, (c,); see :class:`LeaveOneOut`."""
        columns = np.arange(self.errors.shape[1])
        return np.asarray(self.covariance[self.best, columns] / np.sqrt(self.variance[self.best, columns]))


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    r"""Kernel ridge regression of centered outputs on n inputs, with a free constant.

    With the smoother :math:`A = K (K + n \lambda I)^{-1}` of the centered kernel matrix, the errors of a fold F of rows
    that are predicted without it are

    .. math:: e_F = \left(I - \tfrac1n 1 1^T - A_{FF}\right)^{-1} (w - A w)_F, \qquad
              g_F = w_F - e_F + \tfrac1n 1^T e_F,

    where g is without the constant, which would be smaller for larger outputs in F. Independent rows are folds.

    As predictions do not depend on the outputs of their rows, Cauchy-Schwarz bounds the variation of the expected
    output from below: :math:`\mathrm{sd}(E[w|x]) \ge \mathrm{Cov}(g, w) / \mathrm{sd}(g)`.
    """

    basis: Values  # (n, q), orthonormal eigenvectors of the centered kernel matrix
    eigenvalues: Values  # (q,), of the centered kernel matrix, over n
    extension: Callable[[AnyArray], Values] | None = None  # Returns the basis at other inputs, (m, q)
    folds: tuple[Indices, ...] = ()  # The rows of each fold; none if rows are independent

    @classmethod
    def from_features(cls, features: Callable[[AnyArray], Values], x: AnyArray) -> "LeaveOneOut":
        """Return the regression on features (n, p) of inputs, which are centered here; K is their product."""
        found = features(x)
        center = found.mean(axis=0)
        values, vectors = np.linalg.eigh((found - center).T @ (found - center) / len(found))
        kept = values > NEGLIGIBLE
        axes = vectors[:, kept] / np.sqrt(len(found) * values[kept])
        return cls((found - center) @ axes, values[kept], lambda others: (features(others) - center) @ axes)

    @classmethod
    def from_kernel(cls, kernel: Kernel, x: Floats, scaling: Scaling) -> "LeaveOneOut":
        """Return the regression on inputs (n, d), on landmarks of them, or on the monomials of a polynomial kernel."""
        if isinstance(kernel, Polynomial) and kernel.monomials(x[:1], min(LANDMARKS, len(x) // 2)) is not None:
            return cls.from_features(lambda inputs: np.asarray(kernel.monomials(scaling(inputs), LANDMARKS)), x)
        landmarks = np.asarray(sample_inputs(scaled := scaling(x), LANDMARKS))
        if len(landmarks) == len(x):
            return cls._from_gram(kernel.gram(scaled, scaled))
        nystroem = Nystroem.from_eigenvectors(kernel, landmarks, backend(None, "float64"), smallest_share=1e-12)
        return cls.from_features(lambda inputs: np.asarray(nystroem(scaling(inputs))), x)

    @classmethod
    def from_ranks(cls, values: Values) -> "LeaveOneOut":
        """Return the regression on numbers (n,): a smoothing spline of their ranks, by its first cosines."""
        ordered, order = np.sort(values), np.arange(1, COSINES + 1)

        def cosines(numbers: Values) -> Values:
            ranks = (np.searchsorted(ordered, numbers) + np.searchsorted(ordered, numbers, "right")) / 2
            return np.asarray(np.sqrt(2) * np.cos(np.pi * np.outer(ranks / len(ordered), order)) / order**2)

        return cls.from_features(cosines, values)

    @classmethod
    def _from_gram(cls, gram: Values) -> "LeaveOneOut":
        """Return the regression with a kernel matrix (n, n)."""
        means = gram.mean(axis=0)
        values, vectors = np.linalg.eigh((gram - means - means[:, None] + means.mean()) / len(gram))
        kept = values > NEGLIGIBLE
        return cls(vectors[:, kept], values[kept])

    @cached_property
    def shrinkage(self) -> Values:
        """The eigenvalues of the smoother for each regularizer, (l, q)."""
        return np.asarray(self.eigenvalues / (self.eigenvalues + np.array(LAMBDAS)[:, None]))

    @cached_property
    def leverages(self) -> Values:
        """The diagonal of the smoother for each regularizer, (l, n)."""
        return np.asarray(self.shrinkage @ (self.basis**2).T)

    def predict(self, outputs: Values, place: int) -> Values:
        """Return the leave-one-out predictions of centered outputs (n, c) with the regularizer at a place, (n, c)."""
        return np.asarray(outputs - self._errors(outputs, self.basis.T @ outputs, place))

    def _errors(self, outputs: Values, along: Values, place: int) -> Values:
        """Return the leave-one-out errors of outputs (n, c), given these along the basis, (q, c)."""
        fitted = np.asarray(self.basis @ (self.shrinkage[place][:, None] * along))
        errors: Values = np.subtract(outputs, fitted, out=fitted)
        if self.folds:
            return self._without_folds(errors, place)
        share = 1 - 1 / len(outputs)
        errors *= (share / (share - self.leverages[place]))[:, None]
        return errors

    def predict_others(self, x: AnyArray, outputs: Values, place: int) -> Values:
        """Return the predictions at other inputs, (m, ...), from centered outputs (n,) of all rows, (m,)."""
        if self.extension is None:
            raise ValueError("the regression is on all rows")
        weights = self.shrinkage[place] * (self.basis.T @ outputs)
        blocks = (x[start : start + BLOCK] for start in range(0, len(x), BLOCK))
        return np.concatenate([self.extension(block) @ weights for block in blocks])

    def _without_folds(self, errors: Values, place: int) -> Values:
        """Return the errors of each fold without its rows, given those with them, (n, c)."""
        n, shrinkage = len(errors), np.append(1.0, self.shrinkage[place])
        for rows in self.folds:
            basis = np.column_stack([np.full(len(rows), n**-0.5), self.basis[rows]])
            own = errors[rows]
            own += basis @ np.linalg.solve(np.diag(1 / shrinkage) - basis.T @ basis, basis.T @ own)
            errors[rows] = own - own.sum(axis=0) / n
        return errors

    def covariances(self, outputs: Values) -> Covariances:
        """Return how predictions vary with centered outputs (n, c), in blocks that fit the processor cache."""
        size = max(1, CACHED_VALUES // len(outputs))
        blocks = [outputs[:, start : start + size] for start in range(0, outputs.shape[1], size)]
        return Covariances(*np.concatenate([self._covariances(np.ascontiguousarray(each)) for each in blocks], axis=2))

    def _covariances(self, outputs: Values) -> Values:
        """Return the fields of :class:`Covariances`, (4, l, c)."""
        n, along, squares = len(outputs), self.basis.T @ outputs, list[Values]()
        found = np.empty((4, len(LAMBDAS), outputs.shape[1]))
        for place in range(len(LAMBDAS)):
            errors = self._errors(outputs, along, place)
            predicted = outputs - errors
            common, own = (np.einsum("ic,ic->c", predicted, each) / n for each in (outputs, predicted))
            squares.append(np.square(errors, out=errors))
            found[:3, place] = common, own - predicted.mean(axis=0) ** 2, errors.mean(axis=0)
        sharpest, least = found[2].argmin(axis=0), np.empty(outputs.shape)
        for place in np.unique(sharpest):
            np.copyto(least, squares[place], where=sharpest == place)
        for place, each in enumerate(squares):
            away = np.subtract(each, least, out=each)
            variance = np.einsum("ic,ic->c", away, away) / n - (found[2, place] - found[2].min(axis=0)) ** 2
            found[3, place] = np.sqrt(np.maximum(variance, 0) / n)
        return found


MOST_CATEGORIES = 300
EQUAL = 1e-9  # Standard deviation of inputs, relative to their size, up to which they are equal
MOST_ROWS = 10_000  # Maximum rows for the value; standard errors of a sample of that size are about 0.01
MOST_FOLDS = 20  # Maximum folds of clusters
FLIPS = 199  # Number of sets of random signs
MARGIN = 0.01  # Distance of expected components from their limits, relative to the range


@dataclass(frozen=True, eq=False)
class LocalRegression:
    """A kernel regression of outputs along the inputs of some rows."""

    regression: LeaveOneOut
    places: Indices | None = None  # The places of the rows; None for all
    clusters: Clusters | None = None  # Their clusters; None if rows are independent

    def take(self, rows: Predictions) -> Predictions:
        """Return the rows of the regression."""
        return rows if self.places is None else rows.take(self.places)

    def standard_error(self, influences: Values) -> float:
        """Return the standard error of the mean of influences (n,)."""
        if self.clusters is None:
            return float(influences.std() / np.sqrt(len(influences)))
        sums = self.clusters.sums(influences - influences.mean())
        return float(np.sqrt(np.sum(sums**2) * self.clusters.variance_factor) / len(influences))

    def critical_value(self, confidence: float) -> float:
        """Return the number of standard errors to a one-sided limit: of the normal distribution, or of Student's t."""
        if self.clusters is None:
            return float(sc.ndtri(confidence))
        return float(sc.stdtrit(self.clusters.degrees_of_freedom, confidence))

    def null_bounds(self, outputs: Values, rows: Predictions, run: Run) -> Values:
        """Return the bounds of centered outputs (n,) with random signs, as if their expectations were all 0, (FLIPS,).

        Source: Cameron, Gelbach, Miller (2008), Review of Economics and Statistics 90, 414-427: wild cluster bootstrap.
        """
        if self.clusters is None:
            keys = row_keys(self.take(rows), replicate_seed(run))
            above = RowRandom(keys).random((len(outputs), FLIPS)) < 1 / 2
            inflation = 1.0
        else:
            above = (run.rng(RandomStream.MULTIPLIERS).random((len(self.clusters), FLIPS)) < 1 / 2)[self.clusters.label]
            inflation = self.clusters.inflation
        flipped = np.where(above, outputs[:, None], -outputs[:, None])
        bounds = self.regression.covariances(flipped - flipped.mean(axis=0)).bounds
        return np.asarray(bounds * np.sqrt(inflation))


@cached
def local_regression(rows: Predictions, along: str, run: Run) -> LocalRegression:
    """Return the regression along something, on all rows or on a sample of many; folds consist of whole clusters."""
    chosen = row_sample(rows, MOST_ROWS, replicate_seed(run)) if len(rows) > MOST_ROWS else None
    rows = rows if chosen is None else rows.take(chosen)
    clusters, fit = find_clusters(rows, run.dependence), regression(rows, along, run)
    if clusters is None:
        return LocalRegression(fit, chosen)
    return LocalRegression(replace(fit, folds=cluster_folds(clusters)), chosen, clusters)


def cluster_folds(clusters: Clusters) -> tuple[Indices, ...]:
    """Return the rows of folds that consist of whole clusters."""
    fold = clusters.label * min(MOST_FOLDS, len(clusters)) // len(clusters)
    return tuple(np.flatnonzero(fold == number) for number in range(fold.max() + 1))


def positions(rows: Predictions, along: str, run: Run) -> AnyArray:
    """Return what local errors of rows may vary along: numbers (n,), categories (n,), or several inputs (n, d)."""
    if along == "inputs":
        x = all_inputs(rows, run)
        return x if rows.width > 1 else x[:, 0].astype(np.float64)
    if along == "std":
        return _log_spreads(rows)
    if along == "time":
        if run.dependence.time is None:
            raise DataError("needs the column of times (--time)")
        labels = time_labels(rows, run.dependence.time)
        return np.asarray(labels / max(1, labels.max()))
    values = sort_keys(rows, along, "for local errors (--along)")
    return values if values.dtype.kind in CATEGORIES else values.astype(np.float64)


def regression(rows: Predictions, along: str, run: Run) -> LeaveOneOut:
    """Return the regression along the positions of rows: on the kernel of cce, on ranks, or on categories."""
    values = positions(rows, along, run)
    if values.ndim > 1:
        chosen = conditioning(rows, KernelOptions())
        return LeaveOneOut.from_kernel(chosen.kernel, values, chosen.scaling)
    if values.dtype.kind not in CATEGORIES:
        if not values.std() > EQUAL * np.abs(values).max():
            what = {"std": "predicted standard deviations", "time": "times", "inputs": "inputs"}
            msg = f"all {what.get(along, f'values of {along!r}')} are equal, so errors cannot vary along them"
            raise DataError(msg)
        return LeaveOneOut.from_ranks(values)
    names, most = np.unique(values), min(MOST_CATEGORIES, len(rows) - 1)
    if not 1 < len(names) <= most:
        raise DataError(f"column {along!r} must have 2 to {most} different categories (--along), got {len(names):,}")
    return LeaveOneOut.from_features(lambda labels: (labels[:, None] == names).astype(np.float64), values)


def _log_spreads(rows: Predictions) -> Values:
    """Return the logarithms of the predicted standard deviations, (n,); equal draws have the smallest positive one.

    For draws, it is the median absolute deviation of draws and target together, of which the rank of the target is
    independent if the model is right. Where the spread of the draws alone is small, targets are more often outside.
    """
    predictive = rows.distributions().load()
    levels = predictive.quantile_levels
    if levels is not None:
        low, high = (predictive.quantile(float(level)) for level in (levels[0], levels[-1]))
        found = high - low
    elif not isinstance(predictive, Samples):
        found = spreads(predictive)
    else:
        together = np.concatenate([predictive.draws, targets(rows)[:, None]], axis=1)
        found = np.median(np.abs(together - np.median(together, axis=1, keepdims=True)), axis=1)
    if not found.any():
        return np.zeros(len(found))
    return np.asarray(np.log(np.maximum(found, found[found > 0].min())))


def resolution(predictive: Predictive, degree: int) -> float:
    """Return how much of the change of a component is seen where the PIT is known up to limits, in (0, 1].

    For m draws, the expected components are m / (m + 1) and m (m - 1) / (m + 1)^2 times those of the PIT. For
    quantiles, the derivative by the shift or log factor of normal errors sums values times differences of -phi(z) or -z
    phi(z).
    """
    if predictive.n_draws is not None:
        m = predictive.n_draws
        return m / (m + 1) if degree == 1 else m * (m - 1) / (m + 1) ** 2
    if predictive.quantile_levels is None:
        return 1.0
    levels = predictive.quantile_levels
    edges = np.concatenate([[0.0], levels, [1.0]])
    z = sc.ndtri(levels)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    changes = -np.diff(np.concatenate([[0.0], density if degree == 1 else z * density, [0.0]]))
    return float(mean_component(edges[:-1], edges[1:], degree) @ changes) / DERIVATIVES[degree]


DERIVATIVES = {1: float(np.sqrt(3 / np.pi)), 2: float(np.sqrt(15) / np.pi)}
"""Derivatives of the expected components of the PIT of a normal prediction, by degree.

By the shift in predicted standard deviations, it is 2 sqrt(3) times the integral of the squared density. By the log
factor of the standard deviation, it is 12 sqrt(5) times that of z Phi(z) phi(z)^2, half the integral of phi^3.
"""


def shifts(means: Values) -> Values:
    """Return the shifts of normal targets, in std, with given first components sqrt3 (2 Phi(d / sqrt2) - 1)."""
    return np.asarray(np.sqrt(2) * sc.ndtri((_inside(means, -np.sqrt(3), np.sqrt(3)) / np.sqrt(3) + 1) / 2))


def factors(means: Values) -> Values:
    """Return the factors k of std of normal targets by second components, sqrt5 (6/pi atan sqrt(1 + 2 k^2) - 2)."""
    angle = np.pi / 6 * (_inside(means, -np.sqrt(5) / 2, np.sqrt(5)) / np.sqrt(5) + 2)
    return np.asarray(np.sqrt((np.tan(angle) ** 2 - 1) / 2))


def _inside(means: Values, low: float, high: float) -> Values:
    margin = MARGIN * (high - low)
    return np.clip(means, low + margin, high - margin)
