"""`calcheck monitor`: alarms, windows, states that continue, horizons, gates, and what is refused."""

import fcntl
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import eval_sh_legendre, ndtr
from scipy.stats import binom, norm, t

import calcheck as package
from calcheck.errors import Message
from calcheck.studies.monitor.document import monitor_picture
from calcheck.studies.monitor.state import read_monitor_state, write_monitor_state
from tests.helpers.files import write
from tests.helpers.schemas import validate
from tests.helpers.shorthand import texts
from tests.helpers.simulations import slow

DAYS = 30


def forecasts(days=DAYS, rows=4, seed=1, wrong=1.0, since=0):
    """Return normal forecasts, a few on each day, whose uncertainties are too small by a factor since some day."""
    rng = np.random.default_rng(seed)
    day = np.repeat(np.arange(days), rows)
    n = len(day)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, n)
    y = mean + np.where(day >= since, wrong, 1) * std * rng.normal(size=n)
    return {"date": np.datetime64("2026-01-05") + day, "y": y, "mean": mean, "std": std}


def counts(days=DAYS, rows=4):
    """Return Poisson forecasts with many ties."""
    rng = np.random.default_rng(5)
    rate = rng.choice([0.7, 3.0], days * rows)
    dates = np.datetime64("2026-01-05") + np.repeat(np.arange(days), rows)
    return {"date": dates, "y": rng.poisson(rate), "rate": rate}


def ensembles(days=DAYS, rows=4):
    """Return ensembles of five draws of whole numbers, with many ties."""
    rng = np.random.default_rng(6)
    draws = rng.integers(0, 6, (days * rows, 6))
    dates = np.datetime64("2026-01-05") + np.repeat(np.arange(days), rows)
    return {"date": dates, "y": draws[:, 0], **{f"sample_{place}": draws[:, place] for place in range(1, 6)}}


@pytest.fixture
def monitored(calcheck):
    """Run the command, and return its report."""

    def run(*arguments):
        ended = calcheck("monitor", *arguments, "--format", "json")
        assert ended.code == 0, ended.err
        report = json.loads(ended.out)
        validate(report)
        return report

    return run


def drifted(days, rows, **fault):
    """Return forecasts that are wrong a bit on all days, in a frame."""
    frame = pd.DataFrame(forecasts(days, rows, wrong=fault.get("wrong", 1.0)))
    return frame.assign(y=frame["y"] + fault.get("shift", 0.0) * frame["std"])


@pytest.mark.parametrize("fault", [{"wrong": 1.08}, {"shift": 0.06}])
def test_an_alarm_of_a_fault_within_the_tolerance_is_no_no(calcheck, tmp_path, fault):
    file, state = write(tmp_path / "many.parquet", drifted(300, 100, **fault)), tmp_path / "m.state"
    found = package.monitor(file, "date", replicates=0, save_state=state)
    assert found.monitor.verdict == "fail"
    assert found.conclusion.answer == "yes"
    (what,) = [each for each in found.conclusion.effects if each.topic == "what"]
    assert what.within
    assert ", within 20 %: " in what.text
    assert package.monitor(file, "date", replicates=0, tolerance=0.05).conclusion.answer == "no"
    assert calcheck("check", state).code == 0
    assert calcheck("check", state, "--tolerance", "0.05").code == 1


def fault_of(frame):
    """Return the effect of a fault, and the z-scores in the time of it."""
    found, dates = package.monitor(frame, "date", replicates=0), frame["date"].astype(str)
    (what,) = [each for each in found.conclusion.effects if each.topic == "what"]
    inside = (dates >= found.monitor.fault_start) & (dates <= found.monitor.fault_end)
    return [what.low, what.value, what.high], ((frame["y"] - frame["mean"]) / frame["std"])[inside]


def test_limits_of_the_fault_are_those_of_one_row_a_time():
    """Order statistics of |z| at binomial ranks, interpolated on a grid of steps of 10 %, and Student's t."""
    found, z = fault_of(drifted(400, 1, wrong=2.0))
    ratios = np.sort(np.abs(z)) / norm.ppf(0.95)
    low, high = ratios[int(binom.ppf(0.05, len(z), 0.9)) - 1], ratios[int(binom.ppf(0.95, len(z), 0.9))]
    assert_allclose(found, [low, np.quantile(ratios, 0.9), high], rtol=0.04)
    found, z = fault_of(drifted(400, 1, shift=0.8))
    reach = t.ppf(0.95, len(z) - 1) * z.std() / np.sqrt(len(z))
    assert_allclose(found, [z.mean() - reach, z.mean(), z.mean() + reach], rtol=1e-9)
    hourly, many = fault_of(drifted(400, 9, shift=0.8))
    assert (hourly[2] - hourly[0]) / (found[2] - found[0]) > 0.8 * many.std() / z.std()


def test_a_factor_beyond_the_grid_has_no_upper_limit_and_limits_with_equal_digits_are_not_shown():
    """The largest factor of the grid is 1.1^16 = 4.59; intervals would have to be 8 times as wide."""
    found = package.monitor(drifted(60, 20, wrong=8.0), "date", replicates=0).conclusion.effects[0]
    assert (found.low, found.high) == (pytest.approx(1.1**16), None)
    assert "90 % intervals would have to be 4.59 (4.59–∞) times as wide" in found.text
    frame = drifted(60, 1)
    frame["y"] = frame["mean"] + 9.01 * frame["std"]
    found = package.monitor(frame, "date", replicates=0).conclusion.effects[0]
    assert "targets are 9 predicted standard deviations above" in found.text


def test_a_change_raises_an_alarm_and_the_report_states_its_start_and_direction(monitored, tmp_path):
    file = write(tmp_path / "preds.parquet", forecasts(100, wrong=1.8, since=50))
    report = monitored(file, "--time", "date", "--window", "10D")
    found = report["monitor"]
    assert found["verdict"] == "fail"
    assert found["direction"] == "too-narrow"
    assert "2026-02-20" <= found["fault_start"] <= "2026-02-28" <= found["alarm_time"]  # the change is on 2026-02-24
    assert found["components"]["dispersion"] > 0.5
    assert report["conclusion"]["answer"] == "no"
    since = f"--filter 'date>={found['fault_start']}'"
    mended = f"calcheck recalibrate {file} --time date"
    assert report["conclusion"]["next"] == [f"calcheck evaluate {file} --time date {since}", mended]
    late = [each for each in report["results"] if each["slice"]["window"] >= "2026-03-05"]
    assert all(each["value"] > each["reference_high"] for each in late if each["metric"] == "pit-dispersion")


def test_a_right_model_raises_no_alarm_and_its_windows_are_in_the_range_of_right_models(monitored, tmp_path):
    file = write(tmp_path / "preds.parquet", forecasts(200))
    report = monitored(file, "--time", "date", "--metrics", "zms,coverage,crps")
    assert report["monitor"]["verdict"] == "pass"
    assert report["monitor"]["alarm_time"] is None
    assert len(report["results"]) == 3 * 20  # by default at most 20 windows
    inside = [each["reference_low"] <= each["value"] <= each["reference_high"] for each in report["results"]]
    assert sum(inside) >= 52  # of 60, with a probability of 95 % each


def test_values_of_windows_are_those_of_evaluate_on_their_rows(monitored, calcheck, tmp_path):
    file = write(tmp_path / "preds.parquet", forecasts())
    report = monitored(file, "--time", "date", "--window", "M", "--metrics", "zms,rmse")
    for result in report["results"]:
        sides = ("<", ">=") if result["slice"]["window"] == "2026-02-01" else (">=", "<")
        metric, (_, side) = result["metric"], sides
        options = ("--filter", f"date{side}2026-02-01", "--metrics", metric, "--no-null", "--format", "json")
        (alone,) = json.loads(calcheck("evaluate", file, *options).out)["results"]
        assert_allclose(result["value"], alone["value"], rtol=1e-12)


def test_days_of_unequal_numbers_count_by_their_rows(monitored, tmp_path):
    """Components of a horizon and of a fault are means over rows, not over days; so are values of windows."""
    rows = pd.DataFrame(forecasts(60, wrong=2.5)).sample(frac=0.5, random_state=1).sort_values("date")
    assert set(rows.groupby("date").size()) >= {1, 3}
    options = ("--time", "date", "--window", "20D", "--metrics", "zms")
    report = monitored(write(tmp_path / "preds.parquet", {name: rows[name].to_numpy() for name in rows}), *options)
    z = (rows.y - rows["mean"]).to_numpy() / rows["std"].to_numpy()
    by_row = [np.sqrt(2 * degree + 1) * eval_sh_legendre(degree, ndtr(z)) for degree in (1, 2, 3, 4)]
    found, date = report["monitor"], rows["date"].astype(str).to_numpy()
    (own,) = found["horizons"]
    assert_allclose(list(own["components"].values()), np.mean(by_row, axis=1), rtol=1e-9)
    inside = (date >= found["fault_start"]) & (date <= found["fault_end"])
    assert_allclose(list(found["components"].values()), np.mean(np.array(by_row)[:, inside], axis=1), rtol=1e-9)
    starts = [each["slice"]["window"] for each in report["results"]]
    for each, end in zip(report["results"], [*starts[1:], "9999"], strict=True):
        chosen = (date >= each["slice"]["window"]) & (date < end)
        assert_allclose((each["value"], each["slice"]["rows"]), (np.mean(z[chosen] ** 2), chosen.sum()), rtol=1e-9)


def test_the_alarm_and_the_limits_of_windows_are_those_of_their_levels(monitored, tmp_path):
    """The alarm is at the first time with an e-value of 1 / level; 90 % of perfect models are inside the limits."""
    file, state = write(tmp_path / "preds.parquet", forecasts(60, wrong=2)), tmp_path / "model.state"
    options = ("--time", "date", "--metrics", "zms", "--window", "20D", "--save-state", state)
    report = monitored(file, *options, "--level", "0.01", "--confidence", "0.9")
    found = report["monitor"]
    crossed = np.flatnonzero(np.array(found["path_log_e_values"]) >= np.log(100))
    assert found["alarm_time"] == found["path_times"][crossed[0]]
    assert crossed[0] > 0
    windows = read_monitor_state(str(state)).windows
    ((_, sums),) = windows.sums.items()
    for each, null, rows in zip(report["results"], sums[:, 1:], windows.rows, strict=True):
        limits = (each["reference_low"], each["reference"], each["reference_high"])
        expected = (np.quantile(null, 0.05), null.mean(), np.quantile(null, 0.95))
        assert_allclose(limits, np.array(expected) / rows, rtol=1e-9)


@pytest.mark.parametrize(
    ("spread", "options", "code"),
    [
        ({"q0.1": -1.3, "q0.5": 0.0, "q0.9": 1.3}, (), "verdict-basis"),
        ({"std": 1.0}, ("--error", "y"), "unknown-shape"),
    ],
)
def test_what_pit_values_rest_on_is_stated(monitored, tmp_path, spread, options, code):
    data = {name: each for name, each in forecasts().items() if name in ("date", "y")}
    columns = {name: np.full(len(data["y"]), value) for name, value in spread.items()}
    report = monitored(write(tmp_path / "preds.parquet", data | columns), "--time", "date", *options)
    assert code in {each["code"] for each in report["results"][0]["warnings"]}


def test_joined_states_add_rows_and_dropped_rows_and_keep_all_warnings(calcheck, monitored, tmp_path):
    states, rows = [], pd.DataFrame(forecasts(21))
    for place, (start, stop) in enumerate(((0, 12), (12, 52), (52, 84))):
        part = rows.iloc[start:stop].assign(y=lambda each: each.y.mask(np.arange(len(each)) < place + 2))  # noqa: B023
        file = write(tmp_path / f"{place}.parquet", {name: part[name].to_numpy() for name in part})
        states.append(tmp_path / f"{place}.state")
        options = ("--time", "date", "--window", "7D", "--nan-policy", "omit", "--save-state", states[-1])
        assert calcheck("monitor", file, *options).code == 0
        warned = replace(read_monitor_state(str(states[-1])), warnings=(Message("few-rows", str(place)),))
        write_monitor_state(str(states[-1]), warned)
    report = monitored(*states)
    assert (report["input"]["n"], report["input"]["dropped"]) == (75, 9)
    assert len(report["input"]["files"]) == 3
    assert texts(report["results"][0]["warnings"]) == ("0", "1", "2")
    assert sum(each["slice"]["rows"] for each in report["results"] if each["metric"] == "width-factor") == 75


@pytest.mark.slow
@pytest.mark.parametrize(("data", "days"), [(forecasts, 30), (counts, 8), (ensembles, 8)])
def test_a_state_continued_over_30_days_equals_one_run_over_all(monitored, calcheck, tmp_path, data, days):
    columns = pd.DataFrame(data(days))
    options = ["--time", "date", "--window", "7D", "--replicates", "19"]
    options += ["--dist", "poisson"] if data is counts else []
    whole = monitored(write(tmp_path / "all.parquet", {name: columns[name].to_numpy() for name in columns}), *options)
    state = tmp_path / "model.state"
    for _, day in columns.sample(frac=1, random_state=3).groupby("date"):
        file = write(tmp_path / "day.parquet", {name: day[name].to_numpy() for name in day})
        before = [str(state)] if state.exists() else []
        assert calcheck("monitor", *before, file, *options, "--save-state", str(state)).code == 0
    found = monitored(str(state))
    for name in ("e_value", "log_e_value", "max_e_value", "path_log_e_values"):
        assert_allclose(found["monitor"][name], whole["monitor"][name], rtol=1e-12)
    assert found["monitor"]["path_times"] == whole["monitor"]["path_times"]
    assert [each["slice"] for each in found["results"]] == [each["slice"] for each in whole["results"]]
    values = ([each["value"] for each in report["results"]] for report in (found, whole))
    assert_allclose(*values, rtol=1e-12)
    assert found["input"]["n"] == whole["input"]["n"]


@pytest.mark.slow
def test_states_of_separate_weeks_equal_one_run_over_all_in_any_order_of_rows(monitored, calcheck, tmp_path):
    columns = pd.DataFrame(forecasts(21))
    options = ("--time", "date", "--window", "7D")
    whole = monitored(write(tmp_path / "all.parquet", {name: columns[name].to_numpy() for name in columns}), *options)
    states = []
    for place, (_, week) in enumerate(columns.groupby(columns.date.dt.to_period("W"))):
        file = write(tmp_path / f"week{place}.parquet", {name: week[name].to_numpy() for name in week})
        states.append(str(tmp_path / f"week{place}.state"))
        assert calcheck("monitor", file, *options, "--save-state", states[-1]).code == 0
    found = monitored(*states)
    assert_allclose(found["monitor"]["path_log_e_values"], whole["monitor"]["path_log_e_values"], rtol=1e-12)
    limits = ([each["reference_high"] for each in report["results"]] for report in (found, whole))
    assert_allclose(*limits, rtol=1e-12)
    assert "out of order" in calcheck("monitor", *states[::-1]).refused()
    assert "has rows of 2026-01-05 again" in calcheck("monitor", states[0], states[0]).refused()


def limits(report):
    return [(each["metric"], each["slice"], each["value"], each["reference_high"]) for each in report["results"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("days", "times", "continued"),
    [
        ((10, 21, 7), 2, False),
        slow(((10, 21, 7), 2, True)),
        slow(((500, 301, 99), 48, False)),
        ((500, 301, 99), 48, True),
    ],
)
def test_without_a_window_states_of_any_length_have_the_windows_of_one_run(
    monitored, calcheck, tmp_path, days, times, continued
):
    data = forecasts(sum(days), rows=1)
    options = ("--time", "date", "--replicates", "19")
    whole = monitored(write(tmp_path / "all.parquet", data), *options)
    assert whole["settings"]["window"] == str(times)  # at most 20 windows, of whole groups of 1, 2, 4, … times
    stops = np.cumsum(days)
    states = []
    for place, (first, stop) in enumerate(zip(stops - days, stops, strict=True)):
        file = write(tmp_path / f"{place}.parquet", {name: each[first:stop] for name, each in data.items()})
        before = states[-1:] if continued else []
        states.append(str(tmp_path / f"{place}.state"))
        assert calcheck("monitor", *before, file, *options, "--save-state", states[-1]).code == 0
    found = monitored(*states[-1:]) if continued else monitored(*states)
    assert found["settings"]["window"] == str(times)
    for one, other in zip(limits(found), limits(whole), strict=True):
        assert one[:2] == other[:2]
        assert_allclose(one[2:], other[2:], rtol=1e-12, atol=1e-12)


def test_states_with_and_without_a_window_are_refused(calcheck, tmp_path):
    columns = pd.DataFrame(forecasts(10))
    states = []
    for place, options in enumerate([("--window", "2D"), ()]):
        days = columns[(columns.date >= "2026-01-10") == bool(place)]
        file = write(tmp_path / f"{place}.parquet", {name: days[name].to_numpy() for name in days})
        states.append(str(tmp_path / f"{place}.state"))
        assert calcheck("monitor", file, "--time", "date", *options, "--save-state", states[-1]).code == 0
    assert "their windows differ, 2D and the default" in calcheck("monitor", *states).refused()


def test_a_state_whose_groups_are_not_at_its_times_is_refused(calcheck, tmp_path):
    file, state = write(tmp_path / "a.parquet", forecasts(5)), str(tmp_path / "model.state")
    calcheck("monitor", file, "--time", "date", "--save-state", state)
    known = read_monitor_state(state)
    late = replace(known.windows, keys=known.windows.keys + np.timedelta64(9, "D"))
    write_monitor_state(state, replace(known, windows=late))
    assert "its groups of times do not match" in calcheck("monitor", state).refused()


def test_rows_of_one_day_in_two_files_are_refused(calcheck, tmp_path):
    data = forecasts(4)
    halves = ({name: each[:10] for name, each in data.items()}, {name: each[10:] for name, each in data.items()})
    first, second = (write(tmp_path / f"{place}.parquet", half) for place, half in enumerate(halves))
    message = calcheck("monitor", first, second, "--time", "date").refused()
    assert "has rows of 2026-01-07 again" in message
    assert "All rows of a time are in one file" in message


def test_stations_have_a_row_a_day_and_no_more(monitored, calcheck, tmp_path):
    data = forecasts(6) | {"id": np.tile(["a", "b", "c", "d"], 6)}
    assert monitored(write(tmp_path / "once.parquet", data), "--time", "date")["monitor"]["times"] == 6
    twice = {name: np.concatenate([each, each[9:10]]) for name, each in data.items()}
    message = calcheck("monitor", write(tmp_path / "twice.parquet", twice), "--time", "date").refused()
    assert "id 'b' occurs twice at 2026-01-07, in rows 9, 24, counted from 0" in message


def test_folders_by_day_are_read_as_one_series(monitored, tmp_path):
    columns = pd.DataFrame(forecasts(6))
    folder = tmp_path / "days"
    folder.mkdir()
    for day, rows in columns.groupby("date"):
        write(folder / f"{day:%Y-%m-%d}.parquet", {name: rows[name].to_numpy() for name in rows})
    whole = monitored(write(tmp_path / "all.parquet", forecasts(6)), "--time", "date")["monitor"]
    found = monitored(str(folder), "--time", "date")["monitor"]
    assert_allclose(found["path_log_e_values"], whole["path_log_e_values"], rtol=1e-12)


def horizons(seed=2, weeks=80):
    """Return forecasts at the horizons 1 to 3 of a series that depends on its past: errors of horizons overlap."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=weeks + 3)
    target, lag = (each.ravel() for each in np.meshgrid(np.arange(3, weeks), np.arange(1, 4), indexing="ij"))
    error = np.array([steps[last - lags + 1 : last + 1].sum() for last, lags in zip(target, lag, strict=True)])
    mean = rng.normal(size=len(lag))
    return {"week": target, "horizon": lag, "y": mean + error, "mean": mean, "std": np.sqrt(lag)}


@pytest.mark.slow
def test_each_horizon_has_its_evidence_and_the_largest_counts_a_third(monitored, tmp_path):
    report = monitored(write(tmp_path / "preds.csv", horizons()), "--time", "week", "--horizon", "horizon")
    found = report["monitor"]
    assert [(each["horizon"], each["lag"], each["rows"]) for each in found["horizons"]] == [
        (1, 1, 77),
        (2, 2, 77),
        (3, 3, 77),
    ]
    assert_allclose(found["e_value"], max(each["e_value"] for each in found["horizons"]) / 3)
    by_horizon = [each for each in report["results"] if "horizon" in each["slice"]]
    assert {each["slice"]["horizon"] for each in by_horizon} == {"1", "2", "3"}


@pytest.mark.slow
def test_evidence_beyond_floats_is_shown_by_its_logarithm(monitored, calcheck, tmp_path):
    data = horizons(weeks=400)
    file = write(tmp_path / "preds.parquet", data | {"std": data["std"] / 8})
    options = (file, "--time", "week", "--horizon", "horizon")
    found = monitored(*options)["monitor"]
    digits = found["log_e_value"] / np.log(10)
    assert digits > 400
    assert found["e_value"] == found["horizons"][0]["max_e_value"] == sys.float_info.max
    assert found["horizons"][0]["max_log_e_value"] >= found["log_e_value"]
    out = " ".join(calcheck("monitor", *options, "--table").out.split())
    assert f"now it is {10 ** (digits % 1):.3g}e+{int(digits)}" in out
    assert "e+308" not in out


@pytest.mark.slow
def test_horizons_that_count_from_0_have_a_lag_from_1(monitored, tmp_path):
    data = horizons()
    counted = monitored(write(tmp_path / "one.csv", data), "--time", "week", "--horizon", "horizon")
    data["horizon"] = data["horizon"] - 1
    from_zero = monitored(write(tmp_path / "zero.csv", data), "--time", "week", "--horizon", "horizon")
    assert [each["lag"] for each in from_zero["monitor"]["horizons"]] == [1, 2, 3]
    assert [each["times"] for each in counted["monitor"]["horizons"]] == [77] * 3


def test_a_number_is_the_horizon_of_all_rows(monitored, tmp_path):
    file = write(tmp_path / "preds.parquet", forecasts())
    report = monitored(file, "--time", "date", "--horizon", "3")
    assert [each["lag"] for each in report["monitor"]["horizons"]] == [3]


@pytest.mark.slow
def test_rules_decide_the_exit_code_of_monitor_and_of_check_on_its_state(calcheck, tmp_path):
    file, state = write(tmp_path / "preds.parquet", forecasts(60, wrong=2)), str(tmp_path / "model.state")
    run = ("monitor", file, "--time", "date", "--save-state", state)
    assert calcheck(*run).code == 0
    assert calcheck(*run, "--fail-on", "monitor.e_value > 20").code == 1
    assert calcheck(*run, "--fail-on", "width-factor > 1.2", "--exit-zero").code == 0
    assert calcheck(*run, "--warn-on", "monitor.verdict == fail").code == 0
    assert calcheck("check", state).code == 1
    assert calcheck("check", state, "--fail-on", "monitor.e_value > 20").code == 1
    assert calcheck("check", state, "--fail-on", "monitor.direction == too-wide").code == 0
    assert "need a state" in calcheck("check", file, "--fail-on", "monitor.e_value > 20").refused()
    assert "check them separately" in calcheck("check", state, file).refused()
    assert "monitor has no field 'evalue'" in calcheck("check", state, "--fail-on", "monitor.evalue > 1").refused()


@pytest.mark.slow
def test_the_table_and_the_picture_show_windows_and_the_alarm(calcheck, tmp_path):
    file, plot = write(tmp_path / "preds.parquet", forecasts(60, wrong=2)), tmp_path / "monitor.svg"
    ended = calcheck("monitor", file, "--time", "date", "--window", "W", "--plot", str(plot), "--table")
    assert "Can the uncertainties still be trusted?  NO" in ended.out
    assert "windows of W, newest first" in ended.out
    assert "alarm" in plot.read_text(encoding="utf-8")
    right = calcheck("monitor", write(tmp_path / "right.parquet", forecasts()), "--time", "date", "--table")
    assert "YES, no alarm so far" in right.out
    assert "windows of 2 times, newest first" in right.out
    few = calcheck("monitor", write(tmp_path / "few.parquet", forecasts(5)), "--time", "date", "--table")
    assert "windows of 1 time, newest first\n" in few.out


def test_the_picture_of_an_e_value_beyond_all_numbers_has_the_threshold_and_is_cut():
    found = package.monitor(pd.DataFrame(forecasts(60, wrong=50)), "date")
    panel = monitor_picture(found).panels[0]
    assert max(found.monitor.path_log_e_values) > 710  # no float
    assert (panel.marks[0].y[-1], panel.marks[1].y) == (1e12, 20)
    assert panel.title == "evidence against the model, cut at 1e12"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--time", "day"), "there is no column 'day'"),
        (("--time", "date", "--window", "soon"), "--window must be a number of times, or a duration or period"),
        (("--time", "mean", "--window", "7D"), "column 'mean' holds numbers, not dates"),
        (("--time", "date", "--horizon", "mean"), "horizons are whole numbers of steps"),
        (("--time", "date", "--level", "0.9"), "--level must be above 0 and at most 0.5, got 0.9"),
        (("--time", "date", "--metrics", "ece"), "ece is no mean over rows"),
        (("--time", "date", "--save-state", "a.csv"), "has the suffix of a table or report"),
        (("--time", "date", "--fail-on", "ece >"), "rule"),
    ],
)
def test_what_cannot_be_monitored_is_refused_in_one_line(calcheck, tmp_path, options, message):
    file = write(tmp_path / "preds.parquet", forecasts(5))
    assert message in calcheck("monitor", file, *options).refused()


def test_the_only_column_of_dates_is_the_time(calcheck, tmp_path):
    rows = forecasts(5)
    one = calcheck("monitor", write(tmp_path / "one.parquet", rows))
    stated = calcheck("monitor", tmp_path / "one.parquet", "--time", "date")
    assert (one.code, one.out) == (0, stated.out)
    assert one.err == "--time date, the only column of dates\n"
    two = write(tmp_path / "two.parquet", {**rows, "issued": rows["date"]})
    assert "--time is required: the column of the target times (columns: " in calcheck("monitor", two).refused()


def test_options_that_contradict_a_state_are_refused(calcheck, tmp_path):
    state = str(tmp_path / "model.state")
    file = write(tmp_path / "preds.parquet", forecasts(5))
    calcheck("monitor", file, "--time", "date", "--window", "2D", "--save-state", state)
    for options in (
        ("--window", "1D"),
        ("--time", "day"),
        ("--seed", "3"),
        ("--metrics", "zms"),
    ):
        assert f"contradicts {state}" in calcheck("monitor", state, *options).refused()
    assert f"--horizon 3 contradicts {state}, which has none" in calcheck("monitor", state, "--horizon", "3").refused()


def test_a_missing_state_is_named_as_missing(calcheck, tmp_path):
    state = tmp_path / "model.state"
    for command in (("monitor", state), ("check", state), ("check", state, "--fail-on", "monitor.e_value > 20")):
        assert f"there is no file {state}" in calcheck(*command).refused()


@pytest.mark.slow
def test_the_column_of_times_is_no_target_unless_it_is_named(monitored, calcheck, tmp_path):
    data = forecasts(6)
    expected = monitored(write(tmp_path / "a.parquet", data), "--time", "date")["monitor"]["path_log_e_values"]
    renamed = {"target" if name == "date" else name: each for name, each in data.items()}
    file = write(tmp_path / "b.parquet", renamed)
    assert monitored(file, "--time", "target")["monitor"]["path_log_e_values"] == expected
    found = package.monitor(pd.DataFrame(renamed), "target").monitor
    assert list(found.path_log_e_values) == expected
    for command in (("zms", file), ("slices", file, "--by", "std:2")):
        assert calcheck(*command, "--time", "target", "--no-null").code == 0
        assert "two columns may hold the target: 'y' and 'target'" in calcheck(*command).refused()
    package.evaluate(pd.DataFrame(renamed), "zms", time="target")
    only = write(tmp_path / "c.parquet", {name: each for name, each in renamed.items() if name != "y"})
    assert "no column was recognized as the target" in calcheck("zms", only, "--time", "target").refused()


@pytest.mark.parametrize("damage", [lambda text: text[:500], lambda text: text.replace(b"history", b"histery")])
def test_a_damaged_state_is_refused_in_one_line(calcheck, tmp_path, damage):
    state = tmp_path / "model.state"
    calcheck("monitor", write(tmp_path / "a.parquet", forecasts(5)), "--time", "date", "--save-state", str(state))
    state.write_bytes(damage(state.read_bytes()))
    calcheck("monitor", str(state)).refused()


@pytest.mark.slow
def test_two_processes_that_continue_a_state_at_once_lose_no_rows(calcheck, tmp_path):
    state, parts = tmp_path / "model.state", (slice(40), slice(40, 80), slice(80, 120))  # of ten days each
    whole = forecasts()
    files = [
        write(tmp_path / f"{place}.parquet", {name: values[part] for name, values in whole.items()})
        for place, part in enumerate(parts)
    ]
    assert calcheck("monitor", files[0], "--time", "date", "--no-null", "--save-state", state).code == 0
    program = [sys.executable, "-m", "calcheck", "monitor", "--no-null", str(state)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with state.open("rb") as held:  # both find it in use, so that both wait and none reads it too early
        fcntl.flock(held, fcntl.LOCK_EX)
        both = [subprocess.Popen([*program, file, "--save-state", str(state)], **pipes) for file in files[1:]]
        with pytest.raises(subprocess.TimeoutExpired):
            both[0].wait(2)
        assert both[1].poll() is None
    said = [each.communicate(timeout=60)[1] for each in both]
    for each, text in zip(both, said, strict=True):  # the first days are refused if the last were first
        assert (each.returncode, text.count("\n")) in ((0, 0), (2, 1)), text
    kept = sum(each.returncode == 0 for each in both)
    assert kept > 0
    assert read_monitor_state(str(state)).input.n == 40 + 40 * kept
    assert not list(tmp_path.glob(".*"))


def test_python_monitors_frames_and_continues_states(tmp_path):
    frame, state = pd.DataFrame(forecasts(60, wrong=1.5)), tmp_path / "model.state"
    early, late = frame[frame.date < "2026-02-01"], frame[frame.date >= "2026-02-01"]
    whole = package.monitor(frame, "date", window="7D", replicates=19)
    package.monitor(early, "date", window="7D", replicates=19, save_state=state)
    found = package.monitor(late, state=state, replicates=39)  # of which 19 are of both
    assert_allclose(found.monitor.log_e_value, whole.monitor.log_e_value, rtol=1e-12)
    assert found.to_frame()["value"].tolist() == pytest.approx(whole.to_frame()["value"].tolist())
    assert len(whole.pictures()) == 1
    with pytest.raises(package.OptionError, match=r"window='1D' contradicts .*model\.state, which has 7D: omit window"):
        package.monitor(late, state=state, window="1D")
    for options, message in (
        ({"horizon": 3}, "horizon=3 contradicts .*, which has none: omit horizon"),
        ({"seed": 5}, "seed=5 contradicts .*, which has 0: omit seed"),
        ({"metrics": "zms"}, "metrics zms contradicts .*, which has standardized-bias,.*: omit metrics"),
        (
            {"metrics": ["standardized-bias", "pit-dispersion", package.metric("width-factor", level=0.5)]},
            "width-factor: level 0.5 contradicts .*, which has 0.9: omit width-factor: level",
        ),
        ({"windw": "1D"}, r"there is no argument 'windw'\. Did you mean 'window'\?"),
    ):
        with pytest.raises(package.OptionError, match=message):
            package.monitor(late, state=state, **options)
    same = package.monitor(
        late, state=state, metrics=["standardized-bias", "pit-dispersion", "width-factor"], seed=0, replicates=0
    )
    assert_allclose(same.monitor.log_e_value, found.monitor.log_e_value)
