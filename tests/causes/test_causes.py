"""Causes of a no: which is named first, that none is where there is none, and that commands undo them."""

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import calcheck as library
from calcheck.causes import fits
from calcheck.causes.candidates import Case
from calcheck.causes.fits import Scored
from calcheck.causes.search import find_causes, rows_of_step, sampled_rows
from calcheck.distributions import Gaussian, Quantiles, Samples
from calcheck.distributions.count_families import Poisson
from calcheck.predictions import Predictions
from calcheck.render.numbers_and_notes import cause_texts
from calcheck.reports.conclusion import Answered, Cause
from calcheck.studies.page.picture import cause_picture
from tests.benchmarks import causes as benchmark

FEW = ("--metrics", "zms", "--no-bootstrap", "--format", "json")


def rows_with(cause, kind="gaussian", seed=0):
    rng = np.random.default_rng([seed, *f"{kind}{cause}".encode()])
    return benchmark.planted(kind, cause, rng)


def named(kind, rows):
    case = Case(rows, "std" if kind == "gaussian" else "other", columns=rows.columns)
    return [each.candidate.name for each in find_causes(case)]


def test_normal_scores_are_linear_between_quantiles_and_beyond():
    """Quantiles 1, 2, 4 of scores −1, 0, 1: y = 3 has the score ½ and slope ½, y = 8 has 3, and y = 0 has −2."""
    levels = np.array([0.15865525393145707, 0.5, 0.8413447460685429])
    predictive = Quantiles(levels, np.tile([1.0, 2.0, 4.0], (3, 1)))
    r, slope = Scored.from_rows(Predictions(y=np.array([3.0, 8.0, 0.0]), predictive=predictive)).evaluate()
    np.testing.assert_allclose(r, [0.5, 3.0, -2.0], rtol=1e-12)
    np.testing.assert_allclose(np.exp(slope), [0.5, 0.5, 1.0], rtol=1e-12)


def test_noise_adds_its_variance_and_stretching_multiplies_the_std():
    """N(1, 3²) with noise of std 4 is N(1, 5²); stretched twice it is N(1, 6²): the scores of y = 31 are 6 and 5."""
    scored = Scored.from_rows(Predictions(y=np.array([31.0]), predictive=Gaussian(np.array([1.0]), np.array([3.0]))))
    assert scored.with_noise(4.0).evaluate()[0] == pytest.approx(6.0)
    assert scored.stretched(2.0).evaluate()[0] == pytest.approx(5.0)


def test_normal_scores_of_counts_are_those_of_the_distribution_function_between_counts():
    """P(Y ≤ 4) of a Poisson distribution of mean 4 is 0.6288, whose normal score is 0.3288."""
    scored = Scored.from_rows(Predictions(y=np.array([4.0]), predictive=Poisson(np.array([4.0]))))
    assert scored.with_targets(np.array([4.5])).evaluate()[0] == pytest.approx(0.3288, abs=1e-4)


def test_student_t_errors_keep_the_variance_of_the_prediction():
    at = np.linspace(-400, 400, 400_001)
    density = np.exp(fits.log_density(at, 5.0))
    assert np.trapezoid(density * at**2, at) == pytest.approx(1.0, abs=1e-3)
    assert fits.probability(np.array([0.0]), 5.0) == pytest.approx(0.5)


def test_rows_of_large_files_are_blocks_that_are_their_own_mirror_image():
    chosen = sampled_rows(100_000)
    assert len(chosen) <= 2_000
    np.testing.assert_array_equal(np.sort(99_999 - chosen), chosen)
    assert np.mean(np.diff(chosen) == 1) > 0.99
    assert sampled_rows(2_000) is None


def test_a_shift_by_one_time_step_is_found_where_each_time_has_several_rows():
    rows, times = rows_with("right"), np.repeat(np.arange(60), 5)
    shifted = Case(rows.with_targets(np.roll(rows.y, 5), rows.predictive), step=rows_of_step(times))
    found = find_causes(shifted)[0].candidate
    assert found.text == "targets are 5 rows, one time step, below their predictions"
    assert "shift(-5)" in found.edit
    assert [rows_of_step(np.array(each)) for each in ([0, 0, 1], [0, 1, 0, 1], [3, 3], [2, 2, 1, 1])] == [1, 1, 1, 2]


PLANTED = [
    ("gaussian", "variance-as-std"),
    ("gaussian", "half-width-as-std 2"),
    ("gaussian", "training-rows"),
    ("gaussian", "constant-std"),
    ("gaussian", "one-group"),
    ("members", "stuck-member"),
    ("members", "shuffled-rows"),
    ("members", "spread-of-mean"),
    ("quantiles", "log-target"),
    ("quantiles", "noise-left-out"),
    ("quantiles", "heavy-tails"),
    ("counts", "shifted-rows 1"),
    ("counts", "clipped-targets"),
]


@pytest.mark.parametrize(("kind", "cause"), PLANTED)
def test_a_planted_cause_is_named_first(kind, cause):
    assert named(kind, rows_with(cause, kind))[:1] == cause.split()[:1]


@pytest.mark.parametrize("kind", ["gaussian", "members", "quantiles"])
def test_a_plain_factor_has_no_cause(kind):
    """A std three times too large is neither half nor a whole interval of 95 %, which are 1.96 and 3.92."""
    causes = ("factor 1.3", "factor 0.8", "factor 3")
    assert [named(kind, rows_with(cause, kind, seed=3)) for cause in causes] == [[], [], []]


@pytest.mark.slow
@pytest.mark.parametrize("kind", benchmark.CAUSES)
def test_each_cause_is_named_first_in_most_sets_and_none_for_plain_faults(kind):
    """Of 8 sets, causes that are first in .97 are so in fewer than 6 in one of 5,000 cells.

    If .02 of plain faults have a cause, more than 3 of 32 have one in one of 250 runs. The fault of one group is not
    always shown, and then has no cause.
    """
    plain = 0
    for cause in benchmark.CAUSES[kind]:
        if cause in {"one-region", "uneven-std"}:  # which needs an answer, and which is told last
            continue
        planted, told = cause.split()[0], [named(kind, rows_with(cause, kind, seed=seed)) for seed in range(8)]
        found = [benchmark.first_of(planted, each) if each else "" for each in told]
        if cause in benchmark.NONE:
            plain += sum(map(bool, found))
        elif cause == "one-group":
            assert {cause} <= {*found} <= {"", cause}, found
        else:
            assert sum(each == planted for each in found) >= 6, (cause, found)
    assert plain <= 3


FURTHER = [
    ("gaussian", "half-width-as-std 1.96"),
    ("gaussian", "log-target"),
    ("gaussian", "shifted-rows -1"),
    ("gaussian", "noise-left-out"),
    ("gaussian", "clipped-targets"),
    ("members", "spread-of-mean"),
]


def written(tmp_path, rows, monkeypatch, columns=()):
    """Write rows to a file in the current folder."""
    monkeypatch.chdir(tmp_path)
    predictive = rows.distributions()
    parameters = {"mean": predictive.loc, "std": predictive.scale} if isinstance(predictive, Gaussian) else {}
    for place in range(predictive.n_draws or 0):
        parameters[f"m_{place}"] = predictive.draws[:, place]
    pd.DataFrame({"y": rows.y, **parameters, **dict(columns)}).to_csv("rows.csv", index=False)
    return "rows.csv"


def undone(command):
    """Run the Python code of a command; return whether there was some."""
    program, *words = shlex.split(command)
    if program == "python":
        exec(compile(words[1], "undo", "exec"), {})  # noqa: S102 - what a user pastes
    return program == "python"


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("gaussian", "variance-as-std"),
        ("members", "stuck-member"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in FURTHER),
    ],
)
def test_the_command_of_a_cause_undoes_it(calcheck, kind, cause, tmp_path, monkeypatch):
    name = written(tmp_path, rows_with(cause, kind, seed=1), monkeypatch)
    options = ("--samples", "m_*") if kind == "members" else ()
    before = json.loads(calcheck(name, *options, *FEW).out)["conclusion"]
    first = before["causes"][0]
    assert (before["answer"], first["cause"]) == ("no", cause.split()[0])
    assert first["explained"] > 0.8
    if undone(first["command"]):
        after = calcheck("mended.csv", *options, *FEW)
    else:
        after = calcheck(*shlex.split(first["command"])[1:], *FEW)
    after = json.loads(after.out)["conclusion"]
    assert after["answer"] != "no"
    assert after["causes"] == []


def test_the_command_reads_what_was_read(calcheck, tmp_path, monkeypatch):
    """Columns may be separated by semicolons; rows that a filter left out are not edited."""
    rows = rows_with("half-width-as-std 2")
    name = written(tmp_path, rows, monkeypatch, {"part": np.arange(len(rows)) % 2})
    file = pd.read_csv(name)
    file.to_csv("semicolons.csv", sep=";", index=False)
    cause = json.loads(calcheck("semicolons.csv", *FEW).out)["conclusion"]["causes"][0]
    assert undone(cause["command"])
    assert_allclose(pd.read_csv("mended.csv")["std"], file["std"] / 1.96)
    cause = json.loads(calcheck(name, "--filter", "part>=0", *FEW).out)["conclusion"]["causes"][0]
    assert (cause["cause"], cause["command"]) == ("half-width-as-std", "")


def test_a_group_is_a_cause_and_its_command_reads_the_others_or_corrects_it(calcheck, tmp_path, monkeypatch):
    rows = rows_with("training-rows by group")
    name = written(tmp_path, rows, monkeypatch, rows.columns)
    found = json.loads(calcheck(name, "--block", "1", *FEW).out)["conclusion"]
    first = found["causes"][0]
    assert first["text"].startswith("rows with part=0 (")
    assert first["command"].endswith("--block 1 --filter 'part!=0'")
    assert not any("recalibrate" in each for each in found["next"])
    after = json.loads(calcheck(*shlex.split(first["command"])[1:], *FEW).out)["conclusion"]
    assert after["answer"] != "no"
    rows = rows_with("one-group", seed=1)
    name = written(tmp_path, rows, monkeypatch, rows.columns)
    first = json.loads(calcheck(name, *FEW).out)["conclusion"]["causes"][0]
    assert first["text"].startswith("one group explains it: kind=0 (")
    assert first["command"].endswith(" --by kind")
    assert "kind=0" in calcheck(*shlex.split(first["command"])[1:]).out


def test_a_group_whose_std_is_too_wide_was_not_trained_on():
    """Errors are equally large in three groups, and the std is five times too large in one."""
    rng = np.random.default_rng(0)
    mean, unit = rng.normal(size=300), np.tile(["a", "b", "c"], 100)
    predictive = Gaussian(mean, np.where(unit == "a", 5.0, 1.0))
    rows = Predictions(y=mean + rng.normal(size=300), predictive=predictive, columns={"unit": unit})
    first = find_causes(Case(rows, columns=rows.columns))[0].candidate
    assert first.name == "one-group"
    assert first.text.startswith("one group explains it: unit=a (100 rows), errors ×0.19")


def test_the_rows_of_a_group_are_counted_in_all_rows_where_causes_are_sought_in_some(calcheck, tmp_path, monkeypatch):
    rows = benchmark.planted("gaussian", "one-group", np.random.default_rng(0), n=2100)
    name = written(tmp_path, rows, monkeypatch, {"kind": rows.columns["kind"]})
    found = json.loads(calcheck(name, *FEW).out)["conclusion"]["causes"][0]
    assert found["text"].startswith(f"one group explains it: kind=0 ({np.sum(rows.columns['kind'] == '0')} rows), ")


def test_columns_of_few_groups_are_tried_before_those_of_many():
    """Six columns have 102 groups together, of which 100 are tried."""
    rows = rows_with("one-group", seed=1)
    many = {f"c{place}": np.roll(np.arange(len(rows)) % 17, place).astype(str) for place in range(6)}
    found = find_causes(Case(rows, columns=many | {"kind": rows.columns["kind"]}))
    assert found[0].candidate.text.startswith("one group explains it: kind=0 (")


def test_two_causes_that_explain_equally_much_share_their_percentage_in_one_line():
    causes = tuple(
        replace(cause_of("noise-left-out", text), explained=share) for text, share in (("A", 1.0), ("B", 0.998))
    )
    told = Answered(answer="no", effects=(), causes=causes)
    assert cause_texts(told) == ["A, or B (each explains 100 %; these rows hardly tell which)"]
    assert cause_texts(replace(told, causes=causes[:1])) == ["A: explains 100 %"]
    undone = replace(told, causes=tuple(replace(each, command="undo it") for each in causes))
    assert cause_texts(undone, whole=True) == ["A: explains 100 %. Undo: undo it", "B: explains 100 %"]
    unlike = causes[0], replace(causes[1], explained=0.9)
    assert cause_texts(replace(told, causes=unlike)) == ["A: explains 100 %, or B: explains 90 %"]


def test_groups_keep_to_their_rows_where_others_were_dropped(calcheck, tmp_path, monkeypatch):
    rows = rows_with("training-rows by group")
    name = written(tmp_path, rows, monkeypatch, rows.columns)
    gaps = ["y", *pd.read_csv(name, dtype=str)["y"]]
    lines = (tmp_path / name).read_text().splitlines()
    for place in (1, 2, 150):
        lines[place] = lines[place].replace(gaps[place], "", 1)
    (tmp_path / name).write_text("\n".join(lines))
    found = json.loads(calcheck(name, "--nan-policy", "omit", *FEW).out)["conclusion"]["causes"]
    assert found[0]["text"].startswith("rows with part=0 (")
    found = json.loads(calcheck(name, "--nan-policy", "omit", "--filter", "mean>=-9", *FEW).out)["conclusion"]["causes"]
    assert not any("part=" in each["text"] for each in found)


def test_rows_in_batches_have_causes(calcheck, tmp_path, monkeypatch):
    name = written(tmp_path, rows_with("half-width-as-std 2"), monkeypatch)
    few = ("--metrics", "zms", "--no-bootstrap", "--format", "json", "--save-state", "state.cal")
    assert json.loads(calcheck(name, *few).out)["conclusion"]["causes"][0]["cause"] == "half-width-as-std"


def test_the_first_screen_names_the_cause_and_its_command_within_24_lines(calcheck, tmp_path, monkeypatch):
    name = written(tmp_path, rows_with("half-width-as-std 2"), monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    lines = calcheck(name, "--no-bootstrap", "--metrics", "coverage").out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "  cause     the std is a half width of 95 % (1.96 or 2 std): explains 100 %" in lines
    assert any(line.startswith("  undo     python -c ") for line in lines)


@pytest.mark.slow
def test_a_region_is_a_cause_and_its_command_corrects_it(calcheck, tmp_path, monkeypatch):
    rows = rows_with("one-region", seed=2)
    name = written(tmp_path, rows, monkeypatch, {"a": rows.x[:, 0], "b": rows.x[:, 1]})
    found = json.loads(calcheck(name, "--inputs", "a,b", *FEW).out)["conclusion"]["causes"][0]
    assert found["cause"] == "one-region"
    assert found["command"].startswith("calcheck recalibrate rows.csv ")
    mended = calcheck(*shlex.split(found["command"])[1:])
    assert mended.code == 0
    assert "where a>" in mended.out


def test_the_picture_of_another_reading_of_the_std_has_its_line_through_the_errors():
    """With variances of 4 to 100 read as std, errors have sizes of 2 to 10."""
    variance = np.repeat(np.linspace(4, 100, 20), 30)
    error = np.sqrt(variance) * np.tile(norm.ppf((np.arange(30) + 0.5) / 30), 20)
    cause = cause_of("variance-as-std", "the std is a variance")
    stated, line, points = drawn(cause, Predictions(y=error, predictive=Gaussian(np.zeros(600), variance)))
    np.testing.assert_allclose(points.x, stated.y)
    np.testing.assert_allclose(np.square(line.y), stated.y)
    np.testing.assert_allclose(points.y, line.y, rtol=0.1)


@pytest.mark.parametrize(
    ("cause", "true"),
    [
        ("noise-left-out", lambda std: np.hypot(std, 3)),
        ("std-in-other-unit", lambda std: std / 60),
        ("std-in-other-unit", lambda std: 1000 * std),
    ],
)
def test_the_picture_of_a_cause_with_a_number_has_its_line_through_the_errors(cause, true):
    """The number is read from the text of the cause that is found."""
    std = np.repeat(np.geomspace(1, 20, 20), 30)
    error = true(std) * np.tile(norm.ppf((np.arange(30) + 0.5) / 30), 20)
    rows = Predictions(y=error, predictive=Gaussian(np.zeros(600), std))
    found = find_causes(Case(rows, "std"))[0].candidate
    assert found.name == cause
    stated, line, points = drawn(cause_of(cause, found.text, found.number), rows)
    np.testing.assert_allclose(line.y, true(np.array(stated.y)), rtol=0.05)
    np.testing.assert_allclose(points.y, line.y, rtol=0.1)


def test_the_picture_of_the_spread_of_the_mean_has_its_line_through_the_errors():
    rows = rows_with("spread-of-mean", "members")
    found = next(each for each in find_causes(Case(rows, "other"))).candidate
    stated, line, points = drawn(cause_of("spread-of-mean", found.text, found.number), rows)
    np.testing.assert_allclose(line.y, np.sqrt(20) * np.array(stated.y))
    np.testing.assert_allclose(points.y, line.y, rtol=0.5)


def test_pictures_of_causes_show_where_the_rows_differ():
    """Targets one row below have their peak at 1, logs lie on a logarithm, and member 8 is far from the others."""
    _, line = drawn(cause_of("shifted-rows", number=1.0), rows_with("shifted-rows 1"))
    assert (line.x[0], line.x[int(np.argmax(line.y))]) == (-5, 1)
    assert drawn(cause_of("shifted-rows", number=-7.0), rows_with("shifted-rows 1"))[1].x[0] == -7
    points, line = drawn(cause_of("log-target"), rows_with("log-target"))
    np.testing.assert_allclose(line.y, np.log(points.x))
    (points,) = drawn(cause_of("stuck-member"), rows_with("stuck-member", "members"))
    assert points.x[int(np.argmax(points.y))] == 8
    bars, line = drawn(cause_of("training-rows"), rows_with("training-rows"))
    small = np.array(bars.stop) < 0.1
    assert np.sum(np.array(bars.high)[small]) > 0.4
    assert np.sum(np.array(line.y)[small]) < 0.1
    assert cause_picture(cause_of("heavy-tails"), rows_with("right")) is None


@pytest.mark.slow
def test_the_page_draws_the_cause(calcheck, tmp_path, monkeypatch):
    name = written(tmp_path, rows_with("shifted-rows 1"), monkeypatch)
    assert calcheck("report", name, "-o", "page.html", *FEW[:3]).code == 0
    assert "Plausible cause: targets are 1 row below their predictions" in (tmp_path / "page.html").read_text()


def cause_of(name, text="", number=None):
    return Cause(cause=name, text=text, command="", explained=1.0, number=number)


def drawn(cause, rows):
    """Return the marks of the picture of a cause."""
    return cause_picture(cause, rows).panels[0].marks


def test_python_names_causes_of_arrays_without_a_command():
    rows = rows_with("variance-as-std")
    y, mean, std = rows.y, rows.distributions().loc, rows.distributions().scale
    report = library.evaluate(y, mean, std, metrics="zms", replicates=59, resamples=0)
    assert [(each.cause, each.command) for each in report.conclusion.causes][:1] == [("variance-as-std", "")]
    assert library.evaluate(y, mean, np.sqrt(std), metrics="zms", replicates=59, resamples=0).conclusion.causes == ()


def varying(std, rng, n=400):
    """Return a table whose errors grow with a column, with an std of its own."""
    temp = rng.uniform(0, 40, n)
    mean = 20 + 3 * rng.normal(size=n)
    y = mean + 2 * np.exp(0.8 * (temp - 20) / 20) * rng.normal(size=n)
    return pd.DataFrame(
        {"y": y, "mean": mean, "std": std, "temp": temp, "hum": rng.uniform(size=n), "residual": y - mean}
    )


@pytest.mark.parametrize(("constant", "cause"), [(True, "constant-std"), (False, "one-input")])
def test_a_column_along_which_errors_vary_is_named_though_it_is_not_an_input(calcheck, constant, cause, tmp_path):
    """The residuals would explain every error, and are computed from targets."""
    rng = np.random.default_rng(5)
    std = 2.0 if constant else 2 * np.exp(0.3 * rng.normal(size=400))
    varying(std, rng).to_csv(tmp_path / "f.csv", index=False)
    first = json.loads(calcheck(tmp_path / "f.csv", *FEW).out)["conclusion"]["causes"][0]
    assert first["cause"] == cause
    assert "errors are ×0." in first["text"]
    assert first["text"].endswith(" where temp is low, medium and high")
    assert first["command"].startswith("calcheck recalibrate ")


def test_heavy_tails_come_with_a_constant_std_where_no_column_shows_how_errors_vary():
    for kind in ("gaussian", "members", "quantiles"):
        assert named(kind, rows_with("constant-std hidden", kind, seed=1)) == ["heavy-tails", "constant-std"]


def test_an_uneven_std_is_named_beside_what_few_rows_cannot_tell_from_it():
    for kind in ("gaussian", "members", "quantiles"):
        found = named(kind, rows_with("uneven-std", kind, seed=2))
        assert benchmark.first_of("uneven-std", found) == "uneven-std"


def test_scoring_finds_the_spread_of_student_t_errors_along_a_column():
    """The size of errors doubles from one half to the other: the logarithm of the variance grows by 2 log 2."""
    rng = np.random.default_rng(0)
    half = np.repeat([0.0, 1.0], 20_000)
    r = np.where(half > 0, 2, 1) * rng.standard_t(5, 40_000) * np.sqrt(3 / 5)
    found = fits.coefficients(np.column_stack([np.ones(40_000), half]), r, 5.0)
    assert_allclose(found, [0, 2 * np.log(2)], atol=0.06)


def test_rows_with_the_inputs_of_others_are_counted_in_all_rows():
    rng = np.random.default_rng(3)
    x = np.tile(rng.normal(size=(2_500, 2)), (2, 1))
    y = rng.normal(size=5_000) * np.where(np.arange(5_000) < 2_500, 0.03, 1)
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(5_000), np.ones(5_000)), x=x, has_embedding=False)
    chosen = sampled_rows(5_000)
    case = Case(rows.take(chosen), sampled=chosen, every=rows, total=5_000)
    assert find_causes(case)[0].candidate.text.endswith("; 2,500 of 5,000 rows have the inputs of others")
    first = Case(rows.take(np.arange(2_000)), total=5_000)
    assert not find_causes(first) or "inputs of others" not in find_causes(first)[0].candidate.text


def test_one_group_is_a_cause_where_all_errors_have_heavy_tails():
    rng = np.random.default_rng(1)
    unit = rng.choice(list("abcd"), 800)
    y = np.where(unit == "c", 3, 1) * rng.standard_t(3, 800) / np.sqrt(3)
    rows = Predictions(y=y, predictive=Gaussian(np.zeros(800), np.ones(800)), columns={"unit": unit})
    first = find_causes(Case(rows, columns=rows.columns))[0].candidate
    assert first.text.startswith("one group explains it: unit=c (")


@pytest.mark.parametrize("of_errors", [np.abs, np.square, np.negative])
def test_a_column_computed_from_errors_is_no_cause(of_errors):
    rows = rows_with("uneven-std")
    found = find_causes(Case(rows, columns={"delta": of_errors(rows.y - rows.predictive.loc)}))
    assert found
    assert not any("delta" in each.candidate.text for each in found)


def test_sizes_of_errors_are_given_at_ranks_that_occur():
    """Errors are ×⅔ where it is dry, which are 70 % of the rows, and ×2⅔ elsewhere."""
    rng = np.random.default_rng(0)
    rain = np.where(rng.random(600) < 0.7, 0.0, rng.exponential(size=600))
    rows = Predictions(
        y=np.where(rain > 0, 4, 1) * rng.normal(size=600), predictive=Gaussian(np.zeros(600), np.full(600, 1.5))
    )
    text = find_causes(Case(rows, columns={"rain": rain}))[0].candidate.text
    assert text.endswith(" where rain is low and high")
    assert_allclose([float(each) for each in re.findall(r"×([\d.]+)", text)], [2 / 3, 8 / 3], rtol=0.12)


@pytest.mark.parametrize("kind", [int, float])
def test_errors_that_grow_over_six_numbers_are_no_group(calcheck, kind, tmp_path):
    rng = np.random.default_rng(7)
    level, mean = rng.integers(0, 6, 600), rng.normal(size=600)
    y = mean + np.exp(0.4 * (level - 2.5)) * rng.normal(size=600)
    pd.DataFrame({"y": y, "mean": mean, "std": 1.5, "level": level.astype(kind)}).to_csv(
        tmp_path / "f.csv", index=False
    )
    first = json.loads(calcheck(tmp_path / "f.csv", *FEW).out)["conclusion"]["causes"][0]
    assert first["text"].startswith("the std is constant, but errors are ×0.2")
    assert " where level is low, medium and high" in first["text"]


def test_a_group_of_whole_numbers_is_a_cause_beside_many_columns_of_numbers(calcheck, tmp_path):
    rng = np.random.default_rng(3)
    site, mean = rng.integers(1, 6, 600), rng.normal(size=600)
    y = mean + np.where(site == 2, 4, 1) * rng.normal(size=600)
    many = {f"f{place}": rng.normal(size=600).round(3) for place in range(22)}
    pd.DataFrame({"y": y, "mean": mean, "std": 1, "site": site, **many}).to_csv(tmp_path / "f.csv", index=False)
    first = json.loads(calcheck(tmp_path / "f.csv", *FEW).out)["conclusion"]["causes"][0]
    assert first["text"].startswith("one group explains it: site=2 (")


@pytest.mark.parametrize("draws", [2, 3])
def test_targets_that_follow_few_draws_are_not_of_different_rows(draws):
    """The spread of two draws is often near 0, so that most targets are likelier in another row."""
    rng = np.random.default_rng(0)
    mean = rng.normal(size=600)
    predictive, y = Samples(mean[:, None] + rng.normal(size=(600, draws))), mean + 2 * rng.normal(size=600)
    shuffled = [
        "shuffled-rows"
        in [each.candidate.name for each in find_causes(Case(Predictions(y=each, predictive=predictive)))]
        for each in (y, rng.permutation(y))
    ]
    assert shuffled == [False, True]


def imperfect(n=1_000, wide=1.1, noise=0.0, change=lambda std: std, seed=0):
    """Return a case whose answer is yes before a change: the std is too wide, and off by 15 % along a column."""
    rng = np.random.default_rng(seed)
    x, mean, std = rng.uniform(-1, 1, n), rng.normal(size=n), 0.3 * np.exp(0.4 * rng.normal(size=n))
    z = rng.normal(size=n) * np.exp(0.25 * x) + 0.3 * x
    y = mean + std * z + noise * rng.normal(size=n)
    return Case(Predictions(y=y, predictive=Gaussian(mean, change(wide * std))), "std", columns={"x": x})


@pytest.mark.parametrize(
    ("cause", "options"),
    [
        ("std-in-other-unit", {"change": lambda std: 60 * std}),
        ("half-width-as-std", {"change": lambda std: 1.96 * std, "seed": 1}),
        ("half-width-as-std", {"change": lambda std: 1.645 * std, "wide": 1.0}),
        ("variance-as-std", {"change": np.square}),
        ("noise-left-out", {"noise": 0.36, "wide": 1.16}),
        (None, {"wide": 3}),
        (None, {"wide": 0.7}),
    ],
)
def test_causes_are_found_in_predictions_that_are_only_nearly_right(cause, options):
    """Errors along a column are not what explains a fault of all rows."""
    found = find_causes(imperfect(**options))
    assert [each.candidate.name for each in found[:1]] == ([] if cause is None else [cause])


def test_predictions_of_logs_are_found_where_targets_are_far_beyond_them():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(16, 2, 300), 0.1 * np.exp(0.3 * rng.normal(size=300))
    rows = Predictions(y=np.exp(mean + std * rng.normal(size=300)), predictive=Gaussian(mean, std))
    assert {*named("gaussian", rows)} == {"log-prediction", "log1p-prediction"}


def test_a_constant_factor_is_no_logarithm():
    """The std exp(0.1) is five times 0.2, as is that of a variance whose logarithm is 0.2."""
    rng = np.random.default_rng(0)
    rows = Predictions(y=rng.normal(size=300), predictive=Gaussian(np.zeros(300), np.full(300, 0.2)))
    assert not {"log-as-std", "log-variance-as-std"} & {*named("gaussian", rows)}
