"""Corrections for new inputs."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from calcheck.distributions import Gaussian
from calcheck.errors import DataError
from calcheck.execution.run import RowDependence
from calcheck.predictions import Predictions
from calcheck.recalibration.cross_validation import (
    WEIGHTS,
    CrossValidation,
    cross_validate,
    fitted_rows,
    row_score,
)
from calcheck.recalibration.methods import FitOptions, Method

FEW = ("--method", "scale", "--replicates", 0, "--resamples", 0)


def rows_with(weights):
    n = len(weights)
    predictive = Gaussian(np.zeros(n), np.ones(n))
    return Predictions(y=np.arange(1.0, n + 1), predictive=predictive, columns={WEIGHTS: np.array(weights, float)})


def test_rows_are_fitted_as_often_as_their_weights_say():
    """Weights of 3, 1, 1, 0 count as 25/11 = 2 rows, at the shares 1/4 and 3/4 of .6, .8, 1, 1: 0 and 1."""
    assert fitted_rows(rows_with([3, 1, 1, 0])).row_numbers().tolist() == [0, 1]
    assert fitted_rows(rows_with([1, 1, 1, 1])).row_numbers().tolist() == [0, 1, 2, 3]
    plain = rows_with([1, 2]).without()
    assert fitted_rows(Predictions(y=plain.y, predictive=plain.predictive)).row_numbers().tolist() == [0, 1]


def test_methods_are_compared_by_weighted_scores():
    """Differences of 1, 3, 3 with weights 2, 1, 1 have the mean 2, and the variance (4 + 1 + 1) 3/2 / 4^2."""
    rows = rows_with([2, 1, 1])
    score = row_score(rows.distributions(), "crps", [], ())
    found = CrossValidation(rows, np.arange(3), FitOptions(), score).compare(np.array([1.0, 3, 3]), np.zeros(3))
    assert (found.value, found.error) == pytest.approx((2, (9 / 16) ** 0.5))
    assert CrossValidation(rows, np.arange(3), FitOptions(), score).candidate(Method("none")).mean == pytest.approx(
        np.average(rows.distributions().crps(rows.y), weights=[2, 1, 1])
    )


@pytest.mark.parametrize(("elsewhere", "left"), [(0.0, 0), (0.01, 0), ([0.5] * 15 + [0.0] * 185, 15)])
def test_a_correction_is_not_fitted_without_the_fold_that_has_the_rows_like_new_ones(elsewhere, left):
    """Of 250 rows in 5 blocks, the first block has all weight, all but 4 %, or all but that of 15 equal rows."""
    weights = np.r_[np.ones(50), np.full(200, elsewhere)]
    methods = [Method("none"), Method("scale")]
    with pytest.raises(DataError, match=f"without one of 5 folds, {left} rows .* count, and 20 are needed"):
        cross_validate(rows_with(weights), methods, FitOptions(), dependence=RowDependence(block=50))
    enough = rows_with(np.r_[np.ones(50), np.full(200, 0.5)])
    assert len(cross_validate(enough, methods, FitOptions(), dependence=RowDependence(block=50))[1]) == 2


def test_a_correction_for_new_inputs_is_that_of_rows_like_them_and_needs_enough_of_these(calcheck, tmp_path):
    """Standard deviations are right below 0, and half of what they should be above, where new inputs are."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=180)
    y = np.where(x > 0, 2.0, 1.0) * rng.normal(size=180)
    pd.DataFrame({"a": x, "y": y, "mean": 0.0, "std": 1.0}).to_csv(tmp_path / "old.csv", index=False)
    pd.DataFrame({"a": 0.9 + 0.3 * rng.normal(size=30)}).to_csv(tmp_path / "new.csv", index=False)
    pd.DataFrame({"a": 2 + 0.1 * rng.normal(size=9)}).to_csv(tmp_path / "corner.csv", index=False)
    arguments = ("recalibrate", tmp_path / "old.csv", *FEW, "--export", tmp_path / "mend.py", "--inputs", "a")
    ended = calcheck(*arguments, "--on", tmp_path / "new.csv", "--format", "json")
    assert ended.code == 0, ended.err
    report = json.loads(ended.out)
    there = np.sqrt(np.mean(y[(x > 0.3) & (x < 1.5)] ** 2))  # that of all rows is 1.6
    header, function = (tmp_path / "mend.py").read_text().replace("\n# ", " ").split("import numpy")
    assert float(re.search(r"std \* (\S+)", function)[1]) == pytest.approx(there, rel=0.1)
    count = round(report["settings"]["effective_rows"])
    assert re.search(rf"For new inputs: \S+new.csv, SHA-256 \w+, like which {count} of these rows count\.", header)
    assert "Out of fold, with weights as among the new inputs, 90 % intervals" in header
    assert "omit --weights" not in ended.out
    assert "omit --on" in ended.out
    assert 45 < report["settings"]["effective_rows"] < 90
    foretold = [each for each in report["results"] if each["slice"].get("rows") == "new inputs"]
    factors = [each["value"] for each in foretold if each["metric"] == "width-factor"]
    assert factors[0] > 1.6
    assert factors[1] < 1.3
    assert [each["interval"] for each in foretold] == ["order-statistics", "t"] * 2
    assert all(each["p_value"] is None and 0 <= each["p_value_adjusted"] <= 1 for each in foretold)
    refused = calcheck(*arguments, "--on", tmp_path / "corner.csv").refused()
    assert "no correction is fitted for new inputs (--on): not shown: " in refused
    assert "the file of the tested rows" in calcheck(*arguments, "--on", tmp_path / "old.csv").refused()
    assert "also pass --inputs" in calcheck(*arguments[:-2], "--on", tmp_path / "new.csv").refused()


def test_a_filter_leaves_the_file_of_new_inputs_whole_where_it_is_corrected_too(calcheck, tmp_path):
    """The model was tested where b = 0, and is to be used where b = 1."""
    rng = np.random.default_rng(0)
    old = pd.DataFrame({"a": rng.normal(size=180), "b": 0, "y": 2 * rng.normal(size=180), "mean": 0.0, "std": 1.0})
    new = pd.DataFrame({"a": rng.normal(size=30), "b": 1, "mean": 0.0, "std": 1.0})
    old.to_csv(tmp_path / "old.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    arguments = ("recalibrate", tmp_path / "old.csv", *FEW, "--inputs", "a", "--filter", "b=0")
    to = ("--to", tmp_path / "new.csv", "-o", tmp_path / "mended.csv")
    ended = calcheck(*arguments, "--on", tmp_path / "new.csv", *to)
    assert ended.code == 0, ended.err
    assert pd.read_csv(tmp_path / "mended.csv")["b"].tolist() == [1] * 30
    assert "no row has b=0" in calcheck(*arguments, *to).refused()
