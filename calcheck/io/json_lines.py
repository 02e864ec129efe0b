"""Files of JSON records, one per line or in an array."""

import json as standard_json
import re
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import json

from calcheck.errors import DataError
from calcheck.io.arrow_columns import MAX_BLOCK, MemoryTable
from calcheck.io.files import File

MAX_DEPTH = 32  # Maximum nesting depth; pyarrow crashes at depths of thousands
ESCAPE, STRING = re.compile(rb"\\.", re.DOTALL), re.compile(rb'"[^"]*"')
BRACKETS, NO_STRUCTURE = b"[]{}", bytes(set(range(256)) - set(b'[]{}"'))
STEPS = np.zeros(256, np.int8)
STEPS[list(BRACKETS)] = 1, -1, 1, -1
BOM, SPACES = b"\xef\xbb\xbf", 1 << 10  # Byte order mark; bytes searched for the start of an array
CHUNK = 1 << 22  # Brackets processed at a time


def json_lines_table(file: File) -> MemoryTable:
    """Open a file of JSON records, one per line or in an array; their members are the columns."""
    content = file.content().removeprefix(BOM)
    if (found := depth(content)) > MAX_DEPTH:
        raise DataError(
            f"objects and lists are nested {found:,} levels deep, at most {MAX_DEPTH} are supported. Write flat records"
        )
    if content[:SPACES].lstrip().startswith(b"["):
        records = standard_json.loads(content, object_pairs_hook=_record)
        if not records or not all(isinstance(record, dict) for record in records):
            raise DataError('an array must hold records, [{"y": 1.5, "mean": 1.2, "std": 0.4}, …]')
        content = "\n".join(map(standard_json.dumps, records)).encode()
    read = json.ReadOptions(use_threads=False, block_size=min(len(content) + 1, MAX_BLOCK))
    return MemoryTable(json.read_json(pa.BufferReader(content), read))


def _record(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object, unless two have the same name."""
    record = dict(members)
    if len(record) < len(members):
        names = [name for name, _ in members]
        raise DataError(f"a record holds {next(name for name in names if names.count(name) > 1)!r} twice")
    return record


def depth(content: bytes) -> int:
    r"""Return the nesting depth of objects and lists in JSON: the largest number of open brackets outside of strings.

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
