"""Reports as text: builders make documents of them, and each format renders documents in a module of its own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from calcheck.render.document import Document

__all__ = ["FORMATS", "Format", "format_names", "render"]

Kind = Literal["report", "rules", "diff"]


@dataclass(frozen=True)
class Format:
    """A format of reports.

    Parameters
    ----------
    module : str
        Module in this package, whose function ``render`` returns the text. It is imported when the format is used.
    data : bool
        Whether ``render`` takes the report itself; otherwise it takes the document that a builder made.
    kinds : tuple of str
        What the format can show: a report, a report with rules, the changes between two reports.
    separator : str or None
        Text between several reports in one output; None if the format holds only one report.
    """

    module: str
    data: bool = False
    kinds: tuple[Kind, ...] = ("report", "rules", "diff")
    separator: str | None = None

    def renderer(self) -> Callable[[Any], str]:
        """Return the function that renders a document, or a report if the format holds data."""
        function: Callable[[Any], str] = import_module(f"calcheck.render.{self.module}").render
        return function


FORMATS = {
    "table": Format("terminal", separator="\n"),
    "json": Format("json", data=True),
    "jsonl": Format("jsonl", data=True, kinds=("report", "rules"), separator=""),
    "csv": Format("csv", data=True, kinds=("report", "rules")),
    "markdown": Format("markdown", separator="\n"),
    "latex": Format("latex", separator="\n"),
    "html": Format("html"),
    "junit": Format("junit", data=True, kinds=("rules",)),
    "github": Format("github", data=True, kinds=("rules",)),
}
"""The formats, by their names in ``--format``."""


def format_names(kind: Kind) -> tuple[str, ...]:
    """Return the names of the formats that can show a kind of report."""
    return tuple(name for name, known in FORMATS.items() if kind in known.kinds)


def render(report: Any, name: str, build: Callable[[Any], Document], *, legend: bool = True) -> str:
    """Return a report in one of the formats.

    Parameters
    ----------
    report : Report or Diff
        What to show.
    name : str
        Name of the format.
    build : callable
        Builder of the document, such as ``report_document``.
    legend : bool
        Whether the document has a legend.
    """
    known = FORMATS[name]
    if known.data:
        return known.renderer()(report)
    document = build(report)
    return known.renderer()(document if legend else document.without_legend())
