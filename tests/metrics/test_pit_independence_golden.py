"""Serial correlation of the PIT: values by hand, jumps by quadrature, and the null distribution."""

import numpy as np
import pytest
from scipy import integrate

from calcheck.distributions import Gaussian
from calcheck.distributions.count_families import Poisson
from calcheck.evaluation import evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.pit import mean_distance
from tests.helpers.simulations import autoregressive, band, sets

FEW = Run(replicates=0)


def result(rows, run=FEW, **options):
    return evaluate(InMemory(rows), [METRICS["pit-independence"](**options)], run=run).results[0]


def right(y, **columns):
    return Predictions(y=np.asarray(y, float), predictive=Gaussian(np.zeros(len(y)), np.ones(len(y))), columns=columns)


def test_autocorrelations_by_hand():
    """PITs 0.5, 0.5 and two quantiles at 0.9: away from the mean 0.7 by -0.2, 0.2, -0.2, 0.2."""
    upper = 1.2815515655446004
    found = result(right([0, upper, 0, upper]), lags=1)
    assert found.details["correlations"] == [
        {"lag": 1, "position": pytest.approx(-0.75), "distance": pytest.approx(-0.75)}
    ]
    assert found.value == pytest.approx(0.75)


def test_the_distance_of_a_jump_is_its_mean():
    left, right_ends = np.array([0.1, 0.3, 0.6, 0.4]), np.array([0.2, 0.9, 0.8, 0.4])
    expected = [
        integrate.quad(lambda u: abs(2 * u - 1), low, high, points=[0.5])[0] / (high - low) if high > low else 0.2
        for low, high in zip(left, right_ends, strict=True)
    ]
    np.testing.assert_allclose(mean_distance(left, right_ends), expected, rtol=1e-10)


def test_rows_are_in_the_order_of_time():
    rng = np.random.default_rng(0)
    errors, order = autoregressive(rng, 300, 0.8), rng.permutation(300)
    shuffled = right(errors[order], day=order)
    assert result(shuffled).value < 0.1
    sorted_value = result(right(errors)).value
    assert result(shuffled, replace_time("day")).value == pytest.approx(sorted_value, rel=1e-12)


def replace_time(column):
    return Run(replicates=0, dependence=RowDependence(time=column))


def test_rows_of_one_time_are_averaged():
    errors = autoregressive(np.random.default_rng(1), 200, 0.5)
    twice = right(np.repeat(errors, 2), day=np.repeat(np.arange(200), 2))
    assert result(twice, replace_time("day")).value == pytest.approx(result(right(errors)).value, rel=1e-12)


def test_too_few_times_for_the_lags_are_refused():
    report = evaluate(InMemory(right([0.1, 0.2, 0.3])), [METRICS["pit-independence"]()], run=FEW)
    assert "3 times are too few for 5 lags" in report.skipped[0].reason
    report = evaluate(InMemory(right([0.1])), [METRICS["pit-independence"]()], run=FEW)
    assert "1 time is too few for 5 lags" in report.skipped[0].reason


@pytest.mark.parametrize("time", [None, "day"])
def test_dependent_errors_fail_also_with_the_column_of_times(time):
    rows = right(autoregressive(np.random.default_rng(2), 300, 0.5), day=np.arange(300))
    found = result(rows, Run(replicates=99, dependence=RowDependence(time=time)))
    assert (found.verdict, found.direction) == ("fail", "dependent-errors")


@pytest.mark.slow
def test_counts_in_random_order_fail_in_five_percent_of_sets():
    number, failures = sets(120), 0
    for seed in range(number):
        rng = np.random.default_rng([3, seed])
        rate = rng.gamma(2, size=60)
        rows = Predictions(y=rng.poisson(rate).astype(float), predictive=Poisson(rate))
        failures += result(rows, Run(replicates=39, seed=seed)).p_value <= 0.05
    low, high = band(number, 0.05)
    assert low <= failures <= high
