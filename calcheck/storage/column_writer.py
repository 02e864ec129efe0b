"""Tables that are written in blocks of rows, atomically."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from calcheck.csv_cells import COMPUTED
from calcheck.errors import DataError
from calcheck.io.arrow_arrays import replace_in_text
from calcheck.storage.atomic_write import atomic_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

WRITERS: dict[str, Callable[[Path, pa.Schema], Any]] = {
    ".parquet": pq.ParquetWriter,
    ".csv": csv.CSVWriter,
    ".feather": pa.ipc.new_file,
    ".arrow": pa.ipc.new_stream,
}
"""The incremental writer of each format, by suffix."""


@contextmanager
def table_writer(path: str) -> Iterator[Callable[[pa.Table], None]]:
    """Yield a function that appends tables to a file, in the format of its suffix.

    The first table defines the names and types of columns. The file replaces an existing one on success only. In CSV,
    an apostrophe protects text that a spreadsheet would evaluate; the readers of calcheck remove it.

    Raises
    ------
    FileError
        The file cannot be written.
    DataError
        A table has columns other than those of the first table.
    """
    with atomic_path(path) as temporary, ExitStack() as opened:
        first: list[tuple[pa.Schema, Any]] = []

        ending = Path(path).suffix.lower()

        def write(table: pa.Table) -> None:
            table = replace_in_text(table, COMPUTED, r"'\1") if ending == ".csv" else table
            if not first:
                made = WRITERS[ending](temporary, table.schema)
                first.append((table.schema, opened.enter_context(made)))
            schema, writer = first[0]
            try:
                alike = table.select(schema.names).cast(schema)
            except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                msg = f"{path} cannot be written: its rows have different columns ({str(error).splitlines()[0]})"
                raise DataError(msg) from error
            writer.write_table(alike)

        yield write


@contextmanager
def column_writer(path: str) -> Iterator[Callable[[Mapping[str, NDArray[Any]]], None]]:
    """Yield a function that appends columns (b,) to a file; see :func:`table_writer`."""
    with table_writer(path) as write:
        yield lambda columns: write(pa.table({name: pa.array(values) for name, values in columns.items()}))


def write_columns(path: str, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns (n,) in the format of the suffix."""
    with column_writer(path) as write:
        write(columns)
