"""The columns of a table by their names: looked up, listed, and missed in words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

from calcheck.errors import DataError, named_some
from calcheck.io.arrow_arrays import is_text, is_vector, natural
from calcheck.options import flag_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

NEVER_GUESSED = re.compile(r".*_unc(_.*)?|uq|uncertainty.*|var|variance|.*_var|0|1")


@dataclass(frozen=True)
class ColumnIndex:
    """The columns of a table.

    Parameters
    ----------
    schema : pyarrow.Schema
        Names and types.
    keys : tuple of str
        Columns that tell units apart: named explicitly they may be anything, but are never taken for something else.
    """

    schema: pa.Schema
    keys: tuple[str, ...] = ()

    @cached_property
    def names(self) -> list[str]:
        """All names."""
        return list(self.schema.names)

    @cached_property
    def free(self) -> list[str]:
        """Names of columns that may play a role without being told: all but keys."""
        return [name for name in self.names if name not in self.keys]

    def one_of(self, role: str, known: Sequence[str], flag: str = "") -> str | None:
        """Return the one column with a known name, None if there is none.

        Raises
        ------
        DataError
            There are two; the message names them.
        """
        found = [name for name in known if name in self.free]
        if len(found) > 1:
            flag = flag or flag_of(role)
            msg = f"two columns may be the {role}: {found[0]!r} and {found[1]!r}. Pass {flag} with one of them"
            raise DataError(msg)
        return found[0] if found else None

    def existing_of(self, role: str, known: Sequence[str]) -> tuple[str, ...]:
        """Return the one column with a known name.

        Raises
        ------
        DataError
            There is none, or there are two.
        """
        name = self.one_of(role, known)
        if name is None:
            raise DataError(self.missing(role))
        return (name,)

    def missing(self, role: str) -> str:
        """Say that a role has no column, and which columns there are."""
        if role == "std" and (unclear := unclear_spreads(self.free)):
            return ambiguous_scale(unclear)
        flag = flag_of(role)
        return f"no column is known to hold the {role}. Pass {flag} COLUMN (columns: {self.listed_names()})"

    def existing(self, role: str, name: str) -> str:
        """Return a name that is there.

        Raises
        ------
        DataError
            It is not.
        """
        if name not in self.names:
            msg = f"there is no column {name!r} for the {role} (columns: {self.listed_names()})"
            raise DataError(msg)
        return name

    def listed(self, role: str, names: str) -> tuple[str, ...]:
        """Take names apart at commas, unless one column has just that name."""
        parts = [names] if names in self.names else [part.strip() for part in names.split(",")]
        return tuple(self.existing(role, part) for part in parts)

    def group(self, role: str, pattern: str) -> tuple[str, ...]:
        """Return one column by name, several by a pattern in the order of their numbers, or several by their names.

        Raises
        ------
        DataError
            There are none.
        """
        if pattern in self.names:
            return (pattern,)
        if matches := sorted((name for name in self.names if fnmatchcase(name, pattern)), key=natural):
            return tuple(matches)
        if "," in pattern:
            return self.listed(role, pattern)
        msg = f"no column matches {pattern!r} for the {role} (columns: {self.listed_names()})"
        raise DataError(msg)

    def matching(self, expression: str) -> list[str]:
        """List columns whose whole name matches, in the order of their numbers."""
        return sorted((name for name in self.free if re.fullmatch(expression, name)), key=natural)

    def is_vector(self, name: str) -> bool:
        """Tell whether a column may hold lists, perhaps as text."""
        return name in self.free and (is_vector(self.schema.field(name).type) or is_text(self.schema.field(name).type))

    def listed_names(self) -> str:
        """List the columns."""
        return named_some(self.names)


def unclear_spreads(names: list[str]) -> list[str]:
    """List columns that may hold standard deviations or variances: their names do not tell."""
    return [name for name in names if NEVER_GUESSED.fullmatch(name)]


def ambiguous_scale(unclear: list[str]) -> str:
    """Say that columns may hold variances or standard deviations, and what to do about it."""
    name = unclear[0] if len(unclear) == 1 else "COLUMN"
    told = named_some(unclear, between=" or ")
    return (
        f"{told} may be a variance or a standard deviation: pass --var {name} or --std {name} (or --log-var, --log-std)"
    )
