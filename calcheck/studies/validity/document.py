"""Documents and pictures of the validity of intervals."""

from collections.abc import Iterator

from calcheck.charts.picture import Axis, Mark, Panel, Picture
from calcheck.render.document import Block, Cell, Column, Legend, Paragraph, Table, number_columns, row_of, source
from calcheck.render.numbers_and_notes import describe_input, interval, number, results_by
from calcheck.render.pictures import curve, numbers
from calcheck.reports import Report

LEGEND = (
    "valid: share of {sets:,} data sets of a right model in which the interval contains the metric of a right model"
)


def validity_blocks(report: Report) -> Iterator[Block]:
    """Yield the document of a simulation: a line per metric and distribution of the uncertainties."""
    yield source(report.input) if report.input.files else Paragraph(describe_input(report.input)[1])
    names = list(report.results[0].slice)
    head = (Column("metric"), *number_columns(*names, "valid", "limits", "expected"))
    rows = [
        (
            *row_of(result.metric, *map(str, result.slice.values())),
            Cell(number(result.number), "strong"),
            *row_of(interval(result), number(result.reference)),
            Cell(result.verdict, result.verdict),
        )
        for result in report.results
    ]
    yield Table(
        (*head, Column("verdict")), tuple(rows), "", "omit", 1 + len(names), groups="gap", remedy="--format csv"
    )
    yield Legend((LEGEND.format(sets=report.settings["sets"]),))


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
