"""Data and model as embeddings, a row each: what metrics of joint distributions sum over rows and pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from calcheck.embeddings.output_features import FeatureError
from calcheck.embeddings.rescaled_features import DataSet, SharedFeatures, SwappedDraw, eigenvectors
from calcheck.execution.prefetch import one_blas_thread
from calcheck.mmd.pair_sums import of_different
from calcheck.mmd.quadratic_forms import QuadraticForm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.random import Generator
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.embeddings.output_features import OutputFeatures
    from calcheck.execution.context import Progress
    from calcheck.kernels.kernel_options import Estimator
    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]

BLOCK_VALUES = 1 << 24  # numbers of data sets that are summed over pairs together, 128 MiB
LEFT_OUT = 1e-10  # share of |a - b|^2 that the directions kept of a replicate may miss


@dataclass(frozen=True, eq=False)
class JointEmbedding:
    """Mean embeddings of the targets and of the predictive distribution of each row.

    Parameters
    ----------
    observed : (n, q)
        a_i, the mean of psi over the row's targets.
    predicted : (n, q)
        b_i, the mean of psi over the row's draws, or over its distribution.
    targets : int
        How many targets a row has, r.
    draws : int, optional
        How many draws, l; None if the distributions are known.
    """

    observed: Values
    predicted: Values
    targets: int
    draws: int | None

    @property
    def difference(self) -> Values:
        """delta_i = a_i - b_i, (n, q)."""
        return self.observed - self.predicted

    def halves(self) -> tuple[JointEmbedding, JointEmbedding]:
        """Return the first half of the rows, and the second."""
        n = len(self.observed) // 2
        first, second = (
            JointEmbedding(self.observed[rows], self.predicted[rows], self.targets, self.draws)
            for rows in (slice(n), slice(n, None))
        )
        return first, second

    def form(self, estimator: Estimator) -> QuadraticForm:
        """Return the sum over pairs that estimates the squared joint MMD.

        With every pair it is sum_ij K_ij delta_i . delta_j / n^2; without those of a row with itself, over n (n - 1),
        it is unbiased; the paper's leaves out a draw's pair with itself only, and what has the targets alone.
        """
        n = len(self.observed)
        if estimator == "v":
            return QuadraticForm(self.difference, np.zeros(n), 1 / n**2)
        if estimator == "unbiased":
            scale = 1 / (n * (n - 1)) if n > 1 else np.nan
            return QuadraticForm(self.difference, scale * np.sum(self.difference**2, axis=1), scale)
        own = 0.0 if self.draws is None else 1 / (n * (n * self.draws - 1))
        others = 1 / n**2 if self.draws is None else self.draws * own
        return QuadraticForm(
            self.predicted, np.full(n, own), others, others * self.predicted - 2 / n**2 * self.observed
        )

    def scores(self, *, unbiased: bool, constant: bool) -> Values:
        """Return -2 a_i . b_i + |b_i|^2, (n,); without a draw's product with itself, if unbiased.

        With the constant comes |a_i|^2, without a target's product with itself.
        """
        scores = _dots(self.predicted, self.predicted)
        if unbiased and self.draws is not None:
            scores = of_different(scores, self.draws)
        scores = scores - 2 * _dots(self.observed, self.predicted)
        if not constant:
            return scores
        own = _dots(self.observed, self.observed)
        return scores + (of_different(own, self.targets) if unbiased else own)


def _dots(a: Values, b: Values) -> Values:
    """Return a_i . b_i, (n,)."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def embed(features: OutputFeatures, rows: Predictions, predictive: Predictive) -> tuple[JointEmbedding, FeatureError]:
    """Embed targets and distributions; also return what the features leave out."""
    y = repeated_targets(rows)
    points = features.of_points(y.reshape(-1, y.shape[2]))
    bounds = FeatureError(features, points)
    observed = points.reshape(len(y), y.shape[1], -1).mean(axis=1)
    return JointEmbedding(observed, bounds.embed(predictive), y.shape[1], predictive.n_draws), bounds


def repeated_targets(rows: Predictions) -> Values:
    """Return the targets with an axis for repeats, (n, r, t)."""
    y = rows.targets()
    return y if rows.repeated else y.reshape(len(y), 1, -1)


def blocks(
    data_sets: Iterable[JointEmbedding | None], count: int, progress: Progress
) -> Iterator[list[JointEmbedding | None]]:
    """Yield so many data sets at a time that products with them are worth a pass over the pairs."""
    block: list[JointEmbedding | None] = []
    for number, each in enumerate(data_sets):
        block.append(each)
        progress("simulating", (number + 1) / count)
        if sum(one.predicted.size for one in block if one is not None) >= BLOCK_VALUES:
            yield block
            block = []
    if block:
        yield block


def embed_replicates(
    rows: Predictions,
    replicates: Iterator[Predictions],
    gamma_of: Callable[[Values], Values | None],
    predictive: Predictive,
    rng: Callable[[], Generator],
    *,
    apart: bool,
) -> Iterator[JointEmbedding | None]:
    """Embed the data, and then replicates of the targets, each by a kernel on targets of its own.

    Parameters
    ----------
    rows : Predictions
        The data.
    replicates : iterator of Predictions
        The same rows with other targets; with draws of which some have changed places with them, if draws are known.
    gamma_of : callable
        Returns the scale of the kernel on targets for (p, t) targets; None where these have none.
    predictive : Predictive
        The distributions of the data.
    rng : callable
        Makes the generator that chooses among elements that are too many.
    apart : bool
        Whether only a - b matters: it has fewer directions.

    Yields
    ------
    Embedded or None
        None where the targets have no scale.
    """

    def data_set(each: Predictions) -> DataSet:
        y = repeated_targets(each)
        moved = predictive.n_draws is not None and each.predictive is not predictive
        return DataSet(y, gamma_of(y.reshape(-1, y.shape[2])), [SwappedDraw(predictive) if moved else predictive])

    data = data_set(rows)
    shared = SharedFeatures(data, predictive, rng)
    repeats = data.y.shape[1]
    for each in chain([data], map(data_set, replicates)):
        if each.gamma is None:
            yield None
            continue
        with one_blas_thread():  # many small products
            observed, (predicted,), norm, _ = shared.rescaled(each)
            kept = _directions(observed - predicted, norm) if apart else norm
            found = JointEmbedding(observed @ kept, predicted @ kept, repeats, predictive.n_draws)
        yield found


def _directions(features: Values, norm: Values) -> Values:
    """Return what turns features (n, f) into coordinates (n, q) in the directions in which they vary most.

    |features norm| are the norms by the kernel.
    """
    sizes, turns = eigenvectors(norm.T @ (features.T @ features) @ norm)
    left_out = np.cumsum(np.maximum(sizes, 0))
    return np.asarray(norm @ turns[:, left_out > LEFT_OUT * left_out[-1]])
