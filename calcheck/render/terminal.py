"""Documents for a terminal of at least 80 columns, by rich."""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from calcheck.render.console import NARROW, render_text, safe_text, strip_control
from calcheck.render.document import (
    Answer,
    Block,
    Cell,
    Details,
    Legend,
    Marks,
    Notes,
    Paragraph,
    Source,
    Table,
    column_cells,
    select_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import rich.table
    from rich.console import RenderableType
    from rich.text import Text

    from calcheck.render.document import Column, Document

MARKS = {"best": "*", "second": "+"}
STYLES = {
    "strong": "bold",
    "best": "bold",
    "second": "underline",
    "pass": "green",
    "fail": "bold red",
    "undecided": "yellow",
    "none": "dim",
}
GAP = 2  # width between columns, in characters
MAX_CELL_WIDTH = 32  # maximum width of a cell of a table that is split, in characters


def render(document: Document) -> str:
    """Return a document as text, in color on a terminal; best values end in a mark."""
    return render_text(*(part for block in document.blocks for part in _parts(block)))


def _parts(block: Block) -> Iterator[RenderableType]:
    """Yield a block as parts with an empty line between them."""
    match block:
        case Source():
            yield _source(block)
        case Answer():
            yield _answer(block)
        case Paragraph():
            yield safe_text(block.text)
        case Details():
            yield _grid(block.items, gap=2, style="dim")
        case Table():
            yield from map(_titled, _fit(block))
        case Marks():
            yield safe_text(" · ".join(f"{MARKS[mark]} {meaning}" for mark, meaning in block.meanings), "dim")
        case Legend():
            yield _lines(safe_text(line, "dim") for line in block.lines)
        case Notes():
            yield _grid((("note", line) for line in block.lines), gap=1)


def _source(block: Source) -> Text:
    """Return the name of a file and its content on one line, or several names above the content."""
    names, text = [safe_text(name, "bold") for name in block.files], safe_text(block.text)
    one = _lines([names[0] + safe_text(f" · {block.text}")], no_wrap=True) if len(names) == 1 else None
    return one or _lines([*names, text], no_wrap=True)


def _answer(block: Answer) -> RenderableType:
    """Return a question with its answer on one line, the findings below, and the commands on the last line."""
    import rich.table
    from rich.console import Group

    findings = rich.table.Table.grid(padding=(0, GAP))
    findings.add_column(no_wrap=True)
    findings.add_column()
    for topic, cell in block.findings:
        findings.add_row(safe_text(f"  {topic}"), _cell(cell, ""))
    question = safe_text(f"{block.question}  ", "bold") + _cell(block.answer, "")
    commands = [safe_text(f"Next: {' · '.join(block.commands)}", "dim")] if block.commands else []
    return Group(question, findings, *commands)


def _lines(lines: Iterable[Text], *, no_wrap: bool = False) -> Text:
    from rich.text import Text

    return Text("\n", no_wrap=no_wrap).join(lines)


def _grid(items: Iterable[tuple[str, str]], *, gap: int, style: str = "") -> rich.table.Table:
    """Return a grid with one item per line."""
    import rich.table

    grid = rich.table.Table.grid(padding=(0, gap))
    grid.add_column(style=style, no_wrap=True)
    grid.add_column()
    for name, text in items:
        grid.add_row(safe_text(name), safe_text(text))
    return grid


def _titled(table: Table) -> RenderableType:
    """Return a table below its title, which may be wider."""
    from rich.console import Group

    return Group(safe_text(table.title, "italic"), _table(table)) if table.title else _table(table)


def _table(table: Table) -> rich.table.Table:
    import rich.table
    from rich import box

    shown = rich.table.Table(box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    cut: dict[str, Any] = {"overflow": "ellipsis", "no_wrap": True, "max_width": MAX_CELL_WIDTH}
    wrap = {"overflow": "fold"} if table.overflow == "fold" else cut
    for column, head in zip(table.columns, _heads(table), strict=True):
        shown.add_column(head, justify=column.align, **wrap)
    pads = [_pad(cells) for cells in column_cells(table)]
    for _, rows in groupby(table.rows, key=lambda row: row[0]):
        if table.groups:
            shown.add_section()
        for row in rows:
            shown.add_row(*map(_cell, row, pads))
    return shown


def _heads(table: Table) -> list[Text]:
    """Return the heads of the columns; those of numbers have a second line if one has a scale."""
    two_lines = any(column.scale for column in table.columns)
    return [
        _lines([safe_text(column.name), safe_text(column.scale)])
        if two_lines and column.align == "right"
        else safe_text(column.name)
        for column in table.columns
    ]


def _pad(cells: Iterable[Cell]) -> str:
    """Return what takes the place of a mark in the other cells of a column, so that numbers stay aligned."""
    return " " if any(cell.emphasis in MARKS for cell in cells) else ""


def _cell(cell: Cell, pad: str) -> Text:
    return safe_text(f"{cell.text}{MARKS.get(cell.emphasis, pad)}{cell.after}", STYLES.get(cell.emphasis, ""))


def _fit(table: Table) -> Iterator[Table]:
    """Yield the tables that show a table in lines of 80 columns."""
    if table.groups == "title":
        yield from _by_first_cell(table)
    elif table.overflow == "fold":
        yield table
    else:
        parts = (select_columns(table, [*range(table.keys), *places]) for places in _stacked(table))
        yield from parts if table.overflow == "split" else islice(parts, 1)


def _by_first_cell(table: Table) -> Iterator[Table]:
    """Yield a table for each group of rows, with the first cell as its title."""
    for first, rows in groupby(table.rows, key=lambda row: row[0].text):
        yield Table(table.columns[1:], tuple(row[1:] for row in rows), first)


def _stacked(table: Table) -> Iterator[list[int]]:
    """Yield groups of columns, each of which fits in a line next to the key columns."""
    widths = [_width(column, cells) + GAP for column, cells in zip(table.columns, column_cells(table), strict=True)]
    room = NARROW - sum(widths[: table.keys])
    left, group = room, list[int]()
    for place in range(table.keys, len(widths)):
        if group and left < widths[place]:
            yield group
            left, group = room, []
        left -= widths[place]
        group.append(place)
    yield group


def _width(column: Column, cells: Sequence[Cell]) -> int:
    texts = (_cell(cell, _pad(cells)).plain for cell in cells)
    return min(MAX_CELL_WIDTH, max(map(len, (strip_control(column.name), column.scale, *texts))))
