"""Weights with which tested rows stand for new ones, doubly robust, and the new rows that would add most to them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from calcheck.embeddings.local_error import LAMBDAS, LeaveOneOut
from calcheck.execution.backend import backend
from calcheck.kernels.bandwidths import sample_inputs
from calcheck.kernels.kernel_functions import Rbf
from calcheck.linalg.gram import Nystroem
from calcheck.new_inputs.positions import median_gamma
from calcheck.typing import Indices, Mask, Values

CENTERS = 100  # Most centers of kernels, which are new rows
WIDTHS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)  # Squared widths that are tried, relative to the median squared distance
RIDGES = (0.001, 0.01, 0.1, 1.0, 10.0)  # Regularizers that are tried
FOLDS = 5


class _Loss(NamedTuple):
    """The parts of the squared loss of a density ratio, up to a constant."""

    square: Values  # (b, b), mean over tested rows of the products of kernel values
    linear: Values  # (b,), mean over new rows of the kernel values

    def coefficients(self, ridge: float) -> Values:
        """Return the coefficients with the smallest loss, where negative ones are set to 0."""
        system = self.square + ridge * np.eye(len(self.linear))
        return np.asarray(np.maximum(np.linalg.solve(system, self.linear), 0))

    def at(self, coefficients: Values) -> float:
        return float(coefficients @ self.square @ coefficients / 2 - self.linear @ coefficients)


@dataclass(frozen=True, eq=False)
class DensityRatio:
    r"""The density of new inputs relative to that of tested ones, by least squares (uLSIF).

    .. math:: w(x) = \sum_b \alpha_b k(x, c_b), \quad
              \alpha = \max\left(0, \left(\tfrac1n \sum_i k_i k_i^T + \lambda I\right)^{-1} \tfrac1m \sum_j k_j\right)

    for the vectors k of the kernel values of tested rows i and of new rows j with some new rows c. The width of the
    kernel and the regularizer have the smallest loss in cross-validation.

    Source: Kanamori, Hido, Sugiyama (2009), "A least-squares approach to direct importance estimation".
    """

    tested: Values  # (n, b), kernel values of the tested rows with the centers
    new: Values  # (m, b), those of the new rows
    ridge: float
    kernel_values: Callable[[Values], Values] = np.asarray  # Returns those of scaled inputs (k, d), (k, b)

    @classmethod
    def from_inputs(cls, tested: Values, new: Values, rng: Generator) -> "DensityRatio":
        """Return the ratio that fits scaled inputs (n, d) and (m, d) best."""
        centers = new[np.sort(rng.permutation(len(new))[:CENTERS])]
        gamma = median_gamma(np.concatenate([sample_inputs(each, CENTERS * 10) for each in (tested, new)]))
        tried = (cls._with_width(gamma / width, centers, tested, new) for width in WIDTHS)
        _, best = min(tried, key=lambda each: each[0])
        return best

    @classmethod
    def _with_width(cls, gamma: float, centers: Values, tested: Values, new: Values) -> "tuple[float, DensityRatio]":
        """Return the smallest loss in cross-validation of a kernel, and the ratio that has it."""
        kernel = Rbf(gamma=gamma)
        values = partial(_kernel_values, kernel, centers)
        found = cls(values(tested), values(new), RIDGES[0], values)
        folds = list(found._folds())
        losses = [sum(out.at(rest.coefficients(ridge)) for rest, out in folds) for ridge in RIDGES]
        place = int(np.argmin(losses))
        return losses[place], replace(found, ridge=RIDGES[place])

    def _folds(self) -> Iterator[tuple[_Loss, _Loss]]:
        """Yield the losses of the rows outside of each fold, and of those in it."""
        parts = [_Loss(one.T @ one, other.sum(axis=0)) for one, other in self._parts()]
        square, linear = sum(part.square for part in parts), sum(part.linear for part in parts)
        for part, (one, other) in zip(parts, self._parts(), strict=True):
            n, m = len(self.tested) - len(one), len(self.new) - len(other)
            rest = _Loss((square - part.square) / n, (linear - part.linear) / m)
            yield rest, _Loss(part.square / len(one), part.linear / len(other))

    def _parts(self) -> list[tuple[Values, Values]]:
        folds = min(FOLDS, len(self.new))
        return [(self.tested[place::folds], self.new[place::folds]) for place in range(folds)]

    def with_new_rows(self) -> "DensityRatio":
        """Return the same with the new rows after the tested ones, as if their targets were known."""
        return replace(self, tested=np.concatenate([self.tested, self.new]))

    def weights(self, counts: Values, new_counts: Values) -> Values:
        """Return the ratio at each tested row, (n,), fitted to rows that occur several times: (n,) and (m,) counts."""
        return np.asarray(self.tested @ self._coefficients(counts, new_counts))

    def at(self, x: Values) -> Values:
        """Return the ratio at scaled inputs (k, d), (k,)."""
        return np.asarray(self.kernel_values(x) @ self._once)

    @cached_property
    def _once(self) -> Values:
        return self._coefficients(np.ones(len(self.tested)), np.ones(len(self.new)))

    def _coefficients(self, counts: Values, new_counts: Values) -> Values:
        drawn = counts > 0
        some = self.tested[drawn]
        square = (some * counts[drawn, None]).T @ some / counts.sum()
        return _Loss(square, new_counts @ self.new / new_counts.sum()).coefficients(self.ridge)


def _kernel_values(kernel: Rbf, centers: Values, x: Values) -> Values:
    return np.asarray(kernel.gram(x, centers))


LANDMARKS, DIRECTIONS = 500, 100  # Most landmarks of the regression, and most directions in the space of its features
GAMMA = 0.5  # Of its kernel, times the median squared distance
SMALLEST = 0.05  # Least part of a row's error that it does not explain itself


def local_regression(x: Values) -> LeaveOneOut:
    """Return the kernel regression on scaled inputs (n, d), which also predicts at others."""
    landmarks = np.asarray(sample_inputs(x, LANDMARKS))
    kernel = Rbf(gamma=GAMMA * median_gamma(landmarks))
    features = Nystroem.from_eigenvectors(kernel, landmarks, backend(None, "float64"), smallest_share=1e-12)
    found = LeaveOneOut.from_features(lambda points: np.asarray(features(points)), x)
    extension = found.extension
    kept = slice(max(0, len(found.eigenvalues) - DIRECTIONS), None)
    return replace(
        found,
        basis=found.basis[:, kept],
        eigenvalues=found.eigenvalues[kept],
        extension=lambda points: extension(points)[:, kept] if extension is not None else points,
    )


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of tested rows, (n,) each."""

    ratio: Values  # The density ratio
    robust: Values  # Those of the doubly robust estimate; their sum is 1, and some may be negative

    @property
    def effective_rows(self) -> float:
        """How many rows count: as many equal weights have the same variance."""
        return float(self.ratio.sum() ** 2 / np.square(self.ratio).sum()) if self.ratio.any() else 0.0


@dataclass(frozen=True, eq=False)
class Reweighting:
    r"""Estimates of the mean of an output at new rows, from tested ones.

    .. math:: \hat\theta = \frac1m \sum_j \hat p(x_j') + \frac{\sum_i w_i (u_i - \hat p_{-i}(x_i))}{\sum_i w_i}

    with the outputs u of the tested rows, their kernel ridge regression p at the new rows, and without its own row at
    tested ones, and the density ratio w. It is right if one of both is, and is a weighted sum of the outputs.

    Source: Bang, Robins (2005), "Doubly robust estimation in missing data and causal inference models".
    """

    ratio: DensityRatio
    tested: Values  # (n, q), basis of the regression
    new: Values  # (m, q), the same at new rows
    eigenvalues: Values  # (q,)
    lambda_: float

    @cached_property
    def _basis(self) -> Values:
        return np.column_stack([np.full(len(self.tested), len(self.tested) ** -0.5), self.tested])

    def weights(self, counts: Values | None = None, new_counts: Values | None = None) -> Weights:
        """Return the weights if rows occur several times, (n,) and (m,) counts; once by default."""
        counts = np.ones(len(self.tested)) if counts is None else counts
        new_counts = np.ones(len(self.new)) if new_counts is None else new_counts
        ratio = self.ratio.weights(counts, new_counts) * counts
        basis, scaled = self._basis, self._basis * counts[:, None]
        system = basis.T @ scaled
        system[np.diag_indices(len(system))] += np.append(0.0, self.lambda_ / self.eigenvalues)
        inverse = np.linalg.inv(system)
        leverage = np.einsum("iq,iq->i", scaled @ inverse, basis)
        target = np.append(basis[0, 0], new_counts @ self.new / new_counts.sum())
        outside = ratio / max(ratio.sum(), np.finfo(float).tiny) / np.maximum(1 - leverage, SMALLEST)
        return Weights(ratio, scaled @ (inverse @ (target - basis.T @ outside)) + outside)


def with_regularizer(regression: LeaveOneOut, outputs: Values, ratio: DensityRatio, new: Values) -> Reweighting:
    """Return the reweighting with the regularizer that predicts outputs (n, c) of left-out rows best, together."""
    errors = regression.covariances(outputs - outputs.mean(axis=0)).errors.sum(axis=1)
    extension = regression.extension
    if extension is None:
        raise ValueError("the regression does not predict at other inputs")
    lambda_ = LAMBDAS[int(errors.argmin())]
    return Reweighting(ratio, regression.basis, extension(new), regression.eigenvalues, lambda_)


STEPS = 50  # Most times that the ratio is fitted


def choose_labels(ratio: DensityRatio, count: int, known: Mask) -> Indices:
    """Return the places of new rows to label, the most useful first; those with ``known`` targets (m,) are left out.

    The variance of an estimate with ideal weights is proportional to the mean of the density ratio over the new rows. A
    further row takes most of it away where the ratio is largest. So that row is added, the ratio is fitted again, which
    makes it smaller near the row, and so on.
    """
    n, m = len(ratio.tested), len(ratio.new)
    together, once = ratio.with_new_rows(), np.ones(m)
    counts = np.concatenate([np.ones(n), np.zeros(m)])
    chosen: list[int] = []
    size = -(-count // STEPS)
    most = min(count, m - int(known.sum()))
    while len(chosen) < most:
        found = together.weights(counts, once)[n:]
        found[chosen], found[known] = -1.0, -1.0
        best = np.argsort(-found, kind="stable")[: min(size, most - len(chosen))]
        chosen += best.tolist()
        counts[n + best] = 1.0
    return np.array(chosen, dtype=np.intp)
