"""Within-row means and covariances of targets, draws and predictive distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.samples import Samples
from calcheck.validation import require_finite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive

    Values = NDArray[np.float64]


def covariances_within_targets(y: Values) -> tuple[Values, Values]:
    """Return row means (n, t) of targets (n, r, t), and R (t, t) with R^T R the mean within-row covariance.

    Covariances divide by r.
    """
    mean = y.mean(axis=1)
    return mean, _qr_factor([y - mean[:, None]], y.shape[0] * y.shape[1])


def covariances_within_rows(predictive: Predictive) -> tuple[Values, Values]:
    """Return the means of the distributions, (n, t), and R (t, t) with R^T R their mean covariance.

    Raises
    ------
    DataError
        A distribution has no finite mean or variance.
    """
    n, t = len(predictive), predictive.targets
    if predictive.n_draws is None:
        mean, std = predictive.mean().reshape(n, t), predictive.std().reshape(n, t)
        require_finite("mean", mean)
        require_finite("std", std)
        return mean, np.diag(np.sqrt(np.mean(std**2, axis=0)))
    means, triangles = [], []
    for _, batch in predictive.batches():
        if isinstance(batch, Samples):
            draws = batch.draws.reshape(len(batch), batch.n_draws, t)
            means.append(draws.mean(axis=1))
            triangles.append(_qr_factor([draws - means[-1][:, None]], 1))
    return np.concatenate(means), _qr_factor(triangles, n * predictive.n_draws)


def _qr_factor(parts: list[Values], count: int) -> Values:
    """Return R (t, t) with R^T R = P^T P / count for stacked points P (..., t), by QR without forming P^T P."""
    points = np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])
    columns = points.shape[1]
    triangle = np.linalg.qr(np.concatenate([points, np.zeros((columns, columns))]), mode="r")
    return np.asarray(triangle / np.sqrt(count))
