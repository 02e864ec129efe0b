"""Metrics of groups: with fits of their own, and of dependent rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.dependence.clusters import FEWEST, Clusters
from calcheck.errors import DataError, Message, NumericalError, RefusedError
from calcheck.evaluation import fitted_metric
from calcheck.inference.metric_protocol import HasNullStatistic
from calcheck.inference.multiplier_null import multiplier_noise
from calcheck.inference.null_distribution import FittedMetric, NullSimulator, SimulatesNull, replicate_values
from calcheck.inference.results import NullDistribution, RowResults
from calcheck.inference.verdicts import EQUAL, Basis, null_statistic_of
from calcheck.metrics.base import Metric
from calcheck.predictions import InMemory, Source
from calcheck.statistics.groups import Means
from calcheck.typing import Indices, Values

if TYPE_CHECKING:
    from calcheck.execution.run import Run

Fitted = FittedMetric[Metric[Any]]
Statistic = Callable[[Metric[Any], Means], Values]


@dataclass(frozen=True, eq=False)
class FittedRows:
    """A metric of all rows, which has groups."""

    metric: Metric[Any]
    basis: Basis  # The basis of its verdicts
    source: Source  # What it compares: the rows, or another outcome of them
    fit: Any  # Its fit to all rows
    rows: RowResults
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
        warnings = (*rows.warnings, *_sampled(len(values), len(inside), len(group), fewest))
        part = replace(rows, columns={name: values[inside]}, numbers=None, details={}, warnings=warnings)
        computed = fitted_metric(found.metric, None, part, found.basis)
        if null is not None and len(inside) >= fewest:
            data_value, *replicates = null.means(inside)
            computed.null = NullDistribution(np.array(replicates), data_value)
        yield computed


def _sampled(count: int, inside: int, rows: int, fewest: int) -> Iterator[Message]:
    """Yield warnings about a group of which only some rows are in the sample with values."""
    if inside < rows:
        yield Message("sampled-rows", f"values by group are means over a sample of {count:,} rows")
    if inside < fewest <= rows:
        yield Message("few-rows", f"groups with fewer than {fewest} rows in the sample are not judged (--min-rows)")


@dataclass(frozen=True, eq=False)
class _PointwiseNull:
    """Values of the data and of R replicates at inputs, (1 + R, m), and what is added to their means, (1 + R,)."""

    at_inputs: Values
    correction: Values

    def means(self, inside: Indices) -> Values:
        """Return the means over some inputs, (1 + R,): of the data, then of the replicates."""
        return np.asarray(self.at_inputs[:, inside].mean(axis=1) + self.correction)


def _null_of(found: FittedRows, simulation: NullSimulator, run: Run) -> _PointwiseNull | None:
    """Return the values of data and replicates at inputs; None without a null distribution."""
    metric = found.metric
    if found.basis.kind != "p" or not len(simulation) or not isinstance(metric, SimulatesNull):
        return None
    null = metric.null_distribution(found.fit, simulation, run)
    at_inputs = None if null is None else null.at_sample if null.at_inputs is None else null.at_inputs
    if null is None or at_inputs is None:
        return None
    correction = np.zeros(len(at_inputs))
    if found.rows.fixed:  # means are corrected by an estimate for all rows
        value = fitted_metric(metric, None, found.rows, found.basis).value
        correction = np.append(value, null.values) - at_inputs.mean(axis=1)
    return _PointwiseNull(at_inputs, correction)


def refitted_groups(
    found: FittedRows, groups: Sequence[Indices], simulation: NullSimulator, run: Run, fewest: int
) -> Iterator[Fitted]:
    """Yield a metric of each group, fitted to the rows of the group alone, as are its replicates."""
    quiet = run.quiet()
    for number, group in enumerate(groups):
        try:
            computed = _refitted(found, group, quiet)
            if found.basis.kind == "p" and len(simulation) and len(group) >= fewest:
                computed.null = _own_null(computed, simulation.take(group), quiet)
            yield computed
        except RefusedError:
            raise
        except (DataError, NumericalError) as error:
            yield _undefined(found, len(group), f"no value: {error}")
        run.progress(f"{found.metric.info.name}: groups", (number + 1) / len(groups))


def _refitted(found: FittedRows, group: Indices, run: Run) -> Fitted:
    metric, source = found.metric, InMemory(found.source.predictions().take(group))
    with np.errstate(all="ignore"):
        fit = metric.fit(source, run)
        rows = metric.evaluate(fit, source, run)
        computed = fitted_metric(metric, fit, rows, found.basis)
        if isinstance(metric, HasNullStatistic):
            computed.tested = null_statistic_of(metric, rows).estimate()
    return computed


def _own_null(computed: Fitted, simulation: NullSimulator, run: Run) -> NullDistribution | None:
    """Return the null distribution by the metric's own method, if it has one, else from replicates one by one."""
    metric = computed.metric
    found = metric.null_distribution(computed.fit, simulation, run) if isinstance(metric, SimulatesNull) else None
    return replicate_values([computed], simulation, run, "")[0] if found is None else found


def _undefined(found: FittedRows, count: int, reason: str) -> Fitted:
    """Return a metric without a value in a group of ``count`` rows."""
    rows = RowResults({}, count=count, warnings=(Message("no-value", reason),))
    return FittedMetric(found.metric, None, rows, np.nan, found.basis)


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
        """Return the centered differences of a group from its replicates, by cluster, (G, c), over its rows.

        Their variance is that of the replicates; only its increase by dependence is from the data.
        """
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
    found = [DependentGroups(each, each.evaluate(None, source, quiet).columns, groups, clusters) for each in metrics]
    for number, rows in enumerate(simulation):
        replicate = InMemory(rows)
        with np.errstate(all="ignore"):
            for each in found:
                each.add(each.metric.evaluate(None, replicate, quiet).columns)
        run.progress("groups: replicates", (number + 1) / len(simulation))
    within = [clusters_within(clusters, rows) for rows in groups]
    judged = [(each, place) for each in found for place, own in enumerate(within) if own is not None]
    residuals = [(each.residuals(place), each.members(place)) for each, place in judged]
    noise = iter(multiplier_noise(residuals, clusters.inflation, run))
    return [
        [None if own is None else each.values(place, next(noise), statistic) for place, own in enumerate(within)]
        for each in found
    ]
