"""Influences of rows on the difference of squared distances of two models on the same inputs."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Samples
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.metrics.cce import Cce
from calcheck.predictions import Predictions
from tests.helpers.shorthand import compare_models, rows_of, texts
from tests.helpers.simulations import band, sets


def models(n, *, spread=1.0, seed=0):
    """Return two models' predictions of the same targets: one right, and one with wrong means and spread."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    mean, std = np.sin(x[:, 0]), np.exp(0.3 * x[:, 1])
    first = Predictions(y=mean + std * rng.normal(size=n), predictive=Gaussian(mean, std), x=x, has_embedding=False)
    return first, replace(first, predictive=Gaussian(mean + 0.1 * rng.normal(size=n), spread * std))


def with_samples(predictions, seed):
    return replace(predictions, predictive=Samples(predictions.predictive.sample(np.random.default_rng(seed), 4)))


def both(first, second):
    return Predictions(
        y=np.concatenate([first.y, second.y]),
        predictive=first.predictive.join([second.predictive]),
        x=np.concatenate([first.x, second.x]),
        has_embedding=False,
    )


def squares(cce, predictions):
    values = next(iter(rows_of(cce, predictions).columns.values()))
    return (values if cce.estimator == "unbiased" else values**2).mean()


OPTIONS = [{}, {"lambda_model": 0.03}, {"estimator": "unbiased"}, {"solver": "cg"}, {"gamma_y": 0.2}]


@pytest.mark.parametrize("samples", [False, True], ids=["parameters", "draws"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_contributions_add_up_to_twice_the_difference_of_mean_squares(samples, options):
    first, second = models(60, spread=1.3)
    if samples:
        first, second = with_samples(first, 1), with_samples(second, 2)
    cce = Cce(**options)
    found = cce.influences(both(first, second), Run())
    assert_allclose(found.sum() / 2, squares(cce, second) - squares(cce, first), rtol=1e-4)


@pytest.mark.parametrize("options", [{"gamma_y": 0.2}, {"gamma_y": 0.2, "lambda_model": 0.03}], ids=str)
def test_contributions_cover_both_roles_of_each_row(options):
    """Exchanging the models of a row changes the sign of its first part; another target changes its second part.

    Compared with values of the metric, with a fixed kernel on targets.
    """
    cce = Cce(**options)
    first, second = models(40, spread=1.3)

    def at(y, row=None):
        order = np.arange(40)
        if row is not None:
            order[row] += 40
        pool = both(replace(first, y=y), replace(second, y=y))
        one, other = (pool.take(each) for each in (order, (order + 40) % 80))
        return squares(cce, other) - squares(cce, one)

    def contributions(y):
        return cce.influences(both(replace(first, y=y), replace(second, y=y)), Run())

    found = contributions(first.y)
    for row in (0, 17):
        y = first.y.copy()
        y[row] += 0.7
        parts = [(at(each) - at(each, row)) / 2 for each in (first.y, y)]
        change = (contributions(y)[row] - parts[1]) - (found[row] - parts[0])
        assert_allclose(change, at(y) - at(first.y), rtol=0, atol=1e-4 * np.abs(found).sum())


FEW = Run(resamples=999)


@pytest.mark.parametrize("name", ["cce", "jmmd", "cmmd"])
def test_a_worse_model_differs_significantly_from_a_right_one(name):
    assert compare_models(METRICS[name](), *models(300, spread=2.5), run=FEW).p_value <= 0.01


def mirrored(n, seed):
    """N(+0.3, 1) against N(-0.3, 1) under N(0, 1): equally wrong by symmetry, and not exchangeable."""
    rng = np.random.default_rng([seed, n])
    x = rng.normal(size=(n, 1))
    first = Predictions(
        y=rng.normal(size=n), predictive=Gaussian(np.full(n, 0.3), np.ones(n)), x=x, has_embedding=False
    )
    return first, replace(first, predictive=Gaussian(np.full(n, -0.3), np.ones(n)))


def noisy(n, seed):
    """Both add independent noise to the right means."""
    first, second = models(n, seed=seed)
    noise = np.random.default_rng([seed, 1]).normal(size=n)
    return replace(first, predictive=Gaussian(first.predictive.loc + 0.1 * noise, first.predictive.scale)), second


@pytest.mark.parametrize("name", ["cce", "jmmd", "cmmd", "ece", "pit"])
@pytest.mark.parametrize("design", [mirrored, noisy])
def test_equally_good_models_differ_no_more_often_than_the_level(name, design):
    """p <= 0.1 in at most as many pairs as the binomial quantile at 1 - 1e-3 allows, which is 14 of 60."""
    count = sets(60)
    below = sum(
        compare_models(METRICS[name](), *design(80, seed), run=Run(seed=seed, resamples=399)).p_value <= 0.1
        for seed in range(count)
    )
    assert below <= band(count, 0.1, 2e-3)[1]


def test_models_with_different_inputs_have_no_p_value():
    first, second = models(40)
    found = compare_models(METRICS["cce"](), first, replace(second, x=second.x + 1), run=FEW)
    assert found.p_value is None
    assert any("different inputs" in message for message in texts(found.warnings))


def test_a_metric_without_a_difference_test_has_no_p_value():
    found = compare_models(METRICS["fid"](), *models(40), run=FEW)
    assert found.p_value is None
    assert any("no test of the difference" in message for message in texts(found.warnings))
