"""`calcheck report`: the page as a file, the report inside it, and what is refused."""

import json
import re

import numpy as np
import pytest

from calcheck.core.text import extract
from tests.helpers.files import columns, write
from tests.helpers.simulations import slow

FAST = ("--metrics", "zms,coverage", "--no-bootstrap", "--replicates", "39")
INTERVALS = ("--metrics", "coverage,interval-score", "--no-bootstrap", "--replicates", "39")


@pytest.fixture
def preds(tmp_path):
    """Return the path of a file with two inputs and a group."""
    rng = np.random.default_rng(5)
    parts = {name: values for name, values in columns(n=80).items() if name != "embedding"}
    return write(tmp_path / "preds.parquet", parts | extra(rng, 80))


def extra(rng, n):
    return {"a": rng.normal(size=n), "b": rng.uniform(size=n), "site": np.array(["north", "south"] * (n // 2))}


@pytest.fixture
def page(calcheck, tmp_path):
    """Write a page, and return its text."""

    def written(*arguments, options=FAST):
        path = tmp_path / "page.html"
        ended = calcheck("report", *arguments, *options, "-o", path)
        wrote, *hints = ended.err.splitlines()
        assert (ended.code, ended.out, wrote) == (0, "", f"wrote {path}")
        assert all(each.startswith("inputs were not tested: calcheck report ") for each in hints)
        assert len(arguments) > 1 or all(each.endswith(f" -o {path}") for each in hints)
        return path.read_text(encoding="utf-8")

    return written


def headings(text):
    """Return the headings of sections, which stand before the scripts."""
    return re.findall(r"<h2>(.*?)</h2>", text[: text.index("<script>")])


def test_the_page_answers_in_order_and_holds_the_report_of_evaluate(calcheck, page, preds):
    text = page(preds)
    inside = json.loads(extract(text, "report")[0])
    assert inside == json.loads(calcheck("evaluate", preds, *FAST, "--format", "json").out)
    model = ["Answer", "How", "Where", "Metrics", "Groups", "Predictions", "Worst rows", "Settings"]
    assert headings(text) == [*model, "Definitions", "Command"]
    assert ">north</td>" in text
    assert "predicted mean" in text
    assert text == page(preds)


def test_diff_and_check_read_pages(calcheck, page, preds, tmp_path):
    page(preds)
    old, new = tmp_path / "old.html", tmp_path / "page.html"
    new.rename(old)
    page(preds, options=(*FAST, "--seed", "1"))
    ended = calcheck("diff", old, new)
    assert (ended.code, ended.err) == (0, "")
    assert "settings.seed" in ended.out
    assert calcheck("check", preds, "--against", old).code == 0


def test_a_page_of_two_models_is_no_report_of_one(calcheck, page, preds, tmp_path):
    other = write(tmp_path / "other.parquet", columns(n=80) | extra(np.random.default_rng(6), 80))
    text = page(preds, other, "--names", "first,second")
    assert headings(text)[1] == "Side by side"
    assert [json.loads(each)["input"]["files"][0]["path"] for each in extract(text, "report")] == [preds, other]
    message = calcheck("diff", tmp_path / "page.html", tmp_path / "page.html").refused()
    assert "page.html holds the reports of 2 models" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!DOCTYPE html><title>x</title>", "is a page without a report of calcheck"),
        ('<!doctype html><script type="application/json" data-kind="report">{"a": NaN}</script>', "is not valid JSON"),
        ('<!doctype html><script type="application/json" data-kind="report">{}</script>', "is not a calcheck report"),
        ('<!doctype html><script type="application/json" data-kind="report">[' + "[" * 99_999, "is not valid JSON"),
    ],
)
def test_other_pages_are_refused(calcheck, tmp_path, text, message):
    path = tmp_path / "other.html"
    path.write_text(text)
    assert message in calcheck("diff", path, path).refused()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plot-by", "a"), "--plot-by needs two different columns, got 'a'"),
        (("--plot-by", "a,nothing"), "there is no column 'nothing' for the map"),
        (("--plot-by", "a,site"), "column 'site' must hold finite numbers for the map"),
        (("-o", "nowhere/page.html"), "nowhere/page.html cannot be written: the folder does not exist"),
        (("--names", "a,b"), "--names needs 1 different names"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_line(calcheck, preds, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in calcheck("report", preds, *FAST, *arguments).refused()
    assert not (tmp_path / "report.html").exists()


def test_the_page_does_not_replace_its_input(calcheck, preds):
    assert "would overwrite" in calcheck("report", preds, "-o", preds).refused()


def test_the_page_has_a_name_by_default(calcheck, preds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = calcheck("report", preds, *FAST)
    assert (ended.code, ended.out, ended.err.splitlines()[0]) == (0, "", "wrote report.html")
    assert ended.err.splitlines()[1].startswith("inputs were not tested: calcheck report ")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    ended = calcheck("report", preds, *FAST, "-o", "-")
    assert (ended.out[:15], ended.err) == ("<!DOCTYPE html>", "")


def test_columns_of_the_map_are_named(page, preds):
    data = json.loads(extract(page(preds, "--plot-by", "b,a"), "map")[0])
    assert (data["x"]["name"], data["y"]["name"]) == ("b", "a")
    assert sum(data["cells"]["n"]) == 80


def test_intervals_have_a_map_of_their_coverage(page, tmp_path):
    rng = np.random.default_rng(7)
    n = 100
    y, low = rng.normal(size=n), rng.normal(-2, 0.1, n)
    path = write(tmp_path / "intervals.parquet", {"y": y, "lower": low, "upper": low + 4})
    text = page(path, "--level", "0.9", options=INTERVALS)
    data = json.loads(extract(text, "map")[0])
    assert [each["key"] for each in data["quantities"]] == ["coverage"]
    assert data["y"]["name"] == "width of the 90 % interval"
    assert "histogram" not in data["specs"]


def test_counts_and_draws_have_histograms_without_random_numbers(page, tmp_path):
    rng = np.random.default_rng(8)
    draws = {f"sample_{k}": rng.normal(size=60) for k in range(9)}
    path = write(tmp_path / "draws.parquet", {"y": rng.normal(size=60), **draws})
    data = json.loads(extract(page(path), "map")[0])
    assert np.sum(data["cells"]["pit"]) == pytest.approx(60)
    assert len(data["cells"]["pit_variance"][0]) == 20


def test_rows_in_batches_have_a_page_without_a_map(page, preds, tmp_path):
    assert "No map: the rows are processed in batches." in page(preds, "--save-state", tmp_path / "state.npz")


def test_an_embedding_is_drawn_by_its_principal_components(page, tmp_path):
    data = json.loads(extract(page(write(tmp_path / "wide.parquet", columns(n=60))), "map")[0])
    assert data["x"]["name"] == "principal component 1, 44%"


@pytest.mark.parametrize("command", ["evaluate", slow("report"), slow("check")])
def test_an_output_named_html_is_the_page_and_the_format_html_the_table(calcheck, page, preds, tmp_path, command):
    text, path = page(preds), tmp_path / "same.html"
    assert calcheck("evaluate", preds, *FAST, "-o", path).code == 0
    before_commands = path.read_text(encoding="utf-8").partition("<h2>Command</h2>")[0]
    assert before_commands == text.partition("<h2>Command</h2>")[0]
    assert calcheck("check", preds, *FAST, "--fail-on", "zms > 100", "-o", path).code == 0
    assert headings(path.read_text(encoding="utf-8"))[:2] == ["Answer", "Rules"]
    arguments = (preds, *FAST, "--fail-on", "zms > 100", "--format", "html", "-o", path)
    assert calcheck(command, *arguments).code == 0
    assert "<script" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "figures"),
    [(("zms",), 1), (("coverage", "--subsample", "60"), 1), (("evaluate", "--by", "site"), 1)],
)
def test_the_page_of_another_report_has_its_tables_its_pictures_and_its_data(
    calcheck, preds, tmp_path, arguments, figures
):
    command, *options = arguments
    path = tmp_path / "page.html"
    assert calcheck(command, preds, *options, "--no-bootstrap", "--replicates", "39", "-o", path).code == 0
    text = path.read_text(encoding="utf-8")
    assert text.count("<figure>") == figures
    assert len(json.loads(extract(text, "report")[0])["results"]) >= 1
    assert calcheck("diff", path, path).code == 0


def test_the_picture_of_an_answer_is_between_it_and_the_tables(calcheck, preds, tmp_path):
    path = tmp_path / "page.html"
    assert calcheck("slices", preds, "--by", "site", "--no-bootstrap", "--replicates", "39", "-o", path).code == 0
    text = path.read_text(encoding="utf-8")
    assert text.index("in every group?") < text.index("<figure>") < text.index("<table")
    assert "<h1>calcheck: preds</h1>" in text


def test_diff_has_a_page_of_its_tables(calcheck, preds, tmp_path):
    old, path = tmp_path / "old.json", tmp_path / "page.html"
    assert calcheck("evaluate", preds, *FAST, "-o", old).code == 0
    assert calcheck("diff", old, old, "-o", path).code == 0
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_page_of_two_samples_has_their_picture(calcheck, preds, tmp_path):
    path = tmp_path / "page.html"
    assert calcheck("mcmd", preds, preds, "--inputs", "a", "--permutations", "39", "-o", path).code == 0
    assert path.read_text(encoding="utf-8").count("<figure>") == 1


def test_the_page_reads_its_file_once_and_evaluates_each_metric_once(page, preds, monkeypatch):
    from calcheck.io import file_source
    from calcheck.metrics.spread import Zms

    counts = {"open_table": 0, "load_all": 0, "evaluate": 0}

    def counting(name, function):
        def counted(*arguments, **given):
            counts[name] += 1
            return function(*arguments, **given)

        return counted

    for name in ("open_table", "load_all"):
        monkeypatch.setattr(file_source, name, counting(name, getattr(file_source, name)))
    monkeypatch.setattr(Zms, "evaluate", counting("evaluate", Zms.evaluate))
    assert "Worst rows" in headings(page(preds, options=("--metrics", "zms,coverage", "--no-bootstrap", "--no-null")))
    assert counts == {"open_table": 1, "load_all": 1, "evaluate": 1}


def test_check_and_report_lack_no_option_of_evaluate():
    from calcheck.cli.app import make_program

    options = {
        name: {option.field for option in make_program().commands[name].options()}
        for name in ("evaluate", "check", "report")
    }
    assert options["check"] - options["evaluate"] == {
        "against",
        "no_worse",
        "rtol",
        "atol",
        "within_interval",
        "summary",
        "strict",
    }
    assert options["report"] - options["evaluate"] == {"plot_by", "names", "validation"}
    assert options["evaluate"] <= options["check"] & options["report"]


def test_check_has_the_other_outputs_of_evaluate(calcheck, preds, tmp_path):
    rows, picture = tmp_path / "rows.csv", tmp_path / "zms.svg"
    arguments = ("check", preds, *FAST, "--fail-on", "zms > 100")
    ended = calcheck(*arguments, "--pointwise", rows, "--plot", picture, "--worst", "2", "--format", "json")
    (result,) = [each for each in json.loads(ended.out)["results"] if each["metric"] == "zms"]
    assert len(result["details"]["worst"]) == 2
    assert "z2" in rows.read_text().partition("\n")[0]
    assert "<svg" in picture.read_text()
    assert "is for one model: pass one FILE, got 2" in calcheck(*arguments, preds, "--pointwise", rows).refused()


def test_two_models_on_new_inputs_lead_to_the_command_that_compares(calcheck, preds):
    message = calcheck("report", preds, preds, "--on", preds).refused()
    assert message.endswith(f"got 2. To compare models there: calcheck compare {preds} {preds} --on {preds}\n")


def test_states_are_checked_and_have_a_page(calcheck, page, preds, tmp_path):
    state = tmp_path / "a.state"
    assert calcheck("evaluate", preds, "--metrics", "zms", "--save-state", state).code == 0
    assert calcheck("check", state, "--fail-on", "zms < 100").code == 1
    assert calcheck("check", state, "--fail-on", "zms > 100").code == 0
    assert calcheck("evaluate", state, "--fail-on", "zms < 100", "--exit-zero").code == 0
    assert "No map: the rows are processed in batches." in page(state, options=())
    assert calcheck("evaluate", preds, *FAST, "-o", tmp_path / "base.json").code == 0
    message = calcheck("check", state, "--against", tmp_path / "base.json").refused()
    assert "--against does not apply to saved states" in message


def test_the_page_has_rules_and_their_exit_code(calcheck, preds, tmp_path):
    path = tmp_path / "page.html"
    ended = calcheck("report", preds, *FAST, "--fail-on", "zms < 100", "-o", path)
    assert ended.code == 1
    assert ended.err.startswith(f"wrote {path}\nviolated zms < 100: zms is ")
    assert "zms &lt; 100" in path.read_text(encoding="utf-8")
