"""What was found, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from calcheck.report import Result

    Found = float | str | None


TOPICS = {"value": "no value", "low": "no interval", "high": "no interval", "interval": "no interval"}
"""How warnings begin that say why a field is absent; of other fields any that begins with ``no`` may."""


def told(values: Mapping[str, Found], result_of: Callable[[str], Result | None]) -> str:
    """Say what was found for each name; of an absent number, what its metric warns of.

    Parameters
    ----------
    values : mapping
        What was found, by name.
    result_of : callable
        Returns the result that a name is of, if it is of one.
    """
    return "; ".join(
        f"{name} is {shown(value)}" + (_because(name, result_of(name)) if value is None else "")
        for name, value in values.items()
    )


def shown(value: Found) -> str:
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
    """Say why a number is absent, as far as its metric warns of it."""
    if result is None:
        return ""
    topic = TOPICS.get(name.rpartition(".")[2], "no ") if "." in name else TOPICS["value"]
    reasons = [warning for warning in result.warnings if warning.startswith(topic)]
    reasons = reasons or [warning for warning in result.warnings if warning.startswith("no ")] or [*result.warnings]
    return f" ({'; '.join(reasons)})" if reasons else ""
