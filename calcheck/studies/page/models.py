"""What a page shows of a model, from its report and its rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from calcheck.errors import DataError
from calcheck.evaluation import ranked_rows
from calcheck.execution.run import Run
from calcheck.inference.metric_protocol import RowResults
from calcheck.metrics import METRICS
from calcheck.metrics.base import Metric, inapplicable_reason
from calcheck.metrics.coverage import Coverage
from calcheck.predictions import InMemory, Predictions
from calcheck.regions.maps import column_groups, default_variables, make_map, named_variables
from calcheck.report import Report
from calcheck.statistics.curves import FEW_ROWS, row_intervals
from calcheck.studies.page.document import ModelReport

NO_WEIGHTS = "means are weighted by sampling weights, and the map and the groups of a page count rows"
IN_BATCHES = "the rows are processed in batches"
BY_SIZE = ("zms", "interval-score")  # metrics whose results of rows are sizes of errors for their uncertainties
WORST = 20  # number of rows in the list of the worst


def model_report(
    name: str,
    report: Report,
    evaluated: EvaluatedRows,
    run: Run,
    *,
    inputs: Sequence[str] = (),
    plot_by: Sequence[str] = (),
    used: Collection[str] = (),
) -> ModelReport:
    """Return what a page shows of a model."""
    rows = evaluated.shown
    if rows is None:
        return ModelReport(name, report, no_map=IN_BATCHES)
    if reason := inapplicable_reason(Coverage, rows):
        return ModelReport(name, report, no_map=f"coverage {reason}")
    if is_weighted(report):
        return ModelReport(name, report, no_map=NO_WEIGHTS, worst=evaluated.worst(run))
    x, y = named_variables(rows, plot_by) if plot_by else default_variables(rows, inputs)
    independent = not report.has_dependent_rows
    level = next((each.options["level"] for each in report.results if each.metric == "coverage"), None)
    return ModelReport(
        name,
        report,
        map=make_map(rows, x, y, run, level=level, independent=independent),
        groups=column_groups(rows, run, without=used, level=level, independent=independent),
        predictions=row_intervals(rows, Coverage(level).level_of(rows.predictive), inputs=inputs, size=FEW_ROWS),
        worst=evaluated.worst(run),
    )


def is_weighted(report: Report) -> bool:
    """Return whether the means of a report are weighted."""
    return any(message.code == "weighted" for result in report.results for message in result.warnings)


class EvaluatedRows:
    """The rows that metrics used, and those with the largest errors, as they are evaluated."""

    def __init__(self) -> None:
        self.shown: Predictions | None = None
        self._worst: dict[str, list[dict[str, Any]]] = {}

    def take(self, metric: Metric[Any], shown: Predictions, rows: RowResults) -> None:
        """Take the results of one metric."""
        self.add(metric.info.name, shown, rows)

    def add(self, name: str, shown: Predictions, rows: RowResults) -> None:
        """Add the results of the metric of a name."""
        self.shown = shown
        if name in BY_SIZE:
            self._worst[name] = ranked_rows(rows, shown, -WORST)

    def worst(self, run: Run) -> list[dict[str, Any]]:
        """Return the rows with the largest squared z-scores; of intervals, with the largest interval scores."""
        for name in BY_SIZE:
            if name not in self._worst and self.shown is not None:
                self._worst[name] = _worst_by(METRICS[name](), self.shown, run)
            if self._worst[name]:
                return self._worst[name]
        return []


def _worst_by(metric: Metric[Any], rows: Predictions, run: Run) -> list[dict[str, Any]]:
    """Return the rows with the largest values of a metric that was not evaluated; none if it does not apply."""
    if inapplicable_reason(type(metric), rows):
        return []
    with suppress(DataError):  # Some distributions have no moments
        metric, source = metric.with_defaults(rows), InMemory(rows)
        return ranked_rows(metric.evaluate(metric.fit(source, run), source, run), rows, -WORST)
    return []
