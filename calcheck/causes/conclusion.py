"""Causes in a report whose answer is no."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calcheck.causes.candidates import Case
from calcheck.causes.commands import column_of, command_of
from calcheck.causes.search import find_causes
from calcheck.predictions import Predictions
from calcheck.reports import Input, Report
from calcheck.reports.conclusion import Cause
from calcheck.typing import AnyArray, Indices, Mask

MOST_ROWS = 2_000  # Rows that causes are looked for in
BLOCKS = 4  # Of consecutive rows, and their mirror images: rows keep their neighbors
OBSERVED = ("--target-std", "--clip", "--rounded")


def with_causes(
    report: Report, rows: Predictions, names: Sequence[str], inside: Mask | None, time: str | None = None
) -> Report:
    """Return a report with the plausible causes of a no.

    ``inside`` are the rows of the worst region of the inputs, and ``time`` is the column of times.
    """
    found = report.conclusion
    if found is None or found.answer != "no" or rows.y is None or rows.y.ndim > 1:
        return report
    if rows.distributions().targets > 1 or rows.distributions().n_draws == 1:
        return report
    chosen = sampled_rows(len(rows))
    own = rows if chosen is None else rows.take(chosen)
    if rows.predictive is not None:
        own = own.with_targets(own.targets(), own.distributions().load())
    case = Case(
        own,
        form_of(report.input),
        any(flag in report.input.options for flag in OBSERVED),
        region="" if report.region is None else report.region.where,
        inside=inside if chosen is None or inside is None else inside[chosen],
        names=rows.columns_of(names),
        step=1 if time is None else rows_of_step(rows.columns[time]),
    )
    causes = tuple(
        Cause(
            cause=each.candidate.name,
            text=each.candidate.text,
            command=command_of(each.candidate, report.input),
            explained=float(min(max(each.explained, 0.0), 1.0)),
        )
        for each in find_causes(case, seed=int(report.settings.get("seed") or 0))
    )
    return replace(report, conclusion=replace(found, causes=causes))


def rows_of_step(times: AnyArray) -> int:
    """Return how many rows each time has, if rows are in the order of times and all have as many; else 1."""
    changes = np.flatnonzero(times[1:] != times[:-1]) + 1
    lengths = np.diff(changes, prepend=0, append=len(times))
    is_even = len(np.unique(times)) == len(lengths) > 1 and (lengths == lengths[0]).all()
    return int(lengths[0]) if is_even else 1


def form_of(read: Input) -> str:
    """Return what a file states about the size of uncertainties."""
    if any(flag in read.options for flag in OBSERVED):
        return "other"
    if column_of(read, "--var"):
        return "var"
    is_normal = read.predictive is not None and read.predictive.startswith(("gaussian", "residuals"))
    return "std" if is_normal and not column_of(read, "--log-std", "--log-var") else "other"


def sampled_rows(n: int) -> Indices | None:
    """Return the rows that causes are looked for in: blocks, and their mirror images; None for all."""
    if n <= MOST_ROWS:
        return None
    length = MOST_ROWS // (2 * BLOCKS)
    starts = np.linspace(0, n // 2 - length, BLOCKS).astype(np.int64)
    first = np.unique((starts[:, None] + np.arange(length)).ravel())
    return np.unique(np.concatenate([first, n - 1 - first]))
