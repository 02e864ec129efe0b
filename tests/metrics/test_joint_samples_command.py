"""`calcheck jmmd DATA MODEL`, and cmmd and fid: two samples in files, at different inputs."""

import json

import numpy as np
import pytest

from tests.helpers.files import write


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(3)
    parts = [{"x": rng.normal(size=n), "y": rng.normal(size=n), "mean": np.zeros(n)} for n in (20, 25)]
    return [write(tmp_path / f"{name}.parquet", part) for name, part in zip("ab", parts, strict=True)]


@pytest.mark.parametrize("metric", ["jmmd", "cmmd", "fid"])
def test_a_second_file_is_compared_as_a_sample(calcheck, files, metric):
    ended = calcheck(metric, *files, "--inputs", "x", "--replicates", 19, "--format", "json")
    (found,) = json.loads(ended.out)["results"]
    assert found["metric"] == metric
    assert found["details"]["samples"] == {"rows": 20, "rows_b": 25}
    permuted = "permuted by input" if metric == "cmmd" else "permuted over all rows"
    assert found["details"]["null"]["labels"] == permuted
    assert 0.05 <= found["p_value"] <= 1


def test_without_a_null_distribution_there_is_no_p_value(calcheck, files):
    (found,) = json.loads(calcheck("fid", *files, "--inputs", "x", "--no-null", "--format", "json").out)["results"]
    assert found["p_value"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--mean", "mean"), "--mean does not apply to two files: remove it, or pass one file with predictions"),
        (("--subsample", 10), "--subsample does not apply to two files"),
        (("--weights", "x"), "--weights does not apply to two files"),
        (("--save-state", "s"), "--save-state does not apply to two files"),
    ],
)
def test_options_for_predictions_are_refused_with_two_files(calcheck, files, arguments, message):
    assert message in calcheck("jmmd", *files, "--inputs", "x", *arguments).refused()


def test_both_files_cannot_be_standard_input(calcheck):
    assert "only one file can be read from standard input" in calcheck("fid", "-", "-", "--inputs", "x").refused()
