"""`calcheck evaluate`, `calcheck prune`, and reports in every format."""

import csv
import io
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from calcheck.cli.app import COMMANDS
from calcheck.errors import DataError
from calcheck.metrics import DEFAULT_METRICS, METRICS
from calcheck.render.data import render_csv
from calcheck.render.document import Paragraph, report_document
from calcheck.render.markdown import escape
from calcheck.render.pictures import report_picture
from calcheck.reports import Input, InputFile, Overall, Report, Result, Skipped
from calcheck.storage.report_json import read_report
from tests.helpers.files import columns, table, write
from tests.helpers.schemas import validate
from tests.helpers.shorthand import texts

FEW = ("--resamples", 100, "--replicates", 39)
NEED_INPUTS = [name for name, metric in DEFAULT_METRICS.items() if "x" in metric.info.needs]
NEED_NO_INPUTS = [name for name in DEFAULT_METRICS if name not in NEED_INPUTS]


@pytest.fixture
def calibrated(tmp_path):
    """Return the path of calibrated predictions with a narrow column, and no inputs."""
    rng = np.random.default_rng(0)
    std = np.exp(0.3 * rng.normal(size=400))
    mean = rng.normal(size=400)
    parts = {"id": np.arange(400), "y": mean + std * rng.normal(size=400), "mean": mean, "std": std}
    return write(tmp_path / "calibrated.parquet", parts | {"age": rng.integers(20, 80, 400)})


@pytest.mark.slow
def test_evaluate_gives_every_metric_a_line_and_every_skipped_one_its_reason(calcheck, calibrated, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    found = calcheck("evaluate", calibrated, *FEW, "--table")
    assert found.code == 0
    assert found.err == ""
    lines = found.out.splitlines()
    assert max(len(line) for line in lines[1:] if "calibrated.parquet" not in line) <= 80
    for name in NEED_NO_INPUTS:
        assert sum(line.startswith(f"{name} ") for line in lines) == 1
    assert f"note skipped {', '.join(NEED_INPUTS)}: needs inputs to condition on" in " ".join(found.out.split())


def test_evaluate_matches_the_schema_and_single_commands(calcheck, calibrated):
    report = json.loads(calcheck("evaluate", calibrated, *FEW, "--format", "json").out)
    validate(report)
    assert [result["metric"] for result in report["results"]] == NEED_NO_INPUTS
    assert [skipped["metric"] for skipped in report["skipped"]] == NEED_INPUTS
    for result in report["results"]:
        alone = json.loads(calcheck(result["metric"], calibrated, *FEW, "--format", "json").out)
        (single,) = alone["results"]
        for name in ("value", "low", "high", "zeta"):
            if result[name] is None:
                assert single[name] is None
            else:
                assert_allclose(single[name], result[name], rtol=1e-9)
        assert single["verdict"] == result["verdict"]


@pytest.mark.slow
def test_missing_numbers_have_a_reason(calcheck, calibrated):
    """The warnings explain a missing interval or verdict."""
    for arguments in (FEW, ("--no-bootstrap", *FEW[2:])):
        report = json.loads(calcheck("evaluate", calibrated, *arguments, "--format", "json").out)
        for result in report["results"]:
            warnings = " ".join(texts(result["warnings"]))
            assert result["low"] is not None or "no interval" in warnings, result
            assert result["verdict"] != "none" or "no verdict" in warnings, result


def test_metrics_can_be_chosen(calcheck, calibrated):
    report = json.loads(calcheck("evaluate", calibrated, "--metrics", "rce, zms", *FEW, "--format", "json").out)
    assert [result["metric"] for result in report["results"]] == ["rce", "zms"]
    assert calcheck("evaluate", calibrated, "--metrics", "zms,", *FEW).code == 0
    assert "unknown metric 'zmss'" in calcheck("evaluate", calibrated, "--metrics", "zmss").refused()


def test_a_metric_that_is_named_and_does_not_apply_is_refused(calcheck, calibrated, tmp_path):
    out = tmp_path / "report.json"
    found = calcheck("evaluate", calibrated, "--metrics", "zms,cce", *FEW, "--format", "json", "-o", out)
    assert "cce needs inputs to condition on" in found.refused()
    assert not out.exists()
    assert calcheck("evaluate", calibrated, "--metrics", "zms", *FEW).code == 0


@pytest.mark.slow
def test_repeated_runs_of_evaluate_are_identical(calcheck, process, calibrated):
    command = ("evaluate", calibrated, "--metrics", "zms,ence,pit,crps,coverage", *FEW, "--format", "json")
    first = calcheck(*command).out
    assert process(*command).stdout == first
    other = json.loads(calcheck(*command, "--seed", 1).out)["results"][0]
    assert other["low"] != json.loads(first)["results"][0]["low"]
    assert other["value"] == json.loads(first)["results"][0]["value"]


def test_options_of_the_bootstrap_are_used(calcheck, calibrated):
    def interval(*arguments):
        report = json.loads(calcheck("zms", calibrated, "--format", "json", *arguments).out)
        return report["settings"], report["results"][0]

    settings, wide = interval("--confidence", 0.99, "--resamples", 1000)
    assert (settings["confidence"], settings["resamples"]) == (0.99, 1000)
    _, narrow = interval("--confidence", 0.8, "--resamples", 1000)
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
    assert narrow["details"]["bootstrap"]["resamples"] == 1000
    assert "contradict" in calcheck("zms", calibrated, "--no-bootstrap", "--resamples", 200).refused()
    assert "--resamples must be at least 100" in calcheck("zms", calibrated, "--resamples", 3).refused()
    assert "--confidence must lie" in calcheck("zms", calibrated, "--confidence", 1).refused()


@pytest.mark.slow
def test_pointwise_output_has_columns_of_all_metrics(calcheck, calibrated, tmp_path):
    out = tmp_path / "rows.parquet"
    calcheck("evaluate", calibrated, *FEW, "--pointwise", out)
    rows = pq.read_table(out)
    given = pq.read_table(calibrated)
    assert rows.num_rows == 400
    assert rows["id"].to_pylist() == list(range(400))
    assert rows["age"].equals(given["age"])
    z = (given["y"].to_numpy() - given["mean"].to_numpy()) / given["std"].to_numpy()
    assert_allclose(rows["z2"].to_numpy(), z**2, rtol=1e-12)
    for name in ("nll", "crps", "error", "squared_error", "covered", "width", "pit_low", "bin", "interval_score"):
        assert name in rows.column_names
    assert rows["std"].equals(given["std"])
    assert "std_given" not in rows.column_names  # equal to the column of the metrics


def test_bins_follow_a_column(calcheck, calibrated, tmp_path):
    out = tmp_path / "rows.parquet"
    calcheck("ence", calibrated, "--by", "age", "--bins", 4, "--no-bootstrap", "--pointwise", out)
    rows = pq.read_table(out)
    ages, bins = rows["age"].to_numpy(), rows["bin"].to_numpy()
    assert [ages[bins == number].max() <= ages[bins == number + 1].min() for number in range(3)] == [True] * 3
    assert "there is no column 'agee'" in calcheck("ence", calibrated, "--by", "agee").refused()
    assert "--bins must be at least 1" in calcheck("ence", calibrated, "--bins", 0).refused()
    assert "500 bins need at least 500 rows" in calcheck("ence", calibrated, "--bins", 500).refused()


def test_bins_are_made_of_numbers_dates_or_categories(calcheck, tmp_path):
    days = np.datetime64("2026-01-01") + np.arange(40)
    gaps = pa.array([None if row % 10 == 0 else row / 2 for row in range(40)])
    parts = columns(n=40) | {"topic": np.array(["news", "prose"] * 20), "day": days, "sure": np.arange(40) % 2 == 0}
    path = write(tmp_path / "mixed.parquet", table(parts).append_column("gaps", gaps))
    topics = json.loads(calcheck("lzms", path, "--by", "topic", *FEW, "--format", "json").out)["results"][0]
    assert [each["from"] for each in topics["details"]["bins"]] == ["news", "prose"]
    assert (topics["verdict"], topics["reference_kind"]) == ("none", "exact")  # of two bins
    assert "column 'topic' holds categories" in calcheck("ence", path, "--by", "topic", "--bins", 4).refused()
    assert "is not numeric" in calcheck("reject", path, "--criteria", "topic").refused()
    dated = json.loads(calcheck("ence", path, "--by", "day", "--bins", 4, *FEW, "--format", "json").out)
    assert dated["results"][0]["details"]["bins"][1]["from"] == "2026-01-11"
    assert calcheck("ence", path, "--by", "sure", *FEW).code == 0
    assert (
        "gaps must be finite numbers, but 4 of 40 rows are not (rows 0, 10, 20, …"
        in calcheck("ence", path, "--by", "gaps", "--bins", 2).refused()
    )
    report = json.loads(
        calcheck("ence", path, "--by", "gaps", "--bins", 2, "--nan-policy", "omit", *FEW, "--format", "json").out
    )
    assert (report["input"]["n"], report["input"]["dropped"]) == (36, 4)


@pytest.mark.parametrize("metric", ["ence", "lzms", "stratified-coverage"])
def test_few_different_numbers_are_bins_as_texts_are(calcheck, tmp_path, metric):
    """1, 2 and 5 in ten bins of equal counts would share their rows."""
    grade = np.random.default_rng(0).choice([1, 2, 5], 400)
    path = write(tmp_path / "p.parquet", columns(n=400) | {"grade": grade, "as_text": grade.astype(str)})
    by_number, by_text = (
        json.loads(calcheck(metric, path, "--by", by, *FEW, "--format", "json").out)["results"][0]
        for by in ("grade", "as_text")
    )
    assert by_number["value"] == by_text["value"]
    assert [each["from"] for each in by_number["details"]["bins"]] == [1, 2, 5]
    assert not any("tied" in text for text in texts(by_number["warnings"]))
    calcheck(metric, path, "--by", "grade", *FEW, "--save-state", tmp_path / "p.state")
    (merged,) = json.loads(calcheck("merge", tmp_path / "p.state", "--format", "json").out)["results"]
    assert_allclose(merged["value"], by_number["value"], rtol=1e-12)
    two = json.loads(calcheck(metric, path, "--by", "grade", "--bins", 2, *FEW, "--format", "json").out)["results"][0]
    assert len(two["details"]["bins"]) == 2


def test_bins_that_repeat_each_other_are_reported(calcheck, calibrated, tmp_path):
    path = write(tmp_path / "constant.parquet", columns(n=400) | {"std": np.ones(400)})
    assert "repeat each other" in " ".join(calcheck("ence", path, *FEW).out.split())
    assert "repeat each other" not in calcheck("ence", calibrated, *FEW).out


def test_few_rows_have_no_verdict(calcheck, tmp_path):
    path = write(tmp_path / "few.parquet", columns(n=9))
    report = json.loads(calcheck("zms", path, "--no-null", "--format", "json").out)
    assert report["results"][0]["verdict"] == "none"
    assert any("1.4 effective rows" in warning for warning in texts(report["results"][0]["warnings"]))


def test_prune_shows_each_metric_without_the_largest_uncertainties(calcheck, calibrated):
    report = json.loads(calcheck("prune", calibrated, "--max-percent", 4, "--step", 2, *FEW, "--format", "json").out)
    validate(report)
    assert [(r["metric"], r["slice"]) for r in report["results"]] == [
        (name, {"removed": f"{share} %", "rows": 400 - 4 * share}) for name in ("zms", "rce") for share in (0, 2, 4)
    ]
    given = pq.read_table(calibrated)
    z2 = ((given["y"].to_numpy() - given["mean"].to_numpy()) / given["std"].to_numpy()) ** 2
    retained = np.argsort(given["std"].to_numpy())[:384]
    assert_allclose(report["results"][2]["value"], z2[retained].mean(), rtol=1e-12)
    shown = calcheck("prune", calibrated, "--max-percent", 4, "--step", 2, *FEW).out
    assert calcheck("reject", calibrated, "--refit", "--max-percent", 4, "--step", 2, *FEW).out == shown
    assert max(map(len, shown.splitlines()[1:])) <= 100
    assert "removed" in shown


def test_notes_of_steps_that_differ_in_numbers_only_are_shown_once(calcheck, tmp_path):
    rng = np.random.default_rng(4)
    std = np.exp(0.5 * rng.normal(size=300))
    path = write(tmp_path / "tails.csv", {"error": std * rng.standard_t(2.5, size=300), "std": std})
    arguments = ("prune", path, "--metrics", "zms", "--max-percent", "40", "--step", "10", "--resamples", "200")
    results = json.loads(calcheck(*arguments, "--format", "json").out)["results"]
    reasons = [[each["text"] for each in result["warnings"] if "effective rows" in each["text"]] for result in results]
    assert [len(each) for each in reasons] == [1] * 5  # every step keeps its reason
    rows = {text: float(re.search(r"has ([\d.]+) effective", text)[1]) for (text,) in reasons}
    assert len(set(rows.values())) > 2
    out = " ".join(calcheck(*arguments).out.split())
    assert out.count("effective rows") == 1
    fewest = min(rows, key=rows.get)
    removed = results[reasons.index([fewest])]["slice"]["removed"]
    assert f"note with {removed} removed, and similarly at 4 other steps: {fewest}" in out


def test_prune_reports_where_a_metric_leaves_its_interval(calcheck, tmp_path):
    """Two of 200 rows have a large std and even larger errors: RCE depends on them."""
    rng = np.random.default_rng(0)
    std = np.append(np.ones(198), [10.0, 11.0])
    error = np.append(rng.normal(size=198), [60.0, 60.0])
    path = write(tmp_path / "tail.parquet", {"error": error, "std": std})
    found = calcheck("prune", path, "--metrics", "rce", "--max-percent", 2).out
    assert "leaves its interval for all rows" in found


def test_rows_with_equal_uncertainties_are_removed_together(calcheck, tmp_path):
    """Of 40 rows 3 share the largest std: 4 % would remove one of them, 8 % removes all three."""
    path = write(tmp_path / "tied.parquet", columns(n=40) | {"std": np.repeat([1.0, 2.0], [37, 3])})
    report = json.loads(
        calcheck("prune", path, "--max-percent", 8, "--step", 4, "--no-bootstrap", "--format", "json").out
    )
    assert [result["slice"] for result in report["results"][:2]] == [
        {"removed": "0 %", "rows": 40},
        {"removed": "7.5 %", "rows": 37},
    ]
    assert any("rows with equal uncertainties" in warning for warning in texts(report["results"][0]["warnings"]))
    constant = write(tmp_path / "constant.parquet", columns(n=40) | {"std": np.ones(40)})
    assert "rows with equal uncertainties" in calcheck("prune", constant).refused()


def test_prune_includes_the_last_step_and_limits_the_number_of_steps(calcheck, calibrated):
    report = json.loads(
        calcheck(
            "prune", calibrated, "--max-percent", 2, "--step", 1.5, "--no-bootstrap", "--no-null", "--format", "json"
        ).out
    )
    assert [result["slice"]["rows"] for result in report["results"][:3]] == [400, 394, 392]
    first, *others = report["results"][:3]
    assert first["details"]["change"] == 0
    assert [each["details"]["change"] for each in others] == [each["value"] - first["value"] for each in others]
    assert "more than 1,000 steps" in calcheck("prune", calibrated, "--step", 0.001).refused()


def test_prune_skips_steps_where_a_metric_does_not_apply(calcheck, calibrated):
    """Ten bins need ten rows; other steps remain."""
    found = calcheck("prune", calibrated, "--metrics", "ence,zms", "--max-percent", 98, "--step", 49, *FEW)
    assert found.code == 0
    assert "when 98 % of the rows are removed: 10 bins need at least 10 rows" in " ".join(found.out.split())


@pytest.mark.parametrize("arguments", [("--max-percent", 0), ("--max-percent", 100), ("--step", 0), ("--step", 11)])
def test_prune_refuses_invalid_percentages(calcheck, calibrated, arguments):
    assert arguments[0] in calcheck("prune", calibrated, *arguments).refused()


@pytest.mark.slow
def test_json_lines_are_one_object_a_result(calcheck, calibrated):
    lines = [json.loads(line) for line in calcheck("evaluate", calibrated, *FEW, "--format", "jsonl").out.splitlines()]
    assert [line["metric"] for line in lines] == [*NEED_NO_INPUTS, *NEED_INPUTS]
    assert all(line["file"] == calibrated and line["n"] == 400 for line in lines)
    assert "skipped" in lines[-1]
    whole = json.loads(calcheck("evaluate", calibrated, *FEW, "--format", "json").out)
    assert lines[0]["low"] == whole["results"][0]["low"]


@pytest.mark.slow
def test_csv_has_one_line_per_result_in_full_precision(calcheck, calibrated):
    lines = list(csv.DictReader(io.StringIO(calcheck("evaluate", calibrated, *FEW, "--format", "csv").out)))
    whole = json.loads(calcheck("evaluate", calibrated, *FEW, "--format", "json").out)
    for line, result in zip(lines, whole["results"], strict=False):
        assert line["metric"] == result["metric"]
        assert all(each["text"] in line["notes"] for each in result["warnings"])
        assert float(line["value"]) == result["value"]
        assert line["low"] == ("" if result["low"] is None else repr(result["low"]))
        assert line["verdict"] == result["verdict"]
        for name in ("reference", "reference_low", "reference_high"):
            assert line[name] == ("" if result[name] is None else repr(result[name]))
    assert lines[-1]["verdict"] == "skipped"
    pruned = calcheck("prune", calibrated, "--max-percent", 1, *FEW, "--format", "csv").out
    assert [line["removed"] for line in csv.DictReader(io.StringIO(pruned))] == ["0 %", "1 %"] * 2


def test_markdown_is_a_table_with_notes(calcheck, calibrated):
    lines = calcheck("evaluate", calibrated, *FEW, "--format", "markdown").out.splitlines()
    assert "| metric | value | interval | expected | ζ | p | verdict |" in lines
    cells = [line for line in lines if line.startswith("| ")]
    assert all(line.count(" | ") == 6 for line in cells)
    assert len(cells) == 2 + len(NEED_NO_INPUTS)
    assert any(line.startswith(f"- skipped {', '.join(NEED_INPUTS)}: ") for line in lines)


def test_worst_and_best_rows_are_shown_or_refused(calcheck, calibrated):
    shown = calcheck("zms", calibrated, "--worst", 2, *FEW, "--format", "markdown")
    lines = shown.out.splitlines()
    assert lines[lines.index("worst:") + 2].startswith("| row | id | z2 | y |")
    assert sum(line.startswith("|") for line in lines[lines.index("worst:") + 4 :]) == 2
    assert any(
        line.startswith("bins:") for line in calcheck("lzms", calibrated, *FEW, "--format", "markdown").out.splitlines()
    )
    assert "--format csv cannot show" in calcheck("zms", calibrated, "--best", 1, "--format", "csv").refused()


def test_hostile_names_are_escaped(calcheck, tmp_path):
    name = "=cmd() | <script>alert(1)</script> @octocat *x* [a](b).parquet".replace("/", "")
    path = write(tmp_path / name, columns(n=40))
    folder = str(tmp_path)
    markdown = calcheck("zms", path, *FEW, "--format", "markdown").out.replace(folder, "")
    for part in ("<script>", "@octocat", " | <", "*x*", "[a]"):
        assert part not in markdown
    assert escape("a\nb\x1b[2J") == r"a\\nb\\x1b\[2J"


def test_csv_cells_are_never_spreadsheet_formulas():
    """Text that starts like a formula is quoted; numbers stay numbers."""
    file = InputFile(role="predictions", path="=cmd()", sha256="", rows=1)
    read = Input(files=(file,), n=1, dropped=0, predictive=None, columns={})
    skipped = Skipped(metric="zms", code="error", reason="-1")
    report = Report(calcheck="0", input=read, settings={}, results=(), skipped=(skipped,))
    (line,) = csv.DictReader(io.StringIO(render_csv(report)))
    assert line["file"] == "'=cmd()"
    assert line["notes"] == "'-1"


@pytest.mark.parametrize("name", NEED_NO_INPUTS)
def test_every_metric_has_a_command_that_prints_a_table(calcheck, calibrated, name):
    extra = FEW if METRICS[name].info.interval != "none" else ()
    found = calcheck(name, calibrated, "--worst", 2, *extra)
    assert found.code == 0
    assert found.err == ""
    assert max(map(len, found.out.splitlines()[1:])) <= 100
    assert "worst" in found.out


def test_metrics_of_predictions_alone_need_no_targets(calcheck, tmp_path):
    parts = columns(n=40)
    del parts["y"]
    path = write(tmp_path / "predictions.parquet", parts)
    assert calcheck("sharpness", path, *FEW).code == 0
    assert "--target" in calcheck("rmse", path).refused()
    assert "--target" in calcheck("evaluate", path).refused()


def test_errors_replace_targets_and_means(calcheck, tmp_path):
    parts = columns(n=40)
    error = parts["y"] - parts["mean"]
    residuals = write(tmp_path / "residuals.parquet", {"error": error, "std": parts["std"]})
    both = write(tmp_path / "both.parquet", {"y": parts["y"], "mean": parts["mean"], "std": parts["std"], "E": error})
    found = [
        json.loads(calcheck("zms", path, *arguments, *FEW, "--format", "json").out)
        for path, arguments in ((residuals, ()), (both, ("--error", "E")), (both, ()))
    ]
    assert len({report["results"][0]["low"] for report in found[:2]}) == 1
    assert_allclose(found[0]["results"][0]["value"], found[2]["results"][0]["value"], rtol=1e-12)
    assert found[0]["input"]["predictive"] == "residuals, assumed normal"
    shaped = json.loads(calcheck("zms", residuals, "--error-dist", "t6", *FEW, "--format", "json").out)
    assert shaped["input"]["predictive"] == "residuals, t6"
    assert found[0]["input"]["columns"] == {"y - mean": "error", "std": "std"}
    assert found[1]["input"]["options"] == ["--error", "E", "--std", "std"]
    assert found[2]["input"]["predictive"] == "gaussian"
    for arguments in (("--target", "y"), ("--mean", "mean"), ("--dist", "gamma:scipy"), ("--samples", "s*")):
        assert "--error" in calcheck("zms", both, "--error", "E", *arguments).refused()
    lone = write(tmp_path / "lone.parquet", {"E": error, "std": parts["std"]})
    assert "or pass errors y - mean as --error COLUMN" in calcheck("evaluate", lone).refused()
    assert "there is no column 'e'" in calcheck("zms", both, "--error", "e").refused()
    assert "--std" in calcheck("zms", write(tmp_path / "alone.parquet", {"e": error}), "--error", "e").refused()


@pytest.mark.slow
def test_metrics_of_a_single_target_refuse_several_and_evaluate_has_them_for_each(calcheck, tmp_path):
    parts = columns(n=40)
    two = {"y1": parts["y"], "y2": parts["y"], "m1": parts["mean"], "m2": parts["mean"], "s1": parts["std"]}
    path = write(tmp_path / "two.parquet", two | {"s2": parts["std"], "embedding": parts["embedding"]})
    roles = ("--target", "y1,y2", "--mean", "m1,m2", "--std", "s1,s2")
    assert "needs a single target column, but there are 2" in calcheck("zms", path, *roles).refused()
    asked = json.loads(calcheck("evaluate", path, *roles, "--metrics", "zms,rce", "--format", "json").out)
    assert asked["results"] == []
    named = {each["name"]: [found["metric"] for found in each["results"]] for each in asked["conclusion"]["outputs"]}
    assert named == {"y1": ["zms", "rce"], "y2": ["zms", "rce"]}
    report = json.loads(calcheck("evaluate", path, *roles, *FEW, "--format", "json").out)
    assert [each["metric"] for each in report["results"]] == [
        *("pit", "cce", "jmmd", "ammd", "cmmd", "fid", "nll", "crps"),
    ]


def test_inputs_are_read_only_for_metrics_that_need_them(calcheck, tmp_path):
    broken = columns(n=40) | {"embedding": np.full((40, 3), np.nan, np.float32)}
    path = write(tmp_path / "broken.parquet", broken)
    assert calcheck("zms", path, *FEW).code == 0
    assert calcheck("cce", path).code == 2
    assert "--embedding" not in calcheck("zms", "--help").out


def test_help_and_the_list_of_metrics_have_all_commands(calcheck):
    out = (calcheck("--help").out + calcheck("metrics").out).replace(",", " ").replace("\n", " ")
    assert all(f" {name} " in out for name in COMMANDS)


@pytest.mark.slow
def test_the_line_before_the_table_states_the_overall_verdict_and_what_remains_of_the_failures(calcheck, tmp_path):
    rng = np.random.default_rng(0)
    right = {"y": rng.normal(size=200), "mean": np.zeros(200), "std": np.ones(200)}
    quick = ("--no-bootstrap", "--replicates", 99, "--error-dist", "normal")
    found = calcheck("evaluate", write(tmp_path / "right.parquet", right), *quick, "--table")
    (line,) = (line for line in found.out.splitlines() if "metrics together" in line)
    assert re.fullmatch(r"\d+ metrics together: pass, p 0\.\d+", line)
    wrong = {**right, "std": np.full(200, 0.7)}
    found = calcheck(
        "evaluate", write(tmp_path / "wrong.parquet", wrong), "--metrics", "zms,ece,bias", *quick, "--table"
    )
    expected = "3 metrics together: fail, p 0.01, led by zms; every failure remains after adjustment for their number"
    assert expected in " ".join(found.out.split())


@pytest.mark.parametrize(
    ("adjusted", "expected"),
    [
        ((0.2, 0.06, None), "p 0.2; no failure remains after adjustment"),
        ((0.2, 0.05, None), "p 0.2; of 2 failures, ece remains after adjustment"),
        ((0.01, 0.05, 0.3), "p 0.2; of 3 failures, zms, ece remain after adjustment"),
        ((None, None, None), "p 0.2"),
    ],
)
def test_the_overall_verdict_names_the_failures_that_remain(adjusted, expected):
    overall = Overall(
        verdict="pass", p_value=0.2, method="maximum relative to limits", replicates=99, metrics=("a",) * 9, leading="a"
    )
    results = tuple(
        Result(metric=name, summary="", options={}, unit="1", value=1.0, verdict="fail", p_value_adjusted=p)
        for name, p in zip(("zms", "ece", "pit"), adjusted, strict=True)
    )
    read = Input(files=(), n=9, dropped=0, predictive=None, columns={})
    report = Report(calcheck="0", input=read, settings={"confidence": 0.95}, results=results, overall=overall)
    (line,) = (block.text for block in report_document(report).blocks if isinstance(block, Paragraph))
    assert line.removesuffix(" for their number") == f"9 metrics together: pass, {expected}"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("compare", "a b --metrics mae"),
        ("trend", "a b --metrics mae"),
        ("evaluate", "[ab].parquet --metrics mae"),
        ("reject", "a --new b --criteria cce --inputs x --resamples 100"),
        ("mcmd", "a b --inputs x --permutations 19"),
        ("mmd", "a b --permutations 19"),
    ],
)
def test_rows_dropped_from_every_file_are_counted(calcheck, tmp_path, monkeypatch, command, options):
    """A report of two files has dropped the incomplete rows of both; models of a comparison have the same rows."""
    monkeypatch.chdir(tmp_path)
    missing = {"a": [7], "b": [7] if command == "compare" else [7, 9]}
    for number, (name, rows) in enumerate(missing.items()):
        y, x = np.random.default_rng(1).normal(size=(2, 60))
        y[rows] = np.nan
        keys = np.arange(60) + (0 if command == "compare" else 60 * number)
        write(tmp_path / f"{name}.parquet", {"id": keys, "y": y, "mean": x / 2, "std": np.ones(60), "x": x})
    files = [f"{word}.parquet" if word in missing else word for word in options.split()]
    report = json.loads(calcheck(command, *files, "--nan-policy", "omit", "--format", "json").out)
    assert report["input"]["dropped"] == sum(map(len, missing.values()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--refit", "--criteria", "std"), "--criteria does not apply to metrics of the remaining rows (--refit)"),
        (("--refit", "--coverage", "0.9"), "--coverage does not apply to metrics of the remaining rows (--refit)"),
        (("--refit", "--lambda", "0.1"), "--lambda does not apply to metrics of the remaining rows (--refit)"),
        (("--refit", "--new", "b.csv"), "--new does not apply to metrics of the remaining rows (--refit)"),
        (
            ("--replicates", "39"),
            "--replicates does not apply to means over the remaining rows: remove it, or pass --refit",
        ),
        (("--cluster", "g"), "--cluster does not apply to means over the remaining rows"),
    ],
)
def test_options_of_other_rejections_are_refused(calcheck, calibrated, arguments, message):
    assert message in calcheck("reject", calibrated, *arguments).refused()


def test_an_inspected_file_is_converted_with_an_output(calcheck, calibrated, tmp_path):
    for command, path in (("inspect", tmp_path / "a.csv"), ("convert", tmp_path / "b.csv")):
        assert calcheck(command, calibrated, "-o", path).code == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    line = calcheck("inspect", calibrated, "-o", tmp_path / "c.csv", "--plot", tmp_path / "c.svg").refused()
    assert "--plot draws what is found in a file, and -o writes another file" in line


def test_an_evaluation_lists_extreme_rows_of_each_metric(calcheck, calibrated):
    arguments = ("evaluate", calibrated, "--metrics", "zms,crps", "--worst", 2, "--best", 1, *FEW)
    out = calcheck(*arguments).out
    for name in ("zms: worst", "zms: best", "crps: worst", "crps: best"):
        assert name in out
    found = json.loads(calcheck(*arguments, "--format", "json").out)["results"]
    (alone,) = json.loads(calcheck("zms", calibrated, "--worst", 2, "--best", 1, *FEW, "--format", "json").out)[
        "results"
    ]
    assert found[0]["details"]["worst"] == alone["details"]["worst"]
    assert found[0]["details"]["best"] == alone["details"]["best"]
    assert "--format csv cannot show --worst and --best" in calcheck(*arguments, "--format", "csv").refused()


@pytest.mark.slow
def test_an_evaluation_exits_by_its_rules_only(calcheck, calibrated):
    evaluated = ("evaluate", calibrated, "--metrics", "zms", *FEW)
    assert calcheck(*evaluated).code == 0
    violated = calcheck(*evaluated, "--fail-on", "mae > 0")  # of a metric that is not named
    assert violated.code == 1
    assert "violated" in violated.out
    assert "violated" in calcheck(*evaluated, "--fail-on", "mae > 0", "--brief").out
    assert calcheck(*evaluated, "--fail-on", "mae > 0", "--exit-zero").code == 0
    assert calcheck(*evaluated, "--warn-on", "mae > 0").code == 0
    assert calcheck(*evaluated, "--fail-on", "mae < 0").code == 0
    assert "use calcheck check --by" in calcheck(*evaluated, "--fail-on", "slices.failed > 0").refused()
    assert "use calcheck monitor" in calcheck(*evaluated, "--fail-on", "monitor.e_value > 20").refused()


@pytest.mark.slow
def test_an_evaluation_draws_all_metrics_in_one_picture(calcheck, calibrated, tmp_path):
    path = tmp_path / "all.svg"
    assert calcheck("evaluate", calibrated, "--metrics", "coverage,pit,zms", *FEW, "--plot", path).code == 0
    drawn = path.read_text()
    assert "coverage" in drawn
    assert "pit" in drawn


def test_a_report_without_curves_has_no_picture(calcheck, calibrated, tmp_path):
    assert (
        calcheck("evaluate", calibrated, "--metrics", "zms", *FEW, "--format", "json", "-o", tmp_path / "r.json").code
        == 0
    )
    with pytest.raises(DataError, match="none of the metrics has a picture"):
        report_picture(read_report(str(tmp_path / "r.json")))


def test_bins_by_a_std_that_never_changes_are_no_next_step(calcheck, tmp_path):
    """Errors are too large for a std of 1 in all rows: bins by the std are one bin, and have no verdict."""
    path = tmp_path / "preds.csv"
    errors = 1.5 * np.random.default_rng(0).normal(size=300)
    path.write_text("y,mean,std\n" + "".join(f"{each},0,1\n" for each in errors))
    report = json.loads(calcheck("evaluate", path, *FEW, "--format", "json").out)
    assert report["conclusion"]["next"]
    assert not any("lzms" in each for each in report["conclusion"]["next"])
