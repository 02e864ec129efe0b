"""Within-row means and covariances of targets, draws and predictive distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.distributions.joint import JointGaussian
from calcheck.distributions.samples import Samples
from calcheck.mmd.frechet import qr_factor
from calcheck.validation import require_finite

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive

    Values = NDArray[np.float64]


def covariances_within_targets(y: Values) -> tuple[Values, Values]:
    """Return row means (n, t) of targets (n, r, t), and R (q, t) with R^T R the mean within-row covariance.

    Covariances divide by r.
    """
    mean = y.mean(axis=1)
    return mean, _root_of_mean(y - mean[:, None], y.shape[0] * y.shape[1])


def covariances_within_rows(predictive: Predictive) -> tuple[Values, Values]:
    """Return the means of the distributions, (n, t), and R (q, t) with R^T R their mean covariance.

    Raises
    ------
    DataError
        A distribution has no finite mean or variance.
    """
    n, t = len(predictive), predictive.targets
    _, first = next(iter(predictive.batches()))
    if not isinstance(first, (Samples, JointGaussian)):
        mean, std = predictive.mean().reshape(n, t), predictive.std().reshape(n, t)
        require_finite("mean", mean)
        require_finite("std", std)
        return mean, np.diag(np.sqrt(np.mean(std**2, axis=0)))
    means, triangles = [], []
    for _, batch in predictive.batches():
        if isinstance(batch, (Samples, JointGaussian)):
            mean, deviations = _mean_and_deviations(batch, t)
            means.append(mean)
            triangles.append(_root_of_mean(deviations, 1))
    return np.concatenate(means), _root_of_mean(np.concatenate(triangles), n * (predictive.n_draws or 1))


def _mean_and_deviations(batch: Samples | JointGaussian, t: int) -> tuple[Values, Values]:
    """Return the means, (b, t), and D (b, q, t) with D^T D the covariance of each row, times the number of draws."""
    if isinstance(batch, JointGaussian):
        return batch.loc, np.swapaxes(batch.cholesky, 1, 2)
    draws = batch.draws.reshape(len(batch), batch.n_draws, t)
    mean = draws.mean(axis=1)
    return mean, draws - mean[:, None]


def _root_of_mean(points: Values, count: int) -> Values:
    """Return R with R^T R = P^T P / count for points P (..., t)."""
    return np.asarray(qr_factor(points.reshape(-1, points.shape[-1])) / np.sqrt(count))
