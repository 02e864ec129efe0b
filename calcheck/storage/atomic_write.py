"""Results to files, all or nothing."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from calcheck.errors import FileError, OptionError
from calcheck.io.files import STDIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

POINTWISE_SUFFIXES = (".parquet", ".csv")


@contextmanager
def atomic_path(path: str) -> Iterator[Path]:
    """Hand out a temporary file that replaces ``path`` if the block succeeds, and vanishes if it fails.

    A link keeps pointing where it did; devices and pipes are written to, not replaced.

    Raises
    ------
    FileError
        The folder is not there, or not to be written to.
    """
    temporary = None
    try:
        target = Path(path).resolve()
        special = Path(path).exists() and not Path(path).is_file()
        descriptor, name = tempfile.mkstemp(dir=None if special else target.parent, prefix=f".{target.name[:40]}.")
        os.close(descriptor)
        temporary = Path(name)
        yield temporary
        if special:
            Path(path).write_bytes(temporary.read_bytes())
        else:
            temporary.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
            temporary.replace(target)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}"
        raise FileError(msg) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_text(path: str, text: str) -> None:
    """Write text, replacing what was there only on success."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_bytes(path: str, content: bytes) -> None:
    """Write bytes, replacing what was there only on success."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def append_text(path: str, text: str) -> None:
    """Write text below what is there, all of it or nothing."""
    target = Path(path)
    with atomic_path(path) as temporary:
        before = target.read_bytes() if target.is_file() else b""
        temporary.write_bytes(before + text.encode("utf-8", errors="backslashreplace"))


def require_writable(outputs: Sequence[str], inputs: Sequence[str]) -> None:
    """Raise, before the work starts, if a result could not be written, or would overwrite what is read or written.

    Raises
    ------
    FileError
        The folder is not there, or the file is an input or another output.
    """
    taken = {os.path.realpath(name): name for name in inputs if name != STDIN}
    for path in outputs:
        what = _obstacle(Path(path))
        if what:
            msg = f"{path} cannot be written: {what}"
            raise FileError(msg)
        if (other := taken.get(os.path.realpath(path))) is not None:
            msg = f"{path} would overwrite {other}, which this command reads or writes too. Give another name"
            raise FileError(msg)
        taken[os.path.realpath(path)] = path


def _obstacle(path: Path) -> str:
    """Say what stands in the way of writing a file; nothing if nothing is seen."""
    try:
        if path.is_dir():
            return "it is a folder"
        path.exists()
    except OSError as error:
        return error.strerror or "its name is no name"
    return "" if path.parent.is_dir() else "there is no such folder"


def require_suffix(path: str) -> None:
    """Raise unless the ending says how pointwise results are written.

    Raises
    ------
    OptionError
        It does not.
    """
    if Path(path).suffix.lower() not in POINTWISE_SUFFIXES:
        msg = f"{path} must end in {' or '.join(POINTWISE_SUFFIXES)}, which says how it is written"
        raise OptionError(msg)


def _umask() -> int:
    """Return the process's mask for new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
