"""Conditional mean embeddings of replicates of the targets: one smoother and few columns a replicate.

Some tens of thousands of columns are smoothed in all, by one factor: see :mod:`calcheck.embeddings.smoother`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.embeddings.rescaled_features import SharedFeatures, eigenvectors, root
from calcheck.embeddings.smoother import smoother
from calcheck.execution.context import RandomStream
from calcheck.execution.prefetch import one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.embeddings.rescaled_features import DataSet
    from calcheck.embeddings.ridge import KernelRidge
    from calcheck.embeddings.smoother import Smoother

    Values = NDArray[np.float64]

LEFT_OUT = 1e-7  # share of what is smoothed, squared, that the columns kept may miss
BLOCK_VALUES = 1 << 22  # numbers smoothed together, 32 MiB


@dataclass(frozen=True, eq=False)
class ReplicateNorms:
    """What the data and replicates of the targets give, the data first.

    Parameters
    ----------
    values : (1 + R,)
        The mean over inputs of |U_{Y|X}(x) - U_{Y'|X}(x)|, or of its unbiased square, by each one's own kernel on
        targets; NaN for those without.
    at_inputs : (1 + R, m)
        The same at each of m inputs, by the data's kernel on targets.
    floor : (m,), optional
        The least that the unbiased square can be, about: less the mean noise.
    details : dict
        How the smoother is had, and how many columns a replicate takes.
    """

    values: Values
    at_inputs: Values
    floor: Values | None
    details: dict[str, Any]


def embed_replicates(
    ridge: KernelRidge,
    data: DataSet,
    replicates: Iterator[DataSet],
    count: int,
    *,
    covered: Predictive,
    lambdas: tuple[float, float],
    points: Values | None,
    unbiased: bool,
) -> ReplicateNorms:
    """Compare embeddings of data and model for the data and for replicates of it, all by the same smoother.

    The mean is by a kernel on targets that is scaled anew for each replicate: so its p-value is exact. At single inputs
    all have the data's kernel: a model that is wrong elsewhere would change the replicates' kernels, and with them what
    is expected where it is right.

    Parameters
    ----------
    ridge : KernelRidge
        On n inputs.
    data : DataSet
        The data; comes first in what is returned.
    replicates : iterator of DataSet
        The others.
    count : int
        How many there are, the data counted.
    covered : Predictive
        What all models of the data sets are made of: the distributions, all their draws.
    lambdas : (float, float)
        Regularizers of the embeddings of data and model.
    points : (m, d), optional
        Normalized inputs at which they are compared; the fitted ones if absent.
    unbiased : bool
        Whether squares less their noise are wanted, sum over i of a_i(x)^2 |delta_i|^2, in place of distances.
    """
    work = _Work(ridge, data, covered, lambdas, points)
    inputs = ridge.n if points is None else len(points)
    ridge.run.require_room(8 * count * inputs, f"--replicates {count - 1:,} at {inputs:,} inputs")
    found = _Found(count, inputs)
    queue: list[_Columns] = []
    queued = 0
    for number, each in enumerate(_with(data, replicates)):
        if each.gamma is not None:
            with one_blas_thread():  # many small products
                queue.append(work.columns(number, each))
            queued += queue[-1].values.size
        if queued >= BLOCK_VALUES:
            work.smooth(queue, found, unbiased=unbiased)
            queue, queued = [], 0
        ridge.run.progress("simulating", (number + 1) / count)
    work.smooth(queue, found, unbiased=unbiased)
    floor = work.without_noise(found) if unbiased else None
    return ReplicateNorms(found.means, found.at_inputs, floor, work.details())


class _Found:
    """What is found of each data set: its mean by its own kernel, (count,), and at m inputs by the data's."""

    def __init__(self, count: int, inputs: int) -> None:
        self.means, self.at_inputs = np.full(count, np.nan), np.full((count, inputs), np.nan)


def _with(first: DataSet, others: Iterator[DataSet]) -> Iterator[DataSet]:
    yield first
    yield from others


@dataclass(frozen=True, eq=False)
class _Columns:
    """What is smoothed of one data set.

    Parameters
    ----------
    number : int
        Which data set.
    values : (n, trials, q)
        psi(y) - E psi(Y'), or psi(y) and E psi(Y') one after the other, (n, 1 + trials, q), where they are smoothed
        apart; in the q directions in which they vary.
    roots : (q, q), (q, q)
        |f root| is the norm of f by the data set's own kernel on targets, and by the data's.
    """

    number: int
    values: Values
    roots: tuple[Values, Values]


class _Work:
    def __init__(
        self,
        ridge: KernelRidge,
        data: DataSet,
        covered: Predictive,
        lambdas: tuple[float, float],
        points: Values | None,
    ) -> None:
        self._ridge, self._points = ridge, points
        self._lambdas = list(dict.fromkeys(lambdas))
        self._features = SharedFeatures(data, covered, lambda: ridge.run.rng(RandomStream.FEATURES))
        self._smoothers: list[Smoother] = []
        self._noise: dict[int, Values] = {}
        self._widest = 0

    def details(self) -> dict[str, Any]:
        """Say how it was done."""
        return {"columns": self._widest, **self._smoothers[0].details}

    def columns(self, number: int, each: DataSet) -> _Columns:
        """Make what is smoothed of a data set, in few directions: those in which it varies most, by either kernel."""
        observed, model, *norms = self._features.rescaled(each)
        parts = [observed, *model] if self._apart else [observed - mean for mean in model]
        features = np.stack(parts, axis=1)
        flat = features.reshape(-1, features.shape[2])
        few = flat if len(flat) < flat.shape[1] else root(flat.T @ flat).T  # few.T @ few = flat.T @ flat
        by_kernel = [few @ norm for norm in norms]
        sizes, turns = eigenvectors(np.asarray(sum(each @ each.T for each in by_kernel)))
        left_out = np.cumsum(np.maximum(sizes, 0))
        kept = left_out > LEFT_OUT * left_out[-1]
        turns = turns[:, kept] / np.sqrt(sizes[kept])
        own, fixed = directions = [each.T @ turns for each in by_kernel]
        self._widest = max(self._widest, len(sizes[kept]))
        values = features @ sum(norm @ each for norm, each in zip(norms, directions, strict=True))
        return _Columns(number, values, (root(own.T @ own), root(fixed.T @ fixed)))

    @property
    def _apart(self) -> bool:
        return len(self._lambdas) > 1

    def smooth(self, queue: list[_Columns], found: _Found, *, unbiased: bool) -> None:
        """Smooth what is queued, and keep the distances, or their squares and what their noise follows from."""
        if not queue:
            return
        if not self._smoothers:
            typical = queue[0].values.reshape(self._ridge.n, -1)
            self._smoothers = [smoother(self._ridge, penalty, self._points, typical) for penalty in self._lambdas]
        ends = np.cumsum([columns.values[0].size for columns in queue])[:-1]
        for columns, smoothed in zip(queue, np.split(self._smoothed(queue), ends, axis=1), strict=True):
            parts = smoothed.reshape(len(smoothed), *columns.values.shape[1:])
            apart = parts[:, :1] - parts[:, 1:] if self._apart else parts
            squares = [np.sum((apart @ norm) ** 2, axis=2) for norm in columns.roots]  # (m, trials) each
            own, fixed = squares if unbiased else map(np.sqrt, squares)
            found.means[columns.number] = own.mean()
            found.at_inputs[columns.number] = fixed.mean(axis=1)
            if unbiased:
                noise = [np.sum((columns.values @ norm) ** 2, axis=2).mean(axis=1) for norm in columns.roots]
                self._noise[columns.number] = np.stack(noise, axis=1)

    def without_noise(self, found: _Found) -> Values:
        """Subtract from squares what the rows' own noise adds to them; return less its mean, (m,)."""
        numbers = list(self._noise)
        noise = self._smoothers[0].smooth_squared(np.concatenate(list(self._noise.values()), axis=1))
        own, fixed = noise[:, ::2], noise[:, 1::2]
        found.means[numbers] -= own.mean(axis=0)
        found.at_inputs[numbers] -= fixed.T
        return np.asarray(-fixed.mean(axis=1))

    def _smoothed(self, queue: list[_Columns]) -> Values:
        """Smooth all columns; where observed and predicted are apart, each with its own regularizer."""
        wide = np.concatenate([columns.values.reshape(self._ridge.n, -1) for columns in queue], axis=1)
        if not self._apart:
            return self._smoothers[0].smooth(wide)
        observed = np.concatenate([np.arange(columns.values[0].size) < columns.values.shape[2] for columns in queue])
        smoothed = np.empty((len(wide) if self._points is None else len(self._points), wide.shape[1]))
        for own, mine in zip(self._smoothers, (observed, ~observed), strict=True):
            smoothed[:, mine] = own.smooth(wide[:, mine])
        return smoothed
