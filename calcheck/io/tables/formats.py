"""Tables of columns, whatever format holds them: one reader a file, one entry here."""

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
    """A table that was opened: its schema is known, its rows are read when asked for."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""

    @property
    def rows(self) -> int:
        """How many there are."""

    def nbytes(self, columns: Sequence[str]) -> int:
        """Return about how many bytes some columns take as arrays."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read some columns from the start, in batches of rows."""


LONGEST_REASON = 300  # letters of what a library says; it may quote bytes of the file
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
"""How each format is opened, by its name in ``--input-format``."""


def open_file(file: File) -> Table:
    """Open one file as a table.

    Raises
    ------
    FileError
        It is not what its format says, or two columns share a name.
    """
    name = file.display_name
    reading = file.format
    file.require_content()
    with file_named(name), _readable(name, reading):
        table = READERS[reading](file)
        names = table.schema.names
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        msg = f"{name} has {len(twice)} column names more than once: {', '.join(map(repr, twice[:3]))}. Rename them"
        raise FileError(msg)
    return table


def read_batches(file: AnyFile, table: Table, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Read some columns of an open table, in batches of rows.

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
                batch.validate(full=True)  # damaged offsets would be read as they are
                batch = _without_views(batch)
        if batch is None:
            return
        yield batch


def _without_views(batch: pa.Table) -> pa.Table:
    """Return a batch whose text is stored one after the other: views of it know few of Arrow's functions."""
    import pyarrow as pa

    for place, column in enumerate(batch.schema):
        if pa.types.is_string_view(column.type):
            batch = batch.set_column(place, column.name, batch.column(place).cast(pa.large_string()))
    return batch


@contextmanager
def _readable(name: str, reading: str) -> Iterator[None]:
    """Tell what a library says of a file that it cannot read; they have many ways of saying so."""
    import tokenize
    import zipfile
    import zlib

    import pyarrow as pa

    libraries = (pa.ArrowException, zipfile.BadZipFile, zlib.error, tokenize.TokenError, RuntimeError, OverflowError)
    try:
        yield
    except (*libraries, OSError, EOFError, ValueError, TypeError, LookupError, SyntaxError, MemoryError) as error:
        lines = str(error).strip().splitlines()
        told = lines[0].rstrip(".")[:LONGEST_REASON] if lines else type(error).__name__
        doubt = "" if reading in TEXT else ". Is it cut short, or of another format?"
        msg = f"{name} is not a readable {reading} file ({told}){doubt}"
        raise FileError(msg) from error
