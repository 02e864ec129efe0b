"""Picture of single predictions: intervals of rows with their targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.charts.picture import Axis, Line, Panel, Picture, Points

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calcheck.statistics.row_intervals import RowIntervals, Values

OBSERVED = "target"
Y = Axis("y")


def predictions_picture(shown: RowIntervals) -> Picture:
    """Return the picture of intervals by prediction, by target, along a column, and of errors by width.

    Panels that compare with targets are absent if there are none.
    """
    count, percent = len(shown.center), f"{100 * shown.level:.4g} %"
    chosen = f"all {count:,} rows" if count == shown.total else f"{count:,} of {shown.total:,} rows"
    expected = (
        f"A right model has about {percent} of the targets inside their intervals at all predictions and widths, but"
        " fewer of the smallest and of the largest targets."
    )
    title = f"{percent} intervals of {chosen}"
    return Picture(tuple(_panels(shown, percent)), title, expected, f"{title}. {expected}")


def _panels(shown: RowIntervals, percent: str) -> Iterator[Panel]:
    name = f"prediction, {percent} interval"
    yield _intervals(shown, shown.center, Axis("prediction [y]"), name, "by prediction")
    if shown.along is not None:
        yield _intervals(shown, shown.along, Axis(shown.along_name), name, f"along {shown.along_name}")
    if shown.y is not None:
        place = np.argsort(np.argsort(shown.y, kind="stable"))
        yield _intervals(
            shown, place.astype(np.float64) + 1, Axis("rank of the target"), name, "in order of the targets"
        )
        yield _errors(shown, shown.y - shown.center, percent)


def _intervals(shown: RowIntervals, x: Values, axis: Axis, name: str, title: str) -> Panel:
    """Return a panel of intervals at positions, with the targets if there are any."""
    predicted = Points(x.tolist(), shown.center.tolist(), name, shown.low.tolist(), shown.high.tolist())
    observed = () if shown.y is None else (Points(x.tolist(), shown.y.tolist(), OBSERVED),)
    return Panel((predicted, *observed), axis, Y, title)


def _errors(shown: RowIntervals, errors: Values, percent: str) -> Panel:
    """Return a panel of errors against half the widths, with the limits of the intervals as lines."""
    width = shown.half_width
    ends = [0.0, float(width.max())]
    limits = (Line(ends, [0.0, sign * ends[1]], dashed=True) for sign in (1, -1))
    return Panel(
        (*limits, Points(width.tolist(), errors.tolist(), OBSERVED)),
        Axis(f"half the width of the {percent} interval [y]"),
        Axis("target − prediction [y]"),
        "errors by width",
    )
