"""Columns of text among the inputs: one column of 0 and 1 for each category."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import calcheck
from calcheck import read
from calcheck.core.lazy_inputs import Categories
from calcheck.errors import DataError, ValuesError


def frame(regions, **columns):
    n = len(regions)
    return pd.DataFrame({"y": np.arange(n) / n, "mean": 0.0, "std": 1.0, "region": regions, "temp": 1.0, **columns})


def test_each_category_is_an_input_in_alphabetical_order():
    source = read(frame(["north", "east", "north"], temp=[5.0, 6, 7]), inputs=["region", "temp"])
    rows = source.predictions()
    assert_array_equal(rows.inputs(), [[0, 1, 5], [1, 0, 6], [0, 1, 7]])
    assert source.input_names() == ("region=east", "region=north", "temp")
    assert rows.columns_of(source.input_names()) == ("region", "temp")
    assert rows.categories == (Categories("region", ("east", "north"), 0),)


def test_categories_of_pandas_are_read_as_text_or_as_the_numbers_that_they_are():
    for values, width in ((["b", "a", "b"], 2), ([3, 1, 3], 1)):
        assert read(frame(pd.Categorical(values)), inputs=["region"]).predictions().width == width


def test_a_missing_category_is_a_missing_number():
    rows = frame(["north", None, "east"])
    with pytest.raises((DataError, ValuesError), match="must be finite numbers, but 1 of 3 rows is not"):
        read(rows, inputs=["region"]).predictions()
    assert_array_equal(read(rows, inputs=["region"], nan_policy="omit").predictions().inputs(), [[0, 1], [1, 0]])


def test_other_inputs_have_the_categories_of_the_rows():
    """Inputs that are all in the south have a column for the north, too."""
    rng = np.random.default_rng(0)
    rows = frame(["north", "south"] * 30, y=rng.normal(size=60), temp=rng.normal(size=60))
    at, asked = pd.DataFrame({"region": ["south"] * 5, "temp": 0.0}), {"inputs": ["region", "temp"], "replicates": 0}
    assert calcheck.evaluate(rows, "cce", at=at, **asked).results[0].value > 0
    with pytest.raises(DataError, match="column 'region' has the category 'moon'"):
        calcheck.evaluate(rows, "cce", at=at.assign(region="moon"), **asked)
    with pytest.raises(DataError, match="column 'temp' has texts, such as 'warm', and numbers in the rows to compare"):
        calcheck.evaluate(rows, "cce", at=at.assign(temp="warm"), **asked)


def test_a_group_that_is_too_narrow_is_named_by_its_category():
    rng = np.random.default_rng(1)
    regions = np.array(["north", "east", "west"] * 60)
    y = rng.normal(size=180) * np.where(regions == "west", 3, 1)
    found = calcheck.evaluate(frame(regions, y=y, temp=rng.normal(size=180)), "zms", inputs=["region", "temp"])
    assert (found.region.where, found.region.filter) == ("region=west", "--filter region=west")
