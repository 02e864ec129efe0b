"""Distributions of observed targets agree with integrals in many digits, and with scoringrules."""

from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr, ndtri

import calcheck
from calcheck.distributions import Gaussian, Intervals, Quantiles, Samples
from calcheck.distributions.base import Predictive, Repeated
from calcheck.distributions.continuous import Cauchy, Laplace, StudentT
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.mixture import Mixture, Noisy, mean_distance
from calcheck.distributions.noise_clip_rounding import Clipped, Observation, Rounded, round_to
from calcheck.distributions.positive import Gamma, LogNormal
from calcheck.errors import DataError, ValuesError
from calcheck.predictions import Predictions
from tests.helpers.simulations import slow


def one(value):
    return np.array([float(value)])


def student(t):
    return 3 / 8 * (1 + t**2 / 4) ** mp.mpf(-2.5)  # df 4


FAMILIES = {
    "normal": (Gaussian(one(0.3), one(1.2)), lambda t: mp.npdf(t, 0.3, 1.2), [-9, -2, 0.3, 3, 9]),
    "laplace": (
        Laplace(one(0.3), one(0.8)),
        lambda t: mp.exp(-abs(t - mp.mpf(0.3)) / 0.8) / 1.6,
        [-30, -5, 0.3, 5, 30],
    ),
    "student-t": (
        StudentT(one(0), one(1), one(4)),
        student,
        [-(10**5), -1000, -100, -10, -2, 0, 2, 10, 100, 1000, 10**5],
    ),
    "lognormal": (
        LogNormal(one(0.1), one(0.5)),
        lambda t: mp.npdf(mp.log(t), 0.1, 0.5) / t,
        [mp.mpf(10) ** -3, 0.3, 1, 3, 30],
    ),
    "gamma": (Gamma(one(3), one(0.7)), lambda t: t**2 * mp.exp(-t / 0.7) / (2 * mp.mpf(0.7) ** 3), [0, 1, 3, 8, 40]),
}
LIMITS = {"lognormal": (0.7, 1.6), "gamma": (0.9, 3.1)}
every_family = pytest.mark.parametrize("name", FAMILIES)


def integral(of, places, *more):
    ends = sorted({*map(mp.mpf, places), *(mp.mpf(each) for each in more if places[0] < each < places[-1])})
    return mp.quad(of, ends)


@every_family
def test_clipped_distributions_agree_with_integrals(name):
    family, density, places = FAMILIES[name]
    low, high = LIMITS.get(name, (-0.5, 1.1))
    inner = [low, *(each for each in places if low < each < high), high]
    clipped = Clipped(family, one(low), one(high))
    below, above = integral(density, places[:-1], low) * 0, 0
    below = integral(density, [*(each for each in places if each < low), low])
    above = integral(density, [high, *(each for each in places if each > high)])
    mean = low * below + high * above + integral(lambda t: t * density(t), inner)
    square = (low - mean) ** 2 * below + (high - mean) ** 2 * above
    square += integral(lambda t: (t - mean) ** 2 * density(t), inner)
    tolerance = {"rtol": 1e-9, "atol": 1e-10}
    assert_allclose(clipped.mean(), float(mean), **tolerance)
    assert_allclose(clipped.std(), float(mp.sqrt(square)), **tolerance)
    assert_allclose(clipped.log_prob(one(low)), float(mp.log(below)), **tolerance)
    assert_allclose(clipped.log_prob(one(high)), float(mp.log(above)), **tolerance)
    y = (low + high) / 2
    assert_allclose(clipped.log_prob(one(y)), float(mp.log(density(y))), **tolerance)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    for target in (low, y, high):
        ends = np.unique(np.array([*inner, target], float))
        t = (ends[:-1, None] + np.diff(ends)[:, None] * (1 + nodes) / 2).ravel()
        w = (np.diff(ends)[:, None] * weights / 2).ravel()
        distribution = family.take(np.zeros(len(t), np.intp)).cdf(t)
        assert_allclose(clipped.crps(one(target)), np.sum(w * (distribution - (t >= target)) ** 2), **tolerance)


def test_clipped_normal_distributions_agree_with_scoringrules():
    import scoringrules

    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=200), rng.uniform(0.2, 3, 200)
    low, high = np.full(200, -0.4), np.full(200, 1.3)
    y = np.clip(loc + scale * rng.normal(size=200), low, high)
    expected = scoringrules.crps_cnormal(y, loc, scale, low, high)
    assert_allclose(Clipped(Gaussian(loc, scale), low, high).crps(y), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (-np.inf, 1.0), (0.0, np.inf)])
@pytest.mark.parametrize("gamma", [0.1, 40.0])
def test_kernels_of_clipped_normal_distributions_are_sums_however_narrow_the_kernel_is(low, high, gamma):
    loc, scale = np.array([0.0, -3.0, 1.5]), np.array([1.0, 8.0, 0.3])
    clipped = Observation(low=np.full(3, low), high=np.full(3, high)).distributions(Gaussian(loc, scale))
    ends, point, gammas = (max(low, -40.0), min(high, 40.0)), np.array([[0.4]]), np.array([gamma])
    nodes, weights = np.polynomial.legendre.leggauss(1000)
    values = (np.linspace(*ends, 5)[:-1, None] + np.diff(ends) * (1 + nodes) / 8).ravel()
    widths = np.tile(np.diff(ends) * weights / 8, 4)
    norms, means = clipped.kernel_norm(gammas), clipped.kernel_mean(point, gammas)
    for row in range(3):
        z = (values - loc[row]) / scale[row]
        mass = widths * np.exp(-(z**2) / 2) / (scale[row] * np.sqrt(2 * np.pi))
        below, above = ndtr((low - loc[row]) / scale[row]), ndtr((loc[row] - high) / scale[row])
        at, weight = np.concatenate([values, ends]), np.concatenate([mass, [below, above]])
        kernels = np.exp(-gamma * (at[:, None] - at) ** 2)
        assert_allclose(norms[row], weight @ kernels @ weight, rtol=1e-9)
        assert_allclose(means[row], weight @ np.exp(-gamma * (at - 0.4) ** 2), rtol=1e-9)


def test_the_kernel_of_a_narrow_half_of_a_normal_distribution_is_linear():
    """E exp(-(1 - E)^2) 1{E < 0} is (1/2 - 2 s / sqrt(2 pi)) / e for a standard deviation s that is small."""
    std = 7e-9
    clipped = Observation(low=one(-np.inf), high=one(0)).distributions(Gaussian(one(0), one(std)))
    found = clipped.kernel_mean(np.array([[1.0]]), one(1))[0, 0] - clipped.kernel_mean(np.array([[-1.0]]), one(1))[0, 0]
    assert_allclose(found, -4 * std / np.sqrt(2 * np.pi) / np.e, rtol=1e-6)


def test_masses_far_beyond_limits_have_finite_logarithms():
    far = Clipped(Gaussian(one(0), one(0.1)), one(-np.inf), one(8))
    assert_allclose(far.log_prob(one(8)), float(mp.log(mp.ncdf(-80))), rtol=1e-9)
    steep = Clipped(Laplace(one(0), one(0.01)), one(-np.inf), one(8))
    assert_allclose(steep.log_prob(one(8)), -800 - np.log(2), rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "normal"])
@pytest.mark.parametrize("share", [0.3, slow(1.0)])
def test_noisy_distributions_agree_with_integrals(name, share):
    family, density, places = FAMILIES[name]
    noise = share * float(family.std()[0])
    noisy = Noisy(family, one(noise))
    for y in (-0.2, 1.5, 4.0):
        near = [y + noise * k for k in (-8, -3, 0, 3, 8)]
        below = integral(lambda t, y=y: density(t) * mp.ncdf((y - t) / noise), places, *near)
        at = integral(lambda t, y=y: density(t) * mp.npdf(y, t, noise), places, *near)
        assert_allclose(noisy.cdf(one(y)), float(below), rtol=1e-9, atol=1e-9)
        assert_allclose(noisy.log_prob(one(y)), float(mp.log(at)), rtol=1e-9, atol=1e-9)
        assert_allclose(noisy.above(one(y)), float(1 - below), rtol=1e-9, atol=1e-9)
    for level in (0.001, 0.3, 0.95):
        assert_allclose(noisy.cdf(noisy.quantile(level)), level, rtol=1e-9)


def test_sums_over_nodes_end_where_the_nodes_beyond_are_negligible():
    """Where panels become too long for the noise, means over the noise take over, and have the same values."""
    noisy = Noisy(StudentT(one(0.0), one(1.0), one(3.0)), one(0.5), "no")
    high = noisy._resolved[1]
    assert np.isfinite(high).all()
    for name in ("cdf", "above", "log_prob", "crps"):
        below, beyond = (getattr(noisy, name)(high * (1 + side * 1e-12)) for side in (-1, 1))
        assert_allclose(below, beyond, rtol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.05, *map(slow, (0.002, 0.5, 3.0))])
def test_crps_of_noisy_distributions_are_integrals(noise):
    """The integral of (F - 1{x >= y})^2 with the distribution function of a Laplace target with noise."""
    loc, scale = 0.3, 0.8
    of = (lambda y: noisy_laplace(y, loc, scale, noise)) if noise else lambda y: mp.mpf(family.cdf(one(y))[0])
    family = Laplace(one(loc), one(scale))
    for y in (-0.4, 2.0):
        ends = sorted({-40, -8, loc - noise, loc, loc + noise, y, 8, 40})
        expected = mp.quad(lambda x, y=y: (of(x) - (x >= y)) ** 2, ends)
        assert_allclose(Noisy(family, one(noise)).crps(one(y)), float(expected), rtol=1e-9)


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("name", ["laplace", "student-t", "lognormal", "gamma", "poisson"])
def test_tables_of_noisy_distributions_have_the_values_of_sums_over_nodes(name, share):
    rng = np.random.default_rng(0)
    family = FAMILIES[name][0] if name in FAMILIES else Poisson(one(4.2))
    rows = np.zeros(40, np.intp)
    sums = Noisy(family.take(rows), np.full(40, share * float(family.std()[0])), "no")
    noisy, wide = (replace(sums, tabulated=panels) for panels in ("inner", "all"))
    y = np.append(family.quantile(0.5) + 9 * noisy.noise[:20] * rng.normal(size=20), noisy.sample(rng, 1)[20:, 0])
    assert sums._table is None
    assert (noisy._table is None) == (name == "poisson" and share == 0.05)  # whose peaks are narrow
    for function in ("cdf", "above", "log_prob", "crps"):
        expected = getattr(sums, function)(y)
        for tabulated in (noisy, wide):
            assert_allclose(getattr(tabulated, function)(y), expected, rtol=1e-9, atol=1e-13)
    assert_allclose(noisy.take(rows[:3]).cdf(y[:3]), sums.cdf(y)[:3], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("share", [1e-6, 1e-4, 1e-2, 0.1])
def test_no_kink_is_missed_between_the_places_that_a_table_is_made_from(share):
    """Narrow noise makes the density of a Laplace distribution smooth at its center, at its own width only."""
    rng = np.random.default_rng(0)
    noisy = Noisy(Laplace(np.zeros(20), np.ones(20)), np.full(20, share))
    y = np.append(0.0, share * rng.normal(size=19))
    for name in ("cdf", "log_prob", "crps"):
        expected = getattr(replace(noisy, tabulated="no"), name)(y)
        assert_allclose(getattr(replace(noisy, tabulated="all"), name)(y), expected, rtol=1e-10)


def test_the_mean_distance_of_a_noisy_distribution_without_a_mean_is_in_no_table():
    """It is infinite, so that sums over nodes are not integrals of the distribution function."""
    noisy = Noisy(Cauchy(one(0.3), one(0.8)), one(0.4))
    y = one(1.1)
    assert_allclose(noisy.crps(y), replace(noisy, tabulated="no").crps(y), rtol=1e-12)


@pytest.mark.parametrize("step", [None, 0.5])
def test_values_of_noisy_distributions_do_not_depend_on_earlier_calls(step):
    """Bit for bit: a metric alone has the digits that it has after all others."""
    rng = np.random.default_rng(0)
    family = StudentT(rng.normal(size=30), rng.uniform(0.5, 2, 30), np.full(30, 4.0))
    observation = Observation(noise=np.full(30, 0.7), step=None if step is None else np.full(30, step))
    y = round_to(family.sample(rng, 1)[:, 0], np.full(30, 0.5))
    fresh, used = (observation.distributions(family) for _ in range(2))
    for _ in range(60):
        used.cdf(y)
    used.crps(y)
    used.quantile(0.9)
    for name in ("cdf", "above", "log_prob", "crps"):
        assert np.array_equal(getattr(used, name)(y), getattr(observation.distributions(family), name)(y))
    assert np.array_equal(used.quantile(0.2), fresh.quantile(0.2))


def test_repeated_distributions_have_the_values_of_the_rows_that_they_repeat():
    rng = np.random.default_rng(0)
    clipped = Clipped(Gaussian(rng.normal(size=5), rng.uniform(0.2, 3, 5)), np.full(5, -0.4), np.full(5, 1.3))
    twice, taken = Repeated(clipped, 2), clipped.take(np.tile(np.arange(5), 2))
    y = np.clip(rng.normal(size=10), -0.4, 1.3)
    for name in ("cdf", "cdf_left", "above", "log_prob", "crps", "record"):
        assert_allclose(getattr(twice, name)(y), getattr(taken, name)(y), rtol=1e-13)
    for name in ("mean", "std", "median", "spread", "edges", "kinks"):
        assert_allclose(getattr(twice, name)(), getattr(taken, name)(), rtol=1e-13)
    assert_allclose(twice.central_interval(0.9), taken.central_interval(0.9))
    assert len(twice) == 10
    left, right = Repeated(Laplace(np.zeros(5), np.ones(5)), 2).cdf_limits(y)
    assert left is right  # without jumps, as of the distributions themselves
    for refused in (lambda: twice.sample(rng, 1), lambda: twice.take(np.arange(3)), lambda: twice.hashes(0)):
        with pytest.raises(DataError):
            refused()


def test_no_method_of_distributions_is_forgotten_where_they_are_repeated():
    others = [
        *("batches", "load", "map_batches", "mixed_moments", "joint_log_prob", "fair_crps", "nbytes"),  # by the others
        *("targets", "n_draws", "quantile_levels", "interval_levels", "states", "normal", "kernel_error"),  # the same
        *("hold_in_double", "require_equal_lengths", "validate_targets", "parameters", "describe", "join", "equals"),
        *("of_target", "rescale", "replicates"),  # of other distributions only
    ]
    methods = {name for name in vars(Predictive) if not name.startswith("_")}
    assert methods - {*vars(Repeated)} == {*others}


@pytest.mark.parametrize("noise", [(0.5, 0.5), (0.5, 0.01)])
def test_kernels_of_noisy_distributions_are_those_of_draws(noise):
    """Noise of one size and of several, against sums over nodes of the noise of the closed forms without it."""
    family = Laplace(np.array([0.3, -1]), np.array([0.8, 2]))
    points, gamma = np.array([[-1.0], [0.4], [3]]), np.array([0.7])
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / np.sqrt(2 * np.pi)
    noisy = Noisy(family, np.array(noise))
    for row, size in enumerate(noise):
        own, alone = family.take([row]), noisy.kernel_mean(points, gamma)[row]
        expected = sum(w * own.kernel_mean(points - size * z, gamma)[0] for z, w in zip(nodes, weights, strict=True))
        assert_allclose(alone, expected, rtol=1e-9)
        t, mass = panels_of(own)
        one_row = noisy.take([row])
        of_noise = sum(
            w * one_row.kernel_mean(t[:, None] + size * z, gamma)[0] for z, w in zip(nodes, weights, strict=True)
        )
        assert_allclose(noisy.kernel_norm(gamma)[row], mass @ of_noise, rtol=1e-9)


def panels_of(family):
    """Return nodes of a quadrature of expectations over a Laplace distribution, and their probabilities."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    ends = family.loc + family.scale * np.array([-30, -8, -3, -1, 0, 1, 3, 8, 30])
    t = (ends[:-1, None] + np.diff(ends)[:, None] * (1 + nodes) / 2).ravel()
    density = np.exp(-np.abs(t - family.loc) / family.scale) / (2 * family.scale)
    return t, (np.diff(ends)[:, None] * weights / 2).ravel() * density


def noisy_laplace(y, loc, scale, noise):
    """F of a Laplace target with normal noise, in closed form."""
    y, a, b = mp.mpf(y) - loc, mp.mpf(noise) / scale, mp.mpf(y - loc) / noise
    tail = mp.exp(a**2 / 2) / 2
    return mp.ncdf(b) + tail * (mp.exp(y / scale) * mp.ncdf(-b - a) - mp.exp(-y / scale) * mp.ncdf(b - a))


def test_noise_then_clipping_then_rounding_agree_with_sums():
    loc, scale, noise, low, high, step = 0.3, 0.8, 0.6, -1.0, 2.0, 0.5
    observation = Observation(one(noise), one(low), one(high), one(step))
    observed = observation.distributions(Laplace(one(loc), one(scale)))
    grid = np.arange(-2, 5) * step
    edges = [noisy_laplace(k + step / 2, loc, scale, noise) for k in grid[:-1]]
    masses = np.array([float(b - a) for a, b in zip([0, *edges], [*edges, 1], strict=True)])
    for k, mass in zip(grid, masses, strict=True):
        assert_allclose(np.exp(observed.log_prob(one(k))), mass, rtol=1e-9)
        expected = (
            np.sum(masses * np.abs(grid - k)) - np.sum(masses[:, None] * masses * np.abs(grid[:, None] - grid)) / 2
        )
        assert_allclose(observed.crps(one(k)), expected, rtol=1e-9)
        left, right = observed.cdf_limits(one(k))
        assert_allclose(right - left, mass, rtol=1e-9)
    assert_allclose(observed.mean(), masses @ grid, rtol=1e-9)
    assert_allclose(observed.std(), np.sqrt(masses @ (grid - masses @ grid) ** 2), rtol=1e-9)
    assert_allclose(
        observed.kernel_mean(np.array([[0.2]]), np.array([0.7]))[0, 0], masses @ np.exp(-0.7 * (grid - 0.2) ** 2)
    )


@every_family
@pytest.mark.parametrize("step", [0.5, 0.03])
def test_rounded_distributions_agree_with_sums_of_masses(name, step):
    family, _, places = FAMILIES[name]
    rounded = Rounded(family, one(step))
    ends = [max(4 * float(places[0]), -3000), min(4 * float(places[-1]), 3000)]
    k = np.arange(np.floor(ends[0] / step) - 2, np.ceil(ends[1] / step) + 3)
    many = family.take(np.zeros(len(k), np.intp))
    below, above = many.cdf((k + 0.5) * step), many.above((k - 0.5) * step)
    masses = np.where(below > 0.5, above - np.append(above[1:], 0), np.diff(below, prepend=0))
    mean = masses @ k * step
    tolerance = {"rtol": 1e-6 if name == "student-t" else 1e-9, "atol": 1e-9}  # the sum ends at 3,000
    assert_allclose(rounded.mean(), mean, **tolerance)
    assert_allclose(rounded.std(), np.sqrt(masses @ (k * step - mean) ** 2), **tolerance)
    y = round(1.4 / step) * step
    assert_allclose(rounded.crps(one(y)), step * np.sum((below - (k * step >= y - 1e-9)) ** 2), **tolerance)
    assert_allclose(np.exp(rounded.log_prob(one(y))), masses[np.argmin(np.abs(k * step - y))], rtol=1e-9)


@pytest.mark.parametrize("steps", [(0.5, 0.5, 0.5), (0.5, 0.03, 0.7), (0.5,) * 40 + (0.3, 0.31, 0.52, 0.6, 0.71)])
@pytest.mark.parametrize("name", FAMILIES)
def test_kernels_of_rounded_distributions_agree_with_sums_over_each_row(name, steps):
    """Rows that share the points of the grid, with others far out; rows of which each has its own; and both."""
    family = FAMILIES[name][0]
    points, gamma, step = np.array([[-1.0], [0.4], [30.2]]), np.array([0.07]), np.array(steps)
    rounded = Rounded(family.take([0] * len(step)), step)
    rounded = rounded.take(slice(0, 2)).join([rounded.take(slice(2, None))])
    for row in range(max(0, len(step) - 6), len(step)):
        values = round_to(np.arange(-100, 100, step[row]), np.array(step[row]))
        many = family.take(np.zeros(len(values), np.intp))
        masses = many.cdf(values + step[row] / 2) - many.cdf(values - step[row] / 2)
        means = masses @ np.exp(-0.07 * (values[:, None] - points[:, 0]) ** 2)
        assert_allclose(rounded.kernel_mean(points, gamma)[row], means, rtol=1e-9, atol=1e-9)
        differences = np.exp(-0.07 * (values - values[0]) ** 2)
        around = np.convolve(masses, np.append(differences[:0:-1], differences))[len(masses) - 1 :][: len(masses)]
        assert_allclose(rounded.kernel_norm(gamma)[row], masses @ around, rtol=1e-9)


def test_counts_with_noise_and_clipped_counts_agree_with_sums():
    counts, k = Poisson(one(4.2)), np.arange(80)
    masses = np.exp(counts.take(np.zeros(80, np.intp)).log_prob(k.astype(float)))
    noisy = Noisy(counts, one(0.7))
    expected = sum(mass * mp.ncdf((5.3 - int(each)) / 0.7) for mass, each in zip(masses, k, strict=True))
    assert_allclose(noisy.cdf(one(5.3)), float(expected), rtol=1e-9)
    differences = zip(np.convolve(masses, masses[::-1]), range(-79, 80), strict=True)
    apart = sum(mass * mean_distance(one(d), one(0.7 * np.sqrt(2))) for mass, d in differences)
    away = sum(mass * mean_distance(one(5.3 - each), one(0.7)) for mass, each in zip(masses, k, strict=True))
    assert_allclose(noisy.crps(one(5.3)), away - apart / 2, rtol=1e-9)
    clipped, values = Clipped(counts, one(2), one(6)), np.clip(k, 2, 6)
    pairs = np.sum(masses[:, None] * masses * np.abs(values[:, None] - values)) / 2
    assert_allclose(clipped.crps(one(5)), masses @ np.abs(values - 5) - pairs, rtol=1e-9)
    assert_allclose(clipped.mean(), masses @ values, rtol=1e-9)
    assert_allclose(clipped.log_prob(one(6)), np.log(masses[6:].sum()), rtol=1e-9)


def test_noise_of_normal_predictions_adds_variances_in_every_form():
    loc, scale, noise = np.array([0.0, 2.0]), np.array([1.0, 0.5]), np.array([0.3, 2.0])
    total = np.hypot(scale, noise)
    of = Observation(noise=noise).distributions
    assert_allclose(of(Gaussian(loc, scale)).std(), total)
    assert_allclose(of(Mixture(loc[:, None], scale[:, None], np.ones((2, 1)))).std(), total)
    levels = np.array([0.05, 0.4, 0.5, 0.9])
    quantiles = of(Quantiles(levels, loc[:, None] + scale[:, None] * ndtri(levels)))
    assert_allclose(quantiles.values, loc[:, None] + total[:, None] * ndtri(levels))
    reach = ndtri(0.95)
    limits = of(Intervals(np.array([0.9]), (loc - reach * scale)[:, None], (loc + reach * scale)[:, None]))
    assert_allclose(limits.upper[:, 0] - limits.lower[:, 0], 2 * reach * total)
    draws = of(Samples(np.tile(loc[:, None], (1, 20_000))))
    assert_allclose(draws.std(), noise, rtol=0.03)


def test_draws_quantiles_and_limits_are_recorded_as_targets_are():
    observation = Observation(low=one(-1), high=one(1), step=one(0.5))
    draws = np.array([[-3.0, -0.3, 0.26, 4.0]])
    assert_allclose(observation.distributions(Samples(draws)).draws, [[-1, -0.5, 0.5, 1]])
    assert_allclose(
        observation.distributions(Quantiles(np.array([0.1, 0.4, 0.6, 0.9]), draws)).values, [[-1, -0.5, 0.5, 1]]
    )
    limits = observation.distributions(Intervals(np.array([0.9]), draws[:, :1], draws[:, 3:], one(0.3)))
    assert (limits.lower, limits.upper, limits.point) == (-1, 1, 0.5)


@pytest.mark.slow
def test_draws_and_replicates_are_on_the_grid_within_the_limits():
    rows = np.zeros(400, np.intp)
    observation = Observation(one(0.5), one(-1), one(2), one(0.25)).take(rows)
    observed = observation.distributions(LogNormal(one(0), one(0.7)).take(rows))
    drawn = observed.sample(np.random.default_rng(0), 50)
    assert drawn.min() == -1
    assert drawn.max() == 2
    assert (drawn == np.round(drawn * 4) / 4).all()
    assert_allclose(drawn.mean(), observed.mean()[0], atol=0.03)
    assert_allclose(drawn.std(), observed.std()[0], atol=0.03)
    observed.validate_targets(drawn[:, 0])


def test_rows_are_selected_and_joined_with_their_observation():
    observation = Observation(noise=np.array([0.1, 0.2]), high=np.array([1.0, 2.0]), step=np.array([0.5, 0.25]))
    family = Laplace(np.zeros(2), np.ones(2))
    both = observation.distributions(family)
    parts = [observation.take(rows).distributions(family.take(rows)) for rows in (slice(0, 1), slice(1, 2))]
    joined = parts[0].join(parts[1:])
    assert joined.equals(both).all()
    assert (joined.hashes(3) == both.hashes(3)).all()
    y = np.array([0.5, -0.75])
    assert_allclose(joined.crps(y), both.crps(y))
    assert_allclose(both.take(np.array([1])).crps(y[1:]), both.crps(y)[1:])


@pytest.mark.parametrize(
    ("observation", "y", "words"),
    [
        ({"high": one(5)}, 5.1, "within the limits of --clip"),
        ({"step": one(0.5)}, 0.7, "multiples of --rounded"),
    ],
)
def test_targets_that_cannot_be_observed_are_refused(observation, y, words):
    with pytest.raises(ValuesError, match=words):
        Observation(**observation).targets(one(y))


def test_targets_in_single_precision_are_at_limits_and_on_the_grid():
    limit = Observation(high=one(5.00001)).targets(np.float64(np.float32([5.00001])))
    assert limit == 5.00001
    assert Observation(step=one(0.1)).targets(np.float64(np.float32([0.3]))) == 3 * 0.1


def test_negative_noise_is_refused_and_counts_need_noise():
    with pytest.raises(ValuesError, match="nonnegative"):
        Observation(noise=one(-1))
    with pytest.raises(ValuesError, match="positive"):
        Noisy(Poisson(np.array([4.2, 3])), np.array([0.7, 0]))


@pytest.mark.slow
def test_metrics_of_noisy_targets_have_the_same_digits_alone_and_together():
    rng = np.random.default_rng(0)
    family = StudentT(rng.normal(size=40), rng.uniform(0.5, 2, 40), np.full(40, 4.0))
    noise = np.full(40, 0.7)
    y = family.sample(rng, 1)[:, 0] + noise * rng.normal(size=40)

    def found(names):
        rows = Predictions(y=y, predictive=family, observation=Observation(noise=noise)).observed()
        report = calcheck.evaluate(rows, names, replicates=19, resamples=0, seed=0)
        return [(each.value, each.p_value, each.reference) for each in report.results]

    names = ["crps", "nll", "zms", "ece"]
    assert found(names) == [found([name])[0] for name in names]
