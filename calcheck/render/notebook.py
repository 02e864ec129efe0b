"""Reports as HTML for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from calcheck.render.cells import COLUMNS, cells, legend_lines, notes, read_in_words, subset_columns
from calcheck.render.console import strip_control

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.report import Report, Result

STYLES = {"pass": "color:green", "fail": "color:crimson;font-weight:bold", "undecided": "color:darkorange"}


def to_notebook_html(report: Report) -> str:
    """Return a report as an HTML table, with what was read above it, and the legend and notes below it.

    All text is escaped: names of columns, files and models may hold HTML.
    """
    return "\n".join(["<div>", *_parts(report), "</div>", ""])


def _parts(report: Report) -> Iterator[str]:
    files, description = read_in_words(report.input)
    yield f"<p>{'<br>'.join([*(f'<b>{_escaped(name)}</b>' for name in files), _escaped(description)])}</p>"
    if report.results:
        yield from _table(report.results)
        yield from (f"<p><small>{_escaped(text)}</small></p>" for text in legend_lines(report, details=False))
    texts = [f"{metrics}: {note}" if metrics else note for metrics, note in notes(report)]
    yield from ["<ul>", *(f"<li>{_escaped(text)}</li>" for text in texts), "</ul>"] if texts else []


def _table(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of a table with one row per result."""
    slices = subset_columns(results)
    yield "<table>"
    yield _row("th", ["metric", *slices, *COLUMNS])
    for result in results:
        *numbers, verdict = cells(result)
        row = _row("td", [result.metric, *(str(result.slice.get(name, "")) for name in slices), *numbers])
        style = STYLES.get(verdict, "")
        yield row.replace("</tr>", f'<td style="{style}">{_escaped(verdict)}</td></tr>')
    yield "</table>"


def _row(tag: str, texts: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_escaped(text)}</{tag}>' for text in texts)}</tr>"


def _escaped(text: str) -> str:
    """Return text without markup and control characters.

    Examples
    --------
    >>> print(_escaped("<b>&'"))
    &lt;b&gt;&amp;&#x27;
    """
    return escape(strip_control(text))
