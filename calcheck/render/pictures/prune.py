"""Picture of metrics as the rows with the largest uncertainties are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.charts.picture import Axis, Panel, Picture
from calcheck.render.cells import name_with_unit, results_by
from calcheck.render.pictures.parts import curve, expected_marks, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Report, Result


def prune_picture(report: Report) -> Picture:
    """Return the picture of a removal of rows: one panel per metric, with intervals and limits of perfect models."""
    return Picture(
        tuple(_panel(results) for results in results_by(report.results, "metric").values()),
        "Metrics without the rows of the largest uncertainties",
        "A right model stays within the limits of perfect models at each share. A jump: the removed rows are wrong.",
        "Metrics against the share of removed rows, with their intervals.",
    )


def _panel(results: Sequence[Result]) -> Panel:
    shares = [float(result.slice["removed"].removesuffix(" %")) for result in results]
    values, low, high = (numbers(getattr(result, side) for result in results) for side in ("value", "low", "high"))
    marks = [*expected_marks(results, shares), *curve("observed", shares, values, (low, high))]
    return Panel(tuple(marks), Axis("removed rows [%]"), Axis(name_with_unit(results[0])))
