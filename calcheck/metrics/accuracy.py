"""Accuracy of point predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import Message
from calcheck.inference.metric_protocol import IntervalInference, RowResults
from calcheck.metrics._lazy import np, order_statistics, pit, zscores
from calcheck.metrics._targets import each_target, farthest, hull, join, split
from calcheck.metrics.base import WEIGHT, LocalMetric, MeanMetric

if TYPE_CHECKING:
    from calcheck.dependence.clusters import Clusters
    from calcheck.execution.run import Run
    from calcheck.inference.order_statistics import WeightedMean
    from calcheck.predictions import Predictions
    from calcheck.statistics.groups import Means
    from calcheck.typing import Values


@dataclass(frozen=True)
class Mae(MeanMetric):
    r"""Mean absolute error of the predicted median.

    .. math:: \mathrm{MAE} = \frac1n \sum_i |y_i - \tilde y_i|, \qquad \tilde y_i = \min \{u : F_i(u) \ge 1/2\}

    Value
    -----
    Unit of y, >= 0, smaller is better.

    Notes
    -----
    A mean over rows; unbiased. Time O(n). The median, not the mean, minimizes the expected absolute error.

    References
    ----------
    Gneiting (2011), "Making and evaluating point forecasts".
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="mae",
        unit="y",
        source="Gneiting 2011",
        interpretation="Smaller is better.",
        uses="point",
        exempt_laws={"spread": "depends on the median only"},
    )
    column: ClassVar[str] = "absolute_error"

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults({"absolute_error": np.abs(zscores.targets(rows) - zscores.medians(rows.distributions()))})


@dataclass(frozen=True)
class Rmse(LocalMetric):
    r"""Root mean squared error of the predicted mean.

    .. math:: \mathrm{RMSE} = \sqrt{\frac1n \sum_i (y_i - \mu_i)^2}

    Value
    -----
    Unit of y, >= 0, smaller is better.

    Notes
    -----
    Biased downwards by O(1/n) because of the square root. Time O(n).

    References
    ----------
    Pernot (2024), Eq. 7, arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="rmse",
        unit="y",
        source="Pernot, Eq. 7 (arXiv 2402.10043)",
        interpretation="Smaller is better.",
        uses="point",
        exempt_laws={"spread": "depends on the mean only"},
    )

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults({"squared_error": zscores.errors(rows) ** 2})

    def value(self, means: Means) -> Values:
        return np.sqrt(means["squared_error"])


@dataclass(frozen=True)
class Bias(MeanMetric):
    r"""Mean error: the average of target minus predicted mean.

    .. math:: \mathrm{bias} = \frac1n \sum_i (y_i - \mu_i)

    Value
    -----
    Unit of y, any sign; 0 is ideal, positive if targets are above the predictions on average.

    Notes
    -----
    A mean over rows; unbiased. Time O(n).

    References
    ----------
    Pernot (2024), arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="bias",
        unit="y",
        orientation="zero",
        source="Pernot (arXiv 2402.10043)",
        interpretation="0 is ideal; positive values mean that targets are above the predictions.",
        uses="point",
        exempt_laws={"spread": "depends on the mean only"},
    )
    column: ClassVar[str] = "error"

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults({"error": zscores.errors(rows)})


@dataclass(frozen=True)
class StandardizedBias(MeanMetric):
    r"""Mean error in predicted standard deviations: the average of the z-scores.

    .. math:: \frac1n \sum_i z_i, \qquad z_i = \frac{y_i - \mu_i}{\sigma_i}

    For files of quantiles, z is the mean normal score of the levels between which the target is, relative to that of a
    model that is one standard deviation too low. Cauchy distributions have no moments: z is the normal score. For m
    draws per row, :math:`\sigma_i` is the standard deviation of the draws and the target together, so that the mean is
    exactly 0 if these are exchangeable, times a constant that makes it right for normal ones that are shifted a little:
    :math:`(1 - 1/m) \, \mathrm{E}[\sqrt m / \chi_m]`.

    Value
    -----
    Dimensionless, any sign; 0 is ideal, positive if targets are above the predictions on average.

    Notes
    -----
    A mean over rows; unbiased. The interval consists of two one-sided limits by Student's t, each of which is wrong
    with a probability of 1 - confidence; with the default, 90 % of intervals contain the expected value. If rows depend
    on each other, its standard error is that between clusters. For several targets, it is that of the target with the
    largest bias, and the limits contain those of each target. Time O(n).

    References
    ----------
    Pernot (2024), arXiv 2402.10043.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="standardized-bias",
        orientation="zero",
        source="Pernot (arXiv 2402.10043)",
        interpretation="0 is ideal; at 0.2, targets are on average 0.2 standard deviations above the predictions.",
        interval="one-sided",
        distribution_free=True,
        several_targets=True,
        exempt_laws={"spread": "a wrong spread makes a mean of errors smaller or larger"},
    )
    column: ClassVar[str] = "z"

    def interpolates(self, levels: Values) -> bool:  # noqa: ARG002 - only the stated levels count
        return False

    def compute(self, rows: Predictions) -> RowResults:
        columns = [{"z": z, "z2": z**2} for z in map(_standardized, each_target(rows))]
        return RowResults(join(columns), reference=0.0)

    def value(self, means: Means) -> Values:
        return farthest([each["z"] for each in split(means)], np.abs)

    def limits(self, rows: RowResults, run: Run, clusters: Clusters | None) -> IntervalInference:
        """Return the limits by Student's t, and its test."""
        if rows.n == 1:
            return IntervalInference(warnings=(Message.of_absence("no-interval", "a single row has no spread"),))
        weights = rows.terms[WEIGHT].values if WEIGHT in rows.terms else None
        found = []
        for own in split(rows.columns or rows.fixed):
            stated = not rows.columns
            mean = _mean_of_sums(own, rows.n) if stated else order_statistics.weighted_mean(own["z"], weights, clusters)
            low, high = mean.limits(1 - run.confidence)
            found.append(IntervalInference(low=low, high=high, interval="t", p_value=mean.p_value(0.0)))
        return hull(found, run.confidence)

    def limits_of_sums(self, means: Means, rows: float, tail: float) -> tuple[float, float]:
        """Return the limits by means of z and its square, given how many independent rows they stand for."""
        found = [_mean_of_sums(own, rows).limits(tail) for own in split(means)]
        return min(low for low, _ in found), max(high for _, high in found)


def _standardized(rows: Predictions) -> Values:
    """Return z-scores whose mean is 0 for a right model, (n,); normal scores of the PIT where there are no moments."""
    predictive = rows.distributions()
    if predictive.quantile_levels is not None:
        return pit.stated_normal_scores(rows, predictive.quantile_levels)
    return pit.normal_scores(rows) if predictive.family == "cauchy" else zscores.standardized_errors(rows)


def _mean_of_sums(means: Means | dict[str, Values], n: float) -> WeightedMean:
    """Return a mean from the sums of a state."""
    mean, square = float(means["z"]), float(means["z2"])
    return order_statistics.WeightedMean(mean, (max(square - mean**2, 0.0) / (n - 1)) ** 0.5, n - 1)
