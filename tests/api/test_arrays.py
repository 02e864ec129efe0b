"""Arrays by position and by the names of other libraries, reports that are saved, and checks for pytest."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import calcheck
from calcheck.errors import DataError, FileError, OptionError

QUICK = {"replicates": 39, "resamples": 0}
RNG = np.random.default_rng(0)
MEAN, STD = RNG.normal(size=400), np.exp(0.2 * RNG.normal(size=400))
Y = MEAN + STD * RNG.normal(size=400)


def numbers(report):
    return {each.metric: each.value for each in report.results}


def test_arrays_by_position_are_targets_means_and_standard_deviations():
    expected = calcheck.evaluate(y=Y, mean=MEAN, std=STD, **QUICK)
    assert calcheck.evaluate(Y, MEAN, STD, **QUICK).results == expected.results
    assert calcheck.evaluate(list(Y), list(MEAN), list(STD), **QUICK).results == expected.results
    named = calcheck.evaluate(Y, ["zms", "bias"], mean=MEAN, std=STD, **QUICK)
    assert numbers(named) == {name: numbers(expected)[name] for name in ("zms", "bias")}
    draws = MEAN[:, None] + STD[:, None] * RNG.normal(size=(400, 20))
    assert calcheck.evaluate(Y, draws, **QUICK).input.predictive == "samples"
    assert numbers(calcheck.evaluate(Y, MEAN, STD, metrics="zms", **QUICK)) == {"zms": numbers(expected)["zms"]}
    fitted = calcheck.recalibrate(Y, MEAN, STD, method="scale", metrics="zms", **QUICK)
    assert next(each.value for each in fitted.results if each.metric == "zms") == numbers(expected)["zms"]
    groups = calcheck.slices(Y, MEAN, STD, by="std:2", metrics="zms", **QUICK)
    assert groups.results[0].value == pytest.approx(numbers(expected)["zms"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: calcheck.evaluate(Y, MEAN, STD, STD),
            "deviations, got 4 arrays. Pass others by keyword, such as inputs=",
        ),
        (lambda: calcheck.evaluate((Y, MEAN, STD)), "a list of 3 arrays: pass them one by one, as y, mean, std"),
        (lambda: calcheck.evaluate(Y, MEAN), r"no column was recognized as the std. Pass std='COLUMN'"),
        (
            calcheck.compare,
            r"compare: missing a required argument: 'models' \(see help\(calcheck.compare\)\)",
        ),
        (lambda: calcheck.compare("a.csv", "b.csv"), "models are a mapping of names to predictions, .* got str"),
        (lambda: calcheck.recalibrate(Y, MEAN, STD, time=STD), "time takes the name of a column, got"),
        (lambda: calcheck.evaluate(Y, MEAN, STD, groups=STD), "groups takes the name of a column, got ndarray"),
        (lambda: calcheck.evaluate(Y, MEAN, STD, filter=STD), "filter takes a mapping, .*, got ndarray$"),
        (lambda: calcheck.monitor(Y, MEAN, STD), "time is required: the column of the target times"),
        (lambda: calcheck.slices({"y": Y, "mean": MEAN, "std": STD}, 5), "by"),
    ],
)
def test_the_error_of_a_wrong_call_names_what_to_pass(call, message):
    """No call raises a TypeError of Python."""
    with pytest.raises(calcheck.CalcheckError, match=message) as failed:
        call()
    assert "--" not in str(failed.value)


def test_names_of_other_libraries_are_known():
    expected = calcheck.evaluate(y=Y, mean=MEAN, std=STD, **QUICK)
    assert calcheck.evaluate(y_true=Y, y_pred=MEAN, y_std=STD, **QUICK).results == expected.results
    limits = np.stack([MEAN - 1.645 * STD, MEAN + 1.645 * STD], axis=1)
    stated = {"y_true": Y, "y_pred": MEAN, "y_pis": limits[:, :, None], "level": 0.9}
    assert calcheck.evaluate(metrics="coverage", **stated, **QUICK).results[0].value == pytest.approx(
        np.mean((limits[:, 0] <= Y) & (limits[:, 1] >= Y))
    )
    quantiles = {0.25: MEAN - 0.6745 * STD, 0.75: MEAN + 0.6745 * STD}
    named = [calcheck.read(y=Y, **{name: quantiles}).predictions() for name in ("quantiles", "y_quantiles")]
    assert np.array_equal(*(each.distributions().quantile(np.array([0.25])) for each in named))


@pytest.mark.parametrize("called", ["level", "levels"])
def test_quantiles_in_an_array_have_their_levels_beside_it(called):
    """As in MAPIE and scikit-learn: the columns of the array are the levels, which are then no levels of intervals."""
    levels = [0.05, 0.25, 0.75, 0.95]
    array = MEAN[:, None] + STD[:, None] * np.array([-1.645, -0.6745, 0.6745, 1.645])
    expected = calcheck.evaluate(y=Y, quantiles=dict(zip(levels, array.T, strict=True)), **QUICK)
    found = calcheck.evaluate(y_true=Y, y_quantiles=array, **{called: levels}, **QUICK)
    assert found.results == expected.results
    assert found.conclusion.level == 0.9
    for same in (array.tolist(), pd.DataFrame(array), pd.DataFrame(array, columns=levels)):
        named = {} if levels == [*getattr(same, "columns", ())] else {called: levels}
        assert calcheck.evaluate(y=Y, quantiles=same, **named, **QUICK).results == expected.results
    with pytest.raises(OptionError, match=r"y_quantiles has 4 columns, and 0 levels are given: pass levels="):
        calcheck.evaluate(y=Y, y_quantiles=array)
    with pytest.raises(OptionError, match="quantiles of several targets are not read"):
        calcheck.evaluate(y=np.column_stack([Y, Y]), quantiles=np.stack([array, array], 1), levels=levels)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"levels": [0.05, 0.05, 0.95]}, "level names a level twice: 0.05, 0.05, 0.95"),
        ({"levels": [5, 50, 95]}, "level must lie strictly between 0 and 1, got 5: did you mean 0.05"),
        ({"levels": [0.05, 0.5, 0.95], "level": 0.9}, "levels is level: pass only one of them"),
        ({"level": 0.9, "levels": [0.05, 0.5, 0.95]}, "levels is level: pass only one of them"),
        ({"quantiles": {5: MEAN - STD, 95: MEAN + STD}}, "level must lie strictly between 0 and 1, got 5"),
        ({"quantiles": pd.DataFrame({"low": MEAN - STD})}, "quantiles has 1 columns, and 0 levels are given"),
    ],
    ids=["twice", "percent", "both", "both reversed", "mapping", "frame"],
)
def test_levels_of_quantiles_that_cannot_be_used_are_refused(stated, message):
    array = MEAN[:, None] + STD[:, None] * np.array([-1.645, 0, 1.645])
    with pytest.raises(OptionError, match=message):
        calcheck.evaluate(**{"y": Y, "quantiles": array} | stated, **QUICK)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        *(("sigma", "std"), ("mu", "mean"), ("y_hat", "mean"), ("X", "inputs"), ("meen", "mean"), ("variance", "var")),
        *(("random_state", "seed"), ("n_boot", "resamples"), ("tol", "tolerance"), ("by", "groups")),
    ],
)
def test_other_names_are_answered_with_what_is_meant(wrong, meant):
    with pytest.raises(calcheck.OptionError, match=f"there is no argument '{wrong}'.*Did you mean '{meant}'"):
        calcheck.evaluate(y=Y, **{wrong: STD})
    with pytest.raises(calcheck.OptionError, match="y_std is std: pass only one of them"):
        calcheck.evaluate(y=Y, mean=MEAN, std=STD, y_std=STD)


def test_reports_are_saved_in_the_format_of_the_name(tmp_path):
    report = calcheck.evaluate(Y, ["zms", "crps"], mean=MEAN, std=STD, **QUICK)
    for name in ("html", "json", "csv", "md", "tex", "txt"):
        report.save(tmp_path / f"report.{name}")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    stored = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert {each["metric"]: each["value"] for each in stored["results"]} == numbers(report)
    report.save(tmp_path / "answer.svg")
    assert "Can the uncertainties be trusted?" in (tmp_path / "answer.svg").read_text(encoding="utf-8")
    with pytest.raises(calcheck.OptionError, match=r"a\.xyz: use one of \.txt, \.json, .*\.svg"):
        report.save("a.xyz")


def test_checks_have_a_result_and_assertions_say_what_is_wrong():
    assert calcheck.check(Y, MEAN, STD, **QUICK).passed
    calcheck.assert_calibrated(Y, MEAN, STD, **QUICK)
    result = calcheck.check(Y, MEAN, STD, fail_on="zms > 0.1", **QUICK)
    assert (result.passed, bool(result), [gate.rule for gate in result.gates]) == (False, False, ["zms > 0.1"])
    assert calcheck.evaluate(Y, MEAN, STD / 2, **QUICK)  # without rules none is violated
    with pytest.raises(AssertionError, match="NO: too narrow, ×") as failed:
        calcheck.assert_calibrated(Y, MEAN, STD / 2, replicates=99, resamples=0)
    text = str(failed.value)
    assert text.startswith("1 of 1 rule violated")
    assert "size" in text
    assert "--" not in text
    assert "qualifiers" in calcheck.check(Y, MEAN, STD, strict=True, **QUICK).gates[0].rule


@pytest.mark.parametrize("library", ["pandas", "polars", "xarray", "torch", "jax"])
def test_arrays_and_tables_of_libraries_go_in(library):
    module = pytest.importorskip("jax.numpy" if library == "jax" else library)
    make = {
        "pandas": lambda: module.Series,
        "polars": lambda: module.Series,
        "xarray": lambda: module.DataArray,
        "torch": lambda: module.tensor,
        "jax": lambda: module.asarray,
    }[library]()
    expected = numbers(calcheck.evaluate(Y, ["zms", "crps"], mean=MEAN, std=STD, **QUICK))
    arrays = {name: make(values) for name, values in (("y", Y), ("mean", MEAN), ("std", STD))}
    found = calcheck.evaluate(arrays["y"], arrays["mean"], arrays["std"], **QUICK)
    assert numbers(found)["zms"] == pytest.approx(expected["zms"], rel=1e-5)
    keywords = calcheck.evaluate(metrics=["zms", "crps"], **arrays, **QUICK)
    assert numbers(keywords)["crps"] == pytest.approx(expected["crps"], rel=1e-5)
    if library in ("pandas", "polars"):
        table = module.DataFrame({"y": Y, "mean": MEAN, "std": STD})
        assert numbers(calcheck.evaluate(table, ["zms"], **QUICK))["zms"] == pytest.approx(expected["zms"])


def test_a_dataset_of_xarray_is_a_table_with_rows_along_the_axes_that_all_variables_have():
    xarray = pytest.importorskip("xarray")
    time, site = np.arange(5), np.arange(4)
    y, draws = np.arange(20.0).reshape(5, 4), np.random.default_rng(0).normal(size=(7, 5, 4))
    axes = ("time", "site")
    grid = xarray.Dataset({"y": (axes, y), "samples": (("draw", *axes), draws)}, {"time": time, "site": site})
    rows = calcheck.read(grid).predictions()
    assert_array_equal(rows.y, y.ravel())
    assert_array_equal(rows.predictive.draws, draws.reshape(7, 20).T)
    assert_array_equal(calcheck.read(grid, inputs="time,site").predictions().x[:6], np.argwhere(y >= 0)[:6])
    one = xarray.Dataset({name: ("row", values) for name, values in (("y", Y), ("mean", MEAN), ("std", STD))})
    assert_array_equal(calcheck.read(one).predictions().predictive.std(), STD)
    with pytest.raises(
        DataError, match=r"no dimension in common, which would be that of rows: y \('a',\), mean \('b',"
    ):
        calcheck.read(xarray.Dataset({"y": ("a", [1.0]), "mean": ("b", [1.0])}))


def test_new_predictions_to_correct_may_lack_the_target_that_is_named():
    frame = pd.DataFrame({"observed": Y, "mean": MEAN, "std": STD / 2})
    found = calcheck.recalibrate(frame, "scale", target="observed", to=frame[["mean", "std"]], metrics="zms", **QUICK)
    assert {"zms"} <= {each.metric for each in found.results}


def test_members_of_a_mean_and_a_variance_each_are_proposed_as_a_mixture():
    """The virtual ensembles of CatBoost are (n, k, 2)."""
    rng = np.random.default_rng(0)
    members = np.stack([rng.normal(size=(30, 5)), rng.uniform(1, 2, (30, 5))], axis=2)
    with pytest.raises(FileError, match="are a mixture: loc, scale and weight of dist mixture"):
        calcheck.evaluate(rng.normal(size=30), members)
    spread = np.sqrt(members[:, :, 1])
    mixture = {"loc": members[:, :, 0], "scale": spread, "weight": np.full((30, 5), 0.2)}
    found = calcheck.evaluate({"y": rng.normal(size=30), **mixture}, dist="mixture", **QUICK)
    assert found.input.predictive == "mixture"
