"""Monomials, and raw moments of normal, exponential and shifted distributions."""

from __future__ import annotations

from math import comb, factorial
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


def normal_moments(order: int) -> Values:
    """Return E Z^k of the standard normal distribution for k = 0, …, order: 1, 0, 1, 0, 3, …."""
    moments = np.zeros(order + 1)
    moments[0] = 1
    for k in range(2, order + 1, 2):
        moments[k] = (k - 1) * moments[k - 2]
    return moments


def exponential_moments(order: int) -> Values:
    """Return E E^k = k! of the standard exponential distribution for k = 0, …, order."""
    return np.array([float(factorial(k)) for k in range(order + 1)])


def monomials(points: Values, exponents: NDArray[np.intp]) -> Values:
    """Return prod_c u_ic^e_jc, (p, q), for points (p, t) and exponents (q, t)."""
    return np.stack([np.prod(points**powers, axis=1) for powers in exponents], axis=1)


def shifted_moments(loc: Values, scale: Values, standard: Values) -> Values:
    """Return E (loc + scale Z)^k for k = 0, …, q, (…, q + 1), by the binomial theorem.

    Parameters
    ----------
    loc, scale : (…)
        Location and scale.
    standard : (q + 1,) or (…, q + 1)
        E Z^k.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # moments that overflow are not finite
        powers = [
            sum(comb(k, j) * loc ** (k - j) * scale**j * standard[..., j] for j in range(k + 1))
            for k in range(standard.shape[-1])
        ]
    return np.stack(powers, axis=-1)
