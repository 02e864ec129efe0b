"""The answer from estimates with intervals: within a tolerance, beyond it, or neither shown."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from calcheck.reports import TIED
from calcheck.reports.conclusion import Qualifier, Topic

AVERAGE: tuple[Topic, ...] = ("size", "bias", "correlation")  # Topics about all rows together, which decide about yes
LOCAL: tuple[Topic, ...] = ("ranking", "inputs", "time", "groups")
"""Topics about how uncertainties are off from row to row."""
WIDTH = 1.5  # Half width of the interval of the log factor of normal errors, times the square root of the rows


class Estimate(NamedTuple):
    """An effect with its limits and its adjusted p-value: factors for the size and other levels, else differences."""

    topic: Topic
    value: float
    low: float
    high: float = math.inf
    p: float | None = None


class Decision(NamedTuple):
    """The answer, with what limits it."""

    answer: Literal["yes", "no", "not-shown"]
    within: tuple[bool | None, ...]  # Of each estimate
    qualifiers: tuple[Qualifier, ...] = ()
    deciding: tuple[int, ...] = ()  # Places of the estimates that are not shown to be within the tolerance
    rows_needed: int | None = None


def decide(
    estimates: Sequence[Estimate],
    *,
    n: int,
    tolerance: float,
    others: Sequence[Estimate] = (),
    tested: bool = True,
    alpha: float = 0.05,
) -> Decision:
    """Return the answer of n rows.

    It is no if the size or the bias differs from that of a perfect model and is not shown to be within the tolerance,
    or if the limit of a local error is beyond it. It is yes if both are shown to be within. ``others`` are the factors
    of other levels, and ``tested`` says whether errors at inputs could be seen.
    """
    inside = tuple(is_inside(each, tolerance) for each in estimates)
    wrong = tuple(is_wrong(each, tolerance, alpha, inside=held) for each, held in zip(estimates, inside, strict=True))
    within = tuple(False if bad else held or None for bad, held in zip(wrong, inside, strict=True))
    average = [place for place, each in enumerate(estimates) if each.topic in AVERAGE]
    deciding = tuple(place for place in average if not inside[place])
    if any(wrong):
        return Decision("no", within)
    if deciding or not any(each.topic == "size" for each in estimates):
        needed = [rows_needed(estimates[place], n, tolerance) for place in deciding]
        known = [each for each in needed if each is not None]
        return Decision("not-shown", within, (), deciding, max(known) if known and len(known) == len(needed) else None)
    differs = any(each.topic in LOCAL and _is_significant(each, alpha) for each in estimates)
    found: dict[Qualifier, bool] = {
        "at-level": any(is_outside(each, tolerance) for each in others),
        "on-average": differs,
        "as-tested": not tested,
    }
    return Decision("yes", within, tuple(name for name, holds in found.items() if holds))


def is_inside(each: Estimate, tolerance: float) -> bool:
    """Return whether the whole interval is within the tolerance."""
    if each.topic in LOCAL:
        return False
    low, high = _limits(each.topic, tolerance)
    return low <= each.low and each.high <= high


def is_outside(each: Estimate, tolerance: float) -> bool:
    """Return whether the whole interval is beyond the tolerance."""
    low, high = _limits(each.topic, tolerance)
    return each.high < low or each.low > high


def rows_needed(each: Estimate, n: int, tolerance: float) -> int | None:
    """Return how many rows would show an effect within the tolerance, by the root of their number, or None."""
    if each.topic != "bias":
        room = math.log1p(tolerance) - abs(math.log(each.value)) if each.value > 0 else -math.inf
        known = each.low > 0 and each.high < math.inf
        half = math.log(each.high / each.low) / 2 if known else WIDTH / math.sqrt(n)
    else:
        room, half = tolerance - abs(each.value), (each.high - each.low) / 2
    if room <= TIED or math.isinf(half):
        return None
    return max(n + 1, math.ceil(n * (half / room) ** 2))


def _limits(topic: Topic, tolerance: float) -> tuple[float, float]:
    """Return the limits of the tolerance of an effect: of a factor, or of a difference."""
    return (-tolerance, tolerance) if topic == "bias" else (1 / (1 + tolerance), 1 + tolerance)


def is_wrong(each: Estimate, tolerance: float, alpha: float, *, inside: bool) -> bool:
    """Return whether an effect makes the answer no; without a p-value, if its interval is beyond the tolerance."""
    if each.topic in LOCAL:
        return each.low > tolerance
    if each.topic not in AVERAGE or inside:
        return False
    return is_outside(each, tolerance) if each.p is None else _is_significant(each, alpha)


def _is_significant(each: Estimate, alpha: float) -> bool:
    return each.p is not None and each.p <= alpha * (1 + TIED)
