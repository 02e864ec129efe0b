"""Scores of rows, by which corrections are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from calcheck.distributions.intervals import Intervals
from calcheck.distributions.quantiles import Quantiles
from calcheck.distributions.recalibrated import Recalibrator, recalibrate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions

    Values = NDArray[np.float64]

Score = Literal["crps", "nll", "interval"]
LEVEL = 0.9  # Of the intervals whose score is computed
METRIC_OF_SCORE = {"crps": "crps", "nll": "nll", "interval": "interval-score"}
UNCHANGED = Recalibrator(np.array([0.0, 1.0]), np.array([0.0, 1.0]))


@dataclass(frozen=True)
class RowScore:
    """A score of rows that is defined for all corrections that are compared.

    Parameters
    ----------
    metric : str
        Name of the metric that is its mean.
    compute : callable
        Returns the scores of rows, (n,); smaller is better.
    """

    metric: str
    compute: Callable[[Predictions], Values]


def row_score(stated: Predictive, score: Score, stages: Sequence[str], levels: Sequence[float]) -> RowScore:
    """Return the score by which corrections of stated distributions are compared with no change.

    What a correction changes besides, such as draws that become quantiles, is changed in all rows that are compared.

    Parameters
    ----------
    stated : Predictive
        The n distributions as the file states them.
    score : str
        The score that was asked for.
    stages : sequence of str
        Stages of the corrections.
    levels : sequence of float
        Levels of the intervals that conformal corrections make of distributions.
    """
    if isinstance(stated, Intervals):
        return RowScore("interval-score", lambda rows: score_rows(rows, "interval"))
    if isinstance(stated, Quantiles):
        if score == "crps":
            return RowScore("pinball", lambda rows: score_levels(rows, stated))
    elif "conformal" in stages:
        return RowScore("interval-score", lambda rows: score_intervals(rows, levels))
    elif stated.n_draws is not None and "probability" in stages and score == "crps":
        return RowScore("crps", score_quantiles)
    return RowScore(METRIC_OF_SCORE[score], lambda rows: score_rows(rows, score))


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


def score_levels(rows: Predictions, stated: Quantiles) -> Values:
    """Return the mean pinball loss of the stated levels, (n,); levels that a correction lost are unchanged."""
    predictive = rows.distributions().load()
    if not isinstance(predictive, Quantiles):
        raise TypeError(type(predictive))
    values = stated.values.copy()
    values[:, np.isin(stated.levels, predictive.levels)] = predictive.values
    away = rows.targets().reshape(len(rows), 1) - values
    return np.asarray(np.maximum(stated.levels * away, (stated.levels - 1) * away).mean(axis=1))


def score_intervals(rows: Predictions, levels: Sequence[float]) -> Values:
    """Return the mean interval score of central intervals at some levels, (n,)."""
    predictive = rows.distributions().load()
    if isinstance(predictive, Intervals):
        return score_rows(rows, "interval")
    y = rows.targets().reshape(len(rows))
    scores = [_interval_scores(y, *predictive.central_interval(level), level) for level in levels]
    return np.asarray(np.mean(scores, axis=0))


def score_quantiles(rows: Predictions) -> Values:
    """Return the CRPS of draws after their conversion to quantiles, (n,)."""
    return recalibrate(rows.distributions(), UNCHANGED).crps(rows.targets().reshape(len(rows)))


def _interval_scores(y: Values, low: Values, high: Values, level: Values | float) -> Values:
    """Return the interval (Winkler) scores, in the shape of the limits (Gneiting, Raftery 2007)."""
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return np.asarray(high - low + 2 / (1 - level) * missed)
