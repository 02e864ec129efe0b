"""Files and folders in an object store."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from calcheck.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedIOBase

RETRY_LIMITS = {"gs": "retry_limit_seconds=30", "gcs": "retry_limit_seconds=30"}
"""URI options that limit retries: the default waits 15 minutes for a store that does not answer."""
MAX_REASON = 200  # Maximum characters of a store's error message


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
