"""Documents as text, for a terminal of at least 60 columns or a pipe, by rich."""

import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from calcheck.core.escaping import strip_control
from calcheck.render import document as blocks

if TYPE_CHECKING:
    import rich.table


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
LINE = "\n"  # Where the name of a column continues on the next line
GAP = 2  # width between columns, in characters
MAX_CELL_WIDTH = 32  # maximum width of a cell of a table that is split or loses columns, in characters


def render(document: blocks.Document) -> str:
    """Return a document as text, in color on a terminal; best values end in a mark."""
    return render_text(*(part for block in document.blocks for part in _parts(block)))


def _parts(block: blocks.Block) -> Iterator[RenderableType]:
    """Yield a block as parts with an empty line between them."""
    match block:
        case blocks.Source():
            names, text = [safe_text(name, "bold") for name in block.files], safe_text(block.text)
            one = _lines([names[0] + safe_text(f" · {block.text}")], no_wrap=True) if len(names) == 1 else None
            yield (one or _lines([*names, text], no_wrap=True))
        case blocks.Answer():
            yield from _answer(block)
        case blocks.Paragraph():
            yield safe_text(block.text)
        case blocks.Details():
            yield _grid(block.items, gap=2, style="dim")
        case blocks.Table():
            yield from (_table(table, _omission(block, table)) for table in _fit(block, page_width()))
        case blocks.Marks():
            yield safe_text(" · ".join(f"{MARKS[mark]} {meaning}" for mark, meaning in block.meanings), "dim")
        case blocks.Legend():
            yield _lines(safe_text(line, "dim") for line in block.lines)
        case blocks.Notes():
            yield _grid((("note", line) for line in block.lines), gap=1)


def _answer(block: blocks.Answer) -> Iterator[RenderableType]:
    """Yield a question with its answer on one line and the effects below, and the commands, which are not wrapped."""
    import rich.table
    from rich.console import Group

    effects = rich.table.Table.grid(padding=(0, GAP))
    effects.add_column(no_wrap=True)
    effects.add_column()
    for topic, cell in block.effects:
        effects.add_row(safe_text(f"  {topic}"), _cell(cell, ""))
    question = safe_text(f"{block.question}  ", "bold") + _cell(block.answer, "")
    yield Group(question, effects)
    if block.commands:
        yield _lines([safe_text(f"Next: {' · '.join(block.commands)}", "dim")], no_wrap=True)


def _lines(lines: Iterable[Text], *, no_wrap: bool = False) -> Text:
    from rich.text import Text

    return Text("\n", no_wrap=no_wrap).join(lines)


def _grid(items: Iterable[tuple[str, str]], *, gap: int, style: str = "") -> "rich.table.Table":
    """Return a grid with one item per line."""
    import rich.table

    grid = rich.table.Table.grid(padding=(0, gap))
    grid.add_column(style=style, no_wrap=True)
    grid.add_column()
    for name, text in items:
        grid.add_row(safe_text(name), safe_text(text))
    return grid


def _omission(whole: blocks.Table, shown: blocks.Table) -> str:
    """Return how many columns are left out, and what shows them; an empty string if none are."""
    count = len(whole.columns) - len(shown.columns) if whole.overflow == "omit" else 0
    return f"… {count} column{'s' if count > 1 else ''} more: {whole.remedy}" if count else ""


def _table(table: blocks.Table, below: str) -> RenderableType:
    """Return a table below its title, which may be wider, and above a line of text."""
    import rich.table
    from rich import box
    from rich.console import Group

    shown = rich.table.Table(box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for column, head, cells in zip(table.columns, _heads(table), blocks.column_cells(table), strict=True):
        shown.add_column(head, justify=column.align, **_wrapping(table, column, cells))
    pads = [_pad(cells) for cells in blocks.column_cells(table)]
    for _, rows in groupby(zip(table.rows, blocks.shown_rows(table), strict=True), key=lambda both: both[0][0]):
        if table.groups:
            shown.add_section()
        for _, row in rows:
            shown.add_row(*map(_cell, row, pads))
    title = [safe_text(table.title, "italic")] if table.title else []
    return Group(*title, shown, *([safe_text(below, "dim")] if below else []))


def _wrapping(table: blocks.Table, column: blocks.Column, cells: Sequence[blocks.Cell]) -> dict[str, Any]:
    """Return the options of rich for the cells of a column that is too wide."""
    if not _wraps(table, column, cells):
        return {"overflow": "ellipsis", "no_wrap": True, "max_width": MAX_CELL_WIDTH}
    return {"overflow": "fold"} | ({"min_width": _width(table, column, cells)} if table.overflow == "omit" else {})


def _wraps(table: blocks.Table, column: blocks.Column, cells: Sequence[blocks.Cell]) -> bool:
    """Return whether the texts of a column continue on further lines, which would make it narrower."""
    if column.align == "right" or table.overflow == "split":
        return False
    longest_word = max((len(word) for cell in cells for word in cell.text.split()), default=0)
    return table.overflow == "fold" or any(len(cell.text) > longest_word for cell in cells)


def _heads(table: blocks.Table) -> list[Text]:
    """Return the heads of the columns, below that of a group; those of numbers have two lines if one has a scale."""
    two_lines = any(column.scale for column in table.columns)
    above = [text for name, count in blocks.column_groups(table) for text in (name, *[""] * (count - 1))]
    heads = []
    height = max((column.name.count(LINE) for column in table.columns), default=0)
    for place, column in enumerate(table.columns):
        scaled = two_lines and column.align == "right"
        names = [*[""] * (height - column.name.count(LINE)), *column.name.split(LINE)]
        texts = [*above[place : place + 1], *names, *([column.scale] if scaled else [])]
        heads.append(_lines(map(safe_text, texts)))
    return heads


def _with_short_heads(table: blocks.Table) -> blocks.Table:
    """Return a table in which heads of numbers continue on a second line after a hyphen."""
    return replace(
        table,
        columns=tuple(
            replace(each, name=_two_lines(each.name)) if each.align == "right" else each for each in table.columns
        ),
    )


def _two_lines(name: str) -> str:
    """Return a name that is cut after a hyphen so that its longer part is short; the name itself without hyphens."""
    cuts = [place for place, letter in enumerate(name, 1) if letter == "-"]
    if not cuts:
        return name
    cut = min(cuts, key=lambda place: max(place, len(name) - place))
    return f"{name[:cut]}{LINE}{name[cut:]}"


def _pad(cells: Iterable[blocks.Cell]) -> str:
    """Return what takes the place of a mark in the other cells of a column, so that numbers stay aligned."""
    return " " if any(cell.emphasis in MARKS for cell in cells) else ""


def _cell(cell: blocks.Cell, pad: str) -> Text:
    return safe_text(f"{cell.text}{MARKS.get(cell.emphasis, pad)}{cell.after}", STYLES.get(cell.emphasis, ""))


def _fit(table: blocks.Table, width: int) -> Iterator[blocks.Table]:
    """Yield the tables that show a table in lines of a width, in characters."""
    if table.groups == "title":
        yield from _by_first_cell(table)
    elif table.overflow == "split":
        yield from (blocks.select_columns(table, [*range(table.keys), *places]) for places in _stacked(table, width))
    elif table.overflow == "omit":
        table = table if sum(_widths(table)) - GAP <= width else _with_short_heads(table)
        widths, places = _widths(table), list(range(len(table.columns)))
        while sum(widths[place] for place in places) - GAP > width and len(places) > max(table.keys, 1):
            places.remove(max(places[table.keys :], key=lambda place: (table.columns[place].rank, place)))
        yield blocks.select_columns(table, places)
    else:
        yield table


def _by_first_cell(table: blocks.Table) -> Iterator[blocks.Table]:
    """Yield a table for each group of rows, with the first cell as its title."""
    for first, rows in groupby(table.rows, key=lambda row: row[0].text):
        yield blocks.Table(table.columns[1:], tuple(row[1:] for row in rows), first)


def _stacked(table: blocks.Table, width: int) -> Iterator[list[int]]:
    """Yield groups of columns, each of which fits in a line next to the key columns."""
    widths = _widths(table)
    room = width - sum(widths[: table.keys])
    left, group = room, list[int]()
    for place in range(table.keys, len(widths)):
        if group and left < widths[place]:
            yield group
            left, group = room, []
        left -= widths[place]
        group.append(place)
    yield group


def _widths(table: blocks.Table) -> list[int]:
    """Return the width of each column, with the gap to the next one."""
    columns = zip(table.columns, blocks.column_cells(table), strict=True)
    return [_width(table, column, cells) + GAP for column, cells in columns]


def _width(table: blocks.Table, column: blocks.Column, cells: Sequence[blocks.Cell]) -> int:
    """Return the least width of a column: that of its longest cell, or of its longest word if its cells are wrapped."""
    texts = [
        strip_control(column.group),
        *map(strip_control, column.name.split(LINE)),
        column.scale,
        *(_cell(cell, _pad(cells)).plain for cell in cells),
    ]
    if _wraps(table, column, cells):
        texts = [word for text in texts for word in text.split()]
    return min(MAX_CELL_WIDTH, max(map(len, texts), default=0))


NARROW, WIDE = 60, 100


def safe_text(text: str, style: str = "") -> Text:
    """Return text without markup and control characters."""
    from rich.text import Text

    return Text(strip_control(text), style=style)


def page_width() -> int:
    """Return the width of lines, in characters: that of the terminal, from 60 to 100; 100 in a pipe."""
    return min(WIDE, max(NARROW, shutil.get_terminal_size((WIDE, 24)).columns)) if _is_terminal() else WIDE


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def render_text(*parts: RenderableType) -> str:
    """Return parts as text as wide as the page, with empty lines between them; colored on terminals."""
    from rich.console import Console
    from rich.text import Text

    terminal = _is_terminal()
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=page_width(),
        force_terminal=terminal,
        no_color=not terminal or bool(os.environ.get("NO_COLOR")),
        legacy_windows=False,
        emoji=False,
        highlight=False,
    )
    for number, part in enumerate(parts):
        if number:
            console.print()
        console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))  # file names are not wrapped
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
