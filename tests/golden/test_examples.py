"""The examples make what is in the repository, and show what the README says of them."""

import subprocess
import sys
import warnings
from pathlib import Path
from runpy import run_path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["diabetes", "diabetes_linear"])
def test_the_diabetes_files_are_what_their_script_makes(name):
    """To 1 % of the spread: the optimiser of the kernel's parameters stops within that on any machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimiser remarks that a length scale runs to its bound
        made = run_path(str(EXAMPLES / "diabetes.py"))["predictions"](name)
    saved = pq.read_table(EXAMPLES / f"{name}.parquet")
    assert made.schema.equals(saved.schema)
    for column in saved.column_names:
        expected = saved[column].to_numpy()
        assert_allclose(made[column].to_numpy(), expected, atol=0.01 * expected.std() + 0.01 * expected.mean())


def test_the_sine_example_separates_families_that_can_have_the_variance_from_those_that_cannot(tmp_path):
    command = [sys.executable, EXAMPLES / "sine_counts.py", tmp_path]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {family: float(value) for family, value in (line.split() for line in printed.splitlines())}
    assert list(found) == ["gaussian", "poisson", "nbinom", "double-poisson"]
    assert max(found["gaussian"], found["double-poisson"]) < 0.1 * min(found["poisson"], found["nbinom"])
    table = pq.read_table(tmp_path / "poisson.parquet")
    assert table.num_rows == 2000
    y, x = table["y"].to_numpy(), table["x"].to_numpy()
    assert_allclose(np.mean(y - (20 - 10 * np.sin(x))), 0.4, atol=0.1)  # the conflation's mean is rate - 0.4


def test_the_table_of_the_zms_paper_is_printed_from_files_of_its_shape():
    """Of the sets that it makes itself, the calibrated ones pass and the others fail, by ZMS and by RCE."""
    command = [sys.executable, EXAMPLES / "zms_table2.py"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    verdicts = [(line[:24].strip(), line.split()[-1]) for line in lines]
    assert len(verdicts) == 8
    assert all(verdict == ("pass" if name.endswith("right") else "fail") for name, verdict in verdicts)
