"""Files become predictions, and results become files."""

# Readers are imported when a file is read: `calcheck --help` must start at once.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calcheck.io.source import FileSource

__all__ = ["read"]


def read(path: str, *, input_format: str | None = None, **columns: Any) -> FileSource:
    """Open a file of predictions, or several as one.

    Parameters
    ----------
    path : str
        The file, or many as one: a folder, or a pattern with ``*``, ``**``, ``?`` or ``[…]``; local, or in a store
        (``s3://``, ``gs://``). ``"-"`` for standard input.
    input_format : str, optional
        Its format, where the name does not tell.
    **columns
        Fields of :class:`calcheck.io.columns.options.ColumnOptions`: the columns behind the roles, where names do not
        tell.

    Returns
    -------
    FileSource
        A rereadable source of predictions; rows are read when they are needed.

    Raises
    ------
    DataError, OptionError
        The file is absent or unsafe to load, or options contradict each other.
    """
    from calcheck.io.columns.options import ColumnOptions
    from calcheck.io.paths import resolve
    from calcheck.io.source import FileSource

    return FileSource(resolve(str(path), input_format), ColumnOptions(**columns))
