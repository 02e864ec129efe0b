"""`calcheck sweep`: varied settings, output and refused options."""

import csv
import io
import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers.files import columns, write
from tests.helpers.schemas import validate


@pytest.fixture
def models(tmp_path):
    """Return the paths of three models on the same rows."""
    parts = columns(n=40)
    return [
        write(tmp_path / f"{name}.parquet", parts | {"std": parts["std"] * by})
        for name, by in (("sharp", 0.5), ("right", 1.0), ("wide", 3.0))
    ]


@pytest.fixture
def swept(calcheck):
    """Run the command, and return its report."""

    def run(*arguments):
        ended = calcheck("sweep", *arguments, "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        report = json.loads(ended.out)
        validate(report)
        return report

    return run


def test_values_equal_those_of_the_metric_with_the_setting(swept, calcheck, models):
    report = swept(models[0], "--vary", "lambda=0.01,1", "--vary", "draws=2", "--gamma-y", 2)
    assert [each["slice"] for each in report["results"]] == [{}, {"lambda": "0.01"}, {"lambda": "1"}, {"draws": "2"}]
    assert report["settings"]["vary"] == {"lambda": ["0.01", "1"], "draws": ["2"]}
    for result, options in zip(
        report["results"], ([], ["--lambda", 0.01], ["--lambda", 1], ["--draws", 2]), strict=True
    ):
        alone = json.loads(calcheck("cce", models[0], *options, "--gamma-y", 2, "--no-null", "--format", "json").out)[
            "results"
        ][0]
        assert_allclose(result["value"], alone["value"], rtol=1e-10)
        assert result["options"] == alone["options"]


@pytest.mark.slow
def test_several_models_are_ranked_at_each_setting(swept, models):
    report = swept(*models, "--vary", "gamma-y=0.1..10:3", "--names", "a,b,c")
    assert report["settings"]["models"] == ["a", "b", "c"]
    assert [each["slice"]["model"] for each in report["results"]] == ["a", "b", "c"] * 4
    for start in range(0, 12, 3):
        group = report["results"][start : start + 3]
        assert sorted(each["details"]["rank"] for each in group) == [1, 2, 3]
        assert -1 <= group[0]["details"]["tau"] <= 1
    assert report["input"]["n"] == 40
    assert len(report["input"]["files"]) == 3


def test_tables_fit_80_columns_and_begin_with_the_unchanged_metric(calcheck, models):
    arguments = ("--vary", "lambda=0.001..1", "--vary", "normalize=l2,standardize", "--vary", "subsample=50%,100%")
    out = calcheck("sweep", *models, *arguments, "--subsets", 2).out
    assert max(map(len, out.splitlines()[4:])) <= 80
    assert re.search(r"^ *lambda +sharp +right +wide +tau$", out, re.MULTILINE)
    assert re.search(r"^0.1 \(as set\) +[\d.]+\*? +[\d.]+\*? +[\d.]+\*? +1.00$", out, re.MULTILINE)
    assert re.search(r"^ +default +[\d.]+", out, re.MULTILINE)
    assert re.search(r"^ +50 % +[\d.]+\*? +± [\d.e-]+", out, re.MULTILINE)
    assert "* best" in out
    single = calcheck("sweep", models[0], "--vary", "lambda=0.1,1").out
    assert re.search(r"^ *lambda +value$", single, re.MULTILINE)
    assert "best" not in single


def test_tables_of_many_models_are_split(calcheck, tmp_path):
    many = [write(tmp_path / f"a_model_with_a_long_name_{k}.parquet", columns(n=40)) for k in range(6)]
    out = calcheck("sweep", *many, "--vary", "lambda=0.1,1").out
    assert max(map(len, out.splitlines()[7:])) <= 100
    assert out.count("(as set)") > 1


def test_every_format_has_the_same_values(calcheck, models):
    arguments = ("sweep", *models[:2], "--all-combinations", "--vary", "lambda=0.1,1", "--vary", "gamma-y=0.5,2")
    whole = json.loads(calcheck(*arguments, "--format", "json").out)
    lines = list(csv.DictReader(io.StringIO(calcheck(*arguments, "--format", "csv").out)))
    assert [line["lambda"] for line in lines] == ["", "", *["0.1"] * 4, *["1"] * 4]
    assert [line["gamma-y"] for line in lines] == ["", "", *["0.5", "0.5", "2", "2"] * 2]
    assert [float(line["value"]) for line in lines] == [each["value"] for each in whole["results"]]
    markdown = calcheck(*arguments, "--format", "markdown").out
    assert "| lambda | gamma-y | sharp | right |" in markdown
    assert len(calcheck(*arguments, "--format", "jsonl").out.splitlines()) == len(lines)


def test_a_plot_has_a_panel_for_each_setting(calcheck, models, tmp_path):
    plot = tmp_path / "sweep.svg"
    over = ("--vary", "lambda=0.01..1:3", "--vary", "kernel-x=rbf,laplace", "--vary", "subsample=50%,100%")
    arguments = ("sweep", *models[:2], *over, "--subsets", 2, "--plot", plot)
    calcheck(*arguments)
    first = plot.read_text()
    for label in (">lambda<", ">kernel-x<", ">laplace<", ">subsample [%]<", ">0.01<", ">sharp<", ">right<"):
        assert label in first
    calcheck(*arguments)
    assert plot.read_text() == first
    calcheck(
        "sweep", models[0], "--all-combinations", "--vary", "lambda=0.01,1", "--vary", "degree=1,2", "--plot", plot
    )
    assert ">degree 2<" in plot.read_text()


def test_any_metric_can_be_swept_with_its_options(swept, models):
    report = swept(models[1], "--metric", "ence", "--vary", "bins=2,4", "--by", "mean")
    assert [each["options"] for each in report["results"]] == [
        {"bins": bins, "by": "mean", "norm": "mean"} for bins in (10, 2, 4)
    ]


def test_likelihoods_of_densities_and_masses_are_swept_with_discretise(swept, calcheck, tmp_path):
    y = np.random.default_rng(3).poisson(4.0, 60)
    rows = {"y": y, "rate": np.full(60, 4.0), "mean": np.full(60, 4.0), "std": np.full(60, 2.0)}
    path = write(tmp_path / "counts.parquet", rows)
    models = (f"{path}@dist=poisson", f"{path}@dist=gaussian", "--names", "poisson,normal")
    options = (*models, "--metric", "nll", "--vary", "subsample=50%")
    assert "pass --discretise" in calcheck("sweep", *options).refused()
    found = swept(*options, "--discretise")["results"]
    compared = json.loads(calcheck("compare", *models, "--metrics", "nll", "--discretise", "--format", "json").out)
    assert [each["value"] for each in found[:2]] == [each["value"] for each in compared["results"][:2]]


def test_settings_of_the_metric_are_used_unless_the_command_line_overrides_them(swept, models, tmp_path, monkeypatch):
    monkeypatch.delenv("CALCHECK_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calcheck.toml").write_text(
        "[cce]\nlambda = 0.5\ndegree = 2\n[sweep]\nsubsets = 2\nvary = ['draws=1', 'subsample=50%']"
    )
    report = swept(models[0], "--degree", 1)
    assert [each["slice"] for each in report["results"]] == [{}, {"draws": "1"}, {"subsample": "50 %"}]
    assert {(each["options"]["lambda"], each["options"]["degree"]) for each in report["results"]} == {(0.5, 1)}
    assert report["settings"]["subsets"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "sweep needs a setting to vary"),
        (["--vary", "bins=5"], "Names for cce: "),
        (["--vary", "lambda=0..1"], "ranges of positive numbers"),
        (["--vary", "lambda=-1"], "--lambda must be a positive number"),
        (["--vary", "subsample=41"], "gives 41 rows: expected between 1 and 40"),
        (["--vary", "lambda=1", "--vary", "lambda=2"], "given twice"),
        (["--vary", "lambda=1", "--metric", "zzz"], "--metric: unknown metric"),
        (["--vary", "lambda=1", "--bins", "3"], "cce has no option --bins"),
        (["--vary", "draws=all"], "--draws all needs saved samples"),
        (["--vary", "lambda=1", "--lambda", "x"], "--lambda takes a number, got 'x'"),
        (["--vary", "lambda=1", "--subsets", "0"], "--subsets must be at least 1"),
        (["--vary", "lambda=1", "--names", "a,b"], "--names needs 1 different names"),
        (["--vary", "lambda=1", "--plot", "sweep.gif"], "must end in .svg, .png or .pdf"),
        (
            ["--all-combinations", "--vary", "lambda=1", "--vary", "degree=1..200:14", "--plot", "s.svg"],
            "at most 12 panels, and --vary needs",
        ),
    ],
)
def test_errors_are_one_line(calcheck, models, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in calcheck("sweep", models[0], *arguments).refused()


def test_models_must_have_the_same_rows(calcheck, models, tmp_path):
    for first, words in ((110, "are not in"), (0, "have no row in common")):
        other = write(tmp_path / "other.parquet", columns(n=40) | {"id": np.arange(40) + first})
        assert words in calcheck("sweep", models[0], other, "--vary", "lambda=1").refused()
    without = write(tmp_path / "w.csv", {name: v for name, v in columns(n=40).items() if name != "embedding"})
    line = calcheck("sweep", models[0], without, "--vary", "lambda=1").refused()
    assert f"{without}: cce needs inputs" in line


def test_the_unchanged_value_of_a_list_is_written_with_commas(calcheck, models):
    out = calcheck("sweep", models[0], "--metric", "pinball", "--levels", "0.2,0.8", "--vary", "levels=0.5;0.1,0.9").out
    assert re.search(r"^ *0.2,0.8 \(as set\) +[\d.]+$", out, re.MULTILINE)
    assert re.search(r"^ *0.1,0.9 +[\d.]+$", out, re.MULTILINE)


def test_titles_and_lists_are_shown_whole(calcheck, models):
    varied = ("--levels", "0.1,0.25,0.5,0.75,0.9", "--vary", "levels=0.5", "--vary", "subsample=50%")
    lines = calcheck("sweep", models[0], "--metric", "pinball", *varied).out.splitlines()
    assert "pinball [y] by subsample, mean ± standard deviation of 5 random subsets" in lines
    assert any(line.startswith("0.1,0.25,0.5,0.75,0.9 (as set)  ") for line in lines)


@pytest.fixture
def samples(tmp_path):
    """Return files of two samples with different inputs."""
    rng = np.random.default_rng(5)
    parts = [{"x": rng.uniform(0, 6, n), "y": rng.normal(size=n)} for n in (30, 25)]
    return [write(tmp_path / f"{name}.parquet", part) for name, part in zip("ab", parts, strict=True)]


def test_a_metric_of_two_samples_is_swept(swept, calcheck, samples):
    report = swept(*samples, "--metric", "mcmd", "--inputs", "x", "--vary", "gamma-x+gamma-y=0.1,2", "--grid", 9)
    assert [each["slice"] for each in report["results"]] == [{}, {"gamma-x+gamma-y": "0.1"}, {"gamma-x+gamma-y": "2"}]
    for gamma, result in zip((0.1, 2), report["results"][1:], strict=True):
        options = ("--gamma-x", gamma, "--gamma-y", gamma, "--grid", 9, "--permutations", 19, "--format", "json")
        alone = json.loads(calcheck("mcmd", *samples, "--inputs", "x", *options).out)["results"][0]
        assert_allclose(result["value"], alone["value"], rtol=1e-10)
        assert result["options"] == alone["options"]
    assert len(report["input"]["files"]) == 2
    of_targets = swept(*samples, "--metric", "mmd", "--vary", "kernel-y=rbf,laplace")["results"]
    assert of_targets[0]["value"] == of_targets[1]["value"] != of_targets[2]["value"]


@pytest.mark.parametrize(
    ("metric", "fixed", "setting", "values"),
    [
        ("jmmd", ("--gamma-y", 3), "gamma-x", (0.5, 2.0)),
        ("jmmd", (), "statistic", ("paper", "unbiased")),
        ("cmmd", ("--gamma-x", 2), "lambda", (0.01, 1.0)),
        ("cmmd", (), "kernel-y", ("rbf", "laplace")),
        ("fid", (), "standardize", ("data", "none")),
    ],
)
def test_metrics_of_generative_models_are_swept_for_two_samples(
    swept, calcheck, samples, metric, fixed, setting, values
):
    varied = ("--vary", f"{setting}={','.join(map(str, values))}")
    report = swept(*samples, "--metric", metric, "--inputs", "x", "--two-samples", *fixed, *varied)
    alone = [
        json.loads(calcheck(metric, *samples, "--inputs", "x", *fixed, "--no-null", "--format", "json", *option).out)
        for option in ((), *((f"--{setting}", each) for each in values))
    ]
    for found, single in zip(report["results"], alone, strict=True):
        (expected,) = single["results"]
        assert_allclose(found["value"], expected["value"], rtol=1e-12)
        assert [found[name] for name in ("metric", "options")] == [expected[name] for name in ("metric", "options")]
    assert len({each["value"] for each in report["results"]}) > 1
    assert [each["slice"].get(setting) for each in report["results"]] == [
        None,
        *(f"{each:g}" if isinstance(each, float) else each for each in values),
    ]
    assert report["input"]["n"] == 55
    assert report["input"]["files"] == alone[0]["input"]["files"]


def test_predictions_in_two_samples_are_ignored(swept, samples, tmp_path):
    rng = np.random.default_rng(5)
    rows = [{"x": rng.uniform(0, 6, n), "y": rng.normal(size=n), "mean": np.ones(n)} for n in (30, 25)]
    predicted = [
        write(tmp_path / f"predicted {name}.parquet", part | {"std": np.ones(len(part["y"]))})
        for name, part in zip("ab", rows, strict=True)
    ]
    arguments = ("--metric", "jmmd", "--inputs", "x", "--vary", "gamma-x=1,2", "--two-samples")
    values = [[each["value"] for each in swept(*files, *arguments)["results"]] for files in (samples, predicted)]
    assert values[0] == values[1]


def test_two_files_that_are_no_models_name_the_option(calcheck, samples, tmp_path):
    hint = "If the files are two samples, pass --two-samples"
    arguments = ("--metric", "jmmd", "--inputs", "x", "--vary", "gamma-x=1,2")
    line = calcheck("sweep", *samples, *arguments).refused()
    assert "no columns were recognized as predictions" in line
    assert line.endswith(f"{hint}\n")
    rng = np.random.default_rng(6)
    rows = {"x": np.arange(20.0), "mean": np.zeros(20), "std": np.ones(20)}
    files = [write(tmp_path / f"{name}.parquet", rows | {"y": rng.normal(size=20)}) for name in "cd"]
    line = calcheck("sweep", *files, *arguments).refused()
    assert "20 of 20 targets of c and d differ" in line
    assert line.endswith(f"{hint}\n")
    assert "--two-samples" not in calcheck("sweep", *files, "--inputs", "x", "--vary", "lambda=1").refused()


@pytest.mark.parametrize(
    ("metric", "count", "arguments", "message"),
    [
        ("jmmd", 1, ("--two-samples",), "--two-samples compares two samples: pass two files, without --names"),
        ("fid", 2, ("--two-samples", "--names", "a,b"), "--two-samples compares two samples: pass two files, without"),
        ("cmmd", 2, ("--two-samples", "--grid", 9), "--grid sets the evaluation points of two samples: pass --metric"),
        (
            "cce",
            2,
            ("--two-samples",),
            "cce does not compare two samples. Metrics that do: mcmd, mmd, jmmd, cmmd, fid",
        ),
        ("jmmd", 2, ("--two-samples", "--mean", "y"), "--mean does not apply to two samples: remove it"),
        ("mcmd", 2, ("--std", "y"), "--std does not apply to two samples: remove it"),
        ("mmd", 2, ("--grid", 9), "--grid sets the evaluation points of two samples: pass --metric mcmd"),
        ("mcmd", 1, (), "--metric mcmd compares two samples: pass two files, without --names"),
        ("mcmd", 2, ("--names", "a,b"), "--metric mcmd compares two samples: pass two files, without --names"),
        ("mcmd", 2, ("--grid", 0), "--grid must be between 1 and 1,000,000, got 0"),
        ("cce", 2, ("--grid", 9), "--grid sets the evaluation points of two samples: pass --metric mcmd"),
    ],
)
def test_sweeps_of_two_samples_need_two_files(calcheck, samples, metric, count, arguments, message):
    files = samples[:count]
    varied = ("--vary", "subsample=50%" if metric in ("fid", "jmmd", "mmd") else "lambda=1")
    line = calcheck("sweep", *files, "--metric", metric, "--inputs", "x", *varied, *arguments).refused()
    assert message in line
