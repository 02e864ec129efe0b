"""Reports as Markdown, for pull requests and CI summaries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from calcheck.render.cells import (
    COLUMNS,
    GATE_COLUMNS,
    cell,
    cells,
    headline,
    is_listed,
    legend_lines,
    notes,
    outcome,
    read_in_words,
    subset_columns,
)
from calcheck.render.console import strip_control

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.report import Report

SPECIAL = re.compile(r"([\\`*_{}\[\]#!|~])")


def to_markdown(report: Report, *, legend: bool = True) -> str:
    """Return a report as a Markdown table, with the rules above it and notes below it."""
    return "\n".join(_lines(report, legend=legend)) + "\n"


def _lines(report: Report, *, legend: bool) -> Iterator[str]:
    if report.gates:
        yield from (f"### calcheck: {headline(report)}", "")
    files, told = read_in_words(report.input)
    yield from (f"**{escaped(', '.join(files))}**: {escaped(told)}", "")
    if report.gates:
        gates = [[escaped(text) for text in (gate.rule, outcome(gate), gate.message)] for gate in report.gates]
        yield from (*_table(GATE_COLUMNS, gates), "")
    yield from _results(report)
    for text in legend_lines(report, details=False) if legend else ():
        yield from ("", escaped(text))
    for name, rows in report.results[0].details.items() if len(report.results) == 1 and not report.gates else ():
        if is_listed(rows):
            listed = [[escaped(cell(value)) for value in row.values()] for row in rows]
            yield from ("", f"{name}:", "", *_table([escaped(column) for column in rows[0]], listed))
    told_notes = [f"- {escaped(f'{metrics}: {note}' if metrics else note)}" for metrics, note in notes(report)]
    yield from ("", *told_notes) if told_notes else ()


def _results(report: Report) -> list[str]:
    """Return a table with one line per result."""
    subset = subset_columns(report.results)
    rows = [
        [result.metric, *(escaped(str(result.slice.get(name, ""))) for name in subset), *cells(result)]
        for result in report.results
    ]
    rule = ["---", *["---:"] * (len(subset) + len(COLUMNS) - 1), "---"]
    return _table(["metric", *subset, *COLUMNS], rows, rule)


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


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], rule: Sequence[str] | None = None) -> list[str]:
    """Return the lines of a table; the rule below the head sets the alignment."""
    return [line(cells) for cells in (head, rule or ["---"] * len(head), *rows)]


def line(cells: Sequence[str]) -> str:
    """Return a line of a table from escaped cells."""
    return f"| {' | '.join(cells)} |"
