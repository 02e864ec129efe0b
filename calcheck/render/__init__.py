"""Reports as text: builders make documents of them, and each format renders documents in a module of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from calcheck.charts.picture import Picture
    from calcheck.render.document import Document

__all__ = ["FORMATS", "PAGE", "Format", "format_names", "formats_of", "render"]

Kind = Literal["report", "rules", "diff"]


@dataclass(frozen=True)
class Format:
    """A format of reports."""

    # Function that returns the text, with its module in this package, which is imported when the format is used
    function: str
    data: bool = False  # Whether the function takes the report itself; otherwise it takes the document of a builder
    # What the format can show: a report, a report with rules, the changes between two reports
    kinds: tuple[Kind, ...] = ("report", "rules", "diff")
    separator: str | None = None  # Text between several reports in one output; None if the format holds only one report
    suffixes: tuple[str, ...] = ()  # File name extensions of the format, the usual one first

    def renderer(self) -> Callable[[Any], str]:
        """Return the function that renders a document, or a report if the format holds data."""
        module, _, name = self.function.partition(".")
        function: Callable[[Any], str] = getattr(import_module(f"calcheck.render.{module}"), name)
        return function


PAGE = "page"  # The format of a page: what a document says, with pictures

FORMATS = {
    "table": Format("terminal.render", separator="\n", suffixes=(".txt",)),
    "json": Format("data.render_json", data=True, suffixes=(".json",)),
    "jsonl": Format("data.render_jsonl", data=True, kinds=("report", "rules"), separator="", suffixes=(".jsonl",)),
    "csv": Format("data.render_csv", data=True, kinds=("report", "rules"), suffixes=(".csv",)),
    "markdown": Format("markdown.render", separator="\n", suffixes=(".md", ".markdown")),
    "latex": Format("latex.render", separator="\n", suffixes=(".tex",)),
    PAGE: Format("page.render_page", suffixes=(".html", ".htm")),
    "html": Format("page.render", suffixes=(".html", ".htm")),
    "junit": Format("data.render_junit", data=True, kinds=("rules",), suffixes=(".xml",)),
    "github": Format("data.render_github", data=True, kinds=("rules",), suffixes=(".txt",)),
}
"""The formats, by their names in ``--format``. A suffix that two formats share selects the first of them."""


def format_names(kind: Kind) -> tuple[str, ...]:
    """Return the names of the formats that can show a kind of report."""
    return tuple(name for name, known in FORMATS.items() if kind in known.kinds)


def formats_of(path: str) -> tuple[str, ...]:
    """Return the names of the formats with the suffix of a path; none for an unknown suffix.

    >>> formats_of("report.HTML"), formats_of("report.txt"), formats_of("report")
    (('page', 'html'), ('table', 'github'), ())
    """
    suffix = PurePath(path).suffix.lower()
    return tuple(name for name, known in FORMATS.items() if suffix in known.suffixes)


def render(
    report: Any,
    name: str,
    build: "Callable[[Any], Document]",
    *,
    legend: bool = True,
    pictures: "Sequence[Picture]" = (),
    view: Literal["full", "screen", "file"] = "full",  # Of text
) -> str:
    """Return a report in one of the formats; a page has pictures, too."""
    known = FORMATS[name]
    if known.data:
        return known.renderer()(report)
    document = build(report) if legend else build(report).without_legend()
    if name == "table":
        from calcheck.render import terminal

        return terminal.render(document, view)
    if name != PAGE:
        return known.renderer()(document)

    from calcheck.render.page import page_of_document

    return known.renderer()(page_of_document(document, report, pictures))
