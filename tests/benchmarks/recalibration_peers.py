"""Recalibration by other libraries on the same rows: numbers where they must be equal, differences, and times.

Needs an environment of its own, with this repository on PYTHONPATH:

    python -m venv peers
    peers/bin/pip install uncertainty-toolbox==0.1.1 netcal==1.4 MAPIE==1.6 crepes==0.9.1 torch==2.13.0 pyarrow
    peers/bin/pip install scoringrules typer rich pydantic array-api-compat threadpoolctl
    PYTHONPATH=. peers/bin/python -m tests.benchmarks.recalibration peers
"""

import io
import sys
import time
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from scipy.special import ndtr

from calcheck.distributions import Intervals
from calcheck.predictions import Predictions
from calcheck.recalibration.methods import FitOptions, fit_conformal, fit_pit, fit_scale

NEEDED = ("uncertainty_toolbox", "netcal", "mapie", "crepes")
FITTED, NEW, MANY = 199, 1000, 5_000
LEVEL, ROUNDED = 0.95, 0.9
RANKS = np.arange(1, FITTED + 1)
OPTIONS = FitOptions(levels=(LEVEL,))


@dataclass(frozen=True)
class Case:
    """What is compared: two functions of the fitted and the new rows, and why their values differ, if they do."""

    what: str
    peer: str
    mine: object
    theirs: object
    reason: str = "equal"


def parts(rows):
    """Return targets, means and standard deviations."""
    return rows.y, rows.predictive.loc, rows.predictive.scale


def quantile_limits(rows):
    """Return the central intervals of the forecasts, as an interval file states them."""
    lower, upper = (limit[:, None] for limit in rows.predictive.central_interval(LEVEL))
    return Predictions(y=rows.y, predictive=Intervals(np.array([LEVEL]), lower, upper))


def limits(rows):
    """Return the limits of the only interval of each row, (n, 2)."""
    return np.column_stack([rows.predictive.lower[:, 0], rows.predictive.upper[:, 0]])


def recalibrated_quantiles(levels):
    def quantiles(fitted, new):
        predictive = fit_pit(fitted, OPTIONS).apply(new).predictive
        return np.stack([predictive.quantile(float(level)) for level in levels], axis=1)

    return quantiles


def toolbox_ratio(fitted, _):
    from uncertainty_toolbox.recalibration import optimize_recalibration_ratio

    y, mean, std = parts(fitted)
    return optimize_recalibration_ratio(mean, std, y)


def toolbox_quantiles(levels):
    def quantiles(fitted, new):
        from uncertainty_toolbox.recalibration import get_quantile_recalibrator

        y, mean, std = parts(fitted)
        quantile = get_quantile_recalibrator(mean, std, y)
        return np.stack([quantile(*parts(new)[1:], float(level)) for level in levels], axis=1)

    return quantiles


def netcal_factor(fitted, _):
    from netcal.regression import VarianceScaling

    y, mean, std = parts(fitted)
    return VarianceScaling().fit((mean, std), y).transform((mean[:1], std[:1]))[0, 0] / std[0]


def netcal_probabilities(at):
    def probabilities(fitted, new):
        from netcal.regression import IsotonicRegression

        y, mean, std = parts(fitted)
        points = new.predictive.loc + at(new) * new.predictive.scale
        several = points + np.arange(6)[:, None]  # it needs as many as its splines
        return IsotonicRegression().fit((mean, std), y).transform(parts(new)[1:], several)[2][0, :, 0]

    return probabilities


def recalibrated_probabilities(at):
    return lambda fitted, new: fit_pit(fitted, OPTIONS).recalibrator()(ndtr(at(new)))


def z_of(rows):
    y, mean, std = parts(rows)
    return (y - mean) / std


def far_below(rows):
    return np.full(len(rows), -9.0)


def crepes_limits(level):
    def intervals(fitted, new):
        from crepes import ConformalRegressor

        y, mean, std = parts(fitted)
        return ConformalRegressor().fit(y - mean, sigmas=std).predict_int(*parts(new)[1:], confidence=level)

    return intervals


def predictive_system(fitted):
    from crepes import ConformalPredictiveSystem

    y, mean, std = parts(fitted)
    return ConformalPredictiveSystem().fit(y - mean, sigmas=std)


def crepes_quantiles(levels):
    return lambda fitted, new: predictive_system(fitted).predict_percentiles(
        *parts(new)[1:], lower_percentiles=list(100 * levels)
    )


def crepes_crps(fitted, new):
    return predictive_system(fitted).evaluate(*parts(new)[1:2], new.y, new.predictive.scale, metrics="CRPS")["CRPS"]


def ensemble_crps(fitted, new):
    from scoringrules import crps_ensemble

    y, mean, std = parts(new)
    return crps_ensemble(y, mean[:, None] + std[:, None] * z_of(fitted), estimator="qd").mean()


class Column:
    """A fitted scikit-learn regressor that returns columns of its inputs."""

    def __init__(self, place=0, spread=None):
        self.place, self.spread, self.is_fitted_ = place, spread, True

    def get_params(self, deep=True):  # noqa: ARG002, FBT002 - of scikit-learn
        return {"place": self.place, "spread": self.spread}

    def fit(self, *_):
        return self

    def predict(self, x, return_std=False):  # noqa: FBT002 - of scikit-learn
        return (x[:, self.place], x[:, self.spread]) if return_std else x[:, self.place]

    def __sklearn_is_fitted__(self):
        return True


def mapie_normalized(fitted, new):
    from mapie.conformity_scores.bounds.std_normalised import StdConformityScore
    from mapie.regression import SplitConformalRegressor

    (y, mean, std), (_, new_mean, new_std) = parts(fitted), parts(new)
    regressor = SplitConformalRegressor(
        Column(0, 1), confidence_level=LEVEL, conformity_score=StdConformityScore(), prefit=True
    )
    regressor.conformalize(np.column_stack([mean, std]), y)
    return regressor.predict_interval(np.column_stack([new_mean, new_std]))[1][:, :, 0]


def mapie_quantiles(fitted, new):
    from mapie.regression import ConformalizedQuantileRegressor

    before, after = limits(quantile_limits(fitted)), limits(quantile_limits(new))
    regressor = ConformalizedQuantileRegressor([Column(0), Column(1), Column(2)], confidence_level=LEVEL, prefit=True)
    regressor.conformalize(np.column_stack([before, before.mean(axis=1)]), fitted.y)
    columns = np.column_stack([after, after.mean(axis=1)])
    return regressor.predict_interval(columns, symmetric_correction=True)[1][:, :, 0]


def conformal_limits(level):
    return lambda fitted, new: limits(fit_conformal(fitted, FitOptions(levels=(level,))).apply(new))


def conformalized_quantiles(fitted, new):
    return limits(fit_conformal(quantile_limits(fitted), OPTIONS).apply(quantile_limits(new)))


def scale(fitted, _):
    return fit_scale(fitted, OPTIONS).factor


def recalibrated_crps(fitted, new):
    return fit_pit(fitted, OPTIONS).apply(new).predictive.crps(new.y).mean()


INNER = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
OUTER = np.array([0.004, 0.998])
EVERY = RANKS / (FITTED + 1)
CASES = [
    Case("scale: factor", "netcal", scale, netcal_factor),
    Case("scale: factor", "uncertainty-toolbox", scale, toolbox_ratio, "minimizes the ECE, not the likelihood"),
    Case("conformal: z, 95 %", "crepes", conformal_limits(LEVEL), crepes_limits(LEVEL)),
    Case(
        "conformal: z, 95 %", "MAPIE", conformal_limits(LEVEL), mapie_normalized, "lower limits are one rank too narrow"
    ),
    Case(
        "conformal: z, 90 %",
        "crepes",
        conformal_limits(ROUNDED),
        crepes_limits(ROUNDED),
        "int((1 - 0.9) (n + 1)) is 19, not 20: one rank too wide",
    ),
    Case("conformal: intervals, 95 %", "MAPIE", conformalized_quantiles, mapie_quantiles),
    Case("pit: quantiles", "crepes", recalibrated_quantiles(INNER), crepes_quantiles(INNER)),
    Case(
        "pit: quantiles at k / (n + 1)",
        "crepes",
        recalibrated_quantiles(EVERY),
        crepes_quantiles(EVERY),
        "int(p / 100 (n + 1)) is one rank too low where it is rounded",
    ),
    Case(
        "pit: quantiles",
        "uncertainty-toolbox",
        recalibrated_quantiles(INNER),
        toolbox_quantiles(INNER),
        "the inverse map on a grid of 100 levels",
    ),
    Case(
        "pit: quantiles 0.004 and 0.998",
        "uncertainty-toolbox",
        recalibrated_quantiles(OUTER),
        toolbox_quantiles(OUTER),
        "linear in the level from 0.99 to 1, where the quantile is infinite",
    ),
    Case(
        "pit: probabilities",
        "netcal",
        recalibrated_probabilities(z_of),
        netcal_probabilities(z_of),
        "i / n, not i / (n + 1)",
    ),
    Case(
        "pit: probability 9 std below",
        "netcal",
        recalibrated_probabilities(far_below),
        netcal_probabilities(far_below),
        "a mass of 1 / n at minus infinity",
    ),
    Case("pit: mean CRPS", "scoringrules", recalibrated_crps, ensemble_crps, "steps of 1 / n, not linear between them"),
    Case("pit: mean CRPS", "crepes", recalibrated_crps, crepes_crps, "multiplies errors by the deviations once more"),
]


def timed(function, fitted, new):
    """Return the value of a function, and the smallest of three times in seconds."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        value = function(fitted, new)
        seconds.append(time.perf_counter() - started)
    return value, min(seconds)


def difference(mine, theirs):
    """Return the largest absolute difference as text, and the number of infinite values."""
    apart = np.abs(np.asarray(mine) - np.asarray(theirs))
    finite = apart[np.isfinite(apart)]
    infinite = apart.size - finite.size
    texts = [f"{finite.max():.1e}"] if finite.size else []
    return ", ".join([*texts, *([f"{infinite:,} of {apart.size:,} infinite"] if infinite else [])])


def print_peers():
    """Print all cases with both times; those of a fit to 5,000 rows and its application to as many."""
    missing = []
    for name in NEEDED:
        try:
            import_module(name)
        except ImportError:
            missing.append(name)
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}. See {__file__} for what to install")
    from tests.benchmarks.recalibration import skewed_rows

    rng = np.random.default_rng(0)
    few = skewed_rows(rng, FITTED), skewed_rows(rng, NEW)
    many = skewed_rows(rng, MANY), skewed_rows(rng, MANY)
    print("| what | library | difference | reason | calcheck | library |")
    print("| --- | --- | --- | --- | ---: | ---: |")
    for case in CASES:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            apart = difference(case.mine(*few), case.theirs(*few))
            times = [timed(each, *many)[1] for each in (case.mine, case.theirs)] if "k /" not in case.what else []
        seconds = " | ".join(f"{1000 * each:.1f} ms" for each in times) or "– | –"
        print(f"| {case.what} | {case.peer} | {apart} | {case.reason} | {seconds} |", flush=True)
