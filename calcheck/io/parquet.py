"""Parquet files: row groups, read in batches."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from calcheck.errors import DataError
from calcheck.io.arrow_columns import plain_schema
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
