"""Weights of tested rows with which they stand for new ones."""

import numpy as np
import pytest

from calcheck.conclusion.answer import rows_needed
from calcheck.distributions import Gaussian, Samples
from calcheck.evaluation import evaluate
from calcheck.metrics import METRICS
from calcheck.new_inputs.population import Factor, Order
from calcheck.new_inputs.weights import DensityRatio, Reweighting, choose_labels, local_regression, with_regularizer
from calcheck.predictions import InMemory, Predictions


@pytest.fixture
def found():
    rng = np.random.default_rng(0)
    tested, new = rng.normal(size=(40, 2)), rng.normal(loc=[1, 0], size=(30, 2))
    ratio = DensityRatio.from_inputs(tested, new, rng)
    outputs = np.sin(tested[:, :1]) + rng.normal(size=(40, 1))
    return with_regularizer(local_regression(tested), outputs, ratio, new), outputs[:, 0]


def test_the_density_ratio_is_the_solution_of_kanamori():
    """With k = 1, 0 at two tested rows and 1/2 at the only new one, H = 1/2, h = 1/2: alpha = 1/2 / (1/2 + 1/2)."""
    ratio = DensityRatio(np.array([[1.0], [0.0]]), np.array([[0.5]]), 0.5)
    assert ratio.weights(np.ones(2), np.ones(1)).tolist() == pytest.approx([0.5, 0.0])


def test_the_density_ratio_of_two_normal_samples_is_near_the_true_one():
    rng = np.random.default_rng(0)
    tested, new = rng.normal(size=(2000, 1)), rng.normal(loc=0.5, scale=0.8, size=(2000, 1))
    found = DensityRatio.from_inputs(tested, new, rng)
    ratio = found.weights(np.ones(2000), np.ones(2000))
    np.testing.assert_allclose(found.at(tested), ratio)
    x = tested[:, 0]
    true = np.exp(-((x - 0.5) ** 2) / 1.28 + x**2 / 2) / 0.8
    assert np.mean((ratio - true) ** 2) < 0.02 < np.var(true) / 5


def test_weights_are_those_of_the_doubly_robust_estimate(found):
    """Its definition, with a regression that is fitted again without each row."""
    reweighting, outputs = found
    basis = np.column_stack([np.full(40, 40**-0.5), reweighting.tested])
    penalty = np.diag(np.append(0.0, reweighting.lambda_ / reweighting.eigenvalues))

    def fitted(rows):
        return np.linalg.solve(basis[rows].T @ basis[rows] + penalty, basis[rows].T @ outputs[rows])

    left_out = [basis[row] @ fitted(np.delete(np.arange(40), row)) for row in range(40)]
    at_new = np.column_stack([np.full(30, 40**-0.5), reweighting.new]) @ fitted(np.arange(40))
    weights = reweighting.weights()
    expected = at_new.mean() + weights.ratio @ (outputs - left_out) / weights.ratio.sum()
    np.testing.assert_allclose(weights.robust @ outputs, expected)
    np.testing.assert_allclose(weights.robust.sum(), 1)


def test_a_row_that_occurs_twice_weighs_as_two_equal_ones(found):
    reweighting, _ = found
    counts = np.ones(40)
    counts[3] = 2
    twice = np.append(np.arange(40), 3)
    ratio = DensityRatio(reweighting.ratio.tested[twice], reweighting.ratio.new, reweighting.ratio.ridge)
    np.testing.assert_allclose(
        reweighting.ratio.weights(counts, np.ones(30)), ratio.weights(np.ones(41), np.ones(30))[:40]
    )


def test_weights_are_equal_if_the_ratio_and_the_regression_are_constant(found):
    reweighting, _ = found
    constant = DensityRatio(np.ones((40, 1)), np.ones((30, 1)), 0.0)
    flat = Reweighting(constant, reweighting.tested, reweighting.new, reweighting.eigenvalues, 1e12)
    np.testing.assert_allclose(flat.weights().robust, 1 / 40)
    assert flat.weights().effective_rows == pytest.approx(40)


def test_a_weighted_quantile_is_where_shares_reach_the_level_for_the_first_time():
    """Shares are .5, .3, 1.2, 1: the second and the last weight are negative."""
    order = Order.from_values(np.array([3.0, 1.0, 2.0, 4.0]))
    weights = np.array([0.9, 0.5, -0.2, -0.2])
    assert [order.quantile(weights, level) for level in (0.4, 0.5, 0.51, 1.0)] == [1.0, 1.0, 3.0, 3.0]


@pytest.mark.parametrize(("draws", "is_open"), [(2, True), (4, False), (None, False)])
def test_few_draws_have_no_upper_limit_above_half_of_their_number(draws, is_open):
    """Factors up to about m / 2 are seen with m draws: 1.3 is not with 2, and is with 4."""
    rng = np.random.default_rng(1)
    y = 1.3 * rng.normal(size=600)
    predictive = Gaussian(np.zeros(600), np.ones(600)) if draws is None else Samples(rng.normal(size=(600, draws)))
    factor = Factor.from_rows(Predictions(y=y, predictive=predictive), 0.5)
    found = factor.of_equal_rows(0.05)
    assert found.low < 1.3 < found.high
    assert (found.high == np.inf, found.is_open) == (is_open, is_open)
    assert (rows_needed(found._replace(value=1.0), 600, 0.2) is None) == is_open


@pytest.mark.parametrize("draws", [False, True])
def test_with_equal_weights_the_factor_and_its_limits_are_those_of_the_file(draws):
    rng = np.random.default_rng(0)
    predictive = Samples(rng.normal(size=(200, 11))) if draws else Gaussian(np.zeros(200), np.ones(200))
    rows = Predictions(y=1.2 * rng.normal(size=200), predictive=predictive)
    result = evaluate(InMemory(rows), [METRICS["width-factor"](level=0.8)]).results[0]
    own = Factor.from_rows(rows, 0.8)
    np.testing.assert_allclose(own.value(np.full(200, 1 / 200)), result.value)
    if not draws:  # whose limits count that draws that play the target vary as well
        found = own.of_equal_rows(0.05)
        np.testing.assert_allclose([found.low, found.high], [result.low, result.high])


def test_rows_to_label_are_those_of_a_large_ratio_but_not_next_to_each_other(found):
    ratio = found[0].ratio
    at_new = ratio.with_new_rows().weights(np.append(np.ones(40), np.zeros(30)), np.ones(30))[40:]
    chosen = choose_labels(ratio, 6, np.zeros(len(ratio.new), dtype=bool))
    assert chosen[0] == at_new.argmax()
    assert set(chosen) != set(np.argsort(-at_new)[:6])
    assert at_new[chosen].mean() > np.median(at_new)
