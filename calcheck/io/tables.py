"""Tables of any format, opened and read in batches; text, JSON and Excel files; and several files as one table."""

import csv as standard_csv
import io
import json as standard_json
import re
import tokenize
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, json

from calcheck.core.text import PROTECTED
from calcheck.core.validation import require_different
from calcheck.errors import DataError, FileError, OptionError
from calcheck.io import array_files
from calcheck.io.array_files import ArrayTable
from calcheck.io.arrow_columns import MAX_BLOCK, MemoryTable, is_text, pc, plain_columns, replace_in_text
from calcheck.io.columnar import ParquetTable, arrow_table
from calcheck.io.dataframes import TableInMemory, frame_columns
from calcheck.io.files import ANY_JSON, TEXT, AnyFile, File, Files, PartitionFile, file_named, suffix_of

INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # numbers with a leading zero stay text


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


MAX_DEPTH = 32  # Maximum nesting depth; pyarrow crashes at depths of thousands
ESCAPE, STRING = re.compile(rb"\\.", re.DOTALL), re.compile(rb'"[^"]*"')
BRACKETS, NO_STRUCTURE = b"[]{}", bytes(set(range(256)) - set(b'[]{}"'))
STEPS = np.zeros(256, np.int8)
STEPS[list(BRACKETS)] = 1, -1, 1, -1
BOM, SPACES = b"\xef\xbb\xbf", 1 << 10  # Byte order mark; bytes searched for the start of an array
CHUNK = 1 << 22  # Brackets processed at a time


def json_lines_table(file: File) -> MemoryTable:
    """Open a file of JSON records, one per line or in an array; their members are the columns."""
    content = file.content().removeprefix(BOM)
    if (found := depth(content)) > MAX_DEPTH:
        raise DataError(
            f"objects and lists are nested {found:,} levels deep, at most {MAX_DEPTH} are supported. Write flat records"
        )
    if content[:SPACES].lstrip().startswith(b"["):
        records = standard_json.loads(content, object_pairs_hook=_record)
        if not records or not all(isinstance(record, dict) for record in records):
            raise DataError('an array must hold records, [{"y": 1.5, "mean": 1.2, "std": 0.4}, …]')
        content = "\n".join(map(standard_json.dumps, records)).encode()
    read = json.ReadOptions(use_threads=False, block_size=min(len(content) + 1, MAX_BLOCK))
    return MemoryTable(json.read_json(pa.BufferReader(content), read))


def _record(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object, unless two have the same name."""
    record = dict(members)
    if len(record) < len(members):
        names = [name for name, _ in members]
        raise DataError(f"a record holds {next(name for name in names if names.count(name) > 1)!r} twice")
    return record


def depth(content: bytes) -> int:
    r"""Return the nesting depth of objects and lists in JSON: the largest number of open brackets outside of strings.

    >>> depth(b'{"a": [1, {"b": "[[[["}], "c\\"[": 2}'), depth(b"]]][[{")
    (3, 3)
    """
    bare = STRING.sub(b"", ESCAPE.sub(b"", content).translate(None, NO_STRUCTURE))
    deepest = level = 0
    for start in range(0, len(bare), CHUNK):
        steps = STEPS[np.frombuffer(bare[start : start + CHUNK], np.uint8)]
        levels = np.concatenate([[level], steps]).cumsum(dtype=np.int64)
        levels -= np.minimum(np.minimum.accumulate(levels), 0)
        deepest, level = max(deepest, int(levels.max())), int(levels[-1])
    return deepest


Table: TypeAlias = "MemoryTable | ArrayTable | ParquetTable | LazyTable | ConcatTable"
"""An open table: the schema is known, rows are read on demand."""
MAX_REASON = 300  # Maximum characters of a library's error message, which may quote the file
READERS: dict[str, Callable[[File], Table]] = {
    "parquet": ParquetTable,
    "csv": lambda file: MemoryTable(table_of(file.content(), ",")),
    "tsv": lambda file: MemoryTable(table_of(file.content(), "\t")),
    "arrow": arrow_table,
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
