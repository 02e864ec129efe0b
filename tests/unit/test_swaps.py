"""Two models on the same inputs, their predictions swapped row by row: cce by one factor for all swaps."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.execution.run import Run
from calcheck.inference.paired import Pair, paired
from calcheck.metrics.cce import Cce
from calcheck.predictions import Predictions
from calcheck.predictive import Gaussian, Samples
from tests.computing import rows_of


def models(n, *, spread=1.0, seed=0):
    """Return two models' predictions of the same targets: one right, one whose means and spread are off."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    mean, std = np.sin(x[:, 0]), np.exp(0.3 * x[:, 1])
    first = Predictions(y=mean + std * rng.normal(size=n), predictive=Gaussian(mean, std), x=x, embedded=False)
    return first, replace(first, predictive=Gaussian(mean + 0.1 * rng.normal(size=n), spread * std))


def drawn(predictions, seed):
    return replace(predictions, predictive=Samples(predictions.predictive.sample(np.random.default_rng(seed), 4)))


def both(first, second):
    return Predictions(
        y=np.concatenate([first.y, second.y]),
        predictive=first.predictive.join([second.predictive]),
        x=np.concatenate([first.x, second.x]),
        embedded=False,
    )


def value(cce, predictions):
    return next(iter(rows_of(cce, predictions).columns.values())).mean()


@pytest.mark.parametrize("samples", [False, True], ids=["parameters", "draws"])
@pytest.mark.parametrize(
    "options", [{}, {"lambda_model": 0.03}, {"estimator": "unbiased"}, {"solver": "cg"}, {"gamma_y": 0.2}], ids=str
)
def test_swaps_give_what_swapped_predictions_give(samples, options):
    first, second = models(60, spread=1.3)
    if samples:
        first, second = drawn(first, 1), drawn(second, 2)
    cce, pair = Cce(**options), both(first, second)
    swaps = np.random.default_rng(3).random((4, 60)) < 0.5
    own, *found = cce.swapped(pair, [swaps[:3], swaps[3:]], Run())
    assert_allclose(own, value(cce, second) - value(cce, first), rtol=1e-4)
    for rows, difference in zip(swaps, found, strict=True):
        here = np.where(rows, np.arange(60) + 60, np.arange(60))
        there = np.where(rows, np.arange(60), np.arange(60) + 60)
        assert_allclose(difference, value(cce, pair.take(there)) - value(cce, pair.take(here)), rtol=1e-4, atol=1e-6)


def compared(first, second, *, swaps=99, seed=0):
    cce = Cce()
    pair = Pair(cce, (first, second), (rows_of(cce, first), rows_of(cce, second)))
    (found,) = paired([pair], Run(seed=seed), swaps=swaps)
    return found


def test_a_worse_model_is_told_from_a_right_one():
    assert compared(*models(300, spread=2.5)).p_value == 0.01


def test_models_as_good_as_each_other_differ_as_often_as_the_level_says():
    """Both add independent noise to the right means; 60 pairs, p <= 0.1 in at most 14 (a binomial chance of 1e-3)."""
    below = 0
    for seed in range(60):
        first, second = models(40, seed=seed)
        noise = np.random.default_rng([seed, 1]).normal(size=40)
        first = replace(first, predictive=Gaussian(first.predictive.loc + 0.1 * noise, first.predictive.scale))
        below += compared(first, second, swaps=19, seed=seed).p_value <= 0.1
    assert below <= 14


def test_models_conditioned_on_other_inputs_are_not_swapped():
    first, second = models(40)
    found = compared(first, replace(second, x=second.x + 1))
    assert found.p_value is None
    assert any("other inputs" in told for told in found.warnings)
