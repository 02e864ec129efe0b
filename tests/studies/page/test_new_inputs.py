"""Pictures of new inputs: their places on a map of the tested rows, and their distances."""

import numpy as np
import pytest

from calcheck.charts.drawing import legend
from calcheck.charts.picture import Cells, Hatching, Points
from calcheck.execution.run import Run
from calcheck.predictions import Predictions
from calcheck.regions import maps
from calcheck.studies.page.picture import NewRowsShown, local_pictures, new_inputs_pictures
from tests.helpers.files import columns


@pytest.fixture
def rows():
    from calcheck.distributions import Gaussian

    parts, x = columns(n=60), np.random.default_rng(0).normal(size=(60, 4))
    return Predictions(y=parts["y"], predictive=Gaussian(parts["mean"], parts["std"]), x=x)


def test_new_rows_are_points_over_the_local_factors_and_those_beyond_have_their_own_name(rows):
    x, y = maps.default_variables(rows, ())
    found = maps.make_map(rows, x, y, Run(replicates=0), local={"local_factor": np.full(60, 1.1)})
    places = np.array([[0.0, 0.0], [0.1, 0.2], [50.0, 0.0]])
    beyond, distances = np.array([False, False, True]), np.array([0.1, 0.2, 40.0])
    shown = NewRowsShown(beyond, distances, np.full(60, 0.15), places)
    on_map, by_distance = new_inputs_pictures(shown, found)
    cells, hatched, *points = on_map.panels[0].marks
    assert isinstance(hatched, Hatching)
    assert hatched.x_stop == [on_map.panels[0].x.high]  # only where the third row is
    assert [left < 50 for left in hatched.x_start] == [True]
    assert legend(on_map) == {"beyond the tested inputs": "#CC79A7", "new rows": "#000000"}  # of no cell
    assert isinstance(cells, Cells)
    assert cells.value == pytest.approx([1.1] * len(cells.value))
    assert [(each.name, len(each.x)) for each in points if isinstance(each, Points)] == [
        ("new rows", 2),
        ("beyond the tested inputs", 1),
    ]
    shares = {each.name: sum(each.y) for each in by_distance.panels[0].marks}
    assert shares == pytest.approx({"tested rows": 1.0, "new rows": 1.0, "beyond the tested inputs": 1 / 3})


def test_new_rows_have_the_places_of_tested_rows_with_the_same_embedding(rows):
    x, y = maps.default_variables(rows, ())
    new = Predictions(x=rows.x[:5])
    assert maps.positions_of(new, rows, (), x, y) == pytest.approx(np.stack([x.values[:5], y.values[:5]], axis=1))


def test_new_rows_without_the_variables_of_a_map_have_no_places(rows):
    named = maps.Variable("a", np.zeros(60)), maps.Variable("predicted std", np.ones(60))
    assert maps.positions_of(Predictions(x=rows.x[:5]), rows, "abcd", *named) is None


def test_a_cell_that_is_far_off_does_not_pale_the_others(rows):
    x, y = maps.default_variables(rows, ())
    factors = np.where(np.arange(60) == 0, 20.0, 2.0)
    (picture,) = local_pictures(maps.make_map(rows, x, y, Run(replicates=0), local={"local_factor": factors}))
    cells = picture.panels[0].marks[0]
    assert max(cells.value) > 4
    assert (cells.low, cells.high) == pytest.approx((0, 2))
