"""Scores of corrections on rows that they were not fitted to, and the choice among methods by cross-validation."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Literal, cast

import numpy as np

from calcheck.core.text import count_of
from calcheck.dependence.clusters import Clusters, WeightedMean, find_clusters, weighted_mean
from calcheck.distributions import Predictive
from calcheck.distributions.quantiles import MIN_LEVELS, Intervals, Quantiles
from calcheck.distributions.recalibrated import Recalibrator, recalibrate
from calcheck.distributions.row_random import Words, hash_rows
from calcheck.errors import DataError, NumericalError, RefusedError
from calcheck.execution.run import RowDependence
from calcheck.predictions import Predictions, concat
from calcheck.recalibration.corrections import HeavyTails, assign_folds
from calcheck.recalibration.features import z_scores
from calcheck.recalibration.methods import NONE, FitOptions, Known, Method, apply_steps
from calcheck.statistics.groups import effective_count
from calcheck.statistics.zscores import require_different_errors
from calcheck.typing import Indices, Values

BY_CHANCE = 0.5  # Maximum share of rows with equal contents that happens by chance, for targets that are counts
Score = Literal["crps", "nll", "interval"]
Form = Literal["same", "quantiles"]
LEVEL = 0.9  # Of the intervals whose score is computed
METRIC_OF_SCORE = {"crps": "crps", "nll": "nll", "interval": "interval-score"}
UNCHANGED = Recalibrator(np.array([0.0, 1.0]), np.array([0.0, 1.0]))


def require_other_rows(fitted: Predictions, others: Predictions) -> None:
    """Raise if rows, by keys and targets or else by contents, are among those to which a correction was fitted.

    Contents that occur twice in one file are not compared; of counts, equal by chance, less than half of the rows may
    be.
    """
    with_keys = fitted.id is not None and others.id is not None
    first, second = (_contents(rows, with_keys=with_keys) for rows in (fitted, others))
    shared = np.isin(second, first)
    count = int(shared.sum())
    by_chance = not with_keys and others.distributions().is_discrete
    if count > (BY_CHANCE * len(second) if by_chance else 0):
        place = int(np.argmax(np.isin(_hashes(others, with_keys=with_keys), second[shared])))
        how = "key and target" if with_keys else "target and prediction"
        raise DataError(
            f"{count_of(count, 'row is', 'rows are')} also among those to which the correction is fitted (the"
            f" same {how}; the first is row {int(others.row_numbers()[place]):,}). Judge it on other rows, or leave out"
            " --to: then each row is corrected by what the others teach"
        )


def _contents(rows: Predictions, *, with_keys: bool) -> Words:
    """Return the hashes of the contents that occur once."""
    different, counts = np.unique(_hashes(rows, with_keys=with_keys), return_counts=True)
    return np.asarray(different[counts == 1])


def _hashes(rows: Predictions, *, with_keys: bool) -> Words:
    y = rows.targets().reshape(len(rows), -1)
    if not with_keys:
        return hash_rows([y, rows.distributions().hashes(0)], 0)
    from hashlib import blake2b

    texts = (str(key).encode() for key in np.asarray(rows.id).tolist())
    keys = np.array([int.from_bytes(blake2b(text, digest_size=8).digest()) for text in texts], dtype=np.uint64)
    return hash_rows([y, keys], 0)


@dataclass(frozen=True)
class RowScore:
    """A score of rows that is defined for all corrections that are compared."""

    metric: str  # Name of the metric that is its mean
    compute: Callable[[Predictions], Values]  # Returns the scores of rows, (n,); smaller is better


def row_score(stated: Predictive, score: Score, stages: Sequence[str], levels: Sequence[float]) -> RowScore:
    """Return the score by which corrections of stated distributions are compared with no change, for all rows alike."""
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

    That of draws is not fair: the fair CRPS of perfect draws falls if they are spread further, while the expected score
    of the draws themselves is smallest if perfect draws are left as they are.
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
    predictive = cast("Quantiles", rows.distributions().load())
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


MANY_ROWS = 300
FEW_ERRORS, MANY_ERRORS = 0.5, 1.0
"""Standard errors by which a simpler method may be worse than the best, below :data:`MANY_ROWS` and from there.

Measured by ``python -m tests.benchmarks.recalibration choice``. With 100 rows, where nothing is wrong, the best changes
the CRPS of new rows by +0.28 %, half an error by +0.11 %, one error by +0.01 %. They remove 79, 68 and 47 % of what a
bias of 0.3 standard deviations costs, and 84, 85 and 76 % for a factor of 1.4. With 300 rows, half an error and one
error remove 95 and 94 % of what the bias costs, and leave what is right as it is in 81 and 94 % of data sets.
"""
CLEAR_ERRORS = 2.0  # Standard errors by which scores are clearly better
NORMAL_DEGREES = 100.0  # Degrees of freedom of Student-t distributions that are as good as normal
LEAST_GAIN = 1e-12  # Relative differences of scores below this are rounding


WEIGHTS = "weight of new inputs"  # Column of weights, if a correction is for other inputs
# What the rows outside of a fold must have: rows that count, and weight relative to that of rows outside of all folds
FEWEST_COUNTED, LEAST_WEIGHT = 20, 0.1


def require_rows_like_new(rows: Predictions, fold: Indices) -> None:
    """Raise if rows have weights, and nearly none of those that count are outside of one fold."""
    if (weights := rows.columns.get(WEIGHTS)) is None:
        return
    labels = np.unique(fold)
    usual = float(weights.sum()) * (1 - 1 / len(labels))
    rests = [weights[fold != label] for label in labels]
    counts = [effective_count(rest) if rest.sum() >= LEAST_WEIGHT * usual else 0.0 for rest in rests]
    if min(counts) < FEWEST_COUNTED:
        like = count_of(math.floor(min(counts)), "row that is like them counts", "rows that are like them count")
        raise DataError(
            f"no correction is fitted for new inputs (--on): without one of {len(labels)} folds, {like}, and"
            f" {FEWEST_COUNTED} are needed. Pass more --folds, or test more such rows"
        )


def fitted_rows(rows: Predictions) -> Predictions:
    """Return the rows to fit to: if they have weights, as many as count, each as often as its weight says.

    The sample is systematic along the errors, whose distribution it has nearly; with equal weights, it is all rows.

    Source: Rubin (1988), Bayesian Statistics 3, 395-402: sampling importance resampling.
    """
    weights = rows.columns.get(WEIGHTS)
    if weights is None:
        return rows
    try:
        order = np.argsort(z_scores(rows), kind="stable")
    except DataError:  # of intervals, or with a deviation of 0
        order = np.argsort(rows.distributions().hashes(0), kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    count = max(1, round(effective_count(weights)))
    places = np.searchsorted(shares, (np.arange(count) + 0.5) / count)
    return rows.take(np.sort(order[np.minimum(places, len(order) - 1)]))


@dataclass(frozen=True)
class Candidate:
    """A method with the scores of rows that were not used to fit it."""

    method: Method
    scores: Values | None  # (n,), scores of the rows, in the order of the file; None if the method does not apply
    reason: str = ""  # Why the method does not apply, or is not chosen; empty if it may be
    weights: Values | None = None  # (n,), of the rows; None if all are equal

    @property
    def mean(self) -> float:
        """The mean score; infinite if the method does not apply."""
        return math.inf if self.scores is None else float(np.average(self.scores, weights=self.weights))


@dataclass(frozen=True)
class CrossValidation:
    """Cross-validation of methods on the same folds."""

    rows: Predictions  # Rows with targets, and the columns that methods use
    fold: Indices  # (n,), fold of each row
    options: FitOptions
    row_score: RowScore
    chooses: bool = False  # Whether one of several methods is chosen
    clusters: Clusters | None = None  # Rows that depend on each other, for standard errors
    _known: dict[str, Predictions] = field(default_factory=dict, init=False)

    @cached_property
    def _parts(self) -> list[tuple[Predictions, Predictions, Known]]:
        """The fitted and the other rows of each fold, with the steps that were fitted."""
        folds = [self.fold == each for each in np.unique(self.fold)]
        parts = [(self.rows.take(np.flatnonzero(~held)), self.rows.take(np.flatnonzero(held))) for held in folds]
        return [(fitted_rows(rest), held, {}) for rest, held in parts]

    @property
    def _weights(self) -> Values | None:
        """The weights of the rows, (n,); None if all are equal."""
        return self.rows.columns.get(WEIGHTS)

    @cached_property
    def _order(self) -> Indices:
        """The place of each row among the rows of all folds, one fold after the other, (n,)."""
        return np.argsort(np.argsort(self.fold, kind="stable"), kind="stable")

    def corrected(self, method: Method) -> Predictions:
        """Return all rows, each corrected by a fit to the other folds."""
        if method.name not in self._known:
            parts = []
            for fitted, held, known in self._parts:
                steps = method.fit(fitted, self.options, known)
                if not self.options.selects:
                    self._require_groups(steps, held)
                parts.append(apply_steps(steps, held))
            self._known[method.name] = concat(at_common_levels(parts)).take(self._order)
        return self._known[method.name]

    @staticmethod
    def _require_groups(steps: Sequence[object], held: Predictions) -> None:
        """Raise if the rows of a fold have a group that the other folds do not have."""
        for feature in (each for step in steps for each in getattr(step, "features", ())):
            if feature.kind == "category" and feature.outside(held).any():
                missing = np.asarray(held.columns[feature.column]).astype(str)[feature.outside(held)][0]
                raise DataError(
                    f"the group {str(missing)!r} of column {feature.column!r} is in one fold only, so nothing can be"
                    " fitted for it. Join it with another group, or leave the column out"
                )

    def candidate(self, method: Method) -> Candidate:
        """Return a method with its scores, or the reason why it does not apply."""
        try:
            with np.errstate(all="ignore"):  # scores that are not finite become a reason
                rows = self.rows if method.name == NONE else self.corrected(method)
                scores = self.row_score.compute(rows.observed())
        except RefusedError:
            raise
        except (DataError, NumericalError) as error:
            return Candidate(method, None, str(error))
        if not np.isfinite(scores).all():
            return Candidate(method, None, "some scores are infinite")
        if self.chooses and np.median(self._degrees(method) or [0.0]) >= NORMAL_DEGREES:
            return Candidate(method, scores, "the tails of the errors are not heavier than normal ones")
        return Candidate(method, scores, weights=self._weights)

    def _degrees(self, method: Method) -> list[float]:
        """Return the degrees of freedom of the Student-t distributions that were fitted, of each fold."""
        steps = [known[method.name][0] for _, _, known in self._parts if method.name in known]
        return [step.df for step in steps if isinstance(step, HeavyTails)]

    def compare(self, scores: Values, others: Values) -> WeightedMean:
        """Return the mean difference of two scores of the same rows."""
        return weighted_mean(scores - others, self._weights, self.clusters)

    def choose(self, found: Sequence[Candidate], form: Form | None = None) -> Candidate:
        """Return the least free method that is worse than the best by at most one standard error, or half of it.

        Without a form, methods that keep the form of the predictions are preferred, unless one that does not is clearly
        better.
        """
        known = [each for each in found if not each.reason]
        if not known:
            raise DataError(f"no method applies. {found[0].method.name}: {found[0].reason}")
        kept = [each for each in known if each.method.keeps_form]
        if form == "same":
            return self._simplest(kept)
        chosen = self._simplest(known)
        if form == "quantiles" or chosen.method.keeps_form or len(kept) < MIN_LEVELS:
            return chosen
        alike = self._simplest(kept)
        return chosen if self.is_clearly_better(chosen, alike) else alike

    def _simplest(self, known: Sequence[Candidate]) -> Candidate:
        best = min(known, key=lambda each: each.mean)
        return next(each for each in known if self._is_as_good(each, best))

    def is_clearly_better(self, first: Candidate, second: Candidate) -> bool:
        """Return whether the scores of the first method are better by more than two standard errors."""
        if first.scores is None or second.scores is None:
            return second.scores is None
        paired = self.compare(first.scores, second.scores)
        return paired.value < -CLEAR_ERRORS * paired.error

    def _is_as_good(self, candidate: Candidate, best: Candidate) -> bool:
        if candidate.scores is None or best.scores is None or candidate is best:
            return candidate is best
        count = len(self.rows) if self._weights is None else effective_count(self._weights)
        errors = FEW_ERRORS if count < MANY_ROWS else MANY_ERRORS
        paired = self.compare(candidate.scores, best.scores)
        return paired.value <= max(errors * paired.error, LEAST_GAIN * abs(best.mean))


def at_common_levels(parts: list[Predictions]) -> list[Predictions]:
    """Return the rows of several folds, of which those given by quantiles have the levels that all folds have."""
    given = [part.distributions().load() for part in parts]
    levels = [each.levels for each in given if isinstance(each, Quantiles)]
    if len(levels) < len(parts):
        return parts
    common = reduce(np.intersect1d, levels)
    if len(common) < MIN_LEVELS:
        msg = "corrections fitted to the other folds leave fewer than two quantiles in common: outer ones are needed"
        raise DataError(msg)
    return [
        part.with_targets(part.targets(), Quantiles(common, each.values[:, np.isin(each.levels, common)]))
        for part, each in zip(parts, given, strict=True)
        if isinstance(each, Quantiles)
    ]


def cross_validate(
    rows: Predictions,
    methods: Sequence[Method],
    options: FitOptions,
    *,
    folds: int = 5,
    score: Score = "crps",
    dependence: RowDependence | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> tuple[CrossValidation, list[Candidate]]:
    """Return the cross-validation, and the methods with their scores."""
    dependence = dependence or RowDependence()
    fold = assign_folds(rows, folds, seed=options.seed, dependence=dependence)
    require_rows_like_new(rows, fold)
    require_different_errors(rows)
    stages = [step.stage for method in methods for step in method.steps]
    compared = row_score(rows.distributions().load(), score, stages, options.levels)
    clusters, chooses = find_clusters(rows, dependence), len(methods) > 2  # noqa: PLR2004 - no change, and a method
    validation = CrossValidation(rows, fold, options, compared, chooses, clusters)
    found = []
    for done, method in enumerate(methods):
        if progress is not None:
            progress("methods", done / len(methods))
        found.append(validation.candidate(method))
    return validation, found
