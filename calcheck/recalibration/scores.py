"""Scores of rows, by which corrections are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from calcheck.distributions.intervals import Intervals
from calcheck.distributions.quantiles import Quantiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]

Score = Literal["crps", "nll", "interval"]
LEVEL = 0.9  # Of the intervals whose score is computed


def score_rows(rows: Predictions, score: Score) -> Values:
    """Return the score of each row, (n,); smaller is better.

    Parameters
    ----------
    rows : Predictions
        Rows with targets, one per row.
    score : str
        ``"crps"``: for intervals their mean interval score, for draws the score of the draws themselves;
        ``"nll"``: the negative log-likelihood; ``"interval"``: the interval score of central 90 % intervals.

    Notes
    -----
    Scaled draws are not independent draws of any distribution: the fair CRPS of perfect draws falls if they are spread
    further. The expected score of the draws themselves is smallest if perfect draws are left as they are, of whatever
    distribution: with D = E|X - X'|, both of its terms grow with the factor at the rate (1 - 1 / m) D / 2.

    Raises
    ------
    DataError
        The distributions have no density, or no such interval.
    """
    predictive, y = rows.distributions().load(), rows.targets()
    y = y.reshape(len(y))
    if isinstance(predictive, Intervals):
        scores = _interval_scores(y[:, None], predictive.lower, predictive.upper, predictive.levels)
        return np.asarray(scores.mean(axis=1))
    if score == "nll":
        return -predictive.log_prob(y)
    if score == "interval":
        return _interval_scores(y, *predictive.central_interval(LEVEL), LEVEL)
    return predictive.crps(y)


def score_levels(rows: Predictions) -> Values:
    """Return twice the mean pinball loss of the levels of each row, (n,), for distributions given by quantiles."""
    predictive = rows.distributions().load()
    if not isinstance(predictive, Quantiles):
        raise TypeError(type(predictive))
    away = rows.targets().reshape(len(rows), 1) - predictive.values
    return np.asarray(2 * np.maximum(predictive.levels * away, (predictive.levels - 1) * away).mean(axis=1))


def _interval_scores(y: Values, low: Values, high: Values, level: Values | float) -> Values:
    """Return the interval (Winkler) scores, in the shape of the limits (Gneiting, Raftery 2007)."""
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return np.asarray(high - low + 2 / (1 - level) * missed)
