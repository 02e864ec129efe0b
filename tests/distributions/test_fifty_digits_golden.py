"""Closed forms of every continuous family, against the formulas of the literature in 50 digits and more.

Parameters range over many orders of magnitude. A float y represents all numbers within half a unit of its last place,
and so does a location: values are compared to within the relative error that follows from this, plus 1e-13.
"""

import mpmath as mp
import numpy as np
import pytest

from calcheck.distributions import Gaussian
from calcheck.distributions.continuous import Cauchy, Laplace, StudentT
from calcheck.distributions.mixture import Mixture
from calcheck.distributions.positive import Gamma, LogNormal, Weibull, log_moment_ratio
from calcheck.distributions.special import log_half_step, log_ratio_excess, stirling_error

ROUNDING = 2.0**-52
ERROR = 1e-13
SIGMAS = [1e-8, 1e-6, 1e-4, 0.01, 0.3, 0.6, 1.0, 3.0, 8.0, 10.0]
SCALES = [1e-75, 1e-8, 1.0, 1e5, 1e75]
SCORES = [-7.0, -1.0, 0.3, 2.0, 7.0]
LEVELS = [1e-9, 0.03, 0.5, 0.97]
DIGITS = 80

exact = mp.mpf


@pytest.fixture(autouse=True)
def _fifty_digits():
    with mp.workdps(DIGITS):  # of which fifty remain after cancellation
        yield


def agree(found, expected, input_error=0.0):
    """Assert that a float equals an exact number to within rounding and the relative error from its inputs."""
    found = float(np.ravel(found)[0])
    assert abs(exact(found) - expected) <= (ERROR + input_error) * abs(expected), (found, mp.nstr(expected, 20))


def normal_cdf(z):
    return mp.erfc(-z / mp.sqrt(2)) / 2


@pytest.mark.parametrize("mu", [0.0, 3.7, -170.0])
@pytest.mark.parametrize("sigma", SIGMAS)
def test_lognormal(mu, sigma):
    family, s = LogNormal(np.array([mu]), np.array([sigma])), exact(sigma)
    mean = mp.exp(exact(mu) + s**2 / 2)
    exponent = ROUNDING * (abs(mu) + sigma**2)  # of exp: its relative error
    agree(family.mean(), mean, exponent)
    agree(family.std(), mean * mp.sqrt(mp.expm1(s**2)), exponent)
    for score in SCORES:
        y = float(mp.exp(exact(mu) + exact(score) * s))
        z = (mp.log(exact(y)) - exact(mu)) / s
        off = 2 * ROUNDING * abs(mu) / sigma  # of z, relative to 1
        agree(family.cdf(np.array([y])), normal_cdf(z), (2 + abs(score)) * (off + 4 * ROUNDING * abs(score)))
        log_density = -(z**2) / 2 - mp.log(s * exact(y)) - mp.log(2 * mp.pi) / 2
        size = (off * abs(score) + 8 * ROUNDING * (abs(mu) + score**2 + abs(np.log(sigma)))) / abs(float(log_density))
        agree(family.log_prob(np.array([y])), log_density, size)
        crps = exact(y) * (2 * normal_cdf(z) - 1)
        crps -= 2 * mean * (normal_cdf(z - s) - normal_cdf(-s / mp.sqrt(2)))
        agree(family.crps(np.array([y])), crps, 4 * off + exponent)


@pytest.mark.parametrize("scale", SCALES)
def test_gaussian(scale):
    family, s = Gaussian(np.zeros(1), np.array([scale])), exact(scale)
    for score in [*SCORES, 0.0, 1e-9, 1e6]:
        y = np.array([score * scale])
        z = exact(y[0]) / s
        density = mp.exp(-(z**2) / 2) / mp.sqrt(2 * mp.pi)
        agree(family.cdf(y), normal_cdf(z))
        agree(family.log_prob(y), mp.log(density) - mp.log(s))
        agree(family.crps(y), s * (z * (2 * normal_cdf(z) - 1) + 2 * density - 1 / mp.sqrt(mp.pi)))


@pytest.mark.parametrize("scale", SCALES)
def test_laplace(scale):
    family, s = Laplace(np.zeros(1), np.array([scale])), exact(scale)
    agree(family.std(), mp.sqrt(2) * s)
    for score in [*SCORES, 0.0, 1e-9, 1e6]:
        y = np.array([score * scale])
        z = exact(y[0]) / s
        agree(family.cdf(y), mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2)
        agree(family.log_prob(y), -abs(z) - mp.log(2 * s))
        agree(family.crps(y), s * (abs(z) + mp.exp(-abs(z)) - exact(3) / 4))


@pytest.mark.parametrize("scale", SCALES)
def test_cauchy(scale):
    family, s = Cauchy(np.zeros(1), np.array([scale])), exact(scale)
    for score in [*SCORES, 0.0, 1e-9, -1e9, 1e9]:
        y = np.array([score * scale])
        z = exact(y[0]) / s
        agree(family.cdf(y), mp.atan2(1, -z) / mp.pi)
        agree(family.log_prob(y), -mp.log(mp.pi * s * (1 + z**2)))
        agree(family.crps(y), s * (2 * z * mp.atan(z) - mp.log((1 + z**2) / 4)) / mp.pi)


@pytest.mark.parametrize("shape", [1e-8, 1e-3, 0.5, 1.0, 7.0, 40.0, 1e3, 1e5])
def test_gamma(shape):
    scale = 1e5
    family, k, s = Gamma(np.array([shape]), np.array([scale])), exact(shape), exact(scale)
    agree(family.mean(), k * s)
    agree(family.std(), mp.sqrt(k) * s)
    for score in SCORES:
        y = scale * (shape * np.exp(score) if shape < 100 else shape + score * np.sqrt(shape))
        z = exact(y) / s
        below = mp.gammainc(k, 0, z, regularized=True)
        log_mass = k * mp.log(z) - z - mp.loggamma(k + 1)
        beyond = below - mp.exp(log_mass)
        pairs = mp.exp(mp.loggamma(k + exact(1) / 2) - mp.loggamma(k)) / mp.sqrt(mp.pi)
        off = 2 * ROUNDING * (1 + np.sqrt(shape))  # z has half a unit in its last place
        agree(family.cdf(np.array([y])), below, 8 * off + float(1e-15 / below))  # scipy: 15 digits
        log_density = log_mass + mp.log(k) - mp.log(exact(y))
        agree(family.log_prob(np.array([y])), log_density, 8 * off)
        crps = z * (2 * below - 1) - k * (2 * beyond - 1) - pairs
        agree(family.crps(np.array([y])), s * crps, 8 * off + float(64 * ROUNDING * min(k, 1) / crps))


@pytest.mark.parametrize("c", [0.05, 0.2, 0.5, 1.0, 3.0, 9.99, 10.01, 50.0, 1e3, 1e5])
def test_weibull(c):
    """The CRPS is E|Y - y| - E|Y - Y'| / 2 = E|Y - y| - (E max - E min) / 2, with E min = 2^(-1 / c) E Y."""
    scale = 1e5
    family, power, s = Weibull(np.array([c]), np.array([scale])), 1 / exact(c), exact(scale)
    mean = s * mp.gamma(1 + power)
    agree(family.mean(), mean)
    agree(family.std(), mp.sqrt(s**2 * mp.gamma(1 + 2 * power) - mean**2))
    for p in (1e-9, 0.03, 0.5, 0.97, 1 - 1e-9):
        y = family.quantile(p)
        t = (exact(y[0]) / s) ** exact(c)
        off = 4 * ROUNDING * (1 + c)  # of t, from y / scale
        below = -mp.expm1(-t)
        agree(p, below, 1e-14 + off)
        agree(family.cdf(y), below, off)
        agree(family.log_prob(y), mp.log(exact(c) / s) + (exact(c) - 1) * mp.log(exact(y[0]) / s) - t, off)
        beyond = mean * mp.gammainc(1 + power, t, mp.inf, regularized=True)
        distance = beyond - exact(y[0]) * mp.exp(-t) + exact(y[0]) * below - (mean - beyond)
        least = mean * mp.mpf(2) ** -power
        agree(family.crps(y), distance - (2 * mean - 2 * least) / 2, 8 * off)


def test_the_crps_of_a_wide_weibull_is_finite_where_its_mean_is_not():
    """1 / c = 190: Gamma(191) is about 1e349, but the smaller of two has the mean 2^-190 Gamma(191), 1e292."""
    found = Weibull(np.array([1 / 190]), np.ones(1)).crps(np.ones(1))
    power = 1 / exact(1 / 190)
    agree(found, mp.gamma(1 + power) * exact(2) ** -power, 1e-12)


@pytest.mark.parametrize("x", [1e-300, 1e-8, 0.03, 0.0999, 0.1001, 0.5, 20.0, 1e6])
def test_ratios_of_moments_of_weibull_distributions(x):
    at = exact(x)
    agree(log_moment_ratio(np.array([x])), mp.loggamma(1 + 2 * at) - 2 * mp.loggamma(1 + at))


@pytest.mark.parametrize("df", [1e-8, 0.3, 1.0 + 1e-9, 1.01, 1.499, 1.5, 2.5, 30.0, 1e3, 1e6])
def test_student_t(df):
    family, n = StudentT(np.zeros(1), np.ones(1), np.array([df])), exact(df)
    if df > 2:
        agree(family.std(), mp.sqrt(n / (n - 2)))
    for score in SCORES:
        z = exact(score)
        log_density = mp.loggamma((n + 1) / 2) - mp.loggamma(n / 2) - mp.log(n * mp.pi) / 2
        log_density -= (n + 1) / 2 * mp.log1p(z**2 / n)
        tail = mp.betainc(n / 2, exact(1) / 2, 0, n / (n + z**2), regularized=True) / 2
        below = tail if score < 0 else 1 - tail
        agree(family.log_prob(np.array([score])), log_density)
        agree(family.cdf(np.array([score])), below, 1e-12)  # the accuracy of scipy
        if df > 1:
            pairs = (
                2 * mp.sqrt(n) / (n - 1) * mp.beta(exact(1) / 2, n - exact(1) / 2) / mp.beta(exact(1) / 2, n / 2) ** 2
            )
            crps = z * (2 * below - 1) + 2 * mp.exp(log_density) * (n + z**2) / (n - 1) - pairs
            agree(family.crps(np.array([score])), crps)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 1e5])
def test_mixture(scale):
    loc, width, weight = [-1.0, 0.5, 4.0], [scale, 2 * scale, 0.1 * scale], [0.5, 0.25, 0.25]
    family = Mixture(np.array([loc]), np.array([width]), np.array([weight]))
    parts = [tuple(map(exact, part)) for part in zip(loc, width, weight, strict=True)]

    def distance(away, deviation):
        z = away / deviation
        return away * (2 * normal_cdf(z) - 1) + 2 * deviation * mp.exp(-(z**2) / 2) / mp.sqrt(2 * mp.pi)

    mean = sum(w * m for m, _, w in parts)
    agree(family.std(), mp.sqrt(sum(w * (s**2 + (m - mean) ** 2) for m, s, w in parts)))
    for number in (-1.5, -1.0, 0.45, 3.9, 7.0):
        y = exact(number)
        crps = sum(w * distance(y - m, s) for m, s, w in parts)
        crps -= sum(w * v * distance(m - k, mp.hypot(s, t)) for m, s, w in parts for k, t, v in parts) / 2
        agree(family.crps(np.array([number])), crps)
        density = sum(w * mp.exp(-(((y - m) / s) ** 2) / 2) / s for m, s, w in parts) / mp.sqrt(2 * mp.pi)
        agree(family.log_prob(np.array([number])), mp.log(density))


@pytest.mark.parametrize("p", LEVELS)
def test_quantiles(p):
    """The formula of the distribution function gives p again, to within the error from rounding the quantile."""
    zero, scale = np.zeros(1), np.array([1e5])
    tolerance = 1e-14 * (1 + abs(np.log(p)) * 4)

    def of(family):
        return exact(float(family.quantile(p)[0]))

    z = of(Gaussian(zero, scale)) / exact(1e5)
    agree(p, normal_cdf(z), tolerance)
    z = of(Laplace(zero, scale)) / exact(1e5)
    agree(p, mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2, tolerance)
    z = of(Cauchy(zero, scale)) / exact(1e5)
    agree(p, mp.atan2(1, -z) / mp.pi, tolerance)
    for sigma in (1e-4, 1.0, 10.0):
        z = mp.log(of(LogNormal(zero, np.array([sigma])))) / exact(sigma)
        agree(p, normal_cdf(z), tolerance + 20 * ROUNDING / sigma)
    for shape in (0.5, 7.0, 1e4):
        z = of(Gamma(np.array([shape]), scale)) / exact(1e5)
        agree(p, mp.gammainc(exact(shape), 0, z, regularized=True), tolerance + 20 * ROUNDING * np.sqrt(shape))
    for df in (0.5, 3.0, 1e4):
        n, z = exact(df), of(StudentT(zero, np.ones(1), np.array([df])))
        tail = mp.betainc(n / 2, exact(1) / 2, 0, n / (n + z**2), regularized=True) / 2
        agree(p, tail if z < 0 else 1 - tail, 1e-12)


@pytest.mark.parametrize("k", [1e-8, 0.3, 0.999, 1.001, 15.9, 16.1, 17.0, 1e4, 1e15])
def test_errors_of_stirlings_formula(k):
    x = exact(k)
    left = mp.loggamma(x + 1) - (x + exact(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2
    half = mp.loggamma(x + exact(1) / 2) - mp.loggamma(x) - mp.log(x) / 2
    assert abs(stirling_error(np.array([k]))[0] - left) < 2e-14
    assert abs(log_half_step(np.array([k]))[0] - half) < 2e-14


@pytest.mark.parametrize("d", [-1.0, -0.5, -0.1001, -0.0999, -1e-9, 1e-12, 0.0999, 0.1001, 3.0, 1e9])
def test_rates_of_large_deviations(d):
    x = exact(d)
    agree(log_ratio_excess(np.array([d])), (1 + x) * mp.log1p(x) - x if d > -1 else exact(1))


def test_the_crps_of_a_wide_lognormal_is_finite_where_its_mean_is_not():
    """E exp(sigma Z) is e^800 for sigma = 40, but E|Y - Y'| / 2 - E(Y; Y < y) is of the size of e^400."""
    found = LogNormal(np.zeros(1), np.array([40.0])).crps(np.ones(1))
    s = exact(40)
    agree(found, -2 * mp.exp(s**2 / 2) * (normal_cdf(-s) - normal_cdf(-s / mp.sqrt(2))), 1e-12)
