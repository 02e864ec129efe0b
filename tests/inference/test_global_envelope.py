"""Ranks of whole vectors, and the band that contains them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.inference.curve_bands import curve_limits, extreme_rank_p_values, global_envelope

NAN = np.nan


def test_p_values_of_five_columns_by_hand():
    """Two statistics of five columns, sides greater and two-sided.

    Ranks from above of 3.1, 0.2, 1, -1, 0.5: 1, 4, 2, 5, 3. Ranks from below of 0 to 4: 1 to 5, so two-sided ranks
    2 min(r, 6 - r): 2, 4, 6, 4, 2. Sorted by column: (1, 2), (4, 4), (2, 6), (4, 5), (2, 3). In order of extremeness:
    (1, 2), (2, 3), (2, 6), (4, 4), (4, 5): columns 0, 4, 2, 1, 3.
    """
    statistics = np.array([[3.1, 0.2, 1, -1, 0.5], [0, 1, 2, 3, 4]])
    assert_allclose(extreme_rank_p_values(statistics, ("greater", "two-sided")), [0.2, 0.8, 0.6, 1, 0.4], rtol=1e-15)


def test_smaller_values_are_extreme_for_the_alternative_less():
    assert_allclose(extreme_rank_p_values(np.array([[3.0, 1, 2]]), ("less",)), [1, 1 / 3, 2 / 3], rtol=1e-15)


def test_equal_columns_count_against_each_other():
    """Ranks from below and above of 0, 0, 1: mid-ranks 1.5, 1.5, 3, two-sided 3, 3, 2."""
    assert_allclose(extreme_rank_p_values(np.array([[0.0, 0, 1]])), [1, 1, 1 / 3], rtol=1e-15)


def test_the_envelope_of_twenty_columns_lacks_the_most_extreme_one():
    """With 20 columns at a confidence of 0.9, the two most extreme are dropped: here the largest and the smallest."""
    line = np.concatenate([[0.5], np.arange(19.0)])
    found = global_envelope(line[None], 0.9)
    assert_allclose([found.low[0], found.high[0]], [0.5, 17], rtol=1e-15)
    assert found.p_value == 0.2  # 0.5 is the second smallest, as extreme as 17, after 0 and 18


def test_a_statistic_that_is_undefined_leaves_a_gap_and_decides_nothing():
    statistics = np.array([[1.0, 2, 3, 4, 5], [NAN] * 5, [NAN, 2, 1, 4, 3]])
    found = global_envelope(statistics, 0.5)
    assert np.isnan(found.low[1])
    assert np.isnan(found.high[1])
    assert_allclose(found.p_value, extreme_rank_p_values(statistics[[0, 2]])[0], rtol=1e-15)


def test_the_data_leave_the_envelope_exactly_if_their_p_value_is_small():
    rng = np.random.default_rng(0)
    for _ in range(300):
        statistics = rng.normal(size=(6, 60)).cumsum(axis=0)
        found = global_envelope(statistics, 0.9)
        outside = (statistics[:, 0] < found.low) | (statistics[:, 0] > found.high)
        assert outside.any() == (found.p_value <= 0.1)


@pytest.mark.parametrize("integers", [False, True])
def test_p_values_are_uniform_or_larger_for_exchangeable_columns(integers):
    """All N p-values of N exchangeable columns: at most floor(p N) of them are at most p."""
    rng = np.random.default_rng(1)
    statistics = rng.poisson(3, size=(5, 400)).astype(float) if integers else rng.normal(size=(5, 400))
    p_values = np.sort(extreme_rank_p_values(statistics))
    assert (p_values >= np.arange(1, 401) / 400 - 1e-15).all()
    assert integers or np.array_equal(np.round(p_values * 400), np.arange(1, 401))


def test_limits_of_a_curve_are_next_to_the_envelope():
    """Of 11 curves, by hand: lines k (1, -1), one that leaves them at the second point, one infinite.

    The most extreme at the first point are -4 and 4. At the second they are -4, of k = 4, and 9. So k = 4 is the most
    extreme curve at both, and the one of 11 outside of the envelope: [-4, 3] and [-3, 9], which it widens by one.
    """
    replicates = np.array([*[[k, -k] for k in range(-4, 5)], [0, 9], [0, np.inf]], float)
    low, high = curve_limits(replicates, 0.9)
    assert (low.tolist(), high.tolist()) == ([-4, -4], [4, 9])


def test_limits_of_one_point_are_order_statistics():
    """Of 99 numbers, the 5th from below and from above contain a further one with probability 0.9."""
    low, high = curve_limits(np.arange(1.0, 100)[:, None], 0.9)
    assert (low.item(), high.item()) == (5, 95)


def test_points_of_a_curve_that_differ_by_rounding_have_no_influence():
    rng = np.random.default_rng(0)
    second = rng.normal(size=99)
    constant = curve_limits(np.column_stack([np.ones(99), second]), 0.9)
    rounded = curve_limits(np.column_stack([1 + 1e-15 * rng.normal(size=99), second]), 0.9)
    assert_allclose(rounded, constant, rtol=1e-14)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_curves_have_limits_at_any_confidence(count):
    curves = np.arange(2.0 * count).reshape(count, 2)
    for confidence in (0.01, 0.5, 0.999):
        low, high = curve_limits(curves, confidence)
        assert (low <= high).all()
    assert (low == curves[0]).all()
    assert (high == curves[-1]).all()
