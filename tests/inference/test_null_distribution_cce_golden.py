"""Null distribution of CCE: every replicate equals the naive closed form, with its own bandwidth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck.distributions import Gaussian, Independent, Samples
from calcheck.distributions.continuous import Cauchy, StudentT
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.row_random import mix
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference import null_distribution as simulation
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions
from tests.helpers.naive import cce_squared, cce_squared_gaussian, input_kernel, weights
from tests.helpers.shorthand import rows_of
from tests.helpers.simulations import pairs, sets

RUN = Run(replicates=19)
K_X = input_kernel("rbf", 0.3)
PLAIN = {"kernel_x": "rbf", "gamma_x": 0.3, "normalize": "none"}
N = 50
SHARED = 3e-5  # the columns that are smoothed omit 1e-7 of the squared size of what varies
TWICE = {"draws": 1, "trials": 2}


def inputs(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, 2))


def gaussian(seed=0, n=N, unit=1.0):
    """Return rows of normal distributions, with targets twice as far from the means as predicted."""
    rng, x = inputs(seed, n)
    mean, std = unit * np.sin(x[:, 0]), unit * rng.uniform(0.3, 0.8, n)
    return Predictions(y=mean + 2 * std * rng.normal(size=n), predictive=Gaussian(mean, std), x=x)


def simulated(rows, metric, *, at=None, run=RUN):
    """Return the metric of data and replicates, (1 + R,), and its null distribution."""
    source, other = InMemory(rows), None if at is None else InMemory(at)
    fit = metric.fit(source, run)
    if other is not None:
        fit = metric.at_inputs(fit, other)
    found = metric.null_distribution(fit, NullSimulator(rows, run), run)
    return np.append(found.data_value, found.values), found


def data_and_replicates(rows, run=RUN):
    return [rows, *NullSimulator(rows, run)]


def bandwidth(y):
    return 1 / (2 * y.var(ddof=1))


def assert_same(found, squared):
    assert_allclose(found, np.sqrt(squared).mean(axis=1), rtol=SHARED)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("ridge_model", [None, 0.4])
def test_replicates_of_gaussians_equal_the_naive_closed_form(solver, elsewhere, ridge_model):
    rows = gaussian()
    points = np.random.default_rng(9).normal(size=(20, 2)) if elsewhere else None
    metric = Cce(**PLAIN, solver=solver, lambda_model=ridge_model, lambda_=0.05)
    found, null = simulated(rows, metric, at=Predictions(x=points) if elsewhere else None)
    model = {"mean": rows.predictive.loc, "std": rows.predictive.scale, "k_x": K_X}
    model |= {"ridge": 0.05, "ridge_model": ridge_model, "at": points}
    tolerance = SHARED if solver == "cholesky" else 1e-4  # factorized in single precision
    for one, at_inputs, each in zip(found, null.at_inputs, data_and_replicates(rows), strict=True):
        by_own, by_that_of_data = (
            np.sqrt(cce_squared_gaussian(rows.x, each.y, gamma_y=bandwidth(y), **model)) for y in (each.y, rows.y)
        )
        assert_allclose(one, by_own.mean(), rtol=tolerance)
        assert_allclose(at_inputs, by_that_of_data, rtol=0, atol=10 * tolerance * by_own.mean())


def test_the_bandwidth_of_targets_is_recomputed():
    """Targets spread twice as far as a perfect model's, so that with their own bandwidth replicates score less."""
    rows = gaussian()
    found, _ = simulated(rows, Cce(**PLAIN))
    model = {"k_x": K_X, "x": rows.x, "mean": rows.predictive.loc, "std": rows.predictive.scale}
    for one, each in list(zip(found, data_and_replicates(rows), strict=True))[1:]:
        again, fixed = (
            np.sqrt(cce_squared_gaussian(y=each.y, gamma_y=bandwidth(y), **model)).mean() for y in (each.y, rows.y)
        )
        assert abs(fixed / again - 1) > 0.05
        assert_allclose(one, again, rtol=SHARED)


def test_a_given_bandwidth_is_not_changed():
    rows = gaussian()
    found, _ = simulated(rows, Cce(**PLAIN, gamma_y=0.7))
    model = {"k_x": K_X, "gamma_y": 0.7, "mean": rows.predictive.loc, "std": rows.predictive.scale}
    assert_same(found, [cce_squared_gaussian(rows.x, each.y, **model) for each in data_and_replicates(rows)])


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("ridge_model", [None, 0.03])
def test_replicates_of_samples_equal_the_naive_closed_form(size, columns, ridge_model):
    """All draws of a replicate are those of the data, except the one that is swapped with the target."""
    rng, x = inputs(size)
    values = np.sin(x[:, :1, None]) + rng.normal(size=(N, size + 1, columns)) * [1.0, 30.0][:columns]
    y, draws = values[:, 0], values[:, 1:]
    rows = Predictions(
        y=y if columns > 1 else y[:, 0], predictive=Samples(draws if columns > 1 else draws[:, :, 0]), x=x
    )
    found, _ = simulated(rows, Cce(**PLAIN, lambda_model=ridge_model))
    squared = [
        cce_squared(
            x,
            each.y.reshape(N, columns),
            each.predictive.load().draws.reshape(N, size, columns),
            k_x=K_X,
            gamma_y=1 / (2 * columns * each.y.reshape(N, columns).var(axis=0, ddof=1)),
            ridge_model=ridge_model,
        )
        for each in data_and_replicates(rows)
    ]
    assert_same(found, squared)


def family(name):
    """Return rows of a family, with targets drawn from it."""
    rng, x = inputs(5)
    loc, scale = np.sin(x[:, 0]), rng.uniform(0.3, 0.8, N)
    both = Independent((Gaussian(loc, scale), Poisson(4 * np.exp(loc))))
    predictive = {
        "gaussian": Gaussian(loc, scale),
        "student-t": StudentT(loc=loc, scale=scale, df=np.full(N, 8.0)),
        "cauchy": Cauchy(loc, scale),
        "poisson": Poisson(4 * np.exp(loc)),
        "independent": both,
    }[name]
    y = predictive.sample(rng, 1)[:, 0]
    return Predictions(y=y, predictive=predictive, x=x)


OPTIONS = [{}, TWICE, {"estimator": "unbiased"}, TWICE | {"estimator": "unbiased"}]


@pytest.mark.parametrize(
    ("name", "options"), pairs(["gaussian", "student-t", "cauchy", "poisson", "independent"], OPTIONS)
)
def test_replicates_have_the_values_of_the_metric_on_them_as_data(name, options):
    """Choices and features are made again for each replicate; features that all share give the same."""
    rows, metric, run = family(name), Cce(**PLAIN, **options), Run()
    object.__setattr__(run, "replicates", 4)  # fewer than allowed, because some families are slow
    found, _ = simulated(rows, metric, run=run)
    for one, each in zip(found, data_and_replicates(rows, run), strict=True):
        computed = rows_of(metric, each, run=run)
        (expected,) = computed.columns.values()
        size = computed.details.get("noise", np.abs(expected).mean())
        assert_allclose(one.mean(), expected.mean(), rtol=0, atol=3e-5 * size)


def test_draws_are_chosen_after_the_swap():
    """draws = 2 of 5 saved ones: the target that was swapped with a draw may be chosen too."""
    rng, x = inputs(6)
    values = np.sin(x[:, :1]) + rng.normal(size=(N, 6))
    rows, metric = Predictions(y=values[:, 0], predictive=Samples(values[:, 1:]), x=x), Cce(**PLAIN, draws=2, trials=3)
    found, _ = simulated(rows, metric)
    for one, each in zip(found, data_and_replicates(rows), strict=True):
        assert_allclose(one, rows_of(metric, each, run=RUN).columns["cce"].mean(), rtol=SHARED)


def test_the_report_compares_means_over_inputs():
    """p-value, reference, limit and zeta from the naive closed form of data and replicates."""
    rows, run = gaussian(), Run(replicates=39)
    (result,) = evaluate(InMemory(rows), [Cce(**PLAIN)], run=run).results
    model = {"k_x": K_X, "mean": rows.predictive.loc, "std": rows.predictive.scale}
    each = data_and_replicates(rows, run)
    values = [np.sqrt(cce_squared_gaussian(rows.x, one.y, gamma_y=bandwidth(one.y), **model)).mean() for one in each]
    own, replicates = values[0], np.array(values[1:])
    high = np.quantile(replicates, 0.95)
    assert result.p_value == (1 + np.sum(replicates >= own)) / 40
    assert_allclose([result.reference, result.reference_high], [replicates.mean(), high], rtol=SHARED)
    assert_allclose(result.zeta, (own - replicates.mean()) / (high - replicates.mean()), rtol=1e-3)
    assert result.reference_low is None


def test_units_of_the_targets_change_only_the_random_numbers(monkeypatch):
    monkeypatch.setattr(simulation, "row_keys", lambda rows, _: mix(np.arange(len(rows), dtype=np.uint64)))
    first, second = (simulated(gaussian(unit=unit), Cce(**PLAIN))[0] for unit in (1.0, 1e6))
    assert_allclose(first, second, rtol=SHARED)


def test_replicates_with_equal_targets_have_no_value():
    """Two rows of rare counts: the bandwidth of most replicates is undefined, and these are no evidence."""
    rows = Predictions(y=np.array([0.0, 1]), predictive=Poisson(np.full(2, 0.05)), x=np.array([[0.0], [1.0]]))
    (result,) = evaluate(InMemory(rows), [Cce(gamma_x=1.0)], run=Run(replicates=199)).results
    draws = np.array([each.y for each in NullSimulator(rows, Run(replicates=199))])
    assert result.details["null"]["undefined"] == np.sum(draws[:, 0] == draws[:, 1]) > 150
    assert result.p_value > 0.75


def test_a_model_equal_to_its_targets_scores_0_and_so_do_its_replicates():
    """All draws equal the target, so that swapping changes nothing."""
    rng, x = inputs(7)
    y = rng.normal(size=N)
    rows = Predictions(y=y, predictive=Samples(np.repeat(y[:, None], 3, axis=1)), x=x)
    (result,) = evaluate(InMemory(rows), [Cce(**PLAIN)], run=RUN).results
    assert_allclose([result.value, result.reference], 0, atol=1e-7)
    assert result.p_value == 1.0
    assert result.verdict == "pass"


def test_repeated_runs_are_identical():
    rows = family("poisson")
    first, second = (simulated(rows, Cce(**PLAIN, draws=2, estimator="unbiased"))[0] for _ in range(2))
    assert_array_equal(first, second)


def dense(rows, gamma_y, at):
    """Return the squared distance and its noise diagonal by dense algebra, for normal distributions."""
    mean, std = rows.predictive.loc, rows.predictive.scale
    squared = cce_squared_gaussian(rows.x, rows.y, mean, std, k_x=K_X, gamma_y=gamma_y, at=at)
    spread = 1 + 2 * gamma_y * std**2
    cross = np.exp(-gamma_y * (rows.y - mean) ** 2 / spread) / np.sqrt(spread)
    sizes = 1 - 2 * cross + 1 / np.sqrt(1 + 4 * gamma_y * std**2)
    return squared, (weights(K_X, rows.x, rows.x if at is None else at, 0.1) ** 2).T @ sizes


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_unbiased_estimate_is_the_square_minus_its_noise_diagonal(elsewhere):
    """CCE²(x) - sum_i a_i(x)² |psi(y_i) - E psi(Y_i)|², in closed form; of replicates too."""
    rows = gaussian(3)
    at = np.random.default_rng(8).normal(size=(20, 2)) if elsewhere else None
    there = Predictions(x=at) if elsewhere else None
    metric = Cce(**PLAIN, estimator="unbiased")
    computed = rows_of(metric, rows, at=there)
    squared, noise = dense(rows, bandwidth(rows.y), at)
    assert_allclose(computed.columns["cce2"], squared - noise, rtol=0, atol=1e-10)
    assert_allclose(computed.details["noise"], noise.mean(), rtol=1e-9)
    assert computed.details["noise_error"] == 0
    found, null = simulated(rows, metric, at=there)
    noises = []
    for one, at_inputs, each in zip(found, null.at_inputs, data_and_replicates(rows), strict=True):
        squared, noise = dense(each, bandwidth(each.y), at)
        assert_allclose(one, (squared - noise).mean(), rtol=0, atol=SHARED * squared.mean())
        squared, noise = dense(each, bandwidth(rows.y), at)  # at single inputs in the kernel of the data
        assert_allclose(at_inputs, squared - noise, rtol=0, atol=10 * SHARED * squared.mean())
        noises.append(noise)
    assert_allclose(null.floor, -np.mean(noises, axis=0), rtol=SHARED)


def test_the_randomized_noise_is_within_its_error_of_the_exact_one():
    rows = gaussian(4, n=200)
    exact = rows_of(Cce(**PLAIN, estimator="unbiased", solver="cholesky"), rows)
    differences, errors = [], []
    for seed in range(12):
        found = rows_of(Cce(**PLAIN, estimator="unbiased", solver="cg"), rows, run=Run(seed=seed))
        away = found.details["noise"] - exact.details["noise"]
        differences.append(away)
        errors.append(found.details["noise_error"])
        assert 0 < found.details["noise_error"] < 0.1 * exact.details["noise"]
        assert abs(away) < 4 * found.details["noise_error"]
        squared, expected = (each.columns["cce2"].mean() + each.details["noise"] for each in (found, exact))
        assert_allclose(squared, expected, rtol=1e-7)
    assert 0.5 < np.std(differences) / np.mean(errors) < 2


@pytest.mark.slow
def test_the_unbiased_estimate_is_0_on_average_over_perfect_models():
    """Data sets with a fixed bandwidth: the mean is within 4 standard errors of 0; the plain square is above."""
    values, plain = [], []
    for seed in range(sets(300)):
        rows = gaussian(seed, n=40)
        y = rows.predictive.sample(np.random.default_rng([seed, 1]), 1)[:, 0]
        rows = rows.with_targets(y, rows.predictive)
        values.append(rows_of(Cce(**PLAIN, gamma_y=0.5, estimator="unbiased"), rows).columns["cce2"].mean())
        plain.append((rows_of(Cce(**PLAIN, gamma_y=0.5), rows).columns["cce"] ** 2).mean())
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values)) < 4 * error
    assert np.mean(plain) > 1.15 * np.std(values)
