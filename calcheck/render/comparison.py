"""Comparisons of models as tables for a terminal and in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.render.cells import number, read_in_words
from calcheck.render.comparison_model import (
    Column,
    columns_of,
    differences_of,
    format_p,
    interval_of,
    models_of,
    notes_of,
)
from calcheck.render.console import NARROW, rendered, safe_text, strip_control
from calcheck.render.markdown import escaped, line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from calcheck.report import Report, Result

MARKS, STYLES = {1: "*", 2: "+"}, {1: "bold", 2: "underline"}
ARROWS = {"smaller": "↓", "larger": "↑", "": ""}
WIDEST_NAME, GAP = 24, 2


def comparison_to_table(report: Report, *, legend: bool = True) -> str:
    """Return a comparison as tables for a terminal of at least 80 columns."""
    return rendered(*_parts(report, legend=legend))


def comparison_to_markdown(report: Report, *, legend: bool = True) -> str:  # noqa: ARG001 - it has no legend
    """Return a comparison in Markdown: the best value is bold, the second best underlined."""
    models, columns = models_of(report), columns_of(report)
    files, told = read_in_words(report.input)
    lines = [f"**{escaped(', '.join(files))}**: {escaped(told)}", ""]
    lines += [line(["model", *(f"{column.metric} {_direction(column)}".strip() for column in columns)])]
    lines += [line(["---", *["---:"] * len(columns)])]
    around = {1: ("**", "**"), 2: ("<ins>", "</ins>")}
    for place, model in enumerate(models):
        cells = []
        for column in columns:
            before, after = around.get(_rank(column.results[place]), ("", ""))
            cells.append(f"{before}{number(column.results[place].value)}{after}")
        lines.append(line([escaped(model), *cells]))
    lines += ["", line(["difference", "metric", "value", "interval", "p"])]
    lines += [line(["---", "---", "---:", "---:", "---:"])]
    for result in differences_of(report):
        minus = f"{escaped(str(result.slice['model']))} − {escaped(str(result.slice['minus']))}"
        lines.append(line([minus, result.metric, number(result.value), interval_of(result), format_p(result)]))
    noted = [f"- {escaped(note)}" for note in notes_of(report)]
    return "\n".join([*lines, *([""] if noted else []), *noted]) + "\n"


def _parts(report: Report, *, legend: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    models = models_of(report)
    names, told = read_in_words(report.input)
    yield Text("\n", no_wrap=True).join([safe_text(name, style="bold") for name in names] + [safe_text(told)])
    for columns in _stacked(models, columns_of(report)):
        yield _table(models, columns)
    marked = {_rank(result) for column in columns_of(report) for result in column.results}
    texts = {1: "* best", 2: "+ second"}
    if shown := [text for rank, text in texts.items() if legend and rank in marked]:
        yield safe_text(" · ".join(shown))
    for model in models[1:]:
        yield _differences([result for result in differences_of(report) if result.slice["model"] == model])
    if noted := notes_of(report):
        yield _notes(noted)


def _stacked(models: Sequence[str], columns: Sequence[Column]) -> Iterator[list[Column]]:
    """Yield groups of columns, each of which fits in a line."""
    name = min(WIDEST_NAME, max(len(strip_control(model)) for model in ("model", *models)))
    room, group = 0, list[Column]()
    for column in columns:
        cells = [column.metric, _direction(column), *(_marked(result) for result in column.results)]
        width = max(map(len, cells)) + GAP
        if group and room < width:
            yield group
            group = []
        room = (room if group else NARROW - name - GAP) - width
        group.append(column)
    yield group


def _table(models: Sequence[str], columns: Sequence[Column]) -> Table:
    """Return a table with models as rows and metrics as columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", overflow="ellipsis", no_wrap=True, max_width=WIDEST_NAME)
    for column in columns:
        table.add_column(Text("\n").join([safe_text(column.metric), safe_text(_direction(column))]), justify="right")
    for place, model in enumerate(models):
        results = [column.results[place] for column in columns]
        table.add_row(
            safe_text(model), *(safe_text(_marked(each), style=STYLES.get(_rank(each), "")) for each in results)
        )
    return table


def _differences(results: Sequence[Result]) -> Table:
    """Return a table of the differences of one model from the first."""
    from rich import box
    from rich.table import Table

    names = results[0].slice
    title = safe_text(f"{names['model']} minus {names['minus']}")
    table = Table(
        box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), title=title, title_justify="left"
    )
    table.add_column("metric")
    for name in ("difference", "interval", "p"):
        table.add_column(name, justify="right")
    for result in results:
        table.add_row(
            result.metric, safe_text(number(result.value)), safe_text(interval_of(result)), safe_text(format_p(result))
        )
    return table


def _notes(noted: Sequence[str]) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    for note in noted:
        grid.add_row("note", safe_text(note))
    return grid


def _direction(column: Column) -> str:
    """Return an arrow for the better values, and the unit."""
    arrow = ARROWS.get(column.better, f"→ {column.better}")
    return " ".join(part for part in (arrow, column.unit) if part)


def _marked(result: Result) -> str:
    return number(result.value) + MARKS.get(_rank(result), " ")


def _rank(result: Result) -> int:
    """Return 1 for the best value, 2 for the second best, 0 for others."""
    return int(result.details.get("rank", 0))
