"""Results held against stored ones: what has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calcheck.gate.messages import format_value, format_values
from calcheck.report import Gate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Report, Result


@dataclass(frozen=True)
class Tolerance:
    """A change that passes: ``atol + rtol abs(stored value)`` at most."""

    rtol: float
    atol: float

    def gate(self, now: Result, stored: Result) -> Gate:
        """Hold a value against the stored one."""
        rule, passed = f"{now.metric} stays as it was stored", False
        if stored.value is not None:
            room = self.atol + self.rtol * abs(stored.value)
            rule = f"{now.metric} stays within {format_value(stored.value)} ± {format_value(room)}"
            passed = now.value is not None and abs(now.value - stored.value) <= room
        return _gate(rule, now, stored, ("value",), passed=passed)


@dataclass(frozen=True)
class StoredInterval:
    """A change that passes: one that stays inside the stored interval."""

    def gate(self, now: Result, stored: Result) -> Gate:
        """Hold a value against the stored interval."""
        rule, passed, caution = f"{now.metric} stays in its stored interval", False, ""
        if stored.low is not None and stored.high is not None:
            rule = f"{now.metric} stays within [{format_value(stored.low)}, {format_value(stored.high)}]"
            passed = now.value is not None and stored.low <= now.value <= stored.high
            if not passed and stored.value is not None and not stored.low <= stored.value <= stored.high:
                caution = f", and {format_value(stored.value)} was stored, outside too: compare {now.metric} by --rtol"
        return _gate(rule, now, stored, ("low", "high"), passed=passed, caution=caution)


Allowed = Tolerance | StoredInterval


def compare_with_baseline(report: Report, base: Sequence[Result], allowed: Allowed) -> tuple[Gate, ...]:
    """Hold stored results against those of the same metrics now.

    Parameters
    ----------
    report : Report
        What was found now.
    base : sequence of Result
        What was stored, of metrics that the report has too.
    allowed : Tolerance or StoredInterval
        Which changes pass.
    """
    results = {result.metric: result for result in report.results}
    return tuple(allowed.gate(results[stored.metric], stored) for stored in base)


def _gate(rule: str, now: Result, stored: Result, fields: tuple[str, ...], *, passed: bool, caution: str = "") -> Gate:
    """Tell what was found; of what was stored the rule tells, but for what is absent."""
    base: dict[str, float | str | None] = {f"base.{now.metric}.{name}": getattr(stored, name) for name in fields}
    absent = {name: value for name, value in base.items() if value is None}
    message = format_values({now.metric: now.value, **absent}, lambda name: now if name == now.metric else stored)
    return Gate(
        rule=rule,
        level="fail",
        passed=passed,
        message=message + caution,
        values={now.metric: now.value, **base},
    )
