"""Reports as CSV and JSON lines: one result per line."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from calcheck.csv_cells import protect
from calcheck.render.cells import outcome
from calcheck.render.json import to_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calcheck.report import Report

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
)


def to_csv(report: Report) -> str:
    """Return a report as CSV: one line for each result, skipped metric and rule."""
    rows = list(_lines(report))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return buffer.getvalue()


def to_jsonl(report: Report) -> str:
    """Return a report as JSON lines: one object for each result, skipped metric and rule."""
    shared = _shared(report)
    lines = [{**shared, **to_plain(asdict(result))} for result in report.results]
    lines += [{**shared, "metric": skipped.metric, "skipped": skipped.reason} for skipped in report.skipped]
    lines += [{**shared, **to_plain(asdict(gate))} for gate in report.gates]
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


def _lines(report: Report) -> Iterator[dict[str, Any]]:
    subset = dict.fromkeys(name for result in report.results for name in result.slice)
    for result in report.results:
        numbers = {name: getattr(result, name) for name in NUMBERS}
        yield {
            **_shared(report),
            "metric": result.metric,
            **{name: result.slice.get(name) for name in subset},
            "unit": result.unit,
            **numbers,
            "interval": result.interval,
            "verdict": result.verdict,
            "notes": "; ".join(result.warnings),
        }
    for skipped in report.skipped:
        yield {**_shared(report), "metric": skipped.metric, "verdict": "skipped", "notes": skipped.reason}
    for gate in report.gates:
        yield {**_shared(report), "rule": gate.rule, "verdict": outcome(gate), "notes": gate.message}


def _shared(report: Report) -> dict[str, Any]:
    """Return the fields that all lines share: files, number of rows and version."""
    return {
        "file": " ".join(file.path for file in report.input.files),
        "n": report.input.n,
        "calcheck": report.calcheck,
    }


def _cell(value: Any) -> Any:
    """Return a cell that a spreadsheet does not evaluate; an absent number is empty."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return protect(value) if isinstance(value, str) else value
