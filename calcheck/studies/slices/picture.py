"""Picture of slices: the metrics of groups or regions, with their intervals."""

from collections.abc import Sequence

from calcheck.charts.picture import Axis, Cells, Mark, Panel, Picture, Points, Rule
from calcheck.render.metric_pictures import CLEAR, numbers, outline
from calcheck.render.numbers_and_notes import name_with_unit, results_by
from calcheck.reports import Curve, Report, Result
from calcheck.studies.slices.document import is_search

VERDICTS = {"fail": "differs from a perfect model", "pass": "does not differ", "none": "not judged"}


def slices_picture(report: Report) -> Picture:
    """Return the picture of metrics, a panel each, with a line per group or region; and the map of a region."""
    known = [result for result in report.results if result.value is not None]
    slices = list(dict.fromkeys(_name(result) for result in known))
    what = "regions" if is_search(report) else "groups"
    panels = [_panel(results, slices) for results in results_by(known, "metric").values()]
    found = [result for result in report.results if result.curves]
    return Picture(
        (*panels, *[_map(result.curves[0], result.curves[1], str(result.slice["score"])) for result in found]),
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


def _map(cells: Curve, region: Curve, score: str) -> Panel:
    """Return the map of the deviations of cells: blue and orange cells deviate in opposite directions."""
    starts = ([float(each) for each in cells.x], cells.x2)
    edges, label = (starts[0], cells.stop, starts[1], cells.stop2), f"{score}, standard errors"
    colored = Cells(*edges, numbers(cells.y), label, middle=0.0, low=-CLEAR, high=CLEAR)
    x, y = (
        Axis(name, low=min(start), high=max(stop))
        for name, start, stop in zip((cells.x_name, cells.x2_name), starts, (cells.stop, cells.stop2), strict=True)
    )
    sides = (float(each[0]) for each in (region.x, region.stop, region.x2, region.stop2))
    return Panel((colored, *outline(*sides)), x, y, "region that deviates most")
