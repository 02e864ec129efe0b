"""Quantiles that cross: refused, or sorted."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from calcheck.errors import SHOWN, named_rows
from calcheck.typing import Indices, Values

SORT_CROSSING = "Pass --crossing sort to sort the quantiles of each row"


def crossing_of(quantiles: Values) -> Values:
    """Return by how much a quantile of each row of (n, q) is below one at a lower level at most, (n,); 0 for none.

    >>> crossing_of(np.array([[1.0, 2.0, 3.0], [1.0, 5.0, 3.0]])).tolist()
    [0.0, 2.0]
    """
    with np.errstate(invalid="ignore"):  # infinite quantiles are refused later
        return np.asarray(np.max(np.maximum.accumulate(quantiles, axis=1) - quantiles, axis=1))


@dataclass
class Crossing:
    """The rows of a scan whose quantiles cross."""

    total: int = 0  # The number of rows with quantiles
    count: int = 0  # The number of rows that cross
    first: Sequence[int] = ()  # The numbers of the first of the crossing rows in the file
    # (k,) each, the amounts of crossing rows, in the unit of the quantiles, by batch
    amounts: list[Values] = field(default_factory=list)

    def sort(self, quantiles: Values, places: Indices) -> Values:
        """Return the quantiles of a batch, (n, q), with those of crossing rows sorted, and count these rows.

        Sorting is the rearrangement of Chernozhukov, Fernández-Val and Galichon (2010), doi:10.3982/ECTA7880; the
        sorted quantiles are never farther from the right ones.
        """
        self.total += len(quantiles)
        amounts = crossing_of(quantiles)
        rows = np.flatnonzero(amounts > 0)
        if not len(rows):
            return quantiles
        self.first = self.first or places[rows[: SHOWN + 1]].tolist()
        self.count += len(rows)
        self.amounts.append(amounts[rows])
        in_order = quantiles.copy()
        in_order[rows] = np.sort(quantiles[rows], axis=1)
        return in_order

    def extent(self) -> str:
        """Return by how much quantiles cross, as text."""
        amounts = np.concatenate(self.amounts)
        return f"by up to {amounts.max():.3g} and by {np.median(amounts):.3g} in the median of these rows"

    def description(self) -> str:
        """Return how many rows cross, and by how much."""
        return f"{self.count:,} of {self.total:,} rows, {self.extent()}"

    def message(self, name: str, first: Sequence[int]) -> str:
        """Return why crossing quantiles are refused, and what to do."""
        return (
            f"{name} must not cross, but those of {self.count:,} of {self.total:,} rows do ({named_rows(first)}),"
            f" {self.extent()}, in the unit of y. {SORT_CROSSING}"
        )
