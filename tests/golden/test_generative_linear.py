"""Linear time says what every pair says: to what it promises, and to what it tells of its error."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.evaluation import evaluate
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory
from calcheck.render.json import to_json
from tests import naive_joint as naive
from tests.joint_cases import PLAIN, sampled_case, sampled_rows, scaled, value

ROWS = 1200
FAST = {"exact_rows": 1}
ESTIMATORS = ["unbiased", "v", "paper"]


def case(d, wrong, draws=1):
    """Inputs whose columns are correlated, as they are in data."""
    x, y, model = sampled_case(1, n=ROWS, d=d, wrong=wrong, draws=draws)
    return x @ (0.1 * np.eye(d) + 0.9 / d), y, model


def told(name, rows, **options):
    """The value and the details of a metric in linear time."""
    (result,) = evaluate(InMemory(rows), [METRICS[name](**FAST, **options)], run=PLAIN).results
    return result.value, result.details, result.warnings


@pytest.mark.parametrize("d", [1, 4, 8])
@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_jmmd_in_linear_time_misses_little_of_the_naive_sum(d, wrong, estimator):
    """At most 1 % of it, or a tenth of its standard deviation under the null, as promised; and no more than it says."""
    data = case(d, wrong)
    found, details, warnings = told("jmmd", sampled_rows(*data), estimator=estimator)
    exact = naive.jmmd(*scaled(data, "data"), estimator=estimator)
    pairs = details["pairs"]
    assert pairs["form"] == "low rank"
    assert pairs["accurate"] is True
    assert not any("exact-rows" in warning for warning in warnings)
    assert abs(found - exact) <= max(0.01 * abs(exact), 0.1 * pairs["null_std"])
    assert abs(found - exact) <= 1.01 * pairs["error"] + 1e-12  # it looks at all of these rows


@pytest.mark.parametrize("estimator", ESTIMATORS[:2])
def test_the_standard_deviation_under_the_null_is_that_of_swapped_targets(estimator):
    """With one draw a row, a perfect model's targets and draws may change places: 400 times here, 16 signs there."""
    data = case(2, 0.0)
    _, details, _ = told("jmmd", sampled_rows(*data), estimator=estimator)
    x, y, model = scaled(data, "data")
    a, b = (each[:, 0] for each in (y, model))
    k_y = naive.target_kernel(0.5)
    products = naive.kernel_on(x)(x, x) * (k_y(a, a) - k_y(a, b) - k_y(b, a) + k_y(b, b)) / ROWS**2
    signs = np.random.default_rng(2).choice([-1.0, 1.0], (400, ROWS))
    values = np.sum(signs * (signs @ products), axis=1)  # a row's pair with itself has no sign
    assert_allclose(details["pairs"]["null_std"], values.std(), rtol=0.5)


@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("wrong", [0.0, 0.4])
def test_cmmd_in_linear_time_misses_little_of_the_naive_one(d, wrong):
    data = case(d, wrong)
    found, details, _ = told("cmmd", sampled_rows(*data))
    exact = naive.cmmd(*scaled(data, "data"))
    assert details["solver"]["name"] == "nystroem"
    assert_allclose(found, exact, rtol=0.01)
    assert_allclose(abs(found / exact - 1), details["solver"]["missed"], rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("name", ["jmmd", "cmmd"])
def test_as_many_centres_as_rows_are_exact(name):
    """Up to 256 rows, all of them are centres."""
    data = sampled_case(2, n=150, d=2, draws=2, targets=2)
    rows = sampled_rows(*data)
    for options in [{"estimator": estimator} for estimator in ESTIMATORS] if name == "jmmd" else [{}]:
        assert_allclose(value(name, rows, **FAST, **options), value(name, rows, **options), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "options"), [*[("jmmd", {"estimator": each}) for each in ESTIMATORS], ("cmmd", {})])
def test_what_is_told_of_linear_time_is_json(name, options):
    """Accurate or not."""
    for d in (1, 8):
        rows = sampled_rows(*sampled_case(3, n=300, d=d, draws=1))
        report = evaluate(InMemory(rows), [METRICS[name](**FAST, **options)], run=PLAIN)
        assert json.loads(to_json(report))["results"][0]["value"] == report.results[0].value
