"""Pipes and standard input: read once, into memory."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from calcheck.errors import FileError
from calcheck.execution.machine import available_memory

if TYPE_CHECKING:
    from typing import BinaryIO

CHUNK = 1 << 24  # Bytes read at a time
COPIES = 3  # Peak number of copies in memory


def read_pipe(name: str, stream: BinaryIO) -> bytes:
    """Return all bytes of a pipe.

    Raises
    ------
    FileError
        The stream is endless or larger than the free memory.
    """
    if _is_device(stream) and stream.read(1):
        msg = f"{name} is a device that never ends. Give a file"
        raise FileError(msg)
    room = available_memory() // COPIES
    parts, size = [], 0
    while part := stream.read(CHUNK):
        parts.append(part)
        size += len(part)
        if size > room:
            msg = f"{name} holds more than {room:,} bytes, the limit by free memory. Pass a file"
            raise FileError(msg)
    return b"".join(parts)


def _is_device(stream: BinaryIO) -> bool:
    """Return whether a stream is a character device but no terminal, such as /dev/zero."""
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode) and not stream.isatty()
    except (OSError, ValueError):  # an in-memory stream
        return False
