"""Metrics with a fit, by groups: values and replicates by the closed form, the level they promise, and refitting."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.quantiles import Intervals
from calcheck.evaluation import evaluate
from calcheck.execution.run import Limits, Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics.cce import Cce
from calcheck.metrics.coverage import Coverage
from calcheck.metrics.spread import Ence, Zms
from calcheck.predictions import InMemory, Predictions
from calcheck.regions.partition import Cut
from calcheck.studies.slices.groups import by_groups
from tests.helpers.naive import cce_squared_gaussian, input_kernel
from tests.helpers.simulations import band, sets, slow

BY_KIND = [Cut("kind")]
CLOSED = Cce(kernel_x="rbf", gamma_x=0.3, normalize="none")


def forecasts(seed=0, n=90, wrong=1.0):
    """Return normal forecasts of one input, whose uncertainties are too small by a factor at inputs above 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    mean, std = np.sin(x[:, 0]), rng.uniform(0.3, 0.8, n)
    y = mean + np.where(x[:, 0] > 0, wrong, 1.0) * std * rng.normal(size=n)
    kind = np.where(x[:, 0] > 0, "above", "below")
    return Predictions(y=y, predictive=Gaussian(mean, std), x=x, columns={"kind": kind})


def closed_form(rows, y):
    """Return cce at each row, with the kernel on targets of the data."""
    predicted = rows.predictive
    gamma = 1 / (2 * rows.y.var(ddof=1))
    squared = cce_squared_gaussian(
        rows.x, y, predicted.mean(), predicted.spread(), k_x=input_kernel("rbf", 0.3), gamma_y=gamma
    )
    return np.sqrt(squared)


def found_in(report, group, metric="cce"):
    return next(each for each in report.results if each.slice["group"] == group and each.metric == metric)


def test_the_value_of_a_group_is_the_mean_of_the_values_at_its_rows_from_one_fit():
    rows = forecasts(wrong=2.0)
    found = found_in(by_groups(InMemory(rows), BY_KIND, metrics=[CLOSED], run=Run(replicates=19)), "kind=above")
    inside = rows.columns["kind"] == "above"
    own, *replicates = (
        closed_form(rows, each.y)[inside].mean() for each in (rows, *NullSimulator(rows, Run(replicates=19)))
    )
    assert_allclose(found.value, own, rtol=3e-5)
    assert_allclose(found.reference, np.mean(replicates), rtol=3e-5)
    assert found.p_value == (1 + np.sum(np.array(replicates) >= own)) / 20


def test_the_fault_of_a_group_is_not_that_of_rows_far_from_it():
    rows = forecasts(1, 600, wrong=2.0)
    x = rows.x + np.where(rows.x > 0, 4.0, -4.0)  # far from each other, for the kernel
    rows = Predictions(y=rows.y, predictive=rows.predictive, x=x, columns=rows.columns)
    report = by_groups(InMemory(rows), BY_KIND, metrics=[CLOSED], run=Run(replicates=99))
    assert {name: found_in(report, name).verdict for name in ("kind=above", "kind=below")} == {
        "kind=above": "fail",
        "kind=below": "pass",
    }
    assert "predicted distributions differ from those of the targets" in report.conclusion.effects[1].text


@pytest.mark.slow
@pytest.mark.parametrize(("refit", "count"), [(False, sets(240, 8)), slow((True, sets(100)))])
def test_some_group_of_a_right_model_fails_in_five_percent_of_data_sets(refit, count):
    run, failures = Run(replicates=19, resamples=0), 0
    for seed in range(count):
        rows = forecasts(seed, 60)
        report = by_groups(InMemory(rows), BY_KIND, metrics=[CLOSED, Zms()], min_rows=10, refit=refit, run=run)
        failures += min(each.p_value_adjusted for each in report.results) <= 0.05 * (1 + 1e-9)
    low, high = band(count, 0.05)
    assert low <= failures <= high


def test_replicates_of_a_group_are_those_of_all_rows():
    rows, chosen = forecasts(), np.array([3, 14, 15, 65])
    whole = NullSimulator(rows, Run(replicates=19))
    for part, full in zip(whole.take(chosen), whole, strict=True):
        assert_array_equal(part.y, full.y[chosen])


def test_replicates_of_equal_rows_are_those_of_all_rows():
    draws = np.ones((6, 4)) * np.arange(4)
    rows = Predictions(y=np.ones(6), predictive=Samples(draws), columns={"kind": np.array(list("aabbab"))})
    whole, chosen = NullSimulator(rows, Run(replicates=19)), np.array([1, 4])
    for part, full in zip(whole.take(chosen), whole, strict=True):
        assert_array_equal(part.y, full.y[chosen])


@pytest.mark.slow
def test_a_refitted_metric_is_that_of_the_rows_of_the_group_alone():
    rows, run = forecasts(2, 200, wrong=1.5), Run(replicates=99, resamples=0)
    metrics = [Cce(), Ence(bins=4)]
    report = by_groups(InMemory(rows), BY_KIND, metrics=metrics, refit=True, run=run)
    alone = InMemory(rows.take(np.flatnonzero(rows.columns["kind"] == "above")))
    for expected in evaluate(alone, metrics, run=run).results:
        found = found_in(report, "kind=above", expected.metric)
        assert (found.value, found.reference, found.p_value) == (expected.value, expected.reference, expected.p_value)


def test_a_group_without_a_value_states_the_reason():
    rows = forecasts(3, 80)
    columns = {"kind": np.where(np.arange(80) < 5, "few", "many")}
    rows = Predictions(y=rows.y, predictive=rows.predictive, columns=columns)
    report = by_groups(InMemory(rows), BY_KIND, metrics=[Ence(bins=8)], refit=True, run=Run(replicates=19))
    found = found_in(report, "kind=few", "ence")
    assert (found.value, found.verdict, found.p_value_adjusted) == (None, "none", None)
    assert any(each.code == "no-value" for each in found.warnings)


def test_groups_of_an_approximation_are_means_over_the_rows_that_were_evaluated():
    rows = forecasts(4, 400, wrong=2.0)
    run = Run(replicates=39, limits=Limits(evaluated_rows=128))
    metric = Cce(kernel_x="rbf", gamma_x=0.3, normalize="none", solver="nystroem", landmarks=64)
    report = by_groups(InMemory(rows), BY_KIND, metrics=[metric], run=run)
    found, exact = found_in(report, "kind=above"), closed_form(rows, rows.y)[rows.columns["kind"] == "above"]
    assert_allclose(found.value, exact.mean(), rtol=0.1)
    assert found.verdict == "fail"
    assert "values by group are means over a sample of 128 rows" in str(found.warnings)
    whole = evaluate(InMemory(rows), [metric], run=run).results[0]
    assert_allclose(found_in(report, "all rows").value, whole.value, rtol=1e-12)
    assert found_in(report, "all rows").p_value == whole.p_value


def test_a_group_with_few_rows_in_the_sample_is_not_judged():
    rows, run = forecasts(4, 400), Run(replicates=39, limits=Limits(evaluated_rows=128))
    rows = replace(rows, columns={"kind": np.where(np.arange(400) < 60, "few", "many")})
    metric = Cce(kernel_x="rbf", gamma_x=0.3, normalize="none", solver="nystroem", landmarks=64)
    report = by_groups(InMemory(rows), BY_KIND, metrics=[metric], min_rows=50, run=run)
    few, many = (found_in(report, name) for name in ("kind=few", "kind=many"))
    assert (few.verdict, few.p_value_adjusted, many.verdict) == ("none", None, "pass")
    assert "groups with fewer than 50 rows in the sample are not judged" in str(few.warnings)


def test_metrics_of_other_outcomes_are_a_family_of_their_own():
    rng, n = np.random.default_rng(5), 120
    x, limits = rng.normal(size=(n, 1)), np.full((n, 1), 1.6449)
    rows = Predictions(
        y=rng.normal(size=n),
        predictive=Intervals(np.array([0.9]), -limits, limits),
        x=x,
        columns={"kind": np.where(x[:, 0] > 0, "above", "below")},
    )
    alone, both = (
        by_groups(InMemory(rows), BY_KIND, metrics=metrics, run=Run(replicates=39, resamples=0))
        for metrics in ([Cce()], [Coverage(), Cce()])
    )
    for each in alone.results:
        twice = min(1.0, 2 * each.p_value_adjusted)
        assert found_in(both, each.slice["group"]).p_value_adjusted == pytest.approx(twice)
