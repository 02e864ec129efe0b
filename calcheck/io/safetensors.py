"""Files of tensors (safetensors)."""

import json
from typing import Any

import numpy as np

from calcheck.errors import DataError
from calcheck.io.files import File
from calcheck.io.numpy_files import ArrayTable
from calcheck.typing import AnyArray

LENGTH_BYTES = 8  # Size of the header length, little-endian
TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",  # bfloat16 is the upper half of a float32
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "<u1",
    "BOOL": "?",
}


def safetensors_table(file: File) -> ArrayTable:
    """Open a file of tensors as columns, with rows along the first axis; a single tensor is the embedding."""
    content = file.content()
    length = int.from_bytes(content[:LENGTH_BYTES], "little")
    body = content[LENGTH_BYTES + length :]
    header = json.loads(content[LENGTH_BYTES : LENGTH_BYTES + length])
    if not isinstance(header, dict):
        raise DataError("the header is not a JSON object")
    header.pop("__metadata__", None)
    tensors = {name: _tensor(name, details, body) for name, details in header.items()}
    if len(body) != (listed := max((details["data_offsets"][1] for details in header.values()), default=0)):
        raise DataError(f"it has {len(body):,} bytes of data, its header lists {listed:,}. Were files appended?")
    return ArrayTable({"embedding": next(iter(tensors.values()))} if len(tensors) == 1 else tensors)


def _tensor(name: str, details: Any, body: bytes) -> AnyArray:
    """Return one array from the data section."""
    try:
        kind, shape, (start, stop) = details["dtype"], [int(size) for size in details["shape"]], details["data_offsets"]
        values = np.frombuffer(body[start:stop], dtype=TYPES[kind]).reshape(shape)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"tensor {name!r} does not match its header ({error})") from error
    if kind == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values
