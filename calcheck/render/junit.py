"""Rules as JUnit XML."""

from typing import TYPE_CHECKING

from calcheck.core.escaping import strip_control
from calcheck.render.numbers_and_notes import describe_input, outcome
from calcheck.report import Gate, Report

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

CONSTANT = {"timestamp": "1970-01-01T00:00:00", "hostname": "localhost", "time": "0"}
"""Attributes that the schemas require; constant, so that the same run gives the same bytes everywhere."""


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
