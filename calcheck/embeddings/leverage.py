"""Samples of inputs by approximate ridge leverage scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import NumericalError
from calcheck.execution.context import RandomStream
from calcheck.kernels.functions import OVERFLOWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.kernels.functions import Kernel

    Values = NDArray[np.float64]

BLOCK_ROWS = 4096  # inputs scored at a time
ROUNDING = 1e-10  # of kernel values, below which a regularizer makes no matrix definite
SCORED_BY = 256  # inputs that tell the leverage of others, from which centres are chosen
SEEN_BY = 1024  # centres that do, from which checked inputs are chosen


def leverage_sample(
    kernel: Kernel, x: NDArray[np.floating[Any]], count: int, lambda_: float, run: Run
) -> NDArray[np.floating[Any]]:
    """Choose inputs by their approximate ridge leverage, the share that a row has in its own value, (count, d).

    Without replacement, by the smallest of weighted exponential keys (Efraimidis, Spirakis 2006).
    """
    scores = np.maximum(_unseen(kernel, x, x[:SCORED_BY], (lambda_,))[0], np.finfo(float).tiny)
    keys = run.rng(RandomStream.LANDMARKS, 1).exponential(size=len(x)) / scores
    return x[np.argsort(keys, kind="stable")[:count]]


def weighted_leverage_sample(
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
    odds = run.rng(RandomStream.RESIDUAL).random(len(x))
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
