"""Naming schemes of columns, and the parameters of distribution families that columns hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np
import pyarrow as pa

from calcheck.distributions import CONVENTIONS, FAMILIES, Convention
from calcheck.errors import DataError, OptionError, listed_columns, named_some, with_suggestion
from calcheck.io.arrow_arrays import is_text, is_vector, natural
from calcheck.io.columns import POINTS, ColumnOptions
from calcheck.io.roles import IntervalsRole, ParametersRole, QuantilesRole, SamplesRole
from calcheck.io.rows import require_one
from calcheck.options import flag_of

Levels = dict[str, dict[float, str]]  # Columns by level, for each model or target

# Names that may mean a variance or a standard deviation
AMBIGUOUS_SPREAD = re.compile(r".*_unc(_.*)?|uq|uncertainty.*|var|variance|.*_var|0|1")

WILDCARDS = frozenset("*?[")


@dataclass(frozen=True)
class ColumnIndex:
    """The columns of a table."""

    schema: pa.Schema  # Names and types
    keys: tuple[str, ...] = ()  # Columns that identify units. They get another role only if an option names them.

    @cached_property
    def names(self) -> list[str]:
        """All column names."""
        return list(self.schema.names)

    @cached_property
    def free(self) -> list[str]:
        """Names of columns that may be assigned a role automatically: all but keys."""
        return [name for name in self.names if name not in self.keys]

    def one_of(self, role: str, known: Sequence[str]) -> str | None:
        """Return the column with a known name, None if there is none."""
        found = [name for name in known if name in self.free]
        if len(found) > 1:
            pair = f"{found[0]!r} and {found[1]!r}"
            msg = f"two columns may hold the {role}: {pair}. Pass {flag_of(role)} with one of them"
            raise DataError(msg)
        return found[0] if found else None

    def require_one_of(self, role: str, known: Sequence[str]) -> tuple[str, ...]:
        """Return the column with a known name, as a tuple."""
        name = self.one_of(role, known)
        if name is None:
            raise DataError(self.missing(role))
        return (name,)

    def missing(self, role: str) -> str:
        """Return the message that no column was found for a role."""
        if role == "std" and (unclear := unclear_spreads(self.free)):
            return ambiguous_scale(unclear)
        flag = flag_of(role)
        return f"no column was recognized as the {role}. Pass {flag} COLUMN (columns: {self.listed_names()})"

    def existing(self, role: str, name: str) -> str:
        """Return the name of an existing column."""
        if name not in self.names:
            msg = f"there is no column {name!r} for the {role} {listed_columns(self.names, name)}"
            raise DataError(msg)
        return name

    def parse_list(self, role: str, names: str) -> tuple[str, ...]:
        """Return the columns in a comma-separated list, or the one column with exactly that name."""
        parts = [names] if names in self.names else [part.strip() for part in names.split(",")]
        return tuple(self.existing(role, part) for part in parts)

    def group(self, role: str, pattern: str) -> tuple[str, ...]:
        """Return the columns given by a name, a pattern (in numeric order) or a comma-separated list."""
        if pattern in self.names:
            return (pattern,)
        if matches := sorted((name for name in self.names if fnmatchcase(name, pattern)), key=natural):
            return tuple(matches)
        if "," in pattern:
            return self.parse_list(role, pattern)
        wanted = "" if set(pattern) & WILDCARDS else pattern
        msg = f"no column matches {pattern!r} for the {role} {listed_columns(self.names, wanted)}"
        raise DataError(msg)

    def matching(self, expression: str) -> list[str]:
        """Return the columns whose full name matches a regular expression, in numeric order."""
        return sorted((name for name in self.free if re.fullmatch(expression, name)), key=natural)

    def is_vector(self, name: str) -> bool:
        """Return whether a column may hold lists, possibly as text."""
        return name in self.free and (is_vector(self.schema.field(name).type) or is_text(self.schema.field(name).type))

    def listed_names(self) -> str:
        """Return the column names as text."""
        return named_some(self.names)


def unclear_spreads(names: list[str]) -> list[str]:
    """Return the columns whose names may mean a standard deviation or a variance."""
    return [name for name in names if AMBIGUOUS_SPREAD.fullmatch(name)]


def ambiguous_scale(unclear: list[str]) -> str:
    """Return the message that columns may hold variances or standard deviations, and what to do."""
    name = unclear[0] if len(unclear) == 1 else "COLUMN"
    shown = named_some(unclear, between=" or ")
    remedy = f"pass --var {name} or --std {name} (or --log-var, --log-std)"
    return f"{shown} may be a variance or a standard deviation: {remedy}"


NUMBER = re.compile(r"0?\.[0-9]+")
TUPLE_NAME = re.compile(
    r"\((?P<quote>['\"])(?P<of>.*)(?P=quote), '?(?P<level>0?\.[0-9]+)'?(?:, '(?P<side>lower|upper)')?\)"
)
NIXTLA = re.compile(r"(?P<of>.+)-(?P<side>lo|hi)-(?P<coverage>[0-9]+(?:\.[0-9]+)?)")
QUANTILE = re.compile(r"(?:(?P<of>.+)[_-])?(?:q|ql|quant|quantile)[_-]?(?P<level>0?\.[0-9]+)")
SAMPLE = re.compile(r"(?:(?P<of>.+)_)?sample_?(?P<draw>[0-9]+)|(?P<component>.+)_s(?P<path>[0-9]+)")
DARTS = re.compile(r".+_s[0-9]+")
DIGITS = 12  # Decimals to which levels are rounded: (1 - 0.9) / 2 becomes 0.05
SIGNS = {"lower": -1, "lo": -1, "upper": 1, "hi": 1}


@dataclass(frozen=True)
class NamedForm:
    """Predictions recognized by their column names."""

    tool: str  # The tool with this naming scheme; empty if unknown
    match: str  # The model or target in the column names; empty if there is none
    role: QuantilesRole | SamplesRole  # The columns


def forms_of(names: Iterable[str]) -> list[NamedForm]:
    """Return the predictions recognized among column names, for each naming scheme and each model or target."""
    names = list(names)
    found = [
        NamedForm(tool if of or reader is not _lettered else "", of, quantiles_role(columns))
        for tool, reader in QUANTILE_NAMES.items()
        for of, columns in _by_level(names, reader).items()
        if len(columns) > 1
    ]
    return found + [
        NamedForm("Darts" if DARTS.fullmatch(columns[0]) else "", of, SamplesRole((columns,)))
        for of, columns in _samples(names).items()
    ]


def quantiles_role(columns: dict[float, str]) -> QuantilesRole:
    """Return the role of quantile columns, ordered by level."""
    levels = sorted(columns)
    return QuantilesRole(tuple(columns[level] for level in levels), tuple(levels))


def level_of(name: str) -> float | None:
    """Return the quantile level in a column name, None if there is none."""
    return next((parsed[1] for reader in QUANTILE_NAMES.values() if (parsed := reader(name)) is not None), None)


def level_name(level: float) -> str:
    """Return a column name with the exact level, which :func:`level_of` reads back.

    Examples
    --------
    >>> level_name(0.025), level_of("q_0.025")
    ('q_0.025', 0.025)
    """
    return f"q_{np.format_float_positional(level)}"


def _by_level(names: list[str], reader: Callable[[str], tuple[str, float] | None]) -> Levels:
    found: Levels = {}
    for name in names:
        parsed = reader(name)
        if parsed is None or not 0 < parsed[1] < 1:
            continue
        columns = found.setdefault(parsed[0], {})
        if parsed[1] in columns:
            msg = f"two columns hold the quantile {parsed[1]:g}: {columns[parsed[1]]!r} and {name!r}. Pass --quantiles"
            raise DataError(msg)
        columns[parsed[1]] = name
    return found


def _samples(names: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of draws in numeric order, for each target; a prefixed name such as a_s0 needs two columns."""
    found: dict[str, list[str]] = {}
    for name in sorted(names, key=natural):
        if match := SAMPLE.fullmatch(name):
            found.setdefault(match["of"] or match["component"] or "", []).append(name)
    return {of: tuple(columns) for of, columns in found.items() if not of or len(columns) > 1}


def _nixtla(name: str) -> tuple[str, float] | None:
    if match := NIXTLA.fullmatch(name):
        return match["of"], _limit(float(match["coverage"]) / 100, match["side"])
    return (name.removesuffix("-median"), 0.5) if name.endswith("-median") else None


def _tuple_name(name: str) -> tuple[str, float] | None:
    """Parse a tuple as name: (variable, level) or (variable, coverage, lower or upper)."""
    match = TUPLE_NAME.fullmatch(name)
    if match is None:
        return None
    level = float(match["level"])
    return match["of"], _limit(level, match["side"]) if match["side"] else level


def _numbered(name: str) -> tuple[str, float] | None:
    return ("", float(name)) if NUMBER.fullmatch(name) else None


def _lettered(name: str) -> tuple[str, float] | None:
    match = QUANTILE.fullmatch(name)
    return (match["of"] or "", float(match["level"])) if match else None


def _limit(coverage: float, side: str) -> float:
    """Return the level of an endpoint of a central interval."""
    return round((1 + SIGNS[side] * coverage) / 2, DIGITS)


QUANTILE_NAMES: dict[str, Callable[[str], tuple[str, float] | None]] = {
    "skpro": _tuple_name,
    "Nixtla": _nixtla,
    "Darts": _lettered,
    "AutoGluon": _numbered,
}
"""Parsers of quantile column names by tool, in search order."""


@dataclass(frozen=True)
class Long:
    """A layout with one row per quantile or draw of a unit."""

    name: str  # The name of the layout
    kind: str  # The column of output types; if `typed` is False, the output type itself
    index: tuple[str, ...]  # The column of quantile levels, or the columns that identify draws
    value: str  # The column of values
    typed: bool = False  # Whether there is a column of output types
    observed: str | None = None  # The column of targets
    date_key: str | None = None  # The key that is the date of the observation

    def matches(self, schema: pa.Schema) -> bool:
        """Return whether a file with these columns has this layout."""
        return {*self.index, self.value, *([self.kind] if self.typed else [])} <= set(schema.names)

    def match(self, names: set[str]) -> Long:  # noqa: ARG002 - overridden by layouts whose columns depend on the file
        """Return this layout with the column names of a file."""
        return self

    @property
    def non_key_columns(self) -> frozenset[str]:
        """Columns that are not keys."""
        return frozenset({*self.index, self.value, *([self.kind] if self.typed else []), self.observed or ""} - {""})


@dataclass(frozen=True)
class ArvizLong(Long):
    """Draws of one variable, with columns for its axes: chain, draw, y_dim_0, y."""

    def matches(self, schema: pa.Schema) -> bool:
        names = set(schema.names)
        return set(self.index) <= names and len(self._variables(names)) == 1

    def match(self, names: set[str]) -> Long:
        return replace(self, value=self._variables(names)[0])

    @staticmethod
    def _variables(names: set[str]) -> list[str]:
        return sorted(name for name in names if f"{name}_dim_0" in names)


LONG = (
    Long("hubverse", "output_type", ("output_type_id",), "value", typed=True, date_key="target_end_date"),
    Long("legacy forecast hub", "type", ("quantile",), "value", typed=True, date_key="target_end_date"),
    Long("scoringutils", "quantile", ("quantile_level",), "predicted", observed="observed"),
    Long("scoringutils", "sample", ("sample_id",), "predicted", observed="observed"),
    ArvizLong("ArviZ", "sample", ("chain", "draw"), ""),
)
"""Known layouts with several rows per unit, in search order."""


@dataclass(frozen=True)
class Nested:
    """A layout with one row per series, and lists over its steps: forecasts of GluonTS."""

    name: str  # The name of the layout
    kind: str  # The output type and its column: samples, as lists of paths, or quantiles, as records of lists

    def matches(self, schema: pa.Schema) -> bool:
        """Return whether a file with these columns has this layout."""
        if self.kind not in schema.names:
            return False
        column = schema.field(self.kind).type
        if self.kind == "quantiles":
            return bool(pa.types.is_struct(column))
        is_paths = is_vector(column) and is_vector(getattr(column, "value_type", pa.null()))
        return is_paths and "y" not in schema.names  # with y: multivariate draws, not paths


NESTED = (Nested("GluonTS", "samples"), Nested("GluonTS", "quantiles"))
"""Known layouts with several units per row, in search order: GluonTS computes mean and quantiles from samples."""


def find_layout(schema: pa.Schema) -> Long | Nested | None:
    """Return the known layout of a file with these columns, None if it has one row per unit."""
    return next((layout for layout in (*LONG, *NESTED) if layout.matches(schema)), None)


Sides = dict[float | None, dict[int, str]]  # Columns by level, then by side


PACKED = ("y_pis", "intervals")  # Of MAPIE, and of tools that return arrays (n, 2)
OF_INTERVAL = r"(?:y|yhat|y_hat|y_pred|pred|prediction|forecast|pi|obs|obs_ci|interval)"  # not mean_ci, nor ci
SIDED = re.compile(
    rf"(?:(?P<of>{OF_INTERVAL})[_.-])?(?P<side>lower|lo|upper|hi)(?:[_.-]?(?P<level>[0-9]*\.?[0-9]+)%?)?", re.IGNORECASE
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
