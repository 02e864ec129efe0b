"""Pages: documents for a browser, with sections, pictures, maps that readers can explore, and data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calcheck.render.document import Block, Table

if TYPE_CHECKING:
    from calcheck.charts.picture import Picture


@dataclass(frozen=True)
class Figure:
    """A picture with its numbers."""

    picture: Picture
    numbers: tuple[Table, ...] = ()  # What it shows, in numbers


@dataclass(frozen=True)
class LinkedMap:
    """A map of which regions can be selected; a table and a histogram show what is in the region."""

    picture: Picture  # The map, with one panel whose first mark is the cells
    histogram: Picture | None  # Histogram of all rows, with one panel
    table: Table  # Quantities of all rows
    data: dict[str, Any]  # Sums over the rows of each cell, as JSON


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown on request."""

    title: str  # What is shown
    blocks: tuple[PageBlock, ...]


@dataclass(frozen=True)
class Section:
    """Blocks under a heading."""

    title: str  # The heading
    blocks: tuple[PageBlock, ...]


@dataclass(frozen=True)
class Row:
    """Blocks that are shown side by side where there is room."""

    blocks: tuple[PageBlock, ...]


@dataclass(frozen=True)
class Data:
    """Data for programs that read the page, which it does not show."""

    kind: str  # What the data are
    content: str  # The data, as JSON


PageBlock = Block | Figure | LinkedMap | Folded | Section | Row | Data


@dataclass(frozen=True)
class Page:
    """A document for a browser, with sections, pictures and data."""

    title: str
    blocks: tuple[PageBlock, ...]  # Content, in order
    calcheck: str = ""  # Version of calcheck that made the page
