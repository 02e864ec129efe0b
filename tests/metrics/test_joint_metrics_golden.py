"""Metrics of joint distributions equal the naive sums over pooled samples, on random data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.distributions.continuous import Laplace, StudentT
from calcheck.distributions.count_families import Poisson
from calcheck.inference.bootstrap import statistic_of
from calcheck.metrics import METRICS
from calcheck.predictions import group_rows
from tests.helpers import naive_joint as naive
from tests.helpers.joint_cases import gaussians, rows_of_case, sampled_case, sampled_rows, scaled, value
from tests.helpers.shorthand import rows_of
from tests.helpers.simulations import pairs, slow

ESTIMATORS = ["unbiased", "v", "paper"]
KERNELS = [("rbf", 0.5), ("rbf", "1/d"), ("rbf", "median"), ("laplace", 0.3), ("laplace", "1/d"), ("laplace", "median")]
every_size = pytest.mark.parametrize("draws", [2, 5])
every_count = pytest.mark.parametrize("targets", [1, 3])
every_width = pytest.mark.parametrize("d", [1, 8])
every_target = pytest.mark.parametrize("columns", [1, 3])
every_scale = pytest.mark.parametrize("standardize", ["data", "none"])
every_width_and_scale = pytest.mark.parametrize(("d", "standardize"), pairs([1, 8], ["data", "none"], 2))


@every_size
@every_count
@every_target
@every_width_and_scale
def test_jmmd_of_draws_equals_that_of_pooled_samples(draws, targets, d, columns, standardize):
    case = sampled_case(1, draws=draws, targets=targets, d=d, columns=columns)
    rows, (x, y, model) = sampled_rows(*case), scaled(case, standardize)
    for statistic in ESTIMATORS:
        for kernel, gamma in KERNELS:
            k_x = naive.kernel_on(x, kernel, gamma)
            expected = naive.jmmd(x, y, model, k_x=k_x, statistic=statistic)
            options = {"kernel_x": kernel, "gamma_x": gamma, "standardize": standardize}
            assert_allclose(value("jmmd", rows, statistic=statistic, **options), expected, rtol=0, atol=1e-10)


@every_size
@every_count
@every_target
@every_width_and_scale
def test_cmmd_of_draws_equals_that_of_pooled_samples(draws, targets, d, columns, standardize):
    """The naive systems have all pairs of an input and a target, and of an input and a draw."""
    case = sampled_case(2, draws=draws, targets=targets, d=d, columns=columns)
    rows, (x, y, model) = sampled_rows(*case), scaled(case, standardize)
    for kernel, gamma in KERNELS:
        for ridge in (0.1, 0.003):
            expected = naive.cmmd(x, y, model, k_x=naive.kernel_on(x, kernel, gamma), ridge=ridge)
            options = {"kernel_x": kernel, "gamma_x": gamma, "standardize": standardize, "lambda_": ridge}
            assert_allclose(value("cmmd", rows, **options), expected, rtol=1e-10, atol=1e-10)


@every_size
@every_count
@every_target
@every_scale
def test_ammd_of_draws_equals_the_mean_of_naive_sums_over_rows(draws, targets, columns, standardize):
    case = sampled_case(3, draws=draws, targets=targets, columns=columns)
    rows, (_, y, model) = sampled_rows(*case), scaled(case, standardize)
    for statistic in ESTIMATORS:
        for constant in (False, True)[:targets]:  # it is undefined for one target per input
            for gamma_y in (0.5, 2.0):
                given = {"statistic": statistic, "constant": constant, "gamma_y": gamma_y}
                expected = naive.ammd(y, model, **given)
                assert_allclose(value("ammd", rows, standardize=standardize, **given), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["ammd", "jmmd", "cmmd", "fid"])
def test_the_value_follows_from_the_values_of_rows(name):
    """By the methods prepare, fit, rows and value, not by the report."""
    case = sampled_case(4, targets=3, d=2, columns=2)
    rows, (x, y, model) = sampled_rows(*case), scaled(case, "data")
    expected = {
        "ammd": lambda: naive.ammd(y, model),
        "jmmd": lambda: naive.jmmd(x, y, model),
        "cmmd": lambda: naive.cmmd(x, y, model),
        "fid": lambda: naive.fid(x, y, model),
    }[name]()
    metric = METRICS[name]()
    assert_allclose(
        statistic_of(metric, rows_of(metric, group_rows(rows))).estimate(), expected, rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("gamma_y", [0.05, 0.5, 4.0])
def test_gamma_y_applies_to_standardized_targets(gamma_y):
    case = sampled_case(5, targets=3, draws=5, d=2, columns=3)
    rows, (x, y, model) = sampled_rows(*case), scaled(case, "data")
    for statistic in ESTIMATORS:
        expected = naive.jmmd(x, y, model, gamma_y=gamma_y, statistic=statistic)
        assert_allclose(value("jmmd", rows, gamma_y=gamma_y, statistic=statistic), expected, rtol=0, atol=1e-10)
    assert_allclose(value("cmmd", rows, gamma_y=gamma_y), naive.cmmd(x, y, model, gamma_y=gamma_y), rtol=1e-10)


def exact_values(rows, standardize="data"):
    """Return every kernel metric with every statistic, for predictions that are distributions."""
    found = {"cmmd": value("cmmd", rows, standardize=standardize)}
    for statistic in ESTIMATORS:
        found[f"jmmd {statistic}"] = value("jmmd", rows, standardize=standardize, statistic=statistic)
        for constant in (False, True)[: 1 if rows.id is None else 2]:
            given = {"statistic": statistic, "constant": constant}
            found[f"ammd {statistic} {constant}"] = value("ammd", rows, standardize=standardize, **given)
    return found


def expected_values(x, embeddings, targets):
    """Return the same from inner products of embeddings."""
    k = naive.kernel_on(x)(x, x)
    found = {"cmmd": naive.cmmd_of(k, embeddings)}
    for statistic in ESTIMATORS:
        found[f"jmmd {statistic}"] = naive.jmmd_of(k, embeddings, statistic=statistic)
        for constant in (False, True)[: min(targets, 2)]:
            given = {"statistic": statistic, "constant": constant}
            found[f"ammd {statistic} {constant}"] = naive.ammd_of(embeddings, targets, **given)
    return found


def assert_same(found, expected, atol=1e-10):
    assert found.keys() == expected.keys()
    for name, number in expected.items():
        assert_allclose(found[name], number, rtol=0, atol=atol, err_msg=name)


@every_count
@every_width
@every_target
@every_scale
def test_normal_distributions_equal_the_closed_forms(targets, d, columns, standardize):
    """The limit of infinitely many draws."""
    x, y, model = sampled_case(6, targets=targets, d=d, columns=columns)
    std = np.abs(model[:, 0] - model[:, 1]) + 0.2
    rows = rows_of_case(x, y, gaussians(model[:, 0], std))
    x, y, mean = scaled((x, y, model[:, :1]), standardize)
    if standardize == "data":
        std = std / rows.y.reshape(len(rows), -1).std(axis=0, ddof=1)
    embeddings = naive.gaussian_embeddings(y, mean[:, 0], std)
    assert_same(exact_values(rows, standardize), expected_values(x, embeddings, targets))


@pytest.mark.parametrize("shift", [30, 1e6])
@pytest.mark.parametrize("factor", [1e-6, 1, 1e4])
def test_models_far_from_the_targets_are_equally_exact(shift, factor):
    """Predictions of any width, far from all targets and from each other."""
    x, y, model = sampled_case(9, targets=2, columns=2)
    mean = model[:, 0] + shift * np.random.default_rng(0).normal(size=model[:, 0].shape)
    std = factor * (np.abs(model[:, 0] - model[:, 1]) + 0.2)
    rows = rows_of_case(x, y, gaussians(mean, std))
    inputs, targets, center = scaled((x, y, mean[:, None]), "data")
    embeddings = naive.gaussian_embeddings(targets, center[:, 0], std / rows.y.std(axis=0, ddof=1))
    assert_same(exact_values(rows), expected_values(inputs, embeddings, 2))
    inputs, targets, draws = scaled((x, y, factor * (model - 7) + shift), "data")
    rows = sampled_rows(x, y, factor * (model - 7) + shift)
    for statistic in ESTIMATORS:
        assert_allclose(
            value("jmmd", rows, statistic=statistic),
            naive.jmmd(inputs, targets, draws, statistic=statistic),
            rtol=0,
            atol=1e-10,
        )
    assert_allclose(value("cmmd", rows), naive.cmmd(inputs, targets, draws), rtol=1e-9)
    assert_allclose(value("fid", rows), naive.fid(inputs, targets, draws), rtol=1e-9)


@every_count
@every_scale
def test_counts_equal_the_sum_over_their_support(targets, standardize):
    """Poisson, rates of some 4: all but 1e-16 of the mass lies on 0 to 59."""
    rng = np.random.default_rng([7, targets])
    x = rng.normal(size=(14, 2))
    rate = 4 * np.exp(0.4 * x[:, 0])
    y = rng.poisson(rate[:, None], (14, targets)).astype(float)[..., None]
    rows = rows_of_case(x, y, Poisson(1.3 * rate))
    support = np.arange(60.0)
    mass = stats.poisson(1.3 * rate[:, None]).pmf(support)
    x, y, points = scaled((x, y, support[:, None]), standardize)
    embeddings = naive.weighted_embeddings(y, points[:, 0], mass)
    assert_same(exact_values(rows, standardize), expected_values(x, embeddings, targets))


@pytest.mark.parametrize("family", [slow("student-t"), "laplace"])
@every_scale
def test_distributions_without_closed_forms_equal_numerical_integration(family, standardize):
    """Gauss-Legendre quadrature in theta, u = tan(theta), on either side of 0, where a Laplace density has its kink.

    120 points per side; 90 give the same to the same tolerance.
    """
    rng = np.random.default_rng(8)
    x = rng.normal(size=(6, 2))
    loc, scale = np.sin(x[:, 0]), rng.uniform(0.3, 0.9, 6)
    y = (loc + scale * rng.standard_t(5, 6))[:, None, None]
    predictive, law = {
        "student-t": (StudentT(loc=loc, scale=scale, df=np.full(6, 4.5)), stats.t(4.5)),
        "laplace": (Laplace(loc, scale), stats.laplace),
    }[family]
    rows = rows_of_case(x, y, predictive)

    def expected(size):
        nodes, weights = np.polynomial.legendre.leggauss(size)
        theta, weight = np.pi / 4 * (np.append(nodes - 1, nodes + 1)), np.pi / 4 * np.tile(weights, 2)
        points = loc[:, None] + scale[:, None] * np.tan(theta)
        mass = np.broadcast_to(law.pdf(np.tan(theta)) / np.cos(theta) ** 2 * weight, points.shape)
        inputs, targets, nodes = scaled((x, y, points[..., None]), standardize)
        return expected_values(inputs, naive.weighted_embeddings(targets, nodes[..., 0], mass), 1)

    fine = expected(120)
    assert_same(expected(90), fine, 1e-10)
    assert_same(exact_values(rows, standardize), fine, 1e-9)


def test_one_pair_of_rows_by_hand():
    """n = 2, l = 2, gamma_x = gamma_y = 0.5, nothing standardized: x = 0, 1; y = 0, 0; draws (0, 2) and (0, 0).

    K_12 = k(0, 1) = e^(-1/2) = q. With e = k(0, 2) = e^(-2): a_1 = a_2 = b_2 = phi(0), b_1 = (phi(0) + phi(2)) / 2, so
    delta_1 = (phi(0) - phi(2)) / 2 and delta_2 = 0: |delta_1|^2 = (2 - 2 e) / 4 = (1 - e) / 2.
    JMMD: unbiased 2 q delta_1 . delta_2 / 2 = 0; V (1 - e) / 2 / 4; paper -2/(4 * 2) (cross) + (model) / 12, with
    cross = (1 + e) + 2 q + q (1 + e) + 2: y_1 with its own draws and with those of row 2, y_2 with those of row 1 and
    with its own, model = 2 (e + 1 + 2 q (1 + e)): draws 0 and 2 of row 1, 0 and 0 of row 2, one of row 1 and one of 2.
    AMMD unbiased: row 1: -2 (1 + e) / 2 + e = -1, row 2: -2 + 1 = -1; V: -(1 + e) + (2 + 2 e) / 4, and -2 + 1.
    CMMD, lambda = 0.1: W = (K + 0.2 I)^-1 has W_11 = 1.2 / D, W_12 = -q / D, D = 1.44 - q^2; (W K W)_11 |delta_1|^2.
    """
    x, y = np.array([[0.0], [1.0]]), np.zeros((2, 1, 1))
    draws = np.array([[[0.0], [2.0]], [[0.0], [0.0]]])
    rows, plain = sampled_rows(x, y, draws), {"standardize": "none"}
    q, e = np.exp(-0.5), np.exp(-2)
    cross, model = (1 + e) + 2 * q + q * (1 + e) + 2, 2 * (e + 1 + 2 * q * (1 + e))
    determinant = 1.44 - q**2
    own, other = 1.2 / determinant, -q / determinant
    expected = {
        ("jmmd", "unbiased"): 0,
        ("jmmd", "v"): (1 - e) / 8,
        ("jmmd", "paper"): -cross / 4 + model / 12,
        ("ammd", "unbiased"): -1,
        ("ammd", "v"): (-(1 + e) / 2 - 1) / 2,
    }
    for (name, statistic), number in expected.items():
        assert_allclose(value(name, rows, statistic=statistic, **plain), number, rtol=0, atol=1e-12)
    squared = own**2 + other**2 + 2 * q * own * other
    assert_allclose(value("cmmd", rows, **plain), squared * (1 - e) / 2, rtol=1e-12)
