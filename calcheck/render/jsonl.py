"""Reports as JSON lines: one result per line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from calcheck.render.json import fields_of

if TYPE_CHECKING:
    from calcheck.report import Report


def render(report: Report) -> str:
    """Return a report as JSON lines: one object for each result, skipped metric and rule."""
    shared = shared_fields(report)
    lines = [{**shared, **fields_of(result)} for result in report.results]
    lines += [{**shared, "metric": skipped.metric, "skipped": skipped.reason} for skipped in report.skipped]
    lines += [{**shared, **fields_of(gate)} for gate in report.gates]
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


def shared_fields(report: Report) -> dict[str, Any]:
    """Return the fields that all lines share: files, number of rows and version."""
    return {
        "file": " ".join(file.path for file in report.input.files),
        "n": report.input.n,
        "calcheck": report.calcheck,
    }
