"""Mean embeddings and kernel scores of rows, which the joint MMD metrics sum over rows and pairs of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calcheck.core import LazyModule
from calcheck.distributions import Predictive, Samples
from calcheck.distributions.special import normal_kernel_mean, normal_kernel_norm
from calcheck.embeddings.target_kernels import DataSet, FeatureBounds, SwappedDraw, TargetFeatures, TargetKernel, by_row
from calcheck.execution.run import Progress, RandomStream, Run, one_blas_thread
from calcheck.inference.null_distribution import NullSimulator
from calcheck.kernels import Estimator
from calcheck.kernels.kernel_functions import Laplace
from calcheck.predictions import Predictions
from calcheck.typing import Values

if TYPE_CHECKING:
    from calcheck.embeddings import laplace, laplace_embeddings, rbf
    from calcheck.mmd import quadratic_forms
else:  # not for ammd of normal distributions
    laplace = LazyModule("calcheck.embeddings.laplace")
    laplace_embeddings = LazyModule("calcheck.embeddings.laplace_embeddings")
    quadratic_forms = LazyModule("calcheck.mmd.quadratic_forms")
    rbf = LazyModule("calcheck.embeddings.rbf")

BLOCK_VALUES = 1 << 24  # values per block of data sets whose pair sums are computed together, 128 MiB
TOGETHER, MANY_ROWS = 4, 1 << 16  # Data sets per product with a form, unless they have many rows
ROWS = 1024  # Rows per batch of Laplace embeddings
MEANS = 1 << 15  # Kernel means in memory at a time, which fit in the cache


@dataclass(frozen=True, eq=False)
class JointEmbedding:
    """Mean embeddings of the targets and of the predictive distribution of each row."""

    observed: Values  # (n, q), a_i, the mean of psi over the row's targets
    predicted: Values  # (n, q), b_i, the mean of psi over the row's draws or its distribution
    targets: int  # Number of targets per row, r
    draws: int | None  # Number of draws per row, l; None if the distributions are known in closed form
    target_norms: Values | float = 1.0  # (n,), mean of k(u, u) over the targets of each row
    draw_norms: Values | float = 1.0  # (n,), the same over the draws of each row

    @property
    def difference(self) -> Values:
        """delta_i = a_i - b_i, (n, q)."""
        return self.observed - self.predicted

    def halves(self) -> tuple[JointEmbedding, JointEmbedding]:
        """Return the first and the second half of the rows."""
        n = len(self.observed) // 2
        return self._take(slice(n)), self._take(slice(n, None))

    def _take(self, rows: slice) -> JointEmbedding:
        """Return the embeddings of some rows."""
        norms = (each if isinstance(each, float) else each[rows] for each in (self.target_norms, self.draw_norms))
        return JointEmbedding(self.observed[rows], self.predicted[rows], self.targets, self.draws, *norms)

    def form(self, estimator: Estimator) -> quadratic_forms.QuadraticForm:
        """Return the quadratic form that estimates the squared joint MMD.

        ``v`` sums all pairs, sum_ij K_ij delta_i . delta_j / n^2. ``unbiased`` omits the pairs of a row with itself
        and divides by n (n - 1). ``paper`` omits only the pairs of a draw with itself, and the term that depends on
        the targets only. The differences overwrite the targets' embeddings, as each takes much memory.
        """
        n = len(self.observed)
        if estimator != "paper":
            difference = np.subtract(self.observed, self.predicted, out=self.observed)
            difference.flags.writeable = False  # so that a second form is refused
            if estimator == "v":
                return quadratic_forms.QuadraticForm(difference, np.zeros(n), 1 / n**2)
            scale = 1 / (n * (n - 1)) if n > 1 else np.nan
            return quadratic_forms.QuadraticForm(difference, scale * _dots(difference, difference), scale)
        own = 0.0 if self.draws is None else 1 / (n * (n * self.draws - 1))
        others = 1 / n**2 if self.draws is None else self.draws * own
        left = others * self.predicted - 2 / n**2 * self.observed
        return quadratic_forms.QuadraticForm(self.predicted, np.full(n, own) * self.draw_norms, others, left)

    def scores(self, *, unbiased: bool, constant: bool) -> Values:
        """Return -2 a_i . b_i + |b_i|^2, (n,), with |a_i|^2 if ``constant``; unbiased without a draw with itself."""
        scores = _dots(self.predicted, self.predicted)
        if unbiased and self.draws is not None:
            scores = quadratic_forms.of_different(scores, self.draws, self.draw_norms)
        scores = scores - 2 * _dots(self.observed, self.predicted)
        if not constant:
            return scores
        own = _dots(self.observed, self.observed)
        return scores + (quadratic_forms.of_different(own, self.targets, self.target_norms) if unbiased else own)


def _dots(a: Values, b: Values) -> Values:
    """Return a_i . b_i, (n,)."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def embed(
    kernel: TargetKernel, features: TargetFeatures, rows: Predictions, predictive: Predictive
) -> tuple[JointEmbedding, FeatureBounds]:
    """Return the embeddings of targets and distributions, and the error of the features."""
    y, mean_norms = repeated_targets(rows), partial(kernel.mean_norms, gamma=features.gamma)
    points, models, bounds = features.embed(y.reshape(-1, y.shape[2]), [predictive])
    observed, norms = by_row(points, y), (mean_norms(y), _draw_norms(mean_norms, predictive))
    return JointEmbedding(observed, next(models), y.shape[1], predictive.n_draws, *norms), bounds


def _draw_norms(mean_norms: Callable[[Values], Values | float], predictive: Predictive) -> Values | float:
    """Return the mean of k(u, u) over the draws of each row; 1 for other distributions, where it is not used."""
    if predictive.n_draws is None:
        return 1.0
    draws = predictive.load()
    return mean_norms(draws.draws.reshape(len(draws), draws.n_draws, -1)) if isinstance(draws, Samples) else 1.0


def repeated_targets(rows: Predictions) -> Values:
    """Return the targets with an axis for repeats, (n, r, t)."""
    y = rows.targets()
    return y if rows.repeated else y.reshape(len(y), 1, -1)


def blocks(
    data_sets: Iterable[JointEmbedding | None], count: int, progress: Progress
) -> Iterator[list[JointEmbedding | None]]:
    """Yield data sets in blocks large enough to justify a pass over the pairs of rows."""
    block: list[JointEmbedding | None] = []
    for number, each in enumerate(data_sets):
        block.append(each)
        progress("replicates", (number + 1) / count)
        if sum(one.predicted.size for one in block if one is not None) >= BLOCK_VALUES:
            yield block
            block = []
    if block:
        yield block


@dataclass(frozen=True, eq=False)
class DataSets:
    """The data, and replicates of it with simulated targets."""

    rows: Predictions  # The data
    # The same rows with simulated targets. For samples, some draws have been exchanged with targets.
    replicates: NullSimulator
    # Returns the scale of the kernel on targets for (p, t) targets; None if it is undefined
    gamma_of: Callable[[Values], Values | None]
    predictive: Predictive  # The distributions of the data
    kernel: TargetKernel  # Kernel on targets, scaled by the targets of each data set
    name: tuple[object, ...]  # Options of the kernel on targets
    run: Run  # Seed and memory limit

    def embeddings(self, *, apart: bool) -> Iterator[JointEmbedding | None]:
        """Yield the embedding of the data, then of each replicate; None if the scale of the kernel is undefined."""
        data, predictive = self._data_set(self.rows), self.predictive
        shared = self.kernel.shared(data, predictive, self.run, differences=apart)
        others = ((self._data_set(one), one) for one in self.replicates)
        for each, rows_of_each in chain([(data, self.rows)], others):
            if each.gamma is None:
                yield None
                continue
            with one_blas_thread():  # many small products
                observed, (predicted,), norm, _ = shared.rescaled(each)
                if norm is not None:
                    observed, predicted = observed @ norm, predicted @ norm
                of_kernel = partial(self.kernel.mean_norms, gamma=each.gamma)
                norms = of_kernel(each.y), _draw_norms(of_kernel, rows_of_each.distributions())
                found = JointEmbedding(observed, predicted, data.repeats, predictive.n_draws, *norms)
            yield found

    def mean_scores(self) -> Iterator[float]:
        """Yield the mean of |b_i|^2 - 2 a_i . b_i of the data, then of each replicate, which share their distributions.

        NaN if the scale of the kernel is undefined.
        """
        data = self._data_set(self.rows)
        shared = rbf.SharedFeatures(data, self.predictive, lambda: self.run.rng(RandomStream.FEATURES))
        data_sets = chain([data], map(self._data_set, self.replicates))
        while some := list(islice(data_sets, TOGETHER)):
            with one_blas_thread():  # many small products
                found = [np.nan if each.gamma is None else shared.mean_score(each) for each in some]
            yield from found

    def sums(self, form: laplace.PairForm) -> Iterator[float]:
        """Yield a form of the data, then of each replicate; NaN if the scale of the kernel is undefined."""
        data = self._data_set(self.rows, is_data=self.kernel.replicates_share_scale)
        shared = self.kernel.shared(data, self.predictive, self.run, differences=True)
        data_sets = chain([data], map(self._data_set, self.replicates))
        if isinstance(shared, laplace.SharedLaplace) and shared.sums_in_linear_time:
            yield from (np.nan if each.gamma is None else shared.pair_sum(each, form) for each in data_sets)
            return
        known = form.directions.known.setdefault((self.name, self.replicates.numbers), [])
        yield from map(form.of_sums, known)
        rest = islice(data_sets, len(known), None)
        wide = isinstance(shared, laplace.SharedLaplace) or len(data.y) > MANY_ROWS
        while some := list(islice(rest, 1 if wide else TOGETHER)):
            defined = [each for each in some if each.gamma is not None]
            features = [(one - other, norm) for one, (other,), norm, _ in map(shared.rescaled, defined)]
            found = form.directions.sums(features)
            known += [np.full(len(form.weights), np.nan) if each.gamma is None else next(found) for each in some]
            yield from map(form.of_sums, known[-len(some) :])

    def _data_set(self, rows: Predictions, *, is_data: bool = False) -> DataSet:
        """Return the data set of the data or a replicate, with differences of targets and draws of the same form."""
        y, predictive = repeated_targets(rows), self.predictive
        exchanged = predictive.n_draws is not None and (is_data or rows.predictive is not predictive)
        model = SwappedDraw(predictive) if exchanged else predictive
        return DataSet(y, self.gamma_of(y.reshape(-1, y.shape[2])), [model])


def direct_scores(y: Values, predictive: Predictive, gamma: Values, *, unbiased: bool, constant: bool) -> Values | None:
    """Return -2 a_i . b_i + |b_i|^2, from pairs of targets y (n, r, t) and draws or in closed form; None if neither."""
    points, scores = y * np.sqrt(gamma), np.empty(len(y))
    for rows, batch in predictive.batches():
        if isinstance(batch, Samples):
            draws = batch.draws.reshape(len(batch), batch.n_draws, -1) * np.sqrt(gamma)
            own, both = (
                quadratic_forms.row_products(draws, draws, 1.0),
                quadratic_forms.row_products(points[rows], draws, 1.0),
            )
            scores[rows] = (quadratic_forms.of_different(own, batch.n_draws) if unbiased else own) - 2 * both
            continue
        normal = batch.normal()
        if normal is None:
            return None
        mean, std = (each[:, None] for each in normal)  # (b, 1, t)
        both = normal_kernel_mean(y[rows] - mean, std, gamma).prod(axis=2).mean(axis=1)
        scores[rows] = batch.kernel_norm(gamma) - 2 * both
    if not constant:
        return scores
    own = quadratic_forms.row_products(points, points, 1.0)
    return np.asarray(scores + (quadratic_forms.of_different(own, y.shape[1]) if unbiased else own))


class NormalData(NamedTuple):
    """A data set of one target per row with normal distributions."""

    y: Values  # (n,), targets
    predictive: Predictive  # The same object for all data sets
    gamma: float  # Gamma of the kernel on targets


def mean_normal_scores(data_sets: Sequence[NormalData]) -> Values:
    """Return the means of the :func:`direct_scores` of R data sets, (R,)."""
    predictive, sums = data_sets[0].predictive, np.zeros(len(data_sets))
    gamma, size = np.array([[each.gamma] for each in data_sets]), max(1, MEANS // len(predictive))
    for rows, batch in predictive.batches():
        mean, std = (each[:, 0] for each in batch.normal() or ())
        for start in range(0, len(data_sets), size):
            some = slice(start, start + size)
            away = np.stack([each.y[rows] for each in data_sets[some]]) - mean  # (R, b)
            scores = -2 * normal_kernel_mean(away, std, gamma[some])
            scores += normal_kernel_norm(std, gamma[some])
            sums[some] += scores.sum(axis=1)
    return sums / len(predictive)


def laplace_scores(y: Values, predictive: Predictive, gamma: Values, *, unbiased: bool, constant: bool) -> Values:
    """Return the scores of :func:`direct_scores` in a Laplace kernel, (n,)."""
    scores = np.empty(len(y))
    for start in range(0, len(y), ROWS):
        rows = slice(start, start + ROWS)
        batch = (predictive if len(y) <= ROWS else predictive.take(rows)).load()
        if isinstance(batch, Samples):  # only pairs of draws of the same row are needed
            embeddings: laplace_embeddings.LaplaceEmbeddings = laplace_embeddings.PairEmbeddings(batch, gamma)
        else:
            embeddings = laplace_embeddings.laplace_embeddings(batch, tuple(gamma))
        own, both = embeddings.norms(), embeddings.means_by_row(y[rows]).mean(axis=1)
        draws = batch.n_draws
        scores[rows] = (quadratic_forms.of_different(own, draws) if unbiased and draws is not None else own) - 2 * both
    if not constant:
        return scores
    own = np.array([Laplace(1.0).gram(each, each).mean() for each in y * gamma])
    return np.asarray(scores + (quadratic_forms.of_different(own, y.shape[1]) if unbiased else own))
