"""Influence of each row on the difference between the mean squared distances of two models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.embeddings.smoother import smoother
from calcheck.linalg.eigenbasis import truncated_eigenbasis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.embeddings.ridge import KernelRidge

    Values = NDArray[np.float64]


def difference_influences(
    ridge: KernelRidge,
    observed: Values,
    models: Sequence[tuple[Values, Values]],
    lambdas: tuple[float, float],
    *,
    unbiased: bool,
) -> Values:
    r"""Return the influence of each row on the difference "second minus first" of mean squared distances, (n,).

    Let A and A' be the smoothers of the data and of the models, d the difference of the models' embeddings (first minus
    second), and b their mean. The difference is the inner product of A' d and 2 (A psi - A' b), divided by n. It is
    linear in the rows of d and in the rows of (psi, b), so each row has two contributions.

    Parameters
    ----------
    ridge : KernelRidge
        Regression on the n inputs, which both models share.
    observed : (n, r)
        Features psi of the targets.
    models : sequence of ((n, r), (n, r))
        E psi of both models' distributions, per trial.
    lambdas : (float, float)
        Regularizers lambda of the embeddings of the data and of the models.
    unbiased : bool
        Whether the noise term (the contribution of each row to itself) is subtracted from the squares.

    Returns
    -------
    (n,)
        Influences; they sum to twice the difference.
    """
    means = [mean for pair in models for mean in pair]
    one = lambdas[0] == lambdas[1]
    embeddings = np.concatenate([observed - mean for mean in means] if one else [observed, *means])
    _, directions = truncated_eigenbasis(embeddings.T @ embeddings)
    observed, means = observed @ directions, [mean @ directions for mean in means]
    model = smoother(ridge, lambdas[1], None, lambda: observed - means[0])
    data = model if one else smoother(ridge, lambdas[0], None, lambda: observed)
    own = model.smooth_squared(np.ones((ridge.n, 1))) if unbiased else np.zeros((ridge.n, 1))
    found = np.zeros(ridge.n)
    for first, second in zip(means[::2], means[1::2], strict=True):
        apart, middle = first - second, (first + second) / 2
        moved, away = model.smooth(apart), data.smooth(observed) - model.smooth(middle)
        as_difference = apart * model.smooth(away)
        as_others = observed * data.smooth(moved) - middle * model.smooth(moved)
        found += np.sum(as_difference + as_others - 2 * own * apart * (observed - middle), axis=1)
    return 2 / (ridge.n * len(models)) * found
