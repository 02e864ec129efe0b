"""Draws exchanged with targets: statistics from one sort agree with those of the exchanged draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck.distributions import Samples
from calcheck.distributions.samples import PooledDraws


def exchange_twice(m, *, ties=False, n=40, seed=0):
    """Return targets and the exchanged draws, by one sort and explicitly."""
    rng = np.random.default_rng([seed, m])
    draws, y = 100 + rng.normal(size=(n, m)), 100 + rng.normal(size=n)
    if ties:
        draws, y = np.round(draws), np.round(y)
    chosen = rng.integers(0, m + 1, n)
    quick, plain = PooledDraws(y, Samples(draws)).exchange(chosen), Samples(draws).exchange(y, chosen)
    assert_array_equal(quick[0], plain[0])
    return quick[0], quick[1], plain[1]


cases = pytest.mark.parametrize(("m", "ties"), [(1, False), (2, False), (5, False), (5, True), (40, False), (40, True)])


@cases
def test_the_remaining_draws_are_the_others_of_their_row(m, ties):
    _, quick, plain = exchange_twice(m, ties=ties)
    assert_array_equal(np.sort(quick.load().draws), np.sort(plain.draws))
    assert quick.n_draws == m


@cases
def test_statistics_agree_with_those_of_the_exchanged_draws(m, ties):
    y, quick, plain = exchange_twice(m, ties=ties)
    for name in ("mean", "median", *(("std",) if m > 1 else ())):
        assert_allclose(getattr(quick, name)(), getattr(plain, name)(), rtol=1e-12, atol=1e-12)
    for name in ("cdf", "cdf_left", "crps", *(("fair_crps",) if m > 1 else ())):
        assert_allclose(getattr(quick, name)(y), getattr(plain, name)(y), rtol=1e-10, atol=1e-12)
    assert_allclose(quick.cdf_limits(y), plain.cdf_limits(y), rtol=1e-14)
    for level in (0.5, 0.9):
        limits = plain.central_interval(level)
        assert_array_equal(quick.central_interval(level), limits)
        assert_allclose(quick.interval_mass(*limits), plain.interval_mass(*limits), rtol=1e-14)
        assert_allclose(quick.interval_mass_error(y, *limits), plain.interval_mass_error(y, *limits), rtol=1e-14)


@cases
def test_statistics_at_other_targets_agree_with_those_of_the_exchanged_draws(m, ties):
    y, quick, plain = exchange_twice(m, ties=ties)
    assert_allclose(quick.cdf_limits(y + 0.3), plain.cdf_limits(y + 0.3), rtol=1e-14)
    assert_allclose(quick.crps(y + 0.3), plain.crps(y + 0.3), rtol=1e-12)
    assert_allclose(quick.kernel_mean(y[:3, None], np.array([0.5])), plain.kernel_mean(y[:3, None], np.array([0.5])))


def test_draws_that_are_equal_have_no_spread():
    draws = np.full((3, 4), 0.1)
    _, exchanged = PooledDraws(np.array([0.7, 0.1, 0.3]), Samples(draws)).exchange(np.zeros(3, int))
    assert_array_equal(exchanged.std(), 0)
