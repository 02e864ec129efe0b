"""p-values and verdicts have the right level if the model is right, and power against half the right spread.

`python -m tests.benchmarks.significance` repeats it with more families, rows and data sets.
"""

from dataclasses import replace

import numpy as np
import pytest

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.continuous import AssumedGaussian
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.positive import LogNormal
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from tests.helpers.simulations import band, sets, slow

LEVEL = 0.1  # attained exactly by p-values from 19 replicates, one-sided and two-sided
GENERATIVE = {"ammd", "jmmd", "cmmd", "fid"}  # test_generative_levels.py
TESTED = [name for name, metric in METRICS.items() if metric.info.alternative != "none" and name not in GENERATIVE]
IN_BINS = ("lzms", "lrce")
SETS = sets(100, 8)
PLAIN, BINNED = Run(replicates=19, resamples=0), Run(replicates=19, resamples=100)
ENSEMBLES = {"samples 1": 1, "samples 2": 2, "samples 5": 5}
TIED = {"coverage", *IN_BINS}  # shares of few rows or bins: p is conservative


def right(family, rng, n):
    """Return inputs, right distributions and targets drawn from them; ensembles have the distribution of the target."""
    x = rng.normal(size=(n, 1))
    normal = Gaussian(x[:, 0], np.exp(0.4 * np.sin(2 * x[:, 0])))
    if family in ENSEMBLES:
        values = normal.sample(rng, ENSEMBLES[family] + 1)
        return Predictions(y=values[:, 0], predictive=Samples(values[:, 1:]), x=x, has_embedding=False)
    predictive = normal if family == "gaussian" else Poisson(4 * np.exp(x[:, 0] / 2))
    return Predictions(y=predictive.sample(rng, 1)[:, 0], predictive=predictive, x=x, has_embedding=False)


def p_values(rows, seed, names=TESTED):
    """Return the p-value of each metric that applies; data sets with the same seed would share their replicates."""
    found = {}
    for run, chosen in ((PLAIN, set(names) - set(IN_BINS)), (BINNED, set(names) & set(IN_BINS))):
        metrics = [METRICS[name](**({"bins": 5} if name in IN_BINS else {})) for name in sorted(chosen)]
        found |= {
            result.metric: result.p_value
            for result in evaluate(InMemory(rows), metrics, run=replace(run, seed=seed)).results
        }
    return {name: p for name, p in found.items() if p is not None}


def rejections(family, names, count):
    """Count the data sets of 30 rows in which each metric's p-value is at most 0.1."""
    found = [p_values(right(family, np.random.default_rng([seed, 30]), 30), seed, names) for seed in range(count)]
    assert all(each.keys() == found[0].keys() for each in found)
    return {name: sum(each[name] <= LEVEL for each in found) for name in found[0]}


def limits(count, cells):
    """Return limits that contain the counts of all cells with a probability of 99.9 %, if p-values are exact.

    The lower one is 0 for few sets; a metric that never rejects misses half the right spread, below.
    """
    return band(count, LEVEL, 0.001 / cells)


METRICS_OF_COUNTS = ["ece", "coverage", "crps", "nll", "cce", "zms"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "names"), [("gaussian", TESTED), ("poisson", METRICS_OF_COUNTS), slow(("samples 5", TESTED))]
)
def test_perfect_models_are_rejected_at_the_level_of_the_test(family, names):
    count = SETS if names is TESTED else sets(100)  # fewer metrics are together rejected less often
    found = rejections(family, names, count)
    assert len(found) >= 6
    low, high = limits(count, 3 * len(found))
    for name, rejected in found.items():
        assert rejected <= high, (name, rejected)
        assert rejected >= low or name in TIED, (name, rejected)
    # metrics share data sets, so that all together vary more than independent ones
    assert sum(found.values()) >= LEVEL * count * len(found) / 3


@pytest.mark.slow
@pytest.mark.parametrize("family", [slow("samples 1"), "samples 2"])
def test_small_perfect_ensembles_are_not_rejected_more_often(family):
    """With targets drawn from the saved draws they would be: always with one draw, more often than not with two.

    100 data sets are needed to see that with two draws.
    """
    for name, count in rejections(family, ["crps", "cce", "mae"], 100).items():
        assert count <= limits(100, 6)[1], (name, count)


@pytest.mark.slow  # a reason for the design, and no promise
@pytest.mark.parametrize(("draws", "least"), [(1, 1.0), (2, 0.4)])
def test_replicates_drawn_from_the_draws_would_reject_perfect_models(draws, least):
    """Therefore draws are swapped: with targets chosen among the draws, MAE rejects a perfect model."""
    rejected = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        values = rng.normal(size=(60, draws + 1))
        y, saved = values[:, 0], values[:, 1:]
        own = np.abs(y - saved.mean(axis=1)).mean()
        drawn = [rng.permuted(saved, axis=1)[:, 0] for _ in range(19)]
        others = [np.abs(each - saved.mean(axis=1)).mean() for each in drawn]
        rejected.append(np.mean(np.array([*others, own]) >= own) <= 0.05)
    assert np.mean(rejected) >= least


@pytest.mark.parametrize("stated", [True, False])
def test_verdicts_for_heavy_tails_have_the_right_level_or_are_not_given(stated):
    """Log-normal rows, of which zeta rejects 29 % by zms and 41 % by rce; and their errors, without a distribution."""
    verdicts = []
    for seed in range(SETS):
        rows = log_normal_rows(np.random.default_rng(seed), 30, stated=stated)
        run = Run(replicates=39, resamples=0 if stated else 500, seed=seed)
        report = evaluate(InMemory(rows), [METRICS["zms"](), METRICS["rce"]()], run=run)
        verdicts.append([result.verdict for result in report.results])
    fails = np.sum(np.array(verdicts) == "fail", axis=0)
    assert (fails <= band(SETS, 0.05, 0.002)[1]).all(), fails
    assert stated == (set(np.ravel(verdicts)) == {"pass", "fail"})


def log_normal_rows(rng, n, *, stated):
    """Return right distributions with targets drawn from them, or only their errors."""
    predictive = LogNormal(mu=rng.normal(size=n) / 2, sigma=rng.uniform(0.5, 1, n))
    y = predictive.sample(rng, 1)[:, 0]
    if stated:
        return Predictions(y=y, predictive=predictive)
    return Predictions(y=y - predictive.mean(), predictive=AssumedGaussian(np.zeros(n), predictive.std()))


LESS_POWER = {
    "pit-bias",
    "pit-skew",
    "pit-independence",
    "mae",
    "rmse",
    "bias",
    "standardized-bias",
    "local-bias",
    "local-scale",
    "confidence-curve",
}  # if only the spread is wrong


@pytest.mark.slow
def test_half_the_right_spread_is_detected():
    """n = 100, std × 0.5: every metric of the spread rejects at least nine of ten data sets, or four of five."""
    found = []
    for seed in range(sets(10, 2)):
        rng = np.random.default_rng(seed)
        rows = right("gaussian", rng, 100)
        half = Gaussian(rows.predictive.loc, rows.predictive.scale / 2)
        found.append(p_values(rows.with_targets(rows.y, half), seed))
    for name in set(TESTED) - LESS_POWER:
        assert sum(each[name] <= LEVEL for each in found) >= len(found) - 1, name
