"""`calcheck reject`: files, output and refused options."""

import csv
import io
import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers.files import columns, write
from tests.helpers.schemas import validate

FEW = ("--resamples", 100)


def wave(n, seed):
    """Return a sine wave, and predictions that miss its trough."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 2 * np.pi, n)
    y = np.sin(x) + 0.2 * rng.normal(size=n)
    return {"x": x, "y": y, "mean": np.maximum(np.sin(x), 0), "std": np.full(n, 0.3), "far": np.abs(x - 1)}


@pytest.fixture
def files(tmp_path):
    """Return the paths of labeled and of new predictions."""
    return [write(tmp_path / f"{name}.parquet", wave(120, seed)) for seed, name in enumerate(("labeled", "new"))]


@pytest.fixture
def rejected(calcheck):
    """Run the command, and return its report."""

    def run(*arguments):
        ended = calcheck("reject", *arguments, "--inputs", "x", *FEW, "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        report = json.loads(ended.out)
        validate(report)
        return report

    return run


def test_every_metric_has_a_curve_and_an_area_for_every_criterion(rejected, files):
    report = rejected(files[0], "--new", files[1], "--step", 30, "--coverage", 0.9)
    keys = [(each["metric"], each["slice"]["by"], each["slice"]["rejected"]) for each in report["results"]]
    shares = ["0 %", "30 %", "60 %", "90 %"]
    own = {
        "cce": [*shares, "area", "area", "10 %"],
        "std": [*shares, "area", "area", "0 %"],
        "random": [*shares, "area"],
    }
    assert keys == [
        (metric, by, share) for metric in ("mae", "rmse", "nll") for by, line in own.items() for share in line
    ]
    assert report["settings"]["by"] == ["cce", "std", "random"]
    assert report["settings"]["cce"]["lambda"] == 0.1
    assert [file["role"] for file in report["input"]["files"]] == ["predictions", "evaluation_points"]
    assert report["input"]["n"] == 120


def test_scores_are_computed_on_the_new_file(rejected, calcheck, files):
    report = rejected(files[0], "--new", files[1], "--metrics", "rmse", "--criteria", "random")
    alone = json.loads(calcheck("rmse", files[1], *FEW, "--format", "json").out)
    assert_allclose(report["results"][0]["value"], alone["results"][0]["value"], rtol=1e-12)


def test_columns_of_the_new_file_can_be_criteria(rejected, files, tmp_path):
    report = rejected(files[0], "--new", files[1], "--criteria", "far, std ,far", "--metrics", "mae", "--coverage", 0.5)
    assert report["settings"]["by"] == ["far", "std"]
    (threshold,) = [each["slice"] for each in report["results"] if each["slice"].get("threshold", 0) > 0.3]
    far = np.sort(wave(120, 1)["far"])
    assert threshold == {"by": "far", "rejected": "50 %", "rows": 60, "threshold": far[59]}
    without = write(
        tmp_path / "without.parquet", {name: values for name, values in wave(60, 2).items() if name != "far"}
    )
    assert rejected(without, "--new", files[1], "--criteria", "far", "--metrics", "mae")["results"]


def test_options_of_cce_come_from_the_command_line_and_from_settings(rejected, files, tmp_path, monkeypatch):
    monkeypatch.delenv("CALCHECK_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calcheck.toml").write_text(
        "[cce]\nlambda = 0.01\ngamma_y = 2.0\n[reject]\nstep = 45\nmetrics = ['mae']"
    )
    settings = rejected(files[0], "--lambda", 0.5)["settings"]
    assert (settings["cce"]["lambda"], settings["cce"]["gamma_y"], settings["step"]) == (0.5, 2.0, 45)


def test_nll_of_samples_is_skipped_by_default_and_refused_on_request(calcheck, tmp_path):
    draws = np.random.default_rng(0).normal(size=(40, 5))
    path = write(tmp_path / "s.csv", {"y": draws[:, 0], **{f"sample_{place}": draws[:, place] for place in range(5)}})
    found = calcheck("reject", path, *FEW)
    assert found.code == 0
    assert "nll of the retained rows" not in found.out
    assert "note skipped nll:" in found.out
    assert "s.csv: " in calcheck("reject", path, "--metrics", "mae,nll", *FEW).refused()


def test_tables_fit_80_columns_and_mark_criteria_better_than_random(calcheck, files):
    out = calcheck("reject", files[0], "--new", files[1], "--inputs", "x", "--coverage", 0.8, *FEW).out
    assert max(map(len, out.splitlines()[2:])) <= 80
    assert re.search(r"^    30 % +84 +[\d.]+\* +[\d.]+  +[\d.]+$", out, re.MULTILINE)
    assert "* below the band of random rejection" in out
    assert re.search(r"^cce +[\d.]+ +96 +20 %", out, re.MULTILINE)
    many = calcheck("reject", files[0], "--criteria", "far,std,mean,y,x,random", *FEW, "--metrics", "mae").out
    assert max(map(len, many.splitlines()[1:])) <= 80


def test_every_format_has_the_same_values(calcheck, files):
    arguments = ("reject", files[0], "--new", files[1], "--inputs", "x", "--metrics", "mae", "--step", 45, *FEW)
    whole = json.loads(calcheck(*arguments, "--format", "json").out)
    lines = list(csv.DictReader(io.StringIO(calcheck(*arguments, "--format", "csv").out)))
    assert [line["rejected"] for line in lines][:5] == ["0 %", "45 %", "90 %", "area", "area"]
    assert [float(line["value"]) for line in lines] == [each["value"] for each in whole["results"]]
    assert len(calcheck(*arguments, "--format", "jsonl").out.splitlines()) == len(lines)
    markdown = calcheck(*arguments, "--format", "markdown").out
    assert "| rejected | retained | cce | std | random |" in markdown
    assert "| metric | by | area | interval | − random | interval | p |" in markdown


def test_the_same_command_gives_the_same_bytes(calcheck, files, tmp_path):
    outs, plots = [], []
    for seed in (0, 0, 1):
        plot = tmp_path / "curves.svg"
        arguments = ("--new", files[1], "--inputs", "x", "--seed", seed, "--plot", plot, *FEW, "--format", "csv")
        outs.append(calcheck("reject", files[0], *arguments).out)
        plots.append(plot.read_bytes())
    assert outs[0] == outs[1] != outs[2]
    assert plots[0] == plots[1] != plots[2]
    assert b"mae [y] of retained rows" in plots[0]


def test_hostile_names_are_escaped(calcheck, tmp_path):
    name = "=x|<b>@me $a$"
    path = write(tmp_path / "p.parquet", columns(n=40) | {name: np.arange(40.0)})
    markdown = calcheck("reject", path, "--criteria", name, *FEW, "--format", "markdown").out
    assert r"=x\|&lt;b&gt;&#64;me $a$" in markdown
    assert "<b>" not in markdown
    plot = tmp_path / "p.svg"
    assert calcheck("reject", path, "--criteria", name, "--plot", plot, *FEW).code == 0
    assert "=x|&lt;b&gt;@me $a$" in plot.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--criteria", "absent"], "there is no column 'absent'"),
        (["--criteria", ","], "--criteria takes a list of names, got ','"),
        (["--criteria", "cce"], "cce needs inputs"),
        (["--metrics", "ece"], "--metrics must be means of errors over rows"),
        (["--metrics", "zzz"], "--metrics: unknown metric"),
        (["--max-percent", "100"], "--max-percent must be a percentage"),
        (["--coverage", "90"], "--coverage must be a fraction of the rows"),
        (["--lambda", "x"], "--lambda takes a number, got 'x'"),
        (["--lambda", "-1"], "--lambda must be a positive number"),
        (["--new", "-"], "--new reads a file, not standard input"),
        (["--new", "absent.parquet"], "there is no file absent.parquet"),
        (["--inputs", "x", "--new", "labeled.parquet:x"], "names a column, but --inputs already selects"),
        (["--plot", "curves.jpg"], "must end in .svg, .png or .pdf"),
        (["--plot", "no/curves.svg"], "no/curves.svg cannot be written"),
        (["--plot", "same.svg", "-o", "same.svg"], "would overwrite"),
    ],
)
def test_errors_are_one_line(calcheck, files, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    assert message in calcheck("reject", files[0], *arguments).refused()
    assert set(tmp_path.iterdir()) == before


def test_errors_in_the_new_file_name_it(calcheck, files, tmp_path):
    unlabeled = write(tmp_path / "unlabeled.parquet", {name: v for name, v in wave(30, 3).items() if name != "y"})
    assert f"{unlabeled}: " in calcheck("reject", files[0], "--new", unlabeled, "--inputs", "x").refused()
    elsewhere = write(tmp_path / "wide.parquet", wave(30, 3) | {"z": np.zeros(30)})
    line = calcheck("reject", elsewhere, "--new", files[1], "--inputs", "x,z").refused()
    assert "new.parquet" in line
    assert "z" in line
    truth = write(tmp_path / "truth.csv", {"y": np.zeros(30)})
    assert (
        "--truth holds only the targets of FILE"
        in calcheck("reject", unlabeled, "--truth", truth, "--new", files[1]).refused()
    )


def test_a_separate_embedding_does_not_apply_to_the_new_file(calcheck, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "emb.npy", rng.normal(size=(40, 3)))
    parts = {name: values for name, values in columns(n=40).items() if name != "embedding"}
    path = write(tmp_path / "p.parquet", parts)
    other = write(tmp_path / "q.parquet", columns(n=40, seed=1))
    beside = ("--embedding", tmp_path / "emb.npy")
    assert f"--new {other}:COLUMN" in calcheck("reject", path, *beside, "--new", other, *FEW).refused()
    assert calcheck("reject", path, *beside, "--new", f"{other}:embedding", *FEW).code == 0


def test_numbers_with_leading_zeros_can_be_criteria(calcheck, tmp_path):
    rows = "".join(f"{row % 7},{row % 5},1,00{row}\n" for row in range(40))
    path = tmp_path / "zeros.csv"
    path.write_text(f"y,mean,std,code\n{rows}")
    report = json.loads(
        calcheck("reject", path, "--criteria", "code", "--metrics", "mae", *FEW, "--format", "json").out
    )
    assert {each["slice"]["by"] for each in report["results"]} == {"code"}
