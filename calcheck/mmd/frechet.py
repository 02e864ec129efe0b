"""Fréchet distances, and the covariances they need."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calcheck.core.validation import require_finite
from calcheck.distributions import Predictive
from calcheck.distributions.joint import JointGaussian
from calcheck.distributions.samples import Samples
from calcheck.errors import DataError, NumericalError
from calcheck.execution.backend import namespace
from calcheck.typing import Array, Values


def covariances_within_targets(y: Values) -> tuple[Values, Values]:
    """Return row means (n, t) of targets (n, r, t), and R (q, t) with R^T R their mean covariance within rows."""
    mean = y.mean(axis=1)
    return mean, _root_of_mean(y - mean[:, None], y.shape[0] * y.shape[1])


def covariances_within_rows(predictive: Predictive) -> tuple[Values, Values]:
    """Return the means of the distributions, (n, t), and R (q, t) with R^T R their mean covariance."""
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


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and covariance of a distribution."""

    mean: Array  # (p,)
    # (k, p), any Z with Z^T Z equal to the covariance: centered data, a triangular factor, or scaled eigenvectors
    root: Array


def moments(x: Array, targets: Array) -> Moments:
    """Return the moments of x (n, d) and targets (n, r, t): rows weigh 1 / n, covariances carry n / (n - 1)."""
    n, size, _ = targets.shape
    _require_rows(n)
    xp = namespace(targets)
    repeated = xp.broadcast_to(x[:, None, :], (n, size, x.shape[1]))
    joint = xp.concat([repeated, targets], axis=2).reshape(n * size, -1)
    mean = xp.mean(joint, axis=0)
    return Moments(mean, (joint - mean) / (size * (n - 1)) ** 0.5)


class SharedInputs:
    """Inputs (n, d) shared by several samples; their factorization is reused for the joint moments of each sample."""

    def __init__(self, x: Array) -> None:
        _require_rows(len(x))
        self._mean = x.mean(axis=0)
        self._basis, self._root = namespace(x).linalg.qr(x - self._mean)  # (n, k), (k, d)

    @property
    def columns(self) -> int:
        """Number of input columns, d."""
        return len(self._mean)

    def joint_moments(self, means: Array, within: Array, spread: Array) -> Moments:
        """Return the joint moments of inputs and a variable with means (n, t), roots within (q, t) and spread (t,)."""
        xp, n = namespace(means), len(means)
        scaled = means / spread
        mean = xp.mean(scaled, axis=0)
        across = self._basis.T @ (scaled - mean)
        rest = xp.concat([scaled - mean - self._basis @ across, n**0.5 * within / spread])
        below = qr_factor(rest)
        right = xp.concat([across, below])
        left = xp.concat([self._root, xp.zeros((len(below), self.columns), dtype=right.dtype)])
        return Moments(xp.concat([self._mean, mean]), xp.concat([left, right], axis=1) / (n - 1) ** 0.5)


def frechet(one: Moments, other: Moments) -> Array:
    """Return |m - m'|^2 + tr (C + C' - 2 (C^(1/2) C' C^(1/2))^(1/2)).

    The last trace is the sum of the singular values of R R'^T, with R from the QR factorization of each root, so that
    singular covariances lose no precision. Autograd gradients need roots of full column rank and nonzero singular
    values.
    """
    xp: Any = namespace(one.root)
    overlap = qr_factor(one.root) @ qr_factor(other.root).T
    gap = one.mean - other.mean
    squares = xp.sum(gap * gap) + xp.sum(one.root * one.root) + xp.sum(other.root * other.root)
    if not bool(xp.isfinite(squares)) or not bool(xp.all(xp.isfinite(overlap))):
        msg = "the covariances of inputs and targets overflow. Check the unit of the predictions and targets"
        raise NumericalError(msg)
    return squares - 2 * xp.sum(xp.linalg.svdvals(overlap))


def _require_rows(n: int) -> None:
    if n == 1:
        raise DataError("cannot compute a covariance from 1 row. Pass at least 2 rows")


def qr_factor(root: Array) -> Array:
    """Return R (min(k, p), p) with R^T R = Z^T Z; Z itself if it has at most as many rows as columns."""
    if root.shape[0] <= root.shape[1]:
        return root
    if isinstance(root, np.ndarray):
        return np.linalg.qr(root, mode="r")
    return namespace(root).linalg.qr(root)[1]
