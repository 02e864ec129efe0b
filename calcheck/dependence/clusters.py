"""Rows that depend on each other: clusters by keys, blocks of a series, and notice of columns that were not stated."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from calcheck.core import sc
from calcheck.core.text import count_of
from calcheck.distributions.samples import LazyPredictive
from calcheck.errors import CalcheckError, DataError, Message, OptionError, listed_columns
from calcheck.execution.run import RowDependence, Run
from calcheck.io.role_inference import Grouping, grouping_of, only_increases
from calcheck.io.times import parse_times
from calcheck.predictions import Predictions, Source
from calcheck.statistics.pit import mean_component, pit
from calcheck.statistics.zscores import central_interval, errors, spreads, targets
from calcheck.typing import AnyArray, Indices, Values

FEWEST = 5  # Minimum number of clusters
FEWEST_FREEDOM = 2.0  # Minimum degrees of freedom of influences with a large kurtosis
FEW = 20  # Fewer clusters are warned of
MOST = 2_000  # More clusters would not improve the precision, and are joined
MOST_LAGS = 5_000  # Autocorrelations of a fitted model that are summed
TREND, FEWEST_TIMES = 4, 25  # Cosines of a trend, and the minimum number of times for each
EPSILON = 1e-15  # Autocorrelations below this have vanished
MOST_INFLATION = 2.0  # Maximum correction for the dependence of neighboring blocks
FEWEST_BLOCKS = 6  # Minimum number of blocks whose length is chosen from the data
NOTABLE = 1.5  # Design effects above this are warned of
FEWEST_GROUPS, FEWEST_ROWS = 10, 30  # Minimum number of keys or times, and of rows
CHANCE = 0.02  # Maximum probability of a design effect that large if rows are independent, over all columns


@dataclass(frozen=True, eq=False)
class Clusters:
    """A division of n rows into G clusters: rows of different clusters are independent of each other."""

    label: Indices  # (n,), number of the cluster of each row, 0 to G - 1
    # Factor by which the variance between clusters is too small, >= 1: neighboring blocks of a series depend on each
    # other
    inflation: float = 1.0
    details: dict[str, Any] = field(default_factory=dict)  # What the clusters are, for reports
    messages: tuple[Message, ...] = ()  # What the clusters are, in words, and reasons to doubt inference from them

    def __len__(self) -> int:
        """Return the number of clusters, G."""
        return len(self.sizes)

    @cached_property
    def sizes(self) -> Indices:
        """The number of rows of each cluster, (G,)."""
        return np.bincount(self.label)

    @property
    def degrees_of_freedom(self) -> float:
        """The number of clusters of equal sizes with the same information, minus 1."""
        return float(degrees_of_freedom(self.sizes))

    @property
    def variance_factor(self) -> float:
        """The factor by which the variance between clusters is multiplied."""
        return self.inflation * len(self) / (len(self) - 1)

    def expanded(self, confidence: float, effective: float | None = None) -> float:
        r"""Return the nominal confidence at which an interval from clusters has a given coverage.

        .. math:: 2 \Phi(t \sqrt{v}) - 1

        where t is the quantile of Student's t at the confidence, and v the :attr:`variance_factor`. With e effective
        clusters, t has at most :math:`2 G e / (G - e) - 1` degrees of freedom: those of the variance of influences with
        the kurtosis G / e.

        Source: Hesterberg (2015), The American Statistician 69, 371-386: expanded percentile intervals. Satterthwaite
        (1946), Biometrics Bulletin 2, 110-114.
        """
        freedom, count = self.degrees_of_freedom, len(self)
        if effective is not None and effective < count:
            freedom = min(freedom, max(FEWEST_FREEDOM, 2 * count * effective / (count - effective) - 1))
        critical = sc.stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(self.variance_factor)
        return min(float(2 * sc.ndtr(critical) - 1), 1 - 1e-9)

    def sums(self, values: Values) -> Values:
        """Return the sums of values (n, ...) by cluster, (G, ...)."""
        if values.ndim == 1:
            return np.bincount(self.label, values, len(self)).astype(np.float64)
        found = np.zeros((len(self), *values.shape[1:]))
        np.add.at(found, self.label, values)
        return found


def degrees_of_freedom(members: Values | Indices) -> Values:
    """Return the number of equal clusters with the information of those with members (G, ...), minus 1."""
    largest = np.maximum(members.max(axis=0), 1e-300)
    shares = members / largest
    squares = np.maximum(np.sum(shares**2, axis=0), 1)
    return np.asarray(np.maximum(shares.sum(axis=0) ** 2 / squares - 1, 1.0))


def t_scales(uniform: Values, freedom: Values | float) -> Values:
    """Return factors that turn normal noise into Student's t, given levels of their distribution, and its freedom."""
    return np.asarray(np.sqrt(freedom / sc.chdtri(freedom, uniform)))


class WeightedMean(NamedTuple):
    """A mean over rows, with its standard error and the degrees of freedom of that."""

    value: float
    error: float
    freedom: float

    def limits(self, tail: float) -> tuple[float, float]:
        """Return the limits, each of which is wrong with a probability of ``tail``."""
        reach = float(sc.stdtrit(self.freedom, 1 - tail)) * self.error
        return self.value - reach, self.value + reach

    @property
    def p_below(self) -> float:
        """The p-value that the expected value is below 0."""
        return float(sc.stdtr(self.freedom, self.value / self.error)) if self.error > 0 else float(self.value >= 0)

    def p_value(self, reference: float) -> float:
        """Return the two-sided p-value of the hypothesis that the expected value is ``reference``."""
        distance = abs(self.value - reference)
        return float(2 * sc.stdtr(self.freedom, -distance / self.error)) if self.error > 0 else float(distance == 0)


def weighted_mean(
    values: Values,
    weights: Values | None,
    clusters: Clusters | None,
    added: float = 0.0,
    unit: Values | None = None,
) -> WeightedMean:
    """Return the mean of values (n,) over that of their unit, 1 by default, and its standard error.

    The sum of squared deviations has ``added`` more.
    """
    w = np.ones(len(values)) if weights is None else weights
    counted, n = w if unit is None else w * unit, len(values)
    total = float(counted.sum())
    mean = float(values @ w) / total
    away = w * (values - (mean if unit is None else mean * unit))
    if clusters is None:
        squares, freedom = float(away @ away) * n / max(n - 1, 1), total**2 / float(counted @ counted) - 1
    else:
        squares = clusters.variance_factor * float((clusters.sums(away) ** 2).sum())
        freedom = clusters.degrees_of_freedom
    return WeightedMean(mean, (squares + added * float(w @ w) / n) ** 0.5 / total, max(freedom, 1.0))


@dataclass(frozen=True)
class Autoregression:
    """The sums of the autocorrelations of a stationary series."""

    # Long-run variance relative to the variance: the sum of the autocorrelations at all lags, 1 for independence
    variance_ratio: float
    # Mean absolute lag, weighted by autocorrelations, >= 0. The variance of the mean of a block of b times is too small
    # by the factor 1 - memory / b, to first order in 1 / b.
    memory: float
    # Likelihood ratio tests of independence: factor for the number of tests, degrees of freedom, statistic
    tests: tuple[tuple[float, float, float], ...] = ()

    @property
    def chance(self) -> float:
        """Upper limit of the probability that a series of independent numbers fits as well, in [0, 1]."""
        return min([1.0, *(factor * float(sc.chdtrc(freedom, statistic)) for factor, freedom, statistic in self.tests)])

    @classmethod
    def fit(cls, series: Values) -> "Autoregression":
        """Return the sums of the autocorrelations of the autoregression that fits a series (t,) best.

        Coefficients solve the Yule-Walker equations, and the order, up to 10 log10(t), minimizes the corrected Akaike
        criterion: a daily cycle of hourly rows is found, too.

        Source: Hurvich, Tsai (1989), Biometrika 76, 297-307. Den Haan, Levin (1997), Handbook of Statistics 15,
        299-342.
        """
        covariances = autocovariances(series)
        coefficients, tests, _ = _coefficients(covariances)
        if not len(coefficients):
            return cls(1.0, 0.0)
        correlations = _correlations(coefficients, covariances, min(MOST_LAGS, 5 * len(series)))
        ratio = 1 + 2 * float(correlations.sum())
        lags = np.arange(1, len(correlations) + 1)
        return cls(ratio, max(0.0, 2 * float(lags @ correlations) / ratio), tests)


def autocovariances(series: Values) -> Values:
    """Return the autocovariances of a series (t,) at the lags 0 to t - 1, with the divisor t."""
    away = series - series.mean()
    spectrum = np.abs(np.fft.rfft(away, 2 * len(away))) ** 2
    return np.asarray(np.fft.irfft(spectrum)[: len(away)] / len(away))


def _coefficients(
    covariances: Values, removed: int = 0
) -> tuple[Values, tuple[tuple[float, float, float], ...], float]:
    """Return the autoregression with the smallest criterion, (p,), by Levinson's recursion, its test, and criterion."""
    n, best, coefficients = len(covariances), np.zeros(0), np.zeros(0)
    variance, ratio = covariances[0], 0.0
    if not variance > 0:
        return best, (), -np.inf
    smallest = n * np.log(variance) + 2 * removed * n / max(1, n - removed - 2)
    orders = min(int(10 * np.log10(n)), n - removed - 3)
    for order in range(1, orders + 1):
        expected = coefficients @ covariances[order - 1 : 0 : -1]
        partial = (covariances[order] - expected) / variance
        coefficients = np.append(coefficients - partial * coefficients[::-1], partial)
        variance *= 1 - partial**2
        if not variance > 0:
            break
        criterion = n * np.log(variance) + 2 * (order + removed) * n / (n - order - removed - 2)
        if criterion < smallest:
            smallest, best = criterion, coefficients
            ratio = n * np.log(covariances[0] / variance)
    return best, ((orders, len(best), ratio),), smallest


def without_trend(totals: Values, counts: Indices) -> Values:
    """Return totals by time (t,) of counted rows without the trend of their means, if there seems to be one.

    A change of the model's errors looks like the autocorrelations of a series that returns slowly to its mean. The
    trend is a sum of TREND cosines, and is removed if the autoregression of the rest has a smaller corrected Akaike
    criterion, with the trend's coefficients counted.
    """
    n = len(totals)
    if n < TREND * FEWEST_TIMES:
        return totals
    phases = np.pi * (np.arange(n)[:, None] + 0.5) / n
    trend = np.cos(phases * np.arange(TREND + 1)) * counts[:, None]
    rest = totals - trend @ np.linalg.lstsq(trend, totals)[0]
    criteria = [_coefficients(autocovariances(each), size)[2] for each, size in ((totals, 0), (rest, TREND))]
    return rest if criteria[1] < criteria[0] else totals


def _correlations(coefficients: Values, covariances: Values, lags: int) -> Values:
    """Return the autocorrelations at the lags 1 to ``lags`` of the autoregression that covariances determine."""
    order = len(coefficients)
    found = np.zeros(max(lags, order) + 1)
    found[: order + 1] = covariances[: order + 1] / covariances[0]
    for lag in range(order + 1, lags + 1):
        found[lag] = coefficients @ found[lag - 1 : lag - order - 1 : -1]
        if lag % 100 == 0 and np.abs(found[lag - order : lag]).max() < EPSILON:
            break
    return found[1 : lags + 1]


def dependence_scores(rows: Predictions) -> Values:
    """Return the first two components of the PIT, centered, (n, 2); for intervals the side of misses, and misses."""
    predictive = rows.distributions()
    if predictive.interval_levels is None:
        limits = pit(rows) if predictive.targets == 1 else predictive.cdf_limits(rows.targets())
        scores = np.stack([_by_row(mean_component(*limits, degree)) for degree in (1, 2)], axis=1)
    else:
        y, (low, high) = targets(rows), central_interval(predictive, float(predictive.interval_levels.max()))
        above, below = (y > high).astype(np.float64), (y < low).astype(np.float64)
        scores = np.stack([_by_row(above - below), _by_row(above + below)], axis=1)
    return np.asarray(scores - scores.mean(axis=0))


def _by_row(values: Values) -> Values:
    """Return the mean over the targets of each row, (n,)."""
    return np.asarray(values.reshape(len(values), -1).mean(axis=1))


def find_clusters(rows: Predictions, stated: RowDependence) -> Clusters | None:
    """Return the clusters that the options state; None if rows are independent."""
    if not stated.is_stated:
        return None
    if stated.cluster is not None:
        return _by_column(rows, stated.cluster)
    return _blocks(rows, stated.time, stated.block)


def column_labels(rows: Predictions, column: str) -> Indices:
    """Return the number of each row's value of a column, in the order of the values, (n,)."""
    values = _values(rows, column)
    missing = values != values  # noqa: PLR0124 - NaN and NaT differ from themselves
    if values.dtype.kind == "O":
        missing, values = np.array([each is None for each in values]) | missing, values.astype(str)
    if missing.any():
        row = int(rows.row_numbers()[np.argmax(missing)])
        raise DataError(f"column {column!r} has no value in row {row:,}. Fill it, or remove such rows (--filter)")
    return np.unique(values, return_inverse=True)[1].reshape(len(values))


def time_labels(rows: Predictions, column: str | None) -> Indices:
    """Return the number of each row's time, in ascending order, (n,); without a column, the order of the file."""
    if column is None:
        return np.argsort(np.argsort(rows.row_numbers(), kind="stable"), kind="stable")
    times = parse_times(column, _values(rows, column), rows.row_numbers())
    return np.unique(times, return_inverse=True)[1].reshape(len(rows))


def _values(rows: Predictions, column: str) -> AnyArray:
    if column in rows.columns:
        return np.asarray(rows.columns[column])
    if rows.id is not None and column == rows.id_name:
        return np.asarray(rows.id)
    raise DataError(f"there is no column {column!r} {listed_columns(list(rows.columns), column)}")


def _by_column(rows: Predictions, column: str) -> Clusters:
    label = column_labels(rows, column)
    count = int(label.max()) + 1
    if count < FEWEST:
        found = f"column {column!r} has {count_of(count, 'cluster')}"
        raise DataError(f"{found}: at least {FEWEST} are needed to measure their variance")
    note = f"rows of the same {column!r} may depend on each other: {count:,} clusters"
    details = {"cluster": column, "clusters": count}
    return Clusters(label % MOST, details=details, messages=_messages(note, count, "clusters"))


def _messages(note: str, count: int, what: str) -> tuple[Message, ...]:
    """Return what the clusters are, with a warning if they are few."""
    told = Message("dependence", note)
    if count >= FEW:
        return (told,)
    text = f"{count} {what} are few: with fewer than {FEW}, intervals and p-values are unreliable"
    return told, Message("few-clusters", text)


def _blocks(rows: Predictions, time: str | None, length: int | None) -> Clusters:
    """Return blocks of a series, as equal in length as possible.

    The bias of the variance between blocks of length b is -memory / b, and its relative variance about b / t. Without a
    given length, both are equal: b = sqrt(memory * t), so that tests with Student's t have their size.

    Source: Sun, Phillips, Jin (2008), Econometrica 76, 175-194. Flegal, Jones (2010), Annals of Statistics 38,
    1034-1070.
    """
    place = time_labels(rows, time)
    count = int(place.max()) + 1
    memory = series_memory(dependence_scores(rows), place)
    wanted = max(1.0, np.sqrt(memory * count)) if length is None else float(length)
    blocks = min(max(round(count / wanted), FEWEST_BLOCKS if length is None else 0), MOST)
    if not FEWEST <= blocks <= count:
        _raise_too_few(time, length, count)
    label = place * blocks // count
    used = count / blocks
    unit = "rows" if time is None else f"times of {time!r}"
    origin = "chosen from the data" if length is None else "--block"
    note = f"the {count:,} {unit} are a series: {blocks:,} blocks of about {used:,.3g} ({origin})"
    return Clusters(
        label,
        inflation=min(MOST_INFLATION, 1 / max(1 - memory / used, 1 / MOST_INFLATION)),
        details={"time": time, "block": used, "clusters": blocks},
        messages=_messages(note, blocks, "blocks"),
    )


def _raise_too_few(time: str | None, length: int | None, count: int) -> None:
    """Raise the error that blocks are too few."""
    if length is not None and count >= FEWEST:
        msg = f"--block {length} leaves fewer than {FEWEST} blocks of {count:,}: pass at most {count // FEWEST}"
        raise OptionError(msg)
    where = "the file has" if time is None else f"column {time!r} has"
    unit = "rows" if time is None else "different times"
    raise DataError(f"{where} {count} {unit}: at least {FEWEST_BLOCKS} are needed to measure their dependence")


def series_memory(scores: Values, place: Indices) -> float:
    """Return the longest memory of the totals by time, (n,), of scores (n, k), about their trends."""
    counts, totals = np.bincount(place), [np.bincount(place, column).astype(np.float64) for column in scores.T]
    return max(Autoregression.fit(without_trend(each, counts)).memory for each in totals)


def series_dependence(scores: Values, place: Indices) -> Autoregression:
    """Return the strongest dependence of the totals by time, (n,), of scores (n, k), relative to independent rows."""
    freedom = float(degrees_of_freedom(np.bincount(place)))
    found = [_of_totals(column, np.bincount(place, column).astype(np.float64), freedom) for column in scores.T]
    tests = tuple((len(found) * factor, freedom, ratio) for each in found for factor, freedom, ratio in each.tests)
    return Autoregression(max(each.variance_ratio for each in found), max(each.memory for each in found), tests)


def _of_totals(scores: Values, totals: Values, freedom: float) -> Autoregression:
    """Return the dependence of totals by time, (t,); rows of one time depend on each other, too."""
    squares, between = float(np.sum(scores**2)), float(np.sum(totals**2))
    if not squares > 0 or not between > 0:
        return Autoregression(1.0, 0.0)
    fitted = Autoregression.fit(totals)
    tests = tuple((2 * factor, freedom, ratio) for factor, freedom, ratio in fitted.tests)
    tests += ((2.0, freedom, freedom * between / squares),)
    return Autoregression(fitted.variance_ratio * between / squares, fitted.memory, tests)


@dataclass(frozen=True)
class DesignEffect:
    """The variance of means of dependent rows, relative to that of independent rows."""

    column: str  # The column by whose values rows depend on each other
    kind: Grouping  # What its values are: times or keys
    ratio: float  # The design effect, the larger one of bias and dispersion of the PIT
    # Whether the column only increases over the rows and may hold times, or an input by which rows are sorted
    is_order: bool = False
    streamed: bool = False  # Whether the rows were read in batches, which no option of dependence allows

    @property
    def option(self) -> str:
        """The option that states the dependence."""
        return f"--{self.kind} {shlex.quote(self.column)}"

    @property
    def alternative(self) -> str:
        """The option for a column that is an input by which rows are sorted; "" if it is no such column."""
        return f"--inputs {shlex.quote(self.column)}" if self.is_order else ""

    @property
    def remedy(self) -> str:
        """What to pass, and when."""
        stated = f"pass {self.option}{' without streaming' * self.streamed}"
        if not self.is_order:
            return stated
        return f"{stated} if rows are a series, or {self.alternative} if {self.column!r} is an input"

    @property
    def reason(self) -> str:
        """Why there is no verdict without the option."""
        return f"rows depend on each other by {self.column!r}: {self.remedy}"

    @property
    def settings(self) -> dict[str, Any]:
        """What a report states about it."""
        found = {"column": self.column, "option": self.option}
        found |= {"alternative": self.alternative} if self.is_order else {}
        return {"dependence_noticed": {**found, "variance_ratio": self.ratio, "reason": self.reason}}

    def warning(self, without_option: str = "") -> Message:
        """Return the warning; ``without_option`` is the name of the study, if it has no option for such rows."""
        same = "of near times" if self.kind == "time" else "of the same value"
        remedy = f"{without_option} assumes independent rows" if without_option else f"P{self.remedy[1:]}"
        ratio = float(f"{self.ratio:.2g}")
        text = (
            f"rows {same} in {self.column!r} depend on each other: the variance of means is {ratio:,.4g} times that"
            f" of independent rows, so intervals are too narrow and p-values too small. {remedy}"
        )
        return Message("dependent-rows", text)

    def warning_of_input(self) -> Message:
        """Return the warning if the column is an input: errors that change along it may also be those of a series."""
        order = f"rows are also in the order of {self.column!r}, with similar errors"
        text = f"{order}: if they are a series, pass {self.option}"
        return Message("ordered-rows", text)


def noticed_effect(rows: Predictions) -> DesignEffect | None:
    """Return the largest design effect by one of the columns that were read; None if rows seem independent."""
    return max(design_effects(rows), key=lambda each: each.ratio, default=None)


def input_warnings(rows: Predictions) -> tuple[Message, ...]:
    """Return warnings if rows are in the order of an input and depend on each other by it."""
    return tuple(each.warning_of_input() for each in _effects(rows, of_inputs=True))


def dependence_warnings(rows: Predictions, *, without_option: str = "") -> tuple[Message, ...]:
    """Return a warning if rows depend on each other by one of the columns that were read."""
    found = noticed_effect(rows)
    return () if found is None else (found.warning(without_option),)


def design_effects(rows: Predictions) -> list[DesignEffect]:
    """Return design effects above 1.5 and above chance, by times and keys, else by a column that only increases."""
    return _effects(rows) or _effects(rows, of_inputs=False)


def _effects(rows: Predictions, *, of_inputs: bool | None = None) -> list[DesignEffect]:
    """Return the notable effects by the columns of times and keys, or by orders: of inputs or of others."""
    predictive = rows.predictive
    if rows.y is None or predictive is None or len(rows) < FEWEST_ROWS:
        return []
    if isinstance(predictive, LazyPredictive) or predictive.targets > 1 or rows.repeated:
        return []
    if of_inputs is None:
        return _noticed(rows, _groupings(rows))
    orders = {name: kind for name, kind in _orders(rows).items() if (name in rows.input_columns) == of_inputs}
    return _noticed(rows, orders, is_order=True)


def _noticed(rows: Predictions, groupings: Mapping[str, Grouping], *, is_order: bool = False) -> list[DesignEffect]:
    """Return the notable design effects by some columns."""
    scores, found = None, []
    for column, kind in groupings.items():
        try:
            scores = dependence_scores(rows) if scores is None else scores
            effect = (_by_time if kind == "time" else _by_key)(rows, column, scores)
        except CalcheckError:  # a column with gaps, or texts that are no times
            continue
        if effect.variance_ratio > NOTABLE and effect.chance * len(groupings) <= CHANCE:
            found.append(DesignEffect(column, kind, effect.variance_ratio, is_order))
    return found


def _groupings(rows: Predictions) -> dict[str, Grouping]:
    """Return the columns of times and keys, by their types and names."""
    kinds = {name: np.asarray(values).dtype.kind for name, values in rows.columns.items()}
    found = {name: grouping_of(name, is_date=kind == "M", is_key=kind in "OUTiu") for name, kind in kinds.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def _orders(rows: Predictions) -> dict[str, Grouping]:
    """Return the columns of numbers that only increase over the rows; none if that is an order by other values."""
    keys = {} if rows.id is None else {rows.id_name: rows.id}
    found = [name for name, values in (*keys.items(), *rows.columns.items()) if only_increases(np.asarray(values))]
    sorted_by = (values for values in _sorting_values(rows) if only_increases(values) or only_increases(-values))
    return {} if not found or any(True for _ in sorted_by) else dict.fromkeys(found, "time")


def _sorting_values(rows: Predictions) -> Iterator[Values]:
    """Yield values by which rows may be sorted, so that neighboring rows are alike: targets, predictions, errors."""
    if rows.y is not None and rows.y.ndim == 1:
        yield rows.y
    try:
        found = errors(rows)
        yield from (found, np.abs(found), rows.targets() - found, spreads(rows.distributions()))
    except CalcheckError:  # the distributions have no moments
        return


def _by_key(rows: Predictions, column: str, scores: Values) -> Autoregression:
    """Return the variance of sums by key, relative to that of independent rows."""
    label = column_labels(rows, column)
    sizes = np.bincount(label)
    if len(sizes) < FEWEST_GROUPS or len(sizes) == len(label):
        return Autoregression(1.0, 0.0)
    ratio = max(float(np.sum(np.bincount(label, each) ** 2) / np.sum(each**2)) for each in scores.T)
    freedom = float(degrees_of_freedom(sizes))
    return Autoregression(ratio, 0.0, ((scores.shape[1], freedom, freedom * ratio),))


def _by_time(rows: Predictions, column: str, scores: Values) -> Autoregression:
    """Return the dependence of totals by time, relative to that of independent rows."""
    place = time_labels(rows, column)
    return Autoregression(1.0, 0.0) if place.max() + 1 < FEWEST_GROUPS else series_dependence(scores, place)


def noticed_dependence(source: Source, run: Run) -> DesignEffect | None:
    """Return by what rows seem to depend on each other; None if by nothing, if stated, or if no number needs it."""
    return noticed_effect(source.predictions()) if _needs_independence(run) else None


def order_warnings(source: Source, run: Run, noticed: DesignEffect | None) -> tuple[Message, ...]:
    """Return the warning about what was noticed; if nothing was, those about inputs that order the rows."""
    if noticed is not None:
        return (noticed.warning(),)
    return input_warnings(source.predictions()) if _needs_independence(run) else ()


def _needs_independence(run: Run) -> bool:
    return not run.dependence.is_stated and (run.replicates != 0 or run.resamples != 0)
