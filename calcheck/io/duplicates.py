"""Files to which a tool appended its rows again, and keys that come again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError

if TYPE_CHECKING:
    from calcheck.predictions import Predictions

LEAST_ROWS = 20  # fewer may repeat each other by chance
MOST_RUNS = 4


def require_no_rerun(rows: Predictions) -> Predictions:
    """Return rows that are not the same few several times over, in the same order: every number counts too often then.

    Raises
    ------
    DataError
        They are.
    """
    if rows.y is None or rows.predictive is None or len(rows) < LEAST_ROWS:
        return rows
    for runs in range(2, MOST_RUNS + 1):
        size, left = divmod(len(rows), runs)
        if left or not np.array_equal(rows.y[0], rows.y[size]):  # hence the first look costs nothing
            continue
        if not np.array_equal(rows.y[size:], rows.y[:-size]) or (rows.y == rows.y[0]).all():
            continue
        later, earlier = rows.predictive.take(slice(size, None)), rows.predictive.take(slice(None, -size))
        if later.equals(earlier).all():
            msg = (
                f"the same {size:,} rows come {runs} times, one after the other: were runs appended? Leave one of them"
            )
            raise DataError(msg)
    return rows


def require_unique_keys(rows: Predictions) -> Predictions:
    """Return rows of which every key is there once.

    Raises
    ------
    DataError
        A key comes again.
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
        f"{int((counts > 1).sum()):,} values of {name!r} come more than once, as {str(repeated)!r} in rows {first} and"
        f" {second}. Were rows appended on a rerun? Leave one of each, or name another key with --id. Are they"
        " targets of one input? Then ask for jmmd, ammd, cmmd or fid"
    )
    raise DataError(msg)
