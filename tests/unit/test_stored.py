"""Stored reports are read back as what they were, or refused in one line."""

import json

import numpy as np
import pytest

from calcheck import InMemory, Predictions
from calcheck.distributions import Gaussian
from calcheck.errors import FileError
from calcheck.evaluation import evaluate
from calcheck.execution.context import Run
from calcheck.metrics import METRICS
from calcheck.render.json import to_json, to_plain
from calcheck.storage.report_json import read_report


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    rows = Predictions(y=rng.normal(size=60), predictive=Gaussian(np.zeros(60), np.ones(60)))
    return evaluate(InMemory(rows), [metric() for metric in METRICS.values()], run=Run(resamples=100))


@pytest.fixture
def told(report):
    return json.loads(to_json(report))


def stored(tmp_path, told):
    path = tmp_path / "report.json"
    path.write_text(told if isinstance(told, str) else json.dumps(told))
    return str(path)


def test_a_report_comes_back_as_it_was(tmp_path, report):
    path = stored(tmp_path, to_json(report))
    read = read_report(path)
    assert to_json(read) == to_json(report)
    assert read.input == report.input
    assert read.skipped == report.skipped
    assert [type(result) for result in read.results] == [type(result) for result in report.results]
    assert read.results[0].warnings == report.results[0].warnings
    assert to_plain(read.settings) == to_plain(report.settings)


def test_whole_numbers_may_stand_where_numbers_do(tmp_path, told):
    told["results"][0]["value"] = 1
    assert type(read_report(stored(tmp_path, told)).results[0].value) is float


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not valid JSON: Expecting value"),
        ("{", "is not valid JSON"),
        ('{"schema_version": 2, "schema_version": 2}', "'schema_version' occurs twice in one object"),
        ('{"schema_version": NaN}', "NaN is not a JSON number"),
        ('{"schema_version": -Infinity}', "-Infinity is not a JSON number"),
        ('{"schema_version": 1e999}', "1e999 is out of the range of float64"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"a": ' + "9" * 10_000 + "}", "is not valid JSON"),
        ("[]", "is not a calcheck report: it has no schema_version. calcheck evaluate FILE --format json writes"),
        ("{}", "it has no schema_version"),
        ('{"schema_version": 3}', "has schema version 3; this calcheck reads 2. Create the report again"),
        ('{"schema_version": true}', "has schema version true; this calcheck reads 2"),
        ('{"schema_version": 2}', 'is not a report of this calcheck: it lacks "calcheck"'),
    ],
)
def test_what_is_no_report_is_refused(tmp_path, text, message):
    with pytest.raises(FileError) as refused:
        read_report(stored(tmp_path, text))
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
        (("results", 0, "warnings"), [3], "results[0].warnings[0] must be text, got 3"),
        (("results", 0, "worth"), 3, 'results[0] has an unknown "worth"'),
        (("results",), {}, "results must be a list, got {}"),
        (("results",), [3], "results[0] must be an object, got 3"),
        (("input", "n"), 1.5, "input.n must be an integer, got 1.5"),
        (("input", "columns"), {"y": 3}, "input.columns.y must be text, got 3"),
        (("calcheck",), None, "calcheck must be text, got null"),
        (("settings",), "x" * 99, 'settings must be an object, got "' + "x" * 39 + "…"),
    ],
)
def test_fields_of_other_types_are_refused_by_their_place(tmp_path, told, place, value, message):
    holder = told
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    with pytest.raises(FileError) as refused:
        read_report(stored(tmp_path, told))
    assert message in str(refused.value)


def test_details_may_be_nested_but_not_without_end(tmp_path, told):
    for depth, fits in ((20, True), (500, False)):
        nested = 1
        for _ in range(depth):
            nested = {"a": nested}
        told["results"][0]["details"] = {"nested": nested}
        if fits:
            assert read_report(stored(tmp_path, told)).results[0].details == {"nested": nested}
        else:
            with pytest.raises(FileError, match="more than 32 objects and lists are nested in each other"):
                read_report(stored(tmp_path, json.dumps(told)))


def test_settings_that_no_run_has_are_refused_at_once(tmp_path, told):
    told["settings"] = {f"a{number}": number for number in range(100_000)}
    with pytest.raises(FileError, match=r"'settings' has [\d,]+ characters, at most 1,048,576 are read"):
        read_report(stored(tmp_path, told))


def test_a_member_that_comes_twice_among_many_is_found_at_once(tmp_path):
    many = json.dumps({f"a{number}": number for number in range(50_000)})
    with pytest.raises(FileError, match="'a49998' occurs twice in one object"):
        read_report(stored(tmp_path, many.replace('"a49999"', '"a49998"')))


def test_a_field_that_is_absent_is_named(tmp_path, told):
    del told["results"][2]["unit"]
    with pytest.raises(FileError, match=r'results\[2\] lacks "unit"'):
        read_report(stored(tmp_path, told))


def test_files_too_large_or_absent_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("calcheck.storage.report_json.LARGEST_BYTES", 1 << 20)
    with pytest.raises(FileError, match="is larger than 1 MiB, the maximum size of a report"):
        read_report(stored(tmp_path, " " * ((1 << 20) + 1)))
    with pytest.raises(FileError, match="there is no file"):
        read_report(str(tmp_path / "absent.json"))
