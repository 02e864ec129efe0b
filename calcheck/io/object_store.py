"""Files behind URIs: in object stores (s3://, gs://), on this machine (file://), and wherever else pyarrow reaches."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from calcheck.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedIOBase

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
PATIENCE = {"gs": "retry_limit_seconds=30", "gcs": "retry_limit_seconds=30"}
"""What keeps a store that does not answer from being asked for a quarter of an hour."""
LONGEST_REASON = 200  # letters of what a store says


def is_uri(name: str) -> bool:
    """Tell whether a name is a URI, not a path.

    Examples
    --------
    >>> is_uri("s3://bucket/preds.parquet"), is_uri("preds.parquet:embedding")
    (True, False)
    """
    return URI.match(name) is not None


@dataclass(frozen=True)
class StoreObject:
    """A place in a store.

    Parameters
    ----------
    name : str
        Its URI.
    filesystem : pyarrow.fs.FileSystem
        The store.
    path : str
        Where it is there.
    size_known : bool
        Whether the store itself has said that there is a file.
    """

    name: str
    filesystem: Any
    path: str
    size_known: bool = False

    def kind(self) -> Literal["file", "folder", "nothing"]:
        """Say what is there.

        Raises
        ------
        FileError
            The store does not answer, or denies it.
        """
        from pyarrow.fs import FileType

        if self.size_known:
            return "file"
        with _reached(self.name):
            found = self.filesystem.get_file_info(self.path).type
        return "file" if found == FileType.File else "folder" if found == FileType.Directory else "nothing"

    def open(self) -> BufferedIOBase:
        """Return the bytes as a stream, to be closed.

        Raises
        ------
        FileError
            They cannot be had.
        """
        with _reached(self.name):
            stream: BufferedIOBase = self.filesystem.open_input_file(self.path)
        return stream

    def below(self) -> dict[str, StoreObject]:
        """Return all files of a folder and of those in it, by their paths from here.

        Raises
        ------
        FileError
            The store does not answer, or denies it.
        """
        from pyarrow.fs import FileSelector, FileType

        with _reached(self.name):
            found = self.filesystem.get_file_info(FileSelector(self.path, recursive=True))
        inside = {each.path[len(self.path) :].strip("/"): each.path for each in found if each.type == FileType.File}
        stem, question, query = self.name.partition("?")
        return {
            relative: StoreObject(
                f"{stem.rstrip('/')}/{relative}{question}{query}", self.filesystem, path, size_known=True
            )
            for relative, path in inside.items()
        }


def open_object(name: str) -> StoreObject:
    """Find the store of a URI.

    Raises
    ------
    FileError
        There is no such store.
    """
    from pyarrow.fs import FileSystem

    patience = PATIENCE.get(name.partition(":")[0].lower(), "")
    patient = name + ("&" if "?" in name else "?") + patience if patience and "retry_limit" not in name else name
    with _reached(name):
        filesystem, path = FileSystem.from_uri(patient)
    return StoreObject(name, filesystem, path)


@contextmanager
def _reached(name: str) -> Iterator[None]:
    """Tell in a line what a store says."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException, ValueError) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        reason = lines[0][:LONGEST_REASON]
        known = " (s3://, gs://, file:// and paths are known)" if "Unrecognized filesystem" in reason else ""
        msg = f"{name} cannot be read: {reason}{known}"
        raise FileError(msg) from error
