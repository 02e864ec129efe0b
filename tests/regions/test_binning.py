"""Columns are cut into bins that depend on their values only, and each bin has conditions that select its rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calcheck.errors import DataError, OptionError
from calcheck.regions.partition import Cut, bin_column, label_of, partitions
from tests.helpers.simulations import examples


def labels(raw, how="x"):
    binning = bin_column("x", np.asarray(raw), Cut.parse(how))
    return [label_of(each) for each in binning.bins], binning.label.tolist()


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("age", Cut("age")),
        ("age:5", Cut("age", bins=5)),
        ("age:30/50", Cut("age", edges=("30", "50"))),
        ("age:30/", Cut("age", edges=("30",))),
        ("day:month", Cut("day", period="M")),
        ("a:b:", Cut("a:b")),
    ],
)
def test_a_cut_is_a_column_and_how_it_is_cut(text, cut):
    assert Cut.parse(text) == cut


@pytest.mark.parametrize("text", ["", ":5", "age:1", "age:1001"])
def test_cuts_without_a_column_or_with_a_wrong_number_of_bins_are_refused(text):
    with pytest.raises(OptionError, match="--by"):
        Cut.parse(text).resolve(())


@pytest.mark.parametrize("text", ["age:5", "age:1", "age:30/50", "a:b:c"])
def test_a_column_with_the_name_of_the_whole_text_is_not_cut(text):
    assert Cut.parse(text).resolve({"age", text}) == Cut(text)
    assert Cut.parse("age:7").resolve({"age", text}) == Cut("age", bins=7)


def test_quantile_bins_have_equal_counts_and_short_edges():
    names, codes = labels([1.21, 2.37, 3.49, 4.51, 5.63, 6.78], "x:3")
    assert names == ["x<=3", "x>3 and x<=5", "x>5"]
    assert codes == [0, 0, 1, 1, 2, 2]


def test_equal_values_are_in_one_bin():
    names, codes = labels([1, 1, 1, 1, 2, 3], "x:2")
    assert names == ["x=1", "x>1"]
    assert codes == [0, 0, 0, 0, 1, 1]


def test_few_different_numbers_are_groups_themselves_and_missing_values_too():
    names, codes = labels([2.0, np.nan, 1.0, 3.5])
    assert names == ["x=1", "x=2", "x>2", "x is missing"]
    assert codes == [1, 3, 0, 2]


def test_edges_belong_to_the_bin_below():
    assert labels([29, 30, 31, 70.5], "x:30/70") == (["x<=30", "x=31", "x>70"], [0, 0, 1, 2])


@pytest.mark.parametrize(
    ("raw", "names", "codes"),
    [
        (np.array(["f", None, "m", ""], dtype=object), ["x=f", "x=m", "x is missing"], [0, 2, 1, 2]),
        (np.array([True, False]), ["x=false", "x=true"], [1, 0]),
        (np.array([1, None, 2], dtype=object), ["x=1", "x=2", "x is missing"], [0, 2, 1]),
    ],
)
def test_texts_booleans_and_integers_with_gaps_are_groups(raw, names, codes):
    assert labels(raw) == (names, codes)


def test_dates_are_cut_by_period_or_at_dates():
    days = np.array(["2024-01-31", "2024-02-01", "NaT", "2024-03-05T06"], dtype="datetime64[us]")
    names, codes = labels(days, "x:month")
    assert names[0] == "x>=2024-01-01 and x<2024-02-01"
    assert names[-1] == "x is missing"
    assert codes == [0, 1, 3, 2]
    assert labels(days, "x:2024-02-01/") == (["x<2024-02-01", "x>=2024-02-01", "x is missing"], [0, 1, 2, 1])
    assert labels(days[[0, 1, 3]], "x:3")[0] == ["x<2024-02-01", "x>=2024-02-01 and x<2024-03-05", "x>=2024-03-05"]


@pytest.mark.parametrize(
    ("raw", "how", "message"),
    [
        (["a", "b"], "x:3", "holds text, which is not cut into bins"),
        ([1.0, 2.0], "x:month", "holds numbers, not dates"),
        (["a", "b"], "x:fortnight", "cannot be cut by 'fortnight': periods are year, quarter, month"),
        ([1.0, 2.0], "x:1/b", "holds numbers, and the edges 1/b are none"),
        ([1.0, 2.0], "x:2/1", "must increase, got 2/1"),
        ([1.0, 2.0], "x:nan/", "must increase"),
        ([str(each) for each in range(201)], "x", "201 different texts, and at most 200"),
    ],
)
def test_columns_that_cannot_be_cut_are_refused(raw, how, message):
    with pytest.raises(DataError, match=message):
        labels(raw, how)


OPERATORS = {"<=": np.less_equal, ">": np.greater, "=": np.equal}


@examples(200)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.integers(2, 8))
def test_the_conditions_of_runs_of_bins_select_their_rows(values, bins):
    binning = bin_column("x", np.array(values), Cut("x", bins=bins))
    for first, last in binning.runs():
        selected = np.ones(len(values), dtype=bool)
        for condition in binning.conditions(first, last):
            if condition.value:
                selected &= OPERATORS[condition.operator](values, float(condition.value))
        assert selected.tolist() == ((binning.label >= first) & (binning.label <= last)).tolist()


def test_groups_are_all_rows_each_column_and_their_combinations():
    sex = bin_column("sex", np.array(["f", "m", "f", "m"]), Cut("sex"))
    age = bin_column("age", np.array([1.0, 2.0, 2.0, 2.0]), Cut("age"))
    found = partitions([sex, age], cross=True)
    assert [each.names for each in found] == [
        ["all rows"],
        ["sex=f", "sex=m"],
        ["age=1", "age=2"],
        ["sex=f and age=1", "sex=f and age=2", "sex=m and age=2"],
    ]
    assert found[-1].counts.tolist() == [1, 1, 2]
    assert found[-1].means(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [1.0, 3.0, 3.0]
