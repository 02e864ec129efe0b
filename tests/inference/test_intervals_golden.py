"""Intervals: derived by hand, by scipy's bootstrap, and on many simulated data sets with known values."""

from inspect import signature

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.distributions import Gaussian
from calcheck.evaluation import evaluate
from calcheck.execution.run import Limits, Run
from calcheck.inference.bootstrap import Replicates, Statistic
from calcheck.inference.intervals import Moments, abc_limits, acceleration, bca, percentile, zeta_error
from calcheck.inference.p_values_and_verdicts import zeta
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.groups import Groups, MeanTerm
from calcheck.studies.validity.study import DataSets, tails_of, validity
from tests.helpers.families import calibrated
from tests.helpers.shorthand import texts
from tests.helpers.simulations import band, sets, slow

FOUR_STANDARD_ERRORS = 2 * stats.norm.sf(4)
"""The probability of a normal value beyond them."""


def share_of_valid_zms(*, sets, confidence=0.95):
    """Return the share of data sets of 500 rows whose interval of ZMS contains 1: u^2 has an inverse gamma tail."""
    run = Run(resamples=500, confidence=confidence)
    return validity([METRICS["zms"]()], tails_of([4.0], None), DataSets(500, sets), run=run).results[0].value


def mean_of(values):
    return Statistic({"x": MeanTerm(values)}, len(values), lambda means: means["x"])


def test_limits_without_correction_or_acceleration_are_percentiles():
    """Replicates -50, ..., 50 around 0: half below with the tie, so z0 = 0; limits at 2.5 and 97.5 %: ±47.5."""
    replicates = np.arange(-50.0, 51.0)
    found = bca(replicates, 0.0, 0.0, 0.95)
    assert_allclose([found.low, found.high, found.correction], [-47.5, 47.5, 0.0], atol=1e-12)
    assert_allclose(percentile(replicates, 0.95), [-47.5, 47.5], atol=1e-12)


def test_limits_by_hand():
    """The same replicates around 10: 60 below and a tie, z0 = Phi^-1(60.5/101). With a = 0.1 and z = 1.959964

    the limits are at Phi(z0 + (z0 ± z)/(1 - a (z0 ± z))), as quantiles of -50, ..., 50: 100 p - 50.
    """
    z0, z, a = stats.norm.ppf(60.5 / 101), stats.norm.ppf(0.975), 0.1
    levels = [stats.norm.cdf(z0 + (z0 + s * z) / (1 - a * (z0 + s * z))) for s in (-1, 1)]
    found = bca(np.arange(-50.0, 51.0), 10.0, a, 0.95)
    assert_allclose([found.low, found.high], 100 * np.array(levels) - 50, rtol=1e-12)


def test_there_is_no_interval_if_the_correction_diverges():
    """a (z0 + z) >= 1, or an estimate beyond all replicates."""
    replicates = np.arange(-50.0, 51.0)
    assert np.isnan(bca(replicates, 0.0, 0.6, 0.95).high)
    assert np.isnan(bca(replicates, 60.0, 0.0, 0.95).low)


def test_acceleration_by_hand():
    """The mean of 0, 0, 3 without each: 1.5, 1.5, 0. Deviations from their mean 1: -0.5, -0.5, 1 (signs reversed).

    Sum of cubes 0.75, of squares 1.5: a = 0.75 / (6 * 1.5^1.5).
    """
    assert_allclose(mean_of(np.array([0.0, 0.0, 3.0])).leave_one_out(), [1.5, 1.5, 0.0])
    assert_allclose(acceleration(np.array([1.5, 1.5, 0.0])), 0.75 / (6 * 1.5**1.5), rtol=1e-14)


@pytest.mark.parametrize(("estimate", "expected"), [(1.4, 0.4 / 0.2), (0.7, -0.3 / 0.5), (1.0, 0.0)])
def test_zeta_is_the_distance_in_units_of_the_interval_on_that_side(estimate, expected):
    """Reference 1; an estimate above it reaches down by 0.2, one below it reaches up by 0.5 [ZMS Eq. 14]."""
    assert_allclose(zeta(estimate, 1.0, estimate - 0.2, estimate + 0.5), expected, rtol=1e-12)


def test_intervals_agree_with_scipy():
    """BCa of the mean of 60 exponential values, 99,999 resamples each: limits agree within Monte Carlo error (1 %)."""
    values = np.random.default_rng(0).exponential(size=60)
    statistic = mean_of(values)
    replicates = Replicates([statistic], Run())
    replicates.draw(99_999)
    found = bca(replicates.values[0], statistic.estimate(), acceleration(statistic.leave_one_out()), 0.95)
    seed = "rng" if "rng" in signature(stats.bootstrap).parameters else "random_state"  # before scipy 1.15
    settings = {"n_resamples": 99_999, "method": "BCa", "batch": 1000, "vectorized": True}
    other = stats.bootstrap((values,), np.mean, **{seed: np.random.default_rng(1)}, **settings).confidence_interval
    assert_allclose([found.low, found.high], [other.low, other.high], rtol=0.01)


def test_resampled_counts_of_groups_have_the_distribution_of_resampled_rows():
    """Drawing rows, or counts of their groups: the share of group 0 has mean p and variance p (1 - p)/n in both."""
    label = np.repeat([0, 1], [300, 700])
    ones = MeanTerm(groups=Groups(label, 2))
    rows = MeanTerm(np.ones(1000), Groups(label, 2))
    for term in (ones, rows):
        statistic = Statistic({"share": term}, 1000, lambda means: means["share"][..., 0])
        replicates = Replicates([statistic], Run())
        replicates.draw(4000)
        assert_allclose(replicates.values.mean(), 0.3, atol=4 * np.sqrt(0.21 / 1000 / 4000))
        assert_allclose(replicates.values.var(), 0.21 / 1000, rtol=0.1)


def test_more_resamples_extend_the_first_ones():
    values = np.random.default_rng(0).normal(size=5000)
    both = [Replicates([mean_of(values)], Run()) for _ in range(2)]
    both[0].draw(1000)
    both[1].draw(838)  # two whole blocks
    both[1].draw(1000)
    assert_allclose(both[1].values[:, :838], both[0].values[:, :838])
    assert both[1].values.shape == (1, 1000)
    assert len(np.unique(both[0].values)) > 990


def test_statistics_have_the_same_resamples_alone_and_together():
    rng = np.random.default_rng(0)
    first, second = mean_of(rng.normal(size=100)), mean_of(rng.normal(size=100))
    together, alone = Replicates([first, second], Run()), Replicates([second], Run())
    together.draw(200)
    alone.draw(200)
    assert_allclose(together.values[1], alone.values[0], rtol=1e-12)


def test_metrics_have_the_same_interval_alone_and_together():
    """2,000 rows are many for the 100 classes of ece, whose counts are drawn at once."""
    rows = InMemory(calibrated("gaussian", n=2000))
    metrics = [METRICS[name]() for name in ("ece", "pit", "ence", "uce", "confidence-curve")]
    run = Run(replicates=0, resamples=100)
    alone = [evaluate(rows, [metric], run=run).results[0] for metric in metrics]
    together = evaluate(rows, metrics, run=run).results
    assert [(each.low, each.high) for each in together] == [(each.low, each.high) for each in alone]
    assert all(each.interval == "percentile" for each in together)


def test_the_monte_carlo_error_of_zeta_is_its_standard_deviation_over_seeds():
    """Over 40 seeds the standard deviation of zeta is the estimated one within a factor of 1.5 (chi-square: 1.3)."""
    values = np.random.default_rng(0).exponential(size=200)
    statistic = mean_of(values)
    bent, found, estimated = acceleration(statistic.leave_one_out()), [], []
    for seed in range(40):
        replicates = Replicates([statistic], Run(seed=seed))
        replicates.draw(2000)
        limits = bca(replicates.values[0], statistic.estimate(), bent, 0.95)
        found.append(zeta(statistic.estimate(), 1.1, limits.low, limits.high))
        estimated.append(zeta_error(replicates.values[0], statistic.estimate(), 1.1, bent, 0.95))
    assert 1 / 1.5 < np.std(found, ddof=1) / np.mean(estimated) < 1.5


@pytest.mark.slow
def test_intervals_have_the_nominal_coverage():
    """Figure 3 of the ZMS paper with smaller sets: |zeta| <= 1 for ZMS in 0.922 to 0.978 of 1,000."""
    count = sets(1000)
    low, high = band(count, 0.95, FOUR_STANDARD_ERRORS)
    assert low <= count * share_of_valid_zms(sets=count) <= high


@pytest.mark.slow  # a quarter of the sets does not distinguish 90 % from 95 %
def test_intervals_at_90_percent_have_less_than_95_percent_coverage():
    low, _ = band(1000, 0.95, FOUR_STANDARD_ERRORS)
    assert 1000 * share_of_valid_zms(sets=1000, confidence=0.9) < low


def rows_with_zeta(distance):
    """Return predictions whose ZMS has a zeta near ``distance`` (above 0) at 100,000 resamples."""
    z2 = np.random.default_rng(0).exponential(size=300)
    statistic = mean_of(z2)
    replicates = Replicates([statistic], Run())
    replicates.draw(100_000)
    low = bca(replicates.values[0], z2.mean(), acceleration(statistic.leave_one_out()), 0.95).low
    scale = 1 / (z2.mean() - distance * (z2.mean() - low))  # (estimate - 1) / (estimate - low) = distance after scaling
    return InMemory(Predictions(y=np.sqrt(scale * z2), predictive=Gaussian(np.zeros(300), np.ones(300))))


@pytest.mark.parametrize(("distance", "verdict"), [slow((1.0, "undecided")), (0.8, "pass"), (1.3, "fail")])
def test_a_verdict_within_monte_carlo_error_is_undecided(distance, verdict):
    (result,) = evaluate(rows_with_zeta(distance), [METRICS["zms"]()], run=Run(replicates=0)).results
    assert result.verdict == verdict
    assert_allclose(result.zeta, distance, atol=0.05)
    resamples = result.details["bootstrap"]["resamples"]
    if verdict == "undecided":
        assert resamples == 100_000
        assert any(warning.startswith("undecided: zeta is") for warning in texts(result.warnings))
    else:
        assert resamples == 10_000


@pytest.mark.slow
def test_an_open_verdict_is_decided_by_more_resamples():
    """zeta is about 0.96 ± 0.014: three standard errors include 1 with 10,000 resamples, and not with 40,000."""
    (result,) = evaluate(rows_with_zeta(0.96), [METRICS["zms"]()], run=Run(replicates=0)).results
    assert result.verdict == "pass"
    assert 10_000 < result.details["bootstrap"]["resamples"] <= 100_000
    (few,) = evaluate(rows_with_zeta(0.9), [METRICS["zms"]()], run=Run(resamples=200, replicates=0)).results
    assert few.details["bootstrap"]["resamples"] > 200
    assert few.verdict == "pass"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zms", "rce", "rmse", "crps"])
def test_abc_limits_of_many_rows_agree_with_bca_limits(name):
    """ABC limits of 4,000 rows, |a| about 0.01, against BCa limits with 20,000 resamples (error: 1 % of width)."""
    rng = np.random.default_rng(2)
    std = np.exp(0.4 * rng.normal(size=4000))
    rows = Predictions(y=std * rng.normal(size=4000), predictive=Gaussian(np.zeros(4000), std))
    (resampled,) = evaluate(InMemory(rows), [METRICS[name]()], run=Run(resamples=20_000, replicates=0)).results
    many = Run(replicates=0, limits=Limits(abc_rows=4000))
    (found,) = evaluate(InMemory(rows), [METRICS[name]()], run=many).results
    assert (resampled.interval, found.interval) == ("bca", "abc")
    width = resampled.high - resampled.low
    assert_allclose([found.low, found.high], [resampled.low, resampled.high], atol=0.02 * width)
    if found.zeta is not None:
        assert_allclose(found.zeta, resampled.zeta, atol=0.04)
        assert found.zeta_mc_error == 0


def abcnon(values, function, confidence):
    """Return the ABC limits, z0 and a by derivatives in the weights of rows [Efron, Tibshirani 1993, Section 22.6]."""
    n = len(values)
    even, step = np.full(n, 1 / n), 1e-3 / n

    def at(weights):
        return function(weights @ values / weights.sum())

    ahead, behind = (np.array([at(even + sign * step * (row - even)) for row in np.eye(n)]) for sign in (1, -1))
    first, second = (ahead - behind) / (2 * step), (ahead - 2 * at(even) + behind) / step**2
    sigma = np.sqrt(np.sum(first**2)) / n
    a = np.sum(first**3) / (6 * n**3 * sigma**3)
    delta = first / (n**2 * sigma)
    bend = (at(even + step * delta) - 2 * at(even) + at(even - step * delta)) / (2 * sigma * step**2)
    curvature = second.sum() / (2 * n**2) / sigma - bend
    z0 = stats.norm.ppf(2 * stats.norm.cdf(a) * stats.norm.cdf(-curvature))
    w = z0 + stats.norm.ppf([(1 - confidence) / 2, (1 + confidence) / 2])
    return *(at(even + each * delta) for each in w / (1 - a * w) ** 2), z0, a


@pytest.mark.parametrize("function", [lambda mean: mean[0], lambda mean: mean[0] ** 3, lambda mean: mean[1] / mean[0]])
def test_abc_limits_agree_with_derivatives_in_the_weights_of_rows(function):
    """Skewed rows and curved functions, so that every correction counts: without one, a limit is off by over 1 %."""
    rng = np.random.default_rng(5)
    values = np.stack([rng.gamma(2, size=40), rng.gamma(1, size=40)], axis=1)
    moments = Moments.from_values(values.T)
    found = abc_limits(moments, ("x", "y"), lambda means: function((means["x"], means["y"])), 0.9)
    assert_allclose(np.ravel(found), abcnon(values, function, 0.9), rtol=1e-4, atol=1e-5)  # differences are numerical
