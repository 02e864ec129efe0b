"""`calcheck diff`: what changed between two reports."""

import json

import jsonschema
import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.render import format_names
from calcheck.storage.schema import diff_schema
from tests.helpers.files import columns, write
from tests.helpers.schemas import validate


@pytest.fixture
def stored(calcheck, tmp_path):
    """Compute metrics of a file with some spread, and store the report."""

    def run(name, *arguments, spread=1.0, **changes):
        parts = {key: values for key, values in columns(n=60).items() if key != "embedding"} | changes
        preds = write(tmp_path / "preds.csv", parts | {"std": parts["std"] * spread})
        path = tmp_path / f"{name}.json"
        options = ("--resamples", 200, "--format", "json", "-o", path)
        ended = calcheck("evaluate", preds, *(arguments or ("--metrics", "zms,rmse,sharpness")), *options)
        assert ended.code == 0
        return path

    return run


@pytest.fixture
def diff_report(calcheck):
    """Compare two reports, and return the report of the differences."""

    def run(old, new):
        ended = calcheck("diff", old, new, "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        report = json.loads(ended.out)
        validate(report, "diff")
        return report

    return run


def edited(path, change):
    report = json.loads(path.read_text())
    change(report)
    path.write_text(json.dumps(report))
    return path


def test_values_change_by_metric(stored, diff_report):
    old, new = stored("old"), stored("new", spread=2.0)
    report = diff_report(old, new)
    zms, rmse, sharpness = report["changes"]
    assert [change["metric"] for change in report["changes"]] == ["zms", "rmse", "sharpness"]
    assert_allclose(zms["new"], zms["old"] / 4)
    assert_allclose(zms["change"], -0.75 * zms["old"])
    assert_allclose(zms["relative"], -0.75)
    assert (zms["overlap"], zms["inside"]) == (False, False)
    assert (zms["old_verdict"], zms["new_verdict"]) == ("fail", "fail")
    assert (rmse["change"], rmse["relative"], rmse["overlap"], rmse["inside"]) == (0, 0, True, True)
    assert_allclose(sharpness["relative"], 1)
    assert report["only_old"] == report["only_new"] == []
    assert [each["path"] for each in report["differences"]] == ["input.files[0].sha256"]


def test_a_report_does_not_differ_from_itself(stored, calcheck, diff_report):
    path = stored("old")
    report = diff_report(path, path)
    assert {change["change"] for change in report["changes"]} == {0}
    assert report["differences"] == []
    assert "note input, settings and versions are identical" in calcheck("diff", path, path).out


@pytest.mark.slow
def test_intervals_overlap_if_they_share_a_number(stored, diff_report):
    """[1, 2] overlaps [2, 3] but not [2.1, 3]; 2 lies in [1, 2]."""

    def with_values(name, low, high, value):
        def change(report):
            report["results"][0] |= {"low": low, "high": high, "value": value}

        return edited(stored(name), change)

    old = with_values("old", 1.0, 2.0, 1.5)
    for low, high, value, overlap, inside in (
        (2.0, 3.0, 2.0, True, True),
        (2.1, 3.0, 2.1, False, False),
        (0.0, 9.0, 2.5, True, False),
        (1.2, 1.3, 1.25, True, True),
        (None, None, 1.2, None, True),
        (1.0, 2.0, None, True, None),
    ):
        change = diff_report(old, with_values("new", low, high, value))["changes"][0]
        assert (change["overlap"], change["inside"]) == (overlap, inside)
    assert diff_report(with_values("new", None, None, 0.0), old)["changes"][0]["relative"] is None
    assert diff_report(with_values("new", None, None, -2.0), old)["changes"][0]["relative"] == 3.5 / 2


@pytest.mark.slow
def test_changes_beyond_the_float_range_are_null(stored, diff_report):
    def with_value(name, value):
        return edited(stored(name), lambda report: report["results"][0].update(value=value))

    change = diff_report(with_value("old", -1.7e308), with_value("new", 1.7e308))["changes"][0]
    assert (change["change"], change["relative"]) == (None, None)
    change = diff_report(with_value("old", 1e-300), with_value("new", 1e300))["changes"][0]
    assert (change["change"], change["relative"]) == (1e300, None)


def test_infinite_values_are_shown(stored, diff_report, calcheck):
    infinite = {"code": "infinite-value", "text": "the value is infinite, and null in JSON"}

    def make_infinite(report):
        report["results"][0] |= {"value": None, "verdict": "fail", "low": None, "high": None}
        report["results"][0]["warnings"].append(infinite)

    old, new = stored("old"), edited(stored("new"), make_infinite)
    change = diff_report(old, new)["changes"][0]
    assert (change["new"], change["change"], change["inside"]) == (None, None, False)
    (line,) = (line for line in calcheck("diff", old, new).out.splitlines() if line.startswith("zms"))
    assert line.split()[2] == "∞"


@pytest.mark.slow
def test_metrics_in_only_one_report_are_listed_with_the_reason(stored, diff_report, calcheck):
    y = columns(n=60)["y"]
    old = stored("old", "--metrics", "zms,nll")
    draws = {f"sample_{place}": y + place for place in range(4)}
    new = stored("new", "--samples", "sample_*", **draws)
    report = diff_report(old, new)
    assert [each["metric"] for each in report["changes"]] == ["zms"]
    assert [each["metric"] for each in report["only_old"]] == ["nll"]
    assert "dens" in report["only_old"][0]["reason"]
    assert {"crps", "rmse"} <= {each["metric"] for each in report["only_new"]}
    out = " ".join(calcheck("diff", old, new).out.split())
    assert "only in the old report: nll" in out
    assert "crps (ensemble fair), " in out.partition("only in the new report: ")[2]
    assert "; skipped in the new report: " in out


@pytest.mark.slow
def test_results_are_matched_by_options_and_slice(stored, diff_report, calcheck, tmp_path):
    old = stored("old", "--metrics", "ece")
    new = edited(stored("new", "--metrics", "ece"), lambda report: report["results"][0]["options"].update(n_levels=9))
    report = diff_report(old, new)
    assert report["changes"] == []
    assert [each["options"]["n_levels"] for each in report["only_old"] + report["only_new"]] == [99, 9]
    path = tmp_path / "pruned.json"
    calcheck("prune", tmp_path / "preds.csv", "--step", 5, "--resamples", 200, "--format", "json", "-o", path)
    report = diff_report(path, path)
    assert [each["slice"]["removed"] for each in report["changes"]] == ["0 %", "5 %", "10 %"] * 2
    turned = tmp_path / "turned.json"
    turned.write_text(path.read_text())
    edited(turned, lambda report: report["results"].reverse())
    assert {change["change"] for change in diff_report(path, turned)["changes"]} == {0}
    compared = tmp_path / "compared.json"
    pair = (tmp_path / "preds.csv", tmp_path / "preds.csv")
    calcheck("compare", *pair, "--metrics", "rmse", "--resamples", 200, "--format", "json", "-o", compared)
    assert len(diff_report(compared, compared)["changes"]) == 3


def test_different_versions_settings_and_columns_are_listed(stored, diff_report):
    def change(report):
        report["calcheck"] = "9.9"
        report["settings"]["versions"]["numpy"] = "3.0"
        report["input"]["columns"] = {"y": "target"}

    new = edited(stored("new", "--metrics", "rmse", "--seed", 3), change)
    report = diff_report(stored("old", "--metrics", "rmse", "--nan-policy", "omit"), new)
    differ = {each["path"]: (each["old"], each["new"]) for each in report["differences"]}
    assert differ["calcheck"][1] == "9.9"
    assert differ["settings.seed"] == (0, 3)
    assert differ["settings.versions.numpy"] == (np.__version__, "3.0")
    assert differ["input.columns.y"] == ("y", "target")
    assert differ["input.columns.mean"] == ("mean", None)


def test_changed_verdicts_are_shown(stored, calcheck):
    old = edited(stored("old"), lambda report: report["results"][0].update(verdict="pass"))
    out = calcheck("diff", old, stored("new")).out
    assert "pass → fail" in out
    assert all(len(line) <= 80 for line in out.split("\n\n")[0].splitlines())


def test_markdown_is_a_table_with_notes(stored, calcheck):
    out = calcheck("diff", stored("old"), stored("new", spread=2.0), "--format", "markdown").out
    lines = out.splitlines()
    assert lines[:3] == ["|  | old | new |", "| --- | --- | --- |", "| answer | NO | NO |"]
    place = lines.index("| metric | old | new | change | relative | in old interval | verdict |")
    assert lines[place + 2].startswith("| rmse | ")
    assert lines[place + 2].endswith("| 0 | 0 % | yes | pass → fail |")
    assert "| -75 % | no, intervals disjoint | fail |" in lines[place + 3]
    assert lines[-1].startswith(r"- input.files\[0\].sha256: ")


def test_values_that_differ_by_rounding_are_unchanged(stored, calcheck):
    def round_otherwise(report):
        report["results"][0]["value"] *= 1 + 1e-14

    old = stored("old", "--metrics", "zms")
    out = calcheck("diff", old, edited(stored("new", "--metrics", "zms"), round_otherwise)).out
    (line,) = (line for line in out.splitlines() if line.startswith("zms") and "%" in line and "yes" in line)
    assert line.split()[3:6] == ["0", "0", "%"]


def test_the_answer_is_first_and_what_is_worse_before_what_is_not(stored, calcheck):
    old, new = stored("old"), stored("new", spread=0.2)
    lines = calcheck("diff", old, new).out.splitlines()
    assert [lines[0].split(), lines[2].split()[0]] == [["old", "new"], "answer"]
    told = " ".join(lines)
    assert 0 < told.rindex(": worse (") < told.index("not worse within") < told.index("in old interval")


def test_a_report_without_an_answer_is_named(calcheck, stored, tmp_path):
    old, new = tmp_path / "old.json", stored("new")
    calcheck("zms", tmp_path / "preds.csv", "--format", "json", "-o", old)
    out = " ".join(calcheck("diff", old, new).out.split())
    assert "answer no answer NO" in out
    assert "note no answer in the old report: those of calcheck evaluate have one" in out
    assert "no answer in the old and the new report" in " ".join(calcheck("diff", old, old).out.split())


def test_results_of_each_of_several_targets_are_compared(calcheck, tmp_path):
    parts = {key: values for key, values in columns(n=60).items() if key in ("y", "mean", "std")}
    both = {f"{name}_{place}": values for place in (1, 2) for name, values in parts.items()}
    write(tmp_path / "old.csv", both)
    write(tmp_path / "new.csv", both | {"std_2": 4 * both["std_2"]})
    for name in ("old", "new"):
        run = ("--metrics", "zms", "--resamples", 0, "--format", "json", "-o", tmp_path / f"{name}.json")
        calcheck("evaluate", tmp_path / f"{name}.csv", *run)
    ended = calcheck("diff", tmp_path / "old.json", tmp_path / "new.json", "--format", "json")
    found = json.loads(ended.out)
    validate(found, "diff")
    assert [each["path"] for each in found["answers"]] == ["answer", "y_1", "y_2"]
    first, second = found["changes"]
    assert [each["slice"] for each in (first, second)] == [{"target": "y_1"}, {"target": "y_2"}]
    assert (first["change"], second["new"]) == (0, pytest.approx(second["old"] / 16))
    shown = calcheck("diff", tmp_path / "old.json", tmp_path / "new.json").out
    assert shown.index("y_2 zms") < shown.index("y_1 zms")


@pytest.mark.slow
def test_hostile_reports_are_escaped(stored, calcheck):
    name = "<script>|\x1b[2J\n=cmd()@me"

    def change(report):
        report["results"][0] |= {"metric": name, "slice": {name: name}}
        report["settings"][name] = name

    path = edited(stored("new"), change)
    for form in ("table", "markdown", "json"):
        for arguments in ((stored("old"), path), (path, path)):
            out = calcheck("diff", *arguments, "--format", form).out
            assert "\x1b" not in out
            assert "<script>" not in out or form != "markdown"
            assert all(len(line) - len(line.replace(" | ", "")) <= 24 for line in out.splitlines())


@pytest.mark.slow
def test_reports_are_read_from_standard_input_and_written_to_files(stored, process, calcheck, tmp_path):
    old, new = stored("old"), stored("new")
    piped = process("diff", "-", new, input=old.read_text())
    assert piped.stdout == calcheck("diff", old, new).out
    out = tmp_path / "diff.json"
    assert calcheck("diff", old, new, "--format", "json", "-o", out).out == ""
    validate(json.loads(out.read_text()), "diff")
    assert "would overwrite" in calcheck("diff", old, new, "-o", new).refused()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["old"], "Missing argument 'NEW.json'"),
        (["old", "absent.json"], "there is no file absent.json"),
        (["old", "."], ". is a folder. Give a file"),
        (["preds", "old"], "preds.csv is not valid JSON"),
        (["-", "-"], "only one report can be read from standard input: pass the other by its file name"),
        (["old", "old", "--format", "csv"], f"--format takes one of {', '.join(format_names('diff'))}, got 'csv'"),
    ],
)
def test_errors_are_one_line(stored, calcheck, tmp_path, arguments, message):
    paths = {"old": stored("old"), "preds": tmp_path / "preds.csv"}
    assert message in calcheck("diff", *(paths.get(part, part) for part in arguments)).refused()


def test_the_output_of_diff_is_not_a_report(stored, calcheck, tmp_path):
    old, out = stored("old"), tmp_path / "diff.json"
    calcheck("diff", old, old, "--format", "json", "-o", out)
    assert "diff.json has schema version 2; this calcheck reads 3" in calcheck("diff", old, out).refused()


def test_both_schemas_are_printed(calcheck):
    assert json.loads(calcheck("schema", "diff").out) == json.loads(json.dumps(diff_schema()))
    jsonschema.Draft202012Validator.check_schema(diff_schema())
    assert calcheck("schema").out == calcheck("schema", "report").out
    assert "unknown schema 'x'. Available schemas: report, diff" in calcheck("schema", "x").refused()


def test_options_of_results_in_only_one_report_are_written_as_on_the_command_line(stored, calcheck, monkeypatch):
    monkeypatch.setenv("CALCHECK_PINBALL_LEVELS", "0.1,0.9")
    old, new = stored("old", "--metrics", "zms"), stored("new", "--metrics", "zms,lzms,pinball")
    out = " ".join(calcheck("diff", old, new).out.split())
    assert "lzms (bins 10), " in out
    assert "pinball (levels 0.1,0.9), " in out
