"""Nothing is gained by a correction where nothing is wrong, by simulation."""

import numpy as np
import pytest

from calcheck.distributions import Samples
from calcheck.predictions import Predictions
from calcheck.recalibration.scores import score_rows


@pytest.mark.parametrize("draws", [3, 11])
def test_the_score_of_perfect_draws_does_not_favor_wider_or_narrower_ones(draws):
    """By hand: for exchangeable draws and targets of any distribution, the derivative by the factor is 0 at 1."""
    rng = np.random.default_rng(5)
    n, step = 20_000, 0.05
    predictive, y = Samples(rng.exponential(size=(n, draws))), rng.exponential(size=n)

    def scaled(factor):
        return Predictions(y=y, predictive=predictive.rescale(np.zeros(n), np.full(n, factor)))

    slope = (score_rows(scaled(1 + step), "crps") - score_rows(scaled(1 - step), "crps")) / (2 * step)
    assert abs(slope.mean()) < 4 * slope.std() / np.sqrt(n)
    fair = (scaled(1 + step).predictive.fair_crps(y) - scaled(1 - step).predictive.fair_crps(y)) / (2 * step)
    assert fair.mean() < -10 * fair.std() / np.sqrt(n)
