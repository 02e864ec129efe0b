"""Results to files, all or nothing."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calcheck.errors import DataError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

POINTWISE_SUFFIXES = (".parquet", ".csv")


@contextmanager
def replacing(path: str) -> Iterator[Path]:
    """Hand out a temporary file that replaces ``path`` if the block succeeds, and vanishes if it fails.

    Raises
    ------
    DataError
        The folder is not there, or not to be written to.
    """
    target = Path(path)
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(descriptor)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}"
        raise DataError(msg) from error
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}"
        raise DataError(msg) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str, text: str) -> None:
    """Write text, replacing what was there only on success."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def require_writable(path: str, *, suffixes: tuple[str, ...] = ()) -> None:
    """Raise, before the work starts, if a result could not be written.

    Raises
    ------
    OptionError
        The ending is not one of those that say how to write.
    DataError
        The folder is not there.
    """
    if suffixes and Path(path).suffix.lower() not in suffixes:
        msg = f"{path} must end in {' or '.join(suffixes)}, which says how it is written"
        raise OptionError(msg)
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        msg = f"{path} cannot be written: {'it is a folder' if Path(path).is_dir() else 'there is no such folder'}"
        raise DataError(msg)


def write_columns(path: str, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns (n,) as Parquet or CSV, by the path's ending."""
    import pyarrow as pa

    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    with replacing(path) as temporary:
        if Path(path).suffix.lower() == ".csv":
            from pyarrow import csv

            csv.write_csv(table, temporary)
        else:
            import pyarrow.parquet as pq

            pq.write_table(table, temporary)


def _umask() -> int:
    """Return the process's mask for new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
