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
        size = max(1, self._row_bytes(columns))
        if size * self._whole.metadata.num_rows <= BATCH_BYTES:
            yield self._whole.read(columns=list(columns))
            return
        batch_rows = max(LEAST_ROWS, BATCH_BYTES // size)
        for batch in self._opened(buffer_size=READ_BYTES, pre_buffer=False).iter_batches(
            batch_rows, columns=list(columns)
        ):
            yield pa.Table.from_batches([batch])

    def _opened(self, **reading: Any) -> pq.ParquetFile:
        return pq.ParquetFile(self._file.stream(), **reading)

    def _row_bytes(self, columns: Sequence[str]) -> int:
        """Return about how many bytes a row of some columns has: by their types, or where these do not tell, all."""
        metadata = self._whole.metadata
        widths = [_width(self.schema.field(name).type) for name in columns]
        if None not in widths:
            return sum(width or 0 for width in widths)
        total = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
        return int(total // max(metadata.num_rows, 1))


def _width(kind: pa.DataType) -> int | None:
    """Return how many bytes a value of a type has; None if that depends on the value."""
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    if pa.types.is_fixed_size_list(kind):
        inner = _width(kind.value_type)
        return None if inner is None else inner * kind.list_size
    return int(kind.bit_width + 7) // 8 if pa.types.is_primitive(kind) else None
