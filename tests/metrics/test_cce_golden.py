"""CCE: derived by hand for one and two rows, and by the naive closed form on random data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Independent, Samples
from calcheck.execution.run import Run
from tests.helpers.naive import cce_squared, cce_squared_gaussian, form, input_kernel, quantile_ece, weights
from tests.helpers.shorthand import as_samples, cce, gaussian_case

KERNELS = {
    "rbf": {"gamma": 0.3},
    "laplace": {"gamma": 0.2},
    "polynomial": {"gamma": 0.5, "degree": 3, "coef0": 1.0},
}


def test_one_row_by_hand():
    """n = 1, k_X = 1 at the row itself (RBF), lambda = 0.25, gamma_y = 1, y = 0.3, one draw y' = 0.8.

    a = (1 + 0.25)^-1 = 0.8, so U = 0.8 phi(y), U' = 0.8 phi(y') and
    CCE^2 = 0.64 (k(y,y) - 2 k(y,y') + k(y',y')) = 0.64 (2 - 2 e^(-0.25)) = 0.28314...
    """
    found = cce(
        np.array([[2.0]]),
        np.array([0.3]),
        Samples(np.array([[0.8]])),
        kernel_x="rbf",
        gamma_x=1.0,
        gamma_y=1.0,
        lambda_=0.25,
    )
    assert_allclose(found**2, [0.64 * (2 - 2 * np.exp(-0.25))], rtol=1e-12)


def test_two_rows_far_apart_by_hand():
    """Two inputs whose kernel is 0 (K_X = I): n lambda = 2 lambda, and rows do not influence each other.

    lambda = 0.1: a_i(x_i) = 1 / (1 + 0.2), CCE(x_i)^2 = (2 - 2 k(y_i, y_i')) / 1.44; with gamma_y = 0.5,
    y = (0, 1), y' = (2, 1): k = e^-2 and 1.
    """
    found = cce(
        np.array([[0.0], [1e3]]),
        np.array([0.0, 1.0]),
        Samples(np.array([[2.0], [1.0]])),
        kernel_x="rbf",
        gamma_x=1.0,
        gamma_y=0.5,
    )
    assert_allclose(found**2, [(2 - 2 * np.exp(-2)) / 1.44, 0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("d", [1, 3, 64])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("ridge_model", [None, 0.03])
def test_draws_equal_the_naive_closed_form(d, kernel, size, ridge_model):
    rng = np.random.default_rng([d, size])
    x, y, predictive = gaussian_case(rng, 70, d)
    draws = as_samples(rng, predictive, size)
    at = rng.normal(size=(30, d))
    shape = KERNELS[kernel] | {"gamma": KERNELS[kernel]["gamma"] / d}
    expected = {
        "k_x": input_kernel(kernel, **shape),
        "gamma_y": 1 / (2 * y.var(ddof=1)),
        "ridge": 0.1,
        "ridge_model": ridge_model,
    }
    options = {"kernel_x": kernel, "gamma_x": shape["gamma"], "normalize": "none", "lambda_model": ridge_model}
    for points in (None, at):
        squared = cce_squared(x, y[:, None], draws.draws[:, :, None], at=points, **expected)
        for solver in ("cholesky", "cg"):
            found = cce(x, y, draws, at=points, solver=solver, **options)
            assert_equal_cce(found, squared)


@pytest.mark.parametrize("d", [1, 3, 64])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("ridge_model", [None, 0.4])
@pytest.mark.parametrize("shift", [0, 40])
def test_exact_gaussians_equal_the_naive_closed_form(d, kernel, ridge_model, shift):
    """Also when predictions lie far outside the range of the targets: 40 is some 30 of their deviations."""
    rng = np.random.default_rng([d, shift])
    x, y, predictive = gaussian_case(rng, 60, d)
    predictive = Gaussian(predictive.loc + shift, predictive.scale)
    shape = KERNELS[kernel] | {"gamma": KERNELS[kernel]["gamma"] / d}
    squared = cce_squared_gaussian(
        x,
        y,
        predictive.loc,
        predictive.scale,
        k_x=input_kernel(kernel, **shape),
        gamma_y=1 / (2 * y.var(ddof=1)),
        ridge_model=ridge_model,
    )
    options = {"kernel_x": kernel, "gamma_x": shape["gamma"], "normalize": "none", "lambda_model": ridge_model}
    for solver in ("cholesky", "cg"):
        assert_equal_cce(cce(x, y, predictive, solver=solver, **options), squared)


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 30, 1e3, 1e6])
def test_exact_gaussians_of_any_width_equal_the_naive_closed_form(factor):
    rng = np.random.default_rng(5)
    x, y, predictive = gaussian_case(rng, 60, 3)
    std = predictive.scale * factor
    squared = cce_squared_gaussian(
        x, y, predictive.loc, std, k_x=input_kernel("rbf", 0.3), gamma_y=1 / (2 * y.var(ddof=1))
    )
    found = cce(x, y, Gaussian(predictive.loc, std), kernel_x="rbf", gamma_x=0.3, normalize="none")
    assert_equal_cce(found, squared)


def test_several_targets_equal_the_naive_closed_form():
    """gamma_y = 1 / (2 t s^2) for each of t columns, the kernel their product."""
    rng = np.random.default_rng(6)
    x, y, _ = gaussian_case(rng, 80, 2)
    both = np.stack([y, 50 * (np.cos(x[:, 0]) + 0.3 * rng.normal(size=80))], axis=1)
    draws = both[:, None, :] + rng.normal(size=(80, 3, 2)) * [0.5, 20]
    squared = cce_squared(x, both, draws, k_x=input_kernel("rbf", 0.3), gamma_y=1 / (4 * both.var(axis=0, ddof=1)))
    found = cce(x, both, Samples(draws), kernel_x="rbf", gamma_x=0.3, normalize="none")
    assert_allclose(found**2, squared, atol=1e-9)


@pytest.mark.slow
def test_independent_gaussians_are_the_limit_of_their_draws():
    rng = np.random.default_rng(7)
    x, y, first = gaussian_case(rng, 60, 2)
    both = np.stack([y, x[:, 1]], axis=1)
    joint = Independent((first, Gaussian(x[:, 1] + 0.3, np.full(60, 0.4))))
    exact = cce(x, both, joint)
    assert_allclose(cce(x, both, joint, draws=4000).mean(), exact.mean(), rtol=0.01)


@pytest.mark.slow
def test_exact_is_the_limit_of_many_draws():
    """The model's embedding has Monte Carlo error 1 / sqrt(l): a hundred times the draws, a tenth of the distance."""
    rng = np.random.default_rng(8)
    x, y, predictive = gaussian_case(rng, 100, 1)
    exact = cce(x, y, predictive)
    few, many = (
        np.mean([np.abs(cce(x, y, predictive, draws=size, run=Run(seed=s)) - exact).mean() for s in range(8)])
        for size in (20, 2000)
    )
    assert 6 < few / many < 16  # with eight seeds each is within about 15 %
    assert many < 0.02 * exact.mean()


def test_exact_means_of_counts_equal_those_of_many_draws():
    """Poisson: the sum over the support equals 2,500 draws per row to Monte Carlo error."""
    from calcheck.distributions.count_families import Poisson

    rng = np.random.default_rng(9)
    x = rng.uniform(0, 3, (80, 1))
    rate = 3 + 2 * np.sin(x[:, 0])
    y = rng.poisson(rate).astype(float)
    exact = cce(x, y, Poisson(rate * 1.5))
    sampled = cce(x, y, Poisson(rate * 1.5), draws=2500)
    assert_allclose(sampled.mean(), exact.mean(), rtol=0.01)


@pytest.mark.slow
def test_cce_detects_a_marginal_model_and_ece_does_not():
    """Figure 1 of the CCE paper: x ~ N(0, 1), y ~ N(3x, 1); the marginal model says N(0, 10) everywhere."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=500)
        y = 3 * x + rng.normal(size=500)
        right, marginal = Gaussian(3 * x, np.ones(500)), Gaussian(np.zeros(500), np.full(500, np.sqrt(10)))
        assert quantile_ece(marginal.cdf(y)) < 0.04
        ratio = cce(x[:, None], y, marginal).mean() / cce(x[:, None], y, right).mean()
        assert ratio > 10


def assert_equal_cce(found, squared):
    """CCE^2 to 1e-10 everywhere, and CCE to 1e-8 where it is above 1e-4."""
    assert_allclose(found**2, squared, rtol=0, atol=1e-10)
    large = squared > 1e-8
    assert_allclose(found[large], np.sqrt(squared[large]), rtol=0, atol=1e-8)


def test_predictions_in_another_unit_equal_the_naive_closed_form():
    """Millimeters against meters: every prediction lies hundreds of length scales from every target and from others."""
    rng = np.random.default_rng(11)
    x, y, predictive = gaussian_case(rng, 400, 3)
    far = Gaussian(1000 * predictive.loc, predictive.scale)
    squared = cce_squared_gaussian(
        x, y, far.loc, far.scale, k_x=input_kernel("rbf", 0.3), gamma_y=1 / (2 * y.var(ddof=1)), ridge=1e-3
    )
    found = cce(x, y, far, kernel_x="rbf", gamma_x=0.3, normalize="none", lambda_=1e-3)
    assert_equal_cce(found, squared)


def test_counts_with_a_narrow_kernel_equal_the_naive_closed_form():
    """gamma_y = 5 distinguishes neighboring counts: the model is its masses on 0 … 999, as weighted draws."""
    from scipy import stats

    from calcheck.distributions.count_families import Poisson

    rng = np.random.default_rng(12)
    x = rng.normal(size=(60, 2))
    rate = 300 * np.exp(0.2 * x[:, 0])
    y = rng.poisson(rate).astype(float)
    k = np.arange(1000.0)
    mass = stats.poisson(rate[:, None]).pmf(k)
    kernel = np.exp(-5 * (k[:, None] - k) ** 2)
    a = weights(input_kernel("rbf", 0.3), x, x, 0.1)
    both = a.T @ (np.eye(1000)[y.astype(int)] - mass)
    squared = np.einsum("ij,jk,ik->i", both, kernel, both)
    assert_equal_cce(cce(x, y, Poisson(rate), kernel_x="rbf", gamma_x=0.3, normalize="none", gamma_y=5.0), squared)


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("factor", [1, 30])
def test_independent_gaussians_equal_the_naive_closed_form(columns, factor):
    """E k is the product over columns; the closed form with all Gram matrices; the right spread, and 30 times that."""
    rng = np.random.default_rng(13)
    n = 60
    x = rng.normal(size=(n, 2))
    mean = rng.normal(size=(n, columns))
    std = rng.uniform(0.2, 0.6, (n, columns))
    y = mean + std * rng.normal(size=(n, columns))
    std = std * factor
    gamma = 1 / (2 * columns * y.var(axis=0, ddof=1))
    a = weights(input_kernel("rbf", 0.3), x, x, 0.1)

    def product(u, v, var):
        spread = 1 + 2 * gamma * var
        return np.prod(np.exp(-gamma * (u - v) ** 2 / spread) / np.sqrt(spread), axis=-1)

    data = product(y[:, None], y, np.zeros((1, n, columns)))
    cross = product(y[:, None], mean, std[None] ** 2)
    model = product(mean[:, None], mean, std[:, None] ** 2 + std**2)
    squared = form(a, data - cross - cross.T + model, a)
    predictive = Independent(tuple(Gaussian(mean[:, t], std[:, t]) for t in range(columns)))
    assert_equal_cce(cce(x, y, predictive, kernel_x="rbf", gamma_x=0.3, normalize="none"), squared)


@pytest.mark.slow
def test_thousands_of_rows_have_the_same_cce_with_every_solver():
    """n = 6,000: a factorization, iterations with the Gram matrix stored and recomputed, and float32."""
    rng = np.random.default_rng(21)
    x, y, predictive = gaussian_case(rng, 6000, 64)
    expected = cce(x, y, predictive, solver="cholesky")
    for run in (Run(), Run(memory=1 << 20), Run(device="cpu")):
        assert_allclose(cce(x, y, predictive, solver="cg", run=run), expected, rtol=0, atol=1e-9)
    single = cce(x, y, predictive, run=Run(precision="float32"))
    assert_allclose(single.mean(), expected.mean(), rtol=1e-4)


@pytest.mark.parametrize("shift", [0, 12])
def test_separate_regressions_along_principal_directions_equal_the_exact_solution(shift):
    """Wide predictions have 220 features, of which targets need 25: each regression has directions of its own."""
    rng = np.random.default_rng(5)
    x, y, predictive = gaussian_case(rng, 400, 1)
    model = Gaussian(predictive.loc + shift, 5 * predictive.scale)
    expected, found = (cce(x, y, model, solver=solver, lambda_model=0.003) for solver in ("cholesky", "cg"))
    assert_allclose(found, expected, rtol=0, atol=1e-11)
