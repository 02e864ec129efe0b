"""Picture of rejection studies: the error of the retained predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.charts.picture import Axis, Band, Mark, Panel, Picture
from calcheck.render.builders.rejection import RANDOM, curve_results
from calcheck.render.cells import name_with_unit, results_by
from calcheck.render.pictures.parts import curve, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Report, Result


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
