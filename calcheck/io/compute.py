"""The functions of :mod:`pyarrow.compute`, which is imported on first use: importing it takes 30 ms."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import pyarrow.compute

    return getattr(pyarrow.compute, name)
