"""Several targets: each has its answer, and their dependence is judged apart from faults of single targets."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

import calcheck as library
from calcheck.conclusion import combine
from calcheck.distributions import Gaussian, Samples
from calcheck.distributions.joint import Independent, JointGaussian
from calcheck.distributions.noise_clip_rounding import Observation, Observations
from calcheck.distributions.row_random import RowRandom
from calcheck.errors import DataError
from calcheck.evaluation import Answer, evaluate
from calcheck.execution.run import Run
from calcheck.metrics import METRICS
from calcheck.metrics.base import DependenceFactor
from calcheck.outputs import _listed_clips, evaluate_outputs
from calcheck.predictions import InMemory, Predictions
from calcheck.render.screen import screen_answer
from calcheck.reports.conclusion import Effect
from calcheck.statistics.multivariate import predicted_correlations, rank_scores
from calcheck.storage import archives
from calcheck.storage.prediction_files import canonical_columns
from calcheck.streaming import state
from tests.helpers import schemas
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


def test_limits_of_one_target_are_listed_beside_those_of_the_others():
    """Targets clipped at 0, the second of three: --clip takes two limits, which may be empty, for each of them."""
    hint = Effect(topic="targets", text="9 targets are the smallest: pass --clip 0,; the largest: pass --clip ,5")
    found = evaluate(InMemory(forecasts().of_target(0)), [], run=replace(RUN, replicates=0), answer=Answer(local=False))
    report = replace(found, conclusion=replace(found.conclusion, effects=(hint,)))
    texts = [_listed_clips(report, name, ("a", "b", "c")).conclusion.effects[0].text for name in "ab"]
    assert [re.findall(r"--clip (\S+?)(?:;|$)", text) for text in texts] == [["0,,,,,", ",5,,,,"], [",,0,,,", ",,,5,,"]]


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
    assert re.match(r"errors of y_1 and y_2 have a correlation of 0\.[678]\d, predicted -?0\.0\d:", dependence.text)


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


@pytest.fixture
def many(file):
    """Write forecasts of eight targets: the two of `file`, four times."""
    rows = pd.read_csv(file)
    for place in range(3, 9):
        names = ("y", "mean", "std")
        rows = rows.assign(**{f"{name}_{place}": rows[f"{name}_{place - 2}"] for name in names})
    rows.to_csv(file, index=False)
    return file


def test_the_answer_has_a_line_for_each_target_and_the_report_a_table(calcheck, file):
    shown = calcheck("evaluate", file, "--resamples", 100).out
    assert "NO: y_2\n" in shown
    assert "y_1          " in shown
    assert "y_2          NO: too narrow, ×1." in shown
    assert "correlation  errors of y_1 and y_2 have a correlation of" in shown
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


STREAMED = ("--metrics", "nll,zms", "--replicates", "39")


def test_states_answer_for_each_target_as_those_of_one_target_do(calcheck, file, tmp_path):
    rows, states = pd.read_csv(file), []
    for place, half in enumerate((rows[:150], rows[150:])):
        half.to_csv(tmp_path / f"{place}.csv", index=False)
        states.append(tmp_path / f"{place}.state")
        first = ("--settings-from", states[0]) if place else STREAMED
        for name, only in (("", ()), (".alone", ("--only", "y_2"))):
            given = [each if each != states[0] else f"{states[0]}{name}" for each in first]
            made = calcheck("evaluate", tmp_path / f"{place}.csv", *given, *only, "--save-state", f"{states[-1]}{name}")
            assert made.code == 0, made.err
    found = json.loads(calcheck("evaluate", *states, "--format", "json").out)
    schemas.validate(found)
    both = found["conclusion"]["outputs"]
    (alone,) = [json.loads(calcheck("evaluate", *(f"{each}.alone" for each in states), "--format", "json").out)]
    assert [each["name"] for each in both] == ["y_1", "y_2"]
    assert both[1]["results"] == alone["results"]
    size, other = (next(e for e in each["effects"] if e["topic"] == "size") for each in (both[1], alone["conclusion"]))
    assert [size[name] for name in ("value", "low", "high")] == [other[name] for name in ("value", "low", "high")]
    assert (found["input"]["n"], [each["metric"] for each in found["results"]]) == (N, ["nll"])
    assert found["conclusion"]["effects"][0]["text"].startswith("not tested: needs rows in memory")
    assert "their targets differ: y_1, y_2 and " in calcheck("evaluate", states[0], f"{states[1]}.alone").refused()
    refused = calcheck("evaluate", file, "--settings-from", f"{states[0]}.alone").refused()
    assert "the target y_1 is not in the --settings-from state" in refused


def test_an_interrupted_run_over_several_targets_resumes_the_sums_of_each(calcheck, file, tmp_path, monkeypatch):
    kept, options = tmp_path / "kept", (*STREAMED, "--format", "json", "--checkpoint", tmp_path / "kept")
    whole = json.loads(calcheck("evaluate", file, *options, "--save-state", tmp_path / "a.state").out)
    assert not kept.exists()
    monkeypatch.setattr(archives.FileCheckpoint, "remove", lambda _: None)
    calcheck("evaluate", file, *options, "--save-state", tmp_path / "b.state")
    monkeypatch.setattr(state.BatchTask, "__call__", None)  # Nothing is summed again
    again = json.loads(calcheck("evaluate", file, *options, "--resume", "--save-state", tmp_path / "c.state").out)
    assert again["conclusion"] == whole["conclusion"]


def test_a_file_beyond_the_memory_limit_has_the_answer_of_each_target(calcheck, file):
    shown = " ".join(calcheck("evaluate", file, *STREAMED, "--memory", "1KiB", "--table").out.split())
    assert ("NO: y_2" in shown, "rows are processed in batches" in shown) == (True, True)


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


STUDIES = {
    "prune": ("--metrics", "zms", "--max-percent", "2", "--replicates", "19"),
    "reject": ("--metrics", "mae", "--criteria", "std", "--step", "30"),
    "recalibrate": ("--method", "scale", "--folds", "2", "--no-null", "--resamples", "0"),
    "slices": ("--by", "a:2", "--metrics", "zms,width-factor"),
    "monitor": ("--time", "b", "--metrics", "coverage"),
}
SPLIT = {"slices": ("--confidence", "0.975"), "monitor": ("--level", "0.025")}
"""Options by which the study of one target is that of one of two: all targets of a right model pass together."""


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_of_several_targets_is_that_of_each_of_them(calcheck, file, name):
    run = (name, file, *STUDIES[name], "--format", "json")
    found = json.loads(calcheck(*run).out)
    schemas.validate(found)
    assert [*found["targets"]] == ["y_1", "y_2"]
    for target, own in found["targets"].items():
        alone = json.loads(calcheck(*run, "--only", target, *SPLIT.get(name, ())).out)
        for each in (own, alone):  # Commands to run next repeat the options
            each["conclusion"] = each.get("conclusion") and {**each["conclusion"], "next": None}
        assert {**own, "targets": None} == {**alone, "targets": None}
    assert (found["results"], "only" in str(found["input"])) == ([], False)
    read = found["input"]
    assert (read["columns"]["y"], "y: y_1, y_2;" in read["layout"]) == ("y_1, y_2", True)


@pytest.mark.parametrize("name", STUDIES)
def test_tables_of_each_target_follow_each_other_and_csv_has_a_column_of_targets(calcheck, file, name):
    shown = calcheck(name, file, *STUDIES[name], *(() if name in ("prune", "reject") else ("--table",)))
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.index("\ny_1") < shown.out.index("\ny_2")
    frame = pd.read_csv(io.StringIO(calcheck(name, file, *STUDIES[name], "--format", "csv").out))
    assert [*dict.fromkeys(frame["target"].dropna())] == ["y_1", "y_2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"),
    [("slices", "y_1 YES · y_2"), ("monitor", "y_1 YES · y_2"), ("recalibrate", "y_1 NOT SHOWN · y_2 YES")],
)
def test_the_answer_for_many_targets_fits_on_a_screen(calcheck, many, name, told):
    shown = calcheck(name, many, *STUDIES[name], *(("--replicates", "399") if name == "slices" else ())).out
    assert len(shown.splitlines()) <= 24
    assert told in shown
    assert "--table" in shown


def test_results_of_rows_and_pictures_name_their_target(calcheck, file, tmp_path):
    where = ("--pointwise", tmp_path / "rows.csv", "--plot", tmp_path / "x.svg")
    assert calcheck("slices", file, "--metrics", "zms", "--columns", "a", *where).code == 0
    assert {"y_1_region", "y_2_region"} < {*pd.read_csv(tmp_path / "rows.csv")}
    picture = (tmp_path / "x.svg").read_text()
    assert ("y_1 · zms" in picture, "y_2 · zms" in picture) == (True, True)


@pytest.mark.parametrize("suffix", [".csv", pytest.param(".parquet", marks=pytest.mark.slow)])
def test_corrections_of_all_targets_are_written_to_one_file_and_the_report_has_their_correlation(
    calcheck, file, tmp_path, suffix
):
    rows = pd.read_csv(file)
    for name, half in (("val", rows[::2]), ("test", rows[1::2])):
        half.to_csv(tmp_path / f"{name}.csv", index=False)
    val, test, out, kept = (tmp_path / name for name in ("val.csv", "test.csv", f"out{suffix}", "map.json"))
    options = STUDIES["recalibrate"]
    ended = calcheck("recalibrate", val, *options, "--to", test, "-o", out, "--export", kept)
    assert "correlation  errors of y_1 and y_2 have a correlation of" in ended.out
    mended = library.read(out).predictions().distributions()
    for place, target in enumerate(("y_1", "y_2")):
        own = library.recalibrate(str(val), "scale", folds=2, metrics="zms", only=target, replicates=0).map
        alone = own.apply(library.read(str(test), only=target).predictions()).distributions()
        assert_allclose(mended.of_target(place).std(), alone.std(), rtol=1e-12)
    assert calcheck("recalibrate", test, "--map", kept, "-o", tmp_path / f"again{suffix}").code == 0
    assert (tmp_path / f"again{suffix}").read_bytes() == out.read_bytes()
    one = calcheck("recalibrate", test, "--map", kept, "--only", "y_2", "--format", "json").out
    assert json.loads(one)["settings"]["method"] == "scale"
    refused = calcheck(
        "recalibrate", test, "--map", kept, "--target", "y_1", "--mean", "mean_1", "--std", "std_1"
    ).refused()
    assert "the map corrects 2 targets, and there are 1" in refused


@pytest.mark.parametrize("method", ["scale", "pit", pytest.param("beta", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_mended_targets_keep_how_they_vary_together(kind, method):
    rows = forecasts(kind, 0.6, KINDS[kind], factor=5 / 3)
    found = library.recalibrate(rows, method, folds=2, metrics="zms", replicates=0)
    mended = found.map.apply(rows)
    assert found.table.loc[("y_2", method), "difference"] < 0
    if kind == "draws":
        order = np.argsort(rows.distributions().draws, axis=1)
        steps = np.diff(np.take_along_axis(mended.distributions().draws, order, axis=1), axis=1)
        assert (steps > 0 if method == "scale" else steps >= 0).all()  # maps of probabilities may merge draws
        return
    assert_allclose(predicted_correlations(mended), predicted_correlations(rows), rtol=1e-12, atol=1e-12)
    own = found.map.targets["y_2"].apply(rows.of_target(1)).distributions()
    assert_allclose(mended.distributions().cdf(rows.y)[:, 1], own.cdf(rows.y[:, 1]), rtol=1e-12)
    if method == "scale":
        return
    with pytest.raises(DataError, match="files cannot hold other distributions of several targets"):
        canonical_columns(mended)


def clipped(rows, high):
    """Return rows whose targets end at a limit, and are predicted so."""
    part = Observation(high=np.full(len(rows), high))
    return replace(rows, y=np.minimum(rows.y, high), observation=Observations((part, part))).observed()


@pytest.mark.slow
def test_clipped_targets_have_the_dependence_that_is_predicted_in_all_but_5_percent_of_sets():
    """At most 11 of 100 right models are rejected, and limits of 90 % exclude 1 for at most 18, in 99.5 % of cases."""
    metric, rejected, outside, count = DependenceFactor(), 0, 0, sets(100)
    for seed in range(count):
        source = InMemory(clipped(forecasts("covariance", 0.6, 0.6, seed=seed, n=200), 0.3))
        found = evaluate(source, [metric], run=Run(replicates=19, resamples=0)).results
        rejected += found[0].p_value <= 0.05
        pairs = metric.pairs(metric.fit(source, RUN), source.rows, 0.05, None)
        outside += not pairs[1].low <= 1 <= pairs[1].high
    assert rejected <= binom.ppf(0.995, count, 0.05)
    assert outside <= binom.ppf(0.995, count, 0.1)


def test_clipped_targets_whose_correlation_is_predicted_as_0_are_wrong_together_and_each_is_right():
    found = conclusion(clipped(forecasts("covariance", correlation=0.8), 0.3))
    (dependence,) = found.effects
    assert (found.answer, [each.answer == "no" for each in found.outputs]) == ("no", [False, False])
    assert (dependence.within, dependence.p <= 0.05) == (False, True)


@pytest.mark.slow
def test_metrics_of_clipped_correlated_targets_without_a_formula_are_skipped_with_the_way_out():
    rows = replace(clipped(forecasts("covariance", 0.6, 0.6), 0.3), x=np.zeros((N, 1)) + np.arange(N)[:, None])
    metrics = [METRICS[name]() for name in ("nll", "crps", "pit", "jmmd", "zms")]
    report = evaluate_outputs(InMemory(rows), metrics, run=RUN, answer=Answer())
    reasons = {each.metric: each.reason for each in report.skipped}
    assert {*reasons} == {"nll", "jmmd"}
    assert all("has no formula: pass --only TARGET" in each for each in reasons.values())
    assert [each.metric for each in report.results] == ["crps", "pit"]
    assert [[each.metric for each in own.results] for own in report.outputs] == [
        ["nll", "crps", "pit", "jmmd", "zms"]
    ] * 2


def test_models_of_several_targets_are_compared_on_all_together_and_on_each(calcheck, file, tmp_path):
    rows = pd.read_csv(file)
    rows.assign(std_2=rows["std_2"] * 5 / 3).to_csv(tmp_path / "wide.csv", index=False)
    shown = calcheck("compare", file, tmp_path / "wide.csv", "--metrics", "crps,zms")
    assert "y_2" in shown.out
    assert "wide is best by crps" in shown.out
    found = json.loads(
        calcheck("compare", file, tmp_path / "wide.csv", "--metrics", "crps,zms", "--format", "json").out
    )
    parts = {(each["slice"]["dataset"], each["metric"]) for each in found["results"]}
    assert parts == {("all targets", "crps"), *((f"y_{place}", each) for place in (1, 2) for each in ("crps", "zms"))}
    assert [each["dataset"] for each in found["best"]] == ["all targets", "y_2"]
    assert found["input"]["n"] == len(rows)


def test_a_state_of_a_monitor_is_about_one_target(calcheck, file, tmp_path):
    path, options = tmp_path / "m.state", ("--time", "b", "--metrics", "coverage")
    assert calcheck("monitor", file, *options, "--save-state", path).code == 0
    states = [tmp_path / f"m-y_{place}.state" for place in (1, 2)]
    assert [each.exists() for each in states] == [True, True]
    assert "a state is about one target" in calcheck("monitor", states[0], file, *options).refused()
    shown = calcheck("monitor", states[1], "--format", "json").out
    assert json.loads(shown)["monitor"]["verdict"] == "fail"


def test_standard_input_of_several_targets_is_read_once(calcheck, file, monkeypatch):
    content = Path(file).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    shown = calcheck("slices", "-", "--input-format", "csv", *STUDIES["slices"])
    assert "y_1 YES" in shown.out or "y_1 NO" in shown.out, shown.err


def test_what_needs_one_target_names_the_option_that_chooses_it(calcheck, file):
    assert "pass --only TARGET" in calcheck("zms", file).refused()
    assert "--only takes one of the targets y_1, y_2, got 'y'" in calcheck("zms", file, "--only", "y").refused()


def test_targets_of_arrays_are_numbered_and_one_is_chosen_by_its_number():
    rows = forecasts("draws", 0.6, 0.6, factor=5 / 3)
    given = {"y": rows.y, "samples": rows.distributions().draws}
    report = library.evaluate(**given, metrics=["zms"], replicates=19)
    assert [each.name for each in report.outputs] == ["y_1", "y_2"]
    assert library.evaluate(**given, only="y_2", metrics=["zms"], replicates=19).results == report.outputs[1].results


def test_the_options_for_targets_that_look_clipped_or_rounded_are_those_of_all_of_them(calcheck, file):
    """The first target ends at 1, and the second is rounded to halves."""
    rows = pd.read_csv(file)
    rows = rows.assign(y_1=np.minimum(rows["y_1"], 1), y_2=np.floor(rows["y_2"] * 2 + 0.5) / 2)
    rows.to_csv(file, index=False)
    shown = " ".join(calcheck("evaluate", file).out.split())
    assert "targets y_1 looks clipped: if so, pass --clip ,1,,; y_2 looks rounded: if so, pass --rounded ,0.5" in shown
    assert f"test calcheck evaluate {file} --clip ,1,, --rounded ,0.5 " in shown.replace("\\ ", "")
    again = calcheck("evaluate", file, "--clip", ",1,,", "--rounded", ",0.5").out
    assert "looks" not in again
