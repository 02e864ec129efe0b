"""`calcheck slices`: groups named by columns, regions that a search finds, their verdicts, and what is refused."""

import json
import re
import shlex

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calcheck as package
from tests.helpers.files import write
from tests.helpers.schemas import validate
from tests.helpers.simulations import slow

FEW = ("--replicates", "39", "--resamples", "100")


def forecasts(n=600, seed=1, wrong=1.0):
    """Return normal forecasts whose uncertainties are too small by a factor for one sex."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2, n)
    sex = np.where(rng.random(n) < 0.4, "f", "m")
    y = mean + np.where(sex == "f", wrong, 1) * std * rng.normal(size=n)
    age = rng.integers(20, 80, n)
    days = np.datetime64("2024-01-01") + rng.integers(0, 100, n)
    return {"y": y, "mean": mean, "std": std, "sex": sex, "age": age, "day": days}


@pytest.fixture
def preds(tmp_path):
    """Return the path of predictions that are overconfident for one sex."""
    return write(tmp_path / "preds.parquet", forecasts(wrong=1.6))


@pytest.fixture
def sliced(calcheck):
    """Run the command, and return its report."""

    def run(*arguments):
        ended = calcheck("slices", *arguments, "--format", "json")
        assert ended.code == 0, ended.err
        report = json.loads(ended.out)
        validate(report)
        return report

    return run


def by_group(report, metric):
    """Return the results of a metric by group."""
    return {each["slice"]["group"]: each for each in report["results"] if each["metric"] == metric}


def test_the_answer_about_a_region_is_that_of_its_near_limit(sliced, preds):
    """The region of sex=f has intervals that should be 1.6 times as wide, in about 240 of 600 rows."""
    answers = {}
    for tolerance in ("0.2", "0.5", "3"):
        found = sliced(preds, "--columns", "sex", "--replicates", "39", "--tolerance", tolerance)["conclusion"]
        answers[tolerance] = found["answer"], found["effects"][0]["within"]
    assert answers == {"0.2": ("no", False), "0.5": ("not-shown", None), "3": ("yes", True)}


def test_named_inputs_are_the_columns_of_a_search(sliced, preds):
    assert sliced(preds, "--inputs", "sex,age", "--replicates", "39")["settings"]["columns"] == ["sex", "age"]


def test_columns_that_are_computed_from_targets_are_searched_only_if_they_are_named(tmp_path):
    columns = forecasts(wrong=1.6)
    error = columns["y"] - columns["mean"]
    computed = {"sq": error**2, "t": error / columns["std"], "doubled": 2 * columns["y"], "crps": 0.5 * np.abs(error)}
    noise = {"y_err": np.random.default_rng(0).uniform(size=600)}
    file = write(tmp_path / "preds.parquet", {**columns, **computed, **noise})
    found = package.slices(file, replicates=39)
    assert not {*computed} & {*found.settings["columns"]}
    assert {"age", "y_err"} < {*found.settings["columns"]}
    (note,) = {each.text for each in found.results[0].warnings if each.code == "computed-from-targets"}
    assert note.startswith("not searched, as they seem computed from targets: 'sq', 't', 'doubled', 'crps' (--columns")
    named = package.slices(file, replicates=39, columns=["age", "t"])
    assert named.settings["columns"] == ["age", "t"]
    assert "computed-from-targets" not in {each.code for each in named.results[0].warnings}


def test_an_overconfident_group_is_named_with_what_would_mend_it(sliced, preds):
    report = sliced(preds, "--by", "sex", "--replicates", "199", "--resamples", "200")
    found = by_group(report, "zms")
    assert [found[name]["verdict"] for name in ("all rows", "sex=f", "sex=m")] == ["fail", "fail", "pass"]
    assert found["sex=f"]["direction"] == "too-narrow"
    assert found["sex=f"]["p_value_adjusted"] == pytest.approx(1 / 100)
    assert report["conclusion"]["answer"] == "no"
    text = next(each["text"] for each in report["conclusion"]["effects"] if each["text"].startswith("sex=f"))
    factor = by_group(report, "width-factor")["sex=f"]
    low, value, high = (f"{factor[name]:.3g}" for name in ("low", "value", "high"))
    assert f"overconfident: 90 % intervals should be {value} ({low} to {high}) times as wide" in text
    assert factor["low"] < 1.5 < factor["high"]
    assert report["conclusion"]["next"][1] == f"calcheck recalibrate {preds} --by sex"


@pytest.mark.parametrize(
    ("wrong", "shift", "metric"), [(1.09, 0.0, "width-factor"), slow((1.0, 0.08, "standardized-bias"))]
)
def test_a_fault_within_the_tolerance_fails_a_test_but_is_no_no(sliced, calcheck, tmp_path, wrong, shift, metric):
    data = forecasts(8_000, wrong=wrong)
    data["y"] = data["y"] + shift * data["std"] * (data["sex"] == "f")
    file, options = write(tmp_path / "many.parquet", data), ("--by", "sex", "--replicates", "99", "--resamples", "0")
    report = sliced(file, *options)
    (effect,) = [each for each in report["conclusion"]["effects"] if each["text"].startswith("sex=f")]
    assert by_group(report, metric)["sex=f"]["verdict"] == "fail"
    assert (report["conclusion"]["answer"], effect["within"]) == ("yes", True)
    assert effect["text"].endswith("within 20 %")
    found = by_group(report, metric)["sex=f"]
    assert [effect[name] for name in ("value", "low", "high")] == [found[name] for name in ("value", "low", "high")]
    assert sliced(file, *options, "--tolerance", "0.01")["conclusion"]["answer"] == "no"
    checked = calcheck("check", file, *options, "--metrics", metric)
    assert (checked.code, "within 20 %" in checked.out) == (0, True)
    assert calcheck("check", file, *options, "--metrics", metric, "--tolerance", "0.01").code == 1


def test_values_and_intervals_are_those_of_evaluate_with_the_filter_of_the_group(sliced, calcheck, preds):
    report = sliced(preds, "--by", "sex,age:3,day:month", "--cross", "--metrics", "zms,coverage", *FEW[:2])
    some = [each for each in report["results"] if each["verdict"] != "none"]
    assert len(some) > 15
    for result in some[:: len(some) // 6]:
        options = shlex.split(result["slice"]["filter"])
        few = ("--replicates", "0", "--format", "json")
        (alone,) = json.loads(calcheck(result["metric"], preds, *options, *few).out)["results"]
        assert_allclose(
            [result["value"], result["low"], result["high"]], [alone["value"], alone["low"], alone["high"]], rtol=1e-12
        )


def test_a_right_model_passes_in_all_groups(sliced, tmp_path):
    report = sliced(write(tmp_path / "right.parquet", forecasts()), "--by", "sex,age:4,std:3", "--cross", *FEW)
    assert {each["verdict"] for each in report["results"]} <= {"pass", "none"}
    assert report["conclusion"]["answer"] == "yes"


def test_small_groups_have_values_but_no_verdict(sliced, tmp_path):
    data = forecasts(200) | {"site": np.repeat(["big", "small"], [180, 20])}
    options = (write(tmp_path / "few.parquet", data), "--by", "site", *FEW)
    found = by_group(sliced(*options), "width-factor")["site=small"]
    assert (found["verdict"], found["p_value"]) == ("none", None)
    assert found["value"] is not None
    assert found["p_value_adjusted"] is None
    assert "groups with fewer than 30 rows are not judged (--min-rows)" in str(found["warnings"])
    assert by_group(sliced(*options, "--min-rows", "20"), "zms")["site=small"]["p_value"]


@pytest.mark.parametrize("options", [(), ("--refit",)])
def test_groups_of_exactly_the_minimum_of_rows_are_judged_by_cce(sliced, tmp_path, options):
    data = forecasts(60) | {"site": np.repeat(["big", "small"], [40, 20])}
    file = write(tmp_path / "few.parquet", data)
    options = ("--by", "site", "--metrics", "cce", "--inputs", "age", "--replicates", "19", *options)
    judged = [by_group(sliced(file, *options, "--min-rows", n), "cce")["site=small"]["p_value"] for n in ("20", "21")]
    assert [each is None for each in judged] == [False, True]


def test_groups_have_the_warnings_of_the_file_and_of_rows_that_depend_on_each_other(sliced, tmp_path):
    """Errors share a part with those of the same patient; the group b has rows of four patients, so no interval."""
    rng = np.random.default_rng(3)
    patient = np.repeat(np.arange(24), 20)
    y = rng.normal(size=24)[patient] + 0.3 * rng.normal(size=480)
    parts = {"y": y, "mean": np.zeros(480), "std": np.full(480, 0.9), "patient": patient}
    file = write(tmp_path / "patients.parquet", parts | {"site": np.where(patient < 20, "a", "b")})
    options = ("--by", "site", "--metrics", "bias", "--replicates", "39", "--resamples", "100", "--min-std", "1")
    codes = {each["code"] for result in sliced(file, *options)["results"] for each in result["warnings"]}
    assert codes >= {"dependent-rows", "clipped-std"}
    found = by_group(sliced(file, *options, "--cluster", "patient"), "bias")
    assert "dependence" in {each["code"] for each in found["site=a"]["warnings"]}
    assert found["site=a"]["low"] is not None
    assert (found["site=b"]["low"], found["site=b"]["verdict"]) == (None, "none")


def test_the_table_names_groups_and_commands(calcheck, preds):
    ended = calcheck("slices", preds, "--by", "sex", *FEW, "--table")
    assert "Can the uncertainties be trusted in every group?  NO" in ended.out
    assert f"calcheck evaluate {preds}" in re.sub(r" \\\n +", " ", ended.out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "sex", "--columns", "age"), "pass only one of them"),
        (("--columns", "height"), "height"),
        (("--columns", "embedding"), "there is no embedding, in whose clusters regions are searched. Pass --embedding"),
        (("--embedding-clusters", "51"), "--embedding-clusters must be between 0 and 50, got 51"),
        (("--by", "sex", "--pointwise", "rows.csv"), "--pointwise writes the clusters and the regions of a search"),
        (("--bins", "1"), "--bins must be between 2 and 32, got 1"),
        (("--most", "0"), "--most must be at least 1, got 0"),
        (("--depth", "6"), "--depth must be between 1 and 5, got 6"),
        (("--depth", "3", "--by", "sex"), "--depth is that of a tree of regions: pass only one of them"),
        (("--min-rows", "700"), "no region has 700 rows: there are 600, pass a smaller --min-rows"),
        (("--no-null",), "0 replicates cannot show a fault at a confidence of 0.95"),
        (("--by", "height"), "height"),
        (("--by", "sex:3"), "column 'sex' holds text, which is not cut into bins"),
        (("--by", "sex", "--metrics", "ece"), "ece is no mean over rows"),
        (("--by", "sex", "--min-rows", "0"), "--min-rows must be at least 1, got 0"),
        (("--by", "y:500,age:4", "--cross"), "groups, at most 1,000 can be compared"),
    ],
)
def test_bad_arguments_are_refused(calcheck, preds, arguments, message):
    ended = calcheck("slices", preds, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert len(ended.err.strip().splitlines()) == 1


def test_a_region_is_found_and_its_filter_selects_its_rows(sliced, calcheck, preds):
    report = sliced(preds, "--replicates", "199")
    assert report["settings"]["columns"] == ["sex", "age", "day", "mean", "std"]
    first = next(each for each in report["results"] if each["metric"] == "zms")
    assert first["verdict"] == "fail"
    assert "sex=f" in first["slice"]["group"]
    selection = shlex.split(first["slice"]["filter"])
    (alone,) = json.loads(calcheck("zms", preds, *selection, "--no-null", "--format", "json").out)["results"]
    assert_allclose(first["value"], alone["value"], rtol=1e-12)
    assert f"p < 0.01 over {report['settings']['regions']:,} regions" in report["conclusion"]["effects"][0]["text"]
    evaluated = f"calcheck evaluate {preds} {first['slice']['filter']}"
    assert report["conclusion"]["next"] == [evaluated, f"calcheck recalibrate {preds}"]


def test_the_rows_outside_of_all_regions_stand_beside_them(sliced, calcheck, preds):
    """As the command for the other sex has them: the uncertainties of m are right, by construction."""
    report = sliced(preds, "--columns", "sex")
    rest = report["settings"]["elsewhere"]
    alone = json.loads(calcheck("width-factor", preds, "--filter", "sex=m", "--format", "json").out)
    (expected,) = alone["results"]
    assert rest["rows"] == alone["input"]["n"]
    assert_allclose(rest["width-factor"], [expected[name] for name in ("value", "low", "high")])
    assert rest["width-factor"][1] < 1 < rest["width-factor"][2]
    line = calcheck("slices", preds, "--columns", "sex").out.splitlines()[-1]
    assert re.match(rf"elsewhere +{rest['rows']} ", line)


def test_the_command_filters_the_group_that_the_answer_names(sliced, calcheck, tmp_path):
    """Of groups with std 1.5 and 3 times too small, the second is the worse one, and has the verdict of its factor."""
    group = np.repeat(["a", "b", "c"], 200)
    wrong = np.select([group == "a", group == "b"], [1.5, 3.0], 1.0)
    y = wrong * np.random.default_rng(0).normal(size=600)
    file = write(tmp_path / "groups.csv", {"y": y, "mean": np.zeros(600), "std": np.ones(600), "group": group})
    assert sliced(file, "--by", "group")["conclusion"]["next"][0] == f"calcheck evaluate {file} --filter group=b"
    shown = calcheck("slices", file, "--by", "group").out
    assert "NO: group=b, ×" in shown
    assert re.search(r"^group=b +200 .* too narrow$", shown, re.MULTILINE)


def test_a_search_without_a_find_states_which_faults_it_would_have_found(sliced, tmp_path):
    report = sliced(write(tmp_path / "right.parquet", forecasts()), "--columns", "age,day,std")
    assert report["conclusion"]["answer"] == "yes"
    nothing, sizes = report["conclusion"]["effects"]
    assert "no region differs from a perfect model by more than chance" in nothing["text"]
    assert "times too small in 60 rows would be found in half of all files" in sizes["text"]
    assert {each["verdict"] for each in report["results"]} <= {"pass", "none"}


def test_draws_are_searched_without_their_means_and_texts_without_rare_values(sliced, tmp_path):
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(400, 12)) * np.where(np.arange(400) < 90, 2, 1)[:, None]
    data = {"y": draws[:, 0], **{f"sample_{each}": draws[:, 1 + each] for each in range(11)}}
    data["site"] = np.where(np.arange(400) < 90, "a", rng.choice(list("bcdefghijkl"), 400))
    data["y"] = np.where(np.arange(400) < 90, 2 * data["y"], data["y"])
    report = sliced(write(tmp_path / "draws.parquet", data))
    assert report["settings"]["columns"] == ["site"]
    assert report["settings"]["regions"] == 3  # all rows, site a, and all other sites
    assert report["results"][0]["slice"]["group"] == "site=a"


def test_files_that_do_not_state_distributions_are_not_searched(calcheck, tmp_path):
    columns = {"y": [1.0, 2.0], "lower": [0.0, 1.0], "upper": [2.0, 3.0], "age": [1.0, 2.0]}
    ended = calcheck("slices", write(tmp_path / "intervals.parquet", columns), "--level", "0.9")
    assert ended.code == 2
    assert "which the file does not state: compare groups with --by" in ended.err


def test_slices_have_a_picture(calcheck, preds, tmp_path):
    for options in (["--by", "sex"], []):
        assert calcheck("slices", preds, *options, *FEW, "--plot", str(tmp_path / "a.svg")).code == 0
        text = (tmp_path / "a.svg").read_text()
        assert "differs from a perfect model" in text
        assert "sex=f" in text


def test_the_picture_of_a_search_has_a_map_with_the_outline_of_the_region(sliced, calcheck, tmp_path):
    rng = np.random.default_rng(2)
    data = forecasts() | {"dose": rng.uniform(0, 1, 600)}
    data["y"] = data["mean"] + np.where(data["dose"] > 0.6, 2, 1) * (data["y"] - data["mean"])
    path = write(tmp_path / "dose.parquet", data)
    plot = tmp_path / "map.svg"
    report = sliced(path, "--columns", "dose,age", "--plot", str(plot), "--replicates", "39")
    first, *others = report["results"]
    assert not any(each.get("curves") for each in others)
    cells, region = first["curves"]
    assert (cells["x_name"], cells["x2_name"], len(cells["y"])) == ("dose", "age", 100)
    inside = (data["dose"] > region["x"][0]) & (data["dose"] <= region["stop"][0])
    inside &= (data["age"] > region["x2"][0] - (region["x2"][0] == data["age"].min())) & (
        data["age"] <= region["stop2"][0]
    )
    assert inside.sum() == first["slice"]["rows"]
    assert sum(cells["rows"]) == 600
    assert "dispersion, standard errors" in plot.read_text()
    assert not any(
        each.get("curves") for each in sliced(path, "--columns", "dose,age", "--replicates", "39")["results"]
    )
    assert calcheck("slices", path, "--columns", "dose", "--plot", plot, "--replicates", "39").code == 0
    assert "standard errors" not in plot.read_text()


@pytest.fixture
def embedded(tmp_path):
    """Return the path of predictions with an embedding, whose uncertainties are too small in one of its clusters."""
    rng = np.random.default_rng(8)
    group = rng.integers(0, 4, 800)
    embedding = (8 * np.eye(4)[group] + rng.normal(size=(800, 4))).astype(np.float32)
    y = np.where(group == 2, 2.0, 1.0) * rng.normal(size=800)
    data = {"y": y, "mean": np.zeros(800), "std": np.ones(800), "age": rng.random(800)}
    return write(tmp_path / "embedded.parquet", data | {"embedding": embedding})


def test_a_cluster_of_an_embedding_is_a_region_whose_rows_are_written(sliced, embedded, tmp_path):
    options = (embedded, "--embedding-clusters", "4", "--replicates", "39")
    report = sliced(*options, "--pointwise", tmp_path / "rows.csv")
    first = report["results"][0]["slice"]
    assert first["group"].startswith("cluster ")
    assert report["settings"]["embedding_clusters"]["count"] == 4
    assert report["conclusion"]["next"] == [f"calcheck slices {embedded} --pointwise rows.csv"]
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert lines[0] == '"region","cluster","y","mean","std","age"'
    assert sum(line.startswith("1,") for line in lines) == first["rows"]
    found = package.slices(embedded, embedding_clusters=4, replicates=39).rows("regions")
    assert (found["region"] == 1).sum() == first["rows"]
    named = sliced(*options, "--columns", "age,embedding")
    assert named["settings"]["columns"] == ["age", "embedding"]
    for without in (("--columns", "age"), ("--embedding-clusters", "0")):
        assert "embedding" not in sliced(embedded, *without, "--replicates", "39")["settings"]["columns"]


def test_a_tree_is_printed_as_indented_rules_with_the_verdicts_of_its_leaves(sliced, calcheck, preds):
    options = (preds, "--depth", "2", "--replicates", "39")
    report = sliced(*options)
    root, *nodes = report["settings"]["tree"]
    assert (root["rule"], root["rows"], root["group"]) == ("all rows", 600, None)
    assert {node["rule"] for node in nodes if node["parent"] == 0} == {"sex=f", "sex!=f"}
    leaf = next(each for each in report["results"] if each["slice"]["filter"].startswith("--filter sex=f"))
    assert leaf["low"] < leaf["value"] < leaf["high"]
    ended = calcheck("slices", *options, "--resamples", "100", "--table")
    assert "tree of sex, age, day, mean, std" in ended.out
    lines = ended.out.splitlines()
    assert next(line for line in lines if line.startswith("· sex=f")).split()[3:5] == ["zms", f"{leaf_zms(report):.3g}"]
    assert any(line.startswith("· sex!=f") and "no fault found" in line for line in lines)


def leaf_zms(report):
    """Return the mean squared z-score of the first leaf of one sex."""
    found = by_group(report, "zms")
    return next(each["value"] for name, each in found.items() if name.startswith("sex=f"))


def test_rules_about_a_search_see_clusters(calcheck, embedded):
    ended = calcheck("check", embedded, "--table", "--replicates", "39", "--fail-on", "slices.min_p < 0.03")
    assert (ended.code, "cluster" in ended.out, "embedding\n" in ended.out) == (1, True, True)


def test_the_spread_of_draws_forms_no_groups(calcheck, tmp_path):
    rng = np.random.default_rng(0)
    data = {"y": rng.normal(size=60), **{f"sample_{each}": rng.normal(size=60) for each in range(5)}}
    ended = calcheck("slices", write(tmp_path / "draws.parquet", data), "--by", "std:3")
    assert ended.code == 2
    assert "the std of draws does not form groups" in ended.err


def test_cce_by_group_has_one_fit_to_all_rows_or_one_to_each_group(sliced, calcheck, preds):
    by_sex = (preds, "--by", "sex", "--inputs", "age", "--metrics", "cce", "--replicates", "39")
    shared, alone = sliced(*by_sex), sliced(*by_sex, "--refit")
    assert (shared["settings"]["refit"], alone["settings"]["refit"]) == (False, True)
    filtered = calcheck("cce", preds, "--filter", "sex=f", "--inputs", "age", "--no-null", "--format", "json")
    (expected,) = json.loads(filtered.out)["results"]
    assert by_group(alone, "cce")["sex=f"]["value"] == pytest.approx(expected["value"])
    assert by_group(shared, "cce")["sex=f"]["value"] != by_group(alone, "cce")["sex=f"]["value"]
    assert by_group(shared, "cce")["sex=f"]["p_value_adjusted"] == pytest.approx(1 / 40)


def test_metrics_that_are_no_means_over_rows_need_a_fit_to_each_group(sliced, calcheck, preds):
    refused = calcheck("slices", preds, "--by", "sex", "--metrics", "ence")
    assert (refused.code, "ence is no mean over rows: pass --refit" in refused.err) == (2, True)
    report = sliced(preds, "--by", "sex", "--metrics", "ence,zms", "--refit", *FEW)
    assert by_group(report, "ence")["sex=f"]["direction"] == "wrong-in-bins"
    plain = by_group(sliced(preds, "--by", "sex", *FEW), "zms")["sex=f"]
    assert {plain[name] == by_group(report, "zms")["sex=f"][name] for name in ("value", "p_value")} == {True}
    refused = calcheck("slices", preds, "--by", "sex", "--metrics", "ence", "--refit", "--cluster", "age")
    assert "has a null distribution for independent rows only: omit --cluster" in refused.err


@pytest.mark.parametrize("command", ["evaluate", "check", "slices"])
def test_a_fit_to_each_group_needs_groups(calcheck, preds, command):
    ended = calcheck(command, preds, "--refit")
    assert (ended.code, "--refit applies to groups" in ended.err) == (2, True)


def test_rules_refer_to_cce_of_a_group(calcheck, preds):
    arguments = ("check", preds, "--by", "sex", "--inputs", "age", "--metrics", "cce", "--replicates", "39")
    for rule, code in (("p_value_adjusted < 0.05", 1), ("value > 0.9", 0)):
        assert calcheck(*arguments, "--fail-on", f"slices['sex=f'].cce.{rule}").code == code


def test_python_takes_frames_and_returns_one_line_per_group_and_metric():
    import pandas as pd

    few = {"metrics": ["zms", "bias"], "replicates": 39, "resamples": 100}
    report = package.slices(pd.DataFrame(forecasts(wrong=1.6)), ["sex", "age:2"], cross=True, **few)
    frame = report.to_frame()
    assert len(frame) == 2 * (1 + 2 + 2 + 4)
    assert frame.query("group == 'sex=f' and metric == 'zms'").verdict.item() == "fail"
    found = package.slices(pd.DataFrame(forecasts(wrong=1.6)), columns=["sex", "age"], bins=4, replicates=39)
    assert found.results[0].slice["group"] == "sex=f"


def test_metrics_that_a_file_does_not_allow_are_skipped_with_the_reason(sliced, calcheck, tmp_path):
    rng = np.random.default_rng(5)
    center = rng.normal(size=200)
    parts = {f"q{level}": center + shift for level, shift in ((0.1, -1.28), (0.5, 0.0), (0.9, 1.28))}
    parts |= {"y": center + rng.normal(size=200), "sex": np.where(rng.random(200) < 0.5, "f", "m")}
    file = write(tmp_path / "quantiles.parquet", parts)
    report = sliced(file, "--by", "sex", *FEW)
    assert {each["metric"] for each in report["skipped"]} == {"zms"}
    assert by_group(report, "width-factor")["sex=f"]["verdict"] == "pass"
    assert "the mean depends on the tails" in calcheck("slices", file, "--by", "sex", "--metrics", "zms").refused()


def test_evaluate_by_columns_is_the_same_report(calcheck, preds):
    options = (preds, "--by", "sex", *FEW, "--format", "json")
    reports = [json.loads(calcheck(name, *options).out) for name in ("evaluate", "slices")]
    assert reports[0] == reports[1]


@pytest.mark.parametrize("option", [("--pointwise", "a.csv"), ("--subsample", "50"), ("--brief",)])
def test_what_groups_do_not_have_is_refused(calcheck, preds, option):
    assert (
        f"{option[0]} does not apply to groups (--by)" in calcheck("evaluate", preds, "--by", "sex", *option).refused()
    )


def test_a_check_of_groups_fails_where_a_group_fails(calcheck, preds):
    ended = calcheck("check", preds, "--by", "sex", "--metrics", "zms,bias", *FEW, "--format", "json")
    report = json.loads(ended.out)
    validate(report)
    passed = {gate["rule"]: gate["passed"] for gate in report["gates"]}
    assert ended.code == 1
    assert not passed["slices['sex=f'].zms.verdict == fail"]
    assert passed["slices['sex=m'].zms.verdict == fail"]
    assert all(each["slice"] for each in report["results"])


def test_rules_refer_to_groups_or_to_the_search(calcheck, preds):
    """The smallest p-value of 59 replicates is 1 in 60 for each group."""
    of_groups = {
        "slices.min_p < 0.04": False,
        "slices.min_p < 0.01": True,
        "slices.failed > 2": True,
        "slices['sex=f'].coverage < 0.85": False,
        "slices['sex=m'].coverage < 0.85": True,
        'slices["sex=m"].coverage < 0.85 and mae > 0': True,
        "slices['sex=f'].rce.verdict == fail": False,
        "slices.groups != 3 and mae > 0": True,
    }
    for options, passed in ((("--by", "sex"), of_groups), ((), {"slices.min_p < 0.04": False})):
        rules = (part for rule in passed for part in ("--fail-on", rule))
        ended = calcheck("check", preds, *options, "--metrics", "zms", "--resamples", 100, *rules, "--format", "json")
        assert (ended.code, ended.err) == (1, "")
        assert {gate["rule"]: gate["passed"] for gate in json.loads(ended.out)["gates"]} == passed


@pytest.mark.parametrize(
    ("rule", "by", "message"),
    [
        ("slices['sex=f'].coverage < 0.85", False, "also pass the columns that form the groups, e.g. --by sex"),
        ("slices['sex=x'].coverage < 0.85", True, "no group 'sex=x'. Available groups: 'all rows', 'sex=f', 'sex=m'"),
        ("slices['sex=f'].color < 0.85", True, "unknown metric 'color'"),
        ("slices['sex=f'].min_p < 0.85", True, "unknown metric 'min_p'"),
        ("slices.coverage < 0.85", True, "slices has no field 'coverage'"),
        ("slices['sex=f'].ece > 1", True, "ece is no mean over rows"),
        ("slices['sex=f' > 1", True, "unexpected character"),
    ],
)
def test_rules_about_unknown_groups_are_refused(calcheck, preds, rule, by, message):
    options = ("--metrics", "zms", *FEW, *(("--by", "sex") if by else ()))
    assert message in calcheck("check", preds, *options, "--fail-on", rule).refused()


def test_the_table_of_a_check_has_the_groups(calcheck, preds):
    out = calcheck("check", preds, "--by", "sex", "--metrics", "zms", *FEW, "--fail-on", "mae > 9", "--table").out
    assert out.index("mae") < out.index("all rows") < out.index("sex=f") < out.index("adjusted: p-value")


def test_groups_that_are_all_wrong_alike_are_not_named(calcheck, tmp_path):
    rng = np.random.default_rng(0)
    frame = {
        "y": 1.5 * rng.normal(size=300),
        "mean": np.zeros(300),
        "std": np.ones(300),
        "site": np.tile(["a", "b"], 150),
    }
    write(tmp_path / "alike.parquet", frame)
    lines = calcheck("slices", tmp_path / "alike.parquet", "--by", "site", "--metrics", "width-factor").out.splitlines()
    assert lines[2].endswith("NO: in all groups alike")
    assert [line.split()[-3:] for line in lines if line.startswith("site=")] == [["as", "all", "rows"]] * 2


def test_regions_of_quantiles_are_searched_between_the_stated_levels(sliced, tmp_path):
    rng = np.random.default_rng(31)
    age, mean, levels = rng.uniform(0, 90, 500), rng.normal(size=500), (0.2, 0.4, 0.6, 0.8)
    z = dict(zip(levels, (-0.8416, -0.2533, 0.2533, 0.8416), strict=True))
    y = mean + rng.normal(size=500) * np.where(age > 60, 3, 1)
    data = {"y": y, "age": age} | {f"q{level}": mean + shift for level, shift in z.items()}
    report = sliced(write(tmp_path / "quantiles.parquet", data))
    assert report["settings"]["columns"] == ["age"]  # Means are unknown: nothing is stated beyond 20 and 80 %
    assert report["results"][0]["slice"]["group"].startswith("age>")
    assert report["conclusion"]["answer"] == "no"
    assert "depends on the tails" in next(each["reason"] for each in report["skipped"] if each["metric"] == "zms")


def test_the_effect_of_a_biased_group_has_its_mean_error():
    """Group b is off by .25 predicted standard deviations, with right uncertainties."""
    rng = np.random.default_rng(4)
    group = np.repeat(["a", "b"], 600)
    frame = {"y": rng.normal(size=1200) + np.where(group == "b", 0.25, 0), "mean": np.zeros(1200), "std": np.ones(1200)}
    report = package.slices(frame | {"group": group}, by="group", replicates=199)
    biases = [
        each for each in report.results if each.metric == "standardized-bias" and each.slice["group"] == "group=b"
    ]
    (effect,) = [
        each for each in report.conclusion.effects if each.text.startswith("group=b") and "biased" in each.text
    ]
    assert (effect.value, effect.low, effect.high) == (biases[0].value, biases[0].low, biases[0].high)
    assert effect.value == pytest.approx(0.25, abs=0.12)
