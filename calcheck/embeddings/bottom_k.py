"""Samples of rows that hang on what rows hold, and not on their order: the same from one file or from many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.distributions.row_random import hash_rows, mix
from calcheck.errors import NumericalError
from calcheck.execution.context import Stream
from calcheck.execution.row_keys import occurrences
from calcheck.kernels.functions import OVERFLOWS
from calcheck.lazy_inputs import blocks, held, taken

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel
    from calcheck.lazy_inputs import Inputs
    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]

BLOCK_ROWS = 4096  # whose inputs are hashed at a time
ROUNDING = 1e-10  # of kernel values, below which a regulariser makes no matrix definite
SCORED_BY = 256  # inputs that tell the leverage of others, from which centres are chosen
SEEN_BY = 1024  # centres that do, from which checked inputs are chosen


def uniform_places(rows: Predictions, size: int, run: Run) -> NDArray[np.intp]:
    """Choose rows uniformly, in a random order: those whose targets and predictions have the smallest hashes.

    What is hashed is their rank among those of all rows, which is the same in every unit; of rows that share both, each
    has a hash of its own, or whole groups would come together.

    Parameters
    ----------
    rows : Predictions
        With targets and distributions.
    size : int
        How many, at most.
    run : Run
        The seed.

    Returns
    -------
    (min(n, size),) intp
        Places among the rows. The first of them are a uniform sample too.
    """
    hashed = np.full(len(rows), key_of(run), dtype=np.uint64)
    for column in (*rows.targets().reshape(len(rows), -1).T, *_columns(rows.distributions().mean())):
        hashed = mix(hashed ^ _ranks(column))
    hashed ^= mix(occurrences(hashed))
    return smallest(hashed, size)


def some_inputs(x: Inputs, size: int) -> NDArray[np.floating[Any]]:
    """Return all of (n, d) inputs, or so many where they are more, a uniform sample: those with the smallest hashes.

    Which are taken follows from the inputs alone: neither a seed nor the order of rows changes it. Of rows with the
    same input, each has a hash of its own.
    """
    if len(x) <= size:
        return held(x)
    hashed = np.concatenate([hash_rows([block], 1) for _, block in blocks(x)])
    return taken(x, np.sort(smallest(hashed ^ mix(occurrences(hashed)), size)))


def key_of(run: Run) -> int:
    """Return what hashes of rows hang on besides the rows."""
    return int(run.rng(Stream.CENTRES).integers(1 << 63, dtype=np.uint64))


def smallest(hashes: NDArray[np.uint64], size: int) -> NDArray[np.intp]:
    """Return the places of the smallest of (n,) hashes, in their order, (min(n, size),)."""
    if size >= len(hashes):
        return np.argsort(hashes, kind="stable")
    found = np.argpartition(hashes, size)[:size]
    return found[np.lexsort((found, hashes[found]))]


def hashes_of(rows: Predictions, key: int) -> NDArray[np.uint64]:
    """Hash rows by targets, predicted means and inputs, (n,); rows that are the same by their places too.

    So a sample by hashes is uniform also where targets and predictions take few values.
    """
    hashed = mix(_hashes(rows, key) ^ _hashes_of_inputs(rows.inputs(), key))
    _, which, count = np.unique(hashed, return_inverse=True, return_counts=True)
    again = count[which] > 1
    hashed[again] = mix(hashed[again] ^ rows.places()[again].astype(np.uint64))
    return hashed


def by_leverage(
    kernel: Kernel, x: NDArray[np.floating[Any]], count: int, lambda_: float, run: Run
) -> NDArray[np.floating[Any]]:
    """Choose inputs by their approximate ridge leverage, the share that a row has in its own value, (count, d).

    Without replacement, by the smallest of weighted exponential keys (Efraimidis, Spirakis 2006).
    """
    scores = np.maximum(_unseen(kernel, x, x[:SCORED_BY], (lambda_,))[0], np.finfo(float).tiny)
    keys = run.rng(Stream.CENTRES, 1).exponential(size=len(x)) / scores
    return x[np.argsort(keys, kind="stable")[:count]]


def weighted_by_leverage(
    kernel: Kernel,
    x: NDArray[np.floating[Any]],
    centres: NDArray[np.floating[Any]],
    size: int,
    lambda_: float,
    run: Run,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Choose so many of (n, d) inputs, those with a large ridge leverage more often, and those far from others always.

    The chance of an input is in proportion to its leverage, as some centres tell it, plus what these cannot represent
    of it, plus 1, where both are 1 on average. So inputs far from all others are chosen with certainty, and those near
    a centre that is alone, and no input is chosen with less than a third of a uniform chance. A sample of a fixed size
    with such chances is by Pareto order sampling (Rosen 1997).

    Returns
    -------
    (min(n, size),) intp
        Places among the inputs.
    (min(n, size),)
        How many inputs each stands for: 1 over its chance, adjusted so that they add up to n.
    """
    if size >= len(x):
        return np.arange(len(x)), np.ones(len(x))
    unseen = _unseen(kernel, x, centres[:SEEN_BY], (lambda_, 0.0))
    chances = _chances(1 + sum(each / (each.mean() or 1.0) for each in unseen), size)
    odds = run.rng(Stream.RESIDUAL).random(len(x))
    odds /= 1 - odds
    chosen = np.sort(np.argsort(odds * (1 - chances) / chances, kind="stable")[:size])
    weights, certain = 1 / chances[chosen], chances[chosen] == 1
    weights[~certain] *= (len(x) - certain.sum()) / weights[~certain].sum()
    return chosen, weights


def _unseen(
    kernel: Kernel, x: NDArray[np.floating[Any]], some: NDArray[np.floating[Any]], lambdas: tuple[float, ...]
) -> Values:
    """Return k(x, x) - k(x, s) (K_ss + M lambda I)^-1 k(s, x), what M inputs do not see of (n, d) others, (l, n).

    It is k(x, x) for an input far from all others, and in proportion to the approximate ridge leverage (Musco, Musco
    2017) where the M are a uniform sample; with lambda = 0 it is what no combination of k(s, .) can represent.

    Raises
    ------
    NumericalError
        The kernel overflows.
    """
    from scipy.linalg import cholesky, solve_triangular

    some = some.astype(np.float64)
    own = kernel.gram(some, some)
    if not np.isfinite(own).all():
        raise NumericalError(OVERFLOWS)
    least = ROUNDING * float(np.diag(own).max())
    shifts = [len(some) * max(each, least) for each in lambdas]
    factors = [cholesky(own + shift * np.eye(len(some)), lower=True) for shift in shifts]
    found = np.empty((len(factors), len(x)))
    for start in range(0, len(x), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        block = x[rows].astype(np.float64)
        near, whole = kernel.gram(some, block), kernel.diagonal(block)  # (M, b)
        for each, factor in zip(found, factors, strict=True):
            seen = solve_triangular(factor, near, lower=True, check_finite=False)
            each[rows] = whole - np.einsum("ij,ij->j", seen, seen)
    if not np.isfinite(found).all():
        raise NumericalError(OVERFLOWS)
    return np.maximum(found, 0)


def _chances(sizes: Values, count: int) -> Values:
    """Return chances in proportion to positive sizes (n,), at most 1, that add up to a count below n."""
    certain = np.zeros(len(sizes), dtype=bool)
    while True:
        left = count - certain.sum()
        chances = np.where(certain, 1.0, left * sizes / sizes[~certain].sum())
        if (chances <= 1).all():
            return chances
        certain |= chances >= 1


def _ranks(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return how many different smaller values there are, for each of (n,)."""
    return np.unique(values, return_inverse=True)[1].astype(np.uint64)


def _hashes(rows: Predictions, key: int) -> NDArray[np.uint64]:
    """Hash rows by targets and predicted means, (n,)."""
    hashed = np.full(len(rows), key, dtype=np.uint64)
    for column in (*rows.targets().reshape(len(rows), -1).T, *_columns(rows.distributions().mean())):
        hashed = mix(hashed ^ np.ascontiguousarray(column, dtype=np.float64).view(np.uint64))
    return hashed


def _hashes_of_inputs(x: NDArray[np.floating[Any]], key: int) -> NDArray[np.uint64]:
    """Hash (n, d) inputs, (n,): sums of products of whole numbers, which no order of rows rounds differently."""
    factors = np.random.default_rng(key).integers(1 << 63, size=x.shape[1], dtype=np.uint64) * np.uint64(2)
    factors += np.uint64(1)
    hashed = np.empty(len(x), dtype=np.uint64)
    for start in range(0, len(x), BLOCK_ROWS):
        block = np.ascontiguousarray(x[start : start + BLOCK_ROWS])
        words = block.view(f"u{block.itemsize}").astype(np.uint64)
        words ^= words >> np.uint64(32)  # numbers of few digits differ in their first bits only
        hashed[start : start + BLOCK_ROWS] = words @ factors
    return hashed


def _columns(values: Values) -> NDArray[np.float64]:
    return np.asarray(values.reshape(len(values), -1).T)
