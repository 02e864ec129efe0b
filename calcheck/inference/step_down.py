"""P-values of several statistics, adjusted for their number on the same replicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.inference.p_values import TIED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calcheck.report import Alternative

    Values = NDArray[np.float64]

TAIL = 0.025  # Tails beyond the quantiles that are the unit of a statistic on each side


def standardize(statistics: Values, alternatives: Sequence[Alternative]) -> Values:
    """Return how extreme each statistic is, (k, N), in units of its quantiles; 0 at the median, larger is more extreme.

    Parameters
    ----------
    statistics : (k, N)
        Statistics of N data sets as columns. An undefined value is as extreme as the largest.
    alternatives : sequence of str
        Extreme values of each statistic, k of them.

    Notes
    -----
    Distances above the median are divided by that of the 97.5 % quantile, those below by that of the 2.5 % quantile,
    which allows for skewed statistics. All columns are treated alike, so they stay exchangeable.

    References
    ----------
    Myllymäki, Mrkvička, Grabarnik, Seijo, Hahn (2017), directional quantile measure.
    """
    low, middle, high = np.nanquantile(statistics, [TAIL, 0.5, 1 - TAIL], axis=1)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.where(high > middle, (statistics - middle) / (high - middle), np.sign(statistics - middle))
        below = np.where(low < middle, (statistics - middle) / (middle - low), np.sign(statistics - middle))
    sides = {"greater": above, "less": -below, "two-sided": np.maximum(above, -below)}
    found = np.stack([sides[alternative][place] for place, alternative in enumerate(alternatives)])
    return np.asarray(np.where(np.isnan(found), np.inf, found))


def step_down_p_values(extremes: Values) -> Values:
    """Return the adjusted p-value of each statistic of the first column, (k,).

    Under any combination of right and wrong statistics, the probability that a right one has an adjusted p-value of at
    most alpha is at most alpha: each is compared with the maximum over the statistics that are no more extreme.

    Parameters
    ----------
    extremes : (k, N)
        How extreme each statistic is: of the data in the first column, then of replicates.

    References
    ----------
    Westfall, Young (1993), "Resampling-based multiple testing", algorithm 2.8.
    """
    order = np.argsort(extremes[:, 0], kind="stable")
    largest = np.maximum.accumulate(extremes[order], axis=0)
    own = extremes[order, 0]
    reached = np.sum(largest >= own[:, None] * (1 - TIED * np.sign(own[:, None])), axis=1) / extremes.shape[1]
    p_values = np.empty(len(order))
    p_values[order] = np.maximum.accumulate(reached[::-1])[::-1]
    return p_values
