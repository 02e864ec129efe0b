"""Base classes of metrics, which map rows to columns whose means give the value; how several targets depend."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from calcheck.core.metric_info import BINS, REMEDIES, UNSTATED, MetricInfo
from calcheck.errors import OptionError
from calcheck.inference.metric_protocol import CurveData, IntervalInference, RefitsReplicates, RowResults
from calcheck.metrics._lazy import binned_validity, binning, bootstrap, curves, groups, multivariate, np, zscores
from calcheck.options import (
    LEVEL_TOLERANCE,
    option,
    options_of,
    require_count_option,
    require_levels_option,
    require_share_option,
)
from calcheck.reports import Alternative, Curve, Inference, Result, rejects

if TYPE_CHECKING:
    from calcheck.metrics._lazy import (
        AnyArray,
        Binning,
        Clusters,
        Direction,
        Means,
        MeanTerm,
        Predictions,
        Predictive,
        Run,
        Source,
        Values,
    )
    from calcheck.result_details import BinnedDetails, StratifiedCoverageDetails

FitT = TypeVar("FitT")
NOTHING_INFERRED = Inference()
LEVEL = 0.9  # Default level of intervals
WEIGHT = "weight"  # Name of the term of the weights of a weighted metric
FIXED = "fixed "  # Beginning of the names of what is no mean in a weighted metric
DIGITS = 12  # Digits of differences of quantile levels


@dataclass(frozen=True)
class Metric(ABC, Generic[FitT]):
    """Base class of metrics; the dataclass fields are the options.

    ``fit`` makes the choices that depend on the data and does the expensive work that depends on inputs only,
    ``evaluate`` computes the columns of each row, and ``value`` computes the metric from the column means.

    What only few metrics can do is described by protocols: :class:`SharesFit` and :class:`Conditional` in this module,
    and those of :mod:`calcheck.inference.metric_protocol`.
    """

    info: ClassVar[MetricInfo]
    curves_along_columns: ClassVar[bool] = False  # Whether curves can show the metric along one or two columns

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the class docstring, one sentence."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    def description(self) -> str:
        """Return the meaning of the value and how to read it."""
        return f"{self.summary()} {self.info.interpretation}"

    def options(self) -> dict[str, Any]:
        """Return the options by name; they rebuild the same metric."""
        return {option.name: getattr(self, option.field) for option in options_of(type(self))}

    def stored(self) -> dict[str, Any]:
        """Return the name and the options, which identify the metric in files."""
        return {"metric": self.info.name, "options": self.options()}

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> Metric[Any]:
        """Return the metric with the given :meth:`options`, also as read from JSON; raise if others are given."""
        name, declared = cls.info.name, options_of(cls)
        known = {option.name for option in declared}
        if differing := sorted(set(options) - known) or sorted(known - set(options)):
            where = "in the file only" if differing[0] in options else "not in the file"
            raise OptionError(
                f"the options of {name} differ in this version of calcheck: {differing[0]!r} is {where}. Create the"
                " file again with this version"
            )
        return cls(
            **{option.field: option.take(options[option.name], f"{option.name!r} of {name}") for option in declared}
        )

    def result(
        self, value: float | None, rows: dict[str, Any] | None = None, inference: Inference = NOTHING_INFERRED
    ) -> Result:
        """Return a value with what is needed to read it; ``rows`` describes the rows that were used, if not all."""
        return Result(
            metric=self.info.name,
            summary=self.description(),
            options=self.options(),
            slice=rows or {},
            unit=self.info.unit,
            orientation=self.info.orientation,
            alternative=self.alternative,
            value=value if value is not None and math.isfinite(value) else None,
            **{each.name: getattr(inference, each.name) for each in fields(Inference)},
        )

    @property
    def alternative(self) -> Alternative:
        """Alternative hypothesis with these options."""
        return self.info.alternative

    def with_defaults(self, rows: Predictions) -> Self:  # noqa: ARG002 - used by subclasses
        """Return the metric with values for the options whose defaults depend on what the predictions state."""
        return self

    def columns(self) -> tuple[str, ...]:
        """Return the names of required columns other than targets, predictions and inputs."""
        return ()

    def interpolates(self, levels: Values) -> bool:  # noqa: ARG002 - used by subclasses
        """Return whether the value, or that of a perfect model, depends on interpolation between quantiles."""
        return True

    def direction_above(self, means: Means) -> Direction | None:  # noqa: ARG002 - used by subclasses
        """Return how the model is wrong if the value of means of all rows is significantly above the reference."""
        return self.info.above

    @abstractmethod
    def fit(self, source: Source, run: Run) -> FitT:
        """Return the choices that depend on the data, and the work that depends on inputs only."""

    @abstractmethod
    def evaluate(self, fit: FitT, source: Source, run: Run) -> RowResults:
        """Return the columns of each row."""

    @abstractmethod
    def value(self, means: Means) -> Values:
        """Return the metric, (...), from means of columns, (...), of terms of k groups, (..., k), and fixed values."""


@runtime_checkable
class SharesFit(RefitsReplicates, Protocol):
    """A metric whose fit is expensive; other metrics and models with the same inputs can reuse it by ``refit``."""

    @property
    def fit_key(self) -> tuple[Any, ...]:
        """The options that the shared part of a fit depends on; metrics with equal keys can share it."""

    def plan(self, fit: Any, metrics: Sequence[Metric[Any]], models: int) -> None:
        """Prepare a fit that several metrics of ``models`` models will share."""


@runtime_checkable
class Conditional(Protocol[FitT]):
    """A metric that can be evaluated at any inputs."""

    def at_inputs(self, fit: FitT, source: Source) -> FitT:
        """Return the fit, to be evaluated at the inputs of another source."""


@runtime_checkable
class ComparesOutcomes(Protocol):
    """A metric that can compare predictions with another outcome than the targets."""

    def outcomes(self, source: Source) -> Source:
        """Return a source with the outcome as target, and its predictive distributions; or the same source."""


@runtime_checkable
class HasMeasure(Protocol):
    """A metric of likelihoods, which are densities or probability masses."""

    def measure(self, predictive: Predictive) -> str:
        """Return what the likelihoods of distributions are."""


@dataclass(frozen=True)
class LevelsOption:
    """Option of metrics of quantiles at several levels."""

    default_levels: ClassVar[tuple[float, ...]]
    levels: tuple[float, ...] | None = option(
        "Quantile levels of the scores. Default: those of a quantile file, else levels from 0.05 to 0.95."
    )

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", tuple(self.levels))  # a list, of Python, has no hash
            require_levels_option("levels", self.levels)

    def levels_of(self, predictive: Predictive | None) -> tuple[float, ...]:
        """Return the levels; by default those of a quantile file."""
        if self.levels is not None:
            return self.levels
        known = None if predictive is None else predictive.quantile_levels
        return self.default_levels if known is None else tuple(known.tolist())


@dataclass(frozen=True)
class LevelOption:
    """Option of metrics of intervals at one level."""

    level: float | None = option(
        "Level of the intervals. Default: 0.9, or the nearest to it that a file of intervals or quantiles has."
    )

    def __post_init__(self) -> None:
        if self.level is not None:
            require_share_option("level", self.level)

    def level_of(self, predictive: Predictive | None) -> float:
        """Return the level; its default depends on the levels of prediction intervals and of quantiles."""
        if self.level is not None:
            return self.level
        return min(stated_levels(predictive), key=lambda level: (abs(level - LEVEL), level), default=LEVEL)

    def at_level(self, level: float) -> Self:
        """Return the metric at another level."""
        return replace(self, level=level)

    def with_defaults(self, rows: Predictions) -> Self:
        """Return the metric with its level."""
        return self.at_level(self.level_of(rows.predictive))


def with_level(metric: Metric[Any], levels: Sequence[float]) -> Metric[Any]:
    """Return a metric at the first of some levels, if it is one of intervals and its level is not set."""
    if levels and isinstance(metric, LevelOption) and metric.level is None:
        return metric.at_level(levels[0])
    return metric


def stated_levels(predictive: Predictive | None) -> list[float]:
    """Return the levels of the intervals that distributions state; none if they state more."""
    if predictive is None:
        return []
    if predictive.interval_levels is not None:
        levels: list[float] = predictive.interval_levels.tolist()
        return levels
    known = predictive.quantile_levels
    widths = [] if known is None else [round(float(1 - 2 * level), DIGITS) for level in known if level < 0.5]  # noqa: PLR2004 - the median
    return [width for width in widths if known is not None and has_interval(known, width)]


def has_interval(levels: Values, level: float) -> bool:
    """Return whether both limits of a central interval are quantiles at the given levels (q,)."""
    return all(abs(levels - end).min() <= LEVEL_TOLERANCE for end in ((1 - level) / 2, (1 + level) / 2))


@dataclass(frozen=True)
class UnfittedMetric(Metric[None]):
    """Base class of metrics with nothing to fit, which are not random."""

    def fit(self, source: Source, run: Run) -> None:
        """Return None; there is nothing to fit."""

    def evaluate(self, fit: None, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - nothing is fitted
        return self.compute(source.predictions())

    @abstractmethod
    def compute(self, rows: Predictions) -> RowResults:
        """Return the columns of each row."""


@dataclass(frozen=True)
class RowMetric(UnfittedMetric):
    """Base class of metrics whose columns depend on one row at a time."""

    def details(self, means: Means) -> Mapping[str, Any]:  # noqa: ARG002 - used by subclasses
        """Return report details that follow from the means of all rows."""
        return {}


@dataclass(frozen=True)
class LocalMetric(RowMetric):
    """Base class of functions of column means, which have a value in each bin of rows too."""

    curves_along_columns: ClassVar[bool] = True

    def replicate_rows(self, rows: Predictions) -> RowResults:
        """Return the columns of each row of replicates, which need no details."""
        return self.compute(rows)

    def quick_statistic(self, fit: None, source: Source, run: Run) -> float:  # noqa: ARG002 - nothing is fitted
        """Return what is compared with replicates."""
        return float(self.stacked_statistics(fit, source.predictions(), 1)[0])

    def stacked_statistics(self, fit: None, rows: Predictions, count: int) -> Values:  # noqa: ARG002 - nothing is fitted
        """Return the quick statistics of data sets of equal size whose rows are stacked, (count,)."""
        statistic = bootstrap.null_statistic_of(self, self.replicate_rows(rows))
        return np.broadcast_to(statistic.of_means(statistic.means_of_parts(count)), count)

    def curves(self, shown: CurveData[None]) -> tuple[Curve, ...]:
        """Return the metric in bins of rows."""
        found = shown.rows or self.evaluate(shown.fit, shown.source, shown.run)
        rows = shown.source.predictions()
        return (curves.curve_along(self.value, rows, found.columns, shown.run.curves_by, found.reference),)


@dataclass(frozen=True)
class MeanMetric(LocalMetric):
    """Base class of metrics that are the mean of one column."""

    column: ClassVar[str]  # The name of the column

    def value(self, means: Means) -> Values:
        return means[self.column]


@dataclass(frozen=True)
class OrderedMetric(RowMetric):
    """Base class of metrics that depend on the rows only through a few sort keys."""

    @abstractmethod
    def sort_keys(self, rows: Predictions) -> dict[str, Values]:
        """Return the sort keys by name, (n,) each."""

    @abstractmethod
    def from_sort_keys(self, columns: dict[str, Values]) -> RowResults:
        """Return the columns of each row, given the sort keys."""

    def compute(self, rows: Predictions) -> RowResults:
        return self.from_sort_keys(self.sort_keys(rows))


@dataclass(frozen=True)
class BinningMetric(Metric["Binning"]):
    """Base class of metrics over bins: of equal counts by predicted uncertainty or a column, or of categories."""

    bins: int = option(
        "Number of bins with equal counts: of n sorted rows, bin j ends at row round(j n / bins). A column of"
        " categories, or of no more different numbers than bins, has one"
        " bin for each.",
        BINS,
    )
    by: str | None = option(
        "Column of numbers or dates used to sort rows into bins, or of categories. Default: the predicted standard"
        " deviation.",
        metavar="COLUMN",
    )

    def __post_init__(self) -> None:
        require_count_option("bins", self.bins)

    def columns(self) -> tuple[str, ...]:
        return () if self.by is None else (self.by,)

    @property
    def sort_key_name(self) -> str:
        """Name of the values that rows are sorted by."""
        return self.by or "uncertainties"

    def sort_key(self, rows: Predictions) -> AnyArray:
        """Return the values that rows are sorted by, (n,): predicted standard deviations, or the column."""
        return binning.sort_keys(rows, self.by)

    def fit(self, source: Source, run: Run) -> Binning:  # noqa: ARG002 - not random
        """Return the bins."""
        return self.make_bins(source.predictions())

    def make_bins(self, rows: Predictions) -> Binning:
        """Return bins of the rows by their sort key."""
        return binning.bins_of(rows, self.bins, self.by)


@dataclass(frozen=True)
class BinnedMetric(BinningMetric):
    """Base class of functions of means by bin."""

    def bin_terms(self, rows: Predictions, bins: Binning) -> dict[str, MeanTerm]:
        """Return the terms to be averaged by bin, among them ``rows``: predicted variances and squared errors."""
        return {
            "rows": groups.MeanTerm(groups=bins),
            "variance": groups.MeanTerm(zscores.uncertainties(rows) ** 2, bins),
            "squared_error": groups.MeanTerm(zscores.errors(rows) ** 2, bins),
        }

    @staticmethod
    def bin_details(sums: Mapping[str, Values], bins: Binning) -> BinnedDetails | StratifiedCoverageDetails:
        """Return the details of each bin, given the sums of the terms, (k,) each."""
        return binning.reliability(sums, bins)

    def evaluate(self, fit: Binning, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - not random
        """Return the terms of each row, to be averaged by bin."""
        terms = self.bin_terms(source.predictions(), fit)
        columns = {name: term.values for name, term in terms.items() if term.values is not None}
        sums = binning.sums_by_bin(terms, fit)
        return RowResults(
            {**columns, "bin": fit.number()},
            terms,
            details=self.bin_details(sums, fit),
            warnings=binning.bin_warnings(fit, sums),
        )

    def quick_statistic(self, fit: Binning, source: Source, run: Run) -> float:  # noqa: ARG002 - not random
        """Return the value, without the details of the bins."""
        return float(self.stacked_statistics(fit, source.predictions(), 1)[0])

    def stacked_statistics(self, fit: Binning, rows: Predictions, count: int) -> Values:
        """Return the quick statistics of data sets of equal size whose rows are stacked, (count,)."""
        sums = {name: fit.sums_of_parts(term.values, count) for name, term in self.bin_terms(rows, fit).items()}
        n = len(rows) // count
        return self.value(groups.Means({name: each / n for name, each in sums.items()}, n))

    def curves(self, shown: CurveData[Binning]) -> tuple[Curve, ...]:
        """Return the observed spread against the predicted one, with its intervals, and the predicted spreads."""
        data = shown.source.predictions()
        sums = binning.sums_by_bin((shown.rows or self.evaluate(shown.fit, shown.source, shown.run)).terms, shown.fit)
        rmv, rmse = binning.root_means(sums)
        spread = curves.curve_of("spread", rmv, rmse, rows=sums["rows"])
        found = [spread]
        if shown.rows is not None:  # Intervals in place of bands of perfect models
            moments = binned_validity.BinMoments.from_rows(shown.fit, {"squared_error": zscores.errors(data) ** 2})
            low, high = binned_validity.abc_limits_by_bin(
                [moments], lambda means: np.sqrt(means["squared_error"]), shown.run.confidence
            )
            found += [replace(spread, name="spread-intervals", low=curves.plain(low[0]), high=curves.plain(high[0]))]
        return *found, curves.spread_histogram(zscores.spreads(data.distributions()))


def inapplicable_reason(metric: type[Metric[Any]], rows: Predictions) -> str:
    """Return why a metric does not apply to the rows; empty if it does."""
    info = metric.info
    lacking = [REMEDIES[need] for need in info.needs if getattr(rows, need) is None]
    if lacking:
        return "needs " + " and ".join(lacking)
    if rows.predictive is not None and not rows.predictive.states(info.uses):
        return UNSTATED[info.uses]
    if rows.repeated and not info.repeated_targets:
        return "needs one target per input, but there are several"
    targets = 1 if rows.predictive is None else rows.predictive.targets
    if targets > 1 and not info.several_targets:
        return f"needs a single target column, but there are {targets}: pass --only TARGET"
    return ""


SIDES = {"sum": 1, "difference": -1}
LEAST = 1e-12  # Least squared factor


def farthest(values: Iterable[Values], distance: Callable[[Values], Values]) -> Values:
    """Return the values of the target whose distance from its ideal is largest, (...)."""
    return reduce(lambda one, other: np.where(distance(other) > distance(one), other, one), values)


def with_verdict(found: IntervalInference, confidence: float) -> IntervalInference:
    """Return an interval with the verdict of its p-value."""
    fails = found.p_value is not None and rejects(found.p_value, confidence)
    return replace(found, verdict="fail" if fails else "pass")


class PairFactor(NamedTuple):
    """By how much intervals of the sum or the difference of two targets would have to be wider, with its limits."""

    targets: tuple[int, int]
    side: str
    value: float
    low: float
    high: float
    observed: float  # Correlation of the scores
    predicted: float  # Mean of the predicted ones

    @property
    def distance(self) -> float:
        """The size of the logarithm."""
        return abs(float(np.log(self.value)))


@dataclass(frozen=True)
class DependenceFactor(Metric["Values"]):
    r"""Factor by which intervals of the sum or the difference of two targets would have to be wider.

    Each target is replaced by the normal score of the rank of its PIT, so that a fault of one target by itself does not
    count. With the predicted correlation r_i of the scores u and v of a row, the squared factors of the sum and of the
    difference are the means of :math:`(u_i + v_i)^2 / (2 + 2 r_i)` and :math:`(u_i - v_i)^2 / (2 - 2 r_i)`.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="dependence-factor",
        orientation="reference",
        alternative="greater",
        source="normal scores of ranks",
        interpretation="1 is ideal; at 0.5, intervals of a difference are twice too wide.",
        several_targets=True,
    )

    def fit(self, source: Source, run: Run) -> Values:  # noqa: ARG002 - not random
        """Return the predicted correlations, (n, pairs) or (1, pairs)."""
        return multivariate.predicted_correlations(source.predictions())

    def refit(self, fit: Values, source: Source, run: Run) -> Values:  # noqa: ARG002 - the same for replicates
        """Return the same, which does not depend on which of exchangeable values is the target."""
        return fit

    def evaluate(self, fit: Values, source: Source, run: Run) -> RowResults:  # noqa: ARG002 - not random
        scores, columns = multivariate.rank_scores(source.predictions()), {}
        for pair, (one, other) in enumerate(combinations(scores.T, 2)):
            for side, sign in SIDES.items():
                columns[f"{side} {pair}"] = (one + sign * other) ** 2 / (2 + sign * 2 * fit[:, pair])
        return RowResults(columns)

    def value(self, means: Means) -> Values:
        return farthest(self._factors(means), lambda each: np.abs(np.log(each)))

    def null_statistic(self, means: Means) -> Values:
        """Return the size of the logarithm of the value."""
        return np.abs(np.log(self.value(means)))

    def null_reference(self, rows: RowResults) -> float:  # noqa: ARG002 - the same for all rows
        """Return 0."""
        return 0.0

    @staticmethod
    def _factors(means: Means) -> list[Values]:
        return [np.sqrt(np.maximum(each, LEAST)) for each in means.values()]

    def pairs(self, fit: Values, rows: Predictions, tail: float, clusters: Clusters | None) -> list[PairFactor]:
        """Return the factors with one-sided limits, by the influence of each row on their logarithms."""
        from calcheck.dependence.clusters import weighted_mean

        scores, found, draws = multivariate.rank_scores(rows), [], rows.distributions().n_draws
        for pair, (first, second) in enumerate(combinations(range(scores.shape[1]), 2)):
            u, v, r = scores[:, first], scores[:, second], np.broadcast_to(fit[:, pair], len(scores))
            for side, sign in SIDES.items():
                share = 1 / (2 + sign * 2 * r)
                square = max(float(np.mean(share * (u + sign * v) ** 2)), LEAST)
                influence = share * (u + sign * v) ** 2
                for each in (u, v):  # scores have the mean square 1
                    influence = influence - float(np.mean(share * (each**2 + sign * u * v))) * (each**2 - 1)
                low, high = weighted_mean(influence / square, None, clusters).limits(tail)
                value = square**0.5
                below, above = (value * float(np.exp((each - 1) / 2)) for each in (low, high))
                observed, predicted = float(np.mean(u * v)), float(r.mean())
                told = observed, predicted + ((predicted - observed) / draws if draws else 0.0)  # without the target
                found.append(PairFactor((first, second), side, value, below, above, *told))
        return found
