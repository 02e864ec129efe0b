"""Results laid out by what they depend on: a table for each metric, a column for each curve."""

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

GAP = 2
WIDEST = 24  # cell


@dataclass(frozen=True)
class Pivot:
    """A table of cells.

    Parameters
    ----------
    title : str
        What it shows.
    head : tuple of str
        What the columns are called.
    rows : tuple of tuple of str
        The cells.
    keys : int
        How many columns on the left say what a row is of: repeated where the others do not fit a line.
    left : int
        How many of them are text, aligned to the left.
    legend : str
        What marks in the cells mean.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: int = 1
    left: int = 0
    legend: str = ""


def pivots_to_table(report: Report, pivots: Sequence[Pivot]) -> str:
    """Render tables for a terminal of at least 80 columns."""
    return rendered(*_parts(report, pivots))


def pivots_to_markdown(report: Report, pivots: Sequence[Pivot]) -> str:
    """Render tables in Markdown."""
    files, told = read_in_words(report.input)
    lines = [f"**{escaped(', '.join(files))}**: {escaped(told)}", ""]
    for pivot in pivots:
        lines += [f"{escaped(pivot.title)}:", "", line([escaped(name) for name in pivot.head])]
        lines += [line(["---" if place < pivot.left else "---:" for place in range(len(pivot.head))])]
        lines += [line([escaped(cell) for cell in row]) for row in pivot.rows]
        lines += ["", *([escaped(pivot.legend), ""] if pivot.legend else [])]
    lines += [f"- {escaped(f'{metrics}: {note}' if metrics else note)}" for metrics, note in notes(report)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _parts(report: Report, pivots: Sequence[Pivot]) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    names, told = read_in_words(report.input)
    yield Text("\n", no_wrap=True).join([safe_text(name, style="bold") for name in names] + [safe_text(told)])
    for pivot in pivots:
        for columns in _stacked(pivot):
            yield _table(pivot, columns)
        if pivot.legend:
            yield safe_text(pivot.legend)
    if noted := notes(report):
        grid = Table.grid(padding=(0, 1))
        for metrics, note in noted:
            grid.add_row("note", safe_text(f"{metrics}: {note}" if metrics else note))
        yield grid


def _stacked(pivot: Pivot) -> Iterator[list[int]]:
    """Break the columns into groups of which each fits a line, behind the columns that say what a row is of."""
    widths = [min(WIDEST, max(len(strip_control(cell)) for cell in column)) + GAP for column in _columns(pivot)]
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
    """Lay out some columns."""
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
        side: Literal["left", "right"] = "left" if place < pivot.left else "right"
        table.add_column(
            safe_text(pivot.head[place]), justify=side, overflow="ellipsis", no_wrap=True, max_width=WIDEST
        )
    for row in pivot.rows:
        table.add_row(*(safe_text(row[place]) for place in shown))
    return table
