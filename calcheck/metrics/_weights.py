"""Metrics with sampling weights: means over rows become weighted means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from calcheck.core.metric_info import FUNCTIONS_OF_MEANS
from calcheck.core.text import count_of
from calcheck.errors import DataError, Message, OptionError
from calcheck.inference.metric_protocol import HasMoments, HasNullStatistic, HasQuickStatistic, HasStackedStatistics
from calcheck.metrics._lazy import groups, np
from calcheck.metrics.base import FIXED, WEIGHT, Metric, RowMetric
from calcheck.reports import Skipped

if TYPE_CHECKING:
    from calcheck.inference.metric_protocol import RowResults
    from calcheck.metrics._lazy import Direction, Means, Predictions, Run, Source, Values

ROUNDING = 1e-6  # Relative tolerance for weights, because files may be in single precision
NO_WEIGHTED_FORM = "has no weighted form, as it is no function of means over rows: omit {}"
OPTION = "--weights"


class WeightedMetric(Metric[Any]):
    """Base class that makes the means of another metric weighted: sum w x / sum w, of resamples and replicates too."""

    weights: ClassVar[str]  # Name of the column of weights

    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*super().columns(), self.weights)))

    def evaluate(self, fit: Any, source: Source, run: Run) -> RowResults:
        found: RowResults = super().evaluate(fit, source, run)  # type: ignore[safe-super] # of the other metric
        found = _weighted_rows(found, row_weights(source.predictions(), self.weights), self.weights)
        return replace(found, details=self.details(normalized(_means(found)))) if isinstance(self, RowMetric) else found

    def value(self, means: Means) -> Values:
        found: Values = super().value(normalized(means))  # type: ignore[safe-super]
        return found

    def direction_above(self, means: Means) -> Direction | None:
        return super().direction_above(normalized(means))


def has_weighted_form(metric: Metric[Any]) -> bool:
    """Return whether a metric is a function of means over rows."""
    return metric.info.interval in FUNCTIONS_OF_MEANS


def weighted(metric: Metric[Any], column: str) -> Metric[Any]:
    """Return a metric with the same options whose means are weighted by a column (Kish 1965, "Survey sampling")."""
    base = type(metric)
    if not has_weighted_form(metric):
        raise OptionError(f"{metric.info.name} {NO_WEIGHTED_FORM.format(OPTION)}")
    members: dict[str, Any] = {"weights": column, "__doc__": base.__doc__, "__module__": base.__module__}
    if issubclass(base, HasNullStatistic):
        members["null_statistic"] = lambda self, means: base.null_statistic(self, normalized(means))
    if issubclass(base, HasMoments):
        members["moments"] = None  # they are of equal weights
    if issubclass(base, HasStackedStatistics):
        members["stacked_statistics"] = None
    if issubclass(base, HasQuickStatistic):
        members["quick_statistic"] = _statistic
    made = type(base.__name__, (WeightedMetric, base), members)
    found: Metric[Any] = made(**{each.name: getattr(metric, each.name) for each in fields(metric)})
    return found


def weighted_forms(
    metrics: Sequence[Metric[Any]], column: str, option: str = OPTION
) -> tuple[list[Metric[Any]], list[Skipped]]:
    """Return the metrics that have a weighted form, by a column that an option asks for; the others are skipped."""
    found = [weighted(metric, column) for metric in metrics if has_weighted_form(metric)]
    without = [metric.info.name for metric in metrics if not has_weighted_form(metric)]
    reason = NO_WEIGHTED_FORM.format(option)
    return found, [Skipped(metric=name, code="inapplicable", reason=reason) for name in without]


def require_same_weights(metrics: Sequence[Metric[Any]], models: Mapping[str, Predictions]) -> None:
    """Raise unless the rows of several models, in the same order, have the same weights."""
    first, *others = models
    for column in dict.fromkeys(metric.weights for metric in metrics if isinstance(metric, WeightedMetric)):
        own = row_weights(models[first], column)
        for name in others:
            apart = abs(row_weights(models[name], column) - own) > ROUNDING * own
            if apart.any():
                msg = f"the weights {column!r} of {first} and {name} differ in {count_of(int(apart.sum()), 'row')}"
                raise DataError(f"{msg}, first in row {int(apart.argmax())}. Models are compared with the same weights")


def normalized(means: Means) -> Means:
    """Return weighted means, given the means of w x and of w, and what is no mean under its name."""
    total = np.asarray(means[WEIGHT])
    found = {name.removeprefix(FIXED): values for name, values in means.items() if name.startswith(FIXED)}
    for name, values in means.items():
        if name != WEIGHT and not name.startswith(FIXED):
            found[name] = values / (total[..., None] if np.ndim(values) > total.ndim else total)
    return groups.Means(found, means.n)


def row_weights(rows: Predictions, column: str) -> Values:
    """Return the weights of the rows, (n,), with mean 1."""
    found = rows.columns.get(column)
    if found is None or found.dtype.kind not in "iufb":
        raise DataError(f"column {column!r} does not hold numbers, which --weights needs")
    weights = found.astype(np.float64)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise DataError(f"column {column!r} must hold finite weights >= 0 that are not all 0 (--weights)")
    return np.asarray(weights / weights.mean())


def _weighted_rows(found: RowResults, weights: Values, column: str) -> RowResults:
    """Return results whose terms are weighted, without details, which are those of equal weights."""
    terms = found.terms or {name: groups.MeanTerm(values) for name, values in found.columns.items()}
    weighed = {
        name: replace(term, values=weights if term.values is None else weights * term.values)
        for name, term in terms.items()
    }
    reference = found.reference
    if reference is not None and "expected" in found.columns:
        reference = float(np.average(found.columns["expected"], weights=weights))
    count = groups.effective_count(weights)
    text = f"means are weighted by {column!r}: {len(weights):,} rows are as accurate as {count:,.0f}"
    return replace(
        found,
        terms={**weighed, WEIGHT: groups.MeanTerm(weights)},
        fixed={f"{FIXED}{name}": values for name, values in found.fixed.items()},
        details={},
        reference=reference,
        warnings=(*found.warnings, Message("weighted", f"{text} with equal weights")),
    )


def _statistic(self: WeightedMetric, fit: Any, source: Source, run: Run) -> float:
    """Return what is compared with replicates."""
    means = _means(self.evaluate(fit, source, run))
    return float(self.null_statistic(means) if isinstance(self, HasNullStatistic) else self.value(means))


def _means(found: RowResults) -> Means:
    """Return the means that the value of a metric is a function of."""
    return groups.Averages(found.terms, found.n).means().with_values(found.fixed)
