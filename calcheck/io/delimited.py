"""CSV and TSV files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from calcheck.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.io.files import File

LARGEST_BLOCK = (1 << 31) - 1
LEADING_ZERO = r"^[+-]?0[0-9]"


class DelimitedTable:
    """A text file with one line of column names.

    Types are found over the whole file, not over its beginning. Numbers with a leading zero ("01") are keys and stay
    text.
    """

    def __init__(self, file: File, delimiter: str) -> None:
        content = file.content()
        content += b"" if content.endswith(b"\n") else b"\n"
        parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        # one thread: pyarrow's others may abort a process that ends soon after (2 % of runs with 26.0)
        read = csv.ReadOptions(use_threads=False, block_size=min(len(content) + 1, LARGEST_BLOCK))

        def parsed(text_columns: Sequence[str]) -> pa.Table:
            kept = csv.ConvertOptions(column_types=dict.fromkeys(text_columns, pa.string()))
            return csv.read_csv(pa.BufferReader(content), read, parse, kept)

        table = parsed([])
        whole = (
            [name for name in table.schema.names if pa.types.is_integer(table.schema.field(name).type)]
            if (len(set(table.schema.names)) == len(table.schema.names))
            else []
        )
        if whole:
            text = parsed(whole)
            keys = [name for name in whole if _any(pc.match_substring_regex(text[name], LEADING_ZERO))]
            for name in keys:
                table = table.set_column(table.schema.get_field_index(name), name, text[name])
        self._table = table
        self.schema = table.schema
        _require_separated(self.schema.names, delimiter)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read some columns, in one batch."""
        yield self._table.select(list(columns))


def _require_separated(names: Sequence[str], delimiter: str) -> None:
    """Raise if the one column there is looks like several.

    Raises
    ------
    DataError
        Its name has other delimiters in it.
    """
    for other, remedy in (("\t", "--input-format tsv"), (";", "commas"), (",", "--input-format csv")):
        if len(names) == 1 and other != delimiter and other in names[0]:
            msg = f"columns look separated by {other!r}, not {delimiter!r}. Use {remedy}"
            raise DataError(msg)


def _any(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


csv_table = partial(DelimitedTable, delimiter=",")
tsv_table = partial(DelimitedTable, delimiter="\t")
