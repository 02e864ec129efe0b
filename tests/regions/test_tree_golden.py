"""Trees of regions: splits by hand and one by one, the level they promise, and the faults they summarize."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck.core.filter_conditions import Condition
from calcheck.distributions import Gaussian
from calcheck.execution.run import Run
from calcheck.inference.null_distribution import NullSimulator
from calcheck.predictions import InMemory, Predictions
from calcheck.regions.partition import Partition, column_values, label_of
from calcheck.regions.scan import row_scores
from calcheck.regions.trees import Trees
from calcheck.studies.slices.options import SearchOptions
from calcheck.studies.slices.search import search_regions
from tests.helpers.simulations import band, sets

SETS = sets(240, 8)


def partitions(n=80, seed=1):
    """Return the bins of a column of numbers, one of texts and one with missing values."""
    rng = np.random.default_rng(seed)
    numbers, kinds = rng.integers(0, 6, n).astype(float), np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    gaps = np.where(rng.random(n) < 0.3, np.nan, rng.random(n))
    return (
        Partition.quantiles("x", *column_values(numbers), 4),
        Partition.categories("kind", *column_values(kinds), 20, 5),
        Partition.quantiles("gaps", *column_values(gaps), 3),
    )


def naive_parts(partition, inside):
    """Return the allowed two-part splits of some rows by a column, as sets of rows."""
    ordered, k = partition.ordered, len(partition.bins)
    found = [partition.label == bin_ for bin_ in range(ordered, k)]
    if not (inside & (partition.label >= ordered)).any():
        found += [partition.label <= place for place in range(ordered - 1)]
    return found


def naive_gain(scores, variances, inside, part):
    def squares(rows):
        return scores[rows].sum(axis=0) ** 2 / variances[rows].sum(axis=0)

    parts = inside & part, inside & ~part
    within = sum(scores[rows].var(axis=0) * rows.sum() for rows in parts) / variances[inside].sum(axis=0)
    gain = squares(parts[0]) + squares(parts[1]) - squares(inside)
    return max(gain), max(gain / within)


def test_each_split_is_the_best_of_all_splits_one_by_one():
    rng, bins = np.random.default_rng(2), partitions()
    variances = 0.5 + rng.random((80, 2))
    trees, scores = Trees(bins, variances, depth=3, min_rows=7), rng.normal(size=(80, 2))
    nodes = trees.grow(scores)
    masks, gains = trees.masks(nodes), trees.gains(nodes)
    assert len(nodes) > 7
    for number, (node, inside) in enumerate(zip(nodes, masks, strict=True)):
        assert node.rows == inside.sum()
        assert_allclose(node.deviations, scores[inside].sum(axis=0) / np.sqrt(variances[inside].sum(axis=0)))
        possible = [
            naive_gain(scores, variances, inside, part)
            for partition in bins
            for part in naive_parts(partition, inside)
            if 7 <= (inside & part).sum() <= inside.sum() - 7
        ]
        depth = sum(1 for _ in above(nodes, number))
        assert_allclose(gains[number], max(possible)[1] if possible and depth < 3 else -np.inf)


def above(nodes, number):
    while (number := nodes[number].parent) is not None:
        yield number


def test_a_tree_by_hand():
    """Scores of dispersion are 2 where x is 1 and kind is a, of variance 1; all others are 0.

    Cut x: 4 rows of sum 4 and 4 of sum 0: 16/4 + 0 - 16/8 = 2. Split kind: the same by symmetry, so x, which is first.
    The sum of squares within the parts is 2 (1 - 0)^2 + 2 (1 - 2)^2 = 4, and 8 are expected: the gain is 2 x 8 / 4.
    """
    x, kind = np.array([0.0, 0, 0, 0, 1, 1, 1, 1]), np.array(list("aabbaabb"))
    bins = Partition.quantiles("x", *column_values(x), 4), Partition.categories("kind", *column_values(kind), 20)
    trees = Trees(bins, np.ones((8, 2)), depth=2, min_rows=2)
    scores = np.zeros((8, 2))
    scores[4:6, 1] = 2.0
    nodes = trees.grow(scores)
    assert [label_of(trees.conditions(nodes, number)) for number in range(len(nodes))] == [
        "",
        "x<=0",
        "x>0",
        "x<=0 and kind=a",
        "x<=0 and kind!=a",
        "x>0 and kind=a",
        "x>0 and kind!=a",
    ]
    assert_allclose(trees.gains(nodes)[0], 4.0)
    assert_allclose(nodes[5].deviations, [0.0, 4 / np.sqrt(2)])


def test_the_conditions_of_nodes_select_their_rows():
    rng, bins = np.random.default_rng(3), partitions(300)
    trees = Trees(bins, np.ones((300, 2)), depth=4, min_rows=5)
    nodes = trees.grow(rng.normal(size=(300, 2)))
    rng = np.random.default_rng(1)
    numbers, kinds = rng.integers(0, 6, 300).astype(float), np.array(["a", "b", "c"])[rng.integers(0, 3, 300)]
    gaps = np.where(rng.random(300) < 0.3, np.nan, rng.random(300))
    table = {"x": numbers, "kind": kinds, "gaps": gaps}
    for number, mask in enumerate(trees.masks(nodes)):
        conditions = [Condition.parse(str(each), list(table)) for each in trees.conditions(nodes, number)]
        assert len({(each.column, each.operator, each.value) for each in conditions}) == len(conditions)
        rows = [all(each.holds_for(text_of(table[each.column][row])) for each in conditions) for row in range(300)]
        assert_array_equal(rows, mask)


def text_of(value):
    return None if value != value else str(value)  # noqa: PLR0124 - NaN


def data_set(rng, n=300, factor=1.0):
    """Return normal forecasts of three columns, whose deviations are wrong by a factor where a > 0.5 and kind is u."""
    a, b, kind = rng.random(n), rng.random(n), np.array(["u", "v"])[rng.integers(0, 2, n)]
    wrong = (a > 0.5) & (kind == "u")
    y = np.where(wrong, factor, 1.0) * rng.normal(size=n)
    columns = {"a": a, "b": b, "kind": kind}
    return Predictions(y=y, predictive=Gaussian(np.zeros(n), np.ones(n)), columns=columns), wrong


@pytest.mark.slow
def test_some_leaf_of_a_right_model_fails_in_five_percent_of_data_sets():
    options, failures = SearchOptions(depth=3, min_rows=15, bins=4), 0
    for seed in range(SETS):
        rows, _ = data_set(np.random.default_rng(seed), 150)
        report = search_regions(InMemory(rows), options=options, metrics=[], run=Run(replicates=19, seed=seed))
        failures += report.settings["p_value"] <= 0.05 * (1 + 1e-9)
    low, high = band(SETS, 0.05)
    assert low <= failures <= high


def test_the_p_value_is_that_of_the_node_with_the_largest_excess_over_all_regrown_trees():
    rows, _ = data_set(np.random.default_rng(5), 200, 1.3)
    options, run = SearchOptions(depth=2, min_rows=20, bins=4, columns=("a", "b", "kind")), Run(replicates=19)
    found = search_regions(InMemory(rows), options=options, metrics=[], run=run).settings
    all_scores = [row_scores(each) for each in (rows, *NullSimulator(rows, run))]
    columns = [
        Partition.quantiles(name, *column_values(rows.columns[name]), 4)
        if name != "kind"
        else Partition.categories(name, *column_values(rows.columns[name]), 20, 20)
        for name in ("a", "b", "kind")
    ]
    trees = Trees(tuple(columns), np.mean(np.square(all_scores), axis=0), depth=2, min_rows=20)
    largest = [
        max(max(np.abs(node.deviations)) - np.sqrt(2 * np.log(np.e * 200 / node.rows)) for node in trees.grow(scores))
        for scores in all_scores
    ]
    assert found["p_value"] == np.mean(np.array(largest) >= largest[0])


@pytest.mark.parametrize(("factor", "direction"), [(1.7, "too-narrow"), (0.5, "too-wide")])
def test_a_fault_is_a_leaf_and_the_rest_is_none(factor, direction):
    rows, wrong = data_set(np.random.default_rng(2), 2000, factor)
    given = {}
    report = search_regions(
        InMemory(rows),
        options=SearchOptions(depth=3),
        run=Run(replicates=39, resamples=200),
        sink=lambda _, columns: given.update(columns),
    )
    failed = {each.slice["group"]: each for each in report.results if each.verdict == "fail" and each.metric == "zms"}
    ((group, found),) = failed.items()
    assert found.direction == direction
    assert found.low < found.value < found.high
    assert "a>0." in group
    assert "kind=u" in group or "kind!=v" in group
    assert found.slice["filter"].startswith("--filter")
    leaves = [node for node in report.settings["tree"] if node["group"] is not None]
    number = [node["group"] for node in leaves].index(group) + 1
    assert np.mean((given["region"] == number) == wrong) > 0.97
    assert sum(node["rows"] for node in leaves) == 2000
    assert {node["verdict"] for node in leaves if node["group"] != group} == {"no fault found"}


def test_a_fault_that_is_the_same_everywhere_needs_no_split():
    rows, _ = data_set(np.random.default_rng(4), 1000)
    rows = replace(rows, y=1.5 * rows.y)
    report = search_regions(InMemory(rows), options=SearchOptions(depth=3), run=Run(replicates=39, resamples=200))
    (root,) = report.settings["tree"]
    assert (root["rule"], root["rows"]) == ("all rows", 1000)
    assert root["verdict"].startswith("overconfident: 90 % intervals should be 1.47 (1.39 to 1.53) times as wide")
