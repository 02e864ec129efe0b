"""Fits of recalibration on ten rows, with values by hand and by independent implementations (METHODS 1.4)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.noise_clip_rounding import Observation
from calcheck.distributions.quantiles import Intervals
from calcheck.predictions import Predictions
from calcheck.recalibration.corrections import Scale, gamma_loss, gamma_regression
from calcheck.recalibration.cross_validation import score_rows
from calcheck.recalibration.features import Feature
from calcheck.recalibration.methods import (
    FitOptions,
    fit_bin_scaling,
    fit_conformal,
    fit_local,
    fit_observed,
    fit_pit,
    fit_scale,
    fit_shift_scale,
)

MEAN = np.arange(10.0)
STD = np.repeat([1.0, 2.0], 5)
Y = np.array([0.5, 2.5, 1.2, 3.1, 1.8, 9, 5, 7.6, 3, 12])
OPTIONS = FitOptions()


@pytest.fixture
def rows():
    return Predictions(y=Y, predictive=Gaussian(MEAN, STD))


def crps(rows):
    return rows.predictive.crps(rows.y).mean()


def nll(rows):
    return -rows.predictive.log_prob(rows.y).mean()


def test_scale_is_the_root_of_the_mean_squared_z_score(rows):
    step = fit_scale(rows, OPTIONS)
    assert step.factor == pytest.approx(1.4432601983, abs=5e-11)
    assert nll(rows) == pytest.approx(2.307012, abs=5e-7)
    assert nll(step.apply(rows)) == pytest.approx(2.132417, abs=5e-7)
    assert crps(rows) == pytest.approx(1.366086, abs=5e-7)
    assert crps(step.apply(rows)) == pytest.approx(1.304198, abs=5e-7)


def test_the_scale_of_the_smallest_crps_is_larger_than_that_of_the_largest_likelihood(rows):
    assert crps(Scale(factor=1.621015).apply(rows)) == pytest.approx(1.299396, abs=5e-7)


def test_shift_scale_is_the_mean_and_the_population_deviation_of_z_scores(rows):
    step = fit_shift_scale(rows, OPTIONS)
    assert step.shift == pytest.approx(-0.01, abs=1e-12)
    assert step.factor == pytest.approx(1.443226, abs=5e-7)
    assert nll(step.apply(rows)) == pytest.approx(2.132393, abs=5e-7)


def test_pit_maps_quantiles_through_sorted_pit_values(rows):
    step = fit_pit(rows, OPTIONS)
    corrected = step.apply(rows).predictive
    at = (0.05, 0.1, 0.5, 0.9, 0.95)
    standard = [(corrected.quantile(level)[0] - MEAN[0]) / STD[0] for level in at]
    assert standard == pytest.approx([-2.704991, -2.458340, 0.199003, 1.924342, 2.241014], abs=5e-7)
    assert step.recalibrator()(0.5) == pytest.approx(0.438891, abs=5e-7)


def test_normalized_split_conformal_intervals_use_the_ninth_smallest_score(rows):
    step = fit_conformal(rows, FitOptions(levels=(0.8,)))
    assert step.scores == pytest.approx([2.2])
    corrected = step.apply(rows).predictive
    assert corrected.upper[:, 0] == pytest.approx(MEAN + 2.2 * STD)


@pytest.mark.parametrize(("relative", "expected"), [(False, 1.436897), (True, None)])
def test_conformalized_quantile_regression_moves_both_limits_of_an_interval(relative, expected):
    gaussian = Gaussian(MEAN, STD)
    limits = gaussian.quantile(0.1)[:, None], gaussian.quantile(0.9)[:, None]
    rows = Predictions(y=Y, predictive=Intervals(np.array([0.8]), *limits))
    step = fit_conformal(rows, FitOptions(relative=relative))
    width = 2 * 1.2815515655446004  # of the 80 % interval of a standard normal distribution
    assert step.scores == pytest.approx([0.918448 / width if expected is None else expected], abs=5e-7)


def test_conformal_quantiles_are_moved_to_the_ranks_of_their_levels():
    values = np.tile([9.0, 10.0, 11.0], (9, 1))
    errors = np.array([-1.2, -0.7, -0.3, -0.1, 0, 0.2, 0.4, 0.9, 1.5])
    rows = Predictions(y=10 + errors, predictive=Quantiles(np.array([0.2, 0.5, 0.8]), values))
    corrected = fit_conformal(rows, OPTIONS).apply(rows).predictive
    assert corrected.values[0] == pytest.approx([9.3, 10.0, 10.9])  # crepes: 20 % lower, 50 %, 80 % upper


SIGMA = np.repeat([1.0, 2.0, 4.0], 4)
TARGETS = np.array([0.5, -1.5, 0.8, 2, -1, 3, 0.2, -4, 2, -1, 5, 0.5])


def test_the_local_power_law_is_a_gamma_regression():
    rows = Predictions(y=TARGETS, predictive=Gaussian(np.zeros(12), SIGMA))
    step = fit_local(rows, OPTIONS)
    assert step.coefficients == pytest.approx([0.808374138, -0.958530418], abs=5e-9)  # scikit-learn's GammaRegressor
    z2 = (TARGETS / SIGMA) ** 2
    log_variance = np.log((step.apply(rows).predictive.scale / SIGMA) ** 2)
    assert np.mean(np.log(SIGMA) + gamma_loss(log_variance, z2)) == pytest.approx(
        0.571986 + np.log(SIGMA).mean(), abs=5e-7
    )


@pytest.mark.parametrize(
    ("design", "loss"),
    [
        (np.ones((12, 1)), 0.629275),
        (np.column_stack([np.ones(12), *(np.equal(SIGMA, each) for each in (2, 4))]), 0.552846),
    ],
)
def test_likelihoods_of_one_factor_and_of_a_factor_per_group(design, loss):
    z2 = (TARGETS / SIGMA) ** 2
    assert gamma_loss(np.zeros(12), z2).mean() == pytest.approx(0.647526, abs=5e-7)
    coefficients = gamma_regression(design, z2, 0.0)
    assert gamma_loss(design @ coefficients, z2).mean() == pytest.approx(loss, abs=5e-7)


def test_groups_get_their_mean_squared_z_score_without_a_penalty():
    design = np.column_stack([np.equal(SIGMA, each) for each in (1, 2, 4)]).astype(float)
    squares = (TARGETS / SIGMA) ** 2
    found = np.exp(
        gamma_regression(np.column_stack([np.ones(12), design[:, 1:]]), squares, 0.0)
        @ np.vstack([np.ones(3), np.eye(3)[1:]])
    )
    assert found == pytest.approx([1.785, 1.6275, 0.47265625])


def test_groups_of_extremely_different_squares_get_their_means_without_a_warning():
    """The first Newton step is so long that the exponential function overflows."""
    squares = np.repeat([0.25, 1e12], 5)
    design = np.column_stack([np.ones(10), np.repeat([0.0, 1.0], 5)])
    assert gamma_regression(design, squares, 0.0) == pytest.approx([np.log(0.25), np.log(4e12)])


def test_draws_are_compared_with_a_perfect_ensemble_of_as_many_draws():
    draws = np.array([[-2.0, -1.0, 0.0, 1.0, 2.0], [0.0, 2.0, 4.0, 6.0, 8.0]])
    rows = Predictions(y=np.array([3.0, 0.0]), predictive=Samples(draws))
    z2 = np.array([9 / 2.5, 16 / 10])  # variances with denominator 4
    perfect = (1 + 1 / 5) * 4 / 2  # (1 + 1 / m) (m - 1) / (m - 3) for m = 5
    assert fit_scale(rows, OPTIONS).factor == pytest.approx(np.sqrt(z2.mean() / perfect))


def test_interval_scores_are_widths_and_twice_the_distance_beyond_the_limits_divided_by_alpha():
    limits = Intervals(np.array([0.8]), np.array([[0.0], [0.0]]), np.array([[2.0], [2.0]]))
    rows = Predictions(y=np.array([1.0, 2.5]), predictive=limits)
    assert score_rows(rows, "crps") == pytest.approx([2.0, 2.0 + 2 / 0.2 * 0.5])
    normal = Predictions(y=np.array([0.0, 3.0]), predictive=Gaussian(np.zeros(2), np.ones(2)))
    reach = 1.6448536269514722
    assert score_rows(normal, "interval") == pytest.approx([2 * reach, 2 * reach + 2 / 0.1 * (3 - reach)])


def test_bins_of_the_deviations_get_the_root_of_their_mean_squared_z_scores():
    rows = Predictions(
        y=np.array([1.0, 2.0, 3.0, 6.0]), predictive=Gaussian(np.zeros(4), np.array([1.0, 1.0, 3.0, 3.0]))
    )
    step = fit_bin_scaling(rows, FitOptions(bins=2))
    assert step.edges == (3.0,)
    assert step.factors == pytest.approx([np.sqrt((1 + 4) / 2), np.sqrt((1 + 4) / 2)])
    uneven = Predictions(y=np.array([1.0, 1.0, 6.0, 6.0]), predictive=rows.predictive)
    assert fit_bin_scaling(uneven, FitOptions(bins=2)).factors == pytest.approx([1.0, 2.0])


def test_splines_are_cubic_between_knots_and_linear_beyond_them():
    knots = (-1.0, 0.0, 0.5, 2.0)
    feature = Feature("x", "number", low=-100.0, high=100.0, knots=knots)

    def design(x):
        return feature.design(Predictions(y=np.zeros(len(x)), columns={"x": x}))

    for side in (np.array([-5.0, -3.0, -1.0]), np.array([2.0, 4.0, 6.0])):
        values = design(side)
        assert values[2] - values[1] == pytest.approx(values[1] - values[0])
    x = np.linspace(-1.5, 2.5, 4001)
    curvature = np.diff(design(x), 2, axis=0) / (x[1] - x[0]) ** 2
    assert np.abs(np.diff(curvature[:, 1:], axis=0)).max() < 0.02  # continuous second derivative
    assert np.abs(curvature[:, 1:]).max() > 0.5


def test_a_curve_of_an_input_is_recovered():
    rng = np.random.default_rng(3)
    x = rng.uniform(-2, 2, 20_000)
    rows = Predictions(
        y=np.exp(np.abs(x) / 2) * rng.normal(size=len(x)),
        predictive=Gaussian(np.zeros(len(x)), np.ones(len(x))),
        columns={"x": x},
    )
    found = fit_local(rows, FitOptions(by=("x",))).apply(rows).predictive.scale
    assert np.abs(np.log(found) - np.abs(x) / 2).max() < 0.2


@pytest.mark.parametrize("as_quantiles", [True, False])
@pytest.mark.parametrize(
    "how", [{"noise": 1.0}, {"high": 0.5}, {"step": 0.5}, {"noise": 1.0, "high": 0.5, "step": 0.5}], ids="-".join
)
def test_fits_to_observed_targets_find_the_scale_of_the_predictions_before(how, as_quantiles):
    """Quantiles and intervals of normal distributions that are 25 % too narrow, and 0.3 deviations too low.

    A shift of intervals is not fitted, so theirs have none. With a scale alone, noise of known size is not scaled.
    """
    rng, n, levels = np.random.default_rng(0), 20_000, np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
    mean = rng.normal(size=n)
    y = mean + rng.normal(size=n) + (0.3 if as_quantiles else 0.0)
    y = y + how.get("noise", 0.0) * rng.normal(size=n)
    y = np.minimum(y, how.get("high", np.inf))
    if step := how.get("step"):
        y = np.floor(y / step + 0.5) * step + 0.0
    values = mean[:, None] + 0.75 * stats.norm.ppf(levels)
    stated = Quantiles(levels, values) if as_quantiles else Intervals(np.array([0.9]), values[:, :1], values[:, -1:])
    observation = Observation(**{name: np.full(n, value) for name, value in how.items()})
    rows = Predictions(y=y, predictive=stated, observation=observation)
    found = fit_observed(rows, "shift-scale" if as_quantiles else "scale")
    assert found.factor == pytest.approx(1 / 0.75, rel=0.03)
    corrected = found.corrected(rows)
    if as_quantiles:
        assert np.mean(corrected.values[:, 3] - mean) == pytest.approx(0.3, abs=0.03)
        assert_allclose(np.diff(corrected.values[:, [0, -1]]), 0.75 * found.factor * 2 * 1.644854, rtol=1e-5)
    else:
        assert_allclose(corrected.upper - corrected.lower, 0.75 * found.factor * 2 * 1.644854, rtol=1e-5)
