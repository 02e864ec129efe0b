"""Counts, Gaussians, samples and independent targets agree with scipy, sums and independent integrals."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

from calcheck.distributions import CONVENTIONS, FAMILIES, Gaussian, Independent, Samples
from calcheck.distributions.count_families import DoublePoisson, NegativeBinomial, Poisson
from calcheck.errors import DataError, OptionError
from tests.helpers.families import example_parameters

GAMMA = np.array([0.07])
POINTS = np.array([[-1.0], [0.0], [2.5], [7.0]])
RATES = np.array([0.01, 0.7, 4.0, 30.0, 2000.0])


def double_poisson_masses(mu, phi):
    """Masses by their definition over 0 … 4,999, normalized by their sum; logs keep them finite."""
    k = np.arange(5000.0)
    log = special.xlogy(k, k) - k - special.gammaln(k + 1) + phi * (k + k * np.log(mu) - special.xlogy(k, k))
    mass = np.exp(log - log.max())
    return k, mass / mass.sum()


def double_poisson_peer(mu, phi):
    k, mass = double_poisson_masses(mu, phi)
    return stats.rv_discrete(values=(k, mass))


COUNTS = {
    "poisson": (Poisson(RATES), [stats.poisson(rate) for rate in RATES]),
    "nbinom": (
        NegativeBinomial(mu=np.array([0.3, 5.0, 40.0]), size=np.array([0.2, 3.0, 1e6])),
        [stats.nbinom(size, size / (size + mu)) for mu, size in ((0.3, 0.2), (5.0, 3.0), (40.0, 1e6))],
    ),
    "double-poisson": (
        DoublePoisson(mu=np.array([0.5, 8.0, 8.0, 60.0]), phi=np.array([3.0, 0.3, 1.0, 20.0])),
        [double_poisson_peer(mu, phi) for mu, phi in ((0.5, 3.0), (8.0, 0.3), (8.0, 1.0), (60.0, 20.0))],
    ),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_agree_with_reference_distributions(name):
    family, peers = COUNTS[name]
    assert_allclose(family.mean(), [peer.mean() for peer in peers], rtol=1e-8)
    assert_allclose(family.std(), [peer.std() for peer in peers], rtol=1e-8)
    for shift in (-1.5, -1.0, 0.0, 0.5, 2.0):
        y = np.floor(family.mean()) + shift
        assert_allclose(family.cdf(y), [peer.cdf(at) for peer, at in zip(peers, y, strict=True)], atol=1e-10)
        left = [peer.cdf(np.ceil(at) - 1) for peer, at in zip(peers, y, strict=True)]
        assert_allclose(family.cdf_left(y), left, atol=1e-10)
    for p in (1e-9, 0.03, 0.5, 0.97):
        assert_allclose(family.quantile(p), [peer.ppf(p) for peer in peers])


@pytest.mark.parametrize("name", COUNTS)
def test_kernel_means_of_counts_are_sums_over_the_support(name):
    family, peers = COUNTS[name]
    k = np.arange(5000.0)
    masses = np.array([peer.pmf(k) for peer in peers])
    expected = masses @ np.exp(-GAMMA * (k[:, None] - POINTS[:, 0]) ** 2)
    assert_allclose(family.kernel_mean(POINTS, GAMMA), expected, rtol=1e-8, atol=1e-12)
    near = k[:400]
    pairs = np.exp(-GAMMA * (near[:, None] - near) ** 2)
    for row, mass in enumerate(masses[:, :400]):
        if mass.sum() > 1 - 1e-12:
            assert_allclose(family.kernel_norm(GAMMA)[row], mass @ pairs @ mass, rtol=1e-8)


def test_a_double_poisson_with_phi_one_is_poisson():
    rates = np.array([0.4, 9.0])
    double, single = DoublePoisson(rates, np.ones(2)), Poisson(rates)
    assert_allclose(double.mean(), rates, rtol=1e-12)
    assert_allclose(double.kernel_mean(POINTS, GAMMA), single.kernel_mean(POINTS, GAMMA), rtol=1e-12)


def test_a_double_poisson_is_normalized():
    """mu = 0.5, phi = 3: the approximate normalizer is off by 0.754, and the variance is 0.278, not 0.167."""
    found = DoublePoisson(np.array([0.5]), np.array([3.0]))
    assert_allclose(found.std() ** 2, 0.278, atol=5e-4)
    assert_allclose(found.cdf(np.array([1e6])), 1, rtol=1e-12)
    approximate = 3**0.5 * np.exp(-1.5)  # P(0) = phi^(1/2) e^(-phi mu) without the sum
    assert_allclose(approximate / found.cdf(np.array([0.0])), 0.754, atol=5e-4)


def test_gaussian_agrees_with_scipy_and_with_integrals():
    loc, scale = np.array([0.0, 1.5]), np.array([0.3, 4.0])
    family = Gaussian(loc, scale)
    y = np.array([0.2, -3.0])
    assert_allclose(family.cdf(y), stats.norm(loc, scale).cdf(y), rtol=1e-12)
    assert_allclose(family.quantile(0.9), stats.norm(loc, scale).ppf(0.9), rtol=1e-12)
    for row in range(2):
        density = stats.norm(loc[row], scale[row]).pdf
        reach = (loc[row] - 9 * scale[row], loc[row] + 9 * scale[row])
        for column, point in enumerate(POINTS[:, 0]):
            expected, _ = integrate.quad(
                lambda u, p=point, f=density: np.exp(-GAMMA[0] * (p - u) ** 2) * f(u), *reach, epsabs=1e-13
            )
            assert_allclose(family.kernel_mean(POINTS, GAMMA)[row, column], expected, atol=1e-10)
        difference = stats.norm(0, scale[row] * 2**0.5).pdf  # Y - Y'
        expected, _ = integrate.quad(
            lambda u, f=difference: np.exp(-GAMMA[0] * u**2) * f(u), -9 * scale[row] * 2, 9 * scale[row] * 2
        )
        assert_allclose(family.kernel_norm(GAMMA)[row], expected, atol=1e-8)


def test_the_distribution_function_of_samples_by_hand():
    """Draws 1, 2, 2, 5 and y = 2: one below, three at or below, so F- = 1/5 and F = 4/5."""
    family = Samples(np.array([[1.0, 2.0, 2.0, 5.0]]))
    assert_allclose(family.cdf_left(np.array([2.0])), [0.2])
    assert_allclose(family.cdf(np.array([2.0])), [0.8])
    assert_allclose(family.mean(), [2.5])
    assert_allclose(family.std(), [np.sqrt(3)])
    assert_allclose(family.quantile(0.5), [2.0])


def test_kernel_means_of_samples_are_averages():
    """Two draws 0 and 2 at the point 1, gamma 1: both e^-1; norm (2 + 2 e^-4) / 4."""
    family = Samples(np.array([[0.0, 2.0]]))
    assert_allclose(family.kernel_mean(np.array([[1.0]]), np.array([1.0])), [[np.exp(-1)]])
    assert_allclose(family.kernel_norm(np.array([1.0])), [(2 + 2 * np.exp(-4)) / 4])


def test_one_draw_has_no_standard_deviation():
    with pytest.raises(DataError, match="no standard deviation"):
        Samples(np.zeros((3, 1))).std()


def test_draws_are_chosen_without_replacement():
    family = Samples(np.arange(12.0).reshape(3, 4))
    chosen = family.sample(np.random.default_rng(0), 4)
    assert_allclose(np.sort(chosen, axis=1), family.draws)
    with pytest.raises(OptionError, match="4 saved samples per row, got 5"):
        family.sample(np.random.default_rng(0), 5)


@pytest.mark.parametrize(
    "family",
    [
        Gaussian(np.array([2.0]), np.array([0.5])),
        Poisson(np.array([3.0])),
        NegativeBinomial(mu=np.array([3.0]), size=np.array([1.5])),
        DoublePoisson(np.array([3.0]), np.array([0.4])),
    ],
    ids=lambda family: family.family,
)
def test_draws_follow_the_distribution(family):
    """A Kolmogorov distance of 100,000 draws is below 0.005 with probability 1 - 1e-2 (continuous), more for counts."""
    draws = family.sample(np.random.default_rng(0), 100_000)[0]
    for y in np.quantile(draws, [0.05, 0.3, 0.6, 0.95]):
        share = np.mean(draws <= y)
        assert_allclose(family.cdf(np.array([y])), share, atol=0.006)


def test_independent_marginals_multiply():
    one, two = Gaussian(np.array([0.0]), np.array([1.0])), Poisson(np.array([2.0]))
    joint = Independent((one, two))
    points, gamma = np.array([[0.5, 1.0], [1.0, 3.0]]), np.array([0.3, 0.2])
    expected = one.kernel_mean(points[:, :1], gamma[:1]) * two.kernel_mean(points[:, 1:], gamma[1:])
    assert_allclose(joint.kernel_mean(points, gamma), expected)
    assert joint.targets == 2
    assert joint.sample(np.random.default_rng(0), 5).shape == (1, 5, 2)
    assert joint.mean().shape == joint.std().shape == joint.quantile(0.5).shape == (1, 2)
    assert joint.cdf(np.array([[0.0, 2.0]])).shape == joint.cdf_left(np.array([[0.0, 2.0]])).shape == (1, 2)


def test_conventions_of_the_negative_binomial_have_their_moments():
    """scipy and torch: n = 4, p = 0.4; statsmodels: var = mu + alpha mu^2; PyMC: var = mu + mu^2 / alpha."""
    one = np.ones(1)
    scipy = CONVENTIONS["nbinom:scipy"](n=4 * one, p=0.4 * one)
    torch = CONVENTIONS["nbinom:torch"](total_count=4 * one, probs=0.6 * one)
    for family in (scipy, torch):
        assert_allclose(family.mean(), stats.nbinom(4, 0.4).mean())
        assert_allclose(family.std(), stats.nbinom(4, 0.4).std())
    assert_allclose(CONVENTIONS["nbinom:mu-alpha"](mu=6 * one, alpha=0.5 * one).std() ** 2, 6 + 0.5 * 36)
    assert_allclose(CONVENTIONS["nbinom:pymc"](mu=6 * one, alpha=0.5 * one).std() ** 2, 6 + 36 / 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(np.zeros(3), np.array([1.0, 0.0, -1.0])), r"std must be positive, but 2 of 3 .*rows 1, 2"),
        (lambda: Gaussian(np.array([np.nan]), np.ones(1)), "mean must be finite"),
        (lambda: Poisson(np.array([-1.0])), "rate must be positive"),
        (lambda: NegativeBinomial(np.ones(1), np.zeros(1)), "size must be positive"),
        (lambda: DoublePoisson(np.ones(1), np.array([np.inf])), "phi must be finite"),
        (lambda: CONVENTIONS["nbinom:torch"](total_count=np.ones(1), probs=np.ones(1)), "probs must be strictly"),
        (lambda: CONVENTIONS["nbinom:mu-alpha"](mu=np.ones(1), alpha=np.zeros(1)), "alpha must be positive"),
        (lambda: Samples(np.array([[np.inf]])), "samples must be finite"),
        (lambda: Samples(np.zeros((3, 0))), r"at least one draw per row, got shape \(3, 0\)"),
        (lambda: Samples(np.zeros(3)), r"rows by draws.*got shape \(3,\)"),
        (lambda: Gaussian(np.zeros(3), np.ones(2)), r"differ in shape: loc \(3,\), scale \(2,\)"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_supports_too_large_to_sum_are_refused():
    with pytest.raises(DataError, match=r"poisson distribution with mean 1e\+15 spreads .*Gaussian"):
        Poisson(np.array([1.0, 1e15])).kernel_mean(POINTS, GAMMA)


def test_rows_can_be_selected_and_joined():
    family = NegativeBinomial(mu=np.array([1.0, 2.0, 3.0]), size=np.array([1.0, 1.0, 2.0]))
    back = family.take(slice(0, 1)).join([family.take(np.array([1, 2]))])
    assert_allclose(back.mean(), family.mean())
    joint = Independent((family, family))
    assert_allclose(joint.take(slice(0, 1)).join([joint.take(slice(1, 3))]).mean(), joint.mean())


@pytest.mark.parametrize("spelling", CONVENTIONS)
def test_conventions_create_their_family_and_are_listed_with_it(spelling):
    convention = CONVENTIONS[spelling]
    made = convention(**example_parameters(convention, {"probs": 0.5, "p": 0.5}))
    assert made.family == convention.family
    assert len(made) == 2
    assert convention in FAMILIES[convention.family]


def test_names_of_families_are_known_without_numpy():
    code = "import sys, calcheck.io.column_names; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_counts_are_accurate_for_extreme_parameters():
    """Masses against 40-digit arithmetic; a large size is nearly Poisson, a large phi nearly a point."""
    import mpmath as mp

    for mu, size in ((100.0, 1e8), (1e4, 1e9), (1e6, 1e12), (5.0, 0.01)):
        family = NegativeBinomial(np.array([mu]), np.array([size]))
        _, k, mass = next(family.masses())
        with mp.workdps(40):
            for place in np.linspace(0, len(k) - 1, 7).astype(int):
                at, m, s = mp.mpf(k[place]), mp.mpf(mu), mp.mpf(size)
                log = mp.loggamma(at + s) - mp.loggamma(s) - mp.loggamma(at + 1)
                exact = mp.exp(log + s * mp.log(s / (s + m)) + at * mp.log(m / (s + m)))
                assert_allclose(mass[0, place], float(exact), rtol=1e-7, atol=1e-14)
    nearly = DoublePoisson(np.array([10.5, 0.5, 1000.5]), np.array([1e5, 1e4, 1e7]))
    assert np.isfinite(nearly.mean()).all()
    assert np.isfinite(nearly.std()).all()


@pytest.mark.parametrize("name", COUNTS)
def test_log_probabilities_and_jumps_of_counts_agree_with_reference_distributions(name):
    family, peers = COUNTS[name]
    for shift in (-3.0, 0.0, 1.0, 40.0):
        y = np.maximum(np.floor(family.mean()) + shift, 0)
        expected = [peer.logpmf(at) for peer, at in zip(peers, y, strict=True)]
        assert_allclose(family.log_prob(y), expected, rtol=1e-8, atol=1e-8)
        left, right = family.cdf_limits(y)
        assert_allclose(left, family.cdf_left(y), atol=1e-14)
        assert_allclose(right, family.cdf(y), atol=1e-14)


@pytest.mark.parametrize("name", COUNTS)
def test_crps_of_counts_is_the_sum_of_squares_over_the_support(name):
    """Also if the target is beyond the support."""
    family, peers = COUNTS[name]
    k = np.arange(5000.0)
    for shift in (-2.0, 0.0, 3.0, 200.0):
        y = np.maximum(np.floor(family.mean()) + shift, 0)
        below = np.array([peer.cdf(k) for peer in peers])
        expected = np.sum((below - (k >= y[:, None])) ** 2, axis=1)
        assert_allclose(family.crps(y), expected, rtol=1e-8, atol=1e-10)


def test_gaussian_scores_agree_with_scipy_and_integrals():
    predictive = Gaussian(np.array([0.0, 3.0]), np.array([1.0, 0.2]))
    y = np.array([-1.3, 3.1])
    assert_allclose(predictive.log_prob(y), stats.norm(predictive.loc, predictive.scale).logpdf(y), rtol=1e-13)
    for row in range(2):
        peer = stats.norm(predictive.loc[row], predictive.scale[row])
        below = integrate.quad(lambda u, peer=peer: peer.cdf(u) ** 2, -20, y[row], points=[0, 3], limit=200)[0]
        above = integrate.quad(lambda u, peer=peer: peer.sf(u) ** 2, y[row], 20, points=[0, 3.2], limit=200)[0]
        assert_allclose(predictive.crps(y)[row], below + above, rtol=1e-8)
    left, right = predictive.cdf_limits(y)
    assert left is right


def test_crps_of_samples_agrees_with_mean_distances():
    rng = np.random.default_rng(0)
    draws, y = rng.normal(size=(6, 5)), rng.normal(size=6)
    distance = np.abs(draws - y[:, None]).mean(axis=1)
    pairs = np.abs(draws[:, :, None] - draws[:, None, :]).sum(axis=(1, 2))
    assert_allclose(Samples(draws).crps(y), distance - pairs / 50, rtol=1e-12)
    assert_allclose(Samples(draws).fair_crps(y), distance - pairs / 40, rtol=1e-12)
    with pytest.raises(DataError, match="fair"):
        Samples(draws[:, :1]).fair_crps(y)
    with pytest.raises(DataError, match="density"):
        Samples(draws).log_prob(y)


def test_intervals_between_draws_contain_another_draw_with_their_mass():
    """Of 40,000 rows, within four standard errors: [x_(2), x_(6)] of 7 draws contains 4 of 8 gaps."""
    values = np.random.default_rng(0).exponential(size=(40_000, 8))
    draws = Samples(values[:, 1:])
    low, high = draws.quantile(2 / 7), draws.quantile(6 / 7)
    assert_allclose(draws.interval_mass(low, high), 0.5)
    assert abs(np.mean((low <= values[:, 0]) & (values[:, 0] <= high)) - 0.5) < 4 * 0.5 / 200
    assert not draws.interval_mass_error(values[:, 0], low, high).any()
    tied = Samples(np.array([[1.0, 2.0, 4.0], [3.0, 3.0, 5.0], [1.0, 2.0, 4.0]]))
    ends = np.array([1.0, 3.0, 1.0]), np.array([4.0, 5.0, 4.0])
    assert_allclose(tied.interval_mass_error(np.array([0.0, 0.0, 2.0]), *ends), [0, 1 / 4, 2 / 4])


def test_independent_targets_have_separate_scores():
    first, second = Gaussian(np.zeros(2), np.ones(2)), Gaussian(np.ones(2), np.full(2, 0.5))
    both, y = Independent((first, second)), np.array([[0.1, 0.2], [1.0, 3.0]])
    assert_allclose(both.log_prob(y), np.stack([first.log_prob(y[:, 0]), second.log_prob(y[:, 1])], axis=1))
    assert_allclose(both.crps(y), np.stack([first.crps(y[:, 0]), second.crps(y[:, 1])], axis=1))


def test_scipy_loads_without_parts_of_numpy_that_it_does_not_use():
    """They take half of its time; NumPy lists them again afterwards, and they can be imported."""
    code = """if True:
        import sys, numpy
        from calcheck.core import sc
        listed = set(numpy.__all__)
        assert sc.ndtr(0.0) == 0.5
        assert not {"numpy.f2py", "numpy.testing"} & set(sys.modules)
        assert listed == set(numpy.__all__) and {"f2py", "testing"} <= set(dir(numpy))
        import numpy.testing, scipy.stats
        assert numpy.polynomial.legendre.leggauss(1)[1] == 2
    """
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
