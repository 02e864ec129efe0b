"""Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.io.files import File

BATCH_BYTES = 1 << 25  # of a batch: 32 MiB
LEAST_ROWS = 1 << 10
READ_BYTES = 1 << 16  # of a column at a time, where it is too large to be read as a whole


class ParquetTable:
    """A Parquet file; only the columns asked for are read, and of large ones only a part at a time."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._whole = self._opened()
        self.schema = self._whole.schema_arrow

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read some columns, in batches of rows."""
        metadata = self._whole.metadata
        size, rows = _bytes_of(metadata, set(columns)), metadata.num_rows
        if size <= BATCH_BYTES:
            yield self._whole.read(columns=list(columns))
            return
        batch_rows = max(LEAST_ROWS, BATCH_BYTES * rows // size)
        for batch in self._opened(buffer_size=READ_BYTES, pre_buffer=False).iter_batches(
            batch_rows, columns=list(columns)
        ):
            yield pa.Table.from_batches([batch])

    def _opened(self, **reading: Any) -> pq.ParquetFile:
        return pq.ParquetFile(self._file.stream(), **reading)


def _bytes_of(metadata: pq.FileMetaData, columns: set[str]) -> int:
    """Return how many bytes some columns have when they are decompressed."""
    total = 0
    for group in range(metadata.num_row_groups):
        chunks = metadata.row_group(group)
        for place in range(chunks.num_columns):
            chunk = chunks.column(place)
            if chunk.path_in_schema.split(".")[0] in columns or chunk.path_in_schema in columns:
                total += chunk.total_uncompressed_size
    return total
