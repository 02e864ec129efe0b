"""The gate without rules: no verdict may be fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.gate.messages import format_values
from calcheck.gate.rules import Name
from calcheck.report import Gate

if TYPE_CHECKING:
    from calcheck.report import Report, Result


def verdict_gates(report: Report) -> tuple[Gate, ...]:
    """Return a gate for each result that has a verdict: violated if that is ``"fail"``.

    A verdict ``"undecided"`` is no violation. A metric that tests the model but has no value violates its gate, as in
    rules. Other results without a verdict have no gate.
    """
    return tuple(_gate(result) for result in report.results if result.verdict != "none" or _is_missing(result))


def _is_missing(result: Result) -> bool:
    """Return whether a metric that tests the model has no value; not if it could not have a verdict anyway."""
    untested = any(message.code == "no-verdict" for message in result.warnings)
    return result.value is None and result.alternative != "none" and not untested


def _gate(result: Result) -> Gate:
    """Return the gate of a result; its message also states the value."""
    name = str(Name((result.metric,), group=str(result.slice.get("group", ""))))
    values: dict[str, float | str | None] = {f"{name}.verdict": result.verdict, name: result.value}
    return Gate(
        rule=f"{name}.verdict == fail",
        level="fail",
        passed=result.verdict != "fail" and not _is_missing(result),
        message=format_values(values, lambda _: result),
        values=values,
    )
