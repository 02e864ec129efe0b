"""How several targets depend on each other, and verdicts of intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from calcheck.core.metric_info import MetricInfo
from calcheck.inference.metric_protocol import IntervalInference, RowResults
from calcheck.metrics._lazy import multivariate, np, order_statistics
from calcheck.metrics.base import Metric
from calcheck.reports import rejects

if TYPE_CHECKING:
    from calcheck.metrics._lazy import Clusters, Means, Predictions, Run, Source, Values

SIDES = {"sum": 1, "difference": -1}
LEAST = 1e-12  # Least squared factor


def farthest(values: Iterable[Values], distance: Callable[[Values], Values]) -> Values:
    """Return the values of the target whose distance from its ideal is largest, (...)."""
    return reduce(lambda one, other: np.where(distance(other) > distance(one), other, one), values)


def with_verdict(found: IntervalInference, confidence: float) -> IntervalInference:
    """Return an interval with the verdict of its p-value."""
    fails = found.p_value is not None and rejects(found.p_value, confidence)
    return replace(found, verdict="fail" if fails else "pass")


class PairFactor(NamedTuple):
    """By how much intervals of the sum or the difference of two targets would have to be wider, with its limits."""

    targets: tuple[int, int]
    side: str
    value: float
    low: float
    high: float
    observed: float  # Correlation of the scores
    predicted: float  # Mean of the predicted ones

    @property
    def distance(self) -> float:
        """The size of the logarithm."""
        return abs(float(np.log(self.value)))


@dataclass(frozen=True)
class DependenceFactor(Metric["Values"]):
    r"""Factor by which intervals of the sum or the difference of two targets would have to be wider.

    Each target is replaced by the normal score of the rank of its PIT, so that a fault of one target by itself does not
    count. With the predicted correlation r_i of the scores u and v of a row, the squared factors of the sum and of the
    difference are the means of :math:`(u_i + v_i)^2 / (2 + 2 r_i)` and :math:`(u_i - v_i)^2 / (2 - 2 r_i)`.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="dependence-factor",
        orientation="reference",
        alternative="greater",
        source="normal scores of ranks",
        interpretation="1 is ideal; at 0.5, intervals of a difference are twice too wide.",
        several_targets=True,
    )

    def fit(self, source: Source, run: Run) -> Values:  # noqa: ARG002 - not random
        """Return the predicted correlations, (n, pairs) or (1, pairs)."""
        return multivariate.predicted_correlations(source.predictions())

    def refit(self, fit: Values, source: Source, run: Run) -> Values:  # noqa: ARG002 - the same for replicates
        """Return the same, which does not depend on which of exchangeable values is the target."""
        return fit

    def evaluate(self, fit: Values, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - not random
        scores, columns = multivariate.rank_scores(source.predictions()), {}
        for pair, (one, other) in enumerate(combinations(scores.T, 2)):
            for side, sign in SIDES.items():
                columns[f"{side} {pair}"] = (one + sign * other) ** 2 / (2 + sign * 2 * fit[:, pair])
        return RowResults(columns)

    def value(self, means: Means) -> Values:
        return farthest(self._factors(means), lambda each: np.abs(np.log(each)))

    def null_statistic(self, means: Means) -> Values:
        """Return the size of the logarithm of the value."""
        return np.abs(np.log(self.value(means)))

    def null_reference(self, rows: RowResults) -> float:  # noqa: ARG002 - the same for all rows
        """Return 0."""
        return 0.0

    @staticmethod
    def _factors(means: Means) -> list[Values]:
        return [np.sqrt(np.maximum(each, LEAST)) for each in means.values()]

    def pairs(self, fit: Values, rows: Predictions, tail: float, clusters: Clusters | None) -> list[PairFactor]:
        """Return the factors with one-sided limits, by the influence of each row on their logarithms."""
        scores, found, draws = multivariate.rank_scores(rows), [], rows.distributions().n_draws
        for pair, (first, second) in enumerate(combinations(range(scores.shape[1]), 2)):
            u, v, r = scores[:, first], scores[:, second], np.broadcast_to(fit[:, pair], len(scores))
            for side, sign in SIDES.items():
                share = 1 / (2 + sign * 2 * r)
                square = max(float(np.mean(share * (u + sign * v) ** 2)), LEAST)
                influence = share * (u + sign * v) ** 2
                for each in (u, v):  # scores have the mean square 1
                    influence = influence - float(np.mean(share * (each**2 + sign * u * v))) * (each**2 - 1)
                low, high = order_statistics.weighted_mean(influence / square, None, clusters).limits(tail)
                value = square**0.5
                below, above = (value * float(np.exp((each - 1) / 2)) for each in (low, high))
                observed, predicted = float(np.mean(u * v)), float(r.mean())
                told = observed, predicted + ((predicted - observed) / draws if draws else 0.0)  # without the target
                found.append(PairFactor((first, second), side, value, below, above, *told))
        return found
