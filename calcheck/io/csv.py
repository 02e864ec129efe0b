"""Files of tables of cells: CSV and TSV, with their delimiter, header, quotes, zeros and decimal commas, and Excel."""

import csv as standard_csv
import io
import re
from collections.abc import Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from calcheck.core.escaping import PROTECTED
from calcheck.errors import DataError, OptionError
from calcheck.io.arrow_columns import MAX_BLOCK, MemoryTable, is_text, pc, replace_in_text
from calcheck.io.dataframes import frame_columns
from calcheck.io.files import File

CELL = r'(?:\A(?:\xef\xbb\xbf)?|[\n\r{0}])("(?:[^"]++|"")*+)("?)([^\n\r{0}]?)'  # a quoted cell, and what follows it
QUOTED_CHUNK = 1 << 24  # Bytes searched at a time
SHOWN = 40  # Maximum characters of a cell in a message
LEADING_ZERO = r"^[+-]?0[0-9]"
OTHERS = ("\t", ";", "|", ",")  # Delimiters to try if the expected one is absent
DECIMAL_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
HEADER_ROWS = 3  # Maximum header lines (pandas MultiIndex)
BEGINNING = 1 << 20  # Bytes searched for the header


def rows_are_lines(content: bytes, rows: int) -> bool:
    """Return whether each line is one row: no cell holds another row, and the last line closes its cell."""
    if b'"' not in content:
        return True
    if content.count(b"\n") != rows or _has_bare_returns(content):
        return False
    return content.count(b'"', content.rfind(b"\n", 0, -1) + 1) % 2 == 0


def _has_bare_returns(content: bytes) -> bool:
    """Return whether a carriage return alone ends a line."""
    return b"\r" in content and content.count(b"\r") != content.count(b"\r\n")


def require_closed_quotes(content: bytes, delimiter: str, types: Sequence[pa.DataType]) -> None:
    """Raise if a quoted cell of several lines is not closed, goes on after its end, or takes in lines that are rows."""
    pattern = re.compile(CELL.format(re.escape(delimiter)).encode("latin-1"))
    starts = _suspects(content, delimiter.encode(), len(types))
    cells = pattern.finditer(content)  # all of them if a quote is out of place
    if starts is not None:
        cells = filter(None, (pattern.match(content, max(0, start - 1)) for start in starts.tolist()))
    for cell in cells:
        if not any(end in cell[1] for end in (b"\n", b"\r")):
            continue
        if not cell[2]:
            problem = "is never closed"
        elif cell[3]:
            problem = "goes on after the quote in line {last:,}"
        elif _takes_in_rows(content, cell, delimiter, types):
            problem = "takes in lines that look like rows, up to line {last:,}"
        else:
            continue
        shown = cell[1].decode(errors="replace").splitlines()[0][:SHOWN]
        places = cell.start(1), cell.end(2)
        first, last = (1 + max(content.count(end, 0, place) for end in (b"\n", b"\r")) for place in places)
        found = f"the quoted cell that begins in line {first:,} ({shown}) {problem.format(last=last)}"
        raise DataError(f"{found}. Close it; a quote inside a quoted cell is written twice")


def _suspects(content: bytes, delimiter: bytes, columns: int) -> NDArray[np.int64] | None:
    """Return where cells begin that hold a line with as many delimiters as a row; None if a quote is out of place."""
    data, quotes = np.frombuffer(content, np.uint8), _places(content, b'"')
    if len(quotes) % 2 or _has_bare_returns(content):
        return None
    opening, closing = quotes[::2], quotes[1::2]
    beside = np.isin(np.arange(256), list(delimiter + b'\r\n"'))  # before the first byte is, as it were, the last
    if not (beside[data[opening - 1]].all() and beside[data[closing + 1]].all()):
        return None
    is_start = data[opening - 1] != ord('"')
    starts, stops = opening[is_start], closing[np.roll(is_start, -1)]
    ends = _places(content, b"\n")
    full = np.diff(np.searchsorted(_places(content, delimiter), ends), prepend=0) == columns - 1
    before = np.concatenate([[0], np.cumsum(full)])
    first, last = np.searchsorted(ends, starts), np.searchsorted(ends, stops)
    suspects: NDArray[np.int64] = starts[full[first] & (before[last + 1] > before[first + 1])]
    return suspects


def _places(content: bytes, byte: bytes) -> NDArray[np.int64]:
    """Return where a byte occurs."""
    data = np.frombuffer(content, np.uint8)
    chunks = range(0, len(data), QUOTED_CHUNK)
    return np.concatenate([start + np.flatnonzero(data[start : start + QUOTED_CHUNK] == ord(byte)) for start in chunks])


def _takes_in_rows(content: bytes, cell: re.Match[bytes], delimiter: str, types: Sequence[pa.DataType]) -> bool:
    """Return whether the first and another line of a cell both have all columns, with numbers where others have."""
    numbers = [place for place, kind in enumerate(types) if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
    line = content.rfind(b"\n", 0, cell.start(1)) + 1
    first = content.rfind(b"\r", line, cell.start(1)) + 1 or line
    lines = content[first : content.index(b"\n", cell.end(2))].splitlines()
    rows = (line.split(delimiter.encode()) for line in lines)
    alike = [len(cells) == len(types) and all(is_number_text(cells[place]) for place in numbers) for cells in rows]
    return bool(numbers) and alike[0] and any(alike[1:])


def is_number_text(text: str | bytes) -> bool:
    """Return whether text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def table_of(content: bytes, delimiter: str) -> pa.Table:
    """Return the table of delimited text; types are of all of it, "01" stays text, ``'=a`` is restored to ``=a``."""
    content += b"" if content.endswith(b"\n") else b"\n"
    header = content[:BEGINNING].split(b"\n", 1)[0]
    others = [other for other in OTHERS if other.encode() in header]
    delimiter = others[0] if delimiter.encode() not in header and len(others) == 1 else delimiter
    headers = _header_rows(content[:BEGINNING], delimiter)
    names = None if len(headers) == 1 else [str(parts) if any(parts) else "" for parts in zip(*headers, strict=True)]
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
        if _may_have_leading_zeros(content, delimiter):
            integers = [name for name in table.schema.names if pa.types.is_integer(table.schema.field(name).type)]
            text = parsed(integers) if integers else table  # a key such as 01 stays text
            for name in integers:
                if _any(pc.match_substring_regex(text[name], LEADING_ZERO)):
                    table = table.set_column(table.schema.get_field_index(name), name, text[name])
        _require_one_header(table)
        _require_points(table, delimiter)
        table = replace_in_text(table, PROTECTED, r"\1")
    return table


def _may_have_leading_zeros(content: bytes, delimiter: str) -> bool:
    """Return whether a cell may begin with a zero and another digit."""
    starts, signs = np.zeros((2, 256), np.bool_)
    starts[list(delimiter.encode() + b'\r\n"')] = signs[list(b"+-")] = True
    data = np.frombuffer(content, np.uint8)
    for place in range(0, len(data), QUOTED_CHUNK):
        part = data[place : place + QUOTED_CHUNK + 3]
        zeros = np.flatnonzero((part[1:-1] == ord("0")) & (part[2:] - ord("0") < 10))  # noqa: PLR2004
        if np.any(starts[part[zeros]] | (signs[part[zeros]] & starts[part[zeros - 1]])):  # not the sign of an exponent
            return True
    return False


def _header_rows(beginning: bytes, delimiter: str) -> list[list[str]]:
    """Return the header lines: one, or those with an empty first cell of a MultiIndex with the name of the index."""
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
        if not is_text(field.type) and not is_number_text(field.name):
            return
        name = field.name if is_text(field.type) else float(field.name)
        same = pc.and_(same, pc.fill_null(pc.equal(table[field.name], name), fill_value=False))
    place = pc.index(same, value=True).as_py()
    if place >= 0:
        msg = f"row {place}, counted from 0, repeats the column names. Were two files appended? Keep one header"
        raise DataError(msg)


def _any(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


def delimited_table(file: File, delimiter: str) -> MemoryTable:
    """Open a delimited text file."""
    return MemoryTable(table_of(file.content(), delimiter))


def excel_table(file: File) -> MemoryTable:
    """Open the first sheet of an Excel file; its first row has the names of the columns."""
    try:
        import openpyxl  # noqa: F401 - pandas reads Excel files by it
        import pandas as pd
    except ImportError as error:
        raise OptionError("Excel files need openpyxl. Install it: pip install 'calcheck[excel]'") from error
    frame = pd.read_excel(io.BytesIO(file.content()), engine="openpyxl")
    columns = frame_columns(frame, "the sheet")
    return MemoryTable(pa.Table.from_pandas(frame.set_axis(list(columns), axis="columns"), preserve_index=False))
