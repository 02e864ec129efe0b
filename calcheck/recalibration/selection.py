"""The features on which errors depend, chosen among the columns of the rows by score tests."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from calcheck.core import sc
from calcheck.core.text import shortest_number
from calcheck.errors import DataError
from calcheck.predictions import Predictions
from calcheck.recalibration.features import (
    MEAN,
    ORDERED,
    PREDICTED,
    STD,
    Feature,
    center,
    column_values,
    fit_feature,
)
from calcheck.typing import AnyArray, Values

Refit = Callable[[tuple[Feature, ...]], Values]
LEVEL = 0.05  # Probability that a feature is chosen where nothing depends on any column, up to the number of its forms
MOST_FEATURES = 6
MOST_COLUMNS = 40
CUTS, END = 64, 0.05  # Number of limits of steps, and the minimum share of the rows on each side
FEWEST = 10  # Minimum number of rows of a group
MOST_TEXTS = 50  # Columns with more different texts are names of rows rather than groups
COPY = 0.9  # Rank correlation with the errors from which a column is rather computed from them
EQUAL = 1e-9


def usable_columns(rows: Predictions, columns: Sequence[str]) -> tuple[str, ...]:
    """Return std, mean and those columns on which a correction may depend.

    These have numbers or times in all rows, or few texts, and are neither constant, nor targets or their errors.
    """
    predictive, y = rows.distributions(), rows.targets().reshape(len(rows))
    try:
        own = {STD: predictive.spread(), MEAN: center(predictive)}
    except DataError:  # Intervals, and quantiles without outer ones
        own = {MEAN: np.zeros(len(rows))}
    errors = y - own[MEAN]
    predicted = [name for name, values in own.items() if np.ptp(values) > 0]
    predicted = predicted if predictive.n_draws is None else predicted[:1]
    found = [name for name in columns if name in rows.columns and name not in PREDICTED]
    found = [name for name in found if _is_usable(np.asarray(rows.columns[name]), y, errors)]
    return (*predicted, *found[:MOST_COLUMNS])


def _is_usable(raw: AnyArray, y: Values, errors: Values) -> bool:
    if raw.dtype.kind not in ORDERED:
        _, counts = np.unique(raw.astype(str), return_counts=True)
        return 1 < len(counts) <= MOST_TEXTS and int((counts >= FEWEST).sum()) > 1
    is_time = raw.dtype.kind == "M"
    values = np.where(np.isnat(raw), np.nan, raw.astype(np.float64)) if is_time else raw.astype(np.float64)
    if not np.isfinite(values).all() or np.ptp(values) == 0:
        return False
    return abs(_correlation(values, y)) < 1 - EQUAL and all(
        abs(_correlation(_ranks(values), _ranks(each))) < COPY for each in (errors, np.abs(errors))
    )


def _correlation(first: Values, second: Values) -> float:
    spread = float(first.std() * second.std())
    return float(np.mean((first - first.mean()) * (second - second.mean()))) / spread if spread > 0 else 0.0


def _ranks(values: Values) -> Values:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])


def select_features(rows: Predictions, columns: Sequence[str], refit: Refit) -> tuple[Feature, ...]:
    """Return the features of columns on which residuals depend, by forward selection.

    ``refit`` returns the residuals (n,) of the fit to features. The next feature has the largest score statistic less
    log n per parameter, as long as its p-value, times the number of columns, is at most :data:`LEVEL`.
    """
    known = [(each, design) for name in columns for each, design in _forms(rows, name)]
    chosen: tuple[Feature, ...] = ()
    while len(chosen) < MOST_FEATURES:
        residual = refit(chosen)
        found = [_tested(residual, *each) for each in known]
        found += [step for name in columns if (step := _step(rows, name, residual)) is not None]
        if not found:
            break
        _, p_value, best = max(found, key=lambda each: each[0])
        if p_value * len(columns) > LEVEL or best in chosen:
            break
        chosen = (*chosen, best)
    return chosen


def _forms(rows: Predictions, column: str) -> Iterator[tuple[Feature, Values]]:
    """Yield a column as a curve and as a line, or as groups, with an orthonormal basis of their centered columns."""
    feature = fit_feature(rows, column, FEWEST)
    for form in (feature, replace(feature, knots=())) if feature.knots else (feature,):
        design = form.design(rows)
        basis, size, _ = np.linalg.svd(design - design.mean(axis=0), full_matrices=False)
        yield form, basis[:, size > EQUAL * max(size[0], EQUAL)]


def _tested(residual: Values, feature: Feature, basis: Values) -> tuple[float, float, Feature]:
    """Return the gain of a feature, with its p-value; the basis of its columns is orthonormal, (n, k)."""
    freedom = basis.shape[1]
    statistic = float(np.sum((basis.T @ residual) ** 2)) / float(residual.var() or 1.0)
    return statistic - freedom * math.log(len(residual)), float(sc.chdtrc(max(freedom, 1), statistic)), feature


def _step(rows: Predictions, column: str, residual: Values) -> tuple[float, float, Feature] | None:
    """Return the step of a column with the largest statistic; None for texts, and for few different numbers."""
    raw = rows.columns.get(column)
    if raw is not None and np.asarray(raw).dtype.kind not in ORDERED:
        return None
    values = column_values(rows, column, "step")
    order = np.argsort(values, kind="stable")
    ordered, sums = values[order], np.cumsum(residual[order] - residual.mean())
    n = len(values)
    places = np.unique(np.linspace(END * n, (1 - END) * n, CUTS).astype(np.intp))
    places = places[(ordered[places - 1] < ordered[places]) & (places > 0)]
    if not len(places):
        return None
    share = places / n
    statistics = sums[places - 1] ** 2 / (n * share * (1 - share) * (residual.var() or 1.0))
    best = int(np.argmax(statistics))
    limit = float(shortest_number(*ordered[places[best] - 1 : places[best] + 1]))
    freedom = 2 if len(places) > 1 else 1
    statistic = float(statistics[best])
    feature = Feature(column, "step", knots=(limit,))
    return statistic - freedom * math.log(n), _largest_p(math.sqrt(statistic), len(places)), feature


def _largest_p(size: float, cuts: int) -> float:
    """Return the probability that the largest of the standardized sums beyond all cuts is as large.

    Source: Miller, Siegmund (1982), "Maximally selected chi square statistics", Biometrics 38; at most that of as many
    single tests.
    """
    single = 2 * float(sc.ndtr(-size))
    if size <= 1:
        return min(1.0, cuts * single)
    density = math.exp(-(size**2) / 2) / math.sqrt(2 * math.pi)
    range_ = math.log(((1 - END) / END) ** 2)
    return min(1.0, cuts * single, density * ((size - 1 / size) * range_ + 4 / size))
