"""Corrections as functions of numpy and as queries: the same numbers as those of the map."""

import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian
from calcheck.distributions.recalibrated import RecalibratedScale
from calcheck.errors import OptionError
from calcheck.predictions import Predictions
from calcheck.recalibration.methods import Choice, FitOptions, Method, fitted_map
from calcheck.storage.exported_corrections import exported
from tests.recalibration.test_selection import COLUMNS, forecasts

FORMULAS = ["none", "scale", "shift-scale", "power", "local", "bias+local+student-t", "bvs"]
FUNCTIONS = [*FORMULAS, "isotonic-variance", "bias+local+pit", "beta", "local+conformal"]
ROLES = {"y": "y", "mean": 'the "mean"', "var": "variance"}
OPTIONS = FitOptions(by=COLUMNS, bins=5, levels=(0.5, 0.9))
SELECTED = FitOptions(by=("temp", "std"), selects=True)


def fitted(method, n=120, options=OPTIONS):
    rows = forecasts(1, n, 2.0)
    return fitted_map(method, Method.parse(method).fit(rows, options), rows, Choice(score="crps", folds=5, table=()))


def text_of(found, suffix, times=(), names=()):
    return exported(found, suffix, roles=ROLES, times=times, judgement="within 20 %", names=names)


def sqlite():
    return sqlite3.connect(":memory:")


def numbers(predictive):
    """Return what corrected predictions are written as."""
    if isinstance(predictive, RecalibratedScale):
        return predictive.as_quantiles().levels, predictive.as_quantiles().values
    if isinstance(predictive, Gaussian):
        return predictive.loc, predictive.scale
    if hasattr(predictive, "lower"):
        return predictive.levels, predictive.lower, predictive.upper
    return predictive.loc, predictive.scale, predictive.df


@pytest.mark.parametrize("suffix", [".py", ".sql"])
def test_a_step_is_the_one_that_was_selected(suffix):
    """The std is twice as large above 30."""
    found, fresh = fitted("local", 600, SELECTED), forecasts(2, 300)
    assert [each.kind for step in found.steps for each in step.features] == ["step"]
    std = found.apply(fresh).predictive.scale
    if suffix == ".sql":
        made = queried(text_of(found, ".sql"), table_of(fresh))[1]
    else:
        names = {}
        exec(text_of(found, ".py"), names)  # noqa: S102 - what users run
        made = names["mend"](fresh.predictive.loc, fresh.predictive.scale, fresh.columns)[1]
    assert len(np.unique(np.round(std / fresh.predictive.scale, 6))) == 2
    assert_allclose(made, std, rtol=1e-12)


@pytest.mark.parametrize("method", FUNCTIONS)
def test_a_function_gives_the_numbers_of_the_map(method):
    found, fresh = fitted(method), forecasts(2, 300)
    text = text_of(found, ".py")
    assert len(text.splitlines()) <= 60
    assert "120 rows" in text
    names = {}
    exec(text, names)  # noqa: S102 - what users run
    made = names["mend"](fresh.predictive.loc, fresh.predictive.scale, fresh.columns)
    for own, expected in zip(made, numbers(found.apply(fresh).predictive), strict=True):
        assert_allclose(own, expected, rtol=1e-12, atol=1e-13)


def duckdb():
    """Return a database of another program, in which literals and divisions have other types."""
    return pytest.importorskip("duckdb", reason="duckdb is not installed").connect()


@pytest.mark.parametrize(
    ("method", "program"), [*((each, sqlite) for each in FORMULAS), ("bias+local+student-t", duckdb)]
)
def test_a_query_gives_the_numbers_of_the_map(method, program):
    found, fresh = fitted(method), forecasts(2, 300)
    made = queried(text_of(found, ".sql"), table_of(fresh), program)
    for own, expected in zip(made, numbers(found.apply(fresh).predictive), strict=True):
        assert_allclose(own, expected, rtol=1e-12, atol=1e-13)


def table_of(rows):
    return {'the "mean"': rows.predictive.loc, "variance": rows.predictive.scale**2, **rows.columns}


def queried(text, table, program=sqlite):
    """Return the columns that a query adds to a table, (k, n)."""
    database = program()
    kinds = {name: "TEXT" if values.dtype.kind == "U" else "DOUBLE" for name, values in table.items()}
    names = ", ".join('"' + name.replace('"', '""') + '" ' + kind for name, kind in kinds.items())
    database.execute(f"CREATE TABLE predictions ({names})")
    rows = list(zip(*(values.tolist() for values in table.values()), strict=True))
    database.executemany(" ".join(("INSERT INTO predictions VALUES (", ", ".join("?" * len(table)), ")")), rows)
    answer = database.execute(text)
    places = [place for place, column in enumerate(answer.description) if column[0].startswith("mended_")]
    return np.array(answer.fetchall(), dtype=object)[:, places].astype(float).T


def test_columns_of_other_targets_are_not_taken_for_those_of_the_query():
    found, fresh = fitted("shift-scale"), forecasts(2, 30)
    table = table_of(fresh) | {"mean_1": np.full(30, 99.0), "std_1": np.full(30, 99.0), "total_1": np.full(30, 99.0)}
    made = queried(text_of(found, ".sql"), table)
    assert_allclose(made, numbers(found.apply(fresh).predictive), rtol=1e-12)
    with pytest.raises(OptionError, match="and the file has 'Mended_Std': rename it"):
        text_of(found, ".sql", names=["y", "Mended_Std"])


def test_truth_values_are_those_of_the_database():
    rows = forecasts(1, 400)
    hot = rows.columns["temp"] > 30
    rows = replace(rows, columns={"hot": hot})
    steps = Method("local").fit(rows, FitOptions(by=("hot",)))
    found = fitted_map("local", steps, rows, Choice(score="crps", folds=5, table=()))
    expected = found.apply(rows).predictive.scale
    assert len(np.unique(np.round(expected / rows.predictive.scale, 6))) == 2
    for values in (hot.astype(int), hot.astype(str)):
        assert_allclose(queried(text_of(found, ".sql"), table_of(rows) | {"hot": values})[1], expected, rtol=1e-12)


@pytest.mark.parametrize("roles", [{"y - mean": "error", "std": "std"}, {"y": "y", "loc": "mu", "precision": "p"}])
def test_a_query_needs_columns_of_means_and_standard_deviations(roles):
    with pytest.raises(OptionError, match="a query needs columns of means and standard deviations"):
        exported(fitted("scale"), ".sql", roles=roles, times=(), judgement="")


def test_locations_and_scales_are_means_and_standard_deviations():
    text = exported(fitted("scale"), ".sql", roles={"loc": "mu", "scale": "sd"}, times=(), judgement="")
    fresh = forecasts(2, 30)
    made = queried(text, {"mu": fresh.predictive.loc, "sd": fresh.predictive.scale})
    assert_allclose(made, numbers(fitted("scale").apply(fresh).predictive), rtol=1e-12)


def test_what_is_no_formula_is_refused():
    with pytest.raises(OptionError, match=r"pit is no formula of SQL"):
        text_of(fitted("pit"), ".sql")
    with pytest.raises(OptionError, match="depends on the times in 'temp'"):
        text_of(fitted("local"), ".py", ["temp"])
    with pytest.raises(OptionError, match=r"at most 60 are written"):
        text_of(fitted("bias+local", options=FitOptions(by=("temp", "hum", "mean") * 4)), ".py")


def test_names_of_files_and_columns_are_not_run():
    rows = forecasts(1, 120)
    evil = "x\"]+[print(1)] #\n'; DROP TABLE predictions; --"
    rows = Predictions(y=rows.y, predictive=rows.predictive, columns={evil: rows.columns["temp"]})
    steps = Method("local").fit(rows, FitOptions(by=(evil,)))
    found = fitted_map("local", steps, rows, Choice(score="crps", folds=5, table=()))
    names = {}
    exec(text_of(found, ".py"), names)  # noqa: S102 - what users run
    _, std = names["mend"](rows.predictive.loc, rows.predictive.scale, rows.columns)
    assert_allclose(std, found.apply(rows).predictive.scale, rtol=1e-12)
    text = text_of(found, ".sql")
    database = sqlite3.connect(":memory:")
    name = '"' + evil.replace('"', '""') + '"'
    database.execute(f'CREATE TABLE predictions ("the ""mean""", variance, {name})')
    first = rows.predictive.loc[0], rows.predictive.scale[0] ** 2, rows.columns[evil][0]
    database.execute("INSERT INTO predictions VALUES (?, ?, ?)", [float(each) for each in first])
    assert_allclose(database.execute(text).fetchone()[-1], found.apply(rows).predictive.scale[0], rtol=1e-12)
