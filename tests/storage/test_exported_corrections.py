"""Corrections as functions of numpy and as queries: the same numbers as those of the map."""

import sqlite3

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


def fitted(method, n=120, options=OPTIONS):
    rows = forecasts(1, n, 2.0)
    return fitted_map(method, Method.parse(method).fit(rows, options), rows, Choice(score="crps", folds=5, table=()))


def text_of(found, suffix, times=()):
    return exported(found, suffix, roles=ROLES, times=times, judgement="within 20 %")


def numbers(predictive):
    """Return what corrected predictions are written as."""
    if isinstance(predictive, RecalibratedScale):
        return predictive.as_quantiles().levels, predictive.as_quantiles().values
    if isinstance(predictive, Gaussian):
        return predictive.loc, predictive.scale
    if hasattr(predictive, "lower"):
        return predictive.levels, predictive.lower, predictive.upper
    return predictive.loc, predictive.scale, predictive.df


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


def sqlite():
    return sqlite3.connect(":memory:")


def duckdb():
    """Return a database of another program, in which literals and divisions have other types."""
    return pytest.importorskip("duckdb", reason="duckdb is not installed").connect()


@pytest.mark.parametrize(
    ("method", "program"), [*((each, sqlite) for each in FORMULAS), ("bias+local+student-t", duckdb)]
)
def test_a_query_gives_the_numbers_of_the_map(method, program):
    found, fresh = fitted(method), forecasts(2, 300)
    table = {'the "mean"': fresh.predictive.loc, "variance": fresh.predictive.scale**2, **fresh.columns}
    database = program()
    kinds = {name: "TEXT" if values.dtype.kind == "U" else "DOUBLE" for name, values in table.items()}
    names = ", ".join('"' + name.replace('"', '""') + '" ' + kind for name, kind in kinds.items())
    database.execute(f"CREATE TABLE predictions ({names})")
    rows = list(zip(*(values.tolist() for values in table.values()), strict=True))
    database.executemany(" ".join(("INSERT INTO predictions VALUES (", ", ".join("?" * len(table)), ")")), rows)
    answer = database.execute(text_of(found, ".sql"))
    places = [place for place, column in enumerate(answer.description) if column[0].startswith("mended_")]
    made = np.array(answer.fetchall(), dtype=object)[:, places].astype(float).T
    for own, expected in zip(made, numbers(found.apply(fresh).predictive), strict=True):
        assert_allclose(own, expected, rtol=1e-12, atol=1e-13)


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
    assert database.execute(text).fetchall() == []
