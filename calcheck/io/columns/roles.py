"""Roles of columns, and the options that specify them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from calcheck.distributions import Convention
    from calcheck.report import FileRole

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
