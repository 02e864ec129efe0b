"""Columns of numbers as arrays: scalars, lists of every kind that Arrow knows, tensors, and lists as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calcheck.errors import DataError, ValuesError
from calcheck.validation import finite_rows, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


MOMENT = r"^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.0+)?$"
MIDNIGHT = "T00:00:00"
ABSENT = ("", "NA", "N/A", "NaN", "nan", "null", "None")  # how tools write that a number is not there


def is_vector(kind: pa.DataType) -> bool:
    """Tell whether a column of this type may hold a vector a row (text may: lists written to CSV)."""
    return (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
        or isinstance(kind, pa.BaseExtensionType)
    )


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def replace_in_text(table: pa.Table, pattern: str, by: str) -> pa.Table:
    """Return a table with what matches a pattern replaced, in its text and in the names of its columns."""
    for place, field in enumerate(table.schema):
        if is_text(field.type) and pc.any(pc.match_substring_regex(table[place], pattern)).as_py():
            column = pc.replace_substring_regex(table[place], pattern, by)
            table = table.set_column(place, field.name, column)
    return table.rename_columns([re.sub(pattern, by, name) for name in table.schema.names])


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a column of this type holds numbers."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    )


def is_narrow(kind: pa.DataType) -> bool:
    """Tell whether single precision holds numbers of this type as they are."""
    return kind in (pa.float16(), pa.float32())


def is_scalar(kind: pa.DataType) -> bool:
    """Tell whether a column of this type holds one value a row that can be shown and written."""
    shown = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)  # numpy has no intervals: pyarrow crashes
    return is_number(kind) or is_text(kind) or bool(shown or pa.types.is_dictionary(kind))


def to_floats(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    """Return a column of numbers, (n,); nulls become NaN.

    Text is read as numbers if all of it is: CSV columns with a leading zero stay text otherwise.

    Raises
    ------
    DataError
        It holds something else; the message names the first value that is no number.
    """
    if is_text(column.type):
        return _numbers_of_text(column, name)
    if not is_number(column.type):
        first = column.drop_null().slice(0, 1).combine_chunks().to_string(skip_new_lines=True)
        msg = f"column {name!r} holds {column.type}, not numbers (first value {first[1:-1][:40]!r})"
        raise DataError(msg)
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _numbers_of_text(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = pc.if_else(pc.is_in(text, value_set=pa.array(ABSENT)), None, text)
    try:
        return np.asarray(text.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowInvalid:
        pass  # some are not numbers as Arrow reads them: say which
    values, wrong = np.full(len(column), np.nan), {}
    for row, one in enumerate(text.to_pylist()):
        try:
            values[row] = np.nan if one is None else float(one)
        except ValueError:
            wrong[row] = one
    if wrong:
        first = next(iter(wrong.values()))
        raise ValuesError(
            f"column {name!r}", "must hold numbers", list(wrong), len(column), f"The first is {first[:40]!r}"
        )
    return values


def to_scalars(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column of one value a row as it is, (n,): whole numbers stay whole, text stays text, nulls None."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_time(column.type):
        column = column.cast(pa.string())  # Python's times have no nanoseconds
    if column.null_count and not pa.types.is_temporal(column.type):
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
        return values
    return np.asarray(column.to_numpy())


def ordering(column: pa.ChunkedArray, name: str) -> NDArray[Any]:
    """Return a column that rows can be ordered by, (n,): numbers, or times; what is absent is NaN or NaT.

    Raises
    ------
    DataError
        It holds something else.
    """
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_temporal(column.type) or (pa.types.is_integer(column.type) and not column.null_count):
        return to_scalars(column)
    return to_floats(column, name)


def keys(column: pa.ChunkedArray, name: str) -> NDArray[Any]:
    """Return a column of row keys, (n,).

    Raises
    ------
    DataError
        A key is absent, or the column does not hold one value a row.
    """
    if not is_scalar(column.type):
        msg = f"column {name!r} holds {column.type}; a key is one number or text a row. Pass --id with another column"
        raise DataError(msg)
    require(f"key {name!r}", ~np.asarray(column.is_null(nan_is_null=True)), "must be there")
    return to_scalars(column)


def _moments(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write times in one way, without the zeros that some tools add; other text is left as it is."""
    whole = pc.replace_substring_regex(text, MOMENT, r"\1T\2")
    at_midnight = pc.and_(pc.ends_with(whole, MIDNIGHT), pc.match_substring_regex(whole, r"^\d{4}-\d\d-\d\dT"))
    return pc.if_else(at_midnight, pc.utf8_slice_codeunits(whole, 0, 10), whole)


def natural(name: str) -> list[tuple[int, int, str]]:
    """Order names by the numbers in them: s2 before s10."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(0, int(part), "") if place % 2 else (1, 0, part) for place, part in enumerate(parts)]


def key_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write a column of keys as text, (n,): 1.0 as 1, a time at midnight as its date; nulls stay null.

    Keys of two files can then be compared whatever types they were stored in.

    Raises
    ------
    DataError
        The column does not hold one value a row.
    """
    if not is_scalar(column.type):
        msg = f"a column of {column.type} holds no keys: a key is one number, text or date a row"
        raise DataError(msg)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_text(column.type):
        return _moments(column.cast(pa.string()))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"), safe=False)
        return _moments(pc.strftime(column, format="%Y-%m-%dT%H:%M:%S"))
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        whole = pc.fill_null(pc.less(pc.abs(column), 2.0**53), fill_value=False)
        whole = pc.and_(whole, pc.equal(column, pc.floor(column)))
        as_whole = pc.if_else(whole, column, None).cast(pa.int64()).cast(pa.string())
        return pc.coalesce(as_whole, column.cast(pa.string()))
    return column.cast(pa.string())


def to_matrix(column: pa.ChunkedArray, name: str) -> NDArray[np.floating[Any]]:
    """Return a column of vectors, (n, d), float32 where it is stored so; null rows become NaN.

    Raises
    ------
    DataError
        Rows differ in length, hold no numbers, or are text that lost values when it was written.
    """
    if is_text(column.type):
        return _parsed(column, name)
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # of no chunks
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if not is_vector(array.type):
        return to_floats(column, name)[:, None]
    present = np.asarray(array.is_valid())
    array = array.drop_null()
    count = len(array)
    if not count:
        msg = f"column {name!r} has no row that is not null"
        raise DataError(msg)
    flat = _flattened(array, name)
    width = len(flat) // count
    if not width:
        msg = f"column {name!r} holds empty lists"
        raise DataError(msg)
    dense = flat.reshape(count, width)
    if present.all():
        return dense
    full = np.full((len(present), width), np.nan, dtype=dense.dtype)
    full[present] = dense
    return full


def inner_length(column: pa.ChunkedArray) -> int:
    """Return how many numbers the inner lists of lists of lists hold; 1 where lists hold numbers themselves."""
    if not is_vector(column.type) or not is_vector(getattr(column.type, "value_type", pa.null())):
        return 1
    lengths = pc.list_value_length(pc.list_flatten(column.drop_null()))
    return int(lengths[0].as_py()) if len(lengths) else 1


def _flattened(array: pa.Array, name: str) -> NDArray[np.floating[Any]]:
    """Return all numbers of an array of non-null vectors, row after row."""
    while is_vector(array.type):
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
            continue
        if array.null_count:
            msg = f"column {name!r} has nulls in place of lists inside its rows"
            raise DataError(msg)
        lengths = np.unique(np.asarray(pc.list_value_length(array)))
        if len(lengths) > 1:
            msg = f"column {name!r} is ragged: its rows have from {lengths[0]} to {lengths[-1]} values"
            raise DataError(msg)
        array = array.flatten()
    if not is_number(array.type):
        msg = f"column {name!r} holds lists of {array.type}, not of numbers"
        raise DataError(msg)
    values = array.cast(pa.float32() if is_narrow(array.type) else pa.float64(), safe=False).to_numpy(
        zero_copy_only=False
    )
    return np.asarray(values)


def _parsed(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    """Read vectors written as text: ``[1.0, 2.0]``, or as numpy prints them."""
    rows: list[list[float] | None] = []
    for number, text in enumerate(column.to_pylist()):
        if text is None:
            rows.append(None)
            continue
        if "..." in text:
            remedy = "'...' stands for values that were lost when it was written; write Parquet instead."
            raise ValuesError(f"column {name!r}", "must hold whole lists", [number], len(column), remedy)
        try:
            rows.append(_values(text))
        except ValueError as error:
            remedy = f"It reads {text[:40]!r}"
            raise ValuesError(
                f"column {name!r}", "must hold lists of numbers", [number], len(column), remedy
            ) from error
    return np.asarray(to_matrix(pa.chunked_array([pa.array(rows, pa.list_(pa.float64()))]), name))


def _values(text: str) -> list[float]:
    """Take a written list apart: at commas, or at spaces as numpy writes them.

    Raises
    ------
    ValueError
        A value is missing or no number.
    """
    body = text.strip()
    if body[:1] + body[-1:] in ("[]", "()"):
        body = body[1:-1]
    values = body.split(",") if "," in body else body.split()
    if "_" in body:
        raise ValueError(text)
    return [float(value) for value in values]


def without_gaps(parts: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """Tell which rows have every number, (n,)."""
    whole: NDArray[Any] = np.logical_and.reduce([finite_rows(values) for values in parts])
    return whole
