"""The Fréchet distance of two Gaussians known by roots of their covariances, which may be singular."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calcheck.errors import DataError
from calcheck.execution.backend import namespace

if TYPE_CHECKING:
    from calcheck.execution.backend import Array


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and covariance.

    Parameters
    ----------
    mean : (p,)
        The mean.
    root : (k, p)
        Any Z with Z^T Z the covariance: centred data, a triangular factor, the scaled eigenvectors …
    """

    mean: Array
    root: Array


def moments(x: Array, targets: Array) -> Moments:
    """Return the moments of (x, y) over rows.

    Each row weighs 1 / n, shared evenly by its targets; the covariance has n / (n - 1) times that.

    Parameters
    ----------
    x : (n, d)
        Inputs.
    targets : (n, r, t)
        Targets, or draws.

    Raises
    ------
    DataError
        There is one row only.
    """
    n, size, _ = targets.shape
    if n == 1:
        msg = "one row has no covariance. Give at least 2"
        raise DataError(msg)
    xp = namespace(targets)
    repeated = xp.broadcast_to(x[:, None, :], (n, size, x.shape[1]))
    joint = xp.concat([repeated, targets], axis=2).reshape(n * size, -1)
    mean = xp.mean(joint, axis=0)
    return Moments(mean, (joint - mean) / (size * (n - 1)) ** 0.5)


def frechet(one: Moments, other: Moments) -> Array:
    """Return |m - m'|^2 + tr (C + C' - 2 (C^(1/2) C' C^(1/2))^(1/2)).

    The last trace is the sum of the singular values of Z Z'^T: of R R'^T, by the QR factorisations of both roots. No
    covariance is formed, squared or inverted, so a singular one costs no digits. Gradients by autograd need roots of
    full column rank, and singular values that differ from 0.

    Returns
    -------
    () array
    """
    xp: Any = namespace(one.root)
    overlap = _triangle(one.root) @ _triangle(other.root).T
    gap = one.mean - other.mean
    squares = xp.sum(gap * gap) + xp.sum(one.root * one.root) + xp.sum(other.root * other.root)
    return squares - 2 * xp.sum(xp.linalg.svdvals(overlap))


def _triangle(root: Array) -> Array:
    """Return R (min(k, p), p) with R^T R = Z^T Z."""
    return namespace(root).linalg.qr(root)[1]
