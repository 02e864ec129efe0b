"""Tables of columns, whatever format holds them: one reader a file, one entry here."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from calcheck.errors import FileError
from calcheck.io import arrays, delimited, ipc, parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from calcheck.io.files import File


class Table(Protocol):
    """A table that was opened: its schema is known, its rows are read when asked for."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read some columns from the start, in batches of rows."""


READERS: dict[str, Callable[[File], Table]] = {
    "parquet": parquet.ParquetTable,
    "csv": delimited.csv_table,
    "tsv": delimited.tsv_table,
    "arrow": ipc.ArrowTable,
    "npy": arrays.npy_table,
    "npz": arrays.npz_table,
}
"""How each format is opened, by its name in ``--input-format``."""


def open_table(file: File) -> Table:
    """Open a file as a table.

    Raises
    ------
    FileError
        It is not what its format says, or two columns share a name.
    """
    import pyarrow as pa

    name, reader = file.spoken, READERS[file.format]
    file.require_content()
    try:
        table = reader(file)
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        msg = f"{name} is not a readable {file.format} file ({_first_line(error)}). Is it cut short?"
        raise FileError(msg) from error
    twice = [column for column, count in Counter(table.schema.names).items() if count > 1]
    if twice:
        msg = f"{name} has {len(twice)} column names more than once: {', '.join(map(repr, twice[:3]))}. Rename them"
        raise FileError(msg)
    return table


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
