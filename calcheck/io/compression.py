"""Compressed files, and pipes."""

import io
import os
import stat
from typing import TYPE_CHECKING, BinaryIO, cast

from calcheck.errors import DataError, FileError
from calcheck.execution.run import available_memory

if TYPE_CHECKING:
    import bz2
    import lzma

COMPRESSED_CHUNK = 1 << 20  # Bytes read or decompressed at a time
CHUNK = 1 << 24  # Bytes read at a time
COPIES = 3  # Peak number of copies in memory


def compression_errors() -> tuple[type[Exception], ...]:
    """Return the errors of decompression."""
    import lzma
    import zlib

    return OSError, EOFError, ValueError, DataError, lzma.LZMAError, zlib.error


def decompressed(stream: BinaryIO, kind: str) -> BinaryIO:
    """Return a stream of all decompressed members and frames; bytes that are cut, or of other kinds, raise an error."""
    if kind == "gzip":
        import gzip

        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if kind == "zstd":
        import pyarrow as pa

        return cast("BinaryIO", pa.CompressedInputStream(pa.PythonFile(stream, "r"), "zstd"))
    return cast("BinaryIO", io.BufferedReader(_Streams(stream, kind), COMPRESSED_CHUNK))


class _Streams(io.RawIOBase):
    """The bytes of bz2 or xz streams in a row; modules bz2 and lzma ignore what follows the first, if it is damaged."""

    def __init__(self, stream: BinaryIO, kind: str) -> None:
        self._stream, self._kind = stream, kind
        self._decoder = self._new()
        self._left = b""

    def _new(self) -> "bz2.BZ2Decompressor | lzma.LZMADecompressor":
        if self._kind == "bz2":
            import bz2

            return bz2.BZ2Decompressor()
        import lzma

        return lzma.LZMADecompressor(lzma.FORMAT_XZ)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = b""
        while not data:
            if self._decoder.eof:
                self._left = self._decoder.unused_data or self._stream.read(COMPRESSED_CHUNK)
                if not self._left:
                    return 0
                self._decoder = self._new()
            elif self._decoder.needs_input:
                self._left = self._stream.read(COMPRESSED_CHUNK)
                if not self._left:
                    raise DataError("the compressed data are truncated")
            data = self._decoder.decompress(self._left, len(view))
            self._left = b""
        view[: len(data)] = data
        return len(data)


def read_pipe(name: str, stream: BinaryIO) -> bytes:
    """Return all bytes of a pipe."""
    if _is_device(stream) and stream.read(1):
        raise FileError(f"{name} is a device that never ends. Give a file")
    room = available_memory() // COPIES
    parts, size = [], 0
    while part := stream.read(CHUNK):
        parts.append(part)
        size += len(part)
        if size > room:
            raise FileError(f"{name} holds more than {room:,} bytes, the limit by free memory. Pass a file")
    return b"".join(parts)


def _is_device(stream: BinaryIO) -> bool:
    """Return whether a stream is a character device but no terminal, such as /dev/zero."""
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode) and not stream.isatty()
    except (OSError, ValueError):  # an in-memory stream
        return False
