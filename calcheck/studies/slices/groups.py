"""Metrics of groups of rows, also with fits of their own, and of dependent rows."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calcheck import evaluation
from calcheck.conclusion import unjudged_conclusion
from calcheck.conclusion.answer import are_beyond, are_within, size_of
from calcheck.core import __version__
from calcheck.core.filter_conditions import Condition
from calcheck.core.text import percent
from calcheck.dependence.clusters import FEWEST, Clusters, find_clusters, noticed_dependence, order_warnings
from calcheck.errors import DataError, Message, NumericalError, OptionError, RefusedError, absent_value
from calcheck.execution.run import Run, run_settings
from calcheck.inference import metric_protocol, p_values_and_verdicts
from calcheck.inference.bootstrap import EQUAL, null_statistic_of
from calcheck.inference.intervals import infer
from calcheck.inference.null_distribution import NullSimulator, SimulatesNull, multiplier_noise, replicate_values
from calcheck.metrics import METRICS
from calcheck.metrics.base import WEIGHT, Metric, RowMetric, inapplicable_reason
from calcheck.options import TOLERANCE
from calcheck.predictions import InMemory, Predictions, Source
from calcheck.regions import partition as regions
from calcheck.reports import Conclusion, Report, Result, Skipped, Verdict, rejects, results_by_group
from calcheck.reports.conclusion import Effect
from calcheck.statistics import scores
from calcheck.statistics.groups import Means, MeanTerm, effective_count
from calcheck.typing import Indices, Values

Fitted = metric_protocol.FittedMetric[Metric[Any]]
Statistic = Callable[[Metric[Any], Means], Values]


@dataclass(frozen=True, eq=False)
class FittedRows:
    """A metric of all rows, which has groups."""

    metric: Metric[Any]
    basis: metric_protocol.Basis  # The basis of its verdicts
    source: Source  # What it compares: the rows, or another outcome of them
    fit: Any  # Its fit to all rows
    rows: metric_protocol.RowResults
    refit: bool  # Whether it is fitted to the rows of each group alone

    @property
    def has_rows(self) -> bool:
        """Whether it has a value at the input of each row, from one fit to all rows."""
        return self.metric.info.conditional and not self.refit


def groups_of_fit(
    found: FittedRows, groups: Sequence[Indices], simulation: NullSimulator, run: Run, fewest: int
) -> Iterator[Fitted]:
    """Yield the means by group of a metric that has a value at each input, from one fit to all rows.

    Replicates are those of the same fit, with the kernel on targets of the data, so that rows of other groups do not
    matter. If values are known at a sample of the rows only, as for a Nyström approximation, means are over the sample.

    Shapes: groups (m,) each.
    """
    rows = found.rows
    (name, values), *_ = rows.columns.items()
    numbers = np.arange(rows.n) if rows.numbers is None else rows.numbers
    null = _null_of(found, simulation, run)
    for group in groups:
        inside = np.flatnonzero(np.isin(numbers, group))
        if not len(inside):
            yield _undefined(found, len(group), "none of the rows of the group is in the sample with values")
            continue
        warnings = [*rows.warnings]
        if len(inside) < len(group):
            warnings.append(Message("sampled-rows", f"values by group are means over a sample of {len(values):,} rows"))
        if len(inside) < fewest <= len(group):
            text = f"groups with fewer than {fewest} rows in the sample are not judged (--min-rows)"
            warnings.append(Message("few-rows", text))
        part = replace(rows, columns={name: values[inside]}, numbers=None, details={}, warnings=tuple(warnings))
        computed = evaluation.fitted_metric(found.metric, part, found.basis)
        if null is not None and len(inside) >= fewest:
            at_inputs, correction = null
            data_value, *replicates = at_inputs[:, inside].mean(axis=1) + correction
            computed.null = metric_protocol.NullDistribution(np.array(replicates), data_value)
        yield computed


def _null_of(found: FittedRows, simulation: NullSimulator, run: Run) -> tuple[Values, Values] | None:
    """Return the values of data and R replicates at inputs, (1 + R, m), and what their means lack, (1 + R,)."""
    metric = found.metric
    if found.basis.kind != "p" or not len(simulation) or not isinstance(metric, SimulatesNull):
        return None
    null = metric.null_distribution(found.fit, simulation, run)
    at_inputs = None if null is None else null.at_sample if null.at_inputs is None else null.at_inputs
    if null is None or at_inputs is None:
        return None
    correction = np.zeros(len(at_inputs))
    if found.rows.fixed:  # means are corrected by an estimate for all rows
        value = evaluation.fitted_metric(metric, found.rows, found.basis).value
        correction = np.append(value, null.values) - at_inputs.mean(axis=1)
    return at_inputs, correction


def refitted_groups(
    found: FittedRows, groups: Sequence[Indices], simulation: NullSimulator, run: Run, fewest: int
) -> Iterator[Fitted]:
    """Yield a metric of each group, fitted to the rows of the group alone, as are its replicates."""
    metric, quiet = found.metric, run.quiet()
    for group in run.track(f"{metric.info.name}: groups", groups, len(groups)):
        try:
            source = InMemory(found.source.predictions().take(group))
            with np.errstate(all="ignore"):
                fit = metric.fit(source, quiet)
                rows = metric.evaluate(fit, source, quiet)
                computed = evaluation.fitted_metric(metric, rows, found.basis, fit)
                if isinstance(metric, metric_protocol.HasNullStatistic):
                    computed.tested = null_statistic_of(metric, rows).estimate()
            if found.basis.kind == "p" and len(simulation) and len(group) >= fewest:
                own = simulation.take(group)
                null = metric.null_distribution(fit, own, quiet) if isinstance(metric, SimulatesNull) else None
                computed.null = replicate_values([computed], own, quiet, "")[0] if null is None else null
            yield computed
        except RefusedError:
            raise
        except (DataError, NumericalError) as error:
            yield _undefined(found, len(group), f"no value: {error}")


def _undefined(found: FittedRows, count: int, reason: str) -> Fitted:
    """Return a metric without a value in a group of ``count`` rows."""
    rows = metric_protocol.RowResults({}, count=count, warnings=(Message("no-value", reason),))
    return metric_protocol.FittedMetric(found.metric, None, rows, np.nan, found.basis)


def clusters_within(clusters: Clusters, rows: Indices) -> Clusters | None:
    """Return the clusters of some of the rows; None if they are fewer than five."""
    label = np.unique(clusters.label[rows], return_inverse=True)[1]
    return Clusters(label, clusters.inflation) if label.max() + 1 >= FEWEST else None


class DependentGroups:
    """Columns of a metric in the data, and their moments over replicates, by group."""

    def __init__(
        self,
        metric: Metric[Any],  # A function of means of columns
        columns: dict[str, Values],  # The columns of the data, (n,) each
        groups: Sequence[Indices],  # (m,) each, the rows of each group
        clusters: Clusters,  # The clusters of all rows
    ) -> None:
        self.metric, self.groups, self.clusters = metric, groups, clusters
        self.names = tuple(columns)
        self._data = self._matrix(columns)
        self._count, self._sums, self._squares = 0, np.zeros_like(self._data), np.zeros_like(self._data)

    def _matrix(self, columns: dict[str, Values]) -> Values:
        return np.stack([np.asarray(columns[name], dtype=np.float64) for name in self.names], axis=1)

    def add(self, columns: dict[str, Values]) -> None:
        """Add the columns of a replicate."""
        values = self._matrix(columns)
        self._count += 1
        self._sums += values
        self._squares += values**2

    def residuals(self, number: int) -> Values:
        """Return the centered differences of a group from its replicates, with their variance, by cluster, (G, c)."""
        rows = self.groups[number]
        expected = self._sums[rows] / self._count
        away = self._data[rows] - expected
        away -= away.mean(axis=0)
        own = np.sum(away**2, axis=0)
        variance = np.sum(self._squares[rows] / self._count - expected**2, axis=0)
        variance *= self._count / max(self._count - 1, 1)
        known = np.minimum(own, variance) > EQUAL * np.sum(self._data[rows] ** 2, axis=0)
        scale = np.sqrt(np.divide(variance, own, out=np.ones_like(own), where=known))
        sums = np.zeros((len(self.clusters), len(self.names)))
        np.add.at(sums, self.clusters.label[rows], away * scale)
        return sums / len(rows)

    def members(self, number: int) -> Values:
        """Return the number of rows of each cluster in a group, (G, c)."""
        sizes = np.bincount(self.clusters.label[self.groups[number]], minlength=len(self.clusters)).astype(np.float64)
        return np.repeat(sizes[:, None], len(self.names), axis=1)

    def values(self, number: int, noise: Values, statistic: Statistic) -> Values:
        """Return the statistic of a group of a perfect model, given draws of the noise of its means, (r, c)."""
        rows = self.groups[number]
        means = self._sums[rows].mean(axis=0) / self._count + noise
        with np.errstate(all="ignore"):
            return statistic(self.metric, Means(dict(zip(self.names, means.T, strict=True)), len(rows)))


def dependent_group_values(
    metrics: Sequence[Metric[Any]],
    groups: Sequence[Indices],  # (m,) each
    clusters: Clusters,
    simulation: NullSimulator,
    statistic: Statistic,
    run: Run,
) -> list[list[Values | None]]:
    """Return the values of perfect models by metric and group, (r,) each, with the same multipliers of clusters."""
    quiet = run.quiet()
    source = InMemory(simulation.rows)
    found = [
        DependentGroups(each, row_terms(each, each.evaluate(None, source, quiet)), groups, clusters) for each in metrics
    ]
    for rows in run.track("groups: replicates", simulation, len(simulation)):
        replicate = InMemory(rows)
        with np.errstate(all="ignore"):
            for each in found:
                each.add(row_terms(each.metric, each.metric.evaluate(None, replicate, quiet)))
    within = [clusters_within(clusters, rows) for rows in groups]
    judged = [(each, place) for each in found for place, own in enumerate(within) if own is not None]
    residuals = [(each.residuals(place), each.members(place)) for each, place in judged]
    noise = iter(multiplier_noise(residuals, clusters.inflation, run))
    return [
        [None if own is None else each.values(place, next(noise), statistic) for place, own in enumerate(within)]
        for each in found
    ]


GROUP_METRICS = ("standardized-bias", "pit-dispersion", "width-factor", "zms")
FEWEST_ROWS = 30  # Minimum number of rows of a group that is judged
NO_MEAN = "is no mean over rows: pass --refit, which computes it on the rows of each group alone"
NO_CLUSTERS = "has a null distribution for independent rows only: omit --cluster, --time and --block"


def group_metrics() -> list[Metric[Any]]:
    """Return the metrics that are compared by group by default."""
    return [METRICS[name]() for name in GROUP_METRICS]


def file_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns to read, or texts of cuts of columns, besides targets and predictions."""
    return tuple(
        dict.fromkeys(each for each in columns if each.split(":")[0] not in (*regions.PREDICTED, regions.EMBEDDING))
    )


def by_groups(
    source: Source,
    by: Sequence[regions.Cut],
    *,
    metrics: Sequence[Metric[Any]] | None = None,
    min_rows: int | None = None,
    refit: bool = False,
    cross: bool = False,
    run: Run | None = None,
    tolerance: float = TOLERANCE,
) -> Report:
    """Return metrics of all rows, of the groups of each column, and, if ``cross``, of those of all combinations."""
    if min_rows is not None and min_rows < 1:
        raise OptionError(f"--min-rows must be at least 1, got {min_rows}")
    study = _Groups(source, by, run or Run(), FEWEST_ROWS if min_rows is None else min_rows, refit=refit, cross=cross)
    return study.report(group_metrics() if metrics is None else metrics, tolerance)


@dataclass(frozen=True, eq=False)
class _Group:
    """A group of rows: its place in a partition, and what describes it."""

    partition: int
    place: int
    conditions: tuple[Condition, ...]
    label: str
    rows: Indices

    @property
    def slice(self) -> dict[str, Any]:
        """What the report states about the rows of the group."""
        return {"group": self.label, "filter": regions.filter_options(self.conditions), "rows": len(self.rows)}


ALL = "all rows"  # What explains a group that does not differ clearly from the other rows


class _Groups:
    """Metrics of groups, of the data and of all replicates."""

    def __init__(
        self, source: Source, by: Sequence[regions.Cut], run: Run, min_rows: int, *, refit: bool, cross: bool
    ) -> None:
        self.source, self.run, self.min_rows, self.refit = source, run, min_rows, refit
        self.rows = source.predictions()
        if not by:
            raise OptionError("there are no columns to form groups: name at least one")
        if self.rows.predictive is not None and self.rows.predictive.targets > 1:
            raise DataError("groups are judged by one target: pass --only TARGET for one of several")
        self.columns = regions.cut_columns(source, [cut.resolve(self.rows.columns) for cut in by])
        self.partitions = regions.partitions(self.columns, cross=cross)
        self.groups: list[_Group] = []
        for number, partition in enumerate(self.partitions):
            parts = np.split(np.argsort(partition.label, kind="stable"), np.cumsum(partition.counts)[:-1])
            for place, found in enumerate(zip(partition.bins, partition.names, parts, strict=True)):
                self.groups.append(_Group(number, place, *found))
        self.simulation = _simulator(self.rows, run)
        self.clusters = find_clusters(self.rows, run.dependence)
        self.noticed = noticed_dependence(source, run)
        self.skipped: list[Skipped] = []

    def report(self, metrics: Sequence[Metric[Any]], tolerance: float) -> Report:
        """Return the report of metrics."""
        tested = [each for metric in metrics if (each := self._tested(metric)) is not None]
        means = [each for each in tested if _is_mean(each)]
        of_means = iter(self._means(means))
        by_metric = [next(of_means) if _is_mean(each) else self._fitted(each) for each in tested]
        computed = list(zip(*by_metric, strict=True)) or [()] * len(self.groups)
        results = self._explained(means, tuple(self._results(computed)))
        noticed = {} if self.noticed is None else self.noticed.settings
        are_impossible = scores.are_impossible(self.rows)
        counts = {group.label: int(are_impossible[group.rows].sum()) for group in self.groups}
        impossible = tuple(
            Effect(topic="where", within=False, text=f"{label}: {scores.describe_impossible(count)}")
            for label, count in counts.items()
            if count
        )
        return Report(
            calcheck=__version__,
            input=self.source.input_info(),
            settings={
                **noticed,
                **({} if self.clusters is None else {"dependence": self.clusters.details}),
                **run_settings(self.run),
                "groups": len(self.groups),
                "min_rows": self.min_rows,
                "refit": self.refit,
                "tolerance": tolerance,
                "adjustment": "step-down maxT",
            },
            results=results,
            skipped=tuple(self.skipped),
            conclusion=unjudged_conclusion(noticed, impossible=impossible)
            or conclude_groups(results, impossible, tolerance),
        )

    def _explained(self, tested: Sequence[FittedRows], results: tuple[Result, ...]) -> tuple[Result, ...]:
        """Return the results; those of groups that all rows or groups of another column explain say so."""
        terms = {each.metric.info.name: tuple(row_terms(each.metric, each.rows).values()) for each in tested}
        values = {name: own[0] for name, own in terms.items() if len(own) == 1 and np.isfinite(own[0]).all()}
        failed = {
            label: [one for one in found if one in values and found[one].verdict == "fail"]
            for label, found in results_by_group(results).items()
        }
        single = [each for each in self.groups if 0 < each.partition <= len(self.columns) and failed.get(each.label)]
        evidence = {
            each.label: max((regions.deviation(values[name], each.rows), name) for name in failed[each.label])
            for each in single
        }
        causes, names = list[_Group](), {name: ALL for name, (size, _) in evidence.items() if size < regions.CLEAR}
        single = [each for each in single if each.label not in names]
        for group in sorted(single, key=lambda each: -evidence[each.label][0]):
            own = values[evidence[group.label][1]]
            columns = (self.columns[each.partition - 1] for each in causes if each.partition != group.partition)
            found = next((each.column for each in columns if regions.is_explained(own, group.rows, each.label)), None)
            if found is None:
                causes.append(group)
            else:
                names[group.label] = found
        explained = {label: {"explained_by": name} for label, name in names.items()}
        return tuple(
            replace(each, slice={**each.slice, **explained.get(str(each.slice["group"]), {})}) for each in results
        )

    def _tested(self, metric: Metric[Any]) -> FittedRows | None:
        """Return a metric of all rows; None, with a reason in the report, if it has no groups."""
        metric, own = evaluation.adapt_metric(metric, self.source)
        reason = inapplicable_reason(type(metric), own.predictions())
        if self.clusters is not None and not isinstance(metric, RowMetric):
            reason = reason or NO_CLUSTERS
        if reason:
            self.skipped.append(Skipped(metric=metric.info.name, code="inapplicable", reason=reason))
            return None
        try:
            with np.errstate(all="ignore"):
                fit = metric.fit(own, self.run)
                found = metric.evaluate(fit, own, self.run)
        except RefusedError:
            raise
        except (DataError, NumericalError) as error:
            self.skipped.append(Skipped(metric=metric.info.name, code="error", reason=str(error)))
            return None
        stated = p_values_and_verdicts.StatedShape.from_predictive(own.predictions().predictive)
        basis = p_values_and_verdicts.basis_of(metric, stated, found, replicates=bool(len(self.simulation)))
        tested = FittedRows(metric, basis, own, fit, found, self.refit)
        if self.refit or tested.has_rows or _is_mean(tested):
            return tested
        self.skipped.append(Skipped(metric=metric.info.name, code="inapplicable", reason=NO_MEAN))
        return None

    def _means(self, tested: Sequence[FittedRows]) -> list[list[Fitted]]:
        """Return metrics that are functions of means over rows, by metric and group."""
        metrics = [each.metric for each in tested]
        nulls: Sequence[Sequence[Values | None]]
        if self.clusters is not None and len(self.simulation):
            rows = [each.rows for each in self.groups]
            nulls = dependent_group_values(metrics, rows, self.clusters, self.simulation, _statistic, self.run)
        else:
            found = self._replicate_values(metrics)
            nulls = [[values[group.partition][group.place] for group in self.groups] for values in found]
        return [
            [self._computed(group, each.metric, each.basis, null) for group, null in zip(self.groups, own, strict=True)]
            for each, own in zip(tested, nulls, strict=True)
        ]

    def _fitted(self, tested: FittedRows) -> list[Fitted]:
        """Return a metric with a fit by group."""
        own = tested.source is self.source
        simulation = self.simulation if own else _simulator(tested.source.predictions(), self.run)
        by_group = groups_of_fit if tested.has_rows else refitted_groups
        found = list(by_group(tested, [each.rows for each in self.groups], simulation, self.run, self.min_rows))
        for each in found:
            each.shares_replicates = own
        return found

    def _replicate_values(self, metrics: Sequence[Metric[Any]]) -> list[list[Values]]:
        """Return the values of each metric by partition, (g, R) each: each metric runs once on all rows."""
        found = [[np.empty((each.classes, len(self.simulation))) for each in self.partitions] for _ in metrics]
        quiet = self.run.quiet()
        replicates = self.run.track("groups: replicates", self.simulation, len(self.simulation))
        for number, rows in enumerate(replicates):
            replicate = InMemory(rows)
            for metric, values in zip(metrics, found, strict=True):
                with np.errstate(all="ignore"):
                    columns = row_terms(metric, metric.evaluate(None, replicate, quiet))
                    for partition, own in zip(self.partitions, values, strict=True):
                        means = {name: partition.means(each) for name, each in columns.items()}
                        own[:, number] = _statistic(metric, Means(means, len(partition.label)))
        return found

    def _computed(
        self, group: _Group, metric: Metric[Any], basis: metric_protocol.Basis, null: Values | None
    ) -> Fitted:
        """Return a metric of a group with its null distribution."""
        with np.errstate(all="ignore"):
            rows = metric.evaluate(None, InMemory(self.rows.take(group.rows)), self.run)
            found = evaluation.fitted_metric(metric, rows, basis)
            if isinstance(metric, metric_protocol.HasNullStatistic):
                fixed = metric.at_fixed_levels(rows) if isinstance(metric, metric_protocol.HasFixedLevels) else rows
                found.tested = null_statistic_of(metric, fixed).estimate()
        if basis.kind == "p" and null is not None and not self._unjudged(group):
            found.null = metric_protocol.NullDistribution(null)
        return found

    def _results(self, computed: Sequence[Sequence[Fitted]]) -> Iterator[Result]:
        """Yield the results of each group, with adjusted p-values."""
        adjusted = iter(p_values_and_verdicts.adjusted_by_family([each for line in computed for each in line]))
        warnings = (
            *evaluation.data_warnings(self.source, self.rows.predictive),
            *order_warnings(self.source, self.run, self.noticed),
            *(() if self.clusters is None else self.clusters.messages),
        )
        lines = zip(self.groups, computed, strict=True)
        for group, line in self.run.track("groups: intervals", lines, len(self.groups)):
            with np.errstate(all="ignore"):
                for each, interval in zip(line, self._intervals(group, line), strict=True):
                    inference = p_values_and_verdicts.compare_with_null(each, interval, self.run)
                    if self.noticed is not None and inference.verdict != "none":
                        inference = p_values_and_verdicts.without_verdict(inference, self.noticed.reason)
                    if text := self._unjudged(group):
                        inference = replace(inference, warnings=(Message("few-rows", text),))
                    found = p_values_and_verdicts.with_adjusted(inference, next(adjusted))
                    own = (one for one in each.rows.warnings if one.code != "weighted")  # The slice states the rows
                    verdict: Verdict = "none"  # Without a p-value, or with too few replicates
                    if found.p_value_adjusted is not None and found.verdict != "none":
                        verdict = "fail" if rejects(found.p_value_adjusted, self.run.confidence) else "pass"
                    found = replace(found, verdict=verdict, warnings=(*warnings, *own, *found.warnings))
                    found = replace(found, direction=each.direction(found))
                    if math.isinf(each.value):
                        found = replace(found, warnings=(*found.warnings, absent_value(each.value)))
                    weight = each.rows.terms.get(WEIGHT)
                    weights = None if weight is None else weight.values
                    count = {} if weights is None else {"effective_rows": effective_count(weights)}
                    yield each.metric.result(each.value, group.slice | count, found)

    def _intervals(self, group: _Group, line: Sequence[Fitted]) -> Iterator[metric_protocol.IntervalInference]:
        """Yield the intervals of the metrics of a group; none for those without a value, or with too few clusters."""
        known, quiet = [each for each in line if each.rows.columns or each.rows.terms], self.run.quiet()
        within = None if self.clusters is None else clusters_within(self.clusters, group.rows)
        has_few_clusters = self.clusters is not None and within is None
        found = iter(infer(known, replace(quiet, resamples=0) if has_few_clusters else quiet, within))
        for each in line:
            own = next(found) if each in known else metric_protocol.IntervalInference()
            if has_few_clusters and isinstance(each.metric, metric_protocol.HasLimits):
                own = replace(own, low=None, high=None, interval=None)
            yield replace(own, p_value=None) if self._unjudged(group) else own

    def _unjudged(self, group: _Group) -> str:
        """Return why a group is not judged; "" if it is."""
        if len(group.rows) < self.min_rows:
            return f"groups with fewer than {self.min_rows} rows are not judged (--min-rows)"
        if self.clusters is not None and clusters_within(self.clusters, group.rows) is None:
            return f"groups with fewer than {FEWEST} clusters are not judged"
        return ""


def _simulator(rows: Predictions, run: Run) -> NullSimulator:
    """Return the simulator of enough replicates that adjusted p-values can be as small as one-sided ones."""
    found = NullSimulator(rows, run)
    return found if run.replicates is not None else NullSimulator(rows, run, numbers=range(2 * len(found) + 1))


def row_terms(metric: Metric[Any], found: metric_protocol.RowResults) -> dict[str, Values]:
    """Return the terms by name, (n,) each, whose means determine a metric; none if it depends on more than these."""
    if isinstance(metric, metric_protocol.HasFixedLevels):
        found = metric.at_fixed_levels(found)
    terms = found.terms or {name: MeanTerm(values) for name, values in found.columns.items()}
    values = {name: term.values for name, term in terms.items() if term.groups is None}
    known = {name: each for name, each in values.items() if each is not None}
    return known if len(known) == len(terms) and not found.fixed else {}


def _is_mean(tested: FittedRows) -> bool:
    """Return whether a metric is a function of means over rows."""
    return isinstance(tested.metric, RowMetric) and bool(row_terms(tested.metric, tested.rows))


def _statistic(metric: Metric[Any], means: Means) -> Values:
    """Return what is compared with replicates, as a function of means."""
    return metric.null_statistic(means) if isinstance(metric, metric_protocol.HasNullStatistic) else metric.value(means)


def conclude_groups(results: Sequence[Result], impossible: Sequence[Effect], tolerance: float) -> Conclusion | None:
    """Return what is wrong in which groups; None if no group is judged."""
    if all(result.verdict == "none" for result in results) and not impossible:
        return None
    others = [result for result in results if not result.is_impossible]
    effects = (*impossible, *fault_effects(others, tolerance))
    if effects:
        return concluded(effects)
    text = "no group differs from a perfect model by more than chance"
    return Conclusion(answer="yes", effects=(Effect(topic="where", within=True, text=text),))


def concluded(effects: Sequence[Effect]) -> Conclusion:
    """Return the conclusion from the effects of groups or regions that differ from a perfect model."""
    if all(each.within for each in effects):
        return Conclusion(answer="yes", effects=tuple(effects))
    is_no = any(each.within is False for each in effects)
    return Conclusion(answer="no" if is_no else "not-shown", effects=tuple(effects))


def fault_effects(results: Sequence[Result], tolerance: float, *, searched: bool = False) -> tuple[Effect, ...]:
    """Return what is wrong in each group or region that fails.

    A group is wrong unless that is shown to be within the tolerance, as all rows are. A region that was searched for,
    where errors are largest, is wrong if that is shown to be beyond it, as local errors are.
    """
    effects = []
    for label, own in results_by_group(results).items():
        if faults := regions.describe_faults(own):
            first = next(each for each in own.values() if each.verdict == "fail")
            text, inside = regions.sentence(label, int(first.slice["rows"]), faults), are_within(own, tolerance)
            wrong = not inside and (not searched or are_beyond(own, tolerance))
            if not wrong:
                text += f", {'within' if inside else 'not shown to be beyond'} {percent(tolerance, 1)}"
            text += f"; explained by {first.slice['explained_by']}" if "explained_by" in first.slice else ""
            effects.append(replace(size_of(own), topic="where", within=False if wrong else inside or None, text=text))
    return tuple(effects)
