"""Principal components of inputs, in memory or on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.lazy_inputs import blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.lazy_inputs import Inputs

    Values = NDArray[np.float64]


def principal_components(x: Inputs, count: int) -> tuple[Values, Values]:
    """Return the scores of the first principal components, and their shares of the variance.

    The largest entry of each direction is positive, so that signs are defined. Takes three passes over the inputs.

    Parameters
    ----------
    x : (n, d)
        Inputs.
    count : int
        Number of components, at most d.

    Returns
    -------
    scores : (n, count)
        Centered scores, in the unit of the inputs.
    shares : (count,)
        Shares of the total variance, in [0, 1].
    """
    n, d = x.shape
    mean = np.zeros(d)
    for _, block in blocks(x):
        mean += block.sum(axis=0, dtype=np.float64) / n
    covariance = np.zeros((d, d))
    for _, block in blocks(x):
        away = block - mean
        covariance += away.T @ away / n
    variances, directions = np.linalg.eigh(covariance)
    chosen = directions[:, ::-1][:, :count]
    chosen = chosen * np.sign(np.take_along_axis(chosen, np.abs(chosen).argmax(axis=0)[None], axis=0))
    scores = np.empty((n, count))
    for rows, block in blocks(x):
        scores[rows] = (block - mean) @ chosen
    total = variances.sum()
    return scores, variances[::-1][:count] / total if total > 0 else np.zeros(count)
