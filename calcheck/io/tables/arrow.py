"""Feather and Arrow IPC files."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import feather

from calcheck.errors import DataError
from calcheck.io.tables.memory import MemoryTable

if TYPE_CHECKING:
    from calcheck.io.files import File

MAGIC = b"ARROW1"
TRAILER = 4 + len(MAGIC)  # Bytes at the end of a file: length of the footer, and the magic number
CONTINUATION = b"\xff\xff\xff\xff"
IN_FOOTER, IN_MESSAGE = 1, 2  # Field index of the schema in a footer, and in a message
ENDIANNESS = 0  # Field index of the byte order in the schema


def arrow_table(file: File) -> MemoryTable:
    """Open a Feather file, or an Arrow IPC file or stream.

    Raises
    ------
    DataError
        The file is in big-endian byte order; pyarrow hangs on text in such files.
    """
    if _is_big_endian(file):
        msg = "the file is in big-endian byte order. Save it as Parquet, or on another machine"
        raise DataError(msg)
    try:
        return MemoryTable(feather.read_table(file.stream()))
    except pa.ArrowInvalid:  # no footer: try as a stream
        return MemoryTable(pa.ipc.open_stream(pa.py_buffer(file.content())).read_all())


def _is_big_endian(file: File) -> bool:
    """Return whether the schema declares big-endian; False for damaged files, which pyarrow refuses later."""
    try:
        metadata, place = _schema_buffer(file)
        schema = _field(metadata, _reference(metadata, 0), place)
        order = None if schema is None else _field(metadata, _reference(metadata, schema), ENDIANNESS)
        return order is not None and struct.unpack_from("<h", metadata, order)[0] != 0
    except struct.error:
        return False


def _schema_buffer(file: File) -> tuple[bytes, int]:
    """Return the flatbuffer that holds the schema, and the field index of the schema."""
    with file.open() as stream:
        start = stream.read(8)
        if start.startswith(MAGIC):
            end = stream.seek(0, 2)
            stream.seek(max(0, end - TRAILER))
            (length,) = struct.unpack_from("<I", stream.read(4))
            stream.seek(max(0, end - TRAILER - length))
            return stream.read(length), IN_FOOTER
        (length,) = struct.unpack_from("<I", start, 4 if start.startswith(CONTINUATION) else 0)
        stream.seek(8 if start.startswith(CONTINUATION) else 4)
        return stream.read(length), IN_MESSAGE


def _reference(metadata: bytes, at: int) -> int:
    """Return the position that an offset in a flatbuffer refers to."""
    return at + int(struct.unpack_from("<I", metadata, at)[0])


def _field(metadata: bytes, table: int, place: int) -> int | None:
    """Return the position of a field of a flatbuffer table, None if it is absent."""
    offsets = table - struct.unpack_from("<i", metadata, table)[0]
    (size,) = struct.unpack_from("<H", metadata, offsets)
    at = 4 + 2 * place
    offset = struct.unpack_from("<H", metadata, offsets + at)[0] if at < size else 0
    return table + offset if offset else None
