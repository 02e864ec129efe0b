"""Documents as text, for a terminal of at least 60 columns or a pipe, by rich."""

import io
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from rich.console import RenderableType
from rich.text import Text

from calcheck.core.text import count_of, strip_control
from calcheck.render import document as blocks

if TYPE_CHECKING:
    import rich.table


View = Literal["full", "screen", "file"]
LINES, NOTES = 24, 5  # Most lines of the first screen, and of notes on it
ANSWER, TABLE = 7, 6  # Lines that are kept for an answer after a table, and for a table after notes
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
JOIN = "\u2800"  # Looks like a space, at which rich does not break a line
GAP = 2  # width between columns, in characters
MAX_CELL_WIDTH = 32  # maximum width of a cell of a table that is split or loses columns, in characters


def render(document: blocks.Document, view: View = "full") -> str:
    """Return a document as text; best values end in a mark, and the view "screen" has at most 24 lines."""
    width = WIDE if view == "file" else page_width()
    if view == "screen":
        return _first_screen(document, width)
    return render_text(*(part for block in document.blocks for part in _parts(block, width)), width=width)


def _first_screen(document: blocks.Document, width: int) -> str:
    """Return the lines that fit on a screen: without legends; notes, and then tables, have the room that is left."""
    shown, room, whole = dict[int, list[str]](), LINES, list[list[str]]()
    last = next((number for number, block in enumerate(document.blocks) if isinstance(block, blocks.Answer)), 0)
    tables = {number: block for number, block in enumerate(document.blocks) if isinstance(block, blocks.Table)}
    below = TABLE if any(number > last and table.most != 0 for number, table in tables.items()) else 0

    def order(each: tuple[int, blocks.Block]) -> tuple[bool, bool]:
        return each[0] > last and each[0] in tables, isinstance(each[1], blocks.Notes)

    for number, block in sorted(enumerate(document.blocks), key=order):
        if isinstance(block, blocks.Table) and block.most == 0:
            whole.append(_block_lines(block, width))
        elif not isinstance(block, (blocks.Legend, blocks.Marks)):
            marks = _marks_after(document, number, width)
            kept = ANSWER * (number in tables and number < last) + below * isinstance(block, blocks.Notes)
            shown[number] = _fitting(block, width, room - 1 - len(marks) - kept)
            shown[number] += marks if shown[number] else []
            room -= len(shown[number]) + bool(shown[number])
    parts = ["\n".join(lines) for _, lines in sorted(shown.items()) if lines]
    is_cut = len(parts) + len(whole) < sum(not isinstance(block, blocks.Marks) for block in document.blocks)
    if is_cut and not any("--table" in part for part in parts):
        parts[-1] += "\nMore: --table"
    return "\n\n".join([*parts, *("\n".join(lines) for lines in whole)]) + "\n"


def _block_lines(block: blocks.Block, width: int) -> list[str]:
    """Return the lines of a block; the data are one line, which is cut."""
    if not isinstance(block, blocks.Source):
        return render_text(*_parts(block, width), width=width).splitlines()
    name = next(iter(block.files), "")
    name = name if len(name) <= width // 2 else f"…{name[1 - width // 2 :]}"
    line = f"{name} · {block.text}" if name else block.text
    return render_text(safe_text(line if len(line) <= width else f"{line[: width - 1]}…"), width=width).splitlines()


def _marks_after(document: blocks.Document, number: int, width: int) -> list[str]:
    """Return the line about the marks in a table, if that follows it."""
    following = document.blocks[number + 1 : number + 2]
    return [line for block in following if isinstance(block, blocks.Marks) for line in _block_lines(block, width)]


def _fitting(block: blocks.Block, width: int, room: int) -> list[str]:
    """Return the lines of a block as far as they have room: of a table those of the first rows; of notes a few."""
    if isinstance(block, blocks.Table):
        return _cut_table(block, width, room)
    lines = _block_lines(block, width)
    room = min(room, NOTES) if isinstance(block, blocks.Notes) else room
    if len(lines) <= room or room <= 0:
        return lines if room > 0 else []
    cut = lines[: room - 1]
    while cut and (cut[-1].endswith(" \\") or not cut[-1]):  # a command that goes on
        cut.pop()
    if isinstance(block, blocks.Notes):  # whole notes
        whole = next((place for place in range(len(cut), 0, -1) if lines[place].startswith("note ")), len(cut))
        cut = cut[:whole]
    return [*cut, "… more: --table"]


def _cut_table(table: blocks.Table, width: int, room: int) -> list[str]:
    """Return the lines of the first rows of a table, as many as have room, and how many there are more; or no lines."""
    for count in range(min(len(table.rows), room, table.most or room), 0, -1):
        rest = len(table.rows) - count
        cut = replace(table, rows=table.rows[:count])
        lines = _block_lines(cut, width) + ([f"… {rest:,} more: --table"] if rest else [])
        if len(lines) <= room:
            return lines
    return []


def _parts(block: blocks.Block, width: int) -> Iterator[RenderableType]:
    """Yield a block as parts with an empty line between them."""
    match block:
        case blocks.Source():
            names, text = [safe_text(name, "bold") for name in block.files], safe_text(block.text)
            one = _lines([names[0] + safe_text(f" · {block.text}")], no_wrap=True) if len(names) == 1 else None
            yield (one or _lines([*names, text], no_wrap=True))
        case blocks.Answer():
            yield from _answer(block, width)
        case blocks.Paragraph():
            yield safe_text(block.text)
        case blocks.Details():
            yield _grid(block.items, gap=2, style="dim")
        case blocks.Table():
            yield from (_table(table, _omission(block, table)) for table in _fit(block, width))
        case blocks.Marks():
            yield safe_text(" · ".join(f"{MARKS[mark]} {meaning}" for mark, meaning in block.meanings), "dim")
        case blocks.Legend():
            yield _lines(safe_text(line, "dim") for line in block.lines)
        case blocks.Notes():
            yield _grid((("note", line) for line in block.lines), gap=1)


def _answer(block: blocks.Answer, width: int) -> Iterator[RenderableType]:
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
        yield _lines(
            (
                safe_text(line, "dim")
                for purpose, command in block.purposes
                for line in _command_lines(purpose, command, width)
            ),
            no_wrap=True,
        )


def _command_lines(purpose: str, command: str, width: int) -> Iterator[str]:
    """Yield what a command is for, in a word, and the command, which a shell takes as it is, also on several lines."""
    if command.startswith(("python ", "import ")):
        yield from _code_lines(f"  {'undo':<8} {command}", width)
        return
    line = f"  {purpose:<8} calcheck"
    if not command.startswith("calcheck "):  # a function of Python
        yield f"  {purpose:<8} {command}"
        return
    for word in command.split(" ")[1:]:
        if len(line) + len(word) + len(" \\ ") > width and line.strip():
            yield f"{line} \\"
            line = " " * 10
        line += f" {word}"
    yield line


def _code_lines(command: str, width: int) -> Iterator[str]:
    """Yield the lines of a command with Python code, which continues after semicolons."""
    line = ""
    for part in command.split("; "):
        if line and len(line) + len("; ") + len(part) + 1 > width:
            yield f"{line};"
            line = part
        else:
            line = f"{line}; {part}" if line else part
    yield line


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
    return f"… {count_of(count, 'column')} more: {whole.remedy}" if count else ""


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
        yield from blocks.by_first_cell(table)
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


NARROW, USUAL, WIDE = 60, 80, 100


def safe_text(text: str, style: str = "") -> Text:
    """Return text without markup and control characters, in which a number and "%" stay on one line."""
    from rich.text import Text

    return Text(join_percents(strip_control(text)), style=style)


def join_percents(text: str) -> str:
    """Return text for `render_text`, in which a number and "%" stay on one line."""
    return re.sub(r"(?<=\d) (?=%)", JOIN, text)


def page_width() -> int:
    """Return the width of lines, in characters, from 60 to 100: that of the terminal; COLUMNS or 80 in a pipe."""
    stated = os.environ.get("COLUMNS", "")
    columns = int(stated) if stated.isdecimal() else USUAL
    return min(WIDE, max(NARROW, shutil.get_terminal_size().columns if _is_terminal() else columns))


def _is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def render_text(*parts: RenderableType, width: int | None = None) -> str:
    """Return parts as text as wide as the page, with empty lines between them; colored on terminals."""
    from rich.console import Console
    from rich.text import Text

    terminal = _is_terminal()
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width or page_width(),
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
    return "\n".join(line.rstrip() for line in buffer.getvalue().replace(JOIN, " ").splitlines()) + "\n"
