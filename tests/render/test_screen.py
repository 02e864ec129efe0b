"""The first screen: at most 24 lines of 80 columns, the answer first, and everything else by --table."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from calcheck.render.document import Answer, Cell, Column, Document, Notes, Table
from calcheck.render.screen import screen_answer
from calcheck.render.terminal import render
from calcheck.reports import Conclusion, Input, Report
from calcheck.reports.conclusion import Effect, WidthFactor
from tests.helpers.simulations import slow

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = Path(__file__).parents[3] / "shared" / "data"
SERIES = DATA / "predictions/ensemblepp_temp.csv"
FEW = ("--replicates", 39)
INPUTS = ("--inputs", "age,sex,bmi,bp,s1,s2,s3,s4,s5,s6")
SCREENS = {
    "diabetes": (EXAMPLES / "diabetes.parquet",),
    "inputs": (EXAMPLES / "diabetes.parquet", *INPUTS, *FEW),
    "quantiles": (EXAMPLES / "diabetes_quantiles.parquet", "--crossing", "sort"),
    "embedding": (DATA / "text_case/test.parquet", "--embedding", "embedding", *FEW),
    "series": (SERIES, "--target", "temp", "--samples", "tempfc.*", "--time", "date", *FEW),
}
ANSWERS = {
    "diabetes": "YES, within 20 %, as far as tested",
    "inputs": "YES, within 20 %",
    "quantiles": "NO: too narrow, ×1.18 (1.11 to 1.24)",
    "embedding": "NO: means off by ≥ 0.2",
    "series": "NO: targets are 3.3 std above predicted",
}
BAR = r"[ ├┼┤┿━─●◀▶]{13}"


@pytest.fixture
def screen(calcheck, monkeypatch):
    """Return the lines of a command in a pipe, without the variable for the width."""
    monkeypatch.delenv("COLUMNS")

    def run(*arguments, code=0):
        ended = calcheck(*arguments)
        assert ended.code == code, ended.err
        return ended.out.splitlines()

    return run


def require_screen(lines):
    """Fail if lines do not fit a screen; words that are longer than a line are not broken."""
    assert len(lines) <= 24
    assert all(len(line) <= 80 or max(map(len, line.split())) > 60 for line in lines), lines


@pytest.mark.parametrize("name", SCREENS)
def test_the_first_screen_has_the_answer_with_its_number_first(screen, name):
    file, *options = SCREENS[name]
    if not file.exists():
        pytest.skip(f"{file} is not there")
    lines = screen(file, *options)
    require_screen(lines)
    assert " rows · " in lines[0]
    assert lines[2].startswith(f"Can the uncertainties be trusted?  {ANSWERS[name]}")
    topics = [line.split()[0] for line in lines[3:] if re.match(r"  \w+ +.*" + BAR, line)]
    assert {"size", "shape", "bias"} <= set(topics)
    assert any(
        re.fullmatch(r"\d+ metrics together: (pass|fail|differ too little for a NO), p .*All: --table", line)
        for line in lines
    )
    assert not any("ζ" in line or line.startswith("metric ") for line in lines)
    first = {"quantiles": "size", "embedding": "inputs", "series": "bias"}.get(name, "size")
    assert topics[0] == first


def test_a_wrong_shape_is_named_by_the_level_that_differs_most(screen, tmp_path):
    """90 % intervals are right. The 198th target is at the level 0.9925: 8.07 / 2.92 · 1.645 / 2.576 = 1.77."""
    y = t(2).ppf((np.arange(200) + 0.5) / 200) * 1.644854 / 2.919986
    pd.DataFrame({"y": y, "mean": 0.0, "std": 1.0}).to_csv(tmp_path / "t.csv", index=False)
    lines = screen(tmp_path / "t.csv", "--metrics", "mae", "--replicates", "39")
    assert "NO: wrong shape, 99 % intervals ×1.77" in lines[2]


@pytest.mark.parametrize(
    ("low", "found"), [(1.3, "wrong shape, 50 % intervals ×1.96 (1.30"), (0.0, "too narrow, ×1.24")]
)
def test_another_level_is_named_only_if_its_factor_cannot_be_1(low, found):
    size = Effect(topic="size", value=1.24, low=0.98, high=None, p=0.05, within=False, text="")
    limits = (0.5, 1.96, low), (0.9, 1.24, 0.98)
    factors = tuple(WidthFactor(level=level, value=value, low=least, high=None) for level, value, least in limits)
    conclusion = Conclusion(answer="no", level=0.9, tolerance=0.2, effects=(size,), factors=factors)
    read = Input(files=(), n=3, dropped=0, predictive="samples", columns={})
    report = Report(calcheck="1", input=read, settings={}, results=(), conclusion=conclusion)
    assert screen_answer(report, conclusion).answer.after.startswith(f": {found}")


def test_numbers_on_the_screen_are_those_of_the_report(screen, calcheck):
    """A factor has its interval, and p-values that replicates do not resolve are below 0.01."""
    lines = screen(*SCREENS["inputs"])
    report = json.loads(calcheck(*SCREENS["inputs"], "--format", "json").out)
    conclusion = report["conclusion"]
    size, bias = (next(each for each in conclusion["effects"] if each["topic"] == name) for name in ("size", "bias"))
    text = "\n".join(lines)
    assert "×{value:.2f} ({low:.2f} to {high:.2f})".format(**size) in text
    assert "{value:+.2f} std ({low:+.2f} to {high:+.2f})".format(**bias) in text
    assert report["region"]["where"] in text
    assert "×{other_value:.2f} ({other_low:.2f} to {other_high:.2f})".format(**report["region"]) in text
    for command in conclusion["next"]:
        assert " ".join(command.split()) in re.sub(r" \\\n +", " ", text)
    assert all(re.search(r"\([^)]* (to|or) [^)]*\)", line) for line in lines if "×" in line)
    assert not re.search(r"p 0\.00", text)


def test_named_metrics_have_their_table(screen):
    file = SCREENS["diabetes"][0]
    lines = screen(file, "--metrics", "zms,ece,crps,rmse,mae,bias")
    table = lines.index(next(line for line in lines if line.startswith("metric ")))
    require_screen(lines[:table])
    assert [line.split()[0] for line in lines[table + 2 :]] == ["zms", "ece", "crps", "rmse", "mae", "bias"]


def test_the_table_and_files_have_everything(screen, calcheck, tmp_path):
    file, path = SCREENS["diabetes"][0], tmp_path / "report.txt"
    whole = screen(file, *FEW, "--table")
    assert len(whole) > 40
    assert whole == screen(file, *FEW, "-v")
    assert calcheck(file, *FEW, "-o", path).out == ""
    assert sum(line.startswith(("zms ", "confidence-curve ")) for line in path.read_text().splitlines()) == 2
    assert len(screen(file, *FEW, "--brief")) <= 16


def test_a_command_that_does_not_fit_is_left_out(monkeypatch):
    """It has two lines, and there is room for one."""
    monkeypatch.setenv("COLUMNS", "80")
    effects = tuple((f"topic {place}", Cell("text")) for place in range(19))
    command = f"calcheck check {'file' * 15} --inputs {'x' * 20}"
    for count, kept in ((17, True), (19, False)):
        lines = render(Document((Answer("Question?", Cell("NO"), effects[:count], (command,)),)), "screen").splitlines()
        assert len(lines) <= 24
        assert any("--inputs" in line for line in lines) == any("check" in line for line in lines) == kept
        assert lines[-1] == "… more: --table" or kept


def test_a_long_name_and_many_columns_fit(screen, tmp_path):
    rng = np.random.default_rng(0)
    name = tmp_path / f"{'long' * 30}.csv"
    frame = pd.DataFrame({f"input_number_{place}": rng.normal(size=200) for place in range(30)})
    frame.assign(y=3 * rng.normal(size=200), mean=0.0, std=1.0).to_csv(name, index=False)
    lines = screen(name, "--inputs", ",".join(frame.columns), "--replicates", 39)
    assert len(lines) <= 24
    assert max(len(line) for line in lines if "input_number" not in line and "long" not in line) <= 80
    assert len(lines[0]) <= 80


def test_groups_are_those_of_each_column_and_say_what_explains_them(screen, calcheck, tmp_path):
    """Humidity is correlated with temperature, above 28 of which the standard deviation is twice as large."""
    rng = np.random.default_rng(1)
    temp, site = rng.normal(25, 4, 3000), rng.choice(list("ab"), 3000)
    hum = temp + rng.normal(0, 2.5, 3000)
    y = rng.normal(size=3000) * np.where(temp > 28, 2.0, 1.0)
    file = tmp_path / "heat.csv"
    pd.DataFrame({"temp": temp, "hum": hum, "site": site, "y": y, "mean": 0.0, "std": 1.0}).to_csv(file, index=False)
    options = ("slices", file, "--by", "temp:22/25/28,hum:4,site", "--replicates", 99)
    lines = screen(*options)
    require_screen(lines)
    assert "NO: temp>" in lines[2]
    table = lines[lines.index(next(line for line in lines if line.startswith("group "))) + 2 :]
    assert table[0].startswith("temp>")
    assert sum(line.startswith("temp>") for line in lines[3:]) <= 3
    assert table[-1] == "… 5 more: --table"
    results = json.loads(calcheck(*options, "--format", "json").out)["results"]
    labels = {each["slice"]["group"] for each in results}
    assert not any("temp" in each and "hum" in each for each in labels)
    causes = {each["slice"]["group"]: each["slice"].get("explained_by") for each in results}
    assert {causes[each] for each in labels if each.startswith("site=")} == {"all rows"}
    (highest,) = (each for each in labels if re.fullmatch(r"hum>[\d.]+", each))
    assert causes[highest] == "temp"
    assert causes["temp>28"] is None
    crossed = json.loads(calcheck(*options, "--cross", "--format", "json").out)["results"]
    assert any("temp" in each["slice"]["group"] and "hum" in each["slice"]["group"] for each in crossed)
    assert "--cross applies to groups" in calcheck("slices", file, "--cross").refused()


def test_studies_have_the_answer_first_and_fit(screen, tmp_path):
    rng = np.random.default_rng(2)
    times, wrong = pd.date_range("2026-01-01", periods=300), tmp_path / "wrong.csv"
    frame = pd.DataFrame({"date": times, "y": 2 * rng.normal(size=300), "mean": 0.0, "std": 1.0})
    frame.to_csv(wrong, index=False)
    models = (EXAMPLES / "diabetes.parquet", EXAMPLES / "diabetes_linear.parquet")
    for question, code, *arguments in (
        ("Which model is best?", 0, "compare", *models, "--replicates", 39),
        ("Does a correction help?  YES: scale, crps -", 0, "recalibrate", wrong, "--replicates", 39),
        ("Can the uncertainties still be trusted?  NO", 0, "monitor", wrong, "--time", "date"),
        ("Can the uncertainties be trusted everywhere?  YES", 0, "slices", models[0], "--columns", "age,bp"),
    ):
        lines = screen(*arguments, code=code)
        require_screen(lines)
        assert lines[2].startswith(question)
    lines = screen("check", wrong, "--fail-on", "zms > 2", "--fail-on", "abs(bias) > 9", code=1)
    require_screen(lines)
    assert [line.split()[5] for line in lines[4:6]] == ["violated", "passed"]
    frame.assign(std=2.0).to_csv(right := tmp_path / "right.csv", index=False)
    lines = screen("check", wrong, "--against", right, "--no-worse", code=1)
    require_screen(lines)
    assert any(line.startswith("Can the uncertainties be trusted?  NO: too narrow") for line in lines), lines


@pytest.mark.parametrize("count", [slow(2), 7])
def test_several_targets_fit_and_the_worst_have_a_line(screen, tmp_path, count):
    """Of every second target the errors are larger than predicted, of the last of these the most."""
    rng, files = np.random.default_rng(3), [tmp_path / "a.csv", tmp_path / "b.csv"]
    columns = {f"y_{place}": rng.normal(size=100) * (1 + place % 2 * place) for place in range(count)}
    for file, std in zip(files, (1.0, 1.5), strict=True):
        stated = {f"{name}_{place}": value for place in range(count) for name, value in (("mean", 0.0), ("std", std))}
        pd.DataFrame(columns).assign(**stated).to_csv(file, index=False)
    rules = ("answer == no", "rmse < 9", "mae < 9", "abs(bias) > 9", "zms > 9")
    chosen = (word for rule in rules for word in ("--fail-on", rule))
    answered, checked, compared = (
        screen(*arguments, *FEW, code=code)
        for code, *arguments in ((0, files[0]), (1, "check", files[0], *chosen), (0, "compare", *files))
    )
    for lines in (answered, checked, compared):
        require_screen(lines)
    assert answered[2].startswith("Can the uncertainties be trusted?  NO: y_1")
    assert compared[2] == "Which model is best?  b"
    assert checked[4].split()[:6] == ["fails", "if", "answer", "==", "no", "violated"]
    assert checked.index("… 1 more: --table") < checked.index(answered[2])  # of five rules
    shown = [line.split()[0] for line in answered[3:] if re.match(r"  y_\d ", line)]
    assert shown == (["y_0", "y_1"] if count == 2 else ["y_5", "y_3", "y_1", "y_0"])
    assert sum(line.strip() == "3 more targets: --table" for line in (*answered, *checked)) == 2 * (count > 2)


def test_intervals_of_two_draws_have_their_level_and_the_expected_coverage(screen, tmp_path):
    """Of three exchangeable values the last lies between the others with probability 1/3."""
    drawn = np.random.default_rng(0).normal(size=(200, 3))
    pd.DataFrame(drawn, columns=["y", "sample_0", "sample_1"]).to_csv(tmp_path / "draws.csv", index=False)
    lines = screen(tmp_path / "draws.csv", "--replicates", 39, "--resamples", 0)
    require_screen(lines)
    held = (np.sort(drawn[:, 1:])[:, 0] <= drawn[:, 0]) & (drawn[:, 0] <= np.sort(drawn[:, 1:])[:, 1])
    assert f"90 % intervals hold {100 * held.mean():.2g} %, 33 % expected" in re.sub(r"\s+", " ", " ".join(lines))


def test_many_notes_leave_room_for_the_first_rows_of_a_table():
    answer = Answer("Question?", Cell("NO"), tuple((f"topic {place}", Cell("wrong")) for place in range(8)), ("a", "b"))
    table = Table((Column("group"),), tuple((Cell(f"group {place}"),) for place in range(9)))
    shown = render(Document((answer, table, Notes(("first " * 20, "second " * 20, "third " * 20)))), "screen")
    assert len(shown.splitlines()) <= 24
    assert "group 0\n" in shown
    assert re.search(r"… \d more: --table\n\nnote first", shown)


def test_a_line_does_not_start_with_a_percent_sign(monkeypatch):
    """The text in front has every length, so that each line breaks somewhere in it."""
    monkeypatch.setenv("COLUMNS", "80")
    for length in range(80):
        text = f"{'x' * length} 90 % intervals hold 86 % and 33.3 % of rows"
        cells = (("topic", Cell(text)),)
        table = Table((Column("text"),), ((Cell(text),),), overflow="fold")
        shown = render(Document((Answer("Question?", Cell(text), cells), Notes((text,)), table)))
        assert not re.search(r"^\s*%", shown, re.MULTILINE)
        assert shown.count(" %") == 12


def test_columns_are_named_once_in_the_line_about_the_data(screen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"truth": [0.0, 1.0] * 9, "pred": 0.0, "std": 1.0})
    for names, line in (
        (("truth", "pred", "sigma"), "18 rows · y: truth; mean: pred; std: sigma · gaussian"),
        (("truth", "mean", "std"), "18 rows · y: truth · gaussian (truth, mean, std)"),
        (("y", "mean", "std"), "18 rows · gaussian (y, mean, std)"),
    ):
        frame.set_axis(names, axis=1).to_csv("a.csv", index=False)
        assert screen("a.csv", *FEW)[0] == f"a.csv · {line}"
