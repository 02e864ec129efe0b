"""Null distributions on the command line: contradictory options, reports, pointwise output and reproducibility."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.inference.p_values_and_verdicts import benjamini_hochberg
from tests.helpers.files import columns, write
from tests.helpers.schemas import validate
from tests.helpers.shorthand import texts

DIABETES = Path(__file__).parents[2] / "examples" / "diabetes.parquet"
MEASURED = "age,sex,bmi,bp,s1,s2,s3,s4,s5,s6"


@pytest.fixture
def wrong(tmp_path):
    """Return the path of predictions whose spread is far too small, with an input and a narrow column."""
    parts = columns(n=60)
    parts["std"] = 0.2 * parts["std"]
    return write(tmp_path / "wrong.parquet", parts | {"topic": np.array(["news", "prose"] * 30)})


def reported(calcheck, *arguments):
    """Run a command, and return its report; it must match the schema."""
    ended = calcheck(*arguments, "--format", "json")
    assert ended.code == 0, ended
    report = json.loads(ended.out)
    validate(report)
    return report


@pytest.mark.defaults
def test_by_default_there_are_199_replicates_and_more_while_the_verdict_is_open(calcheck, preds):
    report = reported(calcheck, "ece", preds)
    (result,) = report["results"]
    count, p, error = result["details"]["null"]["replicates"], result["p_value"], result["p_value_mc_error"]
    assert count in (199, 398, 796, 1592, 3184, 6368, 9999)
    assert abs(p - 0.05) >= 3 * error
    assert_allclose(error, np.sqrt(p * (1 - p) / count), rtol=1e-12)
    (fixed,) = reported(calcheck, "ece", preds, "--replicates", count // 2)["results"]
    assert count == 199 or abs(fixed["p_value"] - 0.05) < 3 * fixed["p_value_mc_error"]
    assert report["settings"]["replicates"] is None
    assert result["reference_kind"] == "simulated"
    assert result["reference_low"] is None
    assert result["reference"] < result["reference_high"]
    assert_allclose(p * (count + 1), round(p * (count + 1)), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.defaults
def test_the_number_of_rejected_inputs_does_not_depend_on_the_seed(calcheck):
    """With 19,990 replicates none of the 442 inputs is rejected; nor with the default of 199."""
    for seed in (5, 6):
        report = reported(calcheck, "cce", DIABETES, "--inputs", MEASURED, "--seed", seed)
        assert report["results"][0]["details"]["rejected"]["count"] <= 1


def test_the_number_of_replicates_can_be_set(calcheck, preds):
    report = reported(calcheck, "crps", preds, "--replicates", "59")
    assert report["settings"]["replicates"] == report["results"][0]["details"]["null"]["replicates"] == 59
    assert_allclose(report["results"][0]["p_value"] * 60 % 2, 0, atol=1e-9)


def test_without_a_null_distribution_only_exact_references_remain(calcheck, preds):
    report = reported(calcheck, "ece", preds, "--no-null")
    (result,) = report["results"]
    assert report["settings"]["replicates"] == 0
    absent = ("reference", "reference_low", "reference_high", "reference_kind", "p_value", "zeta")
    assert [result[name] for name in absent] == [None] * 6
    assert result["verdict"] == "none"
    assert "null" not in result["details"]
    exact = reported(calcheck, "zms", preds, "--no-null")["results"][0]
    assert (exact["reference"], exact["reference_kind"], exact["p_value"]) == (1.0, "exact", None)
    assert exact["verdict"] == "none"
    assert "effective rows" in texts(exact["warnings"])[-1]
    assert "was not simulated (--replicates R simulates it, --no-null turns it off)" in texts(exact["warnings"])[-1]


def test_without_a_null_distribution_the_verdict_is_based_on_zeta(calcheck, tmp_path):
    rng, parts = np.random.default_rng(0), columns(n=600)
    path = write(tmp_path / "right.parquet", parts | {"y": rng.normal(parts["mean"], parts["std"])})
    result = reported(calcheck, "zms", path, "--no-null")["results"][0]
    assert result["verdict"] == ("pass" if abs(result["zeta"]) <= 1 else "fail")
    assert texts(result["warnings"])[-1].startswith(
        "the verdict is based on zeta: the null distribution was not simulated"
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("ece", "--replicates", "99", "--no-null"), "--replicates and --no-null contradict each other"),
        (("ece", "--replicates", "18"), "--replicates must be at least 19 and at most 1,000,000, got 18"),
        (("ece", "--replicates", "-5"), "--replicates must be at least 19 and at most 1,000,000, got -5"),
        (("cce", "--fdr", "0"), "--fdr must lie strictly between 0 and 1, got 0"),
        (("cce", "--fdr", "1.5"), "--fdr must lie strictly between 0 and 1, got 1.5"),
        (("cce", "--estimator", "unbiased", "--lambda-model", "0.2"), "Remove --lambda-model"),
        (
            ("ece", "--error-dist", "t6", "--dist", "gaussian"),
            "--error-dist applies to means and standard deviations",
        ),
        (
            ("ece", "--error-dist", "t6", "--samples", "mean"),
            "--error-dist applies to means and standard deviations",
        ),
    ],
)
def test_contradictory_options_are_refused(calcheck, preds, arguments, expected):
    name, *options = arguments
    assert expected in calcheck(name, preds, *options).refused()


def test_the_unbiased_estimator_accepts_an_equal_lambda_model(calcheck, preds):
    assert calcheck("cce", preds, "--estimator", "unbiased", "--lambda-model", "0.1", "--replicates", "19").code == 0


def test_the_unbiased_estimator_reports_its_noise(calcheck, preds):
    plain = reported(calcheck, "cce", preds, "--replicates", "39")["results"][0]
    less = reported(calcheck, "cce", preds, "--estimator", "unbiased", "--replicates", "39")["results"][0]
    assert less["value"] < plain["value"] ** 2 + 1
    assert less["details"]["noise"] > 0
    assert less["details"]["noise_error"] == 0
    assert abs(less["reference"]) < less["details"]["noise"]


def test_too_few_replicates_for_the_confidence_give_no_verdict(calcheck, preds):
    """The smallest p-value of 19 replicates is 2/20 for two-sided alternatives, and 1/20 for one-sided ones."""
    both, one = reported(calcheck, "evaluate", preds, "--metrics", "crps,ece", "--replicates", "19")["results"]
    both, one = sorted((both, one), key=lambda result: result["metric"])
    assert both["verdict"] == "none"
    assert any("19 replicates cannot reject at a confidence of 0.95" in warning for warning in texts(both["warnings"]))
    assert one["verdict"] in ("pass", "fail")
    assert (
        reported(calcheck, "crps", preds, "--replicates", "19", "--confidence", "0.9")["results"][0]["verdict"]
        != "none"
    )


@pytest.mark.defaults  # 59 replicates have no p-value of at most 0.01
@pytest.mark.parametrize("name", ["ece", "zms", "cce", "coverage"])
def test_an_overconfident_model_fails(calcheck, wrong, name):
    (result,) = reported(calcheck, name, wrong)["results"]
    assert result["verdict"] == "fail"
    assert result["p_value"] <= 0.01


@pytest.mark.slow
def test_evaluate_shows_references_and_verdicts_of_all_metrics(calcheck, wrong):
    ended = calcheck("evaluate", wrong, "--replicates", "39", "--table")
    lines = {line.split()[0]: line for line in ended.out.splitlines() if line.split()}
    for name in ("ece", "pit", "cce", "crps", "ence"):
        assert " fail, " in lines[name]
    for name in ("sharpness", "width", "cv"):
        assert "fail" not in lines[name]
        assert "pass" not in lines[name]
    assert "the metric depends on the predictions only" in " ".join(ended.out.split())


@pytest.mark.parametrize("command", [("cce",), ("lzms", "--bins", "3")])
def test_repeated_runs_are_identical_byte_by_byte(calcheck, preds, command):
    name, *options = command
    first, second = (calcheck(name, preds, *options, "--replicates", "39", "--format", "json") for _ in range(2))
    assert first.out == second.out
    other = calcheck(name, preds, *options, "--replicates", "39", "--seed", "1", "--format", "json")
    found, others = (json.loads(each.out)["results"] for each in (first, other))
    assert [each["value"] for each in found if each["metric"] != "lzms"] == pytest.approx(
        [each["value"] for each in others if each["metric"] != "lzms"]
    )
    assert [each["reference"] for each in found] != [each["reference"] for each in others] or name == "lzms"


@pytest.mark.slow
def test_metrics_have_the_same_reference_alone_and_together(calcheck, preds):
    together = {
        result["metric"]: result for result in reported(calcheck, "evaluate", preds, "--replicates", "39")["results"]
    }
    for name in ("ece", "ence", "cce", "zms", "lzms"):
        (alone,) = reported(calcheck, name, preds, "--replicates", "39")["results"]
        for field in ("reference", "reference_low", "reference_high", "p_value", "verdict"):
            assert alone[field] == together[name][field], (name, field)


POINTWISE = [
    "reference_mean",
    "reference_q05",
    "reference_q50",
    "reference_q95",
    "p_value",
    "p_approximate",
    "significant",
]


def test_pointwise_output_has_the_significance_of_each_input(calcheck, wrong, tmp_path):
    out = tmp_path / "points.parquet"
    report = reported(calcheck, "cce", wrong, "--pointwise", out, "--fdr", "0.1")
    found = pq.read_table(out).to_pydict()
    assert set(POINTWISE) | {"id", "cce", "topic", "y"} <= set(found)
    p, flags = np.array(found["p_value"]), np.array(found["significant"])
    errors = np.array(found["cce"])
    assert flags.any()
    assert (~flags | benjamini_hochberg(p, 0.1)).all()
    dropped = benjamini_hochberg(p, 0.1) & ~flags
    assert not dropped.any() or errors[dropped].max() < np.median(errors[flags])  # at the border of a wrong region
    rejected = report["results"][0]["details"]["rejected"]
    assert (rejected["count"], rejected["inputs"], rejected["fdr"]) == (flags.sum(), 60, 0.1)
    assert report["settings"]["fdr"] == 0.1
    low, middle, high = (np.array(found[name]) for name in POINTWISE[1:4])
    assert ((low < middle) & (middle < high)).all()
    clearest = report["results"][0]["details"]["most_significant"]
    assert 0 < len(clearest) <= 5
    assert clearest[0]["p_value"] == p.min()
    assert {"row", "id", "cce", "topic"} <= set(clearest[0])
    neighbors = np.array(found["effective_neighbors"])
    assert ((neighbors > 0) & (neighbors <= 60)).all()


def test_the_table_shows_how_many_inputs_are_rejected(calcheck, wrong):
    table = calcheck("cce", wrong, "--replicates", "19").out
    assert re.search(
        r"^rejected +in the neighborhood of \d+ of 60 inputs · fdr 0\.05 · p_value_method ", table, re.MULTILINE
    )
    assert re.search(
        r"^reach .* distance [\d.]+ · unit of inputs with norm 1 · share_of_rows 0\.\d+$", table, re.MULTILINE
    )


def test_without_a_null_distribution_pointwise_output_has_values_only(calcheck, wrong, tmp_path):
    out = tmp_path / "points.parquet"
    assert calcheck("cce", wrong, "--pointwise", out, "--no-null").code == 0
    assert not set(POINTWISE) & set(pq.read_table(out).column_names)


def test_evaluation_points_are_tested_without_targets(calcheck, wrong, tmp_path):
    at, out = tmp_path / "at.npy", tmp_path / "points.csv"
    np.save(at, np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32))
    report = reported(calcheck, "cce", wrong, "--at", at, "--pointwise", out)
    assert report["results"][0]["details"]["rejected"]["inputs"] == 7
    lines = out.read_text().splitlines()
    assert len(lines) == 8
    assert set(POINTWISE) <= {name.strip('"') for name in lines[0].split(",")}


def test_the_error_distribution_t6_is_a_student_t_with_the_same_std(calcheck, preds):
    """NLL by scipy: 6 degrees of freedom and a scale of std sqrt(2/3), whose standard deviation is std."""
    parts = columns(n=40)
    plain = reported(calcheck, "nll", preds, "--no-null")["results"][0]["value"]
    heavy = reported(calcheck, "nll", preds, "--error-dist", "t6", "--no-null")["results"][0]["value"]
    scale = parts["std"] * np.sqrt(2 / 3)
    assert_allclose(plain, -stats.norm(parts["mean"], parts["std"]).logpdf(parts["y"]).mean(), rtol=1e-12)
    assert_allclose(heavy, -stats.t(6, parts["mean"], scale).logpdf(parts["y"]).mean(), rtol=1e-12)


@pytest.mark.defaults
def test_the_error_distribution_changes_the_reference_and_not_the_value(calcheck, tmp_path):
    """Heavier tails raise the ENCE of a perfect model; a file of errors does not state their distribution."""
    rng = np.random.default_rng(0)
    path = write(tmp_path / "errors.parquet", {"error": rng.normal(size=400), "std": rng.uniform(0.5, 1.5, 400)})
    normal, heavy = (
        reported(calcheck, "ence", path, "--error-dist", shape)["results"][0] for shape in ("normal", "t6")
    )
    assert normal["value"] == heavy["value"]
    assert heavy["reference"] > 1.15 * normal["reference"]
    plain = reported(calcheck, "ence", path)["results"][0]
    assert plain["p_value"] == normal["p_value"]
    assert (normal["verdict"], plain["verdict"]) == ("fail", "none")
    assert "the file does not state the error distribution" in texts(plain["warnings"])[-1]
