"""Groups of equal values in ascending order, by sorting; row labels are computed on demand."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from calcheck.statistics.digitize import digitize
from calcheck.statistics.groups import Groups

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TieGroups(Groups):
    """Groups of equal values, in ascending order.

    Parameters
    ----------
    values : (n,)
        The values.
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        ordered = np.sort(values)
        steps = ordered[1:] != ordered[:-1]
        vars(self).update(values=values, ordered=ordered, steps=steps, classes=1 + int(np.count_nonzero(steps)))

    values: NDArray[np.float64]
    ordered: NDArray[np.float64]
    """The sorted values, (n,)."""
    steps: NDArray[np.bool_]
    """Whether each sorted value differs from the one before, (n - 1,)."""

    @property
    def distinct(self) -> NDArray[np.float64]:
        """The distinct values, (c,)."""
        return self.ordered if self.classes == len(self.ordered) else self.ordered[self._starts]

    @property
    def counts(self) -> NDArray[np.intp]:
        return np.diff(self._starts, append=len(self.ordered))

    def sums(self, values: NDArray[np.float64] | None) -> NDArray[np.float64]:
        if self.classes == len(self.ordered):
            return np.broadcast_to(1.0, self.classes) if values is None else values[self.order]
        return self.counts.astype(np.float64) if values is None else np.add.reduceat(values[self.order], self._starts)

    @property
    def _starts(self) -> NDArray[np.intp]:
        """The offset of each class in the sorted values, (c,)."""
        return np.append(0, np.flatnonzero(self.steps) + 1)

    @cached_property
    def label(self) -> NDArray[np.intp]:
        label = np.empty(len(self.ordered), np.intp)
        label[self.order] = np.append(0, np.cumsum(self.steps))
        return label

    @cached_property
    def order(self) -> NDArray[np.intp]:
        return np.argsort(self.values)

    @cached_property
    def _runs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return self._starts, np.arange(self.classes)


class CutTieGroups(Groups):
    """Groups of equal values, in ascending order, for cumulative sums up to given shares of all rows.

    With equal weights, the groups that contain the boundaries are known (:func:`cumulative_at`), and the groups between
    two boundaries are summed together. With other weights, the boundaries may be in any group.

    Parameters
    ----------
    values : (n,)
        The values.
    shares : (s,)
        Shares of all rows, in [0, 1].
    """

    def __init__(self, values: NDArray[np.float64], shares: NDArray[np.float64]) -> None:
        n, ordered = len(values), np.sort(values)
        cut = ordered[np.minimum((shares * n).astype(np.intp), n - 1)]
        starts = np.unique(np.concatenate([[0], *(np.searchsorted(ordered, cut, side) for side in ("left", "right"))]))
        starts = starts[starts < n]
        vars(self).update(
            values=values, starts=starts, cuts=ordered[starts[1:]], group_sums=np.add.reduceat(ordered, starts)
        )

    values: NDArray[np.float64]
    starts: NDArray[np.intp]
    """The offsets of groups that are summed together in the sorted values, (k,)."""
    cuts: NDArray[np.float64]
    """The first value of each of these except the first, (k - 1,)."""
    group_sums: NDArray[np.float64]
    """The sums of the values by group, (k,)."""

    def sums(self, values: NDArray[np.float64] | None) -> NDArray[np.float64]:
        if values is None:
            return np.diff(self.starts, append=len(self.values)).astype(np.float64)
        return self.group_sums if values is self.values else self._together.sums(values)

    @cached_property
    def _together(self) -> Groups:
        return Groups(digitize(self.values, self.cuts, equal=True), len(self.starts))

    @cached_property
    def _each(self) -> TieGroups:
        return TieGroups(self.values)

    def weighted_sums(self, weighted: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._each.weighted_sums(weighted)

    @property
    def classes(self) -> int:
        return self._each.classes

    @property
    def label(self) -> NDArray[np.intp]:
        return self._each.label

    @property
    def order(self) -> NDArray[np.intp]:
        return self._each.order

    @property
    def counts(self) -> NDArray[np.intp]:
        return self._each.counts
