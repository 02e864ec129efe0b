"""The kernel on targets, k_Y, and its means for normal and exponential distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

STEEPEST = 1e100  # Maximum rate of exponential distributions, in units of sqrt(gamma): effectively point masses
FARTHEST = 1e100  # Maximum distance or scale, in length scales: effectively infinite, but its square is finite

if TYPE_CHECKING:
    from numpy.typing import NDArray


def rbf(values: NDArray[np.float64], points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exp(-sum_c gamma_c (u_c - v_c)^2) between (p, t) values and (r, t) points, (p, r).

    ``gamma`` is (t,), or (r, t) with one row per point.
    """
    exponent, square = np.zeros((2, len(values), len(points)))
    for column in range(points.shape[1]):
        np.subtract(values[:, column, None], points[:, column], out=square)
        square *= square
        square *= gamma[..., column]
        exponent -= square
    kernel: NDArray[np.float64] = np.exp(exponent, out=exponent)
    return kernel


def in_lengths(distance: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return distances or scales in units of 1 / sqrt(gamma), clipped so that their squares are finite."""
    with np.errstate(over="ignore"):
        return np.clip(distance * np.sqrt(gamma), -FARTHEST, FARTHEST)


def normal_kernel_mean(
    distance: NDArray[np.float64], scale: NDArray[np.float64], gamma: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return E exp(-gamma (d - E)^2) for E ~ N(0, scale^2), with broadcasting."""
    spread = 1 + 2 * in_lengths(scale, gamma) ** 2
    return np.asarray(np.exp(-(in_lengths(distance, gamma) ** 2) / spread) / np.sqrt(spread))


def joint_normal_kernel_mean(
    distances: NDArray[np.float64], cholesky: NDArray[np.float64], gamma: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return E exp(-sum_c gamma_c (d_c - E_c)^2) for normal vectors E with mean 0 and covariance L L^T, (n, r).

    With G = diag(gamma)^(1/2) and M = I + 2 G L L^T G, the value is det(M)^(-1/2) exp(-(G d)^T M^(-1) (G d)), computed
    by elimination of one target at a time. Its pivots are at least 1.

    Parameters
    ----------
    distances : (t, n, r)
        Distances d of the points from the means.
    cholesky : (n, t, t)
        Lower triangular factors L.
    gamma : (t,) or (r, t)
        Parameter of the kernel; shared, or per point.
    """
    t = len(distances)
    away = [in_lengths(distances[one], gamma[..., one]) for one in range(t)]
    rows = [[in_lengths(cholesky[:, one, k, None], gamma[..., one]) for k in range(one + 1)] for one in range(t)]
    lower = [[2 * _product(rows[one], rows[other]) for other in range(one + 1)] for one in range(t)]
    exponent, determinant = np.zeros((2, *distances.shape[1:]))
    with np.errstate(over="ignore"):
        for one in range(t):
            pivot = np.maximum(1 + lower[one][one], 1.0)
            exponent -= away[one] ** 2 / pivot
            determinant += np.log(pivot)
            for other in range(one + 1, t):
                ratio = lower[other][one] / pivot
                away[other] = away[other] - ratio * away[one]
                for third in range(one + 1, other + 1):
                    lower[other][third] = lower[other][third] - ratio * lower[third][one]
    return np.asarray(np.exp(exponent - determinant / 2))


def _product(first: list[NDArray[np.float64]], second: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the product of two vectors, whose missing last entries are 0."""
    return np.asarray(sum(one * other for one, other in zip(first, second, strict=False)))


def exponential_kernel_mean(
    distance: NDArray[np.float64], scale: NDArray[np.float64], gamma: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return E exp(-gamma (d - E)^2) for E exponential with mean ``scale`` >= 0 and any d, with broadcasting.

    With A = 1 / (2 scale sqrt(gamma)) and D = d sqrt(gamma), the value is sqrt(pi) A exp(A^2 - 2 A D) erfc(A - D). It
    is computed in one of two equivalent forms, depending on the sign of A - D, to avoid overflow.
    """
    from scipy.special import erfc, erfcx

    with np.errstate(divide="ignore"):
        steep = np.minimum(1 / (2 * in_lengths(scale, gamma)), STEEPEST)  # A
    near = np.broadcast_to(
        in_lengths(distance, gamma), np.broadcast_shapes(distance.shape, steep.shape, np.shape(gamma))
    )  # D
    ahead = steep - near  # A - D
    before = np.exp(-(near**2)) * erfcx(np.maximum(ahead, 0))
    beyond = np.exp(np.minimum(steep * (ahead - near), 0)) * erfc(np.minimum(ahead, 0))
    return np.asarray(np.sqrt(np.pi) * steep * np.where(ahead >= 0, before, beyond))
