"""The columns of a family's parameters."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from calcheck.distributions import CONVENTIONS, FAMILIES
from calcheck.errors import DataError, OptionError
from calcheck.io.columns.roles import ParametersRole
from calcheck.io.filters import require_one

if TYPE_CHECKING:
    from calcheck.distributions import Convention
    from calcheck.io.columns.index import ColumnIndex
    from calcheck.io.columns.options import ColumnOptions

PREFIX = r"(?:(.+)[-_])?"  # the model or the target that a parameter is of
COMPONENT = r"[-_]?\d+"


def find_parameters(columns: ColumnIndex, said: ColumnOptions) -> ParametersRole:
    """Find the columns of the parameters of ``said.dist``.

    Names are known with the model's or the target's in front of them, as in ``NHITS-loc``.

    Raises
    ------
    DataError
        A parameter has no column, or two; or several models have them.
    OptionError
        There is no such family, or no such parameter.
    """
    convention = _convention(columns, said.dist or "")
    explicit = dict(_explicit(said, convention))
    wanted = {name: known for name, known in convention.parameters.items() if not _is_error(said, convention, name)}
    looked_for = {name: known for name, known in wanted.items() if name not in explicit}
    candidates = {name: _candidates(columns, known, grouped=convention.grouped) for name, known in looked_for.items()}
    needed = {name: found for name, found in candidates.items() if name not in convention.optional}
    of = _whose(needed, said.model)
    found = {}
    for name in wanted:
        if name in convention.optional and name not in explicit and not candidates[name].get(of):
            continue
        if name in explicit:
            role = f"parameter {name}"
            found[name] = (
                columns.group(role, explicit[name]) if convention.grouped else (columns.existing(role, explicit[name]),)
            )
        else:
            found[name] = _one(columns, convention, name, candidates[name].get(of, []))
    if convention.grouped and len({len(group) for group in found.values()}) > 1:
        told = ", ".join(f"{name} has {len(group)}" for name, group in found.items())
        msg = f"the parameters of --dist {convention.spelling} have different numbers of columns: {told}"
        raise DataError(msg)
    return ParametersRole(convention, found, columns.existing("error", said.error) if said.error else None)


def possible_conventions(columns: ColumnIndex) -> list[str]:
    """List the conventions all of whose parameters have a column by a known name, alone or behind a prefix."""
    possible = []
    for spelling, convention in CONVENTIONS.items():
        found = [
            set(_candidates(columns, known, grouped=convention.grouped))
            for name, known in convention.parameters.items()
            if name not in convention.optional
        ]
        common = set.intersection(*found)
        if "" in common or (common and len(found) > 1):  # one name behind some prefix says little: weekly_rate
            possible.append(spelling)
    return possible


def _convention(columns: ColumnIndex, spelling: str) -> Convention:
    """Look a convention up; a family alone will do if the column names leave one of its conventions."""
    if spelling in CONVENTIONS:
        return CONVENTIONS[spelling]
    if spelling not in FAMILIES:
        msg = f"--dist must be one of {', '.join(CONVENTIONS)}, got {spelling!r}"
        raise OptionError(msg)
    possible = [other for other in possible_conventions(columns) if CONVENTIONS[other].family == spelling]
    if len(possible) == 1:
        return CONVENTIONS[possible[0]]
    told = "; ".join(f"{convention.spelling} ({convention.meaning})" for convention in FAMILIES[spelling])
    msg = f"--dist {spelling} has several conventions, and the columns do not tell which. Pass one of {told}"
    raise OptionError(msg)


def _explicit(said: ColumnOptions, convention: Convention) -> list[tuple[str, str]]:
    pairs = []
    for text in said.param:
        name, equals, column = text.partition("=")
        if not equals or name not in convention.parameters:
            msg = f"--param takes NAME=COLUMN with a name among {', '.join(convention.parameters)}, got {text!r}"
            raise OptionError(msg)
        pairs.append((name, column))
    return pairs


def _is_error(said: ColumnOptions, convention: Convention, name: str) -> bool:
    """Tell whether a parameter is the location that errors stand for.

    Raises
    ------
    OptionError
        There are errors, but the family has no location.
    """
    if said.error and convention.location is None:
        msg = f"--error needs a family with a location, and {convention.family} has none: give the targets themselves"
        raise OptionError(msg)
    return bool(said.error) and name == convention.location


def _candidates(columns: ColumnIndex, known: tuple[str, ...], *, grouped: bool) -> dict[str, list[tuple[str, ...]]]:
    """List the columns, or groups of columns, by a known name, for each prefix."""
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


def _whose(candidates: dict[str, dict[str, list[tuple[str, ...]]]], model: str | None) -> str:
    """Choose the prefix: as said, else the one behind which most parameters are there; none if that will do."""
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
    """Return the one group of columns that was found for a parameter."""
    if len(found) > 1:
        msg = (
            f"two columns may be the {name}: {found[0][0]!r} and {found[1][0]!r}."
            f" Pass --param {name}=COLUMN with one of them"
        )
        raise DataError(msg)
    if not found:
        msg = (
            f"--dist {convention.spelling} needs its parameter {name!r} ({convention.meaning}),"
            f" and no column has that name. Pass --param {name}=COLUMN (columns: {columns.listed_names()})"
        )
        raise DataError(msg)
    return found[0]
