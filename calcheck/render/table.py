"""Reports as tables for a terminal, with the details of a single result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calcheck.render.cells import (
    COLUMNS,
    GATE_COLUMNS,
    cell,
    cells,
    is_listed,
    legend_lines,
    notes,
    number,
    outcome,
    read_in_words,
    reference_text,
    subset_columns,
)
from calcheck.render.console import rendered, safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from calcheck.report import Gate, Input, Report, Result

COLORS = {"pass": "green", "fail": "bold red", "undecided": "yellow", "none": "dim"}
OUTCOME_COLORS = {"passed": COLORS["pass"], "violated": COLORS["fail"], "warned": COLORS["undecided"]}
LINE = 78  # maximum width of a table of listed rows, in characters
NEGLIGIBLE = 1e-4  # relative error below which the error of a detail is not shown
MAX_CELL_WIDTH = 20  # maximum width of a cell of a listed row, in characters


def to_table(report: Report, *, legend: bool = True) -> str:
    """Return a report as a table for a terminal of at least 80 columns."""
    return rendered(*_parts(report, legend=legend))


def _parts(report: Report, *, legend: bool) -> Iterator[RenderableType]:
    detailed = len(report.results) == 1 and not report.gates
    yield _read(report.input)
    if report.gates:
        yield _gates(report.gates)
    if report.results:
        yield _overview(report.results)
    if detailed:
        (result,) = report.results
        yield safe_text(result.summary)
        if not all(map(is_listed, result.details.values())):
            yield _details(result)
        for name, value in result.details.items():
            if is_listed(value):
                yield _listed(name, value)
    if lines := legend_lines(report, details=detailed) if legend else []:
        yield _legend(lines)
    if noted := notes(report):
        yield _notes(noted)


def _read(read: Input) -> RenderableType:
    """Return the file names, followed by a line about the rows."""
    from rich.text import Text

    names, told = read_in_words(read)
    return Text("\n", no_wrap=True).join([safe_text(name, style="bold") for name in names] + [safe_text(told)])


def _gates(gates: Sequence[Gate]) -> Table:
    """Return a table with one line per rule."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name in GATE_COLUMNS:
        table.add_column(name, overflow="fold")
    for gate in gates:
        told = outcome(gate)
        table.add_row(safe_text(gate.rule), safe_text(told, style=OUTCOME_COLORS[told]), safe_text(gate.message))
    return table


def _overview(results: Sequence[Result]) -> Table:
    """Return a table with one line per result."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    subset = subset_columns(results)
    table.add_column("metric")
    for name in (*subset, *COLUMNS[:-1]):
        table.add_column(name, justify="right")
    table.add_column(COLUMNS[-1])
    previous = results[0].metric
    for result in results:
        if subset and result.metric != previous:
            table.add_section()
        previous = result.metric
        value, *others, verdict = cells(result)
        table.add_row(
            result.metric,
            *(safe_text(str(result.slice.get(name, ""))) for name in subset),
            safe_text(value, style="bold"),
            *(safe_text(other) for other in others),
            safe_text(verdict, style=COLORS[result.verdict]),
        )
    return table


def _details(result: Result) -> Table:
    """Return the details of a result, one topic per line."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    if told := reference_text(result):
        grid.add_row("if perfect", safe_text(told))
    for name, value in result.details.items():
        if is_listed(value) or name.endswith("_error"):
            continue
        told = _told(value)
        error = result.details.get(f"{name}_error")
        if error and error > NEGLIGIBLE * abs(value):
            told += f" ± {number(error)}"
        grid.add_row(name, safe_text(told))
    return grid


def _told(value: Any) -> str:
    """Return a detail in one line."""
    if isinstance(value, dict):
        told = (f"{'' if name == 'of' else '· '}{name} {_told(item)}" for name, item in value.items())
        return " ".join(told).removeprefix("· ")
    if isinstance(value, (list, tuple)):
        return ", ".join(_told(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)


def _listed(name: str, rows: list[dict[str, Any]]) -> Table:
    """Return a table of listed rows, with as many columns as fit in a line."""
    from rich import box
    from rich.table import Table

    columns, room = [], LINE
    for column in rows[0]:
        width = min(MAX_CELL_WIDTH, max(len(column), *(len(cell(row[column])) for row in rows)))
        room -= width + 3
        if room < 0:
            break
        columns.append(column)
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, title=name, title_justify="left")
    for column in columns:
        numeric = all(isinstance(row[column], (int, float)) for row in rows)
        table.add_column(
            safe_text(column),
            justify="right" if numeric else "left",
            overflow="ellipsis",
            no_wrap=True,
            max_width=MAX_CELL_WIDTH,
        )
    for row in rows:
        table.add_row(*(safe_text(cell(row[column])) for column in columns))
    return table


def _legend(lines: Sequence[str]) -> RenderableType:
    """Return the legend, one line per term."""
    from rich.text import Text

    return Text("\n").join([safe_text(line, style="dim") for line in lines])


def _notes(noted: Sequence[tuple[str, str]]) -> RenderableType:
    """Return the notes, one per line."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    for metrics, note in noted:
        grid.add_row("note", safe_text(f"{metrics}: {note}" if metrics else note))
    return grid
