"""The width factor and the standardized bias, against numbers that are derived here, and published data."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import calcheck
from calcheck.dependence.clusters import Clusters
from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.continuous import Cauchy
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.noise_clip_rounding import Observation
from calcheck.distributions.positive import LogNormal
from calcheck.distributions.quantiles import Intervals
from calcheck.execution.run import Run
from calcheck.inference.bootstrap import WeightedOrder, effective_rows
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.coverage import quantile_of
from calcheck.statistics.groups import Means, TieGroups
from tests.helpers.families import calibrated
from tests.helpers.shorthand import rows_of

DIABETES = "examples/diabetes.parquet"


def factor(rows, level=0.9, **options):
    return calcheck.evaluate(InMemory(rows), calcheck.metric("width-factor", level=level), **options).results[0]


def bias(rows, **options):
    return calcheck.evaluate(InMemory(rows), "standardized-bias", **options).results[0]


@pytest.mark.parametrize(
    ("level", "value", "low", "high", "ranks"),
    [
        (0.5, 0.9939, 0.8973, 1.1273, [204, 239]),
        (0.9, 0.9808, 0.9140, 1.0782, [387, 409]),
        (0.95, 0.9741, 0.9142, 1.0301, None),
        (0.99, 0.9609, 0.8911, 1.1866, [434, 442]),
    ],
)
def test_the_example_has_the_factors_of_an_independent_computation(level, value, low, high, ranks):
    found = calcheck.evaluate(DIABETES, calcheck.metric("width-factor", level=level), replicates=0).results[0]
    assert (found.value, found.low, found.high) == pytest.approx((value, low, high), abs=5e-5)
    (own,) = [each for each in found.details["factors"] if each["level"] == level]
    assert (own["factor"], own["low"], own["high"]) == (found.value, found.low, found.high)
    assert ranks in (None, own["ranks"])


def test_the_factor_of_split_conformal_prediction_stands_beside_it():
    found = calcheck.evaluate(DIABETES, "width-factor", replicates=0).results[0]
    assert found.details["conformal_factor"] == pytest.approx(0.996, abs=5e-4)


def test_the_example_has_the_bias_of_an_independent_computation():
    found = calcheck.evaluate(DIABETES, "standardized-bias", replicates=0).results[0]
    assert found.value == pytest.approx(0.0065, abs=5e-5)
    assert (found.high - found.value, found.value - found.low) == pytest.approx((0.0779, 0.0779), abs=5e-5)


def binomial_tail(n, level, least):
    """Return P(B >= least) for a binomial B of n draws."""
    return sum(math.comb(n, k) * level**k * (1 - level) ** (n - k) for k in range(least, n + 1))


@pytest.mark.parametrize("n", [5, 30, 61])
@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_limits_are_the_order_statistics_of_binomial_tails(n, level, confidence):
    tail = 1 - confidence
    low = max((k for k in range(1, n + 1) if 1 - binomial_tail(n, level, k) <= tail), default=0)
    high = min((k for k in range(1, n + 1) if binomial_tail(n, level, k) <= tail), default=n + 1)
    y = np.random.default_rng(n).permutation(n) + 1.0
    upper = {0.5: 0.6744897501960817, 0.9: 1.6448536269514722}[level]
    rows = Predictions(y=y * upper, predictive=Gaussian(np.zeros(n), np.ones(n)))
    found = factor(rows, level, replicates=0, confidence=confidence)
    assert found.value == pytest.approx(math.ceil(round(n * level, 9)))
    assert found.low == pytest.approx(low)
    assert found.high == (None if high > n else pytest.approx(high))
    assert ("there is no upper limit" in str(found.warnings)) == (high > n)


def test_each_side_is_measured_by_its_own_limit():
    y = np.array([-1.0, 0.0, 1.0, 3.0, 8.0])
    intervals = Intervals(np.array([0.9]), np.full((5, 1), -1.0), np.full((5, 1), 3.0))
    quantiles = Quantiles(np.array([0.05, 0.5, 0.95]), np.tile([-1.0, 0.0, 4.0], (5, 1)))
    assert rows_of(calcheck.metric("width-factor", level=0.9), Predictions(y=y, predictive=intervals)).columns[
        "ratio"
    ] == pytest.approx([1, 0.5, 0, 1, 3.5])
    assert rows_of(calcheck.metric("width-factor", level=0.9), Predictions(y=y, predictive=quantiles)).columns[
        "ratio"
    ] == pytest.approx([1, 0, 0.25, 0.75, 2])


def test_intervals_without_width_or_with_an_infinite_limit_have_factors():
    low, high = np.array([0.0, 0, 0, -np.inf, -np.inf]), np.array([0.0, 0, 0, 2, np.inf])
    y = np.array([0.0, 1, -1, 3, 3])
    rows = Predictions(y=y, predictive=Intervals(np.array([0.9]), low[:, None], high[:, None]))
    ratio = rows_of(calcheck.metric("width-factor", level=0.9), rows).columns["ratio"]
    assert ratio.tolist() == [1, np.inf, np.inf, np.inf, 0]


def test_targets_at_stated_limits_favor_the_model():
    n = 1_000  # 6 % of the targets are below 0, 30 % at the upper limit
    y = np.repeat([-1.0, 1.0, 2.0], [60, 640, 300])
    rows = Predictions(y=y, predictive=Intervals(np.array([0.8]), np.zeros((n, 1)), np.full((n, 1), 2.0)))
    found = factor(rows, 0.8)
    assert (found.value, found.verdict) == (1.0, "pass")


@pytest.mark.slow
def test_counts_have_the_normal_scores_of_a_wider_distribution():
    rng = np.random.default_rng(7)
    mean = rng.uniform(20, 200, 40_000)
    k = 1.333**2  # times the variance of the mean: n / (n + mean) = 1 / k
    y = rng.negative_binomial(mean / (k - 1), 1 / k).astype(float)
    found = factor(Predictions(y=y, predictive=Poisson(mean)), replicates=0)
    assert found.value == pytest.approx(1.33, abs=0.02)
    right = factor(Predictions(y=rng.poisson(mean).astype(float), predictive=Poisson(mean)), replicates=0)
    assert right.low < 1 < right.high


@pytest.mark.slow
@pytest.mark.parametrize("m", [5, 11, 20, 50])
@pytest.mark.parametrize("k", [1, 1.333, 0.75])
def test_draws_have_the_factor_of_the_distribution_that_they_are_from(m, k):
    rng = np.random.default_rng(m)
    n = 20_000
    rows = Predictions(y=k * rng.normal(size=n), predictive=Samples(rng.normal(size=(n, m))))
    assert factor(rows, replicates=0).value == pytest.approx(k, abs=0.035 if m > 5 else 0.05)


@pytest.mark.slow
def test_exchangeable_draws_of_a_skewed_distribution_have_no_bias_and_the_factor_1():
    rng = np.random.default_rng(3)
    values = rng.lognormal(size=(40_000, 8))
    rows = Predictions(y=values[:, 0], predictive=Samples(values[:, 1:]))
    found, other = factor(rows, replicates=0), bias(rows, replicates=0)
    assert found.low < 1 < found.high
    assert abs(other.value) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("m", [3, 5, 11])
def test_draws_have_the_bias_in_standard_deviations_of_the_distribution_that_they_are_from(m):
    values = np.random.default_rng(m).normal(size=(50_000, m + 1))
    values = np.concatenate([values, -values])  # so that errors without a shift have mean 0
    rows = Predictions(y=0.1 + values[:, 0], predictive=Samples(values[:, 1:]))
    assert bias(rows, replicates=0, resamples=0).value == pytest.approx(0.1, abs=0.001)


def test_quantiles_have_the_bias_in_standard_deviations():
    rng = np.random.default_rng(4)
    levels = np.arange(1, 10) / 10
    quantiles = np.array([-1.2816, -0.8416, -0.5244, -0.2533, 0, 0.2533, 0.5244, 0.8416, 1.2816])
    n = 40_000
    rows = Predictions(y=rng.normal(0.1, 1, n), predictive=Quantiles(levels, np.tile(quantiles, (n, 1))))
    found = bias(rows, replicates=0)
    assert found.value == pytest.approx(0.1, abs=0.015)
    assert found.verdict == "fail"


def test_the_quantile_of_many_values_is_that_of_their_order():
    rng = np.random.default_rng(5)
    for values in (rng.normal(size=60_001), rng.integers(0, 9, 70_000).astype(float), np.sort(rng.normal(size=60_000))):
        for level in (0.01, 0.5, 0.9, 0.99, 0.9999):
            assert quantile_of(values, level) == np.sort(values)[math.ceil(len(values) * level - 1e-9) - 1]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "poisson", "samples", "quantiles"])
def test_sums_of_groups_have_the_factor_by_a_grid(family):
    rows = calibrated(family, n=4_000)
    metric = METRICS["width-factor"](level=0.9)
    means = Means({name: each.mean() for name, each in metric.on_grid(rows).items()}, len(rows))
    assert float(metric.value(means)) == pytest.approx(factor(rows, replicates=0).value, rel=0.03)


def test_draws_have_no_upper_limit_for_factors_that_they_cannot_show():
    rng = np.random.default_rng(6)
    found = factor(Predictions(y=20 * rng.normal(size=500), predictive=Samples(rng.normal(size=(500, 11)))))
    assert found.low > 5
    assert found.high is None
    assert "11 draws show factors up to about 5.5 only" in str(found.warnings)


def order_of(values, rows=None):
    return WeightedOrder.from_ties(TieGroups(np.asarray(values, float)), None, float(rows or len(values)))


def test_the_p_value_is_binomial_and_ties_favor_the_model():
    values = [0.2, 0.5, 0.8, 1.0, 1.0, 1.0, 1.3, 1.5, 2.0, 2.5]  # 3 below 1, and 6 up to 1
    order = order_of(values)
    assert order.p_value(0.5, 1.0) == 1  # neither 3 or more, nor 6 or fewer, of 10 is rare
    too_narrow = sum(math.comb(10, k) * 0.95**k * 0.05 ** (10 - k) for k in range(7))
    assert order.p_value(0.95, 1.0) == pytest.approx(2 * too_narrow)
    assert order.p_value(0.1, 1.0) == pytest.approx(2 * binomial_tail(10, 0.1, 3))


def test_rows_of_clusters_count_as_many_as_their_share_varies_as_much():
    rng = np.random.default_rng(8)
    label, level = np.repeat(np.arange(40), 5), 0.9
    inside = np.repeat(rng.random(40) < level, 5)
    sums = np.bincount(label, inside - inside.mean())
    variance = 40 / 39 * np.sum(sums**2) / 200**2
    ratio = stats.norm.ppf(0.95) / stats.t(39).ppf(0.95)
    expected = level * (1 - level) / variance * ratio**2
    apart = np.where(inside, 1 - level, -level)
    assert effective_rows(apart, None, level, Clusters(label)) == pytest.approx(expected)
    assert expected < 100
    independent = rng.random(200) < level
    assert effective_rows(np.where(independent, 1 - level, -level), None, level, None) <= 200


def test_limits_of_draws_allow_for_the_noise_of_draws_that_play_the_target():
    rng = np.random.default_rng(2)
    rows = Predictions(y=rng.normal(size=400), predictive=Samples(rng.normal(size=(400, 10))))
    together, inside = np.column_stack([rows.predictive.draws, rows.y]), []
    for place in range(11):
        others = np.delete(together, place, axis=1)
        size = np.abs(together[:, place] - others.mean(axis=1)) / others.std(axis=1, ddof=1)
        inside.append(size <= np.sort(size)[359])
    error = np.std(inside[10] - np.mean(inside[:10], axis=0), ddof=1) / 20
    count = 0.09 * (stats.norm.ppf(0.95) / stats.t(399).ppf(0.95) / error) ** 2
    assert 300 < count < 400
    own = factor(rows, replicates=0).details["factors"][1]
    assert own["ranks"] == list(order_of(np.arange(400), count).limits(0.9, 0.05).ranks)


def test_a_shift_between_coarse_quantiles_is_in_standard_deviations():
    levels, n = np.array([0.25, 0.5, 0.75]), 200_000
    y = stats.norm.ppf((np.arange(n) + 0.5) / n) + 0.02
    rows = Predictions(y=y, predictive=Quantiles(levels, np.tile(stats.norm.ppf(levels), (n, 1))))
    assert bias(rows, replicates=0).value == pytest.approx(0.02, rel=0.01)


def test_replicates_of_stated_intervals_are_compared_by_the_share_of_targets_inside():
    inside = np.repeat([True, False], [80, 20])
    rows = Predictions(
        y=np.where(inside, 0.0, 5.0), predictive=Intervals(np.array([0.9]), *np.tile([[[-1]], [[1]]], (1, 100, 1)))
    )
    metric = calcheck.metric("width-factor", level=0.9)
    found = metric.quick_statistic(metric.fit(InMemory(rows), Run()), InMemory(rows), Run())
    assert found == pytest.approx(stats.norm.ppf(0.95) / stats.norm.ppf(0.9))


def test_limits_of_clusters_are_those_of_the_rows_that_they_stand_for():
    rng = np.random.default_rng(11)
    label = np.repeat(np.arange(60), 5)
    y = np.repeat(rng.normal(size=60), 5) + 0.1 * rng.normal(size=300)
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(300), np.ones(300)), columns={"g": label})
    found = factor(rows, cluster="g", replicates=0)
    ratio = np.abs(y) / stats.norm.ppf(0.95)
    apart = np.where(ratio <= np.sort(ratio)[269], 0.1, -0.9)
    order = order_of(ratio, effective_rows(apart, None, 0.9, Clusters(label)))
    low, high, _ = order.limits(0.9, 0.05)
    assert (found.value, found.low, found.high) == pytest.approx((np.sort(ratio)[269], low, high))
    assert high - low > 1.3 * np.ptp(order_of(ratio).limits(0.9, 0.05)[:2])


def test_families_without_symmetry_have_a_limit_for_each_side():
    y = np.array([0.2, 0.9, 1.0, 1.5, 6.0])
    low, high = np.exp([-1.6448536269514722, 1.6448536269514722])
    expected = np.where(y > 1, (y - 1) / (high - 1), (1 - y) / (1 - low))
    rows = Predictions(y=y, predictive=LogNormal(np.zeros(5), np.ones(5)))
    assert rows_of(METRICS["width-factor"](level=0.9), rows).columns["ratio"] == pytest.approx(expected)


def test_cauchy_distributions_have_the_bias_of_normal_scores():
    y = np.random.default_rng(1).standard_cauchy(400)
    found = bias(Predictions(y=y, predictive=Cauchy(np.zeros(400), np.ones(400))), replicates=0)
    assert found.value == pytest.approx(stats.norm.ppf(stats.cauchy.cdf(y)).mean())


@pytest.mark.parametrize(("y", "low", "value"), [(1.0, None, None), (0.0, 1.0, 1.0)])
def test_intervals_without_width_have_no_factor_unless_targets_are_equal(y, low, value):
    rows = Predictions(y=np.full(60, y), predictive=Intervals(np.array([0.9]), np.zeros((60, 1)), np.zeros((60, 1))))
    found = factor(rows, replicates=39)
    assert (found.low, found.value) == (low, value)


@pytest.mark.parametrize("as_quantiles", [True, False])
@pytest.mark.parametrize(("narrower", "error"), [(1.0, 0.01), (0.75, 0.03)])
def test_rounded_targets_show_the_factor_of_targets_within_their_step(narrower, error, as_quantiles):
    """Targets that are rounded to half a standard deviation; before, all at a limit had the ratio 1.

    The density of a ratio at 1 is 2 * 0.1031 * 1.645, so its limits are 2 * 1.645 * 0.3 / (0.3393 n^0.5) apart.
    """
    rng, n, levels = np.random.default_rng(0), 20_000, np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
    mean = 3 * rng.normal(size=n)
    values = mean[:, None] + narrower * stats.norm.ppf(levels)
    stated = Quantiles(levels, values) if as_quantiles else Intervals(np.array([0.9]), values[:, :1], values[:, -1:])
    y = np.floor((mean + rng.normal(size=n)) / 0.5 + 0.5) * 0.5 + 0.0
    predictive = Observation(step=np.full(n, 0.5)).distributions(stated)
    found = factor(Predictions(y=y, predictive=predictive), replicates=0, resamples=0)
    assert found.value == pytest.approx(1 / narrower, rel=error)
    assert found.low < found.value < found.high
    assert (found.high - found.low) * narrower == pytest.approx(2 * 1.645 * 0.3 / (0.3393 * np.sqrt(n)), rel=0.25)


def clipped_normal(n, high, narrower=0.75):
    """Return targets that are clipped, and normal predictions that are too narrow."""
    rng = np.random.default_rng(0)
    mean, limits = rng.normal(size=n), np.full(n, float(high))
    y = np.minimum(mean + rng.normal(size=n), high)
    stated = Gaussian(mean, np.full(n, narrower))
    return Predictions(y=y, predictive=stated, observation=Observation(high=limits)).observed()


def test_clipped_targets_show_the_factor_of_the_predictions_in_rows_whose_intervals_are_not_clipped():
    """All rows together gave 1.24 for 1.33, as targets at the limit say little about the width beyond it."""
    rows = clipped_normal(20_000, 0.3)
    found = factor(rows, replicates=0, resamples=0)
    assert found.value == pytest.approx(1 / 0.75, rel=0.03)
    assert found.low < 1 / 0.75 < found.high
    shares = [np.mean(rows.predictive.base.loc + 0.75 * stats.norm.ppf((1 + level) / 2) < 0.3) for level in (0.5, 0.9)]
    ranks = [each["ranks"][1] for each in found.details["factors"][:2]]
    assert ranks == pytest.approx(
        [20_000 * share * level for share, level in zip(shares, (0.5, 0.9), strict=True)], rel=0.02
    )


@pytest.mark.parametrize("options", [{}, {"weights": "w"}, {"cluster": "c"}])
def test_batches_replicates_and_groups_of_clipped_targets_leave_out_the_same_rows(options):
    n = 400
    rng = np.random.default_rng(1)
    columns = {"w": rng.uniform(1, 2, n), "c": np.arange(n) // 4}
    rows = replace(clipped_normal(n, 0.3), columns=columns)
    found = factor(rows, replicates=59, resamples=0, **options)
    assert found.value == pytest.approx(1 / 0.75, rel=0.2)
    assert found.p_value <= 0.05
    right = factor(replace(clipped_normal(n, 0.3, 1.0), columns=columns), replicates=59, resamples=0, **options)
    assert right.verdict != "fail"


def test_no_factor_is_shown_where_all_intervals_are_clipped():
    rows = clipped_normal(200, -3)
    report = calcheck.evaluate(InMemory(rows), "width-factor", replicates=39, resamples=0)
    assert (report.results[0].value, report.results[0].verdict) == (None, "none")
    whole = calcheck.evaluate(InMemory(rows), replicates=39, resamples=100)
    assert whole.conclusion.answer != "yes"
