"""Accuracy of point predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calcheck.core.metric_info import MetricInfo
from calcheck.errors import Message
from calcheck.inference.metric_protocol import IntervalInference, RowResults
from calcheck.metrics._lazy import coverage, np, order_statistics, pit, zscores
from calcheck.metrics._targets import with_verdict
from calcheck.metrics.base import WEIGHT, LocalMetric, MeanMetric

if TYPE_CHECKING:
    from calcheck.inference.order_statistics import WeightedMean
    from calcheck.metrics._lazy import Clusters, Means, Predictions, Run, Values


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
    model that is one standard deviation too low. Limits of intervals count as central quantiles: at one level p, z is 0
    inside, and :math:`\pm 1 / (2 \varphi_p)` outside, with the normal density :math:`\varphi_p` at the upper limit. A
    right model of any shape has as many targets below as above; a normal one that is d too low has a share of
    :math:`2 \varphi_p d` more above, so a standard deviation is half a width over the normal quantile. Cauchy
    distributions have no moments: z is the normal score. For m draws per row, :math:`\sigma_i` is the standard
    deviation of the draws and the target together, so that the mean is exactly 0 if these are exchangeable, times a
    constant that makes it right for normal ones that are shifted a little:
    :math:`(1 - 1/m) \, \mathrm{E}[\sqrt m / \chi_m]`.

    Value
    -----
    Dimensionless, any sign; 0 is ideal, positive if targets are above the predictions on average.

    Notes
    -----
    A mean over rows; unbiased. The interval consists of two one-sided limits by Student's t, each of which is wrong
    with a probability of 1 - confidence; with the default, 90 % of intervals contain the expected value. If rows depend
    on each other, its standard error is that between clusters. For quantiles and intervals, it is that with one further
    target beyond each of the outermost limits: none may be there by chance (Agresti and Caffo 2000). Time O(n).

    References
    ----------
    Pernot (2024), arXiv 2402.10043.
    Agresti, Caffo (2000), The American Statistician 54, 280-288.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="standardized-bias",
        orientation="zero",
        source="Pernot (arXiv 2402.10043)",
        interpretation="0 is ideal; at 0.2, targets are on average 0.2 standard deviations above the predictions.",
        interval="one-sided",
        distribution_free=True,
        uses="coverage",
        exempt_laws={"spread": "a wrong spread makes a mean of errors smaller or larger"},
    )
    column: ClassVar[str] = "z"

    def interpolates(self, levels: Values) -> bool:  # noqa: ARG002 - only the stated levels count
        return False

    def compute(self, rows: Predictions) -> RowResults:
        return RowResults(_standardized(rows), reference=0.0)

    def value(self, means: Means) -> Values:
        return means["z"]

    def limits(self, rows: RowResults, run: Run, clusters: Clusters | None) -> IntervalInference:
        """Return the limits by Student's t, and its test."""
        if rows.n == 1:
            return IntervalInference(warnings=(Message.of_absence("no-interval", "a single row has no spread"),))
        weights = rows.terms[WEIGHT].values if WEIGHT in rows.terms else None
        stated = not rows.columns
        mean = _mean_of_sums(rows.fixed, rows.n) if stated else _mean_of_rows(rows.columns, weights, clusters)
        low, high = mean.limits(1 - run.confidence)
        return with_verdict(
            IntervalInference(low=low, high=high, interval="t", p_value=mean.p_value(0.0)), run.confidence
        )

    def limits_of_sums(self, means: Means, rows: float, tail: float) -> tuple[float, float]:
        """Return the limits by means of z and its square, given how many independent rows they stand for."""
        return _mean_of_sums(means, rows).limits(tail)


def _standardized(rows: Predictions) -> dict[str, Values]:
    """Return z-scores whose mean is 0 for a right model, (n,); normal scores of the PIT where there are no moments."""
    predictive = rows.distributions()
    if coverage.states_limits(predictive):
        z, outermost = pit.stated_normal_scores(rows)
        return {"z": z, "z2": z**2, "outermost": np.full(len(z), outermost)}
    z = pit.normal_scores(rows) if predictive.family == "cauchy" else zscores.standardized_errors(rows)
    return {"z": z, "z2": z**2}


def _mean_of_rows(columns: dict[str, Values], weights: Values | None, clusters: Clusters | None) -> WeightedMean:
    """Return the mean of z, with a further target beyond each of the outermost limits for its standard error."""
    added = 2 * float(columns["outermost"][0]) ** 2 if "outermost" in columns else 0.0
    return order_statistics.weighted_mean(columns["z"], weights, clusters, added)


def _mean_of_sums(means: Means | dict[str, Values], n: float) -> WeightedMean:
    """Return a mean from the sums of a state."""
    mean, square, outermost = float(means["z"]), float(means["z2"]), float(means.get("outermost", 0.0))
    variance = max(square - mean**2, 0.0) / (n - 1) + 2 * (outermost / n) ** 2
    return order_statistics.WeightedMean(mean, variance**0.5, n - 1)
