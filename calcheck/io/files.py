"""Bytes to read: a path or standard input, what format they are in, and their fingerprint."""

from __future__ import annotations

import hashlib
import io
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from calcheck.errors import FileError, OptionError

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
}
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"FEA1": "arrow", b"\x93NUMPY": "npy", b"PK\x03\x04": "npz"}
PICKLE_MAGIC = b"\x80"
STDIN = "-"


@dataclass(frozen=True)
class File:
    """A file, or standard input spooled to memory.

    Parameters
    ----------
    name : str
        The path as given, or ``"-"``.
    input_format : str, optional
        The format, where the name does not tell.

    Raises
    ------
    FileError
        There is no such file, it is empty, or it may run code when loaded.
    """

    name: str
    input_format: str | None = None

    def __post_init__(self) -> None:
        if self.name == STDIN:
            return
        path = Path(self.name)
        if path.is_dir():
            msg = f"{self.name} is a folder. Give a file"
            raise FileError(msg)
        if not path.exists():
            msg = f"there is no file {self.name}"
            raise FileError(msg)
        if path.suffix.lower() in UNSAFE_SUFFIXES:
            msg = f"{self.name} is a pickle-based file, unsafe to load: it can run any code. Export to Parquet"
            raise FileError(msg)

    @property
    def spoken(self) -> str:
        """How messages call the file."""
        return "standard input" if self.name == STDIN else self.name

    @cached_property
    def spooled(self) -> bytes | None:
        """The bytes of standard input; None for a file."""
        return sys.stdin.buffer.read() if self.name == STDIN else None

    def require_content(self) -> None:
        """Raise unless there are bytes to read.

        Raises
        ------
        FileError
            They cannot be read, or there are none.
        """
        if not self._start(1):
            msg = f"{self.spoken} is empty"
            raise FileError(msg)

    def content(self) -> bytes:
        """Return all bytes."""
        if self.spooled is not None:
            return self.spooled
        with Path(self.name).open("rb") as stream:
            return stream.read()

    def stream(self) -> str | io.BytesIO:
        """Return what a library opens: the path, or the bytes of standard input."""
        return self.name if self.spooled is None else io.BytesIO(self.spooled)

    def _start(self, size: int) -> bytes:
        """Return the first bytes."""
        if self.spooled is not None:
            return self.spooled[:size]
        try:
            with Path(self.name).open("rb") as stream:
                return stream.read(size)
        except OSError as error:
            msg = f"{self.name} cannot be read: {error.strerror}"
            raise FileError(msg) from error

    @property
    def format(self) -> str:
        """The format's name: as said, by the suffix, or by the first bytes.

        Raises
        ------
        OptionError
            None of them tells.
        FileError
            The bytes are a pickle.
        """
        if self.input_format:
            return self.input_format
        if self.name == STDIN:
            formats = "|".join(dict.fromkeys(SUFFIXES.values()))
            msg = f"standard input has no name that tells its format. Pass --input-format {formats}"
            raise OptionError(msg)
        suffix = Path(self.name).suffix.lower()
        if suffix in SUFFIXES:
            return SUFFIXES[suffix]
        start = self._start(8)
        for magic, found in MAGIC.items():
            if start.startswith(magic):
                return found
        if start.startswith(PICKLE_MAGIC):
            msg = f"{self.name} is a pickle, unsafe to load: it can run any code. Export to Parquet"
            raise FileError(msg)
        known = ", ".join(SUFFIXES)
        msg = f"the format of {self.name} is unknown (known endings: {known}). Pass --input-format"
        raise OptionError(msg)

    def sha256(self) -> str:
        """Return the fingerprint of the bytes."""
        if self.spooled is not None:
            return hashlib.sha256(self.spooled).hexdigest()
        with Path(self.name).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
