"""Documents in Markdown, for pull requests and CI summaries; and rules as annotations of GitHub checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from calcheck.core.text import strip_control
from calcheck.render import document as blocks
from calcheck.render.cells import describe_input, headline
from calcheck.report import Gate, Level, Report

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

    Examples
    --------
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
            yield f"**{escape(block.question)}** {escape(block.answer.text + block.answer.after)}"
            yield ""
            yield from (f"- **{escape(topic)}**: {escape(cell.text)}" for topic, cell in block.findings)
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


MOST = 10  # maximum annotations of a kind that GitHub shows per step; it silently drops the rest
COMMANDS: dict[Level, str] = {"fail": "error", "warn": "warning"}


def render_github(report: Report) -> str:
    """Return the violated rules as annotations, errors first; the headline as a notice if there are none.

    Rules that cannot be judged follow the violated ones of their level.
    """
    files, _ = describe_input(report.input)
    violated = [gate for level in COMMANDS for gate in (*report.violated(level), *report.unjudged(level))]
    shown = violated if len(violated) <= MOST else violated[: MOST - 1]
    lines = [_annotation(gate, files) for gate in shown]
    if left := len(violated) - len(shown):
        kind = COMMANDS[violated[len(shown)].level]
        lines.append(_command(kind, "calcheck", f"{left:,} more: {headline(report)}"))
    if not violated:
        lines.append(_command("notice", "calcheck", f"{headline(report)} by {', '.join(files)}"))
    return "".join(lines)


def _annotation(gate: Gate, files: list[str]) -> str:
    found = gate.message if gate.judged else f"cannot be judged: {gate.message}"
    return _command(COMMANDS[gate.level], f"calcheck: {gate.rule}", f"{found} in {', '.join(files)}")


def _command(kind: str, title: str, message: str) -> str:
    """Return a workflow command with its title and message escaped."""
    text = strip_control(message).replace("%", "%25")
    titled = strip_control(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={titled}::{text}\n"
