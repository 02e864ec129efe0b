"""Targets and embeddings joined from other files, by key columns or row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from calcheck.core.text import count_of
from calcheck.core.validation import concat_columns
from calcheck.errors import DataError, FileError, listed_columns, named_some
from calcheck.io.arrow_columns import is_scalar, is_text, key_text, pc, to_floats, to_matrix
from calcheck.io.column_names import TARGETS, ColumnOptions
from calcheck.io.column_roles import Roles
from calcheck.io.files import SUFFIXES, AnyFile, file_named, is_uri, kind_of, resolve, suffix_of
from calcheck.io.filters import TableLayout
from calcheck.io.tables import Table, open_table, read_batches
from calcheck.typing import Floats, Indices

Kinds: TypeAlias = dict[str, pa.DataType]  # Types of columns by name
Pairs: TypeAlias = tuple[tuple[str, str], ...]  # Names of key columns in one file and in another
ValuesOf: TypeAlias = Callable[[str], pa.ChunkedArray]  # Returns one column of the predictions, as text
Reader: TypeAlias = "Callable[[pa.ChunkedArray, str], Floats]"
SEPARATOR = "\x1f"  # Separates the parts of a composite key
REMEDY = "Name other keys (--join-on for --truth, --id for --embedding), or drop these rows (--nan-policy omit)"
INDEX = ("", "Unnamed: 0", "__index_level_0__")  # Names that pandas gives its index in files
OUTPUT = ("output_type", "output_type_id")  # Columns of hubverse output types
HUB_VALUE = "value"  # Column of targets in hubverse files
# Arrow matches keys as text, because their types may differ. For a million keys, pandas.merge on the same text takes up
# to three times the time and 300 MiB more.


@dataclass(frozen=True, eq=False)
class KeyIndex:
    """Index of the rows of a file by key."""

    name: str  # The name of the file in messages
    pairs: Pairs  # Names of the key columns in the other table and in this file
    keys: pa.Array  # (m,), the unique keys of the rows of this file

    @classmethod
    def from_table(cls, name: str, pairs: Pairs, table: pa.Table, remedy: str) -> KeyIndex:
        """Return the index of a table."""
        keys = composite_key(table, [there for _, there in pairs], lenient=True)
        counted = pc.value_counts(keys)
        repeated = pc.and_(pc.greater(counted.field("counts"), 1), counted.field("values").is_valid())
        if pc.any(repeated).as_py():
            first = counted.field("values").filter(repeated)[0].as_py()
            count = pc.sum(repeated).as_py()
            shown = format_key([there for _, there in pairs], first)
            raise DataError(
                f"{count_of(count, 'key occurs', 'keys occur')} more than once, for example {shown}. {remedy}"
            )
        return cls(name, pairs, keys)

    def row_numbers(self, table: pa.Table) -> Indices:
        """Return the row number in this file of each row of a table, (n,); -1 without a match."""
        found = pc.index_in(composite_key(table, [here for here, _ in self.pairs]), value_set=self.keys)
        return np.asarray(pc.fill_null(found, -1), dtype=np.intp)

    def display_name(self) -> str:
        """Return the key columns in the form of ``--join-on``; empty for an index without a name."""
        if any(not name for pair in self.pairs for name in pair):
            return ""
        return ",".join(here if here == there else f"{here}={there}" for here, there in self.pairs)

    def missing(self, table: pa.Table, places: Indices) -> str:
        """Return a message with the number of rows without a match, one such key, and a key of this file."""
        lost = np.flatnonzero(places < 0)
        here, there = [here for here, _ in self.pairs], [there for _, there in self.pairs]
        wanted = composite_key(table.slice(int(lost[0]), 1), here)[0].as_py()
        known = self.keys.drop_null()
        example = known[0].as_py() if len(known) else None
        first = format_key(here, wanted)
        verb = "is" if len(lost) == 1 else "are"
        message = f"{len(lost):,} of {len(places):,} rows {verb} not in {self.name}, for example {first}"
        if example is None:
            return message
        parts = zip(wanted.split(SEPARATOR), example.split(SEPARATOR), strict=True)
        numbers = [pair for pair in parts if all(map(str.isdigit, pair))]
        zeros = any(len(one) != len(other) and "0" in (one[0], other[0]) for one, other in numbers)
        hint = ". One file lost leading zeros ('01' became 1): store such keys as text" if zeros else ""
        return f"{message} (its keys look like {format_key(there, example)}){hint}"


def composite_key(table: pa.Table, columns: list[str], *, lenient: bool = False) -> pa.Array:
    """Return the keys of the rows as normalized text, (n,); those with a missing part are null if ``lenient``."""
    parts = []
    for name in columns:
        text = key_text(table[name])
        if text.null_count and not lenient:
            row = int(np.flatnonzero(np.asarray(text.is_null()))[0])
            found = f"key column {name!r} is missing in {count_of(text.null_count, 'row')}"
            raise DataError(f"{found}, for example row {row}, counted from 0")
        parts.append(text)
    joined = pc.binary_join_element_wise(*parts, SEPARATOR)
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def format_key(columns: list[str], key: Any) -> str:
    """Return a composite key as readable text."""
    return ", ".join(
        f"{name or 'the first column'}={part!r}" for name, part in zip(columns, key.split(SEPARATOR), strict=True)
    )


@dataclass(frozen=True, eq=False)
class JoinedColumn:
    """One column of another file, joined to the rows of this one."""

    file: AnyFile  # The other file
    column: str
    values: Floats  # (m, ...), the values of its rows
    key_index: KeyIndex | None  # The index of its keys; None to join by row number

    @property
    def display_name(self) -> str:
        """File and column, in the form that options take."""
        return f"{self.file.name}:{self.column}"

    def join_method(self) -> str:
        """Return how rows are joined, for reports."""
        if self.key_index is None:
            return "row by row"
        return f"by {', '.join(here if here == there else f'{here}={there}' for here, there in self.key_index.pairs)}"

    @property
    def keys(self) -> tuple[str, ...]:
        """Key columns of the predictions."""
        return tuple(here for here, _ in self.key_index.pairs) if self.key_index else ()

    def rows(self, table: pa.Table, places: Indices, *, lenient: bool) -> Floats:
        """Return the values for a batch of rows, (b, ...). Shapes: places (b,)."""
        if self.key_index is None:
            if places[-1] >= len(self.values):
                raise DataError(self._length_mismatch("more rows than"))
            first, last = int(places[0]), int(places[-1])  # a view of consecutive rows
            return self.values[first : last + 1] if last - first == len(places) - 1 else self.values[places]
        found = self.key_index.row_numbers(table)
        values = self.values[found]
        gaps = (found >= 0) & ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if gaps.any() and not lenient:
            msg = f"column {self.column!r} of {self.file.name} has no number in {count_of(gaps.sum(), 'row')}. {REMEDY}"
            raise DataError(msg)
        if (found < 0).any():
            if not lenient:
                raise DataError(f"{self.key_index.missing(table, found)}. {REMEDY}")
            values[found < 0] = np.nan
        return values

    def require_all_used(self, count: int) -> None:
        """Raise if rows are joined by row number and the other file does not have ``count`` rows."""
        if self.key_index is None and count != len(self.values):
            raise DataError(self._length_mismatch(f"{count:,} rows, not"))

    def _length_mismatch(self, found: str) -> str:
        return (
            f"there are {found} the {len(self.values):,} of {self.file.name}. Both files need the same rows, or key"
            " columns to join them by"
        )


def read_embedding(name: str, id_column: str | None) -> JoinedColumn:
    """Read the embedding in ``FILE`` or ``FILE:COLUMN``, joined by id if both files have the id column."""
    path, column = split_column(name)
    file = resolve(path)
    table = open_table(file)
    names = table.schema.names
    key = id_column if id_column in names and id_column != column else None
    others = [name for name in names if name != key]
    column = column or (others[0] if len(others) == 1 else "embedding")
    if column not in others:
        raise FileError(f"{path} has no column {column!r}. Name one as {path}:COLUMN {listed_columns(names, column)}")
    return _read(file, table, column, to_matrix, ((key, key),) if key is not None else ())


def read_truth(
    options: ColumnOptions, layout: TableLayout, roles: Roles, used: tuple[str, ...], values_of: ValuesOf
) -> JoinedColumn:
    """Read the targets in ``options.truth``."""
    path, column = split_column(options.truth or "")
    file = resolve(path)
    table = open_table(file)
    here = {field.name: field.type for field in layout.table.schema if is_scalar(field.type) and field.name not in used}
    there = {field.name: field.type for field in table.schema if is_scalar(field.type)}
    column = column or _target_column(path, there, layout, options)
    if column not in table.schema.names:
        msg = f"{path} has no column {column!r}. Name one as {path}:COLUMN {listed_columns(table.schema.names, column)}"
        raise FileError(msg)
    if options.join_on:
        return _read(file, table, column, to_floats, _explicit_pairs(options.join_on, here, there, path), layout.kind)
    for name in (column, *OUTPUT):
        there.pop(name, None)
    shared = _shared(here, there, layout, roles)
    dates = _dates((here, there), shared)
    if layout.date_key is not None and layout.date_key not in dict(shared) and len(dates[1]) == 1:
        return _read(file, table, column, to_floats, (*shared, (layout.date_key, dates[1][0])), layout.kind)
    by_date = bool(dates[0] and dates[1]) and layout.date_key not in dict(shared)
    if not shared and not by_date:
        _require_rows_in_order(here, values_of, path)
    if shared or not by_date:
        try:
            return _read(file, table, column, to_floats, shared, layout.kind)
        except DataError:  # the shared keys are not unique: try with a date column
            if not by_date:
                raise
    pair = _dated_alike(*dates, shared, file, table, values_of)
    return _read(file, table, column, to_floats, (*shared, pair), layout.kind)


def _read(
    file: AnyFile, table: Table, column: str, reader: Reader, pairs: Pairs, kind: str | None = None
) -> JoinedColumn:
    """Read one column of the output type of the predictions, and index it by its keys if there are any."""
    output = OUTPUT[0] if kind is not None and OUTPUT[0] in table.schema.names else None
    wanted = list(dict.fromkeys([column, *(there for _, there in pairs), *([output] if output else [])]))
    batches = [batch for batch in read_batches(file, table, wanted) if len(batch)]
    if output:
        batches = [batch.filter(pc.equal(key_text(batch[output]), kind)) for batch in batches]
        batches = [batch for batch in batches if len(batch)]
    if not batches:
        raise FileError(f"{file.name} has no rows" + (f" whose {output} is {kind}" if output else ""))
    remedy = "Name all key columns with --join-on" if len(pairs) != 1 else "Keep one row per key, or name other keys"
    with file_named(file.name):
        values = concat_columns([reader(batch[column], column) for batch in batches], column)
        key_index = KeyIndex.from_table(file.name, pairs, pa.concat_tables(batches), remedy) if pairs else None
    return JoinedColumn(file, column, values, key_index)


def _target_column(path: str, there: Kinds, layout: TableLayout, options: ColumnOptions) -> str:
    """Return the column of targets in the file of targets."""
    free = [name for name in there if name not in layout.keys]
    known = [name for name in TARGETS if name in free]
    for candidates in (known, [HUB_VALUE] if HUB_VALUE in free else [], [options.mean] if options.mean in free else []):
        if len(candidates) == 1:
            return str(candidates[0])
    others = [name for name in free if name not in (*layout.table.schema.names, *INDEX)]
    if not known and len(others) == 1:
        return others[0]
    msg = f"the column of targets in {path} is ambiguous. Pass --truth {path}:COLUMN (columns: {named_some(there)})"
    raise FileError(msg)


def _explicit_pairs(join_on: str, here: Kinds, there: Kinds, path: str) -> Pairs:
    """Return the pairs of key columns in ``--join-on a,b=c``."""
    pairs = []
    for part in join_on.split(","):
        left, equals, right = (text.strip() for text in part.partition("="))
        pair = (left, right if equals else left)
        for name, known, owner in zip(pair, (here, there), ("the predictions", path), strict=True):
            if name not in known:
                raise FileError(f"--join-on: there is no key column {name!r} in {owner} {listed_columns(known, name)}")
        pairs.append(pair)
    return tuple(pairs)


def _shared(here: Kinds, there: Kinds, layout: TableLayout, roles: Roles) -> Pairs:
    """Return the key columns that both files have: the id column alone, else all possible keys."""
    if roles.id is not None and roles.id in there:
        return ((roles.id, roles.id),)

    def is_key(name: str) -> bool:
        fractions = pa.types.is_floating(here[name]) or pa.types.is_floating(there[name])
        return name in (*layout.keys, *roles.keys) or name.endswith("id") or not fractions

    pairs = [(name, name) for name in here if name in there and name not in INDEX and is_key(name)]
    labels = [next((name for name in INDEX if name in names), None) for names in (here, there)]
    if not pairs and labels[0] is not None and labels[1] is not None:
        pairs = [(labels[0], labels[1])]
    return tuple(pairs)


def _require_rows_in_order(here: Kinds, values_of: ValuesOf, path: str) -> None:
    """Raise if rows would be joined by row number but have a pandas index that is not 0, 1, …."""
    label = next((name for name in INDEX if name in here), None)
    if label is None:
        return
    labels = values_of(label).to_pylist()
    if labels != [str(place) for place in range(len(labels))]:
        raise FileError(
            f"the predictions have an index that is not 0, 1, … ({', '.join(map(str, labels[:3]))}, …), but {path} has"
            " none to join them by. Save it with its index, or name the key columns of both files with --join-on"
        )


def _dates(both: tuple[Kinds, Kinds], shared: Pairs) -> tuple[list[str], list[str]]:
    """Return the date columns of each file that are not shared keys."""
    taken = {name for pair in shared for name in pair}
    left, right = ([name for name in names if name not in taken and _is_date(name, names[name])] for names in both)
    return left, right


def _is_date(name: str, kind: pa.DataType) -> bool:
    """Return whether a column holds dates or times, possibly as text."""
    return bool(pa.types.is_temporal(kind) or (is_text(kind) and ("date" in name.lower() or name == "ds")))


def _dated_alike(
    here: list[str], there: list[str], shared: Pairs, file: AnyFile, table: Table, values_of: ValuesOf
) -> tuple[str, str]:
    """Return the date columns that match: the file of targets has all dates of the predictions."""
    read = pa.concat_tables(list(read_batches(file, table, there)))
    known = {name: pc.unique(key_text(read[name])) for name in there}
    pairs = [
        (left, right)
        for left in here
        for right in there
        if pc.all(pc.is_in(key_text(values_of(left)), value_set=known[right])).as_py()
    ]
    if len(pairs) == 1:
        return pairs[0]
    others = "".join(f"{name}," for name, _ in shared)
    if pairs:
        choices = " or ".join(f"--join-on {others}{left}={right}" for left, right in pairs)
        msg = f"several date columns match those of {file.name}. Pass {choices}"
    else:
        msg = f"no date column ({named_some(here)}) has all values in {file.name}. Pass --join-on {others}HERE=THERE"
    raise FileError(msg)


def split_column(name: str) -> tuple[str, str | None]:
    """Split ``FILE[:COLUMN]`` into the file and the column.

    >>> split_column("no/such/file.parquet:vector")
    ('no/such/file.parquet', 'vector')
    >>> split_column("s3://bucket/embeddings/")
    ('s3://bucket/embeddings/', None)
    """
    path, colon, column = name.rpartition(":")
    if not colon or column.startswith("//") or (not is_uri(name) and _exists(name)):
        return name, None
    return path, column


def names_a_file(name: str) -> bool:
    """Return whether a value of ``--embedding`` names files: ``h*`` is a pattern of columns, ``h/*`` one of files."""
    path, _ = split_column(name)
    return is_uri(path) or suffix_of(path) in SUFFIXES or _exists(path) or ("/" in path and "*" in path)


def _exists(path: str) -> bool:
    try:
        return kind_of(path) != "nothing"
    except FileError:  # not a valid path
        return False
