"""Layouts in which a unit is not one row: turned into tables in which it is, without loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calcheck.io.layouts.layout import Laid
from calcheck.io.layouts.long import LONG, pivoted
from calcheck.io.layouts.nested import is_nested, unnested

if TYPE_CHECKING:
    from calcheck.io.columns.options import ColumnOptions
    from calcheck.io.filters import Filters
    from calcheck.io.paths import AnyFile
    from calcheck.io.tables.formats import Table

__all__ = ["Laid", "laid_out"]


def laid_out(file: AnyFile, table: Table, said: ColumnOptions, filters: Filters) -> Laid:
    """Return a table with a row a unit, as the file has it, or made from a layout that is known by its column names.

    An option that says what form the predictions have switches the search for layouts off.

    Raises
    ------
    DataError
        Units are not whole, or come twice; or there are several models, targets or types of output.
    """
    if not said.says_form:
        names = set(table.schema.names)
        for layout in LONG:
            if layout.fits(names):
                return pivoted(layout, file, table, said, filters)
        if is_nested(table.schema):
            return unnested(file, table, filters)
    return Laid(table, filters=filters)
