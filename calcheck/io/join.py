"""What another file adds to the rows of predictions: an embedding, or the targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calcheck.errors import DataError, FileError, named_some
from calcheck.io.arrow_arrays import is_scalar, is_text, key_text, to_floats, to_matrix
from calcheck.io.columns.options import TARGETS
from calcheck.io.files import SUFFIXES, kind_of, suffix_of
from calcheck.io.join_keys import KeyIndex
from calcheck.io.object_store import is_uri
from calcheck.io.paths import resolve
from calcheck.io.row_numbers import as_index
from calcheck.io.tables.concat import open_table
from calcheck.io.tables.formats import read_batches
from calcheck.validation import concat_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from calcheck.io.columns.options import ColumnOptions
    from calcheck.io.columns.roles import Roles
    from calcheck.io.layouts import TableLayout
    from calcheck.io.paths import AnyFile
    from calcheck.io.row_numbers import Places
    from calcheck.io.tables.formats import Table

REMEDY = "Name other keys (--join-on for --truth, --id for --embedding), or leave rows out (--nan-policy omit)"
INDEX = ("", "Unnamed: 0", "__index_level_0__")  # pandas' row labels, as it writes them
OUTPUT = ("output_type", "output_type_id")  # of hubs
HUB_VALUE = "value"  # what hubs call their targets


@dataclass(frozen=True, eq=False)
class JoinedColumn:
    """Values of another file for the rows of this one.

    Parameters
    ----------
    file : File or Files
        The other file.
    column : str
        Its column.
    values : (m, ...)
        What its rows add.
    keyed : KeyIndex or None
        How rows are found; by place if absent.
    """

    file: AnyFile
    column: str
    values: NDArray[np.floating[Any]]
    keyed: KeyIndex | None

    @property
    def display_name(self) -> str:
        """Spell file and column as options take them."""
        return f"{self.file.name}:{self.column}"

    def how_joined(self) -> str:
        """Say how rows are found."""
        if self.keyed is None:
            return "row by row"
        return f"by {', '.join(here if here == there else f'{here}={there}' for here, there in self.keyed.pairs)}"

    @property
    def keys(self) -> tuple[str, ...]:
        """Key columns of the rows that are looked for."""
        return tuple(here for here, _ in self.keyed.pairs) if self.keyed else ()

    def rows(self, table: pa.Table, places: Places, *, lenient: bool) -> NDArray[np.floating[Any]]:
        """Return the values for some rows, (b, ...).

        Parameters
        ----------
        table : pyarrow.Table
            The rows' keys.
        places : (b,)
            Their places.
        lenient : bool
            Whether rows that are not found get NaN.

        Raises
        ------
        DataError
            Some rows are not found.
        """
        if self.keyed is None:
            if places[-1] >= len(self.values):
                raise DataError(self._of_other_length("more rows than"))
            return self.values[as_index(places)]
        found = self.keyed.row_numbers(table)
        values = self.values[found]
        gaps = (found >= 0) & ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if gaps.any() and not lenient:
            msg = f"column {self.column!r} of {self.file.name} has no number for {gaps.sum():,} rows. {REMEDY}"
            raise DataError(msg)
        if (found < 0).any():
            if not lenient:
                raise DataError(f"{self.keyed.missing(table, found)}. {REMEDY}")
            values[found < 0] = np.nan
        return values

    def require_all_used(self, count: int) -> None:
        """Raise if rows were found by place and this file has more than ``count`` of them.

        Raises
        ------
        DataError
            It has.
        """
        if self.keyed is None and count != len(self.values):
            raise DataError(self._of_other_length(f"{count:,} rows, not"))

    def _of_other_length(self, told: str) -> str:
        return (
            f"there are {told} the {len(self.values):,} of {self.file.name}. Give both the same rows, or key columns"
            " by which to join them"
        )


def read_embedding(name: str, id_column: str | None) -> JoinedColumn:
    """Read ``FILE`` or ``FILE:COLUMN``, joined by the column of ids where it has that too.

    Raises
    ------
    DataError
        There is no such file or column, its rows are no vectors, or a key comes twice.
    """
    path, column = split_column(name)
    file = resolve(path)
    table = open_table(file)
    names = table.schema.names
    key = id_column if id_column in names and id_column != column else None
    others = [name for name in names if name != key]
    column = column or (others[0] if len(others) == 1 else "embedding")
    if column not in others:
        msg = f"{path} has no column {column!r}. Name one as {path}:COLUMN ({named_some(names)})"
        raise FileError(msg)
    return _read(file, table, column, to_matrix, ((key, key),) if key is not None else ())


def read_truth(
    said: ColumnOptions,
    laid: TableLayout,
    roles: Roles,
    used: tuple[str, ...],
    values_of: Callable[[str], pa.ChunkedArray],
) -> JoinedColumn:
    """Read the targets in ``said.truth``.

    Parameters
    ----------
    said : ColumnOptions
        What the user says.
    laid : TableLayout
        The predictions' table.
    roles : Roles
        What its columns are.
    used : tuple of str
        Columns that describe predictions or inputs, and are no keys.
    values_of : callable
        Returns the values of one of its columns.

    Raises
    ------
    DataError
        There is no such file or column, a key comes twice, or it is not clear which dates belong together.
    """
    path, column = split_column(said.truth or "")
    file = resolve(path)
    table = open_table(file)
    here = {field.name: field.type for field in laid.table.schema if is_scalar(field.type) and field.name not in used}
    there = {field.name: field.type for field in table.schema if is_scalar(field.type)}
    column = column or _target_column(path, there, laid, said)
    if column not in table.schema.names:
        msg = f"{path} has no column {column!r}. Name one as {path}:COLUMN ({named_some(table.schema.names)})"
        raise FileError(msg)
    if said.join_on:
        return _read(file, table, column, to_floats, _said_pairs(said.join_on, here, there, path), laid.kind)
    for name in (column, *OUTPUT):
        there.pop(name, None)
    shared = _shared(here, there, laid, roles)
    dates = _dates(here, there, shared)
    if laid.dated is not None and laid.dated not in dict(shared) and len(dates[1]) == 1:
        return _read(file, table, column, to_floats, (*shared, (laid.dated, dates[1][0])), laid.kind)
    dated = bool(dates[0] and dates[1]) and laid.dated not in dict(shared)
    if not shared and not dated:
        _require_rows_in_order(here, values_of, path)
    if shared or not dated:
        try:
            return _read(file, table, column, to_floats, shared, laid.kind)
        except DataError:  # the shared keys do not tell rows apart: perhaps dates do
            if not dated:
                raise
    pair = _dated_alike(*dates, shared, file, table, values_of)
    return _read(file, table, column, to_floats, (*shared, pair), laid.kind)


def _read(
    file: AnyFile,
    table: Table,
    column: str,
    reader: Callable[[pa.ChunkedArray, str], NDArray[np.floating[Any]]],
    pairs: tuple[tuple[str, str], ...],
    kind: str | None = None,
) -> JoinedColumn:
    """Read the values of one column, and index them by keys if there are any.

    Hubs may give targets once for each type of output: those of the predictions' are read.
    """
    output = OUTPUT[0] if kind is not None and OUTPUT[0] in table.schema.names else None
    wanted = list(dict.fromkeys([column, *(there for _, there in pairs), *([output] if output else [])]))
    batches = [batch for batch in read_batches(file, table, wanted) if len(batch)]
    if output:
        batches = [batch.filter(pc.equal(key_text(batch[output]), kind)) for batch in batches]
        batches = [batch for batch in batches if len(batch)]
    if not batches:
        msg = f"{file.name} has no rows" + (f" whose {output} is {kind}" if output else "")
        raise FileError(msg)
    remedy = "Name all key columns with --join-on" if len(pairs) != 1 else "Leave one of each, or name other keys"
    try:
        values = concat_columns([reader(batch[column], column) for batch in batches], column)
        keyed = KeyIndex.from_table(file.name, pairs, pa.concat_tables(batches), remedy) if pairs else None
    except DataError as error:
        msg = f"{file.name}: {error}"
        raise FileError(msg) from error
    return JoinedColumn(file, column, values, keyed)


def _target_column(path: str, there: dict[str, pa.DataType], laid: TableLayout, said: ColumnOptions) -> str:
    """Find the column of targets in their own file."""
    free = [name for name in there if name not in laid.keys]
    known = [name for name in TARGETS if name in free]
    for candidates in (known, [HUB_VALUE] if HUB_VALUE in free else [], [said.mean] if said.mean in free else []):
        if len(candidates) == 1:
            return str(candidates[0])
    others = [name for name in free if name not in (*laid.table.schema.names, *INDEX)]
    if not known and len(others) == 1:
        return others[0]
    msg = f"which column of {path} holds the targets is not clear. Pass --truth {path}:COLUMN ({named_some(there)})"
    raise FileError(msg)


def _said_pairs(
    join_on: str, here: dict[str, pa.DataType], there: dict[str, pa.DataType], path: str
) -> tuple[tuple[str, str], ...]:
    """Take ``--join-on a,b=c`` apart."""
    pairs = []
    for part in join_on.split(","):
        left, equals, right = (text.strip() for text in part.partition("="))
        pair = (left, right if equals else left)
        for name, known, whose in zip(pair, (here, there), ("the predictions", path), strict=True):
            if name not in known:
                msg = f"--join-on: {whose} have no key column {name!r} (columns: {named_some(known)})"
                raise FileError(msg)
        pairs.append(pair)
    return tuple(pairs)


def _shared(
    here: dict[str, pa.DataType], there: dict[str, pa.DataType], laid: TableLayout, roles: Roles
) -> tuple[tuple[str, str], ...]:
    """List the key columns that both files have: the id alone, else all that may be keys."""
    if roles.id is not None and roles.id in there:
        return ((roles.id, roles.id),)

    def is_key(name: str) -> bool:
        fractions = pa.types.is_floating(here[name]) or pa.types.is_floating(there[name])
        return name in (*laid.keys, *roles.keys) or name.endswith("id") or not fractions

    pairs = [(name, name) for name in here if name in there and name not in INDEX and is_key(name)]
    labels = [next((name for name in INDEX if name in names), None) for names in (here, there)]
    if not pairs and labels[0] is not None and labels[1] is not None:
        pairs = [(labels[0], labels[1])]
    return tuple(pairs)


def _require_rows_in_order(
    here: dict[str, pa.DataType], values_of: Callable[[str], pa.ChunkedArray], path: str
) -> None:
    """Raise if rows that are to be found by place have labels that say that they were shuffled.

    Raises
    ------
    FileError
        They have.
    """
    label = next((name for name in INDEX if name in here), None)
    if label is None:
        return
    labels = values_of(label).to_pylist()
    if labels != [str(place) for place in range(len(labels))]:
        msg = (
            f"the rows have labels of their own ({', '.join(map(str, labels[:3]))}, …), but {path} has none to join"
            " them by. Save it with its index, or name key columns of both with --join-on"
        )
        raise FileError(msg)


def _dates(
    here: dict[str, pa.DataType], there: dict[str, pa.DataType], shared: tuple[tuple[str, str], ...]
) -> tuple[list[str], list[str]]:
    """List the columns of dates that are no shared keys, in both files."""
    taken = {name for pair in shared for name in pair}
    left, right = (
        [name for name, kind in names.items() if _is_date(name, kind) and name not in taken] for names in (here, there)
    )
    return left, right


def _is_date(name: str, kind: pa.DataType) -> bool:
    """Tell whether a column holds dates, perhaps as text."""
    return bool(pa.types.is_temporal(kind) or (is_text(kind) and ("date" in name.lower() or name == "ds")))


def _dated_alike(
    here: list[str],
    there: list[str],
    shared: tuple[tuple[str, str], ...],
    file: AnyFile,
    table: Table,
    values_of: Callable[[str], pa.ChunkedArray],
) -> tuple[str, str]:
    """Find the dates of both files that belong together: all values of the one are among those of the other.

    Raises
    ------
    FileError
        There are several such pairs, or none.
    """
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
        told = " or ".join(f"--join-on {others}{left}={right}" for left, right in pairs)
        msg = f"several dates may belong to those of {file.name}. Pass {told}"
    else:
        told = named_some(here)
        msg = f"of the dates {told} none has all its values in {file.name}. Pass --join-on {others}HERE=THERE"
    raise FileError(msg)


def split_column(name: str) -> tuple[str, str | None]:
    """Take ``FILE[:COLUMN]`` apart.

    Examples
    --------
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
    """Tell whether a value of ``--embedding`` names files: ``h*`` is a pattern of columns, ``h/*`` of files."""
    path, _ = split_column(name)
    return is_uri(path) or suffix_of(path) in SUFFIXES or _exists(path) or ("/" in path and "*" in path)


def _exists(path: str) -> bool:
    try:
        return kind_of(path) != "nothing"
    except FileError:  # a name that can be none
        return False
