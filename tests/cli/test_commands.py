"""The program keeps its contract: what it prints where, what it writes, how it ends."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from calcheck import __version__
from calcheck.metrics import METRICS
from calcheck.options import options_of
from calcheck.render.schema import report_schema
from tests.files import columns, write


def test_a_table_is_printed(calcheck, preds):
    found = calcheck("cce", preds)
    assert found.code == 0
    assert found.err == ""
    assert found.out.startswith(f"{preds}\n40 rows · predictions: gaussian\n\n")
    assert "\x1b" not in found.out
    assert max(map(len, found.out.splitlines())) <= 80
    for topic in ("quantiles", "dof", "inputs", "targets", "model", "solver"):
        assert f"\n{topic} " in found.out


def test_json_obeys_the_schema(calcheck, preds):
    schema = json.loads(calcheck("schema").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == json.loads(json.dumps(report_schema()))
    for arguments in ([], ["--worst", 2, "--best", 1], ["--draws", 1, "--trials", 3], ["--solver", "cg"]):
        report = json.loads(calcheck("cce", preds, "--format", "json", *arguments).out)
        jsonschema.validate(report, schema)
    assert report["calcheck"] == __version__
    assert report["input"]["columns"]["x"] == "embedding"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report | {"results": [report["results"][0] | {"value": "much"}]}, schema)


def test_the_report_rebuilds_the_metric(calcheck, preds):
    report = json.loads(calcheck("cce", preds, "--lambda", "0.5", "--gamma-x", "1/d", "--format", "json").out)
    (result,) = report["results"]
    metric = METRICS["cce"].from_options(result["options"])
    assert (metric.lambda_, metric.gamma_x) == (0.5, "1/d")
    assert result["low"] is None
    assert any(warning.startswith("no interval:") for warning in result["warnings"])


def test_the_same_command_gives_the_same_bytes(process, preds):
    found = [process("cce", preds, "--format", "json", "--draws", 2, "--solver", "cg").stdout for _ in range(2)]
    assert found[0] == found[1]
    assert json.loads(found[0])["settings"]["seed"] == 0
    other = process("cce", preds, "--format", "json", "--draws", 2, "--solver", "cg", "--seed", 1).stdout
    assert json.loads(other)["results"][0]["value"] != json.loads(found[0])["results"][0]["value"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_pointwise_output_has_id_value_and_narrow_columns(calcheck, preds, tmp_path, ending):
    out = tmp_path / f"rows.{ending}"
    report = json.loads(calcheck("cce", preds, "--pointwise", out, "--format", "json").out)
    if ending == "parquet":
        rows = pq.read_table(out)
    else:
        from pyarrow import csv

        rows = csv.read_csv(out)
    assert rows.column_names == ["id", "cce", "y", "mean", "std", "topic"]
    assert rows["id"].to_pylist() == list(range(100, 140))
    assert rows["topic"].to_pylist()[:2] == ["news", "prose"]
    assert_allclose(np.mean(rows["cce"].to_numpy()), report["results"][0]["value"])
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_inputs_of_another_file_need_no_targets(calcheck, preds, tmp_path):
    at = write(tmp_path / "at.parquet", {name: columns(9, seed=5)[name] for name in ("id", "embedding")})
    out = tmp_path / "rows.parquet"
    report = json.loads(calcheck("cce", preds, "--at", at, "--pointwise", out, "--format", "json").out)
    assert report["results"][0]["details"]["rows"] == 9
    assert [file["rows"] for file in report["input"]["files"]] == [40, 9]
    assert pq.read_table(out).column_names == ["id", "cce"]
    np.save(tmp_path / "at.npy", columns(9, seed=5)["embedding"])
    again = json.loads(calcheck("cce", preds, "--at", tmp_path / "at.npy", "--format", "json").out)
    assert_allclose(again["results"][0]["value"], report["results"][0]["value"])
    itself = json.loads(calcheck("cce", preds, "--at", preds, "--format", "json").out)
    direct = json.loads(calcheck("cce", preds, "--format", "json").out)
    assert_allclose(itself["results"][0]["value"], direct["results"][0]["value"])


def test_worst_rows_are_shown_with_their_columns(calcheck, preds):
    found = calcheck("cce", preds, "--worst", 2)
    listed = found.out.split("worst\n")[1].splitlines()
    assert listed[0].split() == ["row", "id", "cce", "y", "mean", "std", "topic"]
    assert len(listed[2].split()) == 7


def test_a_report_is_written_only_when_all_went_well(calcheck, preds, tmp_path):
    out = tmp_path / "report.json"
    out.write_text("yesterday's")
    refused = calcheck("cce", preds, "--format", "json", "-o", out, "--gamma-x", "median").refused()
    assert "does not fit the polynomial kernel" in refused
    assert out.read_text() == "yesterday's"
    assert calcheck("cce", preds, "--format", "json", "-o", out).out == ""
    assert json.loads(out.read_text())["results"][0]["metric"] == "cce"
    assert oct(out.stat().st_mode)[-3:] == "644"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'FILE'"),
        (["preds", "--lamda", "1"], "No such option: --lamda"),
        (["preds", "--lambda", "x"], "--lambda takes a number, got 'x'"),
        (["preds", "--lambda", "nan"], "--lambda takes a number, got 'nan'"),
        (["preds", "--lambda", "-1"], "lambda must be a positive number, got -1.0"),
        (["preds", "--kernel-x", "cubic"], "--kernel-x takes one of rbf, laplace, polynomial, got 'cubic'"),
        (["preds", "--gamma-x", "mode"], "--gamma-x takes a number or one of 1/d, median, variance, got 'mode'"),
        (["preds", "--draws", "1.5"], "--draws takes a whole number or one of exact, all, got '1.5'"),
        (["preds", "--format", "xml"], "--format takes one of table, json, got 'xml'"),
        (["preds", "--memory", "much"], "memory must be an amount such as 800MB or 1.5GiB, got 'much'"),
        (["preds", "--device", "abacus"], "torch cannot use device 'abacus'"),
        (["preds", "--seed", "-1"], "seed must be >= 0, got -1"),
        (["preds", "--worst", "-1"], "worst must be >= 0, got -1"),
        (["preds", "--subsample", "0"], "subsample must be between 1 and the 40 rows"),
        (["preds", "--pointwise", "rows.xlsx"], "rows.xlsx must end in .parquet or .csv"),
        (["preds", "--pointwise", "no/rows.csv"], "no/rows.csv cannot be written: there is no such folder"),
        (["preds", "-o", "."], ". cannot be written: it is a folder"),
        (["preds", "--embedding", "absent.npy"], "there is no file absent.npy"),
        (["preds", "--embedding", "h*"], "no column matches 'h*' for the embedding"),
        (["preds", "--at", "absent.npy"], "there is no file absent.npy"),
        (["-"], "--input-format parquet|csv"),
        (["absent.csv"], "there is no file absent.csv"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(calcheck, preds, arguments, message):
    assert message in calcheck("cce", *(preds if part == "preds" else part for part in arguments)).refused()


def test_a_file_without_inputs_is_refused(calcheck, tmp_path):
    parts = {name: values for name, values in columns().items() if name != "embedding"}
    line = calcheck("cce", write(tmp_path / "preds.csv", parts)).refused()
    assert "needs inputs to condition on (--embedding or --inputs)" in line


def test_names_from_a_file_cannot_break_the_terminal(calcheck, tmp_path):
    for name in ("a\x1b[31mred\nline", "[bold]x[/bold]"):
        parts = columns() | {name: np.array(["\x1b[2J[red]|"] * 12)}
        found = calcheck("cce", write(tmp_path / "preds.parquet", parts), "--worst", 1)
        assert found.code == 0
        assert "\x1b" not in found.out
        assert "[red]|" in found.out
    assert "[bold]x[/bold]" in found.out
    line = calcheck("cce", write(tmp_path / "p.parquet", parts), "--target", "zz").refused()
    assert "\x1b" not in line


def test_inspect_prints_roles_and_the_options_that_say_the_same(calcheck, preds):
    found = calcheck("inspect", preds)
    assert found.code == 0
    assert "gaussian" in found.out
    assert "embedding (embedding, 3 numbers a row, float32)" in found.out
    said = found.out.splitlines()[-1].split()
    assert calcheck("cce", preds, *said).out == calcheck("cce", preds).out


def test_metrics_are_listed(calcheck):
    found = calcheck("metrics")
    for name in METRICS:
        assert f"\n{name} " in found.out


@pytest.mark.parametrize("command", [*METRICS, "inspect", "metrics", "schema"])
def test_every_command_has_help(calcheck, command):
    found = calcheck(command, "--help")
    assert found.code == 0
    for metric in METRICS.values() if command in METRICS else ():
        for option in options_of(metric):
            assert f" {option.flag} " in found.out


def test_the_version_is_printed(process):
    assert process("--version").stdout == f"calcheck {__version__}\n"


def test_help_loads_no_heavy_module():
    heavy = ("numpy", "scipy", "array_api_compat", "pandas", "pyarrow", "torch", "dask")
    code = f"import sys; from calcheck.cli import app; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_standard_input_is_read(process, preds):
    with Path(preds).open("rb") as stream:
        piped = process("cce", "-", "--input-format", "parquet", stdin=stream)
    assert "standard input\n40 rows" in piped.stdout


def test_a_reader_that_leaves_early_is_no_error(preds):
    command = f"{sys.executable} -m calcheck cce {preds} --format json | true"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ended.stderr == ""


def test_an_interrupt_ends_with_130():
    code = (
        "import os, signal, sys; sys.argv = ['calcheck', 'metrics'];"
        "from calcheck.cli import app, listings;"
        "import calcheck.render.console as c; c.rendered = lambda *a: os.kill(os.getpid(), signal.SIGINT);"
        "app.main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 128 + signal.SIGINT
    assert ended.stderr == ""


def test_progress_appears_on_a_terminal_after_a_while(monkeypatch, capsys):
    from calcheck.cli import progress

    clock = iter([0.0, 1.0, 3.0, 4.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.progress_bar() as report:
        report("kernel", 0.1)
        assert capsys.readouterr().err == ""
        report("kernel", 0.5)
        report("solve", 0.1)
    assert "kernel" in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with progress.progress_bar() as report:
        report("kernel", 0.5)
    assert capsys.readouterr().err == ""


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    from rich.text import Text

    from calcheck.render.console import rendered

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[31m" in rendered(Text("x", style="red"))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in rendered(Text("x", style="red"))
