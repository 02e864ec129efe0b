"""Files of a folder, an object store or standard input: names, formats, content."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from calcheck.errors import DataError, FileError, OptionError
from calcheck.execution.machine import available_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedIOBase


URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
RETRY_LIMITS = {"gs": "retry_limit_seconds=30", "gcs": "retry_limit_seconds=30"}
"""URI options that limit retries: the default waits 15 minutes for a store that does not answer."""
MAX_REASON = 200  # Maximum characters of a store's error message


def is_uri(name: str) -> bool:
    """Return whether a name is a URI and not a path.

    Examples
    --------
    >>> is_uri("s3://bucket/preds.parquet"), is_uri("preds.parquet:embedding")
    (True, False)
    """
    return URI.match(name) is not None


@dataclass(frozen=True)
class StoreObject:
    """A file or folder in an object store.

    Parameters
    ----------
    name : str
        The URI.
    filesystem : pyarrow.fs.FileSystem
        The file system.
    path : str
        The path in the file system.
    size_known : bool
        Whether a listing of the store returned it, so that it is known to be a file.
    """

    name: str
    filesystem: Any
    path: str
    size_known: bool = False

    def kind(self) -> Literal["file", "folder", "nothing"]:
        """Return what the URI names.

        Raises
        ------
        FileError
            The store does not answer, or denies access.
        """
        from pyarrow.fs import FileType

        if self.size_known:
            return "file"
        with _reached(self.name):
            found = self.filesystem.get_file_info(self.path).type
        return "file" if found == FileType.File else "folder" if found == FileType.Directory else "nothing"

    def open(self) -> BufferedIOBase:
        """Return the bytes as a stream; the caller closes it.

        Raises
        ------
        FileError
            The file cannot be read.
        """
        with _reached(self.name):
            stream: BufferedIOBase = self.filesystem.open_input_file(self.path)
        return stream

    def below(self) -> dict[str, StoreObject]:
        """Return all files below a folder, keyed by relative path.

        Raises
        ------
        FileError
            The store does not answer, or denies access.
        """
        from pyarrow.fs import FileSelector, FileType

        with _reached(self.name):
            found = self.filesystem.get_file_info(FileSelector(self.path, recursive=True))
        inside = {info.path[len(self.path) :].strip("/"): info.path for info in found if info.type == FileType.File}
        stem, question, query = self.name.partition("?")
        return {
            relative: StoreObject(
                f"{stem.rstrip('/')}/{relative}{question}{query}", self.filesystem, path, size_known=True
            )
            for relative, path in inside.items()
        }


def open_object(name: str) -> StoreObject:
    """Return the object that a URI names.

    Raises
    ------
    FileError
        The file system of the URI is unknown or cannot be reached.
    """
    from pyarrow.fs import FileSystem

    limit = RETRY_LIMITS.get(name.partition(":")[0].lower(), "")
    uri = name + ("&" if "?" in name else "?") + limit if limit and "retry_limit" not in name else name
    with _reached(name):
        filesystem, path = FileSystem.from_uri(uri)
    return StoreObject(name, filesystem, path)


@contextmanager
def _reached(name: str) -> Iterator[None]:
    """Convert errors of the file system to a FileError of one line."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, ValueError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = lines[0][:MAX_REASON]
        known = " (supported: s3://, gs://, file:// and paths)" if "Unrecognized filesystem" in reason else ""
        msg = f"{name} cannot be read: {reason}{known}"
        raise FileError(msg) from error


UNSAFE_SUFFIXES = frozenset({".pkl", ".pickle", ".pt", ".pth", ".joblib", ".dill"})
SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".safetensors": "safetensors",
    ".nc": "netcdf",
}
TEXT = ("csv", "tsv", "jsonl")
MAGIC = {
    b"PAR1": "parquet",
    b"PARE": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"\x89HDF\r\n\x1a\n": "netcdf",
}
FOREIGN_MAGIC = {
    b"\x80": "a pickle, unsafe to load: it can run any code. Export to Parquet",
    b"\x1f\x8b": "compressed by gzip. Decompress it first",
    b"\xff\xfe": "text in UTF-16. Save it as UTF-8",
    b"\xfe\xff": "text in UTF-16. Save it as UTF-8",
}
STDIN = "-"
MAX_MAGIC = 8  # Length of the longest magic number, in bytes
PIPE_CHUNK = 1 << 24  # Bytes read from a pipe at a time
COPIES = 3  # Peak number of copies of piped data in memory


@dataclass(frozen=True)
class File:
    """A file, or a pipe that is buffered in memory.

    Parameters
    ----------
    name : str
        The path as given, a URI, or ``"-"`` for standard input.
    input_format : str, optional
        The format, if the name does not imply it.
    groups : tuple of int, optional
        The row groups of a Parquet file to read; by default all.
    place : StoreObject, optional
        Its object in a store; by default found by the URI.

    Raises
    ------
    FileError
        There is no such file, or loading it could run code.
    """

    name: str
    input_format: str | None = None
    groups: tuple[int, ...] | None = None
    place: StoreObject | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.name == STDIN:
            return
        if is_uri(self.name) and self.place is None:
            object.__setattr__(self, "place", open_object(self.name))
        found = self.place.kind() if self.place else kind_of(self.name)
        if found == "folder":
            msg = f"{self.name} is a folder. Give a file"
            raise FileError(msg)
        if found == "nothing":
            msg = f"there is no file {self.name}"
            raise FileError(msg)
        if self._suffix in UNSAFE_SUFFIXES:
            msg = f"{self.name} is a pickle-based file, unsafe to load: it can run any code. Export to Parquet"
            raise FileError(msg)

    @property
    def display_name(self) -> str:
        """The name in messages."""
        return "standard input" if self.name == STDIN else self.name

    @property
    def count(self) -> int:
        """The number of files."""
        return 1

    @property
    def paths(self) -> tuple[str, ...]:
        """The names of the files."""
        return (self.name,)

    @property
    def _suffix(self) -> str:
        return suffix_of(self.name)

    @cached_property
    def buffered(self) -> bytes | None:
        """The bytes of a pipe, which can be read only once; None for a regular file."""
        if self.name == STDIN:
            if sys.stdin is None:
                msg = "standard input is closed"
                raise FileError(msg)
            return self._drained(sys.stdin.buffer)
        if self.place or Path(self.name).is_file():
            return None
        with Path(self.name).open("rb") as stream:
            return self._drained(stream)

    def _drained(self, stream: BinaryIO) -> bytes:
        """Read a pipe to its end; raise if it is endless or larger than memory."""
        if _is_device(stream) and stream.read(1):
            msg = f"{self.display_name} is a device that never ends. Give a file"
            raise FileError(msg)
        room = available_memory() // COPIES
        parts, size = [], 0
        while part := stream.read(PIPE_CHUNK):
            parts.append(part)
            size += len(part)
            if size > room:
                msg = f"{self.display_name} holds more than {room:,} bytes, the limit by free memory. Pass a file"
                raise FileError(msg)
        return b"".join(parts)

    def require_content(self) -> None:
        """Raise if the file is empty, unreadable or obviously of another format.

        Raises
        ------
        FileError
            The file is empty or unreadable, or its first bytes belong to another format.
        """
        start = self._start()
        if not start:
            msg = f"{self.display_name} is empty"
            raise FileError(msg)
        for magic, what in FOREIGN_MAGIC.items():
            if start.startswith(magic):
                msg = f"{self.display_name} is {what}"
                raise FileError(msg)
        found = _by_magic(start)
        if found and self.format in TEXT:
            msg = f"{self.display_name} is not a {self.format} file but {found}. Pass --input-format {found}"
            raise FileError(msg)

    def content(self) -> bytes:
        """Return all bytes."""
        with self.open() as stream:
            return stream.read()

    def open(self) -> io.BufferedIOBase:
        """Return the bytes as a stream; the caller closes it."""
        if self.buffered is not None:
            return io.BytesIO(self.buffered)
        return self.place.open() if self.place else Path(self.name).open("rb")

    def stream(self) -> str | io.BufferedIOBase:
        """Return the argument for library readers: the path, or a stream for pipes and object stores."""
        return self.open() if self.place or self.buffered is not None else self.name

    @property
    def format(self) -> str:
        """The name of the format: as given, by the extension, or by the first bytes.

        Raises
        ------
        OptionError
            The format cannot be determined.
        """
        if self.input_format:
            return self.input_format
        if self._suffix in SUFFIXES:
            return SUFFIXES[self._suffix]
        if self.name == STDIN:
            formats = "|".join(dict.fromkeys(SUFFIXES.values()))
            msg = f"the format of standard input is unknown. Pass --input-format {formats}"
            raise OptionError(msg)
        start = self._start()
        if (found := _by_magic(start)) is not None:
            return found
        if any(start.startswith(magic) for magic in FOREIGN_MAGIC):
            return "unknown"  # require_content raises the error
        known = ", ".join(SUFFIXES)
        msg = f"the format of {self.name} is unknown (known extensions: {known}). Pass --input-format"
        raise OptionError(msg)

    def sha256(self) -> str:
        """Return the SHA-256 hash of the bytes."""
        with self.open() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def content_starts(self, magic: bytes) -> bool:
        """Return whether the file starts with these bytes."""
        return self._start().startswith(magic)

    def _start(self) -> bytes:
        """Return the first bytes."""
        try:
            with self.open() as stream:
                return stream.read(MAX_MAGIC)
        except OSError as error:
            msg = f"{self.name} cannot be read: {error.strerror}"
            raise FileError(msg) from error


def _is_device(stream: BinaryIO) -> bool:
    """Return whether a stream is a character device but no terminal, such as /dev/zero."""
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode) and not stream.isatty()
    except (OSError, ValueError):  # an in-memory stream
        return False


def kind_of(name: str) -> Literal["file", "folder", "nothing"]:
    """Return what a path or URI names; whatever exists and is not a folder is a file.

    Raises
    ------
    FileError
        The path or URI cannot be read.
    """
    if is_uri(name):
        return open_object(name).kind()
    try:
        path = Path(name)
        return "folder" if path.is_dir() else "file" if path.exists() else "nothing"
    except (OSError, ValueError) as error:
        msg = f"{name} cannot be read: {getattr(error, 'strerror', None) or error}"
        raise FileError(msg) from error


def suffix_of(name: str) -> str:
    """Return the extension of a path or URI, in lower case.

    Examples
    --------
    >>> suffix_of("s3://bucket/preds.PARQUET?region=eu-west-1")
    '.parquet'
    """
    return Path(name.partition("?")[0] if is_uri(name) else name).suffix.lower()


@contextmanager
def file_named(name: str) -> Iterator[None]:
    """Add the file name to data errors."""
    try:
        yield
    except FileError:
        raise
    except DataError as error:
        msg = f"{name}: {error}"
        raise FileError(msg) from error


def _by_magic(start: bytes) -> str | None:
    """Return the format whose magic number the bytes start with."""
    return next((found for magic, found in MAGIC.items() if start.startswith(magic)), None)
