"""Local errors against an independent implementation, closed forms, and published data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import calcheck
from calcheck.distributions import Quantiles
from calcheck.distributions.continuous import Gaussian
from calcheck.distributions.samples import Samples
from calcheck.embeddings import local_error
from calcheck.embeddings.local_error import LAMBDAS
from calcheck.evaluation import evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics.local_error import LocalBias, LocalScale
from calcheck.predictions import InMemory, Predictions

NONE = Run(replicates=0, resamples=0)
DIABETES = "examples/diabetes.parquet"
INPUTS = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]


def second(u):
    return np.sqrt(5) * (6 * u**2 - 6 * u + 1)


def refitted(gram, w, label):
    """Return the predictions of each row by a regression without the rows of its label, with a free constant.

    The constant is not part of the predictions. Of regularizers, it is the largest whose squared errors exceed those of
    the best one by at most one standard error of the difference.
    """
    n = len(w)
    center = np.eye(n) - 1 / n
    gram, w, found = center @ gram @ center, w - w.mean(), []
    for lambda_ in LAMBDAS:
        predicted = np.empty(n)
        for row in range(n):
            others = np.flatnonzero(label != label[row])
            inverse = np.linalg.inv(gram[np.ix_(others, others)] + n * lambda_ * np.eye(len(others)))
            constant = inverse.sum(axis=0) @ w[others] / inverse.sum()
            predicted[row] = gram[row, others] @ inverse @ (w[others] - constant)
        found.append(predicted)
    squares = [(w - each) ** 2 for each in found]
    away = [each - min(squares, key=np.mean) for each in squares]
    return w, [each for each, own in zip(found, away, strict=True) if own.mean() <= own.std() / np.sqrt(n)][-1]


@pytest.mark.parametrize("metric", [LocalScale, LocalBias])
def test_the_value_is_that_of_regressions_without_each_row(metric):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 3))
    y = rng.normal(size=60) * np.exp(0.4 * x[:, 0]) + 0.5 * x[:, 1]
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(60), np.ones(60)), x=x, has_embedding=False)
    (found,) = evaluate(InMemory(rows), [metric()], run=NONE).results
    z = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    u = stats.norm.cdf(y)
    scale = metric is LocalScale
    w, g = refitted((z @ z.T / 3 + 1) ** 3, second(u) if scale else first(u), np.arange(60))
    products = g * w / g.std() / (np.sqrt(15) / np.pi if scale else np.sqrt(3 / np.pi))
    assert_allclose(found.value, products.mean(), rtol=1e-8)
    assert found.low <= products.mean() - stats.norm.ppf(0.95) * products.std() / np.sqrt(60) + 1e-12
    assert found.high is None


def first(u):
    return np.sqrt(3) * (2 * u - 1)


def mean_of(component, transform):
    """Return the expectation of a component of the PIT of a transformed standard normal target."""
    return integrate.quad(lambda z: component(stats.norm.cdf(transform(z))) * stats.norm.pdf(z), -9, 9)[0]


def test_rows_of_a_cluster_are_predicted_without_it_and_the_limit_is_that_of_sums_by_cluster():
    rng = np.random.default_rng(3)
    label = np.repeat(np.arange(12), 5)
    x = rng.normal(size=(60, 2))
    y = rng.normal(size=60) * np.exp(0.5 * x[:, 0])
    rows = Predictions(
        y=y, predictive=Gaussian(np.zeros(60), np.ones(60)), x=x, has_embedding=False, columns={"key": label}
    )
    run = Run(dependence=RowDependence(cluster="key"), replicates=199)
    (found,) = evaluate(InMemory(rows), [LocalScale()], run=run).results
    z = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    w, g = refitted((z @ z.T / 2 + 1) ** 3, second(stats.norm.cdf(y)), label)
    products = g * w / g.std() / (np.sqrt(15) / np.pi)
    assert_allclose(found.value, products.mean(), rtol=1e-8)
    sums = np.bincount(label, products - products.mean())
    error = np.sqrt(np.sum(sums**2) * 12 / 11) / 60
    assert_allclose(found.details["standard_error"], error, rtol=1e-8)
    reach = max(stats.t.ppf(0.95, 11) * error, found.reference_high)
    assert_allclose(found.low, products.mean() - reach, rtol=0.02)
    assert 0.5 < found.reference_high / (stats.t.ppf(0.95, 11) * error) < 2


def test_derivatives_are_those_of_normal_targets():
    step = 1e-4
    shifted = mean_of(first, lambda z: z + step) - mean_of(first, lambda z: z - step)
    scaled = mean_of(second, lambda z: np.exp(step) * z) - mean_of(second, lambda z: np.exp(-step) * z)
    assert_allclose(np.array([shifted, scaled]) / (2 * step), list(local_error.DERIVATIVES.values()), rtol=1e-6)


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.0, 1.3, 2.5])
def test_local_errors_of_expected_components_are_those_of_normal_targets(factor):
    mean = mean_of(second, lambda z: factor * z)
    assert_allclose(local_error.factors(np.array(mean)), factor, rtol=1e-7)
    shift = np.log(factor)
    assert_allclose(local_error.shifts(np.array(mean_of(first, lambda z: z + shift))), shift, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("degree", [1, 2])
def test_draws_and_quantiles_show_a_known_part_of_a_change(degree):
    component = first if degree == 1 else second
    nodes, weights = np.polynomial.legendre.leggauss(4)

    def average(low, high):
        return sum(
            w / 2 * component((low + high) / 2 + x * (high - low) / 2) for x, w in zip(nodes, weights, strict=True)
        )

    m = 7
    by_rank = np.array([average(r / (m + 1), (r + 1) / (m + 1)) for r in range(m + 1)])
    u = np.linspace(0.05, 0.95, 7)
    expected = stats.binom.pmf(np.arange(m + 1), m, u[:, None]) @ by_rank
    draws = Samples(np.random.default_rng(0).normal(size=(3, m)))
    assert_allclose(local_error.resolution(draws, degree) * component(u), expected, rtol=1e-10, atol=1e-12)
    levels = np.array([0.05, 0.3, 0.5, 0.9])
    edges = np.concatenate([[0.0], levels, [1.0]])
    z = stats.norm.ppf(edges)
    weighted = (lambda t: t * stats.norm.pdf(t)) if degree == 1 else (lambda t: (t**2 - 1) * stats.norm.pdf(t))
    parts = [average(*edges[k : k + 2]) * integrate.quad(weighted, *z[k : k + 2])[0] for k in range(len(levels) + 1)]
    predictive = Quantiles(levels=levels, values=np.tile(stats.norm.ppf(levels), (3, 1)))
    found = local_error.resolution(predictive, degree)
    assert_allclose(found, sum(parts) / local_error.DERIVATIVES[degree], rtol=1e-7)


@pytest.mark.slow
def test_the_local_error_of_diabetes_is_as_in_a_prototype():
    """The prototype had 0.257 at lambda 0.03 and 0.250 at 0.1, with a standard error of 0.035."""
    (found,) = calcheck.evaluate(DIABETES, LocalScale(), inputs=INPUTS, seed=0).results
    assert_allclose([found.value, found.details["standard_error"]], [0.250, 0.035], atol=0.006)
    assert found.details["regularizer"] == 0.1
    assert found.low > 0.19
    assert found.p_value == 0.005
    assert found.direction == "conditional-scale"


def test_the_curve_of_local_factors_is_around_1_for_a_right_model_and_follows_a_wrong_one():
    rng = np.random.default_rng(4)
    x = rng.normal(size=600)
    wrong = np.exp(0.4 * x)
    for factor, expected in ((np.ones(600), np.ones(30)), (wrong, wrong[np.argsort(x)].reshape(-1, 20).mean(axis=1))):
        y = factor * rng.normal(size=600)
        rows = Predictions(y=y, predictive=Gaussian(np.zeros(600), np.ones(600)), columns={"x": x})
        run = Run(replicates=39, resamples=0, curves=True)
        (result,) = evaluate(InMemory(rows), [LocalScale(along="x")], run=run).results
        (curve,) = result.curves
        assert curve.x_name == "x"
        found = np.interp(np.sort(x).reshape(-1, 20).mean(axis=1), curve.x, curve.y)
        assert_allclose(found[3:-3], expected[3:-3], rtol=0.25)
        inside = (np.array(curve.low) <= curve.y) & (np.array(curve.y) <= np.array(curve.high))
        assert inside.all() == (factor is not wrong)
