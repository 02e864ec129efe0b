"""Feather and Arrow IPC files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import feather

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.io.files import File


class ArrowTable:
    """A Feather file, or an Arrow IPC file or stream."""

    def __init__(self, file: File) -> None:
        try:
            self._table = feather.read_table(file.stream())
        except pa.ArrowInvalid:  # not a file with a footer: perhaps a stream
            self._table = pa.ipc.open_stream(pa.py_buffer(file.content())).read_all()
        self.schema = self._table.schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Read some columns, in one batch."""
        yield self._table.select(list(columns))
