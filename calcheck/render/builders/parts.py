"""Blocks that the documents of all reports contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.render.cells import describe_input
from calcheck.render.document import Mark, Marks, Notes, Source, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Input


def source(read: Input) -> Source:
    """Return the block about the files of a report."""
    names, text = describe_input(read)
    return Source(tuple(names), text)


def note_blocks(lines: Sequence[str]) -> tuple[Notes, ...]:
    """Return the block of notes; none without notes."""
    return (Notes(tuple(lines)),) if lines else ()


def marks_in(tables: Sequence[Table], *meanings: Mark) -> tuple[Marks, ...]:
    """Return the block about the marks that tables contain; none without marks."""
    found = {cell.emphasis for table in tables for row in table.rows for cell in row}
    used = tuple((mark, text) for mark, text in meanings if mark in found)
    return (Marks(used),) if used else ()
