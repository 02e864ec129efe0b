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
