"""Which new rows lie beyond the tested inputs."""

import numpy as np
import pytest

from calcheck.core.lazy_inputs import Categories
from calcheck.new_inputs import positions
from calcheck.new_inputs.positions import Beyond, Neighborhood, scale_inputs
from calcheck.predictions import Predictions


def beyond(tested, new, *, embedding=False):
    rows = Predictions(x=tested, has_embedding=embedding)
    return Beyond.from_inputs(Neighborhood.from_rows(rows, scale_inputs(rows), 0), new)


def test_p_counts_tested_rows_that_are_at_least_as_far_from_others():
    """0, 1, ..., 19: the distance to the 5th neighbor is 5 at an end, 4 next to it, and 3 for the other 16.

    A new row at 10.5 has its 5th neighbor at 2.5: all 20 are farther, so p = 21/21. One at 21 has it at 6: p = 1/21.
    One at 19 has it at 4 (its own place counts), as far as the 2 + 2 at the ends: p = 5/21.
    """
    found = beyond(np.arange(20.0)[:, None], np.array([[10.5], [21.0], [19.0]]), embedding=True)
    assert found.tested.tolist() == pytest.approx([3] * 16 + [4] * 2 + [5] * 2)
    assert (found.p * 21).tolist() == pytest.approx([21, 1, 5])
    assert found.nearest.tolist()[1:] == [19, 19]


def test_a_row_far_away_lies_beyond_although_its_p_is_not_that_small():
    x = np.random.default_rng(0).normal(size=(500, 2))
    new = np.vstack([np.random.default_rng(1).normal(size=(499, 2)), [[100.0, 0.0]]])
    found = beyond(x, new)
    assert np.flatnonzero(found.rows).tolist() == [499]


@pytest.mark.parametrize(
    ("n", "m", "farthest", "place", "named"),
    [
        # 26 % (18.9 to 34.2 %) are where 5 % (2.0 to 8.9 %) of rows like the tested ones are: the share beyond is at
        # least (.26 - root of (.071^2 + .039^2) - .05) / .95 = .136; of 86.4 others 1.5 % are expected, 5 % of 26
        (100, 100, 26, 99.5, 26),
        (100, 100, 25, 99.5, 0),
        (100, 2, 1, 100.5, 1),  # half a row of 50 is expected, and 1 of 2 is beyond all others with 2/102 < .05/2
        (50, 2, 1, 50.5, 0),  # with 2/52
    ],
)
def test_rows_are_named_if_few_of_them_are_expected_and_all_together_are_rare(n, m, farthest, place, named):
    distance = np.array([place] * farthest + [n / 2] * (m - farthest))
    assert Beyond(np.arange(1.0, n + 1), distance, np.zeros(m, int)).rows.sum() == named


def test_on_a_lattice_rows_are_named_as_far_as_their_share_is_beyond():
    """Most distances of tested rows are 0; 300 new rows fill the lattice's gaps, where they are nearer than a step."""
    tested = np.append(np.repeat(np.arange(95.0), 10), np.arange(100.0, 150))[:, None]
    new = np.concatenate([np.arange(300) % 94 + 0.5, np.full(60, 400.0)])[:, None]
    found = beyond(tested, new)
    assert found.rows.tolist() == [False] * 300 + [True] * 60
    assert found.summary().low < 60 / 360 < found.summary().high


def test_a_small_cluster_lies_beyond_and_rows_like_the_tested_ones_do_not():
    rng = np.random.default_rng(0)
    named = []
    for _ in range(20):
        x, new = rng.normal(size=(500, 2)), rng.normal(size=(500, 2))
        assert not beyond(x, new).rows.any()
        new[:50] = [4.0, 0.0] + 0.3 * rng.normal(size=(50, 2))
        found = beyond(x, new)
        named.append(found.rows[:50].mean())
        assert found.rows[50:].sum() <= 10
        assert found.summary().low < 0.1 < found.summary().high
    assert np.mean(np.array(named) > 0.5) >= 0.9


def test_comparison_with_all_rows_finds_what_a_search_tree_does(monkeypatch):
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))
    tree = beyond(x, new)
    monkeypatch.setattr(positions, "TREE_COLUMNS", 0)
    monkeypatch.setattr(positions, "BLOCK", 200)
    compared = beyond(x, new)
    np.testing.assert_allclose(compared.distance, tree.distance)
    np.testing.assert_allclose(compared.tested, tree.tested)
    assert compared.nearest.tolist() == tree.nearest.tolist()


def test_units_of_inputs_change_nothing():
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(100, 2)), rng.normal(loc=[1, 0], size=(50, 2))
    other = beyond(x * [1000.0, 0.01] + 7, new * [1000.0, 0.01] + 7)
    np.testing.assert_allclose(other.distance, beyond(x, new).distance)


def test_an_absurd_tested_value_does_not_bring_new_rows_nearer():
    """All 50 new rows are 8 standard deviations away; one value of -9,999 makes the standard deviation 350."""
    rng = np.random.default_rng(0)
    tested, new = rng.normal(size=(800, 2)), np.add(rng.normal(size=(50, 2)), [8, 0])
    assert beyond(tested, new).summary().share > 0.9
    tested[0, 0] = -9999
    assert beyond(tested, new).summary().share > 0.9


def test_categories_have_the_unit_that_they_have_elsewhere():
    """4 and 12 of 16 rows have variances of 3/16 · 16/15 each: the unit is the root of their sum."""
    x = np.column_stack([np.arange(16.0), np.arange(16) < 4, np.arange(16) >= 4])
    rows = Predictions(x=x, has_embedding=False, categories=(Categories("c", ("a", "b"), 1),))
    assert scale_inputs(rows).divisor[1:] == pytest.approx([np.sqrt(2 / 5)] * 2)
