"""Change of metrics as the rows with the largest uncertainties are removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError, Message
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.predictions import InMemory, Source
from calcheck.statistics.moments import uncertainties
from calcheck.studies.reject.study import PERCENT, ROUNDING, RejectionGrid

if TYPE_CHECKING:
    from calcheck.metrics.base import Metric
    from calcheck.report import Report, Result
    from calcheck.typing import Indices, Values

METRICS_OF_ALL = ("zms", "rce")
"""Metrics of the remaining rows by default."""
TIED = Message(
    "tied-uncertainties",
    "rows with equal uncertainties are removed together, so steps that would remove no further row are omitted",
)


def prune(
    source: Source,
    metrics: Sequence[Metric[Any]],
    *,
    max_percent: float = 10.0,
    step: float = 1.0,
    run: Run | None = None,
) -> Report:
    """Return metrics after removing the rows with the largest uncertainties, in steps [ZMS Fig. 2]."""
    shares = RejectionGrid(step, max_percent).percentages()
    run = run or Run()
    rows = source.predictions()
    with source.error_context():
        kept = list(_kept(uncertainties(rows), shares))
    reports = []
    for done, left in enumerate(kept):
        run.progress("removed rows", done / len(kept))
        reports.append(evaluate(InMemory(rows.take(left)), metrics, run=run.quiet()))
    run.progress("removed rows", 1.0)
    whole = reports[0]
    grouped = [_noted(each, reports) for each in whole.results]
    notes = (*source.warnings(), *((TIED,) if len(kept) < len(shares) else ()))
    grouped = [[_with_notes(first, *notes), *others] for first, *others in grouped]
    return replace(
        whole,
        input=source.input_info(),
        results=tuple(result for group in grouped for result in group),
        settings={**whole.settings, "max_percent": max_percent, "step": step},
        overall=None,
    )


def _kept(std: Values, shares: Values) -> Iterator[Indices]:
    """Yield the remaining rows at each step that removes further rows."""
    largest, before = np.sort(std)[::-1], 0
    for share in shares:
        removable = int(np.floor(len(std) * share / PERCENT * (1 + ROUNDING)))
        left = np.flatnonzero(std <= largest[removable])
        if len(left) != before:
            yield left
        before = len(left)
    if before == len(std):
        msg = (
            f"rows with equal uncertainties are removed together, and {shares[-1]:g} % is too little to remove any."
            " Pass a larger --max-percent"
        )
        raise DataError(msg)


def _noted(first: Result, reports: Sequence[Report]) -> list[Result]:
    """Return one metric's results over the steps, with notes about leaving the interval of all rows and about gaps."""
    n, found, notes = reports[0].input.n, [], []
    for report in reports:
        removed = f"{PERCENT * (1 - report.input.n / n):.3g} %"
        same = [result for result in report.results if (result.metric, result.options) == (first.metric, first.options)]
        reasons = [skipped.reason for skipped in report.skipped if skipped.metric == first.metric]
        found += [replace(result, slice={"removed": removed, "rows": report.input.n}) for result in same[:1]]
        notes += [
            Message("not-computed", f"not computed when {removed} of the rows are removed: {reason}")
            for reason in reasons
            if not same
        ]
    found = [_with_change(each, first) for each in found]
    outside = [each.slice["removed"] for each in found if _outside(each.value, first)]
    if outside and not _outside(first.value, first):
        limits = f"[{first.low:.4g}, {first.high:.4g}]"
        text = f"leaves its interval for all rows, {limits}, when {outside[0]} of the rows are removed"
        notes.insert(0, Message("outside-interval", text))
    return [_with_notes(found[0], *notes[:2]), *found[1:]]


def _with_change(result: Result, whole: Result) -> Result:
    """Return a result with its change from that of all rows, if both have a value."""
    if result.value is None or whole.value is None:
        return result
    return replace(result, details={**result.details, "change": result.value - whole.value})


def _outside(value: float | None, whole: Result) -> bool:
    """Return whether a value is outside the interval of all rows; False without an interval."""
    if value is None or whole.low is None or whole.high is None:
        return False
    return not whole.low <= value <= whole.high


def _with_notes(result: Result, *notes: Message) -> Result:
    return replace(result, warnings=(*result.warnings, *notes))
