"""Reports for people: a table that reads at a glance, and what stands behind a single number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calcheck.render.console import rendered, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.table import Table

    from calcheck.report import Input, Report, Result

ABSENT = "–"
LISTS = ("worst", "best")
COLORS = {"pass": "green", "fail": "bold red", "undecided": "yellow", "none": "dim"}
LINE = 78  # what listed rows may take of a line
NEGLIGIBLE = 1e-4  # share of a value below which its error is not worth a place
WIDEST = 20  # cell of a listed row


def to_table(report: Report) -> str:
    """Render a report for a terminal of at least 80 columns."""
    return rendered(*_parts(report))


def number(value: float | None) -> str:
    """Write a number to four digits.

    Examples
    --------
    >>> number(0.0612345), number(1181.0), number(None)
    ('0.06123', '1181', '–')
    """
    return ABSENT if value is None else f"{value:.4g}"


def _parts(report: Report) -> Iterator[RenderableType]:
    yield _read(report.input)
    if report.results:
        yield _overview(report.results)
    if len(report.results) == 1:
        (result,) = report.results
        yield words(result.summary)
        yield _details(result)
        for name in LISTS:
            if name in result.details:
                yield _listed(name, result.details[name])
    yield _notes(report)


def _read(read: Input) -> RenderableType:
    """Say what was read: files, then rows."""
    from rich.text import Text

    names = [file.path if file.path != "-" else "standard input" for file in read.files]
    told = [f"{read.n:,} rows"]
    if read.dropped:
        told.append(f"{read.dropped:,} left out")
    if read.predictive:
        told.append(f"predictions: {read.predictive}")
    lines = [words(name, style="bold") for name in names] + [words(" · ".join(told))]
    return Text("\n", no_wrap=True).join(lines)


def _overview(results: tuple[Result, ...]) -> Table:
    """Give each metric a line."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    table.add_column("metric")
    for name in ("value", "interval", "reference", "ζ"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for result in results:
        interval = ABSENT if result.low is None else f"[{number(result.low)}, {number(result.high)}]"
        table.add_row(
            result.metric,
            words(number(result.value), style="bold"),
            words(interval),
            number(result.reference),
            number(result.zeta),
            words(result.verdict, style=COLORS[result.verdict]),
        )
    return table


def _details(result: Result) -> Table:
    """Show everything behind a number, one topic a line."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in result.details.items():
        if name in LISTS or name.endswith("_error"):
            continue
        told = _told(value)
        error = result.details.get(f"{name}_error")
        if error and error > NEGLIGIBLE * abs(value):
            told += f" ± {number(error)}"
        grid.add_row(name, words(told))
    return grid


def _told(value: Any) -> str:
    """Write a detail in one line."""
    if isinstance(value, dict):
        return " · ".join(f"{name} {_told(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_told(item) for item in value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)


def _listed(name: str, rows: list[dict[str, Any]]) -> Table:
    """List the rows with the largest or smallest values."""
    from rich import box
    from rich.table import Table

    columns, room = [], LINE
    for column in rows[0]:
        width = min(WIDEST, max(len(column), *(len(_cell(row[column])) for row in rows)))
        room -= width + 3
        if room < 0:
            break
        columns.append(column)
    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False, title=name, title_justify="left")
    for column in columns:
        numeric = all(isinstance(row[column], (int, float)) for row in rows)
        table.add_column(
            words(column),
            justify="right" if numeric else "left",
            overflow="ellipsis",
            no_wrap=True,
            max_width=WIDEST,
        )
    for row in rows:
        table.add_row(*(words(_cell(row[column])) for column in columns))
    return table


def _cell(value: Any) -> str:
    """Write a cell: numbers to four digits, keys and other whole numbers in full."""
    return number(value) if isinstance(value, float) else str(value)


def _notes(report: Report) -> RenderableType:
    """Say what a reader should know before trusting the numbers."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    several = len(report.results) > 1
    for result in report.results:
        for warning in result.warnings:
            grid.add_row("note", words(f"{result.metric}: {warning}" if several else warning))
    for skipped in report.skipped:
        grid.add_row("skipped", words(f"{skipped.metric}: {skipped.reason}"))
    return grid
