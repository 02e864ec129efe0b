"""Quoted cells of delimited text: those that take in further rows are found and refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from calcheck.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

CELL = r'(?:\A(?:\xef\xbb\xbf)?|[\n\r{0}])("(?:[^"]++|"")*+)("?)([^\n\r{0}]?)'  # a quoted cell, and what follows it
CHUNK = 1 << 24  # Bytes searched at a time
SHOWN = 40  # Maximum characters of a cell in a message


def rows_are_lines(content: bytes, rows: int) -> bool:
    """Return whether each line is one row, so that no cell can hold another row.

    The last line must not have an odd number of quotes: its cell may not be closed.
    """
    if b'"' not in content:
        return True
    if content.count(b"\n") != rows or _has_bare_returns(content):
        return False
    return content.count(b'"', content.rfind(b"\n", 0, -1) + 1) % 2 == 0


def _has_bare_returns(content: bytes) -> bool:
    """Return whether a carriage return alone ends a line."""
    return b"\r" in content and content.count(b"\r") != content.count(b"\r\n")


def require_closed_quotes(content: bytes, delimiter: str, types: Sequence[pa.DataType]) -> None:
    """Raise if a quoted cell of several lines is not closed, goes on after its end, or takes in lines that are rows.

    Parameters
    ----------
    content : bytes
        The text, which ends with a line break.
    delimiter : str
        The delimiter of cells.
    types : sequence of DataType
        The types of the columns, if they are known: a line is a row if it has numbers in the columns of numbers.

    Raises
    ------
    DataError
        There is such a cell; the message names the line where it begins.
    """
    for cell in _cells(content, delimiter, len(types)):
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
        first, last = (_line_of(content, place) for place in (cell.start(1), cell.end(2)))
        found = f"the quoted cell that begins in line {first:,} ({shown}) {problem.format(last=last)}"
        msg = f"{found}. Close it; a quote inside a quoted cell is written twice"
        raise DataError(msg)


def _cells(content: bytes, delimiter: str, columns: int) -> Iterable[re.Match[bytes]]:
    """Return the quoted cells to judge: those that may take in rows, or all if a quote is out of place."""
    pattern = re.compile(CELL.format(re.escape(delimiter)).encode("latin-1"))
    starts = _suspects(content, delimiter.encode(), columns)
    if starts is None:
        return pattern.finditer(content)
    return filter(None, (pattern.match(content, max(0, start - 1)) for start in starts.tolist()))


def _suspects(content: bytes, delimiter: bytes, columns: int) -> NDArray[np.int64] | None:
    """Return where cells begin that hold a line with as many delimiters as a row; None if a quote is out of place.

    All quotes are in place if they alternately open and close a cell; a doubled quote closes it and opens it again.
    """
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
    chunks = range(0, len(data), CHUNK)
    return np.concatenate([start + np.flatnonzero(data[start : start + CHUNK] == ord(byte)) for start in chunks])


def _line_of(content: bytes, place: int) -> int:
    """Return the number of the line, counted from 1, that holds a byte."""
    return 1 + max(content.count(end, 0, place) for end in (b"\n", b"\r"))


def _takes_in_rows(content: bytes, cell: re.Match[bytes], delimiter: str, types: Sequence[pa.DataType]) -> bool:
    """Return whether the first and another line of a cell both have all columns, with numbers where others have."""
    numbers = [place for place, kind in enumerate(types) if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
    line = content.rfind(b"\n", 0, cell.start(1)) + 1
    first = content.rfind(b"\r", line, cell.start(1)) + 1 or line
    lines = content[first : content.index(b"\n", cell.end(2))].splitlines()
    rows = (line.split(delimiter.encode()) for line in lines)
    alike = [len(cells) == len(types) and all(is_number_text(cells[place]) for place in numbers) for cells in rows]
    return bool(numbers) and alike[0] and any(alike[1:])


def is_number_text(text: bytes) -> bool:
    """Return whether text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
