"""Documents of reports: the results of one file, with the outcomes of rules and the details of a single result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from calcheck.core.text import format_p
from calcheck.render import document
from calcheck.render.cells import headline, interval, notes, number, outcome, p_value, short
from calcheck.report import Conclusion, Gate, Overall, Report, Result, rejects

OUTCOMES: dict[str, document.Emphasis] = {
    "passed": "pass",
    "violated": "fail",
    "warned": "undecided",
    "not judged": "undecided",
}
QUESTION = "Can the uncertainties be trusted?"
ANSWERS: dict[str, document.Emphasis] = {"yes": "pass", "no": "fail", "unclear": "undecided"}
FINDINGS: dict[str, document.Emphasis] = {"right": "", "fault": "strong", "untested": "none"}
RANKS = {"change": 5, "p": 1, "expected": 2, "interval": 3, "ζ": 4}
"""Columns that a narrow terminal lacks, the least important with the highest rank."""
DOUBTS = ("dependent-rows", "ordered-rows", "few-clusters")  # Codes of notes that a brief report has, too
FEW_ROWS = 200  # with fewer rows, an answer of yes is qualified
SHOWN_POINTS, MOST_POINTS = 9, 12  # Points of a longer curve in a table, and of a curve that is shown in full
NEGLIGIBLE = 1e-4  # relative error below which the error of a detail is not shown
EXPECTED_LEGEND = "expected: score of the model on these rows if its distributions are right"
EQUAL_LEGEND = "expected: score of these rows if both samples have the same distribution"
ZETA_LEGEND = "ζ: distance from the expected score, relative to its limit; within ±1 they agree"
DETAILS_LEGENDS = {
    "dof": "dof: effective degrees of freedom of the kernel regression",
    "rejected": "rejected: inputs whose neighborhoods differ significantly, at the false discovery rate --fdr",
}
"""Explanations of details, by name."""


def report_document(report: Report, *, brief: bool = False) -> document.Document:
    """Return the document of a report; a brief one has the conclusion, if there is one, and what puts it in doubt."""
    title = f"calcheck: {headline(report)}" if report.gates else ""
    return document.Document(tuple(_blocks(report, brief=brief)), report.calcheck, title)


def _blocks(report: Report, *, brief: bool) -> Iterator[document.Block]:
    detailed = len(report.results) == 1 and not report.gates
    yield document.source(report.input)
    if report.conclusion is not None:
        yield answer(report.conclusion, report.input.n)
        if brief:
            if report.gates:
                yield gates_table(report.gates)
            yield from document.note_blocks(_doubts(report))
            return
    if report.gates:
        yield gates_table(report.gates)
    if report.overall is not None:
        yield document.Paragraph(describe_overall(report.overall, report))
    results = [result for result in report.results if "group" not in result.slice]
    if results:
        yield overview(results)
    if groups := [result for result in report.results if "group" in result.slice]:
        yield document.group_table(groups)
    if detailed:
        yield from _details(report.results[0])
    else:
        yield from extreme_rows(report.results)
    if lines := legend_lines(report, details=detailed):
        yield document.Legend(tuple(lines))
    yield from document.note_blocks(notes(report))


def _doubts(report: Report) -> list[str]:
    """Return the notes without which the answer misleads: rows depend on each other."""
    texts = (message.text for result in report.results for message in result.warnings if message.code in DOUBTS)
    return list(dict.fromkeys(texts))


def _reservation(conclusion: Conclusion, n: int) -> str:
    """Return what limits the answer: few rows, or a file that states little, show few faults."""
    if conclusion.answer != "yes":
        return ""
    if any(finding.topic == "shape" and finding.state == "untested" for finding in conclusion.findings):
        return ", as far as it could be tested"
    return f", as far as {n:,} rows show" if n < FEW_ROWS else ""


def answer(conclusion: Conclusion, n: int) -> document.Answer:
    """Return the conclusion from n rows, with a line per finding."""
    return answer_to(QUESTION, conclusion, _reservation(conclusion, n))


def answer_to(question: str, conclusion: Conclusion, after: str = "") -> document.Answer:
    """Return a conclusion as the answer to a question, with a text after it."""
    told = document.Cell(conclusion.answer.upper(), ANSWERS[conclusion.answer], after)
    findings = tuple((each.topic, document.Cell(each.text, FINDINGS[each.state])) for each in conclusion.findings)
    return document.Answer(question, told, findings, conclusion.next)


def describe_overall(overall: Overall, report: Report) -> str:
    """Return the overall verdict in a sentence, with the failures that remain if adjusted for the number of metrics."""
    results, confidence = report.results, report.settings["confidence"]
    verdict = "no verdict" if overall.verdict == "none" else overall.verdict
    text = f"{len(overall.metrics)} metrics together: {verdict}"
    if "dependence_noticed" in report.settings:
        return text
    text += f", p {format_p(overall.p_value)}"
    if overall.verdict == "fail":
        text += f", led by {overall.leading}"
    failed = [each for each in results if each.verdict == "fail"]
    adjusted = {each.metric: each.p_value_adjusted for each in failed if each.p_value_adjusted is not None}
    if not adjusted:
        return text
    impossible = {each.metric for each in failed if each.is_impossible}
    remaining = [metric for metric, p in adjusted.items() if metric in impossible or rejects(p, confidence)]
    return f"{text}; {_remaining(remaining, len(adjusted))} after adjustment for their number"


def _remaining(remaining: Sequence[str], failures: int) -> str:
    """Return which failures remain, as the beginning of a clause."""
    if not remaining:
        return "no failure remains"
    if len(remaining) == failures:
        return "every failure remains"
    return f"of {failures} failures, {', '.join(remaining)} remain{'s' * (len(remaining) == 1)}"


def gates_table(gates: Sequence[Gate]) -> document.Table:
    """Return a table with one line per rule."""
    columns = (document.Column("rule"), document.Column("outcome"), document.Column("found"))
    rows = [
        (document.Cell(gate.rule), document.Cell(outcome(gate), OUTCOMES[outcome(gate)]), document.Cell(gate.message))
        for gate in gates
    ]
    return document.Table(columns, tuple(rows))


def overview(results: Sequence[Result]) -> document.Table:
    """Return a table with one line per result; subsets distinguish results of the same metric."""
    subset = list(dict.fromkeys(name for result in results for name in result.slice))
    changes = any("change" in result.details for result in results)
    numbers = [*subset, "value", *(["change"] if changes else []), "interval", "expected", "ζ", "p"]
    columns = (
        document.Column("metric"),
        *(document.Column(name, "right", rank=RANKS.get(name, 0)) for name in numbers),
        document.Column("verdict"),
    )
    rows = tuple(_row(result, subset, changes=changes) for result in results)
    keys = 1 + len(subset)
    return document.Table(columns, rows, "", "omit", keys, groups="gap" if subset else "", remedy="--format csv")


def _row(result: Result, subset: Sequence[str], *, changes: bool) -> tuple[document.Cell, ...]:
    return (
        *document.row_of(result.metric, *(str(result.slice.get(name, "")) for name in subset)),
        document.Cell(number(result.number), "strong", _deviation(result)),
        *(document.row_of(short(result.details.get("change"))) if changes else ()),
        *document.row_of(interval(result), short(result.reference), _zeta(result), p_value(result)),
        document.Cell(
            result.verdict, result.verdict, f", {result.direction.replace('-', ' ')}" if result.direction else ""
        ),
    )


def _deviation(result: Result) -> str:
    """Return the standard deviation over trials, if there are trials."""
    deviation = result.details.get("deviation")
    return "" if deviation is None else f" ± {short(deviation)}"


def _zeta(result: Result) -> str:
    return short(None) if result.zeta is None else f"{result.zeta:.2f}"


def _details(result: Result) -> Iterator[document.Block]:
    """Yield the summary of a result, its details, and a table for each detail that is a list of rows."""
    yield document.Paragraph(result.summary)
    if items := tuple(_items(result)):
        yield document.Details(items)
    for name, value in result.details.items():
        if _is_listed(value):
            yield listed(name, _few(value) if name == "curve" else value)


def extreme_rows(results: Sequence[Result]) -> Iterator[document.Table]:
    """Yield the rows with the largest and the smallest values of several results, as far as they are asked for."""
    for result in results:
        for name in ("worst", "best"):
            if rows := result.details.get(name):
                yield listed(f"{result.metric}: {name}", rows)


def _few(points: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return about nine points of a curve, evenly spaced; all of them are in JSON."""
    step = max(1, (len(points) + 1) // (SHOWN_POINTS + 1))
    return points if len(points) <= MOST_POINTS else points[step - 1 :: step]


def _items(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the details of a result that are no list of rows, with their errors."""
    if reference := _reference(result):
        yield "expected", reference
    for name, value in result.details.items():
        if _is_listed(value) or name.endswith("_error"):
            continue
        error = result.details.get(f"{name}_error")
        uncertain = error and error > NEGLIGIBLE * abs(value)
        shown = _neighborhoods(value) if name == "rejected" else _in_words(value)
        yield name, shown + (f" ± {number(error)}" if uncertain else "")


def _neighborhoods(rejected: dict[str, Any]) -> str:
    """Return how many inputs are rejected: a test at an input is one of its neighborhood."""
    count = f"in the neighborhood of {rejected['count']:,} of {rejected['inputs']:,} inputs"
    rest = {name: value for name, value in rejected.items() if name not in ("count", "inputs")}
    return " · ".join(filter(None, (count, _in_words(rest))))


def _reference(result: Result) -> str:
    """Return what a perfect model scores on the same rows; an empty string if that is unknown."""
    if result.reference is None:
        return ""
    parts = [f"{number(result.reference)}, {'exactly' if result.reference_kind == 'exact' else 'on average'}"]
    low, high = result.reference_low, result.reference_high
    if low is not None and high is not None:
        parts.append(f"mostly from {number(low)} to {number(high)}")
    elif high is not None:
        parts.append(f"mostly below {number(high)}")
    elif low is not None:
        parts.append(f"mostly above {number(low)}")
    return " · ".join(parts)


def _in_words(value: Any) -> str:
    """Return a detail in one line."""
    if isinstance(value, dict):
        parts = (f"{'' if name == 'of' else '· '}{name} {_in_words(item)}" for name, item in value.items())
        return " ".join(parts).removeprefix("· ")
    if isinstance(value, (list, tuple)):
        return ", ".join(_in_words(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)


def _is_listed(value: Any) -> bool:
    """Return whether a detail is a list of rows, which is shown as a separate table."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def listed(name: str, rows: Sequence[dict[str, Any]]) -> document.Table:
    """Return a table of listed rows."""
    columns = tuple(
        document.Column(key, "right" if all(isinstance(row[key], (int, float)) for row in rows) else "left")
        for key in rows[0]
    )
    cells = tuple(document.row_of(*(_cell(row[column.name]) for column in columns)) for row in rows)
    return document.Table(columns, cells, name, overflow="omit", keys=1, remedy="--format json")


def _cell(value: Any) -> str:
    """Return a cell of a list of rows: floats with four significant digits, integers and keys in full."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) or value is None else str(value)


def legend_lines(report: Report, *, details: bool) -> list[str]:
    """Return the legend of a report, one line for each term that needs an explanation."""
    all_rows = [result for result in report.results if "group" not in result.slice]
    expected = EQUAL_LEGEND if report.input.predictive is None else EXPECTED_LEGEND
    lines = [expected] if any(result.reference is not None for result in report.results) else []
    lines += [document.ADJUSTED_LEGEND] if any("group" in result.slice for result in report.results) else []
    lines += [ZETA_LEGEND] if any(result.zeta is not None for result in all_rows) else []
    return lines + [text for name, text in DETAILS_LEGENDS.items() if details and name in report.results[0].details]
