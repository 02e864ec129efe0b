"""A file of predictions as a source of batches."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from calcheck.errors import DataError, OptionError, named_some
from calcheck.execution.machine import available_memory
from calcheck.io.arrow_arrays import is_scalar, is_text, key_text
from calcheck.io.columns.index import ColumnIndex, unclear_spreads
from calcheck.io.columns.infer import OTHER_ROLES, find_roles, missing_predictions, missing_target
from calcheck.io.columns.options import ColumnOptions
from calcheck.io.columns.roles import (
    FILE_ROLES,
    SHAPE_UNKNOWN,
    ParametersRole,
    ResidualRole,
    Wanted,
    columns_of,
    is_wide,
)
from calcheck.io.duplicates import require_no_rerun, require_unique_keys
from calcheck.io.files import STDIN, file_named
from calcheck.io.filters import Filters, require_one
from calcheck.io.join import JoinedColumn, names_a_file, read_embedding, read_truth, split_column
from calcheck.io.layouts import TableLayout, apply_layout
from calcheck.io.load import load_all
from calcheck.io.partition import parts_of
from calcheck.io.paths import Files, resolve
from calcheck.io.scale_hint import scale_hint
from calcheck.io.scan import Scan
from calcheck.io.tables.concat import open_table
from calcheck.io.tables.formats import read_batches
from calcheck.predictions import Predictions, Source
from calcheck.report import FileRole, Input, InputFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from calcheck.io.columns.roles import Roles
    from calcheck.io.paths import AnyFile
    from calcheck.io.tables.formats import Table

FAMILY = "dist"  # the column of our own files that names the family
FEW = 10  # errors, all positive by chance
COPIES = 3  # of the rows, while they are read into memory
GIB = 1 << 30


@dataclass
class FileSource(Source):
    """Predictions in a file.

    Parameters
    ----------
    file : File or Files
        Where they are.
    options : ColumnOptions
        What the user says of them.
    wanted : str
        ``"all"``: targets and predictions must be there; ``"any"``: whatever is there; ``"sample"``: targets
        and inputs; ``"inputs"``: inputs and keys. Of the last two nothing else is looked at.
    narrow : bool
        Whether the row's other columns of one value are read too, to be shown beside results.
    also : tuple of str
        Columns without a role that are read too.
    inputs : bool
        Whether inputs and embeddings are read.
    repeated : bool
        Whether rows may share keys.
    start : int, optional
        Where the first row is among those of which these are a part (:meth:`parts`); absent if these are all.

    Raises
    ------
    DataError, OptionError
        The file or its columns are not what is needed.
    """

    file: AnyFile
    options: ColumnOptions = field(default_factory=ColumnOptions)
    wanted: Wanted = "all"
    narrow: bool = False
    also: tuple[str, ...] = ()
    inputs: bool = True
    repeated: bool = False
    start: int | None = None
    _passed: Scan | None = field(default=None, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to another process, which opens the file itself."""
        sent = {declared.name: getattr(self, declared.name) for declared in fields(self) if declared.init}
        return sent | {name: value for name, value in vars(self).items() if name == "roles"}

    def __post_init__(self) -> None:
        if isinstance(self.file, Files) and self.wanted != "inputs":
            self.file = self.file.prune_partitions(self.options.filter)

    @property
    def name(self) -> str:
        """How messages call the file."""
        return self.file.display_name

    @cached_property
    def layout(self) -> TableLayout:
        """The file, opened, with a row a unit."""
        table = open_table(self.file)
        with self._named():
            if self.wanted == "inputs":
                return TableLayout(table)
            filters = Filters.from_options(self.options.filter, self.options.model, table.schema)
            unchanged = self.wanted == "sample"
            return (
                TableLayout(table, filters=filters)
                if unchanged
                else apply_layout(self.file, table, self.options, filters)
            )

    @property
    def table(self) -> Table:
        """The rows, a unit each."""
        return self.layout.table

    @cached_property
    def columns(self) -> ColumnIndex:
        """The columns, by name."""
        return ColumnIndex(self.table.schema, self.layout.keys)

    @cached_property
    def roles(self) -> Roles:
        """The roles of its columns."""
        with self._named():
            external = self._external_name is not None
            if self.wanted in OTHER_ROLES:
                return OTHER_ROLES[self.wanted](self.columns, self.options, external=external)
            roles = find_roles(self.columns, self._completed(), external=external)
            problem = next(self._missing(roles), None) if self.wanted == "all" else None
            if problem:
                raise DataError(problem)
            return roles if self.inputs else replace(roles, x=())

    def _completed(self) -> ColumnOptions:
        """Return what is said, with the family that the file names itself, and without a model that filters chose."""
        said, names = self.options, self.columns.free
        if self.layout.filters.model is not None:
            said = replace(said, model=None)
        if FAMILY not in names or said.names_form or not is_text(self.table.schema.field(FAMILY).type):
            return said
        families = [value for value in self._values_of(FAMILY).unique().to_pylist() if value]
        require_one(families, "families of distributions", f"--filter {FAMILY}={{}}")
        return replace(said, dist=families[0]) if families else said

    def _values_of(self, column: str) -> pa.ChunkedArray:
        """Read one column of the rows that filters keep, in text."""
        chunks, filters = [], self.layout.filters
        for batch in read_batches(self.file, self.table, list(dict.fromkeys([column, *filters.columns]))):
            mask = filters.mask(batch)
            chunks += key_text(batch[column] if mask is None else batch.filter(pa.array(mask))[column]).chunks
        return pa.chunked_array(chunks, pa.string())

    def missing(self) -> list[str]:
        """Say what the file lacks for metrics that compare predictions with targets, and what to do about it."""
        return list(self._missing(self.roles))

    def _missing(self, roles: Roles) -> Iterator[str]:
        if roles.predictive is None:
            unclear = unclear_spreads(self.columns.free) if roles.target or self.options.truth else []
            yield missing_predictions(self.columns, self.options) + scale_hint(unclear, self._with_variances)
        if not roles.target and not self.options.truth:
            yield missing_target(self.columns)

    def _with_variances(self, column: str) -> Predictions:
        """Read the file with a column of variances."""
        return FileSource(self.file, replace(self.options, var=column)).predictions()

    def batches(self) -> Iterator[Predictions]:
        self._passed = self._pass()
        return self._passed.batches()

    def _pass(self) -> Scan:
        """Make a pass over all that is read."""
        return Scan(
            self.file,
            self.layout,
            self.options,
            self.roles,
            self.column_name,
            narrow=self.roles.narrow if self.narrow else None,
            also=self._ordering(),
            embedding=self.embedding,
            truth=self.truth,
            start=self.start or 0,
            part=self.start is not None,
        )

    def parts(self) -> Sequence[Source]:
        if self.start is not None or self._needs_all_rows():
            return (self,)
        parts = [replace(self, file=file, start=start) for file, start in parts_of(self.file, self.table)]
        for part in parts:
            part.roles = self.roles  # found of the whole
        return parts

    def _needs_all_rows(self) -> bool:
        """Tell whether some rows cannot be read, or known to be sound, without the others."""
        laid, filters = self.layout, self.layout.filters
        one_of_each = filters.target or (filters.model and not filters.of_models)
        beside = self.embedding is not None or self.truth is not None
        return bool(laid.layout or beside or self.roles.keys or one_of_each or STDIN in self.file.paths)

    def narrow_bytes(self) -> int | None:
        """Return about how many bytes the numbers of all rows take besides inputs, draws and quantiles.

        None where the number of rows is not known before they are read: of a pipe, where rows are filtered, or where a
        layout gives units several.
        """
        laid, roles = self.layout, self.roles
        if STDIN in self.file.paths or laid.layout or laid.filters.columns:
            return None
        columns = (*roles.target, *(() if is_wide(roles.predictive) else columns_of(roles.predictive)))
        return self.table.nbytes(tuple(dict.fromkeys(columns)))

    def _ordering(self) -> tuple[str, ...]:
        """List the columns that rows are ordered by.

        Raises
        ------
        DataError
            One is not there, or does not have one value a row.
        """
        names = self.table.schema.names
        for name in self.also:
            if name not in names:
                msg = f"there is no column {name!r} to order rows by (columns: {named_some(names)})"
                raise DataError(msg)
            if not is_scalar(self.table.schema.field(name).type):
                msg = f"column {name!r} does not have one value a row to order rows by"
                raise DataError(msg)
        return self.also

    def predictions(self) -> Predictions:
        return self._met[0]

    @cached_property
    def _met(self) -> tuple[Predictions, Scan]:
        """All rows, and the pass that met them."""
        with self._named():
            self._require_room()
            rows, met = load_all(self._pass())
            pa.default_memory_pool().release_unused()  # what was read is held a second time now
            return require_no_rerun(rows if self.repeated else require_unique_keys(rows)), met

    def _require_room(self) -> None:
        """Raise, before rows are read, if their numbers, as many as the file says, do not fit in memory.

        Of rows that are filtered nobody knows how many are left.

        Raises
        ------
        DataError
            They do not.
        """
        laid, roles = self.layout, self.roles
        if laid.filters.columns:
            return
        columns = [*roles.target, *roles.keys, *([roles.id] if roles.id else [])]
        columns += [] if is_wide(roles.predictive) else columns_of(roles.predictive)
        needed, room = COPIES * laid.table.nbytes(tuple(dict.fromkeys(columns))), available_memory()
        if needed > room:
            msg = (
                f"its {laid.table.rows:,} rows take {needed / GIB:,.1f} GiB while they are read, and {room / GIB:,.1f}"
                " are free. Leave rows out, or give --memory less: targets and predictions beyond it are summed batch"
                " by batch"
            )
            raise DataError(msg)

    @property
    def _reading(self) -> Scan:
        """The pass that met all rows: into memory or, where they were not held, the last one."""
        known = self.__dict__.get("_met", (None, self._passed))[1]
        return known or self._met[1]

    @property
    def n_dropped(self) -> int:
        """How many rows were left out."""
        return self._reading.n_dropped

    @property
    def n_clipped(self) -> int:
        """How many standard deviations were raised."""
        return self._reading.n_clipped

    def input_info(self) -> Input:
        rows = self.predictions()
        return self.streamed_input_info(len(rows), rows)

    def streamed_input_info(self, n: int, first: Predictions) -> Input:
        files = [self._file(FILE_ROLES[self.wanted], self.file, self.layout.read or max(self._reading.read, n))]
        columns = self.roles.described_columns()
        if self.embedding is not None:
            files.append(self._file("embedding", self.embedding.file, len(self.embedding.values)))
            columns["x"] = str(self._external_name)
        if self.truth is not None:
            files.append(self._file("truth", self.truth.file, len(self.truth.values)))
            columns = {"y": f"{self.truth.display_name}, {self.truth.how_joined()}", **columns}
        return Input(
            files=tuple(files),
            n=n,
            dropped=self.n_dropped,
            predictive=self._family(first),
            columns=columns,
            options=tuple(self.explicit()),
            layout=self.layout.layout or self.roles.tool or None,
        )

    def _family(self, rows: Predictions) -> str | None:
        role = self.roles.predictive
        if isinstance(role, ResidualRole):
            return f"residuals, {role.shape}" if role.shape else "residuals, taken as normal"
        if rows.predictive is None:
            return None
        is_error = isinstance(role, ParametersRole) and role.error
        return f"residuals, {rows.predictive.display_name}" if is_error else rows.predictive.display_name

    @staticmethod
    def _file(role: FileRole, file: AnyFile, rows: int) -> InputFile:
        return InputFile(role=role, path=file.name, sha256=file.sha256(), rows=rows, files=file.count)

    def reads(self) -> tuple[str, ...]:
        """Name the files that are read."""
        others = [name for name in (self._external_name, self.options.truth) if name is not None]
        return (*self.file.paths, *(path for name in others for path in resolve(split_column(name)[0]).paths))

    def warnings(self) -> tuple[str, ...]:
        told = [*self.layout.notes]
        if self.n_clipped:
            told.append(f"{self.n_clipped:,} standard deviations were raised to {self.options.min_std} (--min-std)")
        if self.truth is not None and self.truth.keyed is None:
            told.append(
                f"targets are joined {self.truth.how_joined()} with {self.truth.file.name}; name keys with --join-on"
            )
        if isinstance(self.roles.predictive, ResidualRole) and self.roles.predictive.shape is None:
            told.append(SHAPE_UNKNOWN)
        if getattr(self.roles.predictive, "error", None) and self._never_negative():
            told.append("no error is negative: are they absolute? Metrics that look at their sign are wrong then")
        return tuple(told)

    def _never_negative(self) -> bool:
        """Tell whether no error is below 0, of more than a few."""
        met = self.__dict__.get("_met")  # all of them, if they are held
        errors = [batch.y for batch in ([met[0]] if met else self.batches()) if batch.y is not None]
        return sum(map(len, errors)) > FEW and all((each >= 0).all() for each in errors)

    @property
    def _external_name(self) -> str | None:
        said = self.options.embedding if self.inputs else None
        return said if said and said not in self.table.schema.names and names_a_file(said) else None

    @cached_property
    def embedding(self) -> JoinedColumn | None:
        """The embedding in another file."""
        return read_embedding(self._external_name, self.roles.id) if self._external_name else None

    @cached_property
    def truth(self) -> JoinedColumn | None:
        """The targets in another file."""
        if self.options.truth is None or self.wanted == "inputs":
            return None
        if self.file.name == split_column(self.options.truth)[0] == STDIN:
            msg = "standard input is one file: give --truth or the predictions by name"
            raise OptionError(msg)
        used = (*columns_of(self.roles.predictive), *self.roles.x)
        return read_truth(self.options, self.layout, self.roles, used, self._values_of)

    def explicit(self) -> list[str]:
        """Spell the options that say the same as what was found."""
        said = self.options
        told = [] if self.layout.layout else self.roles.explicit(self.table.schema.names)
        told += ["--input-format", self.file.input_format] if self.file.input_format else []
        told += ["--embedding", said.embedding or ""] if self.embedding is not None else []
        if self.truth is not None:
            told += ["--truth", self.truth.display_name]
            told += ["--join-on", pairs] if self.truth.keyed and (pairs := self.truth.keyed.display_name()) else []
        told += ["--model", said.model] if said.model is not None else []
        told += [word for text in said.filter for word in ("--filter", text)]
        told += ["--min-std", f"{said.min_std:g}"] if said.min_std is not None else []
        told += ["--nan-policy", said.nan_policy] if said.nan_policy != "raise" else []
        return told

    @contextmanager
    def file_named(self) -> Iterator[None]:
        with self._named(), self.error_context():
            yield

    def column_name(self, role: str) -> str:
        """Name a role with its column."""
        column = self.roles.described_columns().get(role, role)
        return role if column == role else f"{role} (column {column})"

    def _named(self) -> AbstractContextManager[None]:
        """Tell errors about the data with the name of the file."""
        return file_named(self.name)
