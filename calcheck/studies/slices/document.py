"""Slices, searches and trees as documents."""

from collections.abc import Iterator

from calcheck.render import document
from calcheck.render.document import EXPECTED_LEGEND, answer_to
from calcheck.render.numbers_and_notes import ABSENT, interval, name_with_unit, notes, number, results_by
from calcheck.report import Report

INDENT = "· "  # Spaces would collapse in HTML and Markdown
TREE_LEGEND = (
    "p: probability that the tree of a perfect model, grown in the same way, has a node that deviates as much",
    "values are those of the rows on which the tree was grown; on other rows, deviations are smaller",
)


def tree_table(report: Report) -> document.Table:
    """Return a table with one line per node, depth first; leaves have the metric that shows their fault best."""
    columns = (
        document.Column("rule"),
        document.Column("rows", "right"),
        document.Column("metric"),
        document.Column("value", "right"),
        document.Column("interval", "right"),
        document.Column("p", "right"),
        document.Column("verdict"),
    )
    results, depths, rows = results_by(report.results, "group"), list[int](), []
    for node in report.settings["tree"]:
        depths.append(0 if node["parent"] is None else depths[node["parent"]] + 1)
        cells = document.row_of(INDENT * depths[-1] + str(node["rule"]), f"{node['rows']:,}")
        if own := results.get(str(node["group"]), []):  # The last metric of the fault, or the last one if there is none
            result = next((each for each in reversed(own) if each.p_value_adjusted is not None), own[-1])
            value = document.Cell(number(result.number), "strong")
            texts = document.row_of(interval(result), document.adjusted(result))
            verdict = document.Cell(str(node["verdict"]), "fail" if result.verdict == "fail" else "none")
            cells += (document.Cell(name_with_unit(result)), value, *texts, verdict)
        else:
            cells += document.row_of("", "", "", "", "")
        rows.append(cells)
    title = f"tree of {', '.join(map(str, report.settings['columns']))}"
    return document.Table(columns, tuple(rows), title, "omit", keys=2, remedy="--format csv")


GROUPS_QUESTION = "Can the uncertainties be trusted in every group?"
REGIONS_QUESTION = "Can the uncertainties be trusted everywhere?"
REGIONS_LEGEND = (
    "p: probability that a perfect model deviates as much in any of the regions searched",
    "values are those of the rows that were searched, where the deviation is largest; on other rows it is smaller",
)


def slices_blocks(report: Report) -> Iterator[document.Block]:
    """Yield the document of metrics by group, or of a search for regions."""
    searched = is_search(report)
    yield document.source(report.input)
    if report.conclusion is not None:
        yield answer_to(REGIONS_QUESTION if searched else GROUPS_QUESTION, report.conclusion)
    if report.results and searched:
        yield tree_table(report) if "tree" in report.settings else _regions(report)
    elif report.results:
        yield document.group_table(report.results)
    if searched:
        yield document.Legend(TREE_LEGEND if "tree" in report.settings else REGIONS_LEGEND)
    else:
        yield document.Legend((EXPECTED_LEGEND, document.ADJUSTED_LEGEND, *document.one_sided_lines(report)))
    yield from document.note_blocks(notes(report))


def is_search(report: Report) -> bool:
    """Return whether regions were searched, or a tree was grown."""
    return "regions" in report.settings or "tree" in report.settings


def _regions(report: Report) -> document.Table:
    """Return a table with one line per region, and the metrics as columns."""
    metrics = list(dict.fromkeys(name_with_unit(result) for result in report.results))
    regions = results_by(report.results, "group")
    rows = []
    for region, own in regions.items():
        values = (document.Cell(number(result.number), result.verdict) for result in own)
        p = next((document.adjusted(result) for result in own if result.p_value_adjusted is not None), ABSENT)
        rows.append((*document.row_of(region, f"{own[0].slice['rows']:,}"), *values, document.Cell(p)))
    columns = (
        document.Column("region"),
        document.Column("rows", "right"),
        *(document.Column(name, "right") for name in metrics),
        document.Column("p", "right"),
    )
    title = f"regions of {', '.join(map(str, report.settings['columns']))}"
    return document.Table(columns, tuple(rows), title, "omit", keys=2, remedy="--format csv")
