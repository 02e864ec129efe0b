"""Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from calcheck.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.io.files import File

BATCH_BYTES = 1 << 25  # of a batch: 32 MiB
LEAST_ROWS = 1 << 6
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 4}
"""Bytes of a number of each physical type; numbers of half precision become single ones."""
TEXT_WIDTH = 16  # of a text that comes again and again, and is written once
READ_BYTES = 1 << 16  # of a column at a time, where it is too large to be read as a whole
REMOTE_BYTES = 1 << 23  # the same of a store, which answers each question after a while
END = b"PARE", b"PAR1"  # the last bytes: of a file with an encrypted footer, and of others
SIGNATURE = 28  # bytes behind a footer that can be read while columns cannot
ENCRYPTED = "it is encrypted, and calcheck has no keys. Decrypt it first"


class ParquetTable:
    """A Parquet file; only the columns asked for are read, and of large ones only a part at a time.

    Raises
    ------
    DataError
        It is encrypted.
    """

    def __init__(self, file: File) -> None:
        self._file = file
        footer, magic = _ending(file)
        if magic == END[0]:
            raise DataError(ENCRYPTED)
        with pq.ParquetFile(file.stream()) as opened:  # no handle is kept: there may be thousands of files
            self.metadata, self.schema = opened.metadata, opened.schema_arrow
        if footer == self.metadata.serialized_size + SIGNATURE:
            raise DataError(ENCRYPTED)  # before a look at its columns, which would end the process
        self.groups = list(range(self.metadata.num_row_groups) if file.groups is None else file.groups)

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(self.metadata.row_group(group).num_rows for group in self.groups)

    def group(self, place: int) -> tuple[int, int]:
        """Return how many rows a row group has, and how many bytes."""
        found = self.metadata.row_group(place)
        return int(found.num_rows), int(found.total_byte_size)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read some columns, in batches of rows."""
        size = self.nbytes(columns)
        if size <= BATCH_BYTES:
            yield self._opened().read_row_groups(self.groups, columns=list(columns))
            return
        rows = max(LEAST_ROWS, BATCH_BYTES * self.rows // size)
        opened = self._opened(buffer_size=REMOTE_BYTES if self._file.place else READ_BYTES, pre_buffer=False)
        for batch in opened.iter_batches(rows, row_groups=self.groups, columns=list(columns)):
            yield pa.Table.from_batches([batch])

    def nbytes(self, columns: Sequence[str]) -> int:
        """Return about how many bytes some columns take; the file's metadata tell, without a look at the rows."""
        metadata, wanted = self.metadata, set(columns)
        total = 0
        for place in range(metadata.num_columns):
            leaf = metadata.schema.column(place)
            parts = leaf.path.split(".")  # a column of lists is embedding.list.element; names may have points too
            if any(".".join(parts[:count]) in wanted for count in range(1, len(parts) + 1)):
                chunks = [metadata.row_group(group).column(place) for group in self.groups]
                width = WIDTHS.get(leaf.physical_type, TEXT_WIDTH)
                written = 0 if leaf.physical_type in WIDTHS else sum(chunk.total_uncompressed_size for chunk in chunks)
                total += max(written, width * sum(chunk.num_values for chunk in chunks))
        return int(total)

    def _opened(self, **reading: Any) -> pq.ParquetFile:
        return pq.ParquetFile(self._file.stream(), metadata=self.metadata, **reading)


def _ending(file: File) -> tuple[int, bytes]:
    """Return how long the footer is said to be, and the last bytes."""
    with file.open() as stream:
        stream.seek(max(0, stream.seek(0, 2) - 2 * len(END[0])))
        told = stream.read()
    return int.from_bytes(told[: -len(END[0])], "little"), told[-len(END[0]) :]
