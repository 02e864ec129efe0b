"""Open files of any format as tables: a registry with one reader per format."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from calcheck.errors import FileError
from calcheck.io.files import TEXT, file_named
from calcheck.io.tables import arrow as ipc
from calcheck.io.tables import csv as delimited
from calcheck.io.tables import jsonl as json_lines
from calcheck.io.tables import netcdf, parquet, safetensors
from calcheck.io.tables import numpy as numpy_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from calcheck.io.files import File
    from calcheck.io.paths import AnyFile


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
    "parquet": parquet.ParquetTable,
    "csv": delimited.csv_table,
    "tsv": delimited.tsv_table,
    "arrow": ipc.arrow_table,
    "jsonl": json_lines.json_lines_table,
    "npy": numpy_files.npy_table,
    "npz": numpy_files.npz_table,
    "safetensors": safetensors.safetensors_table,
    "netcdf": netcdf.netcdf_table,
}
"""The reader of each format, by its name in ``--input-format``."""


def open_file(file: File) -> Table:
    """Open one file as a table.

    Raises
    ------
    FileError
        The file does not match its format, or two columns have the same name.
    """
    name = file.display_name
    reading = file.format
    file.require_content()
    with file_named(name), _readable(name, reading):
        table = READERS[reading](file)
        names = table.schema.names
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        plural = "s" if len(twice) > 1 else ""
        msg = f"{name} has {len(twice)} duplicate column name{plural}: {', '.join(map(repr, twice[:3]))}. Rename them"
        raise FileError(msg)
    return table


def read_batches(file: AnyFile, table: Table, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield validated batches of rows of some columns of an open table.

    Raises
    ------
    FileError
        The file is damaged.
    """
    batches = iter(table.batches(columns))
    while True:
        with _readable(file.display_name, file.format):
            batch = next(batches, None)
            if batch is not None:
                batch.validate(full=True)  # damaged offsets could read invalid memory
                batch = _without_views(batch)
        if batch is None:
            return
        yield batch


def _without_views(batch: pa.Table) -> pa.Table:
    """Return a batch with string views cast to large strings: few Arrow functions support views."""
    import pyarrow as pa

    for place, column in enumerate(batch.schema):
        if pa.types.is_string_view(column.type):
            batch = batch.set_column(place, column.name, batch.column(place).cast(pa.large_string()))
    return batch


@contextmanager
def _readable(name: str, reading: str) -> Iterator[None]:
    """Convert the errors of reader libraries to a FileError of one line."""
    import tokenize
    import zipfile
    import zlib

    import pyarrow as pa

    libraries = (pa.ArrowException, zipfile.BadZipFile, zlib.error, tokenize.TokenError, RuntimeError, OverflowError)
    try:
        yield
    except (*libraries, OSError, EOFError, ValueError, TypeError, LookupError, SyntaxError, MemoryError) as error:
        lines = str(error).strip().splitlines()
        reason = lines[0].rstrip(".")[:MAX_REASON] if lines else type(error).__name__
        hint = "" if reading in TEXT else ". Is it truncated, or of another format?"
        msg = f"{name} is not a readable {reading} file ({reason}){hint}"
        raise FileError(msg) from error
