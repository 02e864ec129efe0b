"""Bins, groups and row quantities agree with their definitions, row by row."""

import gc
import weakref
from weakref import WeakKeyDictionary

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from calcheck.core import cache as cache_module
from calcheck.core.cache import cached
from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.distributions.samples import PooledDraws
from calcheck.errors import DataError
from calcheck.execution.run import map_ahead
from calcheck.metrics.pit import Ece
from calcheck.predictions import Predictions
from calcheck.statistics.binning import FEW_ROWS, Binning, bin_warnings, bins_of, middle_range
from calcheck.statistics.groups import (
    Averages,
    Groups,
    MeanTerm,
    TieGroups,
    cells,
    cumulative_at,
    digitize,
    resampled_weights,
)
from calcheck.statistics.pit import cramer_von_mises, distribution, levels_of, mean_share_below, pit, share_below
from calcheck.statistics.zscores import (
    equal_draws_warning,
    errors,
    heavy_tails,
    skewness,
    spreads,
    uncertainties,
    z_scores,
)
from tests.helpers.shorthand import rows_of, texts


def shares_by_definition(values, bins):
    """Return the share of each row in each bin, (n, bins): tied rows share their positions."""
    n = len(values)
    edges = np.round(np.linspace(0, n, bins + 1)).astype(int)
    place_of_bin = np.repeat(np.arange(bins), np.diff(edges))
    order = np.argsort(values, kind="stable")
    shares = np.zeros((n, bins))
    for value in np.unique(values):
        tied = np.flatnonzero(values == value)
        places = np.flatnonzero(np.isin(order, tied))
        counts = np.bincount(place_of_bin[places], minlength=bins)
        shares[tied] = counts / len(tied)
    return shares


@given(
    values=st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, -1.0, 1e300, -0.0]), min_size=1, max_size=30),
    bins=st.integers(1, 12),
)
@settings(max_examples=200, deadline=None)
def test_bins_agree_with_their_definition(values, bins):
    values = np.array(values)
    if bins > len(values):
        with pytest.raises(DataError, match="bins need at least"):
            Binning.equal_counts(values, bins)
        return
    found = Binning.equal_counts(values, bins)
    expected = shares_by_definition(values, bins)
    assert_allclose(found.shares[found.label], expected, atol=1e-12)
    assert_allclose(found.sums(None), expected.sum(axis=0), atol=1e-12)
    numbers = np.arange(len(values)) + 0.5
    assert_allclose(found.sums(numbers), numbers @ expected, atol=1e-10)
    assert_allclose(found.sums(None), np.diff(np.round(np.linspace(0, len(values), bins + 1))), atol=1e-10)


TIED = np.array([1.0, 2, 2, 2, 3])


@pytest.mark.parametrize(
    ("bins", "members"),
    [
        (Binning.equal_counts(TIED, 2), [[1, 0], [1 / 3, 2 / 3], [1 / 3, 2 / 3], [1 / 3, 2 / 3], [0, 1]]),
        (Binning.values(TIED, np.unique(TIED)), [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]),
        (Binning.edges(TIED, np.array([1.5, 2, 2.5])), [[1, 0], [0, 1], [0, 1], [0, 1], [0, 1]]),
        (Binning.categories(np.array(list("abbba")), "kind"), [[1, 0], [0, 1], [0, 1], [0, 1], [1, 0]]),
    ],
)
def test_equal_values_are_divided_between_bins_of_equal_counts_and_in_one_bin_of_others(bins, members):
    assert_allclose(bins.membership()[bins.label], members, atol=1e-15)
    assert_allclose(bins.means(TIED), np.array(members).T @ TIED / np.sum(members, axis=0))


def test_values_equal_to_an_edge_are_above_it_and_those_beyond_all_edges_are_in_the_outer_bins():
    bins = Binning.edges(np.array([-np.inf, 0, 1, 1.5, 2, 9]), np.array([0.0, 1, 2]))
    assert bins.label.tolist() == [0, 0, 1, 1, 1, 1]
    assert (bins.low.tolist(), bins.high.tolist(), bins.cuts.tolist()) == ([0, 1], [1, 2], [1])
    assert digitize(np.array([0.0, 1, 2]), np.array([1.0])).tolist() == [0, 0, 1]


def test_cells_are_the_combinations_of_groups_that_have_rows_in_order():
    label, places = cells(Groups(np.array([1, 0, 1, 1]), 3), Groups(np.array([1, 0, 0, 1]), 2))
    assert label.tolist() == [2, 0, 1, 2]
    assert [each.tolist() for each in places] == [[0, 1, 1], [0, 0, 1]]


def test_the_middle_of_values_with_one_frequent_value_is_all_of_them():
    assert middle_range(np.linspace(0, 1, 101), 0.1) == pytest.approx((0.1, 0.9))
    assert middle_range(np.array([0.0, 5, 5, 5, 5, 5, 9]), 0.3) == (0, 9)


def test_many_bins_agree_with_their_definition():
    """More than 255 edges are labeled by another algorithm."""
    values = np.random.default_rng(0).integers(0, 400, 3000).astype(float)
    found = Binning.equal_counts(values, 600)
    assert_allclose(found.shares[found.label], shares_by_definition(values, 600), atol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 9, 99, 1000])
def test_shares_below_levels_are_counts(count):
    """Also for PIT values on a level, at 0 and at 1."""
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.random(500), levels_of(count), [0.0, 1.0, np.nextafter(0.5, 1), np.nextafter(0.5, 0)]])
    expected = [np.mean(values <= level) for level in levels_of(count)]
    found = share_below(values, values, levels_of(count)).sums(None) / len(values)
    assert_allclose(found, expected, atol=1e-12)


def test_shares_below_unevenly_spaced_levels_are_counts():
    """As in files of quantiles; a PIT value equal to a level counts as below it."""
    levels = np.array([0.01, 0.02, 0.03, 0.5, 0.975])
    values = np.array([0.0, 0.01, 0.015, 0.02, 0.1, 0.2, 0.5, 0.6, 0.975, 1.0])
    assert share_below(values, values, levels).sums(None).tolist() == [2, 4, 4, 7, 9]


def test_shares_below_levels_are_linear_within_jumps():
    rng = np.random.default_rng(0)
    left = rng.random(200)
    right = np.minimum(left + rng.choice([0.0, 0.1, 0.5], 200), 1)
    expected = [
        np.mean([float(high <= p) if high == low else min(max((p - low) / (high - low), 0), 1)
                 for low, high in zip(left, right, strict=True)])
        for p in levels_of(9)
    ]  # fmt: skip
    assert_allclose(share_below(left, right, levels_of(9)).sums(None) / 200, expected, atol=1e-12)
    assert_allclose(mean_share_below(left, right, levels_of(9)), expected, atol=1e-12)


def test_a_row_without_a_jump_counts_at_its_level():
    """PIT 1/2 exactly, and a row that jumps from 0.1 to 0.3: both count as below the level 1/2."""
    left, right = np.array([0.5, 0.1]), np.array([0.5, 0.3])
    assert share_below(left, right, levels_of(1)).sums(None).tolist() == [2.0]
    assert mean_share_below(left, right, levels_of(1)).tolist() == [1.0]


def test_jumps_of_rounding_size_are_treated_as_points():
    """Beside wide jumps, 500 of 1e-15 have the distance of 500 points, without loss of accuracy."""
    rng = np.random.default_rng(0)
    left = rng.random(1000) * 0.9
    found = []
    for tiny in (0.0, 1e-15):
        right = left + np.repeat([0.07, tiny], 500)
        terms, places = distribution(left, right)
        found.append(cramer_von_mises(Averages(terms, 1000).means(), places))
    assert_allclose(found[1], found[0], rtol=1e-10)


@given(seed=st.integers(0, 1000), label=st.booleans(), shared=st.booleans())
@settings(max_examples=40, deadline=None)
def test_weighted_sums_of_groups_agree_with_their_definition(seed, label, shared):
    rng = np.random.default_rng(seed)
    n, classes, bins = 20, 20, 3
    labels = rng.integers(0, classes, n) if label else np.arange(n)
    shares = rng.random((classes, bins)) if shared else None
    groups = Groups(labels if label else None, classes, shares)
    values, weights = rng.normal(size=n), rng.integers(0, 4, (5, n)).astype(float) + 0.5
    found = Averages({"x": MeanTerm(values, groups), "one": MeanTerm(groups=groups)}, n).weighted(weights)
    member = np.eye(classes)[labels] if shares is None else shares[labels]
    total = weights.sum(axis=1, keepdims=True)
    assert_allclose(found["x"], (weights * values) @ member / total, atol=1e-12)
    assert_allclose(found["one"], weights @ member / total, atol=1e-12)
    assert_allclose(Averages({"x": MeanTerm(values, groups)}, n).means()["x"], values @ member / n, atol=1e-12)


def test_resampling_draws_rows_uniformly():
    """n draws per resample; over 4,000 resamples each row is drawn once on average, within five standard errors."""
    weights = resampled_weights(7, 4000, np.random.default_rng(0))
    assert (weights.sum(axis=1) == 7).all()
    assert_allclose(weights.mean(axis=0), 1.0, atol=5 * np.sqrt(6 / 7 / 4000))
    assert_allclose(weights.var(axis=0), 6 / 7, rtol=0.15)


def test_cumulative_sums_split_a_group_in_proportion():
    """Two groups of one row and three rows: half of the rows are the first group and a third of the second."""
    found = cumulative_at(np.array([0.0, 0.25, 0.5, 1.0]), np.array([0.25, 0.75]), np.array([10.0, 6.0]))
    assert_allclose(found, [0.0, 10.0, 12.0, 16.0])


def test_tie_groups_are_ordered_by_value():
    assert TieGroups(np.array([3.0, 1.0, 3.0, 2.0])).label.tolist() == [2, 0, 2, 1]


def test_skewness_by_hand():
    """0, 0, 3: mean 1, median 0, mean distance from the median 1; symmetric and constant values have skewness 0."""
    assert_allclose(skewness(np.array([0.0, 0.0, 3.0])), 1.0)
    assert_allclose(skewness(np.array([0.0, 3.0, 3.0])), -1.0)
    assert skewness(np.array([1.0, 2.0, 3.0])) == 0
    assert skewness(np.array([2.0, 2.0])) == 0


@pytest.mark.parametrize(("threshold", "count"), [(0.5, 1), (1.5, 0)])
def test_heavy_tails_warn_above_their_threshold(threshold, count):
    found, warnings = heavy_tails({"z2": (np.array([0.0, 0.0, 3.0]), threshold)})
    assert len(texts(warnings)) == count
    assert found == {"z2": 1.0}


def test_row_quantities_by_hand():
    rows = Predictions(y=np.array([1.0, 5.0]), predictive=Gaussian(np.array([0.0, 6.0]), np.array([2.0, 0.5])))
    assert errors(rows).tolist() == [1.0, -1.0]
    assert uncertainties(rows).tolist() == [2.0, 0.5]
    left, right = pit(rows)
    assert left is right
    counts = Predictions(y=np.array([0.0]), predictive=Poisson(np.array([1.0])))
    assert_allclose(np.concatenate(pit(counts)), [0.0, np.exp(-1)])


def test_standard_deviations_of_0_are_refused_unless_draws_are_equal():
    steps = Predictions(y=np.zeros(2), predictive=Quantiles(np.array([0.05, 0.95]), np.array([[1.0, 1.0], [1.0, 2.0]])))
    with pytest.raises(DataError, match="std must be positive, but 1 of 2 rows is not"):
        uncertainties(steps)


def test_errors_of_equal_draws_are_compared_with_the_spread_of_draws_and_target():
    """Of 0, 0, 0 and 4, the standard deviation is 2. A target that is equal, too, has no error."""
    draws = np.array([[0.0, 0.0, 0.0], [0.1, 0.1, 0.1], [1.0, 2.0, 3.0]])
    rows = Predictions(y=np.array([4.0, 0.1, 2.0]), predictive=Samples(draws))
    assert spreads(rows.distributions()).tolist() == [0, 0, 1]
    assert uncertainties(rows).tolist() == [2, 0, 1]
    assert z_scores(rows).tolist() == [2, 0, 0]
    (warning,) = equal_draws_warning(rows)
    assert "in 2 of 3 rows. In 1 of these" in warning.text
    assert "±2" in warning.text
    assert equal_draws_warning(rows.take(np.array([2]))) == ()


def test_exchanges_of_a_target_that_alone_differs_have_squares_of_nearly_1():
    """With m = 4 draws: 1 / 4 if the target is one of the equal values, 5 if it is the other; 6 / 5 on average."""
    samples, y = Samples(np.array([[0.0, 0.0, 7.0, 0.0]])), np.zeros(1)
    exchanges = [PooledDraws(y, samples).exchange(np.array([chosen])) for chosen in range(5)]
    squares = [float(z_scores(Predictions(y=target, predictive=draws))[0] ** 2) for target, draws in exchanges]
    assert_allclose(squares, [0.25, 0.25, 0.25, 5, 0.25])
    plain = [z_scores(Predictions(y=target, predictive=draws.load())) ** 2 for target, draws in exchanges]
    assert_allclose(np.concatenate(plain), squares)


def test_rows_are_binned_by_other_columns():
    rows = Predictions(
        y=np.zeros(3),
        predictive=Gaussian(np.zeros(3), np.ones(3)),
        columns={"age": np.array([3, 1, 2]), "kind": np.array(["a", "b", "c"]), "gap": np.array([1.0, np.nan, 2.0])},
    )
    assert bins_of(rows, 3, "age").number().tolist() == [2, 0, 1]
    with pytest.raises(DataError, match="column 'kind' holds categories, each of which is a bin: omit --bins 2"):
        bins_of(rows, 2, "kind")
    with pytest.raises(DataError, match="gap must be finite"):
        bins_of(rows, 2, "gap")
    with pytest.raises(DataError, match="no column 'agee'"):
        bins_of(rows, 2, "agee")


@pytest.mark.slow
def test_cached_results_are_freed_with_their_rows():
    calls, results = [], []

    @cached
    def zeros(rows):
        calls.append(len(rows))
        found = np.zeros(len(rows))
        results.append(weakref.ref(found))
        return found

    rows = Predictions(y=np.zeros(3))
    assert zeros(rows) is zeros(rows)
    assert calls == [3]
    del rows
    gc.collect()
    assert results[0]() is None


def test_the_least_recently_used_results_are_evicted(monkeypatch):
    """A limit of two columns of ten rows; arrays of the rows themselves and repeated arrays do not count."""
    monkeypatch.setattr(cache_module, "KEPT_BYTES", 170)  # the cache is one for the whole process
    monkeypatch.setattr(cache_module, "_known", WeakKeyDictionary())
    calls = []

    @cached
    def column(rows, name):
        calls.append(name)
        found = np.zeros(len(rows))
        return {"own": rows.y, "view": rows.y[1:], "pair": (found, found), "bins": Groups(found, 1)}.get(name, found)

    rows = Predictions(y=np.zeros(10))
    free = ["own", "view"]
    for name in (*free, "pair", "b", "pair"):
        column(rows, name)
    assert calls == [*free, "pair", "b"]
    column(rows, "bins")
    column(rows, "pair")
    assert calls == [*free, "pair", "b", "bins"]
    column(rows, "b")
    column(rows, "pair")
    column(rows, "bins")
    for name in free:
        column(rows, name)
    assert calls == [*free, "pair", "b", "bins", "b", "bins"]


def test_map_ahead_keeps_the_order_and_raises_errors():
    def work(number):
        if number == 3:
            raise ValueError(number)
        return number

    found = map_ahead(work, [1, 2, 3, 4])
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(ValueError, match="3"):
        next(found)


def test_the_curve_is_reported_at_all_levels():
    """Levels j / 100; PIT values 0.5 and about 0.84."""
    rows = Predictions(y=np.array([0.0, 1.0]), predictive=Gaussian(np.zeros(2), np.ones(2)))
    curve = rows_of(Ece(), rows).details["curve"]
    assert_allclose([point["level"] for point in curve], np.arange(1, 100) / 100)
    assert [point["observed"] for point in curve] == [0] * 49 + [0.5] * 35 + [1] * 15


def test_bins_of_few_or_of_tied_rows_are_warned_of():
    """Ten bins of 30 rows are enough, those of 29 are few; and bins that share most of their rows repeat each other."""

    def codes(values, rows):
        return [each.code for each in bin_warnings(Binning.equal_counts(values, 10), {"rows": np.full(10, rows)})]

    apart, tied = np.arange(300.0), np.repeat([1.0, 2.0, 3.0], [90, 120, 90])
    assert codes(apart, FEW_ROWS) == []
    assert codes(apart, FEW_ROWS - 1) == ["few-rows-per-bin"]
    assert codes(tied, FEW_ROWS) == ["tied-bins"]


@pytest.mark.parametrize("jumping", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("repeated", [False, True])
def test_shares_below_levels_are_those_of_the_rows_with_and_without_jumps(jumping, repeated):
    """The share of a row is by hand: the part of its jump below the level, or a step where it has none."""
    rng = np.random.default_rng(3)
    left = rng.integers(0, 5, 200) / 7 if repeated else rng.random(200)
    right = np.where(rng.random(200) < jumping, left + (1 - left) / 2, left)
    values, levels = rng.normal(size=200), levels_of(9)
    by_hand = [
        [float(b <= p) if a == b else min(max((p - a) / (b - a), 0.0), 1.0) for p in levels]
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
    ]
    assert_allclose(share_below(left, right, levels).sums(values), values @ np.array(by_hand), rtol=1e-12, atol=1e-12)
