"""Comparison of results with those of a baseline report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from calcheck.gate.messages import format_value, format_values
from calcheck.report import Gate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Report, Result


@dataclass(frozen=True)
class Tolerance:
    """Allows a change of at most ``atol + rtol * abs(stored value)``."""

    rtol: float
    atol: float

    def room(self, value: float) -> float:
        """Return the allowed change of a stored value."""
        return self.atol + self.rtol * abs(value)

    def gate(self, now: Result, stored: Result) -> Gate:
        """Return the gate that compares a value with the stored one."""
        rule, passed = f"{now.metric} equals its stored value", False
        if stored.value is not None:
            room = self.room(stored.value)
            rule = f"{now.metric} is within {format_value(stored.value)} ± {format_value(room)}"
            passed = now.value is not None and abs(now.value - stored.value) <= room
        return _gate(rule, now, stored, ("value",), passed=passed)


@dataclass(frozen=True)
class StoredInterval:
    """Allows any value inside the stored interval."""

    def gate(self, now: Result, stored: Result) -> Gate:
        """Return the gate that compares a value with the stored interval."""
        rule, passed, caution = f"{now.metric} is within its stored interval", False, ""
        if stored.low is not None and stored.high is not None:
            rule = f"{now.metric} is within [{format_value(stored.low)}, {format_value(stored.high)}]"
            passed = now.value is not None and stored.low <= now.value <= stored.high
            if not passed and stored.value is not None and not stored.low <= stored.value <= stored.high:
                caution = (
                    f"; the stored value {format_value(stored.value)} is also outside its interval: compare"
                    f" {now.metric} with --rtol"
                )
        return _gate(rule, now, stored, ("low", "high"), passed=passed, caution=caution)


class Allowed(Protocol):
    """Changes from the stored result that are allowed."""

    def gate(self, now: Result, stored: Result) -> Gate:
        """Return the gate that compares a result with the stored one."""
        ...


def compare_with_baseline(report: Report, base: Sequence[Result], allowed: Allowed) -> tuple[Gate, ...]:
    """Return a gate for each stored result, compared with the current result of the same metric.

    Parameters
    ----------
    report : Report
        Current report.
    base : sequence of Result
        Stored results; the current report must contain their metrics.
    allowed : Allowed
        Allowed changes.
    """
    results = {result.metric: result for result in report.results}
    return tuple(allowed.gate(results[stored.metric], stored) for stored in base)


def _gate(rule: str, now: Result, stored: Result, fields: tuple[str, ...], *, passed: bool, caution: str = "") -> Gate:
    """Return a gate whose message states the current value, and which stored numbers are absent."""
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
