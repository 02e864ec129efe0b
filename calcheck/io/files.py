"""Bytes to read: a path or standard input, what format they are in, and their fingerprint."""

from __future__ import annotations

import hashlib
import io
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from calcheck.errors import DataError, OptionError

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
    DataError
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
            raise DataError(msg)
        if not path.exists():
            msg = f"there is no file {self.name}"
            raise DataError(msg)
        if path.suffix.lower() in UNSAFE_SUFFIXES:
            msg = f"{self.name} is a pickle-based file, unsafe to load: it can run any code. Export to Parquet"
            raise DataError(msg)

    @cached_property
    def _spooled(self) -> bytes:
        return sys.stdin.buffer.read()

    def open(self) -> io.BytesIO | io.BufferedReader:
        """Open the bytes for reading, from the start.

        Raises
        ------
        DataError
            They cannot be read, or there are none.
        """
        try:
            spooled = self._spooled if self.name == STDIN else None
            stream = Path(self.name).open("rb") if spooled is None else io.BytesIO(spooled)  # noqa: SIM115 - the caller closes it
        except OSError as error:
            msg = f"{self.name} cannot be read: {error.strerror}"
            raise DataError(msg) from error
        if not stream.read(1):
            stream.close()
            msg = f"{'standard input' if self.name == STDIN else self.name} is empty"
            raise DataError(msg)
        stream.seek(0)
        return stream

    @property
    def format(self) -> str:
        """The format's name: as said, by the suffix, or by the first bytes.

        Raises
        ------
        OptionError
            None of them tells.
        DataError
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
        with self.open() as stream:
            start = stream.read(8)
        for magic, found in MAGIC.items():
            if start.startswith(magic):
                return found
        if start.startswith(PICKLE_MAGIC):
            msg = f"{self.name} is a pickle, unsafe to load: it can run any code. Export to Parquet"
            raise DataError(msg)
        known = ", ".join(SUFFIXES)
        msg = f"the format of {self.name} is unknown (known endings: {known}). Pass --input-format"
        raise OptionError(msg)

    def sha256(self) -> str:
        """Return the fingerprint of the bytes."""
        with self.open() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
