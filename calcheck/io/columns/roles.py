"""The roles that columns play, and how to say them."""

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
"""What a file is read as, by what is wanted of it."""
SHAPE_UNKNOWN = (
    "the file does not state the shape of the errors: p and the score of a perfect model assume a normal one"
    " (--error-dist normal or --error-dist t6 states it)"
)


@dataclass(frozen=True)
class GaussianRole:
    """Means and spreads, one column each for each target."""

    mean: tuple[str, ...]
    spread: tuple[str, ...]
    kind: Spread
    shape: Shape | None = None


@dataclass(frozen=True)
class ResidualRole:
    """Errors y - mean, and spreads: the predictions are known up to their means, and to a shape that is not told."""

    error: str
    spread: str
    kind: Spread
    shape: Shape | None = None


@dataclass(frozen=True)
class ParametersRole:
    """Parameters of a family: a column for each parameter, or several where each component has its own.

    With ``error`` the location is left out: the file holds y - location in its place.
    """

    convention: Convention
    columns: dict[str, tuple[str, ...]]
    error: str | None = None


@dataclass(frozen=True)
class SamplesRole:
    """Draws: for each target a column of lists, or a column a draw."""

    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class QuantilesRole:
    """Quantiles: a column a level, levels increasing."""

    columns: tuple[str, ...]
    levels: tuple[float, ...]


Distributions: TypeAlias = GaussianRole | ResidualRole | ParametersRole | SamplesRole | QuantilesRole


def columns_of(role: Distributions | None) -> tuple[str, ...]:
    """List the columns that describe the distributions."""
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
    """Tell whether a row has many numbers that describe one distribution, none of them worth showing by itself."""
    return isinstance(role, (SamplesRole, QuantilesRole))


@dataclass(frozen=True)
class Roles:
    """The columns of one file and what they are.

    Parameters
    ----------
    target : tuple of str
        Columns of targets, or of errors in their place; empty if there are none.
    predictive : GaussianRole, ResidualRole, ParametersRole, SamplesRole, QuantilesRole or None
        The predictive distributions.
    x : tuple of str
        The embedding (one column of vectors, or several of numbers) or the inputs; empty if there are none.
    has_embedding : bool
        Whether ``x`` is an embedding.
    id : str or None
        Row keys.
    narrow : tuple of str
        All columns of one value a row that are worth showing beside a result: targets and predictions first, then the
        others as they stand in the file.
    tool : str
        Who names columns so; empty if anybody may.
    keys : tuple of str
        Columns by which that tool tells rows apart.
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
        """Name the column or columns behind each role."""
        told = {"y": list_names(self.target)} if self.target else {}
        match self.predictive:
            case GaussianRole(mean=mean, spread=spread, kind=kind):
                told |= {"mean": list_names(mean), kind: list_names(spread)}
            case ResidualRole(error=error, spread=spread, kind=kind):
                told = {"y - mean": error, kind: spread}
            case ParametersRole(convention, columns, error):
                told = {f"y - {convention.location}": error} if error else told
                told |= {name: list_names(group) for name, group in columns.items()}
            case SamplesRole(columns):
                told["samples"] = "; ".join(list_names(group) for group in columns)
            case QuantilesRole(columns, _):
                told["quantiles"] = list_names(columns)
            case None:
                pass
        if self.x:
            told["x"] = list_names(self.x)
        if self.id:
            told["id"] = self.id
        return told

    def explicit(self, names: list[str]) -> list[str]:
        """Spell the options that say the same explicitly, given all names of the file."""
        said = ["--target", ",".join(self.target)] if self.target else []
        match self.predictive:
            case ResidualRole(error, spread, kind, shape):
                said = ["--error", error, f"--{kind.replace('_', '-')}", spread, *_shape(shape)]
            case GaussianRole(mean, spread, kind, shape):
                said += ["--mean", ",".join(mean), f"--{kind.replace('_', '-')}", ",".join(spread), *_shape(shape)]
            case ParametersRole(convention, columns, error):
                said = ["--error", error] if error else said
                said += ["--dist", convention.spelling]
                for name, group in columns.items():
                    said += ["--param", f"{name}={pattern_of(group, names) or ','.join(group)}"]
            case QuantilesRole(columns, _):
                said += ["--quantiles", pattern_of(columns, names) or ",".join(columns)]
            case SamplesRole(columns):
                patterns = [pattern_of(group, names) for group in columns]
                said += ["--samples", ",".join(filter(None, patterns))] if None not in patterns else []
            case None:
                pass
        if self.x:
            pattern = pattern_of(self.x, names) or ",".join(self.x)
            said += ["--embedding", pattern] if self.has_embedding else ["--inputs", ",".join(self.x)]
        if self.id:
            said += ["--id", self.id]
        return said


def _shape(shape: Shape | None) -> list[str]:
    return [] if shape is None else ["--error-dist", shape]


def list_names(columns: tuple[str, ...]) -> str:
    """Name columns; the first and the last where they are many."""
    few = 4
    if len(columns) <= few:
        return ", ".join(columns)
    return f"{columns[0]} … {columns[-1]} ({len(columns)} columns)"


def pattern_of(columns: tuple[str, ...], names: list[str]) -> str | None:
    """Spell a group of columns by one name or pattern that matches them and no other; None if there is none."""
    if len(columns) == 1:
        return columns[0]
    stem = re.sub(r"\d+$", "", columns[0])
    for pattern in (f"{stem}*", f"{stem}[0-9]*", f"{_common_start(columns)}*"):
        if {name for name in names if fnmatchcase(name, pattern)} == set(columns):
            return pattern
    return None


def _common_start(names: tuple[str, ...]) -> str:
    """Return what all names start with."""
    first, last = min(names), max(names)
    return first[: next((place for place, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
