"""Table of a tree of regions: its rules, indented, and what is wrong in each leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calcheck.render.builders.groups import adjusted
from calcheck.render.cells import interval, name_with_unit, number, results_by
from calcheck.render.document import Cell, Column, Emphasis, Table, row_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calcheck.report import Report, Result

INDENT = "· "  # Spaces would collapse in HTML and Markdown
TREE_LEGEND = (
    "p: probability that the tree of a perfect model, grown in the same way, has a node that deviates as much",
    "values are those of the rows on which the tree was grown; on other rows, deviations are smaller",
)


def tree_table(report: Report) -> Table:
    """Return a table with one line per node, depth first; leaves have the metric that shows their fault best."""
    columns = (
        Column("rule"),
        Column("rows", "right"),
        Column("metric"),
        Column("value", "right"),
        Column("interval", "right"),
        Column("p", "right"),
        Column("verdict"),
    )
    title = f"tree of {', '.join(map(str, report.settings['columns']))}"
    return Table(columns, tuple(_rows(report)), title, "omit", keys=2, remedy="--format csv")


def _rows(report: Report) -> Iterator[tuple[Cell, ...]]:
    results, depths = results_by(report.results, "group"), list[int]()
    for node in report.settings["tree"]:
        depths.append(0 if node["parent"] is None else depths[node["parent"]] + 1)
        rule = row_of(INDENT * depths[-1] + str(node["rule"]), f"{node['rows']:,}")
        own = results.get(str(node["group"]), [])
        yield (*rule, *(_leaf(node, _leading(own)) if own else row_of("", "", "", "", "")))


def _leading(results: Sequence[Result]) -> Result:
    """Return the last metric of the fault of a leaf; the last one if there is none."""
    return next((each for each in reversed(results) if each.p_value_adjusted is not None), results[-1])


def _leaf(node: dict[str, Any], result: Result) -> tuple[Cell, ...]:
    verdict: Emphasis = "fail" if result.verdict == "fail" else "none"
    return (
        *row_of(name_with_unit(result)),
        Cell(number(result.number), "strong"),
        *row_of(interval(result), adjusted(result)),
        Cell(str(node["verdict"]), verdict),
    )
