"""Tables that the caller holds in memory, in place of a file: pandas frames, tables of other libraries, arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from calcheck.core.validation import require_different
from calcheck.errors import DataError
from calcheck.io.arrays import (
    arrow_column,
    column_name,
    common_length,
    frame_columns,
    is_frame,
    is_series,
    require_same_length,
    rows_first,
    table_columns,
    to_numpy,
)
from calcheck.io.arrow_arrays import ReadLimits

if TYPE_CHECKING:
    from pandas import DataFrame, Index

Columns = dict[str, pa.Array | pa.ChunkedArray]


@dataclass(frozen=True, eq=False)
class TableInMemory:
    """A table that the caller holds in memory."""

    display_name: str  # The name in messages: the type of the table
    columns: Columns = field(repr=False)  # Arrow columns by name, all of the same length
    id: str | None = None  # The column that identifies rows: the named index of a DataFrame
    index: Index | None = field(default=None, repr=False)  # The index of a DataFrame, to label results of rows with
    notes: tuple[str, ...] = ()  # The arrays whose first two axes were swapped

    count: ClassVar[int] = 0
    paths: ClassVar[tuple[str, ...]] = ()
    name: ClassVar[str] = ""
    input_format: ClassVar[None] = None
    format: ClassVar[str] = "memory"
    limits: ClassVar[ReadLimits] = ReadLimits()

    @classmethod
    def from_data(cls, data: Any, arrays: Mapping[str, Any]) -> TableInMemory:
        """Return the table of a frame, or of another table, with further columns from arrays."""
        _require_same_index(data, arrays)
        base = cls("the arguments", {}, index=_index_of(arrays)) if data is None else _table_of(data)
        added, notes = _arrow_columns(arrays, len(next(iter(base.columns.values()))) if base.columns else None)
        columns = base.columns | added
        require_same_length(columns)
        return cls(base.display_name, columns, base.id, base.index, (*base.notes, *notes))

    @property
    def table(self) -> pa.Table:
        """The columns as an Arrow table."""
        return pa.table(self.columns)

    def sha256(self) -> str:
        """Return an empty hash: there is no file."""
        return ""


def is_table(data: Any) -> bool:
    """Return whether a value holds columns: a DataFrame, a mapping, or a table with Arrow's interface."""
    return is_frame(data) or isinstance(data, dict) or (hasattr(data, "__arrow_c_stream__") and not is_series(data))


def _table_of(data: Any) -> TableInMemory:
    if is_frame(data):
        return _frame_table(data)
    name = type(data).__name__
    if not isinstance(data, dict):
        return TableInMemory(name, table_columns(data))
    names = [column_name(label) for label in data]
    require_different(names, name)
    columns, notes = _arrow_columns(dict(zip(names, data.values(), strict=True)))
    return TableInMemory(name, columns, index=_index_of(data), notes=notes)


def _arrow_columns(arrays: Mapping[str, Any], rows: int | None = None) -> tuple[Columns, tuple[str, ...]]:
    """Return arrays as Arrow columns, and notes about those whose first two axes were swapped.

    The number of rows is that of the one-dimensional arrays, if it is not given.
    """
    given = {
        name: values if is_frame(values) or is_series(values) else to_numpy(values, name)
        for name, values in arrays.items()
    }
    rows = common_length(given.values()) if rows is None else rows
    found = {name: rows_first(name, values, rows) for name, values in given.items() if not is_frame(values)}
    columns = {name: arrow_column(found.get(name, (values,))[0], name) for name, values in given.items()}
    return columns, tuple(note for _, note in found.values() if note)


def _frame_table(frame: DataFrame) -> TableInMemory:
    """Return the columns of a DataFrame, and those of its index if that has names; unnamed levels are ignored.

    A named index of one level without duplicates identifies the rows.
    """
    levels, own = _named_levels(frame), frame_columns(frame, "DataFrame")
    require_different([*levels, *own], "DataFrame")
    columns = {name: arrow_column(values, name) for name, values in {**levels, **own}.items()}
    is_key = len(levels) == frame.index.nlevels == 1 and frame.index.is_unique
    return TableInMemory("DataFrame", columns, next(iter(levels)) if is_key else None, frame.index)


def _named_levels(frame: DataFrame) -> dict[str, Index]:
    """Return the named levels of the index, without those that are columns too."""
    names, index = frame.index.names, frame.index
    return {
        column_name(label): index.get_level_values(place)
        for place, label in enumerate(names)
        if label is not None and not _is_column(frame, label, index.get_level_values(place))
    }


def _is_column(frame: DataFrame, label: Any, values: Index) -> bool:
    """Return whether a level of the index is also a column, as after ``set_index(label, drop=False)``."""
    if frame.columns.nlevels > 1 or not frame.columns.is_unique or label not in frame.columns:
        return False
    return bool(frame.set_index(label).index.equals(values))


def _index_of(arrays: Mapping[str, Any]) -> Index | None:
    """Return the index of the first Series or DataFrame."""
    return next((values.index for values in arrays.values() if _has_index(values)), None)


def _has_index(values: Any) -> bool:
    return is_frame(values) or (is_series(values) and hasattr(values, "index"))


def _require_same_index(data: Any, arrays: Mapping[str, Any]) -> None:
    """Raise if a Series has another index than the DataFrame, or than other Series: rows are matched by position."""
    labeled = {"the DataFrame": data} if is_frame(data) else {}
    labeled |= {name: values for name, values in arrays.items() if _has_index(values)}
    first = next(iter(labeled), "")
    for name, values in labeled.items():
        other = labeled[first]
        if len(values) == len(other) and not values.index.equals(other.index):
            msg = (
                f"the index of {name} differs from that of {first}. Align them with reindex, or pass {name}.to_numpy()"
            )
            raise DataError(msg)
