"""Continuous families, mixtures and quantiles agree with scipy and with independent integrals."""

# ruff: noqa: B023 - integrands are used in the loop that defines them

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize, special, stats

from calcheck.distributions import CONVENTIONS, Gaussian, Independent, Quantiles, Samples
from calcheck.distributions.continuous import Cauchy, Laplace, StudentT
from calcheck.distributions.count_families import DoublePoisson, NegativeBinomial, Poisson
from calcheck.distributions.mixture import Mixture
from calcheck.distributions.positive import Gamma, LogNormal, Weibull
from calcheck.errors import DataError, ValuesError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions
from tests.helpers import naive
from tests.helpers.families import calibrated
from tests.helpers.simulations import pairs, slow


def arrays(*values):
    return [np.array(value, dtype=float) for value in values]


class MixturePeer:
    """A mixture with the methods of scipy.stats, summed over its components."""

    def __init__(self, loc, scale, weight):
        self.parts, self.weight = [stats.norm(*pair) for pair in zip(loc, scale, strict=True)], weight

    def _sum(self, method, y):
        return sum(w * getattr(part, method)(y) for part, w in zip(self.parts, self.weight, strict=True))

    def pdf(self, y):
        return self._sum("pdf", y)

    def logpdf(self, y):
        return np.log(self.pdf(y))

    def cdf(self, y):
        return self._sum("cdf", y)

    def sf(self, y):
        return self._sum("sf", y)

    def ppf(self, p):
        found = [
            optimize.brentq(lambda y, level=level: self.cdf(y) - level, -50, 50, xtol=1e-14) for level in np.ravel(p)
        ]
        return np.reshape(found, np.shape(p))

    def isf(self, p):
        return optimize.brentq(lambda y: np.log(self.sf(y) / p), -50, 30, xtol=1e-14)

    def mean(self):
        return sum(w * part.mean() for part, w in zip(self.parts, self.weight, strict=True))

    def std(self):
        return np.sqrt(
            sum(w * part.moment(2) for part, w in zip(self.parts, self.weight, strict=True)) - self.mean() ** 2
        )


LOC, SCALE, DF = arrays([0.0, 1.5, -40.0], [0.3, 4.0, 0.01], [2.5, 7.0, 250.0])
MIX = [[0.0, 3.0], [1.0, 1.2]], [[1.0, 0.1], [2.0, 0.5]], [[0.3, 0.7], [0.9, 0.1]]
CONTINUOUS = {
    "laplace": (Laplace(LOC, SCALE), [stats.laplace(*pair) for pair in zip(LOC, SCALE, strict=True)]),
    "student-t": (StudentT(LOC, SCALE, DF), [stats.t(df, m, s) for m, s, df in zip(LOC, SCALE, DF, strict=True)]),
    "cauchy": (Cauchy(LOC, SCALE), [stats.cauchy(*pair) for pair in zip(LOC, SCALE, strict=True)]),
    "lognormal": (
        CONVENTIONS["lognormal:scipy"](s=np.array([0.05, 0.7, 2.0]), scale=np.array([3.0, 1.0, 0.2])),
        [stats.lognorm(s, scale=scale) for s, scale in ((0.05, 3.0), (0.7, 1.0), (2.0, 0.2))],
    ),
    "gamma": (
        CONVENTIONS["gamma:scipy"](a=np.array([0.5, 3.0, 900.0]), scale=np.array([2.0, 0.7, 0.1])),
        [stats.gamma(a, scale=scale) for a, scale in ((0.5, 2.0), (3.0, 0.7), (900.0, 0.1))],
    ),
    "weibull": (
        CONVENTIONS["weibull:scipy"](c=np.array([0.6, 3.0, 50.0]), scale=np.array([2.0, 0.7, 30.0])),
        [stats.weibull_min(c, scale=scale) for c, scale in ((0.6, 2.0), (3.0, 0.7), (50.0, 30.0))],
    ),
    "mixture": (Mixture(*arrays(*MIX)), [MixturePeer(*row) for row in zip(*MIX, strict=True)]),
}
every_continuous = pytest.mark.parametrize("name", CONTINUOUS)


def at_levels(peers, p):
    return np.array([peer.ppf(p) for peer in peers])


def integral(peer, of, places):
    """Integrate of(y) times a density, piecewise between places, by 100 Gauss-Legendre nodes each."""
    low, high = peer.ppf(1e-13), peer.isf(1e-13)
    levels = [*np.geomspace(1e-12, 0.01, 11), 0.05, 0.3, 0.5]  # for densities with poles or heavy tails
    ends = [end(level) for level in levels for end in (peer.ppf, peer.isf)]
    edges = np.unique(np.clip([low, *ends, *places, high], low, high))
    nodes, weights = np.polynomial.legendre.leggauss(100)
    half = np.diff(edges)[:, None] / 2
    y = (edges[:-1, None] + half * (1 + nodes)).ravel()
    return np.sum((half * weights).ravel() * of(y) * peer.pdf(y))


@every_continuous
def test_continuous_families_agree_with_scipy(name):
    family, peers = CONTINUOUS[name]
    for p in (1e-9, 0.03, 0.3, 0.5, 0.97, 1 - 1e-9):
        assert_allclose(family.quantile(p), at_levels(peers, p), rtol=2e-7 if p > 0.999 else 1e-9, atol=1e-11)
        y = family.quantile(p)
        assert_allclose(family.cdf(y), p, rtol=1e-9)
        assert_allclose(
            family.log_prob(y), [peer.logpdf(at) for peer, at in zip(peers, y, strict=True)], rtol=1e-8, atol=1e-12
        )
        left, right = family.cdf_limits(y)
        assert left is right
        assert_allclose(family.cdf_left(y), right, rtol=1e-15)
    assert_allclose(family.median(), at_levels(peers, 0.5), rtol=1e-9, atol=1e-12)
    assert_allclose(np.stack(family.support_interval(0.1)), [at_levels(peers, 0.1), at_levels(peers, 0.9)], rtol=1e-9)
    if name != "cauchy":
        assert_allclose(family.mean(), [peer.mean() for peer in peers], rtol=1e-8, atol=1e-10)
        assert_allclose(family.std(), [peer.std() for peer in peers], rtol=1e-7)


@every_continuous
def test_densities_are_the_slopes_of_the_distribution_function(name):
    """Central differences with steps of 1e-5 scales: an error of 1e-10, and 1e-11 of rounding."""
    family, _ = CONTINUOUS[name]
    for p in (0.1, 0.4, 0.8):
        y = family.quantile(p)
        step = 1e-5 * (family.quantile(0.75) - family.quantile(0.25))
        slope = (family.cdf(y + step) - family.cdf(y - step)) / (2 * step)
        assert_allclose(np.exp(family.log_prob(y)), slope, rtol=1e-6)


@every_continuous
def test_draws_follow_the_distribution_function(name):
    """Kolmogorov's distance of 50,000 draws exceeds 0.0087 with probability 1e-3."""
    family, _ = CONTINUOUS[name]
    draws = family.sample(np.random.default_rng(0), 50_000)
    assert draws.shape == (len(family), 50_000)
    for row, values in enumerate(draws):
        part = family.take(np.full(len(values), row))
        assert stats.kstest(part.cdf(values), "uniform").statistic < 0.0087


def test_the_crps_of_a_cauchy_distribution_is_finite():
    """With u = -cot(a), F = a / pi: the integrals of F^2 and (1 - F)^2 are of (a / sin a)^2 / pi^2, which is smooth."""
    family, z = Cauchy(*arrays([1.0, 1.0], [2.0, 0.5])), np.array([0.7, -30.0])
    angle = np.arctan(z) + np.pi / 2
    for row, ends in enumerate(zip(angle, np.pi - angle, strict=True)):
        squares = sum(integrate.quad(lambda a: 1 / np.sinc(a / np.pi) ** 2, 0, end, epsabs=1e-12)[0] for end in ends)
        found = family.crps(family.loc + family.scale * z)[row]
        assert_allclose(found, family.scale[row] * squares / np.pi**2, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name != "cauchy"])
def test_crps_is_the_integral_of_squared_differences(name):
    family, peers = CONTINUOUS[name]
    heavy = name == "student-t"
    for p in (0.01, 0.5, 0.9):
        y = family.quantile(p)
        for row, peer in enumerate(peers):
            edges = [peer.ppf(level) for level in (1e-12, 1e-6, 0.01, 0.3, 0.7, 0.99, 1 - 1e-6)]
            far = np.inf if heavy else peer.isf(1e-12)
            edges = np.unique([-np.inf if heavy else edges[0], *edges, y[row], far])
            pieces = pairwise(edges)
            expected = sum(
                integrate.quad(
                    lambda u, peer=peer: peer.cdf(u) ** 2 if u < y[row] else peer.sf(u) ** 2,
                    *pair,
                    epsabs=1e-12,
                    limit=200,
                )[0]
                for pair in pieces
            )
            assert_allclose(family.crps(y)[row], expected, rtol=1e-7)


@pytest.mark.parametrize(("name", "width"), pairs(CONTINUOUS, [1e-2, 1.0, 30.0], 3))
def test_kernel_means_are_integrals(name, width):
    """``width`` is the interquartile range in 1 / sqrt(gamma), from very wide to very narrow kernels."""
    family, peers = CONTINUOUS[name]
    for row, peer in enumerate(peers):
        low, middle, high = peer.ppf([0.25, 0.5, 0.75])
        gamma = np.array([(width / (high - low)) ** 2])
        reach = 1 / np.sqrt(gamma[0])
        points = np.array([low - 2 * reach, low, middle, high, high + 0.7 * reach, middle + 6 * (high - low)])
        one = family.take(slice(row, row + 1))
        found = one.kernel_mean(points[:, None], gamma)[0]
        for point, value in zip(points, found, strict=True):
            places = point + reach * np.array([-6, -3, -1, 0, 1, 3, 6])
            expected = integral(peer, lambda y, p=point: np.exp(-gamma[0] * (y - p) ** 2), places)
            assert_allclose(value, expected, atol=2e-9)
        # E k(Y, Y') is the mean of the kernel mean, compared above
        places = [middle + reach * far for far in (-6, -3, -1, 0, 1, 3, 6)]
        embedded = lambda y, one=one: one.kernel_mean(y[:, None], gamma)[0]  # noqa: E731
        assert_allclose(one.kernel_norm(gamma)[0], integral(peer, embedded, places), atol=5e-9)
    varied = family.kernel_mean(np.array([[0.5], [0.5]]), np.array([[0.2], [3.0]]))  # one gamma per row
    for column, gamma in enumerate((0.2, 3.0)):
        assert_allclose(varied[:, column], family.kernel_mean(np.array([[0.5]]), np.array([gamma]))[:, 0], atol=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 0.009, 0.0101, 1.0, 1e4])
def test_kernel_means_of_laplace_are_accurate_at_any_scale(scale):
    """Against the integrals over one side, in units of the scale; gamma 1, so A = 1 / (2 scale) up to 5e8."""
    family, gamma = Laplace(np.zeros(1), np.array([scale])), np.array([1.0])
    for point in (0.0, 0.7, -3.0, 40.0):
        places = sorted({0.0, 1.0, 6.0, 40.0, *(abs(point + far) / scale for far in (-6, -1, 0, 1, 6))})
        pieces = [pair for pair in pairwise(places) if pair[0] < 800]
        expected = sum(
            integrate.quad(
                lambda u, s=side: np.exp(-u - (s * u * scale - point) ** 2) / 2, *pair, epsabs=1e-14, limit=200
            )[0]
            for side in (-1, 1)
            for pair in pieces
        )
        assert_allclose(family.kernel_mean(np.array([[point]]), gamma)[0, 0], expected, atol=1e-11)
    ends = sorted({0.0, 1.0, 6.0, 60.0, *(far / scale for far in (1, 6))})
    expected = sum(
        integrate.quad(lambda u: (1 + u) * np.exp(-u - (u * scale) ** 2) / 2, *pair, epsabs=1e-14)[0]
        for pair in pairwise(ends)
        if pair[0] < 800
    )
    assert_allclose(family.kernel_norm(gamma)[0], expected, atol=1e-11)


@pytest.mark.parametrize(("df", "scale"), pairs([0.1, 1.0, 2.3, 30.0, 60.0, 1e6], [1e-4, 1.0, 1e3], 3))
def test_kernel_means_of_student_t_are_accurate_for_any_df(df, scale):
    """In 25 digits, gamma 1: the mean over y = scale sinh(u); the norm over the spread of a difference, twice."""
    import mpmath as mp

    family, gamma = StudentT(np.zeros(1), np.array([scale]), np.array([df])), np.array([1.0])
    with mp.workdps(25):
        half = mp.mpf(df) / 2
        log_constant = mp.loggamma(half + 0.5) - mp.loggamma(half) - mp.log(mp.pi * df) / 2

        def density(z):
            return mp.exp(log_constant - (half + mp.mpf(0.5)) * mp.log1p(z**2 / df))

        for point in (0.0, 1.3, 5.0):
            far = min(6.0 + point, 14 * scale) if df == 1e6 else 6.0 + point
            edges = sorted(
                {0, far, *(part for part in (scale, 4 * scale, 20 * scale, 1e3 * scale, 1, 3, point) if part < far)}
            )
            expected = mp.quad(
                lambda y, p=point: density(y / scale) / scale * (mp.exp(-((y - p) ** 2)) + mp.exp(-((y + p) ** 2))),
                edges,
            )
            assert_allclose(family.kernel_mean(np.array([[point]]), gamma)[0, 0], float(expected), atol=1e-9)
    # E k(Y, Y') = E over omega ~ N(0, 2) of the characteristic function squared, by Bessel's function
    order = df / 2

    def squared(omega):
        u = np.sqrt(df) * scale * omega
        if df > 1e5:
            return np.exp(-((scale * omega) ** 2))
        if special.kve(order, u) == np.inf:
            return 1.0  # u is below 1e-8
        log = np.log(special.kve(order, u)) - u + order * np.log(u) - special.gammaln(order) - (order - 1) * np.log(2)
        return np.exp(2 * log)

    edges = np.unique(np.clip([1e-14, *np.geomspace(1e-9, 1, 10), *np.geomspace(1e-3, 30, 12) / scale, 3, 12], 0, 12))
    expected = sum(
        integrate.quad(lambda o: squared(o) * np.exp(-(o**2) / 4) / np.sqrt(np.pi), *pair, epsabs=1e-13, limit=100)[0]
        for pair in pairwise(edges)
    )
    # a df of 1e6 differs from a normal distribution by 1e-6
    assert_allclose(family.kernel_norm(gamma)[0], expected, atol=1e-6 if df > 1e5 else 1e-9)


POSITIVE = [
    *(LogNormal(np.zeros(1), np.array([s])) for s in (0.01, 0.3, 3.0)),
    *(Gamma(np.array([a]), np.ones(1)) for a in (0.02, 0.1, 1.0, 1e4)),
    *(Weibull(np.array([c]), np.ones(1)) for c in (0.2, 1.0, 50.0)),
]
PEERS = {
    "lognormal": lambda family: stats.lognorm(family.sigma[0]),
    "gamma": lambda family: stats.gamma(family.shape[0]),
    "weibull": lambda family: stats.weibull_min(family.c[0]),
}


@pytest.mark.parametrize(("family", "width"), pairs(POSITIVE, [1e-3, 0.1, 1.0, 3.0, 30.0, 50.0, 1e3]))
def test_kernel_means_by_quadrature_are_within_their_stated_error(family, width):
    """Against Gauss-Legendre sums in log y with panels of a 20th of everything that varies: 1e-12."""
    peer = PEERS[family.family](family)
    length = np.sqrt(0.5) / width
    step = 0.2 * min(1.0, peer.std() / peer.mean())
    nodes, weights = np.polynomial.legendre.leggauss(6)

    def sums(of, low, high):
        """Integrate over a window of y."""
        edges = [max(np.log(max(low, 1e-13 * length)), np.log(max(peer.ppf(1e-14), 1e-300)))]
        end = np.log(min(high, peer.isf(1e-14)))
        while edges[-1] < end:
            edges.append(min(end, edges[-1] + min(step, length / 2 / np.exp(edges[-1]))))
        half = np.diff(edges)[:, None] / 2
        log_y = (np.array(edges)[:-1, None] + half * (1 + nodes)).ravel()
        y = np.exp(log_y)
        first = np.exp(edges[0])
        return peer.cdf(first) * of(first) + np.sum((half * weights).ravel() * peer.pdf(y) * y * of(y))

    gamma = np.array([width**2])
    points = np.array([-length, 0.0, length, 39 * length, 41 * length, *peer.ppf([1e-6, 0.1, 0.5, 0.9, 0.999])])
    points = np.concatenate([points, length * np.geomspace(20, 400, 120)])  # on both sides of y*
    found = family.kernel_mean(points[:, None], gamma)[0]
    for point, value in zip(points, found, strict=True):
        reach = 9 * length
        if max(point - reach, peer.ppf(1e-14)) < min(point + reach, peer.isf(1e-14)):
            expected = sums(lambda y, p=point: np.exp(-gamma[0] * (y - p) ** 2), point - reach, point + reach)
            assert_allclose(value, expected, atol=family.kernel_error)
    if (peer.isf(1e-14) - peer.ppf(1e-14)) / length < 300:
        norm = sums(lambda y: family.kernel_mean(np.atleast_1d(y)[:, None], gamma)[0], 0, np.inf)
        assert_allclose(family.kernel_norm(gamma), norm, atol=2 * family.kernel_error)


@pytest.mark.parametrize(("sigma", "gamma"), pairs([5.0, 8.0, 30.0, 300.0], [1e-4, 0.5, 1e6], 3))
def test_kernel_means_of_wide_lognormals_agree_with_sums(sigma, gamma):
    """Log-normal distributions beyond the range of floats: by the trapezoidal rule in the normal score.

    The norm is the mean of such means, over scores where y is between 1e-9 and 1e6 length scales: the kernel is 1
    below and negligible above.
    """
    length, family = np.sqrt(0.5 / gamma), LogNormal(np.zeros(1), np.array([sigma]))
    score = np.linspace(-7.5, 7.5, 10_000 * round(sigma) + 1)  # log y in equal steps
    y = np.exp(np.minimum(sigma * score, 300))
    mass = np.exp(-(score**2) / 2) / np.sqrt(2 * np.pi) * (score[1] - score[0])
    points = np.array([0, 0.1, 1, 5, 39, 41, 60, 500]) * length
    expected = [mass @ np.exp(-gamma * (point - y) ** 2) for point in points]
    assert_allclose(family.kernel_mean(points[:, None], np.array([gamma]))[0], expected, atol=1e-10)
    low, high = (np.log(end * length) / sigma for end in (1e-9, 1e6))
    nodes, weights = special.roots_legendre(2000)
    at = low + (high - low) * (1 + nodes) / 2
    mass = (high - low) / 2 * weights * stats.norm.pdf(at)
    means = family.kernel_mean(np.exp(sigma * at)[:, None], np.array([gamma]))[0]
    below = stats.norm.cdf(low) * family.kernel_mean(np.zeros((1, 1)), np.array([gamma]))[0, 0]
    assert_allclose(family.kernel_norm(np.array([gamma])), below + mass @ means, atol=1e-6)


def test_norms_of_narrow_kernels_agree_with_squared_densities():
    """E k(Y, Y') = sqrt(pi / gamma) (int f^2 - L^2 / 2 int f'^2 + …), L^2 = 1 / (2 gamma).

    For gamma int f_a f_b = Gamma(a + b - 1) / (Gamma(a) Gamma(b) 2^(a + b - 1)) and f_a' = f_(a-1) - f_a; for
    log-normal int f^2 = e^(s^2 / 4) / (2 s sqrt(pi)).
    """
    for shape, width in ((900.0, 30.0), (30.0, 1e3)):
        integral_of = lambda a, b: np.exp(  # noqa: E731 - int f_a f_b
            special.gammaln(a + b - 1) - special.gammaln(a) - special.gammaln(b) - (a + b - 1) * np.log(2)
        )
        slopes = integral_of(shape - 1, shape - 1) - 2 * integral_of(shape, shape - 1) + integral_of(shape, shape)
        expected = np.sqrt(np.pi) / width * (integral_of(shape, shape) - slopes / (4 * width**2))
        found = Gamma(np.array([shape]), np.ones(1)).kernel_norm(np.array([width**2]))
        assert_allclose(found, expected, atol=1e-10)
    found = LogNormal(np.zeros(1), np.array([0.5])).kernel_norm(np.array([1e10]))
    assert_allclose(found, np.sqrt(np.pi) / 1e5 * np.exp(0.5**2 / 4) / (2 * 0.5 * np.sqrt(np.pi)), rtol=1e-7)
    found = LogNormal(np.zeros(1), np.array([3.0])).kernel_norm(np.array([1e20]))
    assert_allclose(found, np.sqrt(np.pi) / 1e10 * np.exp(9 / 4) / (6 * np.sqrt(np.pi)), rtol=1e-7)


def test_upper_quantiles_of_mixtures_are_as_accurate_as_lower_ones():
    loc, scale, weight = arrays(*MIX)
    tail = 2.0**-40  # 1 - tail is exact
    assert_allclose(
        Mixture(loc, scale, weight).quantile(1 - tail), -Mixture(-loc, scale, weight).quantile(tail), rtol=1e-12
    )


QUANTILES = Quantiles(np.array([0.1, 0.3, 0.7, 0.9]), np.array([[0.0, 2.0, 3.0, 7.0], [1.0, 1.0, 4.0, 4.0]]))


def test_quantiles_are_linear_between_levels_and_exponential_beyond():
    """Row 0: densities 0.1, 0.4, 0.05, so tails of scale 1 and 2. Row 1: atoms of 0.3 at 1 and at 4."""
    at = lambda *y: np.array(y)  # noqa: E731
    assert_allclose(QUANTILES.cdf(at(2.5, 2.0)), [0.5, 0.3 + 0.4 / 3])
    assert_allclose(QUANTILES.cdf_left(at(2.5, 2.0)), [0.5, 0.3 + 0.4 / 3])
    assert_allclose(QUANTILES.cdf(at(-1.0, 1.0)), [0.1 * np.exp(-1), 0.3])
    assert_allclose(QUANTILES.cdf_left(at(-1.0, 1.0)), [0.1 * np.exp(-1), 0.0])
    assert_allclose(QUANTILES.cdf(at(11.0, 4.0)), [1 - 0.1 * np.exp(-2), 1.0])
    assert_allclose(QUANTILES.cdf_left(at(11.0, 4.0)), [1 - 0.1 * np.exp(-2), 0.7])
    assert_allclose(QUANTILES.cdf(at(7.0, 0.9)), [0.9, 0.0])
    assert_allclose(QUANTILES.interval_mass(at(0.0, 1.0), at(3.0, 1.0)), [0.6, 0.3])
    left, right = QUANTILES.cdf_limits(at(2.0, 4.0))
    assert_allclose(left, [0.3, 0.7])
    assert_allclose(right, [0.3, 1.0])
    assert_allclose(QUANTILES.quantile(0.5), [2.5, 2.5])
    assert (QUANTILES.quantile(0.3 + 5e-10) == [2.0, 1.0]).all()
    assert (QUANTILES.quantile(0.1) == [0.0, 1.0]).all()
    low, high = QUANTILES.support_interval(0.01)
    assert_allclose(low, [-np.log(10), 1.0])
    assert_allclose(high, [7 + 2 * np.log(10), 4.0])
    for p in (0.05, 0.0999, 0.95):
        with pytest.raises(DataError, match=r"nothing is known beyond the quantiles 0.1 … 0.9"):
            QUANTILES.quantile(p)
    with pytest.raises(DataError, match=r"mean depends on the tails.* of 0.05 or less"):
        QUANTILES.mean()
    with pytest.raises(DataError, match="standard deviation depends on the tails"):
        QUANTILES.std()
    with pytest.raises(DataError, match="quantiles have no density"):
        QUANTILES.log_prob(at(0.0, 0.0))


def test_moments_of_quantiles_by_hand():
    """Levels 0.05, 0.5, 0.95 at 0, 1, 3 and 2, 2, 2.9: densities 0.45, 0.225, so tails of 1/9 and 2/9; atom and 0.1.

    Row 0: 0.45 (0.5 + 2) + 0.05 (0 - 1/9 + 3 + 2/9) = 1.1250 + 0.15556; row 1: 0.05 (2) + 0.45 (2 + 2.45) + 0.05 (3).
    Squares: 0.45 (1/3 + 13/3) + 0.05 (2/81 + 9 + 12/9 + 2 (2/9)^2); 0.5 4 + 0.45 (2.45^2 + 0.81/12) + 0.05 (9 + 0.01).
    """
    family = Quantiles(np.array([0.05, 0.5, 0.95]), np.array([[0.0, 1.0, 3.0], [2.0, 2.0, 2.9]]))
    mean = np.array([1.125 + 0.05 * (3 + 1 / 9), 0.1 + 0.45 * 4.45 + 0.15])
    squares = [
        0.45 * 14 / 3 + 0.05 * (2 / 81 + 9 + 12 / 9 + 8 / 81),
        2.0 + 0.45 * (2.45**2 + 0.81 / 12) + 0.05 * 9.01,
    ]
    assert_allclose(family.mean(), mean, rtol=1e-13)
    assert_allclose(family.std(), np.sqrt(squares - mean**2), rtol=1e-12)


def test_the_std_of_equal_quantiles_is_exactly_0():
    """The mean is off in the last digit."""
    levels = np.array([0.025, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.975])
    family = Quantiles(levels, np.repeat([[0.1], [0.7]], 9, axis=1))
    assert (family.mean() != [0.1, 0.7]).any()
    assert (family.std() == 0).all()


def nodes_over_levels(family):
    """Return quantiles of one distribution, and weights: Gauss-Legendre between levels, and in -log of tail masses."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    levels = np.concatenate([family.levels[:1] * np.exp(-np.arange(40.0)[::-1]), family.levels[1:-1]])
    levels = np.concatenate([levels, 1 - (1 - family.levels[-1]) * np.exp(-np.arange(30.0))])
    borders = np.concatenate([np.linspace(low, high, 5)[:-1] for low, high in pairwise(levels)] + [levels[-1:]])
    reach = np.diff(borders)[:, None] / 2
    u = borders[:-1, None] + reach * (1 + nodes)
    return np.array([family.support_interval(level)[0][0] for level in u.ravel()]), (reach * weights).ravel()


@pytest.mark.parametrize("row", [0, 1])
def test_kernels_of_quantiles_are_integrals_over_levels(row):
    points, one = np.array([[-3.0], [0.0], [1.0], [2.6], [30.0]]), QUANTILES.take(np.array([row]))
    y, weights = nodes_over_levels(one)
    for gamma in (1e-6, 0.04, 1.0, 25.0):
        expected = np.exp(-gamma * (y - points) ** 2) @ weights
        assert_allclose(one.kernel_mean(points, np.array([gamma]))[0], expected, atol=1e-9)
        norm = one.kernel_mean(y[:, None], np.array([gamma]))[0] @ weights
        assert_allclose(one.kernel_norm(np.array([gamma])), norm, atol=1e-8)


def test_norms_of_quantiles_that_are_near_each_other_and_of_others_do_not_depend_on_other_rows():
    """Up to a distance of 4 from their middle, the kernel between quantiles is a sum of products."""
    sizes = np.array([1e-4, 0.3, 3.999, 4.001, 20.0])[:, None]
    family, gamma = Quantiles(np.array([0.1, 0.4, 0.9]), 50 + sizes * [-1.0, 0.2, 1.0]), np.ones(1)
    alone = [family.take(np.array([row])).kernel_norm(gamma)[0] for row in range(5)]
    assert_allclose(family.kernel_norm(gamma), alone, rtol=1e-12)
    assert_allclose(alone[2], alone[3], rtol=1e-3)


@pytest.mark.slow
def test_crps_of_quantiles_are_integrals():
    for row in range(2):
        one = QUANTILES.take(np.array([row]))
        nodes, weights = nodes_over_levels(one)
        for y in (-2.0, 0.5, 1.0, 3.3, 4.0, 12.0):
            distance = np.abs(nodes - y) @ weights
            places = np.unique([-60.0, *one.values[0], y, 90.0])
            expected = sum(
                integrate.quad(
                    lambda u, y=y, one=one: (one.cdf(np.array([u]))[0] - (u >= y)) ** 2, *pair, epsabs=1e-12
                )[0]
                for pair in pairwise(places)
            )
            assert_allclose(one.crps(np.array([y])), expected, rtol=1e-9)
            assert expected < distance


@pytest.mark.parametrize("unit", [0.002999, slow(0.003001), slow(0.1), 1.4142, slow(1.4143), slow(30.0), 212.0])
def test_narrow_and_wide_pieces_of_quantiles_agree(unit):
    """Pieces of 0.002999 and 0.003001 in 1 / sqrt(gamma), of 2 and of 300 length scales; tails of equal scale."""
    family = Quantiles(np.array([0.2, 0.6, 0.8]), unit * np.array([[0.0, 1.0, 1.5]]))
    gamma, point = np.ones(1), np.array([[0.8]])
    nodes, weights = nodes_over_levels(family)
    expected = np.exp(-((nodes - 0.8) ** 2)) @ weights if unit < 2 else None
    if expected is not None:
        assert_allclose(family.kernel_mean(point, gamma)[0, 0], expected, atol=1e-12)
    edges = unit * np.array([0.0, 1.0, 1.5])
    near = np.unique(np.concatenate([edges, *(edges + far for far in (-6, -2, 2, 6)), edges[[0, 2]] + [-unit, unit]]))
    near = np.unique([edges[0] - 35 * unit / 2, *near, edges[2] + 35 * unit / 2])
    slope = lambda y: (  # noqa: E731 - the density: 0.4 / unit throughout, tails of scale unit / 2
        0.4 / unit * np.exp(2 * min(y - edges[0], edges[2] - y, 0) / unit)
    )
    norm = sum(
        integrate.quad(lambda y: slope(y) * family.kernel_mean(np.array([[y]]), gamma)[0, 0], *pair, epsabs=1e-13)[0]
        for pair in pairwise(near)
    )
    assert_allclose(family.kernel_norm(gamma)[0], norm, atol=family.kernel_error * 5)


def test_quantiles_are_drawn_by_inversion():
    """Kolmogorov's distance of 50,000 draws exceeds 0.0087 with probability 1e-3; shares within five sigma.

    Between tied levels is an atom of 0.2; the tails of 0.1 lie beyond it.
    """
    draws = QUANTILES.sample(np.random.default_rng(0), 50_000)
    uniform = QUANTILES.take(np.zeros(50_000, dtype=int)).cdf(draws[0])
    assert stats.kstest(uniform, "uniform").statistic < 0.0087
    for value in (1.0, 4.0):
        assert_allclose(np.mean(draws[1] == value), 0.2, atol=5 * np.sqrt(0.16 / 50_000))
    for beyond in (draws[1] < 1, draws[1] > 4):
        assert_allclose(np.mean(beyond), 0.1, atol=5 * np.sqrt(0.09 / 50_000))


def test_quantiles_are_joined_only_at_equal_levels():
    back = QUANTILES.take(slice(0, 1)).join([QUANTILES.take(np.array([1]))])
    assert len(back) == 2
    assert_allclose(back.values, QUANTILES.values)
    with pytest.raises(DataError, match=r"different levels cannot be joined: 0.1, 0.3, 0.7, 0.9, and 0.1, 0.9"):
        QUANTILES.join([Quantiles(np.array([0.1, 0.9]), np.zeros((1, 2)))])


def model_gram(family, gamma):
    """E k(Y_i, Y_j), by Gauss-Legendre sums over the scores of one and the family's kernel means of the other."""
    nodes, weights = np.polynomial.legendre.leggauss(10)
    known = special.ndtri(getattr(family, "levels", []))
    edges = np.unique([*np.linspace(-8, 8, 160), *known])
    half = np.diff(edges)[:, None] / 2
    scores = (edges[:-1, None] + half * (1 + nodes)).ravel()
    masses = (half * weights).ravel() * stats.norm.pdf(scores)
    y = [family.support_interval(special.ndtr(-abs(score)))[int(score > 0)] for score in scores]  # (s, n)
    means = family.kernel_mean(np.clip(y, -1e12, 1e12).reshape(-1, 1), gamma)  # (n, s n)
    return np.einsum("s,isj->ji", masses, means.reshape(len(family), len(masses), -1))


HEAVY = {
    "t, df 1.5": lambda rng, n: StudentT(rng.normal(size=n), np.ones(n), np.full(n, 1.5)),
    "lognormal, s 2": lambda rng, n: LogNormal(rng.normal(size=n), np.full(n, 2.0)),
}


@pytest.mark.parametrize(
    "name",
    [
        *("laplace", "gamma", "student-t", "quantiles", "t, df 1.5"),
        *map(slow, ("weibull", "nig", "cauchy", "lognormal", "mixture", "lognormal, s 2")),
    ],
)
def test_cce_agrees_with_integrated_kernel_means(name):
    """To 1e-6; to 1e-5 for mixtures with gaps and for quantiles, where the sums are less accurate."""
    n = 12
    rng = np.random.default_rng(5)
    if name in HEAVY:
        predictive = HEAVY[name](rng, n)
        y = predictive.sample(rng, 1)[:, 0]
    else:
        rows = calibrated(name, n=n)
        y, predictive = rows.y, rows.predictive
    x = rng.normal(size=(n, 1))
    rows = Predictions(y=y, predictive=predictive, x=x, has_embedding=False)
    result = evaluate(InMemory(rows), [Cce(gamma_x=0.5)], run=Run(replicates=0))
    assert result.results[0].details["features"]["residual_predictive"] < 1e-9
    gamma = np.array([1 / (2 * y.var(ddof=1))])
    a = naive.weights(naive.input_kernel("rbf", 0.5), x, x, 0.1)
    data = np.exp(-gamma * (y[:, None] - y) ** 2)
    cross = predictive.kernel_mean(y[:, None], gamma).T
    squared = naive.form(a, data, a) - 2 * naive.form(a, cross, a) + naive.form(a, model_gram(predictive, gamma), a)
    expected = np.sqrt(squared).mean()
    assert_allclose(result.results[0].value, expected, atol=1e-5 if name in {"mixture", "quantiles"} else 1e-6)


@pytest.mark.parametrize(
    ("family", "text"),
    [
        (Gaussian(*arrays([3.2], [0.4])), "N(3.2, 0.4²)"),
        (Laplace(*arrays([3.2], [0.4])), "Laplace(3.2, 0.4)"),
        (Cauchy(*arrays([3.2], [0.4])), "Cauchy(3.2, 0.4)"),
        (StudentT(*arrays([3.2], [0.4], [15.0])), "t₁₅(3.2, 0.4)"),
        (StudentT(*arrays([3.2], [0.4], [4.7812])), "t(df 4.78, 3.2, 0.4)"),
        (LogNormal(*arrays([0.2], [0.5])), "LogNormal(mu 0.2, sigma 0.5)"),
        (Gamma(*arrays([2.0], [1.2345])), "Gamma(shape 2, scale 1.23)"),
        (Weibull(*arrays([2.0], [1.2345])), "Weibull(c 2, scale 1.23)"),
        (Mixture(*arrays([[1.0, 4.0]], [[0.2, 1.0]], [[0.3, 0.7]])), "0.3 N(1, 0.2²) + 0.7 N(4, 1²)"),
        (
            Mixture(*arrays([[1, 2, 3, 4]], [[1, 1, 1, 1]], [[0.25] * 4])),
            "0.25 N(1, 1²) + 0.25 N(2, 1²) + 0.25 N(3, 1²) + …",
        ),
        (Poisson(np.array([3.2])), "Poisson(3.2)"),
        (NegativeBinomial(*arrays([4.0], [4.0])), "NB(mean 4, std 2.83)"),
        (DoublePoisson(*arrays([3.2], [2.0])), "DoublePoisson(mu 3.2, phi 2)"),
        (Samples(np.array([[-7.5, -9.1, -8.0]])), "3 draws from -9.1 to -7.5"),
        (Samples(np.array([[2.5]])), "1 draw from 2.5 to 2.5"),
        (Samples(np.array([[[1.0, 5.0], [0.0, 7.0]]])), "2 draws from 0 to 1; from 5 to 7"),
        (Quantiles(*arrays([0.05, 0.5, 0.95], [[12, 20, 31]])), "quantiles 0.05: 12; 0.5: 20; 0.95: 31"),
        (Independent((Poisson(np.array([3.2])), Cauchy(*arrays([1], [2])))), "Poisson(3.2); Cauchy(1, 2)"),
    ],
)
def test_distributions_are_described_in_text(family, text):
    assert family.describe() == [text]


def test_conventions_agree_with_their_libraries():
    """torch: LogNormal(loc, scale), Gamma(concentration, rate), NegativeBinomial(total_count, logits)."""
    made = CONVENTIONS["lognormal:torch"](loc=np.array([0.3]), scale=np.array([0.6]))
    assert_allclose(made.mean(), stats.lognorm(0.6, scale=np.exp(0.3)).mean())
    made = CONVENTIONS["gamma:torch"](concentration=np.array([3.0]), rate=np.array([4.0]))
    assert_allclose([made.mean(), made.std()], [[3 / 4], [np.sqrt(3) / 4]])
    made = CONVENTIONS["nbinom:logits"](total_count=np.array([4.0]), logits=special.logit(np.array([0.6])))
    assert_allclose(made.mean(), stats.nbinom(4, 0.4).mean())
    assert_allclose(made.std(), stats.nbinom(4, 0.4).std())
    made = CONVENTIONS["mixture:logits"](*[], loc=np.zeros((1, 2)), scale=np.ones((1, 2)), logits=np.log([[6.0, 2.0]]))
    assert_allclose(made.weight, [[0.75, 0.25]])
    made = CONVENTIONS["nig"](gamma=np.array([1.0]), v=np.array([2.0]), alpha=np.array([3.0]), beta=np.array([4.0]))
    peer = stats.t(6, 1, np.sqrt(4 * 3 / (2 * 3)))
    assert made.display_name == "nig"
    assert_allclose(
        [made.mean(), made.std(), made.quantile(0.9)], np.array([[peer.mean()], [peer.std()], [peer.ppf(0.9)]])
    )
    located = {spelling: made.location for spelling, made in CONVENTIONS.items() if made.location}
    assert located == {"gaussian": "loc", "laplace": "loc", "student-t": "loc", "nig": "gamma", "cauchy": "loc"}
    grouped = {made.family: made.joint for made in CONVENTIONS.values() if made.grouped}
    assert grouped == {"mixture": False, "joint-gaussian": True}
    for made in CONVENTIONS.values():
        assert all(names[0] == parameter for parameter, names in made.parameters.items())


def test_mixture_weights_that_nearly_sum_to_one_are_normalized():
    made = Mixture(*arrays([[0, 1]], [[1, 1]], [[0.5, 0.5 + 9e-7]]))
    assert_allclose(made.weight.sum(axis=1), 1, rtol=1e-15)


def test_rows_without_a_moment_are_counted():
    some = StudentT(*arrays([0.0, 1.0, 2.0], [1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
    with pytest.raises(DataError, match=r"1 of 3 student-t distributions have no mean \(df <= 1\)"):
        some.mean()
    with pytest.raises(
        DataError, match=r"2 of 3 student-t distributions have no finite standard deviation \(df <= 2\)"
    ):
        some.std()
    with pytest.raises(DataError, match=r"1 of 3 .* no CRPS"):
        some.crps(np.zeros(3))
    evidential = CONVENTIONS["nig"](gamma=np.zeros(1), v=np.ones(1), alpha=np.array([0.5]), beta=np.ones(1))
    with pytest.raises(DataError, match=r"1 of 1 nig distributions have no mean \(2 alpha <= 1\)"):
        evidential.mean()
    for method in ("mean", "std"):
        with pytest.raises(DataError, match="a cauchy distribution has no"):
            getattr(Cauchy(LOC, SCALE), method)()


@pytest.mark.parametrize("family", POSITIVE, ids=lambda family: family.describe()[0])
def test_nonpositive_targets_have_no_density(family):
    family = family.take(np.zeros(2, dtype=int))
    y = np.array([-1.0, 0.0])
    assert family.log_prob(y)[0] == -np.inf
    assert (family.cdf(y) == 0).all()
    below = family.crps(np.zeros(2))[0]
    assert_allclose(family.crps(y) - below, [1.0, 0.0], rtol=1e-9, atol=1e-12)


def test_densities_at_zero_are_their_limits():
    family = Gamma(*arrays([0.5, 1.0, 2.0], [2.0, 4.0, 1.0]))
    assert_allclose(family.log_prob(np.zeros(3)), stats.gamma([0.5, 1.0, 2.0], scale=[2.0, 4.0, 1.0]).logpdf(0))
    family = Weibull(*arrays([0.5, 1.0, 2.0], [2.0, 4.0, 1.0]))
    assert_allclose(family.log_prob(np.zeros(3)), [np.inf, -np.log(4), -np.inf], rtol=1e-15)
    assert LogNormal(*arrays([0.0], [1.0])).log_prob(np.zeros(1)) == -np.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Laplace(*arrays([0, 1], [1, 0])), r"scale must be positive, but 1 of 2 .*row 1"),
        (lambda: Cauchy(*arrays([np.inf], [1])), "loc must be finite"),
        (lambda: StudentT(*arrays([0], [1], [0])), "df must be positive"),
        (lambda: StudentT(*arrays([0], [1], [1, 2])), "differ in shape"),
        (lambda: LogNormal(*arrays([0], [-1])), "sigma must be positive"),
        (lambda: LogNormal(*arrays([np.nan], [1])), "mu must be finite"),
        (lambda: Gamma(*arrays([0], [1])), "shape must be positive"),
        (lambda: Gamma(*arrays([1], [0])), "scale must be positive"),
        (lambda: CONVENTIONS["weibull:scipy"](c=np.zeros(1), scale=np.ones(1)), "c must be positive"),
        (lambda: CONVENTIONS["weibull:scipy"](c=np.ones(1), scale=np.array([-1.0])), "scale must be positive"),
        (lambda: CONVENTIONS["lognormal:scipy"](s=np.zeros(1), scale=np.ones(1)), "s must be positive"),
        (lambda: CONVENTIONS["lognormal:scipy"](s=np.ones(1), scale=np.zeros(1)), "scale must be positive"),
        (lambda: CONVENTIONS["lognormal:torch"](loc=np.array([np.nan]), scale=np.ones(1)), "loc must be finite"),
        (lambda: CONVENTIONS["lognormal:torch"](loc=np.ones(1), scale=np.zeros(1)), "scale must be positive"),
        (lambda: CONVENTIONS["gamma:scipy"](a=np.zeros(1), scale=np.ones(1)), "a must be positive"),
        (lambda: CONVENTIONS["gamma:torch"](concentration=np.zeros(1), rate=np.ones(1)), "concentration must be"),
        (lambda: CONVENTIONS["gamma:torch"](concentration=np.ones(1), rate=np.zeros(1)), "rate must be positive"),
        (lambda: CONVENTIONS["nbinom:logits"](total_count=np.zeros(1), logits=np.ones(1)), "total_count must be"),
        (
            lambda: CONVENTIONS["nbinom:logits"](total_count=np.ones(1), logits=np.array([800.0])),
            "logits must be log odds",
        ),
        (lambda: Mixture(*arrays([[0, 1]], [[1, 1]], [[0.5, 0.6]])), "weight must be normalized .*mixture:logits"),
        (lambda: Mixture(*arrays([[0, 1]], [[1, 1]], [[-0.5, 1.5]])), "weight must be nonnegative"),
        (lambda: Mixture(*arrays([[0, 1]], [[1, 0]], [[0.5, 0.5]])), "scale must be positive"),
        (lambda: Mixture(*arrays([0, 1], [1, 1], [0.5, 0.5])), r"rows by components, got shape \(2,\)"),
        (
            lambda: CONVENTIONS["nig"](gamma=np.ones(1), v=np.ones(1), alpha=np.zeros(1), beta=np.ones(1)),
            "alpha must be",
        ),
        (lambda: CONVENTIONS["nig"](gamma=np.ones(1), v=np.zeros(1), alpha=np.ones(1), beta=np.ones(1)), "v must be"),
        (lambda: Quantiles(*arrays([0.5], [[1]])), "at least two levels, got 0.5"),
        (lambda: Quantiles(*arrays([0.5, 0.5], [[1, 2]])), "must increase.*got 0.5, 0.5"),
        (lambda: Quantiles(*arrays([0.5, 1], [[1, 2]])), "strictly between 0 and 1"),
        (lambda: Quantiles(*arrays([0, 0.5], [[1, 2]])), "strictly between 0 and 1"),
        (lambda: Quantiles(*arrays([0.1, 0.5], [[1, 2, 3]])), r"rows by 2 levels, got shape \(1, 3\)"),
        (lambda: Quantiles(*arrays([0.1, 0.5], [[1, 2], [3, 2]])), r"quantiles must be nondecreasing .*row 1"),
        (lambda: Quantiles(*arrays([0.1, 0.5], [[1, np.nan]])), "quantiles must be finite"),
    ],
)
def test_parameters_of_families_are_checked(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_crossing_quantiles_name_their_array():
    with pytest.raises(ValuesError) as caught:
        Quantiles(*arrays([0.1, 0.5], [[2, 1]]))
    assert caught.value.name == "quantiles"


def test_independent_targets_have_joint_kernel_errors_and_supports():
    joint = Independent((Gaussian(LOC, SCALE), StudentT(LOC, SCALE, DF), Cauchy(LOC, SCALE)))
    assert joint.kernel_error == StudentT(LOC, SCALE, DF).kernel_error
    low, high = joint.support_interval(0.2)
    assert_allclose(low[:, 2], Cauchy(LOC, SCALE).quantile(0.2))
    assert_allclose(high[:, 0], Gaussian(LOC, SCALE).quantile(0.8))
