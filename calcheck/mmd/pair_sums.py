"""Sums of the kernel on targets over pairs of targets and draws, within each row or across rows.

The functions accept arrays of any library and do no in-place operations that would break gradients. Pairs are
processed in blocks, so memory does not grow with their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.execution.backend import namespace
from calcheck.kernels.functions import Rbf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from calcheck.execution.backend import Array

BLOCK_PAIRS = 1 << 18  # kernel values per block, 2 MiB of float64; larger blocks are not faster


def row_products(a: Array, b: Array, gamma: float) -> Array:
    """Return a_i . b_i, the mean of exp(-gamma |u - v|^2) over the pairs of each row.

    Parameters
    ----------
    a, b : (n, r, t), (n, l, t)
        Points; a_i and b_i are the means of their features.
    gamma : float
        Scale of the kernel.

    Returns
    -------
    (n,)
    """
    xp = namespace(b)
    found = []
    for rows in _blocks(len(a), a.shape[1] * b.shape[1]):
        apart = [a[rows, :, None, column] - b[rows, None, :, column] for column in range(a.shape[2])]
        found.append(xp.mean(xp.exp(-gamma * sum(each * each for each in apart)), axis=(1, 2)))
    return xp.concat(found)


def of_different(products: Array, size: int, norms: Array | float = 1) -> Array:
    """Return means over pairs of distinct points, given means over all pairs of ``size`` points, (n,).

    ``norms`` are the means of the kernel of a point with itself.
    """
    return (size * products - norms) / (size - 1)


def pair_sum(
    weights: Callable[[slice], Array],
    y: Array,
    draws: Array,
    gamma: float,
    shares: tuple[float, float, float] = (1, -2, 1),
) -> Array:
    """Return sum_ij W_ij (s_0 a_i . a_j + s_1 a_i . b_j + s_2 b_i . b_j), by default sum_ij W_ij delta_i . delta_j.

    Parameters
    ----------
    weights : callable
        Returns a block of rows of the symmetric matrix W, (b, n).
    y, draws : (n, r, t), (n, l, t)
        Points; a_i and b_i are the means of their features, delta_i the difference.
    gamma : float
        Scale of the kernel.
    shares : (s_0, s_1, s_2)
        Coefficients of the three kinds of products.

    Returns
    -------
    () array
    """
    xp = namespace(draws)
    n, wide = len(y), max(y.shape[1], draws.shape[1])
    kinds = [each for each in zip(shares, (y, y, draws), (y, draws, draws), strict=True) if each[0]]
    total = 0.0
    for rows in _blocks(n, n * wide**2):
        block = weights(rows)
        for share, a, b in kinds:
            total = total + share * xp.sum(block * _products(a[rows], b, gamma))
    return total


def _products(a: Array, b: Array, gamma: float) -> Array:
    """Return a_i . b_j for (p, r, t) and (q, l, t) points, (p, q)."""
    columns = a.shape[2]
    values = Rbf(gamma).gram(a.reshape(-1, columns), b.reshape(-1, columns))
    return namespace(values).mean(values.reshape(len(a), a.shape[1], len(b), b.shape[1]), axis=(1, 3))


def _blocks(n: int, pairs: int) -> Iterator[slice]:
    """Yield slices of n rows with ``pairs`` pairs each, at most BLOCK_PAIRS pairs per block."""
    rows = max(1, BLOCK_PAIRS // pairs)
    for start in range(0, n, rows):
        yield slice(start, start + rows)
