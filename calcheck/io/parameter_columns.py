"""Columns of the parameters of distribution families."""

import re
from collections import Counter

from calcheck.distributions import CONVENTIONS, FAMILIES, Convention
from calcheck.errors import DataError, OptionError, with_suggestion
from calcheck.io.column_names import ColumnOptions
from calcheck.io.column_roles import ParametersRole
from calcheck.io.filters import require_one
from calcheck.io.naming_schemes import ColumnIndex

PREFIX = r"(?:(.+)[-_])?"  # Optional name of the model or target before the parameter
COMPONENT = r"[-_]?\d+"  # Number of a mixture component after the parameter
SYNONYMS = {"normal": "gaussian"}  # Other names of families


def find_parameters(columns: ColumnIndex, options: ColumnOptions) -> ParametersRole:
    """Find the columns of the parameters of ``options.dist``, also after the name of a model: ``NHITS-loc``."""
    convention = _convention(columns, options.dist or "")
    explicit = {}
    for text in options.param:
        name, equals, column = text.partition("=")
        if not equals or name not in convention.parameters:
            expected = f"--param must be NAME=COLUMN with a name among {', '.join(convention.parameters)}, got {text!r}"
            raise OptionError(with_suggestion(expected, name, convention.parameters))
        explicit[name] = column
    if options.error and convention.location is None:
        msg = f"--error needs a family with a location, and {convention.family} has none. Pass --target instead"
        raise OptionError(msg)
    replaced = convention.location if options.error else None  # the parameter that errors replace
    wanted = {name: known for name, known in convention.parameters.items() if name != replaced}
    looked_for = {name: known for name, known in wanted.items() if name not in explicit}
    candidates = {name: _candidates(columns, known, grouped=convention.grouped) for name, known in looked_for.items()}
    needed = {name: found for name, found in candidates.items() if name not in convention.optional}
    prefix = _chosen_prefix(needed, options.model)
    found = {}
    for name in wanted:
        if name in convention.optional and name not in explicit and not candidates[name].get(prefix):
            continue
        if name in explicit:
            role, stated = f"parameter {name}", explicit[name]
            found[name] = columns.group(role, stated) if convention.grouped else (columns.existing(role, stated),)
        else:
            found[name] = _one(columns, convention, name, candidates[name].get(prefix, []))
    if convention.grouped and not convention.joint and len({len(group) for group in found.values()}) > 1:
        counts = ", ".join(f"{name} has {len(group)}" for name, group in found.items())
        raise DataError(f"the parameters of --dist {convention.spelling} have different numbers of columns: {counts}")
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
        raise OptionError(with_suggestion(expected, spelling, [*CONVENTIONS, *FAMILIES]))
    possible = [other for other in possible_conventions(columns) if CONVENTIONS[other].family == spelling]
    if len(possible) == 1:
        return CONVENTIONS[possible[0]]
    choices = "; ".join(f"{convention.spelling} ({convention.meaning})" for convention in FAMILIES[spelling])
    several = "has several conventions, and the columns do not identify one. Pass one of"
    only = "does not state the meaning of its parameters, and the columns do not identify it. Pass"
    raise OptionError(f"--dist {spelling} {several if len(FAMILIES[spelling]) > 1 else only} {choices}")


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
        raise DataError(
            f"two columns may hold the {name}: {found[0][0]!r} and {found[1][0]!r}."
            f" Pass --param {name}=COLUMN with one of them"
        )
    if not found:
        raise DataError(
            f"--dist {convention.spelling} needs the parameter {name!r} ({convention.meaning}),"
            f" and no column has that name. Pass --param {name}=COLUMN (columns: {columns.listed_names()})"
        )
    return found[0]
