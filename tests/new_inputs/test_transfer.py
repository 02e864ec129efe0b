"""The answer at new inputs."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from calcheck.conclusion.answer import Estimate
from calcheck.distributions import Gaussian
from calcheck.errors import DataError, OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics import METRICS
from calcheck.new_inputs.population import binomial_p
from calcheck.new_inputs.transfer import local_text, transfer
from calcheck.predictions import InMemory, Predictions
from calcheck.render.new_inputs import count_text
from tests.benchmarks import right_models

TRUE = 1.303  # The factor of new inputs around 1: 90 % of normal errors times exp(.4 tanh x) are up to it


def make_rows(n, rng, columns=2):
    x = rng.normal(size=(n, columns))
    y = np.exp(0.4 * np.tanh(x[:, 0])) * rng.normal(size=n)
    return Predictions(y=y, predictive=Gaussian(np.zeros(n), np.ones(n)), x=x, has_embedding=False)


def new_inputs(n, rng, shift=1.0, columns=2):
    x = rng.normal(size=(n, columns))
    x[:, 0] = shift + 0.8 * x[:, 0]
    return Predictions(x=x, has_embedding=False)


def transferred(rows, new, **options):
    return transfer(rows, new, **{"run": Run(), "tolerance": 0.2, "level": 0.9, **options})


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(1)
    return transferred(make_rows(500, rng), new_inputs(300, rng), names=("a", "b"), label=5)


def test_the_factor_is_that_of_the_new_inputs(found):
    size = found.conclusion.effects[0]
    assert size.low < TRUE < size.high
    assert size.low > 1.06  # the factor of the tested rows
    assert found.conclusion.answer == "no"
    assert 150 < found.conclusion.effective_rows < 350
    assert [each.level for each in found.conclusion.factors] == [0.5, 0.9, 0.99]
    assert 0.75 < found.conclusion.coverage < 0.87  # normal errors of that size are inside with .79


def test_rows_that_are_not_sampled_have_weights_and_the_screen_names_the_sample(found, monkeypatch):
    """Where new inputs are, the weights of 300 rows, of which 100 are sampled, are near the ratio of the densities."""
    monkeypatch.setattr("calcheck.new_inputs.transfer.MOST_ROWS", 100)
    rng = np.random.default_rng(2)
    rows = make_rows(300, rng)
    weights, x = transferred(rows, new_inputs(60, rng)).weights(), rows.x[:, 0]
    near = np.abs(x - 1) < 1
    true = np.exp(-((x - 1) ** 2) / 1.28 + x**2 / 2) / 0.8
    assert np.mean(weights[near] > 0) > 0.95
    assert np.mean(weights[near]) == pytest.approx(np.mean(true[near]), rel=0.3)
    assert " of 15,000 tested rows, of which 10,000 are sampled, count there" in count_text(found.conclusion, 15_000)


def test_inputs_that_differ_are_named(found):
    assert found.conclusion.inputs_differ.p <= 0.01
    assert found.conclusion.inputs_differ.columns[0].name == "a"


def test_rows_to_label_are_different_and_where_few_were_tested(found):
    assert len(set(found.conclusion.label)) == 5
    assert np.median(found.columns["distance"][list(found.conclusion.label)]) > np.median(found.columns["distance"])


def test_units_of_inputs_change_no_answer():
    rng = np.random.default_rng(0)
    rows, new = make_rows(60, rng), new_inputs(60, rng)
    other = transferred(replace(rows, x=1000 * rows.x + 5), replace(new, x=1000 * new.x + 5)).conclusion
    own = transferred(rows, new).conclusion
    np.testing.assert_allclose(other.effects[0].value, own.effects[0].value)
    np.testing.assert_allclose(other.effects[0].low, own.effects[0].low)


def test_nothing_is_stated_where_no_weights_make_the_inputs_alike():
    rng = np.random.default_rng(0)
    found = transferred(make_rows(300, rng, 64), new_inputs(300, rng, 1, 64)).conclusion
    assert found.answer == "not-shown"
    assert found.effective_rows > 100
    assert "cannot stand for the new ones" in found.effects[0].text


def test_nothing_is_stated_about_rows_that_lie_beyond():
    rng = np.random.default_rng(0)
    found = transferred(make_rows(100, rng), new_inputs(50, rng, 30), label=5)
    assert found.conclusion.answer == "not-shown"
    assert found.conclusion.beyond.rows == 50
    assert found.conclusion.beyond.low > 0.9
    assert found.conclusion.no_label == "too few new rows lie among the tested inputs"
    assert np.isnan(found.columns["local_factor"]).all()


@pytest.mark.slow
def test_new_rows_with_targets_are_foretold_and_make_the_interval_narrower():
    rng = np.random.default_rng(0)
    rows, labelled = make_rows(60, rng), make_rows(80, rng)
    labelled = replace(labelled, x=np.add(labelled.x, [1.0, 0.0]))
    labelled = replace(labelled, y=np.exp(0.4 * np.tanh(labelled.x[:, 0])) * rng.normal(size=80))
    new = Predictions(x=labelled.x, has_embedding=False)
    before, after = transferred(rows, new).conclusion, transferred(rows, new, labelled=labelled).conclusion
    foretold, observed = after.foretold[0], after.observed[0]
    assert after.labelled == 80
    assert max(foretold.low, observed.low) < min(foretold.high, observed.high)
    widths = [np.log(each.effects[0].high / each.effects[0].low) for each in (before, after)]
    assert widths[1] < 0.8 * widths[0]


def test_an_input_with_few_values_is_as_good_as_another():
    rng = np.random.default_rng(0)
    x = (rng.random((100, 1)) < 0.1).astype(float)
    rows = Predictions(
        y=rng.normal(size=100), predictive=Gaussian(np.zeros(100), np.ones(100)), x=x, has_embedding=False
    )
    new = Predictions(x=np.array([[0.0], [1.0], [0.0], [1.0], [1.0], [2.0]]), has_embedding=False)
    found = transferred(rows, new)
    assert found.columns["beyond"].tolist() == [False] * 5 + [True]
    constant = transferred(replace(rows, x=np.ones((100, 1))), replace(new, x=np.ones((6, 1)))).conclusion
    assert constant.inputs_differ.p == 1


@pytest.mark.parametrize("kind", ["intervals", "quantiles", "counts"])
def test_predictions_of_other_kinds_have_the_factor_of_the_tested_rows_where_these_are_alike(kind):
    make = {
        "intervals": partial(right_models.normal_intervals, (0.9,)),
        "quantiles": right_models.normal_quantiles,
        "counts": right_models.poisson,
    }[kind]
    rng = np.random.default_rng(0)
    rows = replace(make(rng, 100, 1.0), x=rng.normal(size=(100, 1)), has_embedding=False)
    found = transferred(rows, Predictions(x=rng.normal(size=(100, 1)), has_embedding=False)).conclusion
    size = evaluate(InMemory(rows), [METRICS["width-factor"]()]).results[0]
    assert abs(np.log(found.effects[0].value / size.value)) < 0.1
    assert found.answer != "no"
    assert ("inputs" in [each.topic for each in found.effects]) == (kind != "intervals")


def test_a_local_error_has_no_least_size_below_zero():
    """Seen on QM9: the test by random signs is significant, and the limit by the influences is below 0."""
    told = local_text(Estimate("inputs", 0.019, -0.039, np.inf, 0.015), 0.1)
    assert told == "uncertainties are off along the inputs, typically by 1.9 % (p 0.015)"


def test_p_of_a_share_is_binomial():
    """Of 10 rows, all are inside with .9^10 = .3487, and up to 9 of them with .6513, at least 9 with .7361."""
    assert binomial_p(1.0, 10.0, 0.9) == pytest.approx(2 * 0.9**10)
    assert binomial_p(0.9, 10.0, 0.9) == 1
    assert binomial_p(0.0, 10.0, 0.9) == pytest.approx(2 * 0.1**10)


@pytest.mark.parametrize(("n", "columns", "message"), [(10, 2, "too few"), (50, 3, "have 2 inputs, the tested ones 3")])
def test_rows_that_say_nothing_are_refused(n, columns, message):
    rng = np.random.default_rng(0)
    with pytest.raises(DataError if n < 20 else OptionError, match=message):
        transferred(make_rows(n, rng, columns), new_inputs(50, rng))


def test_rows_of_a_cluster_that_share_their_errors_count_as_one():
    rng = np.random.default_rng(0)
    rows, new = make_rows(120, rng), new_inputs(60, rng, 0)
    shared = np.repeat(rng.normal(size=40), 3)
    rows = replace(rows, y=shared, columns={"patient": np.repeat(np.arange(40), 3)})
    runs = Run(), Run(dependence=RowDependence(cluster="patient"))
    careless, careful = (transferred(rows, new, run=run).conclusion.effects[1] for run in runs)
    assert careful.high - careful.low > 1.3 * (careless.high - careless.low)  # the root of 3 is 1.7


def test_rows_of_one_time_count_as_one_and_few_times_show_nothing():
    rng = np.random.default_rng(0)
    rows, new = make_rows(160, rng), new_inputs(60, rng, 0)
    shared = np.repeat(rng.normal(size=40), 4)
    days = {40: np.repeat(np.arange(40), 4), 8: np.repeat(np.arange(8), 20)}
    run = Run(dependence=RowDependence(time="day"))
    many, few = (transferred(replace(rows, y=shared, columns={"day": days[n]}), new, run=run).conclusion for n in days)
    careless = transferred(replace(rows, y=shared), new).conclusion.effects[1]
    assert many.effects[1].high - many.effects[1].low > 1.5 * (careless.high - careless.low)  # the root of 4 is 2
    assert few.effects[0].text.endswith(": 8 times count, 30 are needed")


@pytest.mark.slow
def test_errors_cancel_and_intervals_hold_the_truth():
    """Of 20 intervals that hold it in 90 % of sets, 14 or fewer do with a probability of .011."""
    errors, held = [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        size = transferred(make_rows(500, rng), new_inputs(500, rng), run=Run(seed=seed)).conclusion.effects[0]
        errors.append(np.log(size.value / TRUE))
        held += size.low <= TRUE <= size.high
    assert abs(np.mean(errors)) < 0.03 + 2 * np.std(errors) / np.sqrt(20)
    assert held >= 15
