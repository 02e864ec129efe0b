"""Columns of parameters, and of limits of intervals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calcheck.distributions import CONVENTIONS, FAMILIES, Convention
from calcheck.errors import DataError, OptionError, with_suggestion
from calcheck.io.columns.options import POINTS, ColumnOptions
from calcheck.io.columns.roles import IntervalsRole, ParametersRole
from calcheck.io.rows import require_one

if TYPE_CHECKING:
    from calcheck.io.columns.names import ColumnIndex

Sides = dict[float | None, dict[int, str]]  # Columns by level, then by side


PACKED = ("y_pis", "intervals")  # Of MAPIE, and of tools that return arrays (n, 2)
OF_INTERVAL = r"(?:y|yhat|y_hat|y_pred|pred|prediction|forecast|pi|obs|obs_ci|interval)"  # not mean_ci, nor ci
SIDED = re.compile(
    rf"(?:(?P<of>{OF_INTERVAL})[_.-])?(?P<side>lower|lo|upper|hi)(?:[_.-]?(?P<level>[0-9]*\.?[0-9]+)%?)?",
    re.IGNORECASE,
)
LEVEL = re.compile(r"(?<![0-9.])(?<![_.-][vV])(?P<level>[0-9]*\.?[0-9]+)%?$")  # v12 is a version
SIDES = ("lower", "upper")
SPELLINGS = {"lower": ("lower", 0), "lo": ("lo", 0), "upper": ("lower", 1), "hi": ("lo", 1)}
LEAST_PERCENT = 10.0  # Smaller numbers in names, such as lower_1, may count columns
DEFAULTS = {
    "obs_ci": "; statsmodels writes 0.95 unless told otherwise",
    "yhat": "; Prophet writes 0.8 unless told otherwise",
}


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
        sides = columns.group("lower", options.lower), columns.group("upper", options.upper)
        return _of_pairs(columns, _paired(*sides), options)
    if packed := _packed_name(columns):
        return _packed(columns, packed, options) if options.level else None
    pairs = named_pairs(columns.free)
    known = bool(pairs) and pairs[0].level is not None
    return _of_pairs(columns, pairs, options) if known or (pairs and options.level) else None


def named_pairs(names: Iterable[str]) -> list[Pair]:
    """Return the pairs of columns with known names of lower and upper limits, in the order of levels."""
    groups = [
        [Pair(sides[0], sides[1], level) for level, sides in _ordered(group) if len(sides) == len(SIDES)]
        for group in _grouped(names).values()
    ]
    first, *others = [group for group in groups if group] or [[]]
    if others:
        named = [f"{group[0].lower!r} with {group[0].upper!r}" for group in (first, others[0])]
        msg = f"there are two sets of intervals: {named[0]}, and {named[1]}. Pass --lower and --upper"
        raise DataError(msg)
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


def missing_level(columns: ColumnIndex) -> str:
    """Return the message that intervals have no level; empty if there are no intervals."""
    if packed := _packed_name(columns):
        return f"column {packed!r} holds prediction intervals, but not their levels. Pass --level, such as 0.9,0.95"
    pairs = [pair for pair in named_pairs(columns.free) if pair.level is None]
    if not pairs:
        return ""
    default = next((text for stem, text in DEFAULTS.items() if pairs[0].lower.startswith(stem)), "")
    return (
        f"columns {pairs[0].lower!r} and {pairs[0].upper!r} hold prediction intervals, but not their level. Pass"
        f" --level, such as --level 0.9: the share of targets that they should contain{default}"
    )


def _ordered(group: Sides) -> list[tuple[float | None, dict[int, str]]]:
    """Return columns by level, in the order of levels."""
    return sorted(group.items(), key=lambda each: each[0] or 0.0)


def _packed_name(columns: ColumnIndex) -> str | None:
    """Return the column of lists with both limits, if there is one with a known name."""
    name = columns.one_of("intervals", PACKED)
    return name if name is not None and columns.is_vector(name) else None


def _packed(columns: ColumnIndex, name: str, options: ColumnOptions) -> IntervalsRole:
    if not options.level:
        msg = f"column {name!r} does not state the levels of its intervals. Pass --level, such as --level 0.9,0.95"
        raise OptionError(msg)
    return IntervalsRole((name,), (name,), options.level, _point(columns, options))


def _paired(lower: tuple[str, ...], upper: tuple[str, ...]) -> list[Pair]:
    """Return the pairs of columns that options name."""
    if len(lower) != len(upper):
        msg = f"--lower names {len(lower)} columns and --upper {len(upper)}. Name both limits of each interval"
        raise OptionError(msg)
    levels = [(_level_in(low), _level_in(high)) for low, high in zip(lower, upper, strict=True)]
    known = all(low is not None and low == high for low, high in levels)
    return [
        Pair(low, high, level if known else None) for low, high, (level, _) in zip(lower, upper, levels, strict=True)
    ]


def _of_pairs(columns: ColumnIndex, pairs: list[Pair], options: ColumnOptions) -> IntervalsRole:
    """Return the role of pairs of columns; ``--level`` states levels that names do not have, or selects among those."""
    known = {pair.level: pair for pair in pairs if pair.level is not None}
    if known:
        _require_known(options.level, list(known))
        chosen = {level: known[level] for level in options.level} or known
    else:
        _require_levels(pairs, options.level)
        repeated = pairs * len(options.level) if len(pairs) == 1 else pairs  # one pair may hold lists
        chosen = dict(zip(options.level, repeated, strict=True))
    lower, upper = (
        tuple(dict.fromkeys(getattr(pair, side) for pair in chosen.values())) for side in ("lower", "upper")
    )
    return IntervalsRole(lower, upper, tuple(chosen), _point(columns, options))


def _require_known(wanted: tuple[float, ...], known: list[float]) -> None:
    """Raise unless the wanted levels are among those in column names."""
    absent = [level for level in wanted if level not in known]
    if absent:
        listed = ", ".join(f"{level:g}" for level in known)
        msg = f"--level {absent[0]:g}: there is no such interval (levels in the column names: {listed})"
        raise OptionError(msg)


def _require_levels(pairs: list[Pair], levels: tuple[float, ...]) -> None:
    """Raise unless there is a level for each pair of columns; a single pair may hold lists."""
    if len(levels) == len(pairs) or (levels and len(pairs) == 1):
        return
    found = f"there are {len(pairs)} intervals" if len(pairs) > 1 else f"the level of {pairs[0].lower!r} is not known"
    given = f"--level names {len(levels)} levels" if levels else "no --level is given"
    msg = f"{found}, and {given}. Pass the level of each interval, such as --level 0.9"
    raise OptionError(msg)


def _point(columns: ColumnIndex, options: ColumnOptions) -> str | None:
    """Return the column of point predictions, if there is one."""
    if options.mean:
        return columns.existing("mean", options.mean)
    return columns.one_of("mean", POINTS)


def _level_in(name: str) -> float | None:
    """Return the level at the end of a column name; None if there is none."""
    match = LEVEL.search(name)
    return _level(match["level"]) if match else None


def _level(text: str) -> float | None:
    """Return the level that a number in a name means, a share or percent; None if it may mean something else.

    Examples
    --------
    >>> _level("0.9"), _level("90"), _level("97.5"), _level("1")
    (0.9, 0.9, 0.975, None)
    """
    number = float(text)
    if 0 < number < 1:
        return number
    return round(number / 100, 12) if LEAST_PERCENT <= number < 100 else None  # noqa: PLR2004 - percent


PREFIX = r"(?:(.+)[-_])?"  # Optional name of the model or target before the parameter
COMPONENT = r"[-_]?\d+"  # Number of a mixture component after the parameter
SYNONYMS = {"normal": "gaussian"}  # Other names of families


def find_parameters(columns: ColumnIndex, options: ColumnOptions) -> ParametersRole:
    """Find the columns of the parameters of ``options.dist``.

    A name may start with that of the model or target, as in ``NHITS-loc``.
    """
    convention = _convention(columns, options.dist or "")
    explicit = dict(_explicit(options, convention))
    wanted = {name: known for name, known in convention.parameters.items() if not _is_error(options, convention, name)}
    looked_for = {name: known for name, known in wanted.items() if name not in explicit}
    candidates = {name: _candidates(columns, known, grouped=convention.grouped) for name, known in looked_for.items()}
    needed = {name: found for name, found in candidates.items() if name not in convention.optional}
    prefix = _chosen_prefix(needed, options.model)
    found = {}
    for name in wanted:
        if name in convention.optional and name not in explicit and not candidates[name].get(prefix):
            continue
        if name in explicit:
            role = f"parameter {name}"
            found[name] = (
                columns.group(role, explicit[name]) if convention.grouped else (columns.existing(role, explicit[name]),)
            )
        else:
            found[name] = _one(columns, convention, name, candidates[name].get(prefix, []))
    if convention.grouped and not convention.joint and len({len(group) for group in found.values()}) > 1:
        counts = ", ".join(f"{name} has {len(group)}" for name, group in found.items())
        msg = f"the parameters of --dist {convention.spelling} have different numbers of columns: {counts}"
        raise DataError(msg)
    return ParametersRole(convention, found, columns.existing("error", options.error) if options.error else None)


def possible_conventions(columns: ColumnIndex) -> list[str]:
    """Return the conventions for which every parameter has a column with a known name, with or without a prefix."""
    possible = []
    for spelling, convention in CONVENTIONS.items():
        found = [
            set(_candidates(columns, known, grouped=convention.grouped))
            for name, known in convention.parameters.items()
            if name not in convention.optional
        ]
        common = set.intersection(*found)
        if "" in common or (common and len(found) > 1):  # one prefixed name is weak evidence: weekly_rate
            possible.append(spelling)
    return possible


def _convention(columns: ColumnIndex, spelling: str) -> Convention:
    """Return a convention; a family name is enough if the columns match only one of its conventions."""
    spelling = SYNONYMS.get(spelling, spelling)
    if spelling in CONVENTIONS:
        return CONVENTIONS[spelling]
    if spelling not in FAMILIES:
        expected = f"--dist must be one of {', '.join(CONVENTIONS)}, got {spelling!r}"
        msg = with_suggestion(expected, spelling, [*CONVENTIONS, *FAMILIES])
        raise OptionError(msg)
    possible = [other for other in possible_conventions(columns) if CONVENTIONS[other].family == spelling]
    if len(possible) == 1:
        return CONVENTIONS[possible[0]]
    choices = "; ".join(f"{convention.spelling} ({convention.meaning})" for convention in FAMILIES[spelling])
    several = "has several conventions, and the columns do not identify one. Pass one of"
    only = "does not state the meaning of its parameters, and the columns do not identify it. Pass"
    msg = f"--dist {spelling} {several if len(FAMILIES[spelling]) > 1 else only} {choices}"
    raise OptionError(msg)


def _explicit(options: ColumnOptions, convention: Convention) -> list[tuple[str, str]]:
    pairs = []
    for text in options.param:
        name, equals, column = text.partition("=")
        if not equals or name not in convention.parameters:
            expected = f"--param must be NAME=COLUMN with a name among {', '.join(convention.parameters)}, got {text!r}"
            msg = with_suggestion(expected, name, convention.parameters)
            raise OptionError(msg)
        pairs.append((name, column))
    return pairs


def _is_error(options: ColumnOptions, convention: Convention, name: str) -> bool:
    """Return whether a parameter is the location that errors replace."""
    if options.error and convention.location is None:
        msg = f"--error needs a family with a location, and {convention.family} has none. Pass --target instead"
        raise OptionError(msg)
    return bool(options.error) and name == convention.location


def _candidates(columns: ColumnIndex, known: tuple[str, ...], *, grouped: bool) -> dict[str, list[tuple[str, ...]]]:
    """Return the columns, or groups of columns, with a known name, for each prefix."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for stem in known:
        for name in columns.free:
            if match := re.fullmatch(PREFIX + re.escape(stem), name):
                found.setdefault(match[1] or "", []).append((name,))
        if not grouped:
            continue
        groups: dict[str, list[str]] = {}
        for name in columns.matching(PREFIX + re.escape(stem) + COMPONENT):
            match = re.fullmatch(PREFIX + re.escape(stem) + COMPONENT, name)
            groups.setdefault((match and match[1]) or "", []).append(name)
        for of, names in groups.items():
            found.setdefault(of, []).append(tuple(names))
    return found


def _chosen_prefix(candidates: dict[str, dict[str, list[tuple[str, ...]]]], model: str | None) -> str:
    """Return the prefix: the given model, else no prefix if possible, else the one with most parameters."""
    if model is not None:
        return model
    counts = Counter(of for found in candidates.values() for of in found)
    most = max(counts.values(), default=0)
    common = sorted(of for of, count in counts.items() if count == most)
    if "" in common or not common:
        return ""
    require_one(common, "models", "--model {!r}")
    return common[0]


def _one(columns: ColumnIndex, convention: Convention, name: str, found: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the only group of columns found for a parameter."""
    if len(found) > 1:
        msg = (
            f"two columns may hold the {name}: {found[0][0]!r} and {found[1][0]!r}."
            f" Pass --param {name}=COLUMN with one of them"
        )
        raise DataError(msg)
    if not found:
        msg = (
            f"--dist {convention.spelling} needs the parameter {name!r} ({convention.meaning}),"
            f" and no column has that name. Pass --param {name}=COLUMN (columns: {columns.listed_names()})"
        )
        raise DataError(msg)
    return found[0]
