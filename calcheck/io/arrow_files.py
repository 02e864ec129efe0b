"""Arrow and Feather files."""

import struct
from contextlib import suppress

import pyarrow as pa

from calcheck.errors import DataError
from calcheck.io.arrow_columns import MemoryTable
from calcheck.io.files import APPENDED, File

ARROW_MAGIC, FEATHER = b"ARROW1", b"FEA1"  # of Arrow IPC files and Feather files of version 2; of version 1
FEATHER_START = FEATHER + bytes(4)
TRAILER = 4 + len(ARROW_MAGIC)  # Bytes at the end of a file: length of the footer, and the magic number
CONTINUATION = b"\xff\xff\xff\xff"
IN_FOOTER, IN_MESSAGE = 1, 2  # Field index of the schema in a footer, and in a message
BLOCKS = 2, 3  # Field indices of the places of dictionaries and of batches in a footer
BLOCK = struct.Struct("<qi4xq")  # Offset, and lengths of the header and of the body
END_MARK = 8  # Bytes between the last batch and the footer
ENDIANNESS = 0  # Field index of the byte order in the schema


def arrow_table(file: File) -> MemoryTable:
    """Open a Feather file, or an Arrow IPC file or stream."""
    from pyarrow import feather

    if _is_big_endian(file):
        raise DataError("the file is in big-endian byte order. Save it as Parquet, or on another machine")
    if file.content_starts(ARROW_MAGIC):
        _require_whole(file)
    elif not file.content_starts(FEATHER):
        return MemoryTable(_streamed(file.content()))
    elif file.content().find(FEATHER_START, 1) > 0:
        raise DataError(APPENDED)
    return MemoryTable(feather.read_table(file.stream()))


def _streamed(content: bytes) -> pa.Table:
    """Return the rows of a stream, or of several streams with the same columns, one after the other."""
    source, tables = pa.BufferReader(content), list[pa.Table]()
    while source.tell() < len(content):
        stream = pa.ipc.open_stream(source)
        batches, before = [], source.tell()
        with suppress(StopIteration):
            while True:
                batches.append(stream.read_next_batch())
                before = source.tell()
        if source.tell() == before:
            msg = f"the stream is truncated: it ends after {sum(map(len, batches)):,} rows without an end mark"
            raise DataError(msg)
        tables.append(pa.Table.from_batches(batches, stream.schema))
        if not tables[-1].schema.equals(tables[0].schema):
            raise DataError("the file holds two Arrow streams that differ in their columns. Pass them as two files")
    return pa.concat_tables(tables)


def _require_whole(file: File) -> None:
    """Raise unless the batches of the footer reach up to it: the file was cut, or is one of several in a row."""
    with file.open() as stream:
        end = stream.seek(0, 2)
        stream.seek(max(0, end - TRAILER))
        trailer = stream.read()
    if trailer[-len(ARROW_MAGIC) :] != ARROW_MAGIC:
        msg = "the end of the file is missing, or other bytes follow it. Is it truncated, or were files appended?"
        raise DataError(msg)
    metadata, _ = _schema_buffer(file)
    ends = []
    try:
        footer = _reference(metadata, 0)
        for vector in filter(None, (_field(metadata, footer, place) for place in BLOCKS)):
            first = _reference(metadata, vector)
            (count,) = struct.unpack_from("<I", metadata, first)
            ends += [sum(BLOCK.unpack_from(metadata, first + 4 + BLOCK.size * place)) for place in range(count)]
    except struct.error:  # damaged; pyarrow refuses it
        return
    start = end - TRAILER - len(metadata)
    if ends and not 0 <= start - max(ends) <= END_MARK:
        raise DataError(APPENDED)


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
        if start.startswith(ARROW_MAGIC):
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
