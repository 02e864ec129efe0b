"""The kernel on targets, k_Y."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def rbf(values: NDArray[np.float64], points: NDArray[np.float64], gamma: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exp(-sum_c gamma_c (u_c - v_c)^2) between (p, t) values and (r, t) points, (p, r).

    ``gamma`` is (t,), or (r, t) with one for each point.
    """
    exponent = np.zeros((len(values), len(points)))
    for column in range(points.shape[1]):
        exponent -= gamma[..., column] * (values[:, column, None] - points[:, column]) ** 2
    kernel: NDArray[np.float64] = np.exp(exponent, out=exponent)
    return kernel
