"""Bets against a uniform PIT: what the rows of each time contribute to the e-process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaln

from calcheck.statistics.pit import COMPONENTS, NEAREST, component

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

SHAPES = np.exp(np.linspace(-1, 1, 9))
FIRST, SECOND = (grid.ravel() for grid in np.meshgrid(SHAPES, SHAPES))
"""Parameters of the beta densities, (b,) each."""
DENSITIES = len(FIRST)
BLOCK = 1 << 14  # Rows per block of densities, 10 MiB


def log_mean_densities(
    u: Values, group: NDArray[np.intp], count: int, impossible: NDArray[np.bool_] | None = None
) -> Values:
    """Return the log of the mean of each beta density over the rows of each group, (g, b).

    Rows of one time may depend on each other in any way: a mean of e-values is an e-value. A target with probability 0
    has the e-value inf: if the model is right there is none, so that the expected e-value remains at most 1.

    Parameters
    ----------
    u : (n,)
        PIT values; those that round to 0 or 1 count as 1e-16 away from them.
    group : (n,)
        Group of each row, 0 to g - 1; none is empty.
    count : int
        Number of groups, g.
    impossible : (n,), optional
        Whether targets have probability 0.
    """
    u = np.clip(u, NEAREST, 1 - NEAREST)
    sums = np.zeros((count, DENSITIES))
    constant = betaln(FIRST, SECOND)
    for start in range(0, len(u), BLOCK):
        part = u[start : start + BLOCK, None]
        logs = (FIRST - 1) * np.log(part) + (SECOND - 1) * np.log1p(-part) - constant
        np.add.at(sums, group[start : start + BLOCK], np.exp(logs))
    if impossible is not None:
        sums[group[impossible]] = np.inf
    return np.asarray(np.log(sums / np.bincount(group, minlength=count)[:, None]))


def group_means(values: Values, group: NDArray[np.intp], count: int) -> Values:
    """Return the means of columns (n, k) over the rows of each group, (g, k)."""
    sums = np.stack([np.bincount(group, column, minlength=count) for column in values.T], axis=1)
    return np.asarray(sums / np.bincount(group, minlength=count)[:, None])


def jumper_values(u: Values) -> Values:
    """Return the values on which the simple jumpers bet, (n, 2): u, and |2u - 1|. Both are uniform if u is."""
    return np.stack([u, np.abs(2 * u - 1)], axis=1)


def component_values(u: Values) -> Values:
    """Return the components of PIT values, (n, 4): bias, dispersion, skewness and tails."""
    return np.stack([component(degree)(u) for degree in range(1, COMPONENTS + 1)], axis=1)
