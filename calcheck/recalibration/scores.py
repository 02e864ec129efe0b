"""Scores of corrections on rows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from calcheck.dependence.columns import column_labels, time_labels
from calcheck.distributions.intervals import Intervals
from calcheck.distributions.quantiles import Quantiles
from calcheck.distributions.recalibrated import Recalibrator, recalibrate
from calcheck.distributions.row_random import Words, hash_rows
from calcheck.errors import DataError
from calcheck.execution.run import RowDependence

if TYPE_CHECKING:
    from calcheck.distributions import Predictive
    from calcheck.predictions import Predictions
    from calcheck.typing import Indices, Values


def assign_folds(rows: Predictions, folds: int, *, seed: int = 0, dependence: RowDependence | None = None) -> Indices:
    """Return the fold of each row, (n,), in 0 … folds - 1.

    Rows are ordered by hashes of their contents, so that other orders of the rows give the same folds. Whole clusters
    are in one fold. Folds of a series are blocks of time, and rows of one time are in one fold; without a column of
    times, the order of the rows is that of time.
    """
    stated = dependence or RowDependence()
    if stated.time is not None or stated.block is not None:
        labels = time_labels(rows, stated.time)
        order = np.arange(labels.max() + 1)
    elif stated.cluster is not None:
        labels = column_labels(rows, stated.cluster)
        order = np.argsort(hash_rows([np.arange(labels.max() + 1.0)], seed), kind="stable")
    else:
        y = rows.targets()
        words = hash_rows([y.reshape(len(y), -1), rows.distributions().hashes(seed)], seed)
        labels, order = np.arange(len(rows)), np.argsort(words, kind="stable")
    fold = _shared(labels, order, folds)
    if len(np.unique(fold)) < folds:
        what = f"different values of {stated.columns[0]!r}" if stated.columns else "rows"
        msg = f"{len(order):,} {what} are too few for {folds} folds. Pass a smaller --folds, or more rows"
        raise DataError(msg)
    return fold


def _shared(labels: Indices, order: Indices, folds: int) -> Indices:
    """Return the folds of rows, if groups in this order are shared out so that folds have about equally many rows."""
    counts = np.bincount(labels)[order]
    before = np.cumsum(counts) - counts / 2
    fold_of_group = np.empty(len(order), np.intp)
    fold_of_group[order] = np.minimum((before / len(labels) * folds).astype(np.intp), folds - 1)
    return fold_of_group[labels]


BY_CHANCE = 0.5  # Maximum share of rows with equal contents that happens by chance, for targets that are counts


def require_other_rows(fitted: Predictions, others: Predictions) -> None:
    """Raise if rows are among those to which a correction was fitted.

    Rows are the same if their keys and targets are equal or, without keys, their targets and predictions. Rows whose
    contents occur twice in one file are not compared, and for counts, which are often equal by chance, less than half
    of the rows may be.
    """
    with_keys = fitted.id is not None and others.id is not None
    first, second = (_contents(rows, with_keys=with_keys) for rows in (fitted, others))
    shared = np.isin(second, first)
    count = int(shared.sum())
    by_chance = not with_keys and others.distributions().is_discrete
    if count > (BY_CHANCE * len(second) if by_chance else 0):
        row = int(others.row_numbers()[_place(others, second[shared][0], with_keys=with_keys)])
        how = "key and target" if with_keys else "target and prediction"
        msg = (
            f"{count:,} rows are also among those to which the correction is fitted (the same {how}; the first is row"
            f" {row:,}). Judge it on other rows"
        )
        raise DataError(msg)


def _contents(rows: Predictions, *, with_keys: bool) -> Words:
    """Return the hashes of the contents that occur once."""
    different, counts = np.unique(_hashes(rows, with_keys=with_keys), return_counts=True)
    return np.asarray(different[counts == 1])


def _place(rows: Predictions, content: np.uint64, *, with_keys: bool) -> int:
    return int(np.argmax(_hashes(rows, with_keys=with_keys) == content))


def _hashes(rows: Predictions, *, with_keys: bool) -> Words:
    y = rows.targets().reshape(len(rows), -1)
    if not with_keys:
        return hash_rows([y, rows.distributions().hashes(0)], 0)
    return hash_rows([y, _words(rows.id)], 0)


def _words(keys: NDArray[np.generic] | None) -> Words:
    """Return hashes of keys, which may be texts."""
    from hashlib import blake2b

    texts = (str(key).encode() for key in np.asarray(keys).tolist())
    return np.array([int.from_bytes(blake2b(text, digest_size=8).digest()) for text in texts], dtype=np.uint64)


Score = Literal["crps", "nll", "interval"]
LEVEL = 0.9  # Of the intervals whose score is computed
METRIC_OF_SCORE = {"crps": "crps", "nll": "nll", "interval": "interval-score"}
UNCHANGED = Recalibrator(np.array([0.0, 1.0]), np.array([0.0, 1.0]))


@dataclass(frozen=True)
class RowScore:
    """A score of rows that is defined for all corrections that are compared."""

    metric: str  # Name of the metric that is its mean
    compute: Callable[[Predictions], Values]  # Returns the scores of rows, (n,); smaller is better


def row_score(stated: Predictive, score: Score, stages: Sequence[str], levels: Sequence[float]) -> RowScore:
    """Return the score by which corrections of stated distributions are compared with no change.

    What a correction changes besides, such as draws that become quantiles, is changed in all rows that are compared.
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

    Scaled draws are not independent draws of any distribution: the fair CRPS of perfect draws falls if they are spread
    further. The expected score of the draws themselves is smallest if perfect draws are left as they are, of whatever
    distribution: with D = E|X - X'|, both of its terms grow with the factor at the rate (1 - 1 / m) D / 2.
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
