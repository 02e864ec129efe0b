"""Picture of a comparison: the differences of models from the first, with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.charts.picture import Axis, Panel, Picture, Points, Rule
from calcheck.render.builders.comparison import is_difference, model_of
from calcheck.render.builders.rejection import results_by
from calcheck.render.cells import name_with_unit
from calcheck.render.pictures.parts import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Report, Result

BETTER = {"smaller": ", left is better", "larger": ", right is better"}


def comparison_picture(report: Report) -> Picture:
    """Return the picture of a comparison: one panel per metric, with one line per model after the first."""
    differences = [result for result in report.results if is_difference(result) and result.value is not None]
    first = str(differences[0].slice["minus"]) if differences else ""
    return Picture(
        tuple(_panel(results, first) for results in results_by(differences, "metric").values()),
        f"Differences from {first}",
        "Where an interval contains 0, the rows show no difference between the models.",
        f"Differences of the metrics of models from those of {first}, with their intervals.",
    )


def _panel(results: Sequence[Result], first: str) -> Panel:
    names = tuple(map(model_of, results))
    places = [float(place) for place in range(len(names))]
    values, low, high = (numbers(getattr(result, side) for result in results) for side in ("value", "low", "high"))
    points = Points(values, places, "", low, high, horizontal=True)
    title = f"{results[0].metric}{BETTER.get(results[0].orientation, '')}"
    return Panel((Rule(x=0), points), Axis(f"{name_with_unit(results[0])} − {first}"), Axis(names=names), title)
