"""Tails beyond a threshold: how often targets exceed it, and by how much, against what is predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calcheck.distributions.samples import Samples
from calcheck.statistics.cache import cached
from calcheck.statistics.moments import targets
from calcheck.statistics.pit import pit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]


class Exceedances(NamedTuple):
    """Targets beyond a threshold, by row, (n,) each.

    Parameters
    ----------
    exceeds : (n,)
        Whether the target is beyond the threshold, 0 or 1.
    probability : (n,)
        Predicted probability of that.
    excess : (n,)
        Twice the PIT of the excess, given that there is one, in [0, 2]; 0 for other rows. 1 on average if the
        distribution is right.
    """

    exceeds: Values
    probability: Values
    excess: Values


@cached
def mixture_quantile(predictive: Predictive, level: float) -> float:
    """Return the quantile of the mixture of all distributions with equal weights, unit of y.

    Draws are pooled. Others are found by bisection between the smallest and the largest quantile, to the last digit.

    Parameters
    ----------
    predictive : Predictive
        n distributions.
    level : float
        Level, strictly between 0 and 1.
    """
    if predictive.n_draws is not None:
        pooled = [batch.draws.ravel() for _, batch in predictive.batches() if isinstance(batch, Samples)]
        return float(np.quantile(np.concatenate(pooled), level, method="inverted_cdf"))
    quantiles = predictive.quantile(level)
    low, high = np.nextafter(quantiles.min(), -np.inf), quantiles.max()
    while low < (middle := low + (high - low) / 2) < high:
        if predictive.cdf(np.full(len(predictive), middle)).mean() >= level:
            high = middle
        else:
            low = middle
    return float(high)


def _probability(predictive: Predictive, mass: Values) -> Values:
    """Return the probability of a half-line, given its mass by the CDF, which keeps 1/(m + 1) of m draws apart."""
    draws = predictive.n_draws
    return mass if draws is None else mass * (1 + 1 / draws)


def exceedances(rows: Predictions, threshold: float, *, upper: bool) -> Exceedances:
    """Return the targets above a threshold, or below it.

    Where a distribution jumps at its target, the PIT is the middle of the jump. Of m draws, those beyond the threshold
    and the target have equally probable ranks.

    Parameters
    ----------
    rows : Predictions
        n rows.
    threshold : float
        Threshold, unit of y.
    upper : bool
        Whether targets above the threshold exceed it.

    References
    ----------
    Allen, Koh, Segers, Ziegel (2024), "Tail calibration of probabilistic forecasts".
    """
    predictive, y = rows.distributions(), targets(rows)
    at = np.full(len(y), threshold)
    middle = sum(pit(rows)) / 2
    rank, mass = (1 - middle, 1 - predictive.cdf(at)) if upper else (middle, predictive.cdf_left(at))
    exceeds = np.asarray(y > threshold if upper else y < threshold, dtype=np.float64)
    most = mass if predictive.n_draws is None else mass + 1 / (predictive.n_draws + 1)
    beyond = np.divide(rank, most, out=np.zeros_like(rank), where=most > 0)
    return Exceedances(exceeds, _probability(predictive, mass), exceeds * 2 * (1 - beyond))
