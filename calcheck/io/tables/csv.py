"""CSV and TSV files."""

from __future__ import annotations

import csv as standard_csv
import io
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import csv

from calcheck.csv_cells import PROTECTED
from calcheck.errors import DataError
from calcheck.io import compute as pc
from calcheck.io.arrow_arrays import is_text, replace_in_text
from calcheck.io.tables.memory import MemoryTable
from calcheck.io.tables.quotes import is_number_text, require_closed_quotes, rows_are_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calcheck.io.files import File

MAX_BLOCK = (1 << 31) - 1  # Maximum block size of pyarrow, in bytes
LEADING_ZERO = r"^[+-]?0[0-9]"
OTHERS = ("\t", ";", "|", ",")  # Delimiters to try if the expected one is absent
DECIMAL_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
HEADER_ROWS = 3  # Maximum header lines (pandas MultiIndex)
BEGINNING = 1 << 20  # Bytes searched for the header


def delimited_table(file: File, delimiter: str) -> MemoryTable:
    """Open a delimited text file with one header line, or with several for a pandas MultiIndex.

    Types are inferred from the whole file. Columns with leading zeros ("01") are keys and stay text. A MultiIndex name
    becomes the text of its tuple, as in pandas: ``('y', '0.05')``. Text escaped against formula injection (``'=a``) is
    restored (``=a``).

    Raises
    ------
    DataError
        A quoted cell takes in further rows, the header line is repeated among the rows, or numbers have decimal commas.
    """
    return MemoryTable(table_of(file.content(), delimiter))


def table_of(content: bytes, delimiter: str) -> pa.Table:
    """Return the table of delimited text, as :func:`delimited_table` does for files."""
    content += b"" if content.endswith(b"\n") else b"\n"
    delimiter = _sniffed(content[:BEGINNING], delimiter)
    headers = _header_rows(content[:BEGINNING], delimiter)
    names = None if len(headers) == 1 else [_name_of(parts) for parts in zip(*headers, strict=True)]
    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    # one thread: with more, pyarrow 26.0 aborts 2% of processes that exit soon after
    read = csv.ReadOptions(
        use_threads=False,
        block_size=min(len(content) + 1, MAX_BLOCK),
        column_names=names,
        skip_rows=0 if names is None else len(headers),
    )

    def parsed(text_columns: Sequence[str]) -> pa.Table:
        convert = csv.ConvertOptions(column_types=dict.fromkeys(text_columns, pa.string()))
        return csv.read_csv(pa.BufferReader(content), read, parse, convert)

    try:
        table = parsed([])
    except pa.ArrowInvalid:  # the wrong number of cells, perhaps after a stray quote
        require_closed_quotes(content, delimiter, [])
        raise
    if not rows_are_lines(content, len(table) + len(headers)):
        require_closed_quotes(content, delimiter, table.schema.types)
    if len(set(table.schema.names)) == len(table.schema.names):
        table = _with_keys_as_text(table, parsed)
        _require_one_header(table)
        _require_points(table, delimiter)
        table = replace_in_text(table, PROTECTED, r"\1")
    return table


def _with_keys_as_text(table: pa.Table, parsed: Callable[[Sequence[str]], pa.Table]) -> pa.Table:
    """Return the table with integer columns as text if a value has a leading zero."""
    integers = [name for name in table.schema.names if pa.types.is_integer(table.schema.field(name).type)]
    text = parsed(integers) if integers else table
    for name in integers:
        if _any(pc.match_substring_regex(text[name], LEADING_ZERO)):
            table = table.set_column(table.schema.get_field_index(name), name, text[name])
    return table


def _header_rows(beginning: bytes, delimiter: str) -> list[list[str]]:
    """Return the header lines: one, or several if the first cell of each is empty, as pandas writes a MultiIndex.

    A line with the name of the index below them is counted as a header line too.
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
    """Return the text of a MultiIndex name; empty if all its parts are."""
    return str(parts) if any(parts) else ""


def _sniffed(beginning: bytes, delimiter: str) -> str:
    """Return the delimiter of the header: the expected one, else the only other delimiter in the line."""
    first = beginning.split(b"\n", 1)[0]
    others = [other for other in OTHERS if other.encode() in first]
    return others[0] if delimiter.encode() not in first and len(others) == 1 else delimiter


def _require_points(table: pa.Table, delimiter: str) -> None:
    """Raise if numbers are written with decimal commas."""
    for name in table.schema.names if delimiter != "," else ():
        column = table[name]
        if is_text(column.type) and _any(pc.match_substring_regex(column, DECIMAL_COMMA)):
            first = column.filter(pc.match_substring_regex(column, DECIMAL_COMMA))[0].as_py()
            msg = f"column {name!r} has decimal commas, for example {first!r}. Write numbers with decimal points"
            raise DataError(msg)


def _require_one_header(table: pa.Table) -> None:
    """Raise if a row repeats the column names, which turns every column into text whose name is no number."""
    if not any(is_text(column.type) for column in table.schema):
        return
    same = pc.equal(1, 1)
    for field in table.schema:
        if not is_text(field.type) and not is_number_text(field.name.encode()):
            return
        name = field.name if is_text(field.type) else float(field.name)
        same = pc.and_(same, pc.fill_null(pc.equal(table[field.name], name), fill_value=False))
    place = pc.index(same, value=True).as_py()
    if place >= 0:
        msg = f"row {place}, counted from 0, repeats the column names. Were two files appended? Keep one header"
        raise DataError(msg)


def _any(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


csv_table = partial(delimited_table, delimiter=",")
tsv_table = partial(delimited_table, delimiter="\t")
