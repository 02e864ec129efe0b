"""Rows with missing numbers, which `--nan-policy omit` drops."""

from collections.abc import Iterable, Mapping

import numpy as np

from calcheck.core.validation import finite_rows
from calcheck.typing import AnyArray, Mask

NO_ROWS = "every row has a missing number, so --nan-policy omit leaves no rows"
LIMITS = ("lower", "upper")


def complete_rows(arrays: Mapping[str, AnyArray], others: Iterable[AnyArray]) -> Mask:
    """Return which rows have no missing number in any array, (n,); limits of intervals may be infinite, no gap."""
    limits = {name: np.where(np.isinf(arrays[name]), 0.0, arrays[name]) for name in LIMITS if name in arrays}
    complete: Mask = np.logical_and.reduce(
        [finite_rows(values) for values in (*{**arrays, **limits}.values(), *others)]
    )
    return complete


def select_rows(arrays: Mapping[str, AnyArray], rows: Mask) -> dict[str, AnyArray]:
    """Return arrays of some rows."""
    return {name: values[rows] for name, values in arrays.items()}
