"""The search of regions: scores by hand, regions one by one, the level it promises, and the faults it finds."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import ndtr

from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.execution.run import Run
from calcheck.metrics.accuracy import Bias
from calcheck.metrics.spread import Zms
from calcheck.predictions import InMemory, Predictions
from calcheck.regions.partition import Cut, Partition, column_values
from calcheck.regions.scan import Scan, dispersion, factor_of_dispersion, normal_dispersion, row_scores
from calcheck.studies.slices.groups import by_groups
from calcheck.studies.slices.options import SearchOptions
from calcheck.studies.slices.search import search_regions
from tests.helpers.simulations import band, sets, slow

SETS = sets(240, 8)


def logistic(u):
    """Return the score of the scale of a logistic distribution: -1 - q f'(q)/f(q)."""
    q = stats.logistic.ppf(np.clip(u, 0.005, 0.995))
    step = 1e-6
    slope = (stats.logistic.logpdf(q + step) - stats.logistic.logpdf(q - step)) / (2 * step)
    return -1 - q * slope


def test_the_limit_of_a_column_is_where_scores_change_most_near_that_of_the_bins():
    """Scores of 20 values change after the 13th, or after the 18th, which is beyond the bins at the limit 10."""
    values = np.arange(1.0, 21.0)
    scores = np.where(values > 13, 1.0, 0.0)
    column = Partition.quantiles("age", values, np.zeros(20, dtype=np.bool_), 4)
    assert [str(above) for _, above in column.cuts] == ["age>5", "age>10", "age>15"]
    for run, side in (((2, 3), ["age>13"]), ((0, 1), ["age<=13"])):
        divided = column.divided(run, scores, slice(None), 2)
        assert [str(each) for each in divided.bins[int(run[0] > 0)]] == side
        assert divided.label.tolist() == [0] * 13 + [1] * 7
    assert column.divided((0, 3), scores, slice(None), 2) is None
    assert str(column.divided((2, 3), 1.0 * (values > 18), slice(None), 2).bins[1][0]) == "age>14"
    assert [str(each) for each in column.divided((2, 3), scores, slice(None), 10).bins[1]] == ["age>10"]


def test_both_limits_of_a_run_are_where_scores_change_most():
    """Of all runs with 10 rows inside and outside at least, between values near the limits of the bins."""
    rng = np.random.default_rng(0)
    values = rng.permutation(100).astype(float)
    scores = rng.normal(size=100) + 2.0 * ((values > 21) & (values <= 57))
    column = Partition.quantiles("age", values, np.zeros(100, dtype=np.bool_), 10)
    gains = {}
    for low, high in product(range(100), repeat=2):
        inside = (values > low) & (values <= high)
        if 10 <= inside.sum() <= 90:
            gains[low, high] = abs(scores[inside].mean() - scores[~inside].mean()) * np.sqrt(
                inside.mean() * (~inside).mean()
            )
    low, high = max(gains, key=gains.get)
    for run in ((2, 5), (3, 5), (2, 4)):
        divided = column.divided(run, scores, slice(None), 10)
        assert [str(each) for each in divided.bins[1]] == [f"age>{low}", f"age<={high}"]
        assert (divided.label == 1).tolist() == ((values > low) & (values <= high)).tolist()


def test_limits_of_a_narrow_run_do_not_cross():
    values = np.arange(200.0)
    column = Partition.quantiles("age", values, np.zeros(200, dtype=np.bool_), 40)
    for bin_ in range(1, 39):
        scores = np.random.default_rng(bin_).normal(size=200)
        divided = column.divided((bin_, bin_), scores, slice(None), 5)
        assert len(divided.bins) == 3
        assert np.sum(divided.label == 1) >= 5


def test_limits_do_not_move_to_neighbors_with_the_opposite_fault():
    """Scores of the next rows differ more, in the other direction."""
    values = np.arange(1000.0)
    scores = np.where((values > 400) & (values <= 460), 1.0, np.where((values > 460) & (values <= 560), -2.5, 0.15))
    column = Partition.quantiles("age", values, np.zeros(1000, dtype=np.bool_), 50)
    divided = column.divided((20, 22), scores, slice(None), 20)
    assert [str(each) for each in divided.bins[1]] == ["age>400", "age<=460"]


UNIFORM = logistic((np.arange(1_000_000) + 0.5) / 1_000_000)


def standardized(u):
    return (logistic(u) - UNIFORM.mean()) / UNIFORM.std()


def test_scores_of_bias_are_the_first_component_of_the_pit():
    y = np.array([0.5, 2.5, 1.2, 3.1, 1.8, 9, 5, 7.6, 3, 12])
    rows = Predictions(y=y, predictive=Gaussian(np.arange(10.0), np.repeat([1.0, 2.0], 5)))
    sums = row_scores(rows).sum(axis=0) / np.sqrt(10)  # computed independently for the same data
    assert_allclose(sums[0], 0.255615, atol=5e-7)


def test_scores_of_dispersion_are_those_of_the_scale_of_a_logistic_distribution():
    u = np.array([0.0, 0.001, 0.2, 0.5, 0.731, 0.99, 1.0])
    assert_allclose(dispersion(u, u), standardized(u), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("limits", [(0.0, 0.3), (0.1, 0.4), (0.001, 0.003), (0.6, 1.0), (0.0, 1.0)])
def test_scores_of_jumps_are_means_over_the_jump(limits):
    low, high = limits
    u = low + (np.arange(100_000) + 0.5) / 100_000 * (high - low)
    assert_allclose(dispersion(*np.array(limits)[:, None]), standardized(u).mean(), atol=1e-5)


def test_scores_of_counts_are_means_over_the_jump():
    rate = 1.7
    rows = Predictions(y=np.array([0.0, 3.0]), predictive=Poisson(np.full(2, rate)))
    cdf = np.cumsum([np.exp(-rate) * rate**k / factor for k, factor in enumerate((1, 1, 2, 6))])
    for found, (low, high) in zip(row_scores(rows), ((0, cdf[0]), (cdf[2], cdf[3])), strict=True):
        u = low + (np.arange(100_000) + 0.5) / 100_000 * (high - low)
        assert_allclose(found, [np.sqrt(3) * np.mean(2 * u - 1), standardized(u).mean()], atol=1e-5)


def test_scores_between_quantiles_are_means_over_the_gap_of_the_stated_levels():
    levels = np.array([0.1, 0.5, 0.9])
    y = np.array([0.2, 0.7, -2.0, -1.2, 1.5])  # Two in the gap above the median, two below all quantiles, one above
    rows = Predictions(y=y, predictive=Quantiles(levels, np.tile([-1.0, 0.0, 1.0], (5, 1))))
    first, second, *outside = row_scores(rows)
    assert_allclose(first, second)
    assert_allclose(outside[0], outside[1])
    by_mean = np.sqrt(3) * (0.5 + 0.9 - 1)  # The mean of sqrt(3) (2 u - 1) from 0.5 to 0.9
    assert_allclose(first[0], by_mean)
    shares = np.array([0.1, 0.4, 0.4, 0.1])
    gaps = np.array([outside[0], -first * [1, -1], first, outside[2]])
    assert_allclose(shares @ gaps, 0, atol=1e-9)  # A right model has the mean 0


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.6, 4.0])
def test_the_dispersion_of_normal_distributions_that_are_too_narrow(factor):
    z = np.linspace(-9, 9, 20_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    expected = np.trapezoid(density * standardized(ndtr(factor * z)), z)
    assert_allclose(normal_dispersion(factor), expected, atol=2e-3)
    assert_allclose(factor_of_dispersion(expected), factor, rtol=5e-3)


def test_there_is_no_factor_for_a_score_above_all_factors():
    assert factor_of_dispersion(standardized(1.0)) is None


def small_scan():
    """Return the scan of a column of numbers, one of texts and one with missing values, of 60 rows."""
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 6, 60).astype(float)
    kinds = np.array(["a", "b", "c", "c"])[rng.integers(0, 4, 60)]
    gaps = np.where(rng.random(60) < 0.3, np.nan, rng.random(60))
    partitions = (
        Partition.quantiles("x", *column_values(numbers), 4),
        Partition.categories("kind", *column_values(kinds), 20, 5),
        Partition.quantiles("gaps", *column_values(gaps), 3),
    )
    return Scan(partitions, min_rows=7), rng.normal(size=(5, 60, 2))


def sides(partition):
    """Return the sets of bins that a region may have in a column, by their definition."""
    k, ordered = len(partition.bins), partition.ordered
    runs = [set(range(first, last + 1)) for first in range(ordered) for last in range(first, ordered)]
    return [set(range(k)), *(each for each in [*runs, *({bin_} for bin_ in range(ordered, k))] if len(each) < k)]


def test_deviations_are_those_of_all_regions_one_by_one():
    scan, scores = small_scan()
    found = scan.deviations(scores)
    squares = (scores**2).mean(axis=0)
    largest, regions = np.full(5, -np.inf), set()
    for (i, first), (j, second) in ((a, b) for a in enumerate(scan.partitions) for b in enumerate(scan.partitions)):
        if i >= j:
            continue
        for one, other in product(sides(first), sides(second)):
            mask = np.isin(first.label, list(one)) & np.isin(second.label, list(other))
            if mask.sum() < scan.min_rows:
                continue
            names = {(i, frozenset(one)), (j, frozenset(other))}
            whole = {(i, frozenset(range(len(first.bins)))), (j, frozenset(range(len(second.bins))))}
            regions.add(frozenset(names - whole))
            sums = np.abs(scores[:, mask].sum(axis=1)) / np.sqrt(squares[mask].sum(axis=0))
            largest = np.maximum(largest, sums.max(axis=1) - np.sqrt(2 * (1 + np.log(60 / mask.sum()))))
    assert_allclose(found.largest, largest, rtol=1e-12)
    assert found.regions == len(regions)
    best = found.most_deviating()
    mask = scan.mask(best)
    assert_allclose(abs(best.deviation) - np.sqrt(2 * (1 + np.log(60 / mask.sum()))), largest[0], rtol=1e-12)
    assert_allclose(best.p_value, np.mean(largest >= largest[0]))
    inside = scores[0][mask].sum(axis=0) / np.sqrt(squares[mask].sum(axis=0))
    assert_allclose(inside[best.score], best.deviation, rtol=1e-12)
    assert_allclose(found.judge(mask, best.score), (best.deviation, best.p_value), rtol=1e-12)


def test_scores_of_many_replicates_are_read_in_blocks(monkeypatch):
    scan, scores = small_scan()
    whole = scan.deviations(scores)
    monkeypatch.setattr("calcheck.regions.scan.BLOCK", 240)  # two data sets per block
    blocks = scan.deviations(scores)
    assert_allclose(blocks.largest, whole.largest, rtol=1e-12)
    assert_allclose(blocks.scores, scores[0])


def right(family, rng, n):
    """Return a right model, with columns that have ties, texts and missing values."""
    x = rng.normal(size=n)
    columns = {
        "x": x,
        "tied": rng.integers(0, 4, n),
        "kind": rng.choice(["a", "b", "c"], n),
        "gaps": np.where(rng.random(n) < 0.2, np.nan, x),
    }
    mean, std = x, np.exp(0.4 * np.sin(2 * x))
    if family == "gaussian":
        return Predictions(y=mean + std * rng.normal(size=n), predictive=Gaussian(mean, std), columns=columns)
    if family == "counts":
        rate = 2 * np.exp(x / 2)
        return Predictions(y=rng.poisson(rate).astype(float), predictive=Poisson(rate), columns=columns)
    draws = mean[:, None] + std[:, None] * rng.normal(size=(n, 12))
    return Predictions(y=draws[:, 0], predictive=Samples(draws[:, 1:]), columns=columns)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", slow("counts"), slow("ensemble")])
def test_some_region_of_a_right_model_is_found_in_five_percent_of_data_sets(family):
    rng, options = np.random.default_rng(7), SearchOptions(min_rows=15, bins=4)
    p_values = [
        search_regions(
            InMemory(right(family, rng, 150)), options=options, metrics=[], run=Run(replicates=19, seed=seed)
        ).settings["p_value"]
        for seed in range(SETS)
    ]
    low, high = band(SETS, 0.05)
    assert low <= np.sum(np.array(p_values) <= 0.05) <= high


@pytest.mark.slow
def test_some_group_of_a_right_model_fails_in_five_percent_of_data_sets():
    rng, cuts = np.random.default_rng(7), [Cut("kind"), Cut("x", bins=2)]
    failures = 0
    for seed in range(SETS):
        run = Run(replicates=19, resamples=0, seed=seed, confidence=0.9)
        report = by_groups(
            InMemory(right("counts", rng, 150)), cuts, metrics=[Zms(), Bias()], min_rows=15, cross=True, run=run
        )
        failures += any(each.verdict == "fail" for each in report.results)
    low, high = band(SETS, 0.1)
    assert low <= failures <= high


@pytest.mark.slow  # regions alone are above
def test_some_cluster_or_region_of_a_right_model_is_found_in_five_percent_of_data_sets():
    options = SearchOptions(min_rows=15, bins=4, embedding_clusters=6)
    p_values = []
    for seed in range(SETS):
        rng = np.random.default_rng(seed)
        rows = right("gaussian", rng, 150)
        centers = rng.normal(size=(4, 8))
        rows = replace(rows, x=centers[rng.integers(0, 4, 150)] + 0.5 * rng.normal(size=(150, 8)))
        report = search_regions(InMemory(rows), options=options, metrics=[], run=Run(replicates=19, seed=seed))
        p_values.append(report.settings["p_value"])
        assert report.settings["columns"][-1] == "embedding"
    low, high = band(SETS, 0.05)
    assert low <= np.sum(np.array(p_values) <= 0.05) <= high


def test_a_fault_in_a_cluster_of_an_embedding_is_found():
    rng = np.random.default_rng(6)
    group = rng.integers(0, 8, 2000)
    x = 10 * np.eye(8)[group] + rng.normal(size=(2000, 8))
    age = rng.random(2000)
    wrong = (group == 5) & (age > 0.3)
    rows = Predictions(
        y=np.where(wrong, 1.8, 1.0) * rng.normal(size=2000),
        predictive=Gaussian(np.zeros(2000), np.ones(2000)),
        x=x,
        columns={"age": age},
    )
    given = {}
    report = search_regions(
        InMemory(rows),
        options=SearchOptions(embedding_clusters=8),
        run=Run(replicates=99),
        sink=lambda _, columns: given.update(columns),
    )
    found = report.results[0].slice
    number = given["cluster"][wrong][0]
    assert found["group"].startswith("age>0.") or found["group"].startswith(f"cluster {number}")
    assert f"cluster {number} of embedding" in found["group"]
    assert found["filter"] == ""
    assert np.mean(wrong[given["region"] == 1]) > 0.95
    assert np.mean(given["region"][wrong] == 1) > 0.85
    clusters = report.settings["embedding_clusters"]
    assert clusters["count"] == 8
    assert group[clusters["central_rows"][number - 1]] == 5


@pytest.mark.parametrize(("factor", "direction"), [(1.5, "too-narrow"), (0.6, "too-wide")])
def test_wrong_uncertainties_in_15_percent_of_the_rows_are_found_and_named(factor, direction):
    rng = np.random.default_rng(2)
    x = rng.random((2000, 4))
    wrong = (x[:, 0] > 0.7) & (x[:, 1] < 0.5)
    y = np.where(wrong, factor, 1.0) * rng.normal(size=2000)
    columns = dict(zip("abcd", x.T, strict=True))
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(2000), np.ones(2000)), columns=columns)
    report = search_regions(InMemory(rows), run=Run(replicates=99))
    first = next(each for each in report.results if each.metric == "zms")
    assert (first.verdict, first.direction) == ("fail", direction)
    assert first.slice["group"].startswith("a>0.")
    assert "b<=0." in first.slice["group"]
    width = next(each for each in report.results if each.metric == "width-factor")
    limits = f"({width.low:.3g} to {width.high:.3g})"
    assert f"90 % intervals should be {width.value:.3g} {limits} times as wide" in report.conclusion.effects[0].text
    assert width.value == pytest.approx(factor, rel=0.1)
    assert len({each.slice["group"] for each in report.results}) == 1  # none that only shares rows with it


def test_two_faults_are_two_regions():
    rng = np.random.default_rng(4)
    a, b = rng.random(3000), rng.random(3000)
    y = np.where(a > 0.8, 1.8, 1.0) * rng.normal(size=3000) + np.where((b < 0.3) & (a < 0.5), 0.8, 0.0)
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(3000), np.ones(3000)), columns={"a": a, "b": b})
    report = search_regions(InMemory(rows), run=Run(replicates=99))
    found = {each.slice["group"]: each.slice["score"] for each in report.results}
    assert list(found.values())[:2] == ["dispersion", "bias"]
    assert len(found) <= 3
    assert "biased: targets are above the predictions by 0." in str(report.conclusion)


def searched(y, **columns):
    """Return the group and the number of rows of each region, and which rows are written as its own."""
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(len(y)), np.ones(len(y))), columns=columns)
    given = {}
    report = search_regions(InMemory(rows), run=Run(replicates=59), sink=lambda _, found: given.update(found))
    groups = list(dict.fromkeys((each.slice["group"], each.slice["rows"]) for each in report.results))
    return groups, [given["region"] == number for number in range(1, len(groups) + 1)]


def test_rows_of_a_moved_limit_make_no_further_region():
    """Uncertainties are too small from 0.66 on, inside of a bin: the rows of the bin below 0.66 are no fault."""
    rng = np.random.default_rng(2)
    x = rng.random(800)
    ((group, rows),), (inside,) = searched(rng.normal(size=800) * np.where(x > 0.66, 2.5, 1), x=x)
    assert (group, rows) == ("x>0.66", np.sum(x > 0.66))
    assert inside.tolist() == (x > 0.66).tolist()


def test_further_regions_leave_out_the_rows_of_those_before():
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 2000))
    factor = np.where(a > 0.7, 2.5, 1) * np.where(b > 0.6, 1.6, 1)
    ((first, _), (second, rows)), regions = searched(factor * rng.normal(size=2000), a=a, b=b)
    assert (first, second) == ("a>0.694", "b>0.6 and a<=0.694")
    assert regions[1].tolist() == ((b > 0.6) & (a <= 0.694)).tolist()
    assert rows == regions[1].sum()


def test_the_parts_outside_of_bins_are_the_rows_of_their_conditions():
    rng = np.random.default_rng(1)
    numbers, texts = rng.integers(0, 60, 300).astype(float), rng.choice([*"aaabbbccdefgh", ""], 300)
    missing = numbers > 50
    for bins, values in (
        (Partition.quantiles("age", numbers, np.zeros(300, np.bool_), 4), [f"{each:g}" for each in numbers]),
        (
            Partition.quantiles("age", numbers, missing, 4),
            ["" if gap else f"{each:g}" for each, gap in zip(numbers, missing, strict=True)],
        ),
        (Partition.categories("site", texts, texts == "", 3, 2), texts.tolist()),
    ):
        for first, last in bins.runs():
            inside = (bins.label >= first) & (bins.label <= last)
            parts = bins.others(first, last)
            for conditions, rows in parts:
                assert rows.tolist() == [all(each.holds_for(value) for each in conditions) for value in values]
            assert np.any([rows for _, rows in parts], axis=0).tolist() == (~inside).tolist()
