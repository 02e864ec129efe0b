"""Arrow columns as NumPy arrays: numbers, texts, times, sort keys; and tables in memory."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from calcheck.core.validation import require
from calcheck.errors import DataError, ValuesError
from calcheck.typing import AnyArray, Floats, Values

MOMENT = r"^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.0+)?$"
MIDNIGHT = "T00:00:00"
ABSENT = ("", "NA", "N/A", "NaN", "nan", "null", "None")  # Texts for a missing number
BATCH_ROWS = 1 << 17  # Maximum rows per batch
BATCH_BYTES = 1 << 26  # Maximum bytes per batch
MAX_BLOCK = (1 << 31) - 1  # Maximum block size of pyarrow, in bytes


class _Compute:
    """The functions of :mod:`pyarrow.compute`, which is imported on first use: importing it takes 30 ms."""

    def __getattr__(self, name: str) -> Any:
        import pyarrow.compute

        return getattr(pyarrow.compute, name)


pc = _Compute()


@dataclass(frozen=True)
class ReadLimits:
    """Sizes of batches and partitions of a file, and of what stays in memory; they change no value that is read."""

    batch_bytes: int = 1 << 25  # Target bytes per batch of a Parquet file; the default is 32 MiB
    batch_rows: int = 1 << 6  # Minimum rows per batch of a Parquet file
    joined_bytes: int = 1 << 26  # Maximum bytes per batch of inputs that are joined from another file
    # Maximum bytes of distributions in memory, unless they have few parameters per row; larger ones are read again
    # whenever they are needed
    predictive_bytes: int = 1 << 26
    input_bytes: int = 1 << 29  # Maximum bytes of inputs in memory; larger ones are read again whenever they are needed
    # partition_rows, partition_bytes: minimum rows or bytes of a partition for another process; a partition is complete
    # at either minimum
    partition_rows: int = 1 << 16
    partition_bytes: int = 1 << 26


def is_date(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds dates or times."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_vector(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds a vector per row (lists written as text are not detected)."""
    return (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
        or isinstance(kind, pa.BaseExtensionType)
    )


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of categories, unless these are texts, and large strings for string views."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return kind.value_type if pa.types.is_dictionary(kind) and not is_text(kind.value_type) else kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain types: few Arrow functions support views, or categories of numbers."""
    return pa.schema([column.with_type(plain_type(column.type)) for column in schema], schema.metadata)


def plain_columns(table: pa.Table) -> pa.Table:
    """Return a table with the types of :func:`plain_schema`."""
    schema = plain_schema(table.schema)
    return table if schema == table.schema else table.cast(schema)


def replace_in_text(table: pa.Table, pattern: str, by: str) -> pa.Table:
    """Return a table with all matches of a pattern replaced, in text columns and column names."""
    for place, field in enumerate(table.schema):
        if is_text(field.type) and pc.any(pc.match_substring_regex(table[place], pattern)).as_py():
            column = pc.replace_substring_regex(table[place], pattern, by)
            table = table.set_column(place, field.name, column)
    return table.rename_columns([re.sub(pattern, by, name) for name in table.schema.names])


def is_complete(column: pa.ChunkedArray | pa.Array) -> bool:
    """Return whether a column has a value, and a finite number, in all rows."""
    if column.null_count:
        return False
    return not pa.types.is_floating(column.type) or bool(pc.all(pc.is_finite(column)).as_py() is not False)


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds numbers."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
    )


def is_narrow(kind: pa.DataType) -> bool:
    """Return whether float32 represents numbers of this type exactly."""
    return kind in (pa.float16(), pa.float32())


def is_scalar(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds one value per row that can be shown and written."""
    shown = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)  # pyarrow crashes on intervals
    return is_number(kind) or is_text(kind) or bool(shown or pa.types.is_dictionary(kind))


def to_numpy(column: pa.ChunkedArray | pa.Array) -> AnyArray:
    """Return a column as an array (n,) from its buffers: pyarrow's own conversion imports pandas."""
    if column.null_count or not (pa.types.is_primitive(column.type) and is_number(column.type)):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if pa.types.is_boolean(column.type):
        return to_numpy(column.cast(pa.uint8())).view(np.bool_)
    chunks = [column] if isinstance(column, pa.Array) else column.chunks
    arrays = [np.from_dlpack(chunk) for chunk in chunks if len(chunk)]
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, column.type.to_pandas_dtype()), *arrays])


def _floats(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> Floats:
    """Return numbers with a floating type; nulls become NaN."""
    floats = column if column.type == kind else column.cast(kind, safe=False)  # a cast imports pyarrow.compute
    return to_numpy(pc.fill_null(floats, np.nan) if floats.null_count else floats)


def to_floats(column: pa.ChunkedArray, name: str) -> Values:
    """Return a column as floats (n,); nulls become NaN, and text with leading zeros is converted too."""
    column = decoded(column)
    if is_text(column.type):
        return _numbers_of_text(column, name)
    if not is_number(column.type):
        raise DataError(f"column {name!r} holds {_contents(column)}, not numbers")
    return np.asarray(_floats(column, pa.float64()), dtype=np.float64)


def _contents(column: pa.ChunkedArray) -> str:
    """Return what a column holds instead of numbers, with its first value if that is short in words."""
    kind = column.type
    if pa.types.is_struct(kind) or pa.types.is_map(kind) or pa.types.is_union(kind):
        return "records"
    if not pa.types.is_temporal(kind):
        return "lists" if is_vector(kind) else "bytes"
    first = column.drop_null().slice(0, 1).combine_chunks().to_string(skip_new_lines=True)
    what = "dates or times" if not pa.types.is_duration(kind) and not pa.types.is_interval(kind) else "durations"
    return f"{what} (first value: {first[1:-1][:40]!r})"


def _numbers_of_text(column: pa.ChunkedArray, name: str) -> Values:
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    text = pc.if_else(pc.is_in(text, value_set=pa.array(ABSENT)), None, text)
    try:
        return np.asarray(text.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowInvalid:
        pass  # Arrow rejects some values: convert one by one
    values, wrong = np.full(len(column), np.nan), {}
    for row, one in enumerate(text.to_pylist()):
        try:
            values[row] = np.nan if one is None else float(one)
        except ValueError:
            wrong[row] = one
    if wrong:
        first = next(iter(wrong.values()))
        raise ValuesError(
            f"column {name!r}", "must be numbers", list(wrong), len(column), f"The first is {first[:40]!r}"
        )
    return values


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a categorical column as the values of its categories; other columns are unchanged."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def to_scalars(column: pa.ChunkedArray) -> AnyArray:
    """Return a scalar column (n,) with its type: integers stay integers, text stays text, nulls become None."""
    column = decoded(column)
    if pa.types.is_time(column.type):
        column = column.cast(pa.string())  # Python's time type has no nanoseconds
    if column.null_count and not pa.types.is_temporal(column.type):
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
        return values
    return to_numpy(column)


def sort_keys(column: pa.ChunkedArray, name: str) -> AnyArray:
    """Return a column to sort or group by, (n,): numbers, times, booleans or texts; missing are NaN, NaT or None."""
    column = decoded(column)
    if is_text(column.type) or (pa.types.is_boolean(column.type) and column.null_count):
        text = column.cast(pa.string())
        return to_scalars(pc.if_else(pc.equal(text, ""), None, text))
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type) or pa.types.is_boolean(column.type):
        return to_scalars(column)
    if pa.types.is_integer(column.type) and not column.null_count:
        return to_scalars(column)
    return to_floats(column, name)


def keys(column: pa.ChunkedArray, name: str) -> AnyArray:
    """Return a column of row keys, (n,)."""
    if not is_scalar(column.type):
        raise DataError(
            f"column {name!r} holds {column.type}, but a key is one number or text per row. Pass another column as --id"
        )
    if column.null_count or pa.types.is_floating(column.type):  # NaN
        require(f"key {name!r}", ~to_numpy(column.is_null(nan_is_null=True)), "must be present")
    return to_scalars(column)


def _moments(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Normalize times in text, without a zero fraction, and midnights to dates; other text is unchanged."""
    normalized = pc.replace_substring_regex(text, MOMENT, r"\1T\2")
    at_midnight = pc.and_(
        pc.ends_with(normalized, MIDNIGHT), pc.match_substring_regex(normalized, r"^\d{4}-\d\d-\d\dT")
    )
    return pc.if_else(at_midnight, pc.utf8_slice_codeunits(normalized, 0, 10), normalized)


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key for natural order: s2 before s10."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(0, int(part), "") if place % 2 else (1, 0, part) for place, part in enumerate(parts)]


def key_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return keys as text that compares across types, (n,): 1.0 as 1, midnight as a date; nulls stay null."""
    if not is_scalar(column.type):
        raise DataError(f"a column of {column.type} cannot hold keys: a key must be one number, text or date per row")
    column = decoded(column)
    if is_text(column.type):
        return _moments(column.cast(pa.string()))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"), safe=False)
        return _moments(pc.strftime(column, format="%Y-%m-%dT%H:%M:%S"))
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        is_integral = pc.fill_null(pc.less(pc.abs(column), 2.0**53), fill_value=False)
        is_integral = pc.and_(is_integral, pc.equal(column, pc.floor(column)))
        as_integer = pc.if_else(is_integral, column, None).cast(pa.int64()).cast(pa.string())
        return pc.coalesce(as_integer, column.cast(pa.string()))
    return column.cast(pa.string())


def times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times or dates in microseconds without a zone, in UTC if they had one, (n,); nulls stay null."""
    return decoded(column).cast(pa.timestamp("us"), safe=False)


def to_matrix(column: pa.ChunkedArray, name: str) -> Floats:
    """Return a column of vectors (n, d), float32 if stored in single precision; null rows become NaN."""
    if is_text(column.type):
        return _parsed(column, name)
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # the column has no chunks
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if not is_vector(array.type):
        return to_floats(column, name)[:, None]
    present = to_numpy(array.is_valid())
    array = array.drop_null()
    count = len(array)
    if not count:
        raise DataError(f"all rows of column {name!r} are null")
    flat = _flattened(array, name)
    width = len(flat) // count
    if not width:
        raise DataError(f"column {name!r} holds empty lists")
    dense = flat.reshape(count, width)
    if present.all():
        return dense
    full = np.full((len(present), width), np.nan, dtype=dense.dtype)
    full[present] = dense
    return full


def inner_length(column: pa.ChunkedArray) -> int:
    """Return the length of the inner lists in a column of lists of lists; 1 for lists of numbers."""
    if not is_vector(column.type) or not is_vector(getattr(column.type, "value_type", pa.null())):
        return 1
    lengths = pc.list_value_length(pc.list_flatten(column.drop_null()))
    return int(lengths[0].as_py()) if len(lengths) else 1


def _flattened(array: pa.Array, name: str) -> Floats:
    """Return the flattened numbers of an array of non-null vectors."""
    while is_vector(array.type):
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
            continue
        if array.null_count:
            raise DataError(f"column {name!r} has nulls in place of inner lists")
        lengths = np.unique(np.asarray(pc.list_value_length(array)))
        if len(lengths) > 1:
            raise DataError(f"column {name!r} is ragged: its rows have from {lengths[0]} to {lengths[-1]} values")
        array = array.flatten()
    if not is_number(array.type):
        raise DataError(f"column {name!r} holds lists of {array.type}, not of numbers")
    return _floats(array, pa.float32() if is_narrow(array.type) else pa.float64())


def _parsed(column: pa.ChunkedArray, name: str) -> Values:
    """Parse vectors written as text: ``[1.0, 2.0]``, or as NumPy prints them."""
    rows: list[list[float] | None] = []
    for number, text in enumerate(column.to_pylist()):
        if text is None:
            rows.append(None)
            continue
        if "..." in text:
            remedy = "The text is abbreviated with '...', so values were lost. Write Parquet instead."
            raise ValuesError(f"column {name!r}", "must be complete lists", [number], len(column), remedy)
        try:
            rows.append(_values(text))
        except ValueError as error:
            remedy = f"The value is {text[:40]!r}"
            raise ValuesError(f"column {name!r}", "must be lists of numbers", [number], len(column), remedy) from error
    return np.asarray(to_matrix(pa.chunked_array([pa.array(rows, pa.list_(pa.float64()))]), name))


def first_label(column: pa.ChunkedArray) -> str | None:
    """Return the first value of a column of labels; None for a column of numbers or lists, also as text."""
    column = decoded(column)
    if not is_text(column.type):
        return None
    present = column.filter(pc.invert(is_absent(column)))
    first = present[0].as_py() if len(present) else "0"
    try:
        _values(first)
    except ValueError:
        return str(first)[:40]
    return None


def is_absent(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which texts stand for a missing value, (n,)."""
    return pc.is_in(column.cast(pa.string()), value_set=pa.array([*ABSENT, None]))


def one_hot(column: pa.ChunkedArray, name: str, categories: Sequence[str], *, others: bool = False) -> Values:
    """Return 1 for the category of each row, and 0 for the others, (n, k); NaN if it is missing.

    With ``others``, rows may have other categories, for which all are 0.
    """
    text = key_text(column)
    places = to_numpy(pc.fill_null(pc.index_in(text, value_set=pa.array(categories, pa.string())), -1))
    missing = to_numpy(is_absent(text))
    unknown = (places < 0) & ~missing
    if unknown.any() and not others:
        label = text[int(np.argmax(unknown))].as_py()
        raise DataError(f"column {name!r} has the category {label!r}, and the rows to compare with have none such")
    found: Values = np.eye(len(categories))[places]
    found[unknown], found[missing] = 0.0, np.nan
    return found


def _values(text: str) -> list[float]:
    """Parse a list written with commas, or with spaces as NumPy does."""
    body = text.strip()
    if body[:1] + body[-1:] in ("[]", "()"):
        body = body[1:-1]
    values = body.split(",") if "," in body else body.split()
    if "_" in body:
        raise ValueError(text)
    return [float(value) for value in values]


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """A table in memory; its batches are views without a copy."""

    table: pa.Table
    notes: tuple[str, ...] = ()  # Messages about its columns

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return plain_schema(self.table.schema)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.table)

    def nbytes(self, columns: Sequence[str]) -> int:
        """Return the approximate bytes of some columns as arrays."""
        return int(self.table.select(list(columns)).nbytes)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield batches of rows of some columns, from the start."""
        table = self.table.select(list(columns))
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES * len(table) // max(1, table.nbytes)))
        for start in range(0, max(len(table), 1), rows):
            yield table.slice(start, rows)
