"""Atomic writes: a result file is written completely or not at all."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from calcheck.errors import FileError, OptionError
from calcheck.io.files import STDIN
from calcheck.storage.file_lock import names_file, try_lock

POINTWISE_SUFFIXES = (".parquet", ".csv")
NAME_LENGTH = 40  # characters of the target's name in that of its temporary file, whose length is limited
ABANDONED_SECONDS = 86_400.0  # age of an unlocked temporary file where there are no locks


@contextmanager
def atomic_path(path: str) -> Iterator[Path]:
    """Yield a temporary file that replaces ``path`` if the block succeeds, and is deleted if it fails.

    Symbolic links are kept. Devices and pipes are written to, not replaced. Temporary files that killed runs left
    behind are deleted.
    """
    try:
        target = Path(path).resolve()
        special = Path(path).exists() and not Path(path).is_file()
        with _temporary_file(Path(tempfile.gettempdir()) if special else target.parent, target.name) as temporary:
            yield temporary
            if special:
                Path(path).write_bytes(temporary.read_bytes())
            else:
                temporary.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
                temporary.replace(target)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}"
        raise FileError(msg) from error


@contextmanager
def _temporary_file(folder: Path, name: str) -> Iterator[Path]:
    """Yield a new file, which is locked while it is written, and deleted in the end if it is still there."""
    prefix = f".calcheck.{name[:NAME_LENGTH]}."
    _delete_abandoned(folder, prefix)
    descriptor, temporary = _new_file(folder, prefix)
    try:
        yield temporary
    finally:
        if descriptor is not None:
            os.close(descriptor)
        temporary.unlink(missing_ok=True)


def _new_file(folder: Path, prefix: str) -> tuple[int | None, Path]:
    """Return the descriptor and the path of a new file that is locked; no descriptor if there are no locks."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=prefix)
        locked = try_lock(descriptor)
        if locked and names_file(name, descriptor):
            return descriptor, Path(name)
        os.close(descriptor)
        if locked is None:
            return None, Path(name)
        Path(name).unlink(missing_ok=True)  # another process took it for abandoned before it was locked


def _delete_abandoned(folder: Path, prefix: str) -> None:
    """Delete the temporary files that killed runs left behind: nobody locks them."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # of another user, or deleted by another process
                    _delete_if_abandoned(Path(entry.path))


def _delete_if_abandoned(temporary: Path) -> None:
    descriptor = os.open(temporary, os.O_RDWR)
    try:
        locked, age = try_lock(descriptor), time.time() - os.fstat(descriptor).st_mtime
        if locked or (locked is None and age > ABANDONED_SECONDS):
            temporary.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def write_text(path: str, text: str) -> None:
    """Write text to a file; an existing file is replaced on success only."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_bytes(path: str, content: bytes) -> None:
    """Write bytes to a file; an existing file is replaced on success only."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def append_text(path: str, text: str) -> None:
    """Append text to a file, completely or not at all."""
    target = Path(path)
    with atomic_path(path) as temporary:
        before = target.read_bytes() if target.is_file() else b""
        temporary.write_bytes(before + text.encode("utf-8", errors="backslashreplace"))


def require_writable(outputs: Sequence[str], inputs: Sequence[str]) -> None:
    """Raise, before the work starts, if an output is not writable, or would overwrite an input or another output."""
    names = {os.path.realpath(name): name for name in inputs if name != STDIN}
    for path in outputs:
        what = _obstacle(Path(path))
        if what:
            msg = f"{path} cannot be written: {what}"
            raise FileError(msg)
        if (other := names.get(os.path.realpath(path))) is not None:
            msg = f"{path} would overwrite {other}, which this command also reads or writes. Choose another name"
            raise FileError(msg)
        names[os.path.realpath(path)] = path


def _obstacle(path: Path) -> str:
    """Return why a file cannot be written, or ""."""
    try:
        if path.is_dir():
            return "it is a folder"
        path.exists()
    except OSError as error:
        return error.strerror or "its name is not valid"
    return "" if path.parent.is_dir() else "the folder does not exist"


def require_suffix(path: str) -> None:
    """Raise unless the suffix is a format of pointwise results."""
    if Path(path).suffix.lower() not in POINTWISE_SUFFIXES:
        msg = f"{path} must end in {' or '.join(POINTWISE_SUFFIXES)}, which selects the format"
        raise OptionError(msg)


def _umask() -> int:
    """Return the file mode creation mask of the process."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
