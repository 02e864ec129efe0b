"""Figures: pictures with the numbers that they show."""

from __future__ import annotations

from dataclasses import fields
from math import isfinite
from typing import TYPE_CHECKING

from calcheck.charts.picture import Cells, Rule
from calcheck.render.cells import number
from calcheck.render.document import Column, Table, row_of
from calcheck.render.pages.blocks import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.charts.picture import Axis, Mark, Panel, Picture

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
}
"""Heads of the columns about the coordinates of a mark, by their names."""
OF_X = frozenset({"x", "start", "stop", "x_start", "x_stop"})
MAX_CELLS = 50  # maximum cells of a map in a table
LIMITS = frozenset({"low", "high"})


def figure(picture: Picture) -> Figure:
    """Return a picture with its numbers: a table for each mark with coordinates."""
    return Figure(picture, tuple(_tables(picture)))


def _tables(picture: Picture) -> Iterator[Table]:
    for panel in picture.panels:
        for mark in panel.marks:
            if not isinstance(mark, Rule):
                name = mark.label if isinstance(mark, Cells) else mark.name
                yield _table(mark, panel, " · ".join(filter(None, (panel.title, name))))


def _table(mark: Mark, panel: Panel, title: str) -> Table:
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
