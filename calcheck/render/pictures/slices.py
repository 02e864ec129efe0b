"""Picture of slices: the metrics of groups or regions, with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.charts.picture import Axis, Mark, Panel, Picture, Points, Rule
from calcheck.render.builders.rejection import results_by
from calcheck.render.builders.slices import is_search
from calcheck.render.cells import name_with_unit
from calcheck.render.pictures.parts import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Report, Result

VERDICTS = {"fail": "differs from a perfect model", "pass": "does not differ", "none": "not judged"}


def slices_picture(report: Report) -> Picture:
    """Return the picture of metrics by group or region: one panel per metric, with one line per group."""
    known = [result for result in report.results if result.value is not None]
    slices = list(dict.fromkeys(_name(result) for result in known))
    what = "regions" if is_search(report) else "groups"
    return Picture(
        tuple(_panel(results, slices) for results in results_by(known, "metric").values()),
        f"Metrics by {what[:-1]}",
        f"The {what} of a right model lie near the line, where there is one.",
        f"Values of metrics in {what} of the rows, with their intervals and verdicts.",
    )


def _name(result: Result) -> str:
    return f"{result.slice['group']} ({result.slice['rows']:,})"


def _panel(results: Sequence[Result], slices: Sequence[str]) -> Panel:
    """Return the panel of a metric, with the value of a perfect model on all rows as a line."""
    expected = next((result.reference for result in results if result.reference is not None), None)
    marks: list[Mark] = [] if expected is None else [Rule(x=expected)]
    for verdict, name in VERDICTS.items():
        own = [result for result in results if result.verdict == verdict]
        with_interval = [result for result in own if result.low is not None]
        without = [result for result in own if result.low is None]
        marks += [_points(each, slices, name) for each in (with_interval, without) if each]
    return Panel(tuple(marks), Axis(name_with_unit(results[0])), Axis(names=tuple(slices)), results[0].metric)


def _points(results: Sequence[Result], slices: Sequence[str], name: str) -> Points:
    places = [float(slices.index(_name(result))) for result in results]
    values = numbers(result.value for result in results)
    if results[0].low is None:
        return Points(values, places, name)
    low, high = (numbers(getattr(result, side) for result in results) for side in ("low", "high"))
    return Points(values, places, name, low, high, horizontal=True)
