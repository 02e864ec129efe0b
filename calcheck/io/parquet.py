"""Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.io.files import File

BATCH_ROWS = 1 << 17


class ParquetTable:
    """A Parquet file; only the columns asked for are read."""

    def __init__(self, file: File) -> None:
        self._file = pq.ParquetFile(file.stream())
        self.schema = self._file.schema_arrow

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read some columns, in batches of rows."""
        for batch in self._file.iter_batches(BATCH_ROWS, columns=list(columns)):
            yield pa.Table.from_batches([batch])
