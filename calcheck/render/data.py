"""Reports for programs: JSON and JSON lines, CSV with one line for each result, and rules for CI."""

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from calcheck.core.text import protect, strip_control
from calcheck.render.numbers_and_notes import describe_input, headline, outcome
from calcheck.reports import Gate, Level, Report

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

    from _typeshed import DataclassInstance


def render_json(report: "DataclassInstance") -> str:
    """Return a report, or the changes between two reports, as one JSON object."""
    return json.dumps(fields_of(report), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def fields_of(record: "DataclassInstance") -> Any:
    """Return a dataclass as JSON types; curves, and answers for several targets, are absent if there are none."""
    return to_plain(asdict(record, dict_factory=_present))


def _present(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in fields if value or name not in ("curves", "outputs")}


def to_plain(value: Any) -> Any:
    """Return a value as JSON types; numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def render_jsonl(report: Report) -> str:
    """Return a report as JSON lines: one object for each result, skipped metric and rule."""
    report, shared = report.flat(), shared_fields(report)
    lines = [{**shared, **fields_of(result)} for result in report.results]
    lines += [{**shared, "metric": skipped.metric, "skipped": skipped.reason} for skipped in report.skipped]
    lines += [{**shared, **fields_of(gate)} for gate in report.gates]
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


def shared_fields(report: Report) -> dict[str, Any]:
    """Return the fields that all lines share: files, number of rows and version."""
    return {
        "file": " ".join(file.path for file in report.input.files),
        "n": report.input.n,
        "calcheck": report.calcheck,
    }


NUMBERS = (
    *("value", "low", "high", "reference", "reference_low", "reference_high"),
    *("zeta", "zeta_mc_error", "p_value", "p_value_mc_error", "p_value_adjusted"),
)

STUDY_DETAILS = ("rank", "tau", "subsets", "deviation", "change")
"""Details of comparisons, sweeps and other studies that have a column if a result has them."""


def render_csv(report: Report) -> str:
    """Return a report as CSV: one line for each result, skipped metric and rule."""
    rows = list(_lines(report))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return buffer.getvalue()


def metric_lines(report: Report) -> Iterator[dict[str, Any]]:
    """Yield the columns of each result, then of each skipped metric."""
    report = report.flat()
    subset = dict.fromkeys(name for result in report.results for name in result.slice)
    studied = [name for name in STUDY_DETAILS if any(name in result.details for result in report.results)]
    for result in report.results:
        yield {
            "metric": result.metric,
            **{name: result.slice.get(name) for name in subset},
            "unit": result.unit,
            **{name: getattr(result, name) for name in NUMBERS},
            "interval": result.interval,
            "verdict": result.verdict,
            "direction": result.direction,
            **{name: result.details.get(name) for name in studied},
            "notes": "; ".join(message.text for message in result.warnings),
        }
    for skipped in report.skipped:
        yield {"metric": skipped.metric, "verdict": "skipped", "notes": skipped.reason}


def _lines(report: Report) -> Iterator[dict[str, Any]]:
    shared = shared_fields(report)
    yield from ({**shared, **line} for line in metric_lines(report))
    for gate in report.gates:
        yield {**shared, "rule": gate.rule, "verdict": outcome(gate), "notes": gate.message}


def _cell(value: Any) -> Any:
    """Return a cell that a spreadsheet does not evaluate; an absent number is empty."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return protect(value) if isinstance(value, str) else value


CONSTANT = {"timestamp": "1970-01-01T00:00:00", "hostname": "localhost", "time": "0"}
"""Attributes that the schemas require; constant, so that the same run gives the same bytes everywhere."""
MOST = 10  # Maximum number of annotations of a kind that GitHub shows per step; it silently drops the rest
COMMANDS: dict[Level, str] = {"fail": "error", "warn": "warning"}


def render_junit(report: Report) -> str:
    """Return rules as a test suite: a violated rule is a failure, or an error if its number or verdict is absent.

    The output conforms to both common schemas: that of Ant (JUnit.xsd by Windy Road) and that of Jenkins' xUnit plugin
    (junit-10.xsd). Both allow warnings of passed tests only in the output of the whole suite.
    """
    from xml.etree import ElementTree as ET

    failed = (*report.violated("fail"), *report.unjudged("fail"))
    errors = sum(bool(gate.missing) or not gate.judged for gate in failed)
    counts = {"tests": len(report.gates), "failures": len(failed) - errors, "errors": errors}
    root = ET.Element("testsuites")
    suite = ET.SubElement(
        root,
        "testsuite",
        {"name": "calcheck", "package": "calcheck", "id": "0", **CONSTANT}
        | {name: str(count) for name, count in counts.items()},
    )
    files, read = describe_input(report.input)
    properties = ET.SubElement(suite, "properties")
    for name, value in (("calcheck", report.calcheck), ("files", ", ".join(files)), ("read", read)):
        ET.SubElement(properties, "property", name=name, value=strip_control(value))
    for gate in report.gates:
        _case(suite, gate)
    warnings = (*report.violated("warn"), *report.unjudged("warn"))
    warned = "".join(
        f"{outcome(gate)}: {strip_control(gate.rule)}: {strip_control(gate.message)}\n" for gate in warnings
    )
    ET.SubElement(suite, "system-out").text = warned
    ET.SubElement(suite, "system-err")
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(suite: "ET.Element", gate: Gate) -> None:
    """Add the test case of a rule, with its message if it is violated."""
    from xml.etree import ElementTree as ET

    case = ET.SubElement(suite, "testcase", name=strip_control(gate.rule), classname="calcheck", time=CONSTANT["time"])
    if gate.passed or gate.level == "warn":
        return
    found = "missing" if gate.missing else "violated" if gate.judged else "not-judged"
    text = strip_control(gate.message)
    ET.SubElement(case, "failure" if found == "violated" else "error", type=found, message=text).text = text


def render_github(report: Report) -> str:
    """Return the violated rules, and those without a verdict, as annotations, errors first; else the headline."""
    files, _ = describe_input(report.input)
    violated = [gate for level in COMMANDS for gate in (*report.violated(level), *report.unjudged(level))]
    shown = violated if len(violated) <= MOST else violated[: MOST - 1]
    lines = [_annotation(gate, files) for gate in shown]
    if left := len(violated) - len(shown):
        kind = COMMANDS[violated[len(shown)].level]
        lines.append(_command(kind, "calcheck", f"{left:,} more: {headline(report)}"))
    if not violated:
        lines.append(_command("notice", "calcheck", f"{headline(report)} by {', '.join(files)}"))
    return "".join(lines)


def _annotation(gate: Gate, files: list[str]) -> str:
    found = gate.message if gate.judged else f"cannot be judged: {gate.message}"
    return _command(COMMANDS[gate.level], f"calcheck: {gate.rule}", f"{found} in {', '.join(files)}")


def _command(kind: str, title: str, message: str) -> str:
    """Return a workflow command with its title and message escaped."""
    text = strip_control(message).replace("%", "%25")
    titled = strip_control(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={titled}::{text}\n"
