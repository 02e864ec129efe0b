"""Messages of gates: the values found, and why a value is absent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.gate.rules import OVERALL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from calcheck.messages import Code
    from calcheck.report import Result

    Value = float | str | None


TOPICS: dict[str, tuple[Code, ...]] = {
    "value": ("no-value",),
    "low": ("no-interval",),
    "high": ("no-interval",),
    "interval": ("no-interval",),
}
"""Codes of warnings that state why a field is absent."""
ABSENCES: tuple[Code, ...] = ("no-value", "no-interval", "no-verdict", "no-p-value", "no-difference", "no-reference")
"""Codes of warnings that may state why any other field is absent."""

FIELDS = {
    "low": "there is no interval",
    "high": "there is no interval",
    "interval": "there is no interval",
    "reference": "the score of a perfect model is unknown",
    "reference_kind": "the score of a perfect model is unknown",
    "reference_low": "only simulated references have limits, on the side that the test uses",
    "reference_high": "only simulated references have limits, on the side that the test uses",
    "zeta": "there is no reference, or its distance to its limit is zero or unknown",
    "zeta_mc_error": "only a zeta estimated by resampling has a Monte Carlo error",
    "p_value": "the null distribution was not simulated",
    "p_value_mc_error": "only a p-value estimated from replicates has a Monte Carlo error",
    "p_value_adjusted": "fewer than two results have p-values from the same replicates",
}
"""Reasons for absent fields that no warning explains."""
UNKNOWN = "the report has no value, and states no reason"


def format_values(values: Mapping[str, Value], result_of: Callable[[str], Result | None]) -> str:
    """Return the value of each name as text; for an absent number, with the reason.

    Parameters
    ----------
    values : mapping
        Values by name.
    result_of : callable
        Returns the result that a name belongs to, or None.
    """
    return "; ".join(
        f"{name} is {format_value(value)}" + (f" ({_because(name, result_of(name))})" if value is None else "")
        for name, value in values.items()
    )


def format_value(value: Value) -> str:
    """Return a value as text; numbers have six significant digits.

    Examples
    --------
    >>> format_value(0.0123456789), format_value(1181), format_value("pass"), format_value(None)
    ('0.0123457', '1181', 'pass', 'null')
    """
    if value is None:
        return "null"
    return value if isinstance(value, str) else f"{value:.6g}"


def _because(name: str, result: Result | None) -> str:
    """Return why a number is absent: a matching warning of its metric, else the field's reason, else all warnings."""
    field = name.rpartition(".")[2] if "." in name else "value"
    if name.startswith(f"{OVERALL}."):
        return FIELDS["p_value_adjusted"]
    warnings = () if result is None else result.warnings
    for codes in (TOPICS.get(field, ABSENCES), ABSENCES):
        if texts := [warning.text for warning in warnings if warning.code in codes]:
            return "; ".join(texts)
    return FIELDS.get(field) or "; ".join(warning.text for warning in warnings) or UNKNOWN
