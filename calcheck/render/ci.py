"""Rules as JUnit XML and as annotations of GitHub checks."""

from typing import TYPE_CHECKING

from calcheck.core.text import strip_control
from calcheck.render.numbers_and_notes import describe_input, headline, outcome
from calcheck.reports import Gate, Level, Report

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

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
