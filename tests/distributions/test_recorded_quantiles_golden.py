"""Rounded targets beside quantiles and limits: the share of their cell below these lies between two numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from scipy import stats

from calcheck.distributions.noise_clip_rounding import Observation
from calcheck.distributions.quantiles import Intervals, Quantiles
from calcheck.distributions.row_random import RowRandom

NINE, WIDE = np.arange(1, 10) / 10, np.array([0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975])
SMOOTH = {
    "normal": stats.norm(),
    "logistic": stats.logistic(),
    "t5": stats.t(5),
    "gumbel": stats.gumbel_r(),
    "gamma, 3": stats.gamma(3),
}
ROUGH = {
    "uniform": stats.uniform(),
    "exponential": stats.expon(),
    "gamma, 0.5": stats.gamma(0.5),
    "beta, 0.5": stats.beta(0.5, 0.5),
    "log-normal": stats.lognorm(1),
    "laplace": stats.laplace(),
    "cauchy": stats.cauchy(),
}


def observe(stated, step, low=-np.inf, high=np.inf):
    """Return quantiles or intervals of targets that are clipped and rounded."""
    limits = (np.full(len(stated), limit) if np.isfinite(limit) else None for limit in (low, high))
    return Observation(None, *limits, np.full(len(stated), float(step))).distributions(stated)


def bounds(observed, y, levels):
    """Return the least and largest shares below quantiles, (n, k), and what follows."""
    found = np.array(observed.shares_below(y, levels))
    return found.reshape(-1, len(levels), len(y)).swapaxes(1, 2)


def middles(family, share, rows, seed):
    """Return locations of distributions, and a step that is a share of the distance between their outer sextiles."""
    step = share * float(np.diff(family.ppf([0.16, 0.84]))[0]) / 2
    return 3 * np.random.default_rng(seed).normal(size=rows) * step, step


def test_the_share_below_a_quantile_by_hand():
    """Quantiles at 0.2, 0.5 and 0.8 are 0.75, 1 and 1.25, and targets are whole numbers: 1 stands for 0.5 to 1.5.

    Scores between them differ by 0.841621, so 0.5 is 0.841621 scores below the first: the probability of less than 0.5
    is from 0.2 exp(-30 * 0.841621), nearly 0, to 0.2 exp(-0.841621 / 2) = 0.131303, and of more than 1.5 as well. The
    share below 1 is lowest if there are 0.131303 below 0.5 and none above 1.5: 0.368697 / 0.868697 = 0.424425.
    """
    stated = Quantiles(np.array([0.2, 0.5, 0.8]), np.tile([0.75, 1, 1.25], (3, 1)))
    least, most = bounds(observe(stated, 1), np.array([0.0, 1, 2]), np.array([0.5]))
    assert_allclose(least[:, 0], [1, 0.424425, 0], atol=5e-7)
    assert_allclose(most[:, 0], [1, 1 - 0.424425, 0], atol=5e-7)
    least, most = bounds(observe(stated, 1), np.array([0.0, 1, 2]), np.array([0.2]))
    assert_allclose(least[1], (0.2 - 0.131303) / 0.868697, atol=5e-7)
    assert_allclose(most[1], 0.2 / 0.868697, atol=5e-7)


def test_a_target_at_a_limit_stands_for_all_beyond_it():
    """As before, but 1 stands for all targets below 1.5: at least 0.5 / 1 and at most 0.5 / 0.868697 are below 1."""
    stated = Quantiles(np.array([0.2, 0.5, 0.8]), np.array([[0.75, 1, 1.25]]))
    least, most, _, at_low = bounds(observe(stated, 1, low=0.6), np.array([1.0]), np.array([0.5]))
    assert_allclose([least[0, 0], most[0, 0], at_low[0, 0]], [0.5, 0.5 / 0.868697, 0], atol=5e-7)


@pytest.mark.parametrize("levels", [NINE, WIDE], ids=["nine", "wide"])
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_the_exact_share_of_smooth_distributions_lies_between_both(name, levels, share):
    family = SMOOTH[name]
    shift, step = middles(family, share, 400, 0)
    quantiles = shift[:, None] + family.ppf(levels)
    observed = observe(Quantiles(levels, quantiles), step)
    for place, level in enumerate(levels):
        y = observed.values[:, place]
        least, most = (each[:, place] for each in bounds(observed, y, levels))
        before, up_to = (family.cdf(y + side * step / 2 - shift) for side in (-1, 1))
        exact = (level - before) / (up_to - before)
        assert (least <= exact + 1e-12).all(), level
        assert (exact <= most + 1e-12).all(), level
        assert np.mean(most - least) < 0.75, level


@pytest.mark.parametrize("levels", [NINE, WIDE], ids=["nine", "wide"])
@pytest.mark.parametrize("name", [*SMOOTH, *ROUGH])
@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_levels_lie_between_the_mean_shares_of_all_distributions(name, levels, share):
    """Within four standard errors."""
    family, rows = (SMOOTH | ROUGH)[name], 10_000
    shift, step = middles(family, share, rows, 1)
    y = shift + family.rvs(rows, random_state=np.random.default_rng(2))
    observed = observe(Quantiles(levels, shift[:, None] + family.ppf(levels)), step)
    recorded = np.floor(y / step + 0.5) * step + 0.0
    least, most = (each.mean(axis=0) for each in bounds(observed, recorded, levels))
    error = 4 * np.sqrt(levels * (1 - levels) / rows)
    assert (least <= levels + error).all()
    assert (levels <= most + error).all()


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("has_point", [True, False])
@pytest.mark.parametrize("name", [*SMOOTH, *ROUGH])
def test_the_level_of_intervals_lies_between_the_mean_shares(name, has_point, share):
    """Distributions with an infinite density at 0 lie at 0, or have points: elsewhere, limits do not show them."""
    family, rows = (SMOOTH | ROUGH)[name], 10_000
    shift, step = middles(family, share, rows, 1)
    if name == "gamma, 0.5" and not has_point:
        shift = np.zeros(rows)
    y = shift + family.rvs(rows, random_state=np.random.default_rng(2))
    lower, middle, upper = (shift[:, None] + family.ppf(level) for level in (0.05, 0.5, 0.95))
    observed = observe(Intervals(np.array([0.9]), lower, upper, middle[:, 0] if has_point else None), step)
    strict, closed, excess = observed.shares_inside(np.floor(y / step + 0.5) * step + 0.0, 0.9)
    error = 4 * np.sqrt(0.09 / rows)
    assert strict.mean() <= 0.9 + error
    assert 0.9 - error <= closed.mean()
    assert not excess.any()


@pytest.mark.parametrize("high", [np.inf, 1.0])
def test_replicates_have_no_open_shares_and_the_levels_on_average(high):
    """Otherwise, right models failed by coverage in 8.5 % of 400 sets. Within four standard errors."""
    shift, step = middles(stats.norm(), 0.5, 1_000, 3)
    observed = observe(Quantiles(WIDE, shift[:, None] + stats.norm.ppf(WIDE)), step, high=high)
    found = []
    for y, known in observed.replicates(shift, RowRandom(np.arange(1_000, dtype=np.uint64)), range(20)):
        least, most = bounds(known, y, WIDE)[:2]
        assert_array_equal(least, most)
        found.append(least.mean(axis=0))
    assert_array_less(np.abs(np.mean(found, axis=0) - WIDE), 4 * np.sqrt(WIDE * (1 - WIDE) / 20_000))


def test_quantiles_on_the_grid_are_those_of_rounded_targets():
    """They state nothing between its points: a target that is equal to one may be on both sides of it."""
    stated = Quantiles(np.array([0.2, 0.5, 0.8]), np.array([[-1.0, 0, 1], [0, 0, 2]]))
    least, most = bounds(observe(stated, 1), np.zeros(2), stated.levels)
    assert_array_equal(least, [[0, 0, 1], [0, 0, 1]])
    assert_array_equal(most, [[0, 1, 1], [1, 1, 1]])


def test_each_row_is_on_the_grid_by_itself():
    """So that parts of a file give what the whole gives."""
    stated = Quantiles(np.array([0.2, 0.5, 0.8]), np.array([[-1.0, 0, 1], [-0.75, 0, 0.75]]))
    whole, part = (bounds(observe(each, 1), np.zeros(len(each)), stated.levels) for each in (stated, stated.take([1])))
    assert_array_equal(whole[:, 0], [[0, 0, 1], [0, 1, 1]])
    assert_array_equal(whole[:, [1]], part)


def test_limits_without_a_scale_may_have_all_of_a_cell_on_one_side():
    """Those of one-sided intervals, and of intervals from 0 on."""
    lower, upper = np.array([[-np.inf], [0.0], [-0.9]]), np.array([[1.2], [3.1], [np.inf]])
    strict, closed, _ = observe(Intervals(np.array([0.9]), lower, upper), 1).shares_inside(np.array([1.0, 0, -1]), 0.9)
    assert_allclose(strict, 0, atol=1e-6)
    assert_allclose(closed, 1, atol=1e-6)


def test_clipped_limits_of_quantiles_raise_the_share_inside_by_their_tail():
    """Levels 0.1 and 0.9, quantiles -2 and 2: the upper one is beyond 1, the lower one beyond -1, none, or both."""
    stated = Quantiles(np.array([0.1, 0.9]), np.tile([-2.0, 2], (4, 1)))
    limits = np.array([-3.0, -1, -3, -1]), np.array([1.0, 3, 3, 1])
    observed = Observation(None, *limits).distributions(stated)
    strict, closed, excess = observed.shares_inside(np.array([1.0, -1, -3, 1]), 0.8)
    assert_allclose(strict, [1, 1, 0, 1])
    assert_allclose(closed, [1, 1, 0, 1])
    assert_allclose(excess, [0.1, 0.1, 0, 0.2])
