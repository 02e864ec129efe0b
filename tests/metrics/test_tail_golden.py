"""Tails beyond a threshold, by hand: exceedances, excesses, draws and counts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.coverage import mixture_quantile

PLAIN = Run(resamples=0, replicates=0)


def result(y, predictive, run=PLAIN, **options):
    rows = Predictions(y=np.asarray(y, dtype=float), predictive=predictive)
    return evaluate(InMemory(rows), [METRICS["tail"](**options)], run=run).results[0]


def normal(n):
    return Gaussian(np.zeros(n), np.ones(n))


@pytest.mark.parametrize(("statistic", "expected"), [("occurrence", 3 / 2), ("severity", 14 / 15), ("combined", 1.4)])
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_a_tail_of_four_rows_is_by_hand(statistic, expected, side):
    """Three of four targets are above the median, and the PITs of their excesses are 0.2, 0.4 and 0.8."""
    y = stats.norm.ppf([0.2, 0.6, 0.7, 0.9]) * (1 if side == "upper" else -1)
    found = result(y, normal(4), threshold=0.5, side=side, statistic=statistic)
    assert_allclose(found.value, expected, rtol=1e-12)
    assert_allclose(found.details["threshold"], 0, atol=1e-15)
    assert [found.details[name] for name in ("exceedances", "expected_exceedances")] == [3, 2]
    assert found.reference == 1


def test_the_lower_tail_is_the_upper_tail_of_the_negative_targets():
    """The lower tail at 0.95 of N(0, 1) is below its quantile at 0.05."""
    y = np.random.default_rng(6).normal(size=500)
    lower, upper = result(y, normal(500), threshold=0.95, side="lower"), result(-y, normal(500), threshold=0.95)
    assert_allclose(lower.details["threshold"], stats.norm.ppf(0.05), rtol=1e-9)
    assert_allclose(lower.value, upper.value, rtol=1e-9)
    assert lower.details["exceedances"] == np.sum(y < stats.norm.ppf(0.05))


def test_a_tail_of_counts_takes_the_middle_of_each_jump():
    """Of Poisson(1), P(Y <= 2) is 5/(2 e); y = 3 has probability 1/(6 e), and 4 has 1/(24 e)."""
    found = result([3, 0, 1, 4], Poisson(np.ones(4)), threshold=0.9)
    beyond = 1 - 2.5 / np.e
    middles = np.array([1 / 12, 1 / 6 + 1 / 48]) / np.e / beyond
    assert found.details["threshold"] == 2
    assert_allclose(found.value, 2 / (4 * beyond), rtol=1e-12)
    assert_allclose(found.details["severity"], 2 * middles.mean(), rtol=1e-12)


def test_a_tail_of_draws_ranks_the_target_among_the_draws_beyond_the_threshold():
    """Two of the draws 0, 1, 2, 3 are above 1, which half are not; 2.5 is between them: the middle of three ranks."""
    found = result([2.5], Samples(np.array([[3.0, 0, 2, 1]])), threshold=0.5)
    assert (found.details["threshold"], found.value, found.details["severity"]) == (1, 2, 1)
    below = result([-1.0], Samples(np.array([[3.0, 0, 2, 1]])), threshold=0.5, side="lower")
    assert_allclose((below.value, below.details["severity"]), (4, 1.5), rtol=1e-15)  # one draw below 1: z is 3/4
    assert found.reference is None


def test_no_exceedance_has_no_severity_and_few_have_a_warning():
    found = result([-1.0, 0.0], normal(2))
    assert found.value == 0
    assert found.details["severity"] is None
    assert "few-rows" in [message.code for message in found.warnings]
    assert result([-1.0, 0.0], normal(2), statistic="severity").value is None


def test_thresholds_are_quantiles_of_the_mixture_of_all_predictions():
    """Half of the rows are N(0, 1) and half N(100, 1): the quantile at 0.75 is the median of the latter."""
    predictive = Gaussian(np.array([0.0, 100]), np.ones(2))
    assert_allclose(mixture_quantile(predictive, 0.75), 100, rtol=1e-12)
    assert_allclose(mixture_quantile(predictive, 0.25), 0, atol=1e-12)
    draws = np.random.default_rng(0).normal(size=(7, 13))
    assert mixture_quantile(Samples(draws), 0.9) == np.quantile(draws, 0.9, method="inverted_cdf")


def test_other_levels_are_those_of_their_own_threshold():
    rng = np.random.default_rng(3)
    y = rng.normal(size=500)
    (other,) = [each for each in result(y, normal(500)).details["at_other_levels"] if each["level"] == 0.9]
    assert_allclose(other["occurrence"], result(y, normal(500), threshold=0.9).value, rtol=1e-15)


@pytest.mark.parametrize("kind", ["normal", "draws"])
def test_a_right_tail_passes_and_a_heavy_one_fails(kind):
    """Scaled t targets with three degrees of freedom have the same variance and more extremes."""
    rng, run = np.random.default_rng(4), Run(resamples=0, replicates=99)
    predictive = normal(2000) if kind == "normal" else Samples(rng.normal(size=(2000, 11)))
    right, heavy = rng.normal(size=2000), rng.standard_t(3, 2000) / np.sqrt(3)
    for statistic in ("severity", "combined")[kind == "draws" :]:  # few draws are beyond the threshold
        options = {"threshold": 0.99, "statistic": statistic}
        assert result(right, predictive, run, **options).verdict == "pass"
        assert result(heavy, predictive, run, **options).direction == "heavy-tails"
