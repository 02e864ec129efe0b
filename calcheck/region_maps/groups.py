"""Groups of rows with the same category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.region_maps.sums import Membership, group_sums
from calcheck.validation import finite_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray

    from calcheck.execution.context import Run
    from calcheck.predictions import Predictions
    from calcheck.region_maps.sums import GroupSums

MAX_GROUPS = 20  # Number of categories of a column with groups
MAX_NUMBERS = 8  # Number of distinct whole numbers that are categories
CATEGORIES, WHOLE_NUMBERS = "bOU", "iu"  # Kinds of NumPy types


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """The groups of rows by a column.

    Parameters
    ----------
    column : str
        Name of the column.
    names : tuple of str
        Category of each group, (g,).
    sums : GroupSums
        Sums over the rows of each group.
    confidence : float
        Confidence of the limits.
    """

    column: str
    names: tuple[str, ...]
    sums: GroupSums
    confidence: float


def column_groups(
    rows: Predictions,
    run: Run,
    *,
    without: Collection[str] = (),
    level: float | None = None,
    independent: bool = True,
) -> tuple[ColumnGroups, ...]:
    """Return the groups by each column of categories: text or truths with 2 to 20 values, or few whole numbers.

    Parameters
    ----------
    rows : Predictions
        n rows with one target and one distribution each.
    run : Run
        Seed, confidence, and whether there are replicates.
    without : collection of str
        Names of columns that are no categories: targets, predictions and keys.
    level : float, optional
        Level of the intervals; by default, that of the metric coverage.
    independent : bool
        Whether rows are independent; if not, there are no limits.
    """
    found = []
    for column, names, groups in _categories(rows, without):
        sums = group_sums(rows, groups, run, level=level)
        found.append(ColumnGroups(column, names, sums if independent else sums.without_limits(), run.confidence))
    return tuple(found)


def _categories(rows: Predictions, without: Collection[str]) -> Iterator[tuple[str, tuple[str, ...], Membership]]:
    """Yield the columns of categories with their groups."""
    for column, values in rows.columns.items():
        if column in without or values.dtype.kind not in CATEGORIES + WHOLE_NUMBERS:
            continue
        most = MAX_NUMBERS if values.dtype.kind in WHOLE_NUMBERS else MAX_GROUPS
        names, labels = np.unique(_texts(values), return_inverse=True)
        if 2 <= len(names) <= most:  # noqa: PLR2004 - one group is all rows
            yield column, tuple(names.tolist()), Membership(labels, len(names))


def _texts(values: NDArray[np.generic]) -> NDArray[np.str_]:
    """Return categories as text; absent ones are a category, too."""
    if values.dtype.kind != "O":
        return values.astype(str)
    return np.where(finite_rows(values), values.astype(str), "(absent)")
