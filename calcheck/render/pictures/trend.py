"""Picture of metrics over a series of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.charts.picture import Axis, Panel, Picture
from calcheck.render.cells import name_with_unit, results_by
from calcheck.render.pictures.parts import curve, expected_marks, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Report, Result


def trend_picture(report: Report) -> Picture:
    """Return the picture of a series: a panel per metric, with intervals and limits of perfect models."""
    return Picture(
        tuple(_panel(results) for results in results_by(report.results, "metric").values()),
        "Metrics over the series of files",
        "A right model stays within the limits of perfect models; a metric that sees the disturbance leaves them.",
        "Metrics against the position of the file, with their intervals or deviations.",
    )


def _panel(results: Sequence[Result]) -> Panel:
    places = [float(result.slice["at"]) for result in results]
    values = numbers(result.value for result in results)
    marks = [*expected_marks(results, places), *curve("observed", places, values, _limits(results, values))]
    return Panel(tuple(marks), Axis("position of the file"), Axis(name_with_unit(results[0])))


def _limits(results: Sequence[Result], values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Return the intervals, or the values with their deviations over trials where they have these."""
    if any("deviation" in result.details for result in results):
        spread = [result.details.get("deviation", 0.0) for result in results]
        pairs = list(zip(values, spread, strict=True))
        return [value - each for value, each in pairs], [value + each for value, each in pairs]
    low, high = (numbers(getattr(result, side) for result in results) for side in ("low", "high"))
    return low, high
