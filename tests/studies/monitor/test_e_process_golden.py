"""E-processes of PIT values: published values, plain products without logs, and validity at any time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp, ndtr, ndtri

from calcheck.studies.monitor.e_process import (
    DENSITIES,
    FIRST,
    SECOND,
    change_point,
    group_means,
    jumper_values,
    log_beta_mixture,
    log_e_process,
    log_mean_densities,
    log_product,
    log_simple_jumper,
)

EXAMPLE = ndtr(1.5 * ndtri((8 * np.arange(1, 21) % 21) / 21))
"""PIT values of normal forecasts whose standard deviations should be 1.5 times as large."""


def bets(u, times=None):
    """Return the log densities and the jumper values of the rows of each time; by default each row is a time."""
    times = np.arange(len(u)) if times is None else times
    count = times.max() + 1
    return log_mean_densities(u, times, count), group_means(jumper_values(u), times, count)


def plain_jumper(p, jump=0.01):
    """Return the capital of a simple jumper after all values, as in crepes 0.9 (martingales.SimpleJumper)."""
    capital = dict.fromkeys((-1.0, -0.5, 0.0, 0.5, 1.0), 0.2)
    total = 1.0
    for each in p:
        capital = {bet: part * (1 + bet * (each - 0.5)) for bet, part in capital.items()}
        total = sum(capital.values())
        capital = {bet: (1 - jump) * part + jump / 5 * total for bet, part in capital.items()}
    return total


def test_the_beta_mixture_and_the_jumpers_have_the_published_values():
    """The values of crepes 0.9.1 (SimpleJumper) and of a port of epit's beta e-values, to all their digits."""
    densities, means = bets(EXAMPLE)
    path = log_beta_mixture(densities)
    assert_allclose([path[-1], path.max()], [-0.7417512, -0.2003384], atol=5e-8)
    assert_allclose(np.exp(log_simple_jumper(means)[-1]), [0.6083871327, 1.3238331936], atol=5e-11)


def test_the_e_process_is_the_weighted_mean_of_plain_products():
    densities, means = bets(EXAMPLE)
    products = [np.prod(stats.beta(a, b).pdf(EXAMPLE)) for a, b in zip(FIRST, SECOND, strict=True)]
    expected = np.mean(products) / 2 + (plain_jumper(EXAMPLE) + plain_jumper(abs(2 * EXAMPLE - 1))) / 4
    assert_allclose(np.exp(log_product(densities, means)[-1]), expected, rtol=1e-12)


def test_rows_of_one_time_are_averaged_and_times_are_multiplied():
    times = np.repeat(np.arange(4), [1, 9, 3, 7])
    densities, means = bets(EXAMPLE, times)
    pdfs = np.array([stats.beta(a, b).pdf(EXAMPLE) for a, b in zip(FIRST, SECOND, strict=True)])
    by_time = np.array([pdfs[:, times == each].mean(axis=1) for each in range(4)])
    assert_allclose(np.exp(log_beta_mixture(densities)), np.cumprod(by_time, axis=0).mean(axis=1), rtol=1e-12)
    averaged = [EXAMPLE[times == each].mean() for each in range(4)]
    assert_allclose(np.exp(log_simple_jumper(means)[-1, 0]), plain_jumper(averaged), rtol=1e-12)


def test_a_lag_of_three_makes_three_products_of_which_the_largest_counts_a_third():
    densities, means = bets(EXAMPLE)
    found = log_e_process(densities, means, np.arange(20), 3)
    for time in range(20):
        products = [
            np.exp(log_product(densities[own], means[own])[-1]) if len(own) else 1.0
            for own in (np.arange(phase, time + 1, 3) for phase in range(3))
        ]
        assert_allclose(np.exp(found[time]), max(products) / 3, rtol=1e-12)


def test_products_of_lags_follow_the_number_of_the_step_where_times_are_missing():
    densities, means = bets(EXAMPLE)
    steps = np.cumsum([0, *np.tile([1, 2, 4], 6), 1])
    found = log_e_process(densities, means, steps, 2)[-1]
    phases = [np.flatnonzero(steps % 2 == phase) for phase in range(2)]
    assert_allclose(found, max(log_product(densities[own], means[own])[-1] for own in phases) - np.log(2))


@pytest.mark.parametrize("u", [0.0, 1.0, 1e-300])
def test_pit_values_that_round_to_0_or_1_are_strong_finite_evidence(u):
    densities, means = bets(np.array([u, 0.5, 0.5]))
    path = log_product(densities, means)
    assert np.isfinite(path).all()
    assert path[0] > np.log(20)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("lag", [1, 2])
def test_targets_with_probability_0_are_infinite_evidence_that_stays(lag):
    """The mean of e-values of a time is infinite if one of them is; steps without such a target change nothing."""
    impossible = np.arange(9) == 4
    u, time = np.random.default_rng(2).random(9), np.repeat(np.arange(3), 3)
    densities = log_mean_densities(u, time, 3, impossible)
    means = group_means(jumper_values(u), time, 3)
    path = log_e_process(densities, means, np.arange(3), lag)
    assert np.isposinf(path).tolist() == [False, True, True]
    usual = log_e_process(log_mean_densities(u, time, 3), means, np.arange(3), lag)
    assert path[0] == usual[0]
    assert change_point(densities) in (0, 1)


def test_long_products_neither_overflow_nor_vanish():
    u = np.full(30_000, 0.999)
    densities, means = bets(u)
    path = log_product(densities, means)
    assert path[-1] > 1e4
    assert np.isfinite(path).all()


def test_products_of_many_times_are_the_same_as_in_one_block():
    densities, _ = bets(np.random.default_rng(2).random(10_000))
    expected = logsumexp(np.cumsum(densities, axis=0), axis=1) - np.log(DENSITIES)
    assert_allclose(log_beta_mixture(densities), expected, atol=1e-9)


def test_each_beta_density_integrates_to_one():
    u = (np.arange(200_000) + 0.5) / 200_000
    densities, _ = bets(u, np.zeros(len(u), dtype=np.intp))
    assert densities.shape == (1, DENSITIES)
    assert_allclose(densities, 0, atol=0.01)  # the midpoint rule misses a part of the poles at 0 and 1


def test_the_change_point_is_the_start_of_the_most_likely_faulty_segment():
    rng = np.random.default_rng(4)
    u = np.concatenate([rng.random(300), ndtr(1.6 * rng.normal(size=150))])
    densities, _ = bets(u)
    found = change_point(densities)
    gains = [densities[start:].sum(axis=0).max() for start in range(len(u))]
    assert found == np.argmax(gains)
    assert abs(found - 300) < 30


def paths(u):
    """Return the maximum of the e-process of each of many series (s, t)."""
    jumpers = log_simple_jumper(jumper_values(u.T).transpose(0, 2, 1))  # (t, s, 2)
    found = []
    for series, capital in zip(u, jumpers.transpose(1, 0, 2), strict=True):
        parts = np.exp(np.column_stack([log_beta_mixture(bets(series)[0]), capital]))
        found.append((parts @ [0.5, 0.25, 0.25]).max())
    return np.array(found)


@pytest.mark.slow
def test_right_models_cross_20_in_at_most_5_percent_and_wrong_ones_nearly_always():
    """Of 200 sets at most 16 may cross (the limit of a binomial of 5 % at 97.5 %); of 60 wrong ones 54 must."""
    rng = np.random.default_rng(1)
    assert np.sum(paths(rng.random((200, 500))) >= 20) <= 16
    z = rng.normal(size=(60, 500))
    for wrong in (1.3 * z, 0.8 * z, z + 0.3):
        assert np.sum(paths(ndtr(wrong)) >= 20) >= 54
