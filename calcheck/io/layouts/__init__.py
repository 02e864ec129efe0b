"""Layouts with several rows per unit, or several units per row, converted to one row per unit."""

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

__all__ = ["TableLayout", "apply_layout"]


def apply_layout(file: AnyFile, table: Table, options: ColumnOptions, filters: Filters) -> TableLayout:
    """Return the table with one row per unit, converted if its column names match a known layout.

    Layouts are not searched for if an option names the form of the predictions.

    Raises
    ------
    DataError
        Units are incomplete or duplicated, or there are several models, targets or output types.
    """
    if not options.names_form:
        names = set(table.schema.names)
        for layout in LONG:
            if layout.matches(names):
                return pivot_long(layout, file, table, options, filters)
        if is_nested(table.schema):
            return explode(file, table, filters)
    return TableLayout(table, filters=filters)
