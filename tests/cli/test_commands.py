"""The contract of the program: standard output and error, written files, exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import make_dataclass
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from calcheck import __version__, read
from calcheck.cli.app import make_program
from calcheck.cli.typer_options import argument, make_command, parameters
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.options import option, options_of
from calcheck.render import format_names
from calcheck.storage.schema import report_schema
from tests.helpers.files import columns, write
from tests.helpers.schemas import validate
from tests.helpers.shorthand import texts
from tests.helpers.simulations import slow

QUICK = ("--no-null", "--no-bootstrap")
NULL_COLUMNS = [
    *("reference_mean", "reference_q05", "reference_q50", "reference_q95"),
    *("p_value", "p_approximate", "significant"),
]


def test_a_table_is_printed(calcheck, preds):
    found = calcheck("cce", preds)
    assert found.code == 0
    assert found.err == ""
    assert found.out.startswith(f"{preds} · 40 rows · predictions: gaussian\n\n")
    assert "\x1b" not in found.out
    assert max(map(len, found.out.splitlines()[1:])) <= 100  # the first line is the path
    for topic in ("quantiles", "dof", "inputs", "targets", "model", "solver"):
        assert f"\n{topic} " in found.out


@pytest.mark.slow
def test_json_matches_the_schema(calcheck, preds):
    schema = json.loads(calcheck("schema").out)
    assert schema == json.loads(json.dumps(report_schema()))
    for arguments in ([], ["--worst", 2, "--best", 1], ["--draws", 1, "--trials", 3], ["--solver", "cg"]):
        report = json.loads(calcheck("cce", preds, "--format", "json", *arguments).out)
        validate(report)
    assert report["calcheck"] == __version__
    assert report["input"]["columns"]["x"] == "embedding"
    with pytest.raises(jsonschema.ValidationError):
        validate(report | {"results": [report["results"][0] | {"value": "much"}]})


def test_a_metric_can_be_rebuilt_from_the_report(calcheck, preds):
    report = json.loads(calcheck("cce", preds, "--lambda", "0.5", "--gamma-x", "1/d", "--format", "json").out)
    (result,) = report["results"]
    metric = METRICS["cce"].from_options(result["options"])
    assert (metric.lambda_, metric.gamma_x) == (0.5, "1/d")
    assert result["low"] is None
    assert any(warning.startswith("no interval:") for warning in texts(result["warnings"]))


def test_the_same_command_gives_the_same_bytes(calcheck, process, preds):
    command = ("cce", preds, "--format", "json", "--draws", 2, "--solver", "cg", "--replicates", 39)
    found = calcheck(*command).out
    assert process(*command).stdout == found
    assert json.loads(found)["settings"]["seed"] == 0
    other = calcheck(*command, "--seed", 1).out
    assert json.loads(other)["results"][0]["value"] != json.loads(found)["results"][0]["value"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_pointwise_output_has_id_value_and_narrow_columns(calcheck, preds, tmp_path, ending):
    out = tmp_path / f"rows.{ending}"
    report = json.loads(calcheck("cce", preds, "--pointwise", out, "--format", "json").out)
    if ending == "parquet":
        rows = pq.read_table(out)
    else:
        from pyarrow import csv

        rows = csv.read_csv(out)
    assert rows.column_names == ["id", "cce", "effective_neighbors", *NULL_COLUMNS, "y", "mean", "std", "topic"]
    assert rows["id"].to_pylist() == list(range(100, 140))
    assert rows["topic"].to_pylist()[:2] == ["news", "prose"]
    assert_allclose(np.mean(rows["cce"].to_numpy()), report["results"][0]["value"])
    source = read(preds)
    found = {}
    evaluate(source, [METRICS["cce"]()], sink=lambda *handed: found.update(handed[-1].columns), run=Run(replicates=0))
    assert_allclose(rows["cce"].to_numpy(), found["cce"], rtol=1e-12)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_inputs_of_an_array_replace_named_inputs(calcheck, tmp_path):
    """A grid of one input: by --grid, as an array of numbers, and as an array of rows; two inputs as an array."""
    parts = columns(30) | {"x": np.linspace(3.0, -1.0, 30), "z": np.linspace(0.0, 1.0, 30) ** 2}
    path = write(tmp_path / "preds.parquet", parts)
    points = np.linspace(-1, 3, 7)
    arrays = {"numbers": points, "rows": points[:, None], "pairs": np.column_stack([points, points])}
    for name, values in arrays.items():
        np.save(tmp_path / f"{name}.npy", values)

    def value(*arguments):
        report = json.loads(calcheck("cce", path, *arguments, "--no-null", "--format", "json").out)
        return report["results"][0]["details"]["rows"], report["results"][0]["value"]

    grid = value("--inputs", "x", "--grid", 7)
    assert grid[0] == 7
    assert grid == value("--inputs", "x", "--at", tmp_path / "numbers.npy")
    assert grid == value("--inputs", "x", "--at", tmp_path / "rows.npy")
    assert value("--inputs", "x,z", "--at", tmp_path / "pairs.npy")[0] == 7
    shown = tmp_path / "rows.csv"
    for inputs, name in (("x", "numbers"), ("x", "rows"), ("x,z", "pairs")):
        value("--inputs", inputs, "--at", tmp_path / f"{name}.npy", "--pointwise", shown)
        table = pd.read_csv(shown)
        assert list(table) == ["cce", "effective_neighbors", *inputs.split(",")]
        assert_allclose(table["x"], points)
    np.save(tmp_path / "gap.npy", np.where(points == points[2], np.nan, points))
    error = calcheck("cce", path, "--inputs", "x", "--at", tmp_path / "gap.npy").refused()
    assert "gap.npy: x must be finite numbers, but 1 of 7 rows is not (row 2" in error
    pairs = calcheck("cce", path, "--inputs", "x", "--at", tmp_path / "pairs.npy").refused()
    assert "the evaluation inputs have 2 columns, expected 1" in pairs
    numbers = calcheck("cce", path, "--inputs", "x,z", "--at", tmp_path / "numbers.npy").refused()
    assert "the evaluation inputs have 1 column, expected 2" in numbers
    refused = "--grid needs one-dimensional inputs, and these have 2 dimensions. Pass --at FILE instead"
    assert refused in calcheck("cce", path, "--inputs", "x,z", "--grid", 7).refused()


@pytest.mark.slow
def test_inputs_of_another_file_need_no_targets(calcheck, preds, tmp_path):
    at = write(tmp_path / "at.parquet", {name: columns(9, seed=5)[name] for name in ("id", "embedding")})
    out = tmp_path / "rows.parquet"
    report = json.loads(calcheck("cce", preds, "--at", at, "--pointwise", out, "--format", "json").out)
    assert report["results"][0]["details"]["rows"] == 9
    assert [file["rows"] for file in report["input"]["files"]] == [40, 9]
    rows = pq.read_table(out)
    assert rows.column_names == ["id", "cce", "effective_neighbors", *NULL_COLUMNS]
    assert rows["id"].to_pylist() == list(range(100, 109))
    assert [file["role"] for file in report["input"]["files"]] == ["predictions", "evaluation_points"]
    np.save(tmp_path / "at.npy", columns(9, seed=5)["embedding"])
    again = json.loads(calcheck("cce", preds, "--at", tmp_path / "at.npy", "--format", "json").out)
    assert_allclose(again["results"][0]["value"], report["results"][0]["value"])
    itself = json.loads(calcheck("cce", preds, "--at", preds, "--format", "json").out)
    direct = json.loads(calcheck("cce", preds, "--format", "json").out)
    assert_allclose(itself["results"][0]["value"], direct["results"][0]["value"])


def test_worst_rows_are_shown_with_their_columns(calcheck, preds):
    found = calcheck("cce", preds, "--worst", 2)
    listed = found.out.split("worst\n")[1].splitlines()
    assert listed[0].split() == ["row", "id", "cce", "p_value", "y", "mean", "std", "topic"]
    assert len(listed[2].split()) == 8


def test_a_report_is_written_only_on_success(calcheck, preds, tmp_path):
    out = tmp_path / "report.json"
    out.write_text("yesterday's")
    mode = out.stat().st_mode
    refused = calcheck("cce", preds, "--format", "json", "-o", out, "--gamma-x", "median").refused()
    assert "does not fit the polynomial kernel" in refused
    assert out.read_text() == "yesterday's"
    assert calcheck("cce", preds, "--format", "json", "-o", out).out == ""
    assert json.loads(out.read_text())["results"][0]["metric"] == "cce"
    assert out.stat().st_mode == mode


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
        (["preds", "--format", "xml"], f"--format takes one of {', '.join(format_names('report'))}, got 'xml'"),
        (["preds", "--memory", "much"], "memory must be an amount such as 800MB or 1.5GiB, got 'much'"),
        (["preds", "--device", "abacus"], "torch cannot use device 'abacus'"),
        (["preds", "--seed", "-1"], "seed must be >= 0, got -1"),
        (["preds", "--worst", "-1"], "worst must be >= 0, got -1"),
        (["preds", "--subsample", "0"], "--subsample must be between 1 and the number of rows, 40"),
        (["preds", "--pointwise", "rows.xlsx"], "rows.xlsx must end in .parquet or .csv"),
        (["preds", "--pointwise", "no/rows.csv"], "no/rows.csv cannot be written: the folder does not exist"),
        (["preds", "-o", "."], ". cannot be written: it is a folder"),
        (["preds", "--embedding", "absent.npy"], "there is no file absent.npy"),
        (["preds", "--embedding", "h*"], "no column matches 'h*' for the embedding"),
        (["preds", "--at", "absent.npy"], "there is no file absent.npy"),
        (["-"], "--input-format parquet|csv"),
        (["absent.csv"], "there is no file absent.csv"),
    ],
)
def test_errors_are_one_line_with_exit_code_2(calcheck, preds, arguments, message):
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


def test_inspect_prints_roles_and_equivalent_options(calcheck, preds):
    found = calcheck("inspect", preds)
    assert found.code == 0
    assert "gaussian" in found.out
    assert "embedding (embedding, 3 numbers a row, float32)" in found.out
    options = found.out.splitlines()[-1].split()
    assert calcheck("cce", preds, *options).out == calcheck("cce", preds).out


def test_inspect_lists_missing_options_and_existing_columns(calcheck, tmp_path):
    parts = {"y": np.arange(5), "total_count": np.ones(5), "probs": np.full(5, 0.5)}
    found = calcheck("inspect", write(tmp_path / "counts.csv", parts))
    assert found.code == 0
    assert re.search(r"Pass --dist, as in calcheck \S*counts.csv --dist nbinom:torch", " ".join(found.out.split()))
    assert "total_count  int64" in found.out
    np.save(tmp_path / "emb.npy", np.ones((4, 3)))
    assert "3 numbers a row" in calcheck("inspect", tmp_path / "emb.npy").out


def test_metrics_are_listed(calcheck):
    found = calcheck("metrics")
    for name in METRICS:
        assert f"\n{name} " in found.out


NAMED = (*METRICS, "evaluate", "check", "compare", "diff", "inspect", "metrics", "schema")


@pytest.mark.parametrize("command", [slow(name) if place % 3 else name for place, name in enumerate(NAMED)])
def test_every_command_has_help(calcheck, command):
    found = calcheck(command, "--help")
    assert found.code == 0
    for each in options_of(METRICS[command]) if command in METRICS else ():
        assert f" {each.flag} " in found.out


def test_the_help_shows_brackets_and_no_empty_default(calcheck, monkeypatch):
    for width in ("60", "80", "200"):
        monkeypatch.setenv("TERMINAL_WIDTH", width)
        assert calcheck("check", "--help").out.count("[gates]") == 2
    assert "Default: ." not in calcheck("convert", "--help").out


def test_help_texts_with_brackets_are_no_markup(capsys):
    """In the docstring, the example, an argument and an option, although rich knows `[bold]` and `[/red]`."""
    word = "[bold]a[/red]"
    options = make_dataclass("Options", [("one", str, option(f"Option {word}."))])

    def function(**_):
        pass

    function.__doc__ = f"Docstring {word}."
    declared = [argument("file", "FILE", f"Argument {word}."), *parameters(options, "Options")]
    program = make_program()
    program.commands["shown"] = make_command("shown", function, declared, example=f"shown {word}")
    program(["shown", "--help"], prog_name="calcheck", standalone_mode=False)
    shown = capsys.readouterr().out
    for text in ("Docstring", "Example: shown", "Argument", "Option"):
        assert f"{text} {word}" in shown


def test_the_version_is_printed(process):
    assert process("--version").stdout.splitlines()[0] == f"calcheck {__version__}"


@pytest.mark.slow
def test_help_imports_no_heavy_module():
    heavy = (
        "numpy",
        "scipy",
        "scoringrules",
        "threadpoolctl",
        "array_api_compat",
        "pandas",
        "pyarrow",
        "torch",
        "vl_convert",
        "dask",
    )
    commands = (
        ["--help"],
        ["--version"],
        ["cce", "--help"],
        ["check", "--help"],
        ["compare", "--help"],
        ["diff", "--help"],
        ["reject", "--help"],
        ["sweep", "--help"],
        ["mcmd", "--help"],
    )
    code = f"""
import sys
from calcheck.cli.app import run
for command in {commands}:
    sys.argv = ["calcheck", *command]
    run()
    print("loaded", [module for module in {heavy} if module in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = [line for line in ended.stdout.splitlines() if line.startswith("loaded ")]
    assert loaded == ["loaded []"] * len(commands)


def loaded_after(*command):
    """Return the modules that a run of the program has loaded."""
    code = (
        f"import sys; sys.argv = ['calcheck', *{[*map(str, command)]}]; from calcheck.cli.app import run; run();"
        "print(); print(*sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ended.stdout.splitlines()[-1].split())


def test_the_list_of_commands_loads_none_of_them():
    loaded = loaded_after("--help")
    assert not {"pydantic", "calcheck.cli.evaluate", "calcheck.cli.metric_commands", "calcheck.metrics.base"} & loaded
    assert not {f"calcheck.metrics.{module}" for module in METRICS.modules.values()} & loaded


@pytest.mark.slow
def test_a_small_run_loads_what_it_needs_only(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text("y,mean,std,hour\n1.5,2.5,1.5,0.5\n2.5,2.5,1.5,3.5\n")  # increasing numbers might be times
    loaded = loaded_after("zms", path, "--no-bootstrap", "--no-null")
    assert "calcheck.metrics.spread" in loaded
    heavy = {"pydantic", "pandas", "scipy", "torch", "pyarrow.compute", "calcheck.streaming.metric_accumulators"}
    assert heavy & loaded == set()
    assert {module for module in loaded if module.startswith("calcheck.metrics.")} == {
        "calcheck.metrics._lazy",
        "calcheck.metrics.base",
        "calcheck.metrics.spread",
    }


@pytest.mark.slow
def test_an_evaluation_does_not_load_maps_of_recalibration(preds):
    loaded = loaded_after("evaluate", preds, "--metrics", "zms", "--no-bootstrap", "--no-null")
    assert "calcheck.storage.archives" in loaded
    assert "calcheck.recalibration.methods" not in loaded


@pytest.mark.new_program
def test_a_command_without_a_summary_is_loaded_for_it(monkeypatch, tmp_path, calcheck):
    """A new command is in the help before the summaries are generated again."""
    (tmp_path / "summaries.txt").write_text("evaluate: Compute much.\n")
    monkeypatch.setattr("calcheck.cli.app.SUMMARIES", tmp_path / "summaries.txt")
    found = calcheck("--help").out
    assert "Compute much." in found
    assert "Check a file against rules" in found


@pytest.mark.slow
def test_standard_input_is_read(process, preds):
    with Path(preds).open("rb") as stream:
        piped = process("mae", "-", "--input-format", "parquet", *QUICK, stdin=stream)
    assert "standard input · 40 rows" in piped.stdout


def test_a_closed_pipe_is_not_an_error(preds):
    """The shell sees 141, as for every program that is ended by a closed pipe, or 0 if it ends before `true`."""
    command = (
        f"{sys.executable} -m calcheck mae {preds} {' '.join(QUICK)} --format json | true; echo ${{PIPESTATUS[0]}}"
    )
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    assert ended.stdout.strip() in ("0", str(128 + signal.SIGPIPE))


def test_an_interrupt_exits_with_130():
    """The handler is set explicitly, because tests in the background of a shell ignore interrupts."""
    code = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "sys.argv = ['calcheck', 'metrics']; from calcheck import cli; from calcheck.cli import guide;"
        "import calcheck.render.terminal as c; c.render_text = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT);"
        "cli.main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 128 + signal.SIGINT
    assert ended.stderr == ""


def test_terminals_get_color_unless_no_color_is_set(monkeypatch):
    from rich.text import Text

    from calcheck.render.terminal import render_text

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[31m" in render_text(Text("x", style="red"))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in render_text(Text("x", style="red"))


def test_outputs_never_overwrite_inputs_or_other_outputs(calcheck, preds, tmp_path):
    before = Path(preds).read_bytes()
    vectors = tmp_path / "emb.npy"
    np.save(vectors, columns(n=40)["embedding"])
    (tmp_path / "link.parquet").symlink_to(preds)
    out = tmp_path / "out.csv"
    for arguments in (
        ["-o", preds],
        ["--pointwise", preds],
        ["-o", tmp_path / "link.parquet"],
        ["--embedding", vectors, "-o", vectors],
        ["--at", vectors, "-o", vectors],
        ["-o", out, "--pointwise", out],
    ):
        assert "would overwrite" in calcheck("cce", preds, *arguments).refused()
    assert Path(preds).read_bytes() == before
    assert not out.exists()


@pytest.mark.slow
def test_links_and_pipes_can_be_output_files(calcheck, preds, tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    assert calcheck("cce", preds, "-o", tmp_path / "link.txt").code == 0
    assert (tmp_path / "link.txt").is_symlink()
    assert "cce" in (tmp_path / "real.txt").read_text()
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True) as reader:
        assert calcheck("cce", preds, "-o", tmp_path / "pipe").code == 0
        assert "cce" in reader.communicate(timeout=30)[0]
    assert (tmp_path / "pipe").is_fifo()
    assert "cce" in calcheck("cce", preds, "-o", "-").out


def test_pointwise_output_keeps_every_column(calcheck, tmp_path):
    """Columns with the name of the key, of the metric, or of a renamed column are all written."""
    parts = columns() | {"key": np.arange(12) * 2, "cce": np.ones(12), "cce_given": np.zeros(12)}
    path = write(tmp_path / "preds.parquet", parts)
    out = tmp_path / "rows.parquet"
    assert calcheck("cce", path, "--id", "key", "--pointwise", out).code == 0
    rows = pq.read_table(out)
    assert rows.column_names[:2] == ["key", "cce"]
    assert rows["id"].to_pylist() == parts["id"].tolist()
    assert rows["cce_given_given"].to_pylist() == [1.0] * 12
    assert rows["cce_given"].to_pylist() == [0.0] * 12


def test_cells_keep_their_values(calcheck, tmp_path):
    """Times, integers with missing values and categories are shown and written unchanged."""
    import pyarrow as pa

    made = pa.table(
        {
            "y": np.arange(4.0),
            "mean": np.zeros(4),
            "std": np.ones(4),
            "emb_0": np.arange(4.0) ** 2,
            "when": pa.array([0, 1, None, 3], pa.timestamp("ns")),
            "count": pa.array([1, None, 3, 4]),
            "kind": pa.array(["a", "b", None, "a"]).dictionary_encode(),
            "nested": pa.array([{"a": 1}] * 4),
        }
    )
    out = tmp_path / "rows.csv"
    found = calcheck("cce", write(tmp_path / "p.parquet", made), "--worst", 4, "--pointwise", out, "--format", "json")
    rows = sorted(json.loads(found.out)["results"][0]["details"]["worst"], key=lambda row: row["row"])
    assert [row["count"] for row in rows] == [1, None, 3, 4]
    assert rows[0]["when"].startswith("1970-01-01")
    assert [row["kind"] for row in rows] == ["a", "b", None, "a"]
    assert "nested" not in out.read_text()


def test_row_numbers_are_those_of_the_file(calcheck, tmp_path):
    y, std = np.where(np.arange(12) == 0, np.nan, 1.0), np.where(np.arange(12) == 5, 0.0, 1.0)
    path = write(tmp_path / "preds.parquet", columns() | {"y": y, "std": std})
    assert "(row 5, counted from 0)" in calcheck("cce", path, "--nan-policy", "omit").refused()


def test_dropped_rows_of_the_other_file_are_counted(calcheck, preds, tmp_path):
    parts = columns(9)
    parts["embedding"][[2, 4]] = np.nan
    at = write(tmp_path / "at.parquet", {name: parts[name] for name in ("id", "embedding")})
    report = json.loads(calcheck("cce", preds, "--at", at, "--nan-policy", "omit", "--format", "json").out)
    assert report["input"]["dropped"] == 2
    assert report["results"][0]["details"]["rows"] == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", ""], "--target needs a value, got none"),
        (["--inputs", "mean", "--at", "PREDS:embedding"], "names a column, but --inputs already selects"),
        (["--at", "-"], "--at reads a file, not standard input"),
        (["--samples", "mean", "--min-std", "1"], "--min-std raises standard deviations"),
        (["--id", "embedding"], "a key is one number or text per row"),
        (["--draws", "1000000000000"], "--draws must be at least 1 and at most 100,000"),
        (["--degree", "100000"], "Pass a larger --lambda"),
        (["-o", "x" * 300], "cannot be written"),
        (["--embedding", "x" * 5000 + ".npy"], "cannot be read"),
    ],
)
def test_more_errors_are_one_line(calcheck, preds, arguments, message):
    assert message in calcheck("cce", preds, *(part.replace("PREDS", preds) for part in arguments)).refused()


def test_damaged_and_unsupported_files_are_refused_in_one_line(calcheck, tmp_path):
    import gzip
    import io
    import zipfile

    whole = Path(write(tmp_path / "whole.parquet", columns())).read_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("model/data.pkl", b"\x80\x02.")
    objects = io.BytesIO()
    np.save(objects, np.array([{}], dtype=object), allow_pickle=True)
    for name, content, message in (
        ("pages.parquet", whole[:10] + b"\xff" * 50 + whole[60:], "not a readable parquet file"),
        ("cut.npz", archive.getvalue()[:-30], "not a readable npz file"),
        ("torch", archive.getvalue(), "holds a pickle, unsafe to load"),
        ("book.xlsx", archive.getvalue(), "is not a readable excel file"),
        ("objects.npy", objects.getvalue(), "not a readable npy file"),
        ("wide.csv", "y,mean,std\n1,2,3\n".encode("utf-16"), "text in UTF-16"),
        (
            "preds.csv",
            gzip.compress(b"y,mean,std\n1,2,3\n")[:-4],
            "cannot be decompressed (gzip: Compressed file ended",
        ),
        ("wrong.csv", whole, "is not a csv file but parquet"),
        ("nothing.csv", b"y,mean,std,emb_0", "there are no rows"),
    ):
        (tmp_path / name).write_bytes(content)
        assert message in calcheck("cce", tmp_path / name).refused()


def test_files_can_be_read_from_a_pipe(preds):
    command = f"{sys.executable} -m calcheck mae <(cat {preds}) {' '.join(QUICK)} --format json"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["input"]["n"] == 40


@pytest.mark.slow
def test_a_closed_input_and_a_full_output_are_reported(preds):
    run = f"{sys.executable} -m calcheck mae {preds} {' '.join(QUICK)}"
    full = subprocess.run(["bash", "-c", f"{run} > /dev/full"], capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert full.stderr == "calcheck: cannot write to standard output: No space left on device\n"
    closed = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m calcheck cce - --input-format csv <&-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert closed.returncode == 2
    assert closed.stderr == "calcheck: standard input is closed\n"


def test_running_out_of_memory_is_an_error_and_not_a_violation(calcheck, preds, monkeypatch):
    def exhausted(*_args, **_kwargs):
        raise MemoryError

    monkeypatch.setattr("calcheck.outputs.evaluate", exhausted)
    line = calcheck("check", preds, "--fail-on", "mae < 0").refused()
    assert "out of memory" in line


@pytest.mark.slow
def test_a_terminal_without_unicode_gets_a_table(process, preds):
    ended = process("mae", preds, *QUICK, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert ended.returncode == 0
    assert "?" in ended.stdout
    assert ended.stderr == ""


def test_help_is_printed_without_arguments(calcheck):
    found = calcheck()
    assert "Usage" in found.out
    assert found.err == ""


def test_an_unknown_command_is_refused_with_a_similar_one_or_the_available_ones(calcheck):
    assert calcheck("evaluates").refused() == (
        "calcheck: No such command 'evaluates'. Did you mean 'evaluate', 'recalibrate'?\n"
    )
    assert (
        "Available commands: evaluate, slices, recalibrate, compare, check, monitor, report, inspect, guide,"
        in calcheck("banana").refused()
    )


def test_options_reach_the_computation(calcheck, preds):
    def report_with(*arguments):
        return json.loads(calcheck("cce", preds, "--format", "json", *arguments).out)

    report = report_with(
        "--precision", "float32", "--memory", "1MB", "--device", "cpu", "--solver", "cg", "--subsample", 30
    )
    settings, solver = report["settings"], report["results"][0]["details"]["solver"]
    assert (settings["precision"], settings["memory"], settings["device"]) == ("float32", 1_000_000, "cpu")
    assert (settings["subsample"], report["input"]["n"]) == (30, 30)
    assert (solver["name"], solver["precision"], solver["device"]) == ("cg", "float32", "cpu")
    assert {"numpy", "scipy", "pyarrow", "scoringrules", "torch"} == set(settings["versions"])
    details = report_with("--kernel-x", "laplace", "--normalize", "standardize", "--gamma-y", 0.5, "--best", 2)[
        "results"
    ][0]["details"]
    assert (details["inputs"]["kernel"], details["inputs"]["normalize"]) == ("laplace", "standardize")
    assert details["targets"]["gamma"] == 0.5
    assert details["best"][0]["cce"] == details["quantiles"]["min"]


def test_the_report_has_the_options_that_read_the_file(calcheck, tmp_path):
    parts = {"y": np.arange(6), "total_count": np.full(6, 3.0), "probs": np.full(6, 0.5), "x": np.arange(6.0)}
    path = write(tmp_path / "counts.csv", parts)
    read_as = json.loads(calcheck("cce", path, "--dist", "nbinom", "--inputs", "x", "--format", "json").out)["input"]
    assert "nbinom:torch" in read_as["options"]
    assert read_as["options"][-2:] == ["--inputs", "x"]


def test_errors_in_evaluation_points_name_their_file(calcheck, preds, tmp_path):
    zeros = write(tmp_path / "zeros.parquet", {"embedding": np.zeros((4, 3), np.float32)})
    assert calcheck("cce", preds, "--at", zeros).refused().startswith(f"calcheck: {zeros}: x (column embedding)")
    other = write(tmp_path / "other.parquet", {"embedding": np.ones((4, 2), np.float32)})
    assert calcheck("cce", preds, "--at", other).refused().startswith(f"calcheck: {other}: the evaluation inputs have")
    constant = write(tmp_path / "constant.parquet", columns() | {"y": np.ones(12)})
    assert calcheck("cce", constant).refused().startswith(f"calcheck: {constant}: the targets are constant")


def test_a_report_is_not_written_if_its_pointwise_rows_cannot_be(calcheck, preds, tmp_path):
    out = tmp_path / "report.txt"
    assert "cannot be written" in calcheck("cce", preds, "-o", out, "--pointwise", "/proc/rows.csv").refused()
    assert not out.exists()


def test_several_targets_are_reported_by_their_family(calcheck, tmp_path):
    parts = columns(20)
    two = {f"{name}{k}": parts[name] * k for k in (1, 2) for name in ("y", "mean", "std")}
    path = write(tmp_path / "two.parquet", two | {"embedding": parts["embedding"]})
    found = calcheck("cce", path, "--target", "y1,y2", "--mean", "mean1,mean2", "--std", "std1,std2")
    assert "predictions: gaussian" in found.out


def test_format_names_match_the_renderers_and_readers():
    from typing import get_args

    from calcheck.io.tables import READERS
    from calcheck.studies.options import INPUT_FORMATS

    assert get_args(INPUT_FORMATS) == tuple(READERS)


@pytest.mark.parametrize(
    "arguments", [["--solver", "cholesky"], ["--solver", "cg"], ["--solver", "cg", "--memory", "1kB"]]
)
def test_long_computations_report_progress(preds, arguments):
    """All stages: the kernel matrix, its factorization or the iterations, and the evaluation at other inputs."""
    from calcheck.execution.run import Run
    from calcheck.metrics.cce import Cce

    stages = []
    run = Run(
        progress=lambda stage, share: stages.append((stage, share)), memory=1000 if "1kB" in arguments else 1 << 30
    )
    source = read(preds)
    evaluate(source, [Cce(solver=arguments[1])], at=source, run=run)
    solving = {"factorization"} | ({"solver"} if arguments[1] == "cg" else set())  # replicates use a factorization
    expected = {"kernel", "evaluation", "replicates"} | solving
    assert {f"cce: {stage}" for stage in expected} == {stage for stage, _ in stages}
    assert all(0 <= share <= 1 for _, share in stages)


def test_changes_made_while_reading_are_in_the_report(calcheck, tmp_path):
    path = write(tmp_path / "preds.parquet", columns() | {"std": np.arange(12) / 10})
    report = json.loads(calcheck("cce", path, "--min-std", "0.25", "--format", "json").out)
    assert "3 standard deviations were raised to 0.25 (--min-std)" in texts(report["results"][0]["warnings"])
    assert "raised to 0.25" in calcheck("cce", path, "--min-std", "0.25").out


def test_evaluation_points_need_no_key(calcheck, tmp_path):
    path = write(tmp_path / "preds.parquet", columns() | {"key": np.arange(12)})
    at = write(tmp_path / "at.parquet", {"embedding": columns(5)["embedding"]})
    report = json.loads(calcheck("cce", path, "--id", "key", "--at", at, "--format", "json").out)
    assert report["results"][0]["details"]["rows"] == 5


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [8.0, 300.0])
def test_distributions_beyond_the_float_range_have_a_cce(calcheck, tmp_path, sigma):
    """Half of each distribution is near 0 and half far beyond all targets: the embeddings differ by about a half."""
    rng = np.random.default_rng(0)
    parts = {"y": np.exp(rng.normal(size=30)), "s": np.full(30, sigma), "scale": np.ones(30), "x": rng.normal(size=30)}
    path = write(tmp_path / "wide.parquet", parts)
    found = calcheck("cce", path, "--dist", "lognormal:scipy", "--inputs", "x", "--no-null", "--format", "json")
    assert found.code == 0
    assert 0.3 < json.loads(found.out)["results"][0]["value"] < 0.7


def test_a_deleted_current_folder_is_named(preds, tmp_path):
    run = f"{sys.executable} -m calcheck convert {preds} --output out.csv"
    command = f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir {tmp_path}/gone && {run}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (
        2,
        "calcheck: the current folder was deleted. Change to another one\n",
    )
