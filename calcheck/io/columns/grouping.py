"""Columns whose rows may depend on each other: dates, and keys that repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from calcheck.io.arrow_arrays import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

Grouping = Literal["time", "cluster"]

TIMES = frozenset(
    (
        *("date", "datetime", "time", "timestamp", "ds", "day", "week", "month", "year", "hour"),
        *("valid_time", "target_time", "target_date", "target_end_date"),
        *("forecast_date", "reference_date", "origin_date", "init_time", "issue_time"),
    )
)
"""Names of columns of times."""
KEYS = frozenset(
    (
        *("patient", "subject", "person", "participant", "user", "customer", "household"),
        *("location", "station", "site", "region", "county", "state", "country"),
        *("series", "item", "store", "sensor", "device", "machine", "engine", "unit"),
        *("group", "cluster", "batch", "scene", "scan", "image", "molecule", "scaffold"),
    )
)
"""Names of columns of keys, also with _id, _name or _number at the end."""
ENDS = ("_id", "_name", "_number", "id")


def grouping_columns(schema: pa.Schema, used: Iterable[str]) -> dict[str, Grouping]:
    """Return the columns of a file whose rows may depend on each other: of times, and of keys that may repeat.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns of the file.
    used : iterable of str
        Columns with another role.
    """
    used = set(used)
    found = {field.name: _grouping(field) for field in schema if field.name not in used}
    return {name: kind for name, kind in found.items() if kind is not None}


def _grouping(field: pa.Field) -> Grouping | None:
    """Return why rows with equal or near values of a column may depend on each other; None if nothing is known."""
    return grouping_of(
        field.name,
        is_date=pa.types.is_date(field.type) or pa.types.is_timestamp(field.type),
        is_key=is_text(field.type) or pa.types.is_integer(field.type),
    )


def grouping_of(name: str, *, is_date: bool, is_key: bool) -> Grouping | None:
    """Return whether a column holds times or keys, by its type and its name; None if neither.

    Parameters
    ----------
    name : str
        Name of the column.
    is_date, is_key : bool
        Whether its values are dates, or texts or whole numbers.

    Examples
    --------
    >>> grouping_of("Patient_ID", is_date=False, is_key=True), grouping_of("age", is_date=False, is_key=True)
    ('cluster', None)
    """
    word = name.lower()
    if is_date or (is_key and word in TIMES):
        return "time"
    stems = {word, *(word.removesuffix(end) for end in ENDS)}
    return "cluster" if is_key and stems & KEYS else None


def only_increases(values: NDArray[Any]) -> bool:
    """Return whether values are numbers that never fall from row to row, and rise at some.

    Examples
    --------
    >>> import numpy as np
    >>> only_increases(np.array([1, 1, 2])), only_increases(np.array([1, 1])), only_increases(np.array([1, 3, 2]))
    (True, False, False)
    """
    is_number = values.dtype.kind in "iuf" and values.ndim == 1 and len(values) > 0
    return bool(is_number and values[0] < values[-1] and (values[:-1] <= values[1:]).all())
