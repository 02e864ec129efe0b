"""CSV and TSV files."""

from __future__ import annotations

import csv as standard_csv
import io
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from calcheck.csv_cells import PROTECTED
from calcheck.errors import DataError
from calcheck.io.arrow_arrays import is_text, replace_in_text
from calcheck.io.tables.memory import MemoryTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calcheck.io.files import File

LARGEST_BLOCK = (1 << 31) - 1
LEADING_ZERO = r"^[+-]?0[0-9]"
OTHERS = ("\t", ";", "|", ",")  # what may separate columns in place of what should
DECIMAL_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
HEADER_ROWS = 3  # at most, of a table whose columns have names in several levels
BEGINNING = 1 << 20  # bytes that hold them


def delimited_table(file: File, delimiter: str) -> MemoryTable:
    """Open a text file with a line of column names, or, as pandas writes them, with several lines of name parts.

    Types are found over the whole file, not over its beginning. Numbers with a leading zero ("01") are keys and stay
    text. Names in several parts are spelled as pandas spells them elsewhere: ``('y', '0.05')``.

    Text that is protected from spreadsheets (``'=a``) is read as it was (``=a``).

    Raises
    ------
    DataError
        The line of names comes again among the rows, or numbers are written with decimal commas.
    """
    return MemoryTable(table_of(file.content(), delimiter))


def table_of(content: bytes, delimiter: str) -> pa.Table:
    """Parse delimited text: :func:`delimited_table` of bytes."""
    content += b"" if content.endswith(b"\n") else b"\n"
    delimiter = _sniffed(content[:BEGINNING], delimiter)
    headers = _header_rows(content[:BEGINNING], delimiter)
    names = None if len(headers) == 1 else [_name_of(parts) for parts in zip(*headers, strict=True)]
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    # one thread: pyarrow's others may abort a process that ends soon after (2 % of runs with 26.0)
    read = csv.ReadOptions(
        use_threads=False,
        block_size=min(len(content) + 1, LARGEST_BLOCK),
        column_names=names,
        skip_rows=0 if names is None else len(headers),
    )

    def parsed(text_columns: Sequence[str]) -> pa.Table:
        kept = csv.ConvertOptions(column_types=dict.fromkeys(text_columns, pa.string()))
        return csv.read_csv(pa.BufferReader(content), read, parse, kept)

    table = parsed([])
    if len(set(table.schema.names)) == len(table.schema.names):
        table = _with_keys_as_text(table, parsed)
        _require_one_header(table)
        _require_points(table, delimiter)
        table = replace_in_text(table, PROTECTED, r"\1")
    return table


def _with_keys_as_text(table: pa.Table, parsed: Callable[[Sequence[str]], pa.Table]) -> pa.Table:
    """Return the table with whole numbers as text where some have a leading zero."""
    whole = [name for name in table.schema.names if pa.types.is_integer(table.schema.field(name).type)]
    text = parsed(whole) if whole else table
    for name in whole:
        if _any(pc.match_substring_regex(text[name], LEADING_ZERO)):
            table = table.set_column(table.schema.get_field_index(name), name, text[name])
    return table


def _header_rows(beginning: bytes, delimiter: str) -> list[list[str]]:
    """Return the lines of column names: one, or several if the first column's name is empty in each of them.

    pandas writes several levels of names so. Lines that hold the index's own name below them are counted with them.
    """
    text = io.StringIO(beginning.decode("utf-8", errors="replace"))
    try:
        lines = list(islice(standard_csv.reader(text, delimiter=delimiter), HEADER_ROWS + 1))
    except standard_csv.Error:
        return [[]]
    many = []
    for line in lines[:HEADER_ROWS]:
        if not line or line[0] or len(line) != len(lines[0]) or not all(line[1:]):
            break
        many.append(line)
    return many if len(many) > 1 else lines[:1]


def _name_of(parts: tuple[str, ...]) -> str:
    """Spell a name in several parts; one without any is empty."""
    return str(parts) if any(parts) else ""


def _sniffed(beginning: bytes, delimiter: str) -> str:
    """Return what separates the names of columns: as it should be, else the only one of the others that is there."""
    first = beginning.split(b"\n", 1)[0]
    others = [other for other in OTHERS if other.encode() in first]
    return others[0] if delimiter.encode() not in first and len(others) == 1 else delimiter


def _require_points(table: pa.Table, delimiter: str) -> None:
    """Raise if numbers are written with decimal commas.

    Raises
    ------
    DataError
        They are.
    """
    for name in table.schema.names if delimiter != "," else ():
        column = table[name]
        if is_text(column.type) and _any(pc.match_substring_regex(column, DECIMAL_COMMA)):
            first = column.filter(pc.match_substring_regex(column, DECIMAL_COMMA))[0].as_py()
            msg = f"column {name!r} has decimal commas, as {first!r}: write numbers with points"
            raise DataError(msg)


def _require_one_header(table: pa.Table) -> None:
    """Raise if the column names come again as a row: every column is text then.

    Raises
    ------
    DataError
        They do.
    """
    if not all(is_text(column.type) for column in table.schema):
        return
    same = [pc.fill_null(pc.equal(table[name], name), fill_value=False) for name in table.schema.names]
    for row in range(1, len(same)):
        same[0] = pc.and_(same[0], same[row])
    place = pc.index(same[0], value=True).as_py() if same else -1
    if place >= 0:
        msg = f"the column names come again in row {place}, counted from 0: were two files appended? Leave one of them"
        raise DataError(msg)


def _any(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


csv_table = partial(delimited_table, delimiter=",")
tsv_table = partial(delimited_table, delimiter="\t")
