"""`calcheck slices`: groups named by columns, their verdicts, and what is refused."""

import json
import shlex

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calcheck as package
from tests.files import write
from tests.schemas import validate


def forecasts(n=600, seed=1, wrong=1.0):
    """Return normal forecasts whose uncertainties are too small by a factor for one sex."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, n)
    sex = np.where(rng.random(n) < 0.4, "f", "m")
    y = mean + np.where(sex == "f", wrong, 1) * std * rng.normal(size=n)
    age = rng.integers(20, 80, n)
    days = np.datetime64("2024-01-01") + rng.integers(0, 100, n)
    return {"y": y, "mean": mean, "std": std, "sex": sex, "age": age, "day": days}


@pytest.fixture
def preds(tmp_path):
    """Return the path of predictions that are overconfident for one sex."""
    return write(tmp_path / "preds.parquet", forecasts(wrong=1.6))


@pytest.fixture
def sliced(calcheck):
    """Run the command, and return its report."""

    def run(*arguments):
        ended = calcheck("slices", *arguments, "--format", "json")
        assert ended.code == 0, ended.err
        report = json.loads(ended.out)
        validate(report)
        return report

    return run


def by_group(report, metric):
    """Return the results of a metric by group."""
    return {each["slice"]["group"]: each for each in report["results"] if each["metric"] == metric}


def test_an_overconfident_group_is_named_with_what_would_mend_it(sliced, preds):
    report = sliced(preds, "--by", "sex")
    found = by_group(report, "zms")
    assert [found[name]["verdict"] for name in ("all rows", "sex=f", "sex=m")] == ["fail", "fail", "pass"]
    assert found["sex=f"]["direction"] == "too-narrow"
    assert found["sex=f"]["p_value_adjusted"] == pytest.approx(1 / 200)
    assert report["conclusion"]["answer"] == "no"
    text = next(each["text"] for each in report["conclusion"]["findings"] if each["text"].startswith("sex=f"))
    assert "overconfident: uncertainties should be 1.5 times as large; 90 % intervals hold 7" in text
    assert report["conclusion"]["next"][1] == f"calcheck recalibrate {preds} --by sex"


def test_values_and_intervals_are_those_of_evaluate_with_the_filter_of_the_group(sliced, calcheck, preds):
    report = sliced(preds, "--by", "sex,age:3,day:month", "--metrics", "zms,coverage")
    some = [each for each in report["results"] if each["verdict"] != "none"]
    assert len(some) > 15
    for result in some[:: len(some) // 6]:
        options = shlex.split(result["slice"]["filter"])
        arguments = [
            "evaluate",
            preds,
            *options,
            "--metrics",
            result["metric"],
            "--format",
            "json",
            "--replicates",
            "0",
        ]
        (alone,) = json.loads(calcheck(*arguments).out)["results"]
        assert_allclose(
            [result["value"], result["low"], result["high"]], [alone["value"], alone["low"], alone["high"]], rtol=1e-12
        )


def test_a_right_model_passes_in_all_groups(sliced, tmp_path):
    report = sliced(write(tmp_path / "right.parquet", forecasts()), "--by", "sex,age:4,std:3")
    assert {each["verdict"] for each in report["results"]} <= {"pass", "none"}
    assert report["conclusion"]["answer"] == "yes"


def test_small_groups_have_values_but_no_verdict(sliced, tmp_path):
    data = forecasts(200) | {"site": np.repeat(["big", "small"], [180, 20])}
    report = sliced(write(tmp_path / "few.parquet", data), "--by", "site")
    found = by_group(report, "coverage")["site=small"]
    assert found["verdict"] == "none"
    assert found["value"] is not None
    assert found["p_value_adjusted"] is None
    assert "groups with fewer than 30 rows are not judged (--min-rows)" in str(found["warnings"])
    assert by_group(sliced(tmp_path / "few.parquet", "--by", "site", "--min-rows", "20"), "zms")["site=small"][
        "p_value"
    ]


def test_the_table_names_groups_and_commands(calcheck, preds):
    ended = calcheck("slices", preds, "--by", "sex")
    assert "Can the uncertainties be trusted in every group?  NO" in ended.out
    assert f"calcheck evaluate {preds}" in ended.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--by names the columns that form groups"),
        (("--by", "height"), "height"),
        (("--by", "sex:3"), "column 'sex' holds text, which is not cut into bins"),
        (("--by", "sex", "--metrics", "ece"), "ece is no mean over rows"),
        (("--by", "sex", "--min-rows", "0"), "--min-rows must be at least 1, got 0"),
        (("--by", "y:500,age:4"), "groups, at most 1,000 can be compared"),
    ],
)
def test_bad_arguments_are_refused(calcheck, preds, arguments, message):
    ended = calcheck("slices", preds, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert len(ended.err.strip().splitlines()) == 1


def test_the_spread_of_draws_forms_no_groups(calcheck, tmp_path):
    rng = np.random.default_rng(0)
    data = {"y": rng.normal(size=60), **{f"sample_{each}": rng.normal(size=60) for each in range(5)}}
    ended = calcheck("slices", write(tmp_path / "draws.parquet", data), "--by", "std:3")
    assert ended.code == 2
    assert "the std of draws does not form groups" in ended.err


def test_python_takes_frames_and_returns_one_line_per_group_and_metric():
    import pandas as pd

    report = package.slices(pd.DataFrame(forecasts(wrong=1.6)), ["sex", "age:2"], metrics=["zms", "bias"])
    frame = report.to_frame()
    assert len(frame) == 2 * (1 + 2 + 2 + 4)
    assert frame.query("group == 'sex=f' and metric == 'zms'").verdict.item() == "fail"
    with pytest.raises(package.OptionError, match="by names the columns"):
        package.slices(pd.DataFrame(forecasts()))
