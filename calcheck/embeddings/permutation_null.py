"""Two samples whose rows may change places: conditional mean embeddings of both, for many labelings of the rows.

Each labeling is a regression of its own, on other inputs. A kernel of low rank on the inputs of both samples, as
smooth kernels have, makes them small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.distributions import Samples
from calcheck.embeddings.rescaled_features import DataSet, SharedFeatures
from calcheck.execution.context import RandomStream
from calcheck.execution.prefetch import one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray

    from calcheck.embeddings.strata import Strata
    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel

    Values = NDArray[np.float64]

LEFT_OUT = 1e-12  # of a kernel's diagonal, that its low rank may miss
WORTH = 4  # rows a centre from which on a low rank is cheaper than the whole
WHOLE_ROWS = 4096  # of both samples, up to which the whole is affordable
MOST_CENTRES = 1024
SAMPLES = 2


class InputKernel(ABC):
    """The kernel on the inputs of both samples, and between them and the points where embeddings are compared.

    Parameters
    ----------
    same : (n,)
        A number for each input: rows with the same one have the same input.
    """

    method: str

    def __init__(self, same: NDArray[np.intp]) -> None:
        self.same = same
        self._factors: dict[tuple[float, bytes], Any] = {}

    def regressed(self, rows: NDArray[np.intp], outputs: Values, ridge: float) -> Values:
        """Regress outputs (n, c) of some n rows on their inputs; return the regression at the points, (m, c)."""
        from scipy.linalg import cho_factor

        key = ridge, self.same[rows].tobytes()
        if key not in self._factors:
            if len(self._factors) == SAMPLES:
                self._factors.clear()
            system = self._system(rows)
            system[np.diag_indices(len(system))] += len(rows) * ridge
            self._factors[key] = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return self._solved(self._factors[key], rows, outputs)

    @abstractmethod
    def _system(self, rows: NDArray[np.intp]) -> Values:
        """Return what is factorized, but for its diagonal."""

    @abstractmethod
    def _solved(self, factor: Any, rows: NDArray[np.intp], outputs: Values) -> Values:
        """Return the regression at the points."""

    @property
    def details(self) -> dict[str, Any]:
        """Say how it is had."""
        return {"method": self.method}


class FullKernel(InputKernel):
    """k(points, x) (K + n lambda I)^-1 R.

    Parameters
    ----------
    same : (n,)
        As :class:`InputKernel` takes it.
    gram : (n, n)
        K of all rows.
    at : (m, n)
        k(points, x).
    """

    method = "full"

    def __init__(self, same: NDArray[np.intp], gram: Values, at: Values) -> None:
        super().__init__(same)
        self.gram, self.at = gram, at

    def _system(self, rows: NDArray[np.intp]) -> Values:
        return self.gram[rows].take(rows, axis=1)  # several times faster than both at once

    def _solved(self, factor: Any, rows: NDArray[np.intp], outputs: Values) -> Values:
        from scipy.linalg import cho_solve

        coefficients = np.zeros((len(self.gram), outputs.shape[1]))
        coefficients[rows] = cho_solve(factor, outputs, check_finite=False)
        return self.at @ coefficients


class LowRankKernel(InputKernel):
    """Z(points) (Z^T Z + n lambda I)^-1 Z^T R, with K about Z Z^T.

    Parameters
    ----------
    same : (n,)
        As :class:`InputKernel` takes it.
    rows : (n, q)
        Z.
    at : (m, q)
        Z(points).
    missed : float
        The largest share of the kernel's diagonal that Z Z^T misses.
    """

    method = "low rank"

    def __init__(self, same: NDArray[np.intp], rows: Values, at: Values, missed: float) -> None:
        super().__init__(same)
        self.rows, self.at, self.missed = rows, at, missed

    def _system(self, rows: NDArray[np.intp]) -> Values:
        return np.asarray(self.rows[rows].T @ self.rows[rows])

    def _solved(self, factor: Any, rows: NDArray[np.intp], outputs: Values) -> Values:
        from scipy.linalg import cho_solve

        return np.asarray(self.at @ cho_solve(factor, self.rows[rows].T @ outputs, check_finite=False))

    @property
    def details(self) -> dict[str, Any]:
        return {"method": self.method, "rank": self.rows.shape[1], "relative_error": self.missed}


def pivoted_cholesky(kernel: Kernel, x: Values, points: Values, most: int) -> LowRankKernel:
    """Make Z by pivoted Cholesky: the input that is represented worst becomes a centre next.

    Parameters
    ----------
    kernel : Kernel
        k_X.
    x : (n, d)
        Normalized inputs of both samples.
    points : (m, d)
        Normalized inputs at which embeddings are compared.
    most : int
        Centres.
    """
    everything = np.concatenate([x, points])
    left_out = np.asarray(kernel.diagonal(x), dtype=np.float64)
    diagonal = left_out.copy()
    factor = np.zeros((most, len(everything)))  # (q, n + m): rows grow at the end
    rank = 0
    while rank < most and (left_out > LEFT_OUT * diagonal).any():
        pivot = int(np.argmax(left_out))
        column = kernel.gram(everything, x[pivot : pivot + 1])[:, 0] - factor[:rank, pivot] @ factor[:rank]
        factor[rank] = column / np.sqrt(left_out[pivot])
        left_out = np.maximum(left_out - factor[rank, : len(x)] ** 2, 0)
        left_out[pivot] = 0.0
        rank += 1
    missed = float((left_out / diagonal).max())
    _, same = np.unique(x, axis=0, return_inverse=True)
    return LowRankKernel(same.ravel(), factor[:rank, : len(x)].T.copy(), factor[:rank, len(x) :].T.copy(), missed)


def input_kernel_of(kernel: Kernel, x: Values, points: Values, run: Run) -> tuple[InputKernel, LowRankKernel]:
    """Choose how the kernel on inputs is had; return its low-rank form too, however much that misses."""
    affordable = max(1, run.memory // (4 * 8 * (len(x) + len(points))))
    low = pivoted_cholesky(kernel, x, points, min(MOST_CENTRES, max(1, len(x) // WORTH), affordable))
    fits = len(x) <= WHOLE_ROWS and 8 * len(x) * (len(x) + len(points)) <= run.memory
    if low.missed > LEFT_OUT and fits:
        return FullKernel(low.same, kernel.gram(x, x), kernel.gram(points, x)), low
    return low, low


@dataclass(frozen=True, eq=False)
class PermutationNull:
    """What the samples and other labelings of their rows give, the samples first.

    Parameters
    ----------
    values : (1 + R,)
        The mean over points of |U_A(x) - U_B(x)|, by each one's own kernel on targets; NaN for those without.
    at_points : (1 + R, m)
        The same at each of m points, by the samples' kernel on targets.
    """

    values: Values
    at_points: Values


def permutation_null(
    kernel: InputKernel,
    y: Values,
    groups: Strata,
    count: int,
    *,
    bandwidths: Callable[[Values], Values | None],
    lambdas: tuple[float, float],
    rng: Generator,
    run: Run,
) -> PermutationNull:
    """Compare the embeddings of two samples, and those after each of R permutations of labels.

    Parameters
    ----------
    kernel : InputKernel
        The kernel on inputs.
    y : (n, t)
        Targets of both samples.
    groups : Strata
        The rows' labels, and the groups in which they are permuted.
    count : int
        R.
    bandwidths : callable
        Returns the kernel on targets that the first sample's targets have, (t,), or None.
    lambdas : (float, float)
        Regularizers of the two embeddings.
    rng : Generator
        Permutes.
    run : Run
        Seed and progress.
    """
    # group by group, so that labels which change places among equal inputs leave each sample's inputs as they were
    order = np.argsort(groups.group, kind="stable")
    shared = SharedFeatures(
        DataSet(y, bandwidths(y[groups.labels]), []), Samples(y[:, None]), lambda: run.rng(RandomStream.FEATURES)
    )
    values, at_points = np.full(1 + count, np.nan), []
    for number, labels in enumerate(chain([groups.labels], groups.permuted(rng, count))):
        samples = [order[labels[order]], order[~labels[order]]]
        each = DataSet(y, bandwidths(y[samples[0]]), [])
        if each.gamma is not None:
            with one_blas_thread():  # many small products
                observed, _, own, fixed = shared.rescaled(each)
                first, second = (
                    kernel.regressed(rows, observed[rows], penalty)
                    for rows, penalty in zip(samples, lambdas, strict=True)
                )
                values[number] = np.linalg.norm((first - second) @ own, axis=1).mean()
                points = np.linalg.norm((first - second) @ fixed, axis=1)
                run.require_room((1 + count) * points.nbytes, f"--replicates {count:,} at {len(points):,} inputs")
                at_points.append(points)
        run.progress("relabeling", (number + 1) / (1 + count))
    return PermutationNull(values, np.stack(at_points))
