"""Numbers in the words that describe distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

LEAST, MOST = 1e3, 1e9  # between them numbers are written in full


def describe_parameters(template: str, *parameters: NDArray[Any]) -> list[str]:
    """Fill a template with the parameters (n,) of each row, to three digits: ``"N({}, {}²)"``."""
    return [fill(template, row) for row in zip(*parameters, strict=True)]


def fill(template: str, numbers: Iterable[float]) -> str:
    """Fill a template with numbers, to three digits, or to whole ones where that takes more."""
    return template.format(*map(format_plain, numbers))


def format_plain(number: float) -> str:
    """Write a number to three digits, or to whole ones where that takes more.

    Examples
    --------
    >>> plain(0.04567), plain(1234.5), plain(1e12)
    ('0.0457', '1,234', '1e+12')
    """
    return f"{number:,.0f}" if LEAST <= abs(number) < MOST else f"{number:.3g}"
