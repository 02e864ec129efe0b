"""`calcheck compare --by-folder`: the same models on several data sets, side by side."""

import csv
import io
import json
import re

import numpy as np
import pytest

from tests.helpers.files import columns, write
from tests.helpers.schemas import validate

QUICK = ("--resamples", 200, "--permutations", 99)
SIZES = {"age": 40, "crowd": 60}


@pytest.fixture
def folders(tmp_path):
    """Return the files of models a and b in two folders; those of crowd in the other order."""
    files = {}
    for seed, (dataset, rows) in enumerate(SIZES.items()):
        first = columns(n=rows, seed=seed)
        second = first | {"mean": 0.5 * first["y"], "std": np.full(rows, 0.8)}
        (tmp_path / dataset).mkdir()
        for name, table in (("a", first), ("b", second)):
            files[dataset, name] = write(tmp_path / dataset / f"{name}.parquet", table)
    return files


@pytest.fixture
def compared(calcheck):
    """Run a comparison, and return its output in a format."""

    def run(files, *arguments, form="json"):
        ended = calcheck("compare", *files, *arguments, *QUICK, "--format", form)
        assert (ended.code, ended.err) == (0, "")
        return ended.out

    return run


def in_order(folders):
    """Return the files; those of the second data set in another order."""
    return [folders[each] for each in (("age", "a"), ("age", "b"), ("crowd", "b"), ("crowd", "a"))]


def numbers(results):
    """Return value, limits and p-value of each result, by metric and slice."""
    return {
        (each["metric"], *(each["slice"].get(name, "") for name in ("model", "minus"))): [
            each[name] for name in ("value", "low", "high", "p_value")
        ]
        for each in results
    }


def test_each_data_set_has_the_results_of_its_own_comparison(compared, folders):
    options = ("--metrics", "zms,crps,cce")
    report = json.loads(compared(in_order(folders), "--by-folder", *options))
    validate(report)
    for dataset in SIZES:
        alone = json.loads(compared([folders[dataset, name] for name in "ab"], *options))["results"]
        found = [each for each in report["results"] if each["slice"]["dataset"] == dataset]
        assert numbers(found) == numbers(alone)
        ranks = [[each["details"].get("rank") for each in results] for results in (found, alone)]
        assert ranks[0] == ranks[1]
    assert report["settings"]["datasets"] == list(SIZES)
    assert report["settings"]["models"] == ["a", "b"]
    assert report["input"]["n"] == sum(SIZES.values())
    assert [file["path"] for file in report["input"]["files"]] == [
        folders[dataset, name] for dataset in SIZES for name in "ab"
    ]


@pytest.mark.slow
def test_data_sets_are_groups_of_columns_in_every_format(compared, folders):
    options = ("--by-folder", "--metrics", "zms,crps")

    def shown(form):
        return compared(in_order(folders), *options, *["--table"] * (form == "table"), form=form)

    assert "crowd: crps " in compared(in_order(folders), *options, form="table")  # of the first screen
    lines = [line.split() for line in shown("table").splitlines()]
    heads = lines.index(["age", "crowd"])
    assert lines[heads + 1] == ["zms", "crps", "zms", "crps"]
    assert "age: b − a" in shown("table")
    assert "| model | age: zms → 1 | age: crps ↓ y | crowd: zms → 1 | crowd: crps ↓ y |" in shown("markdown")
    assert r"\multicolumn{1}{c}{} & \multicolumn{2}{c}{age} & \multicolumn{2}{c}{crowd} \\" in shown("latex")
    assert r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}" in shown("latex")
    spans = re.findall(r'colspan="(\d)" scope="colgroup">(\w*)<', shown("html"))
    assert spans == [("1", ""), ("2", "age"), ("2", "crowd")]
    rows = list(csv.DictReader(io.StringIO(shown("csv"))))
    assert [(row["dataset"], row["model"]) for row in rows if row["metric"] == "zms"] == [
        (dataset, model) for dataset in SIZES for model in "abb"
    ]


def test_a_comparison_of_one_data_set_has_no_groups(compared, folders):
    files = [folders["age", name] for name in "ab"]
    assert "colgroup" not in compared(files, "--metrics", "zms", form="html")
    assert "cmidrule" not in compared(files, "--metrics", "zms", form="latex")


def test_a_metric_that_one_data_set_lacks_has_results_for_the_others(compared, folders, tmp_path):
    for name in "ab":
        write(tmp_path / "crowd" / f"{name}.parquet", {k: v for k, v in columns(n=9).items() if k != "embedding"})
    out = compared(in_order(folders), "--by-folder", "--metrics", "zms,cce", form="markdown")
    assert "| model | age: zms → 1 | age: cce ↓ | crowd: zms → 1 |" in out
    assert "- skipped cce: crowd: needs inputs" in out


def test_pictures_have_a_panel_for_each_data_set(compared, folders, tmp_path):
    path = tmp_path / "differences.svg"
    compared(in_order(folders), "--by-folder", "--metrics", "crps", "--plot", path)
    drawn = path.read_text()
    assert all(f"{dataset}: crps, left is better" in drawn for dataset in SIZES)


def test_folders_that_do_not_name_the_data_sets_are_refused(calcheck, folders, tmp_path, monkeypatch):
    files = in_order(folders)
    line = calcheck("compare", *files[:3], "--by-folder").refused()
    assert "the data sets need the same models: the first has a, b, and crowd has b" in line
    monkeypatch.chdir(tmp_path / "age")
    line = calcheck("compare", "a.parquet", "b.parquet", "--by-folder").refused()
    assert "--by-folder needs files named DATASET/MODEL, got a.parquet" in line
    (tmp_path / "other" / "age").mkdir(parents=True)
    other = write(tmp_path / "other" / "age" / "a.parquet", columns())
    line = calcheck("compare", *files, other, "--by-folder").refused()
    assert "--by-folder needs folders with different names, got" in line
