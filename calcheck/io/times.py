"""Columns of times: dates, or numbers that order the rows; and windows of times."""

import re
from dataclasses import dataclass

import numpy as np

from calcheck.errors import DataError, OptionError, named_rows
from calcheck.typing import AnyArray, Indices

DATE_UNIT = "datetime64[us]"
MISSING = ("None", "nan", "NaT", "<NA>", "")
SHOWN = 40  # Maximum number of characters of a value in messages
CALENDAR = (
    dict.fromkeys(("M", "MS", "ME"), 1) | dict.fromkeys(("Q", "QS", "QE"), 3) | dict.fromkeys(("Y", "YS", "YE"), 12)
)  # Number of months of the periods of the calendar, by their names in pandas
MONDAY = np.datetime64("1970-01-05", "us")  # From which durations are counted, so that weeks begin on Mondays
DURATIONS = {
    "W": np.timedelta64(7, "D"),
    "D": np.timedelta64(1, "D"),
    "h": np.timedelta64(1, "h"),
    "min": np.timedelta64(1, "m"),
    "s": np.timedelta64(1, "s"),
}
DURATION = re.compile(rf"(\d{{0,6}})({'|'.join(DURATIONS)})")  # A duration as pandas writes it


def parse_times(column: str, raw: AnyArray, rows: Indices) -> AnyArray:
    """Return the times of a column, (n,): datetime64 in UTC, or numbers as float64. Shapes: raw (n,), rows (n,)."""
    raw = np.asarray(raw)
    if raw.dtype.kind in "iuf":
        found: AnyArray = raw.astype(np.float64)
        missing = ~np.isfinite(found)
    else:
        if raw.dtype.kind == "M":
            found = raw.astype(DATE_UNIT)
        else:  # texts or dates
            import pandas as pd

            texts = [str(each) if isinstance(each, str) or hasattr(each, "year") else None for each in raw.tolist()]
            parsed = pd.to_datetime(pd.Series(texts, dtype=object), format="ISO8601", errors="coerce", utc=True)
            found = np.asarray(parsed.dt.tz_localize(None).to_numpy(), dtype=DATE_UNIT)
        missing = np.isnat(found)
    if missing.any():
        places = np.flatnonzero(missing)
        text = str(raw[places[0]])
        what = "no time" if text in MISSING else f"{text[:SHOWN]!r}, which is no time,"
        known = "Times are dates such as 2026-01-31, or numbers that order the rows"
        raise DataError(f"column {column!r} has {what} in {named_rows(rows[places].tolist())}. {known}")
    return found


def time_texts(times: AnyArray) -> list[str]:
    """Return times as texts: dates without a time of day if all are at midnight, and whole numbers without a point.

    >>> time_texts(np.array(["2026-01-31"], dtype="datetime64[us]")), time_texts(np.array([3.0, 4.5]))
    (['2026-01-31'], ['3', '4.5'])
    """
    if times.dtype.kind != "M":
        return [f"{each:.15g}" for each in times.tolist()]
    for unit in ("D", "s"):
        if (times == times.astype(f"datetime64[{unit}]")).all():
            return [str(each) for each in np.datetime_as_string(times, unit=unit)]
    return [str(each) for each in times]


@dataclass(frozen=True)
class Window:
    """How times are divided into windows."""

    count: int = 0  # Number of different times per window; 0 for windows of equal duration
    offset: str = ""  # Duration or period, as pandas names them: "7D", "12h", "M", "W"

    @classmethod
    def parse(cls, text: str) -> "Window":
        """Return the window that a text states: a number of times, or a duration or period of pandas."""
        text = text.strip()
        if text.isdecimal() and int(text) > 0:
            return cls(count=int(text))
        window = cls(offset=text)
        try:
            window.starts(np.array(["2026-01-01"], dtype=DATE_UNIT), "")
        except DataError:
            msg = f"--window must be a number of times, or a duration or period such as 7D, 12h or M, got {text!r}"
            raise OptionError(msg) from None
        return window

    def __str__(self) -> str:
        """Return the window as it is written."""
        return self.offset or str(self.count)

    def starts(self, times: AnyArray, column: str) -> AnyArray:
        """Return the start of the window of each time, (t,); durations are counted from a Monday on."""
        if self.count:
            return np.asarray(times[np.arange(len(times)) // self.count * self.count])
        if times.dtype.kind != "M":
            raise DataError(f"column {column!r} holds numbers, not dates: pass a number of times, e.g. --window 50")
        if self.offset in CALENDAR:
            months = times.astype("datetime64[M]")
            return np.asarray((months - months.astype(np.int64) % CALENDAR[self.offset]).astype(DATE_UNIT))
        found = DURATION.fullmatch(self.offset)
        if found is None or found[1] == "0":
            raise DataError(f"there is no duration or period {self.offset!r}")
        duration = int(found[1] or 1) * DURATIONS[found[2]]
        return np.asarray(MONDAY + (times - MONDAY) // duration * duration, dtype=DATE_UNIT)
