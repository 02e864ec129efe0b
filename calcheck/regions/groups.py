"""Groups of rows: the bins of each column, and their combinations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calcheck.errors import DataError
from calcheck.regions.binning import label_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from calcheck.conditions import Condition
    from calcheck.regions.binning import Binning

MOST_GROUPS = 1_000


@dataclass(frozen=True, eq=False)
class Partition:
    """A division of all rows into groups.

    Parameters
    ----------
    codes : (n,)
        Group of each row, 0 to g - 1.
    groups : tuple of tuple of Condition
        Conditions of each group, g of them; none for all rows.
    """

    codes: NDArray[np.intp]
    groups: tuple[tuple[Condition, ...], ...]

    @property
    def labels(self) -> list[str]:
        """The groups in words."""
        return [label_of(each) or "all rows" for each in self.groups]

    def counts(self) -> NDArray[np.intp]:
        """Return the number of rows of each group, (g,)."""
        return np.bincount(self.codes, minlength=len(self.groups))

    def means(self, columns: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
        """Return the means of columns, (n,) each, by group, (g,) each."""
        counts = self.counts()
        return {
            name: np.bincount(self.codes, values, minlength=len(counts)) / counts for name, values in columns.items()
        }


def partitions(binnings: Sequence[Binning]) -> list[Partition]:
    """Return all rows as one group, then the groups of each column, then those of all combinations.

    Raises
    ------
    DataError
        There are too many groups.
    """
    n = len(binnings[0].codes)
    found = [Partition(np.zeros(n, dtype=np.intp), ((),)), *(_crossed([each]) for each in binnings)]
    if len(binnings) > 1:
        found.append(_crossed(binnings))
    count = sum(len(each.groups) for each in found)
    if count > MOST_GROUPS:
        msg = f"there are {count:,} groups, at most {MOST_GROUPS:,} can be compared. Name fewer columns, or fewer bins"
        raise DataError(msg)
    return found


def _crossed(binnings: Sequence[Binning]) -> Partition:
    """Return the groups of the combinations of bins that have rows."""
    sizes = [len(each.bins) for each in binnings]
    cells = np.ravel_multi_index([each.codes for each in binnings], sizes)
    found, codes = np.unique(cells, return_inverse=True)
    places = np.stack(np.unravel_index(found, sizes), axis=1)
    groups = (
        tuple(condition for each, bin_ in zip(binnings, line, strict=True) for condition in each.bins[bin_])
        for line in places
    )
    return Partition(codes, tuple(groups))
