"""The rows of two samples, in one table with a column that labels them."""

from __future__ import annotations

from calcheck.errors import DataError
from calcheck.predictions import Predictions
from calcheck.typing import Mask

SAMPLE = "sample"  # column with the sample of each row: 0 for the first, 1 for the second
MIN_ROWS = 2  # minimum rows per sample


def first_sample(rows: Predictions, metric: str) -> Mask:
    """Return which rows belong to the first sample, (n,)."""
    if SAMPLE not in rows.columns:
        msg = f"column {SAMPLE!r} is missing. Add it with 0 for rows of the first sample and 1 for rows of the second"
        raise DataError(msg)
    first: Mask = rows.columns[SAMPLE] == 0
    fewest = min(int(first.sum()), int((~first).sum()))
    if fewest < MIN_ROWS:
        msg = f"{metric} needs two samples of at least {MIN_ROWS} rows, but one has {fewest}"
        raise DataError(msg)
    return first
