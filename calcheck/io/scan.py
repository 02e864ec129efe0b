"""One pass over the rows of a file: its columns become batches of predictions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from calcheck.errors import DataError, FileError, ValuesError
from calcheck.io.arrow_arrays import keys, ordering, to_scalars, without_gaps
from calcheck.io.assemble import arrays_of, columns_read, predictive_of
from calcheck.io.files import file_named
from calcheck.io.join_keys import KeyIndex
from calcheck.io.row_numbers import as_array, as_sequence
from calcheck.io.tables.concat import ConcatTable
from calcheck.io.tables.formats import read_batches
from calcheck.predictions import Predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from calcheck.io.columns.options import ColumnOptions
    from calcheck.io.columns.roles import Roles
    from calcheck.io.join import JoinedColumn
    from calcheck.io.layouts import TableLayout
    from calcheck.io.paths import AnyFile
    from calcheck.io.row_numbers import Places

BATCH_BYTES = 1 << 26  # of inputs from another file that belong to a batch of rows


@dataclass
class Scan:
    """One pass over the rows of a file.

    Parameters
    ----------
    file : File or Files
        Where they are.
    layout : TableLayout
        Its table, with a row a unit.
    options : ColumnOptions
        What the user says of it.
    roles : Roles
        The columns that are read, and what they are.
    column_names : callable
        Names a role as users know it.
    narrow : tuple of str, optional
        Columns that are shown beside results; absent if nothing is.
    also : tuple of str
        Columns without a role that rows are ordered by.
    embedding, truth : Beside, optional
        What other files add to the rows.
    start : int
        Where the first row is, among those of which these are a part.
    part : bool
        Whether the rows are a part of others: then there may be none of them.
    """

    file: AnyFile
    layout: TableLayout
    options: ColumnOptions
    roles: Roles
    column_names: Callable[[str], str]
    narrow: tuple[str, ...] | None = None
    also: tuple[str, ...] = ()
    embedding: JoinedColumn | None = None
    truth: JoinedColumn | None = None
    start: int = 0
    part: bool = False
    read: int = field(default=0, init=False)
    n_dropped: int = field(default=0, init=False)
    n_clipped: int = field(default=0, init=False)

    def without_inputs(self) -> Self:
        """Return a pass that leaves the inputs where they are."""
        return replace(self, roles=replace(self.roles, x=()), embedding=None)

    def inputs_bytes(self) -> int:
        """Return about how many bytes the inputs of all rows take."""
        beside = 0 if self.embedding is None else self.embedding.values.nbytes
        return beside + (self.layout.table.nbytes(self.roles.x) if self.roles.x else 0)

    def of_inputs(self) -> Self:
        """Return a pass over the inputs, and over whatever decides which rows are left out."""
        if self.lenient:
            return replace(self)
        roles = replace(self.roles, target=(), predictive=None, id=None, keys=())
        return replace(self, roles=roles, narrow=None, also=(), truth=None)

    def of_predictive(self) -> Self:
        """Return a pass over the distributions, and over whatever decides which rows are left out."""
        if self.lenient:
            return replace(self)
        roles = replace(self.roles, target=(), x=(), id=None, keys=())
        return replace(self, roles=roles, narrow=None, also=(), truth=None, embedding=None)

    @property
    def _beside(self) -> tuple[str, ...]:
        """The columns that are read beside those with a role."""
        return tuple(dict.fromkeys([*self.also, *(self.narrow or ())]))

    @property
    def lenient(self) -> bool:
        """Whether rows that lack a number are left out; which these are depends on all columns."""
        return self.options.nan_policy == "omit"

    def batches(self) -> Iterator[Predictions]:
        """Read the rows from the start, in order.

        Raises
        ------
        DataError
            They are not sound, or none is left.
        """
        with file_named(self.file.display_name):
            yield from self._batches()

    def _batches(self) -> Iterator[Predictions]:
        self.n_dropped = self.n_clipped = 0
        kept, keyed = 0, []
        for table, units in self._pieces():
            kept += len(table)
            keyed.append(table.select(list(self.roles.keys)))
            rows = self._batch(table, units) if len(table) else None
            if rows is not None:
                yield rows
        if self.part:
            return
        if kept == self.n_dropped > 0:
            msg = "every row lacks a number, so --nan-policy omit leaves none"
            raise DataError(msg)
        if self.read and not kept:
            raise DataError(self.layout.filters.none_left())
        for beside in (self.embedding, self.truth):
            if beside is not None:
                beside.require_all_used(self.read)
        if self.roles.keys:
            pairs = tuple((name, name) for name in self.roles.keys)
            KeyIndex.from_table("this file", pairs, pa.concat_tables(keyed), "Were files appended? Leave one of each")

    def _pieces(self) -> Iterator[tuple[pa.Table, Places]]:
        """Read the columns that are needed, of rows that filters keep, and where these rows are in the table."""
        filters, seen = self.layout.filters, dict[str, dict[str, None]]()
        wanted = [*columns_read(self.roles, self._beside), *self.roles.keys, *filters.columns]
        wanted += [key for beside in (self.embedding, self.truth) if beside for key in beside.keys]
        self.read = 0
        names = list(dict.fromkeys(wanted)) or self.layout.table.schema.names[:1]  # rows of no columns are not counted
        for table in read_batches(self.file, self.layout.table, names):
            for piece in self._in_pieces(table):
                mask = filters.mask(piece)
                first = self.start + self.read
                units = range(first, first + len(piece)) if mask is None else first + np.flatnonzero(mask)
                self.read += len(piece)
                kept = piece if mask is None else piece.filter(pa.array(mask))
                filters.require_one_of_each(kept, seen)
                yield kept, units

    def _in_pieces(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield so many rows at a time that the inputs that another file adds to them do not fill the memory."""
        values = None if self.embedding is None else self.embedding.values
        size = len(table) if values is None else max(1, BATCH_BYTES // max(1, values[:1].nbytes))
        for start in range(0, max(len(table), 1), max(size, 1)):
            yield table.slice(start, size)

    def _batch(self, table: pa.Table, units: Places) -> Predictions | None:
        """Turn a batch of rows into predictions; None if all of them are left out."""
        roles, lenient = self.roles, self.lenient
        places = self.layout.with_row_numbers(units)
        columns: dict[str, NDArray[Any]] = {}
        try:
            arrays = arrays_of(table, roles)
            id_ = keys(table[roles.id], roles.id) if roles.id else None
        except ValuesError as error:
            raise self._told(error, error.name, places) from error
        if self.embedding is not None:
            arrays["x"] = self.embedding.rows(table, units, lenient=lenient)
        if self.truth is not None:
            arrays["y"] = np.asarray(self.truth.rows(table, units, lenient=lenient), dtype=np.float64)
            columns |= {"y": arrays["y"]} if self.narrow is not None else {}
        columns |= {name: to_scalars(table[name]) for name in self._beside}
        columns |= {name: ordering(table[name], name) for name in self.also}
        if lenient:
            whole = without_gaps([*arrays.values(), *(columns[name] for name in self.also)])
            self.n_dropped += int(len(whole) - whole.sum())
            arrays = {name: values[whole] for name, values in arrays.items()}
            columns = {name: values[whole] for name, values in columns.items()}
            id_, places = None if id_ is None else id_[whole], as_array(places)[whole]
            if not whole.any():
                return None
        try:
            predictive, raised = predictive_of(roles, arrays, self.options.min_std)
            self.n_clipped += raised
            return Predictions(
                y=arrays.get("y"),
                predictive=predictive,
                x=arrays.get("x"),
                has_embedding=roles.has_embedding,
                id=id_,
                id_name=roles.id or "id",
                row=None if isinstance(places, range) and not places.start and arrays else as_array(places),
                columns=columns,
            )
        except ValuesError as error:
            raise self._told(error, self.column_names(error.name), places) from error

    def _told(self, error: ValuesError, name: str, places: Places) -> DataError:
        """Tell what is wrong with some rows by their places in their file."""
        rows = as_sequence(places)
        if not isinstance(self.layout.table, ConcatTable):
            return DataError(error.message(name, rows))
        file, start = self.layout.table.origin(rows[0] - self.start)
        return FileError(f"{file.name}: {error.message(name, [row - self.start - start for row in rows])}")
