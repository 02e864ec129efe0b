"""Rows of two files that belong together: by key columns that both have, else by place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calcheck.errors import DataError
from calcheck.io.arrow_arrays import key_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEPARATOR = "\x1f"  # between the parts of a key


@dataclass(frozen=True, eq=False)
class KeyIndex:
    """Rows of a file, found by their keys.

    Parameters
    ----------
    name : str
        The file, as messages call it.
    pairs : tuple of (str, str)
        Key columns: what they are called where rows are wanted, and in this file.
    keys : (m,) Arrow array
        The keys of this file's rows, each once.
    """

    name: str
    pairs: tuple[tuple[str, str], ...]
    keys: pa.Array

    @classmethod
    def from_table(cls, name: str, pairs: tuple[tuple[str, str], ...], table: pa.Table, remedy: str) -> KeyIndex:
        """Index the rows of a table.

        Raises
        ------
        DataError
            A key is absent, or comes twice; ``remedy`` says what to do about it.
        """
        keys = composite_key(table, [there for _, there in pairs], lenient=True)
        counted = pc.value_counts(keys)
        repeated = pc.and_(pc.greater(counted.field("counts"), 1), counted.field("values").is_valid())
        if pc.any(repeated).as_py():
            first = counted.field("values").filter(repeated)[0].as_py()
            count = pc.sum(repeated).as_py()
            shown = format_key([there for _, there in pairs], first)
            keys_come = "1 key comes" if count == 1 else f"{count:,} keys come"
            msg = f"{keys_come} more than once, as {shown}. {remedy}"
            raise DataError(msg)
        return cls(name, pairs, keys)

    def row_numbers(self, table: pa.Table) -> NDArray[np.intp]:
        """Return where each row of a table is in this file, (n,); -1 where it is not."""
        found = pc.index_in(composite_key(table, [here for here, _ in self.pairs]), value_set=self.keys)
        return np.asarray(pc.fill_null(found, -1), dtype=np.intp)

    def display_name(self) -> str:
        """Spell the key columns as ``--join-on`` takes them; nothing for row labels without a name."""
        if any(not name for pair in self.pairs for name in pair):
            return ""
        return ",".join(here if here == there else f"{here}={there}" for here, there in self.pairs)

    def missing(self, table: pa.Table, places: NDArray[np.intp]) -> str:
        """Say how many rows were not found, one of them, and what this file's keys look like."""
        lost = np.flatnonzero(places < 0)
        here, there = [here for here, _ in self.pairs], [there for _, there in self.pairs]
        wanted = composite_key(table.slice(int(lost[0]), 1), here)[0].as_py()
        known = self.keys.drop_null()
        example = known[0].as_py() if len(known) else None
        told = f"{len(lost):,} of {len(places):,} rows are not in {self.name}, as {format_key(here, wanted)}"
        if example is None:
            return told
        return f"{told} (its keys look like {format_key(there, example)}){_lost_zeros(wanted, example)}"


def composite_key(table: pa.Table, columns: list[str], *, lenient: bool = False) -> pa.Array:
    """Write the keys of a table's rows as text, (n,): numbers and dates the same way whatever their type.

    Those that are not whole are null if that is allowed.

    Raises
    ------
    DataError
        A key is absent.
    """
    parts = []
    for name in columns:
        text = key_text(table[name])
        if text.null_count and not lenient:
            row = int(np.flatnonzero(np.asarray(text.is_null()))[0])
            msg = f"column {name!r} is a key, but is empty in {text.null_count:,} rows, as in row {row}, counted from 0"
            raise DataError(msg)
        parts.append(text)
    joined = pc.binary_join_element_wise(*parts, SEPARATOR)
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def format_key(columns: list[str], key: Any) -> str:
    """Write a composed key for people."""
    return ", ".join(
        f"{name or 'the first column'}={part!r}" for name, part in zip(columns, key.split(SEPARATOR), strict=True)
    )


def _lost_zeros(wanted: str, example: str) -> str:
    """Say so where one file's keys have leading zeros that the other's lost."""
    for here, there in zip(wanted.split(SEPARATOR), example.split(SEPARATOR), strict=True):
        if here.isdigit() and there.isdigit() and len(here) != len(there) and "0" in (here[0], there[0]):
            return ". Leading zeros were lost in one of them ('01' against 1): write such keys as text"
    return ""
