"""Rows of several models are matched by id, whatever the order and the type of the ids."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from calcheck.distributions import Gaussian
from calcheck.errors import DataError
from calcheck.models.alignment import Model, align_models
from calcheck.predictions import InMemory, Predictions

N = 6
ORDER = np.array([4, 2, 0, 5, 1, 3])
IDS = {
    "integers": np.arange(N),
    "floats": np.arange(N) / 4,
    "text": np.array([f"item {row}" for row in range(N)], dtype=object),
    "dates": np.datetime64("2026-11-20") + np.arange(N),
    "times": np.datetime64("2026-11-20T12:00:00.000001", "us") + np.arange(N),
}


def model(name, ids, rows=None):
    rows = np.arange(len(ids)) if rows is None else rows
    predictions = Predictions(y=rows / 8, predictive=Gaussian(rows + 0.0, np.ones(len(rows))), id=ids)
    return Model(name, InMemory(predictions))


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_rows_are_matched_by_ids_of_every_type(ids):
    _, other = align_models([model("a", ids), model("b", ids[ORDER], ORDER)])
    assert_array_equal(other.predictions().predictive.mean(), np.arange(N))
    assert_array_equal(other.predictions().id, ids)


def test_numbers_are_matched_with_their_text():
    text = np.array([str(row) for row in ORDER], dtype=object)
    _, other = align_models([model("a", np.arange(N)), model("b", text, ORDER)])
    assert_array_equal(other.predictions().predictive.mean(), np.arange(N))


@pytest.mark.parametrize("name", ["integers", "text"])
def test_ids_that_one_file_lacks_are_named(name):
    ids = IDS[name]
    with pytest.raises(DataError) as refused:
        align_models([model("a", ids[:-1]), model("b", ids[2:])])
    first, last = ([repr(one) for one in part.tolist()] for part in (ids[:2], ids[-1:]))
    assert f"2 of 5 rows of a are not in b, e.g. id={', '.join(first)}" in str(refused.value)
    assert f"1 of 4 rows of b is not in a, e.g. id={last[0]}" in str(refused.value)
    assert "Models must have the same rows" in str(refused.value)


def test_models_without_a_common_row_are_refused():
    message = (
        r"^a \(id=0, 1, 2, …\) and b \(id=6, 7, 8, …\) have no row in common. Models are compared on the same rows$"
    )
    with pytest.raises(DataError, match=message):
        align_models([model("a", np.arange(N)), model("b", np.arange(N) + N)])


@pytest.mark.parametrize("name", ["integers", "text"])
def test_an_id_that_occurs_twice_in_the_other_model_is_refused(name):
    ids = IDS[name]
    with pytest.raises(DataError, match=r"occurs more than once in b\. Keep one row per id"):
        align_models([model("a", ids), model("b", ids[[0, 1, 2, 3, 4, 4]])])
