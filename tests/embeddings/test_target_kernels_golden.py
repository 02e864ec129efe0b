"""The Laplace and the polynomial kernel on targets: metrics equal naive sums and integrals, to 1e-10."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from calcheck.distributions import Gaussian, Independent, Samples
from calcheck.distributions.continuous import Cauchy, Laplace, StudentT
from calcheck.distributions.count_families import NegativeBinomial, Poisson
from calcheck.distributions.joint import JointGaussian
from calcheck.distributions.mixture import Mixture
from calcheck.distributions.positive import Gamma, LogNormal, Weibull
from calcheck.distributions.quantiles import Quantiles
from calcheck.embeddings.laplace_embeddings import PairEmbeddings, laplace_embeddings, norms_of_points, point_embeddings
from calcheck.embeddings.polynomial import MonomialFeatures
from calcheck.errors import DataError, OptionError
from calcheck.execution.run import Run
from calcheck.inference.bootstrap import statistic_of
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics import METRICS
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions, concat, group_rows
from tests.helpers import naive_joint as naive
from tests.helpers.joint_cases import (
    ESTIMATORS,
    assert_equal_to_pooled_samples,
    rows_of_case,
    sampled_case,
    sampled_rows,
    value,
)
from tests.helpers.naive import cce_squared, form, input_kernel, target_kernel, weights
from tests.helpers.shorthand import cce
from tests.helpers.simulations import pairs

SHAPES = {"laplace": {}, "polynomial": {"degree": 3, "coef0": 1.0}}
every_kernel = pytest.mark.parametrize("kernel", SHAPES)
N = 5


def normal_laplace_mean(distance, std, gamma):
    """E exp(-gamma |distance - E|) for E ~ N(0, std^2): half the sum over signs of e^(a^2 / 2 + s b) Phi(-a - s c)."""
    a, c = gamma * std, distance / std
    return sum(np.exp(a**2 / 2 + s * gamma * distance + special.log_ndtr(-a - s * c)) for s in (-1, 1))


def by_frequencies(characteristic, gamma, points, step=0.05, last=2e4):
    """Kernel means at points (p, n), and products (n, n), as integrals over frequencies w of the spectral density.

    exp(-gamma |d|) = (gamma / pi) int e^(i w d) / (gamma^2 + w^2) dw; the trapezoidal rule converges exponentially.
    """
    w = np.arange(0, last, step)
    density = gamma / np.pi / (gamma**2 + w**2) * step * np.where(w == 0, 1, 2)
    found = characteristic(w)  # (n, w)
    means = (np.exp(-1j * points[:, None] * w) * density) @ found.T
    return means.real, ((found * density) @ found.conj().T).real


def family_cases():
    """Distributions, and their characteristic functions of frequencies (w,), (n, w)."""
    rng = np.random.default_rng(3)
    loc, scale, k = rng.normal(size=(N, 1)), rng.uniform(0.1, 2, (N, 1)), rng.uniform(3, 6, (N, 1))
    values = np.sort(rng.normal(size=(N, 4)), axis=1)
    levels = np.array([0.1, 0.3, 0.8, 0.95])

    def of_quantiles(w):
        """Uniform pieces, and exponential tails that start with the density of the outermost piece."""
        ends = np.exp(1j * values[:, :, None] * w)
        with np.errstate(invalid="ignore", divide="ignore"):
            pieces = np.diff(ends, axis=1) / (1j * w * np.diff(values, axis=1)[:, :, None])
        pieces = np.where(w == 0, 1, pieces)
        left, right = 0.1 * np.diff(values)[:, 0] / 0.2, 0.05 * np.diff(values)[:, -1] / 0.15
        tails = 0.1 * ends[:, 0] / (1 + 1j * left[:, None] * w) + 0.05 * ends[:, -1] / (1 - 1j * right[:, None] * w)
        return np.einsum("p,npw->nw", np.diff(levels), pieces) + tails

    rate, size = 5 * scale, k
    return {
        "gaussian": (Gaussian(loc[:, 0], scale[:, 0]), lambda w: np.exp(1j * loc * w - (scale * w) ** 2 / 2)),
        "laplace": (Laplace(loc[:, 0], scale[:, 0]), lambda w: np.exp(1j * loc * w) / (1 + (scale * w) ** 2)),
        "gamma": (Gamma(k[:, 0], scale[:, 0]), lambda w: (1 - 1j * scale * w) ** -k),
        "poisson": (Poisson(rate[:, 0]), lambda w: np.exp(rate * (np.exp(1j * w) - 1))),
        "nbinom": (
            NegativeBinomial(rate[:, 0], size[:, 0]),
            lambda w: (1 + rate / size * (1 - np.exp(1j * w))) ** -size,
        ),
        "quantiles": (Quantiles(levels, values), of_quantiles),
    }


@pytest.mark.parametrize(("family", "gamma"), pairs(["laplace", "gamma", "quantiles", "gaussian"], [0.3, 2.0], 2))
def test_laplace_means_of_continuous_families_equal_integrals_over_frequencies(family, gamma):
    predictive, characteristic = family_cases()[family]
    points = np.linspace(-4, 9, 7)
    fine = by_frequencies(characteristic, gamma, points)
    embeddings = laplace_embeddings(predictive, (gamma,))
    limit = 3e-9 if family == "quantiles" else 1e-11  # the frequencies beyond the last one
    assert_allclose(embeddings.means(points[:, None]), fine[0], rtol=0, atol=limit)
    assert_allclose(embeddings.products(), fine[1], rtol=0, atol=limit)
    assert_allclose(embeddings.norms(), np.diagonal(fine[1]), rtol=0, atol=limit)


@pytest.mark.parametrize("gamma", [1e-3, 0.3, 20.0])
def test_laplace_means_of_normal_distributions_equal_the_closed_form(gamma):
    """Deviations of 1e-4 to 100, in one batch."""
    loc, std = np.random.default_rng(1).normal(size=N) * 30, np.array([1e-4, 0.01, 1, 7, 100])
    points = np.append(loc, loc + 1e-4)
    embeddings = laplace_embeddings(Gaussian(loc, std), (gamma,))
    expected = normal_laplace_mean(points[:, None] - loc, std, gamma)
    assert_allclose(embeddings.means(points[:, None]), expected, rtol=0, atol=1e-11)
    both = normal_laplace_mean(loc[:, None] - loc, np.hypot(std[:, None], std), gamma)
    assert_allclose(embeddings.products(), both, rtol=0, atol=1e-11)
    by_row = embeddings.means_by_row(np.tile(points, (N, 1))[:, :, None])
    assert_allclose(by_row, expected.T, rtol=0, atol=1e-11)


@pytest.mark.parametrize("family", ["poisson", "nbinom"])
def test_laplace_means_of_counts_equal_sums(family):
    predictive, _ = family_cases()[family]
    k = np.arange(400.0)
    mass = np.stack([np.exp(predictive.log_prob(np.full(N, each))) for each in k])
    gram = np.exp(-0.4 * np.abs(k[:, None] - k))
    embeddings = laplace_embeddings(predictive, (0.4,))
    assert_allclose(embeddings.products(), mass.T @ gram @ mass, rtol=0, atol=1e-11)
    points = np.array([-3.0, 0.0, 2.5, 12.0, 500.0])
    assert_allclose(
        embeddings.means(points[:, None]), np.exp(-0.4 * np.abs(points[:, None] - k)) @ mass, rtol=0, atol=1e-11
    )


@pytest.mark.parametrize(
    ("predictive", "law"),
    [
        (Weibull(np.array([0.6, 3.0]), np.array([1.0, 2.0])), stats.weibull_min([0.6, 3.0], scale=[1.0, 2.0])),
        (LogNormal(np.array([0.5, -1]), np.array([0.2, 1.0])), stats.lognorm([0.2, 1.0], scale=np.exp([0.5, -1]))),
        (StudentT(np.zeros(2), np.ones(2), np.array([4.5, 9])), stats.t([4.5, 9.0])),
        (Gamma(np.array([0.3, 2.0]), np.ones(2)), stats.gamma([0.3, 2.0])),
    ],
)
def test_laplace_means_of_other_families_equal_the_integral_of_the_density(predictive, law):
    """In the normal score of the target, on both sides of the point; the product by the means at quantiles."""
    nodes, rule = np.polynomial.legendre.leggauss(400)
    low, high = stats.norm.ppf(1e-14), -stats.norm.ppf(1e-14)
    embeddings = laplace_embeddings(predictive, (0.7,))
    for point in (0.05, 0.8, 3.0):
        middle = np.clip(stats.norm.ppf(law.cdf(point)), low, high)
        total = 0.0
        for start, end in ((np.full(2, low), middle), (middle, np.full(2, high))):
            score = (start + end) / 2 + (end - start) / 2 * nodes[:, None]
            y = np.where(score < 0, law.ppf(stats.norm.cdf(score)), law.isf(stats.norm.sf(score)))
            total += rule @ (np.exp(-0.7 * np.abs(y - point)) * stats.norm.pdf(score)) * (end - start) / 2
        assert_allclose(embeddings.means(np.array([[point]]))[0], total, rtol=0, atol=1e-9)
    score = high * nodes
    y = np.where(score < 0, law.ppf(stats.norm.cdf(score)[:, None]).T, law.isf(stats.norm.sf(score)[:, None]).T)
    means = embeddings.means(y[0, :, None])
    expected = (rule * stats.norm.pdf(score) * high) @ means
    assert_allclose(embeddings.products()[0], expected, rtol=0, atol=1e-6)  # the means have kinks at 0 for some


def test_draws_have_the_same_means_by_atoms_and_by_pairs():
    rng = np.random.default_rng(2)
    samples, points = Samples(rng.normal(size=(6, 5)).round(1)), rng.normal(size=(6, 3, 1)) * 3
    one, other = laplace_embeddings(samples, (0.7,)), PairEmbeddings(samples, np.array([0.7]))
    assert_allclose(one.products(), other.products(), rtol=1e-13)
    assert_allclose(one.norms(), other.norms(), rtol=1e-13)
    assert_allclose(one.means(points[0]), other.means(points[0]), rtol=1e-13)
    assert_allclose(one.means_by_row(points), other.means_by_row(points), rtol=1e-13)


def test_columns_that_are_independent_have_products_of_laplace_means():
    loc, std = np.random.default_rng(4).normal(size=(2, N, 2))
    std = np.abs(std) + 0.1
    gamma = np.array([0.4, 1.5])
    found = laplace_embeddings(Independent(tuple(map(Gaussian, loc.T, std.T))), tuple(gamma))
    expected = normal_laplace_mean(loc[:, None] - loc, np.hypot(std[:, None], std), gamma).prod(axis=2)
    assert_allclose(found.products(), expected, rtol=0, atol=1e-11)


MOMENTS = {
    "gaussian": (Gaussian(np.array([1.2]), np.array([0.7])), stats.norm(1.2, 0.7)),
    "laplace": (Laplace(np.array([1.2]), np.array([0.7])), stats.laplace(1.2, 0.7)),
    "student-t": (StudentT(np.array([1.2]), np.array([0.7]), np.array([7.5])), stats.t(7.5, 1.2, 0.7)),
    "gamma": (Gamma(np.array([0.4]), np.array([2.0])), stats.gamma(0.4, scale=2)),
    "weibull": (Weibull(np.array([1.4]), np.array([2.0])), stats.weibull_min(1.4, scale=2)),
    "lognormal": (LogNormal(np.array([0.3]), np.array([0.4])), stats.lognorm(0.4, scale=np.exp(0.3))),
    "poisson": (Poisson(np.array([3.3])), stats.poisson(3.3)),
    "nbinom": (NegativeBinomial(np.array([3.0]), np.array([2.0])), stats.nbinom(2, 0.4)),
}


@pytest.mark.parametrize("family", MOMENTS)
def test_moments_equal_those_of_scipy(family):
    predictive, law = MOMENTS[family]
    expected = [law.moment(order) if order else 1.0 for order in range(5)]
    assert_allclose(predictive.raw_moments(4)[0], expected, rtol=1e-9)


def test_moments_of_mixtures_and_quantiles_equal_integrals():
    mixture = Mixture(np.array([[0.0, 2.0]]), np.array([[0.5, 1.5]]), np.array([[0.3, 0.7]]))
    expected = [0.3 * stats.norm(0, 0.5).moment(k) + 0.7 * stats.norm(2, 1.5).moment(k) for k in range(1, 5)]
    assert_allclose(mixture.raw_moments(4)[0, 1:], expected, rtol=1e-12)
    quantiles = Quantiles(np.array([0.05, 0.5, 0.95]), np.array([[-1.0, 0.5, 1.0]]))
    y = np.linspace(-1, 0.5, 200_001), np.linspace(0.5, 1, 200_001)
    tails = [(-1, -0.05 * 1.5 / 0.45), (1, 0.05 * 0.5 / 0.45)]
    e = np.linspace(0, 80, 800_001)
    for k in range(1, 4):
        pieces = 0.45 * sum(np.trapezoid(each**k, each) / (each[-1] - each[0]) for each in y)
        ends = 0.05 * sum(np.trapezoid((start + scale * e) ** k * np.exp(-e), e) for start, scale in tails)
        assert_allclose(quantiles.raw_moments(3)[0, k], pieces + ends, rtol=1e-8)


def test_mixed_moments_of_joint_normal_distributions_equal_quadrature():
    factor = np.array([[0.8, 0.0], [-0.5, 0.6]])
    joint = JointGaussian(np.array([[0.3, -1.0]]), factor[None])
    nodes, rule = np.polynomial.hermite_e.hermegauss(12)
    rule = rule / rule.sum()
    y = joint.loc[0] + np.stack(np.meshgrid(nodes, nodes), axis=-1) @ factor.T
    exponents = np.array([[0, 0], [1, 0], [1, 1], [2, 1], [0, 4], [3, 2]])
    expected = [np.sum(np.multiply.outer(rule, rule) * y[..., 0] ** a * y[..., 1] ** b) for a, b in exponents]
    assert_allclose(joint.mixed_moments(exponents)[0], expected, rtol=1e-12)


@pytest.mark.parametrize(("columns", "degree"), [(1, 1), (1, 4), (3, 3)])
def test_monomials_have_the_inner_products_of_the_polynomial_kernel(columns, degree):
    rng = np.random.default_rng(columns)
    points, gamma = rng.normal(size=(9, columns)), rng.uniform(0.2, 2, columns)
    features = MonomialFeatures(gamma, degree, 0.6).of_points(points)
    expected = ((points * gamma) @ points.T + 0.6) ** degree
    assert_allclose(features @ features.T, expected, rtol=1e-12, atol=1e-12)


def gram_forms(x, y, predictive, kernel, gamma, *, ridge_model=None, at=None):
    """CCE^2 at points from the moments of Gaussians, or their Laplace means: y (n,)."""
    k_x = input_kernel("rbf", 0.3)
    at = x if at is None else at
    a, b = weights(k_x, x, at, 0.1), weights(k_x, x, at, 0.1 if ridge_model is None else ridge_model)
    mean, std = predictive.loc, predictive.scale
    data = target_kernel(gamma, kernel, **SHAPES[kernel])(y[:, None], y[:, None])
    if kernel == "laplace":
        cross = normal_laplace_mean(y[:, None] - mean, std, gamma)
        model = normal_laplace_mean(mean[:, None] - mean, np.hypot(std[:, None], std), gamma)
    else:
        powers = [1 + 0 * mean, mean, mean**2 + std**2, mean**3 + 3 * mean * std**2]
        ways = [1, 3, 3, 1]
        cross = sum(way * (gamma * y[:, None]) ** k * each for k, (way, each) in enumerate(zip(ways, powers)))  # noqa: B905
        model = sum(way * gamma**k * each[:, None] * each for k, (way, each) in enumerate(zip(ways, powers)))  # noqa: B905
    return form(a, data, a) - 2 * form(a, cross, b) + form(b, model, b)


CCE = {"kernel_x": "rbf", "gamma_x": 0.3, "normalize": "none"}


@every_kernel
@pytest.mark.parametrize("ridge_model", [None, 0.4])
def test_cce_of_normal_distributions_equals_the_closed_form(kernel, ridge_model):
    rng = np.random.default_rng(11)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    predictive = Gaussian(rng.normal(size=30), rng.uniform(0.2, 2, 30))
    for at in (None, rng.normal(size=(7, 2))):
        expected = gram_forms(x, y, predictive, kernel, 0.6, ridge_model=ridge_model, at=at)
        for solver in ("cholesky", "cg"):
            options = {"kernel_y": kernel, "gamma_y": 0.6, "lambda_model": ridge_model, "solver": solver, **CCE}
            assert_allclose(cce(x, y, predictive, at=at, **options) ** 2, expected, rtol=0, atol=1e-10)


@every_kernel
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("ridge_model", [None, 0.03])
def test_cce_of_draws_equals_the_naive_closed_form(kernel, columns, ridge_model):
    rng = np.random.default_rng([12, columns])
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(30, columns)) + 1
    draws = rng.normal(size=(30, 3, columns))
    k_y = target_kernel(0.6, kernel, **SHAPES[kernel])
    expected = cce_squared(x, y, draws, k_x=input_kernel("rbf", 0.3), gamma_y=None, k_y=k_y, ridge_model=ridge_model)
    given = (y[:, 0], Samples(draws[:, :, 0])) if columns == 1 else (y, Samples(draws))
    found = cce(x, *given, kernel_y=kernel, gamma_y=0.6, lambda_model=ridge_model, **CCE)
    assert_allclose(found**2, expected, rtol=0, atol=1e-10)


@every_kernel
def test_the_scale_of_the_kernel_of_cce_follows_the_targets_or_the_predictions(kernel):
    """Polynomial: 1 / (2 t variance) of the targets; Laplace: 1 / (t deviation) of the predictions, t = 1."""
    rng = np.random.default_rng(13)
    x, y, mean, std = rng.normal(size=(30, 2)), 3 * rng.normal(size=30), rng.normal(size=30), rng.uniform(1, 2, 30)
    of_samples = np.append(y, np.stack([mean, std]).ravel()).std(ddof=1)
    for predictive, deviation in (
        (Gaussian(mean, std), np.sqrt(mean.var() + (std**2).mean())),
        (Samples(np.stack([mean, std], axis=1)), of_samples),
    ):
        gamma = 1 / deviation if kernel == "laplace" else 1 / (2 * y.var(ddof=1))
        expected = cce(x, y, predictive, kernel_y=kernel, gamma_y=gamma, **CCE)
        assert_allclose(cce(x, y, predictive, kernel_y=kernel, **CCE), expected, rtol=1e-9)


@every_kernel
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("targets", [1, 3])
def test_joint_metrics_of_draws_equal_those_of_pooled_samples(kernel, columns, targets):
    x, y, draws = sampled_case(21, draws=3, targets=targets, d=2, columns=columns)
    unit = 10.0 ** np.arange(columns)
    y, draws = (y - 7) / unit, (draws - 7) / unit
    rows, k_y = sampled_rows(x, y, draws), target_kernel(0.6, kernel, **SHAPES[kernel])
    options = {"kernel_y": kernel, "gamma_y": 0.6, "standardize": "none"}
    assert_equal_to_pooled_samples(rows, (x, y, draws), k_y, options)


@every_kernel
@pytest.mark.parametrize("targets", [1, 2])
def test_joint_metrics_of_counts_equal_sums_over_the_support(kernel, targets):
    rng = np.random.default_rng([7, targets])
    x = rng.normal(size=(14, 2))
    rate = 3 * np.exp(0.4 * x[:, 0])
    y = rng.poisson(rate[:, None], (14, targets)).astype(float)[..., None]
    rows, support = rows_of_case(x, y, Poisson(1.3 * rate)), np.arange(60.0)
    mass = stats.poisson(1.3 * rate[:, None]).pmf(support)
    k_y = target_kernel(0.3, kernel, **SHAPES[kernel])
    embeddings, k = naive.weighted_embeddings(y, support, mass, k_y=k_y), naive.kernel_on(x)(x, x)
    options = {"kernel_y": kernel, "gamma_y": 0.3, "standardize": "none"}
    limits = {"rtol": 1e-10, "atol": 1e-10}
    assert_allclose(value("cmmd", rows, **options), naive.cmmd_of(k, embeddings), **limits)
    for statistic in ESTIMATORS:
        expected = naive.jmmd_of(k, embeddings, statistic=statistic)
        assert_allclose(value("jmmd", rows, statistic=statistic, **options), expected, **limits)
        found = value("ammd", rows, statistic=statistic, **options)
        assert_allclose(found, naive.ammd_of(embeddings, targets, statistic=statistic), **limits)


def test_standardized_targets_are_divided_by_the_deviation_of_the_kernel():
    """Polynomial: by that of the targets. Laplace: by that of targets and draws together."""
    x, y, draws = sampled_case(22, draws=3)
    rows = sampled_rows(x, y, draws)
    together = np.append(y.ravel(), draws.ravel()).std(ddof=1)
    for kernel, gamma in (("laplace", 1 / together), ("polynomial", 1 / y.var(ddof=1))):
        for name in ("jmmd", "cmmd", "ammd"):
            options = {"kernel_y": kernel, "gamma_x": None if name == "ammd" else 0.5}
            given = {key: each for key, each in options.items() if each is not None}
            z = Predictions(y=rows.y, predictive=rows.predictive, x=naive.standardized(x), has_embedding=False)
            expected = value(name, z, gamma_y=gamma, standardize="none", **given)
            assert_allclose(value(name, rows, **given), expected, rtol=1e-10)


def test_kernels_without_moments_or_means_are_refused():
    y, x = np.arange(4.0), np.arange(4.0)[:, None]
    heavy = StudentT(np.zeros(4), np.ones(4), np.full(4, 2.5))
    with pytest.raises(DataError, match="4 of 4 student-t distributions have no finite moment of order 3"):
        cce(x, y, heavy, kernel_y="polynomial", has_embedding=False)
    joint = JointGaussian(np.zeros((4, 2)), np.tile(np.eye(2), (4, 1, 1)))
    with pytest.raises(DataError, match="laplace kernel on targets has no closed form for joint-gaussian"):
        cce(x, np.stack([y, y**2], axis=1), joint, kernel_y="laplace", has_embedding=False)
    cauchy = Cauchy(np.zeros(4), np.ones(4))
    with pytest.raises(DataError, match="scaled by the deviation of the predictions, but a cauchy distribution has no"):
        cce(x, y, cauchy, kernel_y="laplace", has_embedding=False)
    with pytest.raises(DataError, match="cauchy distributions, at most 16,777,216 fit: their tails are too heavy"):
        cce(x, y, cauchy, kernel_y="laplace", gamma_y=1.0, has_embedding=False)
    with pytest.raises(OptionError, match="polynomial of degree 30 has 46,376 monomials of 4 target columns"):
        MonomialFeatures(np.ones(4), 30, 1.0)


def null_case(family, seed=31, n=18):
    """Rows whose targets do not follow the predictions."""
    rng = np.random.default_rng(seed)
    x, mean = rng.normal(size=(n, 2)), rng.normal(size=n)
    if family == "poisson":
        return Predictions(y=rng.poisson(6, n) * 1.0, predictive=Poisson(np.exp(mean)), x=x, has_embedding=False)
    std = rng.uniform(0.5, 1, n)
    y = mean + 2 * std * rng.normal(size=n)
    predictive = {
        "gaussian": Gaussian(mean, std),
        "samples": Samples(mean[:, None] + std[:, None] * rng.normal(size=(n, 3))),
    }[family]
    return Predictions(y=y, predictive=predictive, x=x, has_embedding=False)


NULLS = [
    *[("cce", {}), ("cce", {"estimator": "unbiased"}), ("cce", {"lambda_model": 0.03}), ("cce", {"gamma_y": 0.4})],
    *[("cce", {"draws": 2, "trials": 2}), ("ammd", {}), ("ammd", {"statistic": "v"}), ("cmmd", {})],
    *[("jmmd", {"statistic": statistic}) for statistic in ESTIMATORS],
]


@every_kernel
@pytest.mark.parametrize(("family", "null"), pairs(["gaussian", "samples", "poisson"], NULLS, 3), ids=str)
def test_every_replicate_has_the_value_that_it_has_alone(kernel, family, null):
    name, options = null
    rows, run = null_case(family), Run(replicates=19)
    metric = METRICS[name](kernel_y=kernel, **options)

    def alone(each):
        fit = metric.fit(InMemory(each), run)
        return statistic_of(metric, metric.evaluate(fit, InMemory(each), run)).estimate()

    if "trials" in options and family == "samples":
        metric = replace(metric, trials=1)
    simulation = NullSimulator(rows, run)
    found = metric.null_distribution(metric.fit(InMemory(rows), run), simulation, run)
    if found is None:
        assert name == "ammd"
        assert kernel == "laplace"
        return
    assert_allclose(np.append(found.data_value, found.values), [alone(each) for each in (rows, *simulation)], rtol=3e-5)


@pytest.mark.parametrize("options", [{}, {"lambda_model": 0.03}, {"draws": 2, "trials": 2}, {"estimator": "unbiased"}])
@pytest.mark.parametrize("at", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_replicates_are_exact_where_the_kernel_on_inputs_has_a_low_rank(options, at):
    """A single smooth input: columns are then reduced to the rank of the kernel."""
    rng, run = np.random.default_rng(6), Run(replicates=19)
    x = rng.uniform(0, 6, (80, 1))
    rows = replace(null_case("gaussian", n=80), x=x)
    metric = Cce(kernel_y="laplace", **options)
    points = InMemory(Predictions(x=rng.uniform(0, 6, (9, 1)), has_embedding=False)) if at else None

    def fitted(each):
        fit = metric.fit(InMemory(each), run)
        return metric.at_inputs(fit, points) if at else fit

    simulation = NullSimulator(rows, run)
    found = metric.null_distribution(fitted(rows), simulation, run)
    alone = [metric.evaluate(fitted(each), InMemory(each), run).columns[metric.column] for each in (rows, *simulation)]
    assert_allclose(np.append(found.data_value, found.values), np.mean(alone, axis=1), rtol=1e-6, atol=1e-12)
    assert_allclose(found.at_inputs, alone, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("ridge_model", [None, 0.03])
@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("at", [False, True])
@pytest.mark.parametrize("family", ["gaussian", "samples"])
def test_replicates_in_a_laplace_kernel_equal_naive_closed_forms(ridge_model, low_rank, at, family):
    """One smooth input gives a kernel of low rank; replicates of samples have exchanged draws."""
    rng, run, n = np.random.default_rng(8), Run(replicates=19), 80 if low_rank else 25
    x, points = (rng.uniform(0, 6, (size, 1)) if low_rank else rng.normal(size=(size, 3)) for size in (n, 7))
    rows = replace(null_case(family, n=n), x=x)
    metric = Cce(kernel_y="laplace", gamma_y=0.6, lambda_model=ridge_model, **CCE)
    fit = metric.fit(InMemory(rows), run)
    if at:
        fit = metric.at_inputs(fit, InMemory(Predictions(x=points, has_embedding=False)))
    simulation = NullSimulator(rows, run)
    found = metric.null_distribution(fit, simulation, run)
    given = {"ridge_model": ridge_model, "at": points if at else x}

    def naive_square(each):
        if family == "gaussian":
            return gram_forms(x, each.y, each.predictive, "laplace", 0.6, **given)
        y, draws, k_y = each.y[:, None], each.predictive.load().draws[..., None], target_kernel(0.6, "laplace")
        return cce_squared(x, y, draws, k_x=input_kernel("rbf", 0.3), gamma_y=None, k_y=k_y, **given)

    expected = [naive_square(each) for each in (rows, *simulation)]
    assert_allclose(found.at_inputs**2, expected, rtol=0, atol=1e-10)
    assert_allclose(np.append(found.data_value, found.values), np.sqrt(expected).mean(axis=1), rtol=1e-8)


@pytest.mark.parametrize("family", ["gaussian", "samples"])
@pytest.mark.parametrize("low_rank", [False, True])
def test_unbiased_replicates_in_a_laplace_kernel_are_exact(family, low_rank):
    rng, run, n = np.random.default_rng(9), Run(replicates=19), 80 if low_rank else 25
    x = rng.uniform(0, 6, (n, 1)) if low_rank else rng.normal(size=(n, 3))
    rows = replace(null_case(family, n=n), x=x)
    metric = Cce(kernel_y="laplace", gamma_y=0.6, estimator="unbiased", **CCE)
    simulation = NullSimulator(rows, run)
    found = metric.null_distribution(metric.fit(InMemory(rows), run), simulation, run)
    smoother = weights(input_kernel("rbf", 0.3), x, x, 0.1)
    for values, each in zip(found.at_inputs, (rows, *simulation), strict=True):
        if family == "gaussian":
            square = gram_forms(x, each.y, each.predictive, "laplace", 0.6)
            cross = normal_laplace_mean(each.y - each.predictive.loc, each.predictive.scale, 0.6)
            own = normal_laplace_mean(0 * each.y, np.sqrt(2) * each.predictive.scale, 0.6)
        else:
            draws = each.predictive.load().draws
            k_y = target_kernel(0.6, "laplace")
            square = cce_squared(
                x, each.y[:, None], draws[..., None], k_x=input_kernel("rbf", 0.3), gamma_y=None, k_y=k_y
            )
            cross = np.exp(-0.6 * np.abs(each.y[:, None] - draws)).mean(axis=1)
            own = np.exp(-0.6 * np.abs(draws[:, :, None] - draws[:, None])).mean(axis=(1, 2))
        assert_allclose(values, square - smoother.T**2 @ (1 - 2 * cross + own), rtol=0, atol=1e-10)


@pytest.mark.parametrize("block", [1 << 16, 70])
@pytest.mark.parametrize("gamma", [0.01, 5.0, 400.0])
def test_sums_of_points_have_the_norms_of_their_gram_matrix(gamma, block, monkeypatch):
    """Points that coincide, and points so far apart that exp(gamma distance) overflows; also in blocks of two rows."""
    monkeypatch.setattr("calcheck.embeddings.laplace_embeddings.CACHE_VALUES", block)
    rng = np.random.default_rng(3)
    points, sums = np.append(rng.normal(size=30).round(1), [50.0, -3e3, 50.0]), rng.normal(size=(4, 33))
    gram = np.exp(-gamma * np.abs(points[:, None] - points))
    assert_allclose(norms_of_points(points, gamma, sums), np.diagonal(sums @ gram @ sums.T), rtol=1e-11)
    found = point_embeddings(points, gamma, sums)
    assert_allclose(found.products(), sums @ gram @ sums.T, rtol=1e-11, atol=1e-11)
    assert_allclose(found.norms(), np.diagonal(sums @ gram @ sums.T), rtol=1e-11)


@every_kernel
def test_replicates_of_repeated_targets_have_the_values_that_they_have_alone(kernel):
    rows = group_rows(sampled_rows(*sampled_case(33, draws=4, targets=3, d=2)))
    run = Run(replicates=19)
    for name in ("jmmd", "cmmd"):
        metric = METRICS[name](kernel_y=kernel)
        simulation = NullSimulator(rows, run)
        found = metric.null_distribution(metric.fit(InMemory(rows), run), simulation, run)
        alone = [
            statistic_of(metric, metric.evaluate(metric.fit(InMemory(each), run), InMemory(each), run)).estimate()
            for each in simulation
        ]
        assert_allclose(found.values, alone, rtol=3e-5)


@every_kernel
def test_two_models_are_compared_by_the_difference_of_their_values(kernel):
    """The contributions of rows sum to twice the difference of squared values."""
    first, second = null_case("gaussian"), null_case("gaussian", seed=32)
    both = concat([first, replace(second, y=first.y, x=first.x)])
    for name, options in (("jmmd", {}), ("jmmd", {"statistic": "paper"}), ("cmmd", {})):
        metric = METRICS[name](kernel_y=kernel, standardize="none", **options)
        one, other = (
            value(name, both.take(slice(s, s + 18)), kernel_y=kernel, standardize="none", **options) for s in (0, 18)
        )
        assert_allclose(metric.influences(both, Run()).sum(), 2 * (other - one), rtol=1e-8)


@every_kernel
def test_two_models_are_compared_by_the_difference_of_mean_squared_cce(kernel):
    first, second = null_case("gaussian"), null_case("gaussian", seed=32)
    both = concat([first, replace(second, y=first.y, x=first.x)])
    options = {"kernel_y": kernel, "gamma_y": 0.5}
    one, other = (
        np.mean(cce(part.x, part.y, part.predictive, has_embedding=False, **options) ** 2)
        for part in (both.take(slice(start, start + 18)) for start in (0, 18))
    )
    assert_allclose(Cce(**options).influences(both, Run()).sum(), 2 * (other - one), rtol=1e-8)


def test_replicates_are_the_same_where_the_matrices_of_the_smoother_do_not_fit_in_memory():
    """8 arrays of 120 x 120 numbers take 922 kB; with less, each replicate has factors of its Gram matrix."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 15))  # The kernel on inputs has full rank
    rows = InMemory(Predictions(y=rng.normal(x[:, 0]), predictive=Gaussian(x[:, 0], np.ones(120)), x=x))
    metric, found = Cce(kernel_x="rbf", gamma_x=0.5, kernel_y="laplace"), []
    for memory in (2**30, 900_000):
        run = Run(replicates=19, memory=memory)
        found.append(metric.null_distribution(metric.fit(rows, run), NullSimulator(rows.predictions(), run), run))
    assert_allclose(found[1].values, found[0].values, rtol=1e-10)
