"""Files of columns: Parquet, read in batches of row groups; Arrow and Feather."""

import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from calcheck.errors import DataError
from calcheck.io.arrow_columns import MemoryTable, plain_schema
from calcheck.io.files import APPENDED, File

WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 4}
"""Bytes per value of each physical type in memory; half precision becomes single precision."""
TEXT_WIDTH = 16  # Minimum bytes per text value: repeated values are stored once in the file
READ_BYTES = 1 << 16  # Read buffer per column, for local files larger than a batch
REMOTE_BYTES = 1 << 23  # Read buffer per column for object stores, where each request has a high latency
PARQUET_END = b"PARE", b"PAR1"  # Last bytes of a file with an encrypted footer, and of other files
FOOTER_SIGNATURE = 28  # Bytes of the signature after a plain footer with encrypted columns
SECOND_FILE = re.compile(PARQUET_END[1] + rb"\x15[\x00\x04\x06]\x15")  # A file, and the header of its first page, start
ENCRYPTED = "the file is encrypted, and calcheck has no keys. Decrypt it first"


class ParquetTable:
    """Table in a Parquet file; only the requested columns are read, in batches if they are large."""

    def __init__(self, file: File) -> None:
        self._file = file
        with file.open() as stream:
            stream.seek(max(0, stream.seek(0, 2) - 2 * len(PARQUET_END[0])))
            trailer = stream.read()
        footer = int.from_bytes(trailer[: -len(PARQUET_END[0])], "little")  # declared length
        if trailer.endswith(PARQUET_END[0]):
            raise DataError(ENCRYPTED)
        with _opened(file) as opened:  # closed again: there may be thousands of files
            self.metadata, self.schema = opened.metadata, plain_schema(opened.schema_arrow)
        if footer == self.metadata.serialized_size + FOOTER_SIGNATURE:
            raise DataError(ENCRYPTED)  # pyarrow crashes when it reads encrypted columns
        _require_one_parquet_file(file, self.metadata, footer)
        self.groups = list(range(self.metadata.num_row_groups) if file.groups is None else file.groups)

    @property
    def rows(self) -> int:
        return sum(self.metadata.row_group(group).num_rows for group in self.groups)

    def group(self, place: int) -> tuple[int, int]:
        """Return the rows and bytes of a row group."""
        found = self.metadata.row_group(place)
        return int(found.num_rows), int(found.total_byte_size)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        size, limits = self.nbytes(columns), self._file.limits
        if size <= limits.batch_bytes:
            yield _opened(self._file, metadata=self.metadata).read_row_groups(self.groups, columns=list(columns))
            return
        rows = max(limits.batch_rows, limits.batch_bytes * self.rows // size)
        buffer = REMOTE_BYTES if self._file.place else READ_BYTES
        opened = _opened(self._file, metadata=self.metadata, buffer_size=buffer, pre_buffer=False)
        for batch in opened.iter_batches(rows, row_groups=self.groups, columns=list(columns)):
            yield pa.Table.from_batches([batch])

    def nbytes(self, columns: Sequence[str]) -> int:
        metadata, wanted = self.metadata, set(columns)
        total = 0
        for place in range(metadata.num_columns):
            leaf = metadata.schema.column(place)
            parts = leaf.path.split(".")  # a column of lists is embedding.list.element; names may contain dots
            if any(".".join(parts[:count]) in wanted for count in range(1, len(parts) + 1)):
                chunks = [metadata.row_group(group).column(place) for group in self.groups]
                width = WIDTHS.get(leaf.physical_type, TEXT_WIDTH)
                written = 0 if leaf.physical_type in WIDTHS else sum(chunk.total_uncompressed_size for chunk in chunks)
                total += max(written, width * sum(chunk.num_values for chunk in chunks))
        return int(total)


def _opened(file: File, **reading: Any) -> Any:
    from pyarrow.parquet import ParquetFile  # imports ssl

    return ParquetFile(file.stream(), **reading)


def _require_one_parquet_file(file: File, metadata: Any, footer: int) -> None:
    """Raise if many bytes lie between the last column and the footer: the file is the last of several in a row."""
    last = metadata.num_row_groups - 1
    chunks = [metadata.row_group(last).column(place) for place in range(metadata.num_columns if last >= 0 else 0)]
    pages = [[chunk.data_page_offset, chunk.dictionary_page_offset] for chunk in chunks]  # a dictionary comes first
    starts = [min(place for place in places if place is not None) for places in pages]
    ends = [max(0, start) + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
    with file.open() as stream:
        between = stream.seek(0, 2) - 2 * len(PARQUET_END[1]) - footer - max(ends, default=len(PARQUET_END[1]))
        stream.seek(0)
        start = stream.read(len(PARQUET_END[1]))
        before = stream.read(between + FOOTER_SIGNATURE) if between > 0 else b""
    if start != PARQUET_END[1] or SECOND_FILE.search(before) or between < 0:
        raise DataError(APPENDED)


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
