"""A file of predictions as a source of batches."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calcheck.errors import DataError, FileError, OptionError, ValuesError
from calcheck.io.build import arrays_of, columns_read, predictive_of
from calcheck.io.column_options import ColumnOptions
from calcheck.io.columns import (
    find_input_roles,
    find_roles,
    missing_predictions,
    missing_target,
    shown,
    unclear_spreads,
)
from calcheck.io.external import ExternalEmbedding, names_a_file, require_unique, split_column
from calcheck.io.files import STDIN, File
from calcheck.io.roles import ResidualRole
from calcheck.io.tables import Table, open_table, read_batches
from calcheck.io.values import is_scalar, keys, ordering, scalars
from calcheck.predictions import Predictions, Source
from calcheck.report import Input, InputFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from calcheck.io.roles import Roles

Wanted = Literal["all", "any", "inputs"]


@dataclass
class FileSource(Source):
    """Predictions in a file.

    Parameters
    ----------
    file : File
        Where they are.
    said : ColumnOptions
        What the user says about the columns.
    wanted : str
        ``"all"``: targets and predictions must be there; ``"any"``: whatever is there; ``"inputs"``: inputs and keys,
        nothing else is looked at.
    narrow : bool
        Whether the row's other columns of one value are read too, to be shown beside results.
    also : tuple of str
        Columns without a role that are read too.
    inputs : bool
        Whether inputs and embeddings are read.

    Raises
    ------
    DataError, OptionError
        The file or its columns are not what is needed.
    """

    file: File
    said: ColumnOptions = field(default_factory=ColumnOptions)
    wanted: Wanted = "all"
    narrow: bool = False
    also: tuple[str, ...] = ()
    inputs: bool = True
    dropped: int = field(default=0, init=False)
    raised: int = field(default=0, init=False)

    @property
    def name(self) -> str:
        """How messages call the file."""
        return self.file.spoken

    @cached_property
    def table(self) -> Table:
        """The file, opened."""
        return open_table(self.file)

    @cached_property
    def roles(self) -> Roles:
        """The roles of its columns."""
        with self._named():
            schema = self.table.schema
            external = self._external_name is not None
            if self.wanted == "inputs":
                return find_input_roles(schema, self.said, external=external)
            roles = find_roles(schema, self.said, external=external)
            problem = next(self._missing(roles), None) if self.wanted == "all" else None
            if problem:
                raise DataError(problem)
            return roles if self.inputs else replace(roles, x=())

    def missing(self) -> list[str]:
        """Say what the file lacks for metrics that compare predictions with targets, and what to do about it."""
        return list(self._missing(self.roles))

    def _missing(self, roles: Roles) -> Iterator[str]:
        schema = self.table.schema
        if roles.predictive is None:
            yield missing_predictions(schema, self.said) + self._scale_hint(roles)
        if not roles.target:
            yield missing_target(schema)

    def batches(self) -> Iterator[Predictions]:
        self.dropped = self.raised = start = 0
        with self._named():
            for table in read_batches(self.file, self.table, columns_read(self.roles, self._beside())):
                rows = self._batch(table, start) if len(table) else None
                if rows is not None:
                    yield rows
                start += len(table)
            if start == self.dropped > 0:
                msg = "every row lacks a number, so --nan-policy omit leaves none"
                raise DataError(msg)
            if self._external is not None:
                self._external.require_all_used(start)

    def _beside(self) -> list[str]:
        """List the columns that are read beside those with a role.

        Raises
        ------
        DataError
            One is not there, or does not have one value a row.
        """
        names = self.table.schema.names
        for name in self.also:
            if name not in names:
                msg = f"there is no column {name!r} to order rows by (columns: {shown(names)})"
                raise DataError(msg)
            if not is_scalar(self.table.schema.field(name).type):
                msg = f"column {name!r} does not have one value a row to order rows by"
                raise DataError(msg)
        return list(dict.fromkeys([*self.also, *(self.roles.narrow if self.narrow else ())]))

    def predictions(self) -> Predictions:
        return self._all

    def described(self) -> Input:
        rows = self.predictions()
        role: Literal["predictions", "at"] = "at" if self.wanted == "inputs" else "predictions"
        files = [self._file(role, self.file, len(rows) + self.dropped)]
        columns = self.roles.described()
        if self._external is not None:
            files.append(self._file("embedding", self._external.file, len(self._external.values)))
            columns["x"] = str(self._external_name)
        return Input(
            files=tuple(files),
            n=len(rows),
            dropped=self.dropped,
            predictive=self._family(rows),
            columns=columns,
            options=tuple(self.explicit()),
        )

    def _family(self, rows: Predictions) -> str | None:
        if isinstance(self.roles.predictive, ResidualRole):
            return "residuals, taken as normal"
        return None if rows.predictive is None else rows.predictive.called

    @staticmethod
    def _file(role: Literal["predictions", "embedding", "at"], file: File, rows: int) -> InputFile:
        return InputFile(role=role, path=file.name, sha256=file.sha256(), rows=rows)

    def reads(self) -> tuple[str, ...]:
        """Name the files that are read."""
        external = self._external_name
        return (self.file.name,) if external is None else (self.file.name, split_column(external)[0])

    def warnings(self) -> tuple[str, ...]:
        if not self.raised:
            return ()
        return (f"{self.raised:,} standard deviations were raised to {self.said.min_std} (--min-std)",)

    @cached_property
    def _all(self) -> Predictions:
        with self._named():
            rows = super().predictions()
            if rows.id is not None:
                require_unique(rows.id, rows.id_name, rows.places())
            return rows

    @property
    def _external_name(self) -> str | None:
        said = self.said.embedding if self.inputs else None
        return said if said and said not in self.table.schema.names and names_a_file(said) else None

    @cached_property
    def _external(self) -> ExternalEmbedding | None:
        return ExternalEmbedding.read(self._external_name, self.roles.id) if self._external_name else None

    def _batch(self, table: pa.Table, start: int) -> Predictions | None:
        """Turn a batch of rows into predictions; None if all of them are left out."""
        roles = self.roles
        places = np.arange(start, start + len(table))
        try:
            arrays = arrays_of(table, roles)
            id_ = keys(table[roles.id], roles.id) if roles.id else None
        except ValuesError as error:
            raise DataError(error.told(error.name, places.tolist())) from error
        if self._external is not None:
            arrays["x"] = self._external.rows(id_, start, len(table))
        columns = {name: scalars(table[name]) for name in self._beside()}
        columns |= {name: ordering(table[name], name) for name in self.also}
        if self.said.nan_policy == "omit":
            whole = _without_gaps([*arrays.values(), *(columns[name] for name in self.also)])
            self.dropped += int(len(whole) - whole.sum())
            arrays = {name: values[whole] for name, values in arrays.items()}
            columns = {name: values[whole] for name, values in columns.items()}
            id_, places = None if id_ is None else id_[whole], places[whole]
            if not whole.any():
                return None
        try:
            predictive, raised = predictive_of(roles, arrays, self.said.min_std)
            self.raised += raised
            return Predictions(
                y=arrays.get("y"),
                predictive=predictive,
                x=arrays.get("x"),
                embedded=roles.embedded,
                id=id_,
                id_name=roles.id or "id",
                row=places,
                columns=columns,
            )
        except ValuesError as error:
            raise DataError(error.told(self.called(error.name), places.tolist())) from error

    def explicit(self) -> list[str]:
        """Spell the options that say the same as what was found."""
        said = self.said
        told = self.roles.explicit(self.table.schema.names)
        told += ["--input-format", self.file.input_format] if self.file.input_format else []
        told += ["--embedding", said.embedding or ""] if self._external is not None else []
        told += ["--min-std", f"{said.min_std:g}"] if said.min_std is not None else []
        told += ["--nan-policy", said.nan_policy] if said.nan_policy != "raise" else []
        return told

    @contextmanager
    def named(self) -> Iterator[None]:
        with self._named(), self.placed():
            yield

    def called(self, role: str) -> str:
        """Name a role with its column."""
        column = self.roles.described().get(role, role)
        return role if column == role else f"{role} (column {column})"

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Tell errors about the data with the name of the file."""
        try:
            yield
        except FileError:
            raise
        except DataError as error:
            msg = f"{self.name}: {error}"
            raise FileError(msg) from error

    def _scale_hint(self, roles: Roles) -> str:
        """Say what columns of unclear scale make of the data, read as variances and as standard deviations."""
        hints = []
        for column in unclear_spreads(self.table.schema.names) if roles.target else ():
            try:
                read = FileSource(self.file, replace(self.said, var=column)).predictions()
            except DataError:
                continue
            if read.y is None or read.predictive is None:
                continue
            error, std = read.y - read.predictive.mean(), read.predictive.std()
            as_variance, as_std = (float(np.mean((error / spread) ** 2)) for spread in (std, std**2))
            hints.append(f"{column}: {as_variance:.3g} as a variance, {as_std:.3g} as a std")
        return f". Mean z², about 1 if right: {'; '.join(hints)}" if hints else ""


def inputs_elsewhere(name: str, source: FileSource, *, narrow: bool) -> FileSource:
    """Open the inputs of another file, to be compared with those of a source.

    Parameters
    ----------
    name : str
        ``FILE`` or ``FILE:COLUMN``.
    source : FileSource
        What was said of its inputs and keys holds here too.
    narrow : bool
        Whether the rows' other columns are read too.

    Raises
    ------
    FileError, OptionError
        There is no such file, or what was said contradicts it.
    """
    path, column = split_column(name)
    said = source.said
    if path == STDIN:
        msg = "--at reads a file, not standard input"
        raise OptionError(msg)
    if column and said.inputs:
        msg = f"--at {name} names a column, but --inputs says that the columns {said.inputs} are compared"
        raise OptionError(msg)
    file = File(path)
    names = open_table(file).schema.names
    if column is None and len(names) == 1:
        column = names[0]  # as in a .npy file
    elif column is None and source.roles.x:
        column = said.embedding
    columns = ColumnOptions(
        embedding=None if said.inputs else column,
        inputs=said.inputs,
        id=said.id if said.id in names else None,
        nan_policy=said.nan_policy,
    )
    return FileSource(file, columns, wanted="inputs", narrow=narrow)


def _without_gaps(parts: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """Tell which rows have every number, (n,)."""
    rows = [np.isfinite(values).reshape(len(values), -1).all(axis=1) for values in parts]
    whole: NDArray[Any] = np.logical_and.reduce(rows)
    return whole
