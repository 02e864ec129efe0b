"""Stored reports are read back unchanged, or refused in one line."""

import json

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from calcheck import InMemory, Predictions
from calcheck.distributions import Gaussian
from calcheck.errors import FileError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.render.data import render_json, to_plain
from calcheck.storage.report_json import read_report
from calcheck.storage.schema import SCHEMAS
from tests.helpers.shorthand import texts


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    rows = Predictions(y=rng.normal(size=60), predictive=Gaussian(np.zeros(60), np.ones(60)))
    return evaluate(InMemory(rows), [metric() for metric in METRICS.values()], run=Run(resamples=100))


@pytest.fixture
def content(report):
    return json.loads(render_json(report))


def save(tmp_path, content):
    path = tmp_path / "report.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


@pytest.mark.slow
def test_a_report_is_read_back_unchanged(tmp_path, report):
    path = save(tmp_path, render_json(report))
    read = read_report(path)
    assert render_json(read) == render_json(report)
    assert read.input == report.input
    assert read.skipped == report.skipped
    assert [type(result) for result in read.results] == [type(result) for result in report.results]
    assert texts(read.results[0].warnings) == texts(report.results[0].warnings)
    assert to_plain(read.settings) == to_plain(report.settings)


def test_integers_are_accepted_as_numbers(tmp_path, content):
    content["results"][0]["value"] = 1
    assert type(read_report(save(tmp_path, content)).results[0].value) is float


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not valid JSON: Expecting value"),
        ("{", "is not valid JSON"),
        ('{"schema_version": 3, "schema_version": 3}', "'schema_version' occurs twice in one object"),
        ('{"schema_version": NaN}', "NaN is not a JSON number"),
        ('{"schema_version": -Infinity}', "-Infinity is not a JSON number"),
        ('{"schema_version": 1e999}', "1e999 is out of the range of float64"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"a": ' + "9" * 10_000 + "}", "is not valid JSON"),
        ("[]", "is not a calcheck report: it has no schema_version. calcheck evaluate FILE --format json writes"),
        ("{}", "it has no schema_version"),
        ('{"schema_version": 4}', "has schema version 4; this calcheck reads 3. Create the report again"),
        ('{"schema_version": true}', "has schema version true; this calcheck reads 3"),
        ('{"schema_version": 3}', 'is not a report of this calcheck: it lacks "calcheck"'),
    ],
)
def test_files_that_are_not_reports_are_refused(tmp_path, text, message):
    with pytest.raises(FileError) as refused:
        read_report(save(tmp_path, text))
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "report.json"))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("results", 0, "value"), "1.3", 'results[0].value must be a number or null, got "1.3"'),
        (("results", 0, "value"), True, "results[0].value must be a number or null, got true"),
        (
            ("results", 1, "verdict"),
            "good",
            'results[1].verdict must be one of pass, fail, undecided, none, got "good"',
        ),
        (("results", 0, "slice"), [], "results[0].slice must be an object, got []"),
        (("results", 0, "warnings"), "none", 'results[0].warnings must be a list, got "none"'),
        (("results", 0, "warnings"), [3], "results[0].warnings[0] must be an object, got 3"),
        (("results", 0, "worth"), 3, 'results[0] has an unknown "worth"'),
        (("results",), {}, "results must be a list, got {}"),
        (("results",), [3], "results[0] must be an object, got 3"),
        (("input", "n"), 1.5, "input.n must be an integer, got 1.5"),
        (("input", "columns"), {"y": 3}, "input.columns.y must be text, got 3"),
        (("calcheck",), None, "calcheck must be text, got null"),
        (("settings",), "x" * 99, 'settings must be an object, got "' + "x" * 39 + "…"),
    ],
)
def test_fields_of_the_wrong_type_are_refused_with_their_path(tmp_path, content, place, value, message):
    holder = content
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    with pytest.raises(FileError) as refused:
        read_report(save(tmp_path, content))
    assert message in str(refused.value)


def test_details_may_be_nested_up_to_a_limit(tmp_path, content):
    for depth, fits in ((20, True), (500, False)):
        nested = 1
        for _ in range(depth):
            nested = {"a": nested}
        content["results"][0]["details"] = {"nested": nested}
        if fits:
            assert read_report(save(tmp_path, content)).results[0].details == {"nested": nested}
        else:
            with pytest.raises(FileError, match="more than 32 objects and lists are nested in each other"):
                read_report(save(tmp_path, json.dumps(content)))


@pytest.mark.slow
def test_oversized_settings_are_refused(tmp_path, content):
    content["settings"] = {f"a{number}": number for number in range(100_000)}
    with pytest.raises(FileError, match=r"'settings' has [\d,]+ characters, at most 1,048,576 are read"):
        read_report(save(tmp_path, content))


@pytest.mark.slow
def test_a_duplicate_member_among_many_is_refused(tmp_path):
    many = json.dumps({f"a{number}": number for number in range(50_000)})
    with pytest.raises(FileError, match="'a49998' occurs twice in one object"):
        read_report(save(tmp_path, many.replace('"a49999"', '"a49998"')))


def test_a_missing_field_is_named(tmp_path, content):
    del content["results"][2]["unit"]
    with pytest.raises(FileError, match=r'results\[2\] lacks "unit"'):
        read_report(save(tmp_path, content))


def test_large_or_missing_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("calcheck.storage.report_json.LARGEST_BYTES", 1 << 20)  # the real one is 64 MiB
    with pytest.raises(FileError, match="is larger than 1 MiB, the maximum size"):
        read_report(save(tmp_path, " " * ((1 << 20) + 1)))
    with pytest.raises(FileError, match="there is no file"):
        read_report(str(tmp_path / "absent.json"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_are_valid(kind):
    Draft202012Validator.check_schema(SCHEMAS[kind]())
