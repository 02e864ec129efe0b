"""A table with a row a unit, and what its layout says of its columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from calcheck.io.filters import Filters
from calcheck.io.row_numbers import as_index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from calcheck.io.row_numbers import Places
    from calcheck.io.tables.formats import Table


@dataclass(frozen=True, eq=False)
class TableLayout:
    """A table with a row a unit.

    Parameters
    ----------
    table : Table
        The rows.
    layout : str
        How the file was laid out, in words; empty if it had a row a unit.
    keys : tuple of str
        Columns that tell units apart, never targets or predictions.
    kind : str or None
        What the values of a long layout are.
    dated : str or None
        The key that is the date of the observation.
    places : (n,), optional
        The row of the file at which each unit begins; absent if rows are units.
    read : int, optional
        How many rows of the file the units were made from.
    filters : Filters
        What is still to be filtered.
    notes : tuple of str
        What was left aside.
    """

    table: Table
    layout: str = ""
    keys: tuple[str, ...] = ()
    kind: str | None = None
    dated: str | None = None
    places: NDArray[np.intp] | None = None
    read: int | None = None
    filters: Filters = field(default_factory=Filters)
    notes: tuple[str, ...] = ()

    def with_row_numbers(self, units: Places) -> Places:
        """Return the places in the file of some rows (b,) of the table."""
        return units if self.places is None else self.places[as_index(units)]
