"""Files that are written completely or not at all, and their locks, which end with the process that holds them."""

import errno
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from calcheck.errors import FileError, OptionError
from calcheck.io.files import STDIN

POINTWISE_SUFFIXES = (".parquet", ".csv")
NAME_LENGTH = 40  # characters of the target's name in that of its temporary file, whose length is limited
ABANDONED_SECONDS = 86_400.0  # age of an unlocked temporary file where there are no locks
WAIT_SECONDS = 60.0  # for another process that continues the same state
PAUSE_SECONDS = 0.05
HELD = (errno.EAGAIN, errno.EACCES)


@contextmanager
def atomic_path(path: str) -> Iterator[Path]:
    """Yield a temporary file that replaces ``path``, but no device, if the block succeeds; else delete it."""
    try:
        target = Path(path).resolve()
        special = Path(path).exists() and not Path(path).is_file()
        with _temporary_file(Path(tempfile.gettempdir()) if special else target.parent, target.name) as temporary:
            yield temporary
            if special:
                Path(path).write_bytes(temporary.read_bytes())
            else:
                os.umask(mask := os.umask(0))  # It cannot be read otherwise
                temporary.chmod(target.stat().st_mode if target.exists() else 0o666 & ~mask)
                temporary.replace(target)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from error


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
                    descriptor = os.open(entry.path, os.O_RDWR)
                    try:
                        locked, age = try_lock(descriptor), time.time() - os.fstat(descriptor).st_mtime
                        if locked or (locked is None and age > ABANDONED_SECONDS):
                            Path(entry.path).unlink(missing_ok=True)
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
            raise FileError(f"{path} cannot be written: {what}")
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
        raise OptionError(f"{path} must end in {' or '.join(POINTWISE_SUFFIXES)}, which selects the format")


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed; return False if another process holds it, None without locks."""
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
    """Keep other processes from continuing a state until the block ends; wait for one that does."""
    descriptor = None if path is None else _locked(path)
    before = None if path is None else _stamp(path)

    def require_unchanged() -> None:
        if path is not None and _stamp(path) != before:
            raise FileError(f"{path} was changed by another process since this command read it. Run this command again")

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
