"""Sampling weights: values by hand and by repeated rows, intervals and p-values with the same weights."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian
from calcheck.distributions.count_families import Poisson
from calcheck.errors import OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference.bootstrap import statistic_of
from calcheck.metrics import METRICS
from calcheck.metrics._weights import has_weighted_form, weighted
from calcheck.models.alignment import Model
from calcheck.models.comparison import compare
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.groups import effective_count
from tests.helpers.families import calibrated
from tests.helpers.shorthand import rows_of
from tests.helpers.simulations import band, sets

PLAIN = Run(resamples=0, replicates=0)
FORMS = [name for name, metric in METRICS.items() if has_weighted_form(metric())]
RANDOM = [name for name in FORMS if not METRICS[name].info.conditional_on]


def with_weights(rows, weights):
    return replace(rows, columns={**rows.columns, "w": np.asarray(weights)})


def result(metric, rows, run=PLAIN):
    report = evaluate(InMemory(rows), [metric], run=run)
    assert not report.skipped, report.skipped
    return report.results[0]


def counts(n, seed=0):
    return np.random.default_rng(seed).integers(1, 4, n)


def test_the_mean_absolute_error_is_weighted_by_hand():
    rows = Predictions(y=np.array([1.0, 5.0, 10.0]), predictive=Gaussian(np.zeros(3), np.ones(3)))
    found = result(weighted(METRICS["mae"](), "w"), with_weights(rows, [1, 2, 5]))
    assert_allclose(found.value, (1 + 10 + 50) / 8, rtol=1e-15)
    assert "3 rows are as accurate as 2 with equal weights" in found.warnings[0].text
    assert_allclose(effective_count(np.array([1.0, 2, 5])), 64 / 30, rtol=1e-15)


def test_the_expected_coverage_is_weighted_too():
    """Intervals of counts hold more than their level, which depends on the rate."""
    rows = Predictions(y=np.array([1.0, 40.0]), predictive=Poisson(np.array([0.3, 40.0])))
    alone = [result(METRICS["coverage"](), rows.take(slice(place, place + 1))) for place in (0, 1)]
    found = result(weighted(METRICS["coverage"](), "w"), with_weights(rows, [1, 3]))
    assert_allclose(found.reference, (alone[0].reference + 3 * alone[1].reference) / 4, rtol=1e-12)
    assert alone[0].reference != alone[1].reference


@pytest.mark.parametrize("name", RANDOM)
def test_a_weight_is_a_number_of_repeated_rows(name):
    rows, metric = calibrated("gaussian", n=60), METRICS[name]()
    repeats = counts(60)
    found = result(weighted(metric, "w"), with_weights(rows, repeats)).value
    if name == "cv":  # its n - 1 counts rows, not weights
        total = repeats.sum()
        found *= np.sqrt(total / (total - 1)) / np.sqrt(60 / 59)
    assert_allclose(found, result(metric, rows.take(np.repeat(np.arange(60), repeats))).value, rtol=1e-10)


@pytest.mark.parametrize("name", FORMS)
def test_equal_weights_change_neither_value_nor_interval_nor_p(name):
    rows, metric, run = calibrated("gaussian", n=60), METRICS[name](), Run(resamples=200, replicates=19)
    plain, found = result(metric, rows, run), result(weighted(metric, "w"), with_weights(rows, np.full(60, 2.5)), run)
    for field in ("value", "low", "high", "reference", "p_value", "verdict"):
        expected, other = getattr(plain, field), getattr(found, field)
        if isinstance(expected, float):
            assert_allclose(other, expected, rtol=1e-9, atol=1e-12)
        else:
            assert other == expected


@pytest.mark.parametrize("name", ["zms", "rce", "pit-dispersion", "coverage"])
def test_the_jackknife_leaves_rows_out_with_their_weights(name):
    rows = with_weights(calibrated("gaussian", n=12), counts(12))
    metric = weighted(METRICS[name](), "w")
    others = [rows.take(np.delete(np.arange(12), row)) for row in range(12)]
    expected = [statistic_of(metric, rows_of(metric, other)).estimate() for other in others]
    assert_allclose(statistic_of(metric, rows_of(metric, rows)).leave_one_out(), expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["zms", "ece", "coverage", "crps", "ence"])
def test_wrong_rows_without_weight_are_no_evidence(name):
    rng = np.random.default_rng(2)
    wrong = np.arange(400) < 200
    y = np.where(wrong, 3, 1) * rng.normal(size=400)
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(400), rng.uniform(0.9, 1.1, 400)))
    run, metric = Run(resamples=0, replicates=99), weighted(METRICS[name](), "w")
    assert result(metric, with_weights(rows, ~wrong), run).verdict == "pass"
    assert result(metric, with_weights(rows, wrong), run).verdict == "fail"


@pytest.mark.slow
def test_a_right_model_with_unequal_weights_fails_in_five_percent_of_data_sets():
    """The null distribution has the same weights: that of equal ones would be too narrow."""
    rng, metric, failures = np.random.default_rng(5), weighted(METRICS["zms"](), "w"), 0
    for seed in range(100):
        rows = Predictions(y=rng.normal(size=60), predictive=Gaussian(np.zeros(60), np.ones(60)))
        found = with_weights(rows, rng.pareto(2.0, 60))
        failures += result(metric, found, Run(resamples=0, replicates=39, seed=seed)).p_value <= 0.05
    assert failures <= 11  # 99 % limit of a binomial


def models(rows, shift, weights):
    """Return a model, and another one whose predictions are shifted, both with weights."""
    moved = replace(rows, predictive=Gaussian(rows.predictive.mean() + shift, rows.predictive.spread()))
    named = {"a": with_weights(rows, weights), "b": with_weights(moved, weights)}
    return [Model(name, InMemory(each)) for name, each in named.items()]


def difference(found, metric, run):
    return compare(found, [metric], run=run, swaps=199).results[2]


@pytest.mark.parametrize("name", ["mae", "crps", "zms", "ece"])
def test_equal_weights_do_not_change_the_comparison_of_models(name):
    rows, run = calibrated("gaussian", n=60), Run(resamples=200, replicates=0)
    found = models(rows, 0.4, np.full(60, 2.0))
    plain, weighed = (difference(found, each, run) for each in (METRICS[name](), weighted(METRICS[name](), "w")))
    for field in ("value", "low", "high", "p_value"):
        assert_allclose(getattr(weighed, field), getattr(plain, field), rtol=1e-9, atol=1e-12)


def test_rows_without_weight_do_not_tell_models_apart():
    rng = np.random.default_rng(3)
    rows = Predictions(y=rng.normal(size=200), predictive=Gaussian(np.zeros(200), np.ones(200)))
    shift, run = np.where(np.arange(200) < 100, 2.0, 0.01 * rng.normal(size=200)), Run(resamples=400, replicates=0)
    for weights, least, most in ((np.arange(200) < 100, 0.0, 0.01), (np.arange(200) >= 100, 0.01, 1.0)):
        assert least < difference(models(rows, shift, weights), weighted(METRICS["mae"](), "w"), run).p_value <= most


def test_equally_good_models_with_unequal_weights_differ_in_five_percent_of_data_sets():
    rng, metric, failures, count = np.random.default_rng(6), weighted(METRICS["mae"](), "w"), 0, sets(240)
    for seed in range(count):
        y, noise = rng.normal(size=(2, 80))
        rows = Predictions(y=y, predictive=Gaussian(0.5 * noise, np.ones(80)))
        found = models(rows, -noise, rng.uniform(0.2, 3.0, 80))  # errors of both models have the same distribution
        failures += difference(found, metric, Run(resamples=199, replicates=0, seed=seed)).p_value <= 0.05
    assert failures <= band(count, 0.05)[1]


@pytest.mark.parametrize("weights", [[1.0, -1.0], [np.nan, 1.0], [0.0, 0.0], ["a", "b"]])
def test_impossible_weights_are_refused(weights):
    rows = Predictions(y=np.zeros(2), predictive=Gaussian(np.zeros(2), np.ones(2)), columns={"w": np.array(weights)})
    report = evaluate(InMemory(rows), [weighted(METRICS["mae"](), "w")], run=PLAIN)
    assert "--weights" in report.skipped[0].reason


def test_a_metric_that_is_no_function_of_means_is_refused_by_name():
    for name in ("cce", "lzms", "crps-miscalibration", "fid"):
        with pytest.raises(OptionError, match=f"{name} has no weighted form"):
            weighted(METRICS[name](), "w")
