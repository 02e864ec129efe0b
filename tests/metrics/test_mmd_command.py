"""`calcheck mmd A B`: two samples in files."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.execution.run import Run
from calcheck.metrics.mmd import Mmd
from calcheck.models.two_samples import two_samples
from calcheck.predictions import InMemory, Predictions
from tests.helpers.files import write


def test_the_command_compares_two_files(calcheck, tmp_path):
    rng = np.random.default_rng(3)
    parts = [{"x": rng.normal(size=n), "y": rng.normal(size=n)} for n in (20, 25)]
    files = [write(tmp_path / f"{name}.parquet", part) for name, part in zip("ab", parts, strict=True)]
    sources = [InMemory(Predictions(**{name: each[:, None] for name, each in part.items()})) for part in parts]
    for arguments, joint in (((), False), (("--joint", "--inputs", "x"), True)):
        ended = calcheck("mmd", *files, *arguments, "--permutations", 19, "--format", "json")
        found = json.loads(ended.out)["results"][0]
        expected = two_samples(*sources, Mmd(joint=joint), run=Run(replicates=19)).results[0]
        assert_allclose([found["value"], found["p_value"]], [expected.value, expected.p_value], rtol=1e-12)
        assert found["details"]["samples"] == {"rows": 20, "rows_b": 25}
        assert ("inputs" in found["details"]) == joint


@pytest.mark.parametrize("command", ["mcmd", "mmd"])
def test_without_a_permutation_test_the_note_names_the_option_of_the_command(calcheck, tmp_path, command):
    rng = np.random.default_rng(3)
    files = [write(tmp_path / f"{name}.csv", {"x": rng.normal(size=9), "y": rng.normal(size=9)}) for name in "ab"]
    out = " ".join(calcheck(command, *files, "--inputs", "x", "--no-null").out.split())
    assert "no verdict: there was no permutation test (--permutations R runs it, --no-null turns it off)" in out
    assert "--replicates" not in out


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, ("--joint",), "there are no inputs and no embedding"),
        ({"y": np.ones(20)}, (), "a column of the targets is constant, so it cannot be standardized"),
        ({"y": np.ones(1), "x": np.ones(1)}, (), "mmd needs two samples of at least 2 rows, but one has 1"),
    ],
)
def test_samples_that_cannot_be_compared_are_refused(calcheck, tmp_path, change, arguments, message):
    parts = {"x": np.arange(20.0), "y": np.arange(20.0)} | change
    path = write(tmp_path / "a.parquet", parts)
    assert message in calcheck("mmd", path, path, *arguments).refused()
