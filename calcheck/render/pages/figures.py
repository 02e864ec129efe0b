"""Figures: pictures with the numbers that they show."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from calcheck.charts.picture import Band, Bars, Cells, Line, Points, Rule
from calcheck.render.cells import number
from calcheck.render.document import Column, Table, row_of
from calcheck.render.pages.blocks import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.charts.picture import Axis, Panel, Picture

    Numbers = list[tuple[str, Sequence[float]]]


def figure(picture: Picture) -> Figure:
    """Return a picture with its numbers: a table for each mark."""
    return Figure(picture, tuple(_tables(picture)))


def _tables(picture: Picture) -> Iterator[Table]:
    for panel in picture.panels:
        for mark in panel.marks:
            if not isinstance(mark, Rule):
                name = mark.label if isinstance(mark, Cells) else mark.name
                yield _table(_columns(mark, panel), panel, " · ".join(filter(None, (panel.title, name))))


def _table(columns: Numbers, panel: Panel, title: str) -> Table:
    """Return a table of the numbers of a mark, with the names of categories."""
    heads = tuple(Column(name, "right") for name, _ in columns)
    texts = [_texts(values, panel.x if place == 0 else panel.y) for place, (_, values) in enumerate(columns)]
    return Table(heads, tuple(row_of(*row) for row in zip(*texts, strict=True)), title)


def _texts(values: Sequence[float], axis: Axis) -> list[str]:
    return [axis.names[int(value)] if axis.names else number(float(value)) for value in values]


def _columns(mark: Line | Band | Points | Bars | Cells, panel: Panel) -> Numbers:
    """Return the names and values of what a mark shows."""
    x, y = panel.x.label or "x", panel.y.label or "y"
    match mark:
        case Line():
            return [(x, mark.x), (y, mark.y)]
        case Band():
            return [(x, mark.x), ("low", mark.low), ("high", mark.high)]
        case Points():
            limits: Numbers = [("low", mark.low), ("high", mark.high)]
            return [(x, mark.x), (y, mark.y), *(limits if len(mark.low) else [])]
        case Bars():
            return [(f"{x} from", mark.start), ("to", mark.stop), ("low", mark.low), ("high", mark.high)]
        case Cells():
            edges: Numbers = [(f"{x} from", mark.x_start), ("to", mark.x_stop)]
            return [*edges, (f"{y} from", mark.y_start), ("to", mark.y_stop), ("value", mark.value)]
        case _:
            assert_never(mark)
