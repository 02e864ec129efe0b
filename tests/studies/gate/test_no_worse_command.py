"""`calcheck check --against … --no-worse`: an improvement passes, a significant worsening does not."""

import json
import shutil

import numpy as np
import pytest
from scipy.stats import norm

from tests.helpers.files import write
from tests.helpers.schemas import validate

N = 120
NAMES = "mae,zms,ece,lzms,width"
QUICK = ("--resamples", 200, "--no-null")


def predictions(even=1.0, odd=1.0, n=N):
    """Return predictions of the same targets, with the errors of even and of odd rows times a factor each."""
    rng = np.random.default_rng(11)
    error = rng.normal(size=N)
    parts = {"id": np.arange(N), "y": rng.normal(size=N), "std": np.ones(N), "part": np.repeat(["a", "b"], N // 2)}
    parts["mean"] = parts["y"] - error * np.tile([even, odd], N // 2)
    return {name: values[:n] for name, values in parts.items()}


@pytest.fixture
def base(calcheck, tmp_path, monkeypatch):
    """Stand in a folder with predictions and their report."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "old.parquet", predictions())
    command = ("evaluate", "old.parquet", "--metrics", NAMES, *QUICK, "--format", "json", "-o", "base.json")
    assert calcheck(*command).code == 0
    write(tmp_path / "better.parquet", predictions(0.8, 0.8))
    write(tmp_path / "close.parquet", predictions(1.6, 0.5))
    write(tmp_path / "worse.parquet", predictions(2, 2))
    return tmp_path / "base.json"


@pytest.fixture
def gates(calcheck, base):  # noqa: ARG001 - writes the files
    """Return the exit code and the gates of a check, by metric."""

    def run(file, *arguments, against="base.json"):
        found = calcheck("check", file, "--against", against, "--no-worse", *arguments, *QUICK, "--format", "json")
        assert found.err == ""
        return found.code, {gate["rule"].split()[0]: gate for gate in json.loads(found.out)["gates"]}

    return run


def test_an_improvement_passes_that_a_tolerance_refuses(calcheck, gates):
    _, found = gates("better.parquet")
    assert found["mae"]["passed"]
    assert found["mae"]["message"].endswith(", better")
    changed = calcheck("check", "better.parquet", "--against", "base.json", *QUICK, "--format", "json")
    assert not {gate["rule"].split()[0]: gate for gate in json.loads(changed.out)["gates"]}["mae"]["passed"]


def test_a_significant_worsening_fails_and_names_the_metric(gates):
    code, found = gates("worse.parquet")
    assert code == 1
    assert {name for name, gate in found.items() if not gate["passed"]} >= {"mae", "zms", "ece"}
    assert "does not contain 0" in found["mae"]["message"]
    assert "is at most 0.05" in found["ece"]["message"]
    assert "(no interval and no p-value of the difference: the metric tests each bin" in found["lzms"]["message"]
    assert found["width"]["message"].endswith("not judged, because no value is better")


def test_a_worsening_within_the_paired_interval_passes_beyond_the_tolerance(gates):
    mae = gates("close.parquet", "--rtol", 0)[1]["mae"]
    assert mae["values"]["mae"] > mae["values"]["base.mae.value"]
    assert mae["passed"]
    assert "difference, [-" in mae["message"]
    assert mae["message"].endswith("contains 0")


@pytest.mark.parametrize(
    ("change", "arguments", "reason"),
    [
        (lambda folder: (folder / "old.parquet").unlink(), (), "there is no file old.parquet"),
        (lambda folder: write(folder / "old.parquet", predictions(1.1)), (), "old.parquet has changed since"),
        (lambda _: None, ("--subsample", 100), "--subsample draws other rows"),
        (lambda _: None, ("--filter", "part=a"), "old.parquet has other values with these options"),
        (
            lambda folder: write(folder / "close.parquet", predictions(1.6, 0.5, n=100)),
            (),
            "20 of 120 rows of the baseline old.parquet are not in",
        ),
    ],
)
def test_without_the_same_rows_the_tolerance_decides_and_the_reason_is_stated(
    gates, tmp_path, change, arguments, reason
):
    change(tmp_path)
    mae = gates("close.parquet", "--rtol", 0, *arguments)[1]["mae"]
    assert reason in mae["message"]
    assert not mae["passed"]


def test_predictions_are_a_baseline_without_a_report(gates):
    code, found = gates("worse.parquet", against="old.parquet")
    assert code == 1
    assert found.keys() >= {*NAMES.split(","), "crps"}
    assert "does not contain 0" in found["mae"]["message"]
    assert gates("better.parquet", "--metrics", "mae", against="old.parquet")[0] == 0


@pytest.mark.usefixtures("base")
def test_predictions_as_a_baseline_must_not_be_worse_without_saying_so(calcheck):
    command = ("check", "worse.parquet", "--against", "old.parquet", *QUICK)
    said, unsaid = calcheck(*command, "--no-worse"), calcheck(*command)
    assert (unsaid.code, unsaid.out) == (said.code, said.out)
    assert unsaid.code == 1


def test_predictions_and_their_report_are_the_same_baseline(gates):
    by_report = gates("worse.parquet")[1]
    assert gates("worse.parquet", "--metrics", NAMES, against="old.parquet")[1] == by_report


def test_a_model_is_not_worse_than_itself_under_another_name(gates, tmp_path):
    shutil.copy(tmp_path / "old.parquet", tmp_path / "copy.parquet")
    for against in ("base.json", "old.parquet"):
        code, found = gates("copy.parquet", "--rtol", 0, against=against)
        assert code == 0
        assert found["mae"]["message"].endswith("as good")


@pytest.mark.usefixtures("base")
def test_the_report_matches_the_schema(calcheck):
    command = ("check", "worse.parquet", "--against", "base.json", "--no-worse", *QUICK, "--format", "json")
    validate(json.loads(calcheck(*command).out))


def test_rules_and_a_baseline_are_both_checked(gates):
    code, found = gates("better.parquet", "--fail-on", "rmse > 0", "--metrics", "mae", against="old.parquet")
    assert code == 1
    assert found["rmse"]["passed"] is False
    assert found["mae"]["passed"] is True


@pytest.fixture
def months(tmp_path, monkeypatch):
    """Stand in a folder with predictions of three months: of a right model, the same, and one too narrow by a third."""
    monkeypatch.chdir(tmp_path)
    for seed, (name, factor) in enumerate({"may": 1.0, "june": 1.0, "july": 1.5}.items()):
        rng = np.random.default_rng(seed)
        mean = rng.normal(size=200)
        rows = {"id": np.arange(200), "y": mean + factor * rng.normal(size=200), "mean": mean, "std": np.ones(200)}
        write(tmp_path / f"{name}.parquet", rows)


FEW = ("--metrics", "crps", "--format", "json")


@pytest.mark.usefixtures("months")
@pytest.mark.parametrize("against", ["may.json", "may.parquet"])
def test_other_rows_are_compared_by_the_answer_and_by_scores(calcheck, against):
    assert calcheck("evaluate", "may.parquet", *FEW, "-o", "may.json").code == 0
    command = ("--against", against, "--no-worse", *(FEW if against.endswith("parquet") else FEW[2:]))
    same, worse = (calcheck("check", f"{month}.parquet", *command) for month in ("june", "july"))
    assert (same.code, worse.code) == (0, 1)
    assert "other rows, so answers and scores are compared: 200 of 200 targets of the baseline may.parquet" in same.err
    first, *_ = json.loads(worse.out)["gates"]
    assert (first["rule"], first["passed"]) == ("effects.size is not worse", False)
    assert "worse (p < 0.01)" in first["message"]
    assert {each["rule"] for each in json.loads(same.out)["gates"]} >= {
        "crps is not worse",
        "effects.bias is not worse",
    }


@pytest.mark.usefixtures("base")
def test_rows_of_which_some_are_the_same_are_compared_as_other_ones(calcheck, tmp_path):
    write(tmp_path / "few.parquet", predictions(n=100))
    found = calcheck("check", "worse.parquet", "--against", "few.parquet", "--no-worse", "--metrics", "mae", *QUICK)
    assert found.code == 1
    assert "other rows, so answers and scores are compared: 20 of 120 rows of" in found.err


def test_impossible_targets_among_other_rows_are_worse(calcheck, tmp_path):
    """Exponential distributions give a number below 0 a probability of 0."""
    for name, seed in (("old", 0), ("new", 1)):
        y = np.random.default_rng(seed).exponential(4.0, 200)
        y[0] *= 1 if name == "old" else -1
        write(tmp_path / f"{name}.parquet", {"y": y, "a": np.ones(200), "scale": np.full(200, 4.0)})
    old, new = (tmp_path / f"{name}.parquet" for name in ("old", "new"))
    options = ("--dist", "gamma:scipy", "--metrics", "nll", "--no-worse", "--format", "json")
    found = calcheck("check", new, "--against", old, *options)
    assert found.code == 1
    first, *_ = json.loads(found.out)["gates"]
    assert (first["rule"], first["passed"]) == ("nll is not worse", False)
    assert "probability 0" in first["message"]


@pytest.mark.usefixtures("months")
def test_what_is_not_shown_passes_but_not_if_strict(calcheck):
    """The tolerance is less than what 200 rows can show."""
    command = ("check", "june.parquet", "--against", "may.parquet", "--no-worse", *FEW, "--tolerance", "0.01")
    found = calcheck(*command)
    assert found.code == 0
    assert "not shown, neither worse nor within 1 %" in found.out
    assert calcheck(*command, "--strict").code == 1


@pytest.mark.usefixtures("months")
def test_reports_without_an_answer_are_no_baseline_of_other_rows(calcheck, tmp_path):
    assert calcheck("evaluate", "may.parquet", *FEW, "-o", "may.json").code == 0
    report = json.loads((tmp_path / "may.json").read_text())
    (tmp_path / "may.json").write_text(json.dumps(report | {"conclusion": None}))
    refused = calcheck("check", "june.parquet", "--against", "may.json", "--no-worse")
    assert refused.code == 2
    assert "no answer to compare: write it again with calcheck evaluate" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--no-worse",), "--no-worse compares with a baseline: also pass --against BASE.json"),
        (("--against", "base.json", "--no-worse", "--within-interval"), "contradict each other"),
        (("--against", "old.parquet", "--within-interval"), "only without --within-interval"),
        (("--against", "old.parquet", "--subsample", 9), "only without --subsample"),
        (("--against", "gone.parquet", "--no-worse"), "there is no file gone.parquet"),
        (("--against", "old.parquet", "--no-worse", "-o", "old.parquet"), "would overwrite"),
        (("--against", "base.json", "--no-worse", "-o", "old.parquet"), "would overwrite"),
        (
            ("--against", "base.json", "--no-bootstrap"),
            "better.parquet: lzms: the intervals of bins need the bootstrap",
        ),
    ],
)
@pytest.mark.usefixtures("base")
def test_baselines_that_cannot_be_compared_are_refused(calcheck, arguments, message):
    assert message in calcheck("check", "better.parquet", *arguments).refused()


@pytest.mark.usefixtures("base")
def test_a_metric_that_only_the_baseline_has_is_not_dropped(calcheck, tmp_path):
    gaussian = predictions()
    quantiles = {f"{level}": gaussian["mean"] + norm.ppf(level) for level in (0.05, 0.5, 0.95)}
    write(tmp_path / "quantiles.parquet", {"id": gaussian["id"], "y": gaussian["y"], **quantiles})
    found = calcheck("check", "quantiles.parquet", "--against", "old.parquet", "--no-worse", *QUICK)
    assert "quantiles.parquet has no lzms to compare with the baseline: means and standard" in found.refused()
