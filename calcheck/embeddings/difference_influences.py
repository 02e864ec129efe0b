"""Two models on the same inputs: what each row contributes to the difference of their mean squared distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.embeddings.replicate_embeddings import LEFT_OUT
from calcheck.embeddings.smoother import smoother

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
    r"""Return what each row contributes to the second model's mean squared distance less the first's, (n,).

    With the smoothers A of the data and A' of the models, d the first model's embeddings less the second's, and b their
    mean, the difference is the inner product of A' d and 2 (A psi - A' b), over n. It is linear in the rows of d and in
    those of psi and b: a row counts once as one of d, and once as one of the others.

    Parameters
    ----------
    ridge : KernelRidge
        On the n inputs that both are conditioned on.
    observed : (n, r)
        psi of the targets.
    models : sequence of ((n, r), (n, r))
        E psi of both models' distributions, once a trial.
    lambdas : (float, float)
        Regularizers of the embeddings of data and models.
    unbiased : bool
        Whether squares are less their noise, which is what rows contribute to themselves.

    Returns
    -------
    (n,)
        They sum to twice the difference.
    """
    means = [mean for pair in models for mean in pair]
    one = lambdas[0] == lambdas[1]
    directions = _directions([observed - mean for mean in means] if one else [observed, *means])
    observed, means = observed @ directions, [mean @ directions for mean in means]
    model = smoother(ridge, lambdas[1], None, observed - means[0])
    data = model if one else smoother(ridge, lambdas[0], None, observed)
    own = model.smooth_squared(np.ones((ridge.n, 1))) if unbiased else np.zeros((ridge.n, 1))
    found = np.zeros(ridge.n)
    for first, second in zip(means[::2], means[1::2], strict=True):
        apart, middle = first - second, (first + second) / 2
        moved, away = model.smooth(apart), data.smooth(observed) - model.smooth(middle)
        as_difference = apart * model.smooth(away)
        as_others = observed * data.smooth(moved) - middle * model.smooth(moved)
        found += np.sum(as_difference + as_others - 2 * own * apart * (observed - middle), axis=1)
    return 2 / (ridge.n * len(models)) * found


def _directions(embeddings: Sequence[Values]) -> Values:
    """Return the few directions in which embeddings (n, r) vary, (r, q)."""
    together = np.concatenate(embeddings)
    sizes, turns = np.linalg.eigh(together.T @ together)
    left_out = np.cumsum(np.maximum(sizes, 0))
    return np.asarray(turns[:, left_out > LEFT_OUT * left_out[-1]])
