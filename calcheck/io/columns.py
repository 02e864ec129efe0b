"""Which column plays which role: what the user says first, then names that are known, never a guess."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from calcheck.errors import DataError, OptionError
from calcheck.io.column_options import ERROR, MEANS, SPREADS, STDS, TARGETS, ColumnOptions
from calcheck.io.roles import (
    GaussianRole,
    ParametersRole,
    ResidualRole,
    Roles,
    SamplesRole,
    listed,
    pattern_of,
)
from calcheck.io.values import is_number, is_scalar, is_text, is_vector
from calcheck.options import flag_of
from calcheck.predictive import CONVENTIONS, FAMILIES

if TYPE_CHECKING:
    import pyarrow as pa

    from calcheck.io.roles import Distributions, Spread
    from calcheck.predictive import Convention

SAMPLE = r"sample_\d+"
EMBEDDING = r"emb_\d+"
NEVER_GUESSED = re.compile(r".*_unc(_.*)?|uq|uncertainty.*|var|variance|.*_var|0|1")


def find_roles(schema: pa.Schema, said: ColumnOptions, *, external: bool = False) -> Roles:
    """Find the roles of a table's columns.

    Parameters
    ----------
    schema : pyarrow.Schema
        Names and types.
    said : ColumnOptions
        What the user says; it switches off the detection of what it replaces.
    external : bool
        Whether ``said.embedding`` is another file.

    Raises
    ------
    DataError
        A named column is absent, or a role has two candidates.
    OptionError
        Options do not fit each other or the file.
    """
    finder = _Finder(schema, said)
    predictive = finder.predictive()
    x, embedded = finder.inputs(external=external)
    target = (predictive.error,) if isinstance(predictive, ResidualRole) else finder.target()
    wide = set(x) if embedded and len(x) > 1 else set()
    if isinstance(predictive, SamplesRole):
        wide |= {column for group in predictive.columns for column in group}
    elif not said.samples:
        wide |= set(finder.matching_names(SAMPLE))
    shown = _shown(schema, x, wide)
    first = [name for name in (*target, *_scalars(predictive)) if name in shown]
    narrow = tuple(dict.fromkeys([*first, *shown]))
    return Roles(target, predictive, x, embedded, finder.id(), narrow)


def _scalars(predictive: Distributions | None) -> tuple[str, ...]:
    """List the columns that describe a distribution by a few numbers."""
    match predictive:
        case GaussianRole(mean, spread, _):
            return (*mean, *spread)
        case ResidualRole(error, spread, _):
            return (error, spread)
        case ParametersRole(_, columns):
            return tuple(columns.values())
        case _:
            return ()


def find_input_roles(schema: pa.Schema, said: ColumnOptions, *, external: bool = False) -> Roles:
    """Find inputs and keys only; other columns need not be sound.

    Raises
    ------
    DataError
        A named column is absent, or the inputs have two candidates.
    """
    finder = _Finder(schema, said)
    x, embedded = finder.inputs(external=external)
    return Roles((), None, x, embedded, finder.id(), _shown(schema, x, set(x) if embedded and len(x) > 1 else set()))


def _shown(schema: pa.Schema, x: tuple[str, ...], wide: set[str]) -> tuple[str, ...]:
    """List the columns of one value a row that are worth showing."""
    return tuple(
        column.name
        for column in schema
        if column.name and column.name not in wide and is_scalar(column.type) and not _holds_vectors(column, x)
    )


class _Finder:
    def __init__(self, schema: pa.Schema, said: ColumnOptions) -> None:
        self.schema = schema
        self.said = said
        self.names = list(schema.names)

    def target(self) -> tuple[str, ...]:
        if self.said.target:
            return self.listed("target", self.said.target)
        found = self.one_of("target", TARGETS)
        return (found,) if found else ()

    def id(self) -> str | None:
        if self.said.id:
            return self.existing("id", self.said.id)
        return "id" if "id" in self.names else None

    def predictive(self) -> Distributions | None:
        said = self.said
        if said.dist:
            return self.parameters(said.dist)
        if said.samples:
            return SamplesRole(tuple(self.group("samples", part) for part in said.samples.split(",")))
        if said.error or self._has_errors_only():
            return self.residuals()
        return self._gaussian_or_samples()

    def _gaussian_or_samples(self) -> GaussianRole | SamplesRole | None:
        """Find means with spreads, or draws."""
        said = self.said
        if said.mean or any(getattr(said, kind) for kind in SPREADS):
            return self.gaussian()
        samples = self.matching_names(SAMPLE)
        if self._is_vector("samples"):
            if samples:
                msg = f"two columns may be the samples: 'samples' and {listed(tuple(samples))!r}. Pass --samples"
                raise DataError(msg)
            samples = ["samples"]
        mean, std = self.one_of("mean", MEANS), self.one_of("std", STDS)
        if samples and mean and std:
            msg = (
                f"two forms of predictions: mean {mean!r} with std {std!r}, and samples {listed(tuple(samples))!r}."
                f" Pass --mean {mean} --std {std}, or --samples {pattern_of(tuple(samples), self.names)!r}"
            )
            raise DataError(msg)
        if samples:
            return SamplesRole((tuple(samples),))
        if mean and std:
            return GaussianRole((mean,), (std,), "std")
        return None

    def _has_errors_only(self) -> bool:
        """Tell whether there is a column of errors, and neither targets nor predictions."""
        said = self.said
        if said.target or said.mean or ERROR not in self.names:
            return False
        found = [*TARGETS, *MEANS, "samples", *self.matching_names(SAMPLE)]
        spread = any(getattr(said, kind) for kind in SPREADS) or self.one_of("std", STDS)
        return bool(spread) and not set(found) & set(self.names)

    def residuals(self) -> ResidualRole:
        """Complete what was said of errors and spreads."""
        kind, spread = self.spread()
        if len(spread) > 1:
            msg = f"--error names one column and --{kind.replace('_', '-')} {len(spread)}: give one each"
            raise OptionError(msg)
        return ResidualRole(self.existing("error", self.said.error or ERROR), spread[0], kind)

    def spread(self) -> tuple[Spread, tuple[str, ...]]:
        """Find the columns of standard deviations, or of what was said to be there in their place."""
        kinds: tuple[Spread, ...] = ("std", "var", "log_std", "log_var")
        for kind in kinds:
            if named := getattr(self.said, kind):
                return kind, self.listed(kind, named)
        return "std", self.found("std", STDS)

    def gaussian(self) -> GaussianRole:
        """Complete what was said of means and spreads."""
        said = self.said
        mean = self.listed("mean", said.mean) if said.mean else self.found("mean", MEANS)
        kind, spread = self.spread()
        if len(mean) != len(spread):
            msg = (
                f"--mean names {len(mean)} columns and --{kind.replace('_', '-')} {len(spread)}: give one a target each"
            )
            raise OptionError(msg)
        return GaussianRole(mean, spread, kind)

    def parameters(self, spelling: str) -> ParametersRole:
        """Find the columns of a family's parameters."""
        convention = self.convention(spelling)
        said = dict(self._said_parameters(convention))
        columns = {}
        for parameter, known in convention.parameters.items():
            column = said.get(parameter) or self.one_of(parameter, known, f"--param {parameter}=COLUMN")
            if column is None:
                msg = (
                    f"--dist {convention.spelling} needs its parameter {parameter!r} ({convention.meaning}),"
                    f" and no column has that name. Pass --param {parameter}=COLUMN (columns: {self.shown()})"
                )
                raise DataError(msg)
            columns[parameter] = self.existing(parameter, column)
        return ParametersRole(convention, columns)

    def convention(self, spelling: str) -> Convention:
        """Look a convention up; a family alone will do if the column names leave one of its conventions."""
        if spelling in CONVENTIONS:
            return CONVENTIONS[spelling]
        if spelling not in FAMILIES:
            msg = f"--dist must be one of {', '.join(CONVENTIONS)}, got {spelling!r}"
            raise OptionError(msg)
        possible = [other for other in self.possible_conventions() if CONVENTIONS[other].family == spelling]
        if len(possible) == 1:
            return CONVENTIONS[possible[0]]
        told = "; ".join(f"{convention.spelling} ({convention.meaning})" for convention in FAMILIES[spelling])
        msg = f"--dist {spelling} has several conventions, and the columns do not tell which. Pass one of {told}"
        raise OptionError(msg)

    def possible_conventions(self) -> list[str]:
        """List the conventions all of whose parameters have a column by a known name."""
        names = set(self.names)
        return [
            spelling
            for spelling, convention in CONVENTIONS.items()
            if all(names.intersection(known) for known in convention.parameters.values())
        ]

    def _said_parameters(self, convention: Convention) -> list[tuple[str, str]]:
        pairs = []
        for text in self.said.param:
            name, equals, column = text.partition("=")
            if not equals or name not in convention.parameters:
                msg = f"--param takes NAME=COLUMN with a name among {', '.join(convention.parameters)}, got {text!r}"
                raise OptionError(msg)
            pairs.append((name, column))
        return pairs

    def inputs(self, *, external: bool) -> tuple[tuple[str, ...], bool]:
        """Find the embedding or inputs, and say which of them they are."""
        said = self.said
        if said.inputs:
            return self.listed("inputs", said.inputs), False
        if external:
            return (), True
        if said.embedding:
            return self.group("embedding", said.embedding), True
        wide = tuple(self.matching_names(EMBEDDING))
        if wide and "embedding" in self.names:
            msg = f"two columns may be the embedding: 'embedding' and {listed(wide)!r}. Pass --embedding"
            raise DataError(msg)
        return ("embedding",) if "embedding" in self.names else wide, True

    def one_of(self, role: str, known: tuple[str, ...], flag: str = "") -> str | None:
        """Return the one column with a known name, None if there is none."""
        found = [name for name in known if name in self.names]
        if len(found) > 1:
            flag = flag or flag_of(role)
            msg = f"two columns may be the {role}: {found[0]!r} and {found[1]!r}. Pass {flag} with one of them"
            raise DataError(msg)
        return found[0] if found else None

    def found(self, role: str, known: tuple[str, ...]) -> tuple[str, ...]:
        """Return the one column with a known name."""
        name = self.one_of(role, known)
        if name is None:
            raise DataError(self.missing(role))
        return (name,)

    def missing(self, role: str) -> str:
        """Say that a role has no column, and which columns there are."""
        if role == "std" and (unclear := unclear_spreads(self.names)):
            return _ambiguous_scale(unclear)
        flag = flag_of(role)
        return f"no column is known to hold the {role}. Pass {flag} COLUMN (columns: {self.shown()})"

    def existing(self, role: str, name: str) -> str:
        if name not in self.names:
            msg = f"there is no column {name!r} for the {role} (columns: {self.shown()})"
            raise DataError(msg)
        return name

    def listed(self, role: str, names: str) -> tuple[str, ...]:
        """Take names apart at commas, unless one column has just that name."""
        parts = [names] if names in self.names else [part.strip() for part in names.split(",")]
        return tuple(self.existing(role, part) for part in parts)

    def group(self, role: str, pattern: str) -> tuple[str, ...]:
        """Return one column by name, or several by a pattern, in the order of their numbers."""
        if pattern in self.names:
            return (pattern,)
        if role == "embedding" and "," in pattern:
            return self.listed(role, pattern)
        matches = sorted((name for name in self.names if fnmatchcase(name, pattern)), key=_numbered)
        if not matches:
            msg = f"no column matches {pattern!r} for the {role} (columns: {self.shown()})"
            raise DataError(msg)
        return tuple(matches)

    def matching_names(self, expression: str) -> list[str]:
        return sorted((name for name in self.names if re.fullmatch(expression, name)), key=_numbered)

    def _is_vector(self, name: str) -> bool:
        return name in self.names and (is_vector(self.schema.field(name).type) or is_text(self.schema.field(name).type))

    def shown(self) -> str:
        return shown(self.names)


def shown(names: list[str]) -> str:
    """List columns, not more than a line of them."""
    most = 12
    listed_names = ", ".join(map(repr, names[:most]))
    return f"{listed_names}, … {len(names)} in all" if len(names) > most else listed_names


def missing_target(schema: pa.Schema) -> str:
    """Say that no column holds targets."""
    return _Finder(schema, ColumnOptions()).missing("target")


def missing_predictions(schema: pa.Schema, said: ColumnOptions) -> str:
    """Say that no column holds predictive distributions, and what to do about it."""
    names = list(schema.names)
    finder = _Finder(schema, said)
    if finder.one_of("mean", MEANS) is not None:
        return finder.missing("std")
    if {"loc", "scale"} <= set(names):
        return "columns 'loc' and 'scale' mean something else in every family. Pass --dist (--dist gaussian, …)"
    if finder.one_of("std", STDS):
        return f"{finder.missing('mean')}; errors y - mean will do: --error COLUMN"
    if possible := finder.possible_conventions():
        return f"the columns may be parameters of distributions. Pass --dist with one of {', '.join(possible)}"
    return (
        "no columns are known to hold predictions. Pass --mean and --std, --samples, or --dist"
        f" (columns: {finder.shown()})"
    )


def unclear_spreads(names: list[str]) -> list[str]:
    """List columns that may hold standard deviations or variances: their names do not tell."""
    return [name for name in names if NEVER_GUESSED.fullmatch(name)]


def _ambiguous_scale(unclear: list[str]) -> str:
    name = unclear[0] if len(unclear) == 1 else "COLUMN"
    told = " or ".join(repr(column) for column in unclear)
    return (
        f"{told} may be a variance or a standard deviation: pass --var {name} or --std {name} (or --log-var, --log-std)"
    )


def _numbered(name: str) -> list[tuple[int, int, str]]:
    """Order names by the numbers in them: s2 before s10."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def _holds_vectors(column: pa.Field, x: tuple[str, ...]) -> bool:
    """Tell whether a column of text is the embedding, written as text."""
    return column.name in x and is_text(column.type) and not is_number(column.type)
