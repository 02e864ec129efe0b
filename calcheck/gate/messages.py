"""What was found, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from calcheck.report import Result

    SweepCell = float | str | None


TOPICS = {"value": "no value", "low": "no interval", "high": "no interval", "interval": "no interval"}
"""How warnings begin that say why a field is absent; of other fields any that begins with ``no`` may."""

FIELDS = {
    "low": "there is no interval",
    "high": "there is no interval",
    "interval": "there is no interval",
    "reference": "what a perfect model scores is not known",
    "reference_kind": "what a perfect model scores is not known",
    "reference_low": "limits are of simulated references, on the side that counts",
    "reference_high": "limits are of simulated references, on the side that counts",
    "zeta": "there is no reference, or no distance from it to its limit",
    "zeta_mc_error": "only zeta by resampling has one",
    "p_value": "replicates were not simulated",
    "p_value_mc_error": "only p by replicates has one",
}
"""Why a field is absent that no warning explains."""
UNKNOWN = "the report has none, and does not say why"


def format_values(values: Mapping[str, SweepCell], result_of: Callable[[str], Result | None]) -> str:
    """Say what was found for each name; of an absent number, why there is none.

    Parameters
    ----------
    values : mapping
        What was found, by name.
    result_of : callable
        Returns the result that a name is of, if it is of one.
    """
    return "; ".join(
        f"{name} is {format_value(value)}" + (f" ({_because(name, result_of(name))})" if value is None else "")
        for name, value in values.items()
    )


def format_value(value: SweepCell) -> str:
    """Write what was found: numbers to six digits.

    Examples
    --------
    >>> shown(0.0123456789), shown(1181), shown("pass"), shown(None)
    ('0.0123457', '1181', 'pass', 'null')
    """
    if value is None:
        return "null"
    return value if isinstance(value, str) else f"{value:.6g}"


def _because(name: str, result: Result | None) -> str:
    """Say why a number is absent: what its metric warns of, else what is so of its field, else all warnings."""
    field = name.rpartition(".")[2] if "." in name else "value"
    warnings = () if result is None else result.warnings
    for topic in (TOPICS.get(field, "no "), "no "):
        if said := [warning for warning in warnings if warning.startswith(topic)]:
            return "; ".join(said)
    return FIELDS.get(field) or "; ".join(warnings) or UNKNOWN
