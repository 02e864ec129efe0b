"""Documents of the validity of intervals."""

from collections.abc import Iterator

from calcheck.render.document import Block, Cell, Column, Legend, Paragraph, Table, row_of, source
from calcheck.render.numbers_and_notes import describe_input, interval, number
from calcheck.reports import Report

LEGEND = (
    "valid: share of {sets:,} data sets of a right model in which the interval contains the metric of a right model"
)


def validity_blocks(report: Report) -> Iterator[Block]:
    """Yield the document of a simulation: a line per metric and distribution of the uncertainties."""
    yield source(report.input) if report.input.files else Paragraph(describe_input(report.input)[1])
    names = list(report.results[0].slice)
    head = (Column("metric"), *(Column(name, "right") for name in (*names, "valid", "limits", "expected")))
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
