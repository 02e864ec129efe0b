"""Column lookup with error messages."""

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

# Names that may mean a variance or a standard deviation
AMBIGUOUS_SPREAD = re.compile(r".*_unc(_.*)?|uq|uncertainty.*|var|variance|.*_var|0|1")


@dataclass(frozen=True)
class ColumnIndex:
    """The columns of a table.

    Parameters
    ----------
    schema : pyarrow.Schema
        Names and types.
    keys : tuple of str
        Columns that identify units. They get another role only if an option names them.
    """

    schema: pa.Schema
    keys: tuple[str, ...] = ()

    @cached_property
    def names(self) -> list[str]:
        """All column names."""
        return list(self.schema.names)

    @cached_property
    def free(self) -> list[str]:
        """Names of columns that may be assigned a role automatically: all but keys."""
        return [name for name in self.names if name not in self.keys]

    def one_of(self, role: str, known: Sequence[str], flag: str = "") -> str | None:
        """Return the column with a known name, None if there is none.

        Raises
        ------
        DataError
            There are two such columns; the message names them.
        """
        found = [name for name in known if name in self.free]
        if len(found) > 1:
            flag = flag or flag_of(role)
            msg = f"two columns may hold the {role}: {found[0]!r} and {found[1]!r}. Pass {flag} with one of them"
            raise DataError(msg)
        return found[0] if found else None

    def existing_of(self, role: str, known: Sequence[str]) -> tuple[str, ...]:
        """Return the column with a known name, as a tuple.

        Raises
        ------
        DataError
            There is no such column, or there are two.
        """
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
        """Return the name of an existing column.

        Raises
        ------
        DataError
            There is no such column.
        """
        if name not in self.names:
            msg = f"there is no column {name!r} for the {role} (columns: {self.listed_names()})"
            raise DataError(msg)
        return name

    def listed(self, role: str, names: str) -> tuple[str, ...]:
        """Return the columns in a comma-separated list, or the one column with exactly that name."""
        parts = [names] if names in self.names else [part.strip() for part in names.split(",")]
        return tuple(self.existing(role, part) for part in parts)

    def group(self, role: str, pattern: str) -> tuple[str, ...]:
        """Return the columns given by a name, a pattern (in numeric order) or a comma-separated list.

        Raises
        ------
        DataError
            No column matches.
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
