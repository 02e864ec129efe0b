"""Inputs, or predictions, of another file, at which metrics are evaluated."""

from __future__ import annotations

from dataclasses import replace

from calcheck.errors import OptionError
from calcheck.io.columns.options import ColumnOptions
from calcheck.io.files import STDIN
from calcheck.io.join import names_a_file, split_column
from calcheck.io.paths import resolve
from calcheck.io.source import FileSource
from calcheck.io.tables.concat import open_table


def read_inputs(name: str, source: FileSource, *, narrow: bool) -> FileSource:
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
    said = source.options
    path, column = _place(name, said)
    file = resolve(path)
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


def read_evaluation_points(name: str, source: FileSource, *, also: tuple[str, ...]) -> FileSource:
    """Open the predictions of another file, with their targets and inputs, which has the same columns as a source.

    Parameters
    ----------
    name : str
        ``FILE`` or ``FILE:COLUMN``, a column of embeddings.
    source : FileSource
        What was said of its columns holds here too.
    also : tuple of str
        Columns without a role that are read too.

    Raises
    ------
    FileError, OptionError
        There is no such file, or what was said contradicts it.
    """
    said = source.options
    path, column = _place(name, said)
    if said.truth is not None:
        msg = "--truth has the targets of FILE, and --at needs its own: join them first, with calcheck convert"
        raise OptionError(msg)
    beside = said.embedding and said.embedding not in source.table.schema.names and names_a_file(said.embedding)
    if beside and column is None and source.inputs:
        msg = f"--embedding {said.embedding} is that of FILE: name the column that --at has, as in --at {path}:COLUMN"
        raise OptionError(msg)
    columns = replace(said, embedding=column) if column or beside else said
    return FileSource(resolve(path), columns, also=also, inputs=source.inputs)


def _place(name: str, said: ColumnOptions) -> tuple[str, str | None]:
    """Take ``FILE[:COLUMN]`` apart.

    Raises
    ------
    OptionError
        It is standard input, or a column that contradicts what was said.
    """
    path, column = split_column(name)
    if path == STDIN:
        msg = "--at reads a file, not standard input"
        raise OptionError(msg)
    if column and said.inputs:
        msg = f"--at {name} names a column, but --inputs says that the columns {said.inputs} are compared"
        raise OptionError(msg)
    return path, column
