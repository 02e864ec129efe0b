"""Layouts in which a unit is not one row: turned into tables in which it is, without loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.io.layouts.layout import TableLayout
from calcheck.io.layouts.long import LONG, pivot_long
from calcheck.io.layouts.nested import explode, is_nested

if TYPE_CHECKING:
    from calcheck.io.columns.options import ColumnOptions
    from calcheck.io.filters import Filters
    from calcheck.io.paths import AnyFile
    from calcheck.io.tables.formats import Table

__all__ = ["TableLayout", "laid_out"]


def apply_layout(file: AnyFile, table: Table, said: ColumnOptions, filters: Filters) -> TableLayout:
    """Return a table with a row a unit, as the file has it, or made from a layout that is known by its column names.

    An option that says what form the predictions have switches the search for layouts off.

    Raises
    ------
    DataError
        Units are not whole, or come twice; or there are several models, targets or types of output.
    """
    if not said.names_form:
        names = set(table.schema.names)
        for layout in LONG:
            if layout.matches(names):
                return pivot_long(layout, file, table, said, filters)
        if is_nested(table.schema):
            return explode(file, table, filters)
    return TableLayout(table, filters=filters)
