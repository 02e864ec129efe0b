"""`--cluster`, `--time` and `--block`: verdicts, notes, stored settings, and what is refused."""

import json

import numpy as np
import pytest

from tests.files import write
from tests.schemas import validate
from tests.simulations import autoregressive

QUICK = ("--replicates", "39", "--resamples", "200")


@pytest.fixture
def series(tmp_path):
    """Return the path of right forecasts of a series, whose errors depend on each other."""
    rng = np.random.default_rng(17)
    errors = autoregressive(rng, 400, 0.8)
    days = np.datetime64("2026-01-01") + np.arange(400)
    station = np.array(["north", "south"])[np.arange(400) % 2]
    rows = {"day": days, "y": errors, "mean": np.zeros(400), "std": np.ones(400), "station": station}
    return write(tmp_path / "series.parquet", rows | {"patient": np.arange(400) // 8})


@pytest.fixture
def report(calcheck):
    """Run a command, and return its validated report."""

    def run(*arguments):
        ended = calcheck(*arguments, *QUICK, "--format", "json")
        assert ended.code == 0, ended.err
        found = json.loads(ended.out)
        validate(found)
        return found

    return run


def codes(result):
    return [message["code"] for message in result["warnings"]]


@pytest.mark.parametrize("command", [("evaluate", "--metrics", "pit-bias,pit"), ("pit-bias",)])
def test_a_series_is_noticed_and_the_option_changes_the_verdict(report, series, command):
    name, *further = command
    naive, honest = (report(name, series, *further, *option)["results"][0] for option in ((), ("--time", "day")))
    assert "dependent-rows" in codes(naive)
    assert "dependent-rows" not in codes(honest)
    assert honest["p_value"] > 5 * naive["p_value"]
    assert honest["high"] - honest["low"] > 2 * (naive["high"] - naive["low"])


def test_reports_store_what_was_stated(report, series):
    found = report("evaluate", series, "--metrics", "zms", "--block", "40")
    assert found["settings"]["dependence"] == {"time": None, "block": 40.0, "clusters": 10}
    assert "few-clusters" in codes(found["results"][0])
    assert "dependence" not in report("evaluate", series, "--metrics", "zms")["settings"]


def test_gates_take_the_options(calcheck, series):
    rule = ("--fail-on", "pit.p_value < 0.05")
    assert calcheck("check", series, *rule, *QUICK).code == 1
    assert calcheck("check", series, *rule, *QUICK, "--time", "day").code == 0


def test_groups_of_a_check_take_the_options(report, series):
    found = report("slices", series, "--by", "station", "--metrics", "bias", "--cluster", "patient")
    assert found["settings"]["dependence"] == {"cluster": "patient", "clusters": 50}
    assert found["results"][0]["details"]["null"]["replicates"] > 39


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--cluster", "patient", "--time", "day"), "--cluster and --time contradict each other"),
        (("--cluster", "pateint"), "there is no column 'pateint'"),
        (("--cluster", "station"), "column 'station' has 2 clusters: at least 5 are needed"),
        (("--time", "station"), "column 'station' has 'north', which is no time, in row"),
        (("--block", "100"), "--block 100 leaves fewer than 5 blocks of 400: pass at most 80"),
        (("--block", "0"), "--block must be at least 1, got 0"),
        (("--cluster", "patient", "--save-state", "new.state"), "--cluster needs all rows in memory"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_one_line(calcheck, series, options, message):
    error = calcheck("zms", series, *options).refused()
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("further", [(), ("--depth", "1")])
def test_searches_of_regions_notice_a_series(calcheck, series, further):
    ended = calcheck("slices", series, "--replicates", "99", *further, "--format", "json")
    assert all("dependent-rows" in codes(result) for result in json.loads(ended.out)["results"])


def test_searches_of_regions_refuse_dependent_rows(calcheck, series):
    assert "name groups (--by)" in calcheck("slices", series, "--cluster", "patient").refused()
