"""One extreme value among many rows never makes an answer better: the file is refused, or the answer is as bad."""

import numpy as np
import pytest

from tests.fuzz.program import READ, REFUSED
from tests.fuzz.values import Change, changes, starts
from tests.helpers.files import write
from tests.helpers.simulations import sets

N = 60
COMMANDS = {
    "evaluate": (),
    "check": (),
    "slices": ("--by", "site"),
    "recalibrate": (),
    "monitor": ("--time", "day"),
    "reject": (),
    "report": ("-o", "report.html"),
    "zms": ("--dask", "local:1"),
}


@pytest.fixture
def columns():
    """Return right predictions with groups and times."""
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=N), rng.uniform(1, 2, N)
    more = {"site": np.arange(N) % 2, "day": np.datetime64("2024-01-01") + np.arange(N) // 4}
    return {"y": mean + std * rng.normal(size=N), "mean": mean, "std": std, **more}


@pytest.mark.parametrize("command", COMMANDS)
def test_one_tiny_standard_deviation_is_refused_by_every_command_with_its_row(calcheck, tmp_path, columns, command):
    columns["std"][7] = 1e-160
    path = write(tmp_path / "preds.parquet", columns)
    line = calcheck(command, path, *COMMANDS[command]).refused()
    assert "std must be at least 1e-75 to be squared, but 1 of 60 rows is not (row 7, counted from 0)" in line


def test_a_comparison_refuses_one_huge_target_with_its_row(calcheck, tmp_path, columns):
    columns["y"][7] = 1e200
    paths = [write(tmp_path / f"{name}.parquet", columns) for name in "ab"]
    line = calcheck("compare", *paths).refused()
    assert "y must be at most 1e+75 in size to be squared, but 1 of 60 rows is not (row 7, counted from 0)" in line


@pytest.mark.parametrize("command", ["evaluate", "slices", "zms"])
def test_a_standard_deviation_far_too_small_for_its_error_is_refused_and_no_metric_skipped(
    calcheck, tmp_path, columns, command
):
    columns["std"][7] = 1e-60
    path = write(tmp_path / "preds.parquet", columns)
    line = calcheck(command, path, *COMMANDS[command]).refused()
    assert "(y - mean) / std must be at most 1e+50 in size to be averaged" in line
    assert "row 7, counted from 0" in line


def test_a_small_but_possible_standard_deviation_fails_in_every_family_of_metrics(calcheck, tmp_path, columns):
    columns["std"][7] = 1e-40
    path = write(tmp_path / "preds.parquet", columns)
    ended = calcheck("check", path, "--metrics", "zms,nll,crps,uce", "--no-bootstrap")
    assert ended.code == 1


@pytest.mark.parametrize("change", changes(some=sets(60, 2)), ids=Change.label)
def test_extreme_values_are_refused_or_the_answer_is_as_bad_as_before(change):
    """A random part of `python -m tests.fuzz --values`."""
    assert change.outcome() in (READ, REFUSED)


def test_limits_may_be_infinite_and_neither_limits_nor_quantiles_huge():
    intervals, quantiles = (next(each for each in starts() if each.name == name) for name in ("intervals", "quantiles"))
    assert Change(intervals, "lower_90", -np.inf, (3,), whole=False).outcome() == READ
    assert Change(intervals, "lower_90", -1e160, (3,), whole=False).outcome() == REFUSED
    assert Change(quantiles, "q_0.05", -1e160, (3,), whole=False).outcome() == REFUSED
