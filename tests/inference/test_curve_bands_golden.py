"""Simultaneous bands of curves: right models leave their band of 95 % in 5 % of data sets.

Simulated for the distribution function of the PIT and for the coverage by level, from right models of continuous
distributions, of counts, and of ensembles of 11 members. The predictions of a data set and its replicates share one
distribution, so that with R replicates the curve of the data is among the floor(0.05 (R + 1)) most extreme of R + 1
with probability 5 %, if no two are tied. R is 19 in the default tests, and 199 with `--all`.
"""

from dataclasses import replace

import numpy as np
import pytest

from calcheck.distributions import Samples
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference.curve_bands import CurveBands, with_band
from calcheck.inference.metric_protocol import CurveData
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.reports import Curve
from tests.helpers import simulations
from tests.helpers.families import calibrated, samples

ROWS = 25


def ensemble(seed):
    """Return 11 draws per row, and a target from the same distribution."""
    draws = samples(np.random.default_rng(seed), ROWS, m=12).draws
    return Predictions(y=draws[:, 0], predictive=Samples(draws[:, 1:]))


RIGHT = {
    "gaussian": lambda seed: calibrated("gaussian", n=ROWS, seed=seed),
    "poisson": lambda seed: calibrated("poisson", n=ROWS, seed=seed),
    "ensemble": ensemble,
}


def curves_with_bands(metric, rows, run):
    """Return the curves of a metric of rows, with bands from the replicates of a run."""
    bands = CurveBands(metric.curves(CurveData(None, InMemory(rows), run)), run.replicates)
    for replicate in NullSimulator(rows, run):
        bands.add(metric.curves(CurveData(None, InMemory(replicate), run)))
    return bands.with_bands(run.confidence)


def leaves_band(curve):
    y, low, high = (np.array(each) for each in (curve.y, curve.low, curve.high))
    return bool(((y < low) | (y > high)).any())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gaussian", simulations.slow("poisson"), "ensemble"])
def test_right_models_leave_their_band_in_five_percent_of_data_sets(model):
    number, replicates = (1000, 199) if simulations.full else (60, 19)
    left, rejected = [], []
    for seed in range(number):
        run = Run(seed=seed, replicates=replicates)
        _, curve = curves_with_bands(METRICS["pit"](), RIGHT[model](10_000 + seed), run)
        left.append(leaves_band(curve))
        rejected.append(curve.p_value <= 0.05 + 1e-12)
    low, high = simulations.band(number, 0.05)
    assert low <= sum(left) <= high
    assert low <= sum(rejected) <= high


def test_a_wrong_model_leaves_its_band():
    rows = calibrated("gaussian", n=300)
    narrow = rows.with_targets(1.6 * (rows.y - rows.predictive.mean()) + rows.predictive.mean(), rows.predictive)
    for name in ("pit", "ece", "coverage", "zms", "ence", "confidence-curve"):
        run = Run(curves=True, replicates=99, resamples=0)
        result = evaluate(InMemory(narrow), [METRICS[name]()], run=run).results[0]
        assert leaves_band(result.curves[-1 if name == "pit" else 0])
        assert result.curves[-1 if name == "pit" else 0].p_value == 0.01


def test_curves_that_describe_the_data_have_no_band():
    """Draws that are exchanged with targets change the predicted standard deviations of replicates."""
    run = Run(curves=True, replicates=39, resamples=0)
    for name in ("ence", "confidence-curve", "cce"):
        curves = evaluate(InMemory(calibrated("samples", n=60)), [METRICS[name]()], run=run).results[0].curves
        banded, alone = (each for each in curves if each.name != "spread-intervals")
        assert banded.replicates == 39
        assert (alone.low, alone.p_value, alone.replicates) == ((), None, 0)


def test_too_few_replicates_make_no_band():
    """Of 39 replicates and the data, none is among 1 % of the most extreme; 99 replicates are enough."""
    rows = calibrated("gaussian", n=40)
    (few,), (enough,) = (
        curves_with_bands(METRICS["ece"](), rows, Run(replicates=replicates, confidence=0.99))
        for replicates in (39, 99)
    )
    assert few.low == ()
    assert few.p_value is None
    assert len(enough.low) == 99


def test_replicates_that_an_open_verdict_adds_are_not_in_the_band():
    """With seed 5 the verdict of 199 replicates is open; the band is exact for a number that is fixed beforehand."""
    rows = calibrated("gaussian", n=30, seed=5)
    result = evaluate(InMemory(rows), [METRICS["zms"]()], run=Run(curves=True, resamples=0)).results[0]
    assert result.details["null"]["replicates"] > 199
    assert result.curves[0].replicates == 199


def test_the_band_of_a_metric_is_made_of_the_replicates_of_its_verdict():
    """The band of evaluate is that of the first R replicates of the null distribution with the same seed."""
    rows, run = calibrated("poisson", n=40), Run(curves=True, replicates=39, resamples=0, seed=5)
    found = evaluate(InMemory(rows), [METRICS["coverage"]()], run=run).results[0].curves
    assert found == curves_with_bands(METRICS["coverage"](), rows, run)
    assert found[0].replicates == 39


def test_a_stated_expectation_is_kept_and_otherwise_it_is_the_mean_of_the_replicates():
    curve = Curve(name="bins", x=(0.0, 1.0), y=(0.5, np.nan))
    replicates = np.column_stack([np.arange(39.0), np.where(np.arange(39) % 2, np.nan, 2.0)])
    found = with_band(curve, replicates, 0.9)
    assert (found.expected, found.replicates) == ((19.0, 2.0), 39)
    assert with_band(replace(curve, expected=(0.1, 0.2)), replicates, 0.9).expected == (0.1, 0.2)
