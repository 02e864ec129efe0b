"""Whether the inputs of two samples differ."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from calcheck.execution.run import Run
from calcheck.new_inputs.positions import compare_inputs, distance_of_samples, scale_inputs
from calcheck.predictions import Predictions


def compared(x, new):
    scaling = scale_inputs(Predictions(x=x, has_embedding=False))
    return compare_inputs(x, new, scaling, Run(), names=[f"x{place}" for place in range(x.shape[1])])


def test_the_column_that_was_shifted_comes_first_and_only_it_differs():
    rng = np.random.default_rng(0)
    found = compared(rng.normal(size=(200, 3)), rng.normal(loc=[0, 0.8, 0], size=(150, 3)))
    assert found.p <= 0.01
    assert [each.name for each in found.columns if each.p <= 0.05] == ["x1"] == [found.columns[0].name]


def test_p_values_of_columns_are_adjusted_for_their_number():
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(60, 2)), rng.normal(loc=[1.0, 0.7], size=(60, 2))
    own = sorted(distance_of_samples(x[:, place], new[:, place])[1] for place in range(2))
    adjusted = sorted(each.p for each in compared(x, new).columns)
    np.testing.assert_allclose(adjusted, [2 * own[0], max(2 * own[0], own[1])])


def test_right_p_values_are_small_as_often_as_they_say():
    rng = np.random.default_rng(0)
    p = np.array([compared(rng.normal(size=(60, 2)), rng.normal(size=(40, 2))).p for _ in range(30)])
    assert np.count_nonzero(p <= 0.1) <= 8  # 3 are expected, with a standard deviation of 1.6


def test_the_distance_of_a_column_is_that_of_scipy():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=80), rng.normal(size=70) + 0.3
    other = ks_2samp(first, second, method="asymp")
    distance, p = distance_of_samples(first, second)
    np.testing.assert_allclose(distance, other.statistic)
    np.testing.assert_allclose(p, other.pvalue, rtol=0.2)  # whose asymptotic one has a correction of its sizes


@pytest.mark.parametrize("seed", range(6))
def test_one_new_row_shows_no_difference_of_all_inputs(seed):
    rng = np.random.default_rng(seed)
    tested, new = rng.normal(size=(100, 2)), rng.normal(size=(1, 2))
    assert compare_inputs(tested, new, scale_inputs(Predictions(x=tested)), Run(seed=seed)).p == 1
