"""Locks of files, which end with the process that holds them: on a temporary file, and on a state that is continued."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from calcheck.errors import FileError

WAIT_SECONDS = 60.0  # for another process that continues the same state
PAUSE_SECONDS = 0.05
HELD = (errno.EAGAIN, errno.EACCES)


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed, and return True; False if another process holds it.

    None if the system or the file system has no locks.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in HELD else None
    return True


@contextmanager
def exclusive(path: str | None) -> Iterator[Callable[[], None]]:
    """Keep other processes from continuing a state until the block ends; wait for one that does.

    Yields a function that raises if the file changed all the same, as without locks: call it before the file is
    replaced. Without a path, or without a file, nothing is locked.
    """
    descriptor = None if path is None else _locked(path)
    before = None if path is None else _stamp(path)

    def require_unchanged() -> None:
        if path is not None and _stamp(path) != before:
            msg = f"{path} was changed by another process since this command read it. Run this command again"
            raise FileError(msg)

    try:
        yield require_unchanged
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked(path: str) -> int | None:
    """Return the descriptor of a locked file; None if there is no such file, or it cannot be locked."""
    end = time.monotonic() + WAIT_SECONDS
    while (descriptor := _opened(path)) is not None:
        locked = try_lock(descriptor)
        if locked and names_file(path, descriptor):
            return descriptor
        os.close(descriptor)  # of a file that another process has replaced in the meantime, or still uses
        if locked is None:
            break
        if time.monotonic() > end:
            msg = f"{path} is in use by another process for more than {WAIT_SECONDS:g} seconds. Run this command again"
            raise FileError(msg)
        time.sleep(0 if locked else PAUSE_SECONDS)
    return None


def _opened(path: str) -> int | None:
    """Return the descriptor of a regular file; network file systems lock only files that are open for writing."""
    for mode in (os.O_RDWR, os.O_RDONLY):
        try:
            return os.open(path, mode) if Path(path).is_file() else None
        except OSError:  # cannot be written
            continue
    return None


def names_file(path: str, descriptor: int) -> bool:
    """Return whether a path still names an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), Path(path).stat())
    except OSError:
        return False


def _stamp(path: str) -> tuple[int, ...] | None:
    """Return what changes whenever a file is replaced or written; None if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
