"""Data frames, tables and arrays in memory as Arrow columns: pandas, NumPy, torch, lists, Arrow's interface."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np
import pyarrow as pa

from calcheck.core.validation import require_different
from calcheck.errors import DataError
from calcheck.io.arrow_columns import ReadLimits, decoded
from calcheck.typing import AnyArray

if TYPE_CHECKING:
    from pandas import DataFrame, Index, Series

LIBRARY_ERRORS = (pa.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError)
Columns = dict[str, pa.Array | pa.ChunkedArray]
ROWS = "(rows)"  # Axis of all rows of a Dataset that has several


def is_frame(values: Any) -> TypeGuard[DataFrame]:
    """Return whether a value is a pandas DataFrame, without an import of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, pandas.DataFrame)


def is_series(values: Any) -> TypeGuard[Series[Any] | Index[Any]]:
    """Return whether a value is a pandas Series or Index, without an import of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, (pandas.Series, pandas.Index))


def is_xarray(values: Any) -> bool:
    """Return whether a value is a Dataset of xarray, without an import of xarray."""
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(values, xarray.Dataset)


def column_name(label: Any) -> str:
    """Return a label of a column as text: a tuple as in CSV files, without its empty parts.

    >>> column_name(0.05), column_name(("y", 0.05)), column_name(("y", ""))
    ('0.05', "('y', '0.05')", 'y')
    """
    if not isinstance(label, tuple):
        return str(label)
    parts = tuple(str(part) for part in label if str(part))
    return parts[0] if len(parts) == 1 else str(parts)


def arrow_column(values: Any, name: str) -> pa.Array:
    """Return values as an Arrow column (n,); matrices become lists, categories values, mixed objects text."""
    if is_frame(values):
        values = _frame_values(values)
    if not is_series(values):
        values = to_numpy(values, name)
        if values.dtype.kind in "fiub":
            if not all(values.shape[1:]):
                raise DataError(f"{name} has no values per row: its shape is {values.shape}")
            return list_column(values)
    elif hasattr(values, "sparse"):
        values = values.sparse.to_dense()
    return decoded(_from_objects(values))


def frame_columns(frame: DataFrame, owner: str) -> dict[str, Series[Any]]:
    """Return the columns of a DataFrame by name."""
    names = [column_name(label) for label in frame.columns]
    require_different(names, owner)
    return {name: frame.iloc[:, place] for place, name in enumerate(names)}


def to_numpy(values: Any, name: str) -> AnyArray:
    """Return an array-like as an array of NumPy (n, …): tensors without gradient, masked numbers as NaN."""
    array = _array_of(values)
    if not array.ndim:
        raise DataError(f"{name} must have one value per row, got a single {type(values).__name__}")
    if array.dtype.kind == "c":
        raise DataError(f"{name} must hold real numbers, got {array.dtype}")
    if array.dtype.kind == "f" and array.dtype.itemsize > np.dtype(np.float64).itemsize:
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def matrix_of(values: Any, name: str) -> AnyArray:
    """Return an array-like as a matrix (n, d); one value per row is a column."""
    array = to_numpy(values, name)
    return array[:, None] if array.ndim == 1 else array


def common_length(arrays: Iterable[Any]) -> int | None:
    """Return the length of all one-dimensional arrays and Series; None if there is none, or if they differ."""
    lengths = {len(values) for values in arrays if len(values.shape) == 1}
    return lengths.pop() if len(lengths) == 1 else None


def rows_first(name: str, values: AnyArray, rows: int | None) -> tuple[AnyArray, str]:
    """Return an array with rows along its first axis, and a note if its first two axes were swapped.

    They are swapped if the second axis, and not the first, has the length of the rows: (m, n, …) becomes (n, m, …).

    >>> rows_first("samples", np.zeros((7, 40)), 40)[1]
    'the array samples has shape (7, 40), and there are 40 rows: its first two axes are swapped'
    """
    if values.ndim == 1 or len(values) == rows or values.shape[1] != rows:
        return values, ""
    note = f"the array {name} has shape {values.shape}, and there are {rows:,} rows: its first two axes are swapped"
    return values.swapaxes(0, 1), note


def _frame_values(frame: DataFrame) -> AnyArray:
    """Return a frame as a matrix; missing numbers of nullable columns are NaN."""
    values = np.asarray(frame.to_numpy())
    if values.dtype.kind != "O":
        return values
    try:
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):  # text; the reader says so
        return values


def _array_of(values: Any) -> AnyArray:
    if hasattr(values, "detach"):
        tensor = values.detach().cpu()
        try:
            return np.asarray(tensor.resolve_conj().resolve_neg().numpy())
        except TypeError:  # NumPy has no bfloat16
            return np.asarray(tensor.float().numpy())
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.result_type(values.dtype, np.float16)), np.nan)
    if isinstance(values, (list, tuple)) and any(hasattr(each, "detach") for each in values):
        return np.stack([_array_of(each) for each in values])
    try:
        return np.asarray(values)
    except TypeError as error:  # arrays of other libraries that are not in the memory of the processor
        raise DataError(f"an array of type {type(values).__name__} cannot be converted to NumPy: {error}") from error
    except ValueError:  # rows differ in length; the reader says so
        objects = np.empty(len(values), dtype=object)
        objects[:] = list(values)
        return objects


def list_column(values: AnyArray) -> pa.Array:
    """Return an array (n, …) as an Arrow column (n,); further axes are lists of fixed size."""
    array = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array


def _from_objects(values: Any) -> pa.Array:
    """Return objects, or values of a pandas type, as an Arrow column; text if Arrow has no type for them."""
    try:
        array = pa.array(values, from_pandas=True)
    except LIBRARY_ERRORS:
        array = None
    if array is not None and not isinstance(array.type, pa.BaseExtensionType):
        return array
    cells = [None if _is_missing(cell) else cell for cell in values]
    try:
        return pa.array([_nested_list(cell) for cell in cells])
    except LIBRARY_ERRORS:
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def _is_missing(cell: Any) -> bool:
    """Return whether a cell is None, NaN, NaT or pd.NA."""
    if cell is None or hasattr(cell, "__len__"):
        return cell is None
    try:
        return bool(cell != cell)  # noqa: PLR0124 - NaN and NaT differ from themselves
    except TypeError:  # pd.NA is neither
        return True


def _nested_list(cell: Any) -> Any:
    """Return a cell with arrays and tensors as lists."""
    if hasattr(cell, "detach") or isinstance(cell, np.ndarray):
        return _array_of(cell).tolist()
    return [_nested_list(item) for item in cell] if isinstance(cell, (list, tuple)) else cell


@dataclass(frozen=True, eq=False)
class TableInMemory:
    """A table that the caller holds in memory."""

    display_name: str  # The name in messages: the type of the table
    columns: Columns = field(repr=False)  # Arrow columns by name, all of the same length
    id: str | None = None  # The column that identifies rows: the named index of a DataFrame
    index: Index | None = field(default=None, repr=False)  # The index of a DataFrame, to label results of rows with
    notes: tuple[str, ...] = ()  # The arrays whose first two axes were swapped

    paths: ClassVar[tuple[str, ...]] = ()
    name: ClassVar[str] = ""
    input_format: ClassVar[None] = None
    format: ClassVar[str] = "memory"
    sha256: ClassVar[str] = ""
    limits: ClassVar[ReadLimits] = ReadLimits()

    @classmethod
    def from_data(cls, data: Any, arrays: Mapping[str, Any]) -> TableInMemory:
        """Return the table of a frame, or of another table, with further columns from arrays."""
        _require_same_index(data, arrays)
        base = cls("the arguments", {}, index=_index_of(arrays)) if data is None else _table_of(data)
        added, notes = _arrow_columns(arrays, len(next(iter(base.columns.values()))) if base.columns else None)
        columns = base.columns | added
        if not columns:
            remedy = "Pass a file, a DataFrame, or arrays by keyword: y=…, mean=…, std=…"
            raise DataError(f"there are no predictions. {remedy}")
        (first, values), *others = columns.items()
        for name, column in others:
            if len(column) != len(values):
                raise DataError(f"row counts differ: {first} has {len(values):,}, {name} has {len(column):,}")
        return cls(base.display_name, columns, base.id, base.index, (*base.notes, *notes))

    @property
    def table(self) -> pa.Table:
        """The columns as an Arrow table."""
        return pa.table(self.columns)


def is_table(data: Any) -> bool:
    """Return whether a value holds columns: a DataFrame, a mapping, or a table with Arrow's interface."""
    return (
        is_frame(data)
        or isinstance(data, dict)
        or is_xarray(data)
        or (hasattr(data, "__arrow_c_stream__") and not is_series(data))
    )


def _table_of(data: Any) -> TableInMemory:
    if is_frame(data):
        return _frame_table(data)
    name = type(data).__name__
    if is_xarray(data):
        data = _dataset_columns(data)
    if not isinstance(data, dict):
        try:  # tables of pyarrow, polars, duckdb, …
            table = pa.table(data)
        except LIBRARY_ERRORS as error:
            msg = f"{name} is not a table of columns. Pass a DataFrame, or arrays by keyword: y=…, mean=…"
            raise DataError(msg) from error
        require_different(table.schema.names, name)
        return TableInMemory(name, {each: decoded(table[each]) for each in table.schema.names})
    names = [column_name(label) for label in data]
    require_different(names, name)
    columns, notes = _arrow_columns(dict(zip(names, data.values(), strict=True)))
    return TableInMemory(name, columns, index=_index_of(data), notes=notes)


def _dataset_columns(data: Any) -> dict[str, Any]:
    """Return the variables of a Dataset with rows along the axes that all of them have, and the coordinates of rows."""
    axes = [str(axis) for axis in data.sizes if all(axis in variable.dims for variable in data.data_vars.values())]
    if not axes:
        names = ", ".join(f"{name} {variable.dims}" for name, variable in data.data_vars.items())
        raise DataError(
            f"the variables of the Dataset have no dimension in common, which would be that of rows: {names}"
        )
    row, flat = (axes[0], data) if len(axes) == 1 else (ROWS, data.stack({ROWS: axes}))  # noqa: PD013 - of xarray
    coordinates = {name: values for name, values in flat.coords.items() if values.dims == (row,) and name != ROWS}
    columns = {**coordinates, **flat.data_vars}
    return {str(name): values.transpose(row, ...).to_numpy() for name, values in columns.items()}


def _arrow_columns(arrays: Mapping[str, Any], rows: int | None = None) -> tuple[Columns, tuple[str, ...]]:
    """Return arrays as Arrow columns with the rows of the one-dimensional ones, and notes about swapped axes."""
    given = {
        name: values if is_frame(values) or is_series(values) else to_numpy(values, name)
        for name, values in arrays.items()
    }
    rows = common_length(given.values()) if rows is None else rows
    found = {name: rows_first(name, values, rows) for name, values in given.items() if not is_frame(values)}
    columns = {name: arrow_column(found.get(name, (values,))[0], name) for name, values in given.items()}
    return columns, tuple(note for _, note in found.values() if note)


def _frame_table(frame: DataFrame) -> TableInMemory:
    """Return the columns of a DataFrame, and named levels of its index: one without duplicates identifies the rows."""
    levels: dict[str, Index] = {}
    is_plain = frame.columns.nlevels == 1 and frame.columns.is_unique
    for place, label in enumerate(frame.index.names):
        values = frame.index.get_level_values(place)
        # A level is also a column after set_index(label, drop=False)
        is_column = is_plain and label in frame.columns and frame.set_index(label).index.equals(values)
        levels |= {} if label is None or is_column else {column_name(label): values}
    own = frame_columns(frame, "DataFrame")
    require_different([*levels, *own], "DataFrame")
    columns = {name: arrow_column(values, name) for name, values in {**levels, **own}.items()}
    is_key = len(levels) == frame.index.nlevels == 1 and frame.index.is_unique
    return TableInMemory("DataFrame", columns, next(iter(levels)) if is_key else None, frame.index)


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
            raise DataError(
                f"the index of {name} differs from that of {first}. Align them with reindex, or pass {name}.to_numpy()"
            )
