"""`calcheck diff`: what changed between two reports."""

import json

import jsonschema
import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.render import format_names
from calcheck.render.schema import diff_schema
from tests.files import columns, write


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
def found(calcheck):
    """Compare two reports, and return what is found."""

    def run(old, new):
        ended = calcheck("diff", old, new, "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        told = json.loads(ended.out)
        jsonschema.validate(told, diff_schema())
        return told

    return run


def edited(path, change):
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))
    return path


def test_values_change_by_metric(stored, found):
    old, new = stored("old"), stored("new", spread=2.0)
    told = found(old, new)
    zms, rmse, sharpness = told["changes"]
    assert [change["metric"] for change in told["changes"]] == ["zms", "rmse", "sharpness"]
    assert_allclose(zms["new"], zms["old"] / 4)
    assert_allclose(zms["change"], -0.75 * zms["old"])
    assert_allclose(zms["relative"], -0.75)
    assert (zms["overlap"], zms["inside"]) == (False, False)
    assert (zms["old_verdict"], zms["new_verdict"]) == ("fail", "fail")
    assert (rmse["change"], rmse["relative"], rmse["overlap"], rmse["inside"]) == (0, 0, True, True)
    assert_allclose(sharpness["relative"], 1)
    assert told["only_old"] == told["only_new"] == []
    assert [each["what"] for each in told["differences"]] == ["input.files[0].sha256"]


def test_a_report_differs_from_itself_in_nothing(stored, calcheck, found):
    path = stored("old")
    told = found(path, path)
    assert {change["change"] for change in told["changes"]} == {0}
    assert told["differences"] == []
    assert "note input, settings and versions are identical" in calcheck("diff", path, path).out


def test_intervals_overlap_where_they_share_a_number(stored, found):
    """[1, 2] against [2, 3] does, against [2.1, 3] not; 2 lies in [1, 2]."""

    def made(name, low, high, value):
        def change(told):
            told["results"][0] |= {"low": low, "high": high, "value": value}

        return edited(stored(name), change)

    old = made("old", 1.0, 2.0, 1.5)
    for low, high, value, overlap, inside in (
        (2.0, 3.0, 2.0, True, True),
        (2.1, 3.0, 2.1, False, False),
        (0.0, 9.0, 2.5, True, False),
        (1.2, 1.3, 1.25, True, True),
        (None, None, 1.2, None, True),
        (1.0, 2.0, None, True, None),
    ):
        change = found(old, made("new", low, high, value))["changes"][0]
        assert (change["overlap"], change["inside"]) == (overlap, inside)
    assert found(made("new", None, None, 0.0), old)["changes"][0]["relative"] is None
    assert found(made("new", None, None, -2.0), old)["changes"][0]["relative"] == 3.5 / 2


def test_changes_beyond_all_numbers_are_none(stored, found):
    def made(name, value):
        return edited(stored(name), lambda told: told["results"][0].update(value=value))

    change = found(made("old", -1.7e308), made("new", 1.7e308))["changes"][0]
    assert (change["change"], change["relative"]) == (None, None)
    change = found(made("old", 1e-300), made("new", 1e300))["changes"][0]
    assert (change["change"], change["relative"]) == (1e300, None)


def test_what_is_in_one_report_only_is_told_with_the_reason(stored, found, calcheck):
    y = columns(n=60)["y"]
    old = stored("old", "--metrics", "zms,nll")
    draws = {f"sample_{place}": y + place for place in range(4)}
    new = stored("new", "--metrics", "nll,crps,rmse", "--samples", "sample_*", **draws)
    told = found(old, new)
    assert told["changes"] == []
    assert (told["only_old"][0]["metric"], told["only_old"][0]["reason"]) == ("zms", None)
    assert told["only_old"][1]["metric"] == "nll"
    assert "dens" in told["only_old"][1]["reason"]
    assert [each["metric"] for each in told["only_new"]] == ["crps", "rmse"]
    out = " ".join(calcheck("diff", old, new).out.split())
    assert "only in the old report: zms, " in out
    assert "; skipped in the new report: " in out


def test_metrics_with_other_options_or_rows_are_others(stored, found, calcheck, tmp_path):
    old = stored("old", "--metrics", "ece")
    new = edited(stored("new", "--metrics", "ece"), lambda told: told["results"][0]["options"].update(n_levels=9))
    told = found(old, new)
    assert told["changes"] == []
    assert [each["options"]["n_levels"] for each in told["only_old"] + told["only_new"]] == [99, 9]
    path = tmp_path / "pruned.json"
    calcheck("prune", tmp_path / "preds.csv", "--step", 5, "--resamples", 200, "--format", "json", "-o", path)
    told = found(path, path)
    assert [each["slice"]["removed"] for each in told["changes"]] == ["0 %", "5 %", "10 %"] * 2
    turned = tmp_path / "turned.json"
    turned.write_text(path.read_text())
    edited(turned, lambda told: told["results"].reverse())
    assert {change["change"] for change in found(path, turned)["changes"]} == {0}
    compared = tmp_path / "compared.json"
    pair = (tmp_path / "preds.csv", tmp_path / "preds.csv")
    calcheck("compare", *pair, "--metrics", "rmse", "--resamples", 200, "--format", "json", "-o", compared)
    assert len(found(compared, compared)["changes"]) == 3


def test_circumstances_that_differ_are_listed(stored, found):
    def change(told):
        told["calcheck"] = "9.9"
        told["settings"]["versions"]["numpy"] = "3.0"
        told["input"]["columns"] = {"y": "target"}

    new = edited(stored("new", "--metrics", "rmse", "--seed", 3), change)
    told = found(stored("old", "--metrics", "rmse", "--nan-policy", "omit"), new)
    differ = {each["what"]: (each["old"], each["new"]) for each in told["differences"]}
    assert differ["calcheck"][1] == "9.9"
    assert differ["settings.seed"] == (0, 3)
    assert differ["settings.versions.numpy"] == (np.__version__, "3.0")
    assert differ["input.columns.y"] == ("y", "target")
    assert differ["input.columns.mean"] == ("mean", None)


def test_a_verdict_that_changes_is_shown(stored, calcheck):
    old = edited(stored("old"), lambda told: told["results"][0].update(verdict="pass"))
    out = calcheck("diff", old, stored("new")).out
    assert "pass → fail" in out
    assert all(len(line) <= 80 for line in out.split("\n\n")[0].splitlines())


def test_markdown_is_a_table_with_notes(stored, calcheck):
    out = calcheck("diff", stored("old"), stored("new", spread=2.0), "--format", "markdown").out
    lines = out.splitlines()
    assert lines[0] == "| metric | old | new | change | relative | in old interval | verdict |"
    assert lines[2].startswith("| zms | ")
    assert "| -75 % | no, intervals disjoint | fail |" in lines[2]
    assert lines[3].endswith("| 0 | 0 % | yes | pass → fail |")
    assert lines[-1].startswith(r"- input.files\[0\].sha256: ")


def test_hostile_reports_come_out_harmless(stored, calcheck):
    name = "<script>|\x1b[2J\n=cmd()@me"

    def change(told):
        told["results"][0] |= {"metric": name, "slice": {name: name}}
        told["settings"][name] = name

    path = edited(stored("new"), change)
    for form in ("table", "markdown", "json"):
        for arguments in ((stored("old"), path), (path, path)):
            out = calcheck("diff", *arguments, "--format", form).out
            assert "\x1b" not in out
            assert "<script>" not in out or form != "markdown"
            assert all(len(line) - len(line.replace(" | ", "")) <= 24 for line in out.splitlines())


def test_reports_are_read_from_standard_input_and_written_to_files(stored, process, calcheck, tmp_path):
    old, new = stored("old"), stored("new")
    piped = process("diff", "-", new, input=old.read_text())
    assert piped.stdout == calcheck("diff", old, new).out
    out = tmp_path / "diff.json"
    assert calcheck("diff", old, new, "--format", "json", "-o", out).out == ""
    jsonschema.validate(json.loads(out.read_text()), diff_schema())
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
def test_mistakes_get_one_line(stored, calcheck, tmp_path, arguments, message):
    paths = {"old": stored("old"), "preds": tmp_path / "preds.csv"}
    assert message in calcheck("diff", *(paths.get(part, part) for part in arguments)).refused()


def test_what_diff_finds_is_no_report(stored, calcheck, tmp_path):
    old, out = stored("old"), tmp_path / "diff.json"
    calcheck("diff", old, old, "--format", "json", "-o", out)
    assert "diff.json is not a report of this calcheck" in calcheck("diff", old, out).refused()


def test_both_schemas_are_printed(calcheck):
    assert json.loads(calcheck("schema", "diff").out) == json.loads(json.dumps(diff_schema()))
    jsonschema.Draft202012Validator.check_schema(diff_schema())
    assert calcheck("schema").out == calcheck("schema", "report").out
    assert "unknown schema 'x'. Available schemas: report, diff" in calcheck("schema", "x").refused()
