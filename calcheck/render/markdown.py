"""Documents in Markdown, for pull requests and CI summaries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from calcheck.render.console import strip_control
from calcheck.render.document import Details, Legend, Marks, Notes, Paragraph, Source, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from calcheck.render.document import Block, Cell, Document

SPECIAL = re.compile(r"([\\`*_{}\[\]#!|~])")
NUMBERS = re.compile(r"[-+\d.,e \[\]]*")
EMPHASIS = {"best": ("**", "**"), "second": ("<ins>", "</ins>")}
MARKS = {"best": "**bold**", "second": "<ins>underlined</ins>"}
RULES = {"left": "---", "right": "---:"}


def render(document: Document) -> str:
    """Return a document in Markdown: best values are bold, second best values underlined."""
    title = [f"### {escaped(document.title)}"] if document.title else []
    return "\n\n".join([*title, *("\n".join(_lines(block)) for block in document.blocks)]) + "\n"


def escaped(text: str) -> str:
    r"""Return text with Markdown, HTML, cell separators and mentions escaped.

    Examples
    --------
    >>> print(escaped("a|b <script> *c* @d"))
    a\|b &lt;script&gt; \*c\* &#64;d
    """
    shown = SPECIAL.sub(r"\\\1", strip_control(text))
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "&#64;")):
        shown = shown.replace(character, entity)
    return shown


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Source():
            yield f"**{escaped(', '.join(block.files))}**: {escaped(block.text)}"
        case Paragraph():
            yield escaped(block.text)
        case Details():
            yield from (f"- **{escaped(name)}**: {escaped(text)}" for name, text in block.items)
        case Table():
            yield from _table(block)
        case Marks():
            yield " · ".join(f"{MARKS[mark]}: {escaped(meaning)}" for mark, meaning in block.meanings)
        case Legend():
            yield "\n\n".join(map(escaped, block.lines))
        case Notes():
            yield from (f"- {escaped(line)}" for line in block.lines)


def _table(table: Table) -> Iterator[str]:
    """Yield the lines of a table, with its title above."""
    if table.title:
        yield from (f"{escaped(table.title)}:", "")
    yield _line(escaped(column.head) for column in table.columns)
    yield _line(RULES[column.align] for column in table.columns)
    yield from (_line(map(_cell, row)) for row in table.rows)


def _cell(cell: Cell) -> str:
    """Return a cell; the brackets of an interval need no escape."""
    before, after = EMPHASIS.get(cell.emphasis, ("", ""))
    text = cell.text if NUMBERS.fullmatch(cell.text) else escaped(cell.text)
    return f"{before}{text}{after}{escaped(cell.after)}"


def _line(cells: Iterable[str]) -> str:
    """Return a line of a table from escaped cells."""
    return f"| {' | '.join(cells)} |"
