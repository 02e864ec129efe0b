"""Documents as a self-contained HTML page, without scripts, for light and dark screens."""

from collections.abc import Iterable, Iterator
from html import escape as escape_html

from calcheck.core.text import strip_control
from calcheck.render import document as blocks

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
.answer .line { white-space: pre-wrap; font-family: ui-monospace, monospace; font-size: 0.85em; }
dt { opacity: 0.75; }
dd { margin: 0; }
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
</style>
{body}
</div>
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
MARKS = {"best": "bold", "second": "underlined"}
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
            answer = element("span", escape(block.answer.text + block.answer.after), block.answer.emphasis)
            lines = [element("p", f"<strong>{escape(block.question)}</strong> {answer}")] if block.question else []
            lines.append(
                _definitions(((topic, cell.text) for topic, cell in block.effects), style="line" * block.lined)
            )
            commands = "<br>".join(element("code", escape(each)) for each in block.commands)
            yield element("div", "".join([*lines, element("p", f"Next: {commands}") if commands else ""]), "answer")
        case blocks.Paragraph():
            yield element("p", escape(block.text))
        case blocks.Details():
            yield _definitions(block.items, block.prefix)
        case blocks.Table():
            yield from _table(block)
        case blocks.Marks():
            meanings = (element("span", f"{MARKS[mark]}: {escape(text)}", mark) for mark, text in block.meanings)
            yield element("p", " · ".join(meanings), "legend")
        case blocks.Legend():
            yield from (element("p", escape(line), "legend") for line in block.lines)
        case blocks.Notes():
            yield element("ul", "".join(element("li", escape(line)) for line in block.lines))


def _definitions(items: Iterable[tuple[str, str]], prefix: str = "", style: str = "") -> str:
    """Return a list of names with their texts, with identifiers if there is a prefix; nothing without names."""
    term = f'<dt id="{prefix}{{0}}">{{0}}</dt>' if prefix else "<dt>{0}</dt>"
    lines = "".join(term.format(escape(name)) + element("dd", escape(text), style) for name, text in items)
    return element("dl", lines) if lines else ""


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
