"""Roles of columns, and the names that tools give to columns of quantiles and samples."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from calcheck.errors import DataError
from calcheck.io.arrow_arrays import natural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Levels = dict[str, dict[float, str]]  # Columns by level, for each model or target
    from calcheck.distributions import Convention
    from calcheck.report import FileRole


NUMBER = re.compile(r"0?\.[0-9]+")
TUPLE_NAME = re.compile(
    r"\((?P<quote>['\"])(?P<of>.*)(?P=quote), '?(?P<level>0?\.[0-9]+)'?(?:, '(?P<side>lower|upper)')?\)"
)
NIXTLA = re.compile(r"(?P<of>.+)-(?P<side>lo|hi)-(?P<coverage>[0-9]+(?:\.[0-9]+)?)")
QUANTILE = re.compile(r"(?:(?P<of>.+)[_-])?(?:q|ql|quant|quantile)[_-]?(?P<level>0?\.[0-9]+)")
SAMPLE = re.compile(r"(?:(?P<of>.+)_)?sample_?(?P<draw>[0-9]+)|(?P<component>.+)_s(?P<path>[0-9]+)")
DARTS = re.compile(r".+_s[0-9]+")
DIGITS = 12  # Decimals to which levels are rounded: (1 - 0.9) / 2 becomes 0.05
SIDES = {"lower": -1, "lo": -1, "upper": 1, "hi": 1}


@dataclass(frozen=True)
class NamedForm:
    """Predictions recognized by their column names.

    Parameters
    ----------
    tool : str
        The tool with this naming scheme; empty if unknown.
    match : str
        The model or target in the column names; empty if there is none.
    role : QuantilesRole or SamplesRole
        The columns.
    """

    tool: str
    match: str
    role: QuantilesRole | SamplesRole


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
    return round((1 + SIDES[side] * coverage) / 2, DIGITS)


QUANTILE_NAMES: dict[str, Callable[[str], tuple[str, float] | None]] = {
    "skpro": _tuple_name,
    "Nixtla": _nixtla,
    "Darts": _lettered,
    "AutoGluon": _numbered,
}
"""Parsers of quantile column names by tool, in search order."""


Spread = Literal["std", "var", "log_std", "log_var"]
Shape = Literal["normal", "t6"]
Wanted = Literal["all", "any", "sample", "inputs"]
FILE_ROLES: dict[Wanted, FileRole] = {
    "all": "predictions",
    "any": "predictions",
    "sample": "sample",
    "inputs": "evaluation_points",
}
"""The role of a file in reports, by what is read from it."""
SHAPE_UNKNOWN = (
    "the file does not state the error distribution: p-values and the score of a perfect model assume a normal one"
    " (pass --error-dist normal or --error-dist t6)"
)


@dataclass(frozen=True)
class GaussianRole:
    """Means and spreads, with one column of each per target."""

    mean: tuple[str, ...]
    spread: tuple[str, ...]
    kind: Spread
    shape: Shape | None = None


@dataclass(frozen=True)
class ResidualRole:
    """Errors y - mean, and spreads; the means are unknown, and the shape may be."""

    error: str
    spread: str
    kind: Spread
    shape: Shape | None = None


@dataclass(frozen=True)
class ParametersRole:
    """Parameters of a family: one column per parameter, or several for mixture components.

    With ``error``, there is no location: the file holds y - location instead.
    """

    convention: Convention
    columns: dict[str, tuple[str, ...]]
    error: str | None = None


@dataclass(frozen=True)
class SamplesRole:
    """Draws: for each target a column of lists, or one column per draw."""

    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class QuantilesRole:
    """Quantiles: one column per level, with increasing levels."""

    columns: tuple[str, ...]
    levels: tuple[float, ...]


Distributions: TypeAlias = GaussianRole | ResidualRole | ParametersRole | SamplesRole | QuantilesRole


def columns_of(role: Distributions | None) -> tuple[str, ...]:
    """Return the columns that describe the distributions."""
    match role:
        case GaussianRole(mean=mean, spread=spread):
            return (*mean, *spread)
        case ResidualRole(error=error, spread=spread):
            return (error, spread)
        case ParametersRole(_, columns, error):
            return (*([error] if error else []), *(name for group in columns.values() for name in group))
        case SamplesRole(groups):
            return tuple(name for group in groups for name in group)
        case QuantilesRole(columns, _):
            return columns
        case None:
            return ()


def is_wide(role: Distributions | None) -> bool:
    """Return whether many numbers describe each distribution, too many to show: draws or quantiles."""
    return isinstance(role, (SamplesRole, QuantilesRole))


@dataclass(frozen=True)
class Roles:
    """The columns of a file by role.

    Parameters
    ----------
    target : tuple of str
        Columns of targets, or of errors instead; may be empty.
    predictive : GaussianRole, ResidualRole, ParametersRole, SamplesRole, QuantilesRole or None
        The predictive distributions.
    x : tuple of str
        The embedding (one column of vectors, or several of numbers) or the inputs; may be empty.
    has_embedding : bool
        Whether ``x`` is an embedding.
    id : str or None
        The column of row keys.
    narrow : tuple of str
        Scalar columns to show beside results: targets and predictions first, then the others in file order.
    tool : str
        The tool whose column names these are; empty if unknown.
    keys : tuple of str
        Columns that identify rows in files of that tool.
    """

    target: tuple[str, ...] = ()
    predictive: Distributions | None = None
    x: tuple[str, ...] = ()
    has_embedding: bool = True
    id: str | None = None
    narrow: tuple[str, ...] = field(default=())
    tool: str = ""
    keys: tuple[str, ...] = ()

    def described_columns(self) -> dict[str, str]:
        """Return the column names of each role, for reports."""
        described = {"y": list_names(self.target)} if self.target else {}
        match self.predictive:
            case GaussianRole(mean=mean, spread=spread, kind=kind):
                described |= {"mean": list_names(mean), kind: list_names(spread)}
            case ResidualRole(error=error, spread=spread, kind=kind):
                described = {"y - mean": error, kind: spread}
            case ParametersRole(convention, columns, error):
                described = {f"y - {convention.location}": error} if error else described
                described |= {name: list_names(group) for name, group in columns.items()}
            case SamplesRole(columns):
                described["samples"] = "; ".join(list_names(group) for group in columns)
            case QuantilesRole(columns, _):
                described["quantiles"] = list_names(columns)
            case None:
                pass
        if self.x:
            described["x"] = list_names(self.x)
        if self.id:
            described["id"] = self.id
        return described

    def explicit(self, names: list[str]) -> list[str]:
        """Return the options that specify these roles explicitly, given all column names."""
        arguments = ["--target", ",".join(self.target)] if self.target else []
        match self.predictive:
            case ResidualRole(error, spread, kind, shape):
                arguments = ["--error", error, f"--{kind.replace('_', '-')}", spread, *_shape(shape)]
            case GaussianRole(mean, spread, kind, shape):
                arguments += ["--mean", ",".join(mean), f"--{kind.replace('_', '-')}", ",".join(spread), *_shape(shape)]
            case ParametersRole(convention, columns, error):
                arguments = ["--error", error] if error else arguments
                arguments += ["--dist", convention.spelling]
                for name, group in columns.items():
                    arguments += ["--param", f"{name}={pattern_of(group, names) or ','.join(group)}"]
            case QuantilesRole(columns, _):
                arguments += ["--quantiles", pattern_of(columns, names) or ",".join(columns)]
            case SamplesRole(columns):
                patterns = [pattern_of(group, names) for group in columns]
                arguments += ["--samples", ",".join(filter(None, patterns))] if None not in patterns else []
            case None:
                pass
        if self.x:
            pattern = pattern_of(self.x, names) or ",".join(self.x)
            arguments += ["--embedding", pattern] if self.has_embedding else ["--inputs", ",".join(self.x)]
        if self.id:
            arguments += ["--id", self.id]
        return arguments


def _shape(shape: Shape | None) -> list[str]:
    return [] if shape is None else ["--error-dist", shape]


def list_names(columns: tuple[str, ...]) -> str:
    """Return column names as text; only the first and last if there are many."""
    few = 4
    if len(columns) <= few:
        return ", ".join(columns)
    return f"{columns[0]} … {columns[-1]} ({len(columns)} columns)"


def pattern_of(columns: tuple[str, ...], names: list[str]) -> str | None:
    """Return a name or pattern that matches exactly these columns; None if there is none."""
    if len(columns) == 1:
        return columns[0]
    stem = re.sub(r"\d+$", "", columns[0])
    for pattern in (f"{stem}*", f"{stem}[0-9]*", f"{_common_start(columns)}*"):
        if {name for name in names if fnmatchcase(name, pattern)} == set(columns):
            return pattern
    return None


def _common_start(names: tuple[str, ...]) -> str:
    """Return the longest common prefix."""
    first, last = min(names), max(names)
    return first[: next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
