"""What a page shows of a model, from its report and its rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from calcheck.errors import DataError
from calcheck.evaluation import ranked_rows
from calcheck.metrics import METRICS
from calcheck.metrics.base import inapplicable_reason
from calcheck.metrics.coverage import Coverage
from calcheck.predictions import InMemory, Predictions
from calcheck.regions.maps import column_groups, default_variables, make_map, named_variables
from calcheck.statistics.curves import FEW_ROWS, row_intervals
from calcheck.studies.page.document import ModelReport

if TYPE_CHECKING:
    from calcheck.execution.run import Run
    from calcheck.report import Report

NO_WEIGHTS = "means are weighted by sampling weights, and the map and the groups of a page count rows"
WORST = 20  # number of rows in the list of the worst


def model_report(
    name: str,
    report: Report,
    rows: Predictions,
    run: Run,
    *,
    inputs: Sequence[str] = (),
    plot_by: Sequence[str] = (),
    used: Collection[str] = (),
) -> ModelReport:
    """Return what a page shows of a model."""
    if reason := inapplicable_reason(Coverage, rows):
        return ModelReport(name, report, no_map=f"coverage {reason}")
    if is_weighted(report):
        return ModelReport(name, report, no_map=NO_WEIGHTS, worst=_worst_rows(rows, run))
    x, y = named_variables(rows, plot_by) if plot_by else default_variables(rows, inputs)
    independent = not report.has_dependent_rows
    level = next((each.options["level"] for each in report.results if each.metric == "coverage"), None)
    return ModelReport(
        name,
        report,
        map=make_map(rows, x, y, run, level=level, independent=independent),
        groups=column_groups(rows, run, without=used, level=level, independent=independent),
        predictions=row_intervals(rows, Coverage(level).level_of(rows.predictive), inputs=inputs, size=FEW_ROWS),
        worst=_worst_rows(rows, run),
    )


def is_weighted(report: Report) -> bool:
    """Return whether the means of a report are weighted."""
    return any(message.code == "weighted" for result in report.results for message in result.warnings)


def _worst_rows(rows: Predictions, run: Run) -> list[dict[str, Any]]:
    """Return the rows with the largest squared z-scores; of intervals, with the largest interval scores."""
    for name in ("zms", "interval-score"):
        metric, source = METRICS[name]().with_defaults(rows), InMemory(rows)
        if inapplicable_reason(METRICS[name], rows):
            continue
        with suppress(DataError):  # Some distributions have no moments
            return ranked_rows(metric.evaluate(metric.fit(source, run), source, run), rows, -WORST)
    return []
