"""`--weights`: commands that take sampling weights, and what they refuse."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.files import columns, write
from tests.schemas import validate

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
    out = calcheck("evaluate", preds, "--weights", "w", "--no-bootstrap", "--replicates", "19").out
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
