"""Maps of the two columns of a region, by hand."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.regions.maps import Variable, cell_edges, make_axis, region_map
from calcheck.regions.partition import Cut, bin_column
from calcheck.regions.scan import Deviations, Region, Scan
from calcheck.regions.worst import rectangle

A, B = np.array([1.0, 2, 3, 4, 1, 2, 3, 4]), np.repeat([0.0, 10], 4)
TEXTS = np.array(["a", "b"] * 4)


def test_a_rectangle_has_its_limits_as_edges_of_the_map_and_other_regions_have_none():
    """Of the values 1 to 4, those above 2 are beyond the shortest number in [2, 3), which belongs to the bin below."""
    (left, right), (low, high) = rectangle(A, B, A > 2)
    assert left == np.nextafter(2.0, 3)
    assert (right, low, high) == (np.inf, -np.inf, np.inf)
    axis = make_axis(Variable("a", A), 4, (left, right))
    assert_allclose(axis.edges, [0.5, 1.5, 2, 3.5, 4.5])
    assert axis.between(left, right) == (2, 3)
    assert rectangle(A, B, (A > 2) ^ (B > 0)) is None


def binning(values, bins=2):
    return bin_column("c", np.asarray(values), Cut("c", bins=bins))


def deviations(first, second):
    """Return the deviations of eight rows; the second score is 1 in the two rows with a > 2 and b > 0, else 0."""
    scores = np.zeros((8, 2))
    scores[6:, 1] = 1
    return Deviations(Scan((first, second), 1), scores, np.full((8, 2), 2.0), (), np.empty(0))


def test_a_map_has_the_deviation_of_each_cell_and_the_outline_of_the_region():
    """The two rows have the sum 2 and the variance 4, so that their cell deviates by 1."""
    found = deviations(binning(A), binning(B))
    cells, outline = region_map(found, Region(0, 1, (1, 1), (1, 1), 1, 1.0, 0.01), [A, B])
    assert (cells.name, cells.x, cells.stop) == ("map", (1, 1, 2, 2), (2, 2, 4, 4))
    assert (cells.x2, cells.stop2) == ((-10, 0, -10, 0), (0, 10, 0, 10))
    assert_allclose(cells.y, [0, 0, 0, 1], atol=1e-15)
    assert cells.rows == (2, 2, 2, 2)
    assert (outline.name, outline.x, outline.stop, outline.x2, outline.stop2) == ("region", (2,), (4,), (0,), (10,))
    assert outline.y == (1.0,)


def test_the_outline_of_a_run_of_one_column_spans_the_other():
    found = deviations(binning(A), binning(B))
    _, outline = region_map(found, Region(0, 1, (0, 0), None, 1, -2.0, 0.01), [A, B])
    assert (outline.x, outline.stop, outline.x2, outline.stop2) == ((1,), (2,), (-10,), (10,))


def test_missing_values_are_in_no_cell():
    gaps = np.where(np.arange(8) == 0, math.nan, A)
    found = deviations(binning(gaps), binning(B))
    cells, _ = region_map(found, Region(0, 1, (1, 1), None, 1, 1.0, 0.01), [gaps, B])
    assert sum(cells.rows) == 7
    assert region_map(found, Region(0, 1, (2, 2), None, 1, 1.0, 0.01), [gaps, B]) == ()


@pytest.mark.parametrize("other", [TEXTS, np.arange(8).astype("datetime64[D]"), np.ones(8)])
def test_texts_dates_and_constant_columns_have_no_map(other):
    found = deviations(binning(A), bin_column("c", other, Cut("c")))
    assert region_map(found, Region(0, 1, (0, 0), None, 1, 1.0, 0.01), [A, other]) == ()


def test_cells_end_at_the_smallest_and_the_largest_value():
    assert cell_edges(binning(np.arange(1.0, 11), 5), np.arange(1.0, 11)) == [1, 2, 4, 6, 8, 10]
