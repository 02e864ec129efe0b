"""`calcheck mcmd A B`: two samples in files."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from calcheck.metrics.mcmd import Mcmd
from calcheck.models.two_samples import two_samples
from calcheck.options import options_of
from calcheck.predictions import InMemory, Predictions
from calcheck.studies.gate.evaluate import evaluate_rule
from calcheck.studies.gate.rules import parse
from tests.helpers.files import write
from tests.helpers.schemas import validate

FEW = ("--permutations", 19)


def parts(seed, n=40, shift=0.0, d=1):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, (n, d))
    inputs = {f"x{column or ''}": x[:, column] for column in range(d)}
    return inputs | {"y": np.sin(x[:, 0]) + 0.3 * rng.normal(size=n) + shift}


@pytest.fixture
def samples(tmp_path):
    """Return files of three samples: the first two have the same distribution, the third has another."""
    return [
        write(tmp_path / f"{name}.parquet", parts(seed, n, shift))
        for name, seed, n, shift in (("a", 6, 60, 0.0), ("b", 7, 70, 0.0), ("c", 8, 70, 0.8))
    ]


@pytest.fixture
def report(calcheck):
    """Run the command, and return its report."""

    def run(*arguments):
        ended = calcheck("mcmd", *arguments, "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        found = json.loads(ended.out)
        validate(found)
        return found

    return run


@pytest.mark.slow
def test_samples_of_equal_distributions_pass_and_others_fail(report, samples):
    a, b, c = samples
    like, other = (report(a, second, "--inputs", "x")["results"][0] for second in (b, c))
    assert (like["metric"], like["verdict"], other["verdict"]) == ("mcmd", "pass", "fail")
    assert like["reference"] < like["reference_high"] < other["value"]
    assert other["p_value"] == 1 / 200


def test_the_value_equals_that_of_the_python_function(report, samples):
    a, b = (
        InMemory(Predictions(x=np.array(table["x"])[:, None], y=np.array(table["y"]), has_embedding=False))
        for table in map(pq.read_table, samples[:2])
    )
    expected = two_samples(a, b, Mcmd(gamma_x=0.5), grid=7).results[0]
    found = report(*samples[:2], "--inputs", "x", "--gamma-x", 0.5, "--grid", 7)["results"][0]
    assert (found["value"], found["p_value"]) == (expected.value, expected.p_value)


def test_both_files_are_in_the_report(report, samples):
    found = report(*samples[:2], "--inputs", "x", *FEW)
    assert [(file["role"], Path(file["path"]).name, file["rows"]) for file in found["input"]["files"]] == [
        ("sample", "a.parquet", 60),
        ("sample", "b.parquet", 70),
    ]
    assert found["input"]["n"] == 130
    assert found["input"]["columns"] == {"y": "y", "x": "x"}
    assert found["settings"]["grid"] == 200


def test_pointwise_output_has_the_inputs_and_the_distance_at_each(report, samples, tmp_path):
    found = report(*samples[:2], "--inputs", "x", "--grid", 50, "--pointwise", tmp_path / "rows.parquet", *FEW)
    rows = pq.read_table(tmp_path / "rows.parquet")
    assert rows.column_names[0] == "mcmd"
    assert_allclose(np.mean(rows["mcmd"]), found["results"][0]["value"])
    assert_allclose(np.diff(rows["x"]), np.ptp(rows["x"]) / 49)
    assert {"reference_mean", "reference_q05", "reference_q95"} <= set(rows.column_names)


def test_samples_are_compared_at_the_inputs_of_a_file(report, samples, tmp_path):
    """A, B, or a file without targets; A is read once, and listed once."""
    a, b, _ = samples
    other = write(tmp_path / "at.csv", {"x": np.linspace(1, 2, 5), "note": np.arange(5)})
    for at, expected, files in ((a, pq.read_table(a)["x"], 2), (b, pq.read_table(b)["x"], 2), (other, [1, 1.25], 3)):
        found = report(a, b, "--inputs", "x", "--at", at, "--pointwise", tmp_path / "rows.parquet", *FEW)
        rows = pq.read_table(tmp_path / "rows.parquet")
        assert_allclose(rows["x"].to_numpy()[: len(expected)], expected)
        assert len(found["input"]["files"]) == files
        assert found["settings"]["grid"] is None
    assert rows["note"].to_pylist() == list(range(5))


def test_several_inputs_and_targets_are_compared_at_the_inputs_of_a(report, tmp_path):
    files = []
    for seed, name in enumerate("ab"):
        made = parts(seed, d=3)
        files.append(write(tmp_path / f"{name}.parquet", made | {"z": made["y"] ** 2}))
    found = report(*files, "--inputs", "x,x1,x2", "--target", "y,z", *FEW)["results"][0]
    assert found["details"]["rows"] == 40
    assert len(found["details"]["targets"]["gamma"]) == 2


def test_predictions_in_the_files_are_ignored(report, samples, tmp_path):
    """Also invalid ones: missing means, standard deviations of 0, two kinds of predictions, duplicate ids."""
    a, b, _ = samples
    plain = report(a, b, "--inputs", "x", *FEW)
    table = pq.read_table(a)
    made = {name: table[name].to_numpy() for name in table.column_names}
    made |= {"mean": np.full(60, np.nan), "std": np.zeros(60), "id": np.zeros(60, int), "q_0.1": np.ones(60)}
    path = write(tmp_path / "predicted.parquet", made)
    assert report(path, b, "--inputs", "x", *FEW)["results"] == plain["results"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(calcheck, samples):
    first, second, other = (
        calcheck("mcmd", *samples[:2], "--inputs", "x", "--seed", seed, "--format", "json").out for seed in (1, 1, 2)
    )
    assert first == second
    assert json.loads(first)["results"][0]["p_value"] != json.loads(other)["results"][0]["p_value"]


def test_without_a_null_distribution_there_is_no_verdict(report, samples):
    found = report(*samples[:2], "--inputs", "x", "--no-null")["results"][0]
    assert (found["verdict"], found["reference"], found["p_value"]) == ("none", None, None)


def test_every_format_shows_the_result(calcheck, samples):
    for form in ("table", "markdown", "csv", "jsonl"):
        found = calcheck("mcmd", *samples[:2], "--inputs", "x", "--format", form, *FEW)
        assert found.code == 0
        assert "mcmd" in found.out


def test_rules_can_be_applied_to_the_report(samples):
    rows = [pq.read_table(path) for path in samples]
    a, c = (
        InMemory(Predictions(x=np.array(table["x"])[:, None], y=np.array(table["y"]), has_embedding=False))
        for table in (rows[0], rows[2])
    )
    found = two_samples(a, c, Mcmd())
    assert not evaluate_rule(parse("mcmd.verdict != 'pass'"), found).passed
    assert evaluate_rule(parse("mcmd > 1.4 or mcmd.details.samples.rows != 60"), found).passed


def test_reports_can_be_compared_by_diff(calcheck, samples, tmp_path):
    a, b, c = samples
    for second in (b, c):
        calcheck(
            "mcmd", a, second, "--inputs", "x", *FEW, "--format", "json", "-o", tmp_path / f"{Path(second).stem}.json"
        )
    found = calcheck("diff", tmp_path / "b.json", tmp_path / "c.json")
    assert found.code == 0
    assert "mcmd" in found.out


@pytest.mark.slow
def test_one_dimensional_inputs_can_be_plotted(calcheck, samples, tmp_path):
    path = tmp_path / "curve.svg"
    assert calcheck("mcmd", *samples[:2], "--inputs", "x", "--plot", path, *FEW).code == 0
    drawn = path.read_text()
    assert ">mcmd<" in drawn
    assert "equal distributions" in drawn
    assert calcheck("mcmd", *samples[:2], "--inputs", "x", "--plot", path, "--no-null").code == 0
    assert "no band of equal distributions" in path.read_text()


def test_several_inputs_are_a_map(calcheck, tmp_path):
    rng = np.random.default_rng(0)
    files = [
        write(
            tmp_path / f"{name}.parquet",
            {"y": rng.normal(size=60), "lon": rng.normal(size=60), "lat": rng.normal(size=60)},
        )
        for name in "ab"
    ]
    path = tmp_path / "map.svg"
    assert calcheck("mcmd", *files, "--inputs", "lon,lat", "--plot", path, *FEW).code == 0
    assert ">lat<" in path.read_text()
    assert ">equal distributions<" in path.read_text()


@pytest.mark.slow
def test_either_sample_can_be_standard_input(process, samples):
    for place in (0, 1):
        files = samples[:2]
        with Path(files[place]).open("rb") as stream:
            files[place] = "-"
            piped = process("mcmd", *files, "--inputs", "x", "--input-format", "parquet", *FEW, stdin=stream)
        assert "standard input" in piped.stdout


def test_rows_can_be_filtered_and_dropped(report, tmp_path):
    made = parts(0, n=80)
    made["y"][3] = np.nan
    made["half"] = np.array(["one", "two"] * 40)
    path = write(tmp_path / "both.parquet", made)
    found = report(path, path, "--inputs", "x", "--filter", "half=two", "--nan-policy", "omit", *FEW)
    assert (found["input"]["n"], found["input"]["dropped"]) == (78, 2)


def test_errors_are_one_line(calcheck, samples, tmp_path):
    a, b, _ = samples
    several = write(tmp_path / "several.parquet", parts(0, d=2))
    gap = write(tmp_path / "gap.parquet", parts(0) | {"y": np.r_[np.nan, np.ones(39)]})
    alone = write(tmp_path / "alone.parquet", {"x": np.ones(3)})
    for arguments, message in (
        ((a,), "Missing argument 'B'"),
        (("-", "-", "--inputs", "x"), "only one file can be read from standard input"),
        ((a, tmp_path / "none.parquet", "--inputs", "x"), "there is no file"),
        ((a, b), "a.parquet and "),
        ((a, b), "b.parquet: mcmd needs inputs to condition on (--embedding or --inputs)"),
        ((a, b, "--inputs", "z"), "a.parquet: there is no column 'z'"),
        ((a, alone, "--inputs", "x"), "alone.parquet: no column was recognized as the target. Pass --target"),
        ((a, gap, "--inputs", "x"), "gap.parquet: y must be finite numbers"),
        ((a, b, "--inputs", "x", "--grid", "1.5"), "--grid takes a whole number"),
        ((a, b, "--inputs", "x", "--grid", 5, "--at", a), "--grid and --at contradict"),
        ((several, several, "--inputs", "x,x1", "--grid", 5), "--grid needs one-dimensional inputs"),
        ((a, b, "--inputs", "x", "--plot", tmp_path / "p.txt"), "must end in .svg, .png or .pdf"),
        ((a, b, "--inputs", "x", "--pointwise", b), "would overwrite"),
        ((a, b, "--inputs", "x", "-o", a), "would overwrite"),
        ((a, b, "--inputs", "x", "--lambda-b", 0), "--lambda-b must be a positive number"),
        ((a, b, "--inputs", "x", "--permutations", 5), "--permutations must be at least 19"),
        ((a, b, "--inputs", "x", "--kernel-x", "polynomial", "--gamma-x", "median"), "does not fit the polynomial"),
    ):
        assert message in calcheck("mcmd", *arguments).refused()


def test_options_can_be_set_by_environment_variables_and_files(report, samples, tmp_path, monkeypatch):
    monkeypatch.delenv("CALCHECK_NO_CONFIG")
    (tmp_path / "calcheck.toml").write_text('inputs = "x"\n[mcmd]\ngrid = 9\nlambda-b = 0.3\npermutations = 19\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALCHECK_MCMD_GAMMA_X", "0.5")
    found = report(*samples[:2])["results"][0]
    assert found["details"]["rows"] == 9
    assert (found["options"]["lambda_b"], found["options"]["gamma_x"]) == (0.3, 0.5)
    assert found["details"]["null"]["replicates"] == 19


def test_mcmd_has_help_and_is_in_the_list_of_metrics(calcheck):
    found = calcheck("mcmd", "--help")
    assert found.code == 0
    for option in options_of(Mcmd):
        assert f" {option.flag} " in found.out
    assert "\nmcmd " in calcheck("metrics").out


def test_a_report_of_mcmd_is_refused_as_a_baseline(calcheck, samples, tmp_path):
    base = tmp_path / "base.json"
    calcheck("mcmd", *samples[:2], "--inputs", "x", *FEW, "--format", "json", "-o", base)
    assert "mcmd compares two files" in calcheck("check", samples[0], "--against", base).refused()
