"""Reports as text: one format a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.render.json import to_json
from calcheck.render.table import to_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.report import Report

__all__ = ["FORMATS"]

FORMATS: dict[str, Callable[[Report], str]] = {"table": to_table, "json": to_json}
"""How a report becomes text, by its name in ``--format``."""
