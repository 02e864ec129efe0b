"""Columns of times, and windows of them: dates, numbers and texts, their order, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from calcheck.errors import DataError, OptionError
from calcheck.io.times import Window, parse_times, time_texts

DAYS = np.arange("2026-01-07", "2026-04-20", dtype="datetime64[D]").astype("datetime64[us]")


MONDAY = pd.Timestamp("1970-01-05")


def parsed(values):
    return parse_times("day", np.asarray(values), np.arange(len(values)))


def test_dates_texts_and_numbers_are_times():
    dates = ["2026-01-05", "2026-01-07"]
    expected = np.array(dates, dtype="datetime64[us]")
    as_dates = np.array([pd.Timestamp(each).date() for each in dates], dtype=object)
    for values in (np.array(dates, dtype=object), as_dates, expected.astype("datetime64[ns]"), np.array(dates)):
        np.testing.assert_array_equal(parsed(values), expected)
    assert parsed([3, 1, 2]).tolist() == [3.0, 1.0, 2.0]


def test_texts_with_a_zone_are_in_utc():
    assert time_texts(parsed(["2026-01-05T12:00:00+02:00", "2026-01-05"])) == [
        "2026-01-05T10:00:00",
        "2026-01-05T00:00:00",
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array(["2026-01-05", None], dtype=object), "column 'day' has no time in row 1"),
        (np.array(["soon", "2026-01-05"], dtype=object), "'soon', which is no time, in row 0"),
        (np.array([1.0, np.nan]), "has no time in row 1"),
        (np.array([True, False]), "which is no time, in rows 0, 1"),
        (np.array(["2026-01-05", "NaT"], dtype="datetime64[us]"), "has no time in row 1"),
    ],
)
def test_what_is_no_time_is_refused_with_its_row(values, message):
    with pytest.raises(DataError, match=message):
        parsed(values)


@pytest.mark.parametrize("offset", ["7D", "12h", "14D", "36h", "30min"])
def test_windows_of_a_duration_begin_as_those_of_pandas_from_a_monday_on(offset):
    times = DAYS + np.arange(len(DAYS)) * np.timedelta64(3, "h")
    counts = pd.Series(1, pd.DatetimeIndex(times)).resample(offset, origin=MONDAY).count()
    found, sizes = np.unique(Window.parse(offset).starts(times, "day"), return_counts=True)
    assert sizes.tolist() == counts[counts > 0].tolist()
    np.testing.assert_array_equal(found, counts[counts > 0].index.to_numpy())


@pytest.mark.parametrize("period", ["W", "M", "Q", "Y"])
def test_windows_of_the_calendar_begin_as_the_periods_of_pandas(period):
    expected = pd.DatetimeIndex(DAYS).to_period(period).start_time
    np.testing.assert_array_equal(Window.parse(period).starts(DAYS, "day"), expected.to_numpy())


def test_windows_of_a_count_have_as_many_times():
    assert Window.parse("3").starts(np.array([1.0, 2, 4, 8, 16]), "step").tolist() == [1, 1, 1, 8, 8]


@pytest.mark.parametrize("text", ["0", "-3D", "", "soon", "0D", "1M", "7 days"])
def test_other_windows_are_refused(text):
    with pytest.raises(OptionError, match="--window must be a number of times, or a duration or period"):
        Window.parse(text)


def test_numbers_have_no_windows_of_a_duration():
    with pytest.raises(DataError, match="column 'step' holds numbers, not dates: pass a number of times"):
        Window.parse("7D").starts(np.array([1.0, 2]), "step")
