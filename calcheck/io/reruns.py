"""Files to which a tool appended its rows again."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from calcheck.errors import DataError

if TYPE_CHECKING:
    from calcheck.predictions import Predictions
    from calcheck.predictive import Predictive

LEAST_ROWS = 20  # fewer may repeat each other by chance
MOST_RUNS = 4


def require_no_rerun(rows: Predictions) -> None:
    """Raise if the rows are the same few several times over, in the same order: every number counts too often then.

    Raises
    ------
    DataError
        They are.
    """
    if rows.y is None or rows.predictive is None or len(rows) < LEAST_ROWS:
        return
    for runs in range(2, MOST_RUNS + 1):
        size, left = divmod(len(rows), runs)
        if left or not np.array_equal(rows.y[0], rows.y[size]):  # hence the first look costs nothing
            continue
        if not np.array_equal(rows.y[size:], rows.y[:-size]) or (rows.y == rows.y[0]).all():
            continue
        if _same(rows.predictive.take(slice(size, None)), rows.predictive.take(slice(None, -size))):
            msg = (
                f"the same {size:,} rows come {runs} times, one after the other: were runs appended? Leave one of them"
            )
            raise DataError(msg)


def _same(one: Predictive, other: Predictive) -> bool:
    """Tell whether all parameters of two batches are the same."""
    return all(_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))


def _equal(one: Any, other: Any) -> bool:
    """Tell whether two parameters are the same: arrays, or the distributions of several targets."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return all(_same(first, second) for first, second in zip(one, other, strict=True))
