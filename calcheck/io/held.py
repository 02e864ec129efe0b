"""Tables that are in memory as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

BATCH_ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class Held:
    """A table in memory; its batches are no copies."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.table.schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read some columns, in batches of rows."""
        table = self.table.select(list(columns))
        for start in range(0, max(len(table), 1), BATCH_ROWS):
            yield table.slice(start, BATCH_ROWS)
