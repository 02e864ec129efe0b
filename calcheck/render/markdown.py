"""Documents in Markdown, for pull requests and CI summaries."""

import re
from collections.abc import Iterable, Iterator

from calcheck.core.text import strip_control
from calcheck.render import document as blocks

SPECIAL = re.compile(r"([\\`*_{}\[\]#!|~])")
NUMBERS = re.compile(r"[-+\d.,e \[\]]*")
EMPHASIS = {"best": ("**", "**"), "second": ("<ins>", "</ins>")}
MARKS = {"best": "**bold**", "second": "<ins>underlined</ins>"}
RULES = {"left": "---", "right": "---:"}


def render(document: blocks.Document) -> str:
    """Return a document in Markdown: best values are bold, second best values underlined."""
    title = [f"### {escape(document.title)}"] if document.title else []
    return "\n\n".join([*title, *("\n".join(_lines(block)) for block in document.blocks)]) + "\n"


def escape(text: str) -> str:
    r"""Return text with Markdown, HTML, cell separators and mentions escaped.

    >>> print(escape("a|b <script> *c* @d"))
    a\|b &lt;script&gt; \*c\* &#64;d
    """
    shown = SPECIAL.sub(r"\\\1", strip_control(text))
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "&#64;")):
        shown = shown.replace(character, entity)
    return shown


def _lines(block: blocks.Block) -> Iterator[str]:
    match block:
        case blocks.Source():
            yield f"**{escape(', '.join(block.files))}**: {escape(block.text)}"
        case blocks.Answer():
            yield f"**{escape(block.question)}** {escape(block.answer.full_text)}"
            yield ""
            yield from (f"- **{escape(topic)}**: {escape(cell.full_text)}" for topic, cell in block.effects)
            if block.commands:
                yield f"\nNext: {escape(' · '.join(block.commands))}"
        case blocks.Paragraph():
            yield escape(block.text)
        case blocks.Details():
            yield from (f"- **{escape(name)}**: {escape(text)}" for name, text in block.items)
        case blocks.Table():
            yield from _table(block)
        case blocks.Marks():
            yield " · ".join(f"{MARKS[mark]}: {escape(meaning)}" for mark, meaning in block.meanings)
        case blocks.Legend():
            yield "\n\n".join(map(escape, block.lines))
        case blocks.Notes():
            yield from (f"- {escape(line)}" for line in block.lines)


def _table(table: blocks.Table) -> Iterator[str]:
    """Yield the lines of a table, with its title above."""
    if table.title:
        yield from (f"{escape(table.title)}:", "")
    yield _line(escape(f"{column.group}: {column.head}" if column.group else column.head) for column in table.columns)
    yield _line(RULES[column.align] for column in table.columns)
    yield from (_line(map(_cell, row)) for row in blocks.shown_rows(table))


def _cell(cell: blocks.Cell) -> str:
    """Return a cell; the brackets of an interval need no escape."""
    before, after = EMPHASIS.get(cell.emphasis, ("", ""))
    text = cell.text if NUMBERS.fullmatch(cell.text) else escape(cell.text)
    return f"{before}{text}{after}{escape(cell.after)}"


def _line(cells: Iterable[str]) -> str:
    """Return a line of a table from escaped cells."""
    return f"| {' | '.join(cells)} |"
