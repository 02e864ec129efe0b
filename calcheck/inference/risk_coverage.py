"""Risk-coverage curves: metrics of the retained rows as rows are rejected by a criterion, or at random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calcheck.execution.run import RandomStream, Run
from calcheck.inference.bootstrap import BLOCK_DRAWS_IN_GROUPS
from calcheck.inference.metric_protocol import InferableMetric
from calcheck.inference.results import RowResults
from calcheck.statistics.groups import Averages, Means, MeanTerm, TieGroups, cumulative_at
from calcheck.typing import Indices, Values

MetricRows = tuple[InferableMetric, RowResults]
Curves = dict[tuple[str, str], Values]


@dataclass(frozen=True, eq=False)
class RejectionCurves:
    """Metrics of the retained rows when the rows with the largest values of a criterion are rejected.

    Tied rows are rejected in equal parts: the means are expectations over random orders of ties, and a metric is a
    function of these means. A constant criterion corresponds to random rejection.
    """

    row_results: Sequence[MetricRows]  # Metrics that are functions of column means, with their results for the n rows
    criteria: Mapping[str, Values]  # The criteria, (n,) each, by name
    retained: Indices  # (s,), the numbers of retained rows, >= 1, in descending order

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(next(iter(self.criteria.values())))

    @cached_property
    def _averages(self) -> Averages:
        terms = {}
        for criterion, values in self.criteria.items():
            groups = TieGroups(values)
            terms[f"{criterion}/"] = MeanTerm(groups=groups)
            for metric, rows in self.row_results:
                terms |= {
                    f"{criterion}/{metric.info.name}/{name}": MeanTerm(column, groups)
                    for name, column in rows.columns.items()
                }
        return Averages(terms, self.n)

    def curves(self) -> Curves:
        """Return the curve of each metric and criterion, (s,)."""
        return self._curves(self._averages.means())

    def resampled(self, resamples: int, run: Run) -> Curves:
        """Return the curves of resampled rows, with their criteria, (resamples, s)."""
        size = max(1, BLOCK_DRAWS_IN_GROUPS // self.n)
        parts = []
        for block, start in enumerate(range(0, resamples, size)):
            rng = run.rng(RandomStream.RESAMPLES, block)
            parts.append(self._curves(self._averages.resampled(min(size, resamples - start), rng)))
            run.progress("resamples", min(1.0, (start + size) / resamples))
        return {pair: np.concatenate([part[pair] for part in parts]) for pair in parts[0]}

    def random_orders(self, orders: int, run: Run) -> dict[str, Values]:
        """Return the curves of each metric when rows are rejected in random orders, (orders, s)."""
        columns = np.concatenate(
            [np.stack(list(rows.columns.values()), axis=1) for _, rows in self.row_results], axis=1
        )
        size = max(1, BLOCK_DRAWS_IN_GROUPS // columns.size)
        parts = []
        for block, start in enumerate(range(0, orders, size)):
            rng = run.rng(RandomStream.PERMUTATIONS, block)
            order = rng.permuted(np.tile(np.arange(self.n), (min(size, orders - start), 1)), axis=1)
            parts.append(np.cumsum(columns[order], axis=1)[:, self.retained - 1] / self.retained[:, None])
            run.progress("random orders", min(1.0, (start + size) / orders))
        means = iter(np.moveaxis(np.concatenate(parts), 2, 0))  # (orders, s) each
        return {metric.info.name: self._value(metric, rows, means) for metric, rows in self.row_results}

    def _curves(self, means: Mapping[str, Values]) -> Curves:
        shares, found = self.retained / self.n, {}
        for criterion in self.criteria:
            counts = means[f"{criterion}/"]
            for metric, rows in self.row_results:
                sums = (means[f"{criterion}/{metric.info.name}/{name}"] for name in rows.columns)
                kept = (cumulative_at(shares, counts, each) / shares for each in sums)
                found[metric.info.name, criterion] = self._value(metric, rows, kept)
        return found

    def _value(self, metric: InferableMetric, rows: RowResults, means: Iterator[Values]) -> Values:
        """Return the metric at the means of its columns; consume these means from the iterator, in column order."""
        named = {name: next(means) for name in rows.columns}
        return np.asarray(metric.value(Means({**named, **rows.fixed}, self.n)))


def area(rejected: Values, curves: Values) -> Values:
    """Return the areas under curves (..., s) over the rejected shares (s,), by the trapezoidal rule."""
    return np.asarray(np.trapezoid(curves, rejected, axis=-1))
