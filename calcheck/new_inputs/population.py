"""What tested rows say about a population of new rows, with intervals from resamples."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calcheck.conclusion.answer import Estimate
from calcheck.core import sc
from calcheck.dependence import clusters as row_clusters
from calcheck.embeddings import local_error
from calcheck.embeddings.local_error import LeaveOneOut, cluster_folds
from calcheck.errors import DataError
from calcheck.execution.run import RandomStream, Run
from calcheck.inference.bootstrap import WeightedOrder, binomial_shares, effective_rows
from calcheck.new_inputs.weights import DensityRatio, Reweighting, Weights, local_regression, with_regularizer
from calcheck.options import LEVEL_TOLERANCE
from calcheck.predictions import Predictions
from calcheck.statistics import coverage
from calcheck.statistics.coverage import states_limits
from calcheck.statistics.groups import TieGroups
from calcheck.statistics.pit import mean_component, normal_scores, stated_normal_scores, stated_pit
from calcheck.statistics.zscores import standardized_errors
from calcheck.typing import Indices, Values

RESAMPLES = 199
FLIPS = 199  # Number of sets of random signs
FEWEST_ROWS = 30  # Fewest tested rows that count, for a statement about the uncertainties; or times of a series
FEWEST_CLUSTERS = 12  # Fewest clusters that count, if rows depend on each other
Outputs = Callable[[Values], Values]  # Returns outputs (n, c) of rows with weights (n,)
VARIES = 1e-3  # Least variance of a direction of the inputs, relative to the largest


@dataclass(frozen=True, eq=False)
class Population:
    """Tested rows with weights as among new ones."""

    rows: Predictions
    tested: Values  # (n, d), their scaled inputs
    new: Values  # (m, d), those of the new rows
    regression: LeaveOneOut
    reweighting: Reweighting
    clusters: row_clusters.Clusters | None  # The clusters of the tested rows; None if they are independent
    run: Run
    counted: str = "tested rows"  # What the tested rows are

    @classmethod
    def from_rows(cls, rows: Predictions, tested: Values, new: Values, outputs: Outputs, run: Run) -> "Population":
        """Return the population of new inputs (m, d), both scaled, whose outputs are to be predicted best."""
        ratio = DensityRatio.from_inputs(tested, new, run.rng(RandomStream.LANDMARKS))
        clusters = row_clusters.find_clusters(rows, run.dependence)
        regression = replace(local_regression(tested), folds=() if clusters is None else cluster_folds(clusters))
        equal = np.ones(len(tested))
        weights = ratio.weights(equal, np.ones(len(new)))
        found = outputs(weights if weights.any() else equal)
        return cls(rows, tested, new, regression, with_regularizer(regression, found, ratio, new), clusters, run)

    @cached_property
    def weights(self) -> Weights:
        """The weights of the tested rows."""
        return self.reweighting.weights()

    @cached_property
    def resampled(self) -> Values:
        """The doubly robust weights in each resample of tested and new rows, in which all is fitted again, (R, n)."""
        rng, n, m = self.run.rng(RandomStream.RESAMPLES), len(self.tested), len(self.new)
        groups, found = n if self.clusters is None else len(self.clusters), np.empty((RESAMPLES, n))
        for number in range(RESAMPLES):
            drawn = (np.bincount(rng.integers(k, size=k), minlength=k).astype(np.float64) for k in (groups, m))
            counts, new_counts = drawn
            counts = counts if self.clusters is None else counts[self.clusters.label]
            found[number] = self.reweighting.weights(counts, new_counts).robust
            self.run.progress("new inputs", (number + 1) / RESAMPLES)
        return found

    @cached_property
    def units(self) -> float:
        """How many independent rows count, or clusters of rows: as many equal weights have the same variance."""
        if self.clusters is None or not self.weights.ratio.any():
            return self.weights.effective_rows
        return _effective(self.clusters.label, self.weights.ratio)

    @property
    def lack(self) -> str:
        """What too few of count, with how many are needed; empty if there are enough for limits."""
        effective, dependence = self.weights.effective_rows, self.run.dependence
        found = [(effective, FEWEST_ROWS, self.counted)]
        if self.clusters is not None and effective:
            place = None if dependence.cluster else row_clusters.time_labels(self.rows, dependence.time)
            times = (0.0 if place is None else _effective(place, self.weights.ratio), FEWEST_ROWS, "times")
            found.append((self.units, FEWEST_CLUSTERS, "clusters") if place is None else times)
        lacking = [(count, least, what) for count, least, what in found if count < least]
        return next((f"{count:.0f} {what} count, {least} are needed" for count, least, what in lacking), "")

    def _widening(self, tail: float) -> float:
        """Return by how much the limits of few clusters are farther away than those of a normal distribution."""
        return float(sc.stdtrit(max(self.units - 1, 1.0), tail) / sc.ndtri(tail)) if self.clusters is not None else 1.0

    def mean(self, outputs: Values) -> row_clusters.WeightedMean:
        """Return the mean of outputs (n,) at the new rows."""
        return row_clusters.WeightedMean(
            float(self.weights.robust @ outputs), self.standard_error(outputs), max(self.units - 1, 1.0)
        )

    def standard_error(self, outputs: Values) -> float:
        """Return the standard error of the mean of outputs (n,) at the new rows."""
        inflation = 1.0 if self.clusters is None else self.clusters.variance_factor
        return float((self.resampled @ outputs).std(ddof=1) * np.sqrt(inflation))

    @cached_property
    def remaining_shift(self) -> tuple[float, float, float]:
        """How far the means of the inputs, weighted by the density ratio, are from those of the new rows.

        The first number is in standard deviations of the tested rows along their principal axes, and the second is
        relative to the distance without weights. Distances are without what is expected by chance. The third number is
        up to where the first one is by chance, two standard deviations of its square.
        """
        values, axes = np.linalg.eigh(np.cov(self.tested.T, ddof=0).reshape(self.tested.shape[1], -1))
        kept = values > VARIES * values[-1]
        tested, new = (points @ axes[:, kept] for points in (self.tested, self.new))
        equal, ratio = np.full(len(tested), 1 / len(tested)), self.weights.ratio / self.weights.ratio.sum()
        (before, _), (after, chance) = (_squared_shifts(each, tested, new) for each in (equal, ratio))
        size, share = float((after / values[kept]).sum()), float(after.sum() / max(before.sum(), np.finfo(float).tiny))
        by_chance = 2 * math.sqrt(2 * float(np.square(chance / values[kept]).sum()))
        return math.sqrt(max(size, 0.0)), math.sqrt(max(share, 0.0)), math.sqrt(by_chance)

    def factor(self, level: float, tail: float) -> Estimate:
        """Return the width factor at a level, with limits that are each wrong with a probability of ``tail``.

        The number of rows whose share varies as much as that of the resamples gives limits of the share, and these are
        quantiles (Woodruff 1952).
        """
        factor, robust = Factor.from_rows(self.rows, level), self.weights.robust
        error = self.standard_error(factor.excess(robust)) * self._widening(tail)
        most = float(robust.sum() ** 2 / np.square(robust).sum())
        rows = min(level * (1 - level) / error**2, most) if error > 0 else most
        low, high = binomial_shares(rows, level, tail)
        value = factor.value(robust)
        ends = (factor.value(robust, low) if low > 0 else 0.0, factor.value(robust, high) if high < 1 else math.inf)
        p = binomial_p(factor.share_inside(robust), rows, level)
        return factor.limited(Estimate("size", value, min(ends[0], value), max(ends[1], value), p))

    def coverage(self, level: float) -> float:
        """Return the expected share of targets inside the intervals of a level."""
        inside = Factor.from_rows(self.rows, level).ratios <= 1
        return float(np.clip(self.weights.robust @ inside, 0, 1))

    def bias(self, tail: float) -> Estimate:
        """Return the bias in predicted standard deviations."""
        found = self.mean(bias_scores(self.rows, lambda values: self.mean(values).value))
        return Estimate("bias", found.value, *found.limits(tail), found.p_value(0.0))

    def local(self, tail: float) -> Estimate | None:
        """Return the local error of the scale along the inputs of the new rows; None if only limits are stated.

        It is that of the rows with the density ratio as weights: Cov(g, w) / sd(g), for the predictions g of the
        components w of the PIT from other rows. Its p-value is by random signs of w, equal ones in a cluster.
        """
        if self._components is None:
            return None
        weights = self.weights.ratio / self.weights.ratio.sum()
        outputs = self._components - weights @ self._components
        rng = self.run.rng(RandomStream.SIGNS)
        group = np.arange(len(outputs)) if self.clusters is None else self.clusters.label
        flipped = np.where(rng.random((group.max() + 1, FLIPS))[group] < 1 / 2, outputs[:, None], -outputs[:, None])
        all_outputs = np.column_stack([outputs, flipped - weights @ flipped])
        values, influences = _bounds(self.regression, all_outputs, weights)
        away = np.bincount(group, weights * (influences - values[0]))
        error = float(np.sqrt(away @ away * (1.0 if self.clusters is None else self.clusters.variance_factor)))
        reach = max(float(sc.ndtri(1 - tail)) * error * self._widening(tail), float(np.quantile(values[1:], 1 - tail)))
        p = (1 + int(np.count_nonzero(values[1:] >= values[0]))) / (1 + FLIPS)
        unit = local_error.DERIVATIVES[2] * self._resolution
        return Estimate("inputs", float(values[0] / unit), float((values[0] - reach) / unit), math.inf, p)

    @cached_property
    def _components(self) -> Values | None:
        """The second components of the PIT, (n,); None if only limits of intervals are stated."""
        if self.rows.distributions().interval_levels is not None:
            return None
        return mean_component(*stated_pit(self.rows), 2)

    @property
    def _resolution(self) -> float:
        return local_error.resolution(self.rows.distributions(), 2)

    def local_factors(self, x: Values) -> Values:
        """Return the factors by which standard deviations are wrong at scaled inputs, (k,); NaN if that is not seen."""
        if self._components is None:
            return np.full(len(x), np.nan)
        mean = float(self._components.mean())
        outputs = self._components - mean
        place = int(self.regression.covariances(outputs[:, None]).sharpest[0])
        return local_error.factors((self.regression.predict_others(x, outputs, place) + mean) / self._resolution)


def _effective(label: Indices, weights: Values) -> float:
    """Return how many groups of rows with labels (n,) and weights (n,) count."""
    return float(row_clusters.degrees_of_freedom(np.bincount(label, weights))) + 1


def binomial_p(share: float, n: float, level: float) -> float:
    """Return the two-sided p-value of a share of n rows, if that of all is the level."""
    k = n * min(max(share, 0.0), 1.0)
    at_most = float(sc.betainc(n - k, k + 1, 1 - level)) if k < n else 1.0
    at_least = float(sc.betainc(k, n - k + 1, level)) if k > 0 else 1.0
    return min(1.0, 2 * min(at_most, at_least))


def _squared_shifts(weights: Values, tested: Values, new: Values) -> tuple[Values, Values]:
    """Return the squared distance of means along each axis, (k,), minus its expectation if there is none, and that."""
    mean = weights @ tested
    chance = weights**2 @ (tested - mean) ** 2 + new.var(axis=0) / len(new)
    return np.asarray((new.mean(axis=0) - mean) ** 2 - chance), chance


def _bounds(regression: LeaveOneOut, outputs: Values, weights: Values) -> tuple[Values, Values]:
    """Return the bounds of outputs (n, c) with weights (n,), (c,), and the influences of rows on the first, (n,)."""
    places = regression.covariances(outputs).best
    predicted = np.empty(outputs.shape)
    for place in np.unique(places):
        predicted[:, places == place] = regression.predict(outputs[:, places == place], int(place))
    predicted -= weights @ predicted
    size = np.sqrt(np.maximum(weights @ predicted**2, np.finfo(float).tiny))
    influences = predicted * outputs / size
    return np.asarray(weights @ influences), np.asarray(influences[:, 0])


LEVELS = (0.5, 0.9, 0.99)  # Levels whose factors show the shape of the distributions


@dataclass(frozen=True, eq=False)
class Order:
    """Numbers in ascending order, of which weighted quantiles are taken."""

    order: Indices  # (n,)
    values: Values  # (n,), in this order

    @classmethod
    def from_values(cls, values: Values) -> "Order":
        """Return the order of numbers (n,)."""
        order = np.argsort(values, kind="stable")
        return cls(order, values[order])

    def quantile(self, weights: Values, level: float) -> float:
        """Return the first number up to which the weights (n,) sum up to a level; some may be negative."""
        sums = np.cumsum(weights[self.order])
        place = np.searchsorted(np.maximum.accumulate(sums), level * sums[-1] * (1 - coverage.ROUNDING))
        return float(self.values[min(int(place), len(self.values) - 1)])

    def in_rows(self) -> Values:
        """Return the numbers in the order of the rows, (n,)."""
        found = np.empty(len(self.values))
        found[self.order] = self.values
        return found


@dataclass(frozen=True, eq=False)
class Factor:
    """The width factor of one level."""

    level: float
    order: Order  # Ratios of the targets
    roles: tuple[Order, ...]  # Those of draws that play the target
    draws: int | None  # Number of draws per row
    unclipped: Values | None  # (n,), rows that count, 0 or 1: those whose stated limits are not clipped

    @classmethod
    def from_rows(cls, rows: Predictions, level: float) -> "Factor":
        """Return the factor at a level."""
        unclipped = coverage.unclipped(rows.distributions(), level)
        if unclipped is not None and not unclipped.any():
            raise DataError("no factor is seen where all intervals have a limit at --clip")
        order = Order.from_values(coverage.width_ratios(rows, level, coverage.uniforms(rows)))
        draws = rows.distributions().n_draws
        roles = () if draws is None else tuple(map(Order.from_values, coverage.role_ratios(rows, level)))
        return cls(level, order, roles, draws, unclipped)

    def _of_counted(self, weights: Values) -> Values:
        """Return the weights of the rows that count, with the same sum."""
        if self.unclipped is None:
            return weights
        return np.asarray(weights * self.unclipped * (weights.sum() / (weights @ self.unclipped)))

    def value(self, weights: Values, share: float | None = None) -> float:
        """Return the factor of weighted rows, (n,), or where the share of the targets is another one."""
        weights = self._of_counted(weights)
        ratio = self.order.quantile(weights, self.level if share is None else share)
        if self.draws is None:
            return ratio
        return float(coverage.factor_of_draws(np.asarray(ratio), self._expected(weights), self.draws))

    def _expected(self, weights: Values) -> float:
        """Return the quantile of the ratios of draws that play the target; 1 without draws."""
        found = [each.quantile(weights, self.level) for each in self.roles]
        return float(np.mean(found)) if found else 1.0

    def excess(self, weights: Values) -> Values:
        """Return whether targets are up to the weighted quantile, minus the level, (n,); minus those of draws, if any.

        The share of targets inside intervals that are wider by the factor varies as the weighted mean of that.
        """
        counted = self._of_counted(weights)
        found = (self.ratios <= self.order.quantile(counted, self.level)) - self.level
        if self.unclipped is not None:
            found = found * self.unclipped * (weights.sum() / (weights @ self.unclipped))
        members = [(each.in_rows() <= each.quantile(weights, self.level)) - self.level for each in self.roles]
        return np.asarray(found - np.mean(members, axis=0) if members else found)

    def share_inside(self, weights: Values) -> float:
        """Return the weighted share of targets inside; what is nearest to the level, if some are at limits.

        For draws, it is the level plus the difference from the share of draws in their place up to the same number.
        """
        weights, limit = self._of_counted(weights), self._expected(weights)
        strict, closed = (float(weights @ each) for each in (self.ratios < limit, self.ratios <= limit))
        if self.roles:
            members = float(np.mean([weights @ (each.in_rows() <= limit) for each in self.roles]))
            strict, closed = (self.level + each - members for each in (strict, closed))
        return float(np.clip(self.level, min(strict, closed), closed))

    @cached_property
    def ratios(self) -> Values:
        """The ratios of the targets, (n,)."""
        return self.order.in_rows()

    def of_equal_rows(self, tail: float, clusters: row_clusters.Clusters | None = None) -> Estimate:
        """Return the factor of the rows themselves, with limits by order statistics."""
        n = len(self.ratios) if self.unclipped is None else int(self.unclipped.sum())
        equal = np.full(len(self.ratios), 1 / len(self.ratios))
        rows = float(n) if clusters is None else effective_rows(self.excess(equal), None, self.level, clusters)
        order = WeightedOrder.from_ties(TieGroups(self.ratios), self.unclipped, rows)
        low, high, _ = order.limits(self.level, tail)
        if self.draws is not None:
            ends = np.array([low, high])
            low, high = coverage.factor_of_draws(ends, self._expected(equal), self.draws).tolist()
        return self.limited(Estimate("size", self.value(equal), low, high))

    def limited(self, found: Estimate) -> Estimate:
        """Return an estimate without an upper limit that so few draws do not show."""
        is_open = self.draws is not None and found.high > coverage.largest_factor(self.draws)
        return found._replace(high=math.inf, is_open=True) if is_open else found

    def outputs(self, weights: Values) -> Values:
        """Return whether targets are inside intervals near the weighted quantile, for three shares, (n, 3)."""
        shares = (self.level - (1 - self.level), self.level, (1 + self.level) / 2)
        limits = [self.order.quantile(self._of_counted(weights), share) for share in shares]
        return np.asarray(self.ratios[:, None] <= np.array(limits), dtype=np.float64)


def bias_scores(rows: Predictions, mean: Callable[[Values], float]) -> Values:
    """Return numbers whose mean is the bias in predicted standard deviations, (n,), given how means are formed."""
    predictive = rows.distributions()
    if states_limits(predictive):
        found = stated_normal_scores(rows)
        if found.unit is None:
            return found.values
        unit = max(mean(found.unit), 1 / len(rows))
        bias = mean(found.values) / unit
        return np.asarray(bias + (found.values - bias * found.unit) / unit)
    return normal_scores(rows) if predictive.family == "cauchy" else standardized_errors(rows)


def observed_bias(rows: Predictions, tail: float, clusters: row_clusters.Clusters | None = None) -> Estimate:
    """Return the bias of the rows themselves, with limits by Student's t."""
    found = row_clusters.weighted_mean(bias_scores(rows, lambda values: float(values.mean())), None, clusters)
    return Estimate("bias", found.value, *found.limits(tail))


def stated_levels(rows: Predictions, level: float) -> tuple[float, ...]:
    """Return the levels of intervals whose factors can be had, in ascending order, with the level of the answer."""
    predictive = rows.distributions()
    if not states_limits(predictive):
        return tuple(sorted({level, *LEVELS}))
    stated = predictive.interval_levels
    if stated is None:
        outer = np.asarray(predictive.quantile_levels)
        stated = 1 - 2 * outer[outer < 1 / 2]
    others = [each for each in LEVELS if (np.abs(np.asarray(stated) - each) <= LEVEL_TOLERANCE).any()]
    return tuple(sorted({level, *others}))
