"""Slices, searches and trees as documents and pictures."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from calcheck.charts.picture import Axis, Cells, Mark, Panel, Picture, Points, Rule
from calcheck.conclusion.answer import are_beyond, are_within
from calcheck.core.text import percent
from calcheck.render import document, screen
from calcheck.render import numbers_and_notes as words
from calcheck.render.document import EXPECTED_LEGEND, answer_to
from calcheck.render.pictures import CLEAR, numbers, outline
from calcheck.reports import Conclusion, Curve, Report, Result

INDENT = "· "  # Spaces would collapse in HTML and Markdown
TREE_LEGEND = (
    "p: probability that the tree of a perfect model, grown in the same way, has a node that deviates as much",
    "values are those of the rows on which the tree was grown; on other rows, deviations are smaller",
)


def tree_table(report: Report) -> document.Table:
    """Return a table with one line per node, depth first; leaves have the metric that shows their fault best."""
    columns = (
        document.Column("rule"),
        document.Column("rows", "right", rank=1),
        document.Column("metric"),
        document.Column("value", "right"),
        document.Column("interval", "right", rank=2),
        document.Column("p", "right", rank=1),
        document.Column("verdict"),
    )
    results, depths, rows = words.results_by(report.results, "group"), list[int](), []
    for node in report.settings["tree"]:
        depths.append(0 if node["parent"] is None else depths[node["parent"]] + 1)
        cells = document.row_of(INDENT * depths[-1] + str(node["rule"]), f"{node['rows']:,}")
        if own := results.get(str(node["group"]), []):  # The last metric of the fault, or the last one if there is none
            result = next((each for each in reversed(own) if each.p_value_adjusted is not None), own[-1])
            value = document.Cell(words.number(result.number), "strong")
            texts = document.row_of(words.interval(result), document.adjusted(result))
            verdict = document.Cell(str(node["verdict"]), "fail" if result.verdict == "fail" else "none")
            cells += (document.Cell(words.name_with_unit(result)), value, *texts, verdict)
        else:
            cells += document.row_of("", "", "", "", "")
        rows.append(cells)
    title = f"tree of {', '.join(map(str, report.settings['columns']))}"
    return document.Table(columns, tuple(rows), title, "omit", keys=2, remedy="--format csv")


ALL = "all rows"
MOST = 5  # Maximum number of groups on the first screen


def slices_screen(report: Report) -> Iterator[document.Block]:
    """Yield the first screen: the groups or regions that differ most, each with its factor or its mean error."""
    ranked = ranked_groups(report)
    if not ranked or "tree" in report.settings:
        yield from slices_blocks(report)
        return
    yield document.source(report.input)
    tolerance = float(report.settings["tolerance"])
    if (found := report.conclusion) is not None:
        after = _leading(report, found, ranked)
        told = [each for each in found.effects if not any(each.text.startswith(f"{name} (") for name, _ in ranked)]
        effects = [(str(each.topic), document.Cell(each.text)) for each in told]
        if is_search(report):
            effects.append(("searched", document.Cell(", ".join(map(str, report.settings["columns"])), "none")))
        question = REGIONS_QUESTION if is_search(report) else GROUPS_QUESTION
        yield document.Answer(question, document.answer_cell(found, after), tuple(effects), found.next)
    rows = tuple(_ranked_row(label, own, tolerance) for label, own in ranked)
    if rest := report.settings.get("elsewhere"):
        rows += (_rest_row(rest, ranked[0][1], tolerance),)
    kind = document.Column("region" if is_search(report) else "group")
    columns = (kind, *document.number_columns("rows", "factor or mean error", ""), document.Column("verdict"))
    yield document.Table(columns, rows, most=MOST + bool(rest))
    yield from document.note_blocks(words.notes(report))


def _leading(report: Report, found: Conclusion, ranked: Sequence[tuple[str, dict[str, Result]]]) -> str:
    """Return the first of the ranked groups with its number, after an answer that is not yes."""
    if not ranked or found.answer == "yes" or not _fails(ranked[0][1]):
        return ""
    label, leading = ranked[0]
    number = _measured(leading, float(report.settings["tolerance"]))[0]
    return ": in all groups alike" if _explanation(leading) == ALL else f": {label}, {number}"


def ranked_groups(report: Report) -> list[tuple[str, dict[str, Result]]]:
    """Return groups with a width factor, by metric, without all rows: those that fail first, then by their p-values."""
    found = words.results_by((each for each in report.results if "filter" in each.slice), "group")
    groups = [(label, {each.metric: each for each in own}) for label, own in found.items()]
    whole = {str(each.slice["group"]) for each in report.results if each.slice["rows"] == report.input.n}
    known = [(label, own) for label, own in groups if "width-factor" in own and label not in whole]
    limit = float(report.settings.get("tolerance", 0.0))

    def order(own: dict[str, Result]) -> tuple[object, ...]:
        near = is_search(report) and not are_beyond(own, limit)
        return not _fails(own), near, _explanation(own) != "", _least_p(own)

    return sorted(known, key=lambda each: order(each[1]))


def _fails(own: dict[str, Result]) -> bool:
    return any(each.verdict == "fail" for each in own.values())


def _least_p(own: dict[str, Result]) -> tuple[float, float]:
    known = [each.p_value_adjusted for each in own.values() if each.p_value_adjusted is not None]
    value = own["width-factor"].value or 1.0
    return min(known, default=1.0), -abs(math.log(value)) if value > 0 else 0.0


def _explanation(own: dict[str, Result]) -> str:
    return next((str(each.slice["explained_by"]) for each in own.values() if "explained_by" in each.slice), "")


def _measured(own: dict[str, Result], tolerance: float) -> tuple[str, str]:
    """Return the number of a group with its bar: the factor of its intervals, or its mean error if only that fails."""
    each = own[_leading_metric(own)]
    return _number_and_bar(each.metric, (each.value, each.low, each.high), tolerance)


def _leading_metric(own: dict[str, Result]) -> str:
    failed = {name for name, each in own.items() if each.verdict == "fail"}
    return "standardized-bias" if failed == {"standardized-bias"} else "width-factor"


def _number_and_bar(metric: str, span: words.Span, tolerance: float) -> tuple[str, str]:
    if metric == "standardized-bias":
        return words.shift(span), screen.bar(screen.shares(span, tolerance))
    return words.factor(span), screen.bar(screen.logarithms(span, tolerance))


def _rest_row(rest: dict[str, Any], own: dict[str, Result], tolerance: float) -> tuple[document.Cell, ...]:
    """Return the line of the rows in no region, measured as those of a region."""
    metric = _leading_metric(own)
    number, bar = _number_and_bar(metric, tuple(rest[metric]), tolerance)
    return (*document.row_of("elsewhere", f"{rest['rows']:,}", number, bar.replace(" ", "·")), document.Cell(""))


def _ranked_row(label: str, own: dict[str, Result], tolerance: float) -> tuple[document.Cell, ...]:
    number, bar = _measured(own, tolerance)
    shown = [own[_leading_metric(own)], *own.values()]
    directions = [str(each.direction).replace("-", " ") for each in shown if each.verdict == "fail"]
    verdict = next(iter(own.values())).verdict if not directions else "fail"
    cause = _explanation(own)
    if directions and are_within(own, tolerance):
        directions, verdict = [f"within {percent(tolerance)}"], "pass"
    told = (f"as {ALL}" if cause == ALL else f"explained by {cause}") if cause else next(iter(directions), verdict)
    rows = f"{own['width-factor'].slice['rows']:,}"
    return (*document.row_of(label, rows, number, bar.replace(" ", "·")), document.Cell(told, verdict))


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
        after = "" if "tree" in report.settings else _leading(report, report.conclusion, ranked_groups(report))
        yield answer_to(REGIONS_QUESTION if searched else GROUPS_QUESTION, report.conclusion, after)
    if report.results and searched:
        yield tree_table(report) if "tree" in report.settings else _regions(report)
    elif report.results:
        yield document.group_table(report.results)
    if searched:
        yield document.Legend(TREE_LEGEND if "tree" in report.settings else REGIONS_LEGEND)
    else:
        yield document.Legend((EXPECTED_LEGEND, words.ADJUSTED_LEGEND, *document.one_sided_lines(report)))
    yield from document.note_blocks(words.notes(report))


def is_search(report: Report) -> bool:
    """Return whether regions were searched, or a tree was grown."""
    return "regions" in report.settings or "tree" in report.settings


def _regions(report: Report) -> document.Table:
    """Return a table with one line per region, and the metrics as columns."""
    metrics = list(dict.fromkeys(words.name_with_unit(result) for result in report.results))
    regions = words.results_by(report.results, "group")
    rows = []
    for region, own in regions.items():
        values = (document.Cell(words.number(result.number), result.verdict) for result in own)
        p = next((document.adjusted(result) for result in own if result.p_value_adjusted is not None), words.ABSENT)
        rows.append((*document.row_of(region, f"{own[0].slice['rows']:,}"), *values, document.Cell(p)))
    columns = (document.Column("region"), *document.number_columns("rows", *metrics, "p"))
    title = f"regions of {', '.join(map(str, report.settings['columns']))}"
    return document.Table(columns, tuple(rows), title, "omit", keys=2, remedy="--format csv")


VERDICTS = {"fail": "differs from a perfect model", "pass": "does not differ", "none": "not judged"}


def slices_picture(report: Report) -> Picture:
    """Return the picture of metrics, a panel each, with a line per group or region; and the map of a region."""
    known = [result for result in report.results if result.value is not None]
    slices = list(dict.fromkeys(_name(result) for result in known))
    what = "regions" if is_search(report) else "groups"
    panels = [_panel(results, slices) for results in words.results_by(known, "metric").values()]
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
    return Panel(tuple(marks), Axis(words.name_with_unit(results[0])), Axis(names=tuple(slices)), results[0].metric)


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
