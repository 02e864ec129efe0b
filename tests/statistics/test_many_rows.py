"""Computations in parts or by sorting give the same results as computations on all rows at once."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import poisson

from calcheck import METRICS, InMemory, Predictions, read
from calcheck.distributions import Gaussian, continuous
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.statistics.groups import (
    Averages,
    CutTieGroups,
    Groups,
    MeanTerm,
    TieGroups,
    cumulative_at,
    digitize,
    resampled_weights,
)
from calcheck.statistics.pit import (
    cramer_von_mises,
    distance_of_jumps,
    distance_of_sorted,
    distribution,
    levels_of,
    mean_share_below,
    share_below,
    share_of_row_below,
)
from calcheck.statistics.zscores import median
from tests.helpers.families import cauchy, gaussian, laplace, student_t
from tests.helpers.files import limited
from tests.helpers.files import write as save

PLAIN = Run(resamples=0, replicates=0)
NUMBERS = st.lists(st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1e300]), min_size=1, max_size=40)
JUMPS = st.tuples(
    st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]) | st.floats(0, 1),
    st.sampled_from([0.0, 1e-12, 2.0**-20, 2.0**-19, 1e-3, 0.1, 0.25, 1.0]),
)
FIRST = 1 - np.arange(10) / 10  # shares of rows


def model(n, family=gaussian, seed=0):
    rng = np.random.default_rng(seed)
    predictive = family(rng, n)
    return Predictions(y=predictive.sample(rng, 1)[:, 0], predictive=predictive)


@given(values=NUMBERS, cuts=NUMBERS, part=st.integers(1, 9), none=st.booleans())
@settings(max_examples=100, deadline=None)
def test_digitize_agrees_with_searchsorted(values, cuts, part, none):
    """Also by parts, without cuts, and below infinity."""
    values, cuts = np.array([*values, np.inf, -np.inf]), np.sort([] if none else cuts)
    assert_array_equal(digitize(values, cuts, block=part), np.searchsorted(cuts, values, "left"))
    assert_array_equal(digitize(values, cuts, equal=True, block=part), np.searchsorted(cuts, values, "right"))


@pytest.mark.parametrize(("count", "size"), [(255, 1), (256, 2)])
def test_digitize_returns_the_smallest_integer_type(count, size):
    found = digitize(np.array([-1.0, 1e9]), np.arange(float(count)))
    assert found.tolist() == [0, count]
    assert found.itemsize == size


@given(values=NUMBERS, seed=st.integers(0, 100))
@settings(max_examples=100, deadline=None)
def test_tie_groups_are_groups_of_equal_values(values, seed):
    """Their sums and weighted sums agree with those of numpy's unique values."""
    values, rng = np.array(values), np.random.default_rng(seed)
    distinct, label = np.unique(values, return_inverse=True)
    peer, found = Groups(label, len(distinct)), TieGroups(values)
    other, weights = rng.normal(size=len(values)), rng.random((3, len(values)))
    assert_array_equal(found.distinct, distinct)
    assert_array_equal(found.label, label)
    assert_array_equal(found.counts, peer.counts)
    for column in (None, values, other):
        assert_allclose(found.sums(column), peer.sums(column), rtol=1e-12, atol=1e-12)
        terms = [
            Averages({"x": MeanTerm(column, groups)}, len(values)).weighted(weights)["x"] for groups in (found, peer)
        ]
        assert_allclose(*terms, rtol=1e-12, atol=1e-12)


@given(values=NUMBERS, seed=st.integers(0, 100))
@settings(max_examples=100, deadline=None)
def test_cut_tie_groups_give_the_sums_of_all_tie_groups(values, seed):
    """Rows between two cuts are summed together; curves agree with those of all groups, also under weights."""
    values = np.minimum(np.array(values), 4.0)
    other = np.random.default_rng(seed).normal(size=len(values))
    few, every = CutTieGroups(values, FIRST), TieGroups(values)
    for column in (values, other):
        found, expected = (
            cumulative_at(FIRST, groups.sums(None) / len(values), groups.sums(column) / len(values))
            for groups in (few, every)
        )
        assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        weights = np.random.default_rng(seed).random((2, len(values)))
        terms = [
            Averages({"x": MeanTerm(column, groups)}, len(values)).weighted(weights)["x"] for groups in (few, every)
        ]
        assert_allclose(*terms, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["normal", "heavy-tailed", "tied"])
def test_cut_tie_groups_of_many_rows_are_those_of_sorted_rows(kind):
    rng = np.random.default_rng(0)
    values = {"normal": rng.normal(size=70_000), "heavy-tailed": rng.standard_cauchy(70_000) ** 2}.get(kind)
    values = np.round(rng.normal(size=70_000), 2) if values is None else values
    found, ordered = CutTieGroups(values, FIRST), np.sort(values)
    assert_allclose(found.group_sums, np.add.reduceat(ordered, found.starts), rtol=1e-9)
    assert_array_equal(found.sums(np.ones(len(values))), found.sums(None))
    cut = ordered[np.minimum((FIRST * len(values)).astype(int), len(values) - 1)]
    expected = [0, *np.searchsorted(ordered, cut), *np.searchsorted(ordered, cut, "right")]
    assert set(found.starts) == {start for start in expected if start < len(values)}


def test_the_pit_distance_of_sorted_values_is_that_of_their_distribution():
    values = np.random.default_rng(0).random(300)
    terms, places = distribution(values, values)
    expected = cramer_von_mises(Averages(terms, 300).means(), places)
    assert_allclose(distance_of_sorted(np.sort(values)), expected, rtol=1e-12)


def limits(jumps):
    """Return the limits of jumps that are given by their starts and widths."""
    left, width = np.array(jumps).T
    return left, np.minimum(left + width, 1)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_pit_distance_of_jumps_is_that_of_their_distribution(share):
    rng = np.random.default_rng(0)
    left = rng.integers(0, 9, 300) / 10
    right = left + 0.1 * rng.random(300) * (rng.random(300) < share)
    terms, places = distribution(left, right)
    expected = cramer_von_mises(Averages(terms, 300).means(), places)
    assert_allclose(distance_of_jumps(left, right), expected, rtol=1e-12)


@given(jumps=st.lists(JUMPS, min_size=1, max_size=60), times=st.sampled_from([1, 2000]))
@settings(max_examples=100, deadline=None)
def test_the_pit_distance_of_narrow_and_of_many_jumps_is_that_of_their_distribution(jumps, times):
    left, right = (np.tile(ends, times) for ends in limits(jumps))
    terms, places = distribution(left, right)
    expected = cramer_von_mises(Averages(terms, len(left)).means(), places)
    assert_allclose(distance_of_jumps(left, right), expected, atol=1e-10)


@given(jumps=st.lists(JUMPS, min_size=1, max_size=60), count=st.sampled_from([1, 3, 9, 99, 255]), even=st.booleans())
@settings(max_examples=200, deadline=None)
def test_mean_shares_below_levels_are_those_of_each_jump(jumps, count, even):
    left, right = limits(jumps)
    levels = levels_of(count) if even else levels_of(count) ** 2
    expected = share_below(left, right, levels).sums(None) / len(left)
    assert_allclose(mean_share_below(left, right, levels), expected, atol=1e-10)


def test_shares_below_levels_of_many_jumps_are_those_of_each_jump():
    """Of 20,000 rows, of which some have no jump, and of their resamples."""
    rng, levels = np.random.default_rng(0), levels_of(9)
    left, right = limits([*zip(rng.random(20_000), rng.choice([0, 1e-12, 0.05, 0.5], 20_000), strict=True)])
    each = np.stack([share_of_row_below(left, right, level) for level in levels], axis=1)
    found, weights = share_below(left, right, levels), rng.poisson(1, (2, 20_000)).astype(float)
    assert_allclose(found.sums(None), each.sum(axis=0), rtol=1e-12)
    assert_allclose(found.weighted_sums(weights), weights @ each, rtol=1e-12)
    assert_array_equal(found.membership(), each)


def test_cut_tie_groups_are_few():
    values = np.random.default_rng(0).normal(size=1000)
    assert len(CutTieGroups(values, FIRST).sums(None)) <= 1 + 2 * len(FIRST)


@pytest.mark.parametrize("jumps", [False, True])
def test_the_pit_distance_does_not_depend_on_the_size_of_parts(jumps):
    rng = np.random.default_rng(0)
    left = rng.random(100) * 0.9
    terms, places = distribution(left, left + rng.random(100) / 10 if jumps else left)
    means = Averages(terms, 100).means()
    whole = cramer_von_mises(means, places)
    assert_allclose(cramer_von_mises(means, places, block=7), whole, rtol=1e-13)


def test_groups_are_summed_in_parts():
    rng = np.random.default_rng(0)
    label, values = rng.integers(0, 3, 100).astype(np.uint8), rng.normal(size=100)
    groups = Groups(label, 3)
    assert_allclose(groups.by_class(values, block=7), [values[label == each].sum() for each in range(3)], rtol=1e-12)
    assert groups.by_class(None, block=7).tolist() == [(label == each).sum() for each in range(3)]


@pytest.mark.parametrize("count", [1, 2, 3, 10, 11])
def test_the_median_agrees_with_numpy(count):
    values = np.random.default_rng(count).normal(size=count)
    assert median(values) == np.median(values)


@pytest.mark.parametrize("family", [gaussian, laplace, student_t, cauchy])
def test_metrics_do_not_depend_on_the_size_of_parts(monkeypatch, family):
    """Every metric on 100 rows at once, and seven at a time."""
    rows = model(100, family)
    metrics = [metric() for metric in METRICS.values()]
    whole = evaluate(InMemory(rows), metrics, run=PLAIN)
    monkeypatch.setattr(continuous, "PART", 7)  # a size of the processor's cache: methods of families take no limits
    rows = rows.take(np.arange(100))  # without the batches of the first evaluation
    assert [len(part) for _, part in rows.predictive.batches()] == [7] * 14 + [2]
    parts = evaluate(InMemory(rows), metrics, run=PLAIN)
    assert [each.metric for each in parts.results] == [each.metric for each in whole.results]
    for mine, other in zip(parts.results, whole.results, strict=True):
        assert_allclose(mine.value, other.value, rtol=1e-13)


@pytest.mark.parametrize("family", [gaussian, laplace, student_t, cauchy])
def test_a_central_interval_has_its_mass_in_every_row(family):
    """Also far from zero, where the limits are inaccurate."""
    predictive = model(20, family).predictive
    assert_allclose(predictive.central_mass(0.8), 0.8, rtol=1e-12)
    assert_allclose(predictive.interval_mass(*predictive.central_interval(0.8)), 0.8, rtol=1e-9)
    far = replace(predictive, loc=predictive.loc + 1e9)
    assert_allclose(far.central_mass(0.8), 0.8, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("resamples", "kept"), [(0, False), (100, True)])
def test_columns_are_kept_for_resampling_only(resamples, kept):
    """The columns of all metrics take gigabytes at ten million rows."""
    columns, alive = [], []

    def sink(metric, shown, rows):  # noqa: ARG001 - the signature of sinks
        gc.collect()
        alive.extend(column() is not None for column in columns)
        columns.append(weakref.ref(next(iter(rows.columns.values()))))

    run = Run(resamples=resamples, replicates=0)
    evaluate(InMemory(model(50)), [METRICS[name]() for name in ("nll", "crps", "mae")], run=run, sink=sink)
    assert alive == [kept] * 3


def test_few_parameters_are_loaded_for_any_number_of_rows(tmp_path):
    """Mean and standard deviation are loaded; the fifteen parameters of a mixture of five are read again."""
    rng = np.random.default_rng(0)
    columns = {"y": rng.normal(size=99), "mean": rng.normal(size=99), "std": rng.uniform(1, 2, 99)}
    mixture = {f"{kind}_{part}": np.full(99, 0.2) for kind in ("weight", "mean", "std") for part in range(5)}
    sizes = {"predictive_bytes": 1, "batch_bytes": 1, "batch_rows": 10}
    rows = limited(read(save(tmp_path / "narrow.parquet", pa.table(columns))), **sizes).predictions()
    assert isinstance(rows.predictive, Gaussian)
    assert_array_equal(rows.predictive.scale, columns["std"])
    assert rows.row is None
    wide = pa.table({"y": columns["y"]} | mixture)
    source = limited(read(save(tmp_path / "wide.parquet", wide), dist="mixture"), **sizes)
    assert source.predictions().predictive.nbytes == 0


def test_row_numbers_are_stored_only_if_rows_are_excluded(tmp_path):
    sizes = {"batch_bytes": 1, "batch_rows": 2}
    columns = {"y": [0.0, 1, 2, 3, 4, 5], "mean": [0.0] * 6, "std": [1.0] * 6, "part": list("aaabab")}
    path = save(tmp_path / "preds.parquet", pa.table(columns))
    assert limited(read(path), **sizes).predictions().row is None
    assert limited(read(path, filter=("part=a",)), **sizes).predictions().row.tolist() == [0, 1, 2, 4]


def test_replicates_share_the_intervals_of_each_batch(monkeypatch):
    """Three batches of Student-t distributions have two limits each, whatever the number of replicates."""
    rows, asked = model(3, student_t), []
    monkeypatch.setattr(continuous, "PART", 1)
    quantile = type(rows.predictive).standard_quantile
    monkeypatch.setattr(
        type(rows.predictive), "standard_quantile", lambda self, p: asked.append(p) or quantile(self, p)
    )
    evaluate(InMemory(rows), [METRICS["interval-score"](level=0.8)], run=Run(resamples=0, replicates=19))
    assert_allclose(sorted(asked), [0.1] * 3 + [0.9] * 3)


def test_resamples_of_many_rows_are_poisson_counts():
    """Shares of rows that are selected k times are those of the Poisson distribution, within five standard errors."""
    weights = resampled_weights(100_000, 4, np.random.default_rng(0))
    shares = np.bincount(weights.ravel(), minlength=5)[:5] / weights.size
    assert_allclose(shares, poisson.pmf(np.arange(5), 1), atol=5 * 0.5 / np.sqrt(weights.size))
    means = Averages({"x": MeanTerm(np.arange(100_000.0))}, 100_000).resampled(200, np.random.default_rng(1))["x"]
    assert_allclose(means.std(), 1e5 / np.sqrt(12 * 1e5), rtol=5 / np.sqrt(2 * 200))


def test_sums_of_many_groups_up_to_a_share_are_those_of_all_groups_before_it():
    rng, n = np.random.default_rng(0), 100_003
    rows, values, shares = rng.poisson(1, n) / n, rng.normal(size=n), np.array([0.0, 0.123, 0.5, 0.98])
    ends = np.searchsorted(np.cumsum(rows), shares)
    expected = [
        values[:end].sum() + values[end] * (share - rows[:end].sum()) / rows[end] if share else 0.0
        for end, share in zip(ends, shares, strict=True)
    ]
    assert_allclose(cumulative_at(shares, rows, values), expected, atol=1e-9)


def test_weighted_sums_of_large_groups_are_those_of_their_rows():
    rng, n = np.random.default_rng(0), 60_000
    label, values, weights = rng.integers(0, 4, n), rng.normal(size=n), rng.poisson(1, (2, n)).astype(np.uint8)
    found = Averages({"x": MeanTerm(values, Groups(label, 5))}, n).weighted(weights)["x"]
    expected = [np.bincount(label, each * values, 5) / each.sum() for each in weights]
    assert_allclose(found, expected, rtol=1e-10, atol=1e-15)
