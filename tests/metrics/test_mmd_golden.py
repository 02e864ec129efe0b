"""MMD of two samples: by loops over all pairs, and its permutation test."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.execution.run import Run
from calcheck.metrics.mmd import Mmd
from calcheck.models.two_samples import two_samples
from calcheck.predictions import InMemory, Predictions
from tests.helpers.naive import input_kernel
from tests.helpers.simulations import band, sets

KERNELS = ("rbf", "laplace", "polynomial")
SCALES = {"rbf": {"gamma": 0.7}, "laplace": {"gamma": 0.3}, "polynomial": {"gamma": 0.2, "degree": 3, "coef0": 1.0}}


def sample(rng, n, d, t, shift=0.0):
    x = rng.normal(size=(n, d))
    return x, x @ rng.normal(size=(d, t)) + rng.normal(size=(n, t)) + shift


def result(first, second, *, replicates=19, seed=0, **options):
    sources = [InMemory(Predictions(x=x, y=y, has_embedding=False)) for x, y in (first, second)]
    return two_samples(*sources, Mmd(**options), run=Run(replicates=replicates, seed=seed)).results[0]


def mmd_squared(a, b):
    """The unbiased square by loops, for a list of kernel matrices between rows of each sample: a is (n, n), …."""
    (own, between), others = a, b
    n, m = len(own), len(others)
    first = sum(own[i, j] for i, j in product(range(n), repeat=2) if i != j) / (n * (n - 1))
    second = sum(others[i, j] for i, j in product(range(m), repeat=2) if i != j) / (m * (m - 1))
    return first + second - 2 * between.mean()


@pytest.mark.parametrize(("kernel_y", "kernel_x"), list(product(KERNELS, repeat=2)))
@pytest.mark.parametrize("joint", [False, True])
def test_mmd_equals_loops_over_all_pairs(kernel_y, kernel_x, joint):
    """k = k_Y, or k_X k_Y, on columns as they are."""
    rng = np.random.default_rng(0)
    first, second = sample(rng, 9, 2, 3), sample(rng, 7, 2, 3, 0.5)
    k_y, k_x = (input_kernel(kernel, **SCALES[kernel]) for kernel in (kernel_y, kernel_x))

    def k(one, other):
        return k_y(one[1], other[1]) * (k_x(one[0], other[0]) if joint else 1)

    expected = mmd_squared((k(first, first), k(first, second)), k(second, second))
    options = {"gamma_y": SCALES[kernel_y]["gamma"], "gamma_x": SCALES[kernel_x]["gamma"], "standardize": "none"}
    found = result(first, second, kernel_y=kernel_y, kernel_x=kernel_x, joint=joint, **options)
    assert_allclose(found.value, expected, rtol=0, atol=1e-10)


def test_columns_are_standardized_over_both_samples():
    """The unit of a column changes nothing; by default gamma is 1/2."""
    rng = np.random.default_rng(1)
    (x, y), (u, v) = sample(rng, 12, 1, 1), sample(rng, 10, 1, 1)
    plain, scaled = result((x, y), (u, v), joint=True), result((x * 50, y / 9), (u * 50, v / 9), joint=True)
    assert_allclose(plain.value, scaled.value, rtol=1e-10)
    both = np.concatenate([y, v])
    y, v = ((part - both.mean()) / both.std(ddof=1) for part in (y, v))
    k = input_kernel("rbf", 0.5)
    expected = mmd_squared((k(y, y), k(y, v)), k(v, v))
    assert_allclose(result((x, y), (u, v)).value, expected, rtol=0, atol=1e-10)


def test_the_reference_is_the_mean_over_permutations():
    """Two rows against one pair: of the six divisions of 0, 0, 1, 1 two have samples of equal rows, four of unequal.

    Standardized, the distance of 0 and 1 is sqrt(3), so k = exp(-3/2). Equal rows: 1 + 1 - 2 k; unequal: 2 k - (1 + k).
    """
    zero, one = np.zeros((2, 1)), np.ones((2, 1))
    k = np.exp(-1.5)
    found = result((zero, zero), (one, one), replicates=599)
    assert_allclose(found.value, 2 - 2 * k, rtol=1e-12)
    assert_allclose(found.reference, ((2 - 2 * k) + 2 * (k - 1)) / 3, atol=0.15)
    assert abs(found.p_value - 1 / 3) < 0.08


@pytest.mark.parametrize("joint", [False, True])
def test_equal_distributions_fail_at_the_level_of_the_test(joint):
    count = sets(400)
    failures = 0
    for seed in range(count):
        rng = np.random.default_rng([seed, joint])
        weights = np.array([[1.0]])
        first, second = ((x := rng.normal(size=(n, 1)), x @ weights + rng.normal(size=(n, 1))) for n in (12, 9))
        failures += result(first, second, joint=joint, seed=seed).verdict == "fail"
    assert failures <= band(count, 0.05)[1]


def test_the_joint_test_detects_a_relation_that_the_marginal_test_does_not():
    rng = np.random.default_rng(2)
    x, u = rng.normal(size=(2, 150, 1))
    noise = rng.normal(size=(2, 150, 1))
    first, second = (x, x + noise[0]), (u, noise[1] - u)
    assert result(first, second, replicates=99).verdict == "pass"
    assert result(first, second, replicates=99, joint=True).verdict == "fail"
