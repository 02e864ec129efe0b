"""The share of valid bins of replicates: an ABC interval per bin, against its formulas and the bootstrap."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.distributions import Gaussian
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.inference.binned_validity import BinMoments, shares_by_abc
from calcheck.inference.intervals import Moments, abc_limits
from calcheck.inference.null_distribution import NullSimulator
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.regions.partition import Cut
from calcheck.statistics.binning import Binning
from calcheck.streaming.state import accumulate, report_from_state
from calcheck.studies.slices.groups import by_groups
from tests.helpers.streams import Batches


def mean(means):
    return means["a"]


def by_weights(statistic, n, confidence):
    """Return ABC limits of a function of n weights step by step as in Section 22.6 of Efron and Tibshirani.

    Derivatives by small steps in the weights: the influence of each row, and its second derivative.
    """
    even, step = np.full(n, 1 / n), 1e-3 / n
    own = statistic(even)
    first, second = np.empty(n), np.empty(n)
    for row in range(n):
        towards = np.eye(n)[row] - even
        up, down = statistic(even + step * towards), statistic(even - step * towards)
        first[row], second[row] = (up - down) / (2 * step), (up - 2 * own + down) / step**2
    sigma = np.sqrt(np.sum(first**2)) / n
    bent = np.sum(first**3) / (6 * np.sum(first**2) ** 1.5)
    direction = first / (n**2 * sigma)
    reach = 1e-2
    bend = (statistic(even + reach * direction) - 2 * own + statistic(even - reach * direction)) / (
        2 * sigma * reach**2
    )
    bias = np.sum(second) / (2 * n**2)
    z0 = stats.norm.ppf(2 * stats.norm.cdf(bent) * stats.norm.cdf(bend - bias / sigma))
    w = z0 + stats.norm.ppf([(1 - confidence) / 2, (1 + confidence) / 2])
    return [statistic(even + each * direction) for each in w / (1 - bent * w) ** 2]


def ratio(means):
    return 1 - np.sqrt(means["a"] / means["b"])


def share_by_abc(bins, columns, function, reference, confidence):
    """Return the share of valid bins of one data set."""
    return shares_by_abc([BinMoments.from_rows(bins, columns, reference)], function, confidence)[0]


def limits_of(columns, function, confidence):
    """Return the limits of several data sets, (2, b), from columns (n, b)."""
    sets = [np.stack(each) for each in zip(*(column.T for column in columns.values()), strict=True)]
    return abc_limits(Moments.stack([Moments.from_values(each) for each in sets]), list(columns), function, confidence)


@pytest.mark.parametrize("function", [mean, ratio])
def test_limits_of_several_data_sets_equal_those_of_each(function):
    """25 exponential rows, four data sets; means, and a ratio of means."""
    rng = np.random.default_rng(0)
    columns = {"a": rng.exponential(size=(25, 4)), "b": rng.uniform(1, 2, size=(25, 4))}
    used = {name: columns[name] for name in ("a", "b") if name == "a" or function is ratio}
    low, high, *_ = limits_of(used, function, 0.9)

    def statistic(weights, place):
        return function({name: weights @ column[:, place] / weights.sum() for name, column in used.items()})

    expected = [by_weights(partial(statistic, place=place), 25, 0.9) for place in range(4)]
    assert_allclose(np.stack([low, high], axis=1), expected, rtol=1e-5, atol=1e-8)


def test_for_a_mean_z0_is_the_acceleration_and_limits_have_a_closed_form():
    """Values 0 (three times) and 4: mean 1, influences -1, -1, -1, 3, so sigma = sqrt(12) / 4 and a = 24 / (6 12^1.5).

    w = a + z, and the limit is 1 + sigma w / (1 - a w)^2.
    """
    values = np.array([0.0, 0, 0, 4])[:, None]
    low, high, z0, bent = limits_of({"a": values}, mean, 0.9)
    assert_allclose([bent[0], z0[0]], 24 / (6 * 12**1.5), rtol=1e-6)
    w = bent[0] + stats.norm.ppf([0.05, 0.95])
    assert_allclose([low[0], high[0]], 1 + np.sqrt(12) / 4 * w / (1 - bent[0] * w) ** 2, rtol=1e-6)


def test_the_share_counts_bins_whose_interval_contains_the_reference():
    """Three bins of 30 rows, data sets of exponential values scaled to lie below, around and above the reference 1."""
    rng = np.random.default_rng(0)
    bins = Binning.equal_counts(np.arange(90.0), 3)
    sets = [
        {"a": rng.exponential(size=90) * np.repeat(scales, 30)}
        for scales in ([1, 1, 1], [0.5, 1, 1], [2, 0.3, 3], [1, 9, 0.1])
    ]
    found = np.array([share_by_abc(bins, each, mean, 1.0, 0.9) for each in sets])
    expected = []
    for each in sets:
        inside = []
        for place in range(3):
            rows = slice(30 * place, 30 * place + 30)
            low, high = by_weights(lambda weights, values=each["a"][rows]: weights @ values / weights.sum(), 30, 0.9)
            inside.append(low <= 1 <= high)
        expected.append(np.mean(inside))
    assert_allclose(found, expected)
    assert set(np.round(3 * found)) <= {0, 1, 2, 3}
    assert found[2] == 0.0


def test_rows_in_several_bins_are_weighted_by_their_shares():
    """Ten rows are tied across two bins, a third of each in the first: means of rows with weights."""
    rng = np.random.default_rng(4)
    label, shares = np.repeat([0, 1, 2], [20, 10, 20]), np.array([[1, 0], [1 / 3, 2 / 3], [0, 1]])
    bins = Binning(label, 3, shares, np.zeros(2), np.ones(2))
    for scale in np.linspace(0.4, 2.2, 19):
        values, valid = scale * rng.exponential(size=50), []
        for place in range(2):
            share = shares[label, place]
            rows = share > 0
            own, of = share[rows], values[rows]
            low, high = by_weights(lambda w, own=own, of=of: (w * own) @ of / (w @ own), int(rows.sum()), 0.9)
            valid.append(low <= 1 <= high)
        assert share_by_abc(bins, {"a": values}, mean, 1.0, 0.9) == np.mean(valid)


def test_bins_without_an_interval_do_not_count():
    """The second bin has one row: if the other bin is valid the share is 1, not a half."""
    bins = Binning(np.array([0] * 20 + [1]), 2, low=np.zeros(2), high=np.ones(2))
    values = np.random.default_rng(0).exponential(size=21)
    assert share_by_abc(bins, {"a": values}, mean, 1.0, 0.95) == 1.0
    assert share_by_abc(bins, {"a": values + 5}, mean, 1.0, 0.95) == 0.0
    lone = Binning(np.array([0]), 1, low=np.zeros(1), high=np.ones(1))
    assert np.isnan(share_by_abc(lone, {"a": np.ones(1)}, mean, 1.0, 0.95))


@pytest.mark.parametrize("name", ["lzms", "lrce"])
def test_the_p_value_is_based_on_shares_of_replicates(name):
    """As in a loop that bootstraps each replicate as data, but for the few bins that differ by chance."""
    rng = np.random.default_rng(3)
    std = rng.uniform(0.5, 2, 160)
    rows = Predictions(y=1.5 * std * rng.normal(size=160), predictive=Gaussian(np.zeros(160), std))
    run, metric = Run(replicates=39, resamples=500), METRICS[name](bins=5)
    (result,) = evaluate(InMemory(rows), [metric], run=run).results
    loop = [
        evaluate(InMemory(each), [metric], run=Run(replicates=0, resamples=500)).results[0].value
        for each in NullSimulator(rows, run)
    ]
    assert_allclose(result.reference, np.mean(loop), atol=0.05)
    assert_allclose(result.p_value, (1 + np.sum(np.array(loop) <= result.value)) / 40, atol=2 / 40)
    assert result.details["null"] == {"replicates": 39}
    assert result.reference_kind == "simulated"


def tied(std, seed=0):
    rng = np.random.default_rng(seed)
    return Predictions(y=std * rng.normal(size=len(std)), predictive=Gaussian(np.zeros(len(std)), std))


@pytest.mark.parametrize("name", ["lzms", "lrce"])
@pytest.mark.parametrize(
    ("std", "bins", "different"),
    [
        (np.ones(600), 10, "1 different bin "),
        (np.repeat([1.0, 2.0], [540, 60]), 10, "2 different bins"),
        (np.linspace(1, 2, 600), 4, "4 different bins"),
    ],
)
def test_fewer_than_five_different_bins_give_no_verdict(name, std, bins, different):
    """The interval of a single bin misses the reference with a probability of 5 %, whatever the rows: p = 0.05 or 1."""
    (found,) = evaluate(InMemory(tied(std)), [METRICS[name](bins=bins)], run=Run(resamples=200)).results
    assert (found.verdict, found.p_value) == ("none", None)
    assert "null" not in found.details  # no replicates were drawn
    assert any(f"no verdict: the share is of {different}" in each.text for each in found.warnings)


def test_states_and_groups_have_no_verdict_of_few_bins_either():
    rows = replace(tied(np.ones(600)), columns={"g": np.repeat(["a", "b"], 300)})
    run, metric = Run(replicates=19, resamples=200), METRICS["lzms"]()
    (streamed,) = report_from_state(accumulate(Batches(rows), [metric], run), run).results
    assert (streamed.verdict, streamed.p_value) == ("none", None)
    sliced = by_groups(InMemory(rows), [Cut("g")], metrics=[metric], refit=True, run=run).results
    assert [found.verdict for found in sliced] == ["none"] * 3


def test_five_bins_are_judged():
    (found,) = evaluate(
        InMemory(tied(np.linspace(1, 2, 600))), [METRICS["lzms"](bins=5)], run=Run(replicates=39)
    ).results
    assert found.verdict == "pass"


@pytest.mark.parametrize("scale", [2.0**200, 2.0**-200])
@pytest.mark.parametrize("rows", [100, 2_600])
def test_third_moments_of_bins_neither_overflow_nor_vanish(scale, rows):
    """Powers of two change no digit; bins of 500 rows have such limits of the data too."""
    rng = np.random.default_rng(3)
    mean, std = rng.normal(size=rows), rng.uniform(0.5, 2, rows)
    y = mean + std * rng.normal(size=rows)

    def lrce(unit):
        data = Predictions(y=unit * y, predictive=Gaussian(unit * mean, unit * std))
        (result,) = evaluate(InMemory(data), [METRICS["lrce"](bins=5)], run=Run(replicates=39)).results
        bins = [(each["low"], each["high"], each["valid"]) for each in result.details["bins"]]
        return bins, result.value, result.verdict, "undefined" in result.details["null"]

    assert lrce(scale) == lrce(1.0)
    assert not lrce(scale)[-1]
