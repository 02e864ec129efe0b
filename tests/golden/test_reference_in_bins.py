"""The share of valid bins of replicates: one BCa interval a bin, by scipy's bootstrap and by the data's own way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.evaluation import evaluate
from calcheck.execution.run import Run, Stream
from calcheck.inference.in_bins import FIRST_STREAM, _limits, simulated_shares
from calcheck.inference.simulation import Simulation
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.predictive import Gaussian
from calcheck.statistics.bins import Bins, equal_count_bins
from calcheck.statistics.groups import resampled_weights


def mean(means):
    return means["a"]


def by_weights(values, share, rng, resamples):
    """Return the BCa limits of a weighted mean by the formulas: shares times counts of resampled rows."""
    counts = resampled_weights(len(values), resamples, rng) * share
    replicates = (counts @ values) / counts.sum(axis=1)
    estimate = share @ values / share.sum()
    left = np.array(
        [np.delete(share, i) @ np.delete(values, i) / np.delete(share, i).sum() for i in range(len(values))]
    )
    away = left.mean() - left
    bent = np.sum(away**3) / (6 * np.sum(away**2) ** 1.5)
    z0 = stats.norm.ppf(np.mean(replicates < estimate) + np.mean(replicates == estimate) / 2)
    shifted = z0 + stats.norm.ppf([0.05, 0.95])
    return np.quantile(replicates, stats.norm.cdf(z0 + shifted / (1 - bent * shifted)))


@pytest.mark.parametrize("shared", [False, True])
def test_limits_of_several_data_sets_are_those_of_each(shared):
    rng = np.random.default_rng(0)
    columns = rng.exponential(size=(25, 4))
    share = rng.uniform(0.2, 1, 25) if shared else np.ones(25)
    low, high = _limits(share, {"a": columns}, mean, 500, np.random.default_rng(1), 0.9)
    expected = [by_weights(columns[:, k], share, np.random.default_rng(1), 500) for k in range(4)]
    assert_allclose(np.stack([low, high], axis=1), expected, rtol=1e-9)


def test_a_bin_of_one_row_has_no_limits():
    assert np.isnan(_limits(np.ones(1), {"a": np.ones((1, 3))}, mean, 100, np.random.default_rng(1), 0.9)).all()


@pytest.mark.parametrize("block", [1 << 22, 90])
def test_shares_are_those_of_bins_whose_interval_holds_the_reference(block, monkeypatch):
    """Three bins of 30 rows, data sets of exponential values scaled to lie below, around and above the reference 1."""
    monkeypatch.setattr("calcheck.inference.in_bins.BLOCK_VALUES", block)
    rng = np.random.default_rng(0)
    bins = equal_count_bins(np.arange(90.0), 3)
    sets = [
        {"a": rng.exponential(size=90) * np.repeat(scales, 30)}
        for scales in ([1, 1, 1], [0.5, 1, 1], [2, 0.3, 3], [1, 9, 0.1])
    ]
    run = Run(resamples=400, reference=19, confidence=0.9)
    found = simulated_shares(bins, sets[0], iter(sets[1:]), mean, 1.0, run, count=len(sets), stage="x")
    expected = []
    for each in sets:
        inside = []
        for place in range(3):
            rows = slice(30 * place, 30 * place + 30)
            low, high = by_weights(each["a"][rows], np.ones(30), _generator(run, place), 400) if block > 90 else (0, 0)
            inside.append(low <= 1 <= high)
        expected.append(np.mean(inside))
    if block > 90:
        assert_allclose([found.own, *found.values], expected)
    assert len(found.values) == 3
    assert set(np.round(3 * found.values)) <= {0, 1, 2, 3}
    assert found.values[1] == 0.0


def _generator(run, place):
    return run.rng(Stream.RESAMPLES, FIRST_STREAM + place)


def test_bins_without_an_interval_do_not_count():
    """The second bin has one row: of data sets whose other bin is valid the share is 1, not a half."""
    bins = Bins(np.array([0] * 20 + [1]), 2, None, np.zeros(2), np.ones(2))
    values = np.random.default_rng(0).exponential(size=21)
    found = simulated_shares(
        bins, {"a": values}, iter([{"a": values}, {"a": values + 5}]), mean, 1.0, Run(), count=2, stage="x"
    )
    assert (found.own, *found.values) == (1.0, 1.0, 0.0)
    lone = Bins(np.array([0]), 1, None, np.zeros(1), np.ones(1))
    assert np.isnan(
        simulated_shares(
            lone, {"a": np.ones(1)}, iter([{"a": np.ones(1)}]), mean, 1.0, Run(), count=2, stage="x"
        ).values
    )


@pytest.mark.parametrize("name", ["lzms", "lrce"])
def test_the_p_value_is_by_shares_of_replicates(name):
    """As a loop that judges each replicate as data, with as many resamples: within the few bins that hang by chance."""
    rng = np.random.default_rng(3)
    std = rng.uniform(0.5, 2, 160)
    rows = Predictions(y=1.5 * std * rng.normal(size=160), predictive=Gaussian(np.zeros(160), std))
    run, metric = Run(reference=39, resamples=500), METRICS[name](bins=4)
    (result,) = evaluate(InMemory(rows), [metric], run=run).results
    loop = [
        evaluate(InMemory(each), [metric], run=Run(reference=0, resamples=500)).results[0].value
        for each in Simulation(rows, run)
    ]
    assert_allclose(result.details["simulated"]["mean"], np.mean(loop), atol=0.05)
    assert_allclose(result.p_value, (1 + np.sum(np.array(loop) <= result.value)) / 40, atol=2 / 40)
    assert result.details["simulated"]["replicates"] == 39
    assert result.details["simulated"]["resamples"] == 500
    assert (result.reference, result.reference_kind) == (0.95, "exact")
