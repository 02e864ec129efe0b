"""Pictures as plain data: panels with axes, and marks such as lines, bands, points, bars and cells.

Numbers that are not finite leave a gap. Marks with the same name have the same color in all panels, and one entry in
the legend; marks without a name are black.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

MAX_MARKS = 20_000  # maximum number of points, rectangles and vertices of lines in a picture
PERFECT, EQUAL = "perfect models", "equal distributions"
REFERENCES = (PERFECT, EQUAL, "tolerance")
"""Ends of the names of marks that show what is expected; these marks are gray."""
JUDGED = {"shown to be within it": "#009E73", "makes the answer NO": "#D55E00", "neither": "#0072B2"}
"""Names of marks beside a tolerance, with their colors."""
NEW_ROWS, BEYOND = "new rows", "beyond the tested inputs"
MARKED = {NEW_ROWS: "#000000", BEYOND: "#CC79A7"}
"""Names of marks over a map, with colors that are none of its cells."""


@dataclass(frozen=True)
class Axis:
    """An axis of a panel."""

    label: str = ""  # Quantity and unit
    log: bool = False  # Whether the axis is logarithmic; numbers that are not positive then leave a gap
    # low, high: limits of the axis; by default those of the marks
    low: float | None = None
    high: float | None = None
    names: tuple[str, ...] = ()  # Names of the positions 0, 1, …, if these are categories
    dates: bool = False  # Whether positions are times, in seconds after the beginning of 1970 in UTC


@dataclass(frozen=True)
class Line:
    """A line through k points, with markers if these are few."""

    # x, y: coordinates, (k,) each
    x: Sequence[float]
    y: Sequence[float]
    name: str = ""  # Name in the legend
    dashed: bool = False  # Whether the line is dashed: it shows a reference


@dataclass(frozen=True)
class Band:
    """The area between two lines."""

    # x, low, high: positions, and limits at each, (k,) each
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    name: str = ""  # Name in the legend


@dataclass(frozen=True)
class Points:
    """Points, with intervals if their limits are given."""

    # x, y: coordinates, (k,) each
    x: Sequence[float]
    y: Sequence[float]
    name: str = ""  # Name in the legend
    # low, high: limits of intervals, (k,) each, along the y-axis, or along the x-axis if `horizontal`; empty for none
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    horizontal: bool = False  # Whether the intervals are horizontal


@dataclass(frozen=True)
class Intervals:
    """Wide vertical bars, each of which shows limits at one position."""

    # x, low, high: positions, and limits at each, (k,) each
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    name: str = ""  # Name in the legend


@dataclass(frozen=True)
class Bars:
    """Rectangles side by side: bars of a histogram, or limits in each of its bins."""

    # start, stop: edges of the bins, (k,) each
    start: Sequence[float]
    stop: Sequence[float]
    # low, high: lower and upper end of each rectangle, (k,) each; empty if it is as high as the panel
    low: Sequence[float]
    high: Sequence[float]
    name: str = ""  # Name in the legend


@dataclass(frozen=True)
class Cells:
    """Rectangles of a map, colored by a value."""

    # x_start, x_stop, y_start, y_stop: edges of the rectangles, (k,) each
    x_start: Sequence[float]
    x_stop: Sequence[float]
    y_start: Sequence[float]
    y_stop: Sequence[float]
    value: Sequence[float]  # Value of each, (k,)
    label: str = ""  # Quantity and unit of the values
    # low, high: values of the first and the last color; by default the smallest and the largest value
    low: float | None = None
    high: float | None = None
    middle: float | None = None  # Value with the neutral color of a diverging scale; without it the scale is sequential


@dataclass(frozen=True)
class Hatching:
    """Rectangles that are crossed by a diagonal, above others."""

    # x_start, x_stop, y_start, y_stop: edges of the rectangles, (k,) each
    x_start: Sequence[float]
    x_stop: Sequence[float]
    y_start: Sequence[float]
    y_stop: Sequence[float]
    name: str = ""  # Name in the legend


@dataclass(frozen=True)
class Rule:
    """A dashed line across the panel, which shows a reference."""

    # x, y: position of a vertical, or of a horizontal line; one of them
    x: float | None = None
    y: float | None = None


Mark = Line | Band | Points | Intervals | Bars | Cells | Hatching | Rule


@dataclass(frozen=True)
class Panel:
    """Marks with common axes; later marks lie above earlier ones."""

    marks: tuple[Mark, ...]  # What to draw
    # x, y: the axes
    x: Axis = Axis()
    y: Axis = Axis()
    title: str = ""  # Title of the panel


@dataclass(frozen=True)
class Picture:
    """Panels in rows of at most three, with one legend."""

    panels: tuple[Panel, ...]  # Panels, at least one
    title: str = ""  # Title above the panels
    expected: str = ""  # What a right model would look like, in one line below the title
    description: str = ""  # What the picture shows, in words, for screen readers

    def __post_init__(self) -> None:
        marks = sum(_size(mark) for panel in self.panels for mark in panel.marks)
        if marks > MAX_MARKS:
            raise ValueError(f"the picture has {marks:,} marks, at most {MAX_MARKS:,} are drawn")


def _size(mark: Mark) -> int:
    """Return the number of points or rectangles of a mark: that of its first coordinates."""
    return 1 if isinstance(mark, Rule) else len(getattr(mark, fields(mark)[0].name))
