"""FID equals the Fréchet distance in 50 digits to 1e-10, also for singular covariances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions.continuous import Cauchy, Gaussian
from calcheck.distributions.count_families import Poisson
from calcheck.errors import DataError
from calcheck.evaluation import evaluate
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory
from tests.helpers import naive_joint as naive
from tests.helpers.joint_cases import gaussians, rows_of_case, sampled_case, sampled_rows, scaled, value
from tests.helpers.simulations import slow

every_scale = pytest.mark.parametrize("standardize", ["data", "none"])


def in_digits(x, y, draws, digits=50):
    """Return the FID of pooled samples, computed with the given number of digits."""
    moments = (naive.moments_in_digits(naive.joint(x, each), len(x), digits) for each in (y, draws))
    return naive.fid_in_digits(moments, digits)


def assert_fid(case, standardize="data"):
    """Compare with 50 digits, and with singular values of all pairs, relative to the size of the covariances."""
    seen = scaled(case, standardize)
    expected = in_digits(*seen)
    size = max(1, np.abs(expected), (naive.joint(seen[0], seen[1]).std(axis=0) ** 2).sum())
    assert_allclose(naive.fid(*seen), expected, rtol=0, atol=1e-12 * size)
    assert_allclose(value("fid", sampled_rows(*case), standardize=standardize), expected, rtol=0, atol=1e-10 * size)


@pytest.mark.parametrize("draws", [1, slow(2), 5])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("d", [1, 8])
@pytest.mark.parametrize("columns", [1, 3])
@every_scale
def test_draws_equal_fifty_digits(draws, targets, d, columns, standardize):
    assert_fid(sampled_case(1, draws=draws, targets=targets, d=d, columns=columns), standardize)


def constant(x, y, draws):
    """An input that never changes."""
    return np.insert(x, 1, 3.0, axis=1), y, draws


def duplicated(x, y, draws):
    """An input twice."""
    return np.hstack([x, x[:, :1]]), y, draws


def twice(x, y, draws):
    """A target twice, with its draws."""
    return x, np.repeat(y, 2, axis=2), np.repeat(draws, 2, axis=2)


def equal_draws(x, y, draws):
    """A model with the same prediction everywhere."""
    return x, y, np.full_like(draws, draws.mean())


def means_alone(x, y, draws):
    """A model whose draws at an input are all equal."""
    return x, y, np.repeat(draws[:, :1], draws.shape[1], axis=1)


def linear(x, y, draws):
    """A model without noise, linear in the first input: its covariances are of rank d."""
    return x, y, np.broadcast_to(2 * x[:, None, :1], draws.shape)


def both_linear(x, y, draws):
    """Targets without noise as well, with another slope."""
    return x, np.broadcast_to(x[:, None, :1], y.shape), np.broadcast_to(2 * x[:, None, :1], draws.shape)


SINGULAR = [constant, duplicated, twice, equal_draws, means_alone, linear, both_linear]


@pytest.mark.parametrize("singular", SINGULAR, ids=lambda case: case.__name__)
@pytest.mark.parametrize("targets", [1, 3])
@every_scale
def test_singular_covariances_equal_fifty_digits(singular, targets, standardize):
    assert_fid(singular(*sampled_case(2, n=10, targets=targets, d=2)), standardize)


@pytest.mark.parametrize("n", [2, 3, 6])
@every_scale
def test_fewer_rows_than_columns_equal_fifty_digits(n, standardize):
    assert_fid(sampled_case(3, n=n, draws=2, d=8), standardize)


def test_a_model_that_repeats_the_data_has_fid_0():
    """Not 1e-8, the root of rounding errors, which roots of singular covariances would give."""
    for d in (1, 8):
        x, y, _ = sampled_case(4, n=6, targets=2, d=d, columns=2)
        assert abs(value("fid", sampled_rows(x, y, y))) < 1e-13


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("columns", [1, 3])
@every_scale
def test_normal_distributions_use_their_exact_moments(targets, columns, standardize):
    """The covariance of (x, Y) is that of (x, mean), with the mean variance added: n / (n - 1) times both."""
    x, y, model = sampled_case(5, n=12, targets=targets, d=2, columns=columns)
    std = np.abs(model[:, 0] - model[:, 1]) + 0.2
    rows = rows_of_case(x, y, gaussians(model[:, 0], std))
    x, y, mean = scaled((x, y, model[:, :1]), standardize)
    if standardize == "data":
        std = std / rows.y.reshape(len(rows), -1).std(axis=0, ddof=1)
    assert_allclose(
        value("fid", rows, standardize=standardize), expected_of(x, y, mean, std**2), rtol=1e-10, atol=1e-10
    )


def expected_of(x, y, mean, variance):
    """Return the FID in 50 digits of a model with means (n, 1, t) and independent columns with variances (n, t)."""
    n, d = x.shape
    center, spread = naive.moments_in_digits(naive.joint(x, mean), n)
    for column in range(mean.shape[-1]):
        spread[d + column][d + column] += float(variance[:, column].mean() * n / (n - 1))
    return naive.fid_in_digits((naive.moments_in_digits(naive.joint(x, y), n), (center, spread)))


@every_scale
def test_counts_use_their_exact_moments(standardize):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(12, 2))
    rate = 4 * np.exp(0.4 * x[:, 0])
    y = rng.poisson(rate).astype(float)[:, None, None]
    found = value("fid", rows_of_case(x, y, Poisson(1.3 * rate)), standardize=standardize)
    unit = y.std(ddof=1) if standardize == "data" else 1.0
    seen = scaled((x, y, 1.3 * rate[:, None, None]), standardize)
    assert_allclose(found, expected_of(*seen, 1.3 * rate[:, None] / unit**2), rtol=1e-10)


def test_distributions_without_moments_are_refused():
    x, y, _ = sampled_case(7)
    rows = rows_of_case(x, y, Cauchy(np.zeros(len(x)), np.ones(len(x))))
    (skipped,) = evaluate(InMemory(rows), [METRICS["fid"]()]).skipped
    assert "no" in skipped.reason
    assert "cauchy" in skipped.reason.lower()


def test_means_whose_squares_overflow_are_refused():
    """A mean of -1e308, whose square is infinite, as in the file that the fuzzer found."""
    with pytest.raises(DataError, match="at most 1e\\+75 in size to be squared"):
        Gaussian(np.array([-1e308, 0.0, 1.0]), np.ones(3))


def test_two_normal_samples_by_hand():
    """d = 1, x = -1, 1 twice; y = x, draws = -x: S = [[a, a], [a, a]], S' = [[a, -a], [-a, a]], a = 4/3, S S' = 0.

    The distance is tr S + tr S' = 16/3, unstandardized; a is the variance of -1, -1, 1, 1 with n - 1 = 3.
    """
    x = np.array([[-1.0], [-1.0], [1.0], [1.0]])
    found = value("fid", sampled_rows(x, x[:, None], -x[:, None]), standardize="none")
    assert_allclose(found, 16 / 3, rtol=1e-12)
