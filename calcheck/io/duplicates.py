"""Checks for files with appended reruns and for duplicate row keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError

if TYPE_CHECKING:
    from calcheck.predictions import Predictions

MIN_ROWS = 20  # Minimum rows to check: fewer rows may be equal by chance
MAX_RUNS = 4  # Maximum number of appended runs that are detected


def require_no_rerun(rows: Predictions) -> Predictions:
    """Return the rows, unless the file holds the same rows several times in the same order.

    Raises
    ------
    DataError
        The same block of rows is repeated, as after an appended rerun.
    """
    if rows.y is None or rows.predictive is None or len(rows) < MIN_ROWS:
        return rows
    for runs in range(2, MAX_RUNS + 1):
        size, left = divmod(len(rows), runs)
        if left or not np.array_equal(rows.y[0], rows.y[size]):  # cheap test first
            continue
        if not np.array_equal(rows.y[size:], rows.y[:-size]) or (rows.y == rows.y[0]).all():
            continue
        later, earlier = rows.predictive.take(slice(size, None)), rows.predictive.take(slice(None, -size))
        if later.equals(earlier).all():
            msg = (
                f"the file holds the same {size:,} rows {runs} times, one after the other. Were runs appended? Keep one"
                " of them"
            )
            raise DataError(msg)
    return rows


def require_unique_keys(rows: Predictions) -> Predictions:
    """Return the rows, unless a key occurs more than once.

    Raises
    ------
    DataError
        A key is duplicated.
    """
    if rows.id is None:
        return rows
    text, name = rows.id.astype(str), rows.id_name
    values, counts = np.unique(text, return_counts=True)
    if len(values) == len(text):
        return rows
    repeated = values[np.argmax(counts)]
    first, second = rows.row_numbers()[text == repeated][:2]
    msg = (
        f"{int((counts > 1).sum()):,} values of {name!r} occur more than once, for example {str(repeated)!r} in rows"
        f" {first} and {second}. Were rows appended by a rerun? Keep one row per key, or name another key with --id."
        " For several targets per input, use jmmd, ammd, cmmd or fid"
    )
    raise DataError(msg)
