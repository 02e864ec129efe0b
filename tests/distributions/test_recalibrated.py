"""Recalibrated distributions against sums and integrals of their definition, R(F(y))."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.continuous import Laplace, StudentT
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.mixture import Mixture
from calcheck.distributions.recalibrated import LEVELS, Recalibrator, recalibrate
from calcheck.errors import DataError

U = np.sort(np.random.default_rng(0).beta(0.6, 0.8, 12))
MAP = Recalibrator.from_knots(U, np.arange(1, 13) / 13)
LOC, SCALE = np.array([1.0, -2.0]), np.array([0.5, 3.0])
FAMILIES = {
    "gaussian": (Gaussian(LOC, SCALE), stats.norm()),
    "laplace": (Laplace(LOC, SCALE), stats.laplace()),
    "student-t": (StudentT(LOC, SCALE, np.full(2, 5.0)), stats.t(5)),
}


def pieces(standard, *more):
    """Return the places at which the density jumps, and the ends."""
    return [-np.inf, *sorted([*standard.ppf(U), 0.0, *more]), np.inf]


def integral(function, edges):
    return sum(integrate.quad(function, low, high, epsabs=1e-13)[0] for low, high in pairwise(edges))


@pytest.mark.parametrize("family", FAMILIES)
def test_moments_and_crps_are_integrals_of_the_mapped_distribution_function(family):
    base, standard = FAMILIES[family]
    found = recalibrate(base, MAP)

    def density(z):
        return standard.pdf(z) * MAP.slope(standard.cdf(z))

    mean = integral(lambda z: z * density(z), pieces(standard))
    variance = integral(lambda z: (z - mean) ** 2 * density(z), pieces(standard))
    assert_allclose(found.mean(), LOC + SCALE * mean, atol=1e-8)
    assert_allclose(found.std(), SCALE * np.sqrt(variance), rtol=1e-7)
    y = np.array([0.7, 6.0])
    for row, z in enumerate((y - LOC) / SCALE):
        crps = integral(lambda u, z=z: (MAP(standard.cdf(u)) - (u >= z)) ** 2, pieces(standard, z))
        assert_allclose(found.crps(y)[row], SCALE[row] * crps, rtol=1e-7)
        assert_allclose(found.log_prob(y)[row], np.log(density(z) / SCALE[row]))
        assert_allclose(found.cdf(y)[row], MAP(standard.cdf(z)))


@pytest.mark.parametrize("family", FAMILIES)
def test_quantiles_and_draws_invert_the_mapped_distribution_function(family):
    base, _ = FAMILIES[family]
    found = recalibrate(base, MAP)
    assert_allclose(found.cdf(found.quantile(0.3)), 0.3)
    drawn = found.sample(np.random.default_rng(1), 4000)
    share = np.mean(found.cdf(drawn[:, 0]) <= 1)
    assert share == 1
    pits = np.array([found.cdf(column) for column in drawn.T])
    assert stats.kstest(pits[:, 0], "uniform").pvalue > 0.01
    assert stats.kstest(pits[:, 1], "uniform").pvalue > 0.01


def test_counts_have_mapped_probabilities():
    rates, y, k = np.array([3.0, 20.0]), np.array([2.0, 31.0]), np.arange(150.0)
    found = recalibrate(Poisson(rates), MAP)
    for row, rate in enumerate(rates):
        below = MAP(stats.poisson.cdf(k, rate))
        mass = np.diff(below, prepend=0)
        mean = mass @ k
        assert_allclose(found.mean()[row], mean)
        assert_allclose(found.std()[row], np.sqrt(mass @ (k - mean) ** 2))
        assert_allclose(found.crps(y)[row], np.sum((below - (k >= y[row])) ** 2))
        assert_allclose(found.log_prob(y)[row], np.log(mass[int(y[row])]))
        assert_allclose(found.cdf(y)[row], below[int(y[row])])
        assert found.quantile(0.3)[row] == k[np.argmax(below >= 0.3)]
        kernel = np.exp(-0.1 * (k[:, None] - [2.0, 5.0]) ** 2)
        assert_allclose(found.kernel_mean(np.array([[2.0], [5.0]]), np.array([0.1]))[row], mass @ kernel)
        pairs = np.exp(-0.1 * (k[:, None] - k) ** 2)
        assert_allclose(found.kernel_norm(np.array([0.1]))[row], mass @ pairs @ mass)


def test_kernel_means_of_continuous_families_are_close_to_integrals():
    base, standard = FAMILIES["gaussian"]
    found = recalibrate(base, MAP)

    def kernel(z):
        return np.exp(-0.3 * (LOC[0] + SCALE[0] * z - 1.5) ** 2) * standard.pdf(z) * MAP.slope(standard.cdf(z))

    expected = integral(kernel, pieces(standard))
    assert_allclose(found.kernel_mean(np.array([[1.5]]), np.array([0.3]))[0, 0], expected, atol=found.kernel_error)


def test_the_identity_changes_nothing():
    identity = Recalibrator(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    y = np.array([0.3, 1.0])
    for base, _ in FAMILIES.values():
        found = recalibrate(base, identity)
        for same in ("crps", "cdf", "log_prob"):
            assert_allclose(getattr(found, same)(y), getattr(base, same)(y), rtol=1e-9)
        assert_allclose(found.std(), base.std(), rtol=1e-9)


def test_rows_keep_their_own_maps_when_batches_are_joined_and_taken():
    base, _ = FAMILIES["gaussian"]
    other = Recalibrator(np.array([0.0, 0.4, 1.0]), np.array([0.0, 0.7, 1.0]))
    first, second = recalibrate(base, MAP), recalibrate(base, other)
    joined = first.join([second]).take(np.array([3, 0, 2, 1]))
    y = np.array([0.1, 0.2, 0.3, 0.4])
    expected = [second.cdf(np.full(2, 0.1))[1], first.cdf(np.full(2, 0.2))[0], second.cdf(np.full(2, 0.3))[0]]
    assert_allclose(joined.cdf(y)[:3], expected)
    assert_allclose(joined.cdf(y)[3], first.cdf(np.full(2, 0.4))[1])


def test_draws_become_quantiles_between_their_ranks():
    samples = Samples(np.array([[3.0, 1.0, 2.0]]))
    shifted = Recalibrator(np.array([0.0, 0.25, 1.0]), np.array([0.0, 0.5, 1.0]))
    found = recalibrate(samples, shifted)
    assert_allclose(found.levels, LEVELS)
    assert found.quantile(0.5)[0] == 1  # R(1/4) = 1/2, the level of the smallest of three draws
    assert_allclose(found.quantile(0.75)[0], 2.5 * 4 * 0.25)  # R(5/8) = 3/4, half way between the ranks 2 and 3


def test_quantile_files_keep_levels_that_the_map_reaches():
    quantiles = Quantiles(np.array([0.1, 0.5, 0.9]), np.array([[0.0, 5.0, 10.0]]))
    wider = Recalibrator(np.array([0.0, 0.3, 1.0]), np.array([0.0, 0.5, 1.0]))
    found = recalibrate(quantiles, wider)
    assert_allclose(found.levels, [0.5, 0.9])  # the level 0.1 would need the quantile at 0.06
    assert_allclose(found.values, [[2.5, 9.5]])  # R(0.3) = 0.5 and R(0.86) = 0.9


def test_other_continuous_families_become_quantiles():
    mixture = Mixture(*(np.array([row]) for row in ([0.0, 4.0], [1.0, 1.0], [0.5, 0.5])))
    found = recalibrate(mixture, MAP)
    assert_allclose(found.quantile(0.3), mixture.quantile(float(MAP.inverse(0.3))))


@pytest.mark.parametrize(
    ("probability", "level"),
    [([0.0, 0.5, 0.5, 1.0], [0.0, 0.2, 0.4, 1.0]), ([0.0, 0.5], [0.0, 0.9]), ([0.0, 1.0], [0.0, 0.5, 1.0])],
)
def test_a_map_that_does_not_increase_from_0_to_1_is_refused(probability, level):
    with pytest.raises(DataError):
        Recalibrator(np.array(probability), np.array(level))


def test_of_equal_probabilities_the_largest_level_is_kept():
    found = Recalibrator.from_knots(np.array([0.2, 0.2, 0.6]), np.array([0.25, 0.5, 0.75]))
    assert_allclose(found.probability, [0, 0.2, 0.6, 1])
    assert_allclose(found.level, [0, 0.5, 0.75, 1])
