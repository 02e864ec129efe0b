"""Trend of metrics over a series of files, at growing strength of a disturbance [CCE Fig. 3]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from calcheck.errors import OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.models.comparison import comparison_input, incomparable_reason
from calcheck.report import Report, Result, Skipped

if TYPE_CHECKING:
    from calcheck.metrics.base import Metric
    from calcheck.predictions import Source


def trend(
    sources: Sequence[Source],
    metrics: Sequence[Metric[Any]],
    *,
    positions: Sequence[float] | None = None,
    run: Run | None = None,
) -> Report:
    """Return metrics of a series of files, and their changes from the first."""
    places = list(positions or range(len(sources)))
    _require_places(places, len(sources))
    run = run or Run()
    reasons = {metric: incomparable_reason(metric, sources) for metric in metrics}
    metrics = [metric for metric, reason in reasons.items() if not reason]
    reports = []
    for number, source in enumerate(sources):
        run.progress("files", number / len(sources))
        with source.error_names():
            reports.append(evaluate(source, metrics, run=run.quiet()))
    run.progress("files", 1.0)
    labels = [f"{place:g}" for place in places]
    apart = (
        Skipped(metric=each.info.name, code="inapplicable", reason=reason) for each, reason in reasons.items() if reason
    )
    skipped = dict.fromkeys([*apart, *(each for report in reports for each in report.skipped)])
    return replace(
        reports[0],
        input=comparison_input(labels, [report.input for report in reports]),
        settings={**reports[0].settings, "at": places},
        results=tuple(result for metric in metrics for result in _series(metric, labels, reports)),
        skipped=tuple(skipped),
        overall=None,
    )


def _require_places(places: Sequence[float], count: int) -> None:
    """Raise unless there are at least two files, each with a position, and positions increase."""
    if count < 2:  # noqa: PLR2004 - a trend needs two
        msg = "a trend needs at least two files, got one"
        raise OptionError(msg)
    if len(places) != count or any(later <= earlier for earlier, later in pairwise(places)):
        listed = ", ".join(f"{place:g}" for place in places)
        msg = f"--positions needs {count} increasing numbers, one per file, got {listed}"
        raise OptionError(msg)


def _series(metric: Metric[Any], labels: Sequence[str], reports: Sequence[Report]) -> Iterator[Result]:
    """Yield the results of a metric over the files that have it, with the change from the first that has a value.

    Results without a value, or with an infinite one, have no change.
    """
    first: float | None = None
    for label, report in zip(labels, reports, strict=True):
        for result in report.results:
            if (result.metric, result.options) == (metric.info.name, metric.options()):
                first = result.value if first is None else first
                change = {} if result.value is None or first is None else {"change": result.value - first}
                yield replace(result, slice={"at": label}, details={**result.details, **change})
