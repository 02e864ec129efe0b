"""Several targets: each has its answer, and their dependence is judged apart from faults of single targets."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

import calcheck as library
from calcheck.conclusion import combine
from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.joint import Independent, JointGaussian
from calcheck.distributions.row_random import RowRandom
from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.metrics._targets import DependenceFactor
from calcheck.outputs import evaluate_outputs
from calcheck.predictions import InMemory, Predictions
from calcheck.render.screen import screen_answer
from calcheck.reports.conclusion import Effect
from calcheck.statistics.multivariate import predicted_correlations, rank_scores
from tests.helpers.simulations import sets

N = 300
RUN = Run(replicates=59)


def forecasts(kind="independent", correlation=0.0, predicted=0.0, factor=1.0, seed=0, n=N):
    """Return forecasts of two targets; the std of the second is too small by a factor."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=(n, 2)), 0.5 * np.exp(0.2 * rng.normal(size=(n, 2)))
    y = mean + std * pair(rng, (n,), correlation)
    stated = std / [1, factor]
    if kind == "independent":
        return Predictions(y=y, predictive=Independent(tuple(map(Gaussian, mean.T, stated.T))))
    if kind == "draws":
        return Predictions(y=y, predictive=Samples(mean[:, None] + stated[:, None] * pair(rng, (n, 20), predicted)))
    root = np.array([[1, 0], [predicted, np.sqrt(1 - predicted**2)]])
    return Predictions(y=y, predictive=JointGaussian(mean, stated[:, :, None] * root))


def pair(rng, shape, correlation):
    """Return pairs of normal numbers with a correlation."""
    z = rng.normal(size=(*shape, 2))
    z[..., 1] = correlation * z[..., 0] + np.sqrt(1 - correlation**2) * z[..., 1]
    return z


def conclusion(rows, **options):
    return evaluate_outputs(InMemory(rows), (), run=RUN, answer=Answer(**options)).conclusion


KINDS = {"independent": 0.0, "covariance": 0.6, "draws": 0.6}
"""Kinds of forecasts, with the correlation that they predict."""


@pytest.mark.parametrize(("kind", "correlation"), KINDS.items())
def test_a_narrow_target_is_named_with_its_factor_and_the_dependence_is_right(kind, correlation):
    found = conclusion(forecasts(kind, correlation, correlation, factor=5 / 3))
    first, second = found.outputs
    (dependence,) = found.effects
    size = next(each for each in second.effects if each.topic == "size")
    assert (found.answer, first.answer != "no", second.answer) == ("no", True, "no")
    assert (second.name, size.within) == ("y_2", False)
    assert size.low <= 5 / 3 <= size.high
    assert (dependence.topic, dependence.within) == ("correlation", True)
    assert "right within" in dependence.text


@pytest.mark.parametrize("kind", KINDS)
def test_a_correlation_that_is_predicted_as_0_is_wrong_and_each_target_is_right(kind):
    found = conclusion(forecasts(kind, correlation=0.8))
    (dependence,) = found.effects
    assert (found.answer, [each.answer == "no" for each in found.outputs]) == ("no", [False, False])
    assert (dependence.within, dependence.p <= 0.05) == (False, True)
    if kind == "draws":  # 20 of them show correlations of 0.8 as about 0.7
        assert dependence.value < 0.65
    else:
        assert dependence.low <= np.sqrt(0.2) <= dependence.high  # of the difference
    assert re.match(r"y_1 and y_2 have a correlation of 0\.[678]\d, predicted -?0\.0\d:", dependence.text)


@pytest.mark.parametrize(("kind", "correlation"), KINDS.items())
def test_the_dependence_of_right_models_is_seldom_rejected(kind, correlation):
    """Right models are rejected in 5 % of sets; at most 11 of 100 are, in 99.5 % of cases."""
    metric, rejected, count = DependenceFactor(), 0, sets(100)
    for seed in range(count):
        source = InMemory(forecasts(kind, correlation, correlation, seed=seed, n=60))
        answer = evaluate(source, [metric], run=Run(replicates=19, resamples=0))
        rejected += answer.results[0].p_value <= 0.05
    assert rejected <= binom.ppf(0.995, count, 0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_any_change_of_the_margins_leaves_the_dependence_factor_the_same(kind):
    rows, metric = forecasts(kind, 0.5, KINDS[kind]), DependenceFactor()
    y, known = rows.targets(), rows.distributions()
    moved = rows.with_targets(known.mean() + (y - known.mean()) * 2 + 0.3 * known.std(), known)
    if kind == "draws":  # the ranks of few draws are coarse
        moved = Predictions(y=3 * y + 1, predictive=Samples(3 * known.draws + 1))
    ours, theirs = (metric.pairs(metric.fit(InMemory(rows), RUN), each, 0.05, None) for each in (rows, moved))
    assert_allclose([each.value for each in ours], [each.value for each in theirs])
    broken = rows.with_targets(np.stack([y[:, 0], y[::-1, 1]], axis=1), known)  # other rows: the dependence is lost
    others = metric.pairs(metric.fit(InMemory(rows), RUN), broken, 0.05, None)
    assert abs(others[0].observed) < 0.2 < ours[0].observed


def test_factors_of_sums_and_differences_follow_from_the_correlations():
    """With equal rows of prediction r, the squared factors are (1 + s) / (1 + r) and (1 - s) / (1 - r)."""
    rows, metric = forecasts("covariance", 0.3, 0.6), DependenceFactor()
    scores = rank_scores(rows)
    s = np.mean(scores[:, 0] * scores[:, 1])
    pairs = metric.pairs(metric.fit(InMemory(rows), RUN), rows, 0.05, None)
    assert_allclose([each.value for each in pairs], np.sqrt([(1 + s) / 1.6, (1 - s) / 0.4]))
    assert_allclose(predicted_correlations(rows), np.full((N, 1), 0.6))


def test_limits_of_the_factor_hold_in_90_percent_of_sets():
    """Two one-sided limits of 95 %; 200 sets are outside in 8 to 33 (99 % of a binomial variable)."""
    metric, outside = DependenceFactor(), 0
    for seed in range(200):
        rows = forecasts("covariance", 0.6, 0.2, seed=seed)
        (_, found) = metric.pairs(metric.fit(InMemory(rows), RUN), rows, 0.05, None)
        outside += not found.low <= np.sqrt(0.4 / 0.8) <= found.high
    assert 8 <= outside <= 33


def test_predicted_correlations_of_draws_are_the_same_if_targets_and_draws_are_exchanged():
    rows = forecasts("draws", 0.6, 0.6)
    random = RowRandom(np.arange(N, dtype=np.uint64))
    y, exchanged = next(rows.distributions().replicates(rows.y, random, range(1)))
    assert_allclose(predicted_correlations(rows), predicted_correlations(rows.with_targets(y, exchanged)))
    assert_allclose(predicted_correlations(rows).mean(), 0.58, atol=0.03)


def test_the_results_of_a_target_are_those_of_this_target_alone():
    rows = forecasts("covariance", 0.6, 0.6)
    metrics = [METRICS[name]() for name in ("zms", "pit", "crps")]
    together = evaluate_outputs(InMemory(rows), metrics, run=RUN, answer=Answer()).of_outputs()
    for place, name in enumerate(("y_1", "y_2")):
        assert together[name].results == evaluate(InMemory(rows.of_target(place)), metrics, run=RUN).results


def test_several_targets_are_yes_only_if_each_is_and_their_dependence():
    rows = forecasts(n=3_000)
    found = conclusion(rows)
    assert (found.answer, found.qualifiers, found.rows_needed) == ("yes", ("as-tested",), None)
    assert conclusion(forecasts(n=40)).answer == "not-shown"
    assert conclusion(rows, tolerance=0.01).answer == "not-shown"


@pytest.fixture
def file(tmp_path):
    """Return a file of two targets, named by number, of which the second is too narrow."""
    rows = forecasts(factor=5 / 3)
    found = {"a": np.arange(N) % 7, "b": rows.distributions().mean()[:, 1]}
    for place in (0, 1):
        one = rows.of_target(place)
        columns = {"y": one.y, "mean": one.predictive.mean(), "std": one.predictive.std()}
        found |= {f"{name}_{place + 1}": values for name, values in columns.items()}
    pd.DataFrame(found).to_csv(tmp_path / "two.csv", index=False)
    return tmp_path / "two.csv"


def test_the_answer_has_a_line_for_each_target_and_the_report_a_table(calcheck, file):
    shown = calcheck("evaluate", file, "--resamples", 100).out
    assert "NO: y_2\n" in shown
    assert "y_1          " in shown
    assert "y_2          NO: size" in shown
    assert "correlation  y_1 and y_2 have a correlation of" in shown
    assert " ".join(shown.replace("\\", "").split()).count(f"test calcheck evaluate {file} --only y_2") == 1
    table = calcheck("evaluate", file, "--metrics", "zms,bias", "--table").out
    assert len(re.findall("^zms ", table, re.MULTILINE)) == 2


def test_the_first_line_names_wrong_targets_and_their_correlation():
    report = evaluate_outputs(InMemory(forecasts(correlation=0.8, factor=5 / 3)), (), run=RUN, answer=Answer())
    told = screen_answer(report, report.conclusion)
    assert told.answer.after == ": y_2 and correlation"
    assert "inputs: --inputs or --embedding" in dict(told.effects)["untested"].text


def test_an_answer_whose_correlation_has_no_test_holds_as_far_as_tested():
    untested = Effect(topic="correlation", text="not tested")
    report = evaluate_outputs(InMemory(forecasts(n=3_000)), (), run=RUN, answer=Answer(local=False))
    parts = {
        name: replace(each, conclusion=replace(each.conclusion, qualifiers=()))
        for name, each in report.of_outputs().items()
    }
    assert combine(report, parts, untested, None, 0.2).conclusion.qualifiers == ("as-tested",)


def test_states_have_one_answer_about_the_worst_target(calcheck, file, tmp_path):
    words, state = "size and bias are those of the worst target", tmp_path / "two.npz"
    options = ("--metrics", "nll", "--save-state", state)
    shown = [
        " ".join(calcheck("evaluate", *each).out.split())
        for each in ((file, "--only", "y_2", *options), (file, *options), (state, "--table"))
    ]
    assert [words in each for each in shown] == [False, True, True]


def test_json_has_the_answer_of_each_target_and_is_read_again(calcheck, file, tmp_path):
    ended = calcheck("evaluate", file, "--metrics", "zms,pit", "--format", "json")
    found = json.loads(ended.out)
    assert [(each["name"], each["answer"]) for each in found["conclusion"]["outputs"]][1] == ("y_2", "no")
    assert [[each["metric"] for each in output["results"]] for output in found["conclusion"]["outputs"]] == [
        ["zms", "pit"]
    ] * 2
    assert [each["metric"] for each in found["results"]] == ["pit"]
    (tmp_path / "old.json").write_text(ended.out)
    assert calcheck("diff", tmp_path / "old.json", tmp_path / "old.json").code == 0


def test_rules_are_about_each_target_unless_they_are_about_all(calcheck, file):
    rules = ("zms > 1.5", "effects.size.high > 1.3", "effects.correlation.high > 1.5", "answer == no")
    ended = calcheck("check", file, *(word for rule in rules for word in ("--fail-on", rule)), "--format", "json")
    gates = {each["rule"]: each for each in json.loads(ended.out)["gates"]}
    assert ended.code == 1
    assert [gates[rule]["passed"] for rule in rules] == [False, False, True, False]
    assert gates["zms > 1.5"]["message"].startswith("y_2: zms is 2.")


def test_a_page_and_a_picture_show_each_target(calcheck, file, tmp_path):
    few = ("--resamples", 100)
    assert calcheck("report", file, *few, "-o", tmp_path / "page.html", "--plot", tmp_path / "answer.svg").code == 0
    page, picture = (tmp_path / "page.html").read_text(), (tmp_path / "answer.svg").read_text()
    for name in ("y_1", "y_2"):
        assert f"{name} · needed width of intervals" in picture
        assert f">{name}</h3>" in page
    assert calcheck("diff", tmp_path / "page.html", tmp_path / "page.html").code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("zms",),
        ("prune", "--metrics", "zms"),
        ("reject",),
        ("recalibrate",),
        ("slices", "--by", "a"),
        ("monitor", "--time", "b"),
        ("evaluate", "--brief", "--metrics", "zms"),
        ("check", "--brief", "--metrics", "zms"),
    ],
)
def test_one_of_several_targets_is_chosen_in_every_study(calcheck, file, command):
    ended = calcheck(command[0], file, "--only", "y_2", *command[1:])
    assert ended.code in (0, 1), ended.err
    assert "only y_2" in ended.out


def test_what_needs_one_target_names_the_option_that_chooses_it(calcheck, file):
    for command in (
        ("zms",),
        ("prune",),
        ("reject",),
        ("recalibrate",),
        ("slices",),
        ("monitor", "--time", "b"),
        ("slices", "--by", "a"),
    ):
        assert "pass --only TARGET" in calcheck(command[0], file, *command[1:]).refused()
    assert "--only takes one of the targets y_1, y_2, got 'y'" in calcheck("zms", file, "--only", "y").refused()


def test_targets_of_arrays_are_numbered_and_one_is_chosen_by_its_number():
    rows = forecasts("draws", 0.6, 0.6, factor=5 / 3)
    given = {"y": rows.y, "samples": rows.distributions().draws}
    report = library.evaluate(**given, metrics=["zms"], replicates=19)
    assert [each.name for each in report.outputs] == ["y_1", "y_2"]
    assert library.evaluate(**given, only="y_2", metrics=["zms"], replicates=19).results == report.outputs[1].results
