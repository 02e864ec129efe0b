"""Match the rows of two files by key columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from calcheck.errors import DataError
from calcheck.io import compute as pc
from calcheck.io.arrow_arrays import key_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEPARATOR = "\x1f"  # Separates the parts of a composite key
# Arrow matches keys as text, because their types may differ. For a million keys, pandas.merge on the same text takes up
# to three times the time and 300 MiB more.


@dataclass(frozen=True, eq=False)
class KeyIndex:
    """Index of the rows of a file by key.

    Parameters
    ----------
    name : str
        The name of the file in messages.
    pairs : tuple of (str, str)
        Names of the key columns in the other table and in this file.
    keys : (m,) Arrow array
        The unique keys of the rows of this file.
    """

    name: str
    pairs: tuple[tuple[str, str], ...]
    keys: pa.Array

    @classmethod
    def from_table(cls, name: str, pairs: tuple[tuple[str, str], ...], table: pa.Table, remedy: str) -> KeyIndex:
        """Return the index of a table.

        Raises
        ------
        DataError
            A key is duplicated; ``remedy`` says what to do.
        """
        keys = composite_key(table, [there for _, there in pairs], lenient=True)
        counted = pc.value_counts(keys)
        repeated = pc.and_(pc.greater(counted.field("counts"), 1), counted.field("values").is_valid())
        if pc.any(repeated).as_py():
            first = counted.field("values").filter(repeated)[0].as_py()
            count = pc.sum(repeated).as_py()
            shown = format_key([there for _, there in pairs], first)
            duplicates = "1 key occurs" if count == 1 else f"{count:,} keys occur"
            msg = f"{duplicates} more than once, for example {shown}. {remedy}"
            raise DataError(msg)
        return cls(name, pairs, keys)

    def row_numbers(self, table: pa.Table) -> NDArray[np.intp]:
        """Return the row number in this file of each row of a table, (n,); -1 without a match."""
        found = pc.index_in(composite_key(table, [here for here, _ in self.pairs]), value_set=self.keys)
        return np.asarray(pc.fill_null(found, -1), dtype=np.intp)

    def display_name(self) -> str:
        """Return the key columns in the form of ``--join-on``; empty for an index without a name."""
        if any(not name for pair in self.pairs for name in pair):
            return ""
        return ",".join(here if here == there else f"{here}={there}" for here, there in self.pairs)

    def missing(self, table: pa.Table, places: NDArray[np.intp]) -> str:
        """Return a message with the number of rows without a match, one such key, and a key of this file."""
        lost = np.flatnonzero(places < 0)
        here, there = [here for here, _ in self.pairs], [there for _, there in self.pairs]
        wanted = composite_key(table.slice(int(lost[0]), 1), here)[0].as_py()
        known = self.keys.drop_null()
        example = known[0].as_py() if len(known) else None
        first = format_key(here, wanted)
        verb = "is" if len(lost) == 1 else "are"
        message = f"{len(lost):,} of {len(places):,} rows {verb} not in {self.name}, for example {first}"
        if example is None:
            return message
        return f"{message} (its keys look like {format_key(there, example)}){_lost_zeros(wanted, example)}"


def composite_key(table: pa.Table, columns: list[str], *, lenient: bool = False) -> pa.Array:
    """Return the keys of the rows as text, (n,): numbers and dates are normalized across types.

    If ``lenient``, keys with a missing part are null.

    Raises
    ------
    DataError
        A part of a key is missing.
    """
    parts = []
    for name in columns:
        text = key_text(table[name])
        if text.null_count and not lenient:
            row = int(np.flatnonzero(np.asarray(text.is_null()))[0])
            msg = f"key column {name!r} is missing in {text.null_count:,} rows, for example row {row}, counted from 0"
            raise DataError(msg)
        parts.append(text)
    joined = pc.binary_join_element_wise(*parts, SEPARATOR)
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def format_key(columns: list[str], key: Any) -> str:
    """Return a composite key as readable text."""
    return ", ".join(
        f"{name or 'the first column'}={part!r}" for name, part in zip(columns, key.split(SEPARATOR), strict=True)
    )


def _lost_zeros(wanted: str, example: str) -> str:
    """Return a hint if the keys of only one file have leading zeros, else empty text."""
    for here, there in zip(wanted.split(SEPARATOR), example.split(SEPARATOR), strict=True):
        if here.isdigit() and there.isdigit() and len(here) != len(there) and "0" in (here[0], there[0]):
            return ". One file lost leading zeros ('01' became 1): store such keys as text"
    return ""
