"""Nothing is gained by a correction where nothing is wrong, by simulation."""

import numpy as np
import pytest
from scipy.stats import norm

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.predictions import Predictions
from calcheck.recalibration.cross_validation import cross_validate, score_rows
from calcheck.recalibration.methods import FitOptions, Method
from tests.benchmarks.recalibration import CORRECTED, LEVEL, RIGHT, chosen, covered, p_values
from tests.helpers.simulations import band, sets, slow

FEW = sets(48)  # data sets with all methods
MANY = sets(2000, 8)  # data sets with one fit
KEPT = 0.8  # Minimum share of right data sets that are left as they are


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


@pytest.mark.parametrize("family", [slow(each) if each == "counts" else each for each in RIGHT])
def test_methods_seldom_seem_to_help_where_nothing_is_wrong(family):
    found = [p_values(RIGHT[family], 60, seed) for seed in range(FEW)]
    for method in found[0]:
        assert sum(each[method][0] <= LEVEL for each in found) <= band(FEW, LEVEL)[1], method


@pytest.mark.slow
def test_what_is_right_is_left_as_it_is():
    found = [chosen("right", 300, ("std",), seed) for seed in range(FEW)]
    assert sum(names["auto"] == "none" for *_, names in found) >= band(FEW, KEPT)[0]
    changes = [means[names["auto"]] / means["none"] - 1 for _, means, names in found]
    assert np.mean(changes) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "by"), [("std x 1.4", ("std",)), ("mean + 0.3 std", ("std",)), ("std by input", ("std", "x"))]
)
def test_most_of_the_excess_of_a_fault_is_removed(fault, by):
    found = [chosen(fault, 300, by, seed) for seed in range(sets(16))]
    before = np.sum([means["none"] - perfect for perfect, means, _ in found])
    after = np.sum([means[names["auto"]] - perfect for perfect, means, names in found])
    assert after < before / 2


@pytest.mark.parametrize("correction", CORRECTED)
@pytest.mark.parametrize("k", [2, 8])
def test_new_targets_are_covered_at_the_ranks_of_the_fitted_rows(correction, k):
    """At k / (n + 1) of n = 9 rows, whatever is wrong (Romano, Patterson, Candes 2019; Chernozhukov et al. 2021)."""
    low, high = band(MANY, k / 10)
    assert low <= covered(correction, k, 9, MANY) <= high


def compared(predictive, y, method):
    """Return the scores with no change and with a method."""
    rows = Predictions(y=y, predictive=predictive)
    _, found = cross_validate(rows, [Method("none"), Method(method)], FitOptions(levels=(0.5, 0.9)))
    return [each.mean for each in found]


def test_a_correction_is_compared_with_no_change_in_the_form_that_it_gives():
    """Right forecasts: intervals are compared with intervals, quantiles of draws with quantiles, and all levels."""
    rng = np.random.default_rng(3)
    mean, y = rng.normal(size=(2, 2000))
    intervals = compared(Gaussian(np.zeros(2000), np.ones(2000)), y, "conformal")
    assert intervals[1] == pytest.approx(intervals[0], rel=0.02)
    draws = compared(Samples(rng.normal(size=(2000, 5))), y, "pit")
    assert 1 < draws[1] / draws[0] < 1.01
    levels = np.array([0.01, 0.1, 0.5, 0.9, 0.99])
    narrow = Quantiles(levels, mean[:, None] + 0.8 * norm.ppf(levels))
    before, after = compared(narrow, mean + y, "pit")  # loses the outer levels
    assert 0.97 < after / before < 1
