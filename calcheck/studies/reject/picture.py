"""Pictures of withheld rows."""

from calcheck.charts.picture import Axis, Band, Mark, Panel, Picture
from calcheck.render.metric_pictures import curve, expected_marks, numbers
from calcheck.render.numbers_and_notes import name_with_unit, results_by
from calcheck.reports import Report
from calcheck.studies.reject.document import RANDOM, curve_results


def rejection_picture(report: Report) -> Picture:
    """Return the picture of a rejection study: one panel per metric, with curves and bands."""
    panels = []
    for results in results_by(report.results, "metric").values():
        marks: list[Mark] = []
        for criterion, own in results_by(curve_results(results), "by").items():
            shares = [float(result.slice["rejected"].removesuffix(" %")) for result in own]
            values, low, high = (numbers(getattr(result, side) for result in own) for side in ("value", "low", "high"))
            marks += curve(criterion, shares, values, (low, high), dashed=criterion == RANDOM)
        marks.sort(key=lambda mark: not isinstance(mark, Band))  # lines lie above all bands
        y = Axis(f"{name_with_unit(results[0])} of retained rows")
        panels.append(Panel(tuple(marks), Axis("rejected [%]"), y))
    return Picture(
        tuple(panels),
        "Error of the retained rows",
        "Useful uncertainties: their curve falls below the band of random rejection.",
        "Error of the retained rows against the share of rejected rows, one line for each order of rejection.",
    )


def prune_picture(report: Report) -> Picture:
    """Return the picture of a removal of rows: one panel per metric, with intervals and limits of perfect models."""
    panels = []
    for results in results_by(report.results, "metric").values():
        shares = [float(result.slice["removed"].removesuffix(" %")) for result in results]
        values, low, high = (numbers(getattr(result, side) for result in results) for side in ("value", "low", "high"))
        marks = (*expected_marks(results, shares), *curve("observed", shares, values, (low, high)))
        panels.append(Panel(marks, Axis("removed rows [%]"), Axis(name_with_unit(results[0]))))
    return Picture(
        tuple(panels),
        "Metrics without the rows of the largest uncertainties",
        "A right model stays within the limits of perfect models at each share. A jump: the removed rows are wrong.",
        "Metrics against the share of removed rows, with their intervals.",
    )
