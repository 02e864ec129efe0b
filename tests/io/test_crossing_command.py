"""Files whose quantiles cross, on the command line."""

import json

import pandas as pd
import pytest

from tests.io.test_crossing import CROSSED


@pytest.fixture
def crossed(tmp_path):
    """Return the path of a file in which three of five rows cross."""
    pd.DataFrame(CROSSED).to_csv(tmp_path / "q.csv", index=False)
    return tmp_path / "q.csv"


def test_a_refused_file_leaves_no_output(calcheck, crossed, tmp_path):
    for output in (["-o", tmp_path / "report.json"], ["--save-state", tmp_path / "sums"]):
        assert "Pass --crossing sort" in calcheck("ece", crossed, *output).refused()
    assert list(tmp_path.iterdir()) == [crossed]


def test_inspect_shows_a_file_whose_quantiles_cross(calcheck, crossed):
    found = calcheck("inspect", crossed)
    assert found.code == 0
    assert "crossing quantiles  3 of 5 rows, by up to 4 and by 2.5 in the median" in found.out
    assert "row 1  predicts quantiles 0.1: 0; 0.5: 1; 0.9: 2" in found.out
    assert "--crossing sort" in found.out.splitlines()[-1]


def test_sorted_rows_are_reported_by_reports_and_streaming_states(calcheck, crossed, tmp_path):
    for more in ([], ["--save-state", tmp_path / "sums"]):
        report = json.loads(calcheck("ece", crossed, "--crossing", "sort", "--format", "json", *more).out)
        assert "sorted-quantiles" in [each["code"] for each in report["results"][0]["warnings"]]
        assert report["input"]["options"][-2:] == ["--crossing", "sort"]


def test_a_variable_sorts_crossing_quantiles(calcheck, crossed, monkeypatch):
    monkeypatch.setenv("CALCHECK_ECE_CROSSING", "sort")
    assert calcheck("ece", crossed).code == 0


def test_sorted_rows_are_reported_where_rows_are_removed_or_written_again(calcheck, crossed, tmp_path):
    many = pd.concat([pd.read_csv(crossed) + shift for shift in (0, 1, 3)])
    many.to_csv(crossed, index=False)
    pruned = calcheck("prune", "examples/diabetes_quantiles.parquet", "--metrics", "wis", "--crossing", "sort")
    assert "quantiles crossed in 183 of 442 rows" in pruned.out
    converted = calcheck("convert", crossed, "--crossing", "sort", "-o", tmp_path / "sorted.parquet")
    assert "9 of 15 rows" in converted.err
    assert calcheck("ece", tmp_path / "sorted.parquet").code == 0
