"""The randomized PIT: uniform for right models whose distributions jump, or are given by quantiles."""

import numpy as np
import pytest
from scipy import stats

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.predictions import Predictions
from calcheck.statistics.pit import pit, randomized_pit

N = 4_000
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def right(family, rng):
    """Return targets and distributions of a right model."""
    mean = rng.normal(size=N)
    match family:
        case "gaussian":
            return Predictions(y=mean + rng.normal(size=N), predictive=Gaussian(mean, np.ones(N)))
        case "poisson":
            return Predictions(y=rng.poisson(np.exp(mean)).astype(float), predictive=Poisson(np.exp(mean)))
        case "ensemble":
            draws = rng.integers(0, 5, (N, 8)).astype(float)
            return Predictions(y=draws[:, 0], predictive=Samples(draws[:, 1:]))
        case "quantiles":  # of exponential distributions, which are far from linear between the levels
            scale = np.exp(mean)
            values = -np.log1p(-LEVELS) * scale[:, None]
            return Predictions(y=rng.exponential(scale), predictive=Quantiles(LEVELS, values))


@pytest.mark.parametrize("family", ["gaussian", "poisson", "ensemble", "quantiles"])
def test_it_is_uniform_for_right_models(family):
    rng = np.random.default_rng(3)
    u = randomized_pit(right(family, rng), rng.random(N))
    assert stats.kstest(u, "uniform").pvalue > 0.01


def test_it_is_the_pit_of_continuous_distributions():
    rows = right("gaussian", np.random.default_rng(0))
    np.testing.assert_array_equal(randomized_pit(rows, np.full(N, 0.3)), pit(rows)[1])


def test_targets_equal_to_a_quantile_take_half_of_the_gaps_beside_it():
    """Levels 0.05, 0.25, 0.5, 0.75, 0.95; the gaps beside 0.5 are from 0.25 to 0.75, those beside 0.05 from 0."""
    values = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], (6, 1))
    y = np.array([3.0, 1.0, 5.0, 0.0, 2.5, 6.0])
    rows = Predictions(y=y, predictive=Quantiles(LEVELS, values))
    low, high = (randomized_pit(rows, np.full(6, end)) for end in (0.0, 1.0))
    np.testing.assert_allclose(low, [0.375, 0.025, 0.85, 0.0, 0.25, 0.95])
    np.testing.assert_allclose(high, [0.625, 0.15, 0.975, 0.05, 0.5, 1.0])
