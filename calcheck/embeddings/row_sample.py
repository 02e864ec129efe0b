"""Samples of rows, uniform and by leverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calcheck.errors import NumericalError
from calcheck.execution.bottom_k import bottom_k, hash_rows_and_inputs
from calcheck.execution.run import RandomStream, Run
from calcheck.kernels.functions import OVERFLOW_MESSAGE, Kernel
from calcheck.predictions import Predictions, concat

if TYPE_CHECKING:
    from calcheck.typing import AnyArray, Floats, Indices, Values

SAMPLE_ROWS = 1 << 14  # Maximum rows: means are accurate to half a percent; 512 float32 columns take 32 MiB


@dataclass(eq=False)
class RowSample:
    """Columns of a uniform sample of rows; all rows if they are few."""

    hashes: NDArray[np.uint64]  # (k,), hashes of the rows, in ascending order
    columns: dict[str, AnyArray]  # Arrays (k, …) by name

    def add(self, other: RowSample) -> None:
        """Merge a sample of other rows into this sample, in place."""
        hashes = np.concatenate([self.hashes, other.hashes])
        kept = bottom_k(hashes, SAMPLE_ROWS)
        self.hashes = hashes[kept]
        self.columns = {name: np.concatenate([each, other.columns[name]])[kept] for name, each in self.columns.items()}


@dataclass(eq=False)
class RowSampleSums:
    """A uniform sample of complete rows."""

    n: int  # Number of rows that were sampled from
    hashes: NDArray[np.uint64]  # (k,), hashes of the rows, in ascending order
    rows: Predictions  # The k sampled rows

    def add(self, other: RowSampleSums) -> None:
        """Merge a sample of other rows into this sample, in place."""
        hashes = np.concatenate([self.hashes, other.hashes])
        kept = bottom_k(hashes, SAMPLE_ROWS)
        self.n += other.n
        self.hashes, self.rows = hashes[kept], concat([self.rows, other.rows]).take(kept)


@dataclass(frozen=True)
class SampleRows:
    """Function that samples the rows of a batch."""

    key: int  # Seed of the hashes

    def __call__(self, batch: Predictions) -> RowSampleSums:
        """Return a sample of the rows of a batch."""
        hashes = hash_rows_and_inputs(batch, self.key)
        kept = bottom_k(hashes, SAMPLE_ROWS)
        return RowSampleSums(len(batch), hashes[kept], batch.take(kept))


BLOCK_ROWS = 4096  # Inputs per block
ROUNDING = 1e-10  # Minimum lambda relative to the kernel values, so that the matrix is positive definite
LANDMARK_REFERENCE_ROWS = 256  # Inputs used to approximate leverage scores for landmarks
VALIDATION_REFERENCE_ROWS = 1024  # Landmarks used to approximate leverage scores for validation inputs


def leverage_sample(kernel: Kernel, x: Floats, count: int, lambda_: float, run: Run) -> Floats:
    """Return inputs sampled by approximate ridge leverage scores, (count, d).

    Sampled without replacement, by the smallest weighted exponential keys (Efraimidis, Spirakis 2006).
    """
    scores = np.maximum(_residuals(kernel, x, x[:LANDMARK_REFERENCE_ROWS], (lambda_,))[0], np.finfo(float).tiny)
    keys = run.rng(RandomStream.LANDMARKS, 1).exponential(size=len(x)) / scores
    return x[np.argsort(keys, kind="stable")[:count]]


def weighted_leverage_sample(
    kernel: Kernel,
    x: Floats,
    landmarks: Floats,
    size: int,
    lambda_: float,
    run: Run,
) -> tuple[Indices, Values]:
    """Return a sample of (n, d) inputs with unequal inclusion probabilities, and its weights.

    The inclusion probability of an input is proportional to the sum of three terms: its approximate leverage score, its
    Nyström residual (both scaled to mean 1), and 1. Inputs far from all others are therefore always included, as are
    inputs near an isolated landmark, and no input has less than a third of the uniform probability. The sample has a
    fixed size; it is drawn by Pareto order sampling (Rosen 1997).
    """
    if size >= len(x):
        return np.arange(len(x)), np.ones(len(x))
    residuals = _residuals(kernel, x, landmarks[:VALIDATION_REFERENCE_ROWS], (lambda_, 0.0))
    probabilities = _inclusion_probabilities(1 + sum(each / (each.mean() or 1.0) for each in residuals), size)
    odds = run.rng(RandomStream.RESIDUAL).random(len(x))
    odds /= 1 - odds
    chosen = np.sort(np.argsort(odds * (1 - probabilities) / probabilities, kind="stable")[:size])
    weights, certain = 1 / probabilities[chosen], probabilities[chosen] == 1
    weights[~certain] *= (len(x) - certain.sum()) / weights[~certain].sum()
    return chosen, weights


def _residuals(kernel: Kernel, x: Floats, some: Floats, lambdas: tuple[float, ...]) -> Values:
    """Return the residuals k(x, x) - k(x, s) (K_ss + M lambda I)^-1 k(s, x) of (n, d) inputs, (l, n).

    The residual is k(x, x) for an input far from all M inputs s. It is proportional to the approximate ridge leverage
    score (Musco, Musco 2017) if the M inputs are a uniform sample. With lambda = 0, it is the squared distance of
    k(x, .) to the span of the k(s, .).
    """
    from scipy.linalg import cholesky, solve_triangular

    some = some.astype(np.float64)
    gram = kernel.gram(some, some)
    if not np.isfinite(gram).all():
        raise NumericalError(OVERFLOW_MESSAGE)
    least = ROUNDING * float(np.diag(gram).max())
    n_lambdas = [len(some) * max(lambda_, least) for lambda_ in lambdas]
    factors = [cholesky(gram + n_lambda * np.eye(len(some)), lower=True) for n_lambda in n_lambdas]
    found = np.empty((len(factors), len(x)))
    for start in range(0, len(x), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        block = x[rows].astype(np.float64)
        near, whole = kernel.gram(some, block), kernel.diagonal(block)  # (M, b)
        for each, factor in zip(found, factors, strict=True):
            seen = solve_triangular(factor, near, lower=True, check_finite=False)
            each[rows] = whole - np.einsum("ij,ij->j", seen, seen)
    if not np.isfinite(found).all():
        raise NumericalError(OVERFLOW_MESSAGE)
    return np.maximum(found, 0)


def _inclusion_probabilities(sizes: Values, count: int) -> Values:
    """Return inclusion probabilities (n,) proportional to positive sizes and at most 1, with a sum of count < n."""
    certain = np.zeros(len(sizes), dtype=bool)
    while True:
        left = count - certain.sum()
        probabilities = np.where(certain, 1.0, left * sizes / sizes[~certain].sum())
        if (probabilities <= 1).all():
            return probabilities
        certain |= probabilities >= 1
