"""Parts that several pictures contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.charts.picture import PERFECT, Band, Line, Mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from calcheck.report import Result

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


def expected_marks(results: Sequence[Result], x: Sequence[float]) -> list[Mark]:
    """Return the expected values at positions x, in the limits of perfect models if both are known."""
    expected = numbers(result.reference for result in results)
    low, high = (numbers(getattr(result, f"reference_{side}") for result in results) for side in ("low", "high"))
    line = curve("", x, expected, dashed=True)
    if all(result.reference_low is None or result.reference_high is None for result in results):
        return line
    return [Band(x, low, high, f"limits of {PERFECT}"), *line]
