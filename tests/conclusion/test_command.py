"""The conclusion on top of `calcheck evaluate`, and `calcheck FILE`."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import calcheck as library


@pytest.fixture
def narrow(tmp_path):
    """Return a file whose standard deviations are too small by a fifth, with two columns of inputs."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(500, 2))
    frame = pd.DataFrame({"y": inputs[:, 0] + rng.normal(size=500), "mean": inputs[:, 0], "std": 0.75})
    path = tmp_path / "narrow.parquet"
    frame.assign(lat=inputs[:, 0], lon=inputs[:, 1]).to_parquet(path)
    return path


FEW = ("--metrics", "bias,coverage,zms,pit,ence", "--no-bootstrap")


def test_a_file_is_evaluated_without_naming_a_command(calcheck, narrow):
    assert calcheck(narrow, *FEW).out == calcheck("evaluate", narrow, *FEW).out


def test_the_answer_uses_an_embedding_that_is_found_by_its_name_with_any_choice_of_metrics(calcheck, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2))
    frame = pd.DataFrame({"y": np.sign(x[:, 0]) + rng.normal(size=100), "mean": 0.0, "std": 1.4, "embedding": list(x)})
    frame.to_parquet(tmp_path / "a.parquet")
    options = ("--metrics", "zms", "--format", "json")
    found = json.loads(calcheck("evaluate", tmp_path / "a.parquet", *options).out)["conclusion"]
    assert (found["answer"], found["effects"][-1]["topic"]) == ("no", "inputs")
    assert [command.split()[1] for command in found["next"]] == ["recalibrate"]
    assert calcheck("check", tmp_path / "a.parquet", "--fail-on", "answer == no").code == 1
    assert library.evaluate(frame, "zms", replicates=59, resamples=0).conclusion.answer == "no"


@pytest.mark.parametrize("name", ["missing.csv", "folder/", "*.parquet"])
def test_a_name_that_looks_like_a_file_is_no_misspelt_command(calcheck, name):
    refused = calcheck(name)
    assert refused.code == 2
    assert "command" not in refused.err
    assert name.rstrip("/") in refused.err


@pytest.mark.slow
def test_the_conclusion_stands_above_the_table(calcheck, narrow):
    lines = calcheck(narrow, "--no-bootstrap", "--table").out.splitlines()
    assert lines[0].endswith("narrow.parquet · 500 rows · predictions: gaussian")
    assert lines[2] == "Can the uncertainties be trusted?  NO: size"
    assert lines[3].startswith("  size    33 % too narrow: 90 % intervals would have to be 1.")
    assert any(line.startswith("  inputs  not tested: pass --inputs or --embedding") for line in lines[3:11])
    assert any(line.startswith("  mend     calcheck ") for line in lines[3:28])
    assert "--inputs lat,lon" in re.sub(r" \\\n +", " ", "\n".join(lines[3:28]))
    assert any(line.startswith("metric ") for line in lines)


def test_errors_from_one_group_to_another_are_an_effect(calcheck, tmp_path):
    """Standard deviations are half of the right ones in one group of two, and a third too large in the other."""
    rng = np.random.default_rng(2)
    site = np.repeat(["north", "south"], 300)
    y = rng.normal(size=600) * np.where(site == "north", 2, 0.75)
    file = tmp_path / "sites.parquet"
    pd.DataFrame({"y": y, "mean": 0.0, "std": 1.0, "site": site, "w": rng.uniform(1, 2, 600)}).to_parquet(file)
    options = (*FEW, "--groups", "site", "--replicates", "39")
    effects = json.loads(calcheck("evaluate", file, *options, "--format", "json").out)["conclusion"]["effects"]
    found = {each["kind"]: each for each in effects if each["topic"] == "groups"}
    assert found["scale"]["value"] == pytest.approx(np.log(2 / 0.75) / 2, abs=0.12)
    assert found["scale"]["within"] is False
    assert found["bias"]["low"] < 0
    assert "from one site to another" in found["scale"]["text"]
    assert calcheck("check", file, *options, "--fail-on", "effects.groups.low > 0.2").code == 1
    by = calcheck("check", file, "--by", "site", "--fail-on", "effects.groups.low > 0.2", "--replicates", "39")
    assert by.code == 1
    assert "≥ 46 %, typical 52 %" in by.out.partition("  groups  ")[2]
    assert "no column 'nowhere'" in calcheck("check", file, "--groups", "nowhere").refused()
    assert "errors cannot vary" in calcheck("check", file, "--groups", "std").refused()
    assert "omit it, or --weights" in calcheck("evaluate", file, *options, "--weights", "w").refused()


@pytest.mark.slow
def test_the_answer_has_the_reason_why_inputs_are_not_tested(calcheck, narrow):
    weighted = calcheck(narrow, *FEW, "--inputs", "lat", "--weights", "lon", "--filter", "lon>0", "--table").out
    assert "inputs  not tested: the local error has no weighted form" in weighted
    batches = calcheck(narrow, "--metrics", "zms,bias", "--no-bootstrap", "--memory", "1KB", "--table")
    assert "inputs  not tested: the local error needs rows in memory" in batches.out


def test_a_topic_has_one_line(calcheck, tmp_path):
    rng = np.random.default_rng(3)
    a = rng.normal(size=500)
    file = tmp_path / "both.parquet"
    y = a + np.exp(0.7 * a) * rng.normal(size=500)
    pd.DataFrame({"y": y, "mean": 0.0, "std": 1.5, "a": a}).to_parquet(file)
    lines = calcheck(file, *FEW, "--inputs", "a", "--replicates", "39", "--table").out.splitlines()
    assert sum(line.startswith("  inputs ") for line in lines) == 1
    told = " ".join(line.strip() for line in lines)
    assert "uncertainties are off by at least" in told
    assert "predictions are off by at least" in told


def test_brief_output_is_the_conclusion_in_at_most_twelve_lines(calcheck, narrow, monkeypatch):
    monkeypatch.chdir(narrow.parent)
    lines = calcheck(narrow.name, *FEW, "--brief", "--inputs", "lat,lon").out.splitlines()
    assert len([line for line in lines if line]) <= 12
    assert not any(line.startswith("metric") for line in lines)


def test_the_first_level_is_that_of_the_answer(calcheck, narrow):
    conclusion = json.loads(calcheck(narrow, *FEW, "--level", "0.8,0.95", "--format", "json").out)["conclusion"]
    alone = json.loads(calcheck("width-factor", narrow, "--level", "0.8", "--no-null", "--format", "json").out)
    assert conclusion["level"] == 0.8
    assert [each["level"] for each in conclusion["factors"]] == [0.5, 0.8, 0.99]
    assert conclusion["effects"][0]["text"].split(": ")[1].startswith("80 % intervals would have to be")
    assert conclusion["effects"][0]["value"] == alone["results"][0]["value"]


def test_a_single_draw_per_row_has_no_size_that_could_be_tested(calcheck, tmp_path):
    rng = np.random.default_rng(0)
    columns = {"y": rng.normal(size=50), "sample_0": rng.normal(size=50), "x": rng.normal(size=50)}
    pd.DataFrame(columns).to_csv(tmp_path / "draws.csv", index=False)
    ended = calcheck("evaluate", tmp_path / "draws.csv", "--metrics", "mae", "--inputs", "x", "--brief")
    assert "NOT SHOWN: size decides, which could not be tested" in " ".join(ended.out.split())


def test_json_has_the_conclusion_and_commands_that_can_be_pasted(calcheck, narrow):
    conclusion = json.loads(calcheck(narrow, *FEW, "--target", "y", "--format", "json").out)["conclusion"]
    assert conclusion["answer"] == "no"
    assert [each["topic"] for each in conclusion["effects"] if each["within"] is False] == ["size"]
    size = conclusion["effects"][0]
    assert 1 < size["low"] < size["value"] < size["high"]
    assert [each["level"] for each in conclusion["factors"]] == [0.5, 0.9, 0.99]
    own = {name: size[name] for name in ("value", "low", "high")}
    assert conclusion["factors"][1] == {"level": 0.9, "within": None} | own
    assert conclusion["next"] == [
        f"calcheck evaluate {narrow} --target y --inputs lat,lon",
        f"calcheck recalibrate {narrow} --target y",
        f"calcheck coverage {narrow} --target y",
    ]


def test_a_check_does_not_suggest_itself(calcheck, tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"y": rng.normal(size=800), "mean": 0.0, "std": 1.0, "a": rng.random(800)})
    frame.to_parquet(tmp_path / "right.parquet")
    commands = {}
    for name in ("evaluate", "check"):
        report = json.loads(calcheck(name, tmp_path / "right.parquet", *FEW, "--format", "json").out)
        commands[name] = [command.split()[1] for command in report["conclusion"]["next"]]
    assert commands == {"evaluate": ["evaluate", "check"], "check": ["evaluate"]}


def test_results_say_how_a_model_is_wrong(calcheck, narrow):
    results = json.loads(calcheck(narrow, *FEW, "--format", "json").out)["results"]
    directions = {result["metric"]: result["direction"] for result in results}
    assert directions == {
        "zms": "too-narrow",
        "pit": "too-narrow",
        "coverage": "too-narrow",
        "ence": "wrong-in-bins",
        "bias": None,
    }
    assert "fail, too narrow" in calcheck("zms", narrow, "--no-bootstrap").out


@pytest.mark.parametrize("output", ["markdown", "html", "latex"])
def test_every_document_has_the_conclusion(calcheck, narrow, output):
    out = calcheck(narrow, *FEW, "--format", output).out
    assert "Can the uncertainties be trusted?" in out
    assert "too narrow" in out


def test_a_report_of_one_metric_has_no_conclusion(calcheck, narrow):
    assert json.loads(calcheck("zms", narrow, "--format", "json").out)["conclusion"] is None


def test_how_wrong_many_rows_are_on_average_is_written_before_the_inputs_are_tested(calcheck, narrow, limits):
    arguments = (narrow, "--metrics", "zms", "--inputs", "lat,lon", "--replicates", "19")
    assert calcheck(*arguments).err == ""
    limits(several_rows=500)
    ended = calcheck(*arguments, "--table")
    lines = [line.split(maxsplit=1) for line in ended.err.splitlines()]
    assert [topic for topic, _ in lines] == ["on", "size", "shape", "bias"]
    assert "90 % intervals would have to be 1." in lines[1][1]
    assert lines[1][1].partition("have to be ")[2][:5] in ended.out
    assert calcheck(narrow, "--metrics", "zms").err == ""


def test_what_is_not_shown_of_a_series_is_monitored_next(calcheck, tmp_path):
    rng = np.random.default_rng(0)
    file = tmp_path / "few.csv"
    pd.DataFrame({"y": rng.normal(size=40), "mean": 0.0, "std": 1.0, "day": np.arange(40)}).to_csv(file, index=False)
    found = calcheck(file, "--time", "day", *FEW)
    assert "NOT SHOWN" in found.out
    assert f"calcheck monitor {file} --time day" in re.sub(r" \\\n +", " ", found.out)


def test_a_change_over_time_is_monitored_first(calcheck, tmp_path):
    rng, days, file = np.random.default_rng(0), np.arange(600), tmp_path / "days.csv"
    y = rng.normal(size=600) * np.where(days < 400, 1, 3)
    pd.DataFrame({"y": y, "mean": 0.0, "std": 1.0, "day": days}).to_csv(file, index=False)
    assert next_of(calcheck, file, "--time", "day")[0] == f"calcheck monitor {file} --time day"


def next_of(calcheck, *arguments):
    ended = calcheck("evaluate", *arguments, *FEW, "--format", "json")
    return json.loads(ended.out)["conclusion"]["next"]


def weather(seed, factor=1.0, n=400):
    """Return predictions with dates, a column with a gap, one without, and groups."""
    rng = np.random.default_rng(seed)
    std = rng.uniform(0.5, 2, n)
    frame = pd.DataFrame(
        {"mean": rng.normal(size=n), "std": std, "hum": rng.random(n), "site": rng.choice(list("ab"), n)}
    )
    frame["y"] = frame["mean"] + factor * std * rng.normal(size=n)
    frame["date"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n) // 4, unit="D")
    frame["temp"] = np.where(np.arange(n) == 7, np.nan, rng.random(n))
    return frame


def test_commands_follow_from_the_columns_of_a_file_and_run_on_it(calcheck, tmp_path):
    file = tmp_path / "weather.parquet"
    frame = weather(5)
    frame.to_parquet(file)
    commands = ["evaluate {} --inputs hum", "monitor {} --time date", "check {}"]
    found = next_of(calcheck, file)
    assert found == [f"calcheck {each.format(file)}" for each in commands]  # temp has a gap: --inputs refuses it
    assert calcheck(*found[1].split()[1:]).code == 0
    frame.drop(columns=["hum", "temp", "date"]).to_parquet(file)
    assert next_of(calcheck, file)[0] == f"calcheck slices {file}"


def test_groups_of_distributions_without_a_shape_are_not_searched_next(calcheck, tmp_path):
    file, frame = tmp_path / "errors.csv", weather(5)
    frame.assign(error=frame["y"] - frame["mean"])[["error", "std", "site"]].to_csv(file, index=False)
    found = next_of(calcheck, file)
    assert found == [f"calcheck evaluate {file} --error-dist normal", f"calcheck check {file}"]
    assert calcheck("slices", file).code == 2
    assert f"calcheck slices {file} --error-dist normal" in next_of(calcheck, file, "--error-dist", "normal")


def test_no_column_that_is_computed_from_targets_is_proposed_as_an_input(calcheck, tmp_path):
    file, frame = tmp_path / "derived.csv", weather(5)[["y", "mean", "std", "hum"]]
    gap = frame["y"] - frame["mean"]
    frame.assign(abs_diff=gap.abs(), gap2=gap**2, fahrenheit=1.8 * frame["y"] + 32).to_csv(file, index=False)
    assert next_of(calcheck, file)[0] == f"calcheck evaluate {file} --inputs hum"


def test_no_correction_is_proposed_where_errors_show_no_scale(calcheck, tmp_path):
    file = tmp_path / "same.parquet"
    frame = weather(6, 1.5)
    frame.drop(columns="date").assign(y=frame["mean"]).to_parquet(file)
    assert not any("recalibrate" in each for each in next_of(calcheck, file))
    assert calcheck("recalibrate", file).code == 2


def test_a_wrong_target_of_several_is_shown_and_corrected(calcheck, tmp_path):
    file, (first, second) = tmp_path / "two.parquet", (weather(7, 1.6), weather(8))
    names = {
        f"{name}_{place}": frame[name] for place, frame in ((1, first), (2, second)) for name in ("y", "mean", "std")
    }
    pd.DataFrame(names).to_parquet(file)
    assert next_of(calcheck, file) == [f"calcheck evaluate {file} --only y_1", f"calcheck recalibrate {file}"]
    pd.DataFrame(names | {"hum": first.hum}).to_parquet(file)
    assert next_of(calcheck, file)[2:] == [f"calcheck evaluate {file} --inputs hum"]
