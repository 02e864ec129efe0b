"""Two samples: their outputs, and their maximum mean discrepancies."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from calcheck.core import la
from calcheck.embeddings.distance import Distances
from calcheck.embeddings.ridge import Dof, KernelRidge
from calcheck.execution.run import Run
from calcheck.kernels import Estimator, Solver
from calcheck.kernels.bandwidths import neighbors
from calcheck.kernels.kernel_functions import Kernel, Polynomial
from calcheck.mmd.frechet import frechet, moments
from calcheck.typing import Mask, Values

BLOCK = 256  # Permutations per product with the kernel matrix


class TwoSamples:
    """Kernel ridge regressions on the normalized inputs (n, d) of two samples, each with half of the memory."""

    def __init__(self, kernel: Kernel, inputs: Sequence[Values], solver: Solver, run: Run) -> None:
        half = replace(run, memory=run.memory // 2)
        self.kernel = kernel
        self.ridges = [KernelRidge(kernel, x, half, solver=solver) for x in inputs]

    def distances(
        self, outputs: Sequence[Values], lambdas: tuple[float, float], points: Values
    ) -> tuple[Distances, tuple[Dof, Dof]]:
        """Return the distances between the two embeddings. Shapes: outputs (n, r) each, points (m, d)."""
        fits = zip(self.ridges, outputs, lambdas, strict=True)
        own, other = (ridge.solve(psi, lambda_, subtracted=True) for ridge, psi, lambda_ in fits)
        pairs = zip(self.ridges, (own.coefficients, other.coefficients), strict=True)
        first, second = (np.concatenate(list(ridge.predict(points, each))) for ridge, each in pairs)
        found = Distances(
            np.linalg.norm(first - second, axis=1)[None],
            own.dof,
            own.iterations + other.iterations,
            max(own.residual, other.residual),
            np.empty(0),
            max(float(np.sqrt(np.mean(np.sum(psi**2, axis=1)))) for psi in outputs),
            max(own.preconditioner, other.preconditioner),
        )
        return found, (own.dof, other.dof)

    def neighbors(self) -> float | None:
        """Return the effective neighbors per row in the sample that has fewer; None for polynomial kernels."""
        if isinstance(self.kernel, Polynomial):
            return None
        return min(neighbors(self.kernel, ridge.backend.to_numpy(ridge.x)) for ridge in self.ridges)


class PooledGram:
    """The kernel (n, n) on all pairs of the pooled rows of two samples."""

    def __init__(self, gram: Values) -> None:
        self._gram = gram
        self._diagonal = np.diag(gram).copy()
        self._sums = gram.sum(axis=1)

    def distances(self, labels: Mask, statistic: Estimator = "unbiased") -> Values:
        r"""Return the squared MMD of several divisions (r, n) of the rows into two samples, (r,).

        .. math:: \frac{\sum_{i \ne j} k(a_i, a_j)}{n (n - 1)} + \frac{\sum_{i \ne j} k(b_i, b_j)}{m (m - 1)}
                  - \frac{2}{n m} \sum_{i, j} k(a_i, b_j)
        """
        first = labels.astype(np.float64)
        n = int(labels[0].sum())
        m = labels.shape[1] - n
        within = np.einsum("ri,ri->r", first @ self._gram, first)
        to_all, own = first @ self._sums, first @ self._diagonal
        between = to_all - within
        others = self._sums.sum() - to_all - between
        other_own = self._diagonal.sum() - own
        if statistic == "v":
            return np.asarray(within / n**2 + others / m**2 - 2 * between / (n * m))
        model = (others - other_own) / (m * (m - 1)) - 2 * between / (n * m)
        return np.asarray(model if statistic == "paper" else (within - own) / (n * (n - 1)) + model)

    def permuted(self, divisions: Iterator[Mask]) -> Iterator[Values]:
        """Yield the distances of permutations of the labels, (n,) each, in blocks."""
        while block := list(islice(divisions, BLOCK)):
            yield self.distances(np.stack(block))


class SampleDistance(ABC):
    """A distance between two samples."""

    @abstractmethod
    def of_division(self, first: Mask) -> float:
        """Return the distance between the rows of the first sample, (n,) bool, and the others."""

    def among_permutations(self) -> "SampleDistance":
        """Return the distance that is compared with that of permuted labels."""
        return self


@dataclass(frozen=True, eq=False)
class JointMmd(SampleDistance):
    """Squared MMD of (input, target) in the product of the kernels on inputs and on targets."""

    gram: PooledGram  # Product of both kernels for all pairs of rows
    statistic: Estimator

    def of_division(self, first: Mask) -> float:
        return float(self.gram.distances(first[None], self.statistic)[0])


@dataclass(frozen=True, eq=False)
class OperatorMmd(SampleDistance):
    """Squared Hilbert-Schmidt distance between the conditional embedding operators of two samples.

    With W = (K + m lambda I)^-1 for the m rows of a sample, its operator is sum_ij W_ij k_X(x_i, .) psi(y_j). The
    distance is sum_c z_c^T K z_c, where z are the rows W psi of the first sample and -W psi of the second.
    """

    gram: Values  # (n, n), kernel on inputs for all pairs of rows
    outputs: Values  # (n, r), features psi of the targets
    lambda_: float  # Regularizer

    def of_division(self, first: Mask) -> float:
        z = np.empty_like(self.outputs)
        for rows, sign in ((np.flatnonzero(first), 1), (np.flatnonzero(~first), -1)):
            system = self.gram[rows].take(rows, axis=1)
            system[np.diag_indices(len(rows))] += len(rows) * self.lambda_
            factor = la.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
            z[rows] = sign * la.cho_solve(factor, self.outputs[rows], check_finite=False)
        return float(np.sum(z * (self.gram @ z)))

    def among_permutations(self) -> "OperatorMmd":
        """Return the distance of what one regression of both samples leaves, as regressions differ at other inputs."""
        system = self.gram + len(self.gram) * self.lambda_ * np.eye(len(self.gram))
        fitted = self.gram @ la.solve(system, self.outputs, assume_a="pos")
        return OperatorMmd(self.gram, self.outputs - fitted, self.lambda_)


@dataclass(frozen=True, eq=False)
class GaussianDistance(SampleDistance):
    """Squared Fréchet distance between Gaussian fits to the (input, target) of two samples."""

    x: Values  # (n, d), inputs
    y: Values  # (n, t), targets

    def of_division(self, first: Mask) -> float:
        one, other = (moments(self.x[rows], self.y[rows, None]) for rows in (first, ~first))
        return float(frechet(one, other))
