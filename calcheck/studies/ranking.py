"""Ranking of models by a metric, and agreement of two rankings."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from calcheck.report import loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calcheck.report import Orientation

DIGITS = 4  # significant digits of shown values; values that look equal count as ties


def score(better: Orientation, value: float | None, reference: float | None) -> float | None:
    """Return a score that is smaller for a better model, rounded to the shown digits; None if no value is better."""
    shown, ideal = (None if each is None else _shown(each) for each in (value, reference))
    found = loss(better, shown, ideal)
    return None if found is None else _shown(found)


def ranks(scores: Sequence[float | None]) -> list[int | None]:
    """Return the rank of each score, 1 for the smallest; ties share a rank.

    Examples
    --------
    >>> ranks([0.2, 0.1, None, 0.2])
    [2, 1, None, 2]
    """
    known = sorted(each for each in scores if each is not None)
    return [None if each is None else known.index(each) + 1 for each in scores]


def kendall(first: Sequence[float | None], second: Sequence[float | None]) -> float | None:
    """Return Kendall's tau-b of two rankings, from -1 to 1; None if all scores in one of them are equal.

    Examples
    --------
    >>> kendall([1, 2, 3, 4], [1, 2, 4, 3])
    0.6666666666666666
    """
    # scipy's kendalltau loads in 0.4 s, and can be 1 - 1e-16 for equal rankings
    known = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    pairs = [(_sign(c - a), _sign(d - b)) for (a, b), (c, d) in combinations(known, 2)]
    apart = [sum(pair[side] != 0 for pair in pairs) for side in (0, 1)]
    if not all(apart):
        return None
    return sum(a * b for a, b in pairs) / math.sqrt(apart[0] * apart[1])


def _shown(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
