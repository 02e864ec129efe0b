"""The columns on which errors depend: which are tried, and which are chosen."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calcheck.distributions import Gaussian
from calcheck.predictions import Predictions
from calcheck.recalibration.features import Feature, _largest_p, usable_columns
from calcheck.recalibration.methods import FitOptions, fit_bias, fit_local
from tests.helpers.simulations import band, sets

MANY = sets(400, 80)
LEVEL = 0.08  # 0.05 for each of several forms of a column, which are nearly the same
COLUMNS = ("std", "mean", "temp", "hum", "site")


def forecasts(seed, n=500, factor=1.0):
    """Return right predictions, but where temp exceeds 30: there, errors are larger by a factor."""
    rng = np.random.default_rng(seed)
    temp, hum, site = rng.uniform(0, 40, n), rng.uniform(size=n), rng.choice(list("abc"), n)
    mean, std = rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    y = mean + std * rng.normal(size=n) * np.where(temp > 30, factor, 1)
    return Predictions(y=y, predictive=Gaussian(mean, std), columns={"temp": temp, "hum": hum, "site": site})


@pytest.mark.parametrize(("statistic", "level"), [(9.84, 0.05), (13.01, 0.01)])
def test_the_largest_statistic_over_all_cuts_has_the_level_of_the_table(statistic, level):
    """Andrews (2003), "Tests for parameter instability: a corrigendum", Table I, one parameter, 5 % at each end."""
    assert_allclose(_largest_p(math.sqrt(statistic), 10**9), level, rtol=0.25)
    assert_allclose(_largest_p(math.sqrt(statistic), 1), math.erfc(math.sqrt(statistic / 2)), rtol=1e-9)  # One cut


@pytest.mark.parametrize("fit", [fit_local, fit_bias])
def test_no_column_is_chosen_where_errors_depend_on_none(fit):
    options = FitOptions(by=COLUMNS, selects=True)
    chosen = sum(bool(getattr(fit(forecasts(seed), options), "features", ())) for seed in range(MANY))
    assert chosen <= band(MANY, LEVEL)[1]


def test_the_column_and_the_limit_of_larger_errors_are_found():
    step = fit_local(forecasts(1, 1000, 2.0), FitOptions(by=COLUMNS, selects=True))
    (feature,) = step.features
    assert (feature.column, feature.kind) == ("temp", "step")
    assert abs(feature.knots[0] - 30) < 1
    assert_allclose(np.exp(step.coefficients[1] / 2), 2, rtol=0.15)


def test_names_of_rows_constants_gaps_and_errors_are_no_columns_of_a_correction():
    rows = forecasts(2)
    error = rows.y - rows.predictive.loc
    further = {
        "name": np.array([f"row {place}" for place in range(500)]),
        "same": np.ones(500),
        "gap": np.where(np.arange(500) == 3, np.nan, 1.0 * np.arange(500)),
        "off": np.abs(error) + 0.01,
        "truth": 2 * rows.y + 1,
        "day": np.datetime64("2026-01-01") + np.arange(500),
    }
    rows = Predictions(y=rows.y, predictive=rows.predictive, columns={**rows.columns, **further})
    assert usable_columns(rows, list(rows.columns)) == (*COLUMNS, "day")


def test_columns_of_targets_have_the_order_of_targets_or_errors_or_a_word_in_their_name():
    rows, rng = forecasts(2), np.random.default_rng(0)
    error = rows.y - rows.predictive.loc
    computed = {"loss": error**2, "delta": -error, "log_price": np.exp(rows.y / 50), "rounded": rows.y.round(4)}
    named = {name: rng.normal(size=500) for name in ("crps", "abs_err", "z-score", "residuals_2", "pit")}
    others = {name: rng.normal(size=500) for name in ("terrain", "ferritin", "residential", "pit_depth")}
    rows = Predictions(y=rows.y, predictive=rows.predictive, columns={**computed, **named, **others})
    assert set(usable_columns(rows, list(rows.columns))) - {"std", "mean"} == set(others)


def test_a_step_of_times_is_named_by_its_date():
    """19,904 days after the beginning of 1970 is the 30th of June 2024."""
    step = Feature("date", "step", knots=(19904.0,), is_time=True)
    assert step.name == "date>2024-06-30"
    assert replace(step, knots=(19904.25,)).name == "date>2024-06-30T06:00:00"
    assert replace(step, is_time=False).name == "date>19904"
