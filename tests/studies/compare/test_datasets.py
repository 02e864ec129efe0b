"""`calcheck.compare` in Python of the same models on several data sets."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import calcheck
from calcheck.errors import CalcheckError
from calcheck.render.data import fields_of

N = 60


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    mean = rng.normal(size=N)
    return pd.DataFrame({"y": mean + rng.normal(size=N), "mean": mean, "std": np.full(N, 0.5)})


def two_datasets(frame):
    """Return two models on two data sets, the second in the other order."""
    other = frame.head(30).assign(y=lambda rows: 1.5 * rows["y"])
    return {
        "boston": {"a": frame, "b": frame.assign(std=1.0)},
        "energy": {"b": other.assign(std=1.0), "a": other},
    }


QUICK = {"resamples": 200, "permutations": 99}


def test_data_sets_side_by_side_have_the_numbers_of_the_command_line(frame, tmp_path, capfd, monkeypatch):
    from calcheck.cli import main

    files = []
    for dataset, models in two_datasets(frame).items():
        (tmp_path / dataset).mkdir()
        for name, rows in models.items():
            rows.to_parquet(path := tmp_path / dataset / f"{name}.parquet")
            files.append(str(path))
    options = ["--metrics", "zms,crps", "--resamples", "200", "--permutations", "99", "--format", "json"]
    monkeypatch.setattr(sys, "argv", ["calcheck", "compare", *files, "--by-folder", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    expected = json.loads(capfd.readouterr().out)
    report = calcheck.compare(two_datasets(frame), ["zms", "crps"], **QUICK)
    assert ended.value.code == 0
    assert fields_of(report)["results"] == expected["results"]
    assert report.settings["datasets"] == expected["settings"]["datasets"] == ["boston", "energy"]
    paths = {
        dataset: {name: tmp_path / dataset / f"{name}.parquet" for name in models}
        for dataset, models in two_datasets(frame).items()
    }
    assert calcheck.compare(paths, ["zms", "crps"], **QUICK).results == report.results


def test_each_data_set_has_the_results_of_a_comparison_of_its_own(frame):
    datasets = two_datasets(frame)
    options = {"resamples": 0, "permutations": 0}
    found = calcheck.compare(datasets, ["zms", "crps"], **options).to_frame()
    assert found.columns[:4].tolist() == ["metric", "dataset", "model", "minus"]
    assert found.shape[0] == 2 * 6
    for dataset, models in datasets.items():
        alone = calcheck.compare({name: models[name] for name in "ab"}, ["zms", "crps"], **options).to_frame()
        own = found[found["dataset"] == dataset].drop(columns="dataset").reset_index(drop=True)
        pd.testing.assert_frame_equal(own[alone.columns.tolist()], alone)
    wide = found[found["minus"].isna()].pivot_table(index="model", columns=["dataset", "metric"], values="value")
    assert wide.shape == (2, 4)


def test_notebooks_show_data_sets_as_groups_of_columns(frame):
    html = calcheck.compare(two_datasets(frame), ["zms", "crps"], resamples=0).to_html()
    spans = re.findall(r'colspan="(\d)" scope="colgroup">(\w*)<', html)
    assert spans == [("1", ""), ("2", "boston"), ("2", "energy")]
    assert "<svg" in calcheck.compare(two_datasets(frame), ["zms", "crps"], resamples=0)._repr_html_()


def test_mappings_of_columns_are_models_and_not_data_sets(frame):
    columns = {name: frame[name].to_numpy() for name in frame}
    chunks = {name: pa.chunked_array([frame[name]]) for name in frame}
    expected = calcheck.compare({"a": frame, "b": frame.assign(std=1.0)}, "crps", **QUICK).results
    for model in (columns, chunks):
        flat = {"a": model, "b": frame.assign(std=1.0)}
        assert calcheck.compare(flat, "crps", **QUICK).results == expected
        nested = calcheck.compare({"boston": flat}, "crps", resamples=0, permutations=0)
        assert [result.value for result in nested.results] == [result.value for result in expected]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda sets: sets | {"one": sets["boston"]["a"]},
            r"'boston' holds models, and 'one' is a model: pass models",
        ),
        (lambda sets: sets | {"deep": sets}, r"'boston' of 'deep' holds models: data sets hold models, and no further"),
        (lambda sets: sets | {"energy": {"a": sets["energy"]["a"]}}, r"the first has a, b, and energy has a$"),
        (lambda sets: sets | {"energy": {}}, r"the first has a, b, and energy has none"),
        (lambda sets: {1: sets["boston"], "1": sets["energy"]}, r"data sets need different names, got 1, '1'"),
        (lambda sets: {"boston": {"a": sets["boston"]["a"]}}, r"^boston: a comparison needs at least two models"),
        (
            lambda sets: sets | {"energy": sets["energy"] | {"a": sets["boston"]["a"]}},
            r"^energy: a has 60 rows, b has 30",
        ),
        (
            lambda sets: sets | {"energy": sets["energy"] | {"a": sets["energy"]["a"].drop(columns="std")}},
            r"^energy: DataFrame",
        ),
    ],
)
def test_wrong_data_sets_are_refused(frame, change, message):
    with pytest.raises(CalcheckError, match=message):
        calcheck.compare(change(two_datasets(frame)), "crps", **QUICK)
