"""Parts that several pictures contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.charts.picture import Band, Line, Mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAN = float("nan")


def numbers(values: Iterable[float | None]) -> list[float]:
    """Return numbers; absent ones are NaN, which leaves a gap."""
    return [NAN if value is None else value for value in values]


def curve(
    name: str,
    x: Sequence[float],
    y: Sequence[float],
    limits: tuple[Sequence[float], Sequence[float]] | None = None,
    *,
    dashed: bool = False,
) -> list[Mark]:
    """Return a line, above a band of the same color if there are limits."""
    band: list[Mark] = [] if limits is None else [Band(x, *limits, name)]
    return [*band, Line(x, y, name, dashed=dashed)]
