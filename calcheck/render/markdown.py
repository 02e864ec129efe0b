"""Reports as Markdown, for pull requests and summaries of CI."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from calcheck.render.console import visible
from calcheck.render.summary import COLUMNS, cell, cells, is_listed, notes, read_in_words, subset_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Report

SPECIAL = re.compile(r"([\\`*_{}\[\]#!|~])")


def to_markdown(report: Report) -> str:
    """Render a report as a table with notes below it."""
    subset = subset_columns(report.results)
    files, told = read_in_words(report.input)
    lines = [f"**{escaped(', '.join(files))}**: {escaped(told)}", ""]
    lines += [
        line(["metric", *subset, *COLUMNS]),
        line(["---", *(["---:"] * (len(subset) + len(COLUMNS) - 1)), "---"]),
    ]
    for result in report.results:
        lines.append(
            line([result.metric, *(escaped(str(result.subset.get(name, ""))) for name in subset), *cells(result)])
        )
    for name, rows in report.results[0].details.items() if len(report.results) == 1 else ():
        if is_listed(rows):
            lines += ["", f"{name}:", "", line([escaped(column) for column in rows[0]]), line(["---"] * len(rows[0]))]
            lines += [line([escaped(cell(value)) for value in row.values()]) for row in rows]
    told_notes = [f"- {escaped(f'{metrics}: {note}' if metrics else note)}" for metrics, note in notes(report)]
    return "\n".join([*lines, *([""] if told_notes else []), *told_notes]) + "\n"


def escaped(text: str) -> str:
    r"""Write text so that nothing in it is markup, HTML, the end of a cell, or a mention of somebody.

    Examples
    --------
    >>> print(escaped("a|b <script> *c* @d"))
    a\|b &lt;script&gt; \*c\* &#64;d
    """
    shown = SPECIAL.sub(r"\\\1", visible(text))
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "&#64;")):
        shown = shown.replace(character, entity)
    return shown


def line(cells: Sequence[str]) -> str:
    """Write a line of a table; the cells are escaped already."""
    return f"| {' | '.join(cells)} |"
