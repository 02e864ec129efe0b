"""Predictions are validated, and can be selected and concatenated."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.errors import DataError, ValuesError
from calcheck.predictions import InMemory, Predictions, concat
from tests.helpers.shorthand import texts


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({}, DataError, "predictions are empty"),
        ({"y": np.zeros(0)}, DataError, "there are no rows"),
        ({"y": np.zeros(3), "x": np.zeros((2, 1))}, DataError, "row counts differ: y has 3, x has 2"),
        (
            {"y": np.array([0.0, np.nan])},
            ValuesError,
            r"y must be finite numbers, but 1 of 2 .*\(row 1, counted from 0\)",
        ),
        ({"x": np.zeros(3)}, DataError, "x must be two-dimensional"),
        ({"x": np.array([[np.inf]])}, ValuesError, "x must be finite"),
        ({"y": np.array([0.5]), "predictive": Poisson(np.ones(1))}, ValuesError, "whole numbers >= 0 .*poisson"),
        ({"y": np.array([-1.0]), "predictive": Poisson(np.ones(1))}, ValuesError, "whole numbers >= 0"),
        (
            {"y": np.zeros((1, 2)), "predictive": Gaussian(np.zeros(1), np.ones(1))},
            DataError,
            "y has 2 target columns, the predictions have 1",
        ),
    ],
)
def test_invalid_predictions_are_refused(parts, error, message):
    with pytest.raises(error, match=message):
        Predictions(**parts)


def test_concatenated_batches_equal_the_whole():
    rows = Predictions(
        y=np.arange(5.0),
        predictive=Samples(np.arange(10.0).reshape(5, 2)),
        x=np.arange(5.0)[:, None],
        id=np.array(list("abcde")),
        columns={"group": np.arange(5)},
    )
    back = concat([rows.take(slice(0, 2)), rows.take(np.array([2, 3, 4]))])
    for name in ("y", "x", "id"):
        assert_array_equal(getattr(back, name), getattr(rows, name))
    assert_allclose(back.predictive.draws, rows.predictive.draws)
    assert_array_equal(back.columns["group"], rows.columns["group"])
    assert_array_equal(back.row, np.arange(5))
    assert_array_equal(back.take(np.array([4, 1])).take(np.array([1])).row, [1])


def test_predictions_in_memory_are_a_source():
    rows = Predictions(y=np.zeros(2))
    source = InMemory(rows)
    assert source.predictions() is rows
    assert source.input_info().n == 2
    assert texts(source.warnings()) == ()


def test_missing_targets_and_distributions_are_reported():
    rows = Predictions(x=np.zeros((2, 1)))
    with pytest.raises(DataError, match="there are no targets"):
        rows.targets()
    with pytest.raises(DataError, match="there are no predictive distributions"):
        rows.distributions()
