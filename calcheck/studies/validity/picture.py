"""Picture of the validity of intervals, by the tails of the uncertainties."""

from calcheck.charts.picture import Axis, Mark, Panel, Picture
from calcheck.render.metric_pictures import curve, numbers
from calcheck.render.numbers_and_notes import results_by
from calcheck.reports import Report


def validity_picture(report: Report) -> Picture | None:
    """Return a curve per metric, with its limits, and the confidence of the intervals; None for one file."""
    if any("nu" not in result.slice for result in report.results):
        return None
    marks: list[Mark] = []
    for name, results in results_by(report.results, "metric").items():
        nu = [float(result.slice["nu"]) for result in results]
        values, low, high = (numbers(getattr(result, side) for result in results) for side in ("value", "low", "high"))
        marks += curve(name, nu, values, (low, high))
    marks += curve("confidence", nu, [report.settings["confidence"]] * len(nu), dashed=True)
    panel = Panel(tuple(marks), Axis("degrees of freedom ν"), Axis("valid intervals"))
    return Picture(
        (panel,),
        "Share of intervals that contain the value of a right model",
        "Valid intervals reach the confidence. Below it, uncertainties have too heavy tails for the number of rows.",
        "Share of valid intervals against the degrees of freedom of the uncertainties, by metric, with limits.",
    )
