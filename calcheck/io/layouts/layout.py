"""A table with one row per unit, with details of its original layout."""

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
    """A table with one row per unit.

    Parameters
    ----------
    table : Table
        The rows.
    layout : str
        The layout of the file, for reports; empty if the file has one row per unit.
    keys : tuple of str
        Columns that identify units, never targets or predictions.
    kind : str or None
        The output type of a long layout: quantile or sample.
    dated : str or None
        The key that is the date of the observation.
    places : (n,), optional
        The first row in the file of each unit; None if rows are units.
    read : int, optional
        The number of rows of the file that were converted.
    filters : Filters
        The filters that still apply.
    notes : tuple of str
        Messages about rows that are not used.
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
        """Return the row numbers in the file of some units (b,)."""
        return units if self.places is None else self.places[as_index(units)]
