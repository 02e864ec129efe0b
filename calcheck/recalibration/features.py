"""The features on which errors depend: what corrections are fitted to, chosen among the columns by score tests."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calcheck.core import sc
from calcheck.core.text import shortest_number
from calcheck.distributions import Predictive
from calcheck.distributions.continuous import LocationScale
from calcheck.errors import DataError, listed_columns
from calcheck.predictions import Predictions
from calcheck.statistics.zscores import NUMBERS, without_targets
from calcheck.typing import AnyArray, Mask, Values

MIN_DRAWS = 4  # Draws from which the mean squared z-score of a perfect ensemble is finite
STD, MEAN = "std", "mean"
PREDICTED = (STD, MEAN)  # Names of the predicted deviation and mean
ORDERED = "iufM"  # Kinds of data types: numbers, and times, which are numbers of days
MOMENTS, DAY = "datetime64[us]", 86_400e6  # Type of times, and one day in its unit
KNOTS = (0.05, 0.35, 0.65, 0.95)  # Quantiles at which splines have their knots (Harrell 2015, Regression Modeling)
FEWEST_NUMBERS = 8  # Different numbers from which a column has splines; fewer enter linearly
GRID = 101  # Values over the range of a number, for a picture
MOST_GROUPS = 200  # Maximum number of different texts of a column


def z_scores(rows: Predictions) -> Values:
    """Return (y_i - center_i) / spread_i, (n,): in units of the scales of location-scale families, else of std."""
    predictive, y = rows.distributions(), rows.targets()
    require_single_target(predictive, y)
    spread = predictive.spread()
    if not (spread > 0).all():
        row = int(rows.row_numbers()[np.argmin(spread > 0)])
        msg = f"the standard deviation of row {row:,} is 0, so its error cannot be scaled. Remove such rows (--filter)"
        raise DataError(msg)
    return np.asarray((y.reshape(len(y)) - center(predictive)) / spread)


def center(predictive: Predictive) -> Values:
    """Return the centers about which distributions are scaled, (n,)."""
    return predictive.loc if isinstance(predictive, LocationScale) else predictive.mean()


def perfect_mean_square(predictive: Predictive) -> Values | float:
    """Return the expected squared z_scores of a perfect model: (1 + 1 / m) (m - 1) / (m - 3) for m normal draws."""
    draws = predictive.n_draws
    if draws is not None:
        if draws < MIN_DRAWS:
            raise DataError(f"{draws} draws per row are too few to scale them: at least {MIN_DRAWS} are needed")
        return (1 + 1 / draws) * (draws - 1) / (draws - 3)
    if isinstance(predictive, LocationScale):
        return (predictive.std() / predictive.scale) ** 2
    return 1.0


def require_single_target(predictive: Predictive, y: Values) -> None:
    """Raise unless there is one target per row."""
    if predictive.targets > 1 or y.size != len(y):
        raise DataError("recalibration needs one target per row: pass --only TARGET for one of several")


@dataclass(frozen=True)
class Feature:
    """A feature of the rows, with all that is needed to compute it for other rows."""

    column: str  # Name of the column; ``"std"`` and ``"mean"`` for the predicted ones
    # ``"deviation"``: the log of the predicted deviation; ``"number"``: a natural cubic spline; ``"category"``: one
    # indicator per group; ``"step"``: whether a number is above the only knot
    kind: Literal["deviation", "number", "category", "step"]
    # center, scale: mean and standard deviation of a number; 0 and 1 for other features
    center: float = 0.0
    scale: float = 1.0
    # low, high: range of the fitted rows; values outside are clipped
    low: float = 0.0
    high: float = 0.0
    # Knots of the spline, after centering and scaling, empty for a linear term; the limit of a step, in its own unit
    knots: tuple[float, ...] = ()
    groups: tuple[str, ...] = ()  # Groups of a category, as text
    is_time: bool = False  # Whether numbers are times, in days since 1970

    def design(self, rows: Predictions) -> Values:
        """Return the columns of the feature, (n, k)."""
        values = column_values(rows, self.column, self.kind)
        if self.kind == "category":
            return np.asarray(values.astype(str)[:, None] == np.array(self.groups), dtype=np.float64)
        if self.kind == "step":
            return np.asarray(values[:, None] > self.knots[0], dtype=np.float64)
        inside = (np.clip(values, self.low, self.high) - self.center) / self.scale
        return np.column_stack([inside, *_spline(inside, self.knots)])

    def grid(self) -> tuple[Values, Values]:
        """Return values over the fitted range, (g,), and the columns there, (g, k); neither for groups and steps."""
        if self.kind in ("category", "step"):
            return np.empty(0), np.empty((0, len(self.groups) or 1))
        values = np.linspace(self.low, self.high, GRID)
        inside = (values - self.center) / self.scale
        design = np.column_stack([inside, *_spline(inside, self.knots)])
        return (np.exp(values) if self.kind == "deviation" else values), design

    @property
    def name(self) -> str:
        """The feature in words."""
        if self.kind != "step":
            return self.column
        return f"{self.column}>{_moment(self.knots[0]) if self.is_time else f'{self.knots[0]:.15g}'}"

    def outside(self, rows: Predictions) -> Mask:
        """Return which rows have a number outside the fitted range, or a group that was not fitted, (n,)."""
        values = column_values(rows, self.column, self.kind)
        if self.kind == "category":
            return np.asarray(~np.isin(values.astype(str), self.groups))
        if self.kind == "step":
            return np.zeros(len(values), np.bool_)
        slack = 1e-12 * (abs(self.low) + abs(self.high))
        return np.asarray((values < self.low - slack) | (values > self.high + slack))


def column_values(rows: Predictions, column: str, kind: str) -> AnyArray:
    """Return the values of a column, or the log of the predicted deviations, (n,)."""
    if kind == "deviation":
        return np.log(rows.distributions().spread())
    if column in PREDICTED:
        predictive = rows.distributions()
        return predictive.mean() if column == MEAN else predictive.spread()
    if column not in rows.columns:
        known = listed_columns(list(rows.columns), column)
        raise DataError(f"there is no column {column!r}, on which the correction depends {known}")
    values = np.asarray(rows.columns[column])
    if kind == "category":
        return values
    if values.dtype.kind == "M":
        values = np.where(np.isnat(values), np.nan, values.astype(MOMENTS).astype(np.float64) / DAY)
    if values.dtype.kind not in NUMBERS:
        raise DataError(f"column {column!r} has no numbers, to which the correction was fitted")
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(rows.row_numbers()[np.argmin(np.isfinite(values))])
        msg = f"column {column!r} has no number in row {row:,}. Fill it, or remove such rows (--nan-policy, --filter)"
        raise DataError(msg)
    return values


def _moment(days: float) -> str:
    """Return a time as text: a date at midnight."""
    return str(np.datetime64(round(days * DAY), "us").astype("datetime64[s]")).removesuffix("T00:00:00")


def fit_feature(rows: Predictions, column: str, fewest: int = 1) -> Feature:
    """Return the feature of a column; texts of less than ``fewest`` rows are no groups."""
    if column == STD:
        values = column_values(rows, column, "deviation")
        return Feature(column, "deviation", low=float(values.min()), high=float(values.max()))
    raw = rows.columns.get(column)
    if raw is not None and np.asarray(raw).dtype.kind not in ORDERED:
        groups, counts = np.unique(np.asarray(raw).astype(str), return_counts=True)
        groups = groups[counts >= fewest]
        if len(groups) > MOST_GROUPS:
            msg = f"column {column!r} has {len(groups):,} different texts, at most {MOST_GROUPS} can be groups"
            raise DataError(msg)
        return Feature(column, "category", groups=tuple(groups.tolist()))
    values = column_values(rows, column, "number")
    center, scale = float(values.mean()), float(values.std()) or 1.0
    different = np.unique(values)
    knots = np.unique(np.quantile((values - center) / scale, KNOTS))
    is_curved = len(different) >= FEWEST_NUMBERS and len(knots) == len(KNOTS)
    return Feature(
        column,
        "number",
        center=center,
        scale=scale,
        low=float(different[0]),
        high=float(different[-1]),
        knots=tuple(map(float, knots)) if is_curved else (),
    )


def _spline(values: Values, knots: tuple[float, ...]) -> list[Values]:
    """Return the nonlinear terms of a natural cubic spline, (n,) each [Stone, Koo (1985); Harrell (2015), Eq. 2.25]."""
    if not knots:
        return []
    *first, before, last = knots
    width = (last - first[0]) ** 2

    def cube(knot: float) -> Values:
        return np.maximum(values - knot, 0.0) ** 3

    return [
        (cube(knot) - cube(before) * (last - knot) / (last - before) + cube(last) * (before - knot) / (last - before))
        / width
        for knot in first
    ]


Refit = Callable[[tuple[Feature, ...]], Values]
LEVEL = 0.05  # Probability that a feature is chosen where nothing depends on any column, up to the number of its forms
MOST_FEATURES = 6
MOST_COLUMNS = 40
END = 0.05  # Minimum share of the rows on each side of the limit of a step
FEWEST = 10  # Minimum number of rows of a group
MOST_TEXTS = 50  # Columns with more different texts are names of rows rather than groups
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
    predicted = [name for name, values in own.items() if np.ptp(values) > 0]
    predicted = predicted if predictive.n_draws is None else predicted[:1]
    found = [name for name in columns if name in rows.columns and name not in PREDICTED]
    usable = {name: raw for name in found if _is_usable(raw := np.asarray(rows.columns[name]))}
    return (*predicted, *without_targets(usable, y, own[MEAN])[:MOST_COLUMNS])


def _is_usable(raw: AnyArray) -> bool:
    if raw.dtype.kind not in ORDERED:
        _, counts = np.unique(raw.astype(str), return_counts=True)
        return 1 < len(counts) <= MOST_TEXTS and int((counts >= FEWEST).sum()) > 1
    is_time = raw.dtype.kind == "M"
    values = np.where(np.isnat(raw), np.nan, raw.astype(np.float64)) if is_time else raw.astype(np.float64)
    return bool(np.isfinite(values).all() and np.ptp(values) > 0)


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
    places = np.arange(math.ceil(END * n), math.floor((1 - END) * n) + 1)
    places = places[(ordered[places - 1] < ordered[places]) & (places > 0)]
    if not len(places):
        return None
    share = places / n
    statistics = sums[places - 1] ** 2 / (n * share * (1 - share) * (residual.var() or 1.0))
    best = int(np.argmax(statistics))
    limit = float(shortest_number(*ordered[places[best] - 1 : places[best] + 1]))
    freedom = 2 if len(places) > 1 else 1
    statistic = float(statistics[best])
    feature = Feature(column, "step", knots=(limit,), is_time=raw is not None and np.asarray(raw).dtype.kind == "M")
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
