"""Compressed files: decompressed in memory when they are read."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO, cast

from calcheck.errors import DataError

if TYPE_CHECKING:
    import bz2
    import lzma

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
MAGIC |= {b"BZh%d" % level + block: "bz2" for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")}
CHUNK = 1 << 20  # Bytes read or decompressed at a time


def compression_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the libraries that decompress."""
    import lzma
    import zlib

    return lzma.LZMAError, zlib.error


def decompressed(stream: BinaryIO, kind: str) -> BinaryIO:
    """Return a stream of decompressed bytes; members and frames in a row are all read.

    Reading raises an error if the bytes are truncated, or if others follow them.
    """
    if kind == "gzip":
        import gzip

        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    if kind == "zstd":
        import pyarrow as pa

        return cast("BinaryIO", pa.CompressedInputStream(pa.PythonFile(stream, "r"), "zstd"))
    return cast("BinaryIO", io.BufferedReader(_Streams(stream, kind), CHUNK))


class _Streams(io.RawIOBase):
    """The bytes of bz2 or xz streams in a row; modules bz2 and lzma ignore what follows the first, if it is damaged."""

    def __init__(self, stream: BinaryIO, kind: str) -> None:
        self._stream, self._kind = stream, kind
        self._decoder = self._new()
        self._left = b""

    def _new(self) -> bz2.BZ2Decompressor | lzma.LZMADecompressor:
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
                self._left = self._decoder.unused_data or self._stream.read(CHUNK)
                if not self._left:
                    return 0
                self._decoder = self._new()
            elif self._decoder.needs_input:
                self._left = self._stream.read(CHUNK)
                if not self._left:
                    msg = "the compressed data are truncated"
                    raise DataError(msg)
            data = self._decoder.decompress(self._left, len(view))
            self._left = b""
        view[: len(data)] = data
        return len(data)
