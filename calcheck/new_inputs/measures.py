"""What is estimated from weighted rows: width factors, the bias, and the share inside intervals."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calcheck.conclusion.decision import Estimate
from calcheck.inference.order_statistics import WeightedOrder, weighted_mean
from calcheck.options import LEVEL_TOLERANCE
from calcheck.predictions import Predictions
from calcheck.statistics import width
from calcheck.statistics.coverage import states_limits
from calcheck.statistics.groups import TieGroups
from calcheck.statistics.pit import normal_scores, stated_normal_scores
from calcheck.statistics.zscores import standardized_errors
from calcheck.typing import Indices, Values

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
        place = np.searchsorted(np.maximum.accumulate(sums), level * sums[-1] * (1 - width.ROUNDING))
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

    @classmethod
    def from_rows(cls, rows: Predictions, level: float) -> "Factor":
        """Return the factor at a level."""
        order = Order.from_values(width.width_ratios(rows, level, width.uniforms(rows)))
        draws = rows.distributions().n_draws
        roles = () if draws is None else tuple(map(Order.from_values, width.role_ratios(rows, level)))
        return cls(level, order, roles, draws)

    def value(self, weights: Values, share: float | None = None) -> float:
        """Return the factor of weighted rows, (n,), or where the share of the targets is another one."""
        ratio = self.order.quantile(weights, self.level if share is None else share)
        if self.draws is None:
            return ratio
        return float(width.factor_of_draws(np.asarray(ratio), self._expected(weights), self.draws))

    def _expected(self, weights: Values) -> float:
        """Return the quantile of the ratios of draws that play the target; 1 without draws."""
        found = [each.quantile(weights, self.level) for each in self.roles]
        return float(np.mean(found)) if found else 1.0

    def excess(self, weights: Values) -> Values:
        """Return whether targets are up to the weighted quantile, minus the level, (n,); minus those of draws, if any.

        The share of targets inside intervals that are wider by the factor varies as the weighted mean of that.
        """
        found = (self.ratios <= self.order.quantile(weights, self.level)) - self.level
        members = [(each.in_rows() <= each.quantile(weights, self.level)) - self.level for each in self.roles]
        return np.asarray(found - np.mean(members, axis=0) if members else found)

    def share_inside(self, weights: Values) -> float:
        """Return the weighted share of targets inside; what is nearest to the level, if some are at limits.

        For draws, it is the level plus the difference from the share of draws in their place up to the same number.
        """
        limit = self._expected(weights)
        strict, closed = (float(weights @ each) for each in (self.ratios < limit, self.ratios <= limit))
        if self.roles:
            members = float(np.mean([weights @ (each.in_rows() <= limit) for each in self.roles]))
            strict, closed = (self.level + each - members for each in (strict, closed))
        return float(np.clip(self.level, min(strict, closed), closed))

    @cached_property
    def ratios(self) -> Values:
        """The ratios of the targets, (n,)."""
        return self.order.in_rows()

    def of_equal_rows(self, tail: float) -> Estimate:
        """Return the factor of the rows themselves, with limits by order statistics."""
        equal = np.full(len(self.ratios), 1 / len(self.ratios))
        order = WeightedOrder.from_ties(TieGroups(self.ratios), None, float(len(self.ratios)))
        low, high, _ = order.limits(self.level, tail)
        if self.draws is not None:
            ends = np.array([low, high])
            low, high = width.factor_of_draws(ends, self._expected(equal), self.draws).tolist()
        return Estimate("size", self.value(equal), low, high)

    def outputs(self, weights: Values) -> Values:
        """Return whether targets are inside intervals near the weighted quantile, for three shares, (n, 3)."""
        shares = (self.level - (1 - self.level), self.level, (1 + self.level) / 2)
        limits = [self.order.quantile(weights, share) for share in shares]
        return np.asarray(self.ratios[:, None] <= np.array(limits), dtype=np.float64)


def bias_scores(rows: Predictions) -> Values:
    """Return numbers whose mean is the bias in predicted standard deviations, (n,)."""
    predictive = rows.distributions()
    if states_limits(predictive):
        return stated_normal_scores(rows)[0]
    return normal_scores(rows) if predictive.family == "cauchy" else standardized_errors(rows)


def observed_bias(rows: Predictions, tail: float) -> Estimate:
    """Return the bias of the rows themselves, with limits by Student's t."""
    found = weighted_mean(bias_scores(rows), None, None)
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
