"""Features of the Laplace kernel on targets: factors of the Gram matrix of all targets and distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions import Samples
from calcheck.embeddings.exact_features import ExactFeatures
from calcheck.embeddings.laplace_embeddings import laplace_embeddings
from calcheck.embeddings.rescaled_features import OfDistributions, SwappedDraw, by_row
from calcheck.kernels.functions import Laplace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.embeddings.laplace_embeddings import LaplaceEmbeddings
    from calcheck.embeddings.rescaled_features import DataSet
    from calcheck.execution.context import Run

    Values = NDArray[np.float64]

TOLERANCE = 1e-12  # Largest residual of a squared norm
ERROR = 1e-11  # Error of the mean embeddings
COPIES = 3  # Copies of the Gram matrix in memory


@dataclass(frozen=True, eq=False)
class LaplaceFeatures:
    """Features psi with psi(u) . psi(v) = exp(-sum_c gamma_c |u_c - v_c|), for targets and distributions together.

    Each target and each distribution is a feature by itself, so their number grows with the rows.

    Parameters
    ----------
    gamma : (t,)
        Parameter of the kernel for each target column.
    run : Run
        Memory limit.
    """

    gamma: Values
    run: Run

    @property
    def rank(self) -> int:
        """Number of features that are known without the data: none."""
        return 0

    def embed(self, points: Values, models: Iterable[Predictive]) -> tuple[Values, Iterator[Values], ExactFeatures]:
        """Return the features of targets (p, t), and of the n distributions of each trial.

        Raises
        ------
        OptionError
            The Gram matrix of all targets and distributions exceeds the memory limit.
        """
        first, *others = models
        every = first.load().join([each.load() for each in others])
        size = len(points) + len(every)
        self.run.require_room(
            COPIES * 8 * size**2, f"--kernel-y laplace, with all pairs of {size:,} targets and predictions,"
        )
        embeddings = laplace_embeddings(every, tuple(self.gamma))
        features = _factor(_gram(self.gram(points), embeddings.means(points), embeddings.products()))
        predicted = features[len(points) :].reshape(1 + len(others), len(first), -1)
        error = ExactFeatures(features.shape[1], TOLERANCE, TOLERANCE, ERROR)
        return features[: len(points)], iter(predicted), error

    def gram(self, points: Values) -> Values:
        """Return the kernel of all pairs of points (p, t), (p, p)."""
        scaled = points * self.gamma
        return np.asarray(Laplace(1.0).gram(scaled, scaled))

    def mean_norms(self, points: Values) -> Values:
        """Return the mean of |psi(u)|^2 over the points (n, r, t) of each row, (n,): 1."""
        return np.ones(len(points))


class SharedLaplace:
    """Features of the targets and distributions of many data sets in one Laplace kernel.

    Parameters
    ----------
    data : DataSet
        The data, as opposed to the replicates; all have its gamma.
    features : LaplaceFeatures
        The kernel.
    differences : bool
        Whether only the differences of the features of targets and of distributions are used; they are cheaper.
    """

    def __init__(self, data: DataSet, features: LaplaceFeatures, *, differences: bool) -> None:
        self._data, self._features, self._differences = data, features, differences
        self._own = OfDistributions(data, self._with_products)
        self._pooled = OfDistributions(data, lambda draws: self._with_products(self._with_targets(draws)))

    def rescaled(self, each: DataSet) -> tuple[Values, list[Values], None, None]:
        """Return features, as :meth:`calcheck.embeddings.rescaled_features.SharedFeatures.rescaled`."""
        if len(each.model) > 1 or not self._differences:
            return self._of_all(each)
        (one,) = each.model
        embeddings, products = self._embedded(one)
        own, between = self._observed(each.y, embeddings)
        squares = self._stretch(one) ** 2 * (own - between - between.T + products)
        features = _factor(squares)
        return features, [np.zeros_like(features)], None, None

    def _of_all(self, each: DataSet) -> tuple[Values, list[Values], None, None]:
        """Return features of the targets, and of the distributions of all trials."""
        n = len(each.y)
        if len(each.model) == 1:
            embeddings, products = self._embedded(each.model[0])
        else:
            first, *others = (one.load() for one in each.model if not isinstance(one, SwappedDraw))
            embeddings = laplace_embeddings(first.join(list(others)), tuple(self._features.gamma))
            products = embeddings.products()
        features = _factor(_gram(*self._observed(each.y, embeddings), products))
        observed = features[:n]
        pooled = features[n:].reshape(len(each.model), n, -1)
        model = [
            observed - self._stretch(one) * (observed - mean) for one, mean in zip(each.model, pooled, strict=True)
        ]
        return observed, model, None, None

    def _embedded(self, one: Predictive | SwappedDraw) -> tuple[LaplaceEmbeddings, Values]:
        """Return the embeddings of distributions, or of the targets and draws of each row, and their products."""
        return self._pooled(one.draws) if isinstance(one, SwappedDraw) else self._own(one)

    def _with_products(self, predictive: Predictive) -> tuple[LaplaceEmbeddings, Values]:
        embeddings = laplace_embeddings(predictive, tuple(self._features.gamma))
        return embeddings, embeddings.products()

    def _with_targets(self, predictive: Predictive) -> Samples:
        """Return the draws together with the targets of the data."""
        n, columns = len(self._data.y), self._data.y.shape[-1]
        draws = _draws(predictive).reshape(n, -1, columns)
        return Samples(np.concatenate([self._data.y.reshape(n, -1, columns), draws], axis=1))

    def _stretch(self, one: Predictive | SwappedDraw) -> float:
        """Return (m + r) / m for r targets among m + r exchanged values, so that a - b = (m + r) / m (a - pooled)."""
        return 1 + self._data.repeats / (one.draws.n_draws or 1) if isinstance(one, SwappedDraw) else 1.0

    def _observed(self, y: Values, embeddings: LaplaceEmbeddings) -> tuple[Values, Values]:
        """Return the products of the targets' features with each other, and with the distributions, (n, n) each."""
        points = y.reshape(-1, y.shape[-1])
        own = by_row(by_row(self._features.gram(points), y).T, y)
        return own, by_row(embeddings.means(points), y)


def _draws(predictive: Predictive) -> Values:
    """Return the draws of samples, (n, m) or (n, m, t).

    Raises
    ------
    TypeError
        The distributions are not samples.
    """
    samples = predictive.load()
    if not isinstance(samples, Samples):
        msg = f"exchanged draws need samples, got {type(samples).__name__}"
        raise TypeError(msg)
    return samples.draws


def _gram(observed: Values, between: Values, predicted: Values) -> Values:
    """Return the Gram matrix of targets and distributions."""
    return np.block([[observed, between], [between.T, predicted]])


def _factor(gram: Values) -> Values:
    """Return features with the inner products of a positive semidefinite Gram matrix, (p, r), by pivoted Cholesky."""
    from scipy.linalg.lapack import dpstrf

    factor, order, rank, _ = dpstrf(gram, tol=TOLERANCE, lower=1)
    features = np.zeros((len(gram), rank))
    features[order - 1] = np.tril(factor)[:, :rank]
    return features
