"""Numbers in the words that describe distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


def each(template: str, *parameters: NDArray[Any]) -> list[str]:
    """Fill a template with the parameters (n,) of each row, to three digits: ``"N({}, {}²)"``."""
    return [filled(template, row) for row in zip(*parameters, strict=True)]


def filled(template: str, numbers: Iterable[float]) -> str:
    """Fill a template with numbers, to three digits."""
    return template.format(*(f"{number:.3g}" for number in numbers))
