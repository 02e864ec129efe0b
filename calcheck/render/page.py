"""HTML: documents, and pages with pictures and maps to explore."""

import gzip
import json
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from html import escape as escape_html
from math import isfinite
from pathlib import Path
from typing import Any

from calcheck.charts import drawing
from calcheck.charts.picture import Axis, Cells, Hatching, Mark, Panel, Picture, Rule
from calcheck.core.text import embed, strip_control
from calcheck.render import document as blocks
from calcheck.render.data import fields_of
from calcheck.render.document import Answer, Block, Column, Document, Legend, Marks, Source, Table, row_of
from calcheck.render.numbers_and_notes import describe_input, number
from calcheck.reports import Input, Report

ASSETS = Path(__file__).with_name("assets")
SCRIPT_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
MAX_HEADING = 6
MOST_PANELS, MOST_NAMED = 4, 5  # Of a picture that are not folded, and of models in a title
MAP_WIDTH = 340  # Of a map with its labels, in pixels
HASH = 12  # Shown characters of a hash


@dataclass(frozen=True)
class Figure:
    """A picture with its numbers."""

    picture: Picture
    numbers: tuple[Table, ...] = ()  # What it shows, in numbers
    width: float = drawing.PAGE_WIDTH  # Of a panel with its labels, in pixels


@dataclass(frozen=True)
class LinkedMap:
    """A map of which regions can be selected; a table and a histogram show what is in the region."""

    picture: Picture  # The map, with one panel whose first mark is the cells
    histogram: Picture | None  # Histogram of all rows, with one panel
    others: tuple[Picture, ...]  # Further maps of the same variables
    table: Table  # Quantities of all rows
    data: dict[str, Any]  # Sums over the rows of each cell, as JSON


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown on request."""

    title: str  # What is shown
    blocks: "tuple[PageBlock, ...]"


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    title: str  # The heading
    blocks: "tuple[PageBlock, ...]"


@dataclass(frozen=True)
class Row:
    """Blocks that are shown side by side where there is room."""

    blocks: "tuple[PageBlock, ...]"


@dataclass(frozen=True)
class Contents:
    """What the page is about, and links to its sections."""

    about: str
    titles: tuple[str, ...]


@dataclass(frozen=True)
class Data:
    """Data for programs that read the page, which it does not show."""

    kind: str  # What the data are
    content: str  # The data, as JSON


PageBlock = Block | Figure | LinkedMap | Folded | Section | Row | Contents | Data


@dataclass(frozen=True)
class Page:
    """A document for a browser, with sections, pictures and data."""

    title: str
    blocks: tuple[PageBlock, ...]  # Content, in order
    calcheck: str = ""  # Version of calcheck that made the page


def page_of_document(document: Document, report: Any, pictures: Sequence[Picture]) -> Page:
    """Return the page of a document: its blocks, pictures with their numbers, and the report as data."""
    blocks: list[PageBlock] = [*document.blocks]
    if isinstance(report, Report) and isinstance(blocks[0], Source):
        blocks[0] = Contents(about([report.input]), ())
    answers = [place for place, each in enumerate(blocks, 1) if isinstance(each, Answer)]
    place = answers[-1] if answers and len(pictures) == 1 else len(blocks)
    blocks[place:place] = [row for each in pictures for row in _folded(each)]
    blocks += [Data("report", report_data(report))] if isinstance(report, Report) else []
    names = _names_of(report) if isinstance(report, Report) else []
    title = ": ".join(["calcheck", *filter(None, [", ".join(names[:MOST_NAMED])])])
    return Page(document.title or title, tuple(blocks), document.calcheck)


def about(inputs: Iterable[Input]) -> str:
    """Return the date and what was read, with the beginnings of the hashes of the files that are named."""
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")  # For builds that are reproduced
    today = datetime.fromtimestamp(int(stated), UTC) if stated.isdecimal() else datetime.now(UTC)
    texts = [f"{today:%-d %B %Y}"]
    for each in inputs:
        names, text = describe_input(each)
        hashes = [file.sha256[:HASH] for file in each.files if file.sha256][: len(names)]
        texts += [f"{', '.join(names)}: {text}" if names else text, *(f"SHA-256 {known}…" for known in hashes)]
    return " · ".join(texts)


def _names_of(report: Report) -> list[str]:
    """Return the names of the models of a report, or of its first file."""
    models = dict.fromkeys(str(each.slice["model"]) for each in report.results if "model" in each.slice)
    return list(models) or [Path(each.path).stem for each in report.input.files[:1]]


def _folded(picture: Picture) -> Iterator[PageBlock]:
    """Yield the first panels of a picture, and the others folded, if there are many."""
    first, rest = picture.panels[:MOST_PANELS], picture.panels[MOST_PANELS:]
    yield Row((figure(replace(picture, panels=first)),))
    if rest:
        others = replace(picture, panels=rest, title="", expected="")
        yield Folded(f"{len(rest)} more picture{'s' * (len(rest) > 1)}", (Row((figure(others),)),))


def report_data(report: Report) -> str:
    """Return a report as JSON, without the curves that its pictures show."""
    plain = replace(report, results=tuple(replace(result, curves=()) for result in report.results))
    return json.dumps(fields_of(plain), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def without_legends(blocks: tuple[PageBlock, ...]) -> tuple[PageBlock, ...]:
    """Return blocks without legends and meanings of marks."""
    return tuple(
        replace(block, blocks=without_legends(block.blocks)) if isinstance(block, Folded | Section | Row) else block
        for block in blocks
        if not isinstance(block, Legend | Marks)
    )


def render_page(page: Page) -> str:
    """Return a page as HTML."""
    lines = [element("h1", escape(page.title)), *_all(page.blocks, 2)]
    lines += [_library(drawing.javascript())] if drawing.engine_starts() and any(map(_has_map, page.blocks)) else []
    lines += [f"<script>{_asset('page.js')}</script>"]
    return PAGE.format(
        generator=escape(f"calcheck {page.calcheck}"),
        title=escape(page.title),
        policy=SCRIPT_POLICY,
        style=STYLE + "\n" + _asset("page.css"),
        body="\n".join(lines),
    )


def _name_of(title: str) -> str:
    """Return the identifier of a section."""
    return escape(title.lower().replace(" ", "-"))


def _library(script: str) -> str:
    """Return a script as compressed data, a third of its size, which the script of the page runs."""
    packed = b64encode(gzip.compress(script.encode(), mtime=0)).decode()
    return f'<script type="text/plain" id="library">{packed}</script>'


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8").rstrip()


def _has_map(block: PageBlock) -> bool:
    """Return whether a block is or contains a map."""
    return isinstance(block, LinkedMap) or (
        isinstance(block, Folded | Section | Row) and any(map(_has_map, block.blocks))
    )


def _lines(block: PageBlock, level: int) -> Iterator[str]:
    """Yield the lines of a block; its headings are of a level."""
    match block:
        case Section():
            yield f'<section id="{_name_of(block.title)}">' if level == 2 else "<section>"  # noqa: PLR2004 - of the page
            yield element(f"h{min(level, MAX_HEADING)}", escape(block.title))
            yield from _all(block.blocks, level + 1)
            yield "</section>"
        case Row():
            yield '<div class="row">'
            yield from _all(block.blocks, level)
            yield "</div>"
        case Folded():
            yield "<details>"
            yield element("summary", escape(block.title))
            yield from _all(block.blocks, level)
            yield "</details>"
        case Figure():
            yield "<figure>"
            yield from _drawing(block.picture, block.width)
            yield from _lines(Folded("Numbers", block.numbers), level) if block.numbers else ()
            yield "</figure>"
        case Contents():
            yield element("p", escape(block.about), "about")
            links = (f'<a href="#{_name_of(title)}">{escape(title)}</a>' for title in block.titles)
            yield from [element("nav", " ".join(links))] if block.titles else []
        case LinkedMap():
            yield from _linked_map(block)
        case Data():
            yield embed(block.kind, block.content)
        case _:
            yield from block_lines(block)


def _all(blocks: tuple[PageBlock, ...], level: int) -> Iterator[str]:
    for block in blocks:
        yield from _lines(block, level)


def _drawing(picture: Picture, width: float = drawing.PAGE_WIDTH, style: str = "drawing") -> Iterator[str]:
    """Yield a picture: its titles and its legend as text, and each panel, or why there is none."""
    if picture.title or picture.expected:
        title = element("strong", escape(drawing.plain_name(picture.title, drawing.LONGEST_TITLE)))
        yield element("figcaption", f"{title} {escape(picture.expected)}")
    if not drawing.engine_starts():
        yield element("p", escape(drawing.NO_ENGINE))
        return
    specs = zip(picture.panels, drawing.panel_specs(picture, width), strict=True)
    panels = (
        (element("p", escape(panel.title)) if panel.title else "")
        + element("div", drawing.draw_spec(spec, picture.description or picture.title), style)
        for panel, spec in specs
    )
    yield element("div", "".join(element("div", panel) for panel in panels), "panels")
    names = (
        f'<span><i style="background: {color}"></i>{escape(name)}</span>'
        for name, color in drawing.legend(picture).items()
    )
    yield element("p", " ".join(names), "keys")


def _linked_map(block: LinkedMap) -> Iterator[str]:
    """Yield a map: its pictures and its table for all rows, which the script of the page replaces."""
    specs = {"map": drawing.selectable(*drawing.panel_specs(block.picture, MAP_WIDTH))}
    specs["map"]["layer"][0]["data"].pop("values")  # The script takes them from the data
    pictures = [("map", block.picture), *(("drawing", each) for each in block.others)]
    if block.histogram is not None:
        specs["histogram"] = drawing.replaceable(*drawing.panel_specs(block.histogram, MAP_WIDTH))
        pictures.append(("histogram", block.histogram))
    yield '<div class="linked-map whole">'
    yield '<p class="choice" hidden><label>Region: <select></select></label> or drag over the map</p>'
    yield '<div class="row">'
    for name, picture in pictures:
        yield element("figure", "\n".join(_drawing(picture, MAP_WIDTH, name)))
    yield '<div class="region" aria-live="polite">'
    yield '<p class="region-name">All rows</p>'
    yield from block_lines(block.table)
    yield "</div>"
    yield "</div>"
    content = json.dumps({**block.data, "specs": specs}, allow_nan=False, separators=(",", ":"))
    yield embed("map", content)
    yield "</div>"


HEADS = {
    "x": "{x}",
    "start": "{x} from",
    "stop": "{x} to",
    "x_start": "{x} from",
    "x_stop": "{x} to",
    "y_start": "{y} from",
    "y_stop": "{y} to",
    "y": "{y}",
    "low": "low",
    "high": "high",
    "value": "value",
}  # Heads of the columns about the coordinates of a mark, by their names
OF_X = frozenset({"x", "start", "stop", "x_start", "x_stop"})
MAX_CELLS = 50  # maximum cells of a map in a table
LIMITS = frozenset({"low", "high"})


def figure(picture: Picture) -> Figure:
    """Return a picture with its numbers: a table for each mark with coordinates."""
    return Figure(picture, tuple(_tables(picture)))


def _tables(picture: Picture) -> Iterator[Table]:
    for panel in picture.panels:
        for mark in panel.marks:
            if not isinstance(mark, Hatching | Rule):
                name = mark.label if isinstance(mark, Cells) else mark.name
                yield _mark_table(mark, panel, " · ".join(filter(None, (panel.title, name))))


def _mark_table(mark: Mark, panel: Panel, title: str) -> Table:
    """Return the table of the coordinates of a mark, with the names of categories."""
    x, y = panel.x.label or "x", panel.y.label or "y"
    found = {name: values for name, values in _coordinates(mark).items() if len(values)}
    if isinstance(mark, Cells) and len(mark.value) > MAX_CELLS:
        title += f" · the {MAX_CELLS} largest of {len(mark.value)} values"
        found = _largest(found, mark)
    columns = tuple(Column(HEADS[name].format(x=x, y=y), "right") for name in HEADS if name in found)
    texts = [_texts(found[name], _axis(name, mark, panel)) for name in HEADS if name in found]
    return Table(columns, tuple(row_of(*row) for row in zip(*texts, strict=True)), title)


def _largest(found: dict[str, Sequence[float]], mark: Cells) -> dict[str, Sequence[float]]:
    """Return the coordinates of the cells with the largest values, or with those farthest from the middle."""
    sizes = [value if mark.middle is None else abs(value - mark.middle) for value in mark.value]
    known = [place for place, size in enumerate(sizes) if isfinite(size)]
    chosen = sorted(known, key=lambda place: -sizes[place])[:MAX_CELLS]
    return {name: [values[place] for place in chosen] for name, values in found.items()}


def _coordinates(mark: Mark) -> dict[str, Sequence[float]]:
    values = {field.name: getattr(mark, field.name) for field in fields(mark)}
    return {name: value for name, value in values.items() if name in HEADS and not isinstance(value, float | None)}


def _axis(name: str, mark: Mark, panel: Panel) -> Axis:
    """Return the axis of a coordinate; limits of horizontal intervals are along the x-axis."""
    along_x = name in OF_X or (name in LIMITS and getattr(mark, "horizontal", False))
    return panel.x if along_x else panel.y


def _texts(values: Sequence[float], axis: Axis) -> list[str]:
    return [axis.names[int(value)] if axis.names else number(float(value)) for value in values]


STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1.5rem 0; display: block; overflow-x: auto; }
caption { text-align: left; font-weight: 600; }
th, td { padding: 0.2rem 0.8rem; text-align: left; font-variant-numeric: tabular-nums; }
thead th { border-bottom: 1px solid; }
.right { text-align: right; }
.short { white-space: nowrap; }
.group { text-align: center; }
.strong, .best { font-weight: 700; }
.second { text-decoration: underline; }
.pass { color: #1a7f37; }
.fail { color: #cf222e; font-weight: 700; }
.undecided { color: #8a5a00; }
.none, .legend { opacity: 0.75; }
.answer dl, dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; }
.answer code > span { display: inline-block; max-width: 100%; overflow-wrap: anywhere; }
.answer .line { white-space: pre-wrap; font-family: ui-monospace, monospace; font-size: 0.85em; }
dt { opacity: 0.75; }
dd { margin: 0; }
@page { size: A4; margin: 1.2cm; }
@media (max-width: 40rem) {
  table { font-size: 0.85em; }
  th, td { padding: 0.2rem 0.3rem; }
  .minor { display: none; }
}
@media (prefers-color-scheme: dark) {
  .pass { color: #56d364; }
  .fail { color: #ff7b72; }
  .undecided { color: #e3b341; }
}
""".strip()
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="{generator}">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""
NOTEBOOK_STYLE = "\n".join(
    f".calcheck {rule.replace(', .', ', .calcheck .')}" for rule in STYLE.splitlines() if rule.startswith(".")
)
NOTEBOOK = """<div class="calcheck">
<style>
{style}
.calcheck svg {{ max-width: 100%; height: auto; }}
</style>
{body}
</div>
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
MARKS = {"best": "bold", "second": "underlined"}
MOST_COLUMNS = 8  # Of a table whose columns are not rows where these could be split
SHORT = 12  # Characters of a cell that does not break at its hyphens, such as a date


def render(document: blocks.Document) -> str:
    """Return a document as an HTML page: best values are bold, second best values underlined."""
    head = [element("h1", escape(document.title))] if document.title else []
    return PAGE.format(
        generator=escape(f"calcheck {document.calcheck}"),
        title=escape(document.title or "calcheck"),
        policy=POLICY,
        style=STYLE,
        body="\n".join([*head, *(line for block in document.blocks for line in block_lines(block))]),
    )


def render_fragment(document: blocks.Document, drawings: Iterable[str] = ()) -> str:
    """Return a document as a part of a page, for notebooks, above drawings in SVG."""
    lines = [line for block in document.blocks for line in block_lines(block)]
    return NOTEBOOK.format(style=NOTEBOOK_STYLE, body="\n".join([*lines, *map("<figure>{}</figure>".format, drawings)]))


def escape(text: str) -> str:
    """Return text with control characters and HTML escaped.

    >>> print(escape('<b> & "c"'))
    &lt;b&gt; &amp; &quot;c&quot;
    """
    return escape_html(strip_control(text))


def block_lines(block: blocks.Block) -> Iterator[str]:
    """Yield the lines of a block."""
    match block:
        case blocks.Source():
            files = ", ".join(map(escape, block.files))
            yield element("p", f"<strong>{files}</strong>: {escape(block.text)}" if files else escape(block.text))
        case blocks.Answer():
            answer = element("span", escape(block.answer.full_text), block.answer.emphasis)
            lines = [element("p", f"<strong>{escape(block.question)}</strong> {answer}")] if block.question else []
            effects = ((topic, cell.full_text) for topic, cell in block.effects)
            lines.append(_definitions(effects, style="line" * block.lined))
            next_ = (
                element("dt", name) + element("dd", element("code", _unbroken(each))) for name, each in block.purposes
            )
            yield element(
                "div", "".join([*lines, element("dl", "".join(next_), "next") * bool(block.commands)]), "answer"
            )
        case blocks.Paragraph():
            yield element("p", escape(block.text))
        case blocks.Details():
            yield _definitions(block.items, block.prefix)
        case blocks.Table():
            yield from _tables_of(block)
        case blocks.Marks():
            meanings = (element("span", f"{MARKS[mark]}: {escape(text)}", mark) for mark, text in block.meanings)
            yield element("p", " · ".join(meanings), "legend")
        case blocks.Legend():
            yield from (element("p", escape(line), "legend") for line in block.lines)
        case blocks.Notes():
            yield element("ul", "".join(element("li", escape(line)) for line in block.lines))


def _unbroken(command: str) -> str:
    """Return a command in words, each of which is in one line if it fits."""
    return " ".join(element("span", escape(word)) for word in command.split(" "))


def _definitions(items: Iterable[tuple[str, str]], prefix: str = "", style: str = "") -> str:
    """Return a list of names with their texts, with identifiers if there is a prefix; nothing without names."""
    term = f'<dt id="{prefix}{{0}}">{{0}}</dt>' if prefix else "<dt>{0}</dt>"
    lines = "".join(term.format(escape(name)) + element("dd", escape(text), style) for name, text in items)
    return element("dl", lines) if lines else ""


def _tables_of(table: blocks.Table) -> Iterator[str]:
    """Yield the lines of a table, or of one for each group of rows; wide tables have their columns as rows."""
    is_wide = table.overflow == "split" and table.keys == 1 and len(table.columns) > MOST_COLUMNS
    for each in blocks.by_first_cell(table) if table.groups == "title" else [_transposed(table) if is_wide else table]:
        yield from _table(each)


def _transposed(table: blocks.Table) -> blocks.Table:
    """Return a table with a row for each column but the first, whose cells are the heads."""
    heads = (Column(""), *(Column(row[0].text, "right") for row in table.rows))
    cells = zip(*(row[1:] for row in table.rows), strict=True)
    names = (": ".join(filter(None, (column.group, column.head))) for column in table.columns[1:])
    rows = tuple((*row_of(name), *row) for name, row in zip(names, cells, strict=True))
    return replace(table, columns=heads, rows=rows)


def _table(table: blocks.Table) -> Iterator[str]:
    """Yield the lines of a table, one per row."""
    yield '<table class="sortable">' if table.sortable else "<table>"
    if table.title:
        yield element("caption", escape(table.title))
    heads = _row(element("th", escape(column.head), _class(column)) for column in table.columns)
    groups = blocks.column_groups(table)
    cells = (f'<th class="group" colspan="{count}" scope="colgroup">{escape(name)}</th>' for name, count in groups)
    yield element("thead", (_row(cells) if groups else "") + heads)
    yield "<tbody>"
    for row in blocks.shown_rows(table):
        yield _row(map(_cell, row, table.columns))
    yield "</tbody>"
    yield "</table>"


def _cell(cell: blocks.Cell, column: blocks.Column) -> str:
    text = escape(cell.text)
    marked = element("span", text, cell.emphasis) if cell.emphasis else text
    marked = f'<a href="#{escape(cell.link)}">{marked}</a>' if cell.link else marked
    whole = "short" if "-" in cell.text and len(cell.text) <= SHORT and column.align != "right" else ""
    return element("td", marked + escape(cell.after), " ".join(filter(None, (_class(column), whole))))


def _class(column: blocks.Column) -> str:
    """Return the classes of the cells of a column: numbers are on the right, minor columns absent on narrow screens."""
    return " ".join(["right"] * (column.align == "right") + ["minor"] * (column.rank > 0))


def _row(cells: Iterable[str]) -> str:
    return element("tr", "".join(cells))


def element(tag: str, content: str, style: str = "") -> str:
    """Return an element; its content is escaped already."""
    return f'<{tag} class="{style}">{content}</{tag}>' if style else f"<{tag}>{content}</{tag}>"
