"""Tables in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calcheck.io.arrow_arrays import plain_schema

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 17  # Maximum rows per batch
BATCH_BYTES = 1 << 26  # Maximum bytes per batch


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """A table in memory; its batches are views without a copy."""

    table: pa.Table
    notes: tuple[str, ...] = ()  # Messages about its columns

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return plain_schema(self.table.schema)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.table)

    def nbytes(self, columns: Sequence[str]) -> int:
        """Return the approximate bytes of some columns as arrays."""
        return int(self.table.select(list(columns)).nbytes)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield batches of rows of some columns."""
        table = self.table.select(list(columns))
        rows = max(1, min(BATCH_ROWS, BATCH_BYTES * len(table) // max(1, table.nbytes)))
        for start in range(0, max(len(table), 1), rows):
            yield table.slice(start, rows)
