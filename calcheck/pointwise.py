"""Results of rows beside the columns of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from calcheck.predictions import Predictions


def with_input_columns(results: Mapping[str, NDArray[Any]], rows: Predictions) -> dict[str, NDArray[Any]]:
    """Return the keys of the rows, their results, and the other columns of the input, (n,) each.

    Parameters
    ----------
    results : mapping
        Results of rows by name, (n,) each.
    rows : Predictions
        The same rows. A column whose name is in use gets the suffix ``_given``, unless its values are the same.
    """
    keys = {} if rows.id is None else {rows.id_name: rows.id}
    columns = {**keys, **results}
    for name, values in rows.columns.items():
        if name in keys or (name in columns and np.array_equal(columns[name], values)):
            continue
        free = name
        while free in columns or (free != name and free in rows.columns):
            free += "_given"
        columns[free] = values
    return columns
