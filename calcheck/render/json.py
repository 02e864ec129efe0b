"""Reports as JSON and as JSON lines; an absent number is null."""

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from calcheck.reports import Report

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def render_json(report: "DataclassInstance") -> str:
    """Return a report, or the changes between two reports, as one JSON object."""
    return json.dumps(fields_of(report), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def fields_of(record: "DataclassInstance") -> Any:
    """Return a dataclass as JSON types; curves, and answers for several targets, are absent if there are none."""
    return to_plain(asdict(record, dict_factory=_present))


def _present(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in fields if value or name not in ("curves", "outputs")}


def to_plain(value: Any) -> Any:
    """Return a value as JSON types; numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(name): to_plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def render_jsonl(report: Report) -> str:
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
