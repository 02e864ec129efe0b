"""JSON lines: one record a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import json

from calcheck.io.held import Held

if TYPE_CHECKING:
    from calcheck.io.files import File

LARGEST_BLOCK = (1 << 31) - 1


def json_lines_table(file: File) -> Held:
    """Open a file of JSON records; a record's members are columns."""
    content = file.content()
    read = json.ReadOptions(use_threads=False, block_size=min(len(content) + 1, LARGEST_BLOCK))
    return Held(json.read_json(pa.BufferReader(content), read))
