"""Reports as CSV, one line for each result; an absent number is an empty cell."""

import csv
import io
import math
from collections.abc import Iterator
from typing import Any

from calcheck.core.text import protect
from calcheck.render.json import shared_fields
from calcheck.render.numbers_and_notes import outcome
from calcheck.reports import Report

NUMBERS = (
    "value",
    "low",
    "high",
    "reference",
    "reference_low",
    "reference_high",
    "zeta",
    "zeta_mc_error",
    "p_value",
    "p_value_mc_error",
    "p_value_adjusted",
)

STUDY_DETAILS = ("rank", "tau", "subsets", "deviation", "change")
"""Details of comparisons, sweeps and other studies that have a column if a result has them."""


def render_csv(report: Report) -> str:
    """Return a report as CSV: one line for each result, skipped metric and rule."""
    rows = list(_lines(report))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return buffer.getvalue()


def metric_lines(report: Report) -> Iterator[dict[str, Any]]:
    """Yield the columns of each result, then of each skipped metric."""
    subset = dict.fromkeys(name for result in report.results for name in result.slice)
    studied = [name for name in STUDY_DETAILS if any(name in result.details for result in report.results)]
    for result in report.results:
        yield {
            "metric": result.metric,
            **{name: result.slice.get(name) for name in subset},
            "unit": result.unit,
            **{name: getattr(result, name) for name in NUMBERS},
            "interval": result.interval,
            "verdict": result.verdict,
            "direction": result.direction,
            **{name: result.details.get(name) for name in studied},
            "notes": "; ".join(message.text for message in result.warnings),
        }
    for skipped in report.skipped:
        yield {"metric": skipped.metric, "verdict": "skipped", "notes": skipped.reason}


def _lines(report: Report) -> Iterator[dict[str, Any]]:
    shared = shared_fields(report)
    yield from ({**shared, **line} for line in metric_lines(report))
    for gate in report.gates:
        yield {**shared, "rule": gate.rule, "verdict": outcome(gate), "notes": gate.message}


def _cell(value: Any) -> Any:
    """Return a cell that a spreadsheet does not evaluate; an absent number is empty."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return protect(value) if isinstance(value, str) else value
