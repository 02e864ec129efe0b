"""Counts that spread over many values are not summed; the methods used instead agree with the sums.

The sums here run over all values, with masses from the ratios of neighbors: f(k + 1) / f(k).
"""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions.count_base import WIDE_FROM, Counts
from calcheck.distributions.count_families import DoublePoisson, NegativeBinomial, Poisson
from calcheck.distributions.positive import Gamma
from calcheck.errors import DataError

ERROR = 1e-8
SCORES = (-3.0, -1.0, 0.0, 0.5, 4.0)


def poisson(rate):
    return Poisson(np.array([rate])), lambda k: np.log(rate) - np.log(k + 1)


def nbinom(mu, size):
    log_failure = -np.log1p(size / mu)
    return NegativeBinomial(np.array([mu]), np.array([size])), lambda k: np.log((k + size) / (k + 1)) + log_failure


def double_poisson(mu, phi):
    def log_ratio(k):
        growth = k * np.log1p(1 / np.maximum(k, 0.5))
        return growth - 1 + phi * (1 + np.log(mu / (k + 1)) - growth)

    return DoublePoisson(np.array([mu]), np.array([phi])), log_ratio


CASES = {
    "poisson, a little above the switch": poisson(1.01e4),
    "poisson": poisson(2.5e7),
    "nbinom, a little above the switch": nbinom(2000.3, 400.0),
    "nbinom, with a mode at 0": nbinom(2000.0, 0.5),
    "nbinom, nearly poisson": nbinom(1.1e4, 1e12),
    "nbinom, so narrow that it is nearly normal": nbinom(1.2e10, 1e20),
    "double poisson, a little above the switch": double_poisson(2.1e4, 2.0),
    "double poisson": double_poisson(1e8, 3.0),
    "double poisson, extremely skewed": double_poisson(1.05e4, 0.0101),
}


@pytest.fixture(scope="module")
def masses_of():
    """Return a function that computes the relevant values of a case and their masses, once per case."""
    known = {}

    def masses(name):
        if name not in known:
            family, log_ratio = CASES[name]
            center, spread = float(family.mean()[0]), float(family.spread()[0])
            k = np.arange(
                max(np.floor(center - 10 * spread), 0), np.ceil(center + (10 if center > spread else 60) * spread)
            )
            log = np.concatenate([[0.0], np.cumsum(log_ratio(k[:-1]))])
            mass = np.exp(log - log.max())
            known[name] = k, mass / mass.sum()
        return known[name]

    return masses


def at(family):
    """Return some counts around the center."""
    values = np.floor(family.mean()[0] + np.array(SCORES) * family.spread()[0])
    return np.maximum(values, 0)


@pytest.mark.parametrize("name", CASES)
def test_all_cases_are_wide(name):
    family, _ = CASES[name]
    assert family.spread()[0] > WIDE_FROM
    assert family.is_wide().all()


@pytest.mark.parametrize("name", CASES)
def test_distribution_functions_and_scores_equal_the_sums(name, masses_of):
    family, _ = CASES[name]
    k, mass = masses_of(name)
    below = np.cumsum(mass)
    for y in at(family):
        left, right = family.cdf_limits(np.array([y]))
        assert_allclose(right[0], mass[k <= y].sum(), atol=ERROR)
        assert_allclose(left[0], mass[k < y].sum(), atol=ERROR)
        assert_allclose(family.cdf(np.array([y + 0.5])), right)
        assert_allclose(family.cdf_left(np.array([y])), left, atol=ERROR)
        assert_allclose(family.log_prob(np.array([y]))[0], np.log(mass[k == y][0]), atol=ERROR)
        score = np.sum(below[k < y] ** 2) + np.sum((1 - below[k >= y]) ** 2)
        assert_allclose(family.crps(np.array([y]))[0], score, rtol=ERROR)


@pytest.mark.parametrize("name", CASES)
def test_moments_and_quantiles_equal_the_sums(name, masses_of):
    family, _ = CASES[name]
    k, mass = masses_of(name)
    mean = mass @ k
    assert_allclose(family.mean()[0], mean, rtol=ERROR)
    assert_allclose(family.std()[0], np.sqrt(mass @ (k - mean) ** 2), rtol=ERROR)
    below = np.cumsum(mass)
    for p in (0.001, 0.05, 0.5, 0.9, 0.999):
        found = family.quantile(p)[0]
        assert abs(found - k[np.searchsorted(below, p)]) <= (found > 1e9)  # a mass there is as small as the error


LENGTHS = (30.0, 3e3, 1e6)
SMOOTH = [(name, length) for name, (family, _) in CASES.items() if family.smooth() for length in LENGTHS]


@pytest.mark.parametrize(("name", "length"), [case for case in SMOOTH if CASES[case[0]][0].spread()[0] < 3e3 * case[1]])
def test_kernel_means_equal_the_sums(name, length, masses_of):
    family, _ = CASES[name]
    k, mass = masses_of(name)
    points = at(family)[:, None]
    gamma = np.array([0.5 / length**2])
    expected = [mass @ np.exp(-gamma * (k - point) ** 2) for point in points[:, 0]]
    assert_allclose(family.kernel_mean(points, gamma)[0], expected, rtol=1e-9, atol=1e-15)
    if len(k) < 1 << 18:
        spectrum = np.abs(np.fft.rfft(mass, 2 * len(k))) ** 2
        lags = np.arange(len(k))
        weights = np.exp(-gamma * lags**2) * np.where(lags == 0, 1, 2)
        norm = np.fft.irfft(spectrum, 2 * len(k))[: len(k)] @ weights
        assert_allclose(family.kernel_norm(gamma)[0], norm, rtol=1e-9)


@pytest.mark.parametrize(("mu", "size"), [(500.0, 0.05), (1e4, 0.5), (2000.0, 3.0), (1e5, 40.0), (1e6, 300.0)])
def test_mean_differences_of_negative_binomials_are_hypergeometric(mu, size):
    """E|Y - Y'| / 2 is mu / p 2F1(size + 1, 1/2; 2; -4 (1 - p) / p^2) (G. Wei and L. Held, Test 2014)."""
    with mp.workdps(50):
        r, p = mp.mpf(size), mp.mpf(size) / (mp.mpf(size) + mp.mpf(mu))
        expected = mu / p * mp.hyp2f1(r + 1, 0.5, 2, -4 * (1 - p) / p**2)
        assert_allclose(NegativeBinomial(np.array([mu]), np.array([size])).wide_pairs()[0], float(expected), rtol=1e-12)


@pytest.mark.parametrize("rate", [1e4, 1e8, 1e15])
def test_mean_differences_of_poisson_distributions_are_bessel_functions(rate):
    with mp.workdps(50):
        argument = 2 * mp.mpf(rate)
        if rate < 1e6:
            bessel = mp.exp(-argument) * (mp.besseli(0, argument) + mp.besseli(1, argument))
        else:  # Hankel's expansion
            bessel = (2 - 1 / (4 * argument) - 3 / (64 * argument**2)) / mp.sqrt(2 * mp.pi * argument)
        assert_allclose(Poisson(np.array([rate])).wide_pairs()[0], float(rate * bessel), rtol=1e-14)


def test_wide_and_narrow_rows_can_be_mixed():
    rates = np.array([3.0, 1e8, 40.0, 1e15, 1e4])
    family, y = Poisson(rates), np.floor(rates + np.sqrt(rates))
    alone = [Poisson(rates[i : i + 1]) for i in range(len(rates))]
    for function in ("cdf", "cdf_left", "log_prob", "crps"):
        expected = [getattr(one, function)(y[i : i + 1])[0] for i, one in enumerate(alone)]
        assert_allclose(getattr(family, function)(y), expected, rtol=1e-12)
    assert_allclose(
        family.cdf_limits(y), np.stack([one.cdf_limits(y[i : i + 1]) for i, one in enumerate(alone)], axis=1)[..., 0]
    )
    assert_allclose(family.quantile(0.8), [one.quantile(0.8)[0] for one in alone])
    points, gamma = y[:, None], np.array([1e-14])
    assert_allclose(family.kernel_mean(points, gamma), [one.kernel_mean(points, gamma)[0] for one in alone])
    assert_allclose(family.kernel_norm(gamma), [one.kernel_norm(gamma)[0] for one in alone])


@pytest.mark.parametrize("method", ["wide_below", "wide_shortfall", "wide_pairs"])
def test_families_without_closed_forms_use_sums(method):
    family, y = Poisson(np.array([0.7, 8.0, 900.0])), np.array([1.0, 5.0, 910.0])
    arguments = () if method == "wide_pairs" else (y,)
    assert_allclose(getattr(Counts, method)(family, *arguments), getattr(family, method)(*arguments), rtol=1e-11)


def test_wide_double_poisson_distributions_are_drawn_by_inversion():
    family = CASES["double poisson"][0]
    levels = np.array([[1e-9, 0.01, 0.37, 0.5, 0.83, 0.999, 1 - 1e-9]])
    expected = [family.quantile(float(level))[0] for level in levels[0]]
    assert_allclose(family.wide_quantiles(levels)[0], expected, atol=1)
    drawn = family.sample(np.random.default_rng(0), 4000)
    assert abs(drawn.mean() - 1e8) < 4 * family.std()[0] / np.sqrt(4000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Poisson(np.array([1.0, 1e19])), "rate must be at most 2^53"),
        (lambda: NegativeBinomial(np.array([1e19]), np.ones(1)), "mean must be at most 2^53"),
        (lambda: NegativeBinomial(np.ones(1), np.array([1e-300])), "size must be at least 1e-75"),
        (lambda: DoublePoisson(np.ones(1), np.array([1e300])), "phi must be at most 1e+75"),
    ],
)
def test_counts_beyond_the_float_range_are_refused(make, message):
    with pytest.raises(DataError, match=message.replace("^", r"\^").replace("+", r"\+")):
        make()


def lower_tail(shape, x):
    """Return the probability below x of a gamma distribution of scale 1: x^a e^-x / Gamma(a + 1) sum_n x^n / (a + 1)_n.

    The sum is at least 1, and its terms are from ratios in extended precision.
    """
    with mp.workdps(40):
        first = mp.exp(-mp.mpf(x) + mp.mpf(shape) * mp.log(x) - mp.loggamma(mp.mpf(shape) + 1))
        steps = np.arange(1, int(14 * np.sqrt(shape)), dtype=np.longdouble)
        logs = np.cumsum(np.log(np.longdouble(x) / (np.longdouble(shape) + steps)))
        return float(first * (1 + mp.mpf(float(np.exp(logs).sum()))))


@pytest.mark.parametrize("shape", [1e5, 1e6, 1e8])
@pytest.mark.parametrize("below", [3.9, 4.1, 5.0, 8.0, 20.0])
def test_the_lower_tail_of_a_large_shape_agrees_with_its_series(shape, below):
    """scipy 1.17 is off by a third at a shape of 1e8, five standard deviations below the mean."""
    x = shape - below * np.sqrt(shape)
    found = Gamma(np.array([shape]), np.array([2.0])).cdf(np.array([2.0 * x]))
    assert_allclose(found, lower_tail(shape, x), rtol=1e-9)


@pytest.mark.parametrize("rate", [1e6, 1e7, 1e8])
@pytest.mark.parametrize("above", [3.0, 4.7, 5.0, 6.0])
def test_the_upper_tail_of_a_large_rate_agrees_with_the_series(rate, above):
    """P(Y > k) = P(k + 1, rate). The tail is 1 less the probability below, which is rounded to 1e-16."""
    k = np.floor(rate + above * np.sqrt(rate))
    found = 1 - Poisson(np.array([rate])).cdf(np.array([k]))
    assert_allclose(found, lower_tail(k + 1, rate), rtol=1e-9, atol=3e-16)


def test_a_tail_beyond_five_standard_deviations_has_the_known_value():
    found = 1 - Poisson(np.array([1e8])).cdf(np.array([1e8 + 5e4]))
    assert_allclose(found, 2.872e-7, rtol=2e-4)
