"""Formatting of numbers in descriptions of distributions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calcheck.typing import AnyArray

MIN_FULL, MAX_FULL = 1e3, 1e9  # Numbers in this range are written as whole numbers


def describe_parameters(template: str, *parameters: AnyArray) -> list[str]:
    """Return a template such as ``"N({}, {}²)"`` filled with the parameters (n,) of each row, to three digits."""
    return [fill(template, row) for row in zip(*parameters, strict=True)]


def fill(template: str, numbers: Iterable[float]) -> str:
    """Return a template filled with numbers formatted by :func:`format_plain`."""
    return template.format(*map(format_plain, numbers))


def format_plain(number: float) -> str:
    """Return a number to three significant digits, or as a whole number if it is in [1e3, 1e9).

    Examples
    --------
    >>> format_plain(0.04567), format_plain(1234.5), format_plain(1e12)
    ('0.0457', '1,234', '1e+12')
    """
    return f"{number:,.0f}" if MIN_FULL <= abs(number) < MAX_FULL else f"{number:.3g}"
