"""CCE with landmarks equals its formulas with explicit inverses, and its estimated error covers the true one."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian, Independent, Samples
from calcheck.distributions.continuous import StudentT
from calcheck.distributions.count_families import Poisson
from calcheck.embeddings import landmarks, nystroem
from calcheck.embeddings.nystroem import CORRECTION_ERROR, RANGE_SHARE, STANDARD_ERRORS, VALIDATION_STANDARD_ERRORS
from calcheck.evaluation import evaluate
from calcheck.execution.run import Limits, Run
from calcheck.metrics.cce import Cce
from calcheck.predictions import InMemory, Predictions
from tests.helpers.naive import cce_squared, input_kernel
from tests.helpers.naive_nystroem import corrections, differences_gaussian, error_of_mean, left_over
from tests.helpers.naive_nystroem import nystroem_embedding as naive
from tests.helpers.shorthand import cce, gaussian_case
from tests.helpers.simulations import band, sets, slow

PLAIN = {"kernel_x": "rbf", "gamma_x": 0.3, "normalize": "none", "solver": "nystroem"}
K_X = input_kernel("rbf", 0.3)
QUICK = Run(replicates=0)
SHARES = (0, 0.5, 1)  # of the power 1 - chance^2


FEW = Run(replicates=0, limits=Limits(full_validation_rows=0, validation_rows=60))
"""Estimate the error on some of few rows, as for many rows."""


@pytest.fixture
def all_directions(monkeypatch):
    """Regress all directions of the targets, also those of rounding: the tolerance is no limit but an accuracy."""
    monkeypatch.setattr(nystroem, "RESIDUAL_TOLERANCE", 0.0)


def rows_of(seed=0, n=200, d=3, spread=1.0):
    x, y, predictive = gaussian_case(np.random.default_rng(seed), n, d, spread=spread)
    return Predictions(y=y, predictive=predictive, x=x)


def embedded(rows, run=QUICK, **options):
    """Return the regression on landmarks, before it becomes a report."""
    metric, source = Cce(**{**PLAIN, **options}), InMemory(rows)
    return metric.fit(source, run).embedding.fitted(metric.lambda_)


def result(rows, run=QUICK, **options):
    (found,) = evaluate(InMemory(rows), [Cce(**{**PLAIN, **options})], run=run).results
    return found


def differences(rows):
    gamma_y = 1 / (2 * rows.y.var(ddof=1))
    return differences_gaussian(rows.y, rows.predictive.loc, rows.predictive.scale, gamma_y)


def centered(rows):
    """Return the inputs minus their mean, as kernels of differences use them."""
    return rows.x - rows.x.mean(axis=0)


def places_of(found, x):
    """Return which of the inputs are validation rows."""
    return np.array([np.argmin(np.sum((x - each) ** 2, axis=1)) for each in found.landmarks.validation])


@pytest.mark.usefixtures("all_directions")
@pytest.mark.parametrize("ridge", [0.1, 0.01, 1e-4])
@pytest.mark.parametrize("by", ["uniform", "leverage"])
def test_values_correction_error_and_dof_equal_the_formulas(ridge, by):
    rows = rows_of(spread=0.7)
    x = centered(rows)
    found = embedded(rows, FEW, lambda_=ridge, landmarks=25, landmark_sampling=by)
    expected = naive(K_X, x, found.landmarks.landmarks, ridge, differences(rows))
    validation = places_of(found, x)
    assert len(np.unique(validation)) == 60
    by_row = np.empty(len(x))
    by_row[:] = found.values[:, 0]
    assert_allclose(by_row, expected.norms(expected.fitted), rtol=1e-7, atol=1e-9)
    weights = found.landmarks.weights
    assert_allclose(weights.sum(), 200)
    powers = [share * (1 - np.minimum(1 / weights, 1) ** 2) for share in SHARES]
    low, likely, high = (corrections(expected, K_X, x, validation, ridge, weights, power) for power in powers)
    assert_allclose(found.measured.corrections[0], np.average(likely, weights=weights), rtol=1e-6, atol=1e-9)
    assert_allclose(found.measured.means[0], by_row.mean() + np.average(likely, weights=weights), rtol=1e-8)
    parts = (
        VALIDATION_STANDARD_ERRORS * error_of_mean(likely, weights, 200),
        RANGE_SHARE * np.average(high - low, weights=weights),
        CORRECTION_ERROR * (1 - 60 / 200) * np.average(np.abs(likely), weights=weights),
    )
    assert_allclose(found.measured.errors[0], np.linalg.norm(parts), rtol=1e-5)
    gram = K_X(x, x)
    exact = np.trace(gram @ np.linalg.inv(gram + 200 * ridge * np.eye(200)))
    assert abs(found.measured.dof - exact) <= found.measured.dof_error
    assert found.measured.dof + found.measured.dof_error <= 200


@pytest.mark.usefixtures("all_directions")
def test_the_error_includes_rows_that_are_not_evaluated():
    rows, some = rows_of(spread=0.7), replace(FEW.limits, evaluated_rows=120)
    found = embedded(rows, replace(FEW, limits=some), landmarks=25)
    values = found.values[:, 0]
    assert values.shape == (120,)
    expected = naive(K_X, centered(rows), found.landmarks.landmarks, 0.1, differences(rows))
    everywhere = expected.norms(expected.fitted)
    assert_allclose(values, everywhere[found.places], rtol=1e-8)
    assert_allclose(found.at_all_rows(), everywhere, rtol=1e-8)
    weights, validation = found.landmarks.weights, places_of(found, centered(rows))
    assert_allclose(weights.sum(), 200)
    powers = [share * (1 - np.minimum(1 / weights, 1) ** 2) for share in SHARES]
    low, likely, high = (
        corrections(expected, K_X, centered(rows), validation, 0.1, weights, power) for power in powers
    )
    parts = (
        STANDARD_ERRORS * values.std(ddof=1) * np.sqrt((1 - 120 / 200) / 120),
        VALIDATION_STANDARD_ERRORS * error_of_mean(likely, weights, 200),
        RANGE_SHARE * np.average(high - low, weights=weights),
        CORRECTION_ERROR * (1 - 60 / 200) * np.average(np.abs(likely), weights=weights),
    )
    assert_allclose(found.measured.errors[0], np.linalg.norm(parts), rtol=1e-5)


@pytest.mark.parametrize("ridge", [0.1, 0.001])
@pytest.mark.parametrize("count", [5, 30, 120])
def test_the_error_of_landmarks_follows_from_the_residual(count, ridge):
    """F - F_M = n lambda (K + n lambda I)^-1 g, for any landmarks: the identity that gives the error."""
    rng = np.random.default_rng(count)
    x, regressed = rng.normal(size=(150, 4)), rng.normal(size=(150, 2))
    found = naive(K_X, x, x[:count], ridge, np.eye(150))
    gram = K_X(x, x)
    exact = gram @ np.linalg.solve(gram + 150 * ridge * np.eye(150), regressed)
    left, _ = left_over(gram, found.missed @ regressed, np.full(150, 150 * ridge))
    assert_allclose(found.fitted @ regressed + left, exact, rtol=0, atol=1e-10)
    assert np.abs(left).max() > 1e-6


@pytest.mark.parametrize("ridge", [0.1, 0.01, 1e-4, 1e-6])
@pytest.mark.parametrize("by", ["uniform", "leverage"])
def test_with_all_rows_for_validation_the_mean_equals_that_of_the_exact_solver(ridge, by):
    rows = rows_of(spread=0.7)
    exact = result(rows, lambda_=ridge, solver="cholesky")
    found = result(rows, lambda_=ridge, landmarks=20, landmark_sampling=by)
    assert_allclose(found.value, exact.value, rtol=max(1e-8, 1e-13 / ridge))
    assert_allclose(found.details["dof"], exact.details["dof"], rtol=1e-6)
    assert found.details["solver"]["bias_correction"] > 1e-4
    assert found.details["solver"]["error"] < 1e-6 * found.value


@pytest.mark.usefixtures("all_directions")
@pytest.mark.parametrize("options", [{"landmarks": 500}, {"kernel_x": "polynomial", "degree": 2, "landmarks": 40}])
def test_landmarks_that_span_all_directions_are_exact(options):
    """As many landmarks as rows, or as a kernel of finite rank has directions: 10 for degree 2 in 3 columns."""
    rows = rows_of(spread=0.7)
    exact = result(rows, FEW, **{**options, "solver": "cholesky", "landmarks": None})
    found = result(rows, FEW, **options)
    assert_allclose(found.value, exact.value, rtol=1e-8)
    assert abs(found.details["solver"]["bias_correction"]) < 1e-9
    assert abs(found.details["solver"]["error"]) < 1e-9
    assert_allclose(found.details["dof"], exact.details["dof"], rtol=1e-5)
    assert found.details["quantiles"] == pytest.approx(exact.details["quantiles"], rel=1e-7)


@pytest.mark.parametrize("ridge", [0.1, 1e-3])
@pytest.mark.parametrize("shape", ["normal", "lognormal", "t"])
def test_few_landmarks_are_exact_for_one_input(shape, ridge):
    """Half of the rows are evaluated; landmarks represent the others too, also those far from all rows."""
    rng = np.random.default_rng(3)
    draws = {"normal": rng.normal, "lognormal": rng.lognormal, "t": lambda size: rng.standard_t(3, size)}
    x = draws[shape](size=(500, 1))
    mean, std = np.cos(x[:, 0]), np.full(500, 0.4)
    rows = Predictions(y=np.sin(x[:, 0]) + std * rng.normal(size=500), predictive=Gaussian(mean, std), x=x)
    some = Limits(full_validation_rows=0, validation_rows=60, evaluated_rows=250, pilot_rows=100, min_landmarks=4)
    found = embedded(rows, replace(QUICK, limits=some), lambda_=ridge)
    exact = cce(x, rows.y, rows.predictive, lambda_=ridge, **{**PLAIN, "solver": "cholesky"})
    assert len(found.landmarks.landmarks) <= 128
    assert_allclose(found.at_all_rows(), exact, rtol=0, atol=1e-10)
    assert abs(found.measured.corrections[0]) < 1e-11


@pytest.mark.parametrize("ridge", [0.1, 1e-4, 1e-6])
def test_equal_and_nearly_equal_landmarks_are_allowed(ridge):
    """Every input three times, once moved by 1e-9: half of the directions of the landmarks are rounding errors."""
    base = rows_of(n=60).x
    x = np.concatenate([base, base, base + 1e-9])
    y, predictive = rows_of(n=180).y, rows_of(n=180, spread=0.7).predictive
    rows = Predictions(y=y, predictive=predictive, x=x)
    exact = result(rows, lambda_=ridge, solver="cholesky")
    for count in (100, 180):
        found = result(rows, lambda_=ridge, landmarks=count)
        assert_allclose(found.value, exact.value, rtol=1e-6)


SIZES = Limits(full_validation_rows=0, validation_rows=300, evaluated_rows=1200, min_landmarks=30)
SPREADS = {"perfect": 1.0, "narrow": 0.7, "wide": 1.6, "too narrow": 0.85, "plainly wrong": 0.3}


def study_case(seed, d, spread):
    rng = np.random.default_rng([seed, d])
    x = rng.normal(size=(1500, d))
    mean = np.sin(x @ rng.normal(size=d) / np.sqrt(d))
    std = rng.uniform(0.3, 0.8, 1500)
    return Predictions(y=mean + std * rng.normal(size=1500), predictive=Gaussian(mean, spread * std), x=x)


@pytest.mark.slow
def test_the_estimated_error_covers_the_true_error():
    """40 cases, from perfect to plainly wrong models; at least 30 landmarks, 300 of 1,500 rows for validation.

    The estimate is two standard errors, so it covers the true error in 95 %: in at least 36 of 40 cases.
    """
    run = replace(QUICK, limits=SIZES)
    true, uncorrected, estimated = [], [], []
    cases = list(itertools.product(range(2), (1, 16), SPREADS.values(), (0.1, 0.01)))
    for place in np.random.default_rng(0).permutation(len(cases))[: sets(len(cases), 8)]:
        *case, ridge = cases[place]
        rows = study_case(*case)
        options = {"kernel_x": None, "gamma_x": None, "normalize": None}
        exact = result(rows, run, **{**options, "solver": "cholesky", "lambda_": ridge}).value
        found = result(rows, run, **options, lambda_=ridge, landmark_error=0.05)
        solver = found.details["solver"]
        true.append(abs(found.value - exact))
        uncorrected.append(abs(found.value - solver["bias_correction"] - exact))
        estimated.append(solver["error"])
    true, uncorrected, estimated = map(np.array, (true, uncorrected, estimated))
    assert np.sum(true <= estimated) >= band(len(true), 0.95, 0.03)[0]
    assert np.median(estimated / true) < 5
    assert np.mean(true) < 0.3 * np.mean(uncorrected)


def with_far_inputs(case, n=1500):
    """Return rows with inputs far from all others, at which the model is wrong."""
    rng = np.random.default_rng(7)
    x = rng.standard_t(2, (n, 2)) if case == "heavy tails" else rng.normal(size=(n, 2))
    far = np.max(np.abs(x), axis=1) > 10
    if case == "a far cluster":
        far = np.arange(n) < n // 100
        x[far] += 100
    mean, std = np.sin(x[:, 0]), np.full(n, 0.4)
    return Predictions(y=mean + std * rng.normal(size=n), predictive=Gaussian(mean + far * 2 * std, std), x=x)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["heavy tails", "a far cluster"])
def test_the_estimated_error_covers_inputs_far_from_all_others(case):
    """A narrow kernel, a small lambda, up to six seeds each; 300 of 1,500 rows for validation, with the far ones."""
    limits = Limits(full_validation_rows=0, validation_rows=300)
    rows, options = with_far_inputs(case), {"gamma_x": 2.0, "lambda_": 0.001}
    exact = result(rows, **options, solver="cholesky").value
    for seed in range(sets(6)):
        found = result(rows, Run(replicates=0, seed=seed, limits=limits), **options, landmarks=100)
        assert abs(found.value - exact) <= found.details["solver"]["error"] < 0.1 * exact


def p_values(spread, count, landmarks=64):
    return [
        result(rows_of(seed, n=300, spread=spread), Run(replicates=19, seed=seed), landmarks=landmarks).p_value
        for seed in range(count)
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("all_directions")
@pytest.mark.parametrize("landmarks", [64, 8])
def test_a_perfect_model_has_uniform_p_values(landmarks):
    """With any number of landmarks: replicates have the same bias and the same correction as the data."""
    count = sets(40)
    found = np.array(p_values(1.0, count, landmarks))
    for level in (0.1, 0.5):
        low, high = band(count, level, 0.01)
        assert low <= np.sum(found <= level) <= high


@pytest.mark.slow
@pytest.mark.usefixtures("all_directions")
def test_a_wrong_model_fails():
    """300 normal distributions whose std is 60 % of the right one."""
    assert np.mean(np.array(p_values(0.6, count=10)) <= 0.05) >= 0.9


def family(name, seed, n=300):
    """Return rows whose targets are drawn from the predicted distributions."""
    rng = np.random.default_rng([seed, 1])
    x = rng.normal(size=(n, 3))
    loc, scale = np.sin(x[:, 0]), rng.uniform(0.3, 0.8, n)
    if name == "samples":
        draws = loc[:, None] + scale[:, None] * rng.normal(size=(n, 5))
        return Predictions(y=draws[:, 0], predictive=Samples(draws[:, 1:]), x=x)
    predictive = {
        "poisson": Poisson(4 * np.exp(loc)),
        "student-t": StudentT(loc=loc, scale=scale, df=np.full(n, 6.0)),
        "two targets": Independent((Gaussian(loc, scale), Gaussian(-loc, 2 * scale))),
    }[name]
    return Predictions(y=predictive.sample(rng, 1)[:, 0], predictive=predictive, x=x)


@pytest.mark.slow
@pytest.mark.usefixtures("all_directions")
@pytest.mark.parametrize("name", ["samples", "poisson", slow("student-t"), "two targets"])
def test_perfect_models_of_every_family_have_uniform_p_values(name):
    """24 data sets; a quarter of them would not show p-values that are always too large."""
    found = np.array(
        [result(family(name, seed, n=120), Run(replicates=19, seed=seed), landmarks=40).p_value for seed in range(24)]
    )
    low, high = band(24, 0.5, 0.004)
    assert low <= np.sum(found <= 0.5) <= high
    assert np.sum(found <= 0.05) <= band(24, 0.05, 0.004)[1]


@pytest.mark.usefixtures("all_directions")
@pytest.mark.parametrize("size", [1, 4])
def test_replicates_of_samples_exchange_a_draw_and_the_target(size, monkeypatch):
    """Each replicate is a data set: with as many landmarks as rows it equals the naive closed form."""
    rng = np.random.default_rng(size)
    x = rng.normal(size=(50, 2))
    values = np.sin(x[:, :1]) + rng.normal(size=(50, size + 1))
    y, draws = values[:, 0], values[:, 1:]
    chosen = rng.integers(0, size + 1, size=(6, 50))
    swapped = [values[np.arange(50), each] for each in chosen]
    monkeypatch.setattr(Samples, "replicates", lambda self, *_: ((each, self) for each in swapped))
    monkeypatch.setattr(landmarks.NystroemEmbedding, "replicates", 6)
    found = embedded(Predictions(y=y, predictive=Samples(draws), x=x), landmarks=50)
    for one, own, places in zip(found.measured.means[1:], swapped, chosen, strict=True):
        others = draws.copy()
        moved = places > 0
        others[moved, places[moved] - 1] = y[moved]
        gamma_y = 1 / (2 * y.var(ddof=1))
        squared = cce_squared(x, own[:, None], others[:, :, None], k_x=K_X, gamma_y=gamma_y)
        assert_allclose(one, np.sqrt(np.maximum(squared, 0)).mean(), rtol=1e-6)


def test_data_and_replicates_have_the_same_landmarks(monkeypatch):
    """Replicates that equal the data have the value of the data, for any number of validation rows."""
    rows = rows_of(spread=0.7)
    monkeypatch.setattr(Gaussian, "replicates", lambda self, y, _, numbers: ((y, self) for _ in numbers))
    for validation in (0, 4096):
        run = Run(replicates=19, limits=Limits(full_validation_rows=validation))
        means = embedded(rows, run, landmarks=15).measured.means
        assert_allclose(means[1:], means[0], rtol=1e-6)
