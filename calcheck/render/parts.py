"""Parts that several documents share: settings, notes, tables of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calcheck.render.cells import ABSENT, describe_input, interval, is_withheld, name_with_unit, number, p_value, short
from calcheck.render.document import Cell, Column, Emphasis, Mark, Marks, Notes, Source, Table, row_of

if TYPE_CHECKING:
    from calcheck.report import Input, Result


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


ADJUSTED_LEGEND = (
    "adjusted: p-value of the most extreme of all groups and metrics, by replicates of a perfect model; it decides the"
    " verdict"
)
COLUMNS = (
    Column("metric"),
    Column("value", "right"),
    Column("interval", "right", rank=3),
    Column("expected", "right", rank=2),
    Column("p", "right", rank=1),
    Column("adjusted", "right"),
    Column("verdict"),
)


def group_table(results: Sequence[Result]) -> Table:
    """Return a table with one line per group and metric."""
    columns = (Column("group"), Column("rows", "right"), *COLUMNS)
    rows = tuple(_row(result) for result in results)
    return Table(columns, rows, "", "omit", keys=3, groups="gap", remedy="--format csv")


def _row(result: Result) -> tuple[Cell, ...]:
    judged: Emphasis = "strong" if result.verdict != "none" else "none"
    texts = (interval(result), short(result.reference), p_value(result), adjusted(result))
    return (
        *row_of(str(result.slice["group"]), f"{result.slice['rows']:,}"),
        Cell(name_with_unit(result)),
        Cell(number(result.number), judged),
        *row_of(*texts),
        Cell(result.verdict, result.verdict),
    )


def adjusted(result: Result) -> str:
    """Return the adjusted p-value of a result, unless it is wrong since rows depend on each other."""
    return ABSENT if result.p_value_adjusted is None or is_withheld(result) else f"{result.p_value_adjusted:.2g}"
