"""JSON lines: one record a line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import json

from calcheck.errors import DataError
from calcheck.io.tables.memory import MemoryTable

if TYPE_CHECKING:
    from calcheck.io.files import File

LARGEST_BLOCK = (1 << 31) - 1
DEEPEST = 32  # objects and lists in each other; pyarrow ends the process where there are thousands
ESCAPE, STRING = re.compile(rb"\\.", re.DOTALL), re.compile(rb'"[^"]*"')
BRACKETS, NO_STRUCTURE = b"[]{}", bytes(set(range(256)) - set(b'[]{}"'))
STEPS = np.zeros(256, np.int8)
STEPS[list(BRACKETS)] = 1, -1, 1, -1
PIECE = 1 << 22  # brackets that are counted at a time


def json_lines_table(file: File) -> MemoryTable:
    """Open a file of JSON records; a record's members are columns.

    Raises
    ------
    DataError
        Records are nested deeper than any table is.
    """
    content = file.content()
    if (found := depth(content)) > DEEPEST:
        msg = f"{found:,} objects and lists are nested in each other, at most {DEEPEST} are read. Write flat records"
        raise DataError(msg)
    read = json.ReadOptions(use_threads=False, block_size=min(len(content) + 1, LARGEST_BLOCK))
    return MemoryTable(json.read_json(pa.BufferReader(content), read))


def depth(content: bytes) -> int:
    r"""Return how many objects and lists are nested in each other in JSON, whatever is written in its texts.

    Where brackets are not in pairs, those that are open at once count.

    Examples
    --------
    >>> depth(b'{"a": [1, {"b": "[[[["}], "c\\"[": 2}'), depth(b"]]][[{")
    (3, 3)
    """
    bare = STRING.sub(b"", ESCAPE.sub(b"", content).translate(None, NO_STRUCTURE))
    deepest = level = 0
    for start in range(0, len(bare), PIECE):
        steps = STEPS[np.frombuffer(bare[start : start + PIECE], np.uint8)]
        levels = np.concatenate([[level], steps]).cumsum(dtype=np.int64)
        levels -= np.minimum(np.minimum.accumulate(levels), 0)
        deepest, level = max(deepest, int(levels.max())), int(levels[-1])
    return deepest
