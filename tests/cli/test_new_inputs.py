"""`--on`: the answer for new inputs, on the screen, in JSON, in rules and row by row, and what contradicts it."""

import json
import math
import shlex

import numpy as np
import pandas as pd
import pytest

X = ("--inputs", "a,b")
FEW = ("--replicates", 19, "--resamples", 0)


@pytest.fixture
def frames():
    """Return 80 tested rows, and 40 new ones of which the last five are far away."""
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(120, 2))
    inputs[-5:] += 100
    frame = pd.DataFrame(inputs, columns=["a", "b"]).assign(mean=inputs[:, 0], std=1.0)
    frame["y"] = frame["mean"] + rng.normal(size=120)
    return frame[:80], frame[80:].reset_index(drop=True)


@pytest.fixture
def files(frames, tmp_path):
    """Return the paths of tested rows, and of new inputs without targets and predictions."""
    old, new = frames
    old.to_csv(tmp_path / "old.csv", index=False)
    new[["a", "b"]].to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "old.csv", tmp_path / "new.csv"


@pytest.fixture
def evaluated(calcheck):
    def run(*arguments):
        ended = calcheck("evaluate", *arguments, *FEW, "--metrics", "zms", "--format", "json")
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    return run


def test_the_rows_of_the_other_file_are_counted_and_those_far_away_named(evaluated, files, tmp_path):
    old, new = files
    report = evaluated(old, *X, "--on", new, "--pointwise", tmp_path / "rows.csv")
    on = report["conclusion"]["on"]
    assert on["rows"] == 40
    assert on["beyond"]["rows"] == 5
    assert on["beyond"]["low"] <= on["beyond"]["share"] <= on["beyond"]["high"]
    assert on["tolerance"] == 0.2
    assert [(each["role"], each["rows"]) for each in report["input"]["files"]] == [
        ("predictions", 80),
        ("new_inputs", 40),
    ]
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert rows["beyond"].tolist() == [False] * 35 + [True] * 5
    tested = pd.read_csv(old)[["a", "b"]].to_numpy()
    middle = np.subtract(*np.quantile(tested, (0.75, 0.25), axis=0)) / 1.349
    scaled = (rows[["a", "b"]].to_numpy()[:, None] - tested) / np.minimum(tested.std(axis=0, ddof=1), middle)
    assert rows["nearest"].tolist() == np.linalg.norm(scaled, axis=2).argmin(axis=1).tolist()


def test_rows_to_label_are_ranked_and_known_targets_compared_with_what_was_foretold(evaluated, frames, files, tmp_path):
    """Every second new row has a target; the last five are beyond the tested inputs, where nothing is foretold."""
    old, new = files
    frames[1].assign(y=frames[1]["y"].where(frames[1].index % 2 == 0)).to_csv(new, index=False)
    on = evaluated(old, *X, "--on", new, "--label", 15, "--pointwise", tmp_path / "rows.csv")["conclusion"]["on"]
    assert on["labelled"] == 20
    assert on["width"] == pytest.approx(2 * 1.6448536)
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert rows["label_rank"].dropna().sort_values().index.tolist() == on["label"]
    assert sorted(rows["label_rank"].dropna()) == list(range(1, 16))
    assert rows["y"][on["label"]].isna().all()
    assert rows["y"].isna().sum() == 20
    topics = [[each["topic"] for each in on[name] if each["value"] is not None] for name in ("foretold", "observed")]
    assert topics[0][:2] == topics[1][:2] == ["size", "bias"]


@pytest.mark.slow
def test_targets_that_contradict_what_was_foretold_count_alone(calcheck, evaluated, frames, files, tmp_path):
    """Errors are ten times as large as among the tested rows; with 26 of 35 targets, too few count for an answer."""
    old, new = frames[0], frames[1]
    new = new.assign(y=new["mean"] + 10 * (new["y"] - new["mean"]))
    found = {}
    for count in (35, 26):
        new.assign(y=new["y"].where(new.index < count)).to_csv(tmp_path / "known.csv", index=False)
        found[count] = evaluated(files[0], *X, "--on", tmp_path / "known.csv")["conclusion"]["on"]
    assert [each["contradicted"] for each in found.values()] == [True, True]
    assert [each["answer"] for each in found.values()] == ["no", "not-shown"]
    effect, observed = found[35]["effects"][0], found[35]["observed"][0]
    assert effect["value"] == pytest.approx(observed["value"], rel=0.2)
    assert found[35]["effective_rows"] <= 35
    assert "cannot stand for all new rows: 25 new targets count, 30 are needed" in found[26]["effects"][0]["text"]
    told = " ".join(
        calcheck("evaluate", files[0], *X, "--on", tmp_path / "known.csv", *FEW, "--metrics", "zms").out.split()
    )
    assert "more than inputs changed, such as the model: only new targets count" in told
    rule = ("--fail-on", "on.contradicted == 1", "--format", "json")
    gates = json.loads(calcheck("check", files[0], *X, *FEW, "--on", tmp_path / "known.csv", *rule).out)["gates"]
    assert gates[0]["message"] == "on.contradicted is 1"
    assert not gates[0]["passed"]
    same = frames[1].assign(y=old["y"].to_numpy()[:40] - old["mean"].to_numpy()[:40] + frames[1]["mean"])
    same.to_csv(tmp_path / "known.csv", index=False)
    assert not evaluated(files[0], *X, "--on", tmp_path / "known.csv")["conclusion"]["on"]["contradicted"]


def test_nothing_is_foretold_where_few_tested_rows_count(evaluated, files, tmp_path):
    """The new rows are in a corner of the tested inputs, which has few rows."""
    rng = np.random.default_rng(0)
    x = 1.0 + 0.1 * rng.normal(size=(15, 2))
    new = pd.DataFrame(x, columns=["a", "b"]).assign(mean=0.0, std=1.0, y=rng.normal(size=15))
    new.to_csv(tmp_path / "corner.csv", index=False)
    on = evaluated(files[0], *X, "--on", tmp_path / "corner.csv")["conclusion"]["on"]
    assert on["foretold"] == []
    assert [each["topic"] for each in on["observed"]] == ["size", "bias"]


def test_rows_with_a_new_category_lie_beyond_and_the_others_are_answered(evaluated, frames, tmp_path):
    old, new = frames
    old.assign(site=np.arange(80) % 2).replace({"site": {0: "x", 1: "y"}}).to_csv(tmp_path / "old.csv", index=False)
    new[["a", "b"]].assign(site=["z"] * 3 + ["x", "y"] * 18 + ["x"]).to_csv(tmp_path / "new.csv", index=False)
    rows = tmp_path / "rows.csv"
    arguments = ("--inputs", "a,site", "--on", tmp_path / "new.csv", "--label", 50, "--pointwise", rows)
    on = evaluated(tmp_path / "old.csv", *arguments)["conclusion"]["on"]
    assert (on["beyond"]["rows"], on["beyond"]["untested"]) == (8, 3)
    assert pd.read_csv(rows)["beyond"].tolist() == [True] * 3 + [False] * 32 + [True] * 5
    assert len(on["label"]) == 32
    assert on["no_label"] == "only 32 new rows without a target lie among the tested inputs"


def test_new_rows_are_read_from_one_file_or_several(evaluated, frames, files, tmp_path):
    old, _ = files
    for place in range(2):
        frames[1][["b", "a"]][20 * place : 20 * place + 20].to_parquet(tmp_path / f"part-{place}.parquet")
    on = evaluated(old, *X, "--on", tmp_path / "part-*.parquet")["conclusion"]["on"]
    assert (on["rows"], on["beyond"]["rows"]) == (40, 5)


def test_an_embedding_is_compared_with_that_of_the_other_file(evaluated, frames, tmp_path):
    for frame, name, known in zip(frames, ("old", "new"), (["y", "mean", "std"], []), strict=True):
        frame[known].assign(embedding=frame[["a", "b"]].to_numpy().tolist()).to_parquet(tmp_path / name)
    np.save(tmp_path / "new.npy", frames[1][["a", "b"]].to_numpy())
    for name in ("new", "new.npy"):
        on = evaluated(tmp_path / "old", "--input-format", "parquet", "--on", tmp_path / name)["conclusion"]["on"]
        assert on["inputs_differ"]["columns"] == []
        assert on["beyond"]["rows"] == 5


@pytest.mark.slow
def test_predictions_without_targets_and_targets_without_predictions_are_not_judged(calcheck, frames, files, tmp_path):
    """Those without targets include corrected ones, whose columns differ from those of the tested rows."""
    old, new = files[0], frames[1]
    student = new.drop(columns=["y", "mean", "std"]).assign(dist="student-t", df=5, loc=0, scale=1)
    kinds = {"unseen": new.drop(columns="y"), "student": student, "alone": new.drop(columns="std"), "whole": new}
    kinds["corrected"] = student.assign(y=new["y"])
    found = {}
    for name, frame in kinds.items():
        frame.to_csv(tmp_path / "other.csv", index=False)
        ended = calcheck("evaluate", old, *X, *FEW, "--metrics", "zms", "--on", tmp_path / "other.csv")
        found[name] = " ".join(ended.out.split())
    unjudged = "the tested model is judged, not the predictions there without targets"
    assert [name for name, text in found.items() if unjudged in text] == ["unseen", "student"]
    unused = "targets there are not used without predictions: there is no column 'std'"
    assert [name for name, text in found.items() if unused in text] == ["alone"]
    other = "targets there are not used: predictions there are of another kind. Evaluate that file itself"
    assert [name for name, text in found.items() if other in text] == ["corrected"]


@pytest.mark.slow
def test_predictions_are_needed_only_beside_targets(calcheck, evaluated, frames, files, tmp_path):
    new, some = frames[1], frames[1].index < 30
    new.assign(**{name: new[name].where(some) for name in ("y", "mean", "std")}).to_csv(tmp_path / "some.csv")
    on = evaluated(files[0], *X, "--on", tmp_path / "some.csv")["conclusion"]["on"]
    assert (on["rows"], on["labelled"], on["width"]) == (40, 30, None)
    assert on["unjudged"] == ""
    new.assign(std=new["std"].where(some), y=new["y"].where(new.index < 33)).to_csv(tmp_path / "some.csv")
    on = evaluated(files[0], *X, "--on", tmp_path / "some.csv")["conclusion"]["on"]
    assert on["labelled"] == 30
    assert on["unjudged"] == "3 of 40 rows there have a target but no prediction: these targets are not used"
    new.assign(std=new["std"].where(some), y=new["y"].where(~some)).to_csv(tmp_path / "some.csv")
    on = evaluated(files[0], *X, "--on", tmp_path / "some.csv")["conclusion"]["on"]
    assert (on["labelled"], on["unjudged"]) == (0, "targets there are not used: no row with a target has a prediction")
    new.assign(std=new["std"].where(some)).drop(columns="y").to_csv(tmp_path / "some.csv")
    on = evaluated(files[0], *X, "--on", tmp_path / "some.csv")["conclusion"]["on"]
    assert on["unjudged"] == "the tested model is judged, not the predictions there without targets"
    new.assign(std=new["std"].where(some, -1)).to_csv(tmp_path / "wrong.csv")
    assert "std must be" in calcheck("evaluate", files[0], *X, *FEW, "--on", tmp_path / "wrong.csv").refused()


def test_several_files_are_named_as_they_were_given(calcheck, frames, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    frames[1][["a", "b"]].to_parquet("parts/0.parquet")
    for places in (1, 2):  # one file and several
        frames[1][["a", "b"]].to_parquet(f"parts/{places - 1}.parquet")
        text = calcheck("evaluate", files[0], *X, *FEW, "--metrics", "zms", "--on", "parts/*.parquet").out
        assert " on parts/*.parquet: " in " ".join(text.split())


def test_the_screen_has_an_answer_for_the_new_inputs_within_24_lines(calcheck, files, monkeypatch):
    monkeypatch.delenv("COLUMNS")
    old, new = files
    lines = calcheck("evaluate", old, *X, *FEW, "--metrics", "zms", "--on", new).out.splitlines()
    assert len(lines[: lines.index(next(each for each in lines if each.startswith("metric ")))]) <= 24
    assert all(len(line) <= 80 or max(map(len, line.split())) > 40 for line in lines)
    told = next(line for line in lines if line.startswith("  new "))
    assert " on new.csv: " in told
    assert any("of 40 rows lie beyond;" in line for line in lines)
    whole = calcheck("evaluate", old, *X, *FEW, "--metrics", "zms", "--on", new, "--table").out
    assert "On new.csv?" in whole
    assert "lie beyond the tested inputs; --pointwise names 5" in " ".join(whole.split())


def test_rules_refer_to_the_new_inputs(calcheck, files):
    old, new = files
    rule = ("--fail-on", "on.beyond.share > 0.05")
    ended = calcheck("check", old, *X, *FEW, "--on", new, *rule, "--format", "json")
    gates = json.loads(ended.out)["gates"]
    assert ended.code == 1
    assert [(each["rule"], each["passed"]) for each in gates] == [(rule[1], False)]
    assert "is about new inputs: also pass --on FILE" in calcheck("check", old, *X, *rule).refused()
    assert "has no field 'sizes'. Did you mean 'size'?" in calcheck("check", old, "--fail-on", "on.sizes > 1").refused()


def test_the_check_has_a_gate_for_each_answer(calcheck, files):
    old, new = files
    zms = ("--metrics", "zms", "--format", "json")
    gates = json.loads(calcheck("check", old, *X, *FEW, "--on", new, *zms).out)["gates"][:2]
    assert [each["rule"] for each in gates] == ["answer == 'no'", "on.answer == 'no'"]
    gates = json.loads(calcheck("check", old, *X, *FEW, "--on", new, "--fail-on", "mae > 100", "--format", "json").out)
    assert [each["rule"] for each in gates["gates"]] == ["mae > 100", "on.answer == 'no'"]
    warned = ("--fail-on", "mae > 100", "--warn-on", "on.beyond.share > 0.9")
    gates = json.loads(calcheck("check", old, *X, *FEW, "--on", new, *warned, "--format", "json").out)["gates"]
    assert [each["rule"] for each in gates if each["level"] == "fail"] == ["mae > 100", "on.answer == 'no'"]
    rules = ("--fail-on", "mae > 100", "--strict")
    gates = json.loads(calcheck("check", old, *X, *FEW, "--on", new, *rules, "--format", "json").out)["gates"]
    assert [each["rule"][:14] for each in gates] == ["answer != 'yes", "on.answer != '", "mae > 100"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "--on compares inputs: also pass --inputs or --embedding"),
        (("--inputs", "a,c"), "there is no column 'c' for the inputs"),
        ((*X, "--weights", "std"), "--on does not apply to weighted means"),
        ((*X, "--by", "a"), "--on does not apply to groups (--by)"),
        ((*X, "--label", "-1"), "--label must be >= 0"),
        ((*X, "--save-state", "a.state"), "--on needs all rows in memory"),
    ],
)
def test_what_contradicts_new_inputs_is_refused_in_one_line(calcheck, files, options, problem):
    assert problem in calcheck("evaluate", files[0], "--on", files[1], *options).refused()


def test_an_embedding_of_another_name_is_named_in_the_new_file(calcheck, frames, tmp_path):
    for frame, name, kept in zip(frames, ("embedding", "vector"), (["y", "mean", "std"], []), strict=True):
        vectors = frame[kept].assign(**{name: frame[["a", "b"]].to_numpy().tolist()}, row=0)
        vectors["std" if kept else "row"] = 0.3
        vectors.to_parquet(tmp_path / f"{name}.parquet")
    arguments = ("evaluate", tmp_path / "embedding.parquet", *FEW, "--metrics", "zms", "--on")
    refused = calcheck(*arguments, tmp_path / "vector.parquet").refused()
    assert "vector.parquet: no column is an embedding. Name it, as in --on" in refused
    found = calcheck(*arguments, named := f"{tmp_path / 'vector.parquet'}:vector", "--format", "json")
    (command,) = [each for each in json.loads(found.out)["conclusion"]["next"] if "recalibrate" in each]
    assert command.endswith(f" --on {named}")


def test_new_rows_without_the_inputs_are_refused(calcheck, files, tmp_path):
    pd.DataFrame({"a": [1.0]}).to_csv(tmp_path / "other.csv", index=False)
    refused = calcheck("evaluate", files[0], *X, "--on", tmp_path / "other.csv").refused()
    assert "other.csv: there is no column 'b' for the inputs" in refused
    assert "also pass --on FILE" in calcheck("evaluate", files[0], "--label", 5).refused()
    same = calcheck("evaluate", files[0], *X, *FEW, "--metrics", "zms", "--on", files[0]).refused()
    assert "--on names the file of the tested rows." in same
    assert "there is no file" in calcheck("evaluate", files[0], *X, "--on", tmp_path / "none.csv").refused()


def test_several_targets_are_refused_without_the_name_of_one(calcheck, files, tmp_path):
    old = pd.read_csv(files[0])
    frame = pd.concat([old[["a", "b"]], *(old[["y", "mean", "std"]].add_suffix(f"_{n}") for n in (1, 2))], axis=1)
    frame.to_csv(tmp_path / "two.csv", index=False)
    columns = [word for name in ("mean", "std") for word in (f"--{name}", f"{name}_1,{name}_2")]
    columns += ["--target", "y_1,y_2"]
    refused = calcheck("evaluate", tmp_path / "two.csv", *X, *columns, "--on", files[1]).refused()
    assert "--on answers for one target, and there are y_1, y_2: pass --only y_1" in refused


@pytest.mark.slow
def test_the_page_has_the_new_inputs_on_its_map(calcheck, files, tmp_path):
    old, new = files
    page = tmp_path / "page.html"
    assert calcheck("report", old, *X, *FEW, "--metrics", "zms", "--on", new, "-o", page).code == 0
    text = page.read_text()
    assert ">New inputs</h2>" in text
    for title in ("Local factor, and the new rows", "Distances from the tested inputs"):
        assert title in text


def test_rows_of_a_cluster_count_together_also_those_with_targets(calcheck, evaluated, frames, files, tmp_path):
    old, new = frames
    old.assign(site=np.arange(80) // 4).to_csv(tmp_path / "old.csv", index=False)
    new.assign(site=20 + np.arange(40) // 4).to_csv(tmp_path / "known.csv", index=False)
    new.to_csv(tmp_path / "unknown.csv", index=False)
    arguments = (tmp_path / "old.csv", *X, "--cluster", "site", "--on")
    alone, together = (evaluated(*arguments, each)["conclusion"]["on"] for each in (files[1], tmp_path / "known.csv"))
    assert (alone["labelled"], together["labelled"]) == (0, 40)
    assert together["effective_rows"] > alone["effective_rows"]
    series = evaluated(tmp_path / "old.csv", *X, "--time", "site", "--on", tmp_path / "known.csv")["conclusion"]["on"]
    assert (series["labelled"], series["foretold"]) == (40, [])  # of 20 times, 30 are needed
    message = calcheck("evaluate", *arguments, tmp_path / "unknown.csv", *FEW).refused()
    assert "unknown.csv has targets, but no column 'site'" in message


# what to do next


@pytest.fixture
def labels(calcheck, tmp_path):
    """Return the answer of right predictions at new inputs, and how many labels are suggested; None if none are."""

    def run(tested, new):
        names, files = list("abcdefgh"[: tested.shape[1]]), (tmp_path / "tested.csv", tmp_path / "new.csv")
        old, other = (pd.DataFrame(x, columns=names) for x in (tested, new))
        y = np.random.default_rng(2).normal(size=len(old))
        old.assign(y=y, mean=0.0, std=1.0).to_csv(files[0], index=False)
        other.to_csv(files[1], index=False)
        arguments = (files[0], "--inputs", ",".join(names), "--on", files[1], *FEW, "--metrics", "zms")
        found = json.loads(calcheck("evaluate", *arguments, "--format", "json").out)["conclusion"]
        words = [shlex.split(each) for each in found["next"]]
        return found["on"], next((int(each[each.index("--label") + 1]) for each in words if "--label" in each), None)

    return run


@pytest.mark.slow
def test_as_many_targets_are_suggested_as_would_show_the_answer(labels):
    """A target there has the weight of a tested row that counts: of n rows, k count, and m are needed: k (m/n - 1)."""
    rng = np.random.default_rng(9)
    tested, new = rng.normal(size=(150, 2)), rng.normal(size=(500, 2)) * [0.8, 1] + [1, 0]
    for rows, is_enough in ((500, True), (100, False)):
        on, count = labels(tested, new[:rows])
        needed = max(50, 10 * math.ceil(on["effective_rows"] * (on["rows_needed"] / 150 - 1) / 10))
        assert on["answer"] == "not-shown"
        assert (needed <= rows) == is_enough
        assert count == (needed if is_enough else None)


@pytest.mark.slow
def test_targets_are_suggested_where_few_tested_rows_count_and_not_where_weights_do_not_suffice(labels):
    """Where inputs still differ with weights, 50 targets have shown no answer on any of six real data sets."""
    rng = np.random.default_rng(0)
    corner = 2 + 0.1 * rng.normal(size=(60, 2))
    assert labels(rng.normal(size=(160, 2)), corner)[1] == 50
    assert labels(rng.normal(size=(160, 2)), corner[:49])[1] is None
    new = rng.normal(size=(300, 8))
    new[:, 0] += 1.5
    on, count = labels(rng.normal(size=(160, 8)), new)
    assert "means differ by" in on["effects"][0]["text"]
    assert count is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tested", "corrected"),
    [("old.csv", None), ("old.csv", "corrected.csv"), ("corrected.csv", "recorrected.csv")],
)
def test_the_correction_for_new_inputs_that_is_suggested_can_be_run(calcheck, tmp_path, monkeypatch, tested, corrected):
    """Standard deviations are half of what they should be above 1.4, and right on average."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=600)
    y = np.where(x > 1.4, 2, 0.9) * rng.normal(size=600)
    pd.DataFrame({"x": x, "y": y, "mean": 0.0, "std": 1.0}).to_csv(tested, index=False)
    new = pd.DataFrame({"x": rng.uniform(1, 2, size=60)})
    (new.assign(mean=0.0, std=1.0) if corrected else new).to_csv("new.csv", index=False)
    files = (tested, "--inputs", "x", "--on", "new.csv")
    found = calcheck("evaluate", *files, *FEW, "--metrics", "zms", "--format", "json")
    command = f"calcheck recalibrate {tested} --inputs x --on new.csv"
    command += f" --to new.csv -o {corrected}" if corrected else ""
    conclusion = json.loads(found.out)["conclusion"]
    assert conclusion["on"]["answer"] == "no"
    assert conclusion["next"][0] == command
    assert not any(" check " in each for each in conclusion["next"])  # it would fail
    assert calcheck(*command.split()[1:]).code == 0
    assert corrected is None or len(pd.read_csv(corrected)) == 60


@pytest.mark.slow
def test_the_screen_has_the_correction_for_new_inputs_in_place_of_that_of_tested_rows(calcheck, tmp_path, monkeypatch):
    """Standard deviations are too small above 1, which is the cause, and new inputs are there."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=600)
    y = np.where(x > 1, 2.5, 1) * rng.normal(size=600)
    pd.DataFrame({"id": range(600), "x": x, "y": y, "mean": 0.0, "std": 1.0}).to_csv("old.csv", index=False)
    pd.DataFrame({"x": rng.uniform(0, 2, size=60), "mean": 0.0, "std": 1.0}).to_csv("new.csv", index=False)
    arguments = ("evaluate", "old.csv", "--inputs", "x", "--on", "new.csv", *FEW, "--metrics", "zms")
    causes = json.loads(calcheck(*arguments, "--format", "json").out)["conclusion"]["causes"]
    assert causes[0]["command"] == "calcheck recalibrate old.csv --inputs x --id id"
    told = " ".join(calcheck(*arguments).out.split())
    assert " mend calcheck recalibrate old.csv --inputs x --on new.csv --to new.csv -o corrected.csv " in told


@pytest.mark.slow
@pytest.mark.parametrize(("known", "nan_policy"), [(80, ""), (60, " --nan-policy omit")])
def test_new_targets_that_contradict_what_was_foretold_are_what_a_correction_is_fitted_to(
    calcheck, tmp_path, monkeypatch, known, nan_policy
):
    """New errors are five times as large; those of tested rows, which have other names of rows, are not mended."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    x, error = rng.normal(size=(280, 2)), rng.normal(size=280)
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(truth=error * np.repeat([1, 5], [200, 80]), mean=0.0, std=1.0)
    frame[:200].assign(id=range(200), site=["s", "t"] * 100).to_csv("old.csv", index=False)
    frame[200:].assign(truth=frame["truth"].where(frame.index < 200 + known)).to_csv("new.csv", index=False)
    options = ("--filter", "site=s", "--target", "truth", "--on", "new.csv", "--metrics", "zms", *FEW)
    found = calcheck("evaluate", "old.csv", *X, *options, "--format", "json")
    conclusion = json.loads(found.out)["conclusion"]
    assert (conclusion["on"]["contradicted"], conclusion["on"]["answer"]) == (True, "no")
    command = f"calcheck recalibrate new.csv --target truth --inputs a,b{nan_policy}"
    assert conclusion["next"][0] == command
    assert "a correction help?  YES: scale" in calcheck(*command.split()[1:], *FEW).out
    assert f"  mend     {command}\n" in calcheck("evaluate", "old.csv", *X, *options).out


def test_the_bias_at_new_inputs_is_that_of_rows_that_clips_leave(evaluated, tmp_path):
    """Targets are 0.4 too high, also where most are clipped; the means of scores and of their unit have one weight."""
    rng, levels = np.random.default_rng(0), {0.05: -1.644854, 0.25: -0.67449, 0.5: 0.0, 0.75: 0.67449, 0.95: 1.644854}
    for name, share in {"tested": 0.3, "new": 0.7}.items():
        x = 4.0 * (rng.random(1_000) < share) + 0.3 * rng.normal(size=1_000)
        mean = np.where(x > 2, 1.5, -4.0)
        columns = {f"q{level}": mean + score for level, score in levels.items()}
        y = {"y": np.minimum(mean + 0.4 + rng.normal(size=1_000), 0.0)} if name == "tested" else {}
        pd.DataFrame({**y, "x": x, **columns}).to_csv(tmp_path / f"{name}.csv", index=False)
    options = ["--inputs", "x", "--clip", ",0"]
    report = evaluated(tmp_path / "tested.csv", "--on", tmp_path / "new.csv", *options)
    (bias,) = (each for each in report["conclusion"]["on"]["effects"] if each["topic"] == "bias")
    assert bias["value"] == pytest.approx(0.4, abs=0.08)
