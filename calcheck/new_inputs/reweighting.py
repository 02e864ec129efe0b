"""Weights of tested rows with which they stand for new ones, doubly robust."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calcheck.embeddings.leave_one_out import LAMBDAS, LeaveOneOut
from calcheck.execution.backend import backend
from calcheck.kernels.bandwidths import sample_inputs
from calcheck.kernels.kernel_functions import Rbf
from calcheck.linalg.gram import Nystroem
from calcheck.new_inputs.density_ratio import DensityRatio
from calcheck.new_inputs.positions import median_gamma
from calcheck.typing import Values

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
