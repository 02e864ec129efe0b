"""Files in object stores."""

import math
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from io import BufferedIOBase
from queue import Empty, SimpleQueue
from typing import Any, Literal, TypeVar

from calcheck.errors import FileError
from calcheck.options import require_positive_option

AnswerT = TypeVar("AnswerT")

TIMEOUT_SECONDS = 30.0
TIMEOUT: ContextVar[float] = ContextVar("TIMEOUT", default=TIMEOUT_SECONDS)
"""Seconds to wait for each answer of a store that is named from now on."""
RETRY_LIMIT = "retry_limit_seconds"
"""URI option of gs:// that limits retries: the default waits 15 minutes for a store that does not answer."""
WAITING = "calcheck waits for an object store"
"""Name of the threads that wait, for which pyarrow would also wait when the program ends."""
MAX_REASON = 200  # Maximum characters of a store's error message


@dataclass(frozen=True)
class StoreObject:
    """A file or folder in an object store."""

    name: str  # The URI
    filesystem: Any  # The file system
    path: str  # The path in the file system
    size_known: bool = False  # Whether a listing of the store returned it, so that it is known to be a file
    timeout: float = field(default_factory=TIMEOUT.get)  # Seconds to wait for each answer of the store

    def kind(self) -> Literal["file", "folder", "nothing"]:
        """Return what the URI names."""
        from pyarrow.fs import FileType

        if self.size_known:
            return "file"
        found = _answer(self.name, self.timeout, lambda: self.filesystem.get_file_info(self.path)).type
        return "file" if found == FileType.File else "folder" if found == FileType.Directory else "nothing"

    def open(self) -> BufferedIOBase:
        """Return the bytes as a stream; the caller closes it."""
        stream: BufferedIOBase = _answer(self.name, self.timeout, lambda: self.filesystem.open_input_file(self.path))
        return stream

    def below(self) -> "dict[str, StoreObject]":
        """Return all files below a folder, keyed by relative path."""
        from pyarrow.fs import FileSelector, FileType

        found = _answer(
            self.name, self.timeout, lambda: self.filesystem.get_file_info(FileSelector(self.path, recursive=True))
        )
        inside = {info.path[len(self.path) :].strip("/"): info.path for info in found if info.type == FileType.File}
        stem, question, query = self.name.partition("?")
        return {
            relative: replace(self, name=f"{stem.rstrip('/')}/{relative}{question}{query}", path=path, size_known=True)
            for relative, path in inside.items()
        }


def limit_waiting(seconds: float | None) -> None:
    """Set the seconds to wait for each answer of a store that is named from now on; None sets the default."""
    require_positive_option("timeout", seconds)
    TIMEOUT.set(TIMEOUT_SECONDS if seconds is None else seconds)


def open_object(name: str) -> StoreObject:
    """Return the object that a URI names."""
    from pyarrow.fs import FileSystem

    timeout, scheme = TIMEOUT.get(), name.partition(":")[0].lower()
    uri = name
    if scheme in ("gs", "gcs") and RETRY_LIMIT not in name:
        uri += f"{'&' if '?' in name else '?'}{RETRY_LIMIT}={math.ceil(timeout)}"
    filesystem, path = _answer(name, timeout, lambda: FileSystem.from_uri(uri))
    return StoreObject(name, filesystem, path, timeout=timeout)


def _answer(name: str, timeout: float, ask: Callable[[], AnswerT]) -> AnswerT:
    """Return the answer of a store, asked by a thread: signals end the program though the store may never answer."""
    import pyarrow as pa

    answers: SimpleQueue[AnswerT | BaseException] = SimpleQueue()

    def put_answer() -> None:
        try:
            answers.put(ask())
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            answers.put(error)

    threading.Thread(target=put_answer, name=WAITING, daemon=True).start()
    try:
        found = answers.get(timeout=timeout)
    except Empty:
        msg = f"{name} cannot be read: no answer within {timeout:g} seconds. Pass a longer --timeout if it is only slow"
        raise FileError(msg) from None
    if isinstance(found, (OSError, pa.ArrowException, ValueError)):
        lines = str(found).strip().splitlines() or [type(found).__name__]
        reason = lines[0][:MAX_REASON]
        known = " (supported: s3://, gs://, file:// and paths)" if "Unrecognized filesystem" in reason else ""
        raise FileError(f"{name} cannot be read: {reason}{known}") from found
    if isinstance(found, BaseException):
        raise found
    return found
