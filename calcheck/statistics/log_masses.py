"""Probability masses that continuous distributions give to whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive

    Values = NDArray[np.float64]

NODES = 64  # Of the quadrature for masses in the tails
SMALL = 1e-6  # Mass below which the difference of distribution functions loses digits


def log_masses(predictive: Predictive, y: Values) -> Values:
    """Return log(F(k + 1/2) - F(k - 1/2)) for the integers k nearest to the targets, (n,).

    In the tails, where the difference loses its digits, the density is integrated by Gauss-Legendre quadrature.

    Parameters
    ----------
    predictive : Predictive
        n continuous distributions.
    y : (n,)
        Targets, or replicates of them, which are rounded.
    """
    k = np.rint(y)
    mass = predictive.cdf(k + 0.5) - predictive.cdf(k - 0.5)
    small = np.flatnonzero(mass < SMALL)
    with np.errstate(divide="ignore"):
        found = np.log(np.maximum(mass, 0))
        found[small] = _integrated(predictive.take(small), k[small])
    return found


def _integrated(predictive: Predictive, k: Values) -> Values:
    """Return the logarithm of the integral of the density over [k - 1/2, k + 1/2], (n,)."""
    from scipy.special import logsumexp

    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    logs = np.stack([predictive.log_prob(k + node / 2) for node in nodes])
    return np.asarray(logsumexp(logs, axis=0, b=weights[:, None] / 2))
