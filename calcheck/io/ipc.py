"""Feather and Arrow IPC files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import feather

from calcheck.io.held import Held

if TYPE_CHECKING:
    from calcheck.io.files import File


def arrow_table(file: File) -> Held:
    """Open a Feather file, or an Arrow IPC file or stream."""
    try:
        return Held(feather.read_table(file.stream()))
    except pa.ArrowInvalid:  # not a file with a footer: perhaps a stream
        return Held(pa.ipc.open_stream(pa.py_buffer(file.content())).read_all())
