"""How metrics move as the rows with the largest uncertainties are removed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import OptionError
from calcheck.evaluation import evaluate
from calcheck.execution.run import Run
from calcheck.predictions import InMemory
from calcheck.statistics.moments import uncertainties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.metric import Metric
    from calcheck.predictions import Source
    from calcheck.report import Report, Result

PERCENT = 100


def prune(
    source: Source,
    metrics: Sequence[Metric[Any, Any]],
    *,
    up_to: float = 10.0,
    step: float = 1.0,
    run: Run | None = None,
) -> Report:
    """Compute metrics without the largest uncertainties, in steps [ZMS Fig. 2].

    Parameters
    ----------
    source : Source
        Predictions with their targets.
    metrics : sequence of Metric
        What to compute.
    up_to, step : float
        The largest share to remove, and the steps to there, in percent. Rows with equal uncertainties go or stay
        together, so that at most the share is removed.
    run : Run, optional
        Seed, confidence, resamples and progress.

    Returns
    -------
    Report
        A result for each metric and step; its ``subset`` says the share in percent and the rows that are left. A
        warning at step 0 says where a metric leaves the interval it has there.
    """
    if not 0 < up_to < PERCENT:
        msg = f"--up-to must be a share in percent, above 0 and below 100, got {up_to:g}"
        raise OptionError(msg)
    if not 0 < step <= up_to:
        msg = f"--step must be above 0 and at most --up-to ({up_to:g}), got {step:g}"
        raise OptionError(msg)
    run = run or Run()
    rows = source.predictions()
    shares = np.arange(0.0, up_to * (1 + 1e-9), step)
    reports: list[Report] = []
    with source.placed():
        std = uncertainties(rows)
    largest = np.sort(std)[::-1]
    for done, share in enumerate(shares):
        run.progress("removing", done / len(shares))
        removable = int(np.floor(len(rows) * share / 100 * (1 + 1e-12)))
        kept = np.flatnonzero(std <= largest[removable])
        left = InMemory(rows.take(kept)) if len(kept) < len(rows) else InMemory(rows)
        reports.append(evaluate(left, metrics, run=run.silenced()))
    run.progress("removing", 1.0)
    steps = [
        [replace(result, subset={"removed": f"{share:g} %", "rows": report.input.n}) for result in report.results]
        for share, report in zip(shares.tolist(), reports, strict=True)
    ]
    whole = reports[0]
    grouped = [
        _noted([result for results in steps for result in results if (result.metric, result.options) == key])
        for key in ((each.metric, each.options) for each in whole.results)
    ]
    return replace(
        whole,
        input=source.described(),
        results=tuple(result for group in grouped for result in group),
        skipped=tuple(dict.fromkeys(skipped for report in reports for skipped in report.skipped)),
        settings={**whole.settings, "up_to": up_to, "step": step},
    )


def _noted(results: list[Result]) -> list[Result]:
    """Say at the first result which of the others lie outside its interval."""
    first, *others = results
    low, high = first.low, first.high
    if low is None or high is None or first.value is None or not low <= first.value <= high:
        return results
    outside = [
        other.subset["removed"] for other in others if other.value is not None and not low <= other.value <= high
    ]
    if not outside:
        return results
    told = f"leaves the interval of all rows, [{low:.4g}, {high:.4g}], when {outside[0]} are removed"
    return [replace(first, warnings=(*first.warnings, told)), *others]
