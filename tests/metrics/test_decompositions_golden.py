"""Parts of scores by isotonic regression: published values, an independent solver, and what follows from both."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.statistics.scores import isotonic_means, isotonic_quantiles, pinball_losses
from tests.helpers.families import calibrated

PLAIN = Run(resamples=0, replicates=0)
X = np.array([1.0, 2, 4, 6, 8, 10, 11, 12, 14])
Y = np.array([4.0, 5, 6, 9, 10, 11, 13, 8, 15])


def result(name, rows, run=PLAIN, **options):
    return evaluate(InMemory(rows), [METRICS[name](**options)], run=run).results[0]


def of_points(x, y):
    return Predictions(y=np.asarray(y, dtype=float), predictive=Gaussian(np.asarray(x, dtype=float), np.ones(len(y))))


def parts(details):
    return [details[name] for name in ("miscalibration", "discrimination", "uncertainty", "score")]


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ([-1, 1, 1, 2], [0, 0, 1, 1], [0.625, 0.125, 0.25, 0.75]),
        (X, Y, [133 / 27, 286 / 27, 12, 19 / 3]),
    ],
    ids=["ties", "nine rows"],
)
def test_parts_of_the_squared_error_are_those_of_model_diagnostics(x, y, expected):
    """model-diagnostics 1.5: 0.625, 0.125, 0.25, and 4.925926, 10.592593, 12, which are these fractions."""
    found = result("mean-miscalibration", of_points(x, y))
    assert_allclose(parts(found.details), expected, rtol=1e-12)
    assert found.value == found.details["miscalibration"]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0.1, [0.466667, 0.377778, 0.5, 0.588889]),
        (0.5, [0.888889, 1.166667, 1.444444, 1.166667]),
        (0.9, [1.688889, 0.544444, 0.6, 1.744444]),
    ],
)
def test_parts_of_the_pinball_loss_are_those_of_model_diagnostics(level, expected):
    """model-diagnostics 1.5, whose forecast is the same number at each level."""
    levels = np.array([0.05, level, 0.95])
    rows = Predictions(y=Y, predictive=Quantiles(levels, np.array([X - 1e-9, X, X + 1e-9]).T))
    found = result("quantile-miscalibration", rows, levels=(level,))
    assert_allclose(parts(found.details), expected, atol=1e-6)


def test_the_fit_of_means_is_by_hand():
    """13 and 8 at 11 and 12 are pooled with 11 at 10."""
    assert_allclose(isotonic_means(X, Y), [4, 5, 6, 9, 10, 32 / 3, 32 / 3, 32 / 3, 15], rtol=1e-15)


def test_the_fit_of_means_weighs_equal_predictions_by_their_number():
    """Two targets of 3 at 1 and one of 0 at 2: one value, (3 + 3 + 0) / 3."""
    assert_allclose(isotonic_means(np.array([1.0, 1.0, 2.0]), np.array([3.0, 3.0, 0.0])), [2, 2, 2], rtol=1e-15)


def loss_by_linear_program(x, y, level):
    """Return the smallest pinball loss of increasing functions of x; variables are values, and errors on both sides."""
    (distinct, label), n = np.unique(x, return_inverse=True), len(y)
    k = len(distinct)
    costs = np.concatenate([np.zeros(k), np.full(n, level), np.full(n, 1 - level)])
    errors = np.hstack([np.eye(k)[label], np.eye(n), -np.eye(n)])
    order = np.hstack([np.eye(k)[:-1] - np.eye(k)[1:], np.zeros((k - 1, 2 * n))])
    bounds = [(None, None)] * k + [(0, None)] * 2 * n
    return linprog(costs, order, np.zeros(k - 1), errors, y, bounds).fun / n


@pytest.mark.parametrize("digits", [1, 8], ids=["ties in y", "no ties in y"])
def test_isotonic_quantiles_are_optimal_increasing_and_equal_for_equal_predictions(digits):
    """Against a linear program by scipy, for several levels at once and with ties of predictions."""
    rng = np.random.default_rng(digits)
    for _ in range(20):
        levels = np.sort(rng.uniform(0.05, 0.95, 3))
        x = rng.integers(0, 8, (3, 14)).astype(float)
        y = np.round(rng.normal(size=14) + 0.2 * x[1], digits)
        fitted = isotonic_quantiles(x, y, levels)
        found = pinball_losses(fitted, y, levels).mean(axis=1)
        expected = [loss_by_linear_program(*each) for each in zip(x, [y] * 3, levels, strict=True)]
        assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        for line, values in zip(x, fitted, strict=True):
            assert len(np.unique(np.array([line, values]), axis=1).T) == len(np.unique(line))
            assert (np.diff(values[np.argsort(line, kind="stable")]) >= 0).all()


def test_parts_of_the_crps_of_one_draw_are_those_of_the_absolute_error():
    """Errors 1, 1, 0, 1; medians 0 at -1, 0 at 1, and 1 at 2 leave one error of 1; the median of all leaves two."""
    rows = Predictions(y=np.array([0.0, 0, 1, 1]), predictive=Samples(np.array([[-1.0], [1], [1], [2]])))
    found = result("crps-miscalibration", rows)
    assert_allclose(parts(found.details), [0.5, 0.25, 0.5, 0.75], rtol=1e-15)
    assert found.value == 0.5


def test_parts_of_the_crps_are_twice_the_mean_of_those_at_the_middles_of_levels():
    rows = calibrated("gaussian")
    levels = tuple((np.arange(50) + 0.5) / 50)
    expected = parts(result("quantile-miscalibration", rows, levels=levels).details)
    assert_allclose(parts(result("crps-miscalibration", rows).details), 2 * np.array(expected), rtol=1e-12)


@pytest.mark.parametrize(("family", "tolerance"), [("samples", 1e-12), ("gaussian", 1e-3), ("poisson", 1e-3)])
def test_the_score_is_the_crps_for_draws_exactly_and_for_others_nearly(family, tolerance):
    """Bröcker (2012): the levels (j - 1/2)/m of m draws have twice the pinball loss of the CRPS of the draws."""
    rows = calibrated(family)
    options = {"ensemble": "biased"} if family == "samples" else {}
    expected = result("crps", rows, **options).value
    assert_allclose(result("crps-miscalibration", rows).details["score"], expected, rtol=tolerance)


def test_the_crps_of_a_file_of_quantiles_is_refused_with_the_metric_that_suits():
    report = evaluate(InMemory(calibrated("quantiles")), [METRICS["crps-miscalibration"]()], run=PLAIN)
    assert "quantile-miscalibration" in report.skipped[0].reason


@pytest.mark.parametrize("name", ["mean-miscalibration", "quantile-miscalibration", "crps-miscalibration"])
@pytest.mark.parametrize("family", ["gaussian", "samples", "poisson"])
def test_parts_are_not_negative_and_add_up_to_the_score(name, family):
    rows = calibrated(family)
    found = result(name, rows)
    for details in (found.details, *found.details.get("by_level", ())):
        miscalibration, discrimination, uncertainty, score = parts(details)
        assert min(miscalibration, discrimination, uncertainty) > -1e-12
        assert_allclose(miscalibration - discrimination + uncertainty, score, rtol=1e-12)


def test_the_score_is_that_of_the_score_metrics():
    rows = calibrated("gaussian")
    assert_allclose(result("mean-miscalibration", rows).details["score"], result("rmse", rows).value ** 2, rtol=1e-12)
    levels = (0.1, 0.4)
    score = result("quantile-miscalibration", rows, levels=levels).details["score"]
    assert_allclose(score, result("pinball", rows, levels=levels).value, rtol=1e-12)


@pytest.mark.slow
def test_a_correct_model_passes_and_a_conditional_bias_or_a_wrong_spread_fails():
    """Targets that are half the predictions have mean error 0; predictions of half the spread have the right mean."""
    rng, run = np.random.default_rng(5), Run(resamples=0, replicates=39)
    mean, noise = rng.normal(size=300), rng.normal(size=300)
    names = ("mean-miscalibration", "quantile-miscalibration", "crps-miscalibration")

    def verdicts(y, std):
        rows = Predictions(y=y, predictive=Gaussian(mean, np.full(300, std)))
        return [result(name, rows, run).verdict for name in names]

    assert verdicts(mean + noise, 1.0) == ["pass"] * 3
    assert verdicts(mean / 2 + noise, 1.0) == ["fail"] * 3
    assert verdicts(mean + noise, 0.5)[1:] == ["fail"] * 2
