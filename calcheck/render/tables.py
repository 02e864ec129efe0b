"""Pivot tables of results: one table per metric, one column per curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from calcheck.render.cells import notes, read_in_words
from calcheck.render.console import NARROW, rendered, safe_text, strip_control
from calcheck.render.markdown import escaped, line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from calcheck.report import Report

GAP = 2  # width between columns, in characters
MAX_CELL_WIDTH = 24  # maximum width of a cell, in characters


@dataclass(frozen=True)
class Pivot:
    """A pivot table.

    Parameters
    ----------
    title : str
        Title of the table.
    head : tuple of str
        Column names.
    rows : tuple of tuple of str
        Cells.
    keys : int
        Number of key columns on the left, which are repeated when the other columns are split over several tables.
    text_columns : int
        Number of left-aligned text columns.
    legend : str
        Explanation of the marks in the cells.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: int = 1
    text_columns: int = 0
    legend: str = ""


def pivots_to_table(report: Report, pivots: Sequence[Pivot], *, legend: bool = True) -> str:
    """Return tables for a terminal of at least 80 columns."""
    return rendered(*_parts(report, pivots, legend=legend))


def pivots_to_markdown(report: Report, pivots: Sequence[Pivot], *, legend: bool = True) -> str:
    """Return tables in Markdown."""
    files, told = read_in_words(report.input)
    lines = [f"**{escaped(', '.join(files))}**: {escaped(told)}", ""]
    for pivot in pivots:
        lines += [f"{escaped(pivot.title)}:", "", line([escaped(name) for name in pivot.head])]
        lines += [line(["---" if place < pivot.text_columns else "---:" for place in range(len(pivot.head))])]
        lines += [line([escaped(cell) for cell in row]) for row in pivot.rows]
        lines += ["", *([escaped(pivot.legend), ""] if legend and pivot.legend else [])]
    lines += [f"- {escaped(f'{metrics}: {note}' if metrics else note)}" for metrics, note in notes(report)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _parts(report: Report, pivots: Sequence[Pivot], *, legend: bool) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    names, told = read_in_words(report.input)
    yield Text("\n", no_wrap=True).join([safe_text(name, style="bold") for name in names] + [safe_text(told)])
    for pivot in pivots:
        for columns in _stacked(pivot):
            yield _table(pivot, columns)
        if legend and pivot.legend:
            yield safe_text(pivot.legend)
    if noted := notes(report):
        grid = Table.grid(padding=(0, 1))
        for metrics, note in noted:
            grid.add_row("note", safe_text(f"{metrics}: {note}" if metrics else note))
        yield grid


def _stacked(pivot: Pivot) -> Iterator[list[int]]:
    """Yield groups of columns, each of which fits in a line next to the key columns."""
    widths = [min(MAX_CELL_WIDTH, max(len(strip_control(cell)) for cell in column)) + GAP for column in _columns(pivot)]
    room = NARROW - sum(widths[: pivot.keys])
    left, group = room, list[int]()
    for place in range(pivot.keys, len(widths)):
        if group and left < widths[place]:
            yield group
            left, group = room, []
        left -= widths[place]
        group.append(place)
    yield group


def _columns(pivot: Pivot) -> list[tuple[str, ...]]:
    return list(zip(pivot.head, *pivot.rows, strict=True))


def _table(pivot: Pivot, columns: Sequence[int]) -> Table:
    """Return a table of the key columns and some other columns."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
        title=safe_text(pivot.title),
        title_justify="left",
    )
    shown = [*range(pivot.keys), *columns]
    for place in shown:
        side: Literal["left", "right"] = "left" if place < pivot.text_columns else "right"
        table.add_column(
            safe_text(pivot.head[place]), justify=side, overflow="ellipsis", no_wrap=True, max_width=MAX_CELL_WIDTH
        )
    for row in pivot.rows:
        table.add_row(*(safe_text(row[place]) for place in shown))
    return table
