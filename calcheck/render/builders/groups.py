"""Table of metrics by group or region, with adjusted p-values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.render.cells import ABSENT, interval, is_withheld, name_with_unit, number, p_value, short
from calcheck.render.document import Cell, Column, Table, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.render.document import Emphasis
    from calcheck.report import Result

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
