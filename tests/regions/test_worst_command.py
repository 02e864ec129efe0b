"""The worst region in reports, by the command line and in Python."""

import html
import json
import shlex

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from calcheck import evaluate

N = 600


@pytest.fixture(scope="module")
def frame():
    """Return predictions whose standard deviations are half of the right ones where a > 0.5, of two inputs."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, N))
    y = rng.normal(size=N) * np.where(a > 0.5, 2, 1)
    return pd.DataFrame({"y": y, "mean": 0.0, "std": 1.0, "a": a, "b": b})


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    frame.to_parquet(found := tmp_path_factory.mktemp("worst") / "preds.parquet")
    return found


def region_of(calcheck, path, *options):
    return json.loads(calcheck("evaluate", path, "--metrics", "zms,coverage", "--format", "json", *options).out)[
        "region"
    ]


@pytest.mark.slow
def test_the_answer_names_the_region_and_its_factor(calcheck, path):
    shown = calcheck("evaluate", path, "--inputs", "a,b", "--metrics", "zms,coverage", "--format", "markdown").out
    region = region_of(calcheck, path, "--inputs", "a,b")
    assert f"- **where**: {region['text']}" in html.unescape(shown.replace("\\", ""))
    assert region["direction"] == "too-narrow"
    assert region["text"].startswith(f"{region['where']} ({region['rows']} of {N} rows): ")
    value, low, high = (f"{region[name]:.2f}" for name in ("value", "low", "high"))
    assert f"{value} ({low} to {high}) times as wide would be right" in region["text"]


def test_its_factor_is_that_of_its_rows_and_its_filter_selects_them(calcheck, path):
    region = region_of(calcheck, path, "--inputs", "a,b")
    inside = json.loads(calcheck("width-factor", path, *shlex.split(region["filter"]), "--format", "json").out)
    assert inside["input"]["n"] == region["rows"]
    factor = inside["results"][0]
    assert_allclose([factor[name] for name in ("value", "low", "high")], [region[n] for n in ("value", "low", "high")])
    assert factor["options"]["level"] == region["level"]


@pytest.mark.slow
def test_the_searches_name_the_same_region_and_the_correction_has_its_own_limit_near_it(calcheck, path, frame):
    """Searches cut where scores change most, and the correction where the likelihood does: one region, two limits."""
    region = region_of(calcheck, path, "--inputs", "a,b")
    slices, corrected = (
        json.loads(calcheck(command, path, *column, "--format", "json").out)["results"]
        for command, column in (("slices", ("--columns", "a,b")), ("recalibrate", ("--inputs", "a,b")))
    )
    assert region["where"] in [each["slice"].get("group") for each in slices]
    (place,) = {each["slice"]["group"] for each in corrected if each["slice"].get("group", "").startswith("a>")}
    limits = [float(each.removeprefix("a>")) for each in (region["where"], place)]
    assert ((frame.a > min(limits)) & (frame.a <= max(limits))).mean() < 0.05


@pytest.mark.slow
def test_a_region_between_two_values_is_the_same_in_the_search_and_the_correction(calcheck, frame, tmp_path):
    y = frame.y / np.where(frame.a > 0.5, 2, 1) * np.where(abs(frame.a - 0.2) < 0.45, 2, 1)
    frame.assign(y=y).to_parquet(path := tmp_path / "preds.parquet")
    region = region_of(calcheck, path, "--inputs", "a,b")
    assert region["where"].startswith("a>-0.2")
    assert " and a<=" in region["where"]
    for command, column in (("slices", ("--columns", "a,b")), ("recalibrate", ("--inputs", "a,b"))):
        found = json.loads(calcheck(command, path, *column, "--format", "json").out)["results"]
        assert region["where"] in [each["slice"].get("group") for each in found]


@pytest.mark.slow
def test_python_has_the_same_region_as_the_command_line(calcheck, path, frame):
    told = region_of(calcheck, path, "--inputs", "a,b")
    found = evaluate(frame, ["zms", "coverage"], inputs=["a", "b"]).region
    assert found is not None
    assert (found.where, found.rows, found.p_value) == tuple(told[n] for n in ("where", "rows", "p_value"))


def test_its_level_is_that_of_the_answer(calcheck, path):
    region = region_of(calcheck, path, "--inputs", "a,b", "--level", "0.5")
    inside = json.loads(
        calcheck("width-factor", path, *shlex.split(region["filter"]), "--level", "0.5", "--format", "json").out
    )
    assert (region["level"], region["value"]) == (0.5, inside["results"][0]["value"])


@pytest.mark.slow
def test_results_of_rows_say_which_are_in_the_region(calcheck, path, frame, tmp_path):
    region = region_of(calcheck, path, "--inputs", "a,b", "--pointwise", tmp_path / "rows.parquet")
    inside = pd.read_parquet(tmp_path / "rows.parquet")["worst_region"]
    assert inside.sum() == region["rows"]
    assert (frame.a[inside] > 0.4).all()
    report = evaluate(frame, ["zms", "coverage"], inputs=["a", "b"])
    assert (report.rows("worst_region")["worst_region"].to_numpy() == inside.to_numpy()).all()


def test_a_distribution_without_moments_has_a_region(frame):
    rng = np.random.default_rng(5)
    y = rng.standard_cauchy(N) + 2 * (frame.a > 0.5)
    parameters = {"loc": np.zeros(N), "scale": np.ones(N)}
    region = evaluate(frame[["a"]], ["nll", "pit"], y=y, dist="cauchy", param=parameters, inputs=["a"]).region
    assert region is not None
    assert region.direction == "predictions-too-low"
    assert 0.5 < region.value < 1.5


def test_a_right_model_and_rows_without_inputs_have_no_region(calcheck, path, frame):
    right = frame.assign(y=frame.y / np.where(frame.a > 0.5, 2, 1))
    assert evaluate(right, ["zms", "coverage"], inputs=["a", "b"], seed=1).region is None
    assert region_of(calcheck, path) is None


@pytest.mark.slow
def test_dependent_rows_have_no_region(frame):
    assert evaluate(frame, ["zms", "coverage"], inputs=["a", "b"], block=10).region is None


@pytest.mark.slow
def test_an_embedding_has_a_ball():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N, 20))
    wrong = np.linalg.norm(x - x[5], axis=1) < np.quantile(np.linalg.norm(x - x[5], axis=1), 0.25)
    y = rng.normal(size=N) + 1.5 * wrong
    region = evaluate(y=y, mean=np.zeros(N), std=np.ones(N), embedding=x, metrics=["zms", "coverage"]).region
    assert region is not None
    assert region.where.startswith("nearest to row ")
    assert (region.direction, region.level, region.filter) == ("predictions-too-low", None, "")
    assert 1 < region.value < 2
    assert "standard deviations above the predictions" in region.text
