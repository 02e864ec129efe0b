"""Tables of any format, opened and read in batches, and several files as one table."""

import re
import tokenize
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Protocol

import pyarrow as pa

from calcheck.core.validation import require_different
from calcheck.errors import FileError
from calcheck.io import array_files, arrow_files
from calcheck.io.array_files import ArrayTable
from calcheck.io.arrow_columns import MemoryTable, is_text, plain_columns
from calcheck.io.csv import delimited_table, excel_table
from calcheck.io.dataframes import TableInMemory
from calcheck.io.files import ANY_JSON, TEXT, AnyFile, File, Files, PartitionFile, file_named, suffix_of
from calcheck.io.json_lines import json_lines_table
from calcheck.io.parquet import ParquetTable

INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # numbers with a leading zero stay text


class Table(Protocol):
    """An open table: the schema is known, rows are read on demand."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def nbytes(self, columns: Sequence[str]) -> int:
        """Return the approximate bytes of some columns as arrays."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield batches of rows of some columns, from the start."""


MAX_REASON = 300  # Maximum characters of a library's error message, which may quote the file
READERS: dict[str, Callable[[File], Table]] = {
    "parquet": ParquetTable,
    "csv": partial(delimited_table, delimiter=","),
    "tsv": partial(delimited_table, delimiter="\t"),
    "arrow": arrow_files.arrow_table,
    "jsonl": json_lines_table,
    "npy": array_files.npy_table,
    "npz": array_files.npz_table,
    "safetensors": array_files.safetensors_table,
    "netcdf": array_files.netcdf_table,
    "excel": excel_table,
}  # The reader of each format, by its name in ``--input-format``


def open_file(file: File) -> Table:
    """Open one file as a table."""
    name = file.display_name
    reading = file.format
    file.require_content()
    with file_named(name), _readable(name, reading):
        table = READERS[reading](file)
        names = table.schema.names
    require_different(names, name, FileError)
    return table


def read_batches(file: AnyFile, table: Table, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield validated batches of rows of some columns of an open table."""
    batches = iter(table.batches(columns))
    while True:
        with _readable(file.display_name, file.format):
            batch = next(batches, None)
            if batch is not None:
                batch.validate(full=True)  # damaged offsets could read invalid memory
                batch = plain_columns(batch)
        if batch is None:
            return
        yield batch


@contextmanager
def _readable(name: str, reading: str) -> Iterator[None]:
    """Convert the errors of reader libraries to a FileError of one line."""
    libraries = (pa.ArrowException, zipfile.BadZipFile, zlib.error, tokenize.TokenError, RuntimeError, OverflowError)
    try:
        yield
    except (*libraries, OSError, EOFError, ValueError, TypeError, LookupError, SyntaxError, MemoryError) as error:
        lines = str(error).strip().splitlines()
        reason = lines[0].rstrip(".")[:MAX_REASON] if lines else type(error).__name__
        hint = "" if reading in TEXT else ". Is it truncated, or of another format?"
        called = "JSON" if suffix_of(name) == ANY_JSON else reading
        raise FileError(f"{name} is not a readable {called} file ({reason}){hint}") from error


def open_table(file: AnyFile) -> Table:
    """Open one or several files, or a table in memory, as one table."""
    if isinstance(file, TableInMemory):
        return MemoryTable(file.table, file.notes)
    return open_file(file) if isinstance(file, File) else ConcatTable(file)


def notes_of(table: Table) -> tuple[str, ...]:
    """Return messages about the columns of a table; of several files, about the first that has any."""
    if not isinstance(table, ConcatTable):
        return table.notes if isinstance(table, ArrayTable | LazyTable | MemoryTable) else ()
    found = [(member.file.name, notes_of(part)) for member, part in zip(table.members, table.tables, strict=True)]
    noted = [(name, notes) for name, notes in found if notes]
    return tuple(f"{name}: {note} ({len(noted):,} such files)" for name, notes in noted[:1] for note in notes)


# pyarrow.dataset takes twice the time and memory for files of 512 columns, and fills missing columns with nulls.
class ConcatTable:
    """The rows of several files, in file order; partition keys are columns too."""

    def __init__(self, files: Files) -> None:
        text = files.format in TEXT
        self.members = files.members
        opened = ((member.file, open_file(member.file)) for member in files.members)
        self.tables = [
            table if isinstance(table, ParquetTable) else LazyTable.from_table(file, table) for file, table in opened
        ]
        self.starts = [0, *accumulate(table.rows for table in self.tables)]
        self.schema = files.schema or self._agreed(files.name, text=text)

    def _agreed(self, name: str, *, text: bool) -> pa.Schema:
        """Return the common columns of all files, and their partition keys."""
        first, *others = self.tables
        where = self.members[0].file.name
        types = {field.name: field.type for field in first.schema}
        keys = {key for member in self.members for key in member.keys} - set(types)
        for member, table in zip(self.members[1:], others, strict=True):
            theirs = {field.name: field.type for field in table.schema}
            if differing := [column for column in (*types, *theirs) if (column in types) != (column in theirs)]:
                has, lacks = (member.file.name, where) if differing[0] in theirs else (where, member.file.name)
                msg = f"{name}: the files differ in their columns: {has} has {differing[0]!r}, {lacks} does not"
                raise FileError(msg)
            for column, kind in theirs.items():
                common = _common(types[column], kind, text=text)
                if common is None:
                    difference = f"{column!r} holds {types[column]} in {where}, {kind} in {member.file.name}"
                    raise FileError(f"{name}: the files differ in their columns: {difference}")
                types[column] = common
        for member in self.members:
            if absent := sorted(keys - set(member.keys)):
                msg = f"{name}: the path of {member.file.name} lacks the partition key {absent[0]!r} of other files"
                raise FileError(msg)
        values = {key: [member.keys[key] for member in self.members] for key in sorted(keys)}
        whole = {key: all(each is None or INTEGER.fullmatch(each) for each in known) for key, known in values.items()}
        kinds = {key: pa.int64() if is_whole else pa.string() for key, is_whole in whole.items()}
        return pa.schema({**types, **kinds})

    @property
    def rows(self) -> int:
        return self.starts[-1]

    def nbytes(self, columns: Sequence[str]) -> int:
        return sum(table.nbytes([name for name in columns if name in table.schema.names]) for table in self.tables)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        schema = pa.schema([self.schema.field(name) for name in columns])
        for member, table in zip(self.members, self.tables, strict=True):
            present = [name for name in columns if name in table.schema.names]
            for batch in read_batches(member.file, table, present or table.schema.names[:1]):
                yield _completed(batch, member, schema)

    def origin(self, row: int) -> tuple[File, int]:
        """Return the file that holds a row, and the number of its first row."""
        place = bisect_right(self.starts, row) - 1
        return self.members[place].file, self.starts[place]


@dataclass(frozen=True, eq=False)
class LazyTable:
    """A table that is loaded again each time it is read."""

    file: File
    schema: pa.Schema  # Names and types of the columns
    rows: int
    sizes: dict[str, int]  # Bytes of each column
    notes: tuple[str, ...] = ()  # Messages about its columns

    @classmethod
    def from_table(cls, file: File, table: Table) -> "LazyTable":
        """Return the table of a file without its rows."""
        sizes = {name: table.nbytes([name]) for name in table.schema.names}
        return cls(file, table.schema, table.rows, sizes, notes_of(table))

    def nbytes(self, columns: Sequence[str]) -> int:
        return sum(self.sizes[name] for name in columns)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        return open_file(self.file).batches(columns)


def _common(first: pa.DataType, second: pa.DataType, *, text: bool) -> pa.DataType | None:
    """Return the common type of a column with two types, None if there is none; text formats have no types."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    kinds = {_type_class(first), _type_class(second)}
    if text and kinds == {"integer", "float"}:
        return pa.float64()
    return pa.string() if text and kinds == {"integer", "text"} else None


def _type_class(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    return "float" if pa.types.is_floating(kind) else "text" if is_text(kind) else ""


def _completed(batch: pa.Table, member: PartitionFile, schema: pa.Schema) -> pa.Table:
    """Return a batch with the columns and types of a schema, including partition keys."""
    columns = []
    for field in schema:
        if field.name in batch.schema.names:
            columns.append(batch[field.name].cast(field.type))
        else:
            key = pa.scalar(member.keys.get(field.name), pa.string()).cast(field.type)
            columns.append(pa.chunked_array([pa.repeat(key, len(batch))]))
    return pa.table(columns, schema=schema)
