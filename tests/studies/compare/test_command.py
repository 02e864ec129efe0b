"""`calcheck compare`: models as rows, metrics as columns, on the same rows."""

import hashlib
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calcheck.cli.study_commands import model_names, split_options
from calcheck.execution.run import RowDependence, Run
from calcheck.metrics import METRICS
from calcheck.models.comparison import _ranked, shared_clusters
from calcheck.predictions import Predictions
from calcheck.render.latex import escape
from calcheck.reports import Inference
from tests.helpers.files import columns, write
from tests.helpers.schemas import validate
from tests.helpers.shorthand import texts

QUICK = ("--resamples", 200, "--permutations", 99)


@pytest.fixture
def models(tmp_path):
    """Return files of two models for the same rows; the second is in another order, and overconfident."""
    first = columns(n=60)
    rng = np.random.default_rng(9)
    order = rng.permutation(60)
    second = first | {"mean": first["y"] + 0.4 * rng.normal(size=60), "std": np.full(60, 0.2)}
    second = {name: values[order] for name, values in second.items()}
    return write(tmp_path / "wide.parquet", first), write(tmp_path / "sharp.parquet", second)


def test_the_page_of_a_comparison_names_its_models_and_folds_all_but_the_first_scores(calcheck, models, tmp_path):
    """Pictures of four metrics are open, scores first; the others can be unfolded."""
    page = tmp_path / "page.html"
    calcheck("compare", *models, "--metrics", "zms,ece,mae,crps,rmse", "-o", page, *QUICK)
    text = page.read_text()
    assert "<h1>calcheck: wide, sharp</h1>" in text
    hashes = [hashlib.sha256(Path(each).read_bytes()).hexdigest()[:12] for each in models]
    shown = re.search(r'<p class="about">(\d+ \w+ \d{4}) · (.*?)</p>', text)[2]
    assert re.findall(r"SHA-256 (\w+)…", shown) == hashes
    open_part, folded = text.split("<summary>1 more picture</summary>")
    titles = [re.findall(r"<p>([a-z]+), left is better</p>", part) for part in (open_part, folded)]
    assert titles == [["crps", "mae", "rmse", "zms"], ["ece"]]


@pytest.fixture
def compared(calcheck):
    """Run a comparison, and return its report."""

    def run(*arguments):
        ended = calcheck("compare", *arguments, *QUICK, "--format", "json")
        assert (ended.code, ended.err) == (0, "")
        report = json.loads(ended.out)
        validate(report)
        return report

    return run


def values(report, metric):
    return {
        each["slice"]["model"]: each
        for each in report["results"]
        if each["metric"] == metric and len(each["slice"]) == 1
    }


def difference(report, metric):
    (found,) = [each for each in report["results"] if each["metric"] == metric and "minus" in each["slice"]]
    return found


@pytest.mark.slow
def test_each_model_has_the_values_of_evaluate(compared, calcheck, models):
    report = compared(*models, "--metrics", "zms,rmse,ece,cce")
    for name, path in zip(("wide", "sharp"), models, strict=True):
        alone = json.loads(
            calcheck("evaluate", path, "--metrics", "zms,rmse,ece,cce", "--format", "json", "--no-null", *QUICK[:2]).out
        )
        for result in alone["results"]:
            assert_allclose(values(report, result["metric"])[name]["value"], result["value"], rtol=1e-9)
    assert [file["path"] for file in report["input"]["files"]] == list(models)
    assert report["settings"]["models"] == ["wide", "sharp"]
    assert report["settings"]["permutations"] == 99


def simulated(report):
    return {each["metric"] for each in report["results"] if "null" in each["details"]}


@pytest.mark.slow
def test_null_distributions_are_simulated_only_on_request(compared, models):
    report = compared(*models, "--metrics", "zms,ece,cce")
    assert simulated(report) == set()
    assert all(each["reference"] == 1 for each in values(report, "zms").values())
    assert all(each["reference"] is None for each in values(report, "ece").values())
    asked = compared(*models, "--metrics", "zms,ece,cce", "--replicates", "19")
    assert simulated(asked) == {"zms", "ece", "cce"}
    assert all(each["p_value"] is not None for each in values(asked, "ece").values())


@pytest.mark.slow
def test_null_distributions_are_simulated_if_the_ranking_needs_them(compared, tmp_path):
    """ZMS of 8 draws is not 1 for a perfect model, and its reference depends on the shape."""
    rng = np.random.default_rng(0)
    draws = {name: rng.normal(size=(60, 8)) * spread for name, spread in (("right", 1), ("sharp", 0.3))}
    y = rng.normal(size=60)
    paths = [write(tmp_path / f"{name}.parquet", {"y": y, "samples": each}) for name, each in draws.items()]
    report = compared(*paths, "--metrics", "zms,crps")
    assert simulated(report) == {"zms"}
    assert values(report, "zms")["right"]["details"]["rank"] == 1
    without = compared(*paths, "--metrics", "zms,crps", "--no-null")
    assert simulated(without) == set()
    assert "the difference is that of the values" in texts(difference(without, "zms")["warnings"])[0]
    assert_allclose(
        difference(without, "zms")["value"],
        np.subtract(*[each["value"] for each in values(without, "zms").values()][::-1]),
    )


def test_differences_to_the_first_model_have_an_interval_and_a_p_value(compared, models):
    report = compared(*models, "--metrics", "rmse,sharpness")
    first, second = values(report, "rmse").values()
    found = difference(report, "rmse")
    assert found["slice"] == {"model": "sharp", "minus": "wide"}
    assert_allclose(found["value"], second["value"] - first["value"], rtol=1e-12)
    assert found["low"] < found["value"] < found["high"] < 0
    assert found["interval"] == "bca"
    assert found["p_value"] == 0.01
    assert difference(report, "sharpness")["p_value"] is None


def test_values_on_both_sides_of_the_ideal_are_compared_by_their_distance_from_it(calcheck, compared, tmp_path):
    """Spreads off by factors r and 1/r with r^2 = 1.5: zms 1.5 and 0.67, so the second is nearer to 1 by 1/6."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=400)
    y /= np.sqrt(np.mean(y**2))
    spread = {"narrow": 1.5**-0.5, "wide": 1.5**0.5}
    parts = [{"y": y, "mean": np.zeros(400), "std": np.full(400, each)} for each in spread.values()]
    paths = [write(tmp_path / f"{name}.parquet", part) for name, part in zip(spread, parts, strict=True)]
    found = difference(compared(*paths, "--metrics", "zms,bias"), "zms")
    assert_allclose(found["value"], -1 / 6, rtol=1e-9)
    assert found["low"] <= found["value"] <= found["high"]
    assert found["details"]["ideal"] == [1, 1]
    assert found["orientation"] == "smaller"
    assert found["p_value"] > 0.01
    out = calcheck("compare", "--table", *paths, "--metrics", "zms,bias,rmse", *QUICK).out
    assert re.search(r"^\|zms − 1\| +-0\.167 ", out, re.MULTILINE)
    assert re.search(r"^\|bias\| +0 ", out, re.MULTILINE)


def test_a_value_that_differs_by_rounding_has_the_difference_0(compared, tmp_path):
    """Spreads that are 1.3 times as large have the same coefficient of variation."""
    parts = {"y": np.zeros(300), "mean": np.zeros(300), "std": np.random.default_rng(0).uniform(0.5, 2, 300)}
    scaled = parts | {"std": 1.3 * parts["std"]}
    paths = [write(tmp_path / f"{name}.parquet", each) for name, each in (("a", parts), ("b", scaled))]
    report = compared(*paths, "--metrics", "cv")
    assert len({each["value"] for each in values(report, "cv").values()}) == 2
    assert difference(report, "cv")["value"] == 0


def test_ideal_values_of_the_models_may_differ(compared, calcheck, tmp_path):
    """A central interval of a Poisson distribution contains more than 0.9, by an amount that depends on the rate."""
    y = np.random.default_rng(2).poisson(3, 60)
    paths = [
        write(tmp_path / f"{name}.parquet", {"y": y, "rate": np.full(60, rate)})
        for name, rate in zip("ab", (2.0, 3.0), strict=True)
    ]
    found = difference(compared(*paths, "--dist", "poisson", "--metrics", "coverage"), "coverage")
    limits = [stats.poisson.ppf([0.05, 0.95], rate) for rate in (2, 3)]
    ideal = [
        stats.poisson.cdf(high, rate) - stats.poisson.cdf(low - 1, rate)
        for (low, high), rate in zip(limits, (2, 3), strict=True)
    ]
    assert_allclose(found["details"]["ideal"], ideal, rtol=1e-12)
    inside = [np.mean((low <= y) & (y <= high)) for low, high in limits]
    assert_allclose(found["value"], abs(inside[1] - ideal[1]) - abs(inside[0] - ideal[0]), rtol=1e-9)
    out = calcheck("compare", "--table", *paths, "--dist", "poisson", "--metrics", "coverage", *QUICK).out
    assert "|coverage − reference|" in out


def test_models_with_different_clusters_are_compared_by_the_fewer_of_them():
    labels = {"a": np.arange(45) % 9, "b": np.arange(45) % 5, "c": np.arange(45) % 15}
    evaluated = {
        ("zms", name): (Predictions(y=np.zeros(45), columns={"g": label}), None) for name, label in labels.items()
    }
    found = shared_clusters(list(labels), evaluated, Run(dependence=RowDependence(cluster="g")))
    assert {name: len(each) for name, each in found.items()} == {"a": 9, "b": 5, "c": 9}


def test_rows_are_joined_by_id_in_any_order_and_type(compared, models, tmp_path):
    from pyarrow import csv, parquet

    first = compared(*models, "--metrics", "rmse")
    table = parquet.read_table(models[1])
    ids = [f"{key:04}" for key in table["id"].to_pylist()]
    plain = table.drop_columns(["embedding"])
    csv.write_csv(plain, tmp_path / "sharp.csv")
    assert difference(compared(models[0], tmp_path / "sharp.csv", "--metrics", "rmse"), "rmse")["p_value"] == 0.01
    again = compared(models[0], tmp_path / "sharp.csv", "--metrics", "rmse")
    assert_allclose(difference(again, "rmse")["value"], difference(first, "rmse")["value"], rtol=1e-9)
    as_text = plain.set_column(0, "id", [[key.lstrip("0") for key in ids]])
    parquet.write_table(as_text, tmp_path / "text.parquet")
    third = compared(models[0], tmp_path / "text.parquet", "--metrics", "rmse")
    assert_allclose(difference(third, "rmse")["low"], difference(first, "rmse")["low"], rtol=1e-9)


@pytest.fixture
def changed(tmp_path):
    """Write a small file of predictions with some columns changed."""

    def make(name, rows=slice(None), **changes):
        parts = {key: values[rows] for key, values in columns().items() if key != "embedding"} | changes
        return write(tmp_path / name, {key: values for key, values in parts.items() if values is not None})

    return make


def test_rows_missing_in_one_file_are_refused_with_counts_and_examples(calcheck, changed):
    first = changed("a.csv")
    line = calcheck("compare", first, changed("b.csv", rows=slice(2, None))).refused()
    assert "2 of 12 rows of a are not in b, e.g. id=100, 101. Models must have the same rows" in line
    shifted = np.arange(107, 119)
    line = calcheck("compare", first, changed("c.csv", id=shifted)).refused()
    assert "7 of 12 rows of a are not in c, e.g. id=100, 101, 102, …" in line
    assert "7 of 12 rows of c are not in a, e.g. id=112" in line
    line = calcheck("compare", first, changed("d.csv", id=np.full(12, 100))).refused()
    assert "d.csv" in line
    assert "1 value of 'id' occurs more than once" in line


def test_different_targets_are_refused(calcheck, changed):
    y = columns()["y"].copy()
    y[3] += 1
    line = calcheck("compare", changed("a.csv"), changed("b.csv", y=y)).refused()
    assert f"1 of 12 targets of a and b differ (id 103: {y[3] - 1:g} against {y[3]:g})" in line


def test_targets_in_single_precision_count_as_equal(compared, changed):
    y = columns()["y"].astype(np.float32)
    assert (
        difference(compared(changed("a.parquet"), changed("b.parquet", y=y), "--metrics", "rmse"), "rmse")["value"] == 0
    )


def test_without_ids_targets_must_be_equal_row_by_row(calcheck, compared, changed):
    first = changed("a.csv", id=None)
    assert difference(compared(first, changed("b.csv", id=None, std=np.full(12, 3.0)), "--metrics", "crps"), "crps")[
        "value"
    ]
    y = columns()["y"]
    line = calcheck("compare", first, changed("c.csv", id=None, y=y[::-1])).refused()
    assert "12 of 12 targets of a and c differ (row 0: " in line
    assert line.endswith("Without ids they must be equal row by row. Pass --id with the name of an id column\n")
    line = calcheck("compare", first, changed("d.csv", rows=slice(5), id=None)).refused()
    assert (
        "a has 12 rows, d has 5, and without ids the rows cannot be matched. Pass --id with the name of an id column"
        in line
    )
    line = calcheck("compare", first, changed("e.csv", y=y[::-1])).refused()  # ids in only one of the files do not help
    assert "Without ids" in line


def test_files_without_targets_need_ids(calcheck, compared, changed):
    first, second = changed("a.csv", y=None), changed("b.csv", y=None, std=np.ones(12))
    assert difference(compared(first, second, "--metrics", "sharpness"), "sharpness")["value"]
    first, second = changed("c.csv", y=None, id=None), changed("d.csv", y=None, id=None)
    line = calcheck("compare", first, second, "--metrics", "sharpness").refused()
    assert (
        "c and d have neither ids nor targets, so their rows may differ. Pass --id with the name of an id column"
        in line
    )


@pytest.mark.slow
def test_any_column_can_be_the_key(compared, changed):
    code = np.array([f"k{row}" for row in range(12)])
    report = compared(changed("a.csv", id=None, code=code), changed("b.csv", id=None, code=code), "--id", "code")
    assert report["input"]["n"] == 12


def test_files_of_errors_are_compared_by_id_or_by_equal_errors(calcheck, compared, tmp_path):
    rng = np.random.default_rng(0)
    error, std = rng.normal(size=30), np.ones(30)
    first = write(tmp_path / "a.csv", {"error": error, "std": std})
    second = write(tmp_path / "b.csv", {"error": error, "std": 2 * std})
    found = difference(compared(first, second, "--metrics", "zms"), "zms")
    assert_allclose(found["value"], abs(np.mean(error**2) / 4 - 1) - abs(np.mean(error**2) - 1), rtol=1e-12)
    third = write(tmp_path / "c.csv", {"error": error / 2, "std": std})
    assert "30 of 30 errors of a and c differ" in calcheck("compare", first, third).refused()
    keyed = [
        write(tmp_path / f"k{place}.csv", {"id": np.arange(30), "error": error / place, "std": std}) for place in (1, 2)
    ]
    report = compared(*keyed, "--metrics", "zms")
    assert any("matched by their ids" in note for note in texts(difference(report, "zms")["warnings"]))
    assert_allclose(
        [each["value"] for each in values(report, "zms").values()], [np.mean(error**2), np.mean(error**2) / 4]
    )


@pytest.mark.slow
def test_metrics_that_do_not_apply_to_all_files_are_skipped_with_the_reason(compared, calcheck, changed):
    draws = np.random.default_rng(0).normal(size=(12, 3))
    samples = changed("s.csv", mean=None, std=None, **{f"sample_{place}": draws[:, place] for place in range(3)})
    report = compared(changed("g.csv"), samples)
    reasons = {each["metric"]: each["reason"] for each in report["skipped"]}
    assert reasons["nll"].startswith("s: ")
    assert reasons["cce"].startswith("needs inputs")
    assert not [each for each in report["results"] if each["metric"] == "nll"]
    assert report["input"]["predictive"] == "gaussian (g), samples (s)"
    assert report["input"]["columns"]["mean of g"] == "mean"
    assert (
        "no metric applies to g, s. nll: s: "
        in calcheck("compare", changed("g.csv"), samples, "--metrics", "nll").refused()
    )


@pytest.mark.slow
def test_the_best_model_is_ranked_and_the_second_best_of_three(compared, changed):
    files = [changed(f"{name}.csv", std=np.full(12, std)) for name, std in (("a", 2.0), ("b", 1.0), ("c", 9.0))]
    report = compared(*files, "--metrics", "zms,crps,rmse,width")
    ranks = {
        metric: [each["details"].get("rank") for each in values(report, metric).values()]
        for metric in ("zms", "crps", "rmse", "width")
    }
    zms = [each["value"] for each in values(report, "zms").values()]
    order = np.argsort(np.abs(np.array(zms) - 1))
    assert [ranks["zms"][place] for place in order] == [1, 2, None]
    assert sorted(ranks["crps"], key=str) == [1, 2, None]
    assert ranks["rmse"] == [None] * 3  # all equal
    assert ranks["width"] == [None] * 3  # neither direction is better
    two = compared(*files[:2], "--metrics", "crps")
    assert sorted([each["details"].get("rank") for each in values(two, "crps").values()], key=str) == [1, None]


@pytest.mark.parametrize(
    ("metric", "reference", "found", "ranks"),
    [
        ("lzms", 0.95, [0.2, 0.9, 0.5], [None, 1, 2]),
        ("bias", None, [-3.0, 2.0, -0.1], [None, 2, 1]),
        ("rmse", None, [3.0, None, 1.0], [2, None, 1]),
        ("zms", 1.0, [0.9, 1.1, 2.0], [1, 1, None]),
        ("zms", None, [0.9, 1.1, 2.0], [None] * 3),  # no reference
        ("crps", None, [1.00001, 1.00002, 1.00003], [None] * 3),  # equal as printed
    ],
)
def test_ranks_follow_the_direction_of_each_metric(metric, reference, found, ranks):
    made = [METRICS[metric]().result(value, inference=Inference(reference=reference)) for value in found]
    assert [each.details.get("rank") for each in _ranked(made)] == ranks


def test_ties_share_a_rank(compared, changed):
    tied = [changed(f"{name}.csv", mean=columns()["mean"] + by) for name, by in (("a", 9.0), ("b", 0.0), ("c", 1e-9))]
    report = compared(*tied, "--metrics", "rmse")
    assert [each["details"].get("rank") for each in values(report, "rmse").values()] == [None, 1, 1]


@pytest.mark.parametrize(
    ("files", "named", "names"),
    [
        (("a.csv", "b.csv"), (), ["a", "b"]),
        (("one/preds.csv", "two/preds.csv"), (), ["one/preds", "two/preds"]),
        (("a.csv", "a.parquet"), (), ["a.csv", "a.parquet"]),
        (("a.csv", "a.csv"), (), ["a (1)", "a (2)"]),
        (("a.csv", "b.csv"), ("--names", "Deep ensemble, BNN"), ["Deep ensemble", "BNN"]),
    ],
)
def test_models_are_named_by_their_files_or_by_names(compared, changed, tmp_path, files, named, names):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir(exist_ok=True)
    paths = [changed(file) for file in files]
    found = compared(*paths, *named, "--metrics", "rmse")["settings"]["models"]
    assert found == names


def test_a_model_from_standard_input_is_named_stdin():
    assert model_names(["-", "folder/b.csv"], None) == ["stdin", "b"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "compare needs the files of at least two models, got"),
        ([], "Missing argument"),
        (["a", "b", "--names", "x"], "--names needs 2 different names, one per file, got 'x'"),
        (["a", "b", "--names", "x,x"], "--names needs 2 different names"),
        (["a", "b", "--names", "x,"], "--names needs 2 different names"),
        (["-", "-", "--input-format", "csv"], "only one file can be read from standard input"),
        (["a", "absent.csv"], "there is no file absent.csv"),
        (["a", "b", "--permutations", "-1"], "--permutations must be >= 0 and at most 10,000,000, got -1"),
        (["a", "b", "--metrics", "zzz"], "--metrics: unknown metric"),
        (["a", "b", "--format", "xml"], "--format takes one of table, json, jsonl, csv, "),
        (["a", "b", "-o", "no/out.tex"], "no/out.tex cannot be written"),
        (["a", "b", "--std", "spread"], "spread"),
    ],
)
def test_errors_are_one_line(calcheck, changed, arguments, message):
    paths = {"a": changed("a.csv"), "b": changed("b.csv")}
    assert message in calcheck("compare", *(paths.get(part, part) for part in arguments)).refused()


def test_compared_files_are_not_overwritten(calcheck, changed):
    assert (
        "would overwrite" in calcheck("compare", changed("a.csv"), changed("b.csv"), "-o", changed("b.csv")).refused()
    )


@pytest.mark.slow
def test_tables_fit_100_columns_one_below_the_other(calcheck, models):
    out = calcheck("compare", *models, *QUICK, "--table").out
    tables = out.split("\n\n")
    assert tables[0].splitlines()[-1] == "60 rows · predictions: gaussian"
    values_ = [part for part in tables if "\nmodel" in part or part.startswith("model")]
    assert len(values_) >= 2
    assert all(len(line) <= 100 for part in values_ for line in part.splitlines())
    assert all("wide " in part and "sharp " in part for part in values_)
    assert "\n* best\n" in out
    assert "sharp − wide\n" in out
    assert "no verdict" not in out


def test_markdown_has_the_best_bold_and_the_second_underlined(calcheck, changed):
    files = [
        changed(f"{name}.csv", std=np.full(12, std)) for name, std in (("a|b", 2.0), ("<b>x", 1.0), ("c_*@me", 9.0))
    ]
    out = calcheck("compare", *files, *QUICK, "--metrics", "crps,rmse", "--format", "markdown").out
    lines = [line for line in out.splitlines() if line.startswith("|")]
    assert lines[0] == "| model | crps ↓ y | rmse ↓ y |"
    assert [line.split(" | ")[0] for line in lines[2:5]] == [r"| a\|b", "| &lt;b&gt;x", r"| c\_\*&#64;me"]
    assert len(re.findall(r"\*\*[\d.]+\*\*", out)) == 1
    assert len(re.findall(r"<ins>[\d.]+</ins>", out)) == 1
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines[:5])
    assert r"| &lt;b&gt;x − a\|b | crps | " in out


HOSTILE = [r"\input{/etc/passwd}", "50%_$x$ & y # ~^", "[1ex] *", "a\nb", "`?'---``!", "ζ模型 Modèle-ä \u0105"]


def test_latex_is_a_booktabs_tabular(calcheck, changed):
    files = [changed(f"{name}.csv", std=np.full(12, std)) for name, std in (("a", 2.0), ("b", 1.0), ("c", 9.0))]
    out = calcheck(
        "compare",
        *files,
        *QUICK,
        "--metrics",
        "zms,crps,bias",
        "--bins" if False else "--seed",
        1,
        "--format",
        "latex",
    ).out
    lines = out.splitlines()
    assert lines[0].startswith("% \\usepackage{booktabs}")
    first = lines.index(r"\begin{tabular}{lrrr}")
    assert lines[first - 1 : first + 2] == ["", r"\begin{tabular}{lrrr}", r"\toprule"]
    assert all(not line or line.startswith("%") for line in lines[:first])
    assert r"zms $\rightarrow$ 1" in lines[first + 2]
    assert r"crps $\downarrow$ {[}y{]}" in lines[first + 2]
    assert len(re.findall(r"\\textbf\{", out)) >= 2
    assert r"\underline{" in out
    assert out.count(r"\begin{tabular}") == out.count(r"\end{tabular}") == 2
    assert out.count("{") - out.count(r"\{") == out.count("}") - out.count(r"\}")


@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_latex_are_escaped(name):
    """Each character is a letter, an escaped one, a braced one, a symbol, or one of three kinds of command."""
    words = "backslash|asciitilde|asciicircum|less|greater|bar"
    braced = r"\{[\[\]*'`]\}"
    commands = rf"\\text({words})\{{\}}|\\texttt\{{U\+[0-9A-F]+\}}"
    allowed = rf"[A-Za-zäè0-9 .:;/=+()?!]|-(?!-)|-\{{\}}|\\[&%$#_{{}}]|{braced}|{commands}|\$\\zeta\$"
    assert re.fullmatch(f"(?:{allowed})*", escape(name))


def test_lines_name_model_and_minus(calcheck, models):
    out = calcheck("compare", *models, *QUICK, "--metrics", "rmse", "--format", "csv").out
    header, *lines = out.splitlines()
    assert header.split(",")[3:6] == ["metric", "model", "minus"]
    assert [line.split(",")[4:6] for line in lines] == [["wide", ""], ["sharp", ""], ["sharp", "wide"]]


@pytest.mark.slow
def test_the_same_command_gives_the_same_bytes(calcheck, models):
    arguments = ("compare", *models, *QUICK, "--metrics", "crps,ece", "--format", "json")
    assert calcheck(*arguments).out == calcheck(*arguments).out
    assert calcheck(*arguments).out != calcheck(*arguments, "--seed", 1).out


def test_settings_of_metrics_and_of_compare_are_used(calcheck, models, tmp_path, monkeypatch):
    monkeypatch.delenv("CALCHECK_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calcheck.toml").write_text("[ece]\nn-levels = 9\n[compare]\npermutations = 19\nnames = ['A', 'B']")
    report = json.loads(calcheck("compare", *models, "--metrics", "ece", "--resamples", 100, "--format", "json").out)
    assert report["results"][0]["options"]["n_levels"] == 9
    assert report["settings"]["permutations"] == 19
    assert report["settings"]["models"] == ["A", "B"]


def test_models_conditioned_on_different_inputs_have_a_note(compared, models):
    notes = texts(difference(compared(*models, "--metrics", "cce", "--inputs", "mean"), "cce")["warnings"])
    assert any("conditioned on different inputs" in note for note in notes)
    notes = texts(difference(compared(*models, "--metrics", "cce"), "cce")["warnings"])
    assert not any("conditioned on different inputs" in note for note in notes)


def test_options_that_describe_only_some_files_are_refused_with_the_command_that_converts_these(
    calcheck, compared, models, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    given = columns(n=60)
    laplace = write(tmp_path / "laplace.parquet", {"y": given["y"], "middle": given["mean"], "width": given["std"]})
    options = ("--dist", "laplace", "--param", "loc=middle", "--param", "scale=width")
    line = calcheck("compare", models[0], laplace, *options).refused()
    assert "The column options describe" in line
    command = shlex.split(re.search("run (calcheck inspect .*), then pass laplace-converted.parquet", line)[1])
    assert calcheck(*command[1:]).code == 0
    pairs = compared(models[0], "laplace-converted.parquet", "--metrics", "crps,nll")
    assert pairs["input"]["predictive"] == "gaussian (wide), laplace (laplace-converted)"
    swept = ("sweep", models[0], laplace, *options, "--metric", "crps", "--vary", "subsample=50%")
    assert "calcheck inspect" in calcheck(*swept).refused()
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(Path(laplace).read_bytes()[:500])
    assert "calcheck inspect" not in calcheck("compare", laplace, broken, *options).refused()


def test_parts_of_scores_have_a_table_and_a_plane(models, calcheck, tmp_path):
    plane = tmp_path / "plane.svg"
    ended = calcheck("compare", *models, *QUICK, "--metrics", "crps-miscalibration,zms", "--plot", plane, "--table")
    heading, names, _, _, first, second = ended.out.split("parts of the score, ")[1].splitlines()[:6]
    assert heading == "crps-miscalibration"
    assert names.split() == ["miscalibration", "discrimination", "uncertainty", "score"]
    for line in (first, second):
        miscalibration, discrimination, uncertainty, score = map(float, line.split()[1:])
        assert_allclose(miscalibration - discrimination + uncertainty, score, atol=2e-3)
    assert "crps-miscalibration, dashed: equal scores, better above" in plane.read_text()


@pytest.fixture
def counts(tmp_path):
    """Return a file of counts with the parameters of three families."""
    rng = np.random.default_rng(4)
    rate = rng.uniform(2, 9, 50)
    given = {"rate": rate, "total_count": 2 * rate, "probs": np.full(50, 1 / 3), "m": rate, "s": np.sqrt(rate)}
    return write(tmp_path / "counts.parquet", {"y": rng.poisson(rate).astype(float), **given})


def families(path):
    return f"{path}@dist=poisson", f"{path}@dist=nbinom:torch", f"{path}@mean=m@std=s"


def test_models_of_one_file_have_options_of_their_own(compared, counts):
    report = compared(*families(counts), "--metrics", "crps,bias")
    names = ["counts@dist=poisson", "counts@dist=nbinom:torch", "counts@mean=m@std=s"]
    assert report["settings"]["models"] == names
    biases = [values(report, "bias")[name]["value"] for name in names]
    assert_allclose(biases, biases[0], rtol=1e-12)
    assert len({each["value"] for each in values(report, "crps").values()}) == 3


def test_likelihoods_of_densities_and_masses_are_not_compared(calcheck, compared, counts):
    """With --discretise, a Gaussian gives a count the mass of the interval of length 1 around it."""
    out = calcheck("compare", *families(counts), "--metrics", "nll,crps", *QUICK, "--table").out
    reason = "compares densities of some models with probability masses of others: pass --discretise"
    assert f"skipped nll: {reason}" in " ".join(out.split())
    found = values(compared(*families(counts), "--metrics", "nll", "--discretise"), "nll")
    import pyarrow.parquet as pq

    table = {name: np.array(column) for name, column in pq.read_table(counts).to_pydict().items()}
    normal = stats.norm(table["m"], table["s"])
    mass = normal.cdf(table["y"] + 0.5) - normal.cdf(table["y"] - 0.5)
    expected = [stats.poisson(table["rate"]).logpmf(table["y"]), np.log(mass)]
    for name, logs in zip(("counts@dist=poisson", "counts@mean=m@std=s"), expected, strict=True):
        assert_allclose(found[name]["value"], -logs.mean(), rtol=1e-10)


def test_options_after_the_name_of_a_file_are_column_options(calcheck, counts, tmp_path):
    assert split_options("a.csv@dist=nbinom:torch@param=mu=rate@param=alpha=a")[1] == {
        "dist": "nbinom:torch",
        "param": ("mu=rate", "alpha=a"),
    }
    assert split_options("me@home.csv") == ("me@home.csv", {})
    odd = tmp_path / "a@b=c.csv"
    odd.write_text("y,mean,std\n1,1,1\n")
    assert split_options(str(odd)) == (str(odd), {})
    line = calcheck("compare", f"{counts}@dists=poisson", counts).refused()
    assert "there is no column option --dists. Did you mean 'dist'?" in line
    line = calcheck("compare", f"{counts}@nan_policy=omit", counts).refused()
    assert "there is no column option --nan_policy. Did you mean 'nan-policy'?" in line


@pytest.mark.parametrize("options", [("--draws", "1", "--trials", "3"), ()])
def test_the_deviation_over_trials_is_shown_in_every_format(calcheck, models, monkeypatch, options):
    for name, value in () if options else (("DRAWS", "1"), ("TRIALS", "3")):
        monkeypatch.setenv(f"CALCHECK_CCE_{name}", value)

    def shown(form):
        return calcheck("compare", *models, "--metrics", "cce,mae", *options, *QUICK, "--format", form).out

    first, *_ = json.loads(shown("json"))["results"]
    assert first["details"]["deviation"] == first["details"]["trials"]["std"]
    text = f" ({first['details']['deviation']:.3g})"
    for form in ("table", "markdown", "html"):
        assert text in shown(form)
    assert ",deviation," in shown("csv").splitlines()[0]


@pytest.mark.parametrize("command", ["compare", "trend"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--metrics", "mae", "--draws", "1"), "--draws is an option of cce, which is not among the metrics"),
        (("--metrics", "cce", "--trials", "3"), "--trials 3 requires a number of draws per row"),
        (("--metrics", "cce", "--draws", "few"), "--draws"),
    ],
)
def test_trials_need_cce_and_a_number_of_draws(calcheck, models, command, options, message):
    assert message in calcheck(command, *models, *options).refused()


def test_the_models_of_one_file_are_compared(calcheck, tmp_path):
    limits = {f"{model}-{side}-90": [sign * size] * 3 for model, size, side, sign in SIDES}
    path = write(tmp_path / "nixtla.csv", pa.table({"ds": [1, 2, 3], "y": [0.0, 0.1, 0.2], **limits}))
    report = json.loads(calcheck("compare", path, "--metrics", "interval-score", *QUICK, "--format", "json").out)
    assert report["settings"]["models"] == ["A", "B"]


SIDES = [("A", 1.0, "lo", -1), ("A", 1.0, "hi", 1), ("B", 2.0, "lo", -1), ("B", 2.0, "hi", 1)]


def test_the_coverage_of_a_distribution_and_of_quantiles_with_targets_at_their_limits_are_compared(calcheck, tmp_path):
    """Rows of models that have other columns cannot be swapped: the bootstrap alone gives the p-value."""
    data = columns(n=60)
    stated = {f"q{p}": np.round(data["mean"] + z * data["std"], 1) for p, z in ((0.05, -1.645), (0.95, 1.645))}
    quantiles = {"y": np.round(data["y"], 1)} | stated
    files = write(tmp_path / "normal.parquet", data | {"y": quantiles["y"]}), write(tmp_path / "q.parquet", quantiles)
    ended = calcheck("compare", *files, "--metrics", "coverage", *QUICK, "--format", "json")
    assert ended.code == 0, ended
    found = difference(json.loads(ended.out), "coverage")
    assert 0 < found["p_value"] <= 1


def test_the_best_model_is_named_with_the_command_that_judges_it(compared, calcheck, models):
    report = compared(*models, "--id", "id", "--metrics", "crps")
    (best,) = report["best"]
    file = models[["wide", "sharp"].index(best["model"])]
    assert best["next"] == [f"calcheck evaluate {file} --id id"]
    assert (
        "  test     calcheck evaluate " in calcheck("compare", *models, "--id", "id", "--metrics", "crps", *QUICK).out
    )
