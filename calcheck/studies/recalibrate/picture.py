"""Picture of a recalibration: the choice, reliability before and after, and the correction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from calcheck.charts.picture import Axis, Line, Mark, Panel, Picture, Points, Rule
from calcheck.render.metric_pictures import numbers
from calcheck.render.numbers_and_notes import name_with_unit

if TYPE_CHECKING:
    from calcheck.recalibration.methods import RecalibrationMap
    from calcheck.reports import Report, Result


def recalibration_picture(report: Report, found: RecalibrationMap) -> Picture:
    """Return the picture of a recalibration study, or of a correction that was applied."""
    return Picture(
        tuple(_panels(report, found)),
        f"Recalibration: {found.method}",
        "A correction that helps lies left of 0; after it, the quantile reliability lies near 0.",
        "Change of the score by each method with its interval, quantile reliability before and after, and the"
        f" correction: {'; '.join(found.texts) or 'none'}.",
    )


def _panels(report: Report, found: RecalibrationMap) -> Iterator[Panel]:
    differences = [result for result in report.results if result.slice.get("minus") and "method" in result.slice]
    if differences:
        yield _choice(differences, found.method)
    groups = dict.fromkeys(str(result.slice["rows"]) for result in report.results if "rows" in result.slice)
    for rows in groups:
        same = [result for result in report.results if result.slice.get("rows") == rows and result.metric == "ece"]
        if curves := [result for result in same if "curve" in result.details]:
            marks: list[Mark] = [Rule(y=0)]
            for result in curves:
                points = result.details["curve"]
                gaps = [point["observed"] - point["level"] for point in points]
                marks.append(Line([point["level"] for point in points], gaps, str(result.slice["stage"])))
            yield Panel(tuple(marks), Axis("level"), Axis("share below − level"), f"quantile reliability, {rows}")
    for step in found.steps:
        for curve in step.curves():
            ends = [float(curve.x[0]), float(curve.x[-1])]
            unchanged = Line(ends, ends, dashed=True) if curve.unchanged is None else Rule(y=curve.unchanged)
            line = Line(curve.x.tolist(), curve.y.tolist(), "correction")
            yield Panel((unchanged, line), Axis(curve.x_label), Axis(curve.y_label), step.kind)


def _choice(differences: Sequence[Result], chosen: str) -> Panel:
    """Return the panel of the changes of the score, one line per method."""
    names = tuple(
        f"{result.slice['method']}{' (chosen)' if result.slice['method'] == chosen else ''}" for result in differences
    )
    values, low, high = (numbers(getattr(result, side) for result in differences) for side in ("value", "low", "high"))
    places = [float(place) for place in range(len(names))]
    points = Points(values, places, "", low, high, horizontal=True)
    label = f"change of {name_with_unit(differences[0])}"
    return Panel((Rule(x=0), points), Axis(label), Axis(names=names), "methods, out of fold")
