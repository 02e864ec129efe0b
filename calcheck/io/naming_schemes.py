"""Naming schemes of columns: quantiles, samples and limits as other tools write them, and long layouts."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import product
from os.path import commonprefix
from shlex import quote

import numpy as np
import pyarrow as pa

from calcheck.errors import DataError, listed_columns, named_some
from calcheck.io.arrow_columns import is_number, is_text, is_vector, natural
from calcheck.io.column_names import (
    MEAN_WORDS,
    MEANS,
    OTHER_NAMES,
    STD_WORDS,
    STDS,
    TARGET_WORDS,
    TARGETS,
    ColumnOptions,
)
from calcheck.io.column_roles import QuantilesRole, SamplesRole
from calcheck.options import flag_of

Levels = dict[str, dict[float, str]]  # Columns by level, for each model or target

# Names that may mean a variance or a standard deviation
AMBIGUOUS_SPREAD = re.compile(r".*_unc(_.*)?|uq|uncertainty.*|var|variance|.*_var|0|1")

WILDCARDS, QUOTES = frozenset("*?["), frozenset("'\\")
KNOWN = {"target": TARGETS, "mean": MEANS, "std": STDS}


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
        """Names of columns that may be assigned a role automatically: all but keys and an index without a name."""
        return [name for name in self.names if name and name not in self.keys]

    def one_of(self, role: str, known: Sequence[str]) -> str | None:
        """Return the column with a known name, None if there is none."""
        found = [name for name in known if name in self.free]
        others = [name for name in OTHER_NAMES.get(role, ()) if name in self.free]
        found = found or [name for name in others if not is_vector(self.schema.field(name).type)]
        if len(found) > 1:
            pair = f"{found[0]!r} and {found[1]!r}"
            raise DataError(f"two columns may hold the {role}: {pair}. Pass {flag_of(role)} with one of them")
        return found[0] if found else None

    def require_one_of(self, role: str, known: Sequence[str]) -> tuple[str, ...]:
        """Return the column with a known name, as a tuple."""
        name = self.one_of(role, known)
        if name is None:
            raise DataError(self.missing(role))
        return (name,)

    def missing(self, role: str, also: str = "") -> str:
        """Return the message that no column was found for a role."""
        if role == "std" and (unclear := unclear_spreads(self.free)):
            return ambiguous_scale(unclear)
        flag = flag_of(role)
        found = f"no column was recognized as the {role}. Pass {flag} COLUMN (columns: {self.listed_names()})"
        return found + also + self.perhaps()

    def perhaps(self, used: Collection[str] | None = None) -> str:
        """Return the options that are likely meant; of columns that predictions do not use, if those are known."""
        names = [field.name for field in self.schema if field.name in self.free and is_number(field.type)]
        try:
            known = {role: self.one_of(role, named) for role, named in KNOWN.items()}
        except DataError:
            return ""
        roles = {role: name for role, name in known.items() if name is not None}
        if used is not None:
            names, roles = [name for name in names if name not in used], {"mean": "", "std": ""}
        found = likely_options(names, roles)
        likely = " ".join(
            f"--{role} {quote(name) if set(name) & QUOTES else repr(name)}" for role, name in found.items()
        )
        return f". Perhaps: {likely}" if likely else ""

    def existing(self, role: str, name: str) -> str:
        """Return the name of an existing column."""
        if name not in self.names:
            raise DataError(f"there is no column {name!r} for the {role} {listed_columns(self.names, name)}")
        return name

    def parse_list(self, role: str, names: str) -> tuple[str, ...]:
        """Return the columns in a comma-separated list, or the one column with exactly that name."""
        parts = [names] if names in self.names else [part.strip() for part in names.split(",")]
        return tuple(self.existing(role, part) for part in parts)

    def without_absent_target(self, options: ColumnOptions) -> ColumnOptions:
        """Return options with an empty target if none of the named columns exists."""
        named = {options.target, *(part.strip() for part in (options.target or "").split(","))}
        return options if options.target is None or named & {*self.names} else replace(options, target="")

    def group(self, role: str, pattern: str) -> tuple[str, ...]:
        """Return the columns given by a name, a pattern (in numeric order) or a comma-separated list."""
        if pattern in self.names:
            return (pattern,)
        if matches := sorted((name for name in self.names if fnmatchcase(name, pattern)), key=natural):
            return tuple(matches)
        if "," in pattern:
            return self.parse_list(role, pattern)
        wanted = "" if set(pattern) & WILDCARDS else pattern
        raise DataError(f"no column matches {pattern!r} for the {role} {listed_columns(self.names, wanted)}")

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


def possible_spreads(names: list[str]) -> list[str]:
    """Return the columns whose names may mean a standard deviation or a variance, or have a word for the first."""
    return [*unclear_spreads(names), *(name for name in names if _words(name) & STD_WORDS)]


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))


def ambiguous_scale(unclear: list[str]) -> str:
    """Return the message that columns may hold variances or standard deviations, and what to do."""
    name = unclear[0] if len(unclear) == 1 else "COLUMN"
    shown = named_some(unclear, between=" or ")
    remedy = f"pass --var {name} or --std {name} (or --log-var, --log-std)"
    return f"{shown} may be a variance or a standard deviation: {remedy}"


LEVEL_OF = r"(?:q|ql|quant|quantile|tau|pred|prediction|forecast)(?:[_-]?|= |\.\.)"  # R: "tau= 0.05", or tau..0.05
QUANTILE_NAMES = {
    "skpro": r"\((?P<quote>['\"])(?P<of>.*)(?P=quote), '?(?P<level>0?\.[0-9]+)'?(?:, '(?P<side>lower|upper)')?\)",
    "Nixtla": r"(?P<of>.+)-(?:(?P<side>lo|hi)-(?P<percent>[0-9]+(?:\.[0-9]+)?)"
    r"|q-(?P<q>[1-9][0-9]?(?:\.[0-9]+)?)|median)",
    "Darts": rf"(?:(?P<of>.+)[_-])?{LEVEL_OF}(?P<level>0?\.[0-9]+)",
    "AutoGluon": r"(?P<level>0?\.[0-9]+)",
}
"""Quantile columns by tool, in search order: model or target, level or, with a side, coverage; 0.5 without numbers."""
SAMPLE = re.compile(r"(?:(?P<of>.+)_)?(?:sample|member|draw|run)_?(?P<draw>[0-9]+)|(?P<component>.+)_s(?P<path>[0-9]+)")
DARTS = re.compile(r".+_s[0-9]+")
PERCENT = r"[QqPp]_?(?P<percent>[0-9]{2}|[0-9]{1,2}\.[0-9]+)|X?(?P<signed>[0-9]{1,2}(?:\.[0-9]+)?)[%.]"
SINGLE = re.compile(r"[QqPp]_?(?P<percent>[1-9])")
DIGITS = 12  # Decimals to which levels are rounded: (1 - 0.9) / 2 becomes 0.05
MEAN_ENDS = tuple(mark + end for mark in "_." for end in ("pred", "prediction", "mean", "hat", "forecast"))
TARGET_ENDS = ("", *(mark + end for mark in "_." for end in ("true", "obs", "observed", "actual", "measured")))
STD_ENDS = tuple(mark + end for mark in "_." for end in ("std", "sd", "stddev"))
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
        NamedForm(tool if of or tool != "Darts" else "", of, quantiles_role(columns))
        for tool, pattern in QUANTILE_NAMES.items()
        for of, columns in _by_level(names, pattern).items()
        if len(columns) > 1
    ]
    draws: dict[str, list[str]] = {}  # in numeric order, for each target
    for name in sorted(names, key=natural):
        if match := SAMPLE.fullmatch(name):
            draws.setdefault(match["of"] or match["component"] or "", []).append(name)
    return found + [
        NamedForm("Darts" if DARTS.fullmatch(columns[0]) else "", of, SamplesRole((tuple(columns),)))
        for of, columns in draws.items()
        if not of or len(columns) > 1  # a prefixed name such as a_s0 needs two columns
    ]


def quantiles_role(columns: dict[float, str]) -> QuantilesRole:
    """Return the role of quantile columns, ordered by level."""
    levels = sorted(columns)
    return QuantilesRole(tuple(columns[level] for level in levels), tuple(levels))


def level_of(name: str) -> float | None:
    """Return the quantile level in a column name, None if there is none."""
    patterns = (*QUANTILE_NAMES.values(), PERCENT)
    return next((parsed[1] for pattern in patterns if (parsed := _parse(name, pattern)) is not None), None)


def level_name(level: float) -> str:
    """Return a column name with the exact level, which :func:`level_of` reads back.

    >>> level_name(0.025), level_of("q_0.025")
    ('q_0.025', 0.025)
    """
    return f"q_{np.format_float_positional(level)}"


def _by_level(names: list[str], pattern: str) -> Levels:
    found: Levels = {}
    for name in names:
        parsed = _parse(name, pattern)
        if parsed is None or not 0 < parsed[1] < 1:
            continue
        columns = found.setdefault(parsed[0], {})
        if parsed[1] in columns:
            msg = f"two columns hold the quantile {parsed[1]:g}: {columns[parsed[1]]!r} and {name!r}. Pass --quantiles"
            raise DataError(msg)
        columns[parsed[1]] = name
    return found


def _parse(name: str, pattern: str) -> tuple[str, float] | None:
    """Return the model or target in a column name, and the level; None if the name has another pattern."""
    match = re.fullmatch(pattern, name)
    if match is None:
        return None
    stated = match.groupdict()
    side, percents = stated.get("side"), map(stated.get, ("percent", "signed", "q"))
    percent = next(filter(None, percents), None)
    level = float(percent) / 100 if percent else float(stated.get("level") or 0.5)
    level = (1 + SIGNS[side] * level) / 2 if side else level
    return stated.get("of") or "", round(level, DIGITS) if percent or side else level


def percent_quantiles(names: Iterable[str]) -> QuantilesRole | None:
    """Return the role of quantiles with levels in percent, ``Q2.5`` or ``97.5%``; None for fewer than two."""
    columns = _by_level(names := list(names), PERCENT).get("", {})
    columns |= {level: name for name, level in levels_of(names).items() if level is not None and SINGLE.fullmatch(name)}
    return quantiles_role(columns) if len(columns) > 1 else None


def levels_of(names: Collection[str]) -> dict[str, float | None]:
    """Return the levels in column names, None where there is none; ``q5`` is a percentage if there is ``q95``.

    >>> levels_of(["q5", "q95"]), levels_of(["q1", "q2"])
    ({'q5': 0.05, 'q95': 0.95}, {'q1': None, 'q2': None})
    """
    found = {name: level_of(name) for name in names}
    for match in filter(None, map(SINGLE.fullmatch, names)):
        level = round(int(match["percent"]) / 100, DIGITS)
        found[match[0]] = level if round(1 - level, DIGITS) in found.values() else None
    return found


def moments_by_target(names: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the columns of means and standard deviations by the target in their names, or by its number.

    >>> moments_by_target(["temp", "temp_pred", "temp_std"])
    {'temp': ('temp_pred', 'temp_std')}
    >>> moments_by_target(["y1", "y2", "mean_1", "mean_2", "std_1", "std_2"])
    {'y1': ('mean_1', 'std_1'), 'y2': ('mean_2', 'std_2')}
    >>> moments_by_target(["y_speed", "mean_speed", "std_speed", "y_angle", "mean_angle", "std_angle"])
    {'y_speed': ('mean_speed', 'std_speed'), 'y_angle': ('mean_angle', 'std_angle')}
    """
    targets, centers, spreads = (_by_end(names, (*stems, *OTHER_NAMES[role])) for role, stems in KNOWN.items())
    shared = [each for each in targets if each in centers and each in spreads]
    if len(shared) > 1:
        ends = sorted(shared, key=int) if all(map(str.isdecimal, shared)) else shared
        return {targets[each]: (centers[each], spreads[each]) for each in ends}
    found: dict[str, tuple[list[str], list[str]]] = {}
    for end, target in product(TARGET_ENDS, names):
        stem = target.removesuffix(end)
        means = [name for end in MEAN_ENDS if (name := stem + end) in names]
        stds = [name for end in STD_ENDS for start in (stem, *means) if (name := start + end) in names]
        is_new = stem and target.endswith(end) and (means[:1], stds[:1]) not in found.values()
        if is_new and len(means) == len(stds) == 1:
            found[target] = (means, stds)
    return {target: (means[0], stds[0]) for target, (means, stds) in found.items()}


def numbered_targets(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of several targets that are numbered, in their order; () if there are none.

    >>> numbered_targets(["y_2", "y_1", "x_1", "target_name"])
    ('y_1', 'y_2')
    """
    named = _by_end(names, (*TARGETS, *OTHER_NAMES["target"]))
    found = {int(end): name for end, name in named.items() if end.isdecimal()}
    numbers = sorted(found)
    is_whole = len(numbers) > 1 and numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1)))
    return tuple(found[number] for number in numbers) if is_whole else ()


def spelled_like(target: str, found: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
    """Return a target and those whose columns have the same ends: a feature may have a rolling mean, y a prediction.

    >>> spelled_like("y", {"y": ("y_pred", "y_std"), "temp": ("temp_mean", "temp_std"), "u": ("u_pred", "u_std")})
    ('y', 'u')
    """
    stems = {each: commonprefix([each, *of]) for each, of in found.items()}  # noqa: RUF071 - by letters, not paths
    ends = {each: [name.removeprefix(stem) for name in (each, *found[each])] for each, stem in stems.items()}
    return tuple(each for each in found if ends[each] == ends.get(target)) or (target,)


def likely_options(names: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Return the likely target, mean and std by words in the names of columns, but those known; {} if unclear.

    >>> likely_options(["age", "sd", "predicted_price", "price"], {"std": "sd"})
    {'target': 'price', 'mean': 'predicted_price'}
    """
    words = {name: _words(name) for name in names}
    found = dict(known)
    for role, of_role in {"std": STD_WORDS, "mean": MEAN_WORDS, "target": TARGET_WORDS}.items():
        likely = [name for name, own in words.items() if own & of_role and name not in found.values()]
        if role == "target" and not likely and "mean" in found:
            stem = words.get(found["mean"], set()) - MEAN_WORDS
            likely = [name for name, own in words.items() if stem and own == stem]
        if role not in found and len(likely) == 1:
            found[role] = likely[0]
    missing = {"target", "mean", "std"} - set(found)
    rest = [name for name in names if name not in found.values()]
    if len(rest) == 1 and (missing == {"mean"} or (missing == {"target"} and rest[0] not in OTHER_NAMES["mean"])):
        found[missing.pop()] = rest[0]
    is_clear = not missing
    return {role: found[role] for role in ("target", "mean", "std") if role not in known} if is_clear else {}


def _by_end(names: Iterable[str], stems: Iterable[str]) -> dict[str, str]:
    """Return the columns of a role by the number or the word after its name; none if one occurs twice."""
    expression = re.compile(rf"(?:{'|'.join(map(re.escape, stems))})(?:_?([0-9]+)|[_.](\w+))")
    matches = [match for name in names if (match := expression.fullmatch(name))]
    found = {match[1] or match[2]: match[0] for match in matches}
    return found if len(found) == len(matches) else {}


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

    def match(self, names: set[str]) -> "Long":  # noqa: ARG002 - overridden by layouts whose columns depend on the file
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
)  # Known layouts with several rows per unit, in search order


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
