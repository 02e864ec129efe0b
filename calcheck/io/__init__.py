"""Reading of prediction files."""

# Readers are imported lazily, so that `calcheck --help` starts quickly.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calcheck.io.source import FileSource

__all__ = ["read"]


def read(path: str, *, input_format: str | None = None, **columns: Any) -> FileSource:
    """Open a file of predictions, or several files as one.

    Parameters
    ----------
    path : str
        A file, a folder, or a pattern with ``*``, ``**``, ``?`` or ``[…]``; local, or in an object store (``s3://``,
        ``gs://``). ``"-"`` for standard input.
    input_format : str, optional
        The file format, if the file name does not imply it.
    **columns
        Fields of :class:`calcheck.io.columns.options.ColumnOptions`: the column of each role, where it cannot be
        inferred from the column names.

    Returns
    -------
    FileSource
        A source of predictions that can be read repeatedly; rows are read when they are needed.

    Raises
    ------
    DataError, OptionError
        The file does not exist or is unsafe to load, or the options contradict each other.
    """
    from calcheck.io.columns.options import ColumnOptions
    from calcheck.io.files import resolve
    from calcheck.io.source import FileSource

    return FileSource(resolve(str(path), input_format), ColumnOptions(**columns))
