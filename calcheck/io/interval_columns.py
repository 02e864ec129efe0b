"""Columns of interval limits, and their levels."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

from calcheck.core import sc
from calcheck.errors import DataError, OptionError
from calcheck.io.column_names import MEANS, ColumnOptions
from calcheck.io.column_roles import IntervalsRole
from calcheck.io.naming_schemes import ColumnIndex

Sides = dict[float | None, dict[int, str]]  # Columns by level, then by side

PACKED = ("y_pis", "intervals")  # Of MAPIE, and of tools that return arrays (n, 2)
OF_INTERVAL = r"(?:y|yhat|y_hat|y_pred|pred|prediction|forecast|pi|obs|obs_ci|interval)"  # not mean_ci, nor ci
SIDED = re.compile(
    rf"(?:(?P<of>\.?{OF_INTERVAL})[_.-])?(?P<side>lower|lo|lwr|upper|hi|upr)(?:[_. -]?(?P<level>[0-9]*\.?[0-9]+)%?)?",
    re.IGNORECASE,
)
LEVEL = re.compile(r"(?<![0-9.])(?<![_.-][vV])(?P<level>[0-9]*\.?[0-9]+)%?$")  # v12 is a version
SIDES = ("lower", "upper")
LOWER = {"lower": ("lower", 0), "lo": ("lo", 0), "lwr": ("lwr", 0)}
SPELLINGS = {**LOWER, "upper": ("lower", 1), "hi": ("lo", 1), "upr": ("lwr", 1)}
LEAST_PERCENT = 10.0  # Smaller numbers in names, such as lower_1, may count columns
OPPOSITES = (("lower", "upper"), ("low", "high"), ("lo", "hi"), ("lwr", "upr"), ("lb", "ub"))
DEFAULTS = {
    "obs_ci": ("statsmodels", 0.95),
    "yhat": ("Prophet", 0.8),
    "lwr": ("R", 0.95),
    ".pred": ("tidymodels", 0.95),
}  # The tool that writes limits whose names begin so, and the level that it writes unless told otherwise
TAIL = 0.025  # Beyond each limit of the share that is held


@dataclass(frozen=True)
class Pair:
    """The columns of both limits, and the level in their names, if there is one."""

    lower: str
    upper: str
    level: float | None


def find_intervals(columns: ColumnIndex, options: ColumnOptions) -> IntervalsRole | None:
    """Return the prediction intervals that options name, or that have known names and a level; None without them."""
    if options.intervals:
        return _packed(columns, columns.existing("intervals", options.intervals), options)
    if options.lower and options.upper:
        lower, upper = columns.group("lower", options.lower), columns.group("upper", options.upper)
        if len(lower) != len(upper):
            msg = f"--lower names {len(lower)} columns and --upper {len(upper)}. Name both limits of each interval"
            raise OptionError(msg)
        levels = [(_level_in(low), _level_in(high)) for low, high in zip(lower, upper, strict=True)]
        known = all(low is not None and low == high for low, high in levels)
        named = [level if known else None for level, _ in levels]
        return _of_pairs(columns, list(map(Pair, lower, upper, named)), options)
    if packed := _packed_name(columns):
        return _packed(columns, packed, options) if options.level else None
    pairs = named_pairs(columns.free)
    stated = bool(pairs) and pairs[0].level is not None
    if pairs and not stated and not options.level and (default := default_level(pairs[0])):
        pairs = [replace(pairs[0], level=default[1])]
        return replace(_of_pairs(columns, pairs, options), tool=default[0])
    return _of_pairs(columns, pairs, options) if stated or (pairs and options.level) else None


def default_level(pair: Pair) -> tuple[str, float] | None:
    """Return the tool that writes limits of such names, with the level that it writes unless told otherwise."""
    return next((found for start, found in DEFAULTS.items() if pair.lower.startswith(start)), None)


def named_pairs(names: Iterable[str]) -> list[Pair]:
    """Return the pairs of columns with known names of lower and upper limits, in the order of levels."""
    by_level = [sorted(group.items(), key=lambda each: each[0] or 0.0) for group in _grouped(names).values()]
    groups = [
        [Pair(sides[0], sides[1], level) for level, sides in group if len(sides) == len(SIDES)] for group in by_level
    ]
    first, *others = [group for group in groups if group] or [[]]
    if others:
        named = [f"{group[0].lower!r} with {group[0].upper!r}" for group in (first, others[0])]
        raise DataError(f"there are two sets of intervals: {named[0]}, and {named[1]}. Pass --lower and --upper")
    return first


def _grouped(names: Iterable[str]) -> dict[tuple[str, str, bool], Sides]:
    """Return columns by level and side, for each prefix and spelling of the sides, with and without levels."""
    found: dict[tuple[str, str, bool], Sides] = {}
    for name in names:
        match = SIDED.fullmatch(name)
        level = _level(match["level"]) if match and match["level"] else None
        if match is None or (match["level"] and level is None):
            continue
        spelling, side = SPELLINGS[match["side"].lower()]
        sides = found.setdefault(((match["of"] or "").lower(), spelling, level is None), {}).setdefault(level, {})
        if side in sides:
            msg = f"two columns hold the {SIDES[side]} limit: {sides[side]!r} and {name!r}. Pass --lower and --upper"
            raise DataError(msg)
        sides[side] = name
    return found


def missing_level(columns: ColumnIndex, name: str, held: tuple[int, int] | None) -> str:
    """Return the message that intervals have no level, with how many of how many targets they hold; "" without them."""
    if packed := _packed_name(columns):
        found = f"column {packed!r} holds prediction intervals, but not their levels"
        return f"{found}: for one at 90 %, the default of MAPIE, calcheck {shlex.quote(name)} --level 0.9"
    pairs = [pair for pair in named_pairs(columns.free) if pair.level is None]
    if not pairs:
        return ""
    command = f"calcheck {shlex.quote(name)} --level 0.9" if name else "--level 0.9"
    return f"{held_text(pairs[0], held)}. Pass the level that was promised, as in {command}"


def held_text(pair: Pair, held: tuple[int, int] | None) -> str:
    """Return how many targets intervals hold whose level is not known.

    >>> held_text(Pair("lo", "hi", None), (8, 10))
    "columns 'lo' and 'hi' hold 80 % (44 to 97 %) of 10 targets; their level is not given"
    """
    found = "prediction intervals"
    if held is not None:
        inside, n = held
        low = sc.betaincinv(inside, n - inside + 1, TAIL) if inside else 0.0  # Clopper and Pearson
        high = sc.betaincinv(inside + 1, n - inside, 1 - TAIL) if inside < n else 1.0
        found = f"{100 * inside / n:.0f} % ({100 * low:.0f} to {100 * high:.0f} %) of {n:,} targets"
    return f"columns {pair.lower!r} and {pair.upper!r} hold {found}; their level is not given"


def possible_limits(columns: ColumnIndex, name: str) -> str:
    """Return the message that two columns may be limits, by their names; empty if there are none."""
    for (low, high), lower in product(OPPOSITES, columns.free):
        upper = re.sub(rf"(?<![a-z]){low}(?![a-z])", high, lower)
        if upper != lower and upper in columns.free:
            command = f"calcheck {shlex.quote(name)}"
            found = f"columns {lower!r} and {upper!r} may be limits of predictions, or of means alone"
            return f"{found}: if of 90 % of the targets, {command} --lower {lower!r} --upper {upper!r} --level 0.9"
    return ""


def without_level(columns: ColumnIndex, options: ColumnOptions) -> Pair | None:
    """Return the only limits of predictions, if neither their names nor options state their level."""
    stated = options.lower in columns.names and options.upper in columns.names
    if options.level or (options.names_form and not stated):
        return None
    low, high = str(options.lower), str(options.upper)
    pairs = [Pair(low, high, _level_in(low) or _level_in(high))] if stated else named_pairs(columns.free)
    known = not pairs or pairs[0].level is not None or (not stated and default_level(pairs[0]) is not None)
    return None if known else pairs[0]


def _packed_name(columns: ColumnIndex) -> str | None:
    """Return the column of lists with both limits, if there is one with a known name."""
    name = columns.one_of("intervals", PACKED)
    return name if name is not None and columns.is_vector(name) else None


def _packed(columns: ColumnIndex, name: str, options: ColumnOptions) -> IntervalsRole:
    if not options.level:
        msg = f"column {name!r} does not state the levels of its intervals. Pass --level, such as --level 0.9,0.95"
        raise OptionError(msg)
    return IntervalsRole((name,), (name,), options.level, _point(columns, options))


def _of_pairs(columns: ColumnIndex, pairs: list[Pair], options: ColumnOptions) -> IntervalsRole:
    """Return the role of pairs of columns; ``--level`` states levels that names do not have, or selects among those."""
    known = {pair.level: pair for pair in pairs if pair.level is not None}
    if known:
        if absent := [level for level in options.level if level not in known]:
            listed = ", ".join(f"{level:g}" for level in known)
            msg = f"--level {absent[0]:g}: there is no such interval (levels in the column names: {listed})"
            raise OptionError(msg)
        chosen = {level: known[level] for level in options.level} or known
    else:
        levels = options.level
        if len(levels) != len(pairs) and (not levels or len(pairs) != 1):
            several = f"there are {len(pairs)} intervals"
            found = several if len(pairs) > 1 else f"the level of {pairs[0].lower!r} is not known"
            given = f"--level names {len(levels)} levels" if levels else "no --level is given"
            raise OptionError(f"{found}, and {given}. Pass the level of each interval, such as --level 0.9")
        repeated = pairs * len(options.level) if len(pairs) == 1 else pairs  # one pair may hold lists
        chosen = dict(zip(options.level, repeated, strict=True))
    lower, upper = (
        tuple(dict.fromkeys(getattr(pair, side) for pair in chosen.values())) for side in ("lower", "upper")
    )
    return IntervalsRole(lower, upper, tuple(chosen), _point(columns, options))


def _point(columns: ColumnIndex, options: ColumnOptions) -> str | None:
    """Return the column of point predictions, if there is one."""
    return columns.existing("mean", options.mean) if options.mean else columns.one_of("mean", MEANS)


def _level_in(name: str) -> float | None:
    """Return the level at the end of a column name; None if there is none."""
    match = LEVEL.search(name)
    return _level(match["level"]) if match else None


def _level(text: str) -> float | None:
    """Return the level that a number in a name means, a share or percent; None if it may mean something else.

    >>> _level("0.9"), _level("90"), _level("97.5"), _level("1")
    (0.9, 0.9, 0.975, None)
    """
    number = float(text)
    if 0 < number < 1:
        return number
    return round(number / 100, 12) if LEAST_PERCENT <= number < 100 else None  # noqa: PLR2004 - percent
