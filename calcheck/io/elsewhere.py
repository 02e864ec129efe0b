"""Inputs of another file, at which metrics are evaluated."""

from __future__ import annotations

from calcheck.errors import OptionError
from calcheck.io.beside import split_column
from calcheck.io.column_options import ColumnOptions
from calcheck.io.files import STDIN, File
from calcheck.io.source import FileSource
from calcheck.io.tables import open_table


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
