"""`--cluster`, `--time` and `--block`: verdicts, notes, stored settings, and what is refused."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from calcheck import evaluate
from calcheck.core.text import extract
from tests.helpers.files import write
from tests.helpers.schemas import validate
from tests.helpers.simulations import autoregressive, slow

QUICK = ("--replicates", "39", "--resamples", "200")


@pytest.fixture
def series(tmp_path):
    """Return the path of right forecasts of a series, whose errors depend on each other."""
    rng = np.random.default_rng(17)
    errors = autoregressive(rng, 400, 0.8)
    days = np.datetime64("2026-01-01") + np.arange(400)
    station = np.array(["north", "south"])[np.arange(400) % 2]
    rows = {"day": days, "y": errors, "mean": np.zeros(400), "std": np.ones(400), "station": station}
    inputs = {"a": np.arange(400) % 7, "b": rng.normal(size=400)}
    return write(tmp_path / "series.parquet", rows | inputs | {"patient": np.arange(400) // 8})


@pytest.fixture
def steps(tmp_path):
    """Return the path of a series with a column of steps, which may be a time or an input."""
    rng = np.random.default_rng(40)
    y = autoregressive(rng, 300, 0.9)
    rows = {"step": np.arange(300), "half": np.arange(300) % 2, "a": rng.normal(size=300), "y": y}
    return write(tmp_path / "steps.csv", rows | {"mean": np.zeros(300), "std": np.full(300, 0.7)})


@pytest.fixture
def page(calcheck, tmp_path):
    """Write a page, and return its text before the scripts."""

    def written(*arguments):
        path = tmp_path / "page.html"
        ended = calcheck("report", *arguments, *QUICK, "-o", path)
        assert ended.code == 0, ended.err
        return path.read_text(encoding="utf-8")

    return written


def seen(text):
    """Return the visible text of a page, without data, with single spaces."""
    body = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


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


def test_verdicts_name_the_option_that_they_need(report, series):
    found = report("evaluate", series, "--metrics", "zms,pit,width")
    assert [each["verdict"] for each in (*found["results"], found["overall"])] == ["none"] * 4
    reason = "rows depend on each other by 'day': pass --time day"
    assert [each["text"] for each in found["results"][0]["warnings"] if each["code"] == "no-verdict"] == [
        f"no verdict: {reason}"
    ]
    noticed = found["settings"]["dependence_noticed"]
    assert (noticed["column"], noticed["option"], noticed["reason"]) == ("day", "--time day", reason)
    assert noticed["variance_ratio"] > 3
    groups = report("slices", series, "--by", "station", "--metrics", "pit-bias")
    assert {each["verdict"] for each in groups["results"]} == {"none"}
    assert groups["conclusion"]["next"][0].endswith("--by station --time day")


def test_reports_store_what_was_stated(report, series):
    found = report("evaluate", series, "--metrics", "zms", "--block", "40")
    assert found["settings"]["dependence"] == {"time": None, "block": 40.0, "clusters": 10}
    assert "few-clusters" in codes(found["results"][0])
    assert "dependence" not in report("evaluate", series, "--metrics", "zms")["settings"]


OPTIONS = [("--time", "day"), ("--cluster", "patient"), ("--block", "20")]


@pytest.mark.slow
@pytest.mark.parametrize("option", [OPTIONS[0], slow((OPTIONS[1],)), slow((OPTIONS[2],))])
def test_a_page_holds_the_verdicts_of_evaluate_with_the_same_option(report, page, series, option):
    arguments = (series, "--metrics", "zms,pit,ece,coverage,cce", "--inputs", "a,b", *option)
    text = page(*arguments)
    expected = report("evaluate", *arguments)
    assert json.loads(extract(text, "report")[0]) == expected
    (message,) = [each["text"] for each in expected["results"][0]["warnings"] if each["code"] == "dependence"]
    assert message.replace("'", "&#x27;") in seen(text)


@pytest.mark.slow
def test_a_page_of_dependent_rows_has_no_limits_of_independent_rows(page, series):
    arguments = (series, "--metrics", "zms,pit,ece,coverage", "--inputs", "a,b")
    naive, honest = (page(*arguments, *option) for option in ((), ("--time", "day")))
    assert "95 % of perfect models</span>" in naive
    assert "95 % of perfect models</span>" not in honest
    assert ", p 0" not in seen(naive)  # of the curves of pictures
    assert "There is no band: bands are of perfect models with independent rows" in seen(honest)
    assert "There are no limits of right models for regions and groups" in seen(honest)
    assert "1 in 20 is beyond" not in seen(honest)
    for text in (naive, honest):
        (data,) = (json.loads(each) for each in extract(text, "map"))
        limits = {"covered_expected", "squares_expected", "squares_variance", "pit_variance"}
        assert limits.isdisjoint(data["cells"])
        assert any(value is not None for value in data["cells"]["deviation"])
        assert ">too narrow</span>" not in text  # a judgement of the map or of a group


@pytest.mark.slow
def test_a_page_from_python_has_no_limits_of_independent_rows_either(series):
    independent = pq.read_table(series).drop_columns(["day", "patient"]).to_pandas().sample(frac=1, random_state=1)
    pages = [(independent, {}), (series, {}), (series, {"time": "day"})]
    found = [evaluate(data, ["zms"], replicates=39, resamples=0, **each).to_html() for data, each in pages]
    data = [json.loads(extract(text, "map")[0])["cells"] for text in found]
    assert ["squares_variance" in each for each in data] == [True, False, False]
    assert ["There are no limits of right models" in seen(text) for text in found] == [False, True, True]


def other_rows(series, tmp_path):
    """Return the path of other rows of the series, whose uncertainties are too small."""
    rows = {name: column.to_numpy() for name, column in zip(*_columns(series), strict=True)}
    return write(tmp_path / "val.parquet", rows | {"y": 1.4 * rows["y"][::-1]})


def _columns(path):
    table = pq.read_table(path)
    return table.column_names, table.columns


@pytest.mark.slow
@pytest.mark.parametrize("option", [OPTIONS[1], slow((OPTIONS[2],))])
def test_the_correction_of_a_page_has_the_folds_of_recalibrate(report, page, series, tmp_path, option):
    val = other_rows(series, tmp_path)
    text = seen(page(series, "--metrics", "zms", "--validation", val, *option))
    intervals = []
    for each in ((), option):
        results = report("recalibrate", val, "--method", "scale", *each)["results"]
        (difference,) = [result for result in results if result["slice"] == {"method": "scale", "minus": "none"}]
        intervals.append(f"[{difference['low']:.3g}, {difference['high']:.3g}]")
    assert [interval in text for interval in intervals] == [False, True]


def spread_series(series, tmp_path):
    """Return the path of the series with uncertainties that differ."""
    rows = {name: column.to_numpy() for name, column in zip(*_columns(series), strict=True)}
    std = np.exp(0.3 * np.random.default_rng(3).normal(size=400))
    return write(tmp_path / "spread.parquet", rows | {"y": rows["y"] * std, "std": std})


@pytest.mark.parametrize("option", OPTIONS)
def test_removal_of_uncertain_rows_starts_with_the_verdict_of_evaluate(calcheck, report, series, tmp_path, option):
    """Each step has its own clusters; the note about them is shown once."""
    spread = spread_series(series, tmp_path)
    command = ("prune", spread, "--metrics", "pit-bias", "--max-percent", "2", *option)
    found = report(*command)["results"]
    (expected,) = report("pit-bias", spread, *option)["results"]
    names = ("value", "low", "high", "p_value", "verdict", "reference")
    assert [found[0][name] for name in names] == [expected[name] for name in names]
    assert [codes(each).count("dependence") for each in found] == [1, 1, 1]
    shown = " ".join(calcheck(*command, *QUICK).out.split())
    assert len(re.findall(r"may depend on each other|are a series", shown)) == 1


@pytest.mark.parametrize("option", OPTIONS)
def test_a_trend_has_the_verdict_of_evaluate_for_each_file(report, series, tmp_path, option):
    files = (series, spread_series(series, tmp_path))
    found = report("trend", *files, "--metrics", "pit-bias", *option)["results"]
    names = ("value", "low", "high", "p_value", "verdict", "reference")
    for file, result in zip(files, found, strict=True):
        (expected,) = report("pit-bias", file, *option)["results"]
        assert [result[name] for name in names] == [expected[name] for name in names]
        assert codes(result).count("dependence") == 1


@pytest.mark.parametrize("criterion", ["b", "random"])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_rejection_of_dependent_rows_states_its_assumption(calcheck, series, criterion, elsewhere):
    options = ("--metrics", "mae", "--criteria", criterion, "--max-percent", "10", "--resamples", "200")
    options += ("--new", series) if elsewhere else ()
    found = json.loads(calcheck("reject", series, *options, "--format", "json").out)
    validate(found)
    texts = [each["text"] for each in found["results"][0]["warnings"] if each["code"] == "dependent-rows"]
    assert len(texts) == 1
    assert texts[0].endswith("p-values too small. reject assumes independent rows")


@pytest.mark.parametrize("options", [(), ("--depth", "2")])
def test_searches_of_dependent_rows_state_their_assumption(calcheck, series, options):
    found = json.loads(calcheck("slices", series, *options, "--replicates", "19", "--format", "json").out)
    texts = {each["text"] for result in found["results"] for each in result["warnings"]}
    assert sum(text.endswith("The search for regions assumes independent rows") for text in texts) == 1


def test_suggested_commands_repeat_the_option(calcheck, series):
    out = calcheck("evaluate", series, "--metrics", "zms,coverage", *QUICK, "--time", "day", "--brief").out
    assert re.search(r"test +calcheck evaluate \S+ --time day --inputs b\n", re.sub(r" \\\n +", " ", out)), out


def test_a_brief_conclusion_notes_dependent_rows_until_the_option_is_passed(calcheck, series):
    naive, honest = (
        calcheck("evaluate", series, "--metrics", "pit-bias,coverage", *QUICK, "--brief", "--table", *option).out
        for option in ((), ("--time", "day"))
    )
    assert re.search(
        r"Can the uncertainties be trusted\? +NOT SHOWN\n +dependence +nothing is judged, since rows", naive
    )
    assert re.search(r"test +calcheck evaluate \S+ --time day\n", re.sub(r" \\\n +", " ", naive))
    assert "nothing is judged" not in honest
    assert naive.count("note rows of near times in 'day' depend on each other") == 1
    assert "Pass --time day" in naive
    assert "\nmetric" not in naive + honest
    assert "depend on each other" not in honest


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


@pytest.mark.parametrize("command", ["report", "prune", "trend"])
def test_pages_and_studies_refuse_contradicting_options(calcheck, series, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    options = ("--metrics", "zms", "--cluster", "patient", "--block", "5")
    assert "--cluster and --block contradict each other" in calcheck(command, series, *options).refused()
    assert not (tmp_path / "report.html").exists()


def test_searches_of_regions_refuse_dependent_rows(calcheck, series):
    assert "name groups (--by)" in calcheck("slices", series, "--cluster", "patient").refused()


BOTH = "pass --time step if rows are a series, or --inputs step if 'step' is an input"


def test_an_order_that_may_be_an_input_has_both_remedies(report, steps):
    found = report("evaluate", steps, "--metrics", "zms,pit", "--inputs", "a")
    noticed = found["settings"]["dependence_noticed"]
    assert noticed["alternative"] == "--inputs step"
    assert noticed["reason"] == f"rows depend on each other by 'step': {BOTH}"
    commands = found["conclusion"]["next"]
    assert [each.partition(steps)[2] for each in commands] == [" --inputs a --time step", " --inputs a,step"]
    groups = report("slices", steps, "--by", "half", "--metrics", "pit-bias")
    assert [each.partition("--by half ")[2] for each in groups["conclusion"]["next"]] == [
        "--time step",
        "--inputs step",
    ]


@pytest.mark.parametrize("command", [("evaluate", "--metrics", "zms,pit"), ("slices", "--by", "half")])
def test_an_input_by_which_rows_are_ordered_is_noted_and_verdicts_stay(report, steps, command):
    name, *further = command
    found = report(name, steps, *further, "--inputs", "step")
    assert "dependence_noticed" not in found["settings"]
    assert {each["verdict"] for each in found["results"]} & {"pass", "fail"}
    texts = [each["text"] for each in found["results"][0]["warnings"] if each["code"] == "ordered-rows"]
    assert texts == [
        "rows are also in the order of 'step', with similar errors: if they are a series, pass --time step"
    ]


def test_pages_show_no_p_values_of_rows_that_depend_on_each_other(calcheck, steps):
    """JSON keeps them."""
    for command in (("evaluate", "--metrics", "zms,pit"), ("slices", "--by", "half", "--metrics", "zms")):
        shown = calcheck(command[0], steps, *command[1:], *QUICK, "--table").out
        assert not re.search(r"\bp 0|\b0\.0\d+ +none|\b\d\.\d+ +none", shown), shown
        assert "metrics together: no verdict\n" in shown or command[0] == "slices"
    assert calcheck("evaluate", steps, "--metrics", "zms,pit", *QUICK, "--format", "json").out.count('"p_value": 0.')


def test_corrections_note_dependent_rows_once_and_show_no_p_values(calcheck, steps):
    judged = ("--folds", "2", "--method", "scale")
    shown = calcheck("recalibrate", steps, *judged, *QUICK, "--table").out
    assert shown.count("depend on each other: the variance") == 1
    (row,) = (line.split() for line in shown.splitlines() if line.startswith("scale"))
    assert row[-1] == "–"


def test_differences_of_dependent_rows_show_no_p_values(calcheck, steps, tmp_path):
    wider = tmp_path / "wider.csv"
    lines = Path(steps).read_text().replace("0.7\n", "0.9\n")
    wider.write_text(lines)
    shown = calcheck("compare", steps, wider, "--metrics", "crps", *QUICK, "--table").out
    stated = calcheck("compare", steps, wider, "--metrics", "crps", "--time", "step", *QUICK, "--table").out
    last = [next(line for line in text.splitlines() if "[" in line).split()[-1] for text in (shown, stated)]
    assert last[0] == "–"
    assert float(last[1]) <= 1
    assert "depend on each other" in shown
