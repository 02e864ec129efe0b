"""JSON lines files: one record per line."""

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

MAX_BLOCK = (1 << 31) - 1  # Maximum block size of pyarrow, in bytes
MAX_DEPTH = 32  # Maximum nesting depth; pyarrow crashes at depths of thousands
ESCAPE, STRING = re.compile(rb"\\.", re.DOTALL), re.compile(rb'"[^"]*"')
BRACKETS, NO_STRUCTURE = b"[]{}", bytes(set(range(256)) - set(b'[]{}"'))
STEPS = np.zeros(256, np.int8)
STEPS[list(BRACKETS)] = 1, -1, 1, -1
CHUNK = 1 << 22  # Brackets processed at a time


def json_lines_table(file: File) -> MemoryTable:
    """Open a file of JSON records; their members are the columns.

    Raises
    ------
    DataError
        Records are nested too deeply.
    """
    content = file.content()
    if (found := depth(content)) > MAX_DEPTH:
        msg = (
            f"objects and lists are nested {found:,} levels deep, at most {MAX_DEPTH} are supported. Write flat records"
        )
        raise DataError(msg)
    read = json.ReadOptions(use_threads=False, block_size=min(len(content) + 1, MAX_BLOCK))
    return MemoryTable(json.read_json(pa.BufferReader(content), read))


def depth(content: bytes) -> int:
    r"""Return the nesting depth of objects and lists in JSON, ignoring brackets in strings.

    For unbalanced brackets, this is the largest number of open ones.

    Examples
    --------
    >>> depth(b'{"a": [1, {"b": "[[[["}], "c\\"[": 2}'), depth(b"]]][[{")
    (3, 3)
    """
    bare = STRING.sub(b"", ESCAPE.sub(b"", content).translate(None, NO_STRUCTURE))
    deepest = level = 0
    for start in range(0, len(bare), CHUNK):
        steps = STEPS[np.frombuffer(bare[start : start + CHUNK], np.uint8)]
        levels = np.concatenate([[level], steps]).cumsum(dtype=np.int64)
        levels -= np.minimum(np.minimum.accumulate(levels), 0)
        deepest, level = max(deepest, int(levels.max())), int(levels[-1])
    return deepest
