"""Documents: what a report says to a reader, as plain data that each format renders; and parts that several share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Literal

from calcheck.core.text import format_p
from calcheck.render.cells import ABSENT, describe_input, interval, is_withheld, name_with_unit, number, p_value, short
from calcheck.report import Input, Result

Emphasis = Literal["", "strong", "best", "second", "pass", "fail", "undecided", "none"]
Mark = tuple[Literal["best", "second"], str]


@dataclass(frozen=True)
class Source:
    """The data of a report: names of the files, and what was read from them."""

    files: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of text."""

    text: str


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str  # Content
    # Meaning that the format shows by a mark, a font or a color: "strong" for the main number, "best" and "second" for
    # ranks, or a verdict
    emphasis: Emphasis = ""
    after: str = ""  # Text after the content, without emphasis


@dataclass(frozen=True)
class Answer:
    """A question with its answer, the findings behind it, and commands that show more."""

    question: str
    answer: Cell
    findings: tuple[tuple[str, Cell], ...]  # Topics with their sentences
    commands: tuple[str, ...] = ()  # Commands to run next


@dataclass(frozen=True)
class Details:
    """Names with their values as text."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str  # Name of the column
    align: Literal["left", "right"] = "left"  # "left" for text, "right" for numbers
    better: str = ""  # Which values are better: "↓", "↑", "→ 1" or ""
    unit: str = ""  # Unit of the values; "" if they have none
    group: str = ""  # Head above neighboring columns that belong together, such as a data set; "" for none
    # Order in which columns are left out of a table that is too wide: higher ranks first, and within a rank the last
    # column first
    rank: int = 0

    @property
    def scale(self) -> str:
        """Which values are better, and their unit: ``"↓ y"``."""
        return " ".join(part for part in (self.better, self.unit) if part)

    @property
    def head(self) -> str:
        """The name with the scale, on one line."""
        return f"{self.name} {self.scale}" if self.scale else self.name


@dataclass(frozen=True)
class Table:
    """A table."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]  # Rows, with one cell per column
    title: str = ""  # Title above the table
    # What happens to a table that is wider than the page: "fold" wraps its texts, "split" continues it in further
    # tables, "omit" leaves out columns
    overflow: Literal["fold", "split", "omit"] = "fold"
    keys: int = 0  # Number of columns on the left that each of the further tables repeats, and that are never left out
    # How rows with the same first cell are set apart where there is room: "gap" by an empty line, with the cell in the
    # first of them only; "title" in tables of their own, with this cell as the title; "" for no groups
    groups: Literal["", "gap", "title"] = ""
    remedy: str = ""  # Option that shows the columns that are left out
    sortable: bool = False  # Whether readers of a page can sort the rows by a column


@dataclass(frozen=True)
class Marks:
    """Meaning of the emphasis in the tables above."""

    meanings: tuple[Mark, ...]


@dataclass(frozen=True)
class Legend:
    """Explanations of terms, one per line."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Notes:
    """Notes at the end, such as warnings."""

    lines: tuple[str, ...]


Block = Source | Answer | Paragraph | Details | Table | Marks | Legend | Notes


@dataclass(frozen=True)
class Document:
    """A document."""

    blocks: tuple[Block, ...]  # Content, in order
    calcheck: str = ""  # Version of calcheck that made the report; "" if there is none
    title: str = ""  # Title, for formats with headings; "" for none

    def without_legend(self) -> Document:
        """Return the document without legends and meanings of marks."""
        return replace(self, blocks=tuple(block for block in self.blocks if not isinstance(block, (Legend, Marks))))


def column_groups(table: Table) -> list[tuple[str, int]]:
    """Return the heads above the columns, each with its number of columns; an empty list if no column has one."""
    runs = [(group, len(list(columns))) for group, columns in groupby(column.group for column in table.columns)]
    return runs if any(group for group, _ in runs) else []


def row_of(*texts: str) -> tuple[Cell, ...]:
    """Return a row of cells without emphasis."""
    return tuple(Cell(text) for text in texts)


def column_cells(table: Table) -> list[tuple[Cell, ...]]:
    """Return the cells of each column."""
    return [tuple(row[place] for row in table.rows) for place in range(len(table.columns))]


def shown_rows(table: Table) -> list[tuple[Cell, ...]]:
    """Return the rows; with gaps between groups, the first row of a group has its name and what else they share."""
    if table.groups != "gap" or table.sortable:
        return list(table.rows)
    rows = list(table.rows[:1])
    for above, row in pairwise(table.rows):
        same = [one == other for one, other in zip(above, row, strict=True)][: max(1, table.keys - 1)]
        shared = (*same, False).index(False)
        rows.append((*row_of(*[""] * shared), *row[shared:]))
    return rows


def select_columns(table: Table, places: list[int]) -> Table:
    """Return the table with some of its columns."""
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in table.rows),
    )


def source(read: Input) -> Source:
    """Return the block about the files of a report."""
    names, text = describe_input(read)
    return Source(tuple(names), text)


def note_blocks(lines: Sequence[str]) -> tuple[Notes, ...]:
    """Return the block of notes; none without notes."""
    return (Notes(tuple(lines)),) if lines else ()


def marks_in(tables: Sequence[Table], *meanings: Mark) -> tuple[Marks, ...]:
    """Return the block about the marks that tables contain; none without marks."""
    found = {cell.emphasis for table in tables for row in table.rows for cell in row}
    used = tuple((mark, text) for mark, text in meanings if mark in found)
    return (Marks(used),) if used else ()


ADJUSTED_LEGEND = (
    "adjusted: p-value of the most extreme of all groups and metrics, by replicates of a perfect model; it decides the"
    " verdict"
)
COLUMNS = (
    Column("metric"),
    Column("value", "right"),
    Column("interval", "right", rank=3),
    Column("expected", "right", rank=2),
    Column("p", "right", rank=1),
    Column("adjusted", "right"),
    Column("verdict"),
)


def group_table(results: Sequence[Result]) -> Table:
    """Return a table with one line per group and metric."""
    columns = (Column("group"), Column("rows", "right"), *COLUMNS)
    rows = tuple(_row(result) for result in results)
    return Table(columns, rows, "", "omit", keys=3, groups="gap", remedy="--format csv")


def _row(result: Result) -> tuple[Cell, ...]:
    judged: Emphasis = "strong" if result.verdict != "none" else "none"
    texts = (interval(result), short(result.reference), p_value(result), adjusted(result))
    return (
        *row_of(str(result.slice["group"]), f"{result.slice['rows']:,}"),
        Cell(name_with_unit(result)),
        Cell(number(result.number), judged),
        *row_of(*texts),
        Cell(result.verdict, result.verdict),
    )


def adjusted(result: Result) -> str:
    """Return the adjusted p-value of a result, unless it is wrong since rows depend on each other."""
    return ABSENT if result.p_value_adjusted is None or is_withheld(result) else format_p(result.p_value_adjusted)
