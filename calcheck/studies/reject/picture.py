"""Pictures of withheld rows."""

from collections.abc import Sequence

from calcheck.charts.picture import Axis, Band, Mark, Panel, Picture
from calcheck.render.metric_pictures import curve, expected_marks, numbers
from calcheck.render.numbers_and_notes import name_with_unit, results_by
from calcheck.report import Report, Result
from calcheck.studies.reject.document import RANDOM, curve_results


def rejection_picture(report: Report) -> Picture:
    """Return the picture of a rejection study: one panel per metric, with curves and bands."""
    return Picture(
        tuple(_panel(results) for results in results_by(report.results, "metric").values()),
        "Error of the retained rows",
        "Useful uncertainties: their curve falls below the band of random rejection.",
        "Error of the retained rows against the share of rejected rows, one line for each order of rejection.",
    )


def _panel(results: Sequence[Result]) -> Panel:
    marks: list[Mark] = []
    for criterion, own in results_by(curve_results(results), "by").items():
        shares = [float(result.slice["rejected"].removesuffix(" %")) for result in own]
        values, low, high = (numbers(getattr(result, side) for result in own) for side in ("value", "low", "high"))
        marks += curve(criterion, shares, values, (low, high), dashed=criterion == RANDOM)
    marks.sort(key=lambda mark: not isinstance(mark, Band))  # lines lie above all bands
    return Panel(tuple(marks), Axis("rejected [%]"), Axis(f"{name_with_unit(results[0])} of retained rows"))


def prune_picture(report: Report) -> Picture:
    """Return the picture of a removal of rows: one panel per metric, with intervals and limits of perfect models."""
    return Picture(
        tuple(_prune_panel(results) for results in results_by(report.results, "metric").values()),
        "Metrics without the rows of the largest uncertainties",
        "A right model stays within the limits of perfect models at each share. A jump: the removed rows are wrong.",
        "Metrics against the share of removed rows, with their intervals.",
    )


def _prune_panel(results: Sequence[Result]) -> Panel:
    shares = [float(result.slice["removed"].removesuffix(" %")) for result in results]
    values, low, high = (numbers(getattr(result, side) for result in results) for side in ("value", "low", "high"))
    marks = [*expected_marks(results, shares), *curve("observed", shares, values, (low, high))]
    return Panel(tuple(marks), Axis("removed rows [%]"), Axis(name_with_unit(results[0])))
