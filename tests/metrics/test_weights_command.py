"""`--weights`: commands that take sampling weights, and what they refuse."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calcheck as package
from tests.helpers.files import columns, write
from tests.helpers.schemas import validate

QUICK = ("--replicates", "19", "--no-bootstrap", "--format", "json")


@pytest.fixture
def preds(tmp_path):
    data = columns(n=60) | {"w": np.arange(60.0), "sex": np.where(np.arange(60) % 2, "f", "m")}
    return write(tmp_path / "preds.parquet", data)


def values(ended, metric="zms"):
    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out)
    validate(report)
    return [each["value"] for each in report["results"] if each["metric"] == metric]


@pytest.mark.slow
def test_commands_give_the_same_weighted_values(calcheck, preds):
    (alone,) = values(calcheck("zms", preds, "--weights", "w", *QUICK))
    (unweighted,) = values(calcheck("zms", preds, *QUICK))
    assert abs(alone - unweighted) > 1e-3
    assert values(calcheck("evaluate", preds, "--weights", "w", *QUICK)) == [alone]
    assert values(calcheck("check", preds, "--weights", "w", "--fail-on", "zms > 99", *QUICK)) == [alone]
    total, *groups = values(calcheck("slices", preds, "--by", "sex", "--weights", "w", *QUICK))
    assert total == alone
    share = np.arange(0, 60, 2).sum() / np.arange(60).sum()  # of the weights of m, the second group
    assert_allclose(groups[0] * (1 - share) + groups[1] * share, alone, rtol=1e-10)


def test_evaluate_lists_metrics_without_a_weighted_form(calcheck, preds):
    out = calcheck("evaluate", preds, "--weights", "w", "--no-bootstrap", "--replicates", "19", "--table").out
    assert "has no weighted form" in out
    assert "means are weighted by 'w': 60 rows are as accurate as" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "--metrics", "lzms"), "lzms has no weighted form"),
        (("lzms",), "lzms has no weighted form"),
        (("zms", "--plot", "a.svg"), "--plot does not apply to weighted means (--weights)"),
        (("zms", "--save-state", "a"), "--save-state does not apply to weighted means (--weights)"),
        (("slices",), "a search has no weighted form: compare groups with --by"),
        (("check", "--fail-on", "slices.min_p < 0.01"), "a search has no weighted form"),
    ],
)
def test_what_has_no_weighted_form_is_refused(calcheck, preds, arguments, message):
    name, *others = arguments
    assert message in calcheck(name, preds, "--weights", "w", *others).refused()


def test_a_baseline_is_not_weighted(calcheck, preds):
    refused = calcheck("check", preds, "--weights", "w", "--against", preds, "--no-worse").refused()
    assert "--against does not apply to weighted means (--weights)" in refused


def test_an_absent_column_is_refused(calcheck, preds):
    assert "height" in calcheck("zms", preds, "--weights", "height").refused()


@pytest.fixture
def other(tmp_path):
    """Return the path of predictions of another model for the same rows."""
    data = columns(n=60) | {"w": np.arange(60.0)}
    return write(tmp_path / "other.parquet", data | {"mean": data["mean"] + 0.3})


def test_compare_has_weighted_values_and_differences(calcheck, preds, other):
    plain = calcheck("compare", preds, other, "--metrics", "mae,zms", *QUICK)
    found = calcheck("compare", preds, other, "--metrics", "mae,zms", "--weights", "w", *QUICK)
    first, second, difference = values(found, "mae")
    assert_allclose(difference, second - first, rtol=1e-12)
    assert [first] == values(calcheck("mae", preds, "--weights", "w", *QUICK), "mae")
    assert abs(difference - values(plain, "mae")[2]) > 1e-6
    assert "60 rows are as accurate as" in str(json.loads(found.out)["results"][0]["warnings"])


def test_compare_skips_what_has_no_weighted_form_unless_it_is_named(calcheck, preds, other):
    report = json.loads(calcheck("compare", preds, other, "--weights", "w", *QUICK).out)
    assert {each["metric"] for each in report["skipped"]} >= {"lzms", "lrce"}
    refused = calcheck("compare", preds, other, "--weights", "w", "--metrics", "lzms").refused()
    assert "lzms has no weighted form" in refused


def test_models_with_different_weights_are_not_compared(calcheck, preds, tmp_path):
    data = columns(n=60) | {"w": np.arange(60.0) + (np.arange(60) == 7)}
    other = write(tmp_path / "other.parquet", data)
    refused = calcheck("compare", preds, other, "--weights", "w", "--metrics", "mae").refused()
    assert "the weights 'w' of preds and other differ in 59 rows, first in row 1" in refused


def test_a_weighted_page_has_weighted_metrics_and_states_why_there_is_no_map(calcheck, preds, tmp_path):
    page = tmp_path / "page.html"
    arguments = ("report", preds, "-o", page, "--weights", "w", "--metrics", "zms,coverage", *QUICK[:3])
    assert calcheck(*arguments).code == 0
    text = page.read_text()
    assert "the map and the groups of a page count rows" in text
    (value,) = values(calcheck("zms", preds, "--weights", "w", *QUICK))
    assert f'"value":{value}' in text.replace(" ", "")
    assert "--plot-by does not apply to weighted means" in calcheck(*arguments, "--plot-by", "mean").refused()


def test_groups_state_their_effective_numbers_of_rows(calcheck, preds):
    report = json.loads(calcheck("slices", preds, "--by", "sex", "--weights", "w", *QUICK).out)
    weights = np.arange(0, 60, 2.0)
    found = next(each["slice"] for each in report["results"] if each["slice"]["group"] == "sex=m")
    assert_allclose(found["effective_rows"], weights.sum() ** 2 / (weights**2).sum())


@pytest.mark.slow
def test_python_functions_take_weights(calcheck, preds, other):
    (alone,) = values(calcheck("zms", preds, "--weights", "w", *QUICK))
    quick = {"weights": "w", "replicates": 19, "resamples": 0}
    report = package.evaluate(preds, **quick)
    assert next(each.value for each in report.results if each.metric == "zms") == alone
    assert {"lzms", "cce"} <= {each.metric for each in report.skipped}
    assert "count rows" in report.to_html()
    assert package.slices(preds, by="sex", metrics="zms", **quick).results[0].value == alone
    assert package.compare({"a": preds, "b": other}, "zms", **quick).results[0].value == alone


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        ("evaluate", {"metrics": "lzms"}, "lzms has no weighted form"),
        ("evaluate", {"metrics": "zms", "pictures": True}, "pictures does not apply to weighted means"),
        ("evaluate", {"metrics": "zms", "cluster": "sex"}, "cluster does not apply to weighted means"),
        ("evaluate", {"metrics": "zms", "weights": 3}, "weights"),
        ("slices", {}, "a search has no weighted form: compare groups"),
        ("reject", {}, "there is no argument 'weights'"),
    ],
)
def test_python_functions_refuse_what_has_no_weighted_form(preds, function, options, message):
    with pytest.raises(package.CalcheckError, match=message):
        getattr(package, function)(preds, **{"weights": "w", **options})
