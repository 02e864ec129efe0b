"""Linear-time approximations agree with all pairs: to the promised accuracy, and within their estimated error."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions.continuous import Gaussian
from calcheck.embeddings.laplace import InputDirections
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.linalg import gram
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions, concat
from calcheck.render.data import render_json
from tests.helpers import naive_joint as naive
from tests.helpers.joint_cases import PLAIN, sampled_case, sampled_rows, scaled, value
from tests.helpers.shorthand import texts
from tests.helpers.simulations import pairs, slow

ROWS = 1200
FAST = {"max_exact_rows": 1}
ESTIMATORS = ["unbiased", "v", "paper"]


def case(d, wrong, n=ROWS, *, correlated=True):
    """Return inputs with correlated columns, as in real data, or without; one draw per row."""
    x, y, model = sampled_case(1, n=n, d=d, wrong=wrong, draws=1)
    return x @ (0.1 * np.eye(d) + 0.9 / d) if correlated else x, y, model


def null_std(x, y, model):
    """Return the null standard deviation of the unbiased estimate: exchanging targets and draws changes signs of delta.

    The variance of the mean of s_i s_j q_ij over pairs with random signs s is 2 mean q^2 / n^2.
    """
    k_y, (a, b) = naive.target_kernel(0.5), (each[:, 0] for each in (y, model))
    products = naive.kernel_on(x)(x, x) * (k_y(a, a) - k_y(a, b) - k_y(b, a) + k_y(b, b))
    return np.sqrt(2 * np.mean((products * (1 - np.eye(len(x)))) ** 2)) / len(x)


def linear_time(name, rows, **options):
    """Return the value, the details and the warnings of a metric in linear time."""
    (result,) = evaluate(InMemory(rows), [METRICS[name](**FAST, **options)], run=PLAIN).results
    return result.value, result.details, texts(result.warnings)


@pytest.mark.parametrize(("d", "correlated"), [(1, True), slow((4, True)), slow((8, True)), (8, False)])
@pytest.mark.parametrize(("wrong", "statistic"), pairs([0.0, 0.4], ESTIMATORS, 2))
def test_jmmd_in_linear_time_is_close_to_the_naive_sum(d, correlated, wrong, statistic):
    """Within 1 %, or a tenth of the standard deviation under the null hypothesis; and within the estimated error."""
    data = case(d, wrong, correlated=correlated)
    found, details, warnings = linear_time("jmmd", sampled_rows(*data), statistic=statistic)
    seen = scaled(data, "data")
    exact = naive.jmmd(*seen, statistic=statistic)
    pairs = details["pairs"]
    assert pairs["method"] == "low rank"
    assert pairs["accurate"] is True
    assert pairs["rank"] <= (512 if correlated else 2048)
    assert not any("exact-rows" in warning for warning in warnings)
    assert abs(found - exact) <= max(0.01 * abs(exact), 0.1 * pairs["null_std"])
    assert abs(found - exact) <= 1.01 * pairs["error"] + 1e-12  # estimated on all of these rows
    if statistic != "paper":
        assert_allclose(pairs["null_std"], null_std(*seen), rtol=0.6)  # estimated from 16 sums


def test_the_standard_deviation_under_the_null_falls_with_the_number_of_rows(monkeypatch):
    """It is estimated on half of 4,000 rows; here from the pairs of 1,000."""
    monkeypatch.setattr(gram, "VALIDATION_ROWS", 2_000)
    x, y, model = scaled(case(4, 0.0, n=4_000, correlated=False), "data")
    _, details, _ = linear_time("jmmd", sampled_rows(x, y, model), standardize="none")
    expected = null_std(x[:1000], y[:1000], model[:1000]) * 1000 / 4_000
    assert details["pairs"]["validation_rows"] == 2_000
    assert_allclose(details["pairs"]["null_std"], expected, rtol=0.3)


@pytest.mark.parametrize(("d", "correlated"), [(1, True), (4, True), (8, False)])
def test_cmmd_in_linear_time_is_close_to_the_naive_value(d, correlated):
    data = case(d, 0.2, n=600, correlated=correlated)
    found, details, _ = linear_time("cmmd", sampled_rows(*data))
    exact = naive.cmmd(*scaled(data, "data"))
    assert details["solver"]["name"] == "nystroem"
    assert_allclose(found, exact, rtol=0.01)
    assert_allclose(abs(found / exact - 1), details["solver"]["relative_error"], rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("name", ["jmmd", "cmmd"])
def test_as_many_landmarks_as_rows_are_exact(name):
    """Up to 256 rows, all of them are landmarks."""
    data = sampled_case(2, n=150, d=2, draws=2, targets=2)
    rows = sampled_rows(*data)
    for options in [{"statistic": statistic} for statistic in ESTIMATORS] if name == "jmmd" else [{}]:
        assert_allclose(value(name, rows, **FAST, **options), value(name, rows, **options), rtol=1e-6, atol=1e-9)


every_variant = pytest.mark.parametrize(
    ("name", "options"), [*[("jmmd", {"statistic": each}) for each in ESTIMATORS], ("cmmd", {})]
)


@every_variant
def test_influences_in_linear_time_equal_those_of_all_pairs(name, options):
    x, y, first = sampled_case(4, n=150, d=2)
    rows = concat([sampled_rows(x, y, each) for each in (first, first[::-1])])
    exact, fast = (METRICS[name](**options, max_exact_rows=limit).influences(rows, PLAIN) for limit in (150, 1))
    assert_allclose(fast, exact, rtol=1e-5, atol=1e-8)


@every_variant
def test_details_of_linear_time_can_be_written_as_json(name, options):
    """Of accurate approximations and of others."""
    for d in (1, 8):
        rows = sampled_rows(*sampled_case(3, n=300, d=d, draws=1))
        report = evaluate(InMemory(rows), [METRICS[name](**FAST, **options)], run=PLAIN)
        assert json.loads(render_json(report))["results"][0]["value"] == report.results[0].value


@pytest.mark.parametrize("d", [1, 2])
def test_jmmd_and_cmmd_share_the_sums_of_replicates_and_have_the_results_of_each_alone(monkeypatch, d):
    rng = np.random.default_rng(5)
    x, mean = rng.normal(size=(600, d)), rng.normal(size=600)
    rows = Predictions(y=mean + rng.normal(size=600), predictive=Gaussian(mean, np.ones(600)), x=x)
    calls, sums = [], InputDirections.sums
    monkeypatch.setattr(InputDirections, "sums", lambda *each: calls.append(1) or sums(*each))
    metrics = [METRICS[name]() for name in ("jmmd", "cmmd")]

    def found(*chosen):
        results = evaluate(InMemory(rows.without()), chosen, run=Run(replicates=19)).results
        return [(each.value, each.reference, each.reference_high, each.p_value) for each in results]

    alone = [found(each)[0] for each in metrics]
    before = len(calls)
    assert found(*metrics) == alone
    assert 2 * (len(calls) - before) == before


def test_sums_of_another_kernel_on_targets_and_of_further_replicates_are_not_shared():
    rng = np.random.default_rng(6)
    x, mean = rng.normal(size=(200, 1)), rng.normal(size=200)
    rows = Predictions(y=mean + rng.normal(size=200), predictive=Gaussian(mean, np.ones(200)), x=x)

    def nulls(*parts):
        own, run = rows.without(), Run(seed=1)
        chosen = [(METRICS["jmmd"](gamma_y=gamma), numbers) for numbers in parts for gamma in (0.1, 2.0)]
        found = [
            metric.null_distribution(metric.fit(InMemory(own), run), NullSimulator(own, run, numbers=numbers), run)
            for metric, numbers in chosen
        ]
        return [np.concatenate([each.values for each in found[kind::2]]) for kind in (0, 1)]

    (narrow, wide), whole = nulls(range(5), range(5, 9)), nulls(range(9))
    assert_allclose([narrow, wide], whole, atol=1e-8)  # single precision
    assert (narrow != wide).all()
