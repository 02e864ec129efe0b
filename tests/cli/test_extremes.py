"""Extreme parameters give numbers or a one-line error: never a traceback, and never hours of computation."""

import json

import numpy as np
import pytest

from tests.helpers.files import write
from tests.helpers.simulations import slow

X = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
CONSTANT = np.ones(5)


def table(path, **columns):
    return write(path, {"id": np.arange(len(columns["y"])), **columns})


@pytest.fixture
def mixtures(tmp_path):
    """Return an ensemble of normal distributions in single precision, as neural networks save it."""
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=(40, 5)), 1 + rng.random((40, 5))
    narrow = {"mu": loc.astype(np.float32), "sigma": scale.astype(np.float32)}
    np.savez(tmp_path / "ensemble.npz", y=rng.normal(size=40).astype(np.float32), **narrow)
    return tmp_path / "ensemble.npz"


@pytest.mark.parametrize("command", ["mae", "coverage", "width", "interval-score"])
def test_mixtures_in_single_precision_have_quantiles(calcheck, mixtures, command):
    ended = calcheck(command, mixtures, "--dist", "mixture", "--no-null", "--no-bootstrap", "--format", "json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["results"][0]["value"] > 0


@pytest.mark.parametrize("command", ["evaluate", "lzms", "rmse"])
@pytest.mark.parametrize(
    ("dist", "columns", "message"),
    [
        ("poisson", {"rate": 1e19 * X}, "rate must be at most 2^53"),
        ("nbinom:pymc", {"mu": 1e19 * X, "alpha": CONSTANT}, "mean must be at most 2^53"),
        ("nbinom:pymc", {"mu": X, "alpha": 1e300 * X}, "alpha must be at most 1e+75 in size to be squared"),
        ("nbinom:scipy", {"n": X, "p": 1e-300 * CONSTANT}, "mean must be at most 2^53"),
        ("double-poisson", {"mu": X, "phi": 1e-300 * X}, "phi must be at least 1e-75 to be squared"),
        (
            "nig",
            {"gamma": X, "v": 1e-320 * X, "alpha": 1e-320 * X, "beta": X},
            "v must be at least 1e-75 to be squared",
        ),
    ],
)
def test_parameters_beyond_the_float_range_are_refused_in_one_line(calcheck, tmp_path, command, dist, columns, message):
    path = table(tmp_path / "preds.csv", y=X, **columns)
    assert message in calcheck(command, path, "--dist", dist).refused()


@pytest.mark.parametrize(
    ("dist", "columns"),
    [
        ("nig", {"gamma": X, "v": CONSTANT, "alpha": 1e-75 * X, "beta": CONSTANT}),
        ("lognormal:scipy", {"s": 1e3 * X, "scale": CONSTANT}),
        ("weibull:scipy", {"c": 1e-4 * X, "scale": CONSTANT}),
        ("weibull:scipy", {"c": 1e-75 * X, "scale": CONSTANT}),
        ("weibull:scipy", {"c": 1e74 * X, "scale": 1e-75 * CONSTANT}),
    ],
)
def test_draws_beyond_the_float_range_cause_no_warnings(calcheck, tmp_path, dist, columns):
    path = table(tmp_path / "preds.csv", y=X, **columns)
    ended = calcheck("ece", path, "--dist", dist, "--replicates", 19)
    assert ended.code == 0
    assert "Warning" not in ended.err


def test_large_counts_have_all_scores(calcheck, tmp_path):
    mu = 1e15 * (1 + X / 10)
    path = table(tmp_path / "counts.csv", y=np.floor(mu), mu=mu, alpha=np.full(5, 7.0))
    ended = calcheck("evaluate", path, "--dist", "nbinom:pymc", "--format", "json", "--replicates", 19)
    assert ended.code == 0, ended.err
    values = {result["metric"]: result["value"] for result in json.loads(ended.out)["results"]}
    for metric in ("mae", "width", "crps", "interval-score", "coverage", "pit", "ece", "nll"):
        assert values[metric] is not None


@pytest.mark.parametrize(
    ("dist", "columns"),
    [
        ("lognormal:scipy", {"s": 1e-9 * CONSTANT, "scale": CONSTANT}),
        ("lognormal:scipy", {"s": 1e-75 * CONSTANT, "scale": CONSTANT}),
        ("nig", {"gamma": X, "v": CONSTANT, "alpha": 1e74 * X, "beta": 1e74 * X}),
        ("nig", {"gamma": X, "v": CONSTANT, "alpha": 1e-3 * X, "beta": 1e10 * X}),
        ("gamma:scipy", {"a": 1e25 * X, "scale": 1e-25 * CONSTANT}),
        ("weibull:scipy", {"c": 1e-4 * CONSTANT, "scale": CONSTANT}),
        ("weibull:scipy", {"c": 1e-75 * X, "scale": CONSTANT}),
        ("weibull:scipy", {"c": 1e74 * X, "scale": CONSTANT}),
    ],
)
@pytest.mark.parametrize("command", ["jmmd", slow("cmmd")])  # both take the same kernel means
def test_kernels_of_extreme_distributions_give_a_value_or_an_error(calcheck, tmp_path, command, dist, columns):
    path = table(tmp_path / "preds.csv", x=X, y=X[::-1], **columns)
    options = ("--inputs", "x", "--dist", dist, "--no-null", "--no-bootstrap", "--format", "json")
    ended = calcheck(command, path, *options)
    if ended.code == 2:
        ended.refused()
    else:
        assert ended.err == ""
        assert np.isfinite(json.loads(ended.out)["results"][0]["value"])


@pytest.mark.parametrize("command", ["cce", "jmmd"])
def test_predictions_in_another_unit_than_the_targets_are_refused(calcheck, tmp_path, command):
    path = table(tmp_path / "preds.csv", x=X, y=X[::-1], loc=np.zeros(5), scale=1e-40 * X)
    line = calcheck(command, path, "--inputs", "x", "--dist", "cauchy").refused()
    assert "check that the predictions are in the unit of the targets" in line.lower()


def test_tiny_steps_are_refused(calcheck, tmp_path):
    path = table(tmp_path / "preds.csv", y=X, mean=X[::-1], std=X)
    assert "more than 1,000 steps" in calcheck("prune", path, "--step", 5e-324).refused()


def test_standard_deviations_too_large_to_square_are_refused_without_warnings(calcheck, tmp_path):
    path = table(tmp_path / "preds.csv", y=X, mean=X[::-1], std=1e200 * X)
    assert "std must be at most 1e+75 in size to be squared" in calcheck("prune", path).refused()
