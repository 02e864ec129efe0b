"""Targets with probability 0 are the strongest evidence against a model, however the likelihood is computed."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from calcheck.distributions.positive import LogNormal
from calcheck.distributions.samples import Samples
from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.regions.partition import Cut
from calcheck.render.data import render_json
from calcheck.render.document import describe_overall, overview
from calcheck.reports import Overall
from calcheck.statistics.scores import are_impossible
from calcheck.streaming.state import accumulate, merge, report_from_state
from calcheck.studies.compare.study import trend
from calcheck.studies.gate.evaluate import answer_gates, evaluate_rule
from calcheck.studies.gate.rules import parse
from calcheck.studies.monitor.options import MonitorOptions
from calcheck.studies.monitor.state import join_states, read_monitor_state, write_monitor_state
from calcheck.studies.monitor.study import monitor_report, observe
from calcheck.studies.slices.groups import by_groups
from tests.helpers.simulations import autoregressive
from tests.helpers.streams import Batches

N, FEW = 120, ("nll", "mae")


def rows_of(impossible):
    """Return right log-normal predictions; some targets are negative."""
    rng = np.random.default_rng(0)
    mu, sigma = rng.normal(size=N) / 3, rng.uniform(0.3, 0.6, N)
    y = np.exp(mu + sigma * rng.normal(size=N))
    y[:impossible] = -0.001
    return Predictions(
        y=y, predictive=LogNormal(mu, sigma), columns={"site": np.arange(N) // 6, "half": np.arange(N) // 60}
    )


def nll_of(report):
    return next(result for result in report.results if result.metric == "nll")


def test_impossible_targets_are_a_no_if_the_likelihood_is_no_metric_of_the_report():
    run = Run(resamples=0, replicates=39)
    found = evaluate(InMemory(rows_of(3)), [METRICS["mae"]()], run=run, answer=Answer()).conclusion
    assert found.answer == "no"
    assert [each.text for each in found.effects if each.within is False][-1].startswith("3 targets have probability 0")


@pytest.mark.parametrize(("impossible", "answer"), [(0, "not-shown"), (3, "no")])
def test_the_answer_names_impossible_targets(impossible, answer):
    metrics = [METRICS[name]() for name in ("nll", "coverage", "pit")]
    report = evaluate(InMemory(rows_of(impossible)), metrics, run=Run(resamples=0, replicates=199), answer=Answer())
    assert (report.conclusion.answer, report.overall.verdict) == (answer, "fail" if impossible else "pass")
    found = [each.text for each in report.conclusion.effects if "probability 0" in each.text]
    count = "3 targets have probability 0 under the predictions, so the log-likelihood is infinite"
    assert found == ([count] if impossible else [])


def test_impossible_targets_fail_where_rows_depend_on_each_other():
    """The noise of an infinite mean by clusters is undefined, and replicates are finite: p is its floor."""
    run = Run(resamples=0, dependence=RowDependence(cluster="site"))
    report = evaluate(InMemory(rows_of(1)), [METRICS[name]() for name in FEW], run=run)
    assert nll_of(report).verdict == report.overall.verdict == "fail"
    assert nll_of(report).p_value < 0.001
    assert report.overall.leading == "nll"


def series_of(impossible):
    """Return log-normal predictions with an hour, whose errors depend on each other; some targets are negative."""
    rng = np.random.default_rng(0)
    y = np.exp(0.5 * autoregressive(rng, N, 0.9))
    y[:impossible] = -0.001
    columns = {"hour": np.arange(N), "half": np.arange(N) // 60}
    return Predictions(y=y, predictive=LogNormal(np.zeros(N), np.full(N, 0.5)), columns=columns)


@pytest.mark.parametrize("replicates", [0, 99])
def test_impossible_targets_are_judged_where_dependence_is_noticed(replicates):
    """They are impossible however rows depend on each other; nothing else is judged."""
    run, metrics = Run(resamples=100, replicates=replicates), [METRICS[name]() for name in ("nll", "crps", "bias")]
    report = evaluate(InMemory(series_of(2)), metrics, run=run, answer=Answer())
    assert [each.verdict for each in report.results] == ["fail", "none", "none"]
    assert report.conclusion.answer == "no"
    impossible, rest = (each.text for each in report.conclusion.effects)
    assert impossible.startswith("2 targets have probability 0")
    assert rest.startswith("nothing else is judged, since rows depend on each other by 'hour'")
    assert [(each.rule, each.passed) for each in answer_gates(report) if each.judged] == [("answer == 'no'", False)]
    without = evaluate(InMemory(series_of(0)), metrics, run=run, answer=Answer())
    assert {each.verdict for each in without.results} == {"none"}
    assert without.conclusion.answer == "not-shown"


def test_groups_with_impossible_targets_are_named_where_dependence_is_noticed():
    run = Run(resamples=0, replicates=59)
    report = by_groups(InMemory(series_of(1)), [Cut("half")], metrics=[METRICS["nll"]()], run=run)
    assert report.conclusion.answer == "no"
    assert [each.text.split(":")[0] for each in report.conclusion.effects] == [
        "all rows",
        "half=0",
        "nothing else is judged, since rows depend on each other by 'hour'",
    ]


@pytest.mark.slow
def test_impossible_targets_of_one_part_fail_in_streams_and_merged_states():
    rows, metrics, run = rows_of(1), [METRICS[name]() for name in FEW], Run(resamples=0, replicates=59)
    days = [accumulate(Batches(rows.take(part), 30), metrics, run) for part in (slice(0, 60), slice(60, None))]
    for state in (accumulate(Batches(rows, 30), metrics, run), merge([("a", days[0]), ("b", days[1])])):
        report = report_from_state(state, run)
        assert (nll_of(report).verdict, nll_of(report).value) == ("fail", None)
        assert nll_of(report).p_value == pytest.approx(2 / 60)
        assert report.overall.verdict == "fail"


def test_the_group_with_impossible_targets_fails_and_no_other():
    rows, run = rows_of(1), Run(resamples=0)
    report = by_groups(InMemory(rows), [Cut("half")], metrics=[METRICS["nll"]()], run=run)
    verdicts = {str(result.slice.get("group", "")): result.verdict for result in report.results}
    assert verdicts == {"all rows": "fail", "half=0": "fail", "half=1": "pass"}


@pytest.mark.parametrize("replicates", [0, 19])
def test_impossible_targets_need_no_replicates(replicates):
    """19 replicates reach p .1 in a two-sided test, and none no p-value: probability 0 is a verdict by itself."""
    run = Run(resamples=100, replicates=replicates)
    names = ("nll", "zms", "rce", "mae", "crps", "pit", "ece", "coverage")
    report = evaluate(InMemory(rows_of(1)), [METRICS[name]() for name in names], run=run, answer=Answer())
    assert (nll_of(report).verdict, nll_of(report).number) == ("fail", np.inf)
    assert report.conclusion.answer == "no"
    assert not all(gate.passed for gate in answer_gates(report))
    right = evaluate(InMemory(rows_of(0)), [METRICS["nll"]()], run=run)
    assert nll_of(right).verdict == "none"


def test_a_trend_shows_the_file_with_impossible_targets():
    files = [InMemory(rows_of(impossible)) for impossible in (1, 0, 0)]
    report = trend(files, [METRICS["nll"]()], run=Run(resamples=0, replicates=99))
    assert [(each.slice["at"], each.verdict) for each in report.results] == [
        ("0", "fail"),
        ("1", "pass"),
        ("2", "pass"),
    ]
    assert [each.details.get("change") for each in report.results] == [None, 0, 0]
    cells = [[cell.text for cell in row] for row in overview(report.results).rows]
    assert [row[2] for row in cells] == ["∞", *(f"{each.value:.3g}" for each in report.results[1:])]


@pytest.mark.parametrize(("rule", "passed"), [("nll > 3", False), ("nll < 3", True), ("nll.value >= 1e300", False)])
def test_rules_compare_an_infinite_value(rule, passed):
    report = evaluate(InMemory(rows_of(1)), [METRICS["nll"]()], run=Run(resamples=0, replicates=0))
    gate = evaluate_rule(parse(rule), report)
    assert (gate.passed, gate.message) == (passed, f"{rule.split()[0]} is inf")
    assert json.loads(render_json(replace(report, gates=(gate,))))["results"][0]["value"] is None


def test_an_infinite_value_remains_after_adjustment():
    """Its adjusted p-value is above 5 % if replicates are few."""
    metrics = [METRICS[name]() for name in ("nll", "pit", "lzms")]
    report = evaluate(InMemory(rows_of(1)), metrics, run=Run(resamples=100, replicates=19))
    assert nll_of(report).p_value_adjusted > 0.05
    text = Overall(verdict="fail", p_value=0.05, method="", replicates=19, metrics=("nll", "pit"), leading="nll")
    shown = describe_overall(text, replace(report, results=(nll_of(report),)))
    assert shown.endswith("led by nll; every failure remains after adjustment for their number")


def test_the_answer_of_groups_names_impossible_targets_that_no_metric_shows():
    run = Run(resamples=0, replicates=59)
    report = by_groups(InMemory(rows_of(1)), [Cut("half")], metrics=[METRICS["bias"]()], run=run)
    assert [each.verdict for each in report.results] == ["pass"] * 3
    assert report.conclusion.answer == "no"
    assert [each.text for each in report.conclusion.effects] == [
        f"{group}: 1 target has probability 0 under the predictions" for group in ("all rows", "half=0")
    ]
    right = by_groups(InMemory(rows_of(0)), [Cut("half")], metrics=[METRICS["bias"]()], run=run)
    assert right.conclusion.answer == "yes"


def monitored(rows, days, **options):
    """Return the state after the days of rows: twelve rows each."""
    chosen = rows.take(np.flatnonzero(np.isin(rows.columns["day"], days)))
    metrics, run = [METRICS["pit-bias"]()], Run(replicates=19)
    return observe(InMemory(chosen), MonitorOptions(time="day", window="5", **options), metrics, run=run)


@pytest.mark.parametrize("horizon", [None, "2", "horizon"])
@pytest.mark.parametrize("impossible", [0, 2])
def test_an_impossible_target_is_infinite_evidence_from_its_time_on(impossible, horizon, tmp_path):
    """Also in a state that is stored, and continued with days on which nothing is wrong."""
    rows = rows_of(0)
    day = np.arange(N) // 12
    y = np.where((day == 4) & (np.arange(N) % 12 < impossible), -0.001, rows.y)
    rows = replace(rows, y=y, columns={"day": day.astype(float), "horizon": np.arange(N) % 3 + 1})
    write_monitor_state(tmp_path / "state", monitored(rows, range(7), horizon=horizon))
    state = join_states([read_monitor_state(str(tmp_path / "state")), monitored(rows, range(7, 10), horizon=horizon)])
    report = monitor_report(state, level=0.05)
    found = json.loads(render_json(report))["monitor"]
    assert found["verdict"] == ("fail" if impossible else "pass")
    assert report.conclusion.answer == ("no" if impossible else "yes")
    path = np.array(found["path_log_e_values"])
    assert np.isfinite(path).all()
    assert (path == sys.float_info.max).tolist() == ([False] * 4 + [True] * 6 if impossible else [False] * 10)
    if impossible:
        assert found["alarm_time"] == found["fault_start"] == found["fault_end"] == "4"
        assert "now it is ∞" in report.conclusion.effects[1].text
        assert report.conclusion.effects[0].text.startswith("at 1 time (4), targets have probability 0")


def test_distributions_without_a_density_have_no_known_impossible_targets():
    rows = replace(rows_of(2), predictive=Samples(np.random.default_rng(1).normal(size=(N, 9))))
    assert not are_impossible(rows).any()
    assert are_impossible(rows_of(2)).sum() == 2
