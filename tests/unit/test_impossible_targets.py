"""Targets with probability 0 are the strongest evidence against a model, however the likelihood is computed."""

import numpy as np
import pytest

from calcheck.conclusion import conclude
from calcheck.distributions.lognormal import LogNormal
from calcheck.evaluation import evaluate
from calcheck.execution.context import Run
from calcheck.execution.row_dependence import RowDependence
from calcheck.metrics import METRICS
from calcheck.predictions import InMemory, Predictions
from calcheck.regions.cut import Cut
from calcheck.streaming.state import accumulate, merge, report_from_state
from calcheck.studies.slices import by_groups
from tests.streams import Batches

N, FEW = 120, ("nll", "crps", "mae")


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


@pytest.mark.parametrize(("impossible", "answer"), [(0, "yes"), (3, "no")])
def test_the_answer_names_impossible_targets(impossible, answer):
    metrics = [METRICS[name]() for name in ("nll", "coverage", "pit")]
    report = conclude(evaluate(InMemory(rows_of(impossible)), metrics, run=Run(resamples=0, replicates=199)))
    assert (report.conclusion.answer, report.overall.verdict) == (answer, "fail" if impossible else "pass")
    found = [finding.text for finding in report.conclusion.findings if "probability 0" in finding.text]
    count = "3 targets have probability 0 under the predictions, so the log-likelihood is infinite"
    assert found == ([count] if impossible else [])


def test_impossible_targets_fail_where_rows_depend_on_each_other():
    """The noise of an infinite mean by clusters is undefined, and replicates are finite: p is its floor."""
    run = Run(resamples=0, dependence=RowDependence(cluster="site"))
    report = evaluate(InMemory(rows_of(1)), [METRICS[name]() for name in FEW], run=run)
    assert nll_of(report).verdict == report.overall.verdict == "fail"
    assert nll_of(report).p_value < 0.001
    assert report.overall.leading == "nll"


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
