"""Conditional mean embeddings of replicates of the targets: one smoother and few columns per replicate.

Tens of thousands of columns are smoothed with one factor; see :class:`calcheck.embeddings.ridge.Smoother`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from calcheck.embeddings.laplace import SharedLaplace
from calcheck.embeddings.permutations import MIN_ROWS_PER_LANDMARK, RESIDUAL_TOLERANCE, low_rank_kernel
from calcheck.embeddings.ridge import KernelRidge, Smoother, SmootherMatrix, smoother
from calcheck.embeddings.target_kernels import DataSet, SharedOutputs
from calcheck.execution.reduce import one_blas_thread
from calcheck.linalg.gram import psd_root, truncated_eigenbasis
from calcheck.typing import Values

BLOCK_VALUES = 1 << 22  # Values smoothed at a time: 32 MiB
COPIES = 8  # Arrays of the size of a whole smoother matrix in memory


@dataclass(frozen=True, eq=False)
class ReplicateNorms:
    """Distances of the data and of replicates of the targets, the data first."""

    # (1 + R,), mean over inputs of |U_{Y|X}(x) - U_{Y'|X}(x)|, or of its unbiased square, with the kernel on targets of
    # each replicate; NaN if it has none
    values: Values
    at_inputs: Values  # (1 + R, m), the same at each of m inputs, with the kernel on targets of the data
    floor: Values | None  # (m,), approximate lower bound of the unbiased square: minus the mean noise
    details: dict[str, Any]  # Method of the smoother, and columns per replicate


def embed_replicates(
    ridge: KernelRidge,
    data: DataSet,
    replicates: Iterator[DataSet],
    count: int,
    *,
    share: Callable[[bool], SharedOutputs],
    lambdas: tuple[float, float],
    points: Values | None,  # (m, d)
    unbiased: bool,
) -> ReplicateNorms:
    """Return the distances between the embeddings of data and model, for the data and for replicates of it.

    For the mean, the kernel on targets is rescaled for each replicate, so that the p-value is exact. At single inputs,
    the kernel of the data is used: otherwise a model that is wrong at other inputs would change the kernels of the
    replicates, and thereby the null distribution at inputs where the model is correct.
    """
    work = _Work(ridge, share, lambdas, points)
    inputs = ridge.n if points is None else len(points)
    ridge.run.require_room(8 * count * inputs, f"--replicates {count - 1:,} at {inputs:,} inputs")
    results = _Results(count, inputs)
    queue: list[_Columns] = []
    queued = 0
    for number, each in enumerate(chain([data], replicates)):
        if each.gamma is not None:
            with one_blas_thread():  # many small products
                if not work.sum(number, each, results, unbiased=unbiased):
                    queue.append(work.columns(number, each, reduce=not unbiased))
                    queued += queue[-1].values.size
        if queued >= BLOCK_VALUES:
            work.smooth(queue, results, unbiased=unbiased)
            queue, queued = [], 0
        ridge.run.progress("replicates", (number + 1) / count)
    work.smooth(queue, results, unbiased=unbiased)
    floor = work.without_noise(results) if unbiased else None
    return ReplicateNorms(results.means, results.at_inputs, floor, work.details())


class _Results:
    """Results per data set: its mean with its own kernel, (count,), and the values at m inputs with the data's."""

    def __init__(self, count: int, inputs: int) -> None:
        self.means, self.at_inputs = np.full(count, np.nan), np.full((count, inputs), np.nan)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns of one data set that are smoothed."""

    number: int  # Number of the data set
    # (n, trials, q), psi(y) - E psi(Y'), in q principal directions. If the two are smoothed separately: psi(y) followed
    # by E psi(Y'), (n, 1 + trials, q).
    values: Values
    # (q, q), (q, q), |f root| is the norm of f with the kernel on targets of the data set, and of the data; None if
    # both are |f|
    roots: tuple[Values, Values] | None

    def squares(self, values: Values) -> list[Values]:
        """Return the squared norms of values (m, trials, q) in both kernels, (m, trials) each."""
        if self.roots is None:
            return [np.sum(values**2, axis=2)] * 2
        return [np.sum((values @ norm) ** 2, axis=2) for norm in self.roots]


class _Work:
    def __init__(
        self,
        ridge: KernelRidge,
        share: Callable[[bool], SharedOutputs],
        lambdas: tuple[float, float],
        points: Values | None,
    ) -> None:
        self._ridge, self._points = ridge, points
        self._lambdas = list(dict.fromkeys(lambdas))
        self._features = share(not self._separate)
        self._smoothers: list[Smoother] = []
        self._known_matrices: list[SmootherMatrix] | None = None
        self._noise: dict[int, Values] = {}
        self._widest = 0

    def details(self) -> dict[str, Any]:
        """Return the number of columns and the method of the smoother."""
        return {"columns": self._widest, **self._smoothers[0].details}

    def columns(self, number: int, each: DataSet, *, reduce: bool) -> _Columns:
        """Return the columns of a data set in the principal directions with respect to both kernels.

        With ``reduce``, only the norms of smoothed columns are kept, and not their own.
        """
        observed, model, of_replicate, of_data = self._features.rescaled(each)
        parts = [observed, *model] if self._separate else [observed - mean for mean in model]
        features = np.stack(parts, axis=1)
        if of_replicate is None or of_data is None:
            values = self._in_range(features) if reduce else features
            self._widest = max(self._widest, values.shape[2])
            return _Columns(number, values, None)
        flat = features.reshape(-1, features.shape[2])
        few = flat if len(flat) < flat.shape[1] else psd_root(flat.T @ flat).T  # few.T @ few = flat.T @ flat
        norms = of_replicate, of_data
        by_kernel = [few @ norm for norm in norms]
        sizes, turns = truncated_eigenbasis(np.asarray(sum(each @ each.T for each in by_kernel)))
        turns = turns / np.sqrt(sizes)
        own, fixed = directions = [each.T @ turns for each in by_kernel]
        self._widest = max(self._widest, len(sizes))
        values = features @ np.asarray(sum(norm @ each for norm, each in zip(norms, directions, strict=True)))
        return _Columns(number, values, (psd_root(own.T @ own), psd_root(fixed.T @ fixed)))

    def sum(self, number: int, each: DataSet, results: _Results, *, unbiased: bool) -> bool:
        """Store the distances of a data set, if its features allow sums in linear time; return whether they do."""
        if not (isinstance(self._features, SharedLaplace) and self._features.sums_in_linear_time):
            return False
        matrices = self._matrices(each)
        if not matrices:
            return False
        squares = self._features.smoothed_squares(each, matrices[0], matrices[-1])
        values = squares if unbiased else np.sqrt(squares)
        results.means[number] = values.mean()
        results.at_inputs[number] = values.mean(axis=1)
        if unbiased:
            noise = self._features.row_squares(each).mean(axis=1)
            self._noise[number] = np.stack([noise, noise], axis=1)
        return True

    def _matrices(self, data: DataSet) -> list[SmootherMatrix]:
        """Return the smoother matrix of each regularizer, of low rank if K is; none if they do not fit in memory."""
        if self._known_matrices is None:
            n, basis = self._ridge.n, self._range
            inputs = n if self._points is None else len(self._points)
            if basis is None and COPIES * 8 * inputs * n > self._ridge.run.memory:
                self._known_matrices = []
                return []
            self._start(lambda: self.columns(0, data, reduce=False).values.reshape(n, -1))
            smoothed = [each.smooth(np.eye(n) if basis is None else basis) for each in self._smoothers]
            self._known_matrices = [
                SmootherMatrix(each) if basis is None else SmootherMatrix(np.ascontiguousarray(basis.T), each)
                for each in smoothed
            ]
            self._widest = n if basis is None else basis.shape[1]
        return self._known_matrices

    def _start(self, typical: Callable[[], Values]) -> None:
        """Choose the smoothers, given typical outputs (n, c)."""
        self._smoothers = [smoother(self._ridge, lambda_, self._points, typical) for lambda_ in self._lambdas]

    def _in_range(self, features: Values) -> Values:
        """Return fewer columns whose smoothed norms are those of features (n, trials, q), as K has a low rank.

        Only the part in the range of K matters, and rotations of the columns leave norms unchanged.
        """
        n, trials, columns = features.shape
        if columns <= trials * n // MIN_ROWS_PER_LANDMARK or self._range is None:
            return features
        inside = (self._range.T @ features.reshape(n, -1)).reshape(-1, columns)  # (r trials, q)
        few = np.asarray(np.linalg.qr(inside.T, mode="r")).T
        return np.asarray((self._range @ few.reshape(self._range.shape[1], -1)).reshape(n, trials, -1))

    @cached_property
    def _range(self) -> Values | None:
        """An orthonormal basis of the range of K, (n, r); None if its rank is not low."""
        x = np.asarray(self._ridge.backend.to_numpy(self._ridge.x), dtype=np.float64)
        found = low_rank_kernel(self._ridge.kernel, x, x[:1], len(x) // MIN_ROWS_PER_LANDMARK or 1)
        return np.linalg.qr(found.rows)[0] if found.missed <= RESIDUAL_TOLERANCE else None

    @property
    def _separate(self) -> bool:
        return len(self._lambdas) > 1

    def smooth(self, queue: list[_Columns], results: _Results, *, unbiased: bool) -> None:
        """Smooth the queued columns; store the distances, or their squares and the input of the noise term."""
        if not queue:
            return
        if not self._smoothers:
            self._start(lambda: queue[0].values.reshape(self._ridge.n, -1))
        ends = np.cumsum([columns.values[0].size for columns in queue])[:-1]
        for columns, smoothed in zip(queue, np.split(self._smoothed(queue), ends, axis=1), strict=True):
            parts = smoothed.reshape(len(smoothed), *columns.values.shape[1:])
            differences = parts[:, :1] - parts[:, 1:] if self._separate else parts
            squares = columns.squares(differences)
            own, fixed = squares if unbiased else map(np.sqrt, squares)
            results.means[columns.number] = own.mean()
            results.at_inputs[columns.number] = fixed.mean(axis=1)
            if unbiased:
                noise = [each.mean(axis=1) for each in columns.squares(columns.values)]
                self._noise[columns.number] = np.stack(noise, axis=1)

    def without_noise(self, results: _Results) -> Values:
        """Subtract the noise term from the squares; return minus its mean, (m,)."""
        numbers = list(self._noise)
        noise = self._smoothers[0].smooth_squared(np.concatenate(list(self._noise.values()), axis=1))
        own, fixed = noise[:, ::2], noise[:, 1::2]
        results.means[numbers] -= own.mean(axis=0)
        results.at_inputs[numbers] -= fixed.T
        return np.asarray(-fixed.mean(axis=1))

    def _smoothed(self, queue: list[_Columns]) -> Values:
        """Smooth all columns; observed and predicted columns have their own regularizers if these differ."""
        wide = np.concatenate([columns.values.reshape(self._ridge.n, -1) for columns in queue], axis=1)
        if not self._separate:
            return self._smoothers[0].smooth(wide)
        observed = np.concatenate([np.arange(columns.values[0].size) < columns.values.shape[2] for columns in queue])
        smoothed = np.empty((len(wide) if self._points is None else len(self._points), wide.shape[1]))
        for each, columns in zip(self._smoothers, (observed, ~observed), strict=True):
            smoothed[:, columns] = each.smooth(wide[:, columns])
        return smoothed
