"""Two models on the same inputs, with the rows' predictions swapped at random: all by one smoother."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.kernels.replicates import LEFT_OUT
from calcheck.kernels.smoothing import smoother

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from calcheck.kernels.ridge import KernelRidge

    Values = NDArray[np.float64]


def swapped_differences(
    ridge: KernelRidge,
    observed: Values,
    models: Sequence[tuple[Values, Values]],
    lambdas: tuple[float, float],
    swaps: Iterable[NDArray[np.bool_]],
    *,
    unbiased: bool,
) -> Values:
    """Return by how much the second model's mean distance exceeds the first's: as they are, and after each swap.

    Smoothing is linear: swapping rows moves what is smoothed of one model to the other.

    Parameters
    ----------
    ridge : KernelRidge
        On the n inputs that both are conditioned on.
    observed : (n, r)
        psi of the targets.
    models : sequence of ((n, r), (n, r))
        E psi of both models' distributions, once a trial.
    lambdas : (float, float)
        Regularisers of the embeddings of data and models.
    swaps : iterable of (b, n)
        The rows that are swapped.
    unbiased : bool
        Whether squares less their noise are wanted in place of distances.

    Returns
    -------
    (1 + R,)
    """
    predicted = np.stack([np.stack(each) for each in models], axis=2)  # (2, n, trials, r)
    apart = observed[:, None] - predicted
    flat = apart.reshape(-1, observed.shape[1])
    if lambdas[0] != lambdas[1]:
        flat = np.concatenate([observed, predicted.reshape(-1, observed.shape[1])])
    sizes, turns = np.linalg.eigh(flat.T @ flat)
    left_out = np.cumsum(np.maximum(sizes, 0))
    turns = turns[:, left_out > LEFT_OUT * left_out[-1]]
    observed, predicted, apart = observed @ turns, predicted @ turns, apart @ turns
    shape = predicted.shape[1:]  # n, trials, q
    model = smoother(ridge, lambdas[1], None, apart[0].reshape(ridge.n, -1))
    data = model if lambdas[0] == lambdas[1] else smoother(ridge, lambdas[0], None, observed)
    smoothed = data.smooth(observed)[:, None] - [
        model.smooth(each.reshape(ridge.n, -1)).reshape(shape) for each in predicted
    ]
    moved = (predicted[0] - predicted[1]).reshape(ridge.n, -1)  # what a swap adds to the first model's
    sizes = np.sum(apart**2, axis=3).mean(axis=2)  # (2, n)
    found, chosen = [_difference(smoothed, unbiased=unbiased)], [np.zeros(ridge.n, np.bool_)]
    for rows in (row for block in swaps for row in block):
        shift = model.smooth(rows[:, None] * moved).reshape(shape)
        found.append(_difference(smoothed + np.stack([shift, -shift]), unbiased=unbiased))
        chosen.append(rows)
    if not unbiased:
        return np.array(found)
    gap = sizes[1] - sizes[0]  # a swapped row's noise changes sides
    noise = model.smooth_squared(np.where(chosen, -gap, gap).T)  # (n, 1 + R)
    return np.asarray(np.array(found) - noise.mean(axis=0))


def _difference(smoothed: Values, *, unbiased: bool) -> float:
    """Return the second model's mean distance, or mean square, less the first's, from (2, n, trials, q)."""
    squares = np.sum(smoothed**2, axis=3)
    first, second = (squares if unbiased else np.sqrt(squares)).mean(axis=(1, 2))
    return float(second - first)
