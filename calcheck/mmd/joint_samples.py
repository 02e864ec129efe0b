"""Distances between two samples of inputs and targets, for any division of the rows into two samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from calcheck.embeddings.pooled_outputs import PooledOutputs
from calcheck.mmd.frechet import frechet, moments
from calcheck.mmd.two_samples import PooledGram

if TYPE_CHECKING:
    from calcheck.kernels.functions import Kernel
    from calcheck.kernels.kernel_options import Estimator
    from calcheck.typing import Mask, Values


class SampleDistance(Protocol):
    """A distance between two samples."""

    def of_division(self, first: Mask) -> float:
        """Return the distance between the rows of the first sample, (n,) bool, and the others."""
        ...

    def among_permutations(self) -> SampleDistance:
        """Return the distance that is compared with that of permuted labels."""
        ...


class JointMmd:
    """Squared MMD of (input, target) in the product of the kernels on inputs and on targets."""

    def __init__(
        self,
        gram: Values,  # (n, n), product of both kernels for all pairs of rows
        statistic: Estimator,  # Estimator; see `distances`
    ) -> None:
        self._gram, self._statistic = PooledGram(gram), statistic

    def of_division(self, first: Mask) -> float:
        return float(self._gram.distances(first[None], self._statistic)[0])

    def among_permutations(self) -> JointMmd:
        return self


class OperatorMmd:
    """Squared Hilbert-Schmidt distance between the conditional embedding operators of two samples.

    With W = (K + m lambda I)^-1 for the m rows of a sample, its operator is sum_ij W_ij k_X(x_i, .) psi(y_j). The
    distance is sum_c z_c^T K z_c, where z are the rows W psi of the first sample and -W psi of the second.
    """

    def __init__(
        self,
        gram: Values,  # (n, n), kernel on inputs for all pairs of rows
        outputs: Values,  # (n, r), features psi of the targets
        lambda_: float,  # Regularizer
    ) -> None:
        self._gram, self._outputs, self._lambda = gram, outputs, lambda_

    def of_division(self, first: Mask) -> float:
        from scipy.linalg import cho_factor, cho_solve

        z = np.empty_like(self._outputs)
        for rows, sign in ((np.flatnonzero(first), 1), (np.flatnonzero(~first), -1)):
            system = self._gram[rows].take(rows, axis=1)
            system[np.diag_indices(len(rows))] += len(rows) * self._lambda
            factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
            z[rows] = sign * cho_solve(factor, self._outputs[rows], check_finite=False)
        return float(np.sum(z * (self._gram @ z)))

    def among_permutations(self) -> OperatorMmd:
        """Return the distance of what the regression of both samples together leaves of the targets.

        That regression does not depend on the labels. Without it, two samples differ mainly because regularized
        regressions of the same function differ between their inputs, which permutations change.
        """
        from scipy.linalg import solve

        system = self._gram + len(self._gram) * self._lambda * np.eye(len(self._gram))
        fitted = self._gram @ solve(system, self._outputs, assume_a="pos")
        return OperatorMmd(self._gram, self._outputs - fitted, self._lambda)


class GaussianDistance:
    """Squared Fréchet distance between Gaussian fits to the (input, target) of two samples."""

    def __init__(
        self,
        x: Values,  # (n, d), inputs
        y: Values,  # (n, t), targets
    ) -> None:
        self._x, self._y = x, y

    def of_division(self, first: Mask) -> float:
        one, other = (moments(self._x[rows], self._y[rows, None]) for rows in (first, ~first))
        return float(frechet(one, other))

    def among_permutations(self) -> GaussianDistance:
        return self


def target_features(kernel: Kernel, y: Values) -> Values:
    """Return features of targets (n, t) in a kernel, (n, r)."""
    return PooledOutputs.from_kernel(kernel, y).values
