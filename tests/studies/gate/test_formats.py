"""Gates in every format: the structure that programs rely on, and the escaping of names."""

import csv
import io
import json
import re
from xml.etree import ElementTree as ET

import pytest

from calcheck.errors import Message
from calcheck.render import FORMATS, format_names, render
from calcheck.render.data import MOST
from calcheck.render.document import report_document
from calcheck.reports import Gate, Input, InputFile, Report, Result

CLEAN = Result(metric="zms", summary="", options={}, unit="1", value=1.0, warnings=(Message("layout", "a note"),))
PASSED = Gate(rule="zms > 2", level="fail", passed=True, message="zms is 1", values={"zms": 1.0})
VIOLATED = Gate(rule="zms > 0.5", level="fail", passed=False, message="zms is 1", values={"zms": 1.0})
MISSING = Gate(rule="rce > 1", level="fail", passed=False, message="rce is null (why)", values={"rce": None})
WARNED = Gate(rule="zms > 0.1", level="warn", passed=False, message="zms is 1", values={"zms": 1.0})
WARNED_MISSING = Gate(rule="ece > 1", level="warn", passed=False, message="ece is null", values={"ece": None})
UNJUDGED = Gate(
    rule="mae.verdict == fail",
    level="fail",
    passed=False,
    message="mae.verdict is none",
    values={"mae.verdict": "none"},
    judged=False,
)
ALL = (PASSED, VIOLATED, MISSING, WARNED, WARNED_MISSING)
HOSTILE = (
    "=cmd()|\"&'",
    "<script>alert(1)</script>",
    "]]>",
    "<![CDATA[",
    "a\n::error::b\r\n| c | d |",
    "\x1b[2J\x1b]0;title\x07",
    "\x00\x08\ufffe\ud800\u2028\u202e",
    "[a](javascript:b) *c* _d_ `e` @octocat #1 ~f~ ![g](h)",
    "%0A::warning::x,y:z",
    "&lt;&#x1b;&amp;",
    "[bold red]markup[/bold red]",
)


def shown(form, report):
    return render(report, form, report_document)


def report_of(*gates, path="preds.parquet", results=(CLEAN,)):
    file = InputFile(role="predictions", path=path, sha256="", rows=1)
    read = Input(files=(file,), n=60, dropped=0, predictive="gaussian", columns={})
    return Report(calcheck="0.1.0", input=read, settings={}, results=results, gates=gates)


def hostile_report(text):
    gates = [
        Gate(rule=f"{text} {level}", level=level, passed=passed, message=f"found {text}", values=values)
        for level in ("fail", "warn")
        for passed, values in ((True, {}), (False, {text: 1.0}), (False, {text: None}))
    ]
    result = Result(metric="zms", summary=text, options={}, unit=text, value=1.0, warnings=(Message("layout", text),))
    return report_of(*gates, path=f"{text}.parquet", results=(result,))


def require_junit(text):
    """Fail unless a document has the structure of the schema of Ant's JUnit task, and return its suite."""
    root = ET.fromstring(text)  # noqa: S314 - our own
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    required = {"name", "timestamp", "hostname", "tests", "failures", "errors", "time", "package", "id"}
    assert set(suite.attrib) == required
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
    assert suite.get("time") == suite.get("id") == "0"
    tags = [part.tag for part in suite]
    cases = suite.findall("testcase")
    assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
    assert all(set(each.attrib) == {"name", "value"} and len(each) == 0 for each in suite[0])
    for case in cases:
        assert set(case.attrib) == {"name", "classname", "time"}
        assert [part.tag for part in case] in ([], ["failure"], ["error"])
        assert all(set(part.attrib) == {"type", "message"} for part in case)
    assert int(suite.get("tests")) == len(cases)
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
    assert int(suite.get("errors")) == len(suite.findall("testcase/error"))
    return suite


def test_junit_has_one_test_case_per_rule():
    suite = require_junit(shown("junit", report_of(*ALL)))
    assert [case.get("name") for case in suite.findall("testcase")] == [gate.rule for gate in ALL]
    assert [[part.tag for part in case] for case in suite.findall("testcase")] == [[], ["failure"], ["error"], [], []]
    assert suite.find("testcase/failure").text == "zms is 1"
    assert suite.find("testcase/error").get("message") == "rce is null (why)"
    assert suite.find("system-out").text == "warned: zms > 0.1: zms is 1\nwarned: ece > 1: ece is null\n"
    properties = {each.get("name"): each.get("value") for each in suite[0]}
    assert properties == {"calcheck": "0.1.0", "files": "preds.parquet", "read": "60 rows · predictions: gaussian"}


def test_rules_that_cannot_be_judged_are_errors_of_their_own_in_every_format():
    report = report_of(PASSED, UNJUDGED)
    suite = require_junit(shown("junit", report))
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    assert suite.find("testcase/error").get("type") == "not-judged"
    assert shown("github", report) == (
        "::error title=calcheck%3A mae.verdict == fail::cannot be judged: mae.verdict is none in preds.parquet\n"
    )
    assert shown("markdown", report).startswith("### calcheck: 1 of 2 rules cannot be judged, none violated\n")
    both = report_of(VIOLATED, UNJUDGED, WARNED)
    assert "1 of 3 rules violated, 1 with a warning, 1 cannot be judged\n" in shown("markdown", both)
    assert "| fails if mae.verdict == fail | not judged | mae.verdict is none |" in shown("markdown", both)
    assert [line["verdict"] for line in csv.DictReader(io.StringIO(shown("csv", report)))][1:] == [
        "passed",
        "not judged",
    ]
    assert [json.loads(line).get("judged") for line in shown("jsonl", report).splitlines()] == [None, True, False]


def test_junit_without_failures_is_valid():
    assert require_junit(shown("junit", report_of(PASSED))).get("tests") == "1"


def test_github_has_one_annotation_per_violation_with_errors_first():
    assert shown("github", report_of(WARNED, *ALL)).splitlines() == [
        "::error title=calcheck%3A zms > 0.5::zms is 1 in preds.parquet",
        "::error title=calcheck%3A rce > 1::rce is null (why) in preds.parquet",
        "::warning title=calcheck%3A zms > 0.1::zms is 1 in preds.parquet",
        "::warning title=calcheck%3A zms > 0.1::zms is 1 in preds.parquet",
        "::warning title=calcheck%3A ece > 1::ece is null in preds.parquet",
    ]
    kept = shown("github", report_of(PASSED, PASSED))
    assert kept == "::notice title=calcheck::2 rules passed by preds.parquet\n"


@pytest.mark.parametrize(
    ("errors", "warnings", "last"),
    [
        (10, 0, "::error title=calcheck%3A zms > 0.5::zms is 1 in preds.parquet"),
        (11, 0, "::error title=calcheck::2 more: 11 of 11 rules violated"),
        (9, 3, "::warning title=calcheck::3 more: 9 of 12 rules violated, 3 with a warning"),
        (0, 12, "::warning title=calcheck::3 more: 12 of 12 rules with a warning, none violated"),
    ],
)
def test_github_shows_ten_annotations_and_the_last_counts_the_rest(errors, warnings, last):
    lines = shown("github", report_of(*[WARNED] * warnings, *[VIOLATED] * errors)).splitlines()
    assert len(lines) == MOST == 10
    assert lines[-1] == last


def test_markdown_begins_with_the_outcome_of_the_rules():
    assert shown("markdown", report_of(*ALL)).splitlines() == [
        "### calcheck: 2 of 5 rules violated, 2 with a warning",
        "",
        "**preds.parquet**: 60 rows · predictions: gaussian",
        "",
        "| rule | outcome | found |",
        "| --- | --- | --- |",
        "| fails if zms &gt; 2 | passed | zms is 1 |",
        "| fails if zms &gt; 0.5 | violated | zms is 1 |",
        "| fails if rce &gt; 1 | violated | rce is null (why) |",
        "| warns if zms &gt; 0.1 | warned | zms is 1 |",
        "| warns if ece &gt; 1 | warned | ece is null |",
        "",
        "| metric | value | interval | expected | ζ | p | verdict |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
        "| zms | 1 | – | – | – | – | none |",
        "",
        "- a note",
    ]
    assert shown("markdown", report_of(PASSED)).startswith("### calcheck: 1 rule passed\n")
    assert shown("markdown", report_of(WARNED, PASSED)).startswith("### calcheck: 1 of 2 rules with a warning, none v")


def test_the_table_has_rules_before_results():
    lines = shown("table", report_of(*ALL)).splitlines()
    assert lines[2].split() == ["rule", "outcome", "found"]
    assert [line.split("  ")[0] for line in lines[4:9]] == [f"{gate.level}s if {gate.rule}" for gate in ALL]
    assert lines[10].split() == ["metric", "value", "interval", "expected", "ζ", "p", "verdict"]


def test_flat_formats_have_one_line_per_rule():
    told = [json.loads(line) for line in shown("jsonl", report_of(PASSED, MISSING)).splitlines()]
    assert [line.get("metric") for line in told] == ["zms", None, None]
    assert told[2] == {
        "file": "preds.parquet",
        "n": 60,
        "calcheck": "0.1.0",
        "rule": "rce > 1",
        "level": "fail",
        "passed": False,
        "message": "rce is null (why)",
        "values": {"rce": None},
        "judged": True,
    }
    lines = list(csv.DictReader(io.StringIO(shown("csv", report_of(PASSED, VIOLATED, WARNED)))))
    found = [(line["rule"], line["verdict"], line["notes"]) for line in lines[1:]]
    assert found == [
        ("zms > 2", "passed", "zms is 1"),
        ("zms > 0.5", "violated", "zms is 1"),
        ("zms > 0.1", "warned", "zms is 1"),
    ]


def test_reports_without_gates_do_not_mention_rules():
    for form in format_names("report"):
        assert not re.search(r"\brule\b", shown(form, report_of()))


def controls(text):
    """Return the characters of a text that could control a terminal or end a line."""
    return {character for character in text if not character.isprintable()} - {"\n"}


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("form", FORMATS)
def test_names_never_control_the_terminal_or_break_the_encoding(text, form):
    text = shown(form, hostile_report(text))
    assert form == "csv" or not controls(text)
    text.encode("utf-8", errors="backslashreplace")


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_escaped_in_xml(text):
    suite = require_junit(shown("junit", hostile_report(text)))
    assert len(suite.findall("testcase")) == 6
    assert (suite.get("failures"), suite.get("errors")) == ("1", "1")
    if text.isprintable():
        assert suite.find("testcase").get("name") == f"{text} fail"
        assert suite.find("testcase/failure").text == f"found {text}"


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_escaped_in_github_annotations(text):
    lines = shown("github", hostile_report(text)).splitlines()
    assert len(lines) == 4
    for line in lines:
        kind, title, message = re.fullmatch(r"::(error|warning) title=([^:,]*)::(.*)", line).groups()
        assert kind in ("error", "warning")
        for part in (title, message):
            assert re.fullmatch(r"(?:[^%]|%25|%3A|%2C)*", part)
    if text.isprintable():
        assert message == f"found {text} in {text}.parquet".replace("%", "%25")


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_escaped_in_markdown(text):
    lines = shown("markdown", hostile_report(text)).splitlines()
    gates = lines[6:12]
    for line in gates:
        assert re.fullmatch(r"\|(?:[^|\\]|\\.)*\|(?:[^|\\]|\\.)*\|(?:[^|\\]|\\.)*\|", line)
        assert not re.search(r"[<>@]|&(?!lt;|gt;|amp;|#64;)", line)
        assert not re.search(r"(?<!\\)(?:\\\\)*[*_`\[\]#!~]", line.replace("&#64;", ""))
    assert lines[12] == ""


@pytest.mark.parametrize("text", HOSTILE)
def test_csv_cells_are_never_formulas_or_extra_lines(text):
    lines = list(csv.DictReader(io.StringIO(shown("csv", hostile_report(text)), newline="")))
    assert len(lines) == 7
    for line in lines:
        assert None not in line
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in line.values())


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_unchanged_in_json(text):
    told = json.loads(shown("json", hostile_report(text)))
    assert told["gates"][0]["rule"] == f"{text} fail"
    lines = shown("jsonl", hostile_report(text)).splitlines()
    assert [json.loads(line)["message"] for line in lines[1:]] == [f"found {text}"] * 6
