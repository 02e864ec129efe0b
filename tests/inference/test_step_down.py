"""Adjusted p-values by step-down maxima over replicates, against values by hand and the error rate they promise."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.errors import DataError, NumericalError
from calcheck.inference.metric_protocol import FittedMetric
from calcheck.inference.null_distribution import replicate_value
from calcheck.inference.p_values_and_verdicts import (
    adjusted_by_family,
    relative_to_limits,
    step_down_p_values,
    with_adjusted,
)
from calcheck.metrics import METRICS
from calcheck.reports import Inference
from tests.helpers.simulations import band, sets


def test_step_down_p_values_by_hand():
    extremes = np.array([[3.0, 1.0, 2.0, 0.0], [1.0, 2.0, 0.5, 1.5], [2.0, 0.0, 2.5, 1.0]])
    # in the order 3, 2, 1: maxima over all three reach 3 once; over the last two reach 2 in the columns of the data, of
    # replicates 1 and 2; over the second alone, three of four reach 1
    assert_allclose(step_down_p_values(extremes), [1 / 4, 3 / 4, 3 / 4])


def test_a_step_down_p_value_is_never_smaller_than_that_of_a_more_extreme_statistic():
    extremes = np.array([[3.0, 2.9, 2.9, 2.9], [1.0, 0.0, 0.0, 0.0]])
    assert_allclose(step_down_p_values(extremes), [1 / 4, 1 / 4])
    extremes = np.array([[2.0, 3.0, 3.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    assert_allclose(step_down_p_values(extremes), [3 / 4, 3 / 4])


def test_statistics_are_in_units_of_their_limits_on_each_side():
    line = np.arange(-40.0, 41.0)
    skewed = np.where(line > 0, 10 * line, line)
    found = relative_to_limits(np.stack([skewed, skewed, skewed]), ["two-sided", "greater", "less"])
    assert_allclose(found[0][[2, 40, 78]], [1, 0, 1])  # the 2.5 % quantile is at -38
    assert_allclose(found[1][[40, 76, 78]], [0, 1, 38 / 36])  # the 95 % quantile is at 36
    assert_allclose(found[2][[2, 4, 40]], [38 / 36, 1, 0])


def test_undefined_statistics_stay_undefined_and_constant_ones_are_no_evidence():
    values = np.array([[0.0, 1.0, np.nan, 2.0], [5.0, 5.0, 5.0, 5.0]])
    found = relative_to_limits(values, ["two-sided", "two-sided"])
    assert np.isnan(found[0]).tolist() == [False, False, True, False]
    assert found[1].tolist() == [0, 0, 0, 0]


@pytest.mark.slow
def test_right_statistics_are_rejected_in_five_percent_of_data_sets_beside_a_wrong_one():
    rng = np.random.default_rng(3)
    rejected, count = 0, sets(2000)
    for _ in range(count):
        statistics = rng.standard_normal((8, 100)) ** 3
        statistics[0, 0] += 1000
        p_values = step_down_p_values(relative_to_limits(statistics, ["two-sided"] * 8))
        assert p_values[0] <= 0.02
        rejected += bool((p_values[1:] <= 0.05).any())
    low, high = band(count, 0.05)
    assert low <= rejected <= high


def test_an_adjusted_p_value_is_never_below_its_own():
    for own, adjusted, expected in ((0.04, 0.02, 0.04), (0.04, 0.06, 0.06), (None, 0.02, 0.02), (0.04, None, None)):
        assert with_adjusted(Inference(p_value=own), adjusted).p_value_adjusted == expected


def test_undefined_replicates_are_the_most_extreme():
    """Of nine replicates none reaches the data and two are undefined: 3 / 10 with the data itself."""
    values = np.array([0.1, 0.2, np.nan, np.nan, 0.3, 0.4, 0.5, 0.6, 0.7])
    metric = METRICS["ece"]()
    assert metric.alternative == "greater"
    fitted = FittedMetric(metric, None, None, 1.0, None, null=SimpleNamespace(values=values, data_value=None))
    assert adjusted_by_family([fitted]) == [pytest.approx(0.3)]


def test_p_values_of_several_families_are_multiplied_by_their_number():
    null = SimpleNamespace(values=np.linspace(0.0, 0.9, 19), data_value=None)
    one = FittedMetric(METRICS["ece"](), None, None, 1.0, None, null=null)
    other = replace(one, metric=METRICS["crps"](), shares_replicates=False)
    untested = replace(one, null=None)
    assert adjusted_by_family([one, untested]) == [pytest.approx(1 / 20), None]
    assert adjusted_by_family([one, other, untested]) == [pytest.approx(2 / 20), pytest.approx(2 / 20), None]


@pytest.mark.parametrize("error", [DataError("none"), NumericalError("none")])
def test_a_replicate_without_a_value_is_undefined(error):
    class Undefined:
        def fit(self, *_):
            raise error

    assert np.isnan(replicate_value(FittedMetric(Undefined(), None, None, 0.0, None), None, None))
